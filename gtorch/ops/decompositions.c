/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The shapes and the gradients of the decompositions that devices implement: QR, eigenvalues, singular
 * values.
 *
 * Sources of the gradients: M. Giles, Collected matrix derivative results for forward and reverse mode
 * algorithmic differentiation (2008); M. Seeger et al., Auto-differentiating linear algebra (2017);
 * F. Schreiber, Derivatives of eigenvalues and eigenvectors of complex matrices, in: C. Boeddeker et al., On
 * the computation of complex-valued gradients (2017). */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "ops/gtorch-linalg-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* --- shapes --- */

/* Sets output i to [..., rows, columns], or [..., rows] without columns, where the dots are the batch of the
 * matrices in `like`. */
static gboolean
set_output (GTorchOpCall *call, guint i, guint dtype, const GTorchImpl *like, gint64 rows,
            gint64 columns, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  const guint n = like->n_dims;

  memcpy (shape, like->shape, n * sizeof (gint64));
  shape[n - 2] = rows;
  shape[n - 1] = columns;
  return gtorch_call_set_output (call, i, dtype, shape, columns < 0 ? n - 1 : n, error);
}

static gboolean
set_empty (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  static const gint64 nothing = 0;

  return gtorch_call_set_output (call, i, dtype, &nothing, 1, error);
}

gboolean
gtorch_shape_geqrf (GTorchOpCall *call, GError **error)
{
  GTorchImpl *a = call->inputs[0];

  return gtorch_matrices_check_call (call, a, FALSE, error)
         && gtorch_call_set_output (call, 0, a->dtype, a->shape, a->n_dims, error)
         && set_output (call, 1, a->dtype, a,
                        MIN (a->shape[a->n_dims - 2], a->shape[a->n_dims - 1]), -1, error);
}

gboolean
gtorch_shape_qr_parts (GTorchOpCall *call, GError **error)
{
  GTorchImpl *a = call->inputs[0];
  gint64 m, n, k;

  if (!gtorch_matrices_check_call (call, a, FALSE, error))
    return FALSE;
  m = a->shape[a->n_dims - 2];
  n = a->shape[a->n_dims - 1];
  k = call->attrs[0].i ? m : MIN (m, n);
  return set_output (call, 0, a->dtype, a, m, k, error)
         && set_output (call, 1, a->dtype, a, k, n, error);
}

/* Checks that tau belongs to the reflectors. */
static gboolean
check_reflectors (GTorchOpCall *call, const GTorchImpl *a, const GTorchImpl *tau, GError **error)
{
  const guint n = a->n_dims;

  if (!gtorch_matrices_check_call (call, a, FALSE, error))
    return FALSE;
  if (tau->dtype != a->dtype)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("dtypes %s and %s must be equal"),
                         gtorch_dtype_get_name (a->dtype), gtorch_dtype_get_name (tau->dtype));
      return FALSE;
    }
  if (tau->n_dims + 1 == n && memcmp (tau->shape, a->shape, (n - 2) * sizeof (gint64)) == 0
      && tau->shape[n - 2] <= a->shape[n - 1] && tau->shape[n - 2] <= a->shape[n - 2])
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("tau of shape %s does not fit reflectors of shape %s: it has the batch of "
                        "the reflectors, and at most as many numbers as they have rows and "
                        "columns"),
                     gtorch_shape_str (tau->shape, tau->n_dims), gtorch_impl_shape_str (a));
  return FALSE;
}

gboolean
gtorch_shape_linalg_householder_product (GTorchOpCall *call, GError **error)
{
  GTorchImpl *a = call->inputs[0];

  if (!check_reflectors (call, a, call->inputs[1], error))
    return FALSE;
  if (a->shape[a->n_dims - 2] < a->shape[a->n_dims - 1])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("shape %s: there must be at least as many rows as columns"),
                         gtorch_impl_shape_str (a));
      return FALSE;
    }
  return gtorch_call_set_output (call, 0, a->dtype, a->shape, a->n_dims, error);
}

