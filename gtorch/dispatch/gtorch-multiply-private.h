/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* c = alpha a b + beta c of (batches of) matrices, on the CPU where lane is NULL. With an alpha of 0 a and b
 * do not count, nor does c with a beta of 0: not even NaN there. */
gboolean gtorch_multiply (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *a, GTorchImpl *b,
                          GTorchImpl *c, gdouble alpha, gdouble beta, GError **error);

/* cuda/gtorch-cuda-matmul.c; bias: NULL, or added to each row (contiguous, then beta is 0). */
gboolean gtorch_cuda_multiply (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *a,
                               GTorchImpl *b, GTorchImpl *c, GTorchImpl *bias, gdouble alpha,
                               gdouble beta, GError **error);
/* c = a b and, in sums, those of the rows of a. *done is FALSE, without an error, if cublasLt cannot do both
 * at once. */
gboolean gtorch_cuda_multiply_and_sum (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *a,
                                       GTorchImpl *b, GTorchImpl *c, GTorchImpl *sums,
                                       gboolean *done, GError **error);
/* Gives back what products of this device work in. */
void gtorch_cuda_drop_workspaces (GTorchDevice *device);
/* cuda/gtorch-cuda-copy.c: on one device, any layouts, dtypes and broadcastable shapes. */
gboolean gtorch_cuda_copy_here (GTorchImpl *dst, GTorchImpl *src, GTorchCudaLane *lane,
                                GError **error);

G_END_DECLS
