/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Norms of vectors and of matrices. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error-private.h"
#include "base/gtorch-none-private.h"
#include "base/gtorch-text-private.h"
#include "ops/gtorch-linalg-private.h"

/* Returns the tensor in the dtype in which the norm is computed. */
static GTorchImpl *
in_dtype (const gchar *op, GTorchImpl *self, GTorchDType dtype, GError **error)
{
  if ((guint) dtype >= GTORCH_N_DTYPES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: there is no dtype %d"), op,
                   (gint) dtype);
      return NULL;
    }
  if (gtorch_dtype_kind (self->dtype) < GTORCH_KIND_FLOAT
      || (dtype != GTORCH_DTYPE_NONE
          && gtorch_dtype_kind (dtype) != gtorch_dtype_kind (self->dtype)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: a tensor of %s and the dtype %s: both must be floating-point or both "
                      "complex dtypes"),
                   op, gtorch_dtype_get_name (self->dtype),
                   dtype == GTORCH_DTYPE_NONE ? "none" : gtorch_dtype_get_name (dtype));
      return NULL;
    }
  return dtype == GTORCH_DTYPE_NONE ? gtorch_impl_ref (self)
                                    : gtorch_op_to (self, dtype, NULL, FALSE, FALSE, error);
}

/* Takes the reference, which may be NULL. */
static GTorchImpl *
vector_norm (const gchar *op, GTorchImpl *x, gdouble ord, const gint64 *dim, gsize n,
             gboolean keepdim, GError **error)
{
  GTorchImpl *norm = x != NULL ? gtorch_op_norm (x, ord, dim, n, keepdim, error) : NULL;

  g_clear_pointer (&x, gtorch_impl_unref);
  if (norm == NULL)
    gtorch_error_set_op (error, op);
  return norm;
}

GTorchImpl *
gtorch_op_linalg_vector_norm (GTorchImpl *x, gdouble ord, const gint64 *dim, gsize n,
                              gboolean keepdim, GTorchDType dtype, GError **error)
{
  return vector_norm ("linalg_vector_norm", in_dtype ("linalg_vector_norm", x, dtype, error), ord,
                      dim, n, keepdim, error);
}

/* The norm 2 is the greatest singular value, -2 the least. */
static GTorchImpl *
by_singular_values (const gchar *op, GTorchImpl *self, gdouble ord, const gint64 *dims,
                    gboolean keepdim, GError **error)
{
  static const gint64 ends[2] = { -2, -1 };
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *moved, *values, *norm;

  if (gtorch_dtype_infos[self->dtype].real != GTORCH_DTYPE_FLOAT32
      && gtorch_dtype_infos[self->dtype].real != GTORCH_DTYPE_FLOAT64)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: the norm %g needs singular values, which are not computed in %s"), op,
                   ord, gtorch_dtype_get_name (self->dtype));
      return NULL;
    }
  moved = GTORCH_FORMULA_OP (&f, movedim, self, dims, 2, ends, 2);
  values = f.failed ? NULL : gtorch_matrices_svd (&f, op, moved, FALSE, NULL, NULL);
  norm = ord > 0 ? GTORCH_FORMULA_OP (&f, amax, values, &ends[1], 1, FALSE)
                 : GTORCH_FORMULA_OP (&f, amin, values, &ends[1], 1, FALSE);
  if (keepdim)
    {
      norm = GTORCH_FORMULA_OP (&f, unsqueeze, norm, -1);
      norm = GTORCH_FORMULA_OP (&f, unsqueeze, norm, -1);
      norm = GTORCH_FORMULA_OP (&f, movedim, norm, ends, 2, dims, 2);
    }
  return gtorch_matrices_take (&f, op, norm);
}

/* The norms 1 and -1 compare the sums of columns, inf and -inf those of rows. */
static GTorchImpl *
matrix_norm (const gchar *op, GTorchImpl *self, gdouble ord, const gint64 *dims, gboolean keepdim,
             GError **error)
{
  g_autoptr (GTorchImpl) size = NULL;
  g_autoptr (GTorchImpl) sums = NULL;
  gint64 summed, compared;
  guint row, column;

  if (!gtorch_normalize_dim (op, dims[0], self->n_dims, &row, error)
      || !gtorch_normalize_dim (op, dims[1], self->n_dims, &column, error))
    return NULL;
  /* norms without elements are 0, but for those that are a least number */
  if (gtorch_is_none_double (ord)
      || ((ord == 1 || ord == 2 || ord == INFINITY)
          && (self->shape[row] == 0 || self->shape[column] == 0)))
    return gtorch_op_norm (self, 2, dims, 2, keepdim, error);
  if (fabs (ord) == 2)
    return by_singular_values (op, self, ord, dims, keepdim, error);
  if (fabs (ord) != 1 && !isinf (ord))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: matrices have no norm %g: norms are those of Frobenius, 1, -1, 2, -2, "
                      "inf and -inf"),
                   op, ord);
      return NULL;
    }
  summed = isinf (ord) ? column : row;
  compared = isinf (ord) ? row : column;
  if (!keepdim && compared > summed)
    compared--;
  size = gtorch_op_abs (self, error);
  sums = size != NULL ? gtorch_op_sum (size, &summed, 1, keepdim, GTORCH_DTYPE_NONE, error) : NULL;
  if (sums == NULL)
    return NULL;
  return ord > 0 ? gtorch_op_amax (sums, &compared, 1, keepdim, error)
                 : gtorch_op_amin (sums, &compared, 1, keepdim, error);
}