gboolean
gtorch_shape_ormqr (GTorchOpCall *call, GError **error)
{
  GTorchImpl *a = call->inputs[0], *other = call->inputs[2];
  const gboolean left = call->attrs[0].i != 0;
  const guint n = a->n_dims;

  if (!check_reflectors (call, a, call->inputs[1], error)
      || !gtorch_matrices_check_call (call, other, FALSE, error))
    return FALSE;
  if (other->dtype != a->dtype)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("dtypes %s and %s must be equal"),
                         gtorch_dtype_get_name (a->dtype), gtorch_dtype_get_name (other->dtype));
      return FALSE;
    }
  if (other->n_dims != n || memcmp (other->shape, a->shape, (n - 2) * sizeof (gint64)) != 0
      || other->shape[left ? n - 2 : n - 1] != a->shape[n - 2])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("shapes %s and %s do not match"),
                         gtorch_shape_str (a->shape, n), gtorch_impl_shape_str (other));
      return FALSE;
    }
  return gtorch_call_set_output (call, 0, a->dtype, other->shape, n, error);
}

gboolean
gtorch_shape_eigh_parts (GTorchOpCall *call, GError **error)
{
  GTorchImpl *a = call->inputs[0];
  const gboolean vectors = call->attrs[1].i != 0;

  return gtorch_matrices_check_call (call, a, TRUE, error)
         && gtorch_call_set_output (call, 0, gtorch_dtype_infos[a->dtype].real, a->shape,
                                    a->n_dims - 1, error)
         && (vectors ? gtorch_call_set_output (call, 1, a->dtype, a->shape, a->n_dims, error)
                     : set_empty (call, 1, a->dtype, error))
         && gtorch_call_set_output (call, 2, GTORCH_DTYPE_INT32, a->shape, a->n_dims - 2, error);
}

gboolean
gtorch_shape_eig_parts (GTorchOpCall *call, GError **error)
{
  GTorchImpl *a = call->inputs[0];
  guint dtype;

  if (!gtorch_matrices_check_call (call, a, TRUE, error))
    return FALSE;
  dtype = gtorch_dtype_infos[a->dtype].real == GTORCH_DTYPE_FLOAT32 ? GTORCH_DTYPE_COMPLEX64
                                                                    : GTORCH_DTYPE_COMPLEX128;
  return gtorch_call_set_output (call, 0, dtype, a->shape, a->n_dims - 1, error)
         && (call->attrs[0].i ? gtorch_call_set_output (call, 1, dtype, a->shape, a->n_dims, error)
                              : set_empty (call, 1, dtype, error))
         && gtorch_call_set_output (call, 2, GTORCH_DTYPE_INT32, a->shape, a->n_dims - 2, error);
}

gboolean
gtorch_shape_svd_parts (GTorchOpCall *call, GError **error)
{
  GTorchImpl *a = call->inputs[0];
  const gboolean full = call->attrs[0].i != 0, vectors = call->attrs[1].i != 0;
  gint64 m, n, k;

  if (!gtorch_matrices_check_call (call, a, FALSE, error))
    return FALSE;
  m = a->shape[a->n_dims - 2];
  n = a->shape[a->n_dims - 1];
  k = MIN (m, n);
  return (vectors ? set_output (call, 0, a->dtype, a, m, full ? m : k, error)
                  : set_empty (call, 0, a->dtype, error))
         && set_output (call, 1, gtorch_dtype_infos[a->dtype].real, a, k, -1, error)
         && (vectors ? set_output (call, 2, a->dtype, a, full ? n : k, n, error)
                     : set_empty (call, 2, a->dtype, error))
         && gtorch_call_set_output (call, 3, GTORCH_DTYPE_INT32, a->shape, a->n_dims - 2, error);
}

/* --- gradients --- */

static gboolean
refuse (GTorchGradContext *context, const gchar *why, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD, "%s: %s", context->op->name, why);
  return FALSE;
}

