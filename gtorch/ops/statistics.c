/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Covariances, quantiles, modes and runs of equal elements. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error-private.h"
#include "base/gtorch-none.h"
#include "base/gtorch-text-private.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-host-private.h"

/* --- covariances --- */

static gboolean
check_weights (const gchar *name, GTorchImpl *weights, gint64 n, gboolean of_integers,
               GError **error)
{
  if (weights == NULL)
    return TRUE;
  if (weights->n_dims == 1 && weights->shape[0] == n
      && gtorch_dtype_kind (weights->dtype) == (of_integers ? GTORCH_KIND_INT : GTORCH_KIND_FLOAT))
    return gtorch_impl_check_not_negative ("cov", name, weights, FALSE, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               of_integers
                   ? _ ("cov: %s of dtype %s and shape %s must be a row of %" PRId64 " integers")
                   : _ ("cov: %s of dtype %s and shape %s must be a row of %" PRId64
                        " floating-point numbers"),
               name, gtorch_dtype_get_name (weights->dtype), gtorch_impl_shape_str (weights), n);
  return FALSE;
}

/* Returns the weight of each observation, or NULL without an error if all have the weight 1. */
static gboolean
weights_of (GTorchImpl *fweights, GTorchImpl *aweights, GTorchImpl **weights, GError **error)
{
  *weights = NULL;
  if (fweights != NULL && aweights != NULL)
    return (*weights = gtorch_op_mul (fweights, aweights, error)) != NULL;
  if (fweights != NULL || aweights != NULL)
    *weights = gtorch_impl_ref (fweights != NULL ? fweights : aweights);
  return TRUE;
}

/* Returns by what the sums of squares are divided: the sum of the weights less the correction, of which
 * observations that count less take less; 0 if that is negative. */
static GTorchImpl *
divisor_of (GTorchImpl *weights, GTorchImpl *aweights, GTorchImpl *sum, gint64 correction,
            GError **error)
{
  g_autoptr (GTorchImpl) less = gtorch_impl_new_int (correction);
  g_autoptr (GTorchImpl) rest = NULL;

  if (aweights != NULL && correction != 0)
    {
      g_autoptr (GTorchImpl) squares = gtorch_op_mul (weights, aweights, error);
      g_autoptr (GTorchImpl) total =
          squares != NULL ? gtorch_op_sum (squares, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error)
                          : NULL;
      g_autoptr (GTorchImpl) share = total != NULL ? gtorch_op_div (total, sum, error) : NULL;
      GTorchImpl *taken = share != NULL ? gtorch_op_mul (share, less, error) : NULL;

      if (taken == NULL)
        return NULL;
      gtorch_impl_unref (less);
      less = taken;
    }
  rest = gtorch_op_sub (sum, less, 1, error);
  return rest != NULL ? gtorch_op_clamp (rest, 0, INFINITY, error) : NULL;
}

GTorchImpl *
gtorch_op_cov (GTorchImpl *self, gint64 correction, GTorchImpl *fweights, GTorchImpl *aweights,
               GError **error)
{
  static const gint64 observations = 1;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) weights = NULL;
  g_autoptr (GTorchImpl) total = NULL;
  g_autoptr (GTorchImpl) weighted = NULL;
  g_autoptr (GTorchImpl) sums = NULL;
  g_autoptr (GTorchImpl) mean = NULL;
  g_autoptr (GTorchImpl) centred = NULL;
  g_autoptr (GTorchImpl) other = NULL;
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) squares = NULL;
  g_autoptr (GTorchImpl) divisor = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  gint64 n;

  if (self->n_dims > 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("cov: shape %s must have two dimensions at most"),
                   gtorch_impl_shape_str (self));
      return NULL;
    }
  rows = gtorch_op_atleast_2d (self, error);
  if (rows == NULL)
    return NULL;
  n = rows->shape[1];
  if (!check_weights ("fweights", fweights, n, TRUE, error)
      || !check_weights ("aweights", aweights, n, FALSE, error)
      || !weights_of (fweights, aweights, &weights, error))
    return NULL;
  total = weights != NULL ? gtorch_op_sum (weights, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error)
                          : gtorch_impl_new_int (n);
  weighted = total != NULL && weights != NULL ? gtorch_op_mul (rows, weights, error)
                                              : gtorch_impl_ref (rows);
  sums = total != NULL && weighted != NULL
             ? gtorch_op_sum (weighted, &observations, 1, TRUE, GTORCH_DTYPE_NONE, error)
             : NULL;
  mean = sums != NULL ? gtorch_op_div (sums, total, error) : NULL;
  centred = mean != NULL ? gtorch_op_sub (rows, mean, 1, error) : NULL;
  if (centred == NULL)
    return NULL;
  other = weights != NULL ? gtorch_op_mul (centred, weights, error) : gtorch_impl_ref (centred);
  turned = other != NULL ? gtorch_op_adjoint (other, error) : NULL;
  squares = turned != NULL ? gtorch_op_matmul (centred, turned, error) : NULL;
  divisor = squares != NULL ? divisor_of (weights, aweights, total, correction, error) : NULL;
  result = divisor != NULL ? gtorch_op_div (squares, divisor, error) : NULL;
  return result != NULL ? gtorch_op_squeeze (result, NULL, 0, error) : NULL;
}

