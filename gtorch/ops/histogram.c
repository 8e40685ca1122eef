/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Histograms. The number of each element's interval is computed, elements beside all intervals get the
 * number after the last one, and ones or weights are added up by these numbers. Counts are integers until
 * the end, so that none is rounded on the way. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error-private.h"
#include "base/gtorch-none-private.h"
#include "base/gtorch-text-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-host-private.h"

static const gint64 all = -1;

/* Reads a number from the device. */
static gboolean
read_number (GTorchImpl *impl, gdouble *value, GError **error)
{
  g_autoptr (GTorchImpl) host = gtorch_impl_to_host ("histogram", impl, error);

  if (host == NULL)
    return FALSE;
  gtorch_impl_read (host, GTORCH_DTYPE_FLOAT64, value);
  return TRUE;
}

/* Finds the range of the elements if it is not given, and widens it by margin if it is a point. */
static gboolean
find_range (const gchar *op, GTorchImpl *self, gboolean is_given, gdouble margin, gdouble *low,
            gdouble *high, GError **error)
{
  if (!is_given && self->numel > 0)
    {
      g_autoptr (GTorchImpl) least = gtorch_op_min (self, error);
      g_autoptr (GTorchImpl) greatest = least != NULL ? gtorch_op_max (self, error) : NULL;

      if (greatest == NULL || !read_number (least, low, error)
          || !read_number (greatest, high, error))
        return FALSE;
    }
  if (*low == *high)
    {
      *low -= margin;
      *high += margin;
    }
  if (isfinite (*low) && isfinite (*high) && *low < *high)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: the range from %g to %g must be finite, and not end before it begins"), op,
               *low, *high);
  return FALSE;
}

/* The edges between integers would be integers, and counts overflow small ones. */
static gboolean
check_self (const gchar *op, GTorchImpl *self, GError **error)
{
  if (gtorch_dtype_is_floating_point (self->dtype))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: not defined for dtype %s"), op,
               gtorch_dtype_get_name (self->dtype));
  return FALSE;
}

static gboolean
check_bins (const gchar *op, gint64 bins, GError **error)
{
  if (bins > 0 && bins < G_MAXINT64 - 1)
    return gtorch_shape_check (op, (const gint64[]){ bins + 1 }, 1, GTORCH_DTYPE_INT64, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: %" G_GINT64_FORMAT " bins are not possible: there must be at least 1"), op,
               bins);
  return FALSE;
}

/* Adds up what belongs to each of the bins: the weights, or ones if weights is NULL. */
static GTorchImpl *
add_up (GTorchImpl *numbers, GTorchImpl *weights, gint64 bins, GError **error)
{
  const gint64 length = bins + 1;
  GTorchDType dtype = weights != NULL ? weights->dtype : GTORCH_DTYPE_INT64;
  g_autoptr (GTorchImpl) zeros = gtorch_op_new_zeros (numbers, &length, 1, dtype, error);
  g_autoptr (GTorchImpl) added = NULL;
  g_autoptr (GTorchImpl) sums = NULL;

  if (zeros == NULL)
    return NULL;
  added = weights != NULL ? gtorch_impl_ref (weights)
                          : gtorch_op_ones_like (numbers, GTORCH_DTYPE_INT64, error);
  sums = added != NULL ? gtorch_op_scatter_add (zeros, 0, numbers, added, error) : NULL;
  return sums != NULL ? gtorch_op_slice (sums, 0, 0, bins, 1, error) : NULL;
}

/* --- histc --- */

