/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Windows and the transforms of the parts of signals, compared with their definitions. */

#include "config.h"

#include <math.h>

#include <gtorch/base/gtorch-none.h>

#include "op-values.h"

#define NONE GTORCH_DTYPE_NONE

/* Evaluates the call, which uses `error`; ends the test if the device lacks an operation. */
#define TRY(call)                            \
  ({                                         \
    GError *error = NULL;                    \
    GTorchImpl *made_ = (call);              \
                                             \
    if (error != NULL && is_lacking (error)) \
      {                                      \
        g_clear_error (&error);              \
        return;                              \
      }                                      \
    g_assert_no_error (error);               \
    g_assert_nonnull (made_);                \
    made_;                                   \
  })

#define REFUSED(call, code_, text)               \
  {                                              \
    GError *error = NULL;                        \
    GTorchImpl *made_ = (call);                  \
                                                 \
    g_assert_null (made_);                       \
    g_assert_error (error, GTORCH_ERROR, code_); \
    g_assert_cmpstr (error->message, ==, text);  \
    g_clear_error (&error);                      \
  }

static void
check_values (GTorchImpl *impl, const gdouble *values, gint64 n)
{
  g_autoptr (GTorchImpl) host = impl_to_host (impl);
  gint64 i;

  g_assert_cmpint (impl->numel, ==, n);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat_with_epsilon (creal (element_get (host, i)), values[i], 1e-14);
}

static void
windows_have_the_values_of_their_formulas (void)
{
  const GTorchDType dtype = GTORCH_DTYPE_FLOAT64;
  GTorchDevice *device = test_device ();
  g_autoptr (GTorchImpl) periodic = TRY (gtorch_op_hann_window (4, TRUE, dtype, device, &error));
  g_autoptr (GTorchImpl) symmetric = TRY (gtorch_op_hann_window (5, FALSE, dtype, device, &error));
  g_autoptr (GTorchImpl) triangle =
      TRY (gtorch_op_bartlett_window (4, TRUE, dtype, device, &error));
  g_autoptr (GTorchImpl) hamming =
      TRY (gtorch_op_hamming_window (3, FALSE, 0.5, 0.25, dtype, device, &error));
  g_autoptr (GTorchImpl) blackman =
      TRY (gtorch_op_signal_windows_blackman (3, TRUE, dtype, device, &error));
  g_autoptr (GTorchImpl) kaiser =
      TRY (gtorch_op_kaiser_window (3, FALSE, 1, dtype, device, &error));
  g_autoptr (GTorchImpl) gaussian =
      TRY (gtorch_op_signal_windows_gaussian (3, 2, TRUE, dtype, device, &error));
  g_autoptr (GTorchImpl) exponential =
      TRY (gtorch_op_signal_windows_exponential (3, 0, 2, FALSE, dtype, device, &error));
  g_autoptr (GTorchImpl) centered = TRY (
      gtorch_op_signal_windows_exponential (3, GTORCH_NONE_DOUBLE, 2, TRUE, dtype, device, &error));
  g_autoptr (GTorchImpl) cosine =
      TRY (gtorch_op_signal_windows_cosine (3, TRUE, dtype, device, &error));

  check_values (periodic, (const gdouble[]){ 0, 0.5, 1, 0.5 }, 4);
  check_values (symmetric, (const gdouble[]){ 0, 0.5, 1, 0.5, 0 }, 5);
  check_values (triangle, (const gdouble[]){ 0, 0.5, 1, 0.5 }, 4);
  check_values (hamming, (const gdouble[]){ 0.25, 0.75, 0.25 }, 3);
  check_values (blackman, (const gdouble[]){ 0, 1, 0 }, 3);
  check_values (kaiser, (const gdouble[]){ 0.78984831482511197, 1, 0.78984831482511197 }, 3);
  check_values (gaussian, (const gdouble[]){ exp (-0.125), 1, exp (-0.125) }, 3);
  check_values (exponential, (const gdouble[]){ 1, exp (-0.5), exp (-1) }, 3);
  check_values (centered, (const gdouble[]){ exp (-0.5), 1, exp (-0.5) }, 3);
  check_values (cosine, (const gdouble[]){ 0.5, 1, 0.5 }, 3);
}

static void
windows_of_great_beta_do_not_overflow (void)
{
  g_autoptr (GTorchImpl) window =
      TRY (gtorch_op_kaiser_window (3, FALSE, 2000, GTORCH_DTYPE_FLOAT64, test_device (), &error));

  check_values (window, (const gdouble[]){ 0, 1, 0 }, 3);
}

