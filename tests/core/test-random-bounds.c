/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random numbers stay within their range, in every dtype: rounding must not move them out of it. */

#include "config.h"

#include <float.h>
#include <math.h>

#include "test-device.h"

#define N 200000

static const GTorchDType floats[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                      GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };

static GTorchTensor *
new_full (gint64 n, gdouble value, GTorchDType dtype)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_full (GTORCH_SHAPE (n), value, dtype, test_device (), &error);

  g_assert_no_error (error);
  return tensor;
}

static gdouble *
values_of (GTorchTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  gdouble *values;
  gsize n;

  g_assert_nonnull (tensor);
  values = gtorch_tensor_to_doubles (tensor, &n, &error);
  g_assert_no_error (error);
  return values;
}

/* Returns the number rounded to the dtype. */
static gdouble
rounded (gdouble value, GTorchDType dtype)
{
  g_autoptr (GTorchTensor) tensor = new_full (1, value, dtype);

  return test_element (tensor, 0);
}

static void
uniform_numbers_do_not_reach_the_end (void)
{
  static const gdouble ranges[][2] = {
    { 2, 3 },         { 0, 0.1 },     { 0.1, 0.3 },       { -1, 0 },         { -3, -2 },
    { -0x1p-20, 0 },  { 0, 0x1p-23 }, { 1, 1 + 0x1p-22 }, { 1, 1 + 0x1p-9 }, { -1 - 0x1p-22, -1 },
    { 65000, 65504 }, { -0.7, 0.7 },  { 1, 1 + 0x1p-51 }, { 5, 5 },          { 0, 0x1p-24 },
    { -100, 1000 },
  };
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (11);
  guint d, r, i;

  for (d = 0; d < G_N_ELEMENTS (floats); d++)
    for (r = 0; r < G_N_ELEMENTS (ranges); r++)
      {
        const gdouble low = rounded (ranges[r][0], floats[d]);
        const gdouble high = rounded (ranges[r][1], floats[d]);
        g_autoptr (GError) error = NULL;
        g_autoptr (GTorchTensor) x = new_full (N, 0, floats[d]);
        g_autofree gdouble *values = NULL;

        gtorch_tensor_uniform_inplace (x, ranges[r][0], ranges[r][1], generator, &error);
        g_assert_no_error (error);
        values = values_of (x);
        for (i = 0; i < N; i++)
          if (!(values[i] >= low && (values[i] < high || low == high)))
            {
              g_test_message ("%s: %.17g is not in [%.17g, %.17g)",
                              gtorch_dtype_get_name (floats[d]), values[i], low, high);
              g_test_fail ();
              break;
            }
      }
}

static void
ranges_beyond_the_dtype_are_errors (void)
{
  static const gdouble ranges[][2] = { { 0, 70000 }, { -70000, 0 }, { -40000, 40000 }, { 3, 2 } };
  guint r;

  for (r = 0; r < G_N_ELEMENTS (ranges); r++)
    {
      g_autoptr (GTorchTensor) x = new_full (3, 0, GTORCH_DTYPE_FLOAT16);
      g_autoptr (GTorchTensor) result = NULL;
      g_autoptr (GError) error = NULL;

      result = gtorch_tensor_uniform (x, ranges[r][0], ranges[r][1], NULL, &error);
      g_assert_null (result);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_true (g_str_has_prefix (error->message, "uniform: the range from "));
    }
}

static void
exponential_numbers_are_positive_and_finite (void)
{
  static const gdouble rates[] = { 1, 1e6, 1e-6, 3e38, 1e-39, 1e300, DBL_MIN, DBL_MAX };
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (12);
  guint d, r, i;

  for (d = 0; d < G_N_ELEMENTS (floats); d++)
    for (r = 0; r < G_N_ELEMENTS (rates); r++)
      {
        g_autoptr (GError) error = NULL;
        g_autoptr (GTorchTensor) x = new_full (N, 0, floats[d]);
        g_autofree gdouble *values = NULL;

        gtorch_tensor_exponential_inplace (x, rates[r], generator, &error);
        g_assert_no_error (error);
        values = values_of (x);
        for (i = 0; i < N; i++)
          if (!(values[i] > 0 && isfinite (values[i])))
            {
              g_test_message ("%s, rate %g: %g", gtorch_dtype_get_name (floats[d]), rates[r],
                              values[i]);
              g_test_fail ();
              break;
            }
      }
}

static void
integers_stay_in_their_range (void)
{
  static const struct
  {
    GTorchDType dtype;
    gint64 low, high;
  } ranges[] = {
    { GTORCH_DTYPE_FLOAT16, -2048, 2049 },
    { GTORCH_DTYPE_BFLOAT16, 0, 257 },
    { GTORCH_DTYPE_FLOAT32, -5, 6 },
    { GTORCH_DTYPE_INT8, -128, 128 },
    { GTORCH_DTYPE_UINT8, 0, 256 },
    { GTORCH_DTYPE_INT16, 7, 8 },
    { GTORCH_DTYPE_INT64, G_MININT64, G_MAXINT64 },
    { GTORCH_DTYPE_FLOAT64, -(G_GINT64_CONSTANT (1) << 53), 1 },
  };
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (13);
  guint r, i;

  for (r = 0; r < G_N_ELEMENTS (ranges); r++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x = gtorch_randint (ranges[r].low, ranges[r].high, GTORCH_SHAPE (N),
                                                   ranges[r].dtype, NULL, generator, &error);
      g_autofree gdouble *values = NULL;

      g_assert_no_error (error);
      values = values_of (x);
      for (i = 0; i < N; i++)
        {
          g_assert_cmpfloat (values[i], >=, (gdouble) ranges[r].low);
          g_assert_cmpfloat (values[i], <=, (gdouble) (ranges[r].high - 1));
          g_assert_cmpfloat (values[i], ==, trunc (values[i]));
        }
    }
}

