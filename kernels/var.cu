/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Variance, computed from the moments of parts: (mean, sum of squared deviations, count). */

#include "gtorch-moments.cuh"
#include "gtorch-plain.cuh"
#include "gtorch-pointwise.cuh"
#include "gtorch-var-params.h"

/* Adds the first m numbers of a thread. */
template <typename C, int N>
GT_DEVICE void
add_numbers (const C (&x)[N], int m, C &mean, C &square, C &count)
{
  C sum = 0, own, spread = 0;

#pragma unroll
  for (int i = 0; i < N; i++)
    sum += i < m ? x[i] : (C) 0;
  own = sum / m;
#pragma unroll
  for (int i = 0; i < N; i++)
    spread += i < m ? (x[i] - own) * (x[i] - own) : (C) 0;
  gt_merge_moments (mean, square, count, own, spread, (C) m);
}

/* Computes the moments of many numbers, which are read once, with the result in thread 0. Whether they are
 * read as vectors does not change which thread gets which. */
template <typename T, typename C>
GT_DEVICE void
long_moments (const T *x, int64_t n, C &mean, C &square, C &count)
{
  constexpr int V = 16 / sizeof (T), AT_ONCE = 64 / sizeof (C); /* numbers of a thread */
  __shared__ C shared[3][32];
  const bool aligned = ((uintptr_t) x & 15) == 0;
  const int64_t chunk = (int64_t) AT_ONCE * blockDim.x;
  int64_t done = 0;
  C numbers[AT_ONCE];
  int m = 0;

  mean = square = count = 0;
  for (; done + chunk <= n; done += chunk)
    {
#pragma unroll
      for (int u = 0; u < AT_ONCE / V; u++)
        {
          const T *from = x + done + ((int64_t) u * blockDim.x + threadIdx.x) * V;
          gt_vector<T, V> v;

          if (aligned)
            v = *(const gt_vector<T, V> *) from;
          else
#pragma unroll
            for (int k = 0; k < V; k++)
              v.at[k] = from[k];
#pragma unroll
          for (int k = 0; k < V; k++)
            numbers[u * V + k] = gt_convert<C>::from (v.at[k]);
        }
      add_numbers (numbers, AT_ONCE, mean, square, count);
    }
#pragma unroll
  for (int i = 0; i < AT_ONCE; i++)
    if (done + threadIdx.x + (int64_t) i * blockDim.x < n)
      {
        numbers[i] = gt_get<C, T> (x, done + threadIdx.x + (int64_t) i * blockDim.x);
        m = i + 1;
      }
  if (m > 0)
    add_numbers (numbers, m, mean, square, count);
  gt_merge_warp (mean, square, count);
  __syncthreads ();
  if (threadIdx.x % 32 == 0)
    {
      shared[0][threadIdx.x / 32] = mean;
      shared[1][threadIdx.x / 32] = square;
      shared[2][threadIdx.x / 32] = count;
    }
  __syncthreads ();
  if (threadIdx.x < 32)
    {
      const bool is_one = threadIdx.x < blockDim.x / 32;

      mean = is_one ? shared[0][threadIdx.x] : (C) 0;
      square = is_one ? shared[1][threadIdx.x] : (C) 0;
      count = is_one ? shared[2][threadIdx.x] : (C) 0;
      gt_merge_warp (mean, square, count);
    }
}

/* Computes the moments of each part of the rows. */
template <typename T, typename C>
static __device__ __forceinline__ void
moments_rows (const GtMoments &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n, parts = p.parts, least = (n + parts - 1) / parts;
  const bool is_long = least > 16 * blockDim.x;
  const int64_t size = is_long ? (least + 15) / 16 * 16 : least; /* for vectors */

  for (int64_t i = blockIdx.x; i < p.rows * parts; i += gridDim.x)
    {
      const int64_t row = i / parts, begin = min (i % parts * size, n), end = min (begin + size, n);
      const int64_t base = row * n;
      C sum = 0, mean, square = 0, count = end - begin;

      if (is_long)
        long_moments<T, C> ((const T *) p.x + base + begin, end - begin, mean, square, count);
      else
        {
          for (int64_t j = begin + threadIdx.x; j < end; j += blockDim.x)
            sum += gt_get<C, T> (p.x, base + j);
          mean = gt_row_reduce (sum, gt_sum_of (), shared) / (count > 0 ? count : 1);
          for (int64_t j = begin + threadIdx.x; j < end; j += blockDim.x)
            {
              const C d = gt_get<C, T> (p.x, base + j) - mean;

              square += d * d;
            }
          square = gt_row_reduce (square, gt_sum_of (), shared);
        }
      if (threadIdx.x == 0)
        {
          C *to = (C *) p.moments + i * 3;

          to[0] = mean;
          to[1] = square;
          to[2] = count;
        }
    }
}

/* Computes the variance from the moments of a row's parts, with p.width threads for each row: 1 or 32. */
template <typename T, typename C>
static __device__ __forceinline__ void
variance (const GtVariance &p)
{
  for (GT_LOOP (at, p.rows * p.width))
    {
      const int64_t row = at / p.width;
      const C *from = (const C *) p.moments + row * p.parts * 3;
      C mean = 0, square = 0, count = 0, v;

      for (int64_t i = at % p.width; i < p.parts; i += p.width)
        gt_merge_moments (mean, square, count, from[3 * i], from[3 * i + 1], from[3 * i + 2]);
      if (p.width > 1)
        gt_merge_warp (mean, square, count);
      /* a NaN stays NaN */
      v = square / (p.n <= p.correction ? (C) 0 : (C) (p.n - p.correction));
      if (at % p.width == 0)
        gt_put<T> (p.y, row, p.root ? sqrt (v) : v);
    }
}

#define EACH(dtype, T, C)                                                          \
  GT_KERNEL (gt_moments_rows_##dtype, GtMoments, 1024) { moments_rows<T, C> (p); } \
  GT_KERNEL (gt_variance_##dtype, GtVariance, 1024) { variance<T, C> (p); }
GT_EACH_FLOAT (EACH)
