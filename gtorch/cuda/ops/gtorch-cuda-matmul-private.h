/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* Computes c = alpha a b + beta c for (batches of) matrices. bias: NULL, or contiguous and added to each row;
 * beta must then be 0. If alpha is 0, a and b are not read, nor is c if beta is 0, so that not even a NaN in
 * them has an effect. */
gboolean gtorch_cuda_multiply (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *a,
                               GTorchImpl *b, GTorchImpl *c, GTorchImpl *bias, gdouble alpha,
                               gdouble beta, GError **error);
/* Computes c = a b and, into sums, the sums of the rows of a. Sets *done to FALSE, without an error, if
 * cuBLASLt cannot do both at once. */
gboolean gtorch_cuda_multiply_and_sum (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *a,
                                       GTorchImpl *b, GTorchImpl *c, GTorchImpl *sums,
                                       gboolean *done, GError **error);
/* Frees the workspaces of matrix products on this device. */
void gtorch_cuda_drop_workspaces (GTorchDevice *device);

G_END_DECLS
