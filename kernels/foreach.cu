/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of many tensors in one launch. */

#include "gtorch-foreach.cuh"

#define EACH(dtype, T, C)                                                                     \
  GT_KERNEL (gt_amp_unscale_##dtype, GtSteps, GT_STEP_THREADS) { amp_unscale<T, C> (p); }     \
  GT_KERNEL (gt_foreach_mul_##dtype, GtSteps, GT_STEP_THREADS) { foreach_mul<T, C> (p); }     \
  GT_KERNEL (gt_foreach_clamp_##dtype, GtSteps, GT_STEP_THREADS) { foreach_clamp<T, C> (p); } \
  GT_KERNEL (gt_norm_parts_##dtype, GtSteps, GT_STEP_THREADS) { norm_parts<T, C> (p); }
GT_EACH_FLOAT (EACH)

GT_KERNEL (gt_norm_join_f64, GtSteps, GT_STEP_THREADS) { norm_join (p); }
