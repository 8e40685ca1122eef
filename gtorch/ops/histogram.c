/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Histograms. Intervals of one length are counted at once. Else the number of each element's interval is
 * computed, elements beside all intervals get the number after the last one, and the numbers are counted or
 * weights are added up by them. Counts are integers until the end, so that none is rounded on the way. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error-private.h"
#include "base/gtorch-none-private.h"
#include "base/gtorch-text-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-formula-private.h"
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

/* Finds the range of the elements if it is not given, from 0 to 1 without elements, and widens it by
 * margin if it is a point. */
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
  else if (!is_given)
    {
      *low = 0;
      *high = 1;
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
               _ ("%s: %" PRId64 " bins are not possible: there must be at least 1"), op, bins);
  return FALSE;
}

/* Adds up what belongs to each of the bins: the weights, or ones if weights is NULL. */
static GTorchImpl *
add_up (GTorchImpl *numbers, GTorchImpl *weights, gint64 bins, GError **error)
{
  const gint64 length = bins + 1;
  g_autoptr (GTorchImpl) zeros = NULL;
  g_autoptr (GTorchImpl) sums = NULL;

  if (weights == NULL)
    return gtorch_op_number_counts (numbers, bins, error);
  zeros = gtorch_op_new_zeros (numbers, &length, 1, weights->dtype, error);
  sums = zeros != NULL ? gtorch_op_scatter_add (zeros, 0, numbers, weights, error) : NULL;
  return sums != NULL ? gtorch_op_slice (sums, 0, 0, bins, 1, error) : NULL;
}

/* --- histc --- */

gboolean
gtorch_shape_uniform_counts (GTorchOpCall *call, GError **error)
{
  call->compute = call->inputs[0]->dtype;
  return gtorch_call_check_dtype (call, call->compute, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, &call->attrs[0].i, 1, error);
}

gboolean
gtorch_shape_number_counts (GTorchOpCall *call, GError **error)
{
  call->compute = GTORCH_DTYPE_INT64;
  return gtorch_call_check_dtype (call, call->inputs[0]->dtype, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, &call->attrs[0].i, 1, error);
}

GTorchImpl *
gtorch_op_histc (GTorchImpl *self, gint64 bins, gdouble min, gdouble max, GError **error)
{
  g_autoptr (GTorchImpl) counts = NULL;

  if (!check_self ("histc", self, error) || !check_bins ("histc", bins, error)
      || !find_range ("histc", self, min != max, 1, &min, &max, error))
    return NULL;
  counts = gtorch_op_uniform_counts (self, bins, min, max, error);
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

static gboolean
check_edges (const gchar *op, GTorchImpl *self, GTorchImpl *bins, GError **error)
{
  if (bins->n_dims == 1 && bins->numel >= 2 && bins->dtype == self->dtype)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: bins of dtype %s and shape %s must be a row of at least two elements, of "
                  "the dtype %s of self"),
               op, gtorch_dtype_get_name (bins->dtype), gtorch_impl_shape_str (bins),
               gtorch_dtype_get_name (self->dtype));
  return FALSE;
}

gboolean
gtorch_op_histogram_bins (GTorchImpl *self, GTorchImpl *bins, GTorchImpl *weight, gboolean density,
                          GTorchImpl **hist, GTorchImpl **bin_edges, GError **error)
{
  if (!check_self ("histogram_bins", self, error)
      || !check_edges ("histogram_bins", self, bins, error))
    return FALSE;
  return give ("histogram_bins", self, bins, weight, density, hist, bin_edges, error);
}

/* --- histogramdd --- */

/* Checks the points, whose coordinates are the last dimension, and their weights. */
static gboolean
check_points (const gchar *op, GTorchImpl *self, GTorchImpl *weight, GError **error)
{
  if (!check_self (op, self, error))
    return FALSE;
  if (self->n_dims < 2 || self->shape[self->n_dims - 1] < 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s must be that of points, with coordinates in the last "
                      "dimension"),
                   op, gtorch_impl_shape_str (self));
      return FALSE;
    }
  if (weight == NULL
      || (weight->dtype == self->dtype
          && gtorch_same_shape (weight->shape, weight->n_dims, self->shape, self->n_dims - 1)))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: weight of dtype %s and shape %s must have the dtype %s and a number for "
                  "each point of shape %s"),
               op, gtorch_dtype_get_name (weight->dtype), gtorch_impl_shape_str (weight),
               gtorch_dtype_get_name (self->dtype), gtorch_impl_shape_str (self));
  return FALSE;
}

