/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* gather and scatter: element-wise indexing along one dimension. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

static gboolean
check_shapes (GTorchOpCall *call, guint *dim, GError **error)
{
  GTorchImpl *self = call->inputs[0], *index = call->inputs[1];
  guint i;

  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, dim, error)
      || !gtorch_index_check_dtype (call, 1, error))
    return FALSE;
  if (index->numel == 0)
    return TRUE;
  if (MAX (index->n_dims, 1) != MAX (self->n_dims, 1))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("index of shape %s must have as many dimensions as self of shape %s"),
                         gtorch_impl_shape_str (index), gtorch_impl_shape_str (self));
      return FALSE;
    }
  for (i = 0; i < MIN (self->n_dims, index->n_dims); i++)
    if (i != *dim && index->shape[i] > self->shape[i])
      {
        gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                           _ ("index of shape %s exceeds self of shape %s in dimension %u"),
                           gtorch_impl_shape_str (index), gtorch_impl_shape_str (self), i);
        return FALSE;
      }
  return TRUE;
}

gboolean
gtorch_shape_gather (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *index = call->inputs[1];
  guint dim;

  return check_shapes (call, &dim, error)
         && gtorch_shape_check (call->op->name, index->shape, index->n_dims, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, index->shape, index->n_dims, error);
}

gboolean
gtorch_shape_scatter (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *index = call->inputs[1], *src = call->inputs[2];
  guint dim, i;

  if (!gtorch_call_check_dtype (call, self->dtype, error) || !check_shapes (call, &dim, error))
    return FALSE;
  if (!src->is_number && src->dtype != self->dtype)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("self has dtype %s and src has %s: they must be the same"),
                         gtorch_dtype_get_name (self->dtype), gtorch_dtype_get_name (src->dtype));
      return FALSE;
    }
  if (!gtorch_call_check_scalar (call, 2, self->dtype, error))
    return FALSE;
  for (i = 0; i < index->n_dims && !src->is_number && index->numel > 0; i++)
    if (MAX (src->n_dims, 1) != index->n_dims
        || index->shape[i] > (src->n_dims > 0 ? src->shape[i] : 1))
      {
        gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                           _ ("index of shape %s exceeds src of shape %s"),
                           gtorch_impl_shape_str (index), gtorch_impl_shape_str (src));
        return FALSE;
      }
  return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

GTorchImpl *
gtorch_op_scatter_src_backward (GTorchImpl *grad, GTorchImpl *index, const gint64 *size,
                                gsize n_dims, gint64 dim, GError **error)
{
  g_autoptr (GTorchImpl) result = gtorch_op_gather (grad, dim, index, error);
  guint i;

  for (i = 0; result != NULL && i < n_dims && i < result->n_dims; i++)
    if (result->shape[i] < size[i])
      {
        g_autoptr (GTorchImpl) part = g_steal_pointer (&result);
        gint64 shape[GTORCH_MAX_DIMS];

        memcpy (shape, part->shape, n_dims * sizeof (gint64));
        shape[i] = size[i];
        result = gtorch_op_slice_backward (part, shape, n_dims, i, 0, part->shape[i], 1, error);
      }
  return g_steal_pointer (&result);
}

/* Counts negative indices from the end of a dimension of some size. */
static GTorchImpl *
count_from_end (GTorchImpl *indices, gint64 size, GError **error)
{
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) length = gtorch_impl_new_int (size);
  g_autoptr (GTorchImpl) is_negative = gtorch_op_lt (indices, zero, error);
  g_autoptr (GTorchImpl) shifted =
      is_negative != NULL ? gtorch_op_add (indices, length, 1, error) : NULL;

  return shifted != NULL ? gtorch_op_where (is_negative, shifted, indices, error) : NULL;
}

GTorchImpl *
gtorch_op_take_along_dim (GTorchImpl *self, GTorchImpl *indices, gint64 wanted, GError **error)
{
  gint64 a[GTORCH_MAX_DIMS], b[GTORCH_MAX_DIMS], both[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) source = NULL;
  g_autoptr (GTorchImpl) counted = NULL;
  g_autoptr (GTorchImpl) index = NULL;
  guint dim, n;

  if (self->n_dims != indices->n_dims || self->n_dims == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("take_along_dim: indices of shape %s must have as many dimensions as self of "
                      "shape %s, and at least one"),
                   gtorch_impl_shape_str (indices), gtorch_impl_shape_str (self));
      return NULL;
    }
  if (!gtorch_normalize_dim ("take_along_dim", wanted, self->n_dims, &dim, error))
    return NULL;
  memcpy (a, self->shape, self->n_dims * sizeof (gint64));
  memcpy (b, indices->shape, self->n_dims * sizeof (gint64));
  a[dim] = b[dim] = 1;
  if (!gtorch_broadcast_shapes ("take_along_dim", a, self->n_dims, b, self->n_dims, both, &n,
                                error))
    return NULL;
  both[dim] = self->shape[dim];
  source = gtorch_op_expand (self, both, n, error);
  if (source == NULL)
    return NULL;
  both[dim] = indices->shape[dim];
  counted = indices->dtype == GTORCH_DTYPE_INT64 ? count_from_end (indices, self->shape[dim], error)
                                                 : gtorch_impl_ref (indices);
  index = counted != NULL ? gtorch_op_expand (counted, both, n, error) : NULL;
  return index != NULL ? gtorch_op_gather (source, dim, index, error) : NULL;
}
