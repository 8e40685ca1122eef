/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix and vector products, of batches of matrices. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-matmul-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_cuda_product (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_auto (GTorchProduct) product = { NULL };

  gtorch_product_init (&product, call);
  if (product.beta != 0 && !gtorch_cuda_copy_here (call->outputs[0], call->inputs[0], lane, error))
    return FALSE;
  return gtorch_cuda_multiply (call, lane, product.a, product.b, product.c, NULL, product.alpha,
                               product.beta, error);
}
