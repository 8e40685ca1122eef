/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Numbers that functions are given, or return: the constants for none mean the default or are refused, and so
 * is what a dtype, or a list, cannot represent. */

#include "config.h"

#include <math.h>

#include "test-device.h"

static GTorchTensor *
counting (void)
{
  const gint64 values[] = { 0, 1, 2, 3, 4 };

  return gtorch_tensor_new_from_ints (values, 5, GTORCH_SHAPE (5), GTORCH_DTYPE_INT64,
                                      test_device (), NULL);
}

/* Consumes the result. */
static void
assert_text (GTorchTensor *result, GError *error, const gchar *text)
{
  g_autoptr (GTorchTensor) held = result;
  g_autofree gchar *made = NULL;

  g_assert_no_error (error);
  made = test_to_string (held);
  g_assert_cmpstr (made, ==, text);
}

static void
assert_refused (GTorchTensor *result, GError **error, const gchar *message)
{
  g_assert_null (result);
  g_assert_error (*error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}

static void
none_means_the_default (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = counting ();
  g_autoptr (GTorchTensor) two =
      gtorch_full_int (GTORCH_SHAPE (2), 9, GTORCH_DTYPE_INT64, test_device (), NULL);
  g_autoptr (GTorchTensor) real = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_FLOAT32, NULL);
  g_autoptr (GTorchTensor) spread =
      gtorch_tensor_var (real, NULL, 0, GTORCH_NONE_DOUBLE, FALSE, &error);

  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (spread, 0), ==, 2.5);
  assert_text (gtorch_tensor_slice (x, 0, 3, GTORCH_NONE, 1, &error), error, "tensor([3, 4])");
  assert_text (gtorch_tensor_slice (x, 0, GTORCH_NONE, 2, 1, &error), error, "tensor([0, 1])");
  assert_text (gtorch_tensor_slice_scatter (x, two, 0, 3, GTORCH_NONE, 1, &error), error,
               "tensor([0, 1, 2, 9, 9])");
  assert_text (gtorch_tensor_clamp_int (x, 2, GTORCH_NONE, &error), error,
               "tensor([2, 2, 2, 3, 4])");
  assert_text (gtorch_tensor_clamp_int (x, GTORCH_NONE, 2, &error), error,
               "tensor([0, 1, 2, 2, 2])");
  assert_text (gtorch_tensor_clamp (x, 2, GTORCH_NONE_DOUBLE, &error), error,
               "tensor([2, 2, 2, 3, 4])");
  g_assert_true (gtorch_tensor_clamp_int_inplace (x, 3, GTORCH_NONE, &error) == x);
  assert_text (g_object_ref (x), error, "tensor([3, 3, 3, 3, 4])");
}

static void
none_is_refused_without_a_default (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = counting ();
  g_autoptr (GTorchTensor) real = gtorch_ones (GTORCH_SHAPE (2, 3), 0, NULL, NULL);

  assert_refused (gtorch_tensor_cov (real, GTORCH_NONE, NULL, NULL, &error), &error,
                  "cov: correction is -2147483648, which is NONE, and it has no default");
  assert_refused (gtorch_tensor_slice (x, 0, 0, 2, GTORCH_NONE, &error), &error,
                  "slice: step is -2147483648, which is NONE, and it has no default");
  assert_refused (gtorch_tensor_add (real, real, GTORCH_NONE_DOUBLE, &error), &error,
                  "add: alpha is 6.18034e+301, which is NONE_DOUBLE, and it has no default");
  assert_refused (gtorch_tensor_add_scalar_inplace (real, GTORCH_NONE_DOUBLE, 1, &error), &error,
                  "add: other is 6.18034e+301, which is NONE_DOUBLE, and it has no default");
  assert_refused (gtorch_full (GTORCH_SHAPE (2), GTORCH_NONE_DOUBLE, GTORCH_DTYPE_FLOAT64, NULL,
                               &error),
                  &error,
                  "full: value is 6.18034e+301, which is NONE_DOUBLE, and it has no default");
}

