/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The error of TF32, which is only used if it is enabled. */

#include "config.h"

#include "gpu-test.h"

typedef GTorchTensor *(*Compute) (GTorchTensor *a, GTorchTensor *b);

static GTorchTensor *
matmul (GTorchTensor *a, GTorchTensor *b)
{
  return TRY (gtorch_tensor_mm (a, b, &error));
}

static GTorchTensor *
convolve (GTorchTensor *a, GTorchTensor *b)
{
  const gint64 ones[] = { 1, 1 };

  return TRY (gtorch_conv2d (a, b, NULL, ones, 2, ones, 2, ones, 2, 1, &error));
}

/* Returns the root mean square of x - expected, relative to that of expected. */
static gdouble
error_of (GTorchTensor *x, GTorchTensor *expected)
{
  g_autoptr (GTorchTensor) wide = as (x, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) off = TRY (gtorch_tensor_sub (wide, expected, 1, &error));
  GTorchTensor *both[] = { off, expected };
  gdouble sums[2];
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) squares = TRY (gtorch_tensor_mul (both[i], both[i], &error));
      g_autoptr (GTorchTensor) sum =
          TRY (gtorch_tensor_sum (squares, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));

      sums[i] = gtorch_tensor_item_double (sum, NULL);
    }
  return sqrt (sums[0] / sums[1]);
}

static GBytes *
bytes_of (GTorchTensor *x)
{
  g_autoptr (GTorchTensor) host = on (x, gtorch_device_cpu ());

  return gtorch_tensor_get_bytes (host, NULL);
}

static void
check (const gchar *what, Compute compute, GTorchTensor *a, GTorchTensor *b,
       void (*set) (GTorchDevice *device, GTorchPrecision precision))
{
  g_autoptr (GTorchTensor) wide_a = as (a, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) wide_b = as (b, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) expected = compute (wide_a, wide_b);
  g_autoptr (GTorchTensor) exact = compute (a, b);
  g_autoptr (GTorchTensor) rounded = NULL;
  g_autoptr (GTorchTensor) again = NULL;
  g_autoptr (GBytes) x = NULL;
  g_autoptr (GBytes) y = NULL;
  gdouble ieee, tf32;

  set (gpu, GTORCH_PRECISION_TF32);
  rounded = compute (a, b);
  set (gpu, GTORCH_PRECISION_IEEE);
  again = compute (a, b);
  ieee = error_of (exact, expected);
  tf32 = error_of (rounded, expected);
  g_test_message ("%s: IEEE is off by %.3g, TF32 by %.3g: %.0f times", what, ieee, tf32,
                  tf32 / ieee);
  g_assert_cmpfloat (ieee, <, 3e-6);
  g_assert_cmpfloat (tf32, >, 5e-5);
  g_assert_cmpfloat (tf32, <, 2e-3);
  g_assert_cmpfloat (tf32, >, 20 * ieee);
  x = bytes_of (exact);
  y = bytes_of (again);
  g_assert_true (g_bytes_equal (x, y));
}

/* Under compute-sanitizer a product of large matrices takes minutes. */
static gint64
edge (gint64 n)
{
  return is_under_sanitizer () ? n / 8 : n;
}

