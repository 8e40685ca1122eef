/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_cuda_complex (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) part = gtorch_complex_part (call->outputs[0], i);

      if (part->numel > 0 && !gtorch_cuda_copy_here (part, call->inputs[i], lane, error))
        return FALSE;
    }
  return TRUE;
}
