/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* Returns whether the kernel can read the parts as they are. */
static gboolean
is_plain (const GTorchOpCall *call)
{
  const GTorchImpl *output = call->outputs[0];
  guint i;

  for (i = 0; i < 2; i++)
    {
      GTorchImpl *part = call->inputs[i];

      if (!part->is_contiguous || !gtorch_impl_same_shape (part, output)
          || part->dtype != gtorch_dtype_infos[output->dtype].real
          || part->storage->device != call->device
          || ((guintptr) gtorch_impl_data (part) & 15) != 0)
        return FALSE;
    }
  return output->is_contiguous && ((guintptr) gtorch_impl_data (output) & 15) == 0;
}

gboolean
gtorch_cuda_complex (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint i;

  if (is_plain (call))
    {
      const guint dtype = call->inputs[0]->dtype;
      const GtUnite p = {
        .re = gtorch_impl_data (call->inputs[0]),
        .im = gtorch_impl_data (call->inputs[1]),
        .y = gtorch_impl_data (output),
        .n = output->numel,
      };

      /* at least one thread for each of the elements that do not fill a vector */
      return gtorch_cuda_run (&gtorch_kernels_unite, dtype, lane,
                              MIN (p.n, p.n * (gint64) gtorch_dtype_size (dtype) / 16 + 4), &p,
                              error);
    }
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) part = gtorch_complex_part (output, i);

      if (part->numel > 0 && !gtorch_cuda_copy_here (part, call->inputs[i], lane, error))
        return FALSE;
    }
  return TRUE;
}
