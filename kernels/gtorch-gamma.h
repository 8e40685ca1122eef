/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The zeta function of Hurwitz and the incomplete gamma functions, for both CPU loops and kernels, computed
 * in double; the latter with the precision of float if is_single. */

/* Computes the sum of (q + k)^(-s) over k from 0, for s > 1. For q > 0 by the Euler-Maclaurin formula, unless
 * the terms become small before. For q < 0, where s must be an integer, the terms of negative numbers are
 * those of a difference of two such sums. */
GT_LARGE double
gt_zeta (double s, double q)
{
  /* B_2k / (2 k)! for k from 1, with the Bernoulli numbers B_2k */
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

  if (!(s > 1) || q != q)
    return s == 1 && q == q ? INFINITY : NAN;
  if (q <= 0)
    {
      const double part = q - floor (q);

      if (part == 0)
        return INFINITY;
      if (s != floor (s))
        return NAN;
      sum = gt_zeta (s, 1 - part) - gt_zeta (s, 1 - q);
      return gt_zeta (s, part) + (fmod (s, 2.0) == 0 ? sum : -sum);
    }
  while (q < 12 + s)
    {
      power = pow (q, -s);
      sum += power;
      q += 1;
      if (power <= sum * 0x1p-60)
        return sum;
    }
  if (isinf (q))
    return 0;
  power = pow (q, -s);
  sum += power * q / (s - 1) + power / 2;
  product = s * power / q;
  for (k = 0; k < 10; k++)
    {
      sum += factors[k] * product;
      product *= (s + 2.0 * k + 1) * (s + 2.0 * k + 2) / (q * q);
    }
  return sum;
}

/* log (gamma (1 + a)) / a, with t = 8 / 5 a - 1 for a from 0 to 5 / 4 */
GT_LARGE double
gt_lgamma_near_1 (double t)
{
  static const double c[24] = {
    -0.2060249505146303,    0.3342035894651765,     -0.03197254036093561,    0.004245215596515251,
    -0.000643381725809808,  0.00010452783366293018, -1.770791476978562e-05,  3.0835296380098298e-06,
    -5.474017033393513e-07, 9.856993398555524e-08,  -1.7944534745550668e-08, 3.2952869120859102e-09,
    -6.094452573373941e-10, 1.1338288338382363e-10, -2.1200495878636307e-11, 3.981350343204534e-12,
    -7.505195795335003e-13, 1.419538896389957e-13,  -2.692938476972861e-14,  5.122307874636385e-15,
    -9.766786422220764e-16, 1.8663255692381498e-16, -3.573460197646343e-17,  6.854618219772651e-18
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* Computes m - log (1 + m) for m = (x - a) / a. Near 0, log (1 + m) = 2 atanh (r) with r = m / (2 + m). */
GT_LARGE double
gt_less_log (double a, double x)
{
  const double m = (x - a) / a, r = m / (2 + m);
  double sum = 0;
  int k;

  if (fabs (m) > 0.5)
    return m - log (x / a);
  for (k = 37; k >= 3; k -= 2)
    sum = sum * r * r + 1.0 / k;
  return r * m - 2 * r * r * r * sum;
}

/* Computes x^a exp (-x) / gamma (a + 1). Where that would overflow, it is computed by Stirling's series, in
 * which the powers are combined before their digits are lost. */
GT_LARGE double
gt_gamma_density (double a, double x, int is_single)
{
  const double square = 1 / (a * a);

  if (is_single && a <= 140)
    return exp (a * log (x) - x - gt_lgamma_f32 (a + 1));
  if (a <= 140 && a * log (x) < 690)
    return pow (x, a) * exp (-x / 2) / tgamma (a + 1) * exp (-x / 2);
  return exp (-a * gt_less_log (a, x)) * 0.39894228040143267794 / sqrt (a)
         * exp (-(1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680))) / a);
}

/* Computes P (a, x) by its power series (DLMF 8.11.4), for x up to about a. */
GT_LARGE double
gt_igamma_series (double a, double x, int is_single)
{
  double sum = 1, term = 1;
  int k;

  if (is_single)
    for (k = 1; k < 2000 && term > sum * 0x1p-32; k++)
      {
        term *= x * gt_reciprocal (a + k);
        sum += term;
      }
  else
    for (k = 1; k < 2000 && term > sum * 0x1p-55; k++)
      {
        term *= x / (a + k);
        sum += term;
      }
  return sum * gt_gamma_density (a, x, is_single);
}

/* Computes Q (a, x) by its continued fraction (DLMF 8.9.2), whose convergents are found by Lentz's method,
 * for x from about a on. */
