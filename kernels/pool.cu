/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pooling. */

#include "gtorch-plain.cuh"
#include "gtorch-pool-params.h"

template <typename T, typename C>
static __device__ __forceinline__ void
max_pool (const GtPool &p)
{
  for (GT_LOOP (o, p.n))
    {
      int64_t ox, oy, image = gt_split (gt_split (o, p.out[1], &ox), p.out[0], &oy), at = -1;
      const int64_t base = image * p.in[0] * p.in[1];
      C best = 0;

      for (int64_t ky = 0; ky < p.kernel[0]; ky++)
        for (int64_t kx = 0; kx < p.kernel[1]; kx++)
          {
            const int64_t y = oy * p.stride[0] - p.padding[0] + ky * p.dilation[0];
            const int64_t x = ox * p.stride[1] - p.padding[1] + kx * p.dilation[1];

            if (y < 0 || x < 0 || y >= p.in[0] || x >= p.in[1])
              continue;
            const C v = gt_get<C, T> (p.x, base + y * p.in[1] + x);

            if (at < 0 || v > best || v != v)
              {
                best = v;
                at = y * p.in[1] + x;
              }
          }
      gt_put<T> (p.y, o, best);
      p.indices[o] = at;
    }
}

/* Computes the gradient of max pooling. For each element of the images, the windows that contain it are
 * searched in order for the element's index. */
template <typename T, typename C>
static __device__ __forceinline__ void
max_pool_grad (const GtPool &p)
{
  const int64_t *indices = p.indices;

  for (GT_LOOP (e, p.n))
    {
      int64_t x, y, image = gt_split (gt_split (e, p.in[1], &x), p.in[0], &y);
      int64_t first[2], last[2];
      const int64_t at[2] = { y, x };
      C sum = 0;

      for (int d = 0; d < 2; d++)
        {
          const int64_t reach = at[d] + p.padding[d] - (p.kernel[d] - 1) * p.dilation[d];

          first[d] = reach > 0 ? (reach + p.stride[d] - 1) / p.stride[d] : 0;
          last[d] = min ((at[d] + p.padding[d]) / p.stride[d] + 1, p.out[d]);
        }
      for (int64_t oy = first[0]; oy < last[0]; oy++)
        for (int64_t ox = first[1]; ox < last[1]; ox++)
          {
            const int64_t o = (image * p.out[0] + oy) * p.out[1] + ox;

            if (indices[o] == y * p.in[1] + x)
              sum += gt_get<C, T> (p.x, o);
          }
      gt_put<T> (p.y, e, sum);
    }
}

GT_DEVICE int64_t
window (const GtPool &p, int d, int64_t o, int64_t *first, int64_t *last)
{
  int64_t counted;

  if (p.adaptive)
    {
      *first = o * p.in[d] / p.out[d];
      *last = ((o + 1) * p.in[d] + p.out[d] - 1) / p.out[d];
      return *last - *first;
    }
  *first = o * p.stride[d] - p.padding[d];
  *last = min (*first + p.kernel[d], p.in[d] + p.padding[d]);
  counted = *last - *first;
  *first = max (*first, (int64_t) 0);
  *last = min (*last, p.in[d]);
  return p.include_pad ? counted : *last - *first;
}

template <typename T, typename C>
static __device__ __forceinline__ void
mean_pool (const GtPool &p)
{
  for (GT_LOOP (o, p.n))
    {
      int64_t ox, oy, image = gt_split (gt_split (o, p.out[1], &ox), p.out[0], &oy);
      int64_t y0, y1, x0, x1, n = window (p, 0, oy, &y0, &y1) * window (p, 1, ox, &x0, &x1);
      double sum = 0; /* float64, as windows may have millions of elements */

      for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
          sum += gt_get<C, T> (p.x, (image * p.in[0] + y) * p.in[1] + x);
      gt_put<T> (p.y, o, (C) (sum / (double) (p.divisor != 0 ? p.divisor : n)));
    }
}

/* Computes the gradient of mean pooling. Each element of the images collects the gradients of the windows
 * that contain it. */
template <typename T, typename C>
static __device__ __forceinline__ void
mean_pool_grad (const GtPool &p)
{
  for (GT_LOOP (e, p.n))
    {
      int64_t x, y, image = gt_split (gt_split (e, p.in[1], &x), p.in[0], &y);
      int64_t first[2] = { 0, 0 }, last[2] = { p.out[0], p.out[1] };
      const int64_t at[2] = { y, x };
      C sum = 0;

      for (int d = 0; d < 2; d++)
        if (p.adaptive)
          { /* o n / m <= at < ceil ((o + 1) n / m), with a margin, as windows are checked below */
            first[d] = max (at[d] * p.out[d] / p.in[d] - 1, (int64_t) 0);
            last[d] = min ((at[d] + 1) * p.out[d] / p.in[d] + 2, p.out[d]);
          }
        else
          {
            const int64_t reach = at[d] + p.padding[d] - p.kernel[d] + 1;

            first[d] = reach > 0 ? (reach + p.stride[d] - 1) / p.stride[d] : 0;
            last[d] = min ((at[d] + p.padding[d]) / p.stride[d] + 1, p.out[d]);
          }
      for (int64_t oy = first[0]; oy < last[0]; oy++)
        for (int64_t ox = first[1]; ox < last[1]; ox++)
          {
            int64_t y0, y1, x0, x1, n = window (p, 0, oy, &y0, &y1) * window (p, 1, ox, &x0, &x1);

            if (y >= y0 && y < y1 && x >= x0 && x < x1)
              sum += gt_get<C, T> (p.x, (image * p.out[0] + oy) * p.out[1] + ox)
                     / (C) (p.divisor != 0 ? p.divisor : n);
          }
      gt_put<T> (p.y, e, sum);
    }
}

/* Takes elements of images by index. */
template <typename T, typename C>
static __device__ __forceinline__ void
pool_take (const GtPoolTake &p)
{
  for (GT_LOOP (i, p.n))
    {
      const int64_t at = p.indices[i];
      C value = 0;

      if (at >= 0 && at < p.big)
        value = gt_get<C, T> (p.x, i / p.small * p.big + at);
      else
        gt_report (p.report, p.op, at, p.big);
      gt_put<T> (p.y, i, value);
    }
}

#define EACH(dtype, T, C)                                                           \
  GT_KERNEL (gt_max_pool_##dtype, GtPool, 1024) { max_pool<T, C> (p); }             \
  GT_KERNEL (gt_max_pool_grad_##dtype, GtPool, 1024) { max_pool_grad<T, C> (p); }   \
  GT_KERNEL (gt_mean_pool_##dtype, GtPool, 1024) { mean_pool<T, C> (p); }           \
  GT_KERNEL (gt_mean_pool_grad_##dtype, GtPool, 1024) { mean_pool_grad<T, C> (p); } \
  GT_KERNEL (gt_pool_take_##dtype, GtPoolTake, 1024) { pool_take<T, C> (p); }
GT_EACH_FLOAT (EACH)
