/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The shapes and the gradients of the factorizations that devices implement.
 *
 * Sources of the gradients: M. Giles, Collected matrix derivative results for forward and reverse mode
 * algorithmic differentiation (2008); M. Seeger et al., Auto-differentiating linear algebra (2017). */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "ops/gtorch-linalg-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* --- shapes --- */

/* LAPACK counts with 32 bits. */
gboolean
gtorch_matrices_check_call (GTorchOpCall *call, const GTorchImpl *self, gboolean square,
                            GError **error)
{
  const guint n = self->n_dims;

  if (!gtorch_call_check_dtype (call, self->dtype, error))
    return FALSE;
  if (n < 2 || self->shape[n - 1] > G_MAXINT32 || self->shape[n - 2] > G_MAXINT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("shape %s must be that of matrices, with at most 2147483647 rows and "
                            "columns"),
                         gtorch_impl_shape_str (self));
      return FALSE;
    }
  if (!square || self->shape[n - 1] == self->shape[n - 2])
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("shape %s must be that of square matrices"), gtorch_impl_shape_str (self));
  return FALSE;
}

gboolean
gtorch_shape_cholesky_parts (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];

  return gtorch_matrices_check_call (call, self, TRUE, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT32, self->shape, self->n_dims - 2,
                                    error);
}

gboolean
gtorch_shape_lu_parts (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n = self->n_dims;

  if (!gtorch_matrices_check_call (call, self, FALSE, error)
      || !gtorch_call_set_output (call, 0, self->dtype, self->shape, n, error))
    return FALSE;
  memcpy (shape, self->shape, n * sizeof (gint64));
  shape[n - 2] = MIN (shape[n - 2], shape[n - 1]);
  return gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT32, shape, n - 1, error)
         && gtorch_call_set_output (call, 2, GTORCH_DTYPE_INT32, shape, n - 2, error);
}

gboolean
gtorch_shape_pivot_order (GTorchOpCall *call, GError **error)
{
  GTorchImpl *pivots = call->inputs[0];
  const gint64 n = call->attrs[0].i;
  gint64 shape[GTORCH_MAX_DIMS];

  if (gtorch_dtype_kind (pivots->dtype) != GTORCH_KIND_INT)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("pivots must be integers, not %s"),
                         gtorch_dtype_get_name (pivots->dtype));
      return FALSE;
    }
  if (pivots->n_dims == 0 || pivots->shape[pivots->n_dims - 1] > n)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("pivots of shape %s: there must be at most as many as rows, "
                            "%" PRId64),
                         gtorch_impl_shape_str (pivots), n);
      return FALSE;
    }
  memcpy (shape, pivots->shape, pivots->n_dims * sizeof (gint64));
  shape[pivots->n_dims - 1] = n;
  return gtorch_shape_check (call->op->name, shape, pivots->n_dims, GTORCH_DTYPE_INT64, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, shape, pivots->n_dims, error);
}

static gboolean
check_sides (GTorchOpCall *call, const GTorchImpl *a, const GTorchImpl *b, gboolean left,
             GError **error)
{
  const guint n = a->n_dims;

  if (!gtorch_matrices_check_call (call, a, TRUE, error)
      || !gtorch_matrices_check_call (call, b, FALSE, error))
    return FALSE;
  if (a->dtype != b->dtype)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("dtypes %s and %s must be equal"),
                         gtorch_dtype_get_name (a->dtype), gtorch_dtype_get_name (b->dtype));
      return FALSE;
    }
  if (b->n_dims == n && memcmp (a->shape, b->shape, (n - 2) * sizeof (gint64)) == 0
      && b->shape[left ? n - 2 : n - 1] == a->shape[n - 1])
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("shapes %s and %s do not match"),
                     gtorch_shape_str (a->shape, n), gtorch_impl_shape_str (b));
  return FALSE;
}

gboolean
gtorch_shape_triangle_solve (GTorchOpCall *call, GError **error)
{
  GTorchImpl *b = call->inputs[1];

  return check_sides (call, call->inputs[0], b, call->attrs[1].i != 0, error)
         && gtorch_call_set_output (call, 0, b->dtype, b->shape, b->n_dims, error);
}

