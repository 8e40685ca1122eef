/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Variance, standard deviation and norms. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "base/gtorch-error-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-formula-private.h"

gboolean
gtorch_shape_var (GTorchOpCall *call, GError **error)
{
  return gtorch_shape_reduce (call, error);
}

gboolean
gtorch_shape_std (GTorchOpCall *call, GError **error)
{
  return gtorch_shape_reduce (call, error);
}

/* Adds the variances of the parts of complex numbers. */
static GTorchImpl *
variance_of_parts (GTorchImpl *self, const gint64 *dim, gsize n_dim, gdouble correction,
                   gboolean keepdim, GError **error)
{
  g_autoptr (GTorchImpl) real = gtorch_op_real (self, error);
  g_autoptr (GTorchImpl) imag = real != NULL ? gtorch_op_imag (self, error) : NULL;
  g_autoptr (GTorchImpl) first =
      imag != NULL ? gtorch_op_real_var (real, dim, n_dim, correction, keepdim, error) : NULL;
  g_autoptr (GTorchImpl) second =
      first != NULL ? gtorch_op_real_var (imag, dim, n_dim, correction, keepdim, error) : NULL;

  return second != NULL ? gtorch_op_add (first, second, 1, error) : NULL;
}

GTorchImpl *
gtorch_op_var (GTorchImpl *self, const gint64 *dim, gsize n_dim, gdouble correction,
               gboolean keepdim, GError **error)
{
  GTorchImpl *result = gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX
                           ? variance_of_parts (self, dim, n_dim, correction, keepdim, error)
                           : gtorch_op_real_var (self, dim, n_dim, correction, keepdim, error);

  if (result == NULL)
    gtorch_error_set_op (error, "var");
  return result;
}

GTorchImpl *
gtorch_op_std (GTorchImpl *self, const gint64 *dim, gsize n_dim, gdouble correction,
               gboolean keepdim, GError **error)
{
  g_autoptr (GTorchImpl) variance = NULL;
  GTorchImpl *result = NULL;

  if (gtorch_dtype_kind (self->dtype) != GTORCH_KIND_COMPLEX)
    result = gtorch_op_real_std (self, dim, n_dim, correction, keepdim, error);
  else if ((variance = variance_of_parts (self, dim, n_dim, correction, keepdim, error)) != NULL)
    result = gtorch_op_sqrt (variance, error);
  if (result == NULL)
    gtorch_error_set_op (error, "std");
  return result;
}

gboolean
gtorch_op_var_mean (GTorchImpl *self, const gint64 *dim, gsize n_dim, gdouble correction,
                    gboolean keepdim, GTorchImpl **var, GTorchImpl **mean, GError **error)
{
  g_autoptr (GTorchImpl) spread = gtorch_op_var (self, dim, n_dim, correction, keepdim, error);
  g_autoptr (GTorchImpl) centre =
      spread != NULL ? gtorch_op_mean (self, dim, n_dim, keepdim, GTORCH_DTYPE_NONE, error) : NULL;

  if (centre == NULL)
    return FALSE;
  if (var != NULL)
    *var = g_steal_pointer (&spread);
  if (mean != NULL)
    *mean = g_steal_pointer (&centre);
  return TRUE;
}

/* Norms with a negative order, and the greatest absolute value, have no value for no elements. */
static gboolean
check_elements (GTorchImpl *self, gdouble p, const gint64 *dim, gsize n_dim, GError **error)
{
  guint64 mask;
  guint i;

  if (self->numel > 0 || !(p < 0 || p == INFINITY))
    return TRUE;
  if (!gtorch_normalize_dims ("norm", dim, n_dim, self->n_dims, &mask, error))
    return FALSE;
  for (i = 0; i < self->n_dims; i++)
    if (self->shape[i] == 0 && (mask >> i & 1) != 0)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("norm: dim %u of shape %s has no elements, and without elements there is "
                        "no "
                        "norm %g"),
                     i, gtorch_impl_shape_str (self), p);
        return FALSE;
      }
  return TRUE;
}

GTorchImpl *
gtorch_composite_norm (GTorchImpl *self, gdouble p, const gint64 *dim, gsize n_dim,
                       gboolean keepdim, GError **error)
{
  gboolean is_complex = gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX;
  g_autoptr (GTorchImpl) size = NULL;
  g_autoptr (GTorchImpl) powers = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  g_autoptr (GTorchImpl) wide = NULL;
  g_autoptr (GTorchImpl) root = NULL;

  if (!check_elements (self, p, dim, n_dim, error))
    return NULL;
  if (p == 2 && !is_complex)
    return gtorch_op_norm2 (self, dim, n_dim, keepdim, error);
  if (p == 0)
    {
      g_autoptr (GTorchImpl) ones = NULL;

      size = gtorch_op_abs (self, error);
      ones = size != NULL ? gtorch_op_is_nonzero (size, error) : NULL;
      return ones != NULL ? gtorch_op_sum (ones, dim, n_dim, keepdim, GTORCH_DTYPE_NONE, error)
                          : NULL;
    }
  size = gtorch_op_abs (self, error);
  if (size == NULL)
    return NULL;
  if (p == 1)
    return gtorch_op_sum (size, dim, n_dim, keepdim, GTORCH_DTYPE_NONE, error);
  if (p == 2)
    return gtorch_op_norm2 (size, dim, n_dim, keepdim, error);
  if (isinf (p))
    return p > 0 ? gtorch_op_amax (size, dim, n_dim, keepdim, error)
                 : gtorch_op_amin (size, dim, n_dim, keepdim, error);
  /* powers of 16-bit numbers are soon greater than these can be */
  wide = gtorch_op_to_dtype (size, gtorch_dtype_infos[size->dtype].compute, error);
  powers = wide != NULL ? gtorch_op_power (wide, p, error) : NULL;
  sum =
      powers != NULL ? gtorch_op_sum (powers, dim, n_dim, keepdim, GTORCH_DTYPE_NONE, error) : NULL;
  root = sum != NULL ? gtorch_op_power (sum, 1 / p, error) : NULL;
  return root != NULL ? gtorch_op_to_dtype (root, size->dtype, error) : NULL;
}