/* Limits the real and the imaginary parts to [-1, 1], beyond which rounding may have moved them. */
static GTorchImpl *
limit (GTorchImpl *self, GError **error)
{
  g_autoptr (GTorchImpl) pairs = NULL;
  g_autoptr (GTorchImpl) limited = NULL;

  if (gtorch_dtype_kind (self->dtype) != GTORCH_KIND_COMPLEX)
    return gtorch_op_clamp (self, -1, 1, error);
  pairs = gtorch_op_view_as_real (self, error);
  limited = pairs != NULL ? gtorch_op_clamp (pairs, -1, 1, error) : NULL;
  return limited != NULL ? gtorch_op_view_as_complex (limited, error) : NULL;
}

GTorchImpl *
gtorch_op_corrcoef (GTorchImpl *self, GError **error)
{
  g_autoptr (GTorchImpl) covariances = gtorch_op_cov (self, 1, NULL, NULL, error);
  g_autoptr (GTorchImpl) variances = NULL;
  g_autoptr (GTorchImpl) real = NULL;
  g_autoptr (GTorchImpl) deviations = NULL;
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) half = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (covariances == NULL)
    {
      gtorch_error_set_op (error, "corrcoef");
      return NULL;
    }
  if (covariances->n_dims == 0)
    return gtorch_op_div (covariances, covariances, error);
  variances = gtorch_op_diagonal (covariances, 0, 0, 1, error);
  real = variances != NULL && gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX
             ? gtorch_op_real (variances, error)
         : variances != NULL ? gtorch_impl_ref (variances)
                             : NULL;
  deviations = real != NULL ? gtorch_op_sqrt (real, error) : NULL;
  column = deviations != NULL ? gtorch_op_unsqueeze (deviations, 1, error) : NULL;
  half = column != NULL ? gtorch_op_div (covariances, column, error) : NULL;
  result = half != NULL ? gtorch_op_div (half, deviations, error) : NULL;
  return result != NULL ? limit (result, error) : NULL;
}

/* --- results of several operations --- */

gboolean
gtorch_op_std_mean (GTorchImpl *self, const gint64 *dim, gsize n_dim, gdouble correction,
                    gboolean keepdim, GTorchImpl **std, GTorchImpl **mean, GError **error)
{
  g_autoptr (GTorchImpl) spread = gtorch_op_std (self, dim, n_dim, correction, keepdim, error);
  g_autoptr (GTorchImpl) centre =
      spread != NULL ? gtorch_op_mean (self, dim, n_dim, keepdim, GTORCH_DTYPE_NONE, error) : NULL;

  if (centre == NULL)
    {
      gtorch_error_set_op (error, "std_mean");
      return FALSE;
    }
  if (std != NULL)
    *std = g_steal_pointer (&spread);
  if (mean != NULL)
    *mean = g_steal_pointer (&centre);
  return TRUE;
}

/* --- elements chosen by their rank --- */

/* Takes an element of each row along dim; places has size 1 there, which is removed unless keepdim is set.
 * Takes the reference of the values, which may be NULL. */
static GTorchImpl *
pick (GTorchImpl *values, gint64 dim, GTorchImpl *places, gboolean keepdim, GError **error)
{
  g_autoptr (GTorchImpl) taken = NULL;

  if (values == NULL)
    return NULL;
  if (values->n_dims == 0)
    return values;
  taken = gtorch_op_gather (values, dim, places, error);
  gtorch_impl_unref (values);
  if (taken == NULL || keepdim)
    return g_steal_pointer (&taken);
  return gtorch_op_squeeze (taken, &dim, 1, error);
}

