/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Functions of one number that <math.h> lacks, for both CPU loops and kernels, computed in double. The
 * including file defines GT_SPECIAL, the qualifiers of a function, and GT_LARGE, those of one that kernels
 * call rather than contain: a compiler for GPUs would take minutes for its copies. */

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
          const double part = x - floor (x);

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

/* Computes the mantissa of x, whose absolute value is in [0.5, 1), or x if it is 0, infinite or NaN. */
GT_SPECIAL double
gt_frexp_mantissa (double x)
{
  int exponent;

  return frexp (x, &exponent);
}

/* Computes the exponent that belongs to the mantissa, 0 for infinities and NaN. */
GT_SPECIAL double
gt_frexp_exponent (double x)
{
  int exponent = 0;

  if (!(fabs (x) < INFINITY))
    return 0;
  frexp (x, &exponent);
  return exponent;
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

/* Computes the inverse of the distribution function of the normal distribution. The equation
 * log (ndtr (x)) = log (p), for p up to 1/2, is solved by Newton's method, which converges from any x < 0
 * because the logarithm is concave; it begins with an approximation by a rational function of
 * sqrt (-2 log (p)) (Abramowitz and Stegun, 26.2.23), whose error is below 0.00045. */
GT_SPECIAL double
gt_ndtri (double p)
{
  const double q = p > 0.5 ? 1 - p : p;
  double target, t, x;
  int k;

  if (!(q > 0))
    return p == 0 ? -INFINITY : (p == 1 ? INFINITY : NAN);
  if (q == 0.5)
    return 0;
  target = log (q);
  t = sqrt (-2 * target);
  x = (2.515517 + t * (0.802853 + t * 0.010328))
          / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
      - t;
  for (k = 0; k < 3; k++)
    {
      /* the quotient of the function and its derivative; near 0 the difference of the logarithms would
       * lose digits */
      const double ratio = 1.25331413731550025121 * gt_erfcx (x * -0.70710678118654752440);
      const double ratio_less =
          q > 0.05 ? (erfc (x * -0.70710678118654752440) / 2 - q) / q : gt_log_ndtr (x) - target;

      x -= ratio * ratio_less;
    }
  return p > 0.5 ? -x : x;
}

/* Computes the inverse of the error function. Near 0 an approximation by elementary functions, whose error
 * is below 0.002 (Winitzki, A handy approximation for the error function and its inverse, 2008), is
 * improved by Halley's method, which triples the correct digits; the difference to x is computed from
 * erfc (y) where that is the smaller number. */
GT_SPECIAL double
gt_erfinv (double x)
{
  const double a = fabs (x), rest = 1 - a;
  double l, b, y;
  int k;

  if (!(a < 1))
    return a == 1 ? x * INFINITY : NAN;
  if (a < 1e-9)
    return x * 0.88622692545275801365;
  l = log1p (-a * a);
  b = 4.33074674 + l / 2;
  y = sqrt (sqrt (b * b - l / 0.147) - b);
  for (k = 0; k < 3; k++)
    {
      const double difference = a < 0.5 ? erf (y) - a : rest - erfc (y);
      const double step = difference * 0.88622692545275801365 * exp (y * y);

      y -= step / (1 + y * step);
    }
  return x < 0 ? -y : y;
}