/* Returns the number of the cell of each point, and `cells` for those that are in none. */
static GTorchImpl *
cells_of (GTorchFormula *formula, GTorchImpl *points, GTorchImpl *const *edges, gint64 n,
          gint64 cells)
{
  GTorchImpl *cell = NULL, *is_outside = NULL, *number;
  gint64 i;

  for (i = 0; i < n && !formula->failed; i++)
    {
      const gint64 bins = edges[i]->numel - 1;
      GTorchImpl *column = GTORCH_FORMULA_OP (formula, select, points, 1, i), *row, *own;

      row = GTORCH_FORMULA_OP (formula, reshape, column, &all, 1);
      own = formula->failed ? NULL : numbers_between (row, edges[i], bins, formula->error);
      own = gtorch_formula_keep (formula, own);
      number = gtorch_formula_keep (formula, gtorch_impl_new_int (bins));
      row = GTORCH_FORMULA_OP (formula, eq, own, number);
      is_outside =
          is_outside != NULL ? GTORCH_FORMULA_OP (formula, logical_or, is_outside, row) : row;
      if (cell != NULL)
        {
          cell = GTORCH_FORMULA_OP (formula, mul, cell, number);
          own = GTORCH_FORMULA_OP (formula, add, cell, own, 1);
        }
      cell = own;
    }
  number = gtorch_formula_keep (formula, gtorch_impl_new_int (cells));
  return GTORCH_FORMULA_OP (formula, where, is_outside, number, cell);
}

/* Divides by the sum and by the widths of each dimension. */
static GTorchImpl *
cell_densities (GTorchFormula *formula, GTorchImpl *hist, GTorchImpl *const *edges, gint64 n)
{
  GTorchImpl *total = GTORCH_FORMULA_OP (formula, sum, hist, NULL, 0, FALSE, GTORCH_DTYPE_NONE);
  gint64 i;

  hist = GTORCH_FORMULA_OP (formula, div, hist, total);
  for (i = 0; i < n && !formula->failed; i++)
    {
      gint64 shape[GTORCH_MAX_DIMS];
      GTorchImpl *width = GTORCH_FORMULA_OP (formula, diff, edges[i], 1, 0, NULL, NULL);
      gint64 d;

      for (d = 0; d < n; d++)
        shape[d] = d == i ? edges[i]->numel - 1 : 1;
      width = GTORCH_FORMULA_OP (formula, reshape, width, shape, n);
      hist = GTORCH_FORMULA_OP (formula, div, hist, width);
    }
  return hist;
}

/* Returns the counts and then the edges. */
static GPtrArray *
count_cells (const gchar *op, GTorchImpl *self, GTorchImpl *const *edges, GTorchImpl *weight,
             gboolean density, GError **error)
{
  const gint64 n = self->shape[self->n_dims - 1];
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *points, *cell, *sums, *hist;
  gint64 shape[GTORCH_MAX_DIMS], cells = 1, i;
  GPtrArray *list;

  for (i = 0; i < n; i++)
    {
      shape[i] = edges[i]->numel - 1;
      if (__builtin_mul_overflow (cells, shape[i], &cells))
        cells = G_MAXINT64;
    }
  if (!gtorch_shape_check (op, shape, n, GTORCH_DTYPE_INT64, error))
    return NULL;
  points = GTORCH_FORMULA_OP (&f, reshape, self, ((const gint64[]){ self->numel / n, n }), 2);
  cell = f.failed ? NULL : cells_of (&f, points, edges, n, cells);
  if (weight != NULL)
    weight = GTORCH_FORMULA_OP (&f, reshape, weight, &all, 1);
  sums = gtorch_formula_keep (&f, f.failed ? NULL : add_up (cell, weight, cells, error));
  hist = GTORCH_FORMULA_OP (&f, reshape, sums, shape, n);
  hist = GTORCH_FORMULA_OP (&f, to, hist, self->dtype, NULL, FALSE, FALSE);
  if (density)
    hist = cell_densities (&f, hist, edges, n);
  if (f.failed)
    {
      gtorch_error_set_op (error, op);
      return NULL;
    }
  list = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_ptr_array_add (list, gtorch_formula_take (&f, hist));
  for (i = 0; i < n; i++)
    g_ptr_array_add (list, gtorch_impl_ref (edges[i]));
  return list;
}

