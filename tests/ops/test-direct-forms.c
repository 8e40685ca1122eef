/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Forms of operations that are used where no gradient is wanted give what the recorded ones give, and those
 * for most elements agree with those for the rare ones. */

#include "config.h"

#include <math.h>

#include "op-values.h"
#include "test-device.h"

typedef GTorchTensor *(*Form) (GTorchTensor *x, gint64 variant, GError **error);

static GTorchTensor *
random_new (const gint64 *shape, gsize n_dims, GTorchDType dtype)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *x = gtorch_randn (shape, n_dims, dtype, test_device (), NULL, &error);

  g_assert_no_error (error);
  return x;
}

static gdouble
greatest (GTorchTensor *x)
{
  g_autoptr (GTorchTensor) size = gtorch_tensor_abs (x, NULL);
  g_autoptr (GTorchTensor) greatest = gtorch_tensor_amax (size, NULL, 0, FALSE, NULL);

  return gtorch_tensor_item_double (greatest, NULL);
}

/* Compares the form of a tensor with that of one which requires a gradient. */
static void
compare (Form form, GTorchTensor *x, gint64 variant, gdouble tolerance)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) leaf = gtorch_tensor_clone (x, NULL);
  g_autoptr (GTorchTensor) direct = form (x, variant, &error);
  g_autoptr (GTorchTensor) recorded = NULL;
  g_autoptr (GTorchTensor) plain = NULL;
  g_autoptr (GTorchTensor) difference = NULL;

  g_assert_no_error (error);
  gtorch_tensor_set_requires_grad (leaf, TRUE, NULL);
  recorded = form (leaf, variant, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_requires_grad (recorded));
  plain = gtorch_tensor_detach (recorded, NULL);
  difference = gtorch_tensor_sub (direct, plain, 1, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_dtype (direct) == gtorch_tensor_get_dtype (plain));
  g_assert_cmpint (gtorch_tensor_get_numel (direct), ==, gtorch_tensor_get_numel (plain));
  g_assert_cmpfloat (greatest (difference), <=, tolerance * (1 + greatest (plain)));
}

/* --- distances --- */

static const gdouble norms[] = { 0, 1, 2, 3, INFINITY };

static GTorchTensor *
pair_distances (GTorchTensor *x, gint64 variant, GError **error)
{
  return gtorch_pdist (x, norms[variant], error);
}

static GTorchTensor *
distances (GTorchTensor *x, gint64 variant, GError **error)
{
  g_autoptr (GTorchTensor) others = gtorch_tensor_slice (x, 0, 1, 36, 1, error);

  return gtorch_cdist (x, others, norms[variant], GTORCH_CDIST_MODE_DONOT_USE_MM_FOR_EUCLID_DIST,
                       error);
}

static void
distances_are_those_of_differences (void)
{
  static const gint64 depths[] = { 1, 16, 37 };
  guint i, k;

  for (i = 0; i < G_N_ELEMENTS (depths); i++)
    {
      const gint64 shape[2] = { 45, depths[i] };
      g_autoptr (GTorchTensor) x = random_new (shape, 2, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) small = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_FLOAT32, NULL);

      for (k = 0; k < G_N_ELEMENTS (norms); k++)
        {
          compare (pair_distances, x, k, 1e-13);
          compare (distances, x, k, 1e-13);
          compare (pair_distances, small, k, 1e-5);
          compare (distances, small, k, 1e-5);
        }
    }
}

/* --- normalisation --- */

static GTorchTensor *
groups (GTorchTensor *x, gint64 variant, GError **error)
{
  const gint64 n = gtorch_tensor_get_size (x, 1, NULL);
  g_autoptr (GTorchTensor) weight =
      gtorch_linspace (-1, 2, n, gtorch_tensor_get_dtype (x), gtorch_tensor_get_device (x), NULL);
  g_autoptr (GTorchTensor) bias =
      gtorch_linspace (3, 1, n, gtorch_tensor_get_dtype (x), gtorch_tensor_get_device (x), NULL);

  return gtorch_group_norm (x, variant % 10, variant < 20 ? weight : NULL,
                            variant < 10 ? bias : NULL, 1e-5, error);
}

static void
groups_are_normalised_at_once (void)
{
  static const gint64 widths[] = { 1, 3, 50 };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (widths); i++)
    {
      const gint64 shape[3] = { 3, 12, widths[i] };
      g_autoptr (GTorchTensor) x = random_new (shape, 3, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) small = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_FLOAT32, NULL);
      g_autoptr (GTorchTensor) half = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_FLOAT16, NULL);

      compare (groups, x, 4, 1e-13);
      compare (groups, x, 11, 1e-13);
      compare (groups, small, 3, 1e-5);
      compare (groups, half, 3, 1e-2);
    }
}