/* Takes the elements at these places of the sorted rows, whose order is that of indices. */
static gboolean
pick_both (GTorchImpl *self, GTorchImpl *indices, gint64 dim, GTorchImpl *places, gboolean keepdim,
           GTorchImpl **values_out, GTorchImpl **indices_out, GError **error)
{
  g_autoptr (GTorchImpl) kept = NULL;
  g_autoptr (GTorchImpl) index = NULL;
  g_autoptr (GTorchImpl) value = NULL;

  kept = pick (gtorch_impl_ref (indices), dim, places, TRUE, error);
  value = kept != NULL ? pick (gtorch_impl_ref (self), dim, kept, keepdim, error) : NULL;
  index = value != NULL && !keepdim && self->n_dims > 0 ? gtorch_op_squeeze (kept, &dim, 1, error)
          : value != NULL                               ? gtorch_impl_ref (kept)
                                                        : NULL;
  if (index == NULL)
    return FALSE;
  if (values_out != NULL)
    *values_out = g_steal_pointer (&value);
  if (indices_out != NULL)
    *indices_out = g_steal_pointer (&index);
  return TRUE;
}

static gboolean
check_row (const gchar *op, GTorchImpl *self, gint64 *dim, GError **error)
{
  guint along;

  if (!gtorch_normalize_dim (op, *dim, self->n_dims, &along, error))
    return FALSE;
  *dim = along;
  if (self->n_dims == 0 || self->shape[along] > 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: dim %u of shape %s has no elements"), op, along,
               gtorch_impl_shape_str (self));
  return FALSE;
}

/* Selects the middle without sorting; the gradient is that of the element where it was found. */
static gboolean
middle (GTorchImpl *self, gint64 dim, gboolean keepdim, GTorchImpl **values_out,
        GTorchImpl **indices_out, GError **error)
{
  const gboolean recorded = gtorch_autograd_wanted (&self, 1);
  g_autoptr (GTorchImpl) value = NULL;
  g_autoptr (GTorchImpl) index = NULL;

  if (!gtorch_op_nan_middle (self, dim, keepdim || recorded, &value, &index, error))
    return FALSE;
  if (recorded)
    {
      gtorch_impl_unref (value);
      value = pick (gtorch_impl_ref (self), dim, index, keepdim, error);
      if (value == NULL)
        return FALSE;
      if (!keepdim && self->n_dims > 0)
        {
          GTorchImpl *squeezed = gtorch_op_squeeze (index, &dim, 1, error);

          gtorch_impl_unref (index);
          index = squeezed;
          if (index == NULL)
            return FALSE;
        }
    }
  if (values_out != NULL)
    *values_out = g_steal_pointer (&value);
  if (indices_out != NULL)
    *indices_out = g_steal_pointer (&index);
  return TRUE;
}

/* NaN comes last in order, so that the middle of the others is (their number - 1) / 2. */
gboolean
gtorch_op_nanmedian_dim (GTorchImpl *self, gint64 dim, gboolean keepdim, GTorchImpl **values,
                         GTorchImpl **indices, GError **error)
{
  g_autoptr (GTorchImpl) sorted = NULL;
  g_autoptr (GTorchImpl) order = NULL;
  g_autoptr (GTorchImpl) is_number = NULL;
  g_autoptr (GTorchImpl) count = NULL;
  g_autoptr (GTorchImpl) less = NULL;
  g_autoptr (GTorchImpl) half = NULL;
  g_autoptr (GTorchImpl) place = NULL;
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) two = gtorch_impl_new_int (2);

  if (!check_row ("nanmedian_dim", self, &dim, error))
    return FALSE;
  if (gtorch_impl_has_op (self, GTORCH_OP_NAN_MIDDLE))
    return middle (self, dim, keepdim, values, indices, error);
  if (!gtorch_op_sort (self, dim, FALSE, TRUE, &sorted, &order, error))
    return FALSE;
  is_number = gtorch_op_eq (self, self, error);
  count = is_number != NULL ? gtorch_op_sum (is_number, &dim, 1, TRUE, GTORCH_DTYPE_INT64, error)
                            : NULL;
  less = count != NULL ? gtorch_op_sub (count, one, 1, error) : NULL;
  half = less != NULL ? gtorch_op_floor_divide (less, two, error) : NULL;
  place = half != NULL ? gtorch_op_clamp (half, 0, INFINITY, error) : NULL;
  return place != NULL && pick_both (self, order, dim, place, keepdim, values, indices, error);
}

