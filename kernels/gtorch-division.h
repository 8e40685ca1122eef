/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Division with a quotient that is rounded towards minus infinity, its remainder, and that of a quotient that
 * is rounded towards zero, for both CPU loops and kernels. The including file defines GT_SPECIAL. */

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

/* The next functions are of numbers with the precision of float, for which fmod is many times as expensive as
 * a division. Tells whether the quotient has been rounded, so that those of floor and trunc may be wrong. */
GT_SPECIAL int
gt_is_inexact (double a, double b)
{
  return !(fabs (a / b) <= GT_EXACT_QUOTIENT) | !(fabs (b) < INFINITY);
}

GT_SPECIAL double
gt_exact_floor_div (double a, double b)
{
  const double q = a / b, f = floor (q);

  return f == 0 ? copysign (0.0, q) : f;
}

GT_SPECIAL double
gt_exact_remainder (double a, double b)
{
  const double r = a - floor (a / b) * b;

  return r == 0 ? copysign (0.0, a) : r;
}

GT_SPECIAL double
gt_exact_fmod (double a, double b)
{
  const double r = a - trunc (a / b) * b;

  return r == 0 ? copysign (0.0, a) : r;
}

GT_SPECIAL double
gt_floor_div_f32 (double a, double b)
{
  return gt_is_inexact (a, b) ? gt_floor_div_f64 (a, b) : gt_exact_floor_div (a, b);
}

GT_SPECIAL double
gt_remainder_f32 (double a, double b)
{
  return gt_is_inexact (a, b) ? gt_remainder_f64 (a, b) : gt_exact_remainder (a, b);
}

GT_SPECIAL double
gt_fmod_f32 (double a, double b)
{
  return gt_is_inexact (a, b) ? fmod (a, b) : gt_exact_fmod (a, b);
}
