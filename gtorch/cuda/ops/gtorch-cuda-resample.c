/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Resampling, and its gradient. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

static gboolean
run (GTorchOpCall *call, GTorchCudaLane *lane, const GtResampleKernels *kernels, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GTorchResample geometry;
  GtResample p = { .n = output->numel };
  guint i;

  if (!gtorch_resample_init (&geometry, call, error))
    return FALSE;
  for (i = 0; i < 3; i++)
    {
      p.in[i] = geometry.in[i];
      p.out[i] = geometry.out[i];
      p.scale[i] = geometry.scale[i];
    }
  p.n_in = geometry.n_in;
  p.n_out = geometry.n_out;
  p.dims = geometry.n;
  p.method = geometry.method;
  p.align_corners = geometry.align_corners;
  x = gtorch_cuda_pack (call->inputs[0], call->compute, lane, error);
  y = x != NULL ? gtorch_cuda_pack_output (output, call->compute, error) : NULL;
  if (y == NULL)
    return FALSE;
  p.x = gtorch_impl_data (x);
  p.y = gtorch_impl_data (y);
  return gtorch_cuda_run (kernels, call->compute, lane, output->numel, &p, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}

gboolean
gtorch_cuda_resample (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return run (call, lane, &gtorch_kernels_resample, error);
}

gboolean
gtorch_cuda_resample_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return run (call, lane, &gtorch_kernels_resample_grad, error);
}
