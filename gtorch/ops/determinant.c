/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Determinants, by the factors P L U of a matrix.
 *
 * The derivative of det A by an element of A is its cofactor: the gradient is adj (A)^H times that of
 * the determinant, and adj (A), the adjugate, is det (A) A^-1 where A has an inverse. It is a
 * polynomial in the elements, and there is one for singular matrices, too: it is not 0 if the rank is
 * n - 1. For them the gradient is computed without a division, from adj (P L U) = adj (U) L^-1 det (P)
 * P^T. The adjugate of a triangular matrix follows from those of the blocks on its diagonal:
 *
 *        U1 B             det (U2) adj (U1)   -adj (U1) B adj (U2)
 *   adj        =
 *        0  U2            0                    det (U1) adj (U2)
 *
 * for all pairs of neighbouring blocks at once, beginning with single elements, whose adjugate is 1.
 * The matrix is filled up to a power of 2 with ones on the diagonal, which leaves the adjugate of the
 * first n rows as it is.
 *
 * A determinant that is not 0 takes the quotient, because products of many elements may be out of the
 * range of the dtype where the determinant is in it. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "device/gtorch-choice-private.h"
#include "dispatch/gtorch-constants-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "ops/gtorch-linalg-private.h"
#include "tensor/gtorch-recorder-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* --- values --- */

/* Returns the signs of the permutations. */
static GTorchImpl *
signs_of (GTorchFormula *formula, GTorchImpl *pivots, guint dtype)
{
  static const gint64 last = -1;
  const gint64 n = pivots->shape[pivots->n_dims - 1];
  GTorchImpl *rows, *moved, *two, *one;

  rows = GTORCH_FORMULA_OP (formula, arange_int, 1, n + 1, 1, GTORCH_DTYPE_INT32,
                            gtorch_impl_device (pivots));
  moved = GTORCH_FORMULA_OP (formula, ne, pivots, rows);
  moved = GTORCH_FORMULA_OP (formula, sum, moved, &last, 1, FALSE, GTORCH_DTYPE_INT64);
  two = gtorch_formula_keep (formula, gtorch_impl_new_int (2));
  moved = GTORCH_FORMULA_OP (formula, remainder, moved, two);
  moved = GTORCH_FORMULA_OP (formula, to_dtype, moved, dtype);
  moved = GTORCH_FORMULA_OP (formula, mul, moved, two);
  one = gtorch_formula_keep (formula, gtorch_impl_new_int (1));
  return GTORCH_FORMULA_OP (formula, sub, one, moved, 1);
}

static gboolean
factor (GTorchFormula *formula, const gchar *op, GTorchImpl *a, GTorchImpl **lu,
        GTorchImpl **pivots)
{
  if (!gtorch_matrices_check_square (op, a, formula->error)
      || !gtorch_op_lu_parts (a, TRUE, lu, pivots, NULL, formula->error))
    {
      formula->failed = TRUE;
      return FALSE;
    }
  gtorch_formula_keep (formula, *lu);
  gtorch_formula_keep (formula, *pivots);
  return TRUE;
}

/* Returns the diagonals of the factors U, and in *sign the signs of the permutations. */
static GTorchImpl *
diagonals_of (GTorchFormula *formula, const gchar *op, GTorchImpl *a, GTorchImpl **sign)
{
  GTorchImpl *lu = NULL, *pivots = NULL;

  if (!factor (formula, op, a, &lu, &pivots))
    return NULL;
  *sign = signs_of (formula, pivots, a->dtype);
  return GTORCH_FORMULA_OP (formula, diagonal, lu, 0, -2, -1);
}

GTorchImpl *
gtorch_op_linalg_det (GTorchImpl *a, GError **error)
{
  static const gint64 last = -1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *lu = NULL, *pivots = NULL, *value = NULL, *sign;
  GTorchChange mode;

  gtorch_change_to_constants (&mode);
  if (factor (&f, "linalg_det", a, &lu, &pivots))
    {
      sign = signs_of (&f, pivots, a->dtype);
      value = OP (diagonal, lu, 0, -2, -1);
      value = OP (prod, value, &last, 1, FALSE, GTORCH_DTYPE_NONE);
      value = OP (mul, value, sign);
    }
  gtorch_change_end (&mode);
  if (!f.failed && gtorch_autograd_wanted (&a, 1))
    value = OP (det_of_factors, value, a, lu, pivots);
  return gtorch_matrices_take (&f, "linalg_det", value);
}

