/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers for more tensors in one launch than optim.cu takes: the parameters of these kernels
 * have more than 4096 bytes, which drivers before CUDA 12.1 refuse. They are an image of their own, so that
 * such a driver does not load them. */

#include "gtorch-optim-params.h"
#include "gtorch-steps.cuh"

#include "gtorch-step-formulas.cuh"

#define GT_STEP_KERNEL(dtype, name) \
  GT_KERNEL (gt_step_many_##dtype##_##name, GtManySteps, GT_STEP_THREADS)

GT_KERNEL (gt_step_many_counts_f64, GtManySteps, GT_STEP_THREADS)
{
  count_steps (p, gt_keep_numbers);
}

GT_EACH_FLOAT (GT_EACH_STEP_KERNEL)
