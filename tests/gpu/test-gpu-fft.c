/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Fourier transforms on the GPU compared with those on the CPU, in all forms. */

#include "config.h"

#include "gpu-test.h"

/* Returns normally distributed numbers on the CPU, complex in complex dtypes. */
static GTorchTensor *
numbers (const gint64 *shape, gsize n_dims, GTorchDType dtype, guint64 seed)
{
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (seed);
  const GTorchDType real = dtype == GTORCH_DTYPE_COMPLEX64 || dtype == GTORCH_DTYPE_FLOAT32
                               ? GTORCH_DTYPE_FLOAT32
                               : GTORCH_DTYPE_FLOAT64;
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_randn (shape, n_dims, real, gtorch_device_cpu (), generator, &error));
  g_autoptr (GTorchTensor) y = NULL;

  if (dtype == real)
    return g_steal_pointer (&x);
  y = TRY (gtorch_randn (shape, n_dims, real, gtorch_device_cpu (), generator, &error));
  return TRY (gtorch_complex (x, y, &error));
}

/* Checks that the relative distance (in the Euclidean norm) of `found`, on the GPU, from `expected` is
 * small. */
static void
near (const gchar *what, GTorchTensor *found, GTorchTensor *expected)
{
  const gboolean is_double = gtorch_tensor_get_dtype (expected) == GTORCH_DTYPE_COMPLEX128
                             || gtorch_tensor_get_dtype (expected) == GTORCH_DTYPE_FLOAT64;
  g_autoptr (GTorchTensor) host = on (found, gtorch_device_cpu ());
  g_autoptr (GTorchTensor) off = TRY (gtorch_tensor_sub (host, expected, 1, &error));
  GTorchTensor *both[] = { off, expected };
  gdouble sums[2];
  guint i;

  g_assert_cmpint (gtorch_tensor_get_dtype (found), ==, gtorch_tensor_get_dtype (expected));
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) size = TRY (gtorch_tensor_abs (both[i], &error));
      g_autoptr (GTorchTensor) wide = as (size, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) squares = TRY (gtorch_tensor_mul (wide, wide, &error));
      g_autoptr (GTorchTensor) sum =
          TRY (gtorch_tensor_sum (squares, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));

      sums[i] = gtorch_tensor_item_double (sum, NULL);
    }
  if (!(sqrt (sums[0]) <= (is_double ? 3e-15 : 2e-6) * sqrt (sums[1])))
    {
      g_test_message ("%s: the relative error is %g", what, sqrt (sums[0] / sums[1]));
      g_test_fail ();
    }
}

