/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* softmax, log_softmax, logsumexp and gradients. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

static gboolean
cuda_softmax (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *grad, GTorchImpl *self,
              gint64 raw_dim, gboolean log_form, GError **error)
{
  const GtSoftmaxKernels *kernels =
      grad != NULL ? &gtorch_kernels_softmax_grad : &gtorch_kernels_softmax;
  guint dtype = call->compute;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) g = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GtSoftmax p = { .is_log = log_form };
  GTorchRows rows;
  guint dim;

  if (self->numel == 0)
    return TRUE;
  if (!gtorch_normalize_dim (call->op->name, raw_dim, self->n_dims, &dim, error))
    return FALSE;
  x = gtorch_cuda_pack (self, dtype, lane, error);
  y = x != NULL ? gtorch_cuda_pack_output (call->outputs[0], dtype, error) : NULL;
  if (y == NULL || (grad != NULL && (g = gtorch_cuda_pack (grad, dtype, lane, error)) == NULL))
    return FALSE;
  rows = gtorch_rows_along (self->shape, self->n_dims, dim);
  p.rows = rows.outer * rows.inner;
  p.n = rows.n;
  p.inner = rows.inner;
  p.y = gtorch_impl_data (y);
  p.x = gtorch_impl_data (x);
  p.g = g != NULL ? gtorch_impl_data (g) : NULL;
  if (p.inner > 1)
    {
      if (!gtorch_cuda_run_form (kernels, dtype, "columns", lane, p.rows, &p, error))
        return FALSE;
    }
  else if (!gtorch_cuda_run_rows (kernels, dtype, lane, p.rows, p.n,
                                  (guintptr) p.x | (guintptr) p.g | (guintptr) p.y, &p, error))
    return FALSE;
  return gtorch_cuda_unpack (y, call->outputs[0], lane, error);
}

gboolean
gtorch_cuda_softmax (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_softmax (call, lane, NULL, call->inputs[0], call->attrs[0].i, FALSE, error);
}

gboolean
gtorch_cuda_log_softmax (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_softmax (call, lane, NULL, call->inputs[0], call->attrs[0].i, TRUE, error);
}

gboolean
gtorch_cuda_softmax_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_softmax (call, lane, call->inputs[0], call->inputs[1], call->attrs[0].i, FALSE,
                       error);
}

gboolean
gtorch_cuda_log_softmax_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_softmax (call, lane, call->inputs[0], call->inputs[1], call->attrs[0].i, TRUE, error);
}

gboolean
gtorch_cuda_logsumexp (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GtSoftmax p = { .inner = 1 };
  GTorchRows rows;

  if (output->numel == 0)
    return TRUE;
  if (!gtorch_cuda_pack_reduction (call, call->compute, lane, &x, &y, &rows, error))
    return FALSE;
  p.x = gtorch_impl_data (x);
  p.y = gtorch_impl_data (y);
  p.rows = rows.outer;
  p.n = rows.n;
  return gtorch_cuda_run_blocks (&gtorch_kernels_logsumexp, call->compute, lane, p.rows, &p, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}