static void
windows_refuse_what_makes_none (void)
{
  REFUSED (gtorch_op_hann_window (-1, TRUE, NONE, NULL, &error), GTORCH_ERROR_INVALID,
           "hann_window: a window cannot have -1 elements");
  REFUSED (gtorch_op_hann_window (4, TRUE, GTORCH_DTYPE_INT32, NULL, &error), GTORCH_ERROR_DTYPE,
           "hann_window: the dtype must be a floating-point one");
  REFUSED (gtorch_op_signal_windows_gaussian (4, 0, TRUE, NONE, NULL, &error), GTORCH_ERROR_INVALID,
           "signal_windows_gaussian: std is 0 and must be greater than 0");
  REFUSED (gtorch_op_signal_windows_exponential (4, 1, 1, TRUE, NONE, NULL, &error),
           GTORCH_ERROR_INVALID,
           "signal_windows_exponential: center is 1: only a window that is not symmetric has one, "
           "which must be finite");
  REFUSED (gtorch_op_signal_windows_exponential (4, NAN, 1, FALSE, NONE, NULL, &error),
           GTORCH_ERROR_INVALID,
           "signal_windows_exponential: center is nan: only a window that is not symmetric has "
           "one, "
           "which must be finite");
  REFUSED (gtorch_op_signal_windows_kaiser (4, -1, TRUE, NONE, NULL, &error), GTORCH_ERROR_INVALID,
           "signal_windows_kaiser: beta is -1 and must not be negative");
}

/* --- transforms of parts --- */

static gdouble
signal_at (gint64 i)
{
  return sin (0.7 * (gdouble) (i * i % 23)) + 0.25 * (gdouble) (i % 5);
}

static GTorchImpl *
signal_new (gint64 n)
{
  g_autoptr (GTorchImpl) impl =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT64, &n, 1, NULL);
  gint64 i;

  for (i = 0; i < n; i++)
    element_set (impl, i, signal_at (i));
  return impl_to_test_device (impl);
}

#define N     31
#define N_FFT 8
#define HOP   3

static void
stft_is_the_transform_of_each_part (void)
{
  g_autoptr (GTorchImpl) x = signal_new (N);
  g_autoptr (GTorchImpl) window =
      TRY (gtorch_op_hann_window (N_FFT, TRUE, GTORCH_DTYPE_FLOAT64, test_device (), &error));
  g_autoptr (GTorchImpl) y =
      TRY (gtorch_op_stft (x, N_FFT, HOP, GTORCH_NONE, window, TRUE, GTORCH_PAD_MODE_REFLECT, FALSE,
                           TRUE, TRUE, FALSE, &error));
  g_autoptr (GTorchImpl) host = impl_to_host (y);
  const gint64 parts = N / HOP + 1;
  gint64 k, t, j;

  g_assert_cmpint (y->n_dims, ==, 2);
  g_assert_cmpint (y->shape[0], ==, N_FFT / 2 + 1);
  g_assert_cmpint (y->shape[1], ==, parts);
  for (k = 0; k <= N_FFT / 2; k++)
    for (t = 0; t < parts; t++)
      {
        Number sum = 0;

        for (j = 0; j < N_FFT; j++)
          {
            gint64 at = t * HOP + j - N_FFT / 2;

            at = at < 0 ? -at : (at >= N ? 2 * (N - 1) - at : at);
            sum += 0.5 * (1 - cos (2 * G_PI * j / N_FFT)) * signal_at (at)
                   * cexp (-2 * G_PI * I * j * k / N_FFT);
          }
        g_assert_cmpfloat (cabs (element_get (host, k * parts + t) - sum), <, 1e-13);
      }
}

