/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Running sums and products along a dimension. */

#include "config.h"

#include "gtorch-ops-private.h"

static gboolean
shape (GTorchOpCall *call, gboolean has_dtype, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  guint wanted = has_dtype ? call->attrs[1].i : GTORCH_DTYPE_NONE;
  guint dim, dtype;

  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  if (wanted == GTORCH_DTYPE_NONE)
    return gtorch_call_promote (call, 0, 1, &dtype, error)
           && gtorch_call_set_output (call, 0, dtype, self->shape, self->n_dims, error);
  if (!gtorch_call_is_dtype (call, wanted, error))
    return FALSE;
  call->compute = wanted == GTORCH_DTYPE_BOOL ? GTORCH_DTYPE_INT64 : wanted;
  return gtorch_call_set_output (call, 0, wanted, self->shape, self->n_dims, error);
}

gboolean
gtorch_shape_cumsum (GTorchOpCall *call, GError **error)
{
  return shape (call, TRUE, error);
}

gboolean
gtorch_shape_cumsum_reverse (GTorchOpCall *call, GError **error)
{
  return shape (call, FALSE, error);
}

gboolean
gtorch_shape_cumprod (GTorchOpCall *call, GError **error)
{
  return shape (call, TRUE, error);
}

gboolean
gtorch_shape_cumprod_backward (GTorchOpCall *call, GError **error)
{
  return shape (call, FALSE, error);
}
