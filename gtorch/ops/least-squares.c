/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Least squares, pseudoinverses, ranks, conditions, and approximations by random projections. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "base/gtorch-none-private.h"
#include "device/gtorch-choice-private.h"
#include "device/gtorch-scratch-private.h"
#include "dispatch/gtorch-constants-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "ops/gtorch-host-private.h"
#include "ops/gtorch-linalg-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* --- which singular values count --- */

typedef struct
{
  gdouble atol, rtol;
} Tolerance;

/* Replaces what is not given. */
static gboolean
tolerance_init (Tolerance *self, const gchar *op, const GTorchImpl *a, gdouble atol, gdouble rtol,
                GError **error)
{
  const guint n = a->n_dims;

  if (!gtorch_matrices_check (op, a, error))
    return FALSE;
  if (!gtorch_dtype_infos[a->dtype].eps)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_DTYPE, _ ("%s is not supported"),
                            gtorch_dtype_get_name (a->dtype));
      return FALSE;
    }
  if (isnan (atol) || isnan (rtol) || atol < 0 || rtol < 0)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_INVALID,
                            _ ("a tolerance is %g: tolerances must not be negative"),
                            isnan (atol) || atol < 0 ? atol : rtol);
      return FALSE;
    }
  self->atol = gtorch_is_none_double (atol) ? 0 : atol;
  self->rtol = !gtorch_is_none_double (rtol) ? rtol
               : !gtorch_is_none_double (atol)
                   ? 0
                   : gtorch_dtype_infos[gtorch_dtype_infos[a->dtype].real].eps
                         * (gdouble) MAX (a->shape[n - 1], a->shape[n - 2]);
  return TRUE;
}

/* Returns where the values count, which are not negative; their last dimension is not empty. */
static GTorchImpl *
counts (GTorchFormula *formula, const Tolerance *tolerance, GTorchImpl *values)
{
  static const gint64 last = -1;
  GTorchImpl *greatest = GTORCH_FORMULA_OP (formula, amax, values, &last, 1, TRUE), *factor, *limit;

  factor = gtorch_formula_number (formula, tolerance->rtol);
  limit = GTORCH_FORMULA_OP (formula, mul, greatest, factor);
  factor = gtorch_formula_number (formula, tolerance->atol);
  limit = GTORCH_FORMULA_OP (formula, maximum, limit, factor);
  return GTORCH_FORMULA_OP (formula, gt, values, limit);
}

/* Returns the reciprocals of the values that count, and 0 for the others. */
static GTorchImpl *
invert (GTorchFormula *formula, const Tolerance *tolerance, GTorchImpl *sizes, GTorchImpl *values,
        GTorchImpl **which)
{
  GTorchImpl *zero, *one, *divisor, *quotient;

  *which = counts (formula, tolerance, sizes);
  one = gtorch_formula_number (formula, 1);
  zero = gtorch_formula_number (formula, 0);
  divisor = GTORCH_FORMULA_OP (formula, where, *which, values, one);
  quotient = GTORCH_FORMULA_OP (formula, reciprocal, divisor);
  return GTORCH_FORMULA_OP (formula, where, *which, quotient, zero);
}

/* --- pseudoinverses --- */

/* Returns V diag (1 / S) U^H, not recorded, and in *values the singular values or eigenvalues, and in
 * *which the ones that count. */
static GTorchImpl *
by_singular_values (GTorchFormula *formula, const gchar *op, GTorchImpl *a, gdouble atol,
                    gdouble rtol, gboolean hermitian, GTorchImpl **values, GTorchImpl **which)
{
  GTorchImpl *s, *u = NULL, *vh = NULL, *sizes;
  Tolerance tolerance;

  if (!tolerance_init (&tolerance, op, a, atol, rtol, formula->error))
    {
      formula->failed = TRUE;
      return NULL;
    }
  if (hermitian)
    {
      s = gtorch_matrices_eigh (formula, op, a, FALSE, &u);
      sizes = GTORCH_FORMULA_OP (formula, abs, s);
      vh = gtorch_formula_adjoint (formula, u);
    }
  else
    s = sizes = gtorch_matrices_svd (formula, op, a, FALSE, &u, &vh);
  *values = s;
  s = invert (formula, &tolerance, sizes, s, which);
  s = GTORCH_FORMULA_OP (formula, unsqueeze, s, -2);
  vh = gtorch_formula_adjoint (formula, vh);
  vh = GTORCH_FORMULA_OP (formula, mul, vh, s);
  u = gtorch_formula_adjoint (formula, u);
  return GTORCH_FORMULA_OP (formula, matmul, vh, u);
}

