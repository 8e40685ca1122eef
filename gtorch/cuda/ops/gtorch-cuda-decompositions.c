/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* QR, eigenvalues of Hermitian matrices, and singular values by cuSOLVER, whose matrices are column-major.
 * The matrices of a batch are computed one after the other. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-solver-private.h"
#include "gtorch-ops-private.h"

/* Returns matrix i of a contiguous tensor. */
static gpointer
matrix (const GTorchImpl *impl, gint64 i)
{
  const guint n = impl->n_dims;

  return (char *) gtorch_impl_data (impl)
         + i * impl->shape[n - 2] * impl->shape[n - 1] * (gint64) gtorch_dtype_size (impl->dtype);
}

/* Returns row i of a contiguous tensor. */
static gpointer
row (const GTorchImpl *impl, gint64 i)
{
  return (char *) gtorch_impl_data (impl)
         + i * impl->shape[impl->n_dims - 1] * (gint64) gtorch_dtype_size (impl->dtype);
}

/* Returns matrices without values, with the batch of `like`. */
static GTorchImpl *
matrices_new (const GTorchImpl *like, gint64 rows, gint64 columns, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];

  memcpy (shape, like->shape, like->n_dims * sizeof (gint64));
  shape[like->n_dims - 2] = rows;
  shape[like->n_dims - 1] = columns;
  return gtorch_impl_new (gtorch_impl_device (like), like->dtype, shape, like->n_dims, error);
}

/* Copies the first rows and columns of the source. */
static gboolean
copy_corner (GTorchImpl *target, GTorchImpl *source, gint64 rows, gint64 columns,
             GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) from = NULL;
  g_autoptr (GTorchImpl) to = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  const guint n = source->n_dims;

  memcpy (shape, source->shape, n * sizeof (gint64));
  shape[n - 2] = rows;
  shape[n - 1] = columns;
  from = gtorch_impl_new_view (source, source->offset, shape, source->strides, n);
  to = gtorch_impl_new_view (target, target->offset, shape, target->strides, n);
  return gtorch_cuda_copy_here (to, from, lane, error);
}

/* --- QR --- */

/* Leaves the reflectors and R in the columns, [..., n, m]. */
static gboolean
factor (GTorchImpl *columns, GTorchImpl *tau, GTorchCudaLane *lane, GError **error)
{
  const gint type = gtorch_cuda_solver_type (columns->dtype);
  const gint64 n = columns->shape[columns->n_dims - 2], m = columns->shape[columns->n_dims - 1];
  const gint64 count = gtorch_cuda_count_matrices (columns);
  g_autoptr (GTorchImpl) info = gtorch_cuda_scratch (lane, sizeof (gint), error);
  GTorchCudaSolver *solver;
  GTorchCudaRoom room = { 0 };
  gboolean success;
  gint64 i;

  if (info == NULL || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  success =
      gtorch_cuda_solver_check (gtorch_cuda_solver.geqrf_size (solver->solver, solver->params, m, n,
                                                               type, gtorch_impl_data (columns), m,
                                                               type, gtorch_impl_data (tau), type,
                                                               &room.device, &room.host),
                                "cusolverDnXgeqrf_bufferSize", error)
      && gtorch_cuda_room_init (&room, lane, error);
  for (i = 0; success && i < count; i++)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver.geqrf (solver->solver, solver->params, m, n,
                                                            type, matrix (columns, i), m, type,
                                                            row (tau, i), type,
                                                            gtorch_cuda_room_data (&room),
                                                            room.device, room.on_host, room.host,
                                                            gtorch_impl_data (info)),
                                  "cusolverDnXgeqrf", error);
  gtorch_cuda_solver_end (solver);
  return gtorch_cuda_room_clear (&room, success, lane, error);
}