static GTorchImpl *
multiply (GTorchFormula *f, GTorchImpl *a, GTorchImpl *b)
{
  return GTORCH_FORMULA_OP (f, matmul, a, b);
}

/* Returns the product of the conjugate transpose of the first and the second. */
static GTorchImpl *
multiply_adjoint (GTorchFormula *f, GTorchImpl *a, GTorchImpl *b)
{
  return multiply (f, gtorch_formula_adjoint (f, a), b);
}

/* Returns x - x^H. */
static GTorchImpl *
skew (GTorchFormula *f, GTorchImpl *x)
{
  GTorchImpl *adjoint = gtorch_formula_adjoint (f, x);

  return GTORCH_FORMULA_OP (f, sub, x, adjoint, 1);
}

static GTorchImpl *
part (GTorchFormula *f, GTorchImpl *x, gint64 dim, gint64 from, gint64 to)
{
  return GTORCH_FORMULA_OP (f, slice, x, dim, from, to, 1);
}

/* Returns matrices with the elements x[j] - x[i], and 1 on the diagonal. */
static GTorchImpl *
differences (GTorchFormula *f, GTorchImpl *x)
{
  GTorchImpl *row = GTORCH_FORMULA_OP (f, unsqueeze, x, -2);
  GTorchImpl *column = GTORCH_FORMULA_OP (f, unsqueeze, x, -1);
  GTorchImpl *result = GTORCH_FORMULA_OP (f, sub, row, column, 1), *one;
  const gint64 n = x != NULL ? x->shape[x->n_dims - 1] : 0;

  one = f->failed ? NULL : GTORCH_FORMULA_OP (f, eye, n, n, x->dtype, gtorch_impl_device (x));
  return GTORCH_FORMULA_OP (f, add, result, one, 1);
}

static GTorchImpl *
embed (GTorchFormula *f, GTorchImpl *diagonal)
{
  return GTORCH_FORMULA_OP (f, diag_embed, diagonal, 0, -2, -1);
}

/* Returns x without its diagonal. */
static GTorchImpl *
without_diagonal (GTorchFormula *f, GTorchImpl *x)
{
  GTorchImpl *lower = GTORCH_FORMULA_OP (f, tril, x, -1);
  GTorchImpl *upper = GTORCH_FORMULA_OP (f, triu, x, 1);

  return GTORCH_FORMULA_OP (f, add, lower, upper, 1);
}

/* The gradient of a tall matrix is (G_Q + Q H) R^-H, where H is Hermitian and has the triangle of R G_R^H -
 * G_Q^H Q, with a real diagonal. */
static GTorchImpl *
tall_qr (GTorchFormula *f, GTorchImpl *q, GTorchImpl *r, GTorchImpl *grad_q, GTorchImpl *grad_r)
{
  GTorchImpl *m, *product, *h, *adjoint, *result;

  m = gtorch_formula_adjoint (f, grad_r);
  m = multiply (f, r, m);
  product = multiply_adjoint (f, grad_q, q);
  m = GTORCH_FORMULA_OP (f, sub, m, product, 1);
  m = GTORCH_FORMULA_OP (f, tril, m, 0);
  h = gtorch_formula_adjoint (f, m);
  h = GTORCH_FORMULA_OP (f, add, m, h, 1); /* the diagonal counts twice */
  m = GTORCH_FORMULA_OP (f, diagonal, m, 0, -2, -1);
  m = GTORCH_FORMULA_OP (f, real, m);
  m = embed (f, m);
  h = GTORCH_FORMULA_OP (f, sub, h, m, 1);
  h = multiply (f, q, h);
  result = GTORCH_FORMULA_OP (f, add, grad_q, h, 1);
  adjoint = gtorch_formula_adjoint (f, r);
  return GTORCH_FORMULA_OP (f, triangle_solve, adjoint, result, FALSE, FALSE, FALSE);
}

