/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The operations of a gradient scaler. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-foreach-private.h"
#include "gtorch-ops-private.h"

/* --- unscaling --- */

#define SCALE 1
#define GRADS 2

gboolean
gtorch_cuda_amp_unscale (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) scale =
      gtorch_cuda_pack (call->inputs[SCALE], GTORCH_DTYPE_FLOAT32, lane, error);
  GtSteps head = { .found = gtorch_impl_data (call->outputs[0]) };

  if (scale == NULL)
    return FALSE;
  head.cell = gtorch_impl_data (scale);
  return gtorch_cuda_foreach_change (&gtorch_kernels_amp_unscale, &gtorch_kernels_amp_unscale_many,
                                     call->inputs + GRADS, call->n_inputs - GRADS, &head, lane,
                                     error);
}

/* --- the new scale --- */

#define TRACKER 1
#define FOUND   2

gboolean
gtorch_cuda_amp_update_scale (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const GTorchAttr *attrs = call->attrs;
  g_autoptr (GTorchImpl) found =
      gtorch_cuda_pack (call->inputs[FOUND], GTORCH_DTYPE_FLOAT32, lane, error);
  GtAmpUpdate p = { .scale = gtorch_impl_data (call->outputs[0]),
                    .tracker = gtorch_impl_data (call->inputs[TRACKER]),
                    .growth = attrs[0].d,
                    .backoff = attrs[1].d,
                    .interval = attrs[2].i };

  if (found == NULL)
    return FALSE;
  p.found = gtorch_impl_data (found);
  return gtorch_cuda_run (&gtorch_kernels_amp_update, GTORCH_DTYPE_FLOAT32, lane, 1, &p, error);
}
