/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Properties of reductions, products and convolutions that rows cannot express: NaN, ties, empty inputs,
 * extreme values, and independence of the number of threads. The numbers are PyTorch's. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <math.h>
#include <string.h>

#include "sanitizer.h"

#define F64  GTORCH_DTYPE_FLOAT64
#define NONE GTORCH_DTYPE_NONE

static GTorchTensor *
make (gint64 rows, gint64 columns, const gdouble *values)
{
  const gint64 shape[] = { rows, columns };
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor =
      rows < 0
          ? gtorch_tensor_new_from_doubles (values, columns, shape + 1, 1, F64, NULL, &error)
          : gtorch_tensor_new_from_doubles (values, rows * columns, shape, 2, F64, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

#define ROW(...) \
  make (-1, G_N_ELEMENTS (((const gdouble[]){ __VA_ARGS__ })), (const gdouble[]){ __VA_ARGS__ })
#define EMPTY(rows, columns) make (rows, columns, (const gdouble[]){ 0 })

/* Consumes the tensor. */
static void
check_values (GTorchTensor *got, GError *error, const gdouble *expected, gsize n, const gchar *what)
{
  g_autofree gdouble *values = NULL;
  gsize n_got, i;

  g_assert_no_error (error);
  values = gtorch_tensor_to_doubles (got, &n_got, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n_got, ==, n);
  for (i = 0; i < n; i++)
    {
      gboolean same = isnan (expected[i]) ? isnan (values[i]) != 0
                      : isinf (expected[i])
                          ? values[i] == expected[i]
                          : fabs (values[i] - expected[i]) <= 1e-12 * MAX (1, fabs (expected[i]));

      if (!same)
        g_error ("%s: element %u is %.17g instead of %.17g", what, (guint) i, values[i],
                 expected[i]);
    }
  g_object_unref (got);
}

#define CHECK(call, ...)                                                    \
  G_STMT_START                                                              \
  {                                                                         \
    GError *error = NULL;                                                   \
    GTorchTensor *got_ = call;                                              \
    const gdouble expected_[] = { __VA_ARGS__ };                            \
                                                                            \
    check_values (got_, error, expected_, G_N_ELEMENTS (expected_), #call); \
  }                                                                         \
  G_STMT_END

#define CHECK_ERROR(call, code, ...)                                   \
  G_STMT_START                                                         \
  {                                                                    \
    GError *error = NULL;                                              \
    const gchar *const says_[] = { __VA_ARGS__ };                      \
    guint i_;                                                          \
                                                                       \
    g_assert_null (call);                                              \
    g_assert_error (error, GTORCH_ERROR, code);                        \
    for (i_ = 0; i_ < G_N_ELEMENTS (says_); i_++)                      \
      if (strstr (error->message, says_[i_]) == NULL)                  \
        g_error ("“%s” does not say “%s”", error->message, says_[i_]); \
    g_clear_error (&error);                                            \
  }                                                                    \
  G_STMT_END

#define DIM(...) ((const gint64[]){ __VA_ARGS__ }), G_N_ELEMENTS (((const gint64[]){ __VA_ARGS__ }))
#define ALL      NULL, 0

static GTorchTensor *
values_of (GTorchTensor *x, gboolean least, gboolean indices, GError **error)
{
  GTorchTensor *values = NULL, *places = NULL;
  gboolean done = least ? gtorch_tensor_min_dim (x, -1, FALSE, &values, &places, error)
                        : gtorch_tensor_max_dim (x, -1, FALSE, &values, &places, error);

  if (!done)
    return NULL;
  g_object_unref (indices ? values : places);
  return indices ? places : values;
}

static void
nan_wins_and_the_first_of_equals_counts (void)
{
  g_autoptr (GTorchTensor) x = make (2, 3, (const gdouble[]){ 1, NAN, 3, 2, 2, -1 });
  g_autoptr (GTorchTensor) low = ROW (-INFINITY, -INFINITY);
  g_autoptr (GTorchTensor) nans = ROW (NAN, 1, NAN);

  CHECK (gtorch_tensor_amax (x, DIM (1), FALSE, &error), NAN, 2);
  CHECK (gtorch_tensor_amin (x, DIM (1), FALSE, &error), NAN, -1);
  CHECK (values_of (x, FALSE, FALSE, &error), NAN, 2);
  CHECK (values_of (x, FALSE, TRUE, &error), 1, 0);
  CHECK (values_of (x, TRUE, FALSE, &error), NAN, -1);
  CHECK (values_of (x, TRUE, TRUE, &error), 1, 2);
  CHECK (gtorch_tensor_argmax (x, DIM (1), FALSE, &error), 1, 0);
  CHECK (gtorch_tensor_argmax (low, ALL, FALSE, &error), 0);
  CHECK (gtorch_tensor_argmin (nans, ALL, FALSE, &error), 0);
  CHECK (gtorch_tensor_sum (x, DIM (1), FALSE, NONE, &error), NAN, 3);
  CHECK (gtorch_tensor_nansum (x, DIM (1), FALSE, NONE, &error), 4, 3);
}

/* Reduces rows and columns that contain one NaN each, except for the last. */
static void
check_extremes_beside_nan (gint64 n, GTorchDType dtype)
{
  g_autofree gdouble *values = g_new (gdouble, n * n);
  g_autofree gdouble *expected = g_new (gdouble, n);
  g_autoptr (GTorchTensor) x64 = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  gint64 i, dim;

  for (i = 0; i < n * n; i++)
    values[i] = i % (n + 1) == 0 && i / n < n - 1 ? NAN : (i * 7) % 17;
  if (n > 1) /* in the last row and the last column */
    values[(n - 1) * n] = values[n - 1] = -20;
  values[n * n - 1] = 20;
  x64 = make (n, n, values);
  x = gtorch_tensor_to_dtype (x64, dtype, NULL);
  g_assert_nonnull (x);
  for (i = 0; i < n; i++)
    expected[i] = i < n - 1 ? NAN : 20;
  for (dim = 0; dim < 2; dim++)
    {
      GError *error = NULL;
      GTorchTensor *got = gtorch_tensor_amax (x, &dim, 1, FALSE, &error);

      check_values (got, error, expected, n, "amax");
      got = gtorch_tensor_amin (x, &dim, 1, FALSE, &error);
      expected[n - 1] = n > 1 ? -20 : 20;
      check_values (got, error, expected, n, "amin");
      expected[n - 1] = 20;
    }
}

static void
nan_wins_wherever_it_is (void)
{
  const gint64 sides[] = { 1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 515 };
  const GTorchDType dtypes[] = { F64, GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_BFLOAT16 };
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (sides); i++)
    for (j = 0; j < G_N_ELEMENTS (dtypes); j++)
      check_extremes_beside_nan (sides[i], dtypes[j]);
}

/* Longer than the blocks in which rows are searched. */
static void
places_are_found_in_long_rows (void)
{
  g_autofree gdouble *values = g_new0 (gdouble, 5000);
  guint at;

  for (at = 0; at < 5000; at += 617)
    {
      g_autoptr (GTorchTensor) x = NULL;

      values[at] = 2;
      values[4999] = at == 4999 ? 2 : 2 * (at % 2);
      x = make (-1, 5000, values);
      CHECK (gtorch_tensor_argmax (x, ALL, FALSE, &error), at);
      values[at] = NAN;
      g_object_unref (x);
      x = make (-1, 5000, values);
      CHECK (gtorch_tensor_argmax (x, ALL, FALSE, &error), at);
      CHECK (gtorch_tensor_argmin (x, ALL, FALSE, &error), at);
      values[at] = values[4999] = 0;
    }
}

static void
empty_inputs_give_the_neutral_element_or_an_error (void)
{
  g_autoptr (GTorchTensor) x = EMPTY (0, 3);

  CHECK (gtorch_tensor_sum (x, DIM (0), FALSE, NONE, &error), 0, 0, 0);
  CHECK (gtorch_tensor_prod (x, DIM (0), FALSE, NONE, &error), 1, 1, 1);
  CHECK (gtorch_tensor_mean (x, DIM (0), FALSE, NONE, &error), NAN, NAN, NAN);
  CHECK (gtorch_tensor_any (x, DIM (0), FALSE, &error), 0, 0, 0);
  CHECK (gtorch_tensor_all (x, DIM (0), FALSE, &error), 1, 1, 1);
  CHECK (gtorch_tensor_var (x, DIM (0), 1, FALSE, &error), NAN, NAN, NAN);
  CHECK (gtorch_tensor_norm (x, 2, DIM (0), FALSE, &error), 0, 0, 0);
  CHECK (gtorch_tensor_logsumexp (x, DIM (0), FALSE, &error), -INFINITY, -INFINITY, -INFINITY);
  CHECK_ERROR (gtorch_tensor_amax (x, DIM (0), FALSE, &error), GTORCH_ERROR_SHAPE, "amax:", "dim 0",
               "[0, 3]");
  CHECK_ERROR (gtorch_tensor_argmax (x, DIM (0), FALSE, &error), GTORCH_ERROR_SHAPE,
               "argmax:", "[0, 3]");
  CHECK_ERROR (gtorch_tensor_max (x, &error), GTORCH_ERROR_SHAPE, "max:", "[0, 3]");
  CHECK_ERROR (gtorch_tensor_sum (x, DIM (0, -2), FALSE, NONE, &error), GTORCH_ERROR_INVALID,
               "sum:", "twice");
  CHECK_ERROR (gtorch_tensor_sum (x, DIM (2), FALSE, NONE, &error), GTORCH_ERROR_INDEX,
               "sum:", "dim 2");
}

static void
variance_divides_by_the_corrected_count (void)
{
  g_autoptr (GTorchTensor) one = ROW (3);
  g_autoptr (GTorchTensor) three = ROW (1, 2, 4);
  g_autoptr (GTorchTensor) large = ROW (1e8 + 1, 1e8 + 2, 1e8 + 3);

  CHECK (gtorch_tensor_var (one, ALL, 1, FALSE, &error), NAN);
  CHECK (gtorch_tensor_var (one, ALL, 0, FALSE, &error), 0);
  CHECK (gtorch_tensor_var (three, ALL, 0, FALSE, &error), 14.0 / 9);
  CHECK (gtorch_tensor_std (three, ALL, 1, FALSE, &error), sqrt (7.0 / 3));
  CHECK (gtorch_tensor_var (large, ALL, 1, FALSE, &error), 1);
}

static void
extreme_numbers_neither_overflow_nor_vanish (void)
{
  g_autoptr (GTorchTensor) high = ROW (1000, 1000);
  g_autoptr (GTorchTensor) low = ROW (-INFINITY, -INFINITY);
  g_autoptr (GTorchTensor) infinite = ROW (INFINITY, 1);
  g_autoptr (GTorchTensor) wide = ROW (1e308, 0);
  const gint64 one = 1, index[] = { 1 };
  g_autoptr (GTorchTensor) scores = make (1, 2, (const gdouble[]){ 1e4, -1e4 });
  g_autoptr (GTorchTensor) target =
      gtorch_tensor_new_from_ints (index, 1, &one, 1, GTORCH_DTYPE_INT64, NULL, NULL);

  CHECK (gtorch_tensor_logsumexp (high, DIM (0), FALSE, &error), 1000 + log (2));
  CHECK (gtorch_tensor_logsumexp (low, DIM (0), FALSE, &error), -INFINITY);
  CHECK (gtorch_tensor_logsumexp (infinite, DIM (0), FALSE, &error), INFINITY);
  CHECK (gtorch_tensor_softmax (low, 0, NONE, &error), NAN, NAN);
  CHECK (gtorch_tensor_softmax (wide, 0, NONE, &error), 1, 0);
  CHECK (gtorch_tensor_cross_entropy (scores, target, NULL, GTORCH_REDUCTION_MEAN, -100, 0, &error),
         2e4);
  CHECK (gtorch_tensor_cross_entropy (scores, target, NULL, GTORCH_REDUCTION_MEAN, 1, 0, &error),
         NAN);
}

static void
products_of_nothing_are_zero_and_beta_of_zero_reads_nothing (void)
{
  g_autoptr (GTorchTensor) a = EMPTY (2, 0);
  g_autoptr (GTorchTensor) b = EMPTY (0, 3);
  g_autoptr (GTorchTensor) ones = make (2, 2, (const gdouble[]){ 1, 1, 1, 1 });
  g_autoptr (GTorchTensor) nans = make (2, 2, (const gdouble[]){ NAN, NAN, NAN, NAN });

  CHECK (gtorch_tensor_matmul (a, b, &error), 0, 0, 0, 0, 0, 0);
  CHECK (gtorch_tensor_addmm (nans, ones, ones, 0, 1, &error), 2, 2, 2, 2);
  CHECK (gtorch_tensor_addmm (nans, ones, ones, 1, 1, &error), NAN, NAN, NAN, NAN);
  CHECK_ERROR (gtorch_tensor_matmul (b, b, &error), GTORCH_ERROR_SHAPE, "matmul:", "[0, 3]");
  CHECK_ERROR (gtorch_tensor_bmm (ones, ones, &error), GTORCH_ERROR_SHAPE, "bmm:", "[2, 2]");
}

/* --- the same bits from any number of threads --- */

static GTorchTensor *
random_values (void)
{
  const gint64 shape[] = { 1531, 1033 };
  g_autoptr (GError) error = NULL;
  GTorchTensor *x;

  gtorch_manual_seed (7);
  x = gtorch_randn (shape, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL, &error);
  g_assert_no_error (error);
  return x;
}

typedef GTorchTensor *(*Compute) (GTorchTensor *x, GError **error);

#define COMPUTE(name, call) \
  static GTorchTensor *compute_##name (GTorchTensor *x, GError **error) { return call; }
COMPUTE (sum_all, gtorch_tensor_sum (x, ALL, FALSE, NONE, error))
COMPUTE (sum_rows, gtorch_tensor_sum (x, DIM (1), FALSE, NONE, error))
COMPUTE (sum_columns, gtorch_tensor_sum (x, DIM (0), FALSE, NONE, error))
COMPUTE (prod, gtorch_tensor_prod (x, DIM (0), FALSE, NONE, error))
COMPUTE (mean, gtorch_tensor_mean (x, ALL, FALSE, NONE, error))
COMPUTE (var, gtorch_tensor_var (x, ALL, 1, FALSE, error))
COMPUTE (std, gtorch_tensor_std (x, DIM (0), 1, FALSE, error))
COMPUTE (norm, gtorch_tensor_norm (x, 2, ALL, FALSE, error))
COMPUTE (logsumexp, gtorch_tensor_logsumexp (x, DIM (1), FALSE, error))
COMPUTE (softmax, gtorch_tensor_softmax (x, 1, NONE, error))
COMPUTE (cumsum, gtorch_tensor_cumsum (x, 0, NONE, error))
COMPUTE (argmax, gtorch_tensor_argmax (x, ALL, FALSE, error))
COMPUTE (sort, gtorch_tensor_argsort (x, 1, FALSE, TRUE, error))

static void
same_bits_from_any_number_of_threads (void)
{
  static const struct
  {
    const gchar *name;
    Compute compute;
  } computes[] = {
    { "sum of all", compute_sum_all },
    { "sum of rows", compute_sum_rows },
    { "sum of columns", compute_sum_columns },
    { "prod", compute_prod },
    { "mean", compute_mean },
    { "var", compute_var },
    { "std", compute_std },
    { "norm", compute_norm },
    { "logsumexp", compute_logsumexp },
    { "softmax", compute_softmax },
    { "cumsum", compute_cumsum },
    { "argmax", compute_argmax },
    { "argsort", compute_sort },
  };
  static const guint threads[] = { 1, 2, 3, 8 };
  guint before = gtorch_get_num_threads (), i, k;
  g_autoptr (GTorchTensor) x = random_values ();

  for (i = 0; i < G_N_ELEMENTS (computes); i++)
    {
      g_autoptr (GBytes) first = NULL;

      for (k = 0; k < test_often (G_N_ELEMENTS (threads)); k++)
        {
          g_autoptr (GError) error = NULL;
          g_autoptr (GTorchTensor) y = NULL;
          g_autoptr (GBytes) bytes = NULL;

          g_assert_true (gtorch_set_num_threads (threads[k], NULL));
          y = computes[i].compute (x, &error);
          g_assert_no_error (error);
          bytes = gtorch_tensor_get_bytes (y, &error);
          g_assert_no_error (error);
          if (first == NULL)
            first = g_bytes_ref (bytes);
          else if (!g_bytes_equal (first, bytes))
            g_error ("%s differs with %u threads", computes[i].name, threads[k]);
        }
    }
  g_assert_true (gtorch_set_num_threads (before, NULL));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define TEST(name) g_test_add_func ("/GTorch/reduce/" #name, name)
  TEST (nan_wins_and_the_first_of_equals_counts);
  TEST (nan_wins_wherever_it_is);
  TEST (places_are_found_in_long_rows);
  TEST (empty_inputs_give_the_neutral_element_or_an_error);
  TEST (variance_divides_by_the_corrected_count);
  TEST (extreme_numbers_neither_overflow_nor_vanish);
  TEST (products_of_nothing_are_zero_and_beta_of_zero_reads_nothing);
  TEST (same_bits_from_any_number_of_threads);
  return g_test_run ();
}