/* As by_singular_values (), recorded. */
static GTorchImpl *
invert_matrix (GTorchFormula *formula, const gchar *op, GTorchImpl *a, gdouble atol, gdouble rtol,
               gboolean hermitian, GTorchImpl **values, GTorchImpl **which)
{
  GTorchImpl *adjoint = gtorch_formula_adjoint (formula, a), *result;
  GTorchChange mode;

  gtorch_change_to_constants (&mode);
  result = by_singular_values (formula, op, a, atol, rtol, hermitian, values, which);
  gtorch_change_end (&mode);
  return GTORCH_FORMULA_OP (formula, pinv_of, result, adjoint);
}

static GTorchImpl *
pinv (const gchar *op, GTorchImpl *a, gdouble atol, gdouble rtol, gboolean hermitian,
      GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *values = NULL, *which = NULL, *result;

  if (!gtorch_matrices_check (op, a, error)
      || (hermitian && !gtorch_matrices_check_square (op, a, error)))
    return NULL;
  if (a->numel == 0)
    {
      result = gtorch_formula_adjoint (&f, a);
      return gtorch_matrices_take (&f, op, OP (clone, result));
    }
  return gtorch_matrices_take (&f, op,
                               invert_matrix (&f, op, a, atol, rtol, hermitian, &values, &which));
}

GTorchImpl *
gtorch_op_linalg_pinv (GTorchImpl *a, gdouble atol, gdouble rtol, gboolean hermitian,
                       GError **error)
{
  return pinv ("linalg_pinv", a, atol, rtol, hermitian, error);
}

GTorchImpl *
gtorch_op_pinverse (GTorchImpl *self, gdouble rcond, GError **error)
{
  return pinv ("pinverse", self, GTORCH_NONE_DOUBLE, rcond, FALSE, error);
}

/* --- ranks and conditions --- */

/* Returns a new shape without the last two dimensions. */
static GTorchImpl *
zeros_of_batch (GTorchFormula *formula, GTorchImpl *a, guint dtype)
{
  return GTORCH_FORMULA_OP (formula, new_zeros, a, a->shape, a->n_dims - 2, dtype);
}

GTorchImpl *
gtorch_op_linalg_matrix_rank (GTorchImpl *a, gdouble atol, gdouble rtol, gboolean hermitian,
                              GError **error)
{
  static const gchar *op = "linalg_matrix_rank";
  static const gint64 last = -1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *s, *result;
  Tolerance tolerance;
  GTorchChange mode;

  if (!tolerance_init (&tolerance, op, a, atol, rtol, error)
      || (hermitian && !gtorch_matrices_check_square (op, a, error)))
    return NULL;
  gtorch_change_to_constants (&mode);
  if (a->numel == 0)
    result = zeros_of_batch (&f, a, GTORCH_DTYPE_INT64);
  else
    {
      s = hermitian ? gtorch_matrices_eigh (&f, op, a, FALSE, NULL)
                    : gtorch_matrices_svd (&f, op, a, FALSE, NULL, NULL);
      s = OP (abs, s);
      s = counts (&f, &tolerance, s);
      result = OP (sum, s, &last, 1, FALSE, GTORCH_DTYPE_INT64);
    }
  gtorch_change_end (&mode);
  return gtorch_matrices_take (&f, op, result);
}

