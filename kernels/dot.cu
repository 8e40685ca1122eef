/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Products of long vectors, which only read memory: libraries compute them as matrices of one row and one
 * column. The order of the additions depends on the length and the alignment only. */

#include "gtorch-dot-params.h"
#include "gtorch-plain.cuh"
#include "gtorch-pointwise.cuh"

template <typename T, typename C>
static __device__ __forceinline__ void
dot (const GtDot &p)
{
  constexpr int V = 16 / sizeof (T), U = 4;
  typedef gt_vector<T, V> Vector;
  __shared__ C shared[32];
  const Vector *a = (const Vector *) p.a, *b = (const Vector *) p.b;
  const int64_t threads = (int64_t) gridDim.x * blockDim.x;
  const int64_t own = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t n_vectors = p.is_aligned ? p.n / V : 0;
  int64_t i = own;
  C sum[U] = {};

  for (; i + (U - 1) * threads < n_vectors; i += U * threads)
    {
      Vector x[U], y[U];

#pragma unroll
      for (int u = 0; u < U; u++)
        {
          x[u] = a[i + u * threads];
          y[u] = b[i + u * threads];
        }
#pragma unroll
      for (int u = 0; u < U; u++)
#pragma unroll
        for (int v = 0; v < V; v++)
          sum[u] += gt_convert<C>::from (x[u].at[v]) * gt_convert<C>::from (y[u].at[v]);
    }
  for (; i < n_vectors; i += threads)
    {
      const Vector x = a[i], y = b[i];

#pragma unroll
      for (int v = 0; v < V; v++)
        sum[v % U] += gt_convert<C>::from (x.at[v]) * gt_convert<C>::from (y.at[v]);
    }
  for (i = n_vectors * V + own; i < p.n; i += threads)
    sum[0] += gt_get<C, T> (p.a, i) * gt_get<C, T> (p.b, i);
  sum[0] = gt_row_reduce ((sum[0] + sum[1]) + (sum[2] + sum[3]), gt_sum_of (), shared);
  if (threadIdx.x == 0)
    ((C *) p.partial)[blockIdx.x] = sum[0];
}

template <typename T, typename C>
static __device__ __forceinline__ void
dot_end (const GtDot &p)
{
  __shared__ C shared[32];
  C sum = 0;

  for (uint32_t i = threadIdx.x; i < p.blocks; i += blockDim.x)
    sum += ((const C *) p.partial)[i];
  sum = gt_row_reduce (sum, gt_sum_of (), shared);
  if (threadIdx.x == 0)
    gt_put<T> (p.y, 0, sum);
}

#define DOT(dtype, T, C)                                    \
  GT_KERNEL (gt_dot_##dtype, GtDot, 256) { dot<T, C> (p); } \
  GT_KERNEL (gt_dot_end_##dtype, GtDot, 1024) { dot_end<T, C> (p); }
GT_EACH_FLOAT (DOT)