static void
the_least_integer_of_32_bits_is_a_number (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_full_int (GTORCH_SHAPE (2), GTORCH_NONE, GTORCH_DTYPE_INT64, test_device (), &error);
  g_autoptr (GTorchTensor) least = NULL;

  g_assert_no_error (error);
  assert_text (gtorch_tensor_add_int (x, GTORCH_NONE, 1, &error), error,
               "tensor([-4294967296, -4294967296])");
  assert_text (gtorch_tensor_clamp (x, 1 + (gdouble) GTORCH_NONE, INFINITY, &error), error,
               "tensor([-2147483647, -2147483647])");
  g_clear_object (&x);
  x = gtorch_full_int (GTORCH_SHAPE (1), -4294967296, GTORCH_DTYPE_INT64, test_device (), NULL);
  assert_text (gtorch_tensor_clamp (x, GTORCH_NONE, INFINITY, &error), error,
               "tensor([-2147483648])");
  least = gtorch_randint (GTORCH_NONE, GTORCH_NONE + 1, GTORCH_SHAPE (2), GTORCH_DTYPE_INT64,
                          test_device (), NULL, &error);
  assert_text (g_steal_pointer (&least), error, "tensor([-2147483648, -2147483648])");
}

static void
parts_are_set_to_what_the_dtype_has (void)
{
  static const struct
  {
    GTorchDType dtype;
    gdouble value;
    const gchar *message;
  } refused[] = {
    { GTORCH_DTYPE_INT64, NAN, "set_scalar: value is nan, which is no int64" },
    { GTORCH_DTYPE_INT64, 0x1p70,
      "set_scalar: value is 1.1805916207174113e+21, which is no int64" },
    { GTORCH_DTYPE_INT64, INFINITY, "set_scalar: value is inf, which is no int64" },
    { GTORCH_DTYPE_INT8, 300, "set_scalar: value is 300, which is no int8" },
    { GTORCH_DTYPE_INT8, 128, "set_scalar: value is 128, which is no int8" },
    { GTORCH_DTYPE_UINT8, 300, "set_scalar: value is 300, which is no uint8" },
    { GTORCH_DTYPE_FLOAT16, 100000, "set_scalar: value is 100000, which is no float16" },
    { GTORCH_DTYPE_FLOAT32, 1e39,
      "set_scalar: value is 9.9999999999999994e+38, which is no float32" },
  };
  const gint64 wide = G_GINT64_CONSTANT (9007199254740993);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = counting ();
  g_autoptr (GTorchTensor) bytes =
      gtorch_zeros (GTORCH_SHAPE (2), GTORCH_DTYPE_INT8, test_device (), NULL);
  g_autofree gint64 *found = NULL;
  gsize n;

  for (guint i = 0; i < G_N_ELEMENTS (refused); i++)
    {
      g_autoptr (GTorchTensor) y =
          gtorch_zeros (GTORCH_SHAPE (2), refused[i].dtype, test_device (), NULL);

      g_assert_null (gtorch_tensor_set_scalar (y, "0", refused[i].value, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_cmpstr (error->message, ==, refused[i].message);
      g_clear_error (&error);
      g_assert_cmpfloat (test_element (y, 0), ==, 0);
    }
  g_assert_true (gtorch_tensor_set_int (x, "1:3", wide, &error) == x);
  found = gtorch_tensor_to_ints (x, &n, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n, ==, 5);
  g_assert_cmpint (found[0], ==, 0);
  g_assert_cmpint (found[1], ==, wide);
  g_assert_cmpint (found[2], ==, wide);
  g_assert_cmpint (found[3], ==, 3);
  assert_refused (gtorch_tensor_set_int (bytes, "0", -129, &error), &error,
                  "set_int: value is -129, which is no int8");
  g_assert_true (gtorch_tensor_set_int (bytes, "0", -128, &error) == bytes);
  g_assert_cmpfloat (test_element (bytes, 0), ==, -128);
}

static void
errors_of_parts_name_what_was_called (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = counting ();
  g_autoptr (GTorchTensor) four = gtorch_ones (GTORCH_SHAPE (4), 0, NULL, NULL);

  g_assert_null (gtorch_tensor_set (x, ":3", four, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_true (g_str_has_prefix (error->message, "set: "));
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_get (x, "7", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_true (g_str_has_prefix (error->message, "get: "));
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_set_int (x, "x", 1, &error));
  g_assert_true (g_str_has_prefix (error->message, "set_int: “x” cannot be read"));
}

static void
assert_no_integers (GTorchTensor *tensor, GTorchError code, const gchar *message)
{
  g_autoptr (GError) error = NULL;
  gsize n = 77;

  g_assert_null (gtorch_tensor_to_ints (tensor, &n, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  g_assert_cmpstr (error->message, ==, message);
  g_assert_cmpuint (n, ==, 77);
}

static void
only_integers_are_returned_as_such (void)
{
  const gdouble bad[] = { NAN, INFINITY, 1e30, 0x1p63 };
  const gchar *const texts[] = { "nan", "inf", "1e+30", "9.22337e+18" };
  const gdouble good[] = { 1.75, -1.75, -0x1p63 };
  g_autoptr (GTorchTensor) y =
      gtorch_tensor_new_from_doubles (good, 3, GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT64,
                                      test_device (), NULL);
  g_autoptr (GTorchTensor) pair =
      gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_COMPLEX64, test_device (), NULL);
  g_autofree gint64 *found = NULL;
  gsize n;

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      const gdouble values[] = { 1, bad[i] };
      g_autoptr (GTorchTensor) x =
          gtorch_tensor_new_from_doubles (values, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32,
                                          test_device (), NULL);
      g_autofree gchar *message =
          g_strdup_printf ("to_ints: element 1 is %s, which is not an integer", texts[i]);

      assert_no_integers (x, GTORCH_ERROR_INVALID, message);
    }
  assert_no_integers (pair, GTORCH_ERROR_DTYPE,
                      "to_ints: elements of complex64 are not one number but two: use to_doubles");
  found = gtorch_tensor_to_ints (y, &n, NULL);
  g_assert_cmpuint (n, ==, 3);
  g_assert_cmpint (found[0], ==, 1);
  g_assert_cmpint (found[1], ==, -1);
  g_assert_cmpint (found[2], ==, G_MININT64);
}

static void
series_have_numbers_of_their_dtype (void)
{
  g_autoptr (GError) error = NULL;

  assert_refused (gtorch_logspace (0, 5, 3, 10, GTORCH_DTYPE_INT8, NULL, &error), &error,
                  "logspace: the numbers include 100000, which is no int8");
  assert_refused (gtorch_logspace (0, 40, 3, 10, GTORCH_DTYPE_INT64, NULL, &error), &error,
                  "logspace: the numbers include 1e+40, which is no int64");
  assert_refused (gtorch_logspace (0, 6, 3, 10, GTORCH_DTYPE_FLOAT16, NULL, &error), &error,
                  "logspace: the numbers include 1000000, which is no float16");
  assert_refused (gtorch_logspace (-400, 0, 3, 0.1, GTORCH_DTYPE_FLOAT64, NULL, &error), &error,
                  "logspace: the numbers include 0.1 to the power of -400, which is no float64");
  assert_refused (gtorch_logspace (0, 1, 3, -2, GTORCH_DTYPE_INT32, NULL, &error), &error,
                  "logspace: -2 has no real powers of the fractions from 0 to 1");
  assert_refused (gtorch_arange (0, 0x1p65, 0x1p64, GTORCH_DTYPE_INT64, NULL, &error), &error,
                  "arange: the numbers include 1.8446744073709552e+19, which is no int64");
  assert_text (gtorch_logspace (0, 2, 3, -2, GTORCH_DTYPE_INT8, NULL, &error), error,
               "tensor([ 1, -2,  4], dtype=int8)");
}

/* Consumes both. */
static void
assert_same (GTorchTensor *one, GTorchTensor *other, GError *error)
{
  g_autoptr (GTorchTensor) expected = other;
  g_autofree gchar *text = NULL;

  g_assert_no_error (error);
  text = test_to_string (expected);
  assert_text (one, error, text);
}

static void
lists_that_are_not_given_have_their_default (void)
{
  const gint64 one = 1, zero = 0, two = 2, last[] = { -2, -1 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = gtorch_arange (0, 24, 1, GTORCH_DTYPE_FLOAT32, test_device (), NULL);
  g_autoptr (GTorchTensor) images = gtorch_tensor_reshape (x, GTORCH_SHAPE (1, 1, 4, 6), NULL);
  g_autoptr (GTorchTensor) stack = gtorch_tensor_reshape (x, GTORCH_SHAPE (2, 3, 4), NULL);
  g_autoptr (GTorchTensor) weight = gtorch_ones (GTORCH_SHAPE (1, 1, 2, 2), 0, NULL, NULL);

  assert_same (gtorch_fft_fft2 (stack, NULL, 0, NULL, 0, GTORCH_FFT_NORM_BACKWARD, &error),
               gtorch_fft_fft2 (stack, NULL, 0, last, 2, GTORCH_FFT_NORM_BACKWARD, NULL), error);
  assert_same (gtorch_linalg_matrix_norm (stack, 1, NULL, 0, FALSE, 0, &error),
               gtorch_linalg_matrix_norm (stack, 1, last, 2, FALSE, 0, NULL), error);
  assert_same (gtorch_conv2d (images, weight, NULL, NULL, 0, NULL, 0, NULL, 0, 1, &error),
               gtorch_conv2d (images, weight, NULL, &one, 1, &zero, 1, &one, 1, 1, NULL), error);
  assert_same (gtorch_conv_transpose2d (images, weight, NULL, NULL, 0, NULL, 0, NULL, 0, 1, NULL, 0,
                                        &error),
               gtorch_conv_transpose2d (images, weight, NULL, &one, 1, &zero, 1, &zero, 1, 1, &one,
                                        1, NULL),
               error);
  assert_same (gtorch_tensor_max_pool2d (images, &two, 1, NULL, 0, NULL, 0, NULL, 0, FALSE, &error),
               gtorch_tensor_max_pool2d (images, &two, 1, &two, 1, &zero, 1, &one, 1, FALSE, NULL),
               error);
  assert_same (gtorch_tensor_avg_pool2d (images, &two, 1, NULL, 0, NULL, 0, FALSE, TRUE,
                                         GTORCH_NONE, &error),
               gtorch_tensor_avg_pool2d (images, &two, 1, &two, 1, &zero, 1, FALSE, TRUE,
                                         GTORCH_NONE, NULL),
               error);
  /* of these, an empty list means all dimensions */
  assert_same (gtorch_normalize (stack, INFINITY, NULL, 0, 1e-12, &error),
               gtorch_tensor_div_scalar (stack, 23, NULL), error);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define TEST(name) g_test_add_func ("/GTorch/given-numbers/" #name, name)
  TEST (none_means_the_default);
  TEST (none_is_refused_without_a_default);
  TEST (the_least_integer_of_32_bits_is_a_number);
  TEST (parts_are_set_to_what_the_dtype_has);
  TEST (errors_of_parts_name_what_was_called);
  TEST (only_integers_are_returned_as_such);
  TEST (series_have_numbers_of_their_dtype);
  TEST (lists_that_are_not_given_have_their_default);
  return g_test_run ();
}
