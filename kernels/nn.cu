/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Losses of class indices, and pooling. */

#include "gtorch-pointwise.cuh"
#include "gtorch-plain.cuh"

/* --- negative log likelihood, of x [outer, classes n[1], inner n[2]], n[0] targets --- in x, target
 * (int64), weight (double or NULL); n[3] ignored index, n[4] op; d[0] smoothing */
template <typename T, typename C>
GT_DEVICE double
nll_of (const GtPlain &p, int64_t i, double *total)
{
  const int64_t target = ((const int64_t *) p.in[1])[i];
  int64_t in, outer = gt_split (i, p.n[2], &in), base = outer * p.n[1] * p.n[2] + in;
  const double *weight = (const double *) p.in[2];
  double loss, w;

  if (target == p.n[3])
    return 0;
  if (target < 0 || target >= p.n[1])
    {
      gt_report (p.report, p.n[4], target, p.n[1]);
      return 0;
    }
  w = weight != NULL ? weight[target] : 1;
  *total += w;
  loss = -(1 - p.d[0]) * w * gt_get<C, T> (p.in[0], base + target * p.n[2]);
  if (p.d[0] > 0)
    for (int64_t c = 0; c < p.n[1]; c++)
      loss -= p.d[0] / p.n[1] * (weight != NULL ? weight[c] : 1)
              * gt_get<C, T> (p.in[0], base + c * p.n[2]);
  return loss;
}

template <typename T, typename C>
static __device__ __forceinline__ void
nll_each (const GtPlain &p)
{
  double total = 0;

  for (GT_LOOP (i, p.n[0]))
    gt_put<T> (p.out[0], i, nll_of<T, C> (p, i, &total));
}

/* Computes the sum, or, if n[5], the weighted mean, in one block: out[0] */
template <typename T, typename C>
static __device__ __forceinline__ void
nll_all (const GtPlain &p)
{
  __shared__ double shared[32];
  double total = 0, sum = 0;

  for (int64_t i = threadIdx.x; i < p.n[0]; i += blockDim.x)
    sum += nll_of<T, C> (p, i, &total);
  sum = gt_row_reduce (sum, gt_sum_of (), shared);
  total = gt_row_reduce (total, gt_sum_of (), shared);
  if (threadIdx.x == 0)
    gt_put<T> (p.out[0], 0, p.n[5] ? sum / total : sum);
}

/* Computes the total weight of the targets, by which the mean divides, in one block: out[0] (double) */
GT_KERNEL (gt_nll_total_f64, GtPlain, 1024)
{
  __shared__ double shared[32];
  const double *weight = (const double *) p.in[2];
  double total = 0;

  for (int64_t i = threadIdx.x; i < p.n[0]; i += blockDim.x)
    {
      const int64_t target = ((const int64_t *) p.in[1])[i];

      if (target == p.n[3])
        continue;
      if (target < 0 || target >= p.n[1])
        gt_report (p.report, p.n[4], target, p.n[1]);
      else
        total += weight != NULL ? weight[target] : 1;
    }
  total = gt_row_reduce (total, gt_sum_of (), shared);
  if (threadIdx.x == 0)
    *(double *) p.out[0] = total;
}

/* Computes the gradient of x, over all elements. in: g (one per target, or a single one: n[6]), target,
 * weight, total (or NULL) */
template <typename T, typename C>
static __device__ __forceinline__ void
nll_grad (const GtPlain &p)
{
  const double *weight = (const double *) p.in[2];
  const double scale = p.in[3] != NULL ? 1 / *(const double *) p.in[3] : 1;

  for (GT_LOOP (e, p.n[0] * p.n[1]))
    {
      int64_t in, c, outer = gt_split (gt_split (e, p.n[2], &in), p.n[1], &c);
      const int64_t i = outer * p.n[2] + in, target = ((const int64_t *) p.in[1])[i];
      double value = 0;

      if (target != p.n[3])
        {
          const double g = -scale * (double) gt_get<C, T> (p.in[0], p.n[6] ? 0 : i);
          const double w = weight != NULL ? weight[c] : 1;

          value = g * (p.d[0] / p.n[1]) * w;
          if (p.d[0] <= 0)
            value = 0;
          if (c == target)
            value += g * (1 - p.d[0]) * w;
        }
      gt_put<T> (p.out[0], e, value);
    }
}