/* Of singular matrices, inverses have no elements that count. */
GTorchImpl *
gtorch_op_linalg_cond (GTorchImpl *a, gdouble p, GError **error)
{
  static const gchar *op = "linalg_cond";
  static const gint64 both[2] = { -2, -1 };
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *s, *least, *greatest, *norm, *inverse = NULL, *info = NULL, *zero, *is_regular,
                                           *infinity;
  gint64 k;

  if (!gtorch_matrices_check (op, a, error))
    return NULL;
  if (gtorch_is_none_double (p) || fabs (p) == 2)
    {
      s = gtorch_matrices_svd (&f, op, a, FALSE, NULL, NULL);
      if (f.failed)
        return gtorch_matrices_take (&f, op, NULL);
      k = s->shape[s->n_dims - 1];
      if (k == 0)
        return gtorch_matrices_take (&f, op, zeros_of_batch (&f, a, s->dtype));
      greatest = OP (select, s, -1, 0);
      least = OP (select, s, -1, k - 1);
      return gtorch_matrices_take (&f, op,
                                   p < 0 ? OP (div, least, greatest) : OP (div, greatest, least));
    }
  if (fabs (p) != 1 && !isinf (p))
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_INVALID,
                            _ ("p is %g, it must be 1, -1, 2, -2, inf or -inf"), p);
      return NULL;
    }
  if (!gtorch_matrices_check_square (op, a, error))
    return NULL;
  if (a->numel == 0)
    return gtorch_matrices_take (&f, op, zeros_of_batch (&f, a, gtorch_dtype_infos[a->dtype].real));
  if (!gtorch_op_linalg_inv_ex (a, FALSE, &inverse, &info, error))
    f.failed = TRUE;
  gtorch_formula_keep (&f, inverse);
  gtorch_formula_keep (&f, info);
  norm = OP (linalg_matrix_norm, a, p, both, 2, FALSE, GTORCH_DTYPE_NONE);
  inverse = OP (linalg_matrix_norm, inverse, p, both, 2, FALSE, GTORCH_DTYPE_NONE);
  norm = OP (mul, norm, inverse);
  zero = gtorch_formula_number (&f, 0);
  infinity = gtorch_formula_number (&f, INFINITY);
  is_regular = OP (eq, info, zero);
  return gtorch_matrices_take (&f, op, OP (where, is_regular, norm, infinity));
}

/* --- least squares --- */

/* For a tall matrix Q R the solution is R^-1 Q^H B; for a wide one with A^H = Q R it is Q R^-H B. */
static GTorchImpl *
solve_by_qr (GTorchFormula *formula, const gchar *op, GTorchImpl *a, GTorchImpl *b)
{
  const gboolean is_wide = a->shape[a->n_dims - 2] < a->shape[a->n_dims - 1];
  GTorchImpl *q, *r = NULL, *x;

  if (is_wide)
    a = gtorch_formula_adjoint (formula, a);
  q = gtorch_matrices_qr (formula, op, a, FALSE, &r);
  if (is_wide)
    {
      r = gtorch_formula_adjoint (formula, r);
      x = GTORCH_FORMULA_OP (formula, triangle_solve, r, b, FALSE, TRUE, FALSE);
      return GTORCH_FORMULA_OP (formula, matmul, q, x);
    }
  q = gtorch_formula_adjoint (formula, q);
  x = GTORCH_FORMULA_OP (formula, matmul, q, b);
  return GTORCH_FORMULA_OP (formula, triangle_solve, r, x, TRUE, TRUE, FALSE);
}

/* Tells whether all ranks are the number of columns; reads them on the host. */
static gboolean
are_full (GTorchFormula *formula, const gchar *op, GTorchImpl *rank, gint64 n)
{
  g_autoptr (GTorchImpl) host = NULL;
  g_autofree gint64 *numbers = NULL;
  gint64 i;

  if (formula->failed)
    return FALSE;
  host = gtorch_impl_to_host (op, rank, formula->error);
  numbers = host != NULL ? gtorch_scratch_new (rank->numel, sizeof (gint64), formula->error) : NULL;
  if (numbers == NULL)
    {
      formula->failed = TRUE;
      return FALSE;
    }
  gtorch_impl_read (host, GTORCH_DTYPE_INT64, numbers);
  for (i = 0; i < rank->numel && numbers[i] == n; i++)
    ;
  return i == rank->numel;
}

