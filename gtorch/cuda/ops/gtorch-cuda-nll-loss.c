/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Losses of class indices. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

typedef struct
{
  GTorchImpl *target, *weight;
  GtNll p;
} CudaNll;

static void
cuda_nll_clear (CudaNll *nll)
{
  g_clear_pointer (&nll->target, gtorch_impl_unref);
  g_clear_pointer (&nll->weight, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CudaNll, cuda_nll_clear)

/* The target is input `first`, followed by the weight; ignore_index is attribute `ignored`, followed by the
 * smoothing. */
static gboolean
cuda_nll_init (CudaNll *nll, GTorchOpCall *call, guint first, guint ignored, GTorchCudaLane *lane,
               const gint64 *shape, guint n_dims, GError **error)
{
  GtNll *p = &nll->p;
  GTorchRows rows;

  nll->target = gtorch_cuda_pack (call->inputs[first], GTORCH_DTYPE_INT64, lane, error);
  if (nll->target == NULL)
    return FALSE;
  if (call->inputs[first + 1] != NULL)
    {
      nll->weight = gtorch_cuda_pack (call->inputs[first + 1], GTORCH_DTYPE_FLOAT64, lane, error);
      if (nll->weight == NULL)
        return FALSE;
      p->weight = gtorch_impl_data (nll->weight);
    }
  p->report = gtorch_cuda_report (lane, error);
  p->target = gtorch_impl_data (nll->target);
  p->n = nll->target->numel;
  rows = gtorch_rows_along (shape, n_dims, n_dims > 1 ? 1 : 0);
  p->classes = rows.n;
  p->inner = rows.inner;
  p->ignored = call->attrs[ignored].i;
  p->op = gtorch_cuda_report_op (call, -1);
  p->smoothing = call->attrs[ignored + 1].d;
  return p->report != NULL;
}

gboolean
gtorch_cuda_nll_loss_smooth (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_auto (CudaNll) nll = { NULL };
  g_autoptr (GTorchImpl) input = NULL;
  g_autoptr (GTorchImpl) output = NULL;

  if (!cuda_nll_init (&nll, call, 1, 1, lane, self->shape, self->n_dims, error))
    return FALSE;
  input = gtorch_cuda_pack (self, call->compute, lane, error);
  output = input != NULL ? gtorch_cuda_pack_output (call->outputs[0], call->compute, error) : NULL;
  if (output == NULL)
    return FALSE;
  nll.p.x = gtorch_impl_data (input);
  nll.p.loss = gtorch_impl_data (output);
  nll.p.is_mean = call->attrs[0].i == GTORCH_REDUCTION_MEAN;
  if (call->attrs[0].i == GTORCH_REDUCTION_NONE)
    return gtorch_cuda_run (&gtorch_kernels_nll_each, call->compute, lane, nll.p.n, &nll.p, error)
           && gtorch_cuda_unpack (output, call->outputs[0], lane, error);
  return gtorch_cuda_run_blocks (&gtorch_kernels_nll_all, call->compute, lane, 1, &nll.p, error)
         && gtorch_cuda_unpack (output, call->outputs[0], lane, error);
}

gboolean
gtorch_cuda_nll_loss_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *result = call->outputs[0];
  g_auto (CudaNll) nll = { NULL };
  g_autoptr (GTorchImpl) upper = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  g_autoptr (GTorchImpl) total = NULL;
  GtNllGrad p;

  if (!cuda_nll_init (&nll, call, 1, 2, lane, result->shape, result->n_dims, error))
    return FALSE;
  upper = gtorch_cuda_pack (call->inputs[0], call->compute, lane, error);
  output = upper != NULL ? gtorch_cuda_pack_output (result, call->compute, error) : NULL;
  if (output == NULL)
    return FALSE;
  p = (GtNllGrad){
    .g = gtorch_impl_data (upper),
    .target = nll.p.target,
    .weight = nll.p.weight,
    .grad = gtorch_impl_data (output),
    .n = nll.p.n,
    .classes = nll.p.classes,
    .inner = nll.p.inner,
    .ignored = nll.p.ignored,
    .is_single = call->attrs[1].i != GTORCH_REDUCTION_NONE,
    .smoothing = nll.p.smoothing,
  };
  if (call->attrs[1].i == GTORCH_REDUCTION_MEAN)
    {
      total = gtorch_cuda_scratch (lane, sizeof (gdouble), error);
      if (total == NULL)
        return FALSE;
      nll.p.loss = gtorch_impl_data (total);
      if (!gtorch_cuda_run_blocks (&gtorch_kernels_nll_total, GTORCH_DTYPE_FLOAT64, lane, 1, &nll.p,
                                   error))
        return FALSE;
      p.total = gtorch_impl_data (total);
    }
  return gtorch_cuda_run (&gtorch_kernels_nll_grad, call->compute, lane, output->numel, &p, error)
         && gtorch_cuda_unpack (output, result, lane, error);
}