GTorchImpl *
gtorch_op_nanmedian (GTorchImpl *self, GError **error)
{
  static const gint64 all = -1;
  g_autoptr (GTorchImpl) row = NULL;
  GTorchImpl *value = NULL;

  if (self->numel == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("nanmedian: shape %s has no elements"), gtorch_impl_shape_str (self));
      return NULL;
    }
  row = gtorch_op_reshape (self, &all, 1, error);
  if (row == NULL || !gtorch_op_nanmedian_dim (row, 0, FALSE, &value, NULL, error))
    return NULL;
  return value;
}

/* Returns, for each place of the sorted rows of n elements, how many equal elements end there; 0 if the next
 * element is equal. A run begins at the greatest place so far whose element is unlike the one before. */
static GTorchImpl *
run_lengths (GTorchImpl *sorted, guint dim, gint64 n, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) first = gtorch_op_slice (sorted, dim, 0, n - 1, 1, error);
  g_autoptr (GTorchImpl) second =
      first != NULL ? gtorch_op_slice (sorted, dim, 1, n, 1, error) : NULL;
  g_autoptr (GTorchImpl) changes = second != NULL ? gtorch_op_ne (first, second, error) : NULL;
  g_autoptr (GTorchImpl) edge = NULL;
  g_autoptr (GTorchImpl) begins = NULL;
  g_autoptr (GTorchImpl) ends = NULL;
  g_autoptr (GTorchImpl) row = NULL;
  g_autoptr (GTorchImpl) places = NULL;
  g_autoptr (GTorchImpl) marked = NULL;
  g_autoptr (GTorchImpl) start = NULL;
  g_autoptr (GTorchImpl) where = NULL;
  g_autoptr (GTorchImpl) distance = NULL;
  g_autoptr (GTorchImpl) length = NULL;
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  guint i;

  if (changes == NULL)
    return NULL;
  memcpy (shape, sorted->shape, sorted->n_dims * sizeof (gint64));
  shape[dim] = 1;
  edge = gtorch_op_new_ones (sorted, shape, sorted->n_dims, GTORCH_DTYPE_BOOL, error);
  begins = edge != NULL ? gtorch_op_cat ((GTorchImpl *[]){ edge, changes }, 2, dim, error) : NULL;
  ends = begins != NULL ? gtorch_op_cat ((GTorchImpl *[]){ changes, edge }, 2, dim, error) : NULL;
  row = ends != NULL
            ? gtorch_op_arange (0, n, 1, GTORCH_DTYPE_INT64, gtorch_impl_device (sorted), error)
            : NULL;
  for (i = 0; i < sorted->n_dims; i++)
    shape[i] = i == dim ? n : 1;
  places = row != NULL ? gtorch_op_reshape (row, shape, sorted->n_dims, error) : NULL;
  marked = places != NULL ? gtorch_op_where (begins, places, zero, error) : NULL;
  if (marked == NULL || !gtorch_op_cummax (marked, dim, &start, &where, error))
    return NULL;
  distance = gtorch_op_sub (places, start, 1, error);
  length = distance != NULL ? gtorch_op_add (distance, one, 1, error) : NULL;
  return length != NULL ? gtorch_op_where (ends, length, zero, error) : NULL;
}

gboolean
gtorch_op_mode (GTorchImpl *self, gint64 dim, gboolean keepdim, GTorchImpl **values,
                GTorchImpl **indices, GError **error)
{
  g_autoptr (GTorchImpl) sorted = NULL;
  g_autoptr (GTorchImpl) order = NULL;
  g_autoptr (GTorchImpl) lengths = NULL;
  g_autoptr (GTorchImpl) place = NULL;

  if (!check_row ("mode", self, &dim, error)
      || !gtorch_op_sort (self, dim, FALSE, TRUE, &sorted, &order, error))
    return FALSE;
  if (self->n_dims == 0)
    place = gtorch_impl_ref (order);
  else
    {
      lengths = run_lengths (sorted, dim, self->shape[dim], error);
      place = lengths != NULL ? gtorch_op_argmax (lengths, &dim, 1, TRUE, error) : NULL;
    }
  return place != NULL && pick_both (self, order, dim, place, keepdim, values, indices, error);
}

