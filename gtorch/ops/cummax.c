/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The greatest or least element so far, with its position, along a dimension. */

#include "config.h"

#include "gtorch-ops-private.h"

static gboolean
shape (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  guint dim;

  call->compute = self->dtype;
  return gtorch_call_check_dtype (call, self->dtype, error)
         && gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT64, self->shape, self->n_dims, error);
}

gboolean
gtorch_shape_cummax (GTorchOpCall *call, GError **error)
{
  return shape (call, error);
}

gboolean
gtorch_shape_cummin (GTorchOpCall *call, GError **error)
{
  return shape (call, error);
}