/* Of a wide matrix [A1 A2] = Q [R1 R2], Q and R1 are the factors of A1, and R2 is Q^H A2. */
gboolean
gtorch_grad_qr_parts (GTorchGradContext *context, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *a = context->inputs[0], *q = context->outputs[0], *r = context->outputs[1];
  const gint64 m = a->shape[a->n_dims - 2], n = a->shape[a->n_dims - 1];
  GTorchImpl *grad_q, *grad_r, *grad_r2, *a2, *result, *both[2];

  if (q->shape[q->n_dims - 1] > n)
    return refuse (context,
                   _ ("a complete Q of a matrix with more rows than columns has no gradient"),
                   error);
  grad_q = gtorch_formula_keep (&f, gtorch_grad_or_zeros (context, 0, error));
  grad_r = gtorch_formula_keep (&f, f.failed ? NULL : gtorch_grad_or_zeros (context, 1, error));
  if (m < n)
    {
      grad_r2 = part (&f, grad_r, -1, m, n);
      grad_r = part (&f, grad_r, -1, 0, m);
      r = part (&f, r, -1, 0, m);
      a2 = part (&f, a, -1, m, n);
      both[1] = multiply (&f, q, grad_r2);
      grad_r2 = gtorch_formula_adjoint (&f, grad_r2);
      a2 = multiply (&f, a2, grad_r2);
      grad_q = OP (add, grad_q, a2, 1);
    }
  r = OP (triu, r, 0);
  grad_r = OP (triu, grad_r, 0);
  result = both[0] = tall_qr (&f, q, r, grad_q, grad_r);
  if (m < n)
    result = OP (cat, both, 2, -1);
  context->result[0] = gtorch_formula_take (&f, result);
  return context->result[0] != NULL;
}

/* The gradient is V (diag (G_L) + (V^H G_V) / E) V^H, where E has the differences of the eigenvalues. */
gboolean
gtorch_grad_eigh_parts (GTorchGradContext *context, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *l = context->outputs[0], *v = context->outputs[1], *middle = NULL, *product, *e;

  if (context->grads[1] != NULL)
    {
      product = multiply_adjoint (&f, v, context->grads[1]);
      e = differences (&f, l);
      middle = OP (div, product, e);
      middle = without_diagonal (&f, middle);
    }
  if (context->grads[0] != NULL)
    {
      product = embed (&f, context->grads[0]);
      middle = middle != NULL ? OP (add, product, middle, 1) : OP (to_dtype, product, v->dtype);
    }
  if (middle == NULL)
    return !f.failed;
  product = multiply (&f, v, middle);
  middle = gtorch_formula_adjoint (&f, v);
  /* one triangle is read, but the matrix stands for a Hermitian one, and so does its gradient */
  context->result[0] = gtorch_formula_take (&f, multiply (&f, product, middle));
  return context->result[0] != NULL;
}

/* With the skew parts of U^H G_U and V^H G_V, E of the differences of the squares of S, and the first k
 * columns of U and V, the gradient is U M V^H with M = (skew_U S + S skew_V) / E + diag (G_S + skew_U / 2 S),
 * and for tall and wide matrices what G_U and G_V are beyond these columns. */
