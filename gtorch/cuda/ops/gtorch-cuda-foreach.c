/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of many tensors at once. */

#include "config.h"

#include <string.h>

#include "cuda/driver/gtorch-cuda-driver-private.h"
#include "cuda/ops/gtorch-cuda-foreach-private.h"
#include "gtorch-ops-private.h"

static const guint dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16,
                                GTORCH_DTYPE_FLOAT64 };

/* Returns memory for the tensors of a launch; where they are few, the end of the struct is not there. */
static GtManySteps *
new_steps (guint n, const GtSteps *head)
{
  GtManySteps *p = g_malloc0 (n > GT_STEP_TENSORS ? sizeof (GtManySteps) : sizeof (GtSteps));

  G_STATIC_ASSERT (G_STRUCT_OFFSET (GtSteps, steps) == G_STRUCT_OFFSET (GtManySteps, steps));
  memcpy (p, head, G_STRUCT_OFFSET (GtSteps, steps));
  return p;
}

static guint64
n_blocks (const GTorchImpl *impl)
{
  return ((guint64) impl->numel * gtorch_dtype_size (impl->dtype) + GT_STEP_BYTES - 1)
         / GT_STEP_BYTES;
}

/* Puts the tensors of one dtype from `first` on into p, as many as one launch takes; norms are written to
 * `output` if that is not NULL. Returns the index from which to continue. */
static guint
gather (GTorchImpl *const *packed, guint n, guint first, guint dtype, gdouble *output,
        GtManySteps *p)
{
  const guint most = n <= GT_STEP_TENSORS || !gtorch_cuda_driver_takes_many ()
                         ? GT_STEP_TENSORS
                         : GT_STEP_MANY_TENSORS;
  guint i;

  p->n = p->blocks = 0;
  for (i = first; i < n && p->n < most; i++)
    if (packed[i]->dtype == dtype)
      {
        GtStep *step = &p->steps[p->n++];

        step->data[0] = gtorch_impl_data (packed[i]);
        step->n = packed[i]->numel;
        step->is_aligned = ((guintptr) step->data[0] & 15) == 0;
        step->block = p->blocks;
        step->count = output != NULL ? output + i : NULL;
        p->blocks += n_blocks (packed[i]);
      }
  return i;
}

static gboolean
launch (const GTorchCudaKernelSet *few, const GTorchCudaKernelSet *many, guint dtype,
        gint64 n_threads, const GtManySteps *p, GTorchCudaLane *lane, GError **error)
{
  if (p->n == 0)
    return TRUE;
  return gtorch_cuda_launch_over (p->n > GT_STEP_TENSORS ? many : few,
                                  gtorch_cuda_dtype_suffixes[dtype], NULL, lane, n_threads, p,
                                  error);
}

/* Returns the tensors, contiguous; an item is NULL after an error. */
static GTorchImpl **
pack_all (GTorchImpl *const *impls, guint n, GTorchCudaLane *lane, gboolean *ok, GError **error)
{
  GTorchImpl **packed = g_new0 (GTorchImpl *, MAX (n, 1));

  *ok = TRUE;
  for (guint i = 0; *ok && i < n; i++)
    *ok = (packed[i] = gtorch_cuda_pack (impls[i], impls[i]->dtype, lane, error)) != NULL;
  return packed;
}

gboolean
gtorch_cuda_foreach_launch (const GTorchCudaKernelSet *few, const GTorchCudaKernelSet *many,
                            GTorchImpl *const *impls, guint n, const GtSteps *head,
                            GTorchCudaLane *lane, GError **error)
{
  gboolean ok;
  g_autofree GTorchImpl **packed = pack_all (impls, n, lane, &ok, error);
  g_autofree GtManySteps *p = new_steps (n, head);

  for (guint k = 0; k < G_N_ELEMENTS (dtypes); k++)
    for (guint i = 0; ok && i < n;)
      {
        i = gather (packed, n, i, dtypes[k], NULL, p);
        ok = launch (few, many, dtypes[k], (gint64) p->blocks * GT_STEP_THREADS, p, lane, error);
      }
  for (guint i = 0; ok && i < n; i++)
    ok = gtorch_cuda_unpack (packed[i], impls[i], lane, error);
  gtorch_impl_clear (packed, n);
  return ok;
}

/* --- norms --- */

/* Each block sums a part of a tensor, and a second launch the parts of each tensor. */
gboolean
gtorch_cuda_foreach_norm (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const guint n = call->n_inputs;
  const GtSteps head = { .d = { call->attrs[0].d } };
  gdouble *output = gtorch_impl_data (call->outputs[0]);
  gboolean ok;
  g_autofree GTorchImpl **packed = pack_all (call->inputs, n, lane, &ok, error);
  g_autofree GtManySteps *p = new_steps (n, &head);
  g_autoptr (GTorchImpl) parts = NULL;
  guint64 total = 0;

  for (guint i = 0; ok && i < n; i++)
    total += n_blocks (packed[i]);
  if (ok)
    ok = (parts = gtorch_cuda_scratch (lane, (gint64) MAX (total, 1) * sizeof (gdouble), error))
         != NULL;
  p->cell = ok ? gtorch_impl_data (parts) : NULL;
  for (guint k = 0; k < G_N_ELEMENTS (dtypes); k++)
    for (guint i = 0; ok && i < n;)
      {
        i = gather (packed, n, i, dtypes[k], output, p);
        ok = launch (GTORCH_CUDA_SET (&gtorch_kernels_norm_parts, (GtSteps *) NULL),
                     GTORCH_CUDA_SET (&gtorch_kernels_norm_parts_many, (GtManySteps *) NULL),
                     dtypes[k], (gint64) p->blocks * GT_STEP_THREADS, p, lane, error)
             && launch (GTORCH_CUDA_SET (&gtorch_kernels_norm_join, (GtSteps *) NULL),
                        GTORCH_CUDA_SET (&gtorch_kernels_norm_join_many, (GtManySteps *) NULL),
                        GTORCH_DTYPE_FLOAT64, (gint64) p->n * GT_STEP_THREADS, p, lane, error);
        p->cell = (const gdouble *) p->cell + p->blocks;
      }
  gtorch_impl_clear (packed, n);
  return ok;
}

/* --- changes in place --- */

#define FACTOR 1

gboolean
gtorch_cuda_foreach_mul (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const guint n = call->n_inputs - 1;
  g_autofree GTorchImpl **impls = g_new (GTorchImpl *, n);
  g_autoptr (GTorchImpl) factor =
      gtorch_cuda_pack (call->inputs[FACTOR], call->inputs[FACTOR]->dtype, lane, error);
  GtSteps head = { .first = call->inputs[FACTOR]->dtype == GTORCH_DTYPE_FLOAT64 };

  if (factor == NULL)
    return FALSE;
  head.cell = gtorch_impl_data (factor);
  impls[0] = call->inputs[0];
  memcpy (impls + 1, call->inputs + FACTOR + 1, (n - 1) * sizeof *impls);
  return gtorch_cuda_foreach_change (&gtorch_kernels_foreach_mul, &gtorch_kernels_foreach_mul_many,
                                     impls, n, &head, lane, error);
}

gboolean
gtorch_cuda_foreach_clamp (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const GtSteps head = { .d = { call->attrs[0].d } };

  return gtorch_cuda_foreach_change (&gtorch_kernels_foreach_clamp,
                                     &gtorch_kernels_foreach_clamp_many, call->inputs,
                                     call->n_inputs, &head, lane, error);
}