/* Replaces the reflectors in the columns, [..., n, m], by the first n columns of their product. */
static gboolean
expand (GTorchImpl *columns, GTorchImpl *tau, GTorchCudaLane *lane, GError **error)
{
  const guint form = gtorch_cuda_solver_form (columns->dtype);
  const gint n = columns->shape[columns->n_dims - 2], m = columns->shape[columns->n_dims - 1];
  const gint k = tau->shape[tau->n_dims - 1];
  const gint64 count = gtorch_cuda_count_matrices (columns);
  g_autoptr (GTorchImpl) info = gtorch_cuda_scratch (lane, sizeof (gint), error);
  g_autoptr (GTorchImpl) work = NULL;
  GTorchCudaSolver *solver;
  gboolean success;
  gint elements = 0;
  gint64 i;

  if (info == NULL || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  success =
      gtorch_cuda_solver_check (gtorch_cuda_solver.gqr_size[form](solver->solver, m, n, k,
                                                                  gtorch_impl_data (columns), m,
                                                                  gtorch_impl_data (tau),
                                                                  &elements),
                                "cusolverDnXorgqr_bufferSize", error)
      && (work = gtorch_cuda_scratch (lane, MAX (elements, 1) * gtorch_dtype_size (columns->dtype),
                                      error))
             != NULL;
  for (i = 0; success && i < count; i++)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver.gqr[form](solver->solver, m, n, k,
                                                               matrix (columns, i), m, row (tau, i),
                                                               gtorch_impl_data (work), elements,
                                                               gtorch_impl_data (info)),
                                  "cusolverDnXorgqr", error);
  gtorch_cuda_solver_end (solver);
  return success;
}

gboolean
gtorch_cuda_geqrf (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *a = call->inputs[0];
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (a->numel == 0)
    return TRUE;
  columns = gtorch_cuda_transpose (a, lane, error);
  if (columns == NULL || !factor (columns, call->outputs[1], lane, error))
    return FALSE;
  result = gtorch_cuda_swap (columns);
  return gtorch_cuda_copy_here (call->outputs[0], result, lane, error);
}

/* Below its diagonal, R has the reflectors. */
gboolean
gtorch_cuda_qr_parts (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *a = call->inputs[0], *q = call->outputs[0], *r = call->outputs[1];
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) seen = NULL;
  g_autoptr (GTorchImpl) tau = NULL;
  g_autoptr (GTorchImpl) wide = NULL;
  g_autoptr (GTorchImpl) expanded = NULL;
  gint64 shape[GTORCH_MAX_DIMS], m, n, k;

  if (a->numel == 0)
    return TRUE;
  m = a->shape[a->n_dims - 2];
  n = a->shape[a->n_dims - 1];
  k = MIN (m, n);
  memcpy (shape, a->shape, a->n_dims * sizeof (gint64));
  shape[a->n_dims - 2] = k;
  columns = gtorch_cuda_transpose (a, lane, error);
  tau = columns != NULL ? gtorch_impl_new (call->device, a->dtype, shape, a->n_dims - 1, error)
                        : NULL;
  if (tau == NULL || !factor (columns, tau, lane, error))
    return FALSE;
  seen = gtorch_cuda_swap (columns);
  if (!copy_corner (r, seen, r->shape[r->n_dims - 2], n, lane, error))
    return FALSE;
  if (q->shape[q->n_dims - 1] == n)
    return expand (columns, tau, lane, error) && gtorch_cuda_copy_here (q, seen, lane, error);
  /* a complete Q has more columns, one of a wide matrix fewer */
  wide = matrices_new (a, q->shape[q->n_dims - 1], m, error);
  if (wide == NULL)
    return FALSE;
  expanded = gtorch_cuda_swap (wide);
  return copy_corner (expanded, seen, m, k, lane, error) && expand (wide, tau, lane, error)
         && gtorch_cuda_copy_here (q, expanded, lane, error);
}

gboolean
gtorch_cuda_linalg_householder_product (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *a = call->inputs[0];
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) tau = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (a->numel == 0)
    return TRUE;
  columns = gtorch_cuda_transpose (a, lane, error);
  tau = columns != NULL ? gtorch_cuda_pack (call->inputs[1], a->dtype, lane, error) : NULL;
  if (tau == NULL || !expand (columns, tau, lane, error))
    return FALSE;
  result = gtorch_cuda_swap (columns);
  return gtorch_cuda_copy_here (call->outputs[0], result, lane, error);
}

