/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Quantiles. The rows are sorted, with NaN at their ends; a quantile is the element at the position
 * q (n - 1), or between the two beside it. In a row with NaN each position is the last one, unless NaN is
 * left out: then n is the number of the others. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "base/gtorch-none.h"
#include "base/gtorch-text-private.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-host-private.h"
#include "ops/gtorch-op-parts-private.h"

static gboolean
read_number (const gchar *op, GTorchImpl *impl, gdouble *value, GError **error)
{
  g_autoptr (GTorchImpl) host = gtorch_impl_to_host (op, impl, error);

  if (host != NULL)
    gtorch_impl_read (host, GTORCH_DTYPE_FLOAT64, value);
  return host != NULL;
}

static gboolean
check_values (const gchar *op, GTorchImpl *q, GError **error)
{
  g_autoptr (GTorchImpl) least = NULL;
  g_autoptr (GTorchImpl) greatest = NULL;
  gdouble low, high;

  if (!gtorch_op_aminmax (q, GTORCH_NONE, FALSE, &least, &greatest, error)
      || !read_number (op, least, &low, error) || !read_number (op, greatest, &high, error))
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  if (low >= 0 && high <= 1)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: q contains %g: each number must be between 0 and 1"), op,
               low >= 0 ? high : low);
  return FALSE;
}

/* Checks the values if the host has them and may read them: what is on a GPU would have to be waited for,
 * and a capture forbids that. Then *is_checked becomes FALSE. */
static gboolean
check_q (const gchar *op, GTorchImpl *q, gboolean *is_checked, GError **error)
{
  if (q->n_dims > 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: q of shape %s must be a number or a row"), op,
                   gtorch_impl_shape_str (q));
      return FALSE;
    }
  *is_checked = gtorch_device_is_host (gtorch_impl_device (q)) && q->storage != NULL && q->numel > 0
                && gtorch_impl_allow_sync (q, NULL);
  return !*is_checked || check_values (op, q, error);
}

/* Returns the rows with the elements that are to be ranked in the last dimension. */
static GTorchImpl *
rows_of (const gchar *op, GTorchImpl *self, gint64 wanted, GError **error)
{
  static const gint64 all = -1, last = -1;
  gint64 from;
  guint dim;

  if (wanted == GTORCH_NONE || self->n_dims == 0)
    {
      if (wanted != GTORCH_NONE && !gtorch_normalize_dim (op, wanted, 0, &dim, error))
        return NULL;
      return gtorch_op_reshape (self, &all, 1, error);
    }
  if (!gtorch_normalize_dim (op, wanted, self->n_dims, &dim, error))
    return NULL;
  from = dim;
  return gtorch_op_movedim (self, &from, 1, &last, 1, error);
}

/* Returns q (n - 1) for each row and each q. */
static GTorchImpl *
ranks_of (GTorchImpl *sorted, GTorchImpl *q, gboolean skip_nan, GError **error)
{
  static const gint64 last = -1;
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) end = gtorch_impl_new_int (sorted->shape[sorted->n_dims - 1] - 1);
  g_autoptr (GTorchImpl) is_number = gtorch_op_eq (sorted, sorted, error);
  g_autoptr (GTorchImpl) count = NULL;
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) rank = NULL;

  if (is_number == NULL)
    return NULL;
  if (skip_nan)
    {
      g_autoptr (GTorchImpl) numbers = NULL;
      g_autoptr (GTorchImpl) less = NULL;

      count = gtorch_op_sum (is_number, &last, 1, TRUE, GTORCH_DTYPE_INT64, error);
      less = count != NULL ? gtorch_op_sub (count, one, 1, error) : NULL;
      numbers = less != NULL ? gtorch_op_mul (q, less, error) : NULL;
      return numbers != NULL ? gtorch_op_clamp (numbers, 0, G_MAXDOUBLE * 2, error) : NULL;
    }
  whole = gtorch_op_all (is_number, &last, 1, TRUE, error);
  rank = whole != NULL ? gtorch_op_mul (q, end, error) : NULL;
  return rank != NULL ? gtorch_op_where (whole, rank, end, error) : NULL;
}

