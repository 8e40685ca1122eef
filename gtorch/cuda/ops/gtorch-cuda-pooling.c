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

static gint64
window_of (const GtPool *p)
{
  gint64 window = 1;
  guint i;

  for (i = 0; i < 3; i++)
    window *= p->adaptive ? p->in[i] / MAX (p->out[i], 1) : p->kernel[i];
  return window;
}

/* The kernels for one kind of pooling; there are none for large windows of gradients, and those for channels
 * that are last in memory are of floating-point numbers. */
typedef struct
{
  const GtPoolKernels *plain, *large, *last;
} Kernels;

/* Launches the kernel for large windows, whose elements several threads share, or the plain one. */
static gboolean
launch (GtPool *p, const Kernels *kernels, guint dtype, GTorchCudaLane *lane, GError **error)
{
  const gint64 window = window_of (p);

  if (p->channels > 0)
    return gtorch_cuda_run (kernels->last, dtype, lane,
                            p->n / (16 / (gint64) gtorch_dtype_size (dtype)) + 1, p, error);
  if (kernels->large == NULL || window < LARGE_WINDOW || (!p->adaptive && is_dilated (p)))
    return gtorch_cuda_run (kernels->plain, dtype, lane, p->n, p, error);
  if (window >= BLOCK_WINDOW)
    return gtorch_cuda_run_blocks (kernels->large, dtype, lane, p->n, p, error);
  p->lanes = 32;
  return gtorch_cuda_run (kernels->large, dtype, lane, p->n * 32, p, error);
}

/* Tells whether the kernels for channels that are last in memory take the call: a window is one thread's. */
static gboolean
has_channels_last (const GTorchOpCall *call, const GtPool *p)
{
  return gtorch_impl_is_channels_last (call->outputs[0]) && window_of (p) < BLOCK_WINDOW
         && gtorch_dtype_kind (call->compute) == GTORCH_KIND_FLOAT;
}

static gboolean
run (GTorchOpCall *call, GTorchCudaLane *lane, const Kernels *kernels, GError **error)
{
  GTorchImpl *places = call->n_outputs > 1  ? call->outputs[1]
                       : call->n_inputs > 1 ? call->inputs[1]
                                            : NULL;
  g_autoptr (GTorchImpl) input = NULL, output = NULL, turned = NULL;
  g_autoptr (GTorchImpl) x = NULL, y = NULL, indices = NULL;
  GTorchWindows windows;
  GtPool p = { .n = call->outputs[0]->numel };
  gboolean is_last;

  if (!gtorch_windows_init (&windows, call, error))
    return FALSE;
  set_windows (&p, &windows);
  is_last = has_channels_last (call, &p);
  input = gtorch_cuda_turn (call->inputs[0], is_last);
  output = gtorch_cuda_turn (call->outputs[0], is_last);
  if (is_last)
    p.channels = call->outputs[0]->shape[1];
  x = gtorch_cuda_pack (input, call->compute, lane, error);
  y = x != NULL ? gtorch_cuda_pack_output (output, call->compute, error) : NULL;
  if (y == NULL)
    return FALSE;
  p.x = gtorch_impl_data (x);
  p.y = gtorch_impl_data (y);
  p.is_narrow = is_narrow (&p, x->numel);
  if (places != NULL)
    {
      turned = gtorch_cuda_turn (places, is_last);
      indices = call->n_outputs > 1 ? gtorch_cuda_pack_output (turned, GTORCH_DTYPE_INT64, error)
                                    : gtorch_cuda_pack (turned, GTORCH_DTYPE_INT64, lane, error);
      if (indices == NULL)
        return FALSE;
      p.indices = gtorch_impl_data (indices);
    }
  return launch (&p, kernels, call->compute, lane, error)
         && gtorch_cuda_unpack (y, output, lane, error)
         && (call->n_outputs < 2 || gtorch_cuda_unpack (indices, turned, lane, error));
}

gboolean
gtorch_cuda_max_pool (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  static const Kernels kernels = { &gtorch_kernels_max_pool, &gtorch_kernels_max_pool_large,
                                   &gtorch_kernels_max_pool_last };

  return run (call, lane, &kernels, error);
}

gboolean
gtorch_cuda_mean_pool (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  static const Kernels kernels = { &gtorch_kernels_mean_pool, &gtorch_kernels_mean_pool_large,
                                   &gtorch_kernels_mean_pool_last };

  return run (call, lane, &kernels, error);
}

gboolean
gtorch_cuda_max_pool_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  static const Kernels kernels = { &gtorch_kernels_max_pool_grad, NULL,
                                   &gtorch_kernels_max_pool_grad_last };

  return run (call, lane, &kernels, error);
}

gboolean
gtorch_cuda_mean_pool_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  static const Kernels kernels = { &gtorch_kernels_mean_pool_grad, NULL,
                                   &gtorch_kernels_mean_pool_grad_last };

  return run (call, lane, &kernels, error);
}
