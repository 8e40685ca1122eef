/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The operations of a gradient scaler. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

/* --- unscaling --- */

#define SCALE 1
#define GRADS 2

/* Puts the tensors of one dtype from `first` on into p, as many as one launch takes. Returns the index from
 * which to continue. */
static guint
gather (GTorchImpl *const *packed, guint n, guint first, guint dtype, GtSteps *p)
{
  guint i;

  p->n = p->blocks = 0;
  for (i = first; i < n && p->n < GT_STEP_TENSORS; i++)
    if (packed[i]->dtype == dtype)
      {
        GtStep *step = &p->steps[p->n++];

        step->data[0] = gtorch_impl_data (packed[i]);
        step->n = packed[i]->numel;
        step->is_aligned = ((guintptr) step->data[0] & 15) == 0;
        step->block = p->blocks;
        p->blocks += (step->n * gtorch_dtype_size (dtype) + GT_STEP_BYTES - 1) / GT_STEP_BYTES;
      }
  return i;
}

gboolean
gtorch_cuda_amp_unscale (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const guint dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16,
                           GTORCH_DTYPE_FLOAT64 };
  GTorchImpl *const *grads = call->inputs + GRADS;
  guint n = call->n_inputs - GRADS, i, k;
  g_autofree GTorchImpl **packed = g_new0 (GTorchImpl *, MAX (n, 1));
  g_autoptr (GTorchImpl) scale =
      gtorch_cuda_pack (call->inputs[SCALE], GTORCH_DTYPE_FLOAT32, lane, error);
  GtSteps p = { .found = gtorch_impl_data (call->outputs[0]) };
  gboolean ok = scale != NULL;

  for (i = 0; ok && i < n; i++)
    ok = (packed[i] = gtorch_cuda_pack (grads[i], grads[i]->dtype, lane, error)) != NULL;
  p.cell = ok ? gtorch_impl_data (scale) : NULL;
  for (k = 0; k < G_N_ELEMENTS (dtypes); k++)
    for (i = 0; ok && i < n;)
      {
        i = gather (packed, n, i, dtypes[k], &p);
        ok = gtorch_cuda_run (&gtorch_kernels_amp_unscale, dtypes[k], lane,
                              (gint64) p.blocks * GT_STEP_THREADS, &p, error);
      }
  for (i = 0; ok && i < n; i++)
    ok = gtorch_cuda_unpack (packed[i], grads[i], lane, error);
  gtorch_impl_clear (packed, n);
  return ok;
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
