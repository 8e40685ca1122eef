/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Fourier transforms compared with their definition in long double, for all kinds of lengths and numbers
 * of lines; complex gradients compared with differences; errors. */

#include "config.h"

#include <math.h>
#include <string.h>

#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

#include "op-values.h"

#define PI 3.14159265358979323846264338327950288L

/* Returns random complex numbers of the dtype that float32 can represent. */
static GTorchTensor *
random_complex (const gint64 *shape, gsize n_dims, GTorchDType dtype, guint seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchImpl) impl =
      gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n_dims, &error);
  gint64 i;

  g_assert_no_error (error);
  for (i = 0; i < impl->numel; i++)
    {
      const gfloat re = (gfloat) g_rand_double_range (rand, -1, 1);
      const gfloat im = (gfloat) g_rand_double_range (rand, -1, 1);

      element_set (impl, i, re + im * I);
    }
  return gtorch_tensor_wrap (impl_to_test_device (impl));
}

static GTorchTensor *
must (GTorchTensor *tensor, GError *error)
{
  g_assert_no_error (error);
  g_assert_nonnull (tensor);
  return tensor;
}

/* Evaluates the call, which uses `error`, and checks for success. */
#define TRY(call)                   \
  ({                                \
    GError *error = NULL;           \
    GTorchTensor *result_ = (call); \
                                    \
    must (result_, error);          \
  })

typedef long double _Complex Exact;

/* Returns element k of the transform of a line of the 2-D impl. */
static Exact
defined (const GTorchImpl *impl, gint64 line, gint64 k, const Exact *roots)
{
  const gint64 n = impl->shape[1];
  Exact sum = 0;
  gint64 j;

  for (j = 0; j < n; j++)
    sum += (Exact) element_get (impl, line * n + j) * roots[j * k % n];
  return sum;
}

/* Returns the relative error (in the Euclidean norm) of some elements of the transforms; real lines have
 * half of them. */
static gdouble
error_of (GTorchTensor *x, GTorchTensor *y)
{
  const gint64 n = x->impl->shape[1], lines = x->impl->shape[0], width = y->impl->shape[1];
  g_autofree Exact *roots = g_new (Exact, n);
  long double wrong = 0, all = 0;
  gint64 k, line;

  for (k = 0; k < n; k++)
    roots[k] = cosl (2 * PI * k / n) - sinl (2 * PI * k / n) * I;
  for (line = 0; line < lines; line += MAX (lines - 1, 1))
    for (k = 0; k<width; k += n> 500 ? n / 53 + 1 : 1)
      {
        const Exact wanted = defined (x->impl, line, k, roots);
        const Exact found = (Exact) element_get (y->impl, line * width + k);

        wrong += powl (cabsl (found - wanted), 2);
        all += powl (cabsl (wanted), 2);
      }
  return (gdouble) sqrtl (wrong / all);
}

/* Returns the relative distance of all elements. */
static gdouble
distance (GTorchTensor *a, GTorchTensor *b)
{
  long double wrong = 0, all = 0;
  gint64 i;

  g_assert_true (gtorch_impl_same_shape (a->impl, b->impl));
  for (i = 0; i < a->impl->numel; i++)
    {
      const Exact x = (Exact) element_get (a->impl, i), y = (Exact) element_get (b->impl, i);

      wrong += powl (cabsl (x - y), 2);
      all += powl (cabsl (y), 2);
    }
  return (gdouble) sqrtl (wrong / all);
}

static gboolean
same_bits (GTorchTensor *a, GTorchTensor *b)
{
  g_autoptr (GBytes) x = gtorch_tensor_get_bytes (a, NULL);
  g_autoptr (GBytes) y = gtorch_tensor_get_bytes (b, NULL);

  return gtorch_impl_same_shape (a->impl, b->impl) && a->impl->dtype == b->impl->dtype
         && a->impl->is_contiguous && b->impl->is_contiguous && g_bytes_equal (x, y);
}

