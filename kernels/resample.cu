/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Resampling. A result is a weighted sum over a box of elements, whose weights are products of those along
 * each dimension; for the gradient, each element collects those of the results that it is a part of. */

#include "gtorch-plain.cuh"
#include "gtorch-resample-params.h"

/* The elements that a result along a dimension is made of: n from `first` on. P is the type of positions. */
template <typename P> struct Taps
{
  int64_t first, n;
  P weights[4];
  P center, width, sum; /* for smooth means */
};

template <typename P>
GT_DEVICE P
smooth_weight (const GtResample &p, P x)
{
  const P a = (P) -0.5;

  x = x < 0 ? -x : x;
  if (p.method == GT_RESAMPLE_LINEAR_SMOOTH)
    return x < 1 ? 1 - x : 0;
  if (x < 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

template <typename P>
GT_DEVICE P
tap_weight (const GtResample &p, const Taps<P> &taps, int64_t k)
{
  if (p.method < GT_RESAMPLE_LINEAR_SMOOTH)
    return taps.weights[k];
  return smooth_weight<P> (p, ((P) (taps.first + k) - taps.center + (P) 0.5) / taps.width)
         / taps.sum;
}

template <typename P>
GT_DEVICE void
find_smooth_taps (const GtResample &p, int d, int64_t o, Taps<P> *taps)
{
  const P scale = (P) p.scale[d], width = scale > 1 ? scale : 1;
  const P reach = (p.method == GT_RESAMPLE_LINEAR_SMOOTH ? 1 : 2) * width;
  const P center = scale * ((P) o + (P) 0.5);
  const int64_t begin = max ((int64_t) (center - reach + (P) 0.5), (int64_t) 0);
  const int64_t end = min ((int64_t) (center + reach + (P) 0.5), p.in[d]);

  taps->first = min (begin, p.in[d] - 1);
  taps->n = max (end - taps->first, (int64_t) 0);
  taps->center = center;
  taps->width = width;
  taps->sum = 1;
  if (taps->n == 0)
    return;
  P sum = 0;
  for (int64_t k = 0; k < taps->n; k++)
    sum += tap_weight<P> (p, *taps, k);
  taps->sum = sum != 0 ? sum : 1;
}

template <typename P>
GT_DEVICE void
find_taps (const GtResample &p, int d, int64_t o, Taps<P> *taps)
{
  const int64_t last = p.in[d] - 1;
  const P half = (P) (p.align_corners || p.method == GT_RESAMPLE_NEAREST ? 0 : 0.5);
  P at = (P) p.scale[d] * ((P) o + half) - half;

  taps->first = 0;
  taps->n = 1;
  taps->weights[0] = 1;
  if (d + (int) p.dims < 3)
    {
      taps->center = (P) 0.5;
      taps->width = taps->sum = 1;
      return;
    }
  if (p.method >= GT_RESAMPLE_LINEAR_SMOOTH)
    {
      find_smooth_taps<P> (p, d, o, taps);
      return;
    }
  if (p.method != GT_RESAMPLE_CUBIC && at < 0)
    at = 0;
  if (p.method == GT_RESAMPLE_NEAREST_EXACT)
    at += (P) 0.5;
  if (p.method == GT_RESAMPLE_LINEAR && p.in[d] == p.out[d])
    at = (P) o;

  const int64_t base = min ((int64_t) floorf ((float) at), last);
  const P difference = at - (P) base, t = difference < 0 ? 0 : difference > 1 ? 1 : difference;

  taps->first = base;
  if (p.method <= GT_RESAMPLE_NEAREST_EXACT)
    return;
  if (p.method == GT_RESAMPLE_LINEAR)
    {
      taps->n = base < last ? 2 : 1;
      taps->weights[0] = base < last ? 1 - t : 1;
      taps->weights[1] = t;
      return;
    }

  /* cubic convolution; elements beyond the edge are those at the edge */
  const P a = (P) -0.75, x[4] = { 1 + t, t, 1 - t, 2 - t };
  const P all[4] = { ((a * x[0] - 5 * a) * x[0] + 8 * a) * x[0] - 4 * a,
                     ((a + 2) * x[1] - (a + 3)) * x[1] * x[1] + 1,
                     ((a + 2) * x[2] - (a + 3)) * x[2] * x[2] + 1,
                     ((a * x[3] - 5 * a) * x[3] + 8 * a) * x[3] - 4 * a };

  taps->first = min (max (base - 1, (int64_t) 0), last);
  taps->n = min (max (base + 2, (int64_t) 0), last) - taps->first + 1;
  for (int k = 0; k < 4; k++)
    taps->weights[k] = 0;
  for (int k = 0; k < 4; k++)
    taps->weights[min (max (base - 1 + k, (int64_t) 0), last) - taps->first] += all[k];
}

/* Finds the position of element i of images of a size, and returns the number of its image. */
GT_DEVICE int64_t
find_position (const GtResample &p, const int64_t *size, int64_t i, int64_t *at)
{
  at[0] = at[1] = 0;
  i = gt_split (i, size[2], &at[2]);
  if (p.dims > 1)
    i = gt_split (i, size[1], &at[1]);
  if (p.dims > 2)
    i = gt_split (i, size[0], &at[0]);
  return i;
}

template <typename T, typename C, typename P>
static __device__ __forceinline__ void
resample (const GtResample &p)
{
  for (GT_LOOP (o, p.n))
    {
      int64_t to[3];
      const int64_t base = find_position (p, p.out, o, to) * p.n_in;
      Taps<P> taps[3];
      C sum = 0;

      for (int d = 0; d < 3; d++)
        find_taps<P> (p, d, to[d], &taps[d]);
      for (int64_t z = 0; z < taps[0].n; z++)
        for (int64_t y = 0; y < taps[1].n; y++)
          {
            const int64_t row = base + ((taps[0].first + z) * p.in[1] + taps[1].first + y) * p.in[2]
                                + taps[2].first;
            const P weight = tap_weight<P> (p, taps[0], z) * tap_weight<P> (p, taps[1], y);

            for (int64_t x = 0; x < taps[2].n; x++)
              sum += (C) (weight * tap_weight<P> (p, taps[2], x)) * gt_get<C, T> (p.x, row + x);
          }
      gt_put<T> (p.y, o, sum);
    }
}

/* Finds a range of results that contains all those along a dimension that an element is a part of. */
GT_DEVICE void
find_results (const GtResample &p, int d, int64_t at, int64_t *first, int64_t *end)
{
  const double scale = p.scale[d];
  const double reach = p.method >= GT_RESAMPLE_LINEAR_SMOOTH ? 2 * (scale > 1 ? scale : 1) + 1
                       : p.method == GT_RESAMPLE_CUBIC       ? 2
                                                             : 1;

  *first = 0;
  *end = p.out[d];
  /* results beyond the edge are made of the elements there */
  if ((double) at - reach > 0 && scale > 0)
    *first = max ((int64_t) (((double) at - reach) / scale) - 1, (int64_t) 0);
  if ((double) at + reach < (double) (p.in[d] - 1) && scale > 0)
    *end = min ((int64_t) (((double) at + reach + 1) / scale) + 2, p.out[d]);
}

/* Finds the weight of an element in result o along a dimension; returns false if it is no part of it. */
template <typename P>
GT_DEVICE bool
find_weight (const GtResample &p, int d, int64_t o, int64_t at, P *weight)
{
  Taps<P> taps;

  find_taps<P> (p, d, o, &taps);
  if (at < taps.first || at >= taps.first + taps.n)
    return false;
  *weight = tap_weight<P> (p, taps, at - taps.first);
  return true;
}

template <typename T, typename C>
static __device__ __forceinline__ void
resample_grad (const GtResample &p)
{
  for (GT_LOOP (e, p.n))
    {
      int64_t at[3], first[3], end[3];
      const int64_t base = find_position (p, p.in, e, at) * p.n_out;
      C sum = 0, weights[3];

      for (int d = 0; d < 3; d++)
        find_results (p, d, at[d], &first[d], &end[d]);
      for (int64_t z = first[0]; z < end[0]; z++)
        {
          if (!find_weight<C> (p, 0, z, at[0], &weights[0]))
            continue;
          for (int64_t y = first[1]; y < end[1]; y++)
            {
              if (!find_weight<C> (p, 1, y, at[1], &weights[1]))
                continue;
              for (int64_t x = first[2]; x < end[2]; x++)
                if (find_weight<C> (p, 2, x, at[2], &weights[2]))
                  sum += weights[0] * weights[1] * weights[2]
                         * gt_get<C, T> (p.x, base + (z * p.out[1] + y) * p.out[2] + x);
            }
        }
      gt_put<T> (p.y, e, sum);
    }
}

#define EACH(dtype, T, C)                                                      \
  GT_KERNEL (gt_resample_##dtype, GtResample, 1024) { resample<T, C, C> (p); } \
  GT_KERNEL (gt_resample_grad_##dtype, GtResample, 1024) { resample_grad<T, C> (p); }
GT_EACH_FLOAT (EACH)

#define EACH_INTEGER(dtype, T, C) \
  GT_KERNEL (gt_resample_##dtype, GtResample, 1024) { resample<T, C, float> (p); }
GT_EACH_INTEGER (EACH_INTEGER)
