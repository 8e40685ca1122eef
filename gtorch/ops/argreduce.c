/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Extremes with their positions, and copying elements to and from positions along a dimension. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"

/* --- shapes --- */

static guint
without_dim (const GTorchImpl *self, gint dim, gboolean keepdim, gint64 *shape)
{
  guint n = 0, i;

  for (i = 0; i < self->n_dims; i++)
    if (dim >= 0 && i != dim)
      shape[n++] = self->shape[i];
    else if (keepdim)
      shape[n++] = 1;
  return n;
}

static gboolean
check_elements (GTorchOpCall *call, gint dim, GError **error)
{
  const GTorchImpl *self = call->inputs[0];

  if (dim < 0 ? self->numel > 0 : (self->n_dims == 0 || self->shape[dim] > 0))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("there are no elements to choose from in shape %s"),
                     gtorch_impl_shape_str (self));
  return FALSE;
}

gboolean
gtorch_shape_max_dim (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint dim, n;

  call->compute = self->dtype;
  if (!gtorch_call_check_dtype (call, self->dtype, error)
      || !gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error)
      || !check_elements (call, dim, error))
    return FALSE;
  n = without_dim (self, dim, call->attrs[1].i, shape);
  return gtorch_call_set_output (call, 0, self->dtype, shape, n, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT64, shape, n, error);
}

static gboolean
arg_dim (GTorchOpCall *call, gint *dim, GError **error)
{
  gsize n = call->attrs[0].list.n;
  guint result;

  *dim = -1;
  if (n == 0)
    return TRUE;
  if (n > 1)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("dim must hold one number or none, it holds %u"), (guint) n);
      return FALSE;
    }
  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].list.data[0], call->inputs[0]->n_dims,
                             &result, error))
    return FALSE;
  *dim = result;
  return TRUE;
}

gboolean
gtorch_shape_argmax (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  gint dim;

  call->compute = self->dtype;
  return gtorch_call_check_dtype (call, self->dtype, error) && arg_dim (call, &dim, error)
         && check_elements (call, dim, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, shape,
                                    without_dim (self, dim, call->attrs[1].i, shape), error);
}

/* --- elements at positions --- */

gboolean
gtorch_shape_place_at (GTorchOpCall *call, GError **error)
{
  call->compute = call->inputs[0]->dtype;
  return gtorch_shape_check (call->op->name, call->attrs[0].list.data, call->attrs[0].list.n,
                             call->compute, error)
         && gtorch_call_set_output (call, 0, call->compute, call->attrs[0].list.data,
                                    call->attrs[0].list.n, error);
}

gboolean
gtorch_shape_take_at (GTorchOpCall *call, GError **error)
{
  call->compute = call->inputs[0]->dtype;
  return gtorch_call_set_output (call, 0, call->compute, call->inputs[1]->shape,
                                 call->inputs[1]->n_dims, error);
}
