/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The computations of a gradient scaler. */

#include "config.h"

#include <math.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-optim.h"
#include "gtorch-ops-private.h"

/* --- unscaling --- */

#define SCALE 1
#define GRADS 2

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