gboolean
gtorch_cuda_ormqr (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *a = call->inputs[0], *other = call->inputs[2];
  const guint form = gtorch_cuda_solver_form (a->dtype);
  const gboolean is_complex = gtorch_dtype_kind (a->dtype) == GTORCH_KIND_COMPLEX;
  const gint side = call->attrs[0].i ? GTORCH_SOLVER_LEFT : GTORCH_SOLVER_RIGHT;
  const gint operation = !call->attrs[1].i ? GTORCH_SOLVER_PLAIN
                         : is_complex      ? GTORCH_SOLVER_ADJOINT
                                           : GTORCH_SOLVER_TRANSPOSE;
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) tau = NULL;
  g_autoptr (GTorchImpl) c = NULL;
  g_autoptr (GTorchImpl) info = NULL;
  g_autoptr (GTorchImpl) work = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  GTorchCudaSolver *solver;
  gboolean success;
  gint elements = 0, rows, others, m, k;
  gint64 i, count;

  if (other->numel == 0)
    return TRUE;
  k = call->inputs[1]->shape[call->inputs[1]->n_dims - 1];
  if (k == 0)
    return gtorch_cuda_copy_here (call->outputs[0], other, lane, error);
  m = a->shape[a->n_dims - 2];
  if ((columns = gtorch_cuda_transpose (a, lane, error)) == NULL
      || (c = gtorch_cuda_transpose (other, lane, error)) == NULL
      || (tau = gtorch_cuda_pack (call->inputs[1], a->dtype, lane, error)) == NULL
      || (info = gtorch_cuda_scratch (lane, sizeof (gint), error)) == NULL
      || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  rows = other->shape[other->n_dims - 2];
  others = other->shape[other->n_dims - 1];
  count = gtorch_cuda_count_matrices (other);
  success = gtorch_cuda_solver_check (gtorch_cuda_solver.mqr_size[form](solver->solver, side,
                                                                        operation, rows, others, k,
                                                                        gtorch_impl_data (columns),
                                                                        m, gtorch_impl_data (tau),
                                                                        gtorch_impl_data (c), rows,
                                                                        &elements),
                                      "cusolverDnXormqr_bufferSize", error)
            && (work = gtorch_cuda_scratch (lane, MAX (elements, 1) * gtorch_dtype_size (a->dtype),
                                            error))
                   != NULL;
  for (i = 0; success && i < count; i++)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver.mqr[form](solver->solver, side, operation,
                                                               rows, others, k, matrix (columns, i),
                                                               m, row (tau, i), matrix (c, i), rows,
                                                               gtorch_impl_data (work), elements,
                                                               gtorch_impl_data (info)),
                                  "cusolverDnXormqr", error);
  gtorch_cuda_solver_end (solver);
  if (!success)
    return FALSE;
  result = gtorch_cuda_swap (c);
  return gtorch_cuda_copy_here (call->outputs[0], result, lane, error);
}

/* --- Hermitian matrices --- */