/* Returns the ranks with GTORCH_QUANTILE_SCALE times q in place of those for which q is out of its
 * range: these are no positions in the rows, which the kernel reports, and q can be told from them. */
static GTorchImpl *
mark_invalid (GTorchImpl *rank, GTorchImpl *q, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *number = gtorch_formula_number (&f, 0), *low, *high, *valid, *shown, *nan;

  low = GTORCH_FORMULA_OP (&f, ge, q, number);
  number = gtorch_formula_number (&f, 1);
  high = GTORCH_FORMULA_OP (&f, le, q, number);
  valid = GTORCH_FORMULA_OP (&f, logical_and, low, high);
  number = gtorch_formula_number (&f, GTORCH_QUANTILE_SCALE);
  shown = GTORCH_FORMULA_OP (&f, mul, q, number);
  nan = GTORCH_FORMULA_OP (&f, ne, q, q);
  number = gtorch_formula_number (&f, GTORCH_QUANTILE_NAN);
  shown = GTORCH_FORMULA_OP (&f, where, nan, number, shown);
  return gtorch_formula_take (&f, GTORCH_FORMULA_OP (&f, where, valid, rank, shown));
}

static GTorchImpl *
take_at_rank (GTorchImpl *sorted, GTorchImpl *rank, GError **error)
{
  g_autoptr (GTorchImpl) index = gtorch_op_to_dtype (rank, GTORCH_DTYPE_INT64, error);

  return index != NULL ? gtorch_op_gather (sorted, -1, index, error) : NULL;
}

static GTorchImpl *
between (GTorchImpl *sorted, GTorchImpl *rank, GTorchInterpolation interpolation, GError **error)
{
  g_autoptr (GTorchImpl) below = gtorch_op_floor (rank, error);
  g_autoptr (GTorchImpl) above = below != NULL ? gtorch_op_ceil (rank, error) : NULL;
  g_autoptr (GTorchImpl) left = above != NULL ? take_at_rank (sorted, below, error) : NULL;
  g_autoptr (GTorchImpl) right = left != NULL ? take_at_rank (sorted, above, error) : NULL;
  g_autoptr (GTorchImpl) weight = NULL;

  if (right == NULL)
    return NULL;
  weight = interpolation == GTORCH_INTERPOLATION_MIDPOINT
               ? gtorch_op_full_like (left, 0.5, GTORCH_DTYPE_NONE, error)
               : gtorch_op_sub (rank, below, 1, error);
  return weight != NULL ? gtorch_op_interpolate_between (left, right, weight, error) : NULL;
}

static GTorchImpl *
interpolate (GTorchImpl *sorted, GTorchImpl *rank, GTorchInterpolation interpolation,
             GError **error)
{
  g_autoptr (GTorchImpl) whole = NULL;

  switch (interpolation)
    {
    case GTORCH_INTERPOLATION_LOWER:
      whole = gtorch_op_floor (rank, error);
      break;
    case GTORCH_INTERPOLATION_HIGHER:
      whole = gtorch_op_ceil (rank, error);
      break;
    case GTORCH_INTERPOLATION_NEAREST:
      whole = gtorch_op_round (rank, error);
      break;
    default:
      return between (sorted, rank, interpolation, error);
    }
  return whole != NULL ? take_at_rank (sorted, whole, error) : NULL;
}

/* Moves the dimension of the qs from the end to the front, or takes it away if q is a number, and puts a
 * dimension of size 1 where the elements were if keepdim is set. */