static GTorchImpl *
matrix_norm_in (const gchar *op, GTorchImpl *a, gdouble ord, const gint64 *dims, gsize n,
                gboolean keepdim, GTorchDType dtype, GError **error)
{
  g_autoptr (GTorchImpl) self = NULL;
  GTorchImpl *norm;
  guint64 mask;

  if (n != 2 || a->n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: dim %s of shape %s: there must be two different dimensions"), op,
                   gtorch_shape_str (dims, MIN (n, GTORCH_MAX_DIMS)), gtorch_impl_shape_str (a));
      return NULL;
    }
  if (!gtorch_normalize_dims (op, dims, 2, a->n_dims, &mask, error)
      || (self = in_dtype (op, a, dtype, error)) == NULL)
    return NULL;
  norm = matrix_norm (op, self, ord, dims, keepdim, error);
  if (norm == NULL)
    gtorch_error_set_op (error, op);
  return norm;
}

GTorchImpl *
gtorch_op_linalg_matrix_norm (GTorchImpl *a, gdouble ord, const gint64 *dims, gsize n,
                              gboolean keepdim, GTorchDType dtype, GError **error)
{
  return matrix_norm_in ("linalg_matrix_norm", a, ord, dims, n, keepdim, dtype, error);
}

/* Without an order it is the norm of a vector of all elements; with one, the number of dimensions says
 * whether it is that of vectors or of matrices. */
GTorchImpl *
gtorch_op_linalg_norm (GTorchImpl *a, gdouble ord, const gint64 *dims, gsize n, gboolean keepdim,
                       GTorchDType dtype, GError **error)
{
  static const gint64 both[2] = { 0, 1 };
  gboolean has_order = !gtorch_is_none_double (ord);

  if (has_order && (n > 2 || (n == 0 && (a->n_dims < 1 || a->n_dims > 2))))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("linalg_norm: ord %g, dim %s and shape %s: with an order there must be one "
                      "or two dimensions"),
                   ord, gtorch_shape_str (dims, MIN (n, GTORCH_MAX_DIMS)),
                   gtorch_impl_shape_str (a));
      return NULL;
    }
  if (has_order && (n == 2 || (n == 0 && a->n_dims == 2)))
    return matrix_norm_in ("linalg_norm", a, ord, n == 0 ? both : dims, 2, keepdim, dtype, error);
  return vector_norm ("linalg_norm", in_dtype ("linalg_norm", a, dtype, error), has_order ? ord : 2,
                      dims, n, keepdim, error);
}

/* --- renorm --- */

GTorchImpl *
gtorch_op_renorm (GTorchImpl *self, gdouble p, gint64 wanted, gdouble maxnorm, GError **error)
{
  g_autoptr (GTorchImpl) limit = gtorch_impl_new_number (maxnorm);
  g_autoptr (GTorchImpl) little = gtorch_impl_new_number (1e-7);
  g_autoptr (GTorchImpl) one = gtorch_impl_new_number (1);
  g_autoptr (GTorchImpl) norms = NULL;
  g_autoptr (GTorchImpl) is_above = NULL;
  g_autoptr (GTorchImpl) divisor = NULL;
  g_autoptr (GTorchImpl) share = NULL;
  g_autoptr (GTorchImpl) factor = NULL;
  gint64 dims[GTORCH_MAX_DIMS];
  guint dim, i, n = 0;

  if (!(p > 0) || !(maxnorm >= 0) || self->n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("renorm: p %g, maxnorm %g and shape %s: p must be positive, maxnorm not "
                      "negative, and there must be two dimensions"),
                   p, maxnorm, gtorch_impl_shape_str (self));
      return NULL;
    }
  if (!gtorch_normalize_dim ("renorm", wanted, self->n_dims, &dim, error))
    return NULL;
  for (i = 0; i < self->n_dims; i++)
    if (i != dim)
      dims[n++] = i;
  norms = vector_norm ("renorm", gtorch_impl_ref (self), p, dims, n, TRUE, error);
  is_above = norms != NULL ? gtorch_op_gt (norms, limit, error) : NULL;
  divisor = is_above != NULL ? gtorch_op_add (norms, little, 1, error) : NULL;
  share = divisor != NULL ? gtorch_op_div (limit, divisor, error) : NULL;
  factor = share != NULL ? gtorch_op_where (is_above, share, one, error) : NULL;
  return factor != NULL ? gtorch_op_mul (self, factor, error) : NULL;
}
