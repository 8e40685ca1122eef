/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Values of special functions in double precision. Those with 30 digits were computed with 60 digits from
 * power series, and for the error function from the continued fraction of its complement (DLMF 7.9.3); those
 * of digamma are known constants. Inverse functions are tested through the functions themselves. */

#include "config.h"

#include <float.h>
#include <math.h>

#include "gtorch-ops-private.h"
#include "op-values.h"

typedef GTorchImpl *(*Function) (GTorchImpl *, GError **);

/* Returns NaN if the device lacks the operation. */
static gdouble
number_of (GTorchImpl *result, GError *error)
{
  g_autoptr (GTorchImpl) host = NULL;

  if (error != NULL && is_lacking (error))
    return NAN;
  g_assert_no_error (error);
  host = impl_to_host (result);
  return creal (element_get (host, 0));
}

static gdouble
value_of (Function function, gdouble x)
{
  g_autoptr (GTorchImpl) input =
      gtorch_op_full (NULL, 0, x, GTORCH_DTYPE_FLOAT64, test_device (), NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchImpl) result = function (input, &error);

  return number_of (result, error);
}

static const struct
{
  Function function;
  gdouble x, value;
} values[] = {
  { gtorch_op_special_erfcx, -5, 144009798674.661040410589634306 },
  { gtorch_op_special_erfcx, -0.5, 1.95236048918255709327604771344 },
  { gtorch_op_special_erfcx, 0.25, 0.770346547730996743916739172337 },
  { gtorch_op_special_erfcx, 1, 0.427583576155807004410750344491 },
  { gtorch_op_special_erfcx, 3, 0.179001151181389950419294815314 },
  { gtorch_op_special_erfcx, 10, 0.0561409927438225858575173872205 },
  { gtorch_op_special_erfcx, 24.75, 0.0227769774026945578724479157875 },
  { gtorch_op_special_erfcx, 25, 0.0225495724326413589436045839594 },
  { gtorch_op_special_erfcx, 100, 0.00564161378298943290355645700695 },
  { gtorch_op_special_erfcx, 100000000.0, 5.64189583547756258738600274173e-9 },
  { gtorch_op_special_log_ndtr, -100, -5005.52420869420508862630245733 },
  { gtorch_op_special_log_ndtr, -37.5, -707.668989317507191066113173457 },
  { gtorch_op_special_log_ndtr, -10, -53.2312851505124705783470273541 },
  { gtorch_op_special_log_ndtr, -1.25, -2.24762567721431818470474076190 },
  { gtorch_op_special_log_ndtr, -1, -1.84102164500926350577078307323 },
  { gtorch_op_special_log_ndtr, -0.5, -1.17591176159361860887972909327 },
  { gtorch_op_special_log_ndtr, 0, -0.693147180559945309417232121458 },
  { gtorch_op_special_log_ndtr, 2, -0.0230129093289634884653361749085 },
  { gtorch_op_digamma, 1, -0.577215664901532860606512090082 },
  { gtorch_op_digamma, 0.5, -1.96351002602142347944097635473 },
  { gtorch_op_i0, 0.5, 1.06348337074132351926318441545 },
  { gtorch_op_i0, -3.0, 4.88079258586502408561123554602 },
  { gtorch_op_i0, 20.0, 43558282.5595535332721066600892 },
  { gtorch_op_i0, 710.0, 3.34533455861965596833732561772e+306 },
  { gtorch_op_special_i0e, 0.5, 0.645035270449150068107996629746 },
  { gtorch_op_special_i0e, -3.0, 0.24300035416182539847261284708 },
  { gtorch_op_special_i0e, 20.0, 0.0897803118848260215959446536697 },
  { gtorch_op_special_i0e, 10000.0, 0.00398947267460473210636108195546 },
  { gtorch_op_special_i1, 0.5, 0.257894305390896316362479659523 },
  { gtorch_op_special_i1, -3.0, -3.95337021740260939647863574058 },
  { gtorch_op_special_i1, 20.0, 42454973.3851277701814099066586 },
  { gtorch_op_special_i1e, 0.5, 0.156420803184871697142645527404 },
  { gtorch_op_special_i1e, -3.0, -0.196826713297300853630744830508 },
  { gtorch_op_special_i1e, 20.0, 0.0875062221832886653563300683152 },
  { gtorch_op_special_i1e, 10000.0, 0.00398927319598366226447992358663 },
  { gtorch_op_special_bessel_j0, 0.5, 0.9384698072408129042284046736 },
  { gtorch_op_special_bessel_j0, -3.0, -0.260051954901933437624154695977 },
  { gtorch_op_special_bessel_j0, 20.0, 0.167024664340583154727320544701 },
  { gtorch_op_special_bessel_j1, 0.5, 0.242268457674873886383954576142 },
  { gtorch_op_special_bessel_j1, -3.0, -0.339058958525936458925514597206 },
  { gtorch_op_special_bessel_j1, 20.0, 0.0668331241758500455789929741936 },
  { gtorch_op_special_bessel_y0, 0.5, -0.444518733506706557148398475068 },
  { gtorch_op_special_bessel_y0, 3.0, 0.376850010012790381967110192397 },
  { gtorch_op_special_bessel_y0, 20.0, 0.0626405968093838311617290141054 },
  { gtorch_op_special_bessel_y1, 0.5, -1.47147239267024306918858463532 },
  { gtorch_op_special_bessel_y1, 3.0, 0.324674424791799978437012839288 },
  { gtorch_op_special_bessel_y1, 20.0, -0.165511614362521295863976023244 },
  { gtorch_op_special_modified_bessel_i0, 0.5, 1.06348337074132351926318441545 },
  { gtorch_op_special_modified_bessel_i1, 0.5, 0.257894305390896316362479659523 },
  { gtorch_op_special_modified_bessel_k0, 0.5, 0.92441907122766586178192416753 },
  { gtorch_op_special_modified_bessel_k0, 3.0, 0.0347395043862792480723495513511 },
  { gtorch_op_special_modified_bessel_k0, 20.0, 5.74123781533652429271670206162e-10 },
  { gtorch_op_special_modified_bessel_k0, 700.0, 4.66977643168537688098562763644e-306 },
  { gtorch_op_special_modified_bessel_k1, 0.5, 1.65644112000330089369644540317 },
  { gtorch_op_special_modified_bessel_k1, 3.0, 0.0401564311281941843767057801527 },
  { gtorch_op_special_modified_bessel_k1, 20.0, 5.88305796955703817765028217154e-10 },
  { gtorch_op_special_modified_bessel_k1, 700.0, 4.67311079670796610907571845851e-306 },
  { gtorch_op_special_scaled_modified_bessel_k0, 0.5, 1.52410938577390953002291509332 },
  { gtorch_op_special_scaled_modified_bessel_k0, 3.0, 0.697761598043851776055003262528 },
  { gtorch_op_special_scaled_modified_bessel_k0, 10000.0, 0.0125329847176992852883899753301 },
  { gtorch_op_special_scaled_modified_bessel_k1, 0.5, 2.73100970821178570535915308965 },
  { gtorch_op_special_scaled_modified_bessel_k1, 3.0, 0.806563480128786903325773978352 },
  { gtorch_op_special_scaled_modified_bessel_k1, 10000.0, 0.0125336113512705057338860449832 },
  { gtorch_op_special_spherical_bessel_j0, 0.5, 0.958851077208406000546575870431 },
  { gtorch_op_special_spherical_bessel_j0, -3.0, 0.0470400026866224073669149342694 },
  { gtorch_op_special_airy_ai, -30.0, -0.0879681884568421628326238583239 },
  { gtorch_op_special_airy_ai, -5.5, 0.0177815412765749756030201514972 },
  { gtorch_op_special_airy_ai, -3.0, -0.3788142936776580743472439165 },
  { gtorch_op_special_airy_ai, -0.5, 0.475728091610539588798643778281 },
  { gtorch_op_special_airy_ai, 0.5, 0.23169360648083348976912525451 },
  { gtorch_op_special_airy_ai, 1.75, 0.0505698808057948716448452364189 },
  { gtorch_op_special_airy_ai, 3.0, 0.00659113935746071914425744840796 },
  { gtorch_op_special_airy_ai, 20.0, 1.69167286867054031355356021251e-27 },
};

