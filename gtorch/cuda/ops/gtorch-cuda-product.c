/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix and vector products, of batches of matrices. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-matmul-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

#define LONG_VECTOR (1 << 16) /* elements; shorter ones take as long as the call */
#define BLOCKS      1024

/* Returns whether the product is that of two long vectors, one after the other in memory. */
static gboolean
is_dot (const GTorchProduct *product, guint dtype)
{
  return product->c->numel == 1 && product->alpha == 1 && product->beta == 0
         && product->a->numel >= LONG_VECTOR && product->a->is_contiguous
         && product->b->is_contiguous && gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT
         && product->a->dtype == dtype && product->b->dtype == dtype && product->c->dtype == dtype;
}

static gboolean
dot (const GTorchProduct *product, guint dtype, GTorchCudaLane *lane, GError **error)
{
  const gsize size = gtorch_dtype_size (gtorch_dtype_infos[dtype].compute);
  g_autoptr (GTorchImpl) partial = gtorch_cuda_scratch (lane, BLOCKS * size, error);
  GtDot p = {
    .a = gtorch_impl_data (product->a),
    .b = gtorch_impl_data (product->b),
    .y = gtorch_impl_data (product->c),
    .n = product->a->numel,
    .blocks = BLOCKS,
  };

  if (partial == NULL)
    return FALSE;
  p.partial = gtorch_impl_data (partial);
  p.is_aligned = (((guintptr) p.a | (guintptr) p.b) & 15) == 0;
  return gtorch_cuda_run_blocks (&gtorch_kernels_dot, dtype, lane, BLOCKS, &p, error)
         && gtorch_cuda_run_blocks (&gtorch_kernels_dot_end, dtype, lane, 1, &p, error);
}

gboolean
gtorch_cuda_product (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_auto (GTorchProduct) product = { NULL };

  gtorch_product_init (&product, call);
  if (is_dot (&product, call->compute))
    return dot (&product, call->compute, lane, error);
  if (product.beta != 0 && !gtorch_cuda_copy_here (call->outputs[0], call->inputs[0], lane, error))
    return FALSE;
  return gtorch_cuda_multiply (call, lane, product.a, product.b, product.c, NULL, product.alpha,
                               product.beta, error);
}
