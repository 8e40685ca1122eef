/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of more tensors in one launch than foreach.cu takes. As in optim-many.cu, these kernels are an
 * image of their own, which drivers before CUDA 12.1 do not load. */

#include "gtorch-foreach.cuh"

#define EACH(dtype, T, C)                                                                          \
  GT_KERNEL (gt_amp_unscale_many_##dtype, GtManySteps, GT_STEP_THREADS) { amp_unscale<T, C> (p); } \
  GT_KERNEL (gt_foreach_mul_many_##dtype, GtManySteps, GT_STEP_THREADS) { foreach_mul<T, C> (p); } \
  GT_KERNEL (gt_foreach_clamp_many_##dtype, GtManySteps, GT_STEP_THREADS)                          \
  {                                                                                                \
    foreach_clamp<T, C> (p);                                                                       \
  }                                                                                                \
  GT_KERNEL (gt_norm_parts_many_##dtype, GtManySteps, GT_STEP_THREADS) { norm_parts<T, C> (p); }
GT_EACH_FLOAT (EACH)

GT_KERNEL (gt_norm_join_many_f64, GtManySteps, GT_STEP_THREADS) { norm_join (p); }