static GTorchTensor *
rows (GTorchTensor *x, gint64 variant, GError **error)
{
  const gint64 n = gtorch_tensor_get_size (x, 1, NULL);

  if (variant == 0)
    return gtorch_layer_norm (x, &n, 1, NULL, NULL, 1e-5, error);
  return variant == 1 ? gtorch_tensor_softmax (x, 1, GTORCH_DTYPE_NONE, error)
                      : gtorch_tensor_log_softmax (x, 1, GTORCH_DTYPE_NONE, error);
}

/* Fewer than eight rows are computed one by one. */
static void
short_rows_are_computed_together (void)
{
  static const gint64 widths[] = { 1, 6, 32 };
  guint i, variant, r;

  for (i = 0; i < G_N_ELEMENTS (widths); i++)
    for (variant = 0; variant < 3; variant++)
      {
        const gint64 shape[2] = { 37, widths[i] };
        g_autoptr (GTorchTensor) x = random_new (shape, 2, GTORCH_DTYPE_FLOAT32);
        g_autoptr (GTorchTensor) all = rows (x, variant, NULL);

        for (r = 0; r < 37; r++)
          {
            g_autoptr (GTorchTensor) own = gtorch_tensor_slice (x, 0, r, r + 1, 1, NULL);
            g_autoptr (GTorchTensor) wanted = rows (own, variant, NULL);
            g_autoptr (GTorchTensor) got = gtorch_tensor_slice (all, 0, r, r + 1, 1, NULL);
            g_autoptr (GTorchTensor) difference = gtorch_tensor_sub (got, wanted, 1, NULL);

            g_assert_cmpfloat (greatest (difference), <=, 2e-6 * (1 + greatest (wanted)));
          }
      }
}

/* --- windows --- */

static GTorchTensor *
greatest_of_windows (GTorchTensor *x, gint64 variant, GError **error)
{
  const gint64 kernel = 2 + variant % 2, stride = 1 + variant % 3, padding = variant % 2;
  const gint64 dilation = 1 + variant / 6;
  const gint64 dims = gtorch_tensor_get_n_dims (x) - 1;

  if (dims == 1)
    return gtorch_tensor_max_pool1d (x, &kernel, 1, &stride, 1, &padding, 1, &dilation, 1,
                                     variant % 2, error);
  if (dims == 2)
    return gtorch_tensor_max_pool2d (x, &kernel, 1, &stride, 1, &padding, 1, &dilation, 1,
                                     variant % 2, error);
  return gtorch_tensor_max_pool3d (x, &kernel, 1, &stride, 1, &padding, 1, &dilation, 1,
                                   variant % 2, error);
}

static void
maxima_need_no_places (void)
{
  const gint64 shape[4] = { 3, 8, 9, 10 };
  guint n, variant;

  for (n = 2; n <= 4; n++)
    for (variant = 0; variant < 12; variant++)
      {
        g_autoptr (GTorchTensor) x = random_new (shape, n, GTORCH_DTYPE_FLOAT64);
        g_autoptr (GTorchTensor) small = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_FLOAT32, NULL);

        compare (greatest_of_windows, x, variant, 0);
        compare (greatest_of_windows, small, variant, 0);
      }
}

static void
maxima_see_nan_and_integers (void)
{
  const gint64 two = 2, none = 0, one = 1;
  const gdouble values[] = { 1, NAN, NAN, 2, -3, -4, -INFINITY, -INFINITY };
  const gdouble wanted[] = { NAN, NAN, -3, -INFINITY };
  const gint64 numbers[] = { G_MININT64, G_MININT64 + 1, 5, 4 };
  g_autoptr (GTorchTensor) x =
      gtorch_tensor_new_from_doubles (values, 8, GTORCH_SHAPE (1, 8), GTORCH_DTYPE_FLOAT32,
                                      test_device (), NULL);
  g_autoptr (GTorchTensor) y =
      gtorch_tensor_max_pool1d (x, &two, 1, NULL, 0, &none, 1, &one, 1, FALSE, NULL);
  g_autoptr (GTorchTensor) i =
      gtorch_tensor_new_from_ints (numbers, 4, GTORCH_SHAPE (1, 4), GTORCH_DTYPE_INT64,
                                   test_device (), NULL);
  g_autoptr (GTorchTensor) m =
      gtorch_tensor_max_pool1d (i, &two, 1, NULL, 0, &none, 1, &one, 1, FALSE, NULL);
  g_autoptr (GTorchTensor) y_host = gtorch_tensor_to_dtype (y, GTORCH_DTYPE_FLOAT64, NULL);
  guint k;

  for (k = 0; k < 4; k++)
    {
      g_autoptr (GTorchTensor) own = gtorch_tensor_select (y_host, 1, k, NULL);
      const gdouble got = gtorch_tensor_item_double (own, NULL);

      g_assert_true (isnan (wanted[k]) ? isnan (got) : got == wanted[k]);
    }
  for (k = 0; k < 2; k++)
    {
      g_autoptr (GTorchTensor) own = gtorch_tensor_select (m, 1, k, NULL);

      g_assert_cmpint (gtorch_tensor_item_int (own, NULL), ==, k == 0 ? G_MININT64 + 1 : 5);
    }
}

