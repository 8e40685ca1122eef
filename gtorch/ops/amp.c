/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The computations of a gradient scaler. */

#include "config.h"

#include "gtorch-ops-private.h"

static gboolean
set_output (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];

  call->compute = self->dtype;
  return gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

/* --- unscaling --- */

#define SCALE 1
#define GRADS 2

gboolean
gtorch_writes_amp_unscale (const GTorchOpCall *call, guint i)
{
  return i >= GRADS;
}

gboolean
gtorch_shape_amp_unscale (GTorchOpCall *call, GError **error)
{
  guint i;

  if (!gtorch_call_check_number (call, call->inputs[0], GTORCH_DTYPE_FLOAT32, "found_inf", error)
      || !gtorch_call_check_number (call, call->inputs[SCALE], GTORCH_DTYPE_FLOAT32, "scale",
                                    error))
    return FALSE;
  for (i = GRADS; i < call->n_inputs; i++)
    if (!gtorch_call_check_dtype (call, call->inputs[i]->dtype, error))
      return FALSE;
  return set_output (call, error);
}

/* --- the new scale --- */

#define TRACKER 1
#define FOUND   2

gboolean
gtorch_writes_amp_update_scale (const GTorchOpCall *call, guint i)
{
  return i == TRACKER;
}

gboolean
gtorch_shape_amp_update_scale (GTorchOpCall *call, GError **error)
{
  return gtorch_call_check_number (call, call->inputs[0], GTORCH_DTYPE_FLOAT32, "scale", error)
         && gtorch_call_check_number (call, call->inputs[TRACKER], GTORCH_DTYPE_INT32,
                                      "growth_tracker", error)
         && gtorch_call_check_number (call, call->inputs[FOUND], GTORCH_DTYPE_FLOAT32, "found_inf",
                                      error)
         && set_output (call, error);
}
