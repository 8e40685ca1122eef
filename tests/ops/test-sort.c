/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sorting: NaN, signed zeros, ties, long rows, and errors. */

#include "config.h"

#include <math.h>

#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

#include "op-values.h"

static GTorchTensor *
row (GTorchDType dtype, const gdouble *values, gsize n)
{
  g_autoptr (GTorchTensor) wide =
      gtorch_tensor_new_from_doubles (values, n, GTORCH_SHAPE ((gint64) n), GTORCH_DTYPE_FLOAT64,
                                      NULL, NULL);

  return gtorch_tensor_to_dtype (wide, dtype, NULL);
}

static gdouble
at (GTorchTensor *tensor, gint64 i)
{
  return creal (element_get (tensor->impl, i));
}

static void
nan_is_the_largest_and_ties_keep_their_order (void)
{
  static const gdouble values[] = { 1, NAN, -0.0, 0.0, INFINITY, NAN, -INFINITY, 1 };
  static const gint64 up[] = { 6, 2, 3, 0, 7, 4, 1, 5 }, down[] = { 1, 5, 4, 0, 7, 2, 3, 6 };
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };
  guint d, i;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      g_autoptr (GTorchTensor) x = row (dtypes[d], values, G_N_ELEMENTS (values));
      g_autoptr (GTorchTensor) sorted = NULL;
      g_autoptr (GTorchTensor) indices = NULL;
      g_autoptr (GTorchTensor) reverse = gtorch_tensor_argsort (x, 0, TRUE, FALSE, NULL);
      g_autoptr (GTorchTensor) largest = NULL;

      g_assert_true (gtorch_tensor_sort (x, -1, FALSE, FALSE, &sorted, &indices, NULL));
      g_assert_true (gtorch_tensor_topk (x, 3, 0, TRUE, TRUE, NULL, &largest, NULL));
      for (i = 0; i < 8; i++)
        {
          g_assert_cmpfloat (at (indices, i), ==, up[i]);
          g_assert_cmpfloat (at (reverse, i), ==, down[i]);
          if (i < 3)
            g_assert_cmpfloat (at (largest, i), ==, down[i]);
        }
      g_assert_true (signbit (at (sorted, 1)) && !signbit (at (sorted, 2)));
    }
}

/* Long enough for radix passes, halves and partial selection. */
static void
long_rows_are_sorted (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_INT64,   GTORCH_DTYPE_INT32,
                                        GTORCH_DTYPE_INT16,   GTORCH_DTYPE_UINT8 };
  static const gint64 lengths[] = { 255, 256, 3000, 150001 };
  guint d, l;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (l = 0; l < G_N_ELEMENTS (lengths); l++)
      {
        gint64 n = lengths[l], k = n / 7, i;
        g_autofree gdouble *numbers = g_new (gdouble, n);
        g_autoptr (GTorchTensor) x = NULL;
        g_autoptr (GTorchTensor) values = NULL;
        g_autoptr (GTorchTensor) indices = NULL;
        g_autoptr (GTorchTensor) first = NULL;
        g_autoptr (GTorchTensor) where = NULL;
        g_autoptr (GTorchTensor) one = NULL;

        if (is_under_sanitizer () && n > 100000 && d > 0)
          continue;
        for (i = 0; i < n; i++)
          numbers[i] = g_test_rand_int_range (0, 20000) % (l == 2 ? 50 : 20000);
        x = row (dtypes[d], numbers, n);
        g_assert_true (gtorch_tensor_sort (x, 0, FALSE, TRUE, &values, &indices, NULL));
        g_assert_true (gtorch_tensor_topk (x, k, 0, FALSE, TRUE, &first, &where, NULL));
        g_assert_true (gtorch_tensor_kthvalue (x, k, 0, FALSE, &one, NULL, NULL));
        g_assert_cmpfloat (at (one, 0), ==, at (values, k - 1));
        for (i = 0; i < n; i++)
          {
            gint64 from = (gint64) at (indices, i);

            g_assert_cmpfloat (at (values, i), ==, at (x, from));
            if (i > 0 && at (values, i - 1) == at (values, i))
              g_assert_cmpfloat (at (indices, i - 1), <, from);
            else if (i > 0)
              g_assert_cmpfloat (at (values, i - 1), <, at (values, i));
            if (i < k)
              g_assert_cmpfloat (at (where, i), ==, from);
          }
      }
}