/* The row of a function that is less exact on GPUs, or any other one. */
static const GTorchOpClass *
op_of (guint i)
{
  static const struct
  {
    Function function;
    guint id;
  } known[] = {
    { gtorch_op_special_bessel_j0, GTORCH_OP_SPECIAL_BESSEL_J0 },
    { gtorch_op_special_bessel_j1, GTORCH_OP_SPECIAL_BESSEL_J1 },
    { gtorch_op_special_bessel_y0, GTORCH_OP_SPECIAL_BESSEL_Y0 },
    { gtorch_op_special_bessel_y1, GTORCH_OP_SPECIAL_BESSEL_Y1 },
  };
  guint k;

  for (k = 0; k < G_N_ELEMENTS (known); k++)
    if (known[k].function == values[i].function)
      return &gtorch_ops[known[k].id];
  return &gtorch_ops[GTORCH_OP_ADD];
}

/* Each value is a product or sum of at most four rounded ones, each of which has an error of up to four
 * units in the last place. */
static void
values_have_all_digits (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (values); i++)
    {
      const gdouble found = value_of (values[i].function, values[i].x), value = values[i].value;

      if (isnan (found)
          || fabs (found - value) <= 16 * DBL_EPSILON * fabs (value) + device_error (op_of (i)))
        continue;
      g_test_message ("row %u, x = %g: %.17g, expected %.17g", i, values[i].x, found, value);
      g_test_fail ();
    }
}

