/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Functions with the precision of float, for both CPU loops and kernels. They are computed in double, with
 * polynomials whose relative errors are a few 10^-9: then a result is off by little more than its rounding,
 * and GPUs need no more time than for the memory. CPUs get expressions without branches, which become
 * vectors; GPUs, whose division, root and exponential function in double are long, get shorter ones. */

#ifdef __CUDACC__

/* Return early where all threads of a warp often do. */
#define GT_RETURN_IF(condition, value) \
  if (condition)                       \
  return value

/* Computes 1 / x for a finite x that is not 0, with a relative error of about 2^-45. */
GT_SPECIAL double
gt_reciprocal (double x)
{
  double r;

  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  return fma (r, fma (-x, r, 1.0), r);
}

/* Computes 1 / sqrt (x) for a finite x above 0, with a relative error of about 2^-43. */
GT_SPECIAL double
gt_inverse_root (double x)
{
  double r;

  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  return fma (r, fma (-0.5 * x * r, r, 0.5), r);
}

/* Computes exp (x) for |x| up to 700 with a relative error of 4e-11: 2^n exp (r) with |r| up to log (2) / 2.
 * The sum with 1.5 * 2^52 is rounded to an integer, whose bits are the lowest ones. */
GT_SPECIAL double
gt_exp_single (double x)
{
  const double shifted = fma (x, 1.4426950408889634, 6755399441055744.0);
  const double r = fma (shifted - 6755399441055744.0, -0.69314718055994531, x);
  double y = 0.00019775101029669546;

  y = fma (y, r, 0.0013948243366920016);
  y = fma (y, r, 0.008333561559374458);
  y = fma (y, r, 0.041666224533206134);
  y = fma (y, r, 0.16666665121415583);
  y = fma (y, r, 0.5000000104852896);
  y = fma (y, r, 1.0000000002440848);
  y = fma (y, r, 0.9999999999615269);
  return __hiloint2double (__double2hiint (y) + (__double2loint (shifted) << 20),
                           __double2loint (y));
}

#else

#define GT_RETURN_IF(condition, value)
#define gt_reciprocal(x)   (1 / (x))
#define gt_inverse_root(x) (1 / sqrt (x))
#define gt_exp_single(x)   exp (x)

#endif

/* --- modified Bessel functions of the first kind --- */

/* I_0 (x) with y = x^2, for |x| up to 8 */
GT_SPECIAL double
gt_i0_near_f32 (double y)
{
  return (((((((((1.356636726513988e-19 * y + 1.9913422406771022e-17) * y + 1.0069559236389957e-14)
                    * y
                + 2.372139021992757e-12)
                   * y
               + 4.717998454934086e-10)
                  * y
              + 6.78023527948533e-08)
                 * y
             + 6.781830662129727e-06)
                * y
            + 0.00043402696198439515)
               * y
           + 0.015625002161573268)
              * y
          + 0.24999999796614764)
             * y
         + 1.000000000280258;
}

/* sqrt (x) exp (-x) I_0 (x) with u = 1 / x, for x from 8 on */
GT_SPECIAL double
gt_i0_far_f32 (double u)
{
  return (((((1.8277225929023442 * u - 0.30564821406623416) * u + 0.08512867424134114) * u
            + 0.02725071112779405)
               * u
           + 0.028094823212932794)
              * u
          + 0.04986741895227617)
             * u
         + 0.39894228089396466;
}

/* I_1 (x) / x with y = x^2, for |x| up to 8 */
GT_SPECIAL double
gt_i1_near_f32 (double y)
{
  return ((((((((2.7504361189403086e-18 * y + 3.5045743887784664e-16) * y + 1.6178206416100174e-13)
                   * y
               + 3.3182842009780365e-11)
                  * y
              + 5.662105628253766e-09)
                 * y
             + 6.780216080162659e-07)
                * y
            + 5.4254576512076765e-05)
               * y
           + 0.0026041626775891464)
              * y
          + 0.06250000521467058)
             * y
         + 0.49999999896914643;
}