/* Each butterfly adds a random rounding error of about eps / 2; a convolution is three transforms. */
static gdouble
allowed (GTorchDType dtype, gint64 n)
{
  return (dtype == GTORCH_DTYPE_COMPLEX64 ? 0x1p-23 : 0x1p-52) * (1 + log2 ((gdouble) n) / 3);
}

static void
agrees_with_definition (gconstpointer data)
{
  static const gint lengths[] = { 1,    2,    3,    4,    5,    6,    7,    8,    9,
                                  10,   11,   13,   15,   16,   26,   31,   34,   37,
                                  60,   64,   97,   128,  202,  243,  256,  385,  1000,
                                  1009, 1024, 2310, 4096, 4099, 5000, 8198, 16384 };
  static const gint batches[] = { 1, 5, 9, 37 };
  const GTorchDType dtype = GPOINTER_TO_INT (data);
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (lengths); i++)
    for (j = 0; j < G_N_ELEMENTS (batches); j++)
      {
        const gint64 n = lengths[i];
        g_autoptr (GTorchTensor) x = random_complex (GTORCH_SHAPE (batches[j], n), dtype, n + j);
        g_autoptr (GTorchTensor) re = TRY (gtorch_tensor_real (x, &error));
        g_autoptr (GTorchTensor) y = NULL;
        g_autoptr (GTorchTensor) back = NULL;
        g_autoptr (GTorchTensor) half = NULL;
        g_autoptr (GTorchTensor) real = NULL;
        gdouble errors[4];
        guint k;

        if ((n > 4099 && batches[j] > 5) || (is_under_sanitizer () && i % 5 > 0))
          continue;
        y = TRY (gtorch_fft_fft (x, GTORCH_NONE, -1, GTORCH_FFT_NORM_BACKWARD, &error));
        back = TRY (gtorch_fft_ifft (y, GTORCH_NONE, -1, GTORCH_FFT_NORM_BACKWARD, &error));
        half = TRY (gtorch_fft_rfft (re, GTORCH_NONE, -1, GTORCH_FFT_NORM_BACKWARD, &error));
        real = TRY (gtorch_fft_irfft (half, n, -1, GTORCH_FFT_NORM_BACKWARD, &error));
        errors[0] = error_of (x, y);
        errors[1] = distance (back, x) / 2;
        errors[2] = error_of (re, half);
        errors[3] = distance (real, re) / 2;
        for (k = 0; k < 4; k++)
          if (!(errors[k] <= allowed (dtype, n)))
            {
              g_test_message ("n %" G_GINT64_FORMAT ", %d lines, transform %u: error %g of %g", n,
                              batches[j], k, errors[k], allowed (dtype, n));
              g_test_fail ();
            }
      }
}

static void
several_dimensions_are_one_after_the_other (void)
{
  static const gint64 dims[] = { 0, 2, 1 };
  g_autoptr (GTorchTensor) x =
      random_complex (GTORCH_SHAPE (20, 36, 17), GTORCH_DTYPE_COMPLEX128, 1);
  g_autoptr (GTorchTensor) all =
      TRY (gtorch_fft_fftn (x, NULL, 0, NULL, 0, GTORCH_FFT_NORM_ORTHO, &error));
  g_autoptr (GTorchTensor) each = g_object_ref (x);
  guint i;

  for (i = 0; i < 3; i++)
    {
      GTorchTensor *next =
          TRY (gtorch_fft_fft (each, GTORCH_NONE, dims[i], GTORCH_FFT_NORM_ORTHO, &error));

      g_object_unref (each);
      each = next;
    }
  g_assert_cmpfloat (distance (all, each), <, 1e-15);
}