static void
equal_values_are_counted_and_searched (void)
{
  static const gdouble values[] = { 3, 1, 3, 2, 1, 3 }, probes[] = { 0, 1, 2.5, 3, 4 };
  static const gint64 left[] = { 0, 0, 3, 3, 6 }, right[] = { 0, 2, 3, 6, 6 };
  g_autoptr (GTorchTensor) x = row (GTORCH_DTYPE_INT64, values, 6);
  g_autoptr (GTorchTensor) probe = row (GTORCH_DTYPE_FLOAT32, probes, 5);
  g_autoptr (GTorchTensor) counts = gtorch_tensor_bincount (x, NULL, 5, NULL);
  g_autoptr (GTorchTensor) distinct = NULL;
  g_autoptr (GTorchTensor) inverse = NULL;
  g_autoptr (GTorchTensor) often = NULL;
  g_autoptr (GTorchTensor) sorted = NULL;
  g_autoptr (GTorchTensor) a = NULL;
  g_autoptr (GTorchTensor) b = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  if (!gtorch_tensor_unique (x, &distinct, &inverse, &often, &error) && is_lacking (error))
    return;
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_sort (x, 0, FALSE, FALSE, &sorted, NULL, NULL));
  a = gtorch_searchsorted (sorted, probe, FALSE, FALSE, NULL, NULL);
  b = gtorch_tensor_bucketize (probe, sorted, TRUE, FALSE, NULL);
  g_assert_cmpint (distinct->impl->numel, ==, 3);
  g_assert_cmpint (counts->impl->numel, ==, 5);
  for (i = 0; i < 3; i++)
    {
      g_assert_cmpfloat (at (distinct, i), ==, i + 1);
      g_assert_cmpfloat (at (often, i), ==, at (counts, i + 1));
    }
  for (i = 0; i < 6; i++)
    g_assert_cmpfloat (at (inverse, i), ==, values[i] - 1);
  for (i = 0; i < 5; i++)
    {
      g_assert_cmpfloat (at (a, i), ==, left[i]);
      g_assert_cmpfloat (at (b, i), ==, right[i]);
    }
}