/* Makes each call once with the tensor of the CPU and once with that of the GPU. */
#define BOTH(name, ...)                                                       \
  G_STMT_START                                                                \
  {                                                                           \
    g_autoptr (GTorchTensor) expected_ = TRY (name (x, __VA_ARGS__, &error)); \
    g_autoptr (GTorchTensor) found_ = TRY (name (y, __VA_ARGS__, &error));    \
                                                                              \
    near (#name " " #__VA_ARGS__, found_, expected_);                         \
  }                                                                           \
  G_STMT_END

static void
check_one (GTorchTensor *x, GTorchTensor *y, gboolean is_complex)
{
  guint norm;
  gint64 dim;

  for (norm = 0; norm < 3; norm++)
    for (dim = 0; dim < 3; dim++)
      {
        BOTH (gtorch_fft_fft, GTORCH_NONE, dim, norm);
        BOTH (gtorch_fft_ifft, 9, dim, norm);
        BOTH (gtorch_fft_irfft, GTORCH_NONE, dim, norm);
        BOTH (gtorch_fft_irfft, 7, dim, norm);
        BOTH (gtorch_fft_hfft, 8, dim, norm);
        if (!is_complex)
          {
            BOTH (gtorch_fft_rfft, GTORCH_NONE, dim, norm);
            BOTH (gtorch_fft_rfft, 11, dim, norm);
            BOTH (gtorch_fft_ihfft, GTORCH_NONE, dim, norm);
          }
      }
}

static void
check_several (GTorchTensor *x, GTorchTensor *y, gboolean is_complex)
{
  const gint64 lengths[] = { 6, 5 }, outer[] = { 2, 0 }, inner[] = { -2, -1 };

  BOTH (gtorch_fft_fftn, NULL, 0, NULL, 0, GTORCH_FFT_NORM_BACKWARD);
  BOTH (gtorch_fft_ifftn, lengths, 2, outer, 2, GTORCH_FFT_NORM_ORTHO);
  BOTH (gtorch_fft_irfftn, NULL, 0, NULL, 0, GTORCH_FFT_NORM_BACKWARD);
  BOTH (gtorch_fft_irfftn, lengths, 2, outer, 2, GTORCH_FFT_NORM_FORWARD);
  BOTH (gtorch_fft_fft2, NULL, 0, inner, 2, GTORCH_FFT_NORM_BACKWARD);
  BOTH (gtorch_fft_fftshift, NULL, 0);
  if (is_complex)
    return;
  BOTH (gtorch_fft_rfftn, NULL, 0, NULL, 0, GTORCH_FFT_NORM_BACKWARD);
  BOTH (gtorch_fft_rfft2, lengths, 2, inner, 2, GTORCH_FFT_NORM_ORTHO);
}

static void
agrees_with_the_cpu (gconstpointer data)
{
  const GTorchDType dtype = GPOINTER_TO_INT (data);
  const gboolean is_complex = gtorch_dtype_is_complex (dtype);
  guint layout;

  for (layout = 0; layout < 3; layout++)
    {
      g_autoptr (GTorchTensor) whole = numbers (GTORCH_SHAPE (5, 8, 7), dtype, layout);
      g_autoptr (GTorchTensor) away = on (whole, gpu);
      g_autoptr (GTorchTensor) x = NULL;
      g_autoptr (GTorchTensor) y = NULL;

      if (layout == 0)
        {
          x = g_object_ref (whole);
          y = g_object_ref (away);
        }
      else if (layout == 1)
        {
          x = TRY (gtorch_tensor_transpose (whole, 0, 2, &error));
          y = TRY (gtorch_tensor_transpose (away, 0, 2, &error));
        }
      else
        { /* contiguous, at a misaligned address */
          x = TRY (gtorch_tensor_slice (whole, 0, 1, 5, 1, &error));
          y = TRY (gtorch_tensor_slice (away, 0, 1, 5, 1, &error));
        }
      check_one (x, y, is_complex);
      check_several (x, y, is_complex);
    }
}

static void
lengths_agree (void)
{
  static const gint lengths[] = { 1, 2, 3, 16, 97, 1000, 1024, 10007, 65536, 1 << 20 };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (lengths); i++)
    {
      g_autoptr (GTorchTensor) x =
          numbers (GTORCH_SHAPE (2, lengths[i]), GTORCH_DTYPE_COMPLEX64, i);
      g_autoptr (GTorchTensor) y = on (x, gpu);

      BOTH (gtorch_fft_fft, GTORCH_NONE, -1, GTORCH_FFT_NORM_ORTHO);
      BOTH (gtorch_fft_irfft, 2 * lengths[i], -1, GTORCH_FFT_NORM_ORTHO);
    }
}

static void
four_dimensions_agree (void)
{
  g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (3, 4, 5, 2, 6), GTORCH_DTYPE_COMPLEX128, 1);
  g_autoptr (GTorchTensor) y = on (x, gpu);
  const gint64 dims[] = { 0, 1, 3, 4 };

  BOTH (gtorch_fft_fftn, NULL, 0, NULL, 0, GTORCH_FFT_NORM_BACKWARD);
  BOTH (gtorch_fft_ifftn, NULL, 0, dims, 4, GTORCH_FFT_NORM_BACKWARD);
}

