/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Triangles, diagonals and one-hot rows. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_shape_triangle (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];

  if (self->n_dims >= 2)
    return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("shape %s has fewer than two dimensions"),
                     gtorch_impl_shape_str (self));
  return FALSE;
}

gboolean
gtorch_shape_diag_embed (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS + 1];
  gint64 offset = call->attrs[0].i, size;
  guint dim1, dim2, i, n = 0;

  if (self->n_dims == 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("a dimension is needed"));
      return FALSE;
    }
  if (!gtorch_normalize_dim (call->op->name, call->attrs[1].i, self->n_dims + 1, &dim1, error)
      || !gtorch_normalize_dim (call->op->name, call->attrs[2].i, self->n_dims + 1, &dim2, error))
    return FALSE;
  if (dim1 == dim2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("dim1 and dim2 are both dimension %u"), dim1);
      return FALSE;
    }
  if (offset == G_MININT64
      || __builtin_add_overflow (self->shape[self->n_dims - 1], ABS (offset), &size))
    size = G_MAXINT64; /* refused by gtorch_shape_check () */
  for (i = 0; i <= self->n_dims; i++)
    shape[i] = i == dim1 || i == dim2 ? size : self->shape[n++];
  return gtorch_shape_check (call->op->name, shape, self->n_dims + 1, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, shape, self->n_dims + 1, error);
}

GTorchImpl *
gtorch_op_diag (GTorchImpl *self, gint64 diagonal, GError **error)
{
  g_autoptr (GTorchImpl) view = NULL;

  if (self->n_dims == 1)
    return gtorch_op_diag_embed (self, diagonal, -2, -1, error);
  if (self->n_dims == 2)
    {
      view = gtorch_op_diagonal (self, diagonal, 0, 1, error);
      return view != NULL ? gtorch_op_clone (view, error) : NULL;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("diag: shape %s must have one or two dimensions"), gtorch_impl_shape_str (self));
  return NULL;
}

GTorchImpl *
gtorch_composite_trace (GTorchImpl *self, GError **error)
{
  g_autoptr (GTorchImpl) diagonal = NULL;

  if (self->n_dims != 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("trace: self must have 2 dimensions, its shape is %s"),
                   gtorch_impl_shape_str (self));
      return NULL;
    }
  diagonal = gtorch_op_diagonal (self, 0, 0, 1, error);
  return diagonal != NULL ? gtorch_op_sum (diagonal, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error)
                          : NULL;
}

/* --- one_hot --- */

gboolean
gtorch_shape_one_hot (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS + 1];
  gint64 n = call->attrs[0].i, bounds[2];

  if (!gtorch_index_check_dtype (call, 0, error))
    return FALSE;
  if (n == -1 && self->numel > 0)
    {
      if (!gtorch_call_query (call, bounds, error))
        return FALSE;
      n = bounds[0];
    }
  if (n <= 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("%" PRId64 " classes for indices of shape %s are too few"),
                         call->attrs[0].i, gtorch_impl_shape_str (self));
      return FALSE;
    }
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  shape[self->n_dims] = n;
  return gtorch_shape_check (call->op->name, shape, self->n_dims + 1, GTORCH_DTYPE_INT64, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, shape, self->n_dims + 1, error);
}