gboolean
gtorch_grad_svd_parts (GTorchGradContext *context, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *u = context->outputs[0], *s = context->outputs[1], *vh = context->outputs[2];
  GTorchImpl *grad_u = context->grads[0], *grad_s = context->grads[1], *grad_vh = context->grads[2];
  GTorchImpl *row, *column, *middle = NULL, *x, *y, *v, *result, *two, *skew_u = NULL;
  gint64 k, m, n;

  if (grad_u == NULL && grad_s == NULL && grad_vh == NULL)
    return TRUE;
  k = s->shape[s->n_dims - 1];
  m = u->shape[u->n_dims - 2];
  n = vh->shape[vh->n_dims - 1];
  if ((grad_u != NULL && u->shape[u->n_dims - 1] != k)
      || (grad_vh != NULL && vh->shape[vh->n_dims - 2] != k))
    return refuse (context,
                   _ ("singular vectors beyond the first ones have no gradient: "
                      "full_matrices must be false"),
                   error);
  if (u->shape[u->n_dims - 1] != k)
    u = part (&f, u, -1, 0, k);
  if (vh->shape[vh->n_dims - 2] != k)
    vh = part (&f, vh, -2, 0, k);
  row = OP (unsqueeze, s, -2);
  column = OP (unsqueeze, s, -1);
  v = gtorch_formula_adjoint (&f, vh);
  if (grad_u != NULL)
    {
      x = multiply_adjoint (&f, u, grad_u);
      skew_u = skew (&f, x);
      middle = OP (mul, skew_u, row);
    }
  if (grad_vh != NULL)
    {
      x = gtorch_formula_adjoint (&f, grad_vh);
      x = multiply (&f, vh, x);
      x = skew (&f, x);
      x = OP (mul, column, x);
      middle = middle != NULL ? OP (add, middle, x, 1) : x;
    }
  if (middle != NULL)
    {
      x = OP (mul, s, s);
      x = differences (&f, x);
      middle = OP (div, middle, x);
      middle = without_diagonal (&f, middle);
    }
  if (grad_s != NULL)
    {
      x = embed (&f, grad_s);
      middle = middle != NULL ? OP (add, x, middle, 1) : OP (to_dtype, x, u->dtype);
    }
  if (skew_u != NULL && gtorch_dtype_kind (u->dtype) == GTORCH_KIND_COMPLEX)
    {
      two = gtorch_formula_number (&f, 2);
      x = OP (diagonal, skew_u, 0, -2, -1);
      y = OP (mul, s, two);
      x = OP (div, x, y);
      x = embed (&f, x);
      middle = OP (add, middle, x, 1);
    }
  result = multiply (&f, u, middle);
  if (grad_u != NULL && m > k)
    {
      x = OP (div, grad_u, row);
      y = multiply_adjoint (&f, u, x);
      y = multiply (&f, u, y);
      x = OP (sub, x, y, 1);
      result = OP (add, result, x, 1);
    }
  result = multiply (&f, result, vh);
  if (grad_vh != NULL && n > k)
    {
      x = OP (div, grad_vh, column);
      y = multiply (&f, x, v);
      y = multiply (&f, y, vh);
      x = OP (sub, x, y, 1);
      x = multiply (&f, u, x);
      result = OP (add, result, x, 1);
    }
  context->result[0] = gtorch_formula_take (&f, result);
  return context->result[0] != NULL;
}

/* The gradient is V^-H (diag (G_L) + (V^H G_V - V^H V diag (re (V^H G_V))) / conj (E)) V^H; of a real matrix
 * its real part. */
gboolean
gtorch_grad_eig_parts (GTorchGradContext *context, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *l = context->outputs[0], *v = context->outputs[1], *adjoint, *middle = NULL, *x, *y;
  GTorchImpl *info = NULL;

  if (context->grads[0] == NULL && context->grads[1] == NULL)
    return TRUE;
  adjoint = gtorch_formula_adjoint (&f, v);
  if (context->grads[1] != NULL)
    {
      middle = multiply (&f, adjoint, context->grads[1]);
      x = OP (diagonal, middle, 0, -2, -1);
      x = OP (real, x);
      x = OP (unsqueeze, x, -2);
      y = multiply (&f, adjoint, v);
      y = OP (mul, y, x);
      middle = OP (sub, middle, y, 1);
      x = differences (&f, l);
      x = OP (conj, x);
      middle = OP (div, middle, x);
      middle = without_diagonal (&f, middle);
    }
  if (context->grads[0] != NULL)
    {
      x = embed (&f, context->grads[0]);
      middle = middle != NULL ? OP (add, x, middle, 1) : x;
    }
  x = multiply (&f, middle, adjoint);
  x = gtorch_matrices_solve (&f, context->op->name, adjoint, x, &info);
  if (gtorch_dtype_kind (context->input_metas[0].dtype) != GTORCH_KIND_COMPLEX)
    x = OP (real, x);
  context->result[0] = gtorch_formula_take (&f, x);
  return context->result[0] != NULL;
}
