/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pooling, and its gradients, over images. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

#define LARGE_WINDOW 32   /* elements that are worth a warp */
#define BLOCK_WINDOW 2048 /* elements that are worth a block */

static void
set_windows (GtPool *p, const GTorchWindows *windows)
{
  guint i;

  for (i = 0; i < 3; i++)
    {
      p->in[i] = windows->in[i];
      p->out[i] = windows->out[i];
      p->kernel[i] = windows->kernel[i];
      p->stride[i] = windows->stride[i];
      p->padding[i] = windows->padding[i];
      p->dilation[i] = windows->dilation[i];
    }
  p->n_in = windows->n_in;
  p->n_out = windows->n_out;
  p->dims = windows->n;
  p->adaptive = windows->adaptive;
  p->include_pad = windows->include_pad;
  p->divisor = windows->divisor;
}

/* Returns whether the kernels can count in 32 bits: elements, and how far windows reach. */
static gboolean
is_narrow (const GtPool *p, gint64 n_x)
{
  guint i;

  for (i = 0; i < 3; i++)
    if (p->in[i] + 2 * p->padding[i] + p->stride[i] + p->kernel[i] * p->dilation[i] >= G_MAXINT32)
      return FALSE;
  return p->n < G_MAXINT32 && n_x < G_MAXINT32;
}

static gboolean
is_dilated (const GtPool *p)
{
  return p->dilation[0] > 1 || p->dilation[1] > 1 || p->dilation[2] > 1;
}

/* Launches the kernel for large windows, whose elements several threads share, or the plain one. */
static gboolean
launch (GtPool *p, const GtPoolKernels *kernels, const GtPoolKernels *large, guint dtype,
        GTorchCudaLane *lane, GError **error)
{
  gint64 window = 1;
  guint i;

  for (i = 0; i < 3; i++)
    window *= p->adaptive ? p->in[i] / MAX (p->out[i], 1) : p->kernel[i];
  if (large == NULL || window < LARGE_WINDOW || (!p->adaptive && is_dilated (p)))
    return gtorch_cuda_run (kernels, dtype, lane, p->n, p, error);
  if (window >= BLOCK_WINDOW)
    return gtorch_cuda_run_blocks (large, dtype, lane, p->n, p, error);
  p->lanes = 32;
  return gtorch_cuda_run (large, dtype, lane, p->n * 32, p, error);
}

static gboolean
run (GTorchOpCall *call, GTorchCudaLane *lane, const GtPoolKernels *kernels,
     const GtPoolKernels *large, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) indices = NULL;
  GTorchWindows windows;
  GtPool p = { .n = output->numel };

  if (!gtorch_windows_init (&windows, call, error))
    return FALSE;
  set_windows (&p, &windows);
  x = gtorch_cuda_pack (call->inputs[0], call->compute, lane, error);
  y = x != NULL ? gtorch_cuda_pack_output (output, call->compute, error) : NULL;
  if (y == NULL)
    return FALSE;
  p.x = gtorch_impl_data (x);
  p.y = gtorch_impl_data (y);
  p.is_narrow = is_narrow (&p, x->numel);
  if (call->n_inputs > 1)
    {
      indices = gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error);
      if (indices == NULL)
        return FALSE;
      p.indices = gtorch_impl_data (indices);
    }
  if (call->n_outputs > 1)
    p.indices = gtorch_impl_data (call->outputs[1]);
  return launch (&p, kernels, large, call->compute, lane, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}

gboolean
gtorch_cuda_max_pool (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return run (call, lane, &gtorch_kernels_max_pool, &gtorch_kernels_max_pool_large, error);
}

gboolean
gtorch_cuda_mean_pool (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return run (call, lane, &gtorch_kernels_mean_pool, &gtorch_kernels_mean_pool_large, error);
}

gboolean
gtorch_cuda_max_pool_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return run (call, lane, &gtorch_kernels_max_pool_grad, NULL, error);
}

gboolean
gtorch_cuda_mean_pool_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return run (call, lane, &gtorch_kernels_mean_pool_grad, NULL, error);
}
