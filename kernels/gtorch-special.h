/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Functions of one number that <math.h> lacks, for both CPU loops and kernels, computed in double. The
 * including file defines GT_SPECIAL, the qualifiers of a function, GT_LARGE, those of one that kernels call
 * rather than contain: a compiler for GPUs would take minutes for its copies; and GT_CALLED, those of one
 * that loops call, too: a compiler may round the results of copies differently. */

#include "gtorch-single.h"

#include "gtorch-bessel.h"
#include "gtorch-gamma.h"
#include "gtorch-polynomials.h"

/* Computes a derivative of sin (pi x) / (pi x); the order is at least 0. With u = pi x and s_n the n-th
 * derivative of sin (u) / u: u s_n = sin (u + n pi / 2) - n s_(n - 1). This recurrence loses digits where u
 * is less than n; there the power series is short. */
GT_SPECIAL double
gt_sinc_derivative (double x, long long order)
{
  const double pi = 3.14159265358979323846, u = pi * x;
  double s = 0, term = 1, scale = 1;
  long long k;

  for (k = 0; k < order; k++)
    scale *= pi;
  if (fabs (u) <= order + 1.5)
    {
      /* the derivative of the series sum (-1)^j u^(2 j) / (2 j + 1)!, with m = 2 j - order */
      const long long first = order % 2;
      long long m, j;

      for (m = 1; m <= first; m++)
        term *= u / m;
      for (m = first; m < 40 + 2 * order; m += 2)
        {
          const double part = term / (m + order + 1);

          j = (m + order) / 2;
          s += j % 2 != 0 ? -part : part;
          term *= u * u / ((m + 1.0) * (m + 2.0));
        }
      return s * scale;
    }
  s = sin (u) / u;
  for (k = 1; k <= order; k++)
    {
      const double wave = k % 2 == 0 ? sin (u) : cos (u);

      s = ((k % 4 == 2 || k % 4 == 3 ? -wave : wave) - k * s) / u;
    }
  return s * scale;
}

/* Computes derivatives of the logarithm of the gamma function: the first one for order 0. */
GT_SPECIAL double
gt_polygamma (double x, long long order)
{
  /* B_2k / (2 k) for k from 1, with the Bernoulli numbers B_2k */
  const double factors[7] = { 1.0 / 12,  -1.0 / 120,       1.0 / 252, -1.0 / 240,
                              1.0 / 132, -691.0 / 32760.0, 1.0 / 12 };
  const double pi = 3.14159265358979323846;
  double sum = 0, power, factorial = 1, sign;
  long long k;

  if (order == 0)
    {
      if (x == 0)
        return copysign (1.0, x) > 0 ? -1 / fabs (x) : 1 / fabs (x);
      if (x < 0)
        {
          const double part = x - nearbyint (x);

          if (part == 0)
            return (x - x) / (x - x);
          return gt_polygamma (1 - x, 0) - pi / tan (pi * part);
        }
      while (x < 12)
        {
          sum -= 1 / x;
          x += 1;
        }
      sum += log (x) - 0.5 / x;
      for (k = 0, power = 1 / (x * x); k < 7; k++)
        {
          sum -= factors[k] * power;
          power /= x * x;
        }
      return sum;
    }
  for (k = 2; k <= order; k++)
    factorial *= k;
  sign = order % 2 != 0 ? 1 : -1;
  return x == x ? sign * factorial * gt_zeta (order + 1.0, x) : x;
}

/* Returns the bits of a number, multiplied by 2^54 if its absolute value is less than the least normal
 * one. */
GT_SPECIAL long long
gt_normal_bits (double x)
{
  const double scaled = fabs (x) < 2.2250738585072014e-308 ? x * 18014398509481984.0 : x;
  long long bits;

  memcpy (&bits, &scaled, sizeof bits);
  return bits;
}

/* Computes the mantissa of x, whose absolute value is in [0.5, 1), or x if it is 0, infinite or NaN. */
GT_SPECIAL double
gt_frexp_mantissa (double x)
{
  const long long half = (gt_normal_bits (x) & ~(0x7ffLL << 52)) | 0x3feLL << 52;
  double mantissa;

  memcpy (&mantissa, &half, sizeof mantissa);
  return x == 0 || !(fabs (x) < INFINITY) ? x : mantissa;
}

/* Computes the exponent that belongs to the mantissa, 0 for infinities and NaN. */
GT_SPECIAL double
gt_frexp_exponent (double x)
{
  const int exponent = (int) (gt_normal_bits (x) >> 52 & 0x7ff) - 1022;
  const int shift = fabs (x) < 2.2250738585072014e-308 ? 54 : 0;

  return x == 0 || !(fabs (x) < INFINITY) ? 0 : exponent - shift;
}

/* Compute the same of a float, which is multiplied by 2^25 if it is not normal. */
GT_SPECIAL int
gt_normal_bits_f32 (float x)
{
  const float scaled = x < 1.17549435e-38f && x > -1.17549435e-38f ? x * 33554432.0f : x;
  int bits;

  memcpy (&bits, &scaled, sizeof bits);
  return bits;
}

GT_SPECIAL float
gt_frexp_mantissa_f32 (float x)
{
  const int half = (gt_normal_bits_f32 (x) & ~(0xff << 23)) | 0x7e << 23;
  float mantissa;

  memcpy (&mantissa, &half, sizeof mantissa);
  return x == 0 || !(x < INFINITY && x > -INFINITY) ? x : mantissa;
}

GT_SPECIAL float
gt_frexp_exponent_f32 (float x)
{
  const int exponent = (gt_normal_bits_f32 (x) >> 23 & 0xff) - 126;
  const int shift = x < 1.17549435e-38f && x > -1.17549435e-38f ? 25 : 0;

  return x == 0 || !(x < INFINITY && x > -INFINITY) ? 0 : exponent - shift;
}

