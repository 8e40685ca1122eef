/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers and the unscaling of gradients, for many tensors in one launch: each block
 * processes GT_STEP_BYTES of one of them. */

#include "gtorch-optim-params.h"
#include "gtorch-steps.cuh"

#include "gtorch-step-formulas.cuh"

#define GT_STEP_KERNEL(dtype, name) GT_KERNEL (gt_step_##dtype##_##name, GtSteps, GT_STEP_THREADS)

GT_KERNEL (gt_step_counts_f64, GtSteps, GT_STEP_THREADS) { count_steps (p, gt_keep_numbers); }

GT_EACH_FLOAT (GT_EACH_STEP_KERNEL)

/* --- gradient scaler --- */

template <typename T, typename C> struct gt_unscale
{
  static constexpr int N = 1, N_WRITTEN = 1;
  T *at[N];
  C factor;
  bool is_finite;

  __device__ __forceinline__ void
  element (T *const *x)
  {
    const C y = gt_convert<C>::from (*x[0]);

    is_finite = is_finite && isfinite (y);
    *x[0] = gt_convert<T>::from (y * factor);
  }
};

/* Multiplies gradients by the inverse of the scale p.cell, which is rounded to float32 once. */
template <typename T, typename C>
GT_DEVICE void
amp_unscale (const GtSteps &p)
{
  const float factor = (float) (1 / (double) *(const float *) p.cell);

  for (uint32_t block = blockIdx.x; block < p.blocks; block += gridDim.x)
    {
      const GtStep &s = step_of (p, block);
      gt_unscale<T, C> op = { { (T *) s.data[0] }, (C) factor, true };

      each_element<T> (op, s, block);
      if (!op.is_finite)
        *p.found = 1;
    }
}

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

#define UNSCALE(dtype, T, C) \
  GT_KERNEL (gt_amp_unscale_##dtype, GtSteps, GT_STEP_THREADS) { amp_unscale<T, C> (p); }
GT_EACH_FLOAT (UNSCALE)