static GTorchImpl *
arrange (GTorchImpl *found, GTorchImpl *self, GTorchImpl *q, gint64 dim, gboolean keepdim,
         GError **error)
{
  static const gint64 last = -1, first = 0;
  gint64 shape[GTORCH_MAX_DIMS + 1];
  g_autoptr (GTorchImpl) front = gtorch_op_movedim (found, &last, 1, &first, 1, error);
  guint i, n = 0, along;

  if (front == NULL)
    return NULL;
  if (q->n_dims == 1)
    shape[n++] = q->numel;
  if (dim == GTORCH_NONE)
    for (i = 0; i < self->n_dims && keepdim; i++)
      shape[n++] = 1;
  else
    {
      gtorch_normalize_dim ("quantile", dim, self->n_dims, &along, NULL);
      for (i = 0; i < self->n_dims; i++)
        if (i != along)
          shape[n++] = self->shape[i];
        else if (keepdim)
          shape[n++] = 1;
    }
  return gtorch_op_reshape (front, shape, n, error);
}

static GTorchImpl *
quantile (const gchar *op, GTorchImpl *self, GTorchImpl *q, gint64 dim, gboolean keepdim,
          GTorchInterpolation interpolation, gboolean skip_nan, GError **error)
{
  static const gint64 all = -1;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) sorted = NULL;
  g_autoptr (GTorchImpl) order = NULL;
  g_autoptr (GTorchImpl) numbers = NULL;
  g_autoptr (GTorchImpl) list = NULL;
  g_autoptr (GTorchImpl) rank = NULL;
  g_autoptr (GTorchImpl) found = NULL;
  gboolean is_checked;
  GTorchImpl *result;

  if ((guint) interpolation > GTORCH_INTERPOLATION_NEAREST)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: %d is no GTorchInterpolation"), op, (gint) interpolation);
      return NULL;
    }
  if (self->dtype != GTORCH_DTYPE_FLOAT32 && self->dtype != GTORCH_DTYPE_FLOAT64)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: self must be of float32 or float64, not of %s"), op,
                   gtorch_dtype_get_name (self->dtype));
      return NULL;
    }
  if (!check_q (op, q, &is_checked, error) || (rows = rows_of (op, self, dim, error)) == NULL)
    return NULL;
  if (rows->shape[rows->n_dims - 1] == 0 || (q->n_dims == 1 && self->n_dims == GTORCH_MAX_DIMS))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s must have elements to choose from, and a dimension for q"), op,
                   gtorch_impl_shape_str (self));
      return NULL;
    }
  if (!gtorch_op_sort (rows, -1, FALSE, TRUE, &sorted, &order, error))
    return NULL;
  numbers = gtorch_op_to (q, self->dtype, gtorch_impl_device (self), FALSE, FALSE, error);
  list = numbers != NULL ? gtorch_op_reshape (numbers, &all, 1, error) : NULL;
  rank = list != NULL ? ranks_of (sorted, list, skip_nan, error) : NULL;
  if (rank != NULL && !is_checked)
    {
      GTorchImpl *marked = mark_invalid (rank, list, error);

      gtorch_impl_unref (rank);
      rank = marked;
    }
  found = rank != NULL ? interpolate (sorted, rank, interpolation, error) : NULL;
  result = found != NULL ? arrange (found, self, q, dim, keepdim, error) : NULL;
  if (result == NULL && !is_checked && error != NULL
      && g_error_matches (*error, GTORCH_ERROR, GTORCH_ERROR_INDEX))
    {
      /* the device has told at once, so that its values can be read now */
      g_clear_error (error);
      if (check_values (op, q, error))
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: q contains a number that is not between 0 and 1"), op);
    }
  else if (result == NULL)
    gtorch_error_set_op (error, op);
  return result;
}

GTorchImpl *
gtorch_op_quantile (GTorchImpl *self, GTorchImpl *q, gint64 dim, gboolean keepdim,
                    GTorchInterpolation interpolation, GError **error)
{
  return quantile ("quantile", self, q, dim, keepdim, interpolation, FALSE, error);
}

GTorchImpl *
gtorch_op_nanquantile (GTorchImpl *self, GTorchImpl *q, gint64 dim, gboolean keepdim,
                       GTorchInterpolation interpolation, GError **error)
{
  return quantile ("nanquantile", self, q, dim, keepdim, interpolation, TRUE, error);
}
