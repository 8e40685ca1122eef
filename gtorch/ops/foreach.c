/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of many tensors at once, whose shapes and dtypes may differ. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"

static gboolean
check_dtypes (GTorchOpCall *call, guint first, GError **error)
{
  for (guint i = first; i < call->n_inputs; i++)
    if (!gtorch_call_check_dtype (call, call->inputs[i]->dtype, error))
      return FALSE;
  return TRUE;
}

static gboolean
set_output (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];

  call->compute = self->dtype;
  return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

/* --- norms --- */

gboolean
gtorch_shape_foreach_norm (GTorchOpCall *call, GError **error)
{
  const gint64 n = call->n_inputs;

  if (n == 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("the list of tensors is empty"));
      return FALSE;
    }
  call->compute = GTORCH_DTYPE_FLOAT64;
  return check_dtypes (call, 0, error)
         && gtorch_call_set_output (call, 0, call->compute, &n, 1, error);
}

/* --- changes in place --- */

#define FACTOR 1

gboolean
gtorch_writes_foreach_mul (const GTorchOpCall *call, guint i)
{
  return i > FACTOR;
}

gboolean
gtorch_shape_foreach_mul (GTorchOpCall *call, GError **error)
{
  const guint dtype = call->inputs[FACTOR]->dtype == GTORCH_DTYPE_FLOAT64 ? GTORCH_DTYPE_FLOAT64
                                                                          : GTORCH_DTYPE_FLOAT32;

  return gtorch_call_check_number (call, call->inputs[FACTOR], dtype, "factor", error)
         && gtorch_call_check_dtype (call, call->inputs[0]->dtype, error)
         && check_dtypes (call, FACTOR + 1, error) && set_output (call, error);
}

gboolean
gtorch_writes_foreach_clamp (const GTorchOpCall *call, guint i)
{
  return i > 0;
}

gboolean
gtorch_shape_foreach_clamp (GTorchOpCall *call, GError **error)
{
  return check_dtypes (call, 0, error) && set_output (call, error);
}
