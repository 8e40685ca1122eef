/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Counts of random events from numbers that are uniform in [0, 1), for both CPU loops and kernels, computed
 * in double. */

/* Finds the least k whose probability of at most k events exceeds u, for a mean number of events `rate`: NaN
 * for a negative rate. Small rates are added up from 0 events on. For others an estimate (Cornish and Fisher)
 * is corrected by the sums around it, which are incomplete gamma functions. */
GT_CALLED double
gt_poisson (double rate, double u)
{
  double k = 0, term, sum, z;
  int i;

  if (!(rate >= 0) || !(u >= 0))
    return NAN;
  if (rate == 0 || isinf (rate))
    return rate;
  if (rate < 30)
    {
      term = sum = exp (-rate);
      while (sum <= u && term > sum * 0x1p-60)
        {
          k += 1;
          term *= rate / k;
          sum += term;
        }
      return k;
    }
  z = gt_erfinv (2 * (u > 0x1p-54 ? u : 0x1p-54) - 1) * 1.41421356237309504880;
  k = floor (rate + sqrt (rate) * z + (z * z - 1) / 6);
  k = k > 0 ? k : 0;
  term = gt_gamma_density (k, rate, 0);
  sum = gt_igamma (k + 1, rate, 1, 0);
  for (i = 0; i < 1000 && k > 0 && sum - term > u; i++)
    {
      sum -= term;
      term *= k / rate;
      k -= 1;
    }
  for (i = 0; i < 1000 && sum <= u && term > 0; i++)
    {
      k += 1;
      term *= rate / k;
      sum += term;
    }
  return k;
}

/* Finds a number of successes among n trials of probability p: NaN if n is no count, or p no probability. The
 * probabilities are taken away from u one after the other, from the most likely number on to both sides, so
 * that the time grows with the standard deviation. */
GT_CALLED double
gt_binomial (double n, double p, double u)
{
  const double q = 1 - p;
  double low, high, below, above;

  if (!(n >= 0) || n != floor (n) || isinf (n) || !(p >= 0) || !(p <= 1) || !(u >= 0))
    return NAN;
  if (n == 0 || p == 0)
    return 0;
  if (p == 1)
    return n;
  low = high = floor (fmin ((n + 1) * p, n));
  below = above = gt_gamma_density (low, n * p, 0) * gt_gamma_density (n - low, n * q, 0)
                  / gt_gamma_density (n, n, 0);
  u -= below;
  while (u >= 0)
    {
      above = high < n ? above * ((n - high) / (high + 1) * (p / q)) : 0;
      below = low > 0 ? below * (low / (n - low + 1) * (q / p)) : 0;
      high += 1;
      low -= 1;
      if (above <= 0 && below <= 0)
        return floor (n * p);
      u -= above;
      if (u < 0)
        return high;
      u -= below;
      if (u < 0)
        return low;
    }
  return low;
}