static void
threads_make_no_difference (void)
{
  static const gint64 shapes[][2] = { { 100, 360 }, { 1, 65536 }, { 2, 50021 },
                                      { 9, 6000 },  { 40, 509 },  { 7, 8192 } };
  const guint before = gtorch_get_num_threads ();
  guint i, threads;

  for (i = 0; i < G_N_ELEMENTS (shapes); i++)
    {
      g_autoptr (GTorchTensor) x = random_complex (shapes[i], 2, GTORCH_DTYPE_COMPLEX64, i);
      g_autoptr (GTorchTensor) re = TRY (gtorch_tensor_real (x, &error));
      g_autoptr (GTorchTensor) one = NULL;
      g_autoptr (GTorchTensor) half = NULL;
      g_autoptr (GTorchTensor) real = NULL;

      for (threads = 1; threads < 5; threads++)
        {
          g_autoptr (GTorchTensor) y = NULL;
          g_autoptr (GTorchTensor) h = NULL;
          g_autoptr (GTorchTensor) r = NULL;

          g_assert_true (gtorch_set_num_threads (threads, NULL));
          y = TRY (gtorch_fft_fft (x, GTORCH_NONE, -1, GTORCH_FFT_NORM_ORTHO, &error));
          h = TRY (gtorch_fft_rfft (re, GTORCH_NONE, -1, GTORCH_FFT_NORM_ORTHO, &error));
          r = TRY (gtorch_fft_irfft (y, GTORCH_NONE, -1, GTORCH_FFT_NORM_ORTHO, &error));
          if (threads == 1)
            {
              one = g_steal_pointer (&y);
              half = g_steal_pointer (&h);
              real = g_steal_pointer (&r);
              continue;
            }
          g_assert_true (same_bits (y, one));
          g_assert_true (same_bits (h, half));
          g_assert_true (same_bits (r, real));
        }
    }
  gtorch_set_num_threads (before, NULL);
}

/* A NaN in one line does not affect lines that are transformed together with it. */
static void
lines_are_independent (void)
{
  g_autoptr (GTorchTensor) x = random_complex (GTORCH_SHAPE (16, 35), GTORCH_DTYPE_COMPLEX64, 3);
  g_autoptr (GTorchTensor) before =
      TRY (gtorch_fft_fft (x, GTORCH_NONE, -1, GTORCH_FFT_NORM_BACKWARD, &error));
  g_autoptr (GTorchTensor) after = NULL;
  gint64 i;

  element_set (x->impl, 3 * 35 + 4, NAN);
  after = TRY (gtorch_fft_fft (x, GTORCH_NONE, -1, GTORCH_FFT_NORM_BACKWARD, &error));
  for (i = 0; i < 16 * 35; i++)
    if (i / 35 == 3)
      g_assert_true (isnan (creal (element_get (after->impl, i))));
    else
      g_assert_true (element_get (after->impl, i) == element_get (before->impl, i));
}

/* Uses more lengths than the cache has plans, each twice; then disables the cache. */
static void
plans_are_evicted (void)
{
  GTorchFFTPlanCache *cache = gtorch_device_get_fft_plan_cache (
      test_computes_on_host () ? gtorch_device_cpu () : test_device ());
  const guint before = gtorch_fft_plan_cache_get_max_size (cache);
  gint64 n;
  guint round;

  for (round = 0; round < 2; gtorch_fft_plan_cache_set_max_size (cache, round++ == 0 ? 40 : 0))
    for (n = 1; n < 300; n++)
      {
        g_autoptr (GTorchTensor) x =
            random_complex (GTORCH_SHAPE (1, n), GTORCH_DTYPE_COMPLEX64, n);
        g_autoptr (GTorchTensor) y =
            TRY (gtorch_fft_fft (x, GTORCH_NONE, -1, GTORCH_FFT_NORM_BACKWARD, &error));

        if (n % 10 == 7)
          g_assert_cmpfloat (error_of (x, y), <, allowed (GTORCH_DTYPE_COMPLEX64, n));
        g_assert_cmpuint (gtorch_fft_plan_cache_get_size (cache), >, 0);
        g_assert_true (round == 0 || gtorch_fft_plan_cache_get_size (cache) <= 40);
      }
  g_assert_cmpuint (gtorch_fft_plan_cache_get_size (cache), ==, 0);
  gtorch_fft_plan_cache_set_max_size (cache, before);
}