static GTorchImpl *
slogdet (GTorchFormula *formula, const gchar *op, GTorchImpl *a, GTorchImpl **sign)
{
  static const gint64 last = -1;
  GTorchImpl *parity = NULL, *diagonal = diagonals_of (formula, op, a, &parity), *signs, *sizes;

  signs = GTORCH_FORMULA_OP (formula, sgn, diagonal);
  signs = GTORCH_FORMULA_OP (formula, prod, signs, &last, 1, FALSE, GTORCH_DTYPE_NONE);
  *sign = GTORCH_FORMULA_OP (formula, mul, signs, parity);
  sizes = GTORCH_FORMULA_OP (formula, abs, diagonal);
  sizes = GTORCH_FORMULA_OP (formula, log, sizes);
  return GTORCH_FORMULA_OP (formula, sum, sizes, &last, 1, FALSE, GTORCH_DTYPE_NONE);
}

static gboolean
signs_and_logarithms (const gchar *op, GTorchImpl *a, GTorchImpl **sign, GTorchImpl **logabsdet,
                      GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *its_sign = NULL, *logarithm = slogdet (&f, op, a, &its_sign);

  if (f.failed)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  gtorch_matrices_give (sign, gtorch_impl_ref (its_sign));
  gtorch_matrices_give (logabsdet, gtorch_impl_ref (logarithm));
  return TRUE;
}

gboolean
gtorch_op_linalg_slogdet (GTorchImpl *a, GTorchImpl **sign, GTorchImpl **logabsdet, GError **error)
{
  return signs_and_logarithms ("linalg_slogdet", a, sign, logabsdet, error);
}

gboolean
gtorch_op_slogdet (GTorchImpl *self, GTorchImpl **sign, GTorchImpl **logabsdet, GError **error)
{
  return signs_and_logarithms ("slogdet", self, sign, logabsdet, error);
}

/* The logarithm of the sign is 0 or, of -1, NaN; of a complex one it is the angle. */
GTorchImpl *
gtorch_op_logdet (GTorchImpl *self, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *sign = NULL, *logarithm = slogdet (&f, "logdet", self, &sign), *of_sign, *zero,
             *is_negative;

  if (f.failed)
    return gtorch_matrices_take (&f, "logdet", NULL);
  if (gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX)
    {
      of_sign = OP (log, sign);
      return gtorch_matrices_take (&f, "logdet", OP (add, logarithm, of_sign, 1));
    }
  /* the sign is -1, 0 or 1; the determinant 0 has the logarithm -inf */
  zero = gtorch_formula_number (&f, 0);
  of_sign = gtorch_formula_number (&f, NAN);
  is_negative = OP (lt, sign, zero);
  return gtorch_matrices_take (&f, "logdet", OP (where, is_negative, of_sign, logarithm));
}

/* --- the gradient of the determinant --- */

gboolean
gtorch_shape_det_of_factors (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *value = call->inputs[0];

  call->compute = value->dtype;
  return gtorch_call_set_output (call, 0, value->dtype, value->shape, value->n_dims, error);
}

/* Returns the triangles U of n x n matrices [b, n, n] as [b, p, p], with ones on the rest of the diagonal. */
static GTorchImpl *
fill_up (GTorchFormula *formula, GTorchImpl *u, gint64 n, gint64 p)
{
  const gint64 right[3] = { u->shape[0], n, p - n }, below[3] = { u->shape[0], p - n, n },
               corner[3] = { u->shape[0], p - n, p - n };
  GTorchImpl *zeros, *ones, *rows[2], *both[2];

  if (p == n)
    return u;
  zeros = GTORCH_FORMULA_OP (formula, new_zeros, u, right, 3, GTORCH_DTYPE_NONE);
  both[0] = u;
  both[1] = zeros;
  rows[0] = GTORCH_FORMULA_OP (formula, cat, both, 2, -1);
  zeros = GTORCH_FORMULA_OP (formula, new_zeros, u, below, 3, GTORCH_DTYPE_NONE);
  ones = GTORCH_FORMULA_OP (formula, eye, p - n, p - n, u->dtype, gtorch_impl_device (u));
  both[0] = zeros;
  both[1] = GTORCH_FORMULA_OP (formula, expand, ones, corner, 3);
  rows[1] = GTORCH_FORMULA_OP (formula, cat, both, 2, -1);
  return GTORCH_FORMULA_OP (formula, cat, rows, 2, -2);
}

