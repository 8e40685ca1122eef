/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Running sums of exponentials, as logarithms, along a dimension, and the sums for their derivatives. */

#include "config.h"

#include "gtorch-ops-private.h"

static gboolean
shape (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  guint dim, dtype;

  return gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error)
         && gtorch_call_promote (call, 0, 1, &dtype, error)
         && gtorch_call_set_output (call, 0, dtype, self->shape, self->n_dims, error);
}

gboolean
gtorch_shape_logcumsumexp (GTorchOpCall *call, GError **error)
{
  return shape (call, error);
}

gboolean
gtorch_shape_logcumsumexp_backward (GTorchOpCall *call, GError **error)
{
  return shape (call, error);
}

gboolean
gtorch_shape_logcumsumexp_tangent (GTorchOpCall *call, GError **error)
{
  return shape (call, error);
}
