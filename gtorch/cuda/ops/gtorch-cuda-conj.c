/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Conjugates. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_cuda_conj (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GtConj p = { NULL };

  if (output->numel == 0)
    return TRUE;
  x = gtorch_cuda_pack (call->inputs[0], output->dtype, lane, error);
  y = x != NULL ? gtorch_cuda_pack_output (output, output->dtype, error) : NULL;
  if (y == NULL)
    return FALSE;
  p.n = output->numel;
  p.x = gtorch_impl_data (x);
  p.y = gtorch_impl_data (y);
  return gtorch_cuda_run (&gtorch_kernels_conj, output->dtype, lane, p.n, &p, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}