/* sqrt (x) exp (-x) I_1 (x) with u = 1 / x, for x from 8 on */
GT_SPECIAL double
gt_i1_far_f32 (double u)
{
  return (((((-2.0761373634886198 * u + 0.33764056403786824) * u - 0.10340671643710866) * u
            - 0.03865902537679961)
               * u
           - 0.046801838711366554)
              * u
          - 0.14960293107536754)
             * u
         + 0.39894227982510844;
}

GT_SPECIAL double
gt_i0_f32 (double x)
{
  const double a = fabs (x);

  GT_RETURN_IF (a <= 8, gt_i0_near_f32 (x * x));
  {
    /* beyond 92 the result overflows; NaN stays */
    const double limited = a > 100 ? 100 : (a < 8 ? 8 : a);
    const double far = gt_i0_far_f32 (gt_reciprocal (limited)) * gt_inverse_root (limited)
                       * gt_exp_single (limited);

    return a <= 8 ? gt_i0_near_f32 (x * x) : far;
  }
}

GT_SPECIAL double
gt_i0e_f32 (double x)
{
  const double a = fabs (x), close = a > 8 ? 8 : a;

  GT_RETURN_IF (a <= 8, gt_i0_near_f32 (x * x) * gt_exp_single (-a));
  {
    const double limited = a > 1e39 ? 1e39 : (a < 8 ? 8 : a);
    const double far = gt_i0_far_f32 (gt_reciprocal (limited)) * gt_inverse_root (limited);

    return a <= 8 ? gt_i0_near_f32 (close * close) * gt_exp_single (-close) : (a > 1e39 ? 0 : far);
  }
}

GT_SPECIAL double
gt_i1_f32 (double x)
{
  const double a = fabs (x);

  GT_RETURN_IF (a <= 8, x * gt_i1_near_f32 (x * x));
  {
    const double limited = a > 100 ? 100 : (a < 8 ? 8 : a);
    const double far = gt_i1_far_f32 (gt_reciprocal (limited)) * gt_inverse_root (limited)
                       * gt_exp_single (limited);

    return a <= 8 ? x * gt_i1_near_f32 (x * x) : copysign (far, x);
  }
}

GT_SPECIAL double
gt_i1e_f32 (double x)
{
  const double a = fabs (x), close = a > 8 ? 8 : a;

  GT_RETURN_IF (a <= 8, x * gt_i1_near_f32 (x * x) * gt_exp_single (-a));
  {
    const double limited = a > 1e39 ? 1e39 : (a < 8 ? 8 : a);
    const double far = gt_i1_far_f32 (gt_reciprocal (limited)) * gt_inverse_root (limited);

    return a <= 8 ? x * gt_i1_near_f32 (close * close) * gt_exp_single (-close)
                  : copysign (a > 1e39 ? 0 : far, x);
  }
}

/* --- the inverse of the error function --- */

/* Computes erfinv (x) / x, a smooth function of w = -log (1 - x^2), which is below 16 for floats other than
 * -1 and 1; there the quotient of polynomials has an error of 4e-10. */
GT_SPECIAL double
gt_erfinv_ratio_f32 (double w)
{
  const double p =
      (((((-5.78366408859548074e-7 * w + 0.0000160434694950981897) * w + 0.000517031925638109114)
             * w
         + 0.00671911801014886553)
            * w
        + 0.053779387373522291)
           * w
       + 0.287779447260506023)
          * w
      + 0.88622692569223758;
  const double q =
      (((((-3.43063361145813484e-8 * w - 2.25290730363782197e-6) * w + 0.000164111445748893259) * w
         + 0.00123435986306410739)
            * w
        + 0.0311777319821849429)
           * w
       + 0.0629249550874397691)
          * w
      + 1;

  return p * gt_reciprocal (q);
}

#ifdef __CUDACC__

/* The logarithm of a float is exact enough, because erfinv (x) / x depends little on it. */
GT_SPECIAL double
gt_erfinv_f32 (float x)
{
  const float rest = fmaf (-x, x, 1.0f);

  return rest > 0 ? x * gt_erfinv_ratio_f32 (-logf (rest)) : (rest == 0 ? x * INFINITY : NAN);
}