static void
sorters_are_the_order_of_a_sequence (void)
{
  static const gdouble values[] = { 3, 1, 3, 2, 1, 3 }, probes[] = { 0, 1, 2.5, 3, 4 };
  static const gint64 left[] = { 0, 0, 3, 3, 6 };
  g_autoptr (GTorchTensor) x = row (GTORCH_DTYPE_FLOAT32, values, 6);
  g_autoptr (GTorchTensor) probe = row (GTORCH_DTYPE_FLOAT32, probes, 5);
  g_autoptr (GTorchTensor) order = gtorch_tensor_argsort (x, 0, FALSE, FALSE, NULL);
  g_autoptr (GTorchTensor) places = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  places = gtorch_searchsorted (x, probe, FALSE, TRUE, order, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_dtype (places), ==, GTORCH_DTYPE_INT32);
  for (i = 0; i < 5; i++)
    g_assert_cmpfloat (at (places, i), ==, left[i]);
  g_assert_null (gtorch_searchsorted (x, probe, FALSE, FALSE, probe, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "searchsorted: sorter of shape [5] and dtype float32 must be of int64 and of "
                   "the "
                   "shape of sorted_sequence, [6]");
}

static void
impossible_requests_are_errors (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (2, 3), 0, NULL, NULL);
  g_autoptr (GTorchTensor) minus =
      gtorch_full (GTORCH_SHAPE (2), -1, GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_tensor_topk (x, 4, 1, TRUE, TRUE, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==,
                   "topk: k is 4, but dimension 1 of shape [2, 3] allows from 0 to 3");
  g_clear_error (&error);
  g_assert_false (gtorch_tensor_kthvalue (x, 0, 1, FALSE, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_bincount (minus, NULL, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==, "bincount: the value -1 is negative");
  g_clear_error (&error);
  g_assert_true (test_fails (gtorch_tensor_one_hot (minus, 3, &error), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_true (g_str_has_prefix (error->message, "one_hot: index -1 is out of range for"));
}

static void
medians_see_nan (void)
{
  const gdouble values[] = { 3, NAN, 1, 5, 4, 2 };
  g_autoptr (GTorchTensor) x = gtorch_tensor_new_from_doubles (values, 6, GTORCH_SHAPE (2, 3),
                                                               GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) none = gtorch_zeros (GTORCH_SHAPE (2, 0), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) middle = NULL;
  g_autoptr (GTorchTensor) where = NULL;
  g_autoptr (GTorchTensor) all = gtorch_tensor_median (x, NULL);
  g_autoptr (GError) error = NULL;
  g_autofree gdouble *seen = NULL;
  g_autofree gint64 *places = NULL;
  gsize n;

  g_assert_true (isnan (gtorch_tensor_item_double (all, NULL)));
  g_assert_true (gtorch_tensor_median_dim (x, 1, FALSE, &middle, &where, &error));
  g_assert_no_error (error);
  seen = gtorch_tensor_to_doubles (middle, &n, NULL);
  places = gtorch_tensor_to_ints (where, &n, NULL);
  g_assert_true (isnan (seen[0]));
  g_assert_cmpfloat (seen[1], ==, 4);
  g_assert_cmpint (places[0], ==, 1);
  g_assert_cmpint (places[1], ==, 1);
  g_assert_null (gtorch_tensor_median (none, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==, "median: dim 0 of shape [0] has no elements");
}

static void
running_extremes_see_nan_and_the_last_of_equals (void)
{
  const gdouble values[] = { 1, 3, 3, 2, NAN, 9 };
  const gint64 expected[] = { 0, 1, 2, 2, 4, 4 };
  g_autoptr (GTorchTensor) x = gtorch_tensor_new_from_doubles (values, 6, GTORCH_SHAPE (6),
                                                               GTORCH_DTYPE_FLOAT16, NULL, NULL);
  g_autoptr (GTorchTensor) best = NULL;
  g_autoptr (GTorchTensor) where = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gdouble *seen = NULL;
  g_autofree gint64 *places = NULL;
  gsize n, i;

  if (!gtorch_tensor_cummax (x, 0, &best, &where, &error) && is_lacking (error))
    return;
  g_assert_no_error (error);
  seen = gtorch_tensor_to_doubles (best, &n, NULL);
  places = gtorch_tensor_to_ints (where, &n, NULL);
  for (i = 0; i < 6; i++)
    g_assert_cmpint (places[i], ==, expected[i]);
  g_assert_cmpfloat (seen[3], ==, 3);
  g_assert_true (isnan (seen[5]));
}

static void
check_doubles (GTorchTensor *x, const gdouble *expected, gsize n_expected)
{
  gsize n, i;
  g_autofree gdouble *seen = gtorch_tensor_to_doubles (x, &n, NULL);

  g_assert_cmpuint (n, ==, n_expected);
  for (i = 0; i < n; i++)
    if (seen[i] != expected[i] && !(isnan (seen[i]) && isnan (expected[i])))
      g_assert_cmpfloat_with_epsilon (seen[i], expected[i], 1e-7 * 1000);
}

/* The exponentials overflow float32, whose precision near 1000 limits the gradient; infinities and NaN
 * are handled as they are. */
static void
running_sums_of_exponentials_stay_in_range (void)
{
  const gdouble values[] = { -INFINITY, -1000, 1000, 1000, 900, INFINITY, INFINITY, NAN, 0 };
  const gdouble sums[] = { -INFINITY, -1000,    1000, 1000 + G_LN2, 1000 + G_LN2,
                           INFINITY,  INFINITY, NAN,  NAN };
  const gdouble slopes[] = { 0, 1, 2, 1, 0 };
  g_autoptr (GTorchTensor) all = gtorch_tensor_new_from_doubles (values, 9, GTORCH_SHAPE (9),
                                                                 GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) x = gtorch_tensor_new_from_doubles (values, 5, GTORCH_SHAPE (5),
                                                               GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) whole = gtorch_arange (0, 3, 1, GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) seed = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GError) error = NULL;

  y = gtorch_tensor_logcumsumexp (all, 0, &error);
  if (y == NULL && is_lacking (error))
    return;
  g_assert_no_error (error);
  check_doubles (y, sums, 9);
  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  z = gtorch_tensor_logcumsumexp (x, -1, &error);
  g_assert_no_error (error);
  seed = gtorch_ones (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_assert_true (gtorch_tensor_backward (z, seed, FALSE, FALSE, &error));
  grad = gtorch_tensor_get_grad (x);
  check_doubles (grad, slopes, 5);
  g_assert_null (gtorch_tensor_logcumsumexp (x, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_logcumsumexp (whole, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
}

static void
impossible_repeats_and_products_are_errors (void)
{
  const gint64 wrong[] = { 1, -2 };
  const gint64 twice[] = { 0, 0 };
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (2, 2), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) y = gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) repeats =
      gtorch_tensor_new_from_ints (wrong, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tensor_repeat_interleave_tensor (x, repeats, GTORCH_SHAPE (0), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "repeats[1] is -2"));
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_repeat_interleave_tensor (x, y, GTORCH_SHAPE (0), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_null (gtorch_tensordot (x, y, GTORCH_SHAPE (0), GTORCH_SHAPE (0), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_nonnull (strstr (error->message, "must be of one size"));
  g_clear_error (&error);
  g_assert_null (gtorch_tensordot (x, x, twice, 2, twice, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "given twice"));
}

/* Long rows are counted before some of their elements are selected. */
static void
middles_of_long_rows_are_those_of_sorted_rows (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_INT64, GTORCH_DTYPE_INT32 };
  const gint64 n = 5001;
  guint d, few;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (few = 0; few < 2; few++)
      {
        g_autoptr (GTorchTensor) drawn = gtorch_randint (few ? 0 : -1000000, few ? 3 : 1000000, &n,
                                                         1, GTORCH_DTYPE_INT64, NULL, NULL, NULL);
        g_autoptr (GTorchTensor) x = gtorch_tensor_to_dtype (drawn, dtypes[d], NULL);
        const gboolean has_nan = gtorch_dtype_is_floating_point (dtypes[d]);
        g_autoptr (GTorchTensor) sorted = NULL;
        g_autoptr (GTorchTensor) order = NULL;
        const gint64 ks[] = { 1, 2, 2500, 5000, 5001 };
        guint i;

        if (has_nan)
          for (i = 0; i < 1000; i++)
            {
              g_autoptr (GTorchTensor) part = gtorch_tensor_slice (x, 0, 5 * i, 5 * i + 1, 1, NULL);

              g_assert_true (gtorch_tensor_fill_inplace (part, NAN, NULL));
            }
        g_assert_true (gtorch_tensor_sort (x, 0, FALSE, TRUE, &sorted, &order, NULL));
        for (i = 0; i < G_N_ELEMENTS (ks); i++)
          {
            g_autoptr (GTorchTensor) value = NULL;
            g_autoptr (GTorchTensor) index = NULL;

            g_assert_true (gtorch_tensor_kthvalue (x, ks[i], 0, FALSE, &value, &index, NULL));
            g_assert_cmpfloat (at (index, 0), ==, at (order, ks[i] - 1));
          }
        {
          const gint64 middle = ((has_nan ? n - 1000 : n) - 1) / 2;
          g_autoptr (GTorchTensor) value = NULL;
          g_autoptr (GTorchTensor) index = NULL;
          g_autoptr (GTorchTensor) of_all = gtorch_tensor_nanmedian (x, NULL);

          g_assert_true (gtorch_tensor_nanmedian_dim (x, 0, FALSE, &value, &index, NULL));
          g_assert_cmpfloat (at (index, 0), ==, at (order, middle));
          g_assert_cmpfloat (at (value, 0), ==, at (sorted, middle));
          g_assert_cmpfloat (at (of_all, 0), ==, at (sorted, middle));
        }
      }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/sort/nan_is_the_largest_and_ties_keep_their_order",
                   nan_is_the_largest_and_ties_keep_their_order);
  g_test_add_func ("/GTorch/sort/long_rows_are_sorted", long_rows_are_sorted);
  g_test_add_func ("/GTorch/sort/equal_values_are_counted_and_searched",
                   equal_values_are_counted_and_searched);
  g_test_add_func ("/GTorch/sort/sorters_are_the_order_of_a_sequence",
                   sorters_are_the_order_of_a_sequence);
  g_test_add_func ("/GTorch/sort/impossible_requests_are_errors", impossible_requests_are_errors);
  g_test_add_func ("/GTorch/sort/medians_see_nan", medians_see_nan);
  g_test_add_func ("/GTorch/sort/middles_of_long_rows_are_those_of_sorted_rows",
                   middles_of_long_rows_are_those_of_sorted_rows);
  g_test_add_func ("/GTorch/sort/running_extremes_see_nan_and_the_last_of_equals",
                   running_extremes_see_nan_and_the_last_of_equals);
  g_test_add_func ("/GTorch/sort/running_sums_of_exponentials_stay_in_range",
                   running_sums_of_exponentials_stay_in_range);
  g_test_add_func ("/GTorch/sort/impossible_repeats_and_products_are_errors",
                   impossible_repeats_and_products_are_errors);
  return g_test_run ();
}
