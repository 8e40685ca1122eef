/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The least and the greatest element, in one pass. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

#define BLOCKS 1024

gboolean
gtorch_cuda_extremes (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const guint dtype = call->compute;
  g_autoptr (GTorchImpl) x = gtorch_cuda_pack (call->inputs[0], dtype, lane, error);
  g_autoptr (GTorchImpl) partial =
      x != NULL ? gtorch_cuda_scratch (lane, BLOCKS * 2 * sizeof (gint64), error) : NULL;
  GtExtremes p = { .blocks = CLAMP (call->inputs[0]->numel / 4096, 64, BLOCKS) };

  if (partial == NULL)
    return FALSE;
  p.x = gtorch_impl_data (x);
  p.partial = gtorch_impl_data (partial);
  p.least = gtorch_impl_data (call->outputs[0]);
  p.greatest = gtorch_impl_data (call->outputs[1]);
  p.n = x->numel;
  p.is_aligned = ((guintptr) p.x & 15) == 0;
  return gtorch_cuda_run_blocks (&gtorch_kernels_extremes, dtype, lane, p.blocks, &p, error)
         && gtorch_cuda_run_blocks (&gtorch_kernels_extremes_end, dtype, lane, 1, &p, error);
}
