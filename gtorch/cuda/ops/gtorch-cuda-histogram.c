/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The counts of histograms. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

static gboolean
run (GTorchOpCall *call, GTorchCudaLane *lane, const GtHistogramKernels *kernels, GtHistogram *p,
     GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) x = gtorch_cuda_pack (call->inputs[0], call->compute, lane, error);

  if (x == NULL || !gtorch_cuda_clear (output, lane, error))
    return FALSE;
  p->x = gtorch_impl_data (x);
  p->counts = gtorch_impl_data (output);
  p->n = x->numel;
  p->bins = output->numel;
  return gtorch_cuda_run_blocks (kernels, call->compute, lane, MIN ((p->n + 1023) / 1024, 1024), p,
                                 error);
}

gboolean
gtorch_cuda_uniform_counts (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GtHistogram p = { .min = call->attrs[1].d, .max = call->attrs[2].d };

  return run (call, lane, &gtorch_kernels_uniform_counts, &p, error);
}

gboolean
gtorch_cuda_number_counts (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GtHistogram p = { .min = 0 };

  return run (call, lane, &gtorch_kernels_number_counts, &p, error);
}
