/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The public factorizations of matrices. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "device/gtorch-scratch-private.h"
#include "ops/gtorch-linalg-private.h"
#include "ops/gtorch-host-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* --- what the operations share --- */

void
gtorch_matrices_fail (GError **error, const gchar *op, GTorchError code, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, GTORCH_ERROR, code, "%s: %s", op, text);
}

gboolean
gtorch_matrices_check_square (const gchar *op, const GTorchImpl *self, GError **error)
{
  if (self->n_dims >= 2 && self->shape[self->n_dims - 1] == self->shape[self->n_dims - 2])
    return TRUE;
  gtorch_matrices_fail (error, op, GTORCH_ERROR_SHAPE,
                        _ ("shape %s must be that of square matrices"),
                        gtorch_impl_shape_str (self));
  return FALSE;
}

gboolean
gtorch_matrices_check_info (const gchar *op, GTorchImpl *info, const gchar *why, GError **error)
{
  g_autoptr (GTorchImpl) host = gtorch_impl_to_host (op, info, error);
  g_autofree gint64 *numbers = NULL;
  g_autofree gchar *text = NULL;
  gint64 at[GTORCH_MAX_DIMS] = { 0 };
  gint64 i, rest;
  guint d;

  if (host == NULL)
    return FALSE;
  numbers = gtorch_scratch_new (info->numel, sizeof (gint64), error);
  if (numbers == NULL)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  gtorch_impl_read (host, GTORCH_DTYPE_INT64, numbers);
  for (i = 0; i < info->numel && numbers[i] == 0; i++)
    ;
  if (i == info->numel)
    return TRUE;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  text = g_strdup_printf (why, (gint) numbers[i]);
#pragma GCC diagnostic pop
  for (d = info->n_dims, rest = i; d-- > 0; rest /= info->shape[d])
    at[d] = rest % info->shape[d];
  if (info->n_dims == 0)
    gtorch_matrices_fail (error, op, GTORCH_ERROR_INVALID, _ ("the matrix is %s"), text);
  else
    gtorch_matrices_fail (error, op, GTORCH_ERROR_INVALID,
                          _ ("the matrix at %s of the batch is %s"),
                          gtorch_shape_str (at, info->n_dims), text);
  return FALSE;
}

GTorchImpl *
gtorch_matrices_expand (GTorchFormula *formula, GTorchImpl *x, guint n_own, const GTorchImpl *like)
{
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_batch, i;

  if (formula->failed)
    return NULL;
  n_batch = like->n_dims - 2;
  memcpy (shape, like->shape, n_batch * sizeof (gint64));
  for (i = 0; i < n_own; i++)
    shape[n_batch + i] = x->shape[x->n_dims - n_own + i];
  if (gtorch_same_shape (shape, n_batch + n_own, x->shape, x->n_dims))
    return x;
  return GTORCH_FORMULA_OP (formula, expand, x, shape, n_batch + n_own);
}

gboolean
gtorch_matrices_broadcast (GTorchFormula *formula, const gchar *op, GTorchImpl **a, GTorchImpl **b)
{
  GTorchImpl like = { 0 };
  gint64 shape[GTORCH_MAX_DIMS + 2];
  guint n;

  if (formula->failed)
    return FALSE;
  if (!gtorch_broadcast_shapes (op, (*a)->shape, (*a)->n_dims - 2, (*b)->shape, (*b)->n_dims - 2,
                                shape, &n, formula->error))
    {
      formula->failed = TRUE;
      return FALSE;
    }
  like.shape = shape;
  like.n_dims = n + 2;
  *a = gtorch_matrices_expand (formula, *a, 2, &like);
  *b = gtorch_matrices_expand (formula, *b, 2, &like);
  return !formula->failed;
}

GTorchImpl *
gtorch_matrices_take (GTorchFormula *formula, const gchar *op, GTorchImpl *result)
{
  if (formula->failed)
    gtorch_error_set_op (formula->error, op);
  return gtorch_formula_take (formula, result);
}

gboolean
gtorch_matrices_check (const gchar *op, const GTorchImpl *self, GError **error)
{
  if (self->n_dims >= 2)
    return TRUE;
  gtorch_matrices_fail (error, op, GTORCH_ERROR_SHAPE, _ ("shape %s must be that of matrices"),
                        gtorch_impl_shape_str (self));
  return FALSE;
}

/* --- Cholesky --- */

