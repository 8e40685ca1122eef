/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Numbers that are computed from all gradients, such as their norm, where each process has a part of them. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-bytes-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-spread-private.h"
#include "tensor/gtorch-tensor-private.h"

gboolean
gtorch_part_find (GTorchTensor *tensor, GTorchPart *part)
{
  const GTorchDivision *division = gtorch_division_find (tensor);
  GTorchModuleShards *shards = gtorch_module_shards_find (tensor);
  const GTorchShard *shard = shards == NULL ? NULL : gtorch_shards_find (shards, tensor);
  const guint n_dims = gtorch_tensor_unwrap (tensor)->n_dims;

  if (division == NULL && shard == NULL)
    return FALSE;
  memset (part, 0, sizeof *part);
  part->n_dims = n_dims;
  memcpy (part->shape, division != NULL ? division->shape : shard->shape, n_dims * sizeof (gint64));
  if (division != NULL)
    part->first[division->dim] = division->first;
  if (shard != NULL) /* rows of what the layer has */
    part->first[0] += shard->first;
  return TRUE;
}

static gboolean
has_others (GTorchProcessGroup *one, GTorchProcessGroup *other)
{
  gsize n, n_others, i, k;
  g_autofree gint64 *ranks = gtorch_process_group_get_ranks (one, &n);
  g_autofree gint64 *others = gtorch_process_group_get_ranks (other, &n_others);
  guint n_both = 0;

  for (i = 0; i < n; i++)
    for (k = 0; k < n_others; k++)
      n_both += ranks[i] == others[k];
  return n_both > 1; /* one is this process */
}

gboolean
gtorch_part_is_within (GTorchTensor *tensor, GTorchProcessGroup *group)
{
  const GTorchDivision *division = gtorch_division_find (tensor);
  GTorchModuleShards *shards = gtorch_module_shards_find (tensor);

  return (division != NULL && has_others (division->group, group))
         || (shards != NULL && has_others (gtorch_module_shards_get_group (shards), group));
}

gboolean
gtorch_part_check_group (const gchar *who, GTorchTensor *param, GTorchProcessGroup *group,
                         GError **error)
{
  if (!gtorch_part_is_within (param, group))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: the parameter “%s”, of shape %s, is a part of a whole one, of which other "
                  "ranks of the group have other parts: use another dimension of a mesh"),
               who,
               GTORCH_IS_PARAMETER (param) ? gtorch_parameter_get_name (GTORCH_PARAMETER (param))
                                           : "",
               gtorch_impl_shape_str (gtorch_tensor_unwrap (param)));
  return FALSE;
}

/* --- numbers --- */

/* The groups, one within the other, whose processes have parts. There is one of these for the same groups;
 * the first group has it. */
typedef struct
{
  GTorchProcessGroup *groups[2]; /* not owned; the second may be NULL */
} Processes;

static gpointer
find_processes (GTorchProcessGroup *first, GTorchProcessGroup *second)
{
  static GMutex lock;
  const GQuark quark = g_quark_from_static_string ("gtorch-spread-processes");
  GHashTable *known;
  Processes *found;

  g_mutex_lock (&lock);
  known = g_object_get_qdata (G_OBJECT (first), quark);
  if (known == NULL)
    {
      known = g_hash_table_new_full (NULL, NULL, NULL, g_free);
      g_object_set_qdata_full (G_OBJECT (first), quark, known, (GDestroyNotify) g_hash_table_unref);
    }
  found = g_hash_table_lookup (known, second);
  if (found == NULL)
    {
      found = g_new (Processes, 1);
      *found = (Processes){ { first, second } };
      g_hash_table_insert (known, second, found);
    }
  g_mutex_unlock (&lock);
  return found;
}

static gpointer
spread_find (GTorchTensor *tensor)
{
  const GTorchDivision *division = gtorch_division_find (tensor);
  GTorchModuleShards *shards = gtorch_module_shards_find (tensor);
  GTorchProcessGroup *group = shards == NULL ? NULL : gtorch_module_shards_get_group (shards);

  if (group == NULL && division == NULL)
    return NULL;
  return group == NULL ? find_processes (division->group, NULL)
                       : find_processes (group, division == NULL ? NULL : division->group);
}

static gpointer
spread_find_value (GTorchTensor *tensor)
{
  gpointer found = spread_find (tensor);
  GTorchTensor *param = NULL;

  if (found == NULL)
    param = gtorch_shards_of_grad (tensor);
  if (found == NULL && param == NULL)
    param = gtorch_division_of_grad (tensor);
  return param == NULL ? found : spread_find (param);
}

static void
spread_share (GTorchTensor *tensor, GTorchTensor *param)
{
  GTorchModuleShards *shards = gtorch_module_shards_find (param);
  const GTorchImpl *one = gtorch_tensor_unwrap (tensor), *other = gtorch_tensor_unwrap (param);

  if (other->n_dims == 0 || one->n_dims != other->n_dims
      || memcmp (one->shape, other->shape, one->n_dims * sizeof (gint64)) != 0)
    return; /* such as the number of steps */
  gtorch_division_share (tensor, param);
  if (shards != NULL)
    gtorch_module_shards_adopt (shards, tensor, param, NULL);
}

/* A number of parts that are kept in the memory of the CPU goes by way of a GPU, if that is what the group
 * has. */
static GTorchImpl *
reduce_in_group (GTorchProcessGroup *processes, GTorchImpl *number, GTorchSpreadOp op,
                 GError **error)
{
  GTORCH_GROUP_CALL ("module_shards");
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

static GTorchImpl *
spread_reduce (gpointer data, GTorchImpl *number, GTorchSpreadOp op, GError **error)
{
  const Processes *processes = data;
  g_autoptr (GTorchImpl) own = reduce_in_group (processes->groups[0], number, op, error);

  return own == NULL || processes->groups[1] == NULL
             ? g_steal_pointer (&own)
             : reduce_in_group (processes->groups[1], own, op, error);
}

static const GTorchSpread spread = { spread_find, spread_find_value, spread_share, spread_reduce };

static void __attribute__ ((constructor)) gtorch_spread_register (void) { gtorch_spread = &spread; }
