/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cuda/ops/gtorch-cuda-matmul-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* Flattens the leading dimensions of a tensor on the device into one. */
static GTorchImpl *
as_rows (GTorchImpl *impl, GTorchCudaLane *lane, GError **error)
{
  guint n = impl->n_dims, i;
  gint64 shape[2] = { 1, impl->shape[n - 1] };
  gint64 strides[2] = { MAX (impl->shape[n - 1], 1), 1 };
  g_autoptr (GTorchImpl) copy = NULL;

  if (n == 2)
    return gtorch_impl_ref (impl);
  for (i = 0; i + 1 < n; i++)
    shape[0] *= impl->shape[i];
  if (impl->is_contiguous)
    return gtorch_impl_new_view (impl, impl->offset, shape, strides, 2);
  copy = gtorch_impl_new (impl->storage->device, impl->dtype, impl->shape, n, error);
  if (copy == NULL || !gtorch_cuda_copy_here (copy, impl, lane, error))
    return NULL;
  return gtorch_impl_new_view (copy, copy->offset, shape, strides, 2);
}

static GTorchImpl *
transpose (GTorchImpl *impl)
{
  return gtorch_impl_new_view (impl, impl->offset, (gint64[]){ impl->shape[1], impl->shape[0] },
                               (gint64[]){ impl->strides[1], impl->strides[0] }, 2);
}

gboolean
gtorch_cuda_linear (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0], *weight = call->inputs[1], *bias = call->inputs[2];
  g_autoptr (GTorchImpl) input = as_rows (call->inputs[0], lane, error);
  g_autoptr (GTorchImpl) transposed = transpose (weight);
  g_autoptr (GTorchImpl) result = NULL;
  gboolean fused = bias != NULL && bias->is_contiguous && bias->n_dims == 1
                   && gtorch_dtype_kind (call->compute) == GTORCH_KIND_FLOAT
                   && weight->shape[1] > 0;

  if (input == NULL)
    return FALSE;
  if (bias != NULL && !fused && !gtorch_cuda_copy_here (output, bias, lane, error))
    return FALSE;
  result =
      gtorch_impl_new_view (output, output->offset, (gint64[]){ input->shape[0], weight->shape[0] },
                            (gint64[]){ MAX (weight->shape[0], 1), 1 }, 2);
  return gtorch_cuda_multiply (call, lane, input, transposed, result, fused ? bias : NULL, 1,
                               bias != NULL && !fused ? 1 : 0, error);
}

gboolean
gtorch_cuda_linear_grad_weight (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) upper = as_rows (call->inputs[0], lane, error);
  g_autoptr (GTorchImpl) input = upper != NULL ? as_rows (call->inputs[1], lane, error) : NULL;
  g_autoptr (GTorchImpl) transposed = input != NULL ? transpose (upper) : NULL;

  return transposed != NULL
         && gtorch_cuda_multiply (call, lane, transposed, input, call->outputs[0], NULL, 1, 0,
                                  error);
}

gboolean
gtorch_cuda_linear_grads (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) upper = as_rows (call->inputs[0], lane, error);
  g_autoptr (GTorchImpl) input = upper != NULL ? as_rows (call->inputs[1], lane, error) : NULL;
  g_autoptr (GTorchImpl) transposed = input != NULL ? transpose (upper) : NULL;
  gboolean done = FALSE;

  if (transposed == NULL)
    return FALSE;
  if (gtorch_dtype_kind (call->compute) == GTORCH_KIND_FLOAT && upper->numel > 0 && input->numel > 0
      && !gtorch_cuda_multiply_and_sum (call, lane, transposed, input, call->outputs[0],
                                        call->outputs[1], &done, error))
    return FALSE;
  return done
         || (gtorch_cuda_multiply (call, lane, transposed, input, call->outputs[0], NULL, 1, 0,
                                   error)
             && gtorch_linear_sum_rows (call, lane, error));
}

/* Answers whether the gradients are computed faster at once. */
gboolean
gtorch_cuda_query_linear_grads (GTorchOpCall *call, gint64 *answers, GError **error)
{
  answers[0] = TRUE;
  return TRUE;
}