typedef GTorchImpl *(*Function2) (GTorchImpl *, GTorchImpl *, GError **);

static gdouble
value_of_2 (Function2 function, gdouble x, gdouble y)
{
  g_autoptr (GTorchImpl) one =
      gtorch_op_full (NULL, 0, x, GTORCH_DTYPE_FLOAT64, test_device (), NULL);
  g_autoptr (GTorchImpl) two =
      gtorch_op_full (NULL, 0, y, GTORCH_DTYPE_FLOAT64, test_device (), NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchImpl) result = function (one, two, &error);

  return number_of (result, error);
}

static const struct
{
  Function2 function;
  gdouble x, y, value;
} values_2[] = {
  { gtorch_op_igamma, 0.01, 0.25, 0.989551581773005108457825661288 },
  { gtorch_op_igamma, 0.5, 3.0, 0.985694121564570360474152193578 },
  { gtorch_op_igamma, 1.25, 0.75, 0.414957025269273778439352860975 },
  { gtorch_op_igamma, 3.0, 9.0, 0.993767804893622682750369347118 },
  { gtorch_op_igamma, 30.0, 25.0, 0.182103915977455109802420435534 },
  { gtorch_op_igamma, 300.0, 310.0, 0.722488754171861109219845427452 },
  { gtorch_op_igamma, 1000000.0, 1000500.0, 0.691550475771497181533392814394 },
  { gtorch_op_igammac, 0.01, 0.25, 0.0104484182269948915421743387119 },
  { gtorch_op_igammac, 0.5, 3.0, 0.0143058784354296395258478064223 },
  { gtorch_op_igammac, 1.25, 0.75, 0.585042974730726221560647139025 },
  { gtorch_op_igammac, 3.0, 9.0, 0.00623219510637731724963065288187 },
  { gtorch_op_igammac, 30.0, 25.0, 0.817896084022544890197579564466 },
  { gtorch_op_igammac, 300.0, 310.0, 0.277511245828138890780154572548 },
  { gtorch_op_igammac, 1000000.0, 1000500.0, 0.308449524228502818466607185606 },
  { gtorch_op_special_zeta, 1.5, 0.25, 10.2130553604666007388828557102 },
  { gtorch_op_special_zeta, 2.0, 7.0, 0.153545177959337547583526277757 },
  { gtorch_op_special_zeta, 30.0, 1.25, 0.00123794006648303685233302229821 },
  { gtorch_op_special_zeta, 3.0, 100.0, 5.05024999166749985004165022303e-5 },
  { gtorch_op_special_zeta, 3, -2.5, 0.0541020258208637015018708342839 },
  { gtorch_op_special_chebyshev_polynomial_t, 0.625, 5, -0.23193359375 },
  { gtorch_op_special_chebyshev_polynomial_t, -0.625, 90, 0.478739807913699859890482225981 },
  { gtorch_op_special_chebyshev_polynomial_t, 1.25, 70, 5.90295810358705651712e+20 },
  { gtorch_op_special_shifted_chebyshev_polynomial_t, 0.625, 5, 0.953125 },
  { gtorch_op_special_chebyshev_polynomial_u, 0.625, 5, -1.0107421875 },
  { gtorch_op_special_chebyshev_polynomial_u, -0.625, 90, -0.224188224073250624035853079939 },
  { gtorch_op_special_chebyshev_polynomial_u, 1.25, 70, 1.57412216095654840456533333333e+21 },
  { gtorch_op_special_shifted_chebyshev_polynomial_u, 0.625, 5, 1.03125 },
  { gtorch_op_special_chebyshev_polynomial_v, 0.625, 5, 0.2353515625 },
  { gtorch_op_special_chebyshev_polynomial_v, -0.625, 90, -1.34887307525237139831798956941 },
  { gtorch_op_special_chebyshev_polynomial_v, 1.25, 70, 7.87061080478274202282666666667e+20 },
  { gtorch_op_special_shifted_chebyshev_polynomial_v, 0.625, 5, 0.71875 },
  { gtorch_op_special_chebyshev_polynomial_w, 0.625, 5, -2.2568359375 },
  { gtorch_op_special_chebyshev_polynomial_w, -0.625, 90, 0.900496627105870150246283409532 },
  { gtorch_op_special_chebyshev_polynomial_w, 1.25, 70, 2.361183241434822606848e+21 },
  { gtorch_op_special_shifted_chebyshev_polynomial_w, 0.625, 5, 1.34375 },
  { gtorch_op_special_hermite_polynomial_h, 0.625, 5, 38.9892578125 },
  { gtorch_op_special_hermite_polynomial_he, 0.625, 5, 7.028961181640625 },
  { gtorch_op_special_laguerre_polynomial_l, 0.625, 5, -0.547781626383463541666666666667 },
  { gtorch_op_special_legendre_polynomial_p, 0.625, 5, -0.213336944580078125 },
};

