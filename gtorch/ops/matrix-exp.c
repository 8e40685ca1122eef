/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The exponential of matrices by a Taylor polynomial of degree 18, evaluated with five products, after the
 * matrices were divided by a power of two; the result is squared as often. Source: P. Bader, S. Blanes, F.
 * Casas: Computing the matrix exponential with an optimized Taylor polynomial approximation. Mathematics 7
 * (2019). */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "dispatch/gtorch-constants-private.h"
#include "base/gtorch-error-private.h"
#include "device/gtorch-choice-private.h"
#include "device/gtorch-scratch-private.h"
#include "ops/gtorch-linalg-private.h"
#include "ops/gtorch-host-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* The norm up to which the backward error of the polynomial is below the unit roundoff. */
#define LIMIT_FLOAT64 1.09
#define LIMIT_FLOAT32 3.01

/* The coefficients of I, A, A^2, A^3 and A^6 in the five parts of the polynomial. */
static const gdouble coefficients[5][5] = {
  { 0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0 },
  { 0, 3.97849749499645077844e-01, 1.36783778460411720168e+00, 4.98289622525382669416e-01,
    -6.37898194594723280150e-04 },
  { -1.09676396052962061844e+01, 1.68015813878906206114e+00, 5.71779846478865511061e-02,
    -6.98210122488052056106e-03, 3.34975017086070470649e-05 },
  { -9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02,
    2.95552570429315521194e-02, -1.39180257516060693404e-05 },
  { 0, 0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05 },
};

/* Sums the powers with the coefficients of part i. */
static GTorchImpl *
part (GTorchFormula *formula, GTorchImpl *const *powers, guint i)
{
  GTorchImpl *sum = NULL, *factor, *term;
  guint k;

  for (k = 0; k < 5; k++)
    {
      if (coefficients[i][k] == 0)
        continue;
      factor = gtorch_formula_number (formula, coefficients[i][k]);
      term = GTORCH_FORMULA_OP (formula, mul, powers[k], factor);
      sum = sum == NULL ? term : GTORCH_FORMULA_OP (formula, add, sum, term, 1);
    }
  return sum;
}

static GTorchImpl *
polynomial (GTorchImpl *a, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 n = a->shape[a->n_dims - 1];
  GTorchImpl *powers[5], *parts[5], *nine, *sum;
  guint i;

  powers[0] = OP (eye, n, n, a->dtype, gtorch_impl_device (a));
  powers[1] = a;
  powers[2] = OP (matmul, a, a);
  powers[3] = OP (matmul, a, powers[2]);
  powers[4] = OP (matmul, powers[3], powers[3]);
  for (i = 0; i < 5; i++)
    parts[i] = part (&f, powers, i);
  nine = OP (matmul, parts[0], parts[4]);
  nine = OP (add, nine, parts[3], 1);
  sum = OP (add, parts[2], nine, 1);
  sum = OP (matmul, sum, nine);
  return gtorch_formula_take (&f, OP (add, parts[1], sum, 1));
}

/* Reads the 1-norms of the matrices, and computes how often each is halved: -1 with an error, else the
 * maximum. The caller frees *halvings, the numbers as a tensor of the real dtype. */
