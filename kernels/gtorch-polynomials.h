/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Orthogonal polynomials, for both CPU loops and kernels, computed in double. The degree is cut to an
 * integer; polynomials of negative degree are 0. A value that overflows on the way, or needs more steps than
 * the limit, is NaN. */

#define GT_MAX_DEGREE 0x1p20

/* Computes Chebyshev polynomials: of the first kind T for kind 0, then U, V and W. They have one recurrence,
 * p_(k + 1) = 2 x p_k - p_(k - 1), and begin with 1 and 2 x less an offset. For great degrees, those with
 * x = cos (t) are quotients of cosines or sines of multiples of t, and with x = cosh (t) of hyperbolic ones.
 * V and W exchange their places, but for signs, with x and -x. */
GT_LARGE double
gt_chebyshev (double x, double degree, int kind)
{
  const double n = trunc (degree), half = n + 0.5, a = fabs (x);
  const double sign = x < 0 && fmod (n, 2.0) != 0 ? -1 : 1;
  double before = 1, p, t;
  int k;

  if (n != n || n < 0)
    return n < 0 ? 0 : NAN;
  if (n == 0)
    return 1;
  if (n <= 64 || a != a)
    {
      p = kind == 0 ? x : (kind == 1 ? 2 * x : (kind == 2 ? 2 * x - 1 : 2 * x + 1));
      for (k = 1; k < n && p == p; k++)
        {
          const double next = 2 * x * p - before;

          before = p;
          p = next;
        }
      return p;
    }
  if (kind >= 2 && x < 0)
    kind = 5 - kind;
  if (a == 1)
    return sign * (kind == 1 ? n + 1 : (kind == 3 ? 2 * n + 1 : 1));
  t = a < 1 ? acos (a) : acosh (a);
  if (kind == 0)
    return sign * (a < 1 ? cos (n * t) : cosh (n * t));
  if (kind == 1)
    return sign * (a < 1 ? sin ((n + 1) * t) / sin (t) : sinh ((n + 1) * t) / sinh (t));
  if (kind == 2)
    return sign * (a < 1 ? cos (half * t) / cos (t / 2) : cosh (half * t) / cosh (t / 2));
  return sign * (a < 1 ? sin (half * t) / sin (t / 2) : sinh (half * t) / sinh (t / 2));
}

/* Computes Hermite polynomials: H_(k + 1) = 2 x H_k - 2 k H_(k - 1) with factor 2, He without it with 1. */
GT_LARGE double
gt_hermite (double x, double degree, double factor)
{
  const double n = trunc (degree);
  double before = 1, p = factor * x, k;

  if (!(n > 0))
    return n == 0 ? 1 : (n < 0 ? 0 : NAN);
  for (k = 1; k < fmin (n, GT_MAX_DEGREE) && p - p == 0; k++)
    {
      const double next = factor * (x * p - k * before);

      before = p;
      p = next;
    }
  return k < n ? NAN : p;
}

/* Computes Laguerre polynomials: (k + 1) L_(k + 1) = (2 k + 1 - x) L_k - k L_(k - 1). */
GT_LARGE double
gt_laguerre (double x, double degree)
{
  const double n = trunc (degree);
  double before = 1, p = 1 - x, k;

  if (!(n > 0))
    return n == 0 ? 1 : (n < 0 ? 0 : NAN);
  if (x == 0)
    return 1;
  for (k = 1; k < fmin (n, GT_MAX_DEGREE) && p - p == 0; k++)
    {
      const double next = p + (k * (p - before) - x * p) / (k + 1);

      before = p;
      p = next;
    }
  return k < n ? NAN : p;
}

/* Computes Legendre polynomials: (k + 1) P_(k + 1) = (2 k + 1) x P_k - k P_(k - 1). */
GT_LARGE double
gt_legendre (double x, double degree)
{
  const double n = trunc (degree);
  double before = 1, p = x, k;

  if (!(n > 0))
    return n == 0 ? 1 : (n < 0 ? 0 : NAN);
  if (fabs (x) == 1)
    return x < 0 && fmod (n, 2.0) != 0 ? -1 : 1;
  for (k = 1; k < fmin (n, GT_MAX_DEGREE) && p - p == 0; k++)
    {
      const double next = ((2 * k + 1) * x * p - k * before) / (k + 1);

      before = p;
      p = next;
    }
  return k < n ? NAN : p;
}
