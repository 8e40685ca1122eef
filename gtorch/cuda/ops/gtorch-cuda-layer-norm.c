/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Layer norm. */

#include "config.h"

#include <math.h>

#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

#define PART 64 /* the minimum number of rows per partial sum of the gradients of weight and bias */

#define RESIDENT \
  1280 /* threads that a multiprocessor holds at once in the kernel of all gradients */

#define LONG_ROW 32768 /* elements from which several blocks share a row, if there are few rows */
#define FEW_ROWS 256

/* Normalises long rows, each with several blocks. */
static gboolean
run_long (const GtLayerNorm *norm, guint dtype, GTorchCudaLane *lane, GError **error)
{
  const gsize size = gtorch_dtype_size (gtorch_dtype_infos[dtype].compute);
  GtMoments m = { .x = norm->x, .rows = norm->rows, .n = norm->n };
  GtLongNorm p = { .norm = *norm };
  g_autoptr (GTorchImpl) moments = NULL;
  g_autoptr (GTorchImpl) stats = NULL;

  m.parts = p.parts = CLAMP (m.n / 8192, 1, 1024 / m.rows);
  if ((moments = gtorch_cuda_scratch (lane, m.rows * m.parts * 3 * size, error)) == NULL
      || (stats = gtorch_cuda_scratch (lane, m.rows * 2 * size, error)) == NULL)
    return FALSE;
  p.moments = m.moments = gtorch_impl_data (moments);
  p.stats = gtorch_impl_data (stats);
  return gtorch_cuda_run_blocks (&gtorch_kernels_moments_rows, dtype, lane, m.rows * m.parts, &m,
                                 error)
         && gtorch_cuda_run (&gtorch_kernels_long_norm_stats, dtype, lane, m.rows, &p, error)
         && gtorch_cuda_run (&gtorch_kernels_long_norm, dtype, lane, m.rows * m.n, &p, error);
}

gboolean
gtorch_cuda_native_layer_norm (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  guint dtype = call->compute, i;
  g_autoptr (GTorchImpl) y = NULL;
  GTorchImpl *packed[3] = { NULL };
  GtLayerNorm p = { .eps = call->attrs[1].d };
  gboolean ok = FALSE;

  if (call->inputs[0]->numel == 0)
    { /* the mean of rows without elements is NaN */
      const gdouble nan = NAN;

      return gtorch_cuda_fill_with (call->outputs[1], GTORCH_DTYPE_FLOAT64, &nan, lane, error)
             && gtorch_cuda_fill_with (call->outputs[2], GTORCH_DTYPE_FLOAT64, &nan, lane, error);
    }
  for (i = 0; i < 3; i++)
    if (call->inputs[i] != NULL)
      {
        packed[i] = gtorch_cuda_pack (call->inputs[i], dtype, lane, error);
        if (packed[i] == NULL)
          goto done;
      }
  y = gtorch_cuda_pack_output (call->outputs[0], dtype, error);
  if (y == NULL)
    goto done;
  p.rows = call->outputs[1]->numel;
  p.n = packed[0]->numel / p.rows;
  p.x = gtorch_impl_data (packed[0]);
  p.weight = packed[1] != NULL ? gtorch_impl_data (packed[1]) : NULL;
  p.bias = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL;
  p.y = gtorch_impl_data (y);
  p.mean = gtorch_impl_data (call->outputs[1]);
  p.rstd = gtorch_impl_data (call->outputs[2]);
  ok = (p.n >= LONG_ROW && p.rows <= FEW_ROWS
            ? run_long (&p, dtype, lane, error)
            : gtorch_cuda_run_rows (&gtorch_kernels_layer_norm, dtype, lane, p.rows, p.n,
                                    (guintptr) p.y | (guintptr) p.x | (guintptr) p.weight
                                        | (guintptr) p.bias,
                                    &p, error))
       && gtorch_cuda_unpack (y, call->outputs[0], lane, error);
done:
  gtorch_impl_clear (packed, 3);
  return ok;
}