/* --- pooling: images of n[0] x n[1], results of n[2] x n[3], kernel n[4..], stride n[6..], padding n[8..],
 * dilation n[10..]; n[12] adaptive, n[13] do zeros of the padding count? n[14] divisor, n[15] results --- */
template <typename T, typename C>
static __device__ __forceinline__ void
max_pool (const GtPlain &p)
{
  for (GT_LOOP (o, p.n[15]))
    {
      int64_t ox, oy, image = gt_split (gt_split (o, p.n[3], &ox), p.n[2], &oy), at = -1;
      const int64_t base = image * p.n[0] * p.n[1];
      C best = 0;

      for (int64_t ky = 0; ky < p.n[4]; ky++)
        for (int64_t kx = 0; kx < p.n[5]; kx++)
          {
            const int64_t y = oy * p.n[6] - p.n[8] + ky * p.n[10];
            const int64_t x = ox * p.n[7] - p.n[9] + kx * p.n[11];

            if (y < 0 || x < 0 || y >= p.n[0] || x >= p.n[1])
              continue;
            const C v = gt_get<C, T> (p.in[0], base + y * p.n[1] + x);

            if (at < 0 || v > best || v != v)
              {
                best = v;
                at = y * p.n[1] + x;
              }
          }
      gt_put<T> (p.out[0], o, best);
      ((int64_t *) p.out[1])[o] = at;
    }
}

/* Computes the gradient of max pooling, n[15] elements. Each element of the images searches the windows
 * that contain it, in order, for its own index in in[1]. */
template <typename T, typename C>
static __device__ __forceinline__ void
max_pool_grad (const GtPlain &p)
{
  const int64_t *indices = (const int64_t *) p.in[1];

  for (GT_LOOP (e, p.n[15]))
    {
      int64_t x, y, image = gt_split (gt_split (e, p.n[1], &x), p.n[0], &y);
      int64_t first[2], last[2];
      const int64_t at[2] = { y, x };
      C sum = 0;

      for (int d = 0; d < 2; d++)
        {
          const int64_t reach = at[d] + p.n[8 + d] - (p.n[4 + d] - 1) * p.n[10 + d];

          first[d] = reach > 0 ? (reach + p.n[6 + d] - 1) / p.n[6 + d] : 0;
          last[d] = min ((at[d] + p.n[8 + d]) / p.n[6 + d] + 1, p.n[2 + d]);
        }
      for (int64_t oy = first[0]; oy < last[0]; oy++)
        for (int64_t ox = first[1]; ox < last[1]; ox++)
          {
            const int64_t o = (image * p.n[2] + oy) * p.n[3] + ox;

            if (indices[o] == y * p.n[1] + x)
              sum += gt_get<C, T> (p.in[0], o);
          }
      gt_put<T> (p.out[0], e, sum);
    }
}

GT_DEVICE int64_t
window (const GtPlain &p, int d, int64_t o, int64_t *first, int64_t *last)
{
  int64_t counted;

  if (p.n[12])
    {
      *first = o * p.n[d] / p.n[2 + d];
      *last = ((o + 1) * p.n[d] + p.n[2 + d] - 1) / p.n[2 + d];
      return *last - *first;
    }
  *first = o * p.n[6 + d] - p.n[8 + d];
  *last = min (*first + p.n[4 + d], p.n[d] + p.n[8 + d]);
  counted = *last - *first;
  *first = max (*first, (int64_t) 0);
  *last = min (*last, p.n[d]);
  return p.n[13] ? counted : *last - *first;
}

template <typename T, typename C>
static __device__ __forceinline__ void
mean_pool (const GtPlain &p)
{
  for (GT_LOOP (o, p.n[15]))
    {
      int64_t ox, oy, image = gt_split (gt_split (o, p.n[3], &ox), p.n[2], &oy);
      int64_t y0, y1, x0, x1, n = window (p, 0, oy, &y0, &y1) * window (p, 1, ox, &x0, &x1);
      double sum = 0; /* windows may have millions of elements */

      for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
          sum += gt_get<C, T> (p.in[0], (image * p.n[0] + y) * p.n[1] + x);
      gt_put<T> (p.out[0], o, (C) (sum / (double) (p.n[14] != 0 ? p.n[14] : n)));
    }
}