static GTorchImpl *
cholesky (const gchar *op, GTorchImpl *self, gboolean upper, gboolean checks, GTorchImpl **info,
          GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *l = NULL, *i = NULL;

  if (!gtorch_op_cholesky_parts (self, upper, &l, &i, error))
    {
      gtorch_error_set_op (error, op);
      return NULL;
    }
  gtorch_formula_keep (&f, l);
  gtorch_formula_keep (&f, i);
  if (checks
      && !gtorch_matrices_check_info (op, i,
                                      _ ("not positive-definite: the leading minor of order %d is "
                                         "not positive"),
                                      error))
    return NULL;
  l = upper ? OP (triu, l, 0) : OP (tril, l, 0);
  if (info != NULL && !f.failed)
    *info = gtorch_impl_ref (i);
  return gtorch_matrices_take (&f, op, l);
}

gboolean
gtorch_op_linalg_cholesky_ex (GTorchImpl *self, gboolean upper, gboolean check_errors,
                              GTorchImpl **l, GTorchImpl **info, GError **error)
{
  g_autoptr (GTorchImpl) its_info = NULL;
  GTorchImpl *result = cholesky ("linalg_cholesky_ex", self, upper, check_errors, &its_info, error);

  if (result == NULL)
    return FALSE;
  gtorch_matrices_give (l, result);
  gtorch_matrices_give (info, g_steal_pointer (&its_info));
  return TRUE;
}

GTorchImpl *
gtorch_op_linalg_cholesky (GTorchImpl *self, gboolean upper, GError **error)
{
  return cholesky ("linalg_cholesky", self, upper, TRUE, NULL, error);
}

GTorchImpl *
gtorch_op_cholesky (GTorchImpl *self, gboolean upper, GError **error)
{
  return cholesky ("cholesky", self, upper, TRUE, NULL, error);
}

static GTorchImpl *
cholesky_solve (const gchar *op, GTorchImpl *b, GTorchImpl *factor, gboolean upper, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *adjoint, *x;

  if (!gtorch_matrices_check_square (op, factor, error) || !gtorch_matrices_check (op, b, error)
      || !gtorch_matrices_broadcast (&f, op, &factor, &b))
    return NULL;
  adjoint = gtorch_formula_adjoint (&f, factor);
  x = OP (triangle_solve, upper ? adjoint : factor, b, FALSE, TRUE, FALSE);
  x = OP (triangle_solve, upper ? factor : adjoint, x, TRUE, TRUE, FALSE);
  return gtorch_matrices_take (&f, op, x);
}

GTorchImpl *
gtorch_op_cholesky_solve (GTorchImpl *self, GTorchImpl *input2, gboolean upper, GError **error)
{
  return cholesky_solve ("cholesky_solve", self, input2, upper, error);
}

GTorchImpl *
gtorch_op_cholesky_inverse (GTorchImpl *self, gboolean upper, GError **error)
{
  g_autoptr (GTorchImpl) one = NULL;
  gint64 n;

  if (!gtorch_matrices_check_square ("cholesky_inverse", self, error))
    return NULL;
  n = self->shape[self->n_dims - 1];
  one = gtorch_op_eye (n, n, self->dtype, gtorch_impl_device (self), error);
  if (one == NULL)
    {
      gtorch_error_set_op (error, "cholesky_inverse");
      return NULL;
    }
  return cholesky_solve ("cholesky_inverse", one, self, upper, error);
}

/* --- LU --- */

static gboolean
lu_factor (const gchar *op, GTorchImpl *a, gboolean pivot, gboolean checks, GTorchImpl **lu,
           GTorchImpl **pivots, GTorchImpl **info, GError **error)
{
  g_autoptr (GTorchImpl) its_lu = NULL;
  g_autoptr (GTorchImpl) its_pivots = NULL;
  g_autoptr (GTorchImpl) its_info = NULL;

  if (!gtorch_op_lu_parts (a, pivot, &its_lu, &its_pivots, &its_info, error))
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  if (checks
      && !gtorch_matrices_check_info (op, its_info,
                                      _ ("singular: diagonal element %d of its factor U is 0"),
                                      error))
    return FALSE;
  gtorch_matrices_give (lu, g_steal_pointer (&its_lu));
  gtorch_matrices_give (pivots, g_steal_pointer (&its_pivots));
  gtorch_matrices_give (info, g_steal_pointer (&its_info));
  return TRUE;
}

gboolean
gtorch_op_linalg_lu_factor_ex (GTorchImpl *a, gboolean pivot, gboolean check_errors,
                               GTorchImpl **lu, GTorchImpl **pivots, GTorchImpl **info,
                               GError **error)
{
  return lu_factor ("linalg_lu_factor_ex", a, pivot, check_errors, lu, pivots, info, error);
}

gboolean
gtorch_op_linalg_lu_factor (GTorchImpl *a, gboolean pivot, GTorchImpl **lu, GTorchImpl **pivots,
                            GError **error)
{
  return lu_factor ("linalg_lu_factor", a, pivot, TRUE, lu, pivots, NULL, error);
}