gboolean
gtorch_shape_factored_solve (GTorchOpCall *call, GError **error)
{
  GTorchImpl *b = call->inputs[3];

  return check_sides (call, call->inputs[1], b, TRUE, error)
         && gtorch_call_set_output (call, 0, b->dtype, b->shape, b->n_dims, error);
}

/* --- gradients --- */

/* With P = tril (L^H grad), whose diagonal is halved, the gradient is L^-H (P + P^H) / 2 L^-1. An upper
 * factor is L^H. */
gboolean
gtorch_grad_cholesky_parts (GTorchGradContext *context, GError **error)
{
  const gboolean upper = context->attrs[0].i != 0;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *l = context->outputs[0], *grad = context->grads[0], *adjoint, *product, *p, *sum;
  GTorchImpl *half, *middle, *left;

  if (grad == NULL)
    return TRUE;
  if (upper)
    {
      l = gtorch_formula_adjoint (&f, l);
      grad = gtorch_formula_adjoint (&f, grad);
    }
  l = OP (tril, l, 0);
  grad = OP (tril, grad, 0);
  adjoint = gtorch_formula_adjoint (&f, l);
  product = OP (matmul, adjoint, grad);
  p = OP (tril, product, 0);
  sum = OP (tril, product, -1);
  sum = OP (add, p, sum, 1); /* twice P */
  p = gtorch_formula_adjoint (&f, sum);
  sum = OP (add, sum, p, 1);
  half = gtorch_formula_number (&f, 0.25);
  middle = OP (mul, sum, half);
  left = OP (triangle_solve, adjoint, middle, TRUE, TRUE, FALSE);
  context->result[0] = gtorch_formula_take (&f, OP (triangle_solve, l, left, FALSE, FALSE, FALSE));
  return context->result[0] != NULL;
}

/* Returns rows or columns [from, to) of matrices. */
static GTorchImpl *
part (GTorchFormula *formula, GTorchImpl *x, gint64 dim, gint64 from, gint64 to)
{
  return GTORCH_FORMULA_OP (formula, slice, x, dim, from, to, 1);
}

GTorchImpl *
gtorch_matrices_restore_rows (GTorchFormula *formula, GTorchImpl *x, GTorchImpl *pivots)
{
  const guint n = x != NULL ? x->n_dims : 0;
  GTorchImpl *order, *places = NULL, *index;

  order = GTORCH_FORMULA_OP (formula, pivot_order, pivots, x->shape[n - 2]);
  if (!formula->failed && !gtorch_op_sort (order, -1, FALSE, TRUE, NULL, &places, formula->error))
    formula->failed = TRUE;
  places = gtorch_formula_keep (formula, places);
  index = GTORCH_FORMULA_OP (formula, unsqueeze, places, -1);
  index = GTORCH_FORMULA_OP (formula, expand, index, x->shape, n);
  return GTORCH_FORMULA_OP (formula, gather, x, -2, index);
}

/* With k = min (m, n), the first k columns of L and the first k rows of U are triangular: L1 and U1. The
 * rest L2 (of a tall matrix) or U2 (of a wide one) has the gradients G. The gradient is P times L1^-H
 * [tril (L1^H G_L1 - G_U2 U2^H, -1) + triu (G_U1 U1^H - L2^H G_L2)] U1^-H, followed by G_L2 U1^-H or L1^-H
 * G_U2. */