gboolean
gtorch_op_linalg_lstsq (GTorchImpl *a, GTorchImpl *b, gdouble rcond, GTorchLstsqDriver driver,
                        GTorchImpl **solution, GTorchImpl **residuals, GTorchImpl **rank,
                        GTorchImpl **singular_values, GError **error)
{
  static const gchar *op = "linalg_lstsq";
  static const gint64 nothing = 0, last = -1, rows = -2;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *x, *s = NULL, *its_rank = NULL, *which = NULL, *difference, *squares = NULL;
  GTorchImpl *p, *original = b;
  gboolean is_vector, is_full = TRUE;
  Tolerance tolerance;
  gint64 m, n;

  if (driver > GTORCH_LSTSQ_DRIVER_GELSS)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_INVALID, _ ("%u is no GTorchLstsqDriver"),
                            driver);
      return FALSE;
    }
  if (!tolerance_init (&tolerance, op, a, GTORCH_NONE_DOUBLE, rcond, error))
    return FALSE;
  is_vector = gtorch_matrices_has_vectors (a, b);
  if (is_vector)
    b = OP (unsqueeze, b, -1);
  m = a->shape[a->n_dims - 2];
  n = a->shape[a->n_dims - 1];
  if (f.failed)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  if (b->n_dims < 2 || b->shape[b->n_dims - 2] != m || b->dtype != a->dtype)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_SHAPE,
                            _ ("shapes %s and %s of %s and %s: there must be as many rows in both, "
                               "of one dtype"),
                            gtorch_shape_str (a->shape, a->n_dims),
                            gtorch_impl_shape_str (original), gtorch_dtype_get_name (a->dtype),
                            gtorch_dtype_get_name (original->dtype));
      return FALSE;
    }
  gtorch_matrices_broadcast (&f, op, &a, &b);
  if (f.failed)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  if (a->numel == 0 || driver == GTORCH_LSTSQ_DRIVER_GELS)
    x = a->numel == 0 ? NULL : solve_by_qr (&f, op, a, b);
  else
    {
      /* the gradient goes through the pseudoinverse, not through the singular vectors */
      p = invert_matrix (&f, op, a, GTORCH_NONE_DOUBLE, tolerance.rtol, FALSE, &s, &which);
      x = OP (matmul, p, b);
      its_rank = OP (sum, which, &last, 1, FALSE, GTORCH_DTYPE_INT64);
    }
  if (a->numel == 0)
    {
      GTorchImpl *swapped = OP (swap_matrix, a);

      x = OP (matmul, swapped, b);
      its_rank = zeros_of_batch (&f, a, GTORCH_DTYPE_INT64);
      is_full = n == 0;
      if (driver == GTORCH_LSTSQ_DRIVER_GELS)
        its_rank = NULL;
      else if (!f.failed && MIN (m, n) == 0)
        {
          gint64 shape[GTORCH_MAX_DIMS] = { 0 };

          memcpy (shape, a->shape, (a->n_dims - 2) * sizeof (gint64));
          s = OP (new_zeros, a, shape, a->n_dims - 1, gtorch_dtype_infos[a->dtype].real);
        }
    }
  if (m > n && driver != GTORCH_LSTSQ_DRIVER_GELSY && driver != GTORCH_LSTSQ_DRIVER_AUTOMATIC
      && (its_rank == NULL || are_full (&f, op, its_rank, n)) && is_full)
    {
      difference = OP (matmul, a, x);
      difference = OP (sub, difference, b, 1);
      difference = OP (abs, difference);
      difference = OP (square, difference);
      squares = OP (sum, difference, &rows, 1, FALSE, GTORCH_DTYPE_NONE);
    }
  if (squares == NULL)
    squares = OP (new_zeros, a, &nothing, 1, gtorch_dtype_infos[a->dtype].real);
  if (its_rank == NULL)
    its_rank = OP (new_zeros, a, &nothing, 1, GTORCH_DTYPE_INT64);
  if (s == NULL || driver == GTORCH_LSTSQ_DRIVER_GELSY || driver == GTORCH_LSTSQ_DRIVER_AUTOMATIC)
    s = OP (new_zeros, a, &nothing, 1, gtorch_dtype_infos[a->dtype].real);
  if (is_vector)
    x = OP (squeeze, x, &last, 1);
  if (f.failed)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  gtorch_matrices_give (solution, gtorch_impl_ref (x));
  gtorch_matrices_give (residuals, gtorch_impl_ref (squares));
  gtorch_matrices_give (rank, gtorch_impl_ref (its_rank));
  gtorch_matrices_give (singular_values, gtorch_impl_ref (s));
  return TRUE;
}

/* --- random projections --- */

