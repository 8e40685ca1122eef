/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The shape functions of reductions, the view that restores the input's shape for their gradients, and a
 * composite of two reductions. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "base/gtorch-none.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_reduce_parse (GTorchOpCall *call, guint64 *mask, gboolean *keepdim, guint *dtype,
                     GError **error)
{
  const GTorchArgSpec *specs = call->op->args + (call->op->n_args - call->op->n_attrs);
  const gint64 *dims = NULL;
  gsize n_dims = 0;
  guint i;

  *keepdim = FALSE;
  *dtype = GTORCH_DTYPE_NONE;
  for (i = 0; i < call->op->n_attrs; i++)
    switch (specs[i].kind)
      {
      case GTORCH_ARG_INTS:
        dims = call->attrs[i].list.data;
        n_dims = call->attrs[i].list.n;
        break;
      case GTORCH_ARG_BOOL:
        *keepdim = call->attrs[i].i;
        break;
      case GTORCH_ARG_DTYPE:
        *dtype = call->attrs[i].i;
        break;
      default:
        break;
      }
  return gtorch_normalize_dims (call->op->name, dims, n_dims, call->inputs[0]->n_dims, mask, error);
}

gboolean
gtorch_shape_reduce (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  gboolean keepdim;
  guint dtype, result, n = 0, i;
  guint64 mask;

  if (!gtorch_reduce_parse (call, &mask, &keepdim, &dtype, error))
    return FALSE;
  if (dtype != GTORCH_DTYPE_NONE)
    {
      if (!gtorch_call_check_dtype (call, dtype, error))
        return FALSE;
      call->compute = result = dtype;
    }
  else if (!gtorch_call_promote (call, 0, 1, &result, error))
    return FALSE;
  if (call->op->promote == GTORCH_PROMOTE_BOOL && self->dtype == GTORCH_DTYPE_UINT8)
    result = GTORCH_DTYPE_UINT8; /* any and all of uint8 stay uint8 */

  for (i = 0; i < self->n_dims; i++)
    if (!(mask & (G_GUINT64_CONSTANT (1) << i)))
      shape[n++] = self->shape[i];
    else if (keepdim)
      shape[n++] = 1;
  return gtorch_call_set_output (call, 0, result, shape, n, error);
}

/* Checks the shape for reductions that are undefined for no elements. */
gboolean
gtorch_shape_reduce_nonempty (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  gboolean keepdim;
  guint64 mask;
  guint dtype, i;

  if (!gtorch_reduce_parse (call, &mask, &keepdim, &dtype, error))
    return FALSE;
  for (i = 0; i < self->n_dims; i++)
    if (self->shape[i] == 0 && (mask & (G_GUINT64_CONSTANT (1) << i)))
      {
        gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                           _ ("dim %u of shape %s has no elements, and without elements there is "
                              "no %s"),
                           i, gtorch_impl_shape_str (self), call->op->name);
        return FALSE;
      }
  return gtorch_shape_reduce (call, error);
}

/* Expands a reduction's result (or its gradient) over the dimensions that were reduced. */
gboolean
gtorch_shape_expand_reduced (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  const gint64 *shape = call->attrs[0].list.data;
  guint n_dims = call->attrs[0].list.n;
  gboolean keepdim = call->attrs[2].i;
  gint64 strides[GTORCH_MAX_DIMS];
  guint64 mask;
  guint i, k = 0;

  if (!gtorch_shape_check (call->op->name, shape, call->attrs[0].list.n, self->dtype, error)
      || !gtorch_normalize_dims (call->op->name, call->attrs[1].list.data, call->attrs[1].list.n,
                                 n_dims, &mask, error))
    return FALSE;
  for (i = 0; i < n_dims; i++)
    {
      gboolean reduced = (mask & (G_GUINT64_CONSTANT (1) << i)) != 0;

      strides[i] = 0;
      if (reduced && !keepdim)
        continue;
      if (k >= self->n_dims || self->shape[k] != (reduced ? 1 : shape[i]))
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("shape %s is not a reduction of shape %s"),
                             gtorch_impl_shape_str (self), gtorch_shape_str (shape, n_dims));
          return FALSE;
        }
      if (!reduced)
        strides[i] = self->strides[k];
      k++;
    }
  call->outputs[0] = gtorch_impl_new_view (self, self->offset, shape, strides, n_dims);
  return TRUE;
}

/* Swaps the last two dimensions. For a complex matrix product the gradient also needs conj (). */
gboolean
gtorch_shape_swap_matrix (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint n = self->n_dims;

  if (n < 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("a tensor of shape %s is no matrix: two dimensions are wanted"),
                         gtorch_impl_shape_str (self));
      return FALSE;
    }
  memcpy (shape, self->shape, n * sizeof (gint64));
  memcpy (strides, self->strides, n * sizeof (gint64));
  shape[n - 2] = self->shape[n - 1];
  shape[n - 1] = self->shape[n - 2];
  strides[n - 2] = self->strides[n - 1];
  strides[n - 1] = self->strides[n - 2];
  call->outputs[0] = gtorch_impl_new_view (self, self->offset, shape, strides, n);
  return TRUE;
}

/* --- both extremes --- */

gboolean
gtorch_shape_extremes (GTorchOpCall *call, GError **error)
{
  guint dtype;

  return gtorch_call_promote (call, 0, 1, &dtype, error)
         && gtorch_call_set_output (call, 0, dtype, NULL, 0, error)
         && gtorch_call_set_output (call, 1, dtype, NULL, 0, error);
}

gboolean
gtorch_op_aminmax (GTorchImpl *self, gint64 dim, gboolean keepdim, GTorchImpl **min,
                   GTorchImpl **max, GError **error)
{
  guint n = dim != GTORCH_NONE ? 1 : 0;
  g_autoptr (GTorchImpl) least = NULL;
  g_autoptr (GTorchImpl) greatest = NULL;

  if (n == 0 && !keepdim && self->numel > 0 && !gtorch_autograd_wanted (&self, 1)
      && gtorch_impl_has_op (self, GTORCH_OP_EXTREMES))
    gtorch_op_extremes (self, &least, &greatest, error);
  else if ((least = gtorch_op_amin (self, &dim, n, keepdim, error)) != NULL)
    greatest = gtorch_op_amax (self, &dim, n, keepdim, error);
  if (greatest == NULL)
    {
      gtorch_error_set_op (error, "aminmax");
      return FALSE;
    }
  if (min != NULL)
    *min = g_steal_pointer (&least);
  if (max != NULL)
    *max = g_steal_pointer (&greatest);
  return TRUE;
}