static GTorchTensor *
draw (const gint64 *shape, gsize n_dims)
{
  return TRY (gtorch_randn (shape, n_dims, GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
}

static void
tf32_matrices_are_a_hundred_times_less_exact (void)
{
  g_autoptr (GTorchTensor) a = draw (GTORCH_SHAPE (edge (2048), edge (2048)));
  g_autoptr (GTorchTensor) b = draw (GTORCH_SHAPE (edge (2048), edge (2048)));

  check ("mm", matmul, a, b, gtorch_device_set_matmul_precision);
}

static void
bf16_matrices_are_less_exact_again (void)
{
  g_autoptr (GTorchTensor) a = draw (GTORCH_SHAPE (edge (2048), edge (2048)));
  g_autoptr (GTorchTensor) b = draw (GTORCH_SHAPE (edge (2048), edge (2048)));
  g_autoptr (GTorchTensor) wide_a = as (a, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) wide_b = as (b, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) expected = matmul (wide_a, wide_b);
  g_autoptr (GTorchTensor) rounded = NULL;
  gdouble off;

  gtorch_device_set_matmul_precision (gpu, GTORCH_PRECISION_BF16);
  rounded = matmul (a, b);
  gtorch_device_set_matmul_precision (gpu, GTORCH_PRECISION_IEEE);
  off = error_of (rounded, expected);
  g_test_message ("mm: BF16 is off by %.3g", off);
  g_assert_cmpfloat (off, <, 2e-2); /* a smaller error is allowed */
}

/* Returns the largest error relative to the mean of the expected values. */
static gdouble
greatest_error_of (GTorchTensor *x, GTorchTensor *expected)
{
  g_autoptr (GTorchTensor) wide = as (x, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) off = TRY (gtorch_tensor_sub (wide, expected, 1, &error));
  g_autoptr (GTorchTensor) size = TRY (gtorch_tensor_abs (off, &error));
  g_autoptr (GTorchTensor) greatest = TRY (gtorch_tensor_amax (size, NULL, 0, FALSE, &error));
  g_autoptr (GTorchTensor) sizes = TRY (gtorch_tensor_abs (expected, &error));
  g_autoptr (GTorchTensor) mean =
      TRY (gtorch_tensor_mean (sizes, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));

  return gtorch_tensor_item_double (greatest, NULL) / gtorch_tensor_item_double (mean, NULL);
}

/* The example that explains TF32 in PyTorch's notes on CUDA: there the error is 0.0022, and 0.000039
 * without TF32. */
static void
large_products_are_as_exact_as_pytorchs (void)
{
  const gint64 n = edge (10240);
  g_autoptr (GTorchTensor) wide_a =
      TRY (gtorch_randn (GTORCH_SHAPE (n, n), GTORCH_DTYPE_FLOAT64, gpu, NULL, &error));
  g_autoptr (GTorchTensor) wide_b =
      TRY (gtorch_randn (GTORCH_SHAPE (n, n), GTORCH_DTYPE_FLOAT64, gpu, NULL, &error));
  g_autoptr (GTorchTensor) expected = matmul (wide_a, wide_b);
  g_autoptr (GTorchTensor) a = as (wide_a, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) b = as (wide_b, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) exact = matmul (a, b);
  g_autoptr (GTorchTensor) rounded = NULL;
  gdouble ieee, tf32;

  gtorch_device_set_matmul_precision (gpu, GTORCH_PRECISION_TF32);
  rounded = matmul (a, b);
  gtorch_device_set_matmul_precision (gpu, GTORCH_PRECISION_IEEE);
  ieee = greatest_error_of (exact, expected);
  tf32 = greatest_error_of (rounded, expected);
  g_test_message ("%d x %d: IEEE is off by %.3g, TF32 by %.3g of the mean", (gint) n, (gint) n,
                  ieee, tf32);
  g_assert_cmpfloat (ieee, <, 4e-5);
  g_assert_cmpfloat (tf32, >, 5e-4);
  g_assert_cmpfloat (tf32, <, 4e-3);
}

static void
tf32_convolutions_are_less_exact_too (void)
{
  g_autoptr (GTorchTensor) a = draw (GTORCH_SHAPE (edge (16), 64, 56, 56));
  g_autoptr (GTorchTensor) b = draw (GTORCH_SHAPE (64, 64, 3, 3));

  check ("conv2d", convolve, a, b, gtorch_device_set_conv_precision);
}

/* The setting for products does not affect convolutions, and vice versa. */
static void
the_two_settings_are_independent (void)
{
  g_autoptr (GTorchTensor) a = draw (GTORCH_SHAPE (512, 512));
  g_autoptr (GTorchTensor) exact = matmul (a, a);
  g_autoptr (GTorchTensor) other = NULL;
  g_autoptr (GBytes) x = bytes_of (exact);
  g_autoptr (GBytes) y = NULL;

  gtorch_device_set_conv_precision (gpu, GTORCH_PRECISION_TF32);
  other = matmul (a, a);
  gtorch_device_set_conv_precision (gpu, GTORCH_PRECISION_IEEE);
  y = bytes_of (other);
  g_assert_true (g_bytes_equal (x, y));
}

#define TEST(name) g_test_add_func ("/gpu/precision/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  TEST (tf32_matrices_are_a_hundred_times_less_exact);
  TEST (bf16_matrices_are_less_exact_again);
  TEST (large_products_are_as_exact_as_pytorchs);
  TEST (tf32_convolutions_are_less_exact_too);
  TEST (the_two_settings_are_independent);
  return g_test_run ();
}