#else

GT_SPECIAL double
gt_erfinv_f32 (double x)
{
  const double w = -log (1 - x * x), ratio = gt_erfinv_ratio_f32 (x * x < 1 ? w : 0);
  const double at_end = x * x == 1 ? x * INFINITY : NAN;

  return x * x < 1 ? x * ratio : at_end;
}

#endif

/* --- the gamma function --- */

/* Computes the derivative of the logarithm of the gamma function by its asymptotic series, for numbers below
 * 6 after 6 steps: the sum of 1 / (y + k) over k from 0 to 5 is the derivative of the logarithm of
 * y (y + 1) … (y + 5) = z (z + 4) (z + 6) with z = y (y + 5). The cotangent has its poles where those of the
 * function are. */
GT_SPECIAL double
gt_digamma_f32 (double x)
{
  const double pi = 3.14159265358979323846, y = x < 0 ? 1 - x : x;
  const double z = y * (y + 5), w = y < 6 ? y + 6 : y;
  const double product = y < 6 ? z * (z + 4) * (z + 6) : 1;
  const double slope = y < 6 ? (2 * y + 5) * ((3 * z + 20) * z + 24) : 0;
  const double r = gt_reciprocal (w * w * product), u = product * r;
  double value;

  if (x == 0)
    return copysign (1.0, x) > 0 ? -INFINITY : INFINITY;
  if (y > 1e39)
    return x > 0 ? x : NAN;
  value = ((((((1.0 / 12 * u - 691.0 / 32760) * u + 1.0 / 132) * u - 1.0 / 240) * u + 1.0 / 252) * u
            - 1.0 / 120)
               * u
           + 1.0 / 12)
          * u;
  value = log (w) - 0.5 * w * u - value - slope * (w * w) * r;
  if (x < 0)
    {
      const double part = x - nearbyint (x);

      return part == 0 ? NAN : value - pi / tan (pi * part);
    }
  return value;
}

/* Computes the logarithm of the gamma function of a positive number with the precision of float: by
 * Stirling's series from 4.5 on. That of a number y from 1.5 to 2.5 is (y - 1) (y - 2) g (y), where g is a
 * polynomial in y - 2 with an error of 3e-12; those of others are off by the logarithm of a product. */
GT_SPECIAL double
gt_lgamma_f32 (double x)
{
  const int is_large = x >= 4.5;
  const double z = 1 / x, zz = z * z;
  const double series =
      ((((1.0 / 1188 * zz - 1.0 / 1680) * zz + 1.0 / 1260) * zz - 1.0 / 360) * zz + 1.0 / 12) * z
      - x + 0.91893853320467274178;
  const double below = x < 0.5 ? x + 2 : x + 1, above = x < 2.5 ? x : (x < 3.5 ? x - 1 : x - 2);
  const double y = (x < 1.5 ? below : above) - 2;
  const double g = ((((((((((-0.0000208745680412506563 * y + 0.0000450291634225293442) * y
                            - 0.0000821604559761400227)
                               * y
                           + 0.000180557432408048713)
                              * y
                          - 0.000405830487628506356)
                             * y
                         + 0.000915639645659859035)
                            * y
                        - 0.00210812356173065169)
                           * y
                       + 0.0049986256438746413)
                          * y
                      - 0.0123841923498288531)
                         * y
                     + 0.0329650009550665985)
                        * y
                    - 0.100317301673810246)
                       * y
                   + 0.422784335097306839;
  const double down = x < 2.5 ? 1 : (x < 3.5 ? x - 1 : (x - 1) * (x - 2));
  const double up = x < 0.5 ? x * (x + 1) : x;
  const double product = log (is_large ? x : (x < 1.5 ? up : down));

  return (is_large ? x - 0.5 : (x < 1.5 ? -1.0 : 1.0)) * product
         + (is_large ? series : (y + 1) * y * g);
}
