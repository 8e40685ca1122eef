/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Bessel functions and the Airy function, for both CPU loops and kernels, computed in double. Where <math.h>
 * and CUDA have a function it is used. The others are sums of Chebyshev polynomials, which interpolate the
 * function, freed of its growth, at the zeros of a polynomial of higher degree; the coefficients were
 * computed with 50 digits and cut below 2^-57 of the greatest value. */

/* Sums c[0] + c[1] T_1 (t) + c[2] T_2 (t) + … by Clenshaw's recurrence, for t between -1 and 1. */
GT_LARGE double
gt_chebyshev_sum (const double *c, int n, double t)
{
  double a = 0, b = 0;
  int k;

  for (k = n - 1; k > 0; k--)
    {
      const double next = 2 * t * a - b + c[k];

      b = a;
      a = next;
    }
  return t * a - b + c[0];
}

#define GT_CHEBYSHEV_SUM(c, t) gt_chebyshev_sum (c, sizeof (c) / sizeof ((c)[0]), t)

/* --- of the first and second kind --- */

GT_LARGE double
gt_bessel_j0 (double x)
{
  return isinf (x) ? 0 : (j0) (x);
}

GT_LARGE double
gt_bessel_j1 (double x)
{
  return isinf (x) ? 0 : (j1) (x);
}

GT_LARGE double
gt_bessel_y0 (double x)
{
  return x > 0 ? (isinf (x) ? 0 : (y0) (x)) : (x == 0 ? -INFINITY : NAN);
}

GT_LARGE double
gt_bessel_y1 (double x)
{
  return x > 0 ? (isinf (x) ? 0 : (y1) (x)) : (x == 0 ? -INFINITY : NAN);
}

/* --- modified ones of the first kind --- */

