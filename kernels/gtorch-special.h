/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Functions of one number that <math.h> lacks, for both CPU loops and kernels: the including file defines
 * GT_SPECIAL, the qualifiers of a function. They are computed in double. */

/* Computes the derivative of sin (pi x) / (pi x) of an order of at least 0. With u = pi x and s_n the n-th
 * derivative of sin (u) / u: u s_n = sin (u + n pi / 2) - n s_(n - 1), which loses digits where u is less
 * than n; there the series is short. */
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
      /* from sum (-1)^j u^(2 j) / (2 j + 1)!, with m = 2 j - order */
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

/* Computes the sum of (x + k)^(-s) over k from 0, for x > 0 and integer s > 1, by the Euler-Maclaurin
 * formula. */
GT_SPECIAL double
gt_hurwitz_zeta (long long s, double x)
{
  /* Bernoulli numbers B_2, B_4, ... over (2 k)! */
  const double factors[10] = { 1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000.0,
                               1.0 / 74724249600.0,
                               -3617.0 / 10670622842880000.0,
                               43867.0 / 5109094217170944000.0,
                               -174611.0 / 802857662698291200000.0 };
  double sum = 0, power, product;
  int k;

  while (x < 12 + s)
    {
      sum += pow (x, (double) -s);
      x += 1;
    }
  power = pow (x, (double) -s);
  sum += power * x / (s - 1) + power / 2;
  product = s * power / x;
  for (k = 0; k < 10; k++)
    {
      sum += factors[k] * product;
      product *= (s + 2.0 * k + 1) * (s + 2.0 * k + 2) / (x * x);
    }
  return sum;
}

/* Computes derivatives of the logarithm of the gamma function: the first one for an order of 0. Below 0
 * those at x and at its reflection, 1 - x, differ by a function of period 1. */
GT_SPECIAL double
gt_polygamma (double x, long long order)
{
  /* B_2k / (2 k) */
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
  if (x > 0)
    return sign * factorial * gt_hurwitz_zeta (order + 1, x);
  if (x <= 0)
    {
      const double part = x - floor (x);

      if (part == 0)
        return sign / fabs (part);
      return sign * factorial
             * (gt_hurwitz_zeta (order + 1, part)
                + sign
                      * (gt_hurwitz_zeta (order + 1, 1 - part)
                         - gt_hurwitz_zeta (order + 1, 1 - x)));
    }
  return x;
}