/* Returns the permutation matrices of the pivots of matrices with m rows. */
static GTorchImpl *
permutation (GTorchFormula *formula, GTorchImpl *pivots, gint64 m, guint dtype)
{
  GTorchImpl *order, *rows, *is_one;

  order = GTORCH_FORMULA_OP (formula, pivot_order, pivots, m);
  order = GTORCH_FORMULA_OP (formula, unsqueeze, order, -2);
  rows = GTORCH_FORMULA_OP (formula, arange_int, 0, m, 1, GTORCH_DTYPE_INT64,
                            gtorch_impl_device (pivots));
  rows = GTORCH_FORMULA_OP (formula, unsqueeze, rows, -1);
  is_one = GTORCH_FORMULA_OP (formula, eq, order, rows);
  return GTORCH_FORMULA_OP (formula, to_dtype, is_one, dtype);
}

/* Returns L, whose diagonal is 1, and U in *u. */
static GTorchImpl *
unpack (GTorchFormula *formula, GTorchImpl *lu, GTorchImpl **u)
{
  const gint64 m = lu->shape[lu->n_dims - 2], n = lu->shape[lu->n_dims - 1];
  GTorchImpl *l = lu, *one;

  *u = lu;
  if (m < n)
    l = GTORCH_FORMULA_OP (formula, slice, lu, -1, 0, m, 1);
  else if (m > n)
    *u = GTORCH_FORMULA_OP (formula, slice, lu, -2, 0, n, 1);
  *u = GTORCH_FORMULA_OP (formula, triu, *u, 0);
  l = GTORCH_FORMULA_OP (formula, tril, l, -1);
  one = GTORCH_FORMULA_OP (formula, eye, m, MIN (m, n), lu->dtype, gtorch_impl_device (lu));
  return GTORCH_FORMULA_OP (formula, add, l, one, 1);
}

/* Returns whether the pivots are as many as the diagonal of each matrix has elements, and of integers. */
static gboolean
check_pivots (const gchar *op, const GTorchImpl *lu, const GTorchImpl *pivots, GError **error)
{
  const guint n_batch = lu->n_dims - 2;
  const gint64 k = MIN (lu->shape[n_batch], lu->shape[n_batch + 1]);

  if (gtorch_dtype_kind (pivots->dtype) != GTORCH_KIND_INT)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_DTYPE, _ ("pivots must be integers, not %s"),
                            gtorch_dtype_get_name (pivots->dtype));
      return FALSE;
    }
  if (pivots->n_dims == n_batch + 1 && pivots->shape[n_batch] == k
      && gtorch_same_shape (pivots->shape, n_batch, lu->shape, n_batch))
    return TRUE;
  gtorch_matrices_fail (error, op, GTORCH_ERROR_SHAPE,
                        _ ("pivots of shape %s do not fit matrices of shape %s, which have "
                           "%" PRId64 " pivots each"),
                        gtorch_shape_str (pivots->shape, pivots->n_dims),
                        gtorch_impl_shape_str (lu), k);
  return FALSE;
}

static gboolean
lu_unpack (const gchar *op, GTorchImpl *lu, GTorchImpl *pivots, gboolean has_data,
           gboolean has_pivots, GTorchImpl **p, GTorchImpl **l, GTorchImpl **u, GError **error)
{
  static const gint64 nothing = 0;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *its_l, *its_u, *its_p;

  if (!gtorch_matrices_check (op, lu, error))
    return FALSE;
  if (!check_pivots (op, lu, pivots, error))
    return FALSE;
  if (has_data)
    its_l = unpack (&f, lu, &its_u);
  else
    its_l = its_u = OP (new_zeros, lu, &nothing, 1, GTORCH_DTYPE_NONE);
  its_p = has_pivots ? permutation (&f, pivots, lu->shape[lu->n_dims - 2], lu->dtype)
                     : OP (new_zeros, lu, &nothing, 1, GTORCH_DTYPE_NONE);
  if (f.failed)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  gtorch_matrices_give (p, gtorch_impl_ref (its_p));
  gtorch_matrices_give (l, gtorch_impl_ref (its_l));
  gtorch_matrices_give (u, gtorch_impl_ref (its_u));
  return TRUE;
}

gboolean
gtorch_op_lu_unpack (GTorchImpl *lu, GTorchImpl *pivots, gboolean unpack_data,
                     gboolean unpack_pivots, GTorchImpl **p, GTorchImpl **l, GTorchImpl **u,
                     GError **error)
{
  return lu_unpack ("lu_unpack", lu, pivots, unpack_data, unpack_pivots, p, l, u, error);
}

