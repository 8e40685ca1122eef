/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Variance, computed from the moments of parts: (mean, sum of squared deviations, count). */

#include "gtorch-moments.cuh"
#include "gtorch-plain.cuh"
#include "gtorch-var-params.h"

/* Computes the moments of each part of the rows. */
template <typename T, typename C>
static __device__ __forceinline__ void
moments_rows (const GtMoments &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n, parts = p.parts, size = (n + parts - 1) / parts;

  for (int64_t i = blockIdx.x; i < p.rows * parts; i += gridDim.x)
    {
      const int64_t row = i / parts, begin = i % parts * size, end = min (begin + size, n);
      const int64_t base = row * n;
      C sum = 0, mean, square = 0, count = end > begin ? end - begin : 0;

      for (int64_t j = begin + threadIdx.x; j < end; j += blockDim.x)
        sum += gt_get<C, T> (p.x, base + j);
      mean = gt_row_reduce (sum, gt_sum_of (), shared) / (count > 0 ? count : 1);
      for (int64_t j = begin + threadIdx.x; j < end; j += blockDim.x)
        {
          const C d = gt_get<C, T> (p.x, base + j) - mean;

          square += d * d;
        }
      square = gt_row_reduce (square, gt_sum_of (), shared);
      if (threadIdx.x == 0)
        {
          C *to = (C *) p.moments + i * 3;

          to[0] = mean;
          to[1] = square;
          to[2] = count;
        }
    }
}

/* Computes the variance from the moments of a row's parts. */
template <typename T, typename C>
static __device__ __forceinline__ void
variance (const GtVariance &p)
{
  for (GT_LOOP (row, p.rows))
    {
      const C *from = (const C *) p.moments + row * p.parts * 3;
      C mean = from[0], square = from[1], count = from[2], v;

      for (int64_t i = 1; i < p.parts; i++)
        gt_merge_moments (mean, square, count, from[3 * i], from[3 * i + 1], from[3 * i + 2]);
      /* a NaN stays NaN */
      v = square / (p.n <= p.correction ? (C) 0 : (C) (p.n - p.correction));
      gt_put<T> (p.y, row, p.root ? sqrt (v) : v);
    }
}

#define EACH(dtype, T, C)                                                          \
  GT_KERNEL (gt_moments_rows_##dtype, GtMoments, 1024) { moments_rows<T, C> (p); } \
  GT_KERNEL (gt_variance_##dtype, GtVariance, 1024) { variance<T, C> (p); }
GT_EACH_FLOAT (EACH)