/* --- runs of equal elements --- */

/* Returns for each part along dim but the first whether it is unlike the one before. */
static GTorchImpl *
changes_along (GTorchImpl *self, guint dim, GError **error)
{
  g_autoptr (GTorchImpl) first = gtorch_op_slice (self, dim, 0, self->shape[dim] - 1, 1, error);
  g_autoptr (GTorchImpl) second =
      first != NULL ? gtorch_op_slice (self, dim, 1, G_MAXINT64, 1, error) : NULL;
  g_autoptr (GTorchImpl) changes = second != NULL ? gtorch_op_ne (first, second, error) : NULL;
  gint64 others[GTORCH_MAX_DIMS];
  guint i, n = 0;

  for (i = 0; i < self->n_dims; i++)
    if (i != dim)
      others[n++] = i;
  if (changes == NULL || n == 0)
    return g_steal_pointer (&changes);
  return gtorch_op_any (changes, others, n, FALSE, error);
}

/* Returns the places at which runs begin in begins, and the number of the run for each place in inverse. */
static gboolean
find_runs (GTorchImpl *self, guint dim, GTorchImpl **begins, GTorchImpl **inverse, GError **error)
{
  static const gint64 one = 1, all = -1;
  g_autoptr (GTorchImpl) less = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) edge = NULL;
  g_autoptr (GTorchImpl) changes = NULL;
  g_autoptr (GTorchImpl) marks = NULL;
  g_autoptr (GTorchImpl) count = NULL;
  g_autoptr (GTorchImpl) table = NULL;

  changes = changes_along (self, dim, error);
  edge = changes != NULL ? gtorch_op_new_ones (self, &one, 1, GTORCH_DTYPE_BOOL, error) : NULL;
  marks = edge != NULL ? gtorch_op_cat ((GTorchImpl *[]){ edge, changes }, 2, 0, error) : NULL;
  count = marks != NULL ? gtorch_op_cumsum (marks, 0, GTORCH_DTYPE_INT64, error) : NULL;
  *inverse = count != NULL ? gtorch_op_sub (count, less, 1, error) : NULL;
  table = *inverse != NULL ? gtorch_op_nonzero (marks, error) : NULL;
  *begins = table != NULL ? gtorch_op_reshape (table, &all, 1, error) : NULL;
  return *begins != NULL;
}

gboolean
gtorch_op_unique_consecutive (GTorchImpl *self, gint64 dim, GTorchImpl **values,
                              GTorchImpl **inverse_indices, GTorchImpl **counts, GError **error)
{
  static const gint64 all = -1;
  g_autoptr (GTorchImpl) source = NULL;
  g_autoptr (GTorchImpl) begins = NULL;
  g_autoptr (GTorchImpl) inverse = NULL;
  g_autoptr (GTorchImpl) found = NULL;
  g_autoptr (GTorchImpl) shaped = NULL;
  g_autoptr (GTorchImpl) end = NULL;
  g_autoptr (GTorchImpl) lengths = NULL;
  gboolean flat = dim == GTORCH_NONE;
  gint64 n;
  guint along = 0;

  if (!flat && !gtorch_normalize_dim ("unique_consecutive", dim, self->n_dims, &along, error))
    return FALSE;
  flat |= self->n_dims == 0;
  source = flat ? gtorch_op_reshape (self, &all, 1, error) : gtorch_impl_ref (self);
  if (source == NULL)
    return FALSE;
  n = source->shape[along];
  if (n == 0)
    {
      inverse = gtorch_op_new_empty (source, &n, 1, GTORCH_DTYPE_INT64, error);
      begins = inverse != NULL ? gtorch_impl_ref (inverse) : NULL;
    }
  else if (!find_runs (source, along, &begins, &inverse, error))
    return FALSE;
  found = begins != NULL ? gtorch_op_index_select (source, along, begins, error) : NULL;
  end = found != NULL && n > 0
            ? gtorch_op_new_full (begins, (const gint64[]){ 1 }, 1, n, GTORCH_DTYPE_INT64, error)
            : NULL;
  lengths = end != NULL               ? gtorch_op_diff (begins, 1, 0, NULL, end, error)
            : found != NULL && n == 0 ? gtorch_impl_ref (begins)
                                      : NULL;
  shaped = lengths != NULL && flat ? gtorch_op_reshape (inverse, self->shape, self->n_dims, error)
           : lengths != NULL       ? gtorch_impl_ref (inverse)
                                   : NULL;
  if (shaped == NULL)
    return FALSE;
  if (values != NULL)
    *values = g_steal_pointer (&found);
  if (inverse_indices != NULL)
    *inverse_indices = g_steal_pointer (&shaped);
  if (counts != NULL)
    *counts = g_steal_pointer (&lengths);
  return TRUE;
}

