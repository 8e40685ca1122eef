/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

GTorchImpl *
gtorch_op_contiguous (GTorchImpl *self, GError **error)
{
  return self->is_contiguous && self->storage != NULL ? gtorch_impl_ref (self)
                                                      : gtorch_op_clone (self, error);
}

gboolean
gtorch_shape_to_dtype (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 dtype = call->attrs[0].i;

  if (dtype <= GTORCH_DTYPE_NONE || dtype >= GTORCH_N_DTYPES)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("%d is not a dtype"), (gint) dtype);
      return FALSE;
    }
  return gtorch_shape_check ("to_dtype", self->shape, self->n_dims, dtype, error)
         && gtorch_call_set_images (call, 0, dtype, self->shape, self->n_dims,
                                    gtorch_impl_is_channels_last (self), error);
}

gboolean
gtorch_shape_copy (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *src = call->inputs[1];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  if (!gtorch_broadcast_shapes ("copy", self->shape, self->n_dims, src->shape, src->n_dims, shape,
                                &n_dims, error))
    return FALSE;
  if (!gtorch_same_shape (shape, n_dims, self->shape, self->n_dims))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("shape %s cannot be broadcast to %s"),
                         gtorch_impl_shape_str (src), gtorch_impl_shape_str (self));
      return FALSE;
    }
  return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}