/* Returns orthonormal columns that span about what those of A span. */
static GTorchImpl *
approximate_basis (GTorchFormula *formula, const gchar *op, GTorchImpl *a, gint64 q, gint64 niter)
{
  gint64 shape[2] = { a->shape[a->n_dims - 1], q }, i;
  GTorchImpl *adjoint = gtorch_formula_adjoint (formula, a), *x, *r = NULL;

  x = GTORCH_FORMULA_OP (formula, randn, shape, 2, gtorch_dtype_infos[a->dtype].real,
                         gtorch_impl_device (a), NULL);
  x = GTORCH_FORMULA_OP (formula, to_dtype, x, a->dtype);
  x = GTORCH_FORMULA_OP (formula, matmul, a, x);
  x = gtorch_matrices_qr (formula, op, x, FALSE, &r);
  for (i = 0; i < niter && !formula->failed; i++)
    {
      /* the steps of one iteration, whose results are not kept */
      g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (formula->error);
      GTorchImpl *y = OP (matmul, adjoint, x);

      y = gtorch_matrices_qr (&f, op, y, FALSE, &r);
      y = OP (matmul, a, y);
      y = gtorch_matrices_qr (&f, op, y, FALSE, &r);
      x = gtorch_formula_keep (formula, gtorch_formula_take (&f, y));
    }
  return x;
}

static gboolean
low_rank (const gchar *op, GTorchImpl *a, gint64 q, gint64 niter, GTorchImpl *mean, GTorchImpl **u,
          GTorchImpl **s, GTorchImpl **v, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *basis, *b, *its_u = NULL, *its_s, *vh = NULL, *its_v;
  gboolean is_wide;
  gint64 m, n;

  if (!gtorch_matrices_check (op, a, error))
    return FALSE;
  m = a->shape[a->n_dims - 2];
  n = a->shape[a->n_dims - 1];
  if (q < 0 || q > MIN (m, n) || niter < 0 || niter > 64)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_INVALID,
                            _ ("q is %" PRId64 " and niter %" PRId64
                               " for shape %s: q must be from 0 to the number of rows and "
                               "columns, niter from 0 to 64"),
                            q, niter, gtorch_impl_shape_str (a));
      return FALSE;
    }
  if (mean != NULL)
    a = OP (sub, a, mean, 1);
  is_wide = m < n;
  if (is_wide)
    a = gtorch_formula_adjoint (&f, a);
  basis = f.failed ? NULL : approximate_basis (&f, op, a, q, niter);
  b = gtorch_formula_adjoint (&f, basis);
  b = OP (matmul, b, a);
  its_s = gtorch_matrices_svd (&f, op, b, FALSE, &its_u, &vh);
  its_u = OP (matmul, basis, its_u);
  its_v = gtorch_formula_adjoint (&f, vh);
  if (f.failed)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  gtorch_matrices_give (u, gtorch_impl_ref (is_wide ? its_v : its_u));
  gtorch_matrices_give (s, gtorch_impl_ref (its_s));
  gtorch_matrices_give (v, gtorch_impl_ref (is_wide ? its_u : its_v));
  return TRUE;
}

gboolean
gtorch_op_svd_lowrank (GTorchImpl *a, gint64 q, gint64 niter, GTorchImpl *mean, GTorchImpl **u,
                       GTorchImpl **s, GTorchImpl **v, GError **error)
{
  return low_rank ("svd_lowrank", a, q, niter, mean, u, s, v, error);
}

gboolean
gtorch_op_pca_lowrank (GTorchImpl *a, gint64 q, gboolean center, gint64 niter, GTorchImpl **u,
                       GTorchImpl **s, GTorchImpl **v, GError **error)
{
  static const gchar *op = "pca_lowrank";
  static const gint64 rows = -2;
  g_autoptr (GTorchImpl) mean = NULL;

  if (!gtorch_matrices_check (op, a, error))
    return FALSE;
  if (q == GTORCH_NONE)
    q = MIN (6, MIN (a->shape[a->n_dims - 2], a->shape[a->n_dims - 1]));
  if (center && (mean = gtorch_op_mean (a, &rows, 1, TRUE, GTORCH_DTYPE_NONE, error)) == NULL)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  return low_rank (op, a, q, niter, mean, u, s, v, error);
}