/* A polynomial of degree 90 has the error of 90 multiplied by the angle; a power of the incomplete gamma
 * functions that of its exponent. */
static void
values_of_two_numbers_have_their_digits (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (values_2); i++)
    {
      const gdouble value = values_2[i].value;
      const gdouble found = value_of_2 (values_2[i].function, values_2[i].x, values_2[i].y);
      /* between -1 and 1 polynomials are functions of n acos (x), which has n times the error of acos */
      const gdouble of_angle = fabs (values_2[i].x) < 1 ? 4 * DBL_EPSILON * values_2[i].y : 0;

      if (isnan (found) || fabs (found - value) <= 128 * DBL_EPSILON * fabs (value) + of_angle)
        continue;
      g_test_message ("row %u, x = %g, y = %g: %.17g, expected %.17g", i, values_2[i].x,
                      values_2[i].y, found, value);
      g_test_fail ();
    }
}

static gboolean
is_lacking_here (void)
{
  return isnan (value_of (gtorch_op_i0, 0));
}

static void
ends_of_domains_are_infinite_or_nan (void)
{
  if (is_lacking_here ())
    {
      g_test_skip ("the device lacks the functions");
      return;
    }
  g_assert_cmpfloat (value_of (gtorch_op_i0, 0), ==, 1);
  g_assert_cmpfloat (value_of (gtorch_op_i0, -INFINITY), ==, INFINITY);
  g_assert_cmpfloat (value_of (gtorch_op_special_i1, -INFINITY), ==, -INFINITY);
  g_assert_cmpfloat (value_of (gtorch_op_special_i0e, INFINITY), ==, 0);
  g_assert_cmpfloat (value_of (gtorch_op_special_bessel_y1, 0), ==, -INFINITY);
  g_assert_true (isnan (value_of (gtorch_op_special_bessel_y0, -1)));
  g_assert_cmpfloat (value_of (gtorch_op_special_modified_bessel_k0, 0), ==, INFINITY);
  g_assert_true (isnan (value_of (gtorch_op_special_modified_bessel_k1, -1)));
  g_assert_cmpfloat (value_of (gtorch_op_special_airy_ai, INFINITY), ==, 0);
  g_assert_cmpfloat (value_of_2 (gtorch_op_igamma, 0, 1), ==, 1);
  g_assert_cmpfloat (value_of_2 (gtorch_op_igammac, 2, 0), ==, 1);
  g_assert_true (isnan (value_of_2 (gtorch_op_igamma, -1, 1)));
  g_assert_true (isnan (value_of_2 (gtorch_op_igamma, 0, 0)));
  g_assert_cmpfloat (value_of_2 (gtorch_op_special_zeta, 1, 2), ==, INFINITY);
  g_assert_cmpfloat (value_of_2 (gtorch_op_special_zeta, 2, -3), ==, INFINITY);
  g_assert_true (isnan (value_of_2 (gtorch_op_special_zeta, 0.5, 2)));
  g_assert_true (isnan (value_of_2 (gtorch_op_special_zeta, 2.5, -1.5)));
  g_assert_cmpfloat (value_of_2 (gtorch_op_special_legendre_polynomial_p, 0.5, -1), ==, 0);
  g_assert_cmpfloat (value_of_2 (gtorch_op_special_legendre_polynomial_p, 0.5, 1.75), ==, 0.5);
  g_assert_true (isnan (value_of_2 (gtorch_op_special_hermite_polynomial_h, 1, 1000)));
}