gboolean
gtorch_op_linalg_lu (GTorchImpl *a, gboolean pivot, GTorchImpl **p, GTorchImpl **l, GTorchImpl **u,
                     GError **error)
{
  g_autoptr (GTorchImpl) lu = NULL;
  g_autoptr (GTorchImpl) pivots = NULL;

  return lu_factor ("linalg_lu", a, pivot, FALSE, &lu, &pivots, NULL, error)
         && lu_unpack ("linalg_lu", lu, pivots, TRUE, TRUE, p, l, u, error);
}

/* X A = B is the adjoint of A^H X^H = B^H, and X A^H = B that of A X^H = B^H. */
GTorchImpl *
gtorch_op_linalg_lu_solve (GTorchImpl *lu, GTorchImpl *pivots, GTorchImpl *b, gboolean left,
                           gboolean adjoint, GError **error)
{
  static const gchar *op = "linalg_lu_solve";
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *x, *order, *places = NULL, *index;

  if (!gtorch_matrices_check_square (op, lu, error) || !gtorch_matrices_check (op, b, error))
    return NULL;
  if (!check_pivots (op, lu, pivots, error))
    return NULL;
  x = left ? b : gtorch_formula_adjoint (&f, b);
  adjoint = left ? adjoint : !adjoint;
  if (!gtorch_matrices_broadcast (&f, op, &lu, &x))
    return gtorch_matrices_take (&f, op, NULL);
  if (x->shape[x->n_dims - 2] != lu->shape[lu->n_dims - 1])
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_SHAPE, _ ("shapes %s and %s do not match"),
                            gtorch_shape_str (lu->shape, lu->n_dims), gtorch_impl_shape_str (b));
      return NULL;
    }
  order = OP (pivot_order, pivots, lu->shape[lu->n_dims - 1]);
  if (!f.failed && adjoint)
    {
      f.failed = !gtorch_op_sort (order, -1, FALSE, TRUE, NULL, &places, error);
      order = gtorch_formula_keep (&f, places);
    }
  index = OP (unsqueeze, order, -1);
  index = OP (expand, index, x->shape, x->n_dims);
  if (!adjoint)
    {
      x = OP (gather, x, -2, index);
      x = OP (triangle_solve, lu, x, FALSE, TRUE, TRUE);
      x = OP (triangle_solve, lu, x, TRUE, TRUE, FALSE);
    }
  else
    {
      lu = gtorch_formula_adjoint (&f, lu);
      x = OP (triangle_solve, lu, x, FALSE, TRUE, FALSE);
      x = OP (triangle_solve, lu, x, TRUE, TRUE, TRUE);
      x = OP (gather, x, -2, index);
    }
  if (!left)
    x = gtorch_formula_adjoint (&f, x);
  return gtorch_matrices_take (&f, op, x);
}

/* --- triangles --- */

static GTorchImpl *
solve_triangular (const gchar *op, GTorchImpl *a, GTorchImpl *b, gboolean upper, gboolean left,
                  gboolean unitriangular, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);

  if (!gtorch_matrices_check_square (op, a, error) || !gtorch_matrices_check (op, b, error)
      || !gtorch_matrices_broadcast (&f, op, &a, &b))
    return NULL;
  return gtorch_matrices_take (&f, op, OP (triangle_solve, a, b, upper, left, unitriangular));
}

GTorchImpl *
gtorch_op_linalg_solve_triangular (GTorchImpl *self, GTorchImpl *b, gboolean upper, gboolean left,
                                   gboolean unitriangular, GError **error)
{
  return solve_triangular ("linalg_solve_triangular", self, b, upper, left, unitriangular, error);
}

gboolean
gtorch_op_triangular_solve (GTorchImpl *self, GTorchImpl *a, gboolean upper, gboolean transpose,
                            gboolean unitriangular, GTorchImpl **solution, GTorchImpl **copy,
                            GError **error)
{
  static const gchar *op = "triangular_solve";
  g_autoptr (GTorchImpl) matrix = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) expanded = NULL;
  g_autoptr (GTorchImpl) cloned = NULL;
  gint64 shape[GTORCH_MAX_DIMS];

  if (!gtorch_matrices_check_square (op, a, error))
    return FALSE;
  matrix = transpose ? gtorch_op_swap_matrix (a, error) : gtorch_impl_ref (a);
  x = matrix != NULL
          ? solve_triangular (op, matrix, self, upper != transpose, TRUE, unitriangular, error)
          : NULL;
  if (x != NULL)
    {
      memcpy (shape, x->shape, x->n_dims * sizeof *shape);
      shape[x->n_dims - 1] = shape[x->n_dims - 2];
      expanded = gtorch_op_expand (a, shape, x->n_dims, error);
    }
  cloned = expanded != NULL ? gtorch_op_clone (expanded, error) : NULL;
  if (cloned == NULL)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  gtorch_matrices_give (solution, g_steal_pointer (&x));
  gtorch_matrices_give (copy, g_steal_pointer (&cloned));
  return TRUE;
}
