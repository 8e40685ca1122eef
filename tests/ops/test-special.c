/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Values of special functions in double precision. Those with 30 digits were computed with 60 digits from
 * the power series of the error function and the continued fraction of its complement (DLMF 7.6.1, 7.9.3);
 * those of digamma are known constants. Inverse functions are tested through the functions themselves. */

#include "config.h"

#include <float.h>
#include <math.h>

#include "gtorch-ops-private.h"
#include "op-values.h"

typedef GTorchImpl *(*Function) (GTorchImpl *, GError **);

/* Returns NaN if the device lacks the operation. */
static gdouble
value_of (Function function, gdouble x)
{
  g_autoptr (GTorchImpl) input =
      gtorch_op_full (NULL, 0, x, GTORCH_DTYPE_FLOAT64, test_device (), NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchImpl) result = function (input, &error);
  g_autoptr (GTorchImpl) host = NULL;

  if (error != NULL && is_lacking (error))
    return NAN;
  g_assert_no_error (error);
  host = impl_to_host (result);
  return creal (element_get (host, 0));
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
};

/* Each value is a product or sum of at most four rounded ones, each of which has an error of up to four
 * units in the last place. */
static void
values_have_all_digits (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (values); i++)
    {
      const gdouble found = value_of (values[i].function, values[i].x), value = values[i].value;

      if (isnan (found) || fabs (found - value) <= 16 * DBL_EPSILON * fabs (value))
        continue;
      g_test_message ("row %u, x = %g: %.17g, expected %.17g", i, values[i].x, found, value);
      g_test_fail ();
    }
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
  g_test_add_func ("/GTorch/special/erfinv_is_the_inverse_of_erf", erfinv_is_the_inverse_of_erf);
  g_test_add_func ("/GTorch/special/ndtri_is_the_inverse_of_ndtr", ndtri_is_the_inverse_of_ndtr);
  return g_test_run ();
}
