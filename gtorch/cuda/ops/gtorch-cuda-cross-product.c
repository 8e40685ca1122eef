/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Cross products. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_cuda_cross_product (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const guint dtype = output->dtype, n_dims = output->n_dims;
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) b = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GtCross p = { .n = output->numel / 3, .inner = 1 };
  guint d;

  if (output->numel == 0)
    return TRUE;
  if ((a = gtorch_cuda_pack (call->inputs[0], dtype, lane, error)) == NULL
      || (b = gtorch_cuda_pack (call->inputs[1], dtype, lane, error)) == NULL
      || (y = gtorch_cuda_pack_output (output, dtype, error)) == NULL)
    return FALSE;
  for (d = (guint) ((call->attrs[0].i + n_dims) % n_dims) + 1; d < n_dims; d++)
    p.inner *= output->shape[d];
  p.a = gtorch_impl_data (a);
  p.b = gtorch_impl_data (b);
  p.y = gtorch_impl_data (y);
  return gtorch_cuda_run (&gtorch_kernels_cross, dtype, lane, p.n, &p, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}