static void
integers_and_short_floats_are_promoted (void)
{
  const GTorchDType before = gtorch_get_default_dtype ();
  g_autoptr (GTorchTensor) whole =
      TRY (gtorch_tensor_new_from_ints ((gint64[]){ 1, 2, 3 }, 3, GTORCH_SHAPE (3),
                                        GTORCH_DTYPE_INT32, NULL, &error));
  g_autoptr (GTorchTensor) half =
      TRY (gtorch_tensor_to_dtype (whole, GTORCH_DTYPE_FLOAT16, &error));
  g_autoptr (GTorchTensor) a = TRY (gtorch_fft_fft (whole, GTORCH_NONE, -1, 0, &error));
  g_autoptr (GTorchTensor) b = TRY (gtorch_fft_rfft (half, GTORCH_NONE, -1, 0, &error));
  g_autoptr (GTorchTensor) c = TRY (gtorch_fft_irfft (half, GTORCH_NONE, -1, 0, &error));
  g_autoptr (GTorchTensor) d = NULL;

  g_assert_cmpint (a->impl->dtype, ==, GTORCH_DTYPE_COMPLEX64);
  g_assert_cmpint (b->impl->dtype, ==, GTORCH_DTYPE_COMPLEX64);
  g_assert_cmpint (c->impl->dtype, ==, GTORCH_DTYPE_FLOAT32);
  gtorch_set_default_dtype (GTORCH_DTYPE_FLOAT64, NULL);
  d = TRY (gtorch_fft_fft (whole, GTORCH_NONE, -1, 0, &error));
  gtorch_set_default_dtype (before, NULL);
  g_assert_cmpint (d->impl->dtype, ==, GTORCH_DTYPE_COMPLEX128);
  g_assert_true (element_get (d->impl, 0) == 6);
}

/* A real transform treats neighbouring elements as pairs; here they are one element. */
static void
expanded_lines_are_transformed (void)
{
  static const gint64 lengths[] = { 2, 5, 6, 64, 1000, 65536 };
  guint i;
  gint64 k;

  for (i = 0; i < G_N_ELEMENTS (lengths); i++)
    {
      const gint64 shape[] = { 3, lengths[i] };
      g_autoptr (GTorchTensor) x = TRY (
          gtorch_randn (GTORCH_SHAPE (3, 1), GTORCH_DTYPE_FLOAT64, test_device (), NULL, &error));
      g_autoptr (GTorchTensor) line = TRY (gtorch_tensor_expand (x, shape, 2, &error));
      g_autoptr (GTorchTensor) copy = TRY (gtorch_tensor_contiguous (line, &error));
      g_autoptr (GTorchTensor) of_line = TRY (gtorch_fft_rfft (line, GTORCH_NONE, -1, 0, &error));
      g_autoptr (GTorchTensor) of_copy = TRY (gtorch_fft_rfft (copy, GTORCH_NONE, -1, 0, &error));

      for (k = 0; k < of_copy->impl->numel; k++)
        g_assert_true (element_get (of_line->impl, k) == element_get (of_copy->impl, k));
    }
}

static void
parts_share_memory (void)
{
  g_autoptr (GTorchTensor) x = random_complex (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_COMPLEX64, 5);
  g_autoptr (GTorchTensor) im = TRY (gtorch_tensor_imag (x, &error));
  g_autoptr (GTorchTensor) pairs = TRY (gtorch_tensor_view_as_real (x, &error));
  g_autoptr (GTorchTensor) again = TRY (gtorch_tensor_view_as_complex (pairs, &error));

  TRY (gtorch_tensor_fill_inplace (im, 7, &error));
  g_assert_cmpfloat (cimag (element_get (x->impl, 4)), ==, 7);
  g_assert_cmpfloat (creal (element_get (pairs->impl, 9)), ==, 7);
  g_assert_cmpfloat (cimag (element_get (again->impl, 5)), ==, 7);
  g_assert_cmpuint (gtorch_tensor_get_version (x), ==, 1);
}

