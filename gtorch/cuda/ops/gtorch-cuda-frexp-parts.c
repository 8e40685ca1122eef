/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Mantissas and exponents, in one pass. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_cuda_frexp_parts (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const guint dtype = call->compute;
  g_autoptr (GTorchImpl) x = NULL;
  GtFrexp p = { .n = call->inputs[0]->numel };

  if (p.n == 0)
    return TRUE;
  x = gtorch_cuda_pack (call->inputs[0], dtype, lane, error);
  if (x == NULL)
    return FALSE;
  p.x = gtorch_impl_data (x);
  p.mantissas = gtorch_impl_data (call->outputs[0]);
  p.exponents = gtorch_impl_data (call->outputs[1]);
  return gtorch_cuda_run (&gtorch_kernels_frexp, dtype, lane, (p.n + 3) / 4, &p, error);
}