/* A relative error e of the inverse y changes erf (y) by e y erf' (y), and its own error is 4 units. */
static void
erfinv_is_the_inverse_of_erf (void)
{
  gdouble x;

  for (x = -0.9921875; x < 1; x += 1.0 / 128)
    {
      const gdouble y = value_of (gtorch_op_erfinv, x);

      if (!isnan (y))
        g_assert_cmpfloat_with_epsilon (erf (y), x, 8 * DBL_EPSILON * fabs (x) + DBL_MIN);
    }
  g_assert_cmpfloat (value_of (gtorch_op_erfinv, 1), ==, INFINITY);
  g_assert_cmpfloat (value_of (gtorch_op_erfinv, -1), ==, -INFINITY);
  g_assert_true (isnan (value_of (gtorch_op_erfinv, 1.5)));
}

/* A relative error e of x changes ndtr (x) by the factor 1 + e x^2 or less, for x < -1. */
static void
ndtri_is_the_inverse_of_ndtr (void)
{
  gint k;

  for (k = 2; k < 1000; k += 7)
    {
      const gdouble p = ldexp (1, -k), x = value_of (gtorch_op_special_ndtri, p);

      if (!isnan (x))
        g_assert_cmpfloat_with_epsilon (erfc (-x * G_SQRT2 / 2) / 2 / p, 1,
                                        8 * DBL_EPSILON * MAX (1, x * x));
    }
  g_assert_cmpfloat (value_of (gtorch_op_special_ndtri, 0), ==, -INFINITY);
  g_assert_cmpfloat (value_of (gtorch_op_special_ndtri, 1), ==, INFINITY);
  g_assert_true (isnan (value_of (gtorch_op_special_ndtri, -0.5)));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/special/values_have_all_digits", values_have_all_digits);
  g_test_add_func ("/GTorch/special/values_of_two_numbers_have_their_digits",
                   values_of_two_numbers_have_their_digits);
  g_test_add_func ("/GTorch/special/ends_of_domains_are_infinite_or_nan",
                   ends_of_domains_are_infinite_or_nan);
  g_test_add_func ("/GTorch/special/erfinv_is_the_inverse_of_erf", erfinv_is_the_inverse_of_erf);
  g_test_add_func ("/GTorch/special/ndtri_is_the_inverse_of_ndtr", ndtri_is_the_inverse_of_ndtr);
  return g_test_run ();
}
