/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* Returns whether the kernels can read the parts as they are. */
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

static gboolean
unite (GTorchImpl *re, GTorchImpl *im, GTorchImpl *output, const gchar *form, GTorchCudaLane *lane,
       GError **error)
{
  const GtUnite p = {
    .re = gtorch_impl_data (re),
    .im = gtorch_impl_data (im),
    .y = gtorch_impl_data (output),
    .n = output->numel,
  };

  /* at least one thread for each of the elements that do not fill a vector */
  return gtorch_cuda_run_form (&gtorch_kernels_unite, re->dtype, form, lane,
                               MIN (p.n, p.n * (gint64) gtorch_dtype_size (re->dtype) / 16 + 4), &p,
                               error);
}

/* Copies a tensor of this device or a number of the host. */
static gboolean
copy (GTorchImpl *dst, GTorchImpl *src, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) moved = NULL;

  if (src->storage->device != dst->storage->device
      && (src = moved = gtorch_cuda_pack (src, src->dtype, lane, error)) == NULL)
    return FALSE;
  return gtorch_cuda_copy_here (dst, src, lane, error);
}

gboolean
gtorch_cuda_complex (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint i;

  if (is_plain (call))
    return unite (call->inputs[0], call->inputs[1], output, NULL, lane, error);
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) part = gtorch_complex_part (output, i);

      if (part->numel > 0 && !copy (part, call->inputs[i], lane, error))
        return FALSE;
    }
  return TRUE;
}

/* Returns the input in the output's shape, as the kernels read it. */
static GTorchImpl *
spread (GTorchImpl *input, GTorchImpl *output, GTorchCudaLane *lane, GError **error)
{
  const guint dtype = gtorch_dtype_infos[output->dtype].real;
  g_autoptr (GTorchImpl) whole =
      gtorch_impl_new (output->storage->device, dtype, output->shape, output->n_dims, error);

  if (whole == NULL || !copy (whole, input, lane, error))
    return NULL;
  return g_steal_pointer (&whole);
}

gboolean
gtorch_cuda_polar (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) abs = NULL;
  g_autoptr (GTorchImpl) angle = NULL;
  g_autoptr (GTorchImpl) y = NULL;

  if (output->numel == 0)
    return TRUE;
  if (is_plain (call))
    return unite (call->inputs[0], call->inputs[1], output, "polar", lane, error);
  return (abs = spread (call->inputs[0], output, lane, error)) != NULL
         && (angle = spread (call->inputs[1], output, lane, error)) != NULL
         && (y = gtorch_cuda_pack_output (output, output->dtype, error)) != NULL
         && unite (abs, angle, y, "polar", lane, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}
