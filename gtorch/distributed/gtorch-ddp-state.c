/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the ranks of a GTorchDistributedModule must have alike. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
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

/* A tensor that has gaps, or another order of its dimensions, goes as a copy. */
gboolean
gtorch_group_send_tensor (GTorchProcessGroup *group, GTorchTensor *tensor, gint source,
                          GError **error)
{
  g_autoptr (GTorchTensor) plain = gtorch_tensor_detach (tensor, error);
  g_autoptr (GTorchTensor) sent = NULL;
  g_autoptr (GTorchWork) work = NULL;

  if (plain == NULL)
    return FALSE;
  sent = gtorch_tensor_contiguous (plain, error);
  work = sent == NULL ? NULL : gtorch_process_group_broadcast (group, sent, source, error);
  return work != NULL && gtorch_work_join (work, error)
         && (gtorch_impl_is_same_place (gtorch_tensor_unwrap (sent), gtorch_tensor_unwrap (plain))
             || gtorch_tensor_copy_inplace (plain, sent, FALSE, error) != NULL);
}

static gboolean
broadcast_list (GTorchDistributedModule *self, GListModel *tensors, gint source, GError **error)
{
  guint n = g_list_model_get_n_items (tensors), i;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) tensor = g_list_model_get_item (tensors, i);

      if (!gtorch_group_send_tensor (self->group, tensor, source, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_ddp_broadcast (GTorchDistributedModule *self, gboolean parameters, gint source,
                      GError **error)
{
  g_autoptr (GListModel) buffers = gtorch_module_get_buffers (self->module, TRUE);
  g_autoptr (GListModel) all =
      parameters ? gtorch_module_get_parameters (self->module, TRUE) : NULL;

  return (all == NULL || broadcast_list (self, all, source, error))
         && broadcast_list (self, buffers, source, error);
}