static gint
count_halvings (GTorchImpl *self, GTorchImpl **halvings, GError **error)
{
  static const gint64 row = -2, last = -1;
  const guint real = gtorch_dtype_infos[self->dtype].real;
  const gdouble limit = real == GTORCH_DTYPE_FLOAT64 ? LIMIT_FLOAT64 : LIMIT_FLOAT32;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchImpl) host = NULL;
  g_autofree gdouble *norms = NULL;
  GTorchImpl *norm, *counts;
  gint64 i;
  gint most = 0;

  norm = OP (abs, self);
  norm = OP (sum, norm, &row, 1, FALSE, GTORCH_DTYPE_NONE);
  norm = OP (amax, norm, &last, 1, FALSE);
  if (f.failed || (host = gtorch_impl_to_host ("linalg_matrix_exp", norm, error)) == NULL
      || (norms = gtorch_scratch_new (norm->numel, sizeof (gdouble), error)) == NULL)
    return -1;
  gtorch_impl_read (host, GTORCH_DTYPE_FLOAT64, norms);
  counts = gtorch_formula_keep (&f, gtorch_impl_new (gtorch_device_cpu (), real, norm->shape,
                                                     norm->n_dims, error));
  if (f.failed)
    return -1;
  for (i = 0; i < norm->numel; i++)
    {
      int exponent = 0;

      /* infinite and undefined elements spread whatever is done */
      if (isfinite (norms[i]) && norms[i] > limit)
        frexp (norms[i] / limit, &exponent);
      most = MAX (most, exponent);
      if (real == GTORCH_DTYPE_FLOAT64)
        ((gdouble *) gtorch_impl_data (counts))[i] = exponent;
      else
        ((gfloat *) gtorch_impl_data (counts))[i] = (gfloat) exponent;
    }
  *halvings = OP (to_device, counts, gtorch_impl_device (self), FALSE);
  if (f.failed)
    return -1;
  gtorch_impl_ref (*halvings);
  return most;
}

/* Halves the matrices as often as their numbers say, and squares the results as often. */
static GTorchImpl *
scaled (GTorchImpl *self, GTorchImpl *halvings, gint most, GError **error)
{
  GTorchFormula f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *factor, *x, *squared, *number, *goes_on, *result;
  gint i;

  factor = OP (neg, halvings);
  factor = OP (exp2, factor);
  factor = OP (unsqueeze, factor, -1);
  factor = OP (unsqueeze, factor, -1);
  x = OP (mul, self, factor);
  x = f.failed ? NULL : polynomial (x, error);
  halvings = OP (unsqueeze, halvings, -1);
  halvings = OP (unsqueeze, halvings, -1);
  f.failed = f.failed || x == NULL;
  for (i = 0; i < most && !f.failed; i++)
    {
      g_auto (GTorchFormula) step = GTORCH_FORMULA_INIT (error);

      gtorch_formula_keep (&step, x);
      squared = GTORCH_FORMULA_OP (&step, matmul, x, x);
      number = gtorch_formula_number (&step, i);
      goes_on = GTORCH_FORMULA_OP (&step, gt, halvings, number);
      x = gtorch_formula_take (&step, GTORCH_FORMULA_OP (&step, where, goes_on, squared, x));
      f.failed = x == NULL;
    }
  result = f.failed ? NULL : x;
  gtorch_formula_clear (&f);
  return result;
}

GTorchImpl *
gtorch_op_linalg_matrix_exp (GTorchImpl *self, GError **error)
{
  static const gchar *op = "linalg_matrix_exp";
  g_autoptr (GTorchImpl) halvings = NULL;
  GTorchImpl *result = NULL;
  GTorchChange mode;
  gint most;

  if (!gtorch_matrices_check_square (op, self, error))
    return NULL;
  if (gtorch_dtype_kind (self->dtype) < GTORCH_KIND_FLOAT)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_DTYPE,
                            _ ("dtype %s: the elements must be floating-point or complex numbers"),
                            gtorch_dtype_get_name (self->dtype));
      return NULL;
    }
  if (gtorch_dtype_infos[self->dtype].compute != self->dtype) /* of 16 bits */
    {
      g_autoptr (GTorchImpl) wide =
          gtorch_op_to_dtype (self, gtorch_dtype_infos[self->dtype].compute, error);
      g_autoptr (GTorchImpl) made = wide != NULL ? gtorch_op_linalg_matrix_exp (wide, error) : NULL;

      return made != NULL ? gtorch_op_to_dtype (made, self->dtype, error) : NULL;
    }
  if (self->numel == 0)
    return gtorch_op_clone (self, error);
  gtorch_change_to_constants (&mode);
  most = count_halvings (self, &halvings, error);
  gtorch_change_end (&mode);
  if (most == 0)
    result = polynomial (self, error);
  else if (most > 0)
    result = scaled (self, halvings, most, error);
  if (result == NULL)
    gtorch_error_set_op (error, op);
  return result;
}
