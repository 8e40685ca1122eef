/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Factorizations by cuSOLVER, and solutions by it and cuBLAS. Their matrices are column-major, so that
 * they see the transposes of ours: of a Hermitian matrix they are given the other triangle, whose factor
 * is the transpose of the wanted one, and triangles are solved from the other side. Other matrices are
 * transposed in copies. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-solver-private.h"
#include "gtorch-ops-private.h"
#include "kernels/gtorch-linalg-params.h"

/* --- Cholesky --- */

/* Factors matrices in place, one after the other. */
static gboolean
potrf_each (GTorchImpl *factors, gint uplo, GTorchImpl *info, GTorchCudaLane *lane, GError **error)
{
  const gint type = gtorch_cuda_solver_type (factors->dtype);
  const gsize size = gtorch_dtype_size (factors->dtype);
  const gint64 n = factors->shape[factors->n_dims - 1];
  GTorchCudaSolver *solver;
  GTorchCudaRoom room = { 0 };
  gboolean success;
  gint64 i, count;

  if ((solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  count = gtorch_cuda_count_matrices (factors);
  success =
      gtorch_cuda_solver_check (gtorch_cuda_solver.potrf_size (solver->solver, solver->params, uplo,
                                                               n, type, gtorch_impl_data (factors),
                                                               n, type, &room.device, &room.host),
                                "cusolverDnXpotrf_bufferSize", error)
      && gtorch_cuda_room_init (&room, lane, error);
  for (i = 0; success && i < count; i++)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver.potrf (solver->solver, solver->params, uplo, n,
                                                            type,
                                                            (char *) gtorch_impl_data (factors)
                                                                + i * n * n * size,
                                                            n, type, gtorch_cuda_room_data (&room),
                                                            room.device, room.on_host, room.host,
                                                            (gint *) gtorch_impl_data (info) + i),
                                  "cusolverDnXpotrf", error);
  gtorch_cuda_solver_end (solver);
  return gtorch_cuda_room_clear (&room, success, lane, error);
}

#define TRANSPOSED 1024 /* rows from which the time for two transposed copies is regained */

gboolean
gtorch_cuda_cholesky_parts (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *factors = call->outputs[0], *info = call->outputs[1];
  const gint uplo = call->attrs[0].i ? GTORCH_SOLVER_LOWER : GTORCH_SOLVER_UPPER;
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (factors->numel == 0)
    return gtorch_cuda_clear (info, lane, error);
  /* cuSOLVER takes longer for the upper triangle of a large matrix */
  if (uplo == GTORCH_SOLVER_UPPER && factors->shape[factors->n_dims - 1] >= TRANSPOSED)
    {
      columns = gtorch_cuda_transpose (call->inputs[0], lane, error);
      if (columns == NULL || !potrf_each (columns, GTORCH_SOLVER_LOWER, info, lane, error))
        return FALSE;
      result = gtorch_cuda_swap (columns);
      return gtorch_cuda_copy_here (factors, result, lane, error);
    }
  if (!gtorch_cuda_copy_here (factors, call->inputs[0], lane, error))
    return FALSE;
  return gtorch_cuda_is_batch (factors) ? gtorch_cuda_potrf_batch (factors, uplo, info, lane, error)
                                        : potrf_each (factors, uplo, info, lane, error);
}

/* --- LU --- */

/* Factors the columns, [..., n, m], one matrix after the other; `wide` (int64), unless it is NULL, gets the
 * pivots. */
static gboolean
factor_each (GTorchImpl *columns, GTorchImpl *wide, GTorchImpl *info, GTorchCudaLane *lane,
             GError **error)
{
  const gint type = gtorch_cuda_solver_type (columns->dtype);
  const gsize size = gtorch_dtype_size (columns->dtype);
  const gint64 m = columns->shape[columns->n_dims - 1], n = columns->shape[columns->n_dims - 2];
  const gint64 k = MIN (m, n), count = gtorch_cuda_count_matrices (columns);
  GTorchCudaSolver *solver = gtorch_cuda_solver_begin (lane, error);
  GTorchCudaRoom room = { 0 };
  gboolean success;
  gint64 i;

  if (solver == NULL)
    return FALSE;
  success =
      gtorch_cuda_solver_check (gtorch_cuda_solver.getrf_size (solver->solver, solver->params, m, n,
                                                               type, gtorch_impl_data (columns), m,
                                                               type, &room.device, &room.host),
                                "cusolverDnXgetrf_bufferSize", error)
      && gtorch_cuda_room_init (&room, lane, error);
  for (i = 0; success && i < count; i++)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver.getrf (solver->solver, solver->params, m, n,
                                                            type,
                                                            (char *) gtorch_impl_data (columns)
                                                                + i * m * n * size,
                                                            m,
                                                            wide != NULL
                                                                ? (gint64 *) gtorch_impl_data (wide)
                                                                      + i * k
                                                                : NULL,
                                                            type, gtorch_cuda_room_data (&room),
                                                            room.device, room.on_host, room.host,
                                                            (gint *) gtorch_impl_data (info) + i),
                                  "cusolverDnXgetrf", error);
  gtorch_cuda_solver_end (solver);
  return gtorch_cuda_room_clear (&room, success, lane, error);
}