/* Returns the order of the rows of a matrix: by the last column, and then stably by those before it. */
static GTorchImpl *
order_rows (GTorchImpl *rows, GError **error)
{
  g_autoptr (GTorchImpl) order =
      gtorch_op_arange (0, rows->shape[0], 1, GTORCH_DTYPE_INT64, gtorch_impl_device (rows), error);

  for (gint64 i = rows->shape[1] - 1; order != NULL && i >= 0; i--)
    {
      g_autoptr (GTorchImpl) column = gtorch_op_select (rows, 1, i, error);
      g_autoptr (GTorchImpl) keys =
          column != NULL ? gtorch_op_index_select (column, 0, order, error) : NULL;
      g_autoptr (GTorchImpl) places =
          keys != NULL ? gtorch_op_argsort (keys, 0, FALSE, TRUE, error) : NULL;
      GTorchImpl *next = places != NULL ? gtorch_op_index_select (order, 0, places, error) : NULL;

      gtorch_impl_unref (order);
      order = next;
    }
  return g_steal_pointer (&order);
}

gboolean
gtorch_op_unique_dim (GTorchImpl *self, gint64 dim, GTorchImpl **values,
                      GTorchImpl **inverse_indices, GTorchImpl **counts, GError **error)
{
  g_autoptr (GTorchImpl) first = NULL;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) order = NULL;
  g_autoptr (GTorchImpl) sorted = NULL;
  g_autoptr (GTorchImpl) back = NULL;
  g_autoptr (GTorchImpl) found = NULL;
  g_autoptr (GTorchImpl) runs = NULL;
  g_autoptr (GTorchImpl) lengths = NULL;
  g_autoptr (GTorchImpl) inverse = NULL;
  gint64 shape[2], zero = 0;
  guint along;

  if (!gtorch_normalize_dim ("unique_dim", dim, self->n_dims, &along, error))
    return FALSE;
  dim = along;
  shape[0] = self->n_dims > 0 ? self->shape[along] : 1;
  if (self->numel == 0 && shape[0] != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("unique_dim: the slices of shape %s along dim %u have no elements"),
                   gtorch_impl_shape_str (self), along);
      return FALSE;
    }
  shape[1] = shape[0] > 0 ? self->numel / shape[0] : 0;
  first = self->n_dims > 0 ? gtorch_op_movedim (self, &dim, 1, &zero, 1, error)
                           : gtorch_impl_ref (self);
  rows = first != NULL ? gtorch_op_reshape (first, shape, 2, error) : NULL;
  if (rows != NULL && !rows->is_contiguous) /* the elements of expanded tensors are counted, too */
    {
      GTorchImpl *copy = gtorch_op_contiguous (rows, error);

      gtorch_impl_unref (rows);
      rows = copy;
    }
  order = rows != NULL ? order_rows (rows, error) : NULL;
  sorted = order == NULL       ? NULL
           : self->n_dims == 0 ? gtorch_op_reshape (self, shape, 1, error)
                               : gtorch_op_index_select (self, along, order, error);
  back = sorted != NULL ? gtorch_op_argsort (order, 0, FALSE, TRUE, error) : NULL;
  if (back == NULL || !gtorch_op_unique_consecutive (sorted, along, &found, &runs, &lengths, error))
    return FALSE;
  inverse = gtorch_op_index_select (runs, 0, back, error);
  if (inverse == NULL)
    return FALSE;
  if (values != NULL)
    *values = g_steal_pointer (&found);
  if (inverse_indices != NULL)
    *inverse_indices = g_steal_pointer (&inverse);
  if (counts != NULL)
    *counts = g_steal_pointer (&lengths);
  return TRUE;
}