/* Compute the number next to x in the direction of y. */
GT_SPECIAL float
gt_nextafter_f32 (float x, float y)
{
  const float from_zero = copysign (1.40129846432481707e-45f, y);
  int bits;
  float next;

  memcpy (&bits, &x, sizeof bits);
  bits += (x < y) == (x > 0) ? 1 : -1;
  memcpy (&next, &bits, sizeof next);
  next = x == 0 ? from_zero : next;
  next = x == y ? y : next;
  return x != x || y != y ? x + y : next;
}

GT_SPECIAL double
gt_nextafter_f64 (double x, double y)
{
  const double from_zero = copysign (4.94065645841246544e-324, y);
  long long bits;
  double next;

  memcpy (&bits, &x, sizeof bits);
  bits += (x < y) == (x > 0) ? 1 : -1;
  memcpy (&next, &bits, sizeof next);
  next = x == 0 ? from_zero : next;
  next = x == y ? y : next;
  return x != x || y != y ? x + y : next;
}

/* Computes exp (x^2) erfc (x). Up to 25, where erfc (x) is a normal number, the product is computed with
 * the rounding error of x^2 added to it; beyond, by the asymptotic series (DLMF 7.12.1)
 * 1 / (x sqrt (pi)) sum (-1)^k (2 k - 1)!! / (2 x^2)^k, whose terms are below 2^-53 from the eighth on. */
GT_SPECIAL double
gt_erfcx (double x)
{
  if (x < 25)
    {
      const double square = x * x;

      if (x < -27)
        return INFINITY;
      return exp (square) * (1 + fma (x, x, -square)) * erfc (x);
    }
  else
    {
      const double step = -0.5 / (x * x);
      double sum = 1, term = 1;
      int k;

      for (k = 1; k < 9; k++)
        {
          term *= step * (2 * k - 1);
          sum += term;
        }
      return sum * 0.56418958354775628695 / x;
    }
}

/* Computes the logarithm of the distribution function of the normal distribution. */
GT_SPECIAL double
gt_log_ndtr (double x)
{
  const double t = x * 0.70710678118654752440;

  return x < -1 ? log (gt_erfcx (-t) / 2) - x * x / 2 : log1p (-erfc (t) / 2);
}

/* Computes the number below which a normally distributed variable is with probability 1/2 + q; tail is the
 * smaller one of the probabilities on both sides, 1/2 - |q|, which the caller computes without rounding.
 * Three quotients of polynomials (Wichura, Algorithm AS 241: the percentage points of the normal
 * distribution, Applied Statistics 37, 1988) have about 16 correct digits. */
GT_SPECIAL double
gt_normal_quantile (double q, double tail)
{
  double r, value;

  if (fabs (q) <= 0.425)
    {
      r = 0.180625 - q * q;
      return q
             * (((((((2509.0809287301226727 * r + 33430.575583588128105) * r
                     + 67265.770927008700853)
                        * r
                    + 45921.953931549871457)
                       * r
                   + 13731.693765509461125)
                      * r
                  + 1971.5909503065514427)
                     * r
                 + 133.14166789178437745)
                    * r
                + 3.387132872796366608)
             / (((((((5226.495278852854561 * r + 28729.085735721942674) * r + 39307.89580009271061)
                        * r
                    + 21213.794301586595867)
                       * r
                   + 5394.1960214247511077)
                      * r
                  + 687.1870074920579083)
                     * r
                 + 42.313330701600911252)
                    * r
                + 1.0);
    }
  r = sqrt (-log (tail));
  if (r <= 5)
    {
      r -= 1.6;
      value = (((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r
                    + 0.24178072517745061177)
                       * r
                   + 1.27045825245236838258)
                      * r
                  + 3.64784832476320460504)
                     * r
                 + 5.7694972214606914055)
                    * r
                + 4.6303378461565452959)
                   * r
               + 1.42343711074968357734)
              / (((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r
                      + 0.0151986665636164571966)
                         * r
                     + 0.14810397642748007459)
                        * r
                    + 0.68976733498510000455)
                       * r
                   + 1.6763848301838038494)
                      * r
                  + 2.05319162663775882187)
                     * r
                 + 1.0);
    }
  else
    {
      r -= 5;
      value = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r
                    + 0.0012426609473880784386)
                       * r
                   + 0.026532189526576123093)
                      * r
                  + 0.29656057182850489123)
                     * r
                 + 1.7848265399172913358)
                    * r
                + 5.4637849111641143699)
                   * r
               + 6.6579046435011037772)
              / (((((((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r
                      + 1.8463183175100546818e-5)
                         * r
                     + 7.868691311456132591e-4)
                        * r
                    + 0.0148753612908506148525)
                       * r
                   + 0.13692988092273580531)
                      * r
                  + 0.59983220655588793769)
                     * r
                 + 1.0);
    }
  return q < 0 ? -value : value;
}

/* Computes the inverse of the distribution function of the normal distribution. */
GT_SPECIAL double
gt_ndtri (double p)
{
  if (!(p > 0 && p < 1))
    return p == 0 ? -INFINITY : (p == 1 ? INFINITY : NAN);
  return gt_normal_quantile (p - 0.5, p < 0.5 ? p : 1 - p);
}

/* Computes the inverse of the error function, erf (x) = 2 ndtr (sqrt (2) x) - 1. */
GT_SPECIAL double
gt_erfinv (double x)
{
  const double a = fabs (x);

  if (!(a < 1))
    return a == 1 ? x * INFINITY : NAN;
  return gt_normal_quantile (x / 2, (1 - a) / 2) * 0.70710678118654752440;
}

#include "gtorch-counts.h"