/* Returns the threads of a block that has each row of n elements in registers. */
static guint
n_threads (gint64 n)
{
  return (n + 32 * GT_NORM_COLUMNS - 1) / (32 * GT_NORM_COLUMNS) * 32;
}

/* Computes the gradient of x and the parts of the others, by which their number is given. */
static gboolean
run_grads (const GtLayerNormGrad *x, const GtLayerNormSums *sums, gboolean at_once, guint dtype,
           GTorchCudaLane *lane, GError **error)
{
  const GtLayerNormGrads p = { .x = *x, .sums = sums->sums, .part = sums->part };
  const gint64 parts = (x->rows + sums->part - 1) / sums->part;

  if (at_once)
    return gtorch_cuda_run_wide (&gtorch_kernels_layer_norm_grads, dtype, lane, parts,
                                 n_threads (x->n), &p, error);
  return gtorch_cuda_run_blocks (&gtorch_kernels_layer_norm_grad, dtype, lane, x->rows, x, error)
         && gtorch_cuda_run (&gtorch_kernels_layer_norm_sums, dtype, lane, parts * x->n, sums,
                             error);
}

gboolean
gtorch_cuda_layer_norm_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  guint dtype = call->compute, compute = gtorch_dtype_infos[dtype].compute, i;
  GTorchImpl *packed[5] = { NULL }, *out[3] = { NULL };
  g_autoptr (GTorchImpl) sums = NULL;
  GtLayerNormGrad p = { NULL };
  GtLayerNormSums s = { NULL };
  GtAddParts a = { NULL };
  gboolean ok = FALSE, at_once;

  for (i = 0; i < 5; i++)
    if (call->inputs[i] != NULL
        && (packed[i] = gtorch_cuda_pack (call->inputs[i], dtype, lane, error)) == NULL)
      goto done;
  for (i = 0; i < 3; i++)
    if ((out[i] = gtorch_cuda_pack_output (call->outputs[i], dtype, error)) == NULL)
      goto done;
  if (packed[1]->numel == 0)
    {
      ok = gtorch_cuda_clear (call->outputs[1], lane, error)
           && gtorch_cuda_clear (call->outputs[2], lane, error);
      goto done;
    }
  p.g = s.g = gtorch_impl_data (packed[0]);
  p.x = s.x = gtorch_impl_data (packed[1]);
  p.weight = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL;
  p.mean = s.mean = gtorch_impl_data (packed[3]);
  p.rstd = s.rstd = gtorch_impl_data (packed[4]);
  p.grad = gtorch_impl_data (out[0]);
  p.rows = s.rows = packed[3]->numel;
  p.n = s.n = a.n = packed[1]->numel / p.rows;
  at_once = p.n <= 1024 * GT_NORM_COLUMNS;
  if (at_once)
    { /* one wave of blocks */
      const gint64 blocks = lane->device->n_multiprocessors * MAX (1, RESIDENT / n_threads (p.n));

      s.part = (p.rows + blocks - 1) / blocks;
    }
  else
    s.part = MAX (PART, (p.rows + 511) / 512);
  a.parts = (p.rows + s.part - 1) / s.part;
  sums =
      gtorch_cuda_scratch (lane, a.parts * 2 * p.n * (gint64) gtorch_dtype_size (compute), error);
  if (sums == NULL)
    goto done;
  a.sums = s.sums = gtorch_impl_data (sums);
  a.grads[0] = gtorch_impl_data (out[1]);
  a.grads[1] = gtorch_impl_data (out[2]);
  ok = run_grads (&p, &s, at_once, dtype, lane, error)
       && gtorch_cuda_run_blocks (&gtorch_kernels_add_parts, dtype, lane, (2 * p.n + 31) / 32, &a,
                                  error);
  for (i = 0; ok && i < 3; i++)
    ok = gtorch_cuda_unpack (out[i], call->outputs[i], lane, error);
done:
  gtorch_impl_clear (packed, 5);
  gtorch_impl_clear (out, 3);
  return ok;
}