/* Returns floor ((x - min) bins / (max - min)), less 1 for the last end, and bins for what is outside. */
static GTorchImpl *
uniform_numbers (GTorchImpl *row, gint64 bins, gdouble min, gdouble max, GError **error)
{
  g_autoptr (GTorchImpl) low = gtorch_impl_new_number (min);
  g_autoptr (GTorchImpl) high = gtorch_impl_new_number (max);
  g_autoptr (GTorchImpl) width = gtorch_impl_new_number (max - min);
  g_autoptr (GTorchImpl) count = gtorch_impl_new_number (bins);
  g_autoptr (GTorchImpl) last = gtorch_impl_new_int (bins);
  g_autoptr (GTorchImpl) above = gtorch_op_ge (row, low, error);
  g_autoptr (GTorchImpl) below = above != NULL ? gtorch_op_le (row, high, error) : NULL;
  g_autoptr (GTorchImpl) inside =
      below != NULL ? gtorch_op_logical_and (above, below, error) : NULL;
  g_autoptr (GTorchImpl) distance = inside != NULL ? gtorch_op_sub (row, low, 1, error) : NULL;
  g_autoptr (GTorchImpl) scaled = distance != NULL ? gtorch_op_mul (distance, count, error) : NULL;
  g_autoptr (GTorchImpl) place = scaled != NULL ? gtorch_op_div (scaled, width, error) : NULL;
  g_autoptr (GTorchImpl) kept = place != NULL ? gtorch_op_where (inside, place, low, error) : NULL;
  g_autoptr (GTorchImpl) number =
      kept != NULL ? gtorch_op_to_dtype (kept, GTORCH_DTYPE_INT64, error) : NULL;
  g_autoptr (GTorchImpl) closed =
      number != NULL ? gtorch_op_clamp (number, 0, bins - 1, error) : NULL;

  return closed != NULL ? gtorch_op_where (inside, closed, last, error) : NULL;
}

GTorchImpl *
gtorch_op_histc (GTorchImpl *self, gint64 bins, gdouble min, gdouble max, GError **error)
{
  g_autoptr (GTorchImpl) row = NULL;
  g_autoptr (GTorchImpl) numbers = NULL;
  g_autoptr (GTorchImpl) counts = NULL;

  if (!check_self ("histc", self, error) || !check_bins ("histc", bins, error)
      || !find_range ("histc", self, min != max, 1, &min, &max, error))
    return NULL;
  row = gtorch_op_reshape (self, &all, 1, error);
  numbers = row != NULL ? uniform_numbers (row, bins, min, max, error) : NULL;
  counts = numbers != NULL ? add_up (numbers, NULL, bins, error) : NULL;
  if (counts == NULL)
    gtorch_error_set_op (error, "histc");
  return counts != NULL ? gtorch_op_to_dtype (counts, self->dtype, error) : NULL;
}

/* --- histogram --- */

/* Returns the number of the last edge that is not above each element. The last edge belongs to the last
 * bin. */
static GTorchImpl *
numbers_between (GTorchImpl *row, GTorchImpl *edges, gint64 bins, GError **error)
{
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) last = gtorch_impl_new_int (bins);
  g_autoptr (GTorchImpl) closed = gtorch_impl_new_int (bins - 1);
  g_autoptr (GTorchImpl) end = gtorch_op_select (edges, 0, bins, error);
  g_autoptr (GTorchImpl) right =
      end != NULL ? gtorch_op_search_places (edges, row, TRUE, error) : NULL;
  g_autoptr (GTorchImpl) number = right != NULL ? gtorch_op_sub (right, one, 1, error) : NULL;
  g_autoptr (GTorchImpl) is_end = number != NULL ? gtorch_op_eq (row, end, error) : NULL;
  g_autoptr (GTorchImpl) mended =
      is_end != NULL ? gtorch_op_where (is_end, closed, number, error) : NULL;
  g_autoptr (GTorchImpl) before = mended != NULL ? gtorch_op_lt (mended, zero, error) : NULL;

  return before != NULL ? gtorch_op_where (before, last, mended, error) : NULL;
}