/* --- cross entropy --- */

gboolean
gtorch_cuda_cross_entropy (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *self = call->inputs[0], *result = call->outputs[0];
  const gboolean is_single = call->attrs[0].i != GTORCH_REDUCTION_NONE;
  const guint dtype = call->compute;
  g_auto (CudaNll) nll = { NULL };
  g_autoptr (GTorchImpl) input = NULL;
  g_autoptr (GTorchImpl) losses = NULL;
  GtCrossEntropy p;
  GtCrossEntropyTotal all;

  if (!cuda_nll_init (&nll, call, 1, 1, lane, self->shape, self->n_dims, error)
      || (input = gtorch_cuda_pack (self, dtype, lane, error)) == NULL
      || (is_single
          && (losses = gtorch_cuda_scratch (lane, nll.p.n * (gint64) sizeof (gdouble), error))
                 == NULL))
    return FALSE;
  p = (GtCrossEntropy){
    .x = gtorch_impl_data (input),
    .target = nll.p.target,
    .weight = nll.p.weight,
    .loss = gtorch_impl_data (is_single ? losses : result),
    .logsumexp = gtorch_impl_data (call->outputs[1]),
    .rows = nll.p.n,
    .classes = nll.p.classes,
    .inner = nll.p.inner,
    .ignored = nll.p.ignored,
    .dtype = is_single ? GTORCH_DTYPE_FLOAT64 : result->dtype,
    .smoothing = nll.p.smoothing,
    .op = nll.p.op,
    .report = nll.p.report,
  };
  all = (GtCrossEntropyTotal){
    .loss = p.loss,
    .target = p.target,
    .weight = p.weight,
    .result = gtorch_impl_data (result),
    .totals = gtorch_impl_data (call->outputs[2]),
    .rows = p.rows,
    .classes = p.classes,
    .ignored = p.ignored,
    .is_single = is_single,
    .is_mean = call->attrs[0].i == GTORCH_REDUCTION_MEAN,
    .dtype = result->dtype,
  };
  return (p.inner > 1 ? gtorch_cuda_run_form (&gtorch_kernels_cross_entropy, dtype, "columns", lane,
                                              p.rows, &p, error)
                      : gtorch_cuda_run_passes (&gtorch_kernels_cross_entropy, dtype, lane, p.rows,
                                                p.classes, &p, error))
         && gtorch_cuda_run_blocks (&gtorch_kernels_cross_entropy_total, GTORCH_DTYPE_FLOAT64, lane,
                                    1, &all, error);
}

gboolean
gtorch_cuda_cross_entropy_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *self = call->inputs[1], *result = call->outputs[0];
  const guint dtype = call->compute;
  g_auto (CudaNll) nll = { NULL };
  g_autoptr (GTorchImpl) upper = NULL;
  g_autoptr (GTorchImpl) input = NULL;
  g_autoptr (GTorchImpl) logsumexp = NULL;
  g_autoptr (GTorchImpl) totals = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  GtCrossEntropyGrad p;

  if (!cuda_nll_init (&nll, call, 2, 1, lane, self->shape, self->n_dims, error)
      || (upper = gtorch_cuda_pack (call->inputs[0], call->inputs[0]->dtype, lane, error)) == NULL
      || (input = gtorch_cuda_pack (self, dtype, lane, error)) == NULL
      || (logsumexp = gtorch_cuda_pack (call->inputs[4], GTORCH_DTYPE_FLOAT64, lane, error)) == NULL
      || (totals = gtorch_cuda_pack (call->inputs[5], GTORCH_DTYPE_FLOAT64, lane, error)) == NULL
      || (output = gtorch_cuda_pack_output (result, dtype, error)) == NULL)
    return FALSE;
  if (result->numel == 0)
    return TRUE;
  p = (GtCrossEntropyGrad){
    .upper = gtorch_impl_data (upper),
    .x = gtorch_impl_data (input),
    .target = nll.p.target,
    .weight = nll.p.weight,
    .logsumexp = gtorch_impl_data (logsumexp),
    .totals = gtorch_impl_data (totals),
    .grad = gtorch_impl_data (output),
    .rows = nll.p.n,
    .classes = nll.p.classes,
    .inner = nll.p.inner,
    .ignored = nll.p.ignored,
    .is_single = call->attrs[0].i != GTORCH_REDUCTION_NONE,
    .is_mean = call->attrs[0].i == GTORCH_REDUCTION_MEAN,
    .dtype = upper->dtype,
    .smoothing = nll.p.smoothing,
  };
  return (p.inner > 1 ? gtorch_cuda_run_form (&gtorch_kernels_cross_entropy_grad, dtype, "columns",
                                              lane, p.rows, &p, error)
                      : gtorch_cuda_run_passes (&gtorch_kernels_cross_entropy_grad, dtype, lane,
                                                p.rows, p.classes, &p, error))
         && gtorch_cuda_unpack (output, result, lane, error);
}