/* A write to the imaginary part of a tensor with a history changes that history. */
static void
parts_are_written_in_place (void)
{
  g_autoptr (GTorchTensor) x = random_complex (GTORCH_SHAPE (3), GTORCH_DTYPE_COMPLEX128, 5);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) im = NULL;
  g_autoptr (GTorchTensor) pairs = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  gtorch_tensor_set_requires_grad (x, TRUE, &error);
  y = gtorch_tensor_clone (x, &error);
  im = gtorch_tensor_imag (y, &error);
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (im, 5, &error));
  pairs = gtorch_tensor_view_as_real (y, &error);
  sum = gtorch_tensor_sum (pairs, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (x);
  for (i = 0; i < 3; i++)
    g_assert_true (element_get (grad->impl, i) == 1 + 5 * I);
}

/* --- gradients --- */

typedef GTorchTensor *(*Call) (GTorchTensor *x, GError **error);

static GTorchTensor *
call (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  return ((Call) user_data) (inputs[0], error);
}

#define CALL(name, expression) \
  static GTorchTensor *name (GTorchTensor *x, GError **error) { return expression; }

CALL (longer_fft, gtorch_fft_fft (x, 7, 0, GTORCH_FFT_NORM_ORTHO, error))
CALL (shorter_ifft, gtorch_fft_ifft (x, 2, 1, GTORCH_FFT_NORM_BACKWARD, error))
CALL (even_irfft, gtorch_fft_irfft (x, 6, 1, GTORCH_FFT_NORM_BACKWARD, error))
CALL (odd_irfft, gtorch_fft_irfft (x, 5, 1, GTORCH_FFT_NORM_FORWARD, error))
CALL (shortest_irfft, gtorch_fft_irfft (x, 1, 1, GTORCH_FFT_NORM_FORWARD, error))
CALL (hfft, gtorch_fft_hfft (x, GTORCH_NONE, 1, GTORCH_FFT_NORM_ORTHO, error))
CALL (fftn, gtorch_fft_fftn (x, NULL, 0, NULL, 0, GTORCH_FFT_NORM_BACKWARD, error))
CALL (irfftn, gtorch_fft_irfftn (x, NULL, 0, NULL, 0, GTORCH_FFT_NORM_BACKWARD, error))
CALL (magnitude, gtorch_tensor_abs (x, error))

static void
complex_gradients_agree_with_differences (void)
{
  static const struct
  {
    const gchar *name;
    Call call;
    gboolean twice;
  } cases[] = {
    { "fft", longer_fft, TRUE },
    { "ifft", shorter_ifft, TRUE },
    { "irfft to an even length", even_irfft, TRUE },
    { "irfft to an odd length", odd_irfft, TRUE },
    { "irfft to one element", shortest_irfft, TRUE },
    { "hfft", hfft, TRUE },
    { "fftn", fftn, TRUE },
    { "irfftn", irfftn, TRUE },
    { "real", gtorch_tensor_real, TRUE },
    { "imag", gtorch_tensor_imag, TRUE },
    { "view_as_real", gtorch_tensor_view_as_real, TRUE },
    { "angle", gtorch_tensor_angle, TRUE },
    { "abs", magnitude, FALSE },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GTorchTensor) x = random_complex (GTORCH_SHAPE (is_under_sanitizer () ? 1 : 3, 4),
                                                   GTORCH_DTYPE_COMPLEX128, 8);
      g_autoptr (GError) error = NULL;

      gtorch_tensor_set_requires_grad (x, TRUE, NULL);
      if (!gtorch_gradcheck (call, cases[i].call, &x, 1, 1e-6, 1e-6, 1e-4, &error)
          || (cases[i].twice
              && !gtorch_gradgradcheck (call, cases[i].call, &x, 1, 1e-6, 1e-6, 1e-4, &error)))
        {
          g_test_message ("%s: %s", cases[i].name, error->message);
          g_test_fail ();
        }
    }
}