/* A transform to real numbers does not change its input either. */
static void
inputs_stay (void)
{
  const gint64 last[] = { -2, -1 };
  g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (4, 65), GTORCH_DTYPE_COMPLEX64, 1);
  g_autoptr (GTorchTensor) y = on (x, gpu);
  g_autoptr (GTorchTensor) real = TRY (gtorch_fft_irfft (y, GTORCH_NONE, -1, 0, &error));
  g_autoptr (GTorchTensor) whole = TRY (gtorch_fft_irfft2 (y, NULL, 0, last, 2, 0, &error));
  g_autoptr (GTorchTensor) host = on (y, gtorch_device_cpu ());
  g_autoptr (GBytes) before = gtorch_tensor_get_bytes (x, NULL);
  g_autoptr (GBytes) after = gtorch_tensor_get_bytes (host, NULL);

  g_assert_true (g_bytes_equal (before, after));
}

static void
gradients_agree (void)
{
  g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (3, 10), GTORCH_DTYPE_FLOAT64, 1);
  GTorchTensor *leaves[] = { x, on (x, gpu) };
  GTorchTensor *grads[2] = { NULL };
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) half = NULL;
      g_autoptr (GTorchTensor) size = NULL;
      g_autoptr (GTorchTensor) sum = NULL;
      g_autoptr (GError) failure = NULL;

      gtorch_tensor_set_requires_grad (leaves[i], TRUE, NULL);
      half = TRY (gtorch_fft_rfft (leaves[i], 12, -1, 0, &error));
      size = TRY (gtorch_tensor_abs (half, &error));
      sum = TRY (gtorch_tensor_sum (size, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));
      gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &failure);
      g_assert_no_error (failure);
      grads[i] = gtorch_tensor_get_grad (leaves[i]);
    }
  near ("gradient", grads[1], grads[0]);
  g_clear_object (&grads[0]);
  g_clear_object (&grads[1]);
  g_clear_object (&leaves[1]);
}

/* A running transform completes if its plan is dropped; one plan serves several streams. */
static void
plans_may_be_freed_at_any_time (void)
{
  GTorchFFTPlanCache *cache = gtorch_device_get_fft_plan_cache (gpu);
  g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (64, 4096), GTORCH_DTYPE_COMPLEX64, 1);
  g_autoptr (GTorchTensor) y = on (x, gpu);
  g_autoptr (GTorchTensor) expected = TRY (gtorch_fft_fft (x, GTORCH_NONE, -1, 0, &error));
  guint i;

  gtorch_device_synchronize (gpu, NULL, NULL);
  for (i = 0; i < 40; i++)
    {
      g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
      g_autoptr (GTorchTensor) z = TRY (gtorch_fft_fft (y, GTORCH_NONE, -1, 0, &error));

      if (i % 3 == 0)
        gtorch_fft_plan_cache_clear (cache);
      near ("while plans go", z, expected);
    }
  gtorch_fft_plan_cache_clear (cache);
  g_assert_cmpuint (gtorch_fft_plan_cache_get_size (cache), ==, 0);
}

#define TEST(name) g_test_add_func ("/GTorchGpuFft/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  g_test_add_data_func ("/GTorchGpuFft/agrees_with_the_cpu/float32",
                        GINT_TO_POINTER (GTORCH_DTYPE_FLOAT32), agrees_with_the_cpu);
  g_test_add_data_func ("/GTorchGpuFft/agrees_with_the_cpu/float64",
                        GINT_TO_POINTER (GTORCH_DTYPE_FLOAT64), agrees_with_the_cpu);
  g_test_add_data_func ("/GTorchGpuFft/agrees_with_the_cpu/complex64",
                        GINT_TO_POINTER (GTORCH_DTYPE_COMPLEX64), agrees_with_the_cpu);
  g_test_add_data_func ("/GTorchGpuFft/agrees_with_the_cpu/complex128",
                        GINT_TO_POINTER (GTORCH_DTYPE_COMPLEX128), agrees_with_the_cpu);
  TEST (lengths_agree);
  TEST (four_dimensions_agree);
  TEST (inputs_stay);
  TEST (gradients_agree);
  TEST (plans_may_be_freed_at_any_time);
  return g_test_run ();
}
