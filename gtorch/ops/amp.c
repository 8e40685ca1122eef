/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The computations of a gradient scaler. */

#include "config.h"

#include <math.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-optim.h"
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

/* Returns the inverse of the scale, rounded once. */
static gfloat
inverse (const GTorchImpl *scale)
{
  return 1 / (gdouble) * (const gfloat *) gtorch_impl_data (scale);
}

gboolean
gtorch_cpu_amp_unscale (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchUnscaleStep step = { .factor = inverse (call->inputs[SCALE]) };
  guint i;

  for (i = GRADS; i < call->n_inputs; i++)
    {
      GTorchImpl *grad = call->inputs[i];
      GTorchIter iter;

      if (grad->numel == 0)
        continue;
      step.dtype = grad->dtype;
      gtorch_iter_init (&iter, &grad, 1, grad->shape, grad->n_dims);
      gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, GTORCH_ISA_CALL (gtorch_unscale_loop), &step);
    }
  if (step.found)
    *(gfloat *) gtorch_impl_data (call->outputs[0]) = 1;
  return TRUE;
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

gboolean
gtorch_cpu_amp_update_scale (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  gfloat *scale = gtorch_impl_data (call->outputs[0]);
  gint32 *tracker = gtorch_impl_data (call->inputs[TRACKER]);
  const gfloat *found = gtorch_impl_data (call->inputs[FOUND]);
  const GTorchAttr *attrs = call->attrs;

  if (*found != 0)
    {
      *scale = (gfloat) (*scale * attrs[1].d);
      *tracker = 0;
    }
  else if (*tracker + 1 == attrs[2].i)
    {
      gfloat more = (gfloat) (*scale * attrs[0].d);

      if (isfinite (more)) /* otherwise the scale cannot grow */
        *scale = more;
      *tracker = 0;
    }
  else
    *tracker += 1;
  return TRUE;
}
