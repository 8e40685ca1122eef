/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Division with a quotient that is rounded towards minus infinity, and its remainder, for both CPU loops
 * and kernels. The including file defines GT_SPECIAL. */

/* A quotient of two floats, computed in double, that is not above this is on the same side of each integer
 * as the exact one: the dividend differs from a multiple of the divisor by 2^-24 of the divisor or more,
 * or not at all. */
#define GT_EXACT_QUOTIENT 268435456.0 /* 2^28 */

GT_SPECIAL double
gt_floor_div_f64 (double a, double b)
{
  double r, q, f;

  if (b == 0)
    return a / b;
  r = fmod (a, b);
  q = (a - r) / b;
  if (r != 0 && ((b < 0) != (r < 0)))
    q -= 1;
  if (q == 0)
    return copysign (0.0, a / b);
  /* q is an integer up to rounding */
  f = floor (q);
  return q - f > 0.5 ? f + 1 : f;
}

GT_SPECIAL double
gt_remainder_f64 (double a, double b)
{
  const double r = fmod (a, b);

  return r != 0 && ((b < 0) != (r < 0)) ? r + b : r;
}

/* Of numbers with the precision of float; fmod is many times as expensive as a division. */
GT_SPECIAL double
gt_floor_div_f32 (double a, double b)
{
  const double q = a / b, f = floor (q);

  if (!(fabs (q) <= GT_EXACT_QUOTIENT && fabs (b) < INFINITY))
    return gt_floor_div_f64 (a, b);
  return f == 0 ? copysign (0.0, q) : f;
}

GT_SPECIAL double
gt_remainder_f32 (double a, double b)
{
  const double q = a / b, r = a - floor (q) * b;

  if (!(fabs (q) <= GT_EXACT_QUOTIENT && fabs (b) < INFINITY))
    return gt_remainder_f64 (a, b);
  return r == 0 ? copysign (0.0, a) : r;
}