/* exp (-x) I_0 (x), with t = x / 4 - 1 */
GT_LARGE double
gt_i0_near (double t)
{
  static const double c[29] = {
    0.33839763720473803,    -0.3046826723431984,     0.17162090152220877,    -0.09490109704804764,
    0.04930528423967071,    -0.02373741480589947,    0.010546460394594998,   -0.004324309995050576,
    0.0016394756169413357,  -0.0005763755745385824,  0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08,  -1.300025009986248e-08,  2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11,  -1.726826291441556e-11,  2.95505266312964e-12,   -4.856446783111929e-13,
    7.676185498604936e-14,  -1.1685332877993451e-14, 1.715391285555133e-15,  -2.431279846547955e-16,
    3.3307945188222384e-17
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* sqrt (x) exp (-x) I_0 (x), with t = 16 / x - 1 */
GT_LARGE double
gt_i0_far (double t)
{
  static const double c[25] = {
    0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,
    2.8913705208347567e-06,  2.0489185894690638e-07,  2.266668990498178e-08,
    3.3962320257083865e-09,  4.94060238822497e-10,    1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,
    -4.150569347287222e-14,  -9.554846698828307e-15,  3.8116806693526224e-15,
    1.7725601330565263e-15,  -3.425485619677219e-16,  -2.8276239805165836e-16,
    3.461222867697461e-17,   4.46562142029676e-17,    -4.830504485944182e-18,
    -7.233180487874754e-18
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* exp (-x) I_1 (x) / x, with t = x / 4 - 1 */
GT_LARGE double
gt_i1_near (double t)
{
  static const double c[28] = {
    0.12629359322181682,     -0.17641651835783406,    0.1026436586898471,
    -0.05294598120809499,    0.024726449030626516,    -0.010564084894626197,
    0.004156422944312888,    -0.0015135724506312532,  0.0005122859561685758,
    -0.00016176081582589674, 4.781565107550054e-05,   -1.3273163656039436e-05,
    3.4702513081376785e-06,  -8.568720264695455e-07,  2.0032947535521353e-07,
    -4.445059128796328e-08,  9.381537386495773e-09,   -1.8872497517228294e-09,
    3.625590281552117e-10,   -6.663489723502027e-11,  1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.223793365945575e-13,   -5.042185504727912e-14,
    7.600684294735408e-15,   -1.1055969477353862e-15, 1.5536319577362005e-16,
    -2.111421214358166e-17
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* sqrt (x) exp (-x) I_1 (x), with t = 16 / x - 1 */
GT_LARGE double
gt_i1_far (double t)
{
  static const double c[25] = {
    0.38928811750914005,     -0.009761097491361469,   -0.00011058893876262371,
    -3.882564808877691e-06,  -2.512236237870209e-07,  -2.6314688468895196e-08,
    -3.835380385964237e-09,  -5.589743462196584e-10,  -1.8974958123505413e-11,
    3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
    -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.272440016711951e-14,   1.0420276984128802e-14,  -3.8144030724370075e-15,
    -1.8803547755107825e-15, 3.3082023109209285e-16,  2.96262899764595e-16,
    -3.209525921993424e-17,  -4.6503053684893586e-17, 4.414348323071708e-18,
    7.517296310842105e-18
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* Sums the power series of I_n (x) / (x / 2)^n, for |x| < 1 and n of 0 and 1. */
GT_LARGE double
gt_i_at_0 (double x, int n)
{
  const double square = x * x / 4;
  double sum = 1;
  int k;

  for (k = 9; k > 0; k--)
    sum = 1 + sum * square / (k * (k + n));
  return sum;
}

/* Computes exp (-|x|) I_0 (x). */
GT_LARGE double
gt_i0e (double x)
{
  const double a = fabs (x);

  if (a < 1)
    return gt_i_at_0 (x, 0) * exp (-a);
  return a <= 8 ? gt_i0_near (a / 4 - 1) : gt_i0_far (16 / a - 1) / sqrt (a);
}

/* Computes exp (-|x|) I_1 (x). */
GT_LARGE double
gt_i1e (double x)
{
  const double a = fabs (x);

  if (a < 1)
    return gt_i_at_0 (x, 1) * x / 2 * exp (-a);
  return a <= 8 ? x * gt_i1_near (a / 4 - 1) : copysign (gt_i1_far (16 / a - 1) / sqrt (a), x);
}

/* Multiplies by exp (a), which may overflow where the product does not. */
GT_LARGE double
gt_times_exp (double x, double a)
{
  return a < 700 ? x * exp (a) : (isinf (a) ? copysign (a, x) : x * exp (a / 2) * exp (a / 2));
}

GT_LARGE double
gt_i0 (double x)
{
  return fabs (x) < 1 ? gt_i_at_0 (x, 0) : gt_times_exp (gt_i0e (x), fabs (x));
}

GT_LARGE double
gt_i1 (double x)
{
  return fabs (x) < 1 ? gt_i_at_0 (x, 1) * x / 2 : gt_times_exp (gt_i1e (x), fabs (x));
}

/* --- modified ones of the second kind --- */

/* K_0 (x) + log (x / 2) I_0 (x), with t = x² / 2 - 1 */
GT_LARGE double
gt_k0_near (double t)
{
  static const double c[10] = { -0.2676636966169514,    0.3442898999246285,
                                0.0359799365153615,     0.001264615411446926,
                                2.286212103119452e-05,  2.5347910790261494e-07,
                                1.904516377220209e-09,  1.0349695257633625e-11,
                                4.2598161427910826e-14, 1.3744654358807508e-16 };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* sqrt (x) exp (x) K_0 (x), with t = 4 / x - 1 */
GT_LARGE double
gt_k0_far (double t)
{
  static const double c[24] = {
    1.2201515410329777,      -0.0314481013119645,    0.0015698838857300533,
    -0.00012849549581627802, 1.39498137188765e-05,   -1.8317555227191195e-06,
    2.766813639445015e-07,   -4.660489897687948e-08, 8.574034017414225e-09,
    -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11,
    1.8559491149549264e-11,  -4.514597883374519e-12, 1.1403405882073441e-12,
    -2.9800969231481784e-13, 8.032890775068375e-14,  -2.2275133267462965e-14,
    6.340076476276646e-15,   -1.848593377920907e-15, 5.5120559994043335e-16,
    -1.6782311257549006e-16, 5.2103917776435543e-17, -1.6475805939842632e-17
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* x (K_1 (x) - log (x / 2) I_1 (x)), with t = x² / 2 - 1 */
GT_LARGE double
gt_k1_near (double t)
{
  static const double c[11] = { 0.7626501136694739,     -0.3531559607765449,
                                -0.12261118082265715,   -0.006975723859639864,
                                -0.0001730288957513052, -2.4334061415659684e-06,
                                -2.213387630734726e-08, -1.4114883926335278e-10,
                                -6.666901694199329e-13, -2.427449850519366e-15,
                                -7.023863479386288e-18 };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* sqrt (x) exp (x) K_1 (x), with t = 4 / x - 1 */
GT_LARGE double
gt_k1_far (double t)
{
  static const double c[24] = {
    1.3603130952422213,      0.10392373657681724,     -0.002857816859622779,
    0.00019521551847135162,  -1.936197974166083e-05,  2.406484947837217e-06,
    -3.5019606030878126e-07, 5.7410841254500495e-08,  -1.0345762465678097e-08,
    2.0150497551970347e-09,  -4.1903547593419254e-10, 9.218315187605315e-11,
    -2.129967838427791e-11,  5.139639673482343e-12,   -1.2891739609498229e-12,
    3.348419666052243e-13,   -8.976705182010146e-14,  2.4771544242195988e-14,
    -7.0198370892147685e-15, 2.038703166239861e-15,   -6.057047270643018e-16,
    1.8380935752430455e-16,  -5.689462849193648e-17,  1.7940510478863572e-17
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* Computes K_0 (x), or with is_scaled exp (x) K_0 (x). */
GT_LARGE double
gt_bessel_k0 (double x, int is_scaled)
{
  if (!(x > 0))
    return x == 0 ? INFINITY : NAN;
  if (x <= 2)
    return (gt_k0_near (x * x / 2 - 1) - log (x / 2) * gt_i0 (x)) * (is_scaled ? exp (x) : 1);
  return gt_k0_far (4 / x - 1) / sqrt (x) * (is_scaled ? 1 : exp (-x));
}

/* Computes K_1 (x), or with is_scaled exp (x) K_1 (x). */
GT_LARGE double
gt_bessel_k1 (double x, int is_scaled)
{
  if (!(x > 0))
    return x == 0 ? INFINITY : NAN;
  if (x <= 2)
    return (gt_k1_near (x * x / 2 - 1) / x + log (x / 2) * gt_i1 (x)) * (is_scaled ? exp (x) : 1);
  return gt_k1_far (4 / x - 1) / sqrt (x) * (is_scaled ? 1 : exp (-x));
}

/* --- the Airy function --- */

/* Ai (x) for x from -5 to -1, with t = x / 2 + 3 / 2 */
GT_LARGE double
gt_airy_left (double t)
{
  static const double c[27] = {
    0.18537529824581447,    0.12201956261782754,     0.39638093688309267,
    -0.06902253001698685,   -0.1533909501984165,     0.04719018124423955,
    0.014718172891725011,   -0.008370364929993254,   0.00018150194350127557,
    0.0005981439952155146,  -0.00011128219278269081, -1.460878377837148e-05,
    7.47585074841995e-06,   -4.904018721859484e-07,  -2.07812734606458e-07,
    4.468253938625242e-08,  4.0329640965521455e-10,  -1.2856232203806065e-09,
    1.4858830062811526e-10, 1.2281858248015368e-11,  -4.656723066127587e-12,
    2.7988702625503154e-13, 5.700053399865352e-14,   -1.1093026172184625e-14,
    2.1783469617995918e-16, 1.5162142704112038e-16,  -1.845231640066363e-17
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* exp (6 / 5 x) Ai (x) for x from -1 to 2, with t = (2 x - 1) / 3 */
GT_LARGE double
gt_airy_middle (double t)
{
  static const double c[21] = {
    0.34345212063096786,    0.1198476840805527,      -0.07436914193658871,   -0.008180954602825818,
    0.0042018707872009025,  0.00016431989195670103,  -0.0001467761028539148, 2.67501731779116e-06,
    3.318287359930608e-06,  -2.2464547433523744e-07, -4.816772093276479e-08, 6.067280540701892e-09,
    3.866615794670327e-10,  -9.88509432333227e-11,   2.9116958236356693e-13, 1.0718675342035869e-12,
    -5.485452061477823e-14, -7.481656585236766e-15,  8.340409415372268e-16,  2.2773676392375945e-17,
    -7.475407786268657e-18
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* x^(1/4) exp (z) Ai (x) for z = 2 / 3 x^(3/2) from 15 / 8 on, with t = 15 / (4 z) - 1 */
GT_LARGE double
gt_airy_right (double t)
{
  static const double c[24] = {
    0.277674077653691,       -0.004192411651177686,   0.0002085266486004685,
    -1.7500346716383104e-05, 1.9594111111517443e-06,  -2.656932348616994e-07,
    4.1440429921350904e-08,  -7.204170719855867e-09,  1.3669578683704588e-09,
    -2.7893253674178425e-10, 6.054191829827873e-11,   -1.3860679257212526e-11,
    3.325226702850425e-12,   -8.315056147689478e-13,  2.157904166018683e-13,
    -5.791023436142388e-14,  1.6021908892660802e-14,  -4.558094048308252e-15,
    1.330433085441018e-15,   -3.9765031646498097e-16, 1.2149843241219302e-16,
    -3.7892274874159887e-17, 1.2046590157214046e-17,  -3.8993824137705446e-18
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* the factor P of the cosine, see below, for z from 7 on, with t = 98 / z² - 1 */
GT_LARGE double
gt_airy_cosine (double t)
{
  static const double c[14] = { 0.9996294290241619,     -0.00036789099204606645,
                                2.6229560769803877e-06, -5.4779447264268473e-08,
                                2.1146863699027885e-09, -1.229164689423735e-10,
                                9.599470277807887e-12,  -9.384707876903307e-13,
                                1.0954919772918682e-13, -1.4770205244953075e-14,
                                2.24492499377601e-15,   -3.7765056665165985e-16,
                                6.932346107734723e-17,  -1.3730474650027094e-17 };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* z Q, see below, for z from 7 on, with t = 98 / z² - 1 */
GT_LARGE double
gt_airy_sine (double t)
{
  static const double c[17] = {
    0.0690729900619602,    -0.000366326537638498,   4.9708007374516426e-06, -1.4912902528267405e-07,
    7.351324497891411e-09, -5.119007214652162e-10,  4.6044841508329085e-11, -5.049841627609366e-12,
    6.490729227142825e-13, -9.50416451640971e-14,   1.5523754850255418e-14, -2.7832792601383006e-15,
    5.40913748412274e-16,  -1.1280965773653638e-16, 2.504185267043146e-17,  -5.877133772161588e-18,
    1.450113927759248e-18
  };

  return GT_CHEBYSHEV_SUM (c, t);
}

/* Computes Ai (x). With a = |x| and z = 2 / 3 a^(3/2), Ai (-a) = (cos (z - pi / 4) P (z) + sin (z - pi / 4)
 * Q (z)) / (sqrt (pi) a^(1/4)) for large a (DLMF 9.7.9); the rounding error of z is added to the angle. */
GT_LARGE double
gt_airy_ai (double x)
{
  const double a = fabs (x);

  if (x >= -1 && x < 2)
    return exp (-1.2 * x) * gt_airy_middle ((2 * x - 1) / 3);
  if (x >= -5 && x < 2)
    return gt_airy_left (x / 2 + 1.5);
  if (isinf (x))
    return 0;
  else
    {
      const double root = sqrt (a), product = a * root, z = 2 * product / 3;
      const double root_error = fma (-root, root, a) / (2 * root);
      const double product_error = fma (a, root, -product) + a * root_error;
      const double error = (fma (-3.0, z, 2 * product) + 2 * product_error) / 3;
      double c, s;

      if (x > 0)
        return gt_airy_right (3.75 / z - 1) / sqrt (root) * exp (-z) * (1 - error);
      c = cos (z) - error * sin (z);
      s = sin (z) + error * cos (z);
      return ((c + s) * gt_airy_cosine (98 / (z * z) - 1)
              + (s - c) * gt_airy_sine (98 / (z * z) - 1) / z)
             * 0.39894228040143267794 / sqrt (root);
    }
}
