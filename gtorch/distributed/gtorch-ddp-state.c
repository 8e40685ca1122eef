/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the ranks of a GTorchDistributedModule must have alike. */

#include "config.h"

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
#include "distributed/gtorch-collectives.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-engine-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-tensor-ops.h"
#include "nn/gtorch-module-members.h"
#include "tensor/gtorch-tensor-private.h"

/* Of one device. A tensor that has gaps, or another order of its dimensions, goes as a copy. */
static gboolean
send_tensors (GTorchProcessGroup *group, GTorchTensor **tensors, guint n, gint source,
              GError **error)
{
  g_autoptr (GPtrArray) plain = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) sent = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GTorchWork) work = NULL;
  guint i;

  for (i = 0; i < n; i++)
    {
      GTorchTensor *one = gtorch_tensor_detach (tensors[i], error);
      GTorchTensor *copy = one == NULL ? NULL : gtorch_tensor_contiguous (one, error);

      if (one != NULL)
        g_ptr_array_add (plain, one);
      if (copy == NULL)
        return FALSE;
      g_ptr_array_add (sent, copy);
    }
  work = gtorch_process_group_broadcast_coalesced (group, (GTorchTensor **) sent->pdata, sent->len,
                                                   source, error);
  if (work == NULL || !gtorch_work_join (work, error))
    return FALSE;
  for (i = 0; i < sent->len; i++)
    if (!gtorch_impl_is_same_place (gtorch_tensor_unwrap (sent->pdata[i]),
                                    gtorch_tensor_unwrap (plain->pdata[i]))
        && gtorch_tensor_copy_inplace (plain->pdata[i], sent->pdata[i], FALSE, error) == NULL)
      return FALSE;
  return TRUE;
}

gboolean
gtorch_group_send_tensors (GTorchProcessGroup *group, GPtrArray *tensors, gint source,
                           GError **error)
{
  GTorchTensor **all = (GTorchTensor **) tensors->pdata;
  guint i, n;

  for (i = 0; i < tensors->len; i += n)
    {
      for (n = 1; i + n < tensors->len
                  && gtorch_tensor_get_device (all[i + n]) == gtorch_tensor_get_device (all[i]);
           n++)
        ;
      if (!send_tensors (group, all + i, n, source, error))
        return FALSE;
    }
  return TRUE;
}

static void
add_items (GPtrArray *tensors, GListModel *list)
{
  guint i;

  for (i = 0; i < g_list_model_get_n_items (list); i++)
    g_ptr_array_add (tensors, g_list_model_get_item (list, i));
}

void
gtorch_ddp_add_tensors (GTorchDistributedModule *self, GPtrArray *tensors, gboolean parameters)
{
  g_autoptr (GListModel) buffers = gtorch_module_get_buffers (self->module, TRUE);
  g_autoptr (GListModel) all =
      parameters ? gtorch_module_get_parameters (self->module, TRUE) : NULL;

  if (all != NULL)
    add_items (tensors, all);
  add_items (tensors, buffers);
}

gboolean
gtorch_ddp_broadcast (GTorchDistributedModule *self, gboolean parameters, gint source,
                      GError **error)
{
  GTORCH_GROUP_CALL ("distributed_module");
  g_autoptr (GPtrArray) tensors = g_ptr_array_new_with_free_func (g_object_unref);

  gtorch_ddp_add_tensors (self, tensors, parameters);
  return gtorch_group_send_tensors (self->group, tensors, source, error);
}