static GTorchTensor *
norms_of_windows (GTorchTensor *x, gint64 variant, GError **error)
{
  const gint64 kernel = 3, stride = 2;

  return gtorch_tensor_lp_pool1d (x, variant % 2 == 0 ? 2 : 3, &kernel, 1, &stride, 1, variant >= 2,
                                  error);
}

static void
norms_of_windows_are_roots (void)
{
  const gint64 shape[2] = { 4, 10 };
  g_autoptr (GTorchTensor) drawn = random_new (shape, 2, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) x = gtorch_tensor_abs (drawn, NULL);
  guint variant;

  for (variant = 0; variant < 4; variant++)
    compare (norms_of_windows, x, variant, 1e-14);
}

/* --- rare elements --- */

static const gfloat specials[] = { 0.0f,  -0.0f,     1.0f,    -1.0f,    2.5f,        -7.25f,
                                   1e30f, -1e30f,    1e-42f,  -1e-42f,  3.4e38f,     INFINITY,
                                   NAN,   -INFINITY, 0x1p24f, 33554431, 0.99999994f, 4.5f };

static GTorchTensor *
specials_new (guint shift)
{
  gdouble values[200];
  guint i;

  for (i = 0; i < 200; i++)
    values[i] = i % 7 == 0
                    ? (gdouble) specials[(i / 7 + shift * (i % 3 + 1)) % G_N_ELEMENTS (specials)]
                    : 0.37 * (i + 1) * (shift + 1) / 9 - (shift > 0 ? 5 : 0);
  return gtorch_tensor_new_from_doubles (values, 200, GTORCH_SHAPE (200), GTORCH_DTYPE_FLOAT32,
                                         NULL, NULL);
}

static gdouble
at (GTorchTensor *x, gint64 i)
{
  return creal (element_get (gtorch_tensor_unwrap (x), i));
}

/* Compares with the result of float64, rounded; `ulps` are those of float. */
static void
compare_rounded (GTorchTensor *got, GTorchTensor *wide, GTorchTensor *a, GTorchTensor *b,
                 gdouble ulps)
{
  gint64 i;

  for (i = 0; i < gtorch_tensor_get_numel (got); i++)
    {
      const gfloat x = (gfloat) at (got, i), y = (gfloat) at (wide, i);
      const gdouble ulp = fabs ((gdouble) nextafterf (y, INFINITY) - (gdouble) y);

      if (isnan (x) && isnan (y))
        continue;
      if (x == y && signbit (x) == signbit (y))
        continue;
      if (fabs ((gdouble) x - (gdouble) y) <= ulps * ulp)
        continue;
      g_test_message ("element %d of %g, %g: %.9g, expected %.9g", (int) i, at (a, i),
                      b != NULL ? at (b, i) : 0, (gdouble) x, (gdouble) y);
      g_test_fail ();
    }
}

typedef GTorchTensor *(*Unary) (GTorchTensor *x, GError **error);
typedef GTorchTensor *(*Binary) (GTorchTensor *x, GTorchTensor *y, GError **error);