/* Multiplies the blocks [b, m, s, s] by numbers [b, m]. */
static GTorchImpl *
scale (GTorchFormula *formula, GTorchImpl *blocks, GTorchImpl *numbers)
{
  numbers = GTORCH_FORMULA_OP (formula, unsqueeze, numbers, -1);
  numbers = GTORCH_FORMULA_OP (formula, unsqueeze, numbers, -1);
  return GTORCH_FORMULA_OP (formula, mul, blocks, numbers);
}

/* Goes from the adjugates [b, m, s, s] and determinants [b, m] of the blocks on the diagonal to those
 * of the m / 2 blocks of twice their size. Takes the references of both. */
static gboolean
join_blocks (GTorchImpl *u, GTorchImpl **adjugates, GTorchImpl **dets, GError **error)
{
  static const gint64 last = -1, second = 1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 m = (*dets)->shape[1], s = (*adjugates)->shape[3];
  const gint64 parts[5] = { u->shape[0], m / 2, 2 * s, m / 2, 2 * s };
  GTorchImpl *a = gtorch_formula_keep (&f, *adjugates), *d = gtorch_formula_keep (&f, *dets);
  GTorchImpl *a1, *a2, *d1, *d2, *b, *both[2], *rows[2];

  a1 = OP (slice, a, 1, 0, m, 2);
  a2 = OP (slice, a, 1, 1, m, 2);
  d1 = OP (slice, d, 1, 0, m, 2);
  d2 = OP (slice, d, 1, 1, m, 2);
  b = OP (reshape, u, parts, 5);
  b = OP (diagonal, b, 0, 1, 3); /* [b, 2 s, 2 s, m / 2] */
  b = OP (slice, b, 1, 0, s, 1);
  b = OP (slice, b, 2, s, 2 * s, 1);
  b = OP (movedim, b, &last, 1, &second, 1);
  b = OP (matmul, a1, b);
  b = OP (matmul, b, a2);
  both[0] = scale (&f, a1, d2);
  both[1] = OP (neg, b);
  rows[0] = OP (cat, both, 2, -1);
  both[0] = OP (zeros_like, b, GTORCH_DTYPE_NONE);
  both[1] = scale (&f, a2, d1);
  rows[1] = OP (cat, both, 2, -1);
  a = OP (cat, rows, 2, -2);
  d = OP (mul, d1, d2);
  *adjugates = gtorch_formula_take (&f, a);
  *dets = gtorch_formula_take (&f, d);
  return !f.failed;
}

/* Returns the adjugates of the upper triangles of matrices [b, n, n]. */
static GTorchImpl *
adjugate_of_triangle (GTorchFormula *formula, GTorchImpl *lu)
{
  GTorchImpl *u = GTORCH_FORMULA_OP (formula, triu, lu, 0), *adjugates, *dets;
  gint64 n, p = 1, shape[4];

  if (formula->failed)
    return NULL;
  n = u->shape[1];
  while (p < n)
    p *= 2;
  u = fill_up (formula, u, n, p);
  dets = GTORCH_FORMULA_OP (formula, diagonal, u, 0, -2, -1);
  if (formula->failed)
    return NULL;
  memcpy (shape, (const gint64[]){ u->shape[0], p, 1, 1 }, sizeof shape);
  adjugates = GTORCH_FORMULA_OP (formula, new_ones, u, shape, 4, GTORCH_DTYPE_NONE);
  if (formula->failed)
    return NULL;
  gtorch_impl_ref (adjugates);
  gtorch_impl_ref (dets);
  while (p > 1 && !formula->failed)
    {
      formula->failed = !join_blocks (u, &adjugates, &dets, formula->error);
      p /= 2;
    }
  if (formula->failed)
    {
      g_clear_pointer (&adjugates, gtorch_impl_unref);
      g_clear_pointer (&dets, gtorch_impl_unref);
      return NULL;
    }
  gtorch_impl_unref (dets);
  adjugates = gtorch_formula_keep (formula, adjugates);
  memcpy (shape, (const gint64[]){ u->shape[0], u->shape[1], u->shape[1] }, 3 * sizeof (gint64));
  adjugates = GTORCH_FORMULA_OP (formula, reshape, adjugates, shape, 3);
  adjugates = GTORCH_FORMULA_OP (formula, slice, adjugates, 1, 0, n, 1);
  return GTORCH_FORMULA_OP (formula, slice, adjugates, 2, 0, n, 1);
}

