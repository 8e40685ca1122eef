/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the ranks of a GTorchDistributedModule must have alike. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

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

#define N_SINGLE 63 /* parameters that are compared by themselves; the others by their sums */
#define N_VALUES (1 + 2 * (N_SINGLE + 1))

/* All ranks have as many parameters, of the same numbers of elements and dtypes; the first difference is
 * named. */
gboolean
gtorch_ddp_compare (GTorchDistributedModule *self, GError **error)
{
  GTorchTensor *model = ((GTorchDDPEntry *) self->entries->pdata[0])->parameter;
  GTorchDevice *device = gtorch_tensor_get_device (model);
  const gint64 size = gtorch_process_group_get_size (self->group), n = N_VALUES;
  gint64 own[N_VALUES] = { 0 }, all_shape = n * size;
  g_autoptr (GTorchTensor) mine = NULL, all = NULL;
  g_autoptr (GTorchWork) work = NULL;
  g_autofree gint64 *values = NULL;
  gsize n_values;
  guint i, k;

  own[0] = self->entries->len;
  for (i = 0; i < self->entries->len; i++)
    {
      GTorchTensor *parameter = ((GTorchDDPEntry *) self->entries->pdata[i])->parameter;
      const guint place = 1 + 2 * MIN (i, N_SINGLE);

      own[place] += gtorch_tensor_get_numel (parameter);
      own[place + 1] += gtorch_tensor_get_dtype (parameter);
    }
  mine = gtorch_tensor_new_from_ints (own, n, &n, 1, GTORCH_DTYPE_INT64, device, error);
  all = mine == NULL ? NULL : gtorch_zeros (&all_shape, 1, GTORCH_DTYPE_INT64, device, error);
  work = all == NULL ? NULL
                     : gtorch_process_group_all_gather_into_tensor (self->group, all, mine, error);
  values = work == NULL || !gtorch_work_join (work, error)
               ? NULL
               : gtorch_tensor_to_ints (all, &n_values, error);
  if (values == NULL)
    return FALSE;
  for (i = 0; i < size; i++)
    for (k = 0; k < n; k++)
      if (values[i * n + k] != values[k])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("distributed_module: the modules of rank 0 and of rank %u differ: in %s "
                          "%" PRId64 " and %" PRId64),
                       i,
                       k == 0       ? _ ("the number of parameters,")
                       : k % 2 == 1 ? _ ("the number of elements of a parameter,")
                                    : _ ("the dtype of a parameter,"),
                       values[k], values[i * n + k]);
          return FALSE;
        }
  return TRUE;
}

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

gboolean
gtorch_ddp_broadcast (GTorchDistributedModule *self, gboolean parameters, gint source,
                      GError **error)
{
  g_autoptr (GListModel) buffers = gtorch_module_get_buffers (self->module, TRUE);
  g_autoptr (GListModel) all =
      parameters ? gtorch_module_get_parameters (self->module, TRUE) : NULL;
  g_autoptr (GPtrArray) tensors = g_ptr_array_new_with_free_func (g_object_unref);

  if (all != NULL)
    add_items (tensors, all);
  add_items (tensors, buffers);
  return gtorch_group_send_tensors (self->group, tensors, source, error);
}