static GTorchImpl *
densities (GTorchImpl *sums, GTorchImpl *edges, GError **error)
{
  g_autoptr (GTorchImpl) total = gtorch_op_sum (sums, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  g_autoptr (GTorchImpl) width =
      total != NULL ? gtorch_op_diff (edges, 1, 0, NULL, NULL, error) : NULL;
  g_autoptr (GTorchImpl) share = width != NULL ? gtorch_op_div (sums, total, error) : NULL;

  return share != NULL ? gtorch_op_div (share, width, error) : NULL;
}

static GTorchImpl *
count_between (const gchar *op, GTorchImpl *self, GTorchImpl *edges, GTorchImpl *weight,
               gboolean density, GError **error)
{
  gint64 bins = edges->numel - 1;
  g_autoptr (GTorchImpl) row = NULL;
  g_autoptr (GTorchImpl) numbers = NULL;
  g_autoptr (GTorchImpl) weights = NULL;
  g_autoptr (GTorchImpl) sums = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (weight != NULL && (weight->dtype != self->dtype || !gtorch_impl_same_shape (weight, self)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: weight of dtype %s and shape %s must have the dtype %s and the shape %s "
                      "of self"),
                   op, gtorch_dtype_get_name (weight->dtype), gtorch_impl_shape_str (weight),
                   gtorch_dtype_get_name (self->dtype), gtorch_impl_shape_str (self));
      return NULL;
    }
  row = gtorch_op_reshape (self, &all, 1, error);
  weights = row != NULL && weight != NULL ? gtorch_op_reshape (weight, &all, 1, error) : NULL;
  if (row == NULL || (weight != NULL && weights == NULL))
    return NULL;
  numbers = numbers_between (row, edges, bins, error);
  sums = numbers != NULL ? add_up (numbers, weights, bins, error) : NULL;
  result = sums != NULL ? gtorch_op_to (sums, self->dtype, NULL, FALSE, FALSE, error) : NULL;
  if (result == NULL || !density)
    return g_steal_pointer (&result);
  return densities (result, edges, error);
}

static gboolean
give (const gchar *op, GTorchImpl *self, GTorchImpl *edges, GTorchImpl *weight, gboolean density,
      GTorchImpl **hist, GTorchImpl **bin_edges, GError **error)
{
  GTorchImpl *counts = count_between (op, self, edges, weight, density, error);

  if (counts == NULL)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  if (hist != NULL)
    *hist = counts;
  else
    gtorch_impl_unref (counts);
  if (bin_edges != NULL)
    *bin_edges = gtorch_impl_ref (edges);
  return TRUE;
}

gboolean
gtorch_op_histogram (GTorchImpl *self, gint64 bins, gdouble low, gdouble high, GTorchImpl *weight,
                     gboolean density, GTorchImpl **hist, GTorchImpl **bin_edges, GError **error)
{
  const gboolean is_given = !gtorch_is_none_double (low);
  g_autoptr (GTorchImpl) edges = NULL;

  if (is_given == gtorch_is_none_double (high))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("histogram: %s is %g and %s is not given: there must be both or none"),
                   is_given ? "low" : "high", is_given ? low : high, is_given ? "high" : "low");
      return FALSE;
    }
  if (!is_given)
    low = high = 0;
  if (!check_self ("histogram", self, error) || !check_bins ("histogram", bins, error)
      || !find_range ("histogram", self, is_given, 0.5, &low, &high, error))
    return FALSE;
  edges = gtorch_op_linspace (low, high, bins + 1, self->dtype, gtorch_impl_device (self), error);
  return edges != NULL && give ("histogram", self, edges, weight, density, hist, bin_edges, error);
}

gboolean
gtorch_op_histogram_bins (GTorchImpl *self, GTorchImpl *bins, GTorchImpl *weight, gboolean density,
                          GTorchImpl **hist, GTorchImpl **bin_edges, GError **error)
{
  if (!check_self ("histogram_bins", self, error))
    return FALSE;
  if (bins->n_dims != 1 || bins->numel < 2 || bins->dtype != self->dtype)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("histogram_bins: bins of dtype %s and shape %s must be a row of at least two "
                      "elements, of the dtype %s of self"),
                   gtorch_dtype_get_name (bins->dtype), gtorch_impl_shape_str (bins),
                   gtorch_dtype_get_name (self->dtype));
      return FALSE;
    }
  return give ("histogram_bins", self, bins, weight, density, hist, bin_edges, error);
}