gboolean
gtorch_cuda_eigh_parts (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *a = call->inputs[0], *values = call->outputs[0], *info = call->outputs[2];
  const gint uplo = call->attrs[0].i ? GTORCH_SOLVER_UPPER : GTORCH_SOLVER_LOWER;
  const gboolean vectors = call->attrs[1].i != 0;
  const gint type = gtorch_cuda_solver_type (a->dtype);
  const gint real = gtorch_cuda_solver_type (values->dtype);
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  GTorchCudaSolver *solver;
  GTorchCudaRoom room = { 0 };
  gboolean success;
  gint64 n, i, count;

  if (a->numel == 0)
    return gtorch_cuda_clear (info, lane, error);
  n = a->shape[a->n_dims - 1];
  columns = gtorch_cuda_transpose (a, lane, error);
  if (columns == NULL || (solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  count = gtorch_cuda_count_matrices (a);
  success =
      gtorch_cuda_solver_check (gtorch_cuda_solver.syevd_size (solver->solver, solver->params,
                                                               vectors, uplo, n, type,
                                                               gtorch_impl_data (columns), n, real,
                                                               gtorch_impl_data (values), type,
                                                               &room.device, &room.host),
                                "cusolverDnXsyevd_bufferSize", error)
      && gtorch_cuda_room_init (&room, lane, error);
  for (i = 0; success && i < count; i++)
    success =
        gtorch_cuda_solver_check (gtorch_cuda_solver.syevd (solver->solver, solver->params, vectors,
                                                            uplo, n, type, matrix (columns, i), n,
                                                            real, row (values, i), type,
                                                            gtorch_cuda_room_data (&room),
                                                            room.device, room.on_host, room.host,
                                                            (gint *) gtorch_impl_data (info) + i),
                                  "cusolverDnXsyevd", error);
  gtorch_cuda_solver_end (solver);
  if (!gtorch_cuda_room_clear (&room, success, lane, error))
    return FALSE;
  result = gtorch_cuda_swap (columns);
  return !vectors || gtorch_cuda_copy_here (call->outputs[1], result, lane, error);
}

/* --- singular values --- */

/* cuSOLVER wants at least as many rows as columns. A contiguous wide matrix is, column by column, its tall
 * transpose V* S U^T, whose left vectors are Vh row by row, and the right ones U; a tall one is
 * transposed. */
gboolean
gtorch_cuda_svd_parts (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *a = call->inputs[0], *u = call->outputs[0], *values = call->outputs[1];
  GTorchImpl *vh = call->outputs[2], *info = call->outputs[3];
  const gboolean full = call->attrs[0].i != 0, vectors = call->attrs[1].i != 0;
  const gint type = gtorch_cuda_solver_type (a->dtype);
  const gint real = gtorch_cuda_solver_type (values->dtype);
  const signed char job = !vectors ? 'N' : full ? 'A' : 'S';
  g_autoptr (GTorchImpl) copy = NULL;
  g_autoptr (GTorchImpl) left_columns = NULL;
  g_autoptr (GTorchImpl) right_columns = NULL;
  g_autoptr (GTorchImpl) seen = NULL;
  g_autoptr (GTorchImpl) other = NULL;
  GTorchImpl *left, *right;
  GTorchCudaSolver *solver;
  GTorchCudaRoom room = { 0 };
  gboolean success, is_tall;
  gint64 m, n, rows, columns, i, count;

  if (a->numel == 0)
    return gtorch_cuda_clear (info, lane, error);
  m = a->shape[a->n_dims - 2];
  n = a->shape[a->n_dims - 1];
  is_tall = m > n;
  rows = MAX (m, n);
  columns = MIN (m, n);
  if (is_tall)
    copy = gtorch_cuda_transpose (a, lane, error);
  else
    {
      copy = gtorch_impl_new (call->device, a->dtype, a->shape, a->n_dims, error);
      if (copy != NULL && !gtorch_cuda_copy_here (copy, a, lane, error))
        return FALSE;
    }
  if (copy == NULL)
    return FALSE;
  left = vh;
  right = u;
  if (is_tall && vectors)
    {
      left = left_columns = matrices_new (a, full ? m : n, m, error);
      right = right_columns = left != NULL ? matrices_new (a, n, n, error) : NULL;
      if (right == NULL)
        return FALSE;
    }
  if ((solver = gtorch_cuda_solver_begin (lane, error)) == NULL)
    return FALSE;
  count = gtorch_cuda_count_matrices (a);
  success =
      gtorch_cuda_solver_check (gtorch_cuda_solver.gesvd_size (solver->solver, solver->params, job,
                                                               job, rows, columns, type,
                                                               gtorch_impl_data (copy), rows, real,
                                                               gtorch_impl_data (values), type,
                                                               gtorch_impl_data (left), rows, type,
                                                               gtorch_impl_data (right), columns,
                                                               type, &room.device, &room.host),
                                "cusolverDnXgesvd_bufferSize", error)
      && gtorch_cuda_room_init (&room, lane, error);
  for (i = 0; success && i < count; i++)
    success = gtorch_cuda_solver_check (gtorch_cuda_solver
                                            .gesvd (solver->solver, solver->params, job, job, rows,
                                                    columns, type, matrix (copy, i), rows, real,
                                                    row (values, i), type,
                                                    vectors ? matrix (left, i) : NULL, rows, type,
                                                    vectors ? matrix (right, i) : NULL, columns,
                                                    type, gtorch_cuda_room_data (&room),
                                                    room.device, room.on_host, room.host,
                                                    (gint *) gtorch_impl_data (info) + i),
                                        "cusolverDnXgesvd", error);
  gtorch_cuda_solver_end (solver);
  if (!gtorch_cuda_room_clear (&room, success, lane, error))
    return FALSE;
  if (!is_tall || !vectors)
    return TRUE;
  seen = gtorch_cuda_swap (left);
  other = gtorch_cuda_swap (right);
  return gtorch_cuda_copy_here (u, seen, lane, error)
         && gtorch_cuda_copy_here (vh, other, lane, error);
}