static void
rare_elements_are_exact (void)
{
  static const Binary divisions[] = { gtorch_tensor_floor_divide, gtorch_tensor_remainder,
                                      gtorch_tensor_fmod };
  /* GPUs have lgamma () of their own, which is less exact near its zeros. The last digits of digamma near its
   * zero are those of a difference. */
  static const struct
  {
    Unary function;
    gdouble divisor, ulps;
    gboolean is_for_gpu;
  } functions[] = {
    { gtorch_tensor_lgamma, 1, 4, FALSE },    { gtorch_tensor_erfinv, 100, 1, TRUE },
    { gtorch_tensor_i0, 1, 1, TRUE },         { gtorch_tensor_special_i0e, 1, 1, TRUE },
    { gtorch_tensor_special_i1, 1, 1, TRUE }, { gtorch_tensor_special_i1e, 1, 1, TRUE },
    { gtorch_tensor_digamma, 1, 4, TRUE },
  };
  const gboolean is_gpu =
      gtorch_device_get_device_type (gtorch_get_default_device ()) != GTORCH_DEVICE_TYPE_CPU;
  guint shift, k;

  for (shift = 0; shift < 20; shift++)
    {
      g_autoptr (GTorchTensor) a = specials_new (shift);
      g_autoptr (GTorchTensor) b = specials_new (shift * 3 + 1);
      g_autoptr (GTorchTensor) wide_a = gtorch_tensor_to_dtype (a, GTORCH_DTYPE_FLOAT64, NULL);
      g_autoptr (GTorchTensor) wide_b = gtorch_tensor_to_dtype (b, GTORCH_DTYPE_FLOAT64, NULL);

      for (k = 0; k < G_N_ELEMENTS (divisions); k++)
        {
          g_autoptr (GTorchTensor) got = divisions[k](a, b, NULL);
          g_autoptr (GTorchTensor) wide = divisions[k](wide_a, wide_b, NULL);

          compare_rounded (got, wide, a, b, 0);
        }
      for (k = 0; k < G_N_ELEMENTS (functions); k++)
        {
          g_autoptr (GTorchTensor) scaled =
              gtorch_tensor_div_scalar (a, functions[k].divisor, NULL);
          g_autoptr (GTorchTensor) wide =
              gtorch_tensor_to_dtype (scaled, GTORCH_DTYPE_FLOAT64, NULL);
          g_autoptr (GTorchTensor) got = NULL;
          g_autoptr (GTorchTensor) wanted = NULL;

          if (is_gpu && !functions[k].is_for_gpu)
            continue;
          got = functions[k].function (scaled, NULL);
          wanted = functions[k].function (wide, NULL);
          compare_rounded (got, wanted, scaled, NULL, functions[k].ulps);
        }
    }
}

static void
mantissas_and_neighbours_are_those_of_c (void)
{
  guint shift, wide;
  gint64 i;

  for (shift = 0; shift < 20; shift++)
    for (wide = 0; wide < 2; wide++)
      {
        g_autoptr (GTorchTensor) small = specials_new (shift);
        g_autoptr (GTorchTensor) toward = specials_new (shift + 1);
        g_autoptr (GTorchTensor) a =
            gtorch_tensor_to_dtype (small, wide ? GTORCH_DTYPE_FLOAT64 : GTORCH_DTYPE_FLOAT32,
                                    NULL);
        g_autoptr (GTorchTensor) b =
            gtorch_tensor_to_dtype (toward, wide ? GTORCH_DTYPE_FLOAT64 : GTORCH_DTYPE_FLOAT32,
                                    NULL);
        g_autoptr (GTorchTensor) tiny = gtorch_tensor_mul_scalar (a, wide ? 1e-310 : 1e-40, NULL);
        g_autoptr (GTorchTensor) mantissa = NULL;
        g_autoptr (GTorchTensor) exponent = NULL;
        g_autoptr (GTorchTensor) next = gtorch_tensor_nextafter (a, b, NULL);

        g_assert_true (gtorch_tensor_frexp (shift % 2 ? a : tiny, &mantissa, &exponent, NULL));
        for (i = 0; i < 200; i++)
          {
            const gdouble x = at (shift % 2 ? a : tiny, i), from = at (a, i), to = at (b, i);
            int power = 0;
            const gdouble m = frexp (x, &power);
            const gdouble n = wide ? nextafter (from, to) : nextafterf ((gfloat) from, (gfloat) to);

            if (isfinite (x))
              {
                g_assert_cmpfloat (at (mantissa, i), ==, m);
                g_assert_cmpfloat (at (exponent, i), ==, power);
              }
            else
              g_assert_cmpfloat (at (exponent, i), ==, 0);
            g_assert_true (isnan (n) ? isnan (at (next, i))
                                     : at (next, i) == n && signbit (at (next, i)) == signbit (n));
          }
      }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/direct_forms/distances_are_those_of_differences",
                   distances_are_those_of_differences);
  g_test_add_func ("/GTorch/direct_forms/groups_are_normalised_at_once",
                   groups_are_normalised_at_once);
  g_test_add_func ("/GTorch/direct_forms/short_rows_are_computed_together",
                   short_rows_are_computed_together);
  g_test_add_func ("/GTorch/direct_forms/maxima_need_no_places", maxima_need_no_places);
  g_test_add_func ("/GTorch/direct_forms/maxima_see_nan_and_integers", maxima_see_nan_and_integers);
  g_test_add_func ("/GTorch/direct_forms/norms_of_windows_are_roots", norms_of_windows_are_roots);
  g_test_add_func ("/GTorch/direct_forms/rare_elements_are_exact", rare_elements_are_exact);
  g_test_add_func ("/GTorch/direct_forms/mantissas_and_neighbours_are_those_of_c",
                   mantissas_and_neighbours_are_those_of_c);
  return g_test_run ();
}