/* --- errors --- */

static void
refuse (GTorchTensor *result, GError **error, GTorchError code, const gchar *message)
{
  g_assert_null (result);
  g_assert_error (*error, GTORCH_ERROR, code);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}

static void
wrong_arguments_are_errors (void)
{
  g_autoptr (GTorchTensor) x = random_complex (GTORCH_SHAPE (2, 1), GTORCH_DTYPE_COMPLEX64, 5);
  g_autoptr (GTorchTensor) zero = random_complex (NULL, 0, GTORCH_DTYPE_COMPLEX64, 5);
  g_autoptr (GTorchTensor) real = TRY (gtorch_tensor_real (x, &error));
  g_autoptr (GTorchTensor) wide = TRY (gtorch_tensor_to_dtype (real, GTORCH_DTYPE_FLOAT64, &error));
  g_autoptr (GTorchTensor) pairs = TRY (gtorch_tensor_view_as_real (x, &error));
  g_autoptr (GTorchTensor) turned = TRY (gtorch_tensor_transpose (pairs, 0, 2, &error));
  g_autoptr (GError) error = NULL;

  refuse (gtorch_fft_fft (x, 0, -1, 0, &error), &error, GTORCH_ERROR_INVALID,
          "fft_fft: 0 elements cannot be transformed, at least 1 is needed");
  refuse (gtorch_fft_ifft (x, -3, -1, 0, &error), &error, GTORCH_ERROR_INVALID,
          "fft_ifft: -3 elements cannot be transformed, at least 1 is needed");
  refuse (gtorch_fft_irfft (x, GTORCH_NONE, -1, 0, &error), &error, GTORCH_ERROR_INVALID,
          "fft_irfft: 0 elements cannot be transformed, at least 1 is needed");
  refuse (gtorch_fft_fft (x, GTORCH_NONE, 2, 0, &error), &error, GTORCH_ERROR_INDEX,
          "fft_fft: dim 2 is out of the range [-2, 1] of a tensor with 2 dimensions");
  refuse (gtorch_fft_fft (x, GTORCH_NONE, 0, 3, &error), &error, GTORCH_ERROR_INVALID,
          "fft_fft: 3 is not a norm");
  refuse (gtorch_fft_fft (zero, GTORCH_NONE, -1, 0, &error), &error, GTORCH_ERROR_SHAPE,
          "fft_fft: a tensor without dimensions has none to transform");
  refuse (gtorch_fft_rfft (x, GTORCH_NONE, -1, 0, &error), &error, GTORCH_ERROR_DTYPE,
          "fft_rfft: a real tensor is wanted, not one of dtype complex64");
  refuse (gtorch_fft_ihfft (x, GTORCH_NONE, -1, 0, &error), &error, GTORCH_ERROR_DTYPE,
          "fft_ihfft: a real tensor is wanted, not one of dtype complex64");
  refuse (gtorch_fft_fftn (x, GTORCH_SHAPE (2), GTORCH_SHAPE (0, 1), 0, &error), &error,
          GTORCH_ERROR_INVALID, "fft_fftn: lengths [2] and dims [0, 1] must be of one length");
  refuse (gtorch_fft_fftn (x, NULL, 0, GTORCH_SHAPE (0, -2), 0, &error), &error,
          GTORCH_ERROR_INVALID, "fft_fftn: dim 0 appears twice in [0, -2]");
  refuse (gtorch_fft_fft2 (x, GTORCH_SHAPE (2, 0), GTORCH_SHAPE (0, 1), 0, &error), &error,
          GTORCH_ERROR_INVALID, "fft_fft2: 0 elements cannot be transformed, at least 1 is needed");
  refuse (gtorch_fft_rfftn (real, GTORCH_SHAPE (1, 2, 3), NULL, 0, 0, &error), &error,
          GTORCH_ERROR_SHAPE, "fft_rfftn: 3 lengths are more than the dimensions of shape [2, 1]");
  refuse (gtorch_fft_fftfreq (0, 1, GTORCH_DTYPE_NONE, NULL, &error), &error, GTORCH_ERROR_INVALID,
          "fft_fftfreq: n is 0, it must be from 1 to 2^53");
  refuse (gtorch_fft_rfftfreq (4, 1, GTORCH_DTYPE_INT64, NULL, &error), &error, GTORCH_ERROR_DTYPE,
          "fft_rfftfreq: the dtype must be a floating-point one");
  refuse (gtorch_complex (real, wide, &error), &error, GTORCH_ERROR_DTYPE,
          "complex: the parts must have one dtype, not float32 and float64");
  refuse (gtorch_polar (wide, real, &error), &error, GTORCH_ERROR_DTYPE,
          "polar: the parts must have one dtype, not float64 and float32");
  refuse (gtorch_tensor_imag (real, &error), &error, GTORCH_ERROR_DTYPE,
          "imag: not defined for dtype float32");
  refuse (gtorch_tensor_view_as_real (real, &error), &error, GTORCH_ERROR_DTYPE,
          "view_as_real: not defined for dtype float32");
  refuse (gtorch_tensor_view_as_complex (real, &error), &error, GTORCH_ERROR_SHAPE,
          "view_as_complex: the last dimension of shape [2, 1] is not of size 2");
  refuse (gtorch_tensor_view_as_complex (turned, &error), &error, GTORCH_ERROR_SHAPE,
          "view_as_complex: pairs at offset 0 with strides [1, 2, 2] are no complex numbers in "
          "memory: the last stride must be 1, the others and the offset even");
}