/* With center, all elements come back; without it those of windows that are 0 somewhere do not. */
static void
istft_is_the_inverse (void)
{
  guint i;

  for (i = 0; i < 8; i++)
    {
      const gboolean normalized = i & 1, onesided = (i & 2) != 0, center = (i & 4) != 0;
      g_autoptr (GTorchImpl) x = signal_new (N);
      g_autoptr (GTorchImpl) window =
          TRY (gtorch_op_hamming_window (5, FALSE, 0.54, 0.46, GTORCH_DTYPE_FLOAT64, test_device (),
                                         &error));
      g_autoptr (GTorchImpl) y = NULL, back = NULL, host = NULL;
      gint64 j;

      if (!center)
        {
          gtorch_impl_unref (window);
          window = TRY (gtorch_op_hamming_window (N_FFT, FALSE, 0.54, 0.46, GTORCH_DTYPE_FLOAT64,
                                                  test_device (), &error));
        }
      y = TRY (gtorch_op_stft (x, N_FFT, 2, window->numel, window, center, GTORCH_PAD_MODE_CONSTANT,
                               normalized, onesided, TRUE, FALSE, &error));
      back = TRY (gtorch_op_istft (y, N_FFT, 2, window->numel, window, center, normalized, onesided,
                                   N - 1, FALSE, &error));
      host = impl_to_host (back);
      g_assert_cmpint (back->numel, ==, N - 1);
      for (j = 0; j < N - 1; j++)
        g_assert_cmpfloat_with_epsilon (creal (element_get (host, j)), signal_at (j), 1e-12);
    }
}

static void
what_cannot_be_cut_into_parts_is_refused (void)
{
  g_autoptr (GTorchImpl) x = signal_new (6);
  g_autoptr (GTorchImpl) window =
      TRY (gtorch_op_hann_window (4, TRUE, GTORCH_DTYPE_FLOAT64, test_device (), &error));

#define STFT(n_fft, win, center, align)                                                        \
  gtorch_op_stft (x, n_fft, GTORCH_NONE, win, window, center, GTORCH_PAD_MODE_CONSTANT, FALSE, \
                  TRUE, TRUE, align, &error)
  REFUSED (STFT (4, 5, TRUE, FALSE), GTORCH_ERROR_INVALID,
           "stft: n_fft 4, hop_length 1 and win_length 5 must be at least 1, and the window not "
           "longer than n_fft");
  REFUSED (STFT (8, GTORCH_NONE, TRUE, FALSE), GTORCH_ERROR_SHAPE,
           "stft: a window of shape [4] must be a row of win_length 8 elements");
  REFUSED (STFT (8, 4, FALSE, FALSE), GTORCH_ERROR_SHAPE,
           "stft: a signal of 6 elements is shorter than n_fft 8");
  REFUSED (STFT (4, 4, TRUE, TRUE), GTORCH_ERROR_INVALID,
           "stft: center and align_to_window exclude each other");
  REFUSED (gtorch_op_istft (x, 4, GTORCH_NONE, GTORCH_NONE, window, TRUE, FALSE, TRUE, GTORCH_NONE,
                            FALSE, &error),
           GTORCH_ERROR_DTYPE, "istft: transforms of dtype float64 must be complex");
}

static void
windows_that_do_not_meet_are_refused (void)
{
  g_autoptr (GTorchImpl) x = signal_new (12);
  g_autoptr (GTorchImpl) window =
      TRY (gtorch_op_hann_window (4, TRUE, GTORCH_DTYPE_FLOAT64, test_device (), &error));
  g_autoptr (GTorchImpl) y =
      TRY (gtorch_op_stft (x, 4, 4, GTORCH_NONE, window, FALSE, GTORCH_PAD_MODE_CONSTANT, FALSE,
                           TRUE, TRUE, FALSE, &error));

  REFUSED (gtorch_op_istft (y, 4, 4, GTORCH_NONE, window, FALSE, FALSE, TRUE, GTORCH_NONE, FALSE,
                            &error),
           GTORCH_ERROR_INVALID,
           "istft: the squares of the windows add up to 0 at some element, by which cannot be "
           "divided");
  REFUSED (gtorch_op_istft (y, 4, 4, GTORCH_NONE, window, FALSE, FALSE, FALSE, GTORCH_NONE, FALSE,
                            &error),
           GTORCH_ERROR_SHAPE,
           "istft: shape [3, 3] must be that of parts with 4 frequencies each, [4, parts], or of a "
           "row of these");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define TEST(name) g_test_add_func ("/GTorch/signal/" #name, name)
  TEST (windows_have_the_values_of_their_formulas);
  TEST (windows_of_great_beta_do_not_overflow);
  TEST (windows_refuse_what_makes_none);
  TEST (stft_is_the_transform_of_each_part);
  TEST (istft_is_the_inverse);
  TEST (what_cannot_be_cut_into_parts_is_refused);
  TEST (windows_that_do_not_meet_are_refused);
  return g_test_run ();
}