GT_LARGE double
gt_igammac_fraction (double a, double x, int is_single)
{
  const double close = is_single ? 0x1p-32 : 0x1p-53;
  double b = x + 1 - a, c = 1e300, d = 1 / b, product = d;
  int k;

  for (k = 1; k < 2000; k++)
    {
      const double numerator = -k * (k - a);
      double factor;

      b += 2;
      if (is_single)
        {
          d = gt_reciprocal (numerator * d + b);
          c = b + numerator * gt_reciprocal (c);
        }
      else
        {
          d = 1 / (numerator * d + b);
          c = b + numerator / c;
        }
      factor = c * d;
      product *= factor;
      if (fabs (factor - 1) < close)
        break;
    }
  return product * a * gt_gamma_density (a, x, is_single);
}

/* Computes Q (a, x) for small x and a, where it is 1 less a number near 1: Q = 1 - x^a / gamma (1 + a)
 * (1 + a sum (-x)^k / (k! (a + k))). */
GT_LARGE double
gt_igammac_series (double a, double x)
{
  const double power = a * (log (x) - gt_lgamma_near_1 (1.6 * a - 1));
  double sum = 0, term = 1;
  int k;

  for (k = 1; k < 60; k++)
    {
      term *= -x / k;
      sum += term / (a + k);
    }
  return -expm1 (power) - exp (power) * a * sum;
}

/* Computes P (a, x), or with is_upper Q (a, x), for large a and x near a by Temme's uniform expansion (DLMF
 * 8.12.3 to 8.12.10). */
GT_LARGE double
gt_igamma_uniform (double a, double x, int is_upper)
{
  /* c[k][n] eta^n a^(-k) are added up; they follow from the expansion of 1 / (x / a - 1) in powers of eta and
   * from Stirling's series */
  static const double c[7][16] = {
    { -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
      0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
      -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
      1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10,
      -2.5514193994946248e-11 },
    { -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
      0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
      -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
      1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09,
      4.162792991842583e-10 },
    { 0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
      -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05,
      3.423578734096138e-08, 1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07,
      -2.0477098421990866e-10, -1.409252991086752e-08, 6.228974084922022e-09,
      -1.3670488396617114e-09, 9.428356159014678e-13 },
    { 0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
      -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05,
      -5.6749528269915965e-06, 1.4230900732435883e-06, -2.7861080291528143e-11,
      -1.6958404091930278e-07, 8.099464905388083e-08, -1.9111168485973655e-08,
      2.3928620439808118e-12, 2.0620131815488797e-09, -9.460496661855133e-10 },
    { -0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902,
      -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05,
      1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06, 8.907507532205309e-07,
      -2.292934834000805e-07, 2.956794137544049e-11, 2.8865829742708783e-08,
      -1.4189739437803219e-08, 3.4463580499464896e-09, -2.3024517174528067e-13 },
    { -0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392,
      -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07,
      -1.3594048189768693e-05, 8.018470256334202e-06, -2.291481176508095e-06,
      -3.252473551298454e-10, 3.4652846491085265e-07, -1.8447187191171344e-07,
      4.8240967037894184e-08, -1.7989466721743514e-14, -6.306194500013523e-09,
      3.162417628774568e-09 },
    { 0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045, 7.902353232660328e-07,
      -8.153969367561969e-05, 5.61168275310625e-05, -1.8329116582843375e-05,
      -3.0796134506033047e-09, 3.465155368803609e-06, -2.0291327396058603e-06,
      5.788792863149004e-07, 2.338630673826657e-13, -8.828600746330484e-08, 4.7435958880408125e-08,
      -1.2545415020710383e-08, 8.649648858010293e-14 }
  };
  const double less = gt_less_log (a, x);
  const double eta = copysign (sqrt (2 * less), x - a);
  double rest = 0;
  int k, n;

  for (k = 6; k >= 0; k--)
    {
      double sum = 0;

      for (n = 15; n >= 0; n--)
        sum = sum * eta + c[k][n];
      rest = rest / a + sum;
    }
  rest *= exp (-a * less) * 0.39894228040143267794 / sqrt (a);
  return is_upper ? erfc (eta * sqrt (a / 2)) / 2 + rest : erfc (-eta * sqrt (a / 2)) / 2 - rest;
}

/* Computes the regularized incomplete gamma functions: P (a, x), or with is_upper Q (a, x) = 1 - P (a, x). */
GT_CALLED double
gt_igamma (double a, double x, int is_upper, int is_single)
{
  double lower;

  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (isinf (a) && isinf (x)))
    return NAN;
  if (a == 0 || isinf (x))
    return is_upper ? 0 : 1;
  if (x == 0 || isinf (a))
    return is_upper ? 1 : 0;
  if (a > 200 && fabs (x - a) < 4.5 * sqrt (a))
    return gt_igamma_uniform (a, x, is_upper);
  if (x > 1.5 && x >= a)
    {
      const double upper = gt_igammac_fraction (a, x, is_single);

      return is_upper ? upper : 1 - upper;
    }
  if (is_upper && x <= 1.5 && a <= (x > 0.5 ? fmin (1.1 * x, 1.25) : fmin (-0.4 / log (x), 1.25)))
    return gt_igammac_series (a, x);
  lower = gt_igamma_series (a, x, is_single);
  return is_upper ? 1 - lower : lower;
}
