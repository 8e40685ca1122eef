/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-ops-private.h"

static gboolean
shape_softmax (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  guint dtype, wanted = call->op->n_attrs > 1 ? call->attrs[1].i : GTORCH_DTYPE_NONE;
  guint dim;

  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  if (wanted != GTORCH_DTYPE_NONE)
    {
      call->compute = wanted;
      return gtorch_call_check_dtype (call, wanted, error)
             && gtorch_call_set_output (call, 0, wanted, self->shape, self->n_dims, error);
    }
  return gtorch_call_promote (call, 0, 1, &dtype, error)
         && gtorch_call_set_output (call, 0, dtype, self->shape, self->n_dims, error);
}

gboolean
gtorch_shape_softmax (GTorchOpCall *call, GError **error)
{
  return shape_softmax (call, error);
}

gboolean
gtorch_shape_log_softmax (GTorchOpCall *call, GError **error)
{
  return shape_softmax (call, error);
}

gboolean
gtorch_shape_softmax_backward (GTorchOpCall *call, GError **error)
{
  return shape_softmax (call, error);
}

gboolean
gtorch_shape_log_softmax_backward (GTorchOpCall *call, GError **error)
{
  return shape_softmax (call, error);
}

gboolean
gtorch_shape_logsumexp (GTorchOpCall *call, GError **error)
{
  return gtorch_shape_reduce (call, error);
}