/* Returns adj (A)^H for matrices of any rank. */
static GTorchImpl *
adjoint_of_adjugate (GTorchFormula *formula, GTorchImpl *lu, GTorchImpl *pivots)
{
  const gint64 n = lu->shape[lu->n_dims - 1];
  const gint64 flat[3] = { lu->numel / (n * n), n, n };
  GTorchImpl *x, *sign;

  x = GTORCH_FORMULA_OP (formula, reshape, lu, flat, 3);
  x = adjugate_of_triangle (formula, x);
  x = GTORCH_FORMULA_OP (formula, reshape, x, lu->shape, lu->n_dims);
  x = GTORCH_FORMULA_OP (formula, triangle_solve, lu, x, FALSE, FALSE, TRUE);
  x = gtorch_formula_adjoint (formula, x);
  if (formula->failed)
    return NULL;
  x = gtorch_matrices_restore_rows (formula, x, pivots);
  sign = signs_of (formula, pivots, lu->dtype);
  return formula->failed ? NULL : scale (formula, x, sign);
}

/* Returns conj (numbers) A^-H; A^-1 is that of another matrix where U has zeros on its diagonal. */
static GTorchImpl *
scaled_inverse (GTorchFormula *formula, GTorchImpl *a, GTorchImpl *lu, GTorchImpl *pivots,
                GTorchImpl *numbers)
{
  const gint64 n = a->shape[a->n_dims - 1];
  GTorchImpl *zero, *diagonal, *filled, *one;

  diagonal = GTORCH_FORMULA_OP (formula, diagonal, lu, 0, -2, -1);
  zero = gtorch_formula_number (formula, 0);
  filled = GTORCH_FORMULA_OP (formula, eq, diagonal, zero);
  filled = GTORCH_FORMULA_OP (formula, to_dtype, filled, lu->dtype);
  filled = GTORCH_FORMULA_OP (formula, diag_embed, filled, 0, -2, -1);
  lu = GTORCH_FORMULA_OP (formula, add, lu, filled, 1);
  one = GTORCH_FORMULA_OP (formula, eye, n, n, a->dtype, gtorch_impl_device (a));
  numbers = GTORCH_FORMULA_OP (formula, conj, numbers);
  one = formula->failed ? NULL : scale (formula, one, numbers);
  return GTORCH_FORMULA_OP (formula, factored_solve, a, lu, pivots, one, TRUE);
}

/* If the gradient is itself recorded, all of it is a function of A. */
gboolean
gtorch_grad_det_of_factors (GTorchGradContext *context, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *const *in = context->inputs;
  GTorchImpl *det = in[0], *a = in[1], *lu = in[2], *pivots = in[3];
  GTorchImpl *own_lu = lu, *own_pivots = pivots, *zero, *is_singular, *regular, *singular, *grad;

  if (context->grads[0] == NULL || !context->needs[1])
    return TRUE;
  if (a->numel == 0)
    {
      context->result[1] = gtorch_op_zeros_like (a, GTORCH_DTYPE_NONE, error);
      return context->result[1] != NULL;
    }
  if (gtorch_autograd_wanted (&a, 1))
    {
      if (!factor (&f, "linalg_det", a, &own_lu, &own_pivots))
        return FALSE;
      det = OP (linalg_det, a);
    }
  regular = scaled_inverse (&f, a, lu, pivots, det);
  singular = f.failed ? NULL : adjoint_of_adjugate (&f, own_lu, own_pivots);
  zero = gtorch_formula_number (&f, 0);
  is_singular = OP (eq, det, zero);
  is_singular = OP (unsqueeze, is_singular, -1);
  is_singular = OP (unsqueeze, is_singular, -1);
  regular = OP (where, is_singular, singular, regular);
  grad = f.failed ? NULL : scale (&f, regular, context->grads[0]);
  context->result[1] = gtorch_formula_take (&f, grad);
  return context->result[1] != NULL;
}
