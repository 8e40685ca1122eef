/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Numbers that are computed from all gradients, such as their norm, where each process has a part of them. */

#include "config.h"

#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-bytes-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-spread-private.h"
#include "tensor/gtorch-tensor-private.h"

static GQuark
group_quark (void)
{
  return g_quark_from_static_string ("gtorch-spread-group");
}

void
gtorch_spread_set_group (GTorchTensor *tensor, GTorchProcessGroup *group)
{
  g_object_set_qdata_full (G_OBJECT (tensor), group_quark (), g_object_ref (group), g_object_unref);
}

static gpointer
spread_find (GTorchTensor *tensor)
{
  GTorchModuleShards *shards = gtorch_module_shards_find (tensor);

  return shards != NULL ? gtorch_module_shards_get_group (shards)
                        : g_object_get_qdata (G_OBJECT (tensor), group_quark ());
}

/* A number of parts that are kept in the memory of the CPU goes by way of a GPU, if that is what the group
 * has. */
static GTorchImpl *
spread_reduce (gpointer processes, GTorchImpl *number, GTorchSpreadOp op, GError **error)
{
  static const GTorchReduceOp ops[] = { [GTORCH_SPREAD_SUM] = GTORCH_REDUCE_OP_SUM,
                                        [GTORCH_SPREAD_MIN] = GTORCH_REDUCE_OP_MIN,
                                        [GTORCH_SPREAD_MAX] = GTORCH_REDUCE_OP_MAX };
  const GTorchDeviceType type = gtorch_process_group_get_device_type (processes);
  GTorchDevice *own = gtorch_impl_device (number);
  GTorchDevice *device = own;
  g_autoptr (GTorchImpl) near = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GTorchWork) work = NULL;

  if (gtorch_device_get_device_type (own) != type)
    device = gtorch_group_get_device (processes, error);
  near =
      device == NULL ? NULL : gtorch_op_to (number, GTORCH_DTYPE_NONE, device, FALSE, TRUE, error);
  if (near == NULL)
    return NULL;
  sum = gtorch_tensor_wrap (g_steal_pointer (&near));
  work = gtorch_process_group_all_reduce (processes, sum, ops[op], error);
  return work == NULL || !gtorch_work_join (work, error)
             ? NULL
             : gtorch_op_to_device (gtorch_tensor_unwrap (sum), own, FALSE, error);
}

static const GTorchSpread spread = { spread_find, spread_reduce };

static void __attribute__ ((constructor)) gtorch_spread_register (void) { gtorch_spread = &spread; }
