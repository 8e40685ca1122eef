/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "cuda/ops/gtorch-cuda-plain-private.h"

G_BEGIN_DECLS

/* Changes tensors of any shapes and dtypes in place, with a launch for each 500 tensors of a dtype, or for
 * each 60 where the driver is older. `few` and `many` are the kernels for both numbers, `head` is what they
 * get beside the tensors. */
#define gtorch_cuda_foreach_change(few, many, impls, n, head, lane, error)                        \
  gtorch_cuda_foreach_launch (GTORCH_CUDA_SET (few, (GtSteps *) NULL),                            \
                              GTORCH_CUDA_SET (many, (GtManySteps *) NULL), impls, n, head, lane, \
                              error)

/* Implements the macro. */
gboolean gtorch_cuda_foreach_launch (const GTorchCudaKernelSet *few,
                                     const GTorchCudaKernelSet *many, GTorchImpl *const *impls,
                                     guint n, const GtSteps *head, GTorchCudaLane *lane,
                                     GError **error);

G_END_DECLS