gboolean
gtorch_grad_lu_parts (GTorchGradContext *context, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *lu = context->outputs[0], *grad = context->grads[0], *l1, *u1, *l2 = NULL, *u2 = NULL;
  GTorchImpl *g1, *g2 = NULL, *lower, *upper, *middle, *other, *both[2], *result;
  gint64 m, n, k;

  if (grad == NULL)
    return TRUE;
  m = lu->shape[lu->n_dims - 2];
  n = lu->shape[lu->n_dims - 1];
  k = MIN (m, n);
  l1 = u1 = lu;
  g1 = grad;
  if (m > n)
    {
      l1 = u1 = part (&f, lu, -2, 0, k);
      l2 = part (&f, lu, -2, k, m);
      g1 = part (&f, grad, -2, 0, k);
      g2 = part (&f, grad, -2, k, m);
    }
  else if (m < n)
    {
      l1 = u1 = part (&f, lu, -1, 0, k);
      u2 = part (&f, lu, -1, k, n);
      g1 = part (&f, grad, -1, 0, k);
      g2 = part (&f, grad, -1, k, n);
    }
  l1 = gtorch_formula_adjoint (&f, l1); /* the solvers read a triangle only */
  u1 = gtorch_formula_adjoint (&f, u1);
  lower = OP (tril, g1, -1);
  upper = OP (triu, g1, 0);
  /* L1^H G_L1: L1^H is upper unitriangular */
  middle = OP (triu, l1, 1);
  middle = OP (matmul, middle, lower);
  lower = OP (add, middle, lower, 1);
  middle = OP (tril, u1, 0);
  upper = OP (matmul, upper, middle);
  if (u2 != NULL)
    {
      other = gtorch_formula_adjoint (&f, u2);
      other = OP (matmul, g2, other);
      lower = OP (sub, lower, other, 1);
    }
  if (l2 != NULL)
    {
      other = gtorch_formula_adjoint (&f, l2);
      other = OP (matmul, other, g2);
      upper = OP (sub, upper, other, 1);
    }
  lower = OP (tril, lower, -1);
  upper = OP (triu, upper, 0);
  middle = OP (add, lower, upper, 1);
  middle = OP (triangle_solve, l1, middle, TRUE, TRUE, TRUE);
  result = OP (triangle_solve, u1, middle, FALSE, FALSE, FALSE);
  if (g2 != NULL)
    {
      both[0] = result;
      both[1] = m > n ? OP (triangle_solve, u1, g2, FALSE, FALSE, FALSE)
                      : OP (triangle_solve, l1, g2, TRUE, TRUE, TRUE);
      result = OP (cat, both, 2, m > n ? -2 : -1);
    }
  if (!f.failed)
    result = gtorch_matrices_restore_rows (&f, result, context->outputs[1]);
  context->result[0] = gtorch_formula_take (&f, result);
  return context->result[0] != NULL;
}

/* For A X = B the gradient of B is G = A^-H grad, and that of A is the triangle of -G X^H; for X A = B
 * they are G = grad A^-H and the triangle of -X^H G. */
gboolean
gtorch_grad_triangle_solve (GTorchGradContext *context, GError **error)
{
  const gboolean upper = context->attrs[0].i != 0, left = context->attrs[1].i != 0;
  const gboolean unit = context->attrs[2].i != 0;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *a = gtorch_formula_adjoint (&f, context->inputs[0]), *g, *x, *product;

  g = OP (triangle_solve, a, context->grads[0], !upper, left, unit);
  if (context->needs[1])
    context->result[1] = gtorch_formula_take (&f, g);
  if (!f.failed && context->needs[0])
    {
      x = gtorch_formula_adjoint (&f, context->outputs[0]);
      product = left ? OP (matmul, g, x) : OP (matmul, x, g);
      product = OP (neg, product);
      product = upper ? OP (triu, product, unit ? 1 : 0) : OP (tril, product, unit ? -1 : 0);
      context->result[0] = gtorch_formula_take (&f, product);
    }
  return !f.failed;
}

/* For A X = B the gradient of B is G = A^-H grad, and that of A is -G X^H; for A^H X = B they are G = A^-1
 * grad and -X G^H. */
gboolean
gtorch_grad_factored_solve (GTorchGradContext *context, GError **error)
{
  const gboolean adjoint = context->attrs[0].i != 0;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *const *in = context->inputs;
  GTorchImpl *g, *x, *product;

  g = OP (factored_solve, in[0], in[1], in[2], context->grads[0], !adjoint);
  if (context->needs[3])
    context->result[3] = gtorch_formula_take (&f, g);
  if (!f.failed && context->needs[0])
    {
      x = gtorch_formula_adjoint (&f, adjoint ? g : context->outputs[0]);
      product = adjoint ? OP (matmul, context->outputs[0], x) : OP (matmul, g, x);
      context->result[0] = gtorch_formula_take (&f, OP (neg, product));
    }
  return !f.failed;
}
