/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-none.h"
#include "gtorch-ops-private.h"

static gboolean
check (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *indices = call->inputs[1];

  call->compute = call->inputs[0]->dtype;
  if (gtorch_dtype_kind (indices->dtype) == GTORCH_KIND_INT)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("indices must be integers, they are %s"),
                     gtorch_dtype_get_name (indices->dtype));
  return FALSE;
}

gboolean
gtorch_shape_embedding (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *weight = call->inputs[0], *indices = call->inputs[1];
  gint64 shape[GTORCH_MAX_DIMS + 1];

  if (!check (call, error))
    return FALSE;
  if (weight->n_dims != 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the weight must have 2 dimensions, its shape is %s"),
                         gtorch_impl_shape_str (weight));
      return FALSE;
    }
  memcpy (shape, indices->shape, indices->n_dims * sizeof (gint64));
  shape[indices->n_dims] = weight->shape[1];
  return gtorch_shape_check (call->op->name, shape, indices->n_dims + 1, weight->dtype, error)
         && gtorch_call_set_output (call, 0, weight->dtype, shape, indices->n_dims + 1, error);
}

gboolean
gtorch_shape_embedding_backward (GTorchOpCall *call, GError **error)
{
  const gint64 *size = call->attrs[0].list.data;
  const GTorchImpl *upper = call->inputs[0], *indices = call->inputs[1];

  if (!check (call, error))
    return FALSE;
  if (call->attrs[0].list.n != 2 || upper->n_dims != indices->n_dims + 1
      || upper->shape[indices->n_dims] != size[1])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the gradient %s does not belong to a weight of shape %s"),
                         gtorch_impl_shape_str (upper),
                         gtorch_shape_str (size, call->attrs[0].list.n));
      return FALSE;
    }
  return gtorch_shape_check (call->op->name, size, 2, upper->dtype, error)
         && gtorch_call_set_output (call, 0, upper->dtype, size, 2, error);
}

GTorchImpl *
gtorch_op_embedding (GTorchImpl *weight, GTorchImpl *indices, gint64 padding_idx, GError **error)
{
  const gint64 rows = weight->n_dims > 0 ? weight->shape[0] : 0;
  gint64 index = padding_idx;

  if (padding_idx == GTORCH_NONE)
    index = -1;
  else if (padding_idx < -rows || padding_idx >= rows)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("embedding: padding_idx %" G_GINT64_FORMAT
                      " is out of range for %" G_GINT64_FORMAT " rows"),
                   padding_idx, rows);
      return NULL;
    }
  else if (padding_idx < 0)
    index += rows;
  return gtorch_op_native_embedding (weight, indices, index, error);
}