gboolean
gtorch_cuda_lu_parts (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *a = call->inputs[0], *pivots = call->outputs[1], *info = call->outputs[2];
  const gboolean pivot = call->attrs[0].i != 0;
  const gint64 m = a->shape[a->n_dims - 2], n = a->shape[a->n_dims - 1];
  const gboolean is_batch = a->numel > 0 && m == n && gtorch_cuda_is_batch (a);
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) wide = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (a->numel == 0)
    return gtorch_cuda_clear (info, lane, error);
  columns = gtorch_cuda_transpose (a, lane, error);
  if (columns == NULL)
    return FALSE;
  if (!pivot || !is_batch)
    {
      wide =
          gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, pivots->shape, pivots->n_dims, error);
      if (wide == NULL)
        return FALSE;
    }
  if (is_batch ? !gtorch_cuda_getrf_batch (columns, pivot ? pivots : NULL, info, lane, error)
               : !factor_each (columns, pivot ? wide : NULL, info, lane, error))
    return FALSE;
  result = gtorch_cuda_swap (columns);
  if (!gtorch_cuda_copy_here (call->outputs[0], result, lane, error))
    return FALSE;
  if (!pivot) /* each row is exchanged with itself */
    {
      const gint64 count = gtorch_cuda_count_matrices (a);
      GtPivots p = {
        .order = gtorch_impl_data (wide), .count = count, .n = MIN (m, n), .first = 1
      };

      if (!gtorch_cuda_run (&gtorch_kernels_pivot_order, GTORCH_DTYPE_INT64, lane, count, &p,
                            error))
        return FALSE;
    }
  return wide == NULL || gtorch_cuda_copy_here (pivots, wide, lane, error);
}

/* --- the order of rows --- */

gboolean
gtorch_cuda_pivot_order (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *order = call->outputs[0];
  g_autoptr (GTorchImpl) pivots = NULL;
  GtPivots p = { .n = call->attrs[0].i };

  if (order->numel == 0)
    return TRUE;
  pivots = gtorch_cuda_pack (call->inputs[0], GTORCH_DTYPE_INT64, lane, error);
  if (pivots == NULL)
    return FALSE;
  p.pivots = gtorch_impl_data (pivots);
  p.order = gtorch_impl_data (order);
  p.count = order->numel / p.n;
  p.n_pivots = pivots->shape[pivots->n_dims - 1];
  p.op = gtorch_cuda_report_op (call, -1);
  p.report = gtorch_cuda_report (lane, error);
  return p.report != NULL
         && gtorch_cuda_run (&gtorch_kernels_pivot_order, GTORCH_DTYPE_INT64, lane, p.count, &p,
                             error);
}

/* --- solutions --- */

