/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Factorizations and solutions of many small matrices at once, by the batched functions of cuSOLVER and
 * cuBLAS. These read the addresses of the matrices on the device, where a kernel writes them, so that a graph
 * that is replayed with other memory finds it. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-solver-private.h"
#include "gtorch-ops-private.h"
#include "kernels/gtorch-linalg-params.h"

#define LARGEST 512   /* rows of a matrix for which the functions for one matrix are slower */
#define MOST    65535 /* matrices of a call */

gboolean
gtorch_cuda_is_batch (const GTorchImpl *matrices)
{
  const guint n = matrices->n_dims;

  return MAX (matrices->shape[n - 2], matrices->shape[n - 1]) <= LARGEST
         && gtorch_cuda_count_matrices (matrices) > 1;
}

/* Returns the addresses of contiguous matrices. */
static GTorchImpl *
addresses_new (GTorchImpl *matrices, GTorchCudaLane *lane, GError **error)
{
  const gint64 count = gtorch_cuda_count_matrices (matrices);
  g_autoptr (GTorchImpl) addresses = gtorch_cuda_scratch (lane, count * sizeof (gpointer), error);
  GtAddresses p = { .first = gtorch_impl_data (matrices),
                    .step = matrices->numel / count * (gint64) gtorch_dtype_size (matrices->dtype),
                    .count = count };

  if (addresses == NULL)
    return NULL;
  p.addresses = gtorch_impl_data (addresses);
  if (!gtorch_cuda_run (&gtorch_kernels_addresses, GTORCH_DTYPE_INT64, lane, count, &p, error))
    return NULL;
  return g_steal_pointer (&addresses);
}

gboolean
gtorch_cuda_potrf_batch (GTorchImpl *a, gint uplo, GTorchImpl *info, GTorchCudaLane *lane,
                         GError **error)
{
  const guint form = gtorch_cuda_solver_form (a->dtype);
  const gint64 n = a->shape[a->n_dims - 1], count = gtorch_cuda_count_matrices (a);
  g_autoptr (GTorchImpl) addresses = addresses_new (a, lane, error);
  GTorchCudaSolver *solver;
  gboolean success = TRUE;
  gint64 i;

  if (addresses == NULL || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  for (i = 0; success && i < count; i += MOST)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver
                                      .potrf_batched[form](solver->solver, uplo, n,
                                                           (gpointer *) gtorch_impl_data (addresses)
                                                               + i,
                                                           n, (gint *) gtorch_impl_data (info) + i,
                                                           MIN (MOST, count - i)),
                                  "cusolverDnXpotrfBatched", error);
  gtorch_cuda_solver_end (solver);
  return success;
}

gboolean
gtorch_cuda_getrf_batch (GTorchImpl *columns, GTorchImpl *pivots, GTorchImpl *info,
                         GTorchCudaLane *lane, GError **error)
{
  const guint form = gtorch_cuda_solver_form (columns->dtype);
  const gint64 n = columns->shape[columns->n_dims - 1];
  const gint64 count = gtorch_cuda_count_matrices (columns);
  g_autoptr (GTorchImpl) addresses = addresses_new (columns, lane, error);
  GTorchCudaSolver *solver;
  gboolean success = TRUE;
  gint64 i;

  if (addresses == NULL || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  for (i = 0; success && i < count; i += MOST)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver
                                      .getrf_batched[form](solver->blas, n,
                                                           (gpointer *) gtorch_impl_data (addresses)
                                                               + i,
                                                           n,
                                                           pivots != NULL
                                                               ? (gint *) gtorch_impl_data (pivots)
                                                                     + i * n
                                                               : NULL,
                                                           (gint *) gtorch_impl_data (info) + i,
                                                           MIN (MOST, count - i)),
                                  "cublasXgetrfBatched", error);
  gtorch_cuda_solver_end (solver);
  return success;
}

gboolean
gtorch_cuda_getrs_batch (gint operation, GTorchImpl *lu, GTorchImpl *pivots, GTorchImpl *b,
                         GTorchCudaLane *lane, GError **error)
{
  const guint form = gtorch_cuda_solver_form (lu->dtype);
  const gint64 n = lu->shape[lu->n_dims - 1], n_columns = b->shape[b->n_dims - 2];
  const gint64 count = gtorch_cuda_count_matrices (lu);
  g_autoptr (GTorchImpl) factors = addresses_new (lu, lane, error);
  g_autoptr (GTorchImpl) sides = factors != NULL ? addresses_new (b, lane, error) : NULL;
  GTorchCudaSolver *solver;
  gboolean success = TRUE;
  gint wrong = 0; /* the number of an argument, which the status tells as well */
  gint64 i;

  if (sides == NULL || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  for (i = 0; success && i < count; i += MOST)
    success = gtorch_cuda_solver_check (gtorch_cuda_solver.getrs_batched
                                            [form](solver->blas, operation, n, n_columns,
                                                   (gpointer *) gtorch_impl_data (factors) + i, n,
                                                   (const gint *) gtorch_impl_data (pivots) + i * n,
                                                   (gpointer *) gtorch_impl_data (sides) + i, n,
                                                   &wrong, MIN (MOST, count - i)),
                                        "cublasXgetrsBatched", error);
  gtorch_cuda_solver_end (solver);
  return success;
}

gboolean
gtorch_cuda_trsm_batch (gint side, gint uplo, gboolean is_unit, GTorchImpl *a, GTorchImpl *b,
                        GTorchCudaLane *lane, GError **error)
{
  static const gdouble one[2] = { 1, 0 };
  static const gfloat one_f[2] = { 1, 0 };
  const guint form = gtorch_cuda_solver_form (a->dtype);
  const gboolean is_double = gtorch_dtype_infos[a->dtype].real == GTORCH_DTYPE_FLOAT64;
  const gint64 n = a->shape[a->n_dims - 1], count = gtorch_cuda_count_matrices (b);
  const gint64 rows = b->shape[b->n_dims - 2], columns = b->shape[b->n_dims - 1];
  g_autoptr (GTorchImpl) triangles = addresses_new (a, lane, error);
  g_autoptr (GTorchImpl) sides = triangles != NULL ? addresses_new (b, lane, error) : NULL;
  GTorchCudaSolver *solver;
  gboolean success = TRUE;
  gint64 i;

  if (sides == NULL || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  for (i = 0; success && i < count; i += MOST)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver
                                      .trsm_batched[form](solver->blas, side, uplo,
                                                          GTORCH_SOLVER_PLAIN, is_unit, columns,
                                                          rows,
                                                          is_double ? (gconstpointer) one : one_f,
                                                          (gpointer *) gtorch_impl_data (triangles)
                                                              + i,
                                                          n,
                                                          (gpointer *) gtorch_impl_data (sides) + i,
                                                          columns, MIN (MOST, count - i)),
                                  "cublasXtrsmBatched", error);
  gtorch_cuda_solver_end (solver);
  return success;
}