/* Checks that each coordinate, of which there may be as many as dimensions, has one of n. */
static gboolean
check_coordinates (const gchar *op, GTorchImpl *self, gsize n, GError **error)
{
  const gint64 wanted = self->shape[self->n_dims - 1];

  if (wanted == (gint64) n && wanted <= GTORCH_MAX_DIMS)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: bins of %zu coordinates for points of %" PRId64
                  ": there must be as many, and %d at most"),
               op, n, wanted, GTORCH_MAX_DIMS);
  return FALSE;
}

/* Reads the pairs of the range on the host. */
static gboolean
read_range (GTorchImpl *range, gint64 n, gdouble *pairs, GError **error)
{
  g_autoptr (GTorchImpl) host = NULL;

  if (range->n_dims != 1 || range->numel != 2 * n
      || gtorch_dtype_kind (range->dtype) == GTORCH_KIND_COMPLEX)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("histogramdd: a range of dtype %s and shape %s must be a row of two real "
                      "numbers for each of %" PRId64 " coordinates"),
                   gtorch_dtype_get_name (range->dtype), gtorch_impl_shape_str (range), n);
      return FALSE;
    }
  host = gtorch_impl_to_host ("histogramdd", range, error);
  if (host == NULL)
    return FALSE;
  gtorch_impl_read (host, GTORCH_DTYPE_FLOAT64, pairs);
  return TRUE;
}

GPtrArray *
gtorch_op_histogramdd (GTorchImpl *self, const gint64 *bins, gsize n_bins, GTorchImpl *range,
                       GTorchImpl *weight, gboolean density, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *edges[GTORCH_MAX_DIMS];
  gdouble pairs[2 * GTORCH_MAX_DIMS] = { 0 };
  gint64 i, n;

  if (!check_points ("histogramdd", self, weight, error))
    return NULL;
  n = self->shape[self->n_dims - 1];
  if (!check_coordinates ("histogramdd", self, n_bins == 1 ? (gsize) n : n_bins, error)
      || (range != NULL && !read_range (range, n, pairs, error)))
    return NULL;
  for (i = 0; i < n && !f.failed; i++)
    {
      const gint64 own = bins[n_bins == 1 ? 0 : i];
      GTorchImpl *column = GTORCH_FORMULA_OP (&f, select, self, -1, i);

      if (f.failed || !check_bins ("histogramdd", own, error)
          || !find_range ("histogramdd", column, range != NULL, 0.5, &pairs[2 * i],
                          &pairs[2 * i + 1], error))
        return NULL;
      edges[i] = GTORCH_FORMULA_OP (&f, linspace, pairs[2 * i], pairs[2 * i + 1], own + 1,
                                    self->dtype, gtorch_impl_device (self));
    }
  return f.failed ? NULL : count_cells ("histogramdd", self, edges, weight, density, error);
}

GPtrArray *
gtorch_op_histogramdd_bins (GTorchImpl *self, GTorchImpl *const *bins, gsize n_bins,
                            GTorchImpl *weight, gboolean density, GError **error)
{
  gsize i;

  if (!check_points ("histogramdd_bins", self, weight, error)
      || !check_coordinates ("histogramdd_bins", self, n_bins, error))
    return NULL;
  for (i = 0; i < n_bins; i++)
    if (!check_edges ("histogramdd_bins", self, bins[i], error))
      return NULL;
  return count_cells ("histogramdd_bins", self, bins, weight, density, error);
}
