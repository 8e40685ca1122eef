/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers, for many tensors in one launch: each block processes GT_STEP_BYTES of one of
 * them. */

#include "gtorch-optim-params.h"
#include "gtorch-steps.cuh"

#include "gtorch-step-formulas.cuh"

#define GT_STEP_KERNEL(dtype, name) GT_KERNEL (gt_step_##dtype##_##name, GtSteps, GT_STEP_THREADS)

GT_KERNEL (gt_step_counts_f64, GtSteps, GT_STEP_THREADS) { count_steps (p, gt_keep_numbers); }

GT_EACH_FLOAT (GT_EACH_STEP_KERNEL)

/* --- gradient scaler --- */

GT_KERNEL (gt_amp_update_f32, GtAmpUpdate, 1024)
{
  float *scale = p.scale;
  int32_t *tracker = p.tracker;

  if (blockIdx.x != 0 || threadIdx.x != 0)
    return;
  if (*p.found != 0)
    {
      *scale = (float) (*scale * p.backoff);
      *tracker = 0;
    }
  else if (*tracker + 1 == p.interval)
    {
      const float more = (float) (*scale * p.growth);

      if (isfinite (more))
        *scale = more;
      *tracker = 0;
    }
  else
    *tracker += 1;
}