static void
integers_that_a_dtype_lacks_are_errors (void)
{
  static const struct
  {
    GTorchDType dtype;
    gint64 low, high;
  } ranges[] = {
    { GTORCH_DTYPE_FLOAT16, 0, 2050 },
    { GTORCH_DTYPE_BFLOAT16, -257, 0 },
    { GTORCH_DTYPE_FLOAT32, 0, (1 << 24) + 2 },
    { GTORCH_DTYPE_FLOAT64, 0, (G_GINT64_CONSTANT (1) << 53) + 2 },
    { GTORCH_DTYPE_UINT8, -1, 3 },
  };
  guint r;

  for (r = 0; r < G_N_ELEMENTS (ranges); r++)
    {
      g_autoptr (GTorchTensor) x = new_full (3, 0, ranges[r].dtype);
      g_autoptr (GTorchTensor) result = NULL;
      g_autoptr (GError) error = NULL;

      result = gtorch_tensor_random (x, ranges[r].low, ranges[r].high, NULL, &error);
      g_assert_null (result);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_true (g_str_has_prefix (error->message, "random: dtype "));
    }
}

/* Checks the number of nonzero elements: n p, within five standard deviations. */
static void
check_count (GTorchTensor *tensor, gdouble p, const gchar *what)
{
  g_autofree gdouble *values = values_of (tensor);
  gint64 n = 0;
  guint i;

  for (i = 0; i < N; i++)
    n += values[i] != 0;
  if (fabs ((gdouble) n - N * p) <= 5 * sqrt (N * p * (1 - p)))
    return;
  g_test_message ("%s, %s, p %g: %" G_GINT64_FORMAT " of %d", what,
                  gtorch_dtype_get_name (gtorch_tensor_get_dtype (tensor)), p, n, N);
  g_test_fail ();
}

static void
probabilities_are_those_asked_for (void)
{
  static const gdouble chances[] = { 0, 0.001, 0.1, 0.5, 0.999, 1 };
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (14);
  guint d, c;

  for (d = 0; d < G_N_ELEMENTS (floats); d++)
    for (c = 0; c < G_N_ELEMENTS (chances); c++)
      {
        const gdouble p = rounded (chances[c], floats[d]);
        g_autoptr (GError) error = NULL;
        g_autoptr (GTorchTensor) ones = new_full (N, 1, floats[d]);
        g_autoptr (GTorchTensor) each = new_full (N, chances[c], floats[d]);
        g_autoptr (GTorchTensor) drawn = gtorch_tensor_bernoulli (each, generator, &error);
        g_autoptr (GTorchTensor) same =
            gtorch_tensor_bernoulli_p (ones, chances[c], generator, &error);
        g_autoptr (GTorchTensor) dropped =
            gtorch_tensor_dropout (ones, chances[c], TRUE, generator, &error);

        g_assert_no_error (error);
        check_count (drawn, p, "bernoulli");
        check_count (same, chances[c], "bernoulli_p");
        check_count (dropped, 1 - chances[c], "dropout");
      }
}

static void
zero_deviation_gives_the_mean (void)
{
  guint d, i;

  for (d = 0; d < G_N_ELEMENTS (floats); d++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x = new_full (1000, 0, floats[d]);
      g_autofree gdouble *values = NULL;

      gtorch_tensor_normal_inplace (x, 0.1, 0, NULL, &error);
      g_assert_no_error (error);
      values = values_of (x);
      for (i = 0; i < 1000; i++)
        g_assert_cmpfloat (values[i], ==, rounded (0.1, floats[d]));
    }
}

static void
elements_of_zero_weight_are_not_drawn (void)
{
  /* so small that the sample of the exponential distribution overflows */
  static const gdouble weights[] = { 0, 1, 0, 0, 5e-324, 0.25, 0, 1e-310, 0, 0 };
  const gint64 rows = 2000;
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (15);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) row =
      gtorch_tensor_new_from_doubles (weights, G_N_ELEMENTS (weights),
                                      GTORCH_SHAPE (G_N_ELEMENTS (weights)), GTORCH_DTYPE_FLOAT64,
                                      test_device (), &error);
  g_autoptr (GTorchTensor) all =
      gtorch_tensor_expand (row, GTORCH_SHAPE (rows, G_N_ELEMENTS (weights)), &error);
  g_autoptr (GTorchTensor) once = NULL;
  g_autoptr (GTorchTensor) again = NULL;
  g_autofree gdouble *a = NULL;
  g_autofree gdouble *b = NULL;
  gint64 i;

  g_assert_no_error (error);
  once = gtorch_tensor_multinomial (all, 4, FALSE, generator, &error);
  g_assert_no_error (error);
  again = gtorch_tensor_multinomial (all, 4, TRUE, generator, &error);
  g_assert_no_error (error);
  a = values_of (once);
  b = values_of (again);
  for (i = 0; i < rows * 4; i++)
    {
      g_assert_cmpfloat (weights[(gint) a[i]], >, 0);
      g_assert_cmpfloat (weights[(gint) b[i]], >, 0);
    }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/RandomBounds/" #name, name)
  ADD (uniform_numbers_do_not_reach_the_end);
  ADD (ranges_beyond_the_dtype_are_errors);
  ADD (exponential_numbers_are_positive_and_finite);
  ADD (integers_stay_in_their_range);
  ADD (integers_that_a_dtype_lacks_are_errors);
  ADD (probabilities_are_those_asked_for);
  ADD (zero_deviation_gives_the_mean);
  ADD (elements_of_zero_weight_are_not_drawn);
  return g_test_run ();
}