/* A X = B is X^T A^T = B^T, and cuBLAS sees A^T, whose triangle is the other one, and B^T. */
gboolean
gtorch_cuda_triangle_solve (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  static const gdouble one[2] = { 1, 0 };
  static const gfloat one_f[2] = { 1, 0 };
  GTorchImpl *output = call->outputs[0];
  const guint n_dims = output->n_dims;
  const gsize size = gtorch_dtype_size (output->dtype);
  const gint uplo = call->attrs[0].i ? GTORCH_SOLVER_LOWER : GTORCH_SOLVER_UPPER;
  const gint side = call->attrs[1].i ? GTORCH_SOLVER_RIGHT : GTORCH_SOLVER_LEFT;
  const gboolean is_double = gtorch_dtype_infos[output->dtype].real == GTORCH_DTYPE_FLOAT64;
  g_autoptr (GTorchImpl) a = NULL;
  GTorchCudaSolver *solver;
  gboolean success = TRUE;
  gint64 rows, columns, n, i, count;

  if (output->numel == 0)
    return TRUE;
  a = gtorch_cuda_pack (call->inputs[0], output->dtype, lane, error);
  if (a == NULL || !gtorch_cuda_copy_here (output, call->inputs[1], lane, error))
    return FALSE;
  if (gtorch_cuda_is_batch (a))
    return gtorch_cuda_trsm_batch (side, uplo, call->attrs[2].i != 0, a, output, lane, error);
  if ((solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  rows = output->shape[n_dims - 2];
  columns = output->shape[n_dims - 1];
  n = a->shape[n_dims - 1];
  count = gtorch_cuda_count_matrices (output);
  for (i = 0; success && i < count; i++)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver.trsm[gtorch_cuda_solver_form (
                                      output->dtype)](solver->blas, side, uplo, GTORCH_SOLVER_PLAIN,
                                                      call->attrs[2].i != 0, columns, rows,
                                                      is_double ? (gconstpointer) one : one_f,
                                                      (const char *) gtorch_impl_data (a)
                                                          + i * n * n * size,
                                                      n,
                                                      (char *) gtorch_impl_data (output)
                                                          + i * rows * columns * size,
                                                      columns),
                                  "cublasXtrsm", error);
  gtorch_cuda_solver_end (solver);
  return success;
}

gboolean
gtorch_cuda_factored_solve (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const gint type = gtorch_cuda_solver_type (output->dtype);
  const gsize size = gtorch_dtype_size (output->dtype);
  const gboolean is_complex = gtorch_dtype_kind (output->dtype) == GTORCH_KIND_COMPLEX;
  const gint operation = !call->attrs[0].i ? GTORCH_SOLVER_PLAIN
                         : is_complex      ? GTORCH_SOLVER_ADJOINT
                                           : GTORCH_SOLVER_TRANSPOSE;
  g_autoptr (GTorchImpl) lu = NULL;
  g_autoptr (GTorchImpl) b = NULL;
  g_autoptr (GTorchImpl) pivots = NULL;
  g_autoptr (GTorchImpl) info = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  GTorchCudaSolver *solver;
  gboolean success = TRUE, is_batch;
  gint64 n, columns, i, count;

  if (output->numel == 0)
    return TRUE;
  is_batch = gtorch_cuda_is_batch (call->inputs[1]);
  if ((lu = gtorch_cuda_transpose (call->inputs[1], lane, error)) == NULL
      || (pivots =
              gtorch_cuda_pack (call->inputs[2], is_batch ? GTORCH_DTYPE_INT32 : GTORCH_DTYPE_INT64,
                                lane, error))
             == NULL
      || (b = gtorch_cuda_transpose (call->inputs[3], lane, error)) == NULL)
    return FALSE;
  if (is_batch)
    {
      result = gtorch_cuda_swap (b);
      return gtorch_cuda_getrs_batch (operation, lu, pivots, b, lane, error)
             && gtorch_cuda_copy_here (output, result, lane, error);
    }
  if ((info = gtorch_cuda_scratch (lane, sizeof (gint), error)) == NULL
      || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  n = lu->shape[lu->n_dims - 1];
  columns = output->shape[output->n_dims - 1];
  count = gtorch_cuda_count_matrices (output);
  for (i = 0; success && i < count; i++)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver
                                      .getrs (solver->solver, solver->params, operation, n, columns,
                                              type,
                                              (const char *) gtorch_impl_data (lu)
                                                  + i * n * n * size,
                                              n, (const gint64 *) gtorch_impl_data (pivots) + i * n,
                                              type,
                                              (char *) gtorch_impl_data (b)
                                                  + i * n * columns * size,
                                              n, gtorch_impl_data (info)),
                                  "cusolverDnXgetrs", error);
  gtorch_cuda_solver_end (solver);
  if (!success)
    return FALSE;
  result = gtorch_cuda_swap (b);
  return gtorch_cuda_copy_here (output, result, lane, error);
}