static void
too_long_is_an_error (void)
{
  g_autoptr (GTorchTensor) x = random_complex (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_COMPLEX64, 5);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_fft_fft (x, G_MAXINT64, -1, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_true (g_str_has_prefix (error->message, "fft_fft: "));
  g_clear_error (&error);
  g_assert_null (gtorch_fft_irfft (x, G_MAXINT64 / 16, -1, 0, &error));
  g_assert_nonnull (error);
  g_assert_true (g_str_has_prefix (error->message, "fft_irfft: "));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/GTorch/fft/agrees_with_definition/complex64",
                        GINT_TO_POINTER (GTORCH_DTYPE_COMPLEX64), agrees_with_definition);
  g_test_add_data_func ("/GTorch/fft/agrees_with_definition/complex128",
                        GINT_TO_POINTER (GTORCH_DTYPE_COMPLEX128), agrees_with_definition);
  g_test_add_func ("/GTorch/fft/several_dimensions_are_one_after_the_other",
                   several_dimensions_are_one_after_the_other);
  g_test_add_func ("/GTorch/fft/threads_make_no_difference", threads_make_no_difference);
  g_test_add_func ("/GTorch/fft/lines_are_independent", lines_are_independent);
  g_test_add_func ("/GTorch/fft/plans_are_evicted", plans_are_evicted);
  g_test_add_func ("/GTorch/fft/integers_and_short_floats_are_promoted",
                   integers_and_short_floats_are_promoted);
  g_test_add_func ("/GTorch/fft/expanded_lines_are_transformed", expanded_lines_are_transformed);
  g_test_add_func ("/GTorch/fft/parts_share_memory", parts_share_memory);
  g_test_add_func ("/GTorch/fft/parts_are_written_in_place", parts_are_written_in_place);
  g_test_add_func ("/GTorch/fft/complex_gradients_agree_with_differences",
                   complex_gradients_agree_with_differences);
  g_test_add_func ("/GTorch/fft/wrong_arguments_are_errors", wrong_arguments_are_errors);
  g_test_add_func ("/GTorch/fft/too_long_is_an_error", too_long_is_an_error);
  return g_test_run ();
}
