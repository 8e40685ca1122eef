/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Variance and standard deviation. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

static gboolean
cuda_run (GTorchOpCall *call, GTorchCudaLane *lane, gboolean root, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint dtype = call->compute;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) parts = NULL;
  GtMoments m = { NULL };
  GtVariance v = { .root = root, .correction = call->attrs[1].d };
  GTorchRows rows;

  if (output->numel == 0)
    return TRUE;
  if (!gtorch_cuda_pack_reduction (call, dtype, lane, &x, &y, &rows, error))
    return FALSE;
  m.rows = v.rows = rows.outer;
  m.n = v.n = rows.n;
  m.parts = v.parts = CLAMP (m.n / 8192, 1, MAX (1, 1024 / m.rows));
  parts = gtorch_cuda_scratch (lane, m.rows * m.parts * 3 * sizeof (gdouble), error);
  if (parts == NULL)
    return FALSE;
  m.x = gtorch_impl_data (x);
  m.moments = gtorch_impl_data (parts);
  v.moments = m.moments;
  v.y = gtorch_impl_data (y);
  v.width = m.parts > 4 ? 32 : 1;
  return gtorch_cuda_run_blocks (&gtorch_kernels_moments_rows, dtype, lane, m.rows * m.parts, &m,
                                 error)
         && gtorch_cuda_run (&gtorch_kernels_variance, dtype, lane, v.rows * v.width, &v, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}

gboolean
gtorch_cuda_var (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_run (call, lane, FALSE, error);
}

gboolean
gtorch_cuda_std (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_run (call, lane, TRUE, error);
}
