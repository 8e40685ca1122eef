/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix products by kernels/matmul.cu: all products of integers, and products of floats that are so small
 * that the call of cuBLASLt, which costs the host as much as two launches, takes longer than the product. */

#include "config.h"

#include "cpu/gtorch-cpu-cast.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "kernels/gtorch-kernel-params.h"

static GTorchCudaKernel kernels[2][GTORCH_N_DTYPES]; /* [0] for small tiles, [1] for large ones */

#define THREADS    256 /* as in the kernels */
#define SMALL_TILE 16
#define LARGE_TILE 64
#define DEPTH      64 /* depth of a small tile */

static guint64
tiles_of (gint64 size, guint side)
{
  return (size + side - 1) / side;
}

static guint64
n_blocks (const GtMultiply *m, guint side)
{
  return tiles_of (m->m, side) * tiles_of (m->n, side) * m->batch;
}

/* Returns whether GTorch's kernel is faster. The thresholds were measured on an H200: up to them, the
 * kernel is done sooner than cuBLASLt's in a graph, or hardly later. For vectors and 16-bit floats, for
 * which cuBLASLt's kernels are fast, it may be later by as much as the saved call takes. */
static gboolean
is_small (const GtMultiply *m, guint dtype, gboolean is_exact, guint n_multiprocessors)
{
  guint depth = DEPTH, blocks = n_multiprocessors;

  if (m->sums != NULL && m->batch > 1)
    return FALSE;
  if (MIN (m->m, m->n) > 1)
    {
      if (dtype == GTORCH_DTYPE_FLOAT64)
        depth *= 2;
      else if (dtype == GTORCH_DTYPE_FLOAT32 && is_exact)
        depth *= 4, blocks *= 2;
    }
  return m->k <= depth && n_blocks (m, SMALL_TILE) <= blocks;
}

/* Converts a number for the kernel. An int64 serves for integers of any size, which read its lower bits. */
static GtNumber
number (guint dtype, gdouble value)
{
  const gboolean is_float = gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT;
  const guint compute = is_float ? gtorch_dtype_infos[dtype].compute : GTORCH_DTYPE_INT64;
  GtNumber result = { { 0 } };

  gtorch_cpu_cast (compute, GTORCH_DTYPE_FLOAT64) ((char *) &result, 16, (const char *) &value, 16,
                                                   1);
  return result;
}

gboolean
gtorch_cuda_multiply_by_kernel (GTorchCudaLane *lane, guint dtype, GtMultiply *m, gdouble alpha,
                                gdouble beta, gboolean is_exact, gboolean *done, GError **error)
{
  const guint n_multiprocessors = lane->device->n_multiprocessors;
  const gboolean is_float = gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT;
  const gboolean is_large = !is_float && MIN (m->m, m->n) > LARGE_TILE / 2
                            && n_blocks (m, LARGE_TILE) >= n_multiprocessors;
  const guint side = is_large ? LARGE_TILE : SMALL_TILE;
  GTorchCudaKernel *kernel = &kernels[is_large][dtype];
  g_autoptr (GError) local = NULL;
  gchar name[32] = "";

  *done = FALSE;
  if (is_float && !is_small (m, dtype, is_exact, n_multiprocessors))
    return TRUE;
  m->tiles_down = tiles_of (m->m, side);
  m->tiles_across = tiles_of (m->n, side);
  m->alpha = number (dtype, alpha);
  m->beta = number (dtype, beta);
  m->adds = beta != 0;
  if (G_UNLIKELY (g_atomic_pointer_get (&kernel->kernel) == NULL))
    g_snprintf (name, sizeof name, "gt_multiply_%s_%s", gtorch_cuda_dtype_suffixes[dtype],
                is_large ? "large" : "small");
  *done = gtorch_cuda_kernel_run (kernel, &gtorch_cuda_family_matmul, name, lane,
                                  n_blocks (m, side), THREADS, m, &local);
  if (*done || (is_float && g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED)))
    return TRUE; /* if the build has no kernels, cuBLASLt computes the product */
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}
