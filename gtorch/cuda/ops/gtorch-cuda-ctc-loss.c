/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Connectionist temporal classification. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

typedef struct
{
  GTorchImpl *x, *targets, *lengths;
  GtCtc p;
} CudaCtc;

static void
cuda_ctc_clear (CudaCtc *ctc)
{
  g_clear_pointer (&ctc->x, gtorch_impl_unref);
  g_clear_pointer (&ctc->targets, gtorch_impl_unref);
  g_clear_pointer (&ctc->lengths, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CudaCtc, cuda_ctc_clear)

/* The operands are x, targets and lengths, from number `first` on. */
static gboolean
cuda_ctc_init (CudaCtc *ctc, GTorchOpCall *call, GTorchCudaLane *lane, guint first, GError **error)
{
  GTorchCtc sizes;

  gtorch_ctc_init (&sizes, call);
  ctc->x = gtorch_cuda_pack (call->inputs[first], call->compute, lane, error);
  if (ctc->x == NULL)
    return FALSE;
  ctc->targets = gtorch_cuda_pack (call->inputs[first + 1], GTORCH_DTYPE_INT64, lane, error);
  if (ctc->targets == NULL)
    return FALSE;
  ctc->lengths = gtorch_cuda_pack (call->inputs[first + 2], GTORCH_DTYPE_INT64, lane, error);
  if (ctc->lengths == NULL)
    return FALSE;
  ctc->p = (GtCtc){
    .x = gtorch_impl_data (ctc->x),
    .targets = gtorch_impl_data (ctc->targets),
    .lengths = gtorch_impl_data (ctc->lengths),
    .n = sizes.n,
    .steps = sizes.steps,
    .classes = sizes.classes,
    .states = sizes.states,
    .blank = sizes.blank,
    .op = gtorch_cuda_report_op (call, -1),
    .report = gtorch_cuda_report (lane, error),
  };
  return ctc->p.report != NULL;
}

gboolean
gtorch_cuda_native_ctc_loss (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_auto (CudaCtc) ctc = { NULL };
  g_autoptr (GTorchImpl) loss = NULL;
  g_autoptr (GTorchImpl) alpha = NULL;

  if (!cuda_ctc_init (&ctc, call, lane, 0, error))
    return FALSE;
  loss = gtorch_cuda_pack_output (call->outputs[0], call->compute, error);
  alpha = loss != NULL ? gtorch_cuda_pack_output (call->outputs[1], call->compute, error) : NULL;
  if (alpha == NULL)
    return FALSE;
  ctc.p.loss = gtorch_impl_data (loss);
  ctc.p.alpha = gtorch_impl_data (alpha);
  return gtorch_cuda_run_blocks (&gtorch_kernels_ctc_alpha, call->compute, lane, ctc.p.n, &ctc.p,
                                 error)
         && gtorch_cuda_unpack (loss, call->outputs[0], lane, error)
         && gtorch_cuda_unpack (alpha, call->outputs[1], lane, error);
}

gboolean
gtorch_cuda_ctc_loss_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gint64 size = gtorch_dtype_size (call->compute);
  g_auto (CudaCtc) ctc = { NULL };
  g_autoptr (GTorchImpl) upper = NULL;
  g_autoptr (GTorchImpl) loss = NULL;
  g_autoptr (GTorchImpl) alpha = NULL;
  g_autoptr (GTorchImpl) grad = NULL;
  g_autoptr (GTorchImpl) next = NULL;
  g_autoptr (GTorchImpl) sums = NULL;
  GtCtc *p = &ctc.p;

  if (!cuda_ctc_init (&ctc, call, lane, 1, error))
    return FALSE;
  upper = gtorch_cuda_pack (call->inputs[0], call->compute, lane, error);
  loss = upper != NULL ? gtorch_cuda_pack (call->inputs[4], call->compute, lane, error) : NULL;
  alpha = loss != NULL ? gtorch_cuda_pack (call->inputs[5], call->compute, lane, error) : NULL;
  grad = alpha != NULL ? gtorch_cuda_pack_output (call->outputs[0], call->compute, error) : NULL;
  /* beta of two steps, and shares */
  sums = grad != NULL ? gtorch_cuda_scratch (lane, 3 * p->n * p->states * size, error) : NULL;
  next = sums != NULL ? gtorch_cuda_scratch (lane, p->n * MAX (p->states / 2, 1) * 8, error) : NULL;
  if (next == NULL)
    return FALSE;
  p->upper = gtorch_impl_data (upper);
  p->loss = gtorch_impl_data (loss);
  p->alpha = gtorch_impl_data (alpha);
  p->grad = gtorch_impl_data (grad);
  p->beta = gtorch_impl_data (sums);
  p->shares = (char *) p->beta + 2 * p->n * p->states * size;
  p->next = gtorch_impl_data (next);
  return gtorch_cuda_run (&gtorch_kernels_ctc_fill, call->compute, lane, grad->numel, p, error)
         && gtorch_cuda_run_blocks (&gtorch_kernels_ctc_grad, call->compute, lane, p->n, p, error)
         && gtorch_cuda_unpack (grad, call->outputs[0], lane, error);
}