/* Computes the gradient of mean pooling, n[15] elements. Each element of the images collects from the
 * windows that contain it. */
template <typename T, typename C>
static __device__ __forceinline__ void
mean_pool_grad (const GtPlain &p)
{
  for (GT_LOOP (e, p.n[15]))
    {
      int64_t x, y, image = gt_split (gt_split (e, p.n[1], &x), p.n[0], &y);
      int64_t first[2] = { 0, 0 }, last[2] = { p.n[2], p.n[3] };
      const int64_t at[2] = { y, x };
      C sum = 0;

      for (int d = 0; d < 2; d++)
        if (p.n[12])
          { /* o n / m <= at < ceil ((o + 1) n / m), with a margin: the windows are checked below */
            first[d] = max (at[d] * p.n[2 + d] / p.n[d] - 1, (int64_t) 0);
            last[d] = min ((at[d] + 1) * p.n[2 + d] / p.n[d] + 2, p.n[2 + d]);
          }
        else
          {
            const int64_t reach = at[d] + p.n[8 + d] - p.n[4 + d] + 1;

            first[d] = reach > 0 ? (reach + p.n[6 + d] - 1) / p.n[6 + d] : 0;
            last[d] = min ((at[d] + p.n[8 + d]) / p.n[6 + d] + 1, p.n[2 + d]);
          }
      for (int64_t oy = first[0]; oy < last[0]; oy++)
        for (int64_t ox = first[1]; ox < last[1]; ox++)
          {
            int64_t y0, y1, x0, x1, n = window (p, 0, oy, &y0, &y1) * window (p, 1, ox, &x0, &x1);

            if (y >= y0 && y < y1 && x >= x0 && x < x1)
              sum += gt_get<C, T> (p.in[0], (image * p.n[2] + oy) * p.n[3] + ox)
                     / (C) (p.n[14] != 0 ? p.n[14] : n);
          }
      gt_put<T> (p.out[0], e, sum);
    }
}

/* Takes elements by index: in[0] big [images, n[1]], in[1] indices [images, n[2]], n[0] all indices; n[3]
 * op */
template <typename T, typename C>
static __device__ __forceinline__ void
pool_take (const GtPlain &p)
{
  for (GT_LOOP (i, p.n[0]))
    {
      const int64_t at = ((const int64_t *) p.in[1])[i];
      C value = 0;

      if (at >= 0 && at < p.n[1])
        value = gt_get<C, T> (p.in[0], i / p.n[2] * p.n[1] + at);
      else
        gt_report (p.report, p.n[3], at, p.n[1]);
      gt_put<T> (p.out[0], i, value);
    }
}

#define EACH(dtype, T, C)                                                            \
  GT_KERNEL (gt_nll_each_##dtype, GtPlain, 1024) { nll_each<T, C> (p); }             \
  GT_KERNEL (gt_nll_all_##dtype, GtPlain, 1024) { nll_all<T, C> (p); }               \
  GT_KERNEL (gt_nll_grad_##dtype, GtPlain, 1024) { nll_grad<T, C> (p); }             \
  GT_KERNEL (gt_max_pool_##dtype, GtPlain, 1024) { max_pool<T, C> (p); }             \
  GT_KERNEL (gt_max_pool_grad_##dtype, GtPlain, 1024) { max_pool_grad<T, C> (p); }   \
  GT_KERNEL (gt_mean_pool_##dtype, GtPlain, 1024) { mean_pool<T, C> (p); }           \
  GT_KERNEL (gt_mean_pool_grad_##dtype, GtPlain, 1024) { mean_pool_grad<T, C> (p); } \
  GT_KERNEL (gt_pool_take_##dtype, GtPlain, 1024) { pool_take<T, C> (p); }
GT_EACH_FLOAT (EACH)
