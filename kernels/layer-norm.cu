/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Layer norm. */

#include "gtorch-layer-norm-params.h"
#include "gtorch-moments.cuh"
#include "gtorch-rows.cuh"

template <typename T, typename C, int V, int K>
static __device__ __forceinline__ void
layer_norm (const GtLayerNorm &p)
{
  __shared__ C shared[32];
  const int64_t row = (int64_t) blockIdx.x * blockDim.y + threadIdx.y, n = p.n;
  gt_row<T, C, V, K> r;
  C sum = 0, mean, rstd;

  if (row >= p.rows)
    return;
  r.load ((const T *) p.x + row * n, n, 0);
#pragma unroll
  for (int i = 0; i < V * K; i++)
    sum += r.x[i];
  mean = gt_row_reduce (sum, gt_sum_of (), shared) / n;
  sum = 0;
#pragma unroll
  for (int i = 0; i < V * K; i++)
    if ((threadIdx.x + i / V * blockDim.x) * V < n)
      sum += (r.x[i] - mean) * (r.x[i] - mean);
  rstd = 1 / sqrt (gt_row_reduce (sum, gt_sum_of (), shared) / n + (C) p.eps);
#pragma unroll
  for (int i = 0; i < V * K; i++)
    r.x[i] = (r.x[i] - mean) * rstd;
  if (p.weight != NULL)
    {
      r.combine (p.weight, n, [] (C x, C w) { return x * w; });
    }
  if (p.bias != NULL)
    {
      r.combine (p.bias, n, [] (C x, C w) { return x + w; });
    }
  r.store ((T *) p.y + row * n, n);
  if (threadIdx.x == 0)
    {
      gt_put<T> (p.mean, row, mean);
      gt_put<T> (p.rstd, row, rstd);
    }
}

template <typename T, typename C>
static __device__ __forceinline__ void
layer_norm_long (const GtLayerNorm &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n;

  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x)
    {
      const int64_t base = row * n;
      C sum = 0, mean, rstd;

      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += gt_get<C, T> (p.x, base + i);
      mean = gt_row_reduce (sum, gt_sum_of (), shared) / n;
      sum = 0;
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          const C d = gt_get<C, T> (p.x, base + i) - mean;

          sum += d * d;
        }
      rstd = 1 / sqrt (gt_row_reduce (sum, gt_sum_of (), shared) / n + (C) p.eps);
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          C y = (gt_get<C, T> (p.x, base + i) - mean) * rstd;

          if (p.weight != NULL)
            y *= gt_get<C, T> (p.weight, i);
          if (p.bias != NULL)
            y += gt_get<C, T> (p.bias, i);
          gt_put<T> (p.y, base + i, y);
        }
      if (threadIdx.x == 0)
        {
          gt_put<T> (p.mean, row, mean);
          gt_put<T> (p.rstd, row, rstd);
        }
    }
}

/* Computes the mean of each row and the factor that makes its variance 1. */
template <typename T, typename C>
static __device__ __forceinline__ void
long_norm_stats (const GtLongNorm &p)
{
  for (GT_LOOP (row, p.norm.rows))
    {
      const C *from = (const C *) p.moments + row * p.parts * 3;
      C mean = from[0], square = from[1], count = from[2], rstd;

      for (int64_t i = 1; i < p.parts; i++)
        gt_merge_moments (mean, square, count, from[3 * i], from[3 * i + 1], from[3 * i + 2]);
      rstd = 1 / sqrt (square / p.norm.n + (C) p.norm.eps);
      ((C *) p.stats)[2 * row] = mean;
      ((C *) p.stats)[2 * row + 1] = rstd;
      gt_put<T> (p.norm.mean, row, mean);
      gt_put<T> (p.norm.rstd, row, rstd);
    }
}

template <typename T, typename C>
static __device__ __forceinline__ void
long_norm (const GtLongNorm &p)
{
  for (GT_LOOP (i, p.norm.rows * p.norm.n))
    {
      int64_t at;
      const int64_t row = gt_split (i, p.norm.n, &at);
      C y = (gt_get<C, T> (p.norm.x, i) - ((const C *) p.stats)[2 * row])
            * ((const C *) p.stats)[2 * row + 1];

      if (p.norm.weight != NULL)
        y *= gt_get<C, T> (p.norm.weight, at);
      if (p.norm.bias != NULL)
        y += gt_get<C, T> (p.norm.bias, at);
      gt_put<T> (p.norm.y, i, y);
    }
}

#define LAYER_NORM(dtype, T, C, form, V, K) \
  GT_KERNEL (gt_layer_norm_##dtype##_##form, GtLayerNorm, 1024) { layer_norm<T, C, V, K> (p); }
GT_EACH_ROW (LAYER_NORM)

/* Computes the gradient of x, with a block for each row. */
template <typename T, typename C>
static __device__ __forceinline__ void
layer_norm_grad (const GtLayerNormGrad &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n;

  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x)
    {
      const int64_t base = row * n;
      const C mean = gt_get<C, T> (p.mean, row), rstd = gt_get<C, T> (p.rstd, row);
      C sum = 0, dot = 0;

      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          const C w = p.weight != NULL ? gt_get<C, T> (p.weight, i) : (C) 1;
          const C g = gt_get<C, T> (p.g, base + i) * w;

          sum += g;
          dot += g * (gt_get<C, T> (p.x, base + i) - mean);
        }
      sum = gt_row_reduce (sum, gt_sum_of (), shared) / n;
      dot = gt_row_reduce (dot, gt_sum_of (), shared) * rstd * rstd / n;
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          const C w = p.weight != NULL ? gt_get<C, T> (p.weight, i) : (C) 1;
          const C g = gt_get<C, T> (p.g, base + i) * w;
          const C d = gt_get<C, T> (p.x, base + i) - mean;

          gt_put<T> (p.grad, base + i, rstd * (g - sum - d * dot));
        }
    }
}

/* Computes partial gradients of weight and bias. */
template <typename T, typename C>
static __device__ __forceinline__ void
layer_norm_sums (const GtLayerNormSums &p)
{
  const int64_t n = p.n, parts = (p.rows + p.part - 1) / p.part;

  for (GT_LOOP (i, parts * n))
    {
      int64_t at, part = gt_split (i, n, &at), end = min ((part + 1) * p.part, p.rows);
      C dw = 0, db = 0;

      for (int64_t row = part * p.part; row < end; row++)
        {
          const C g = gt_get<C, T> (p.g, row * n + at);

          dw += g * (gt_get<C, T> (p.x, row * n + at) - gt_get<C, T> (p.mean, row))
                * gt_get<C, T> (p.rstd, row);
          db += g;
        }
      ((C *) p.sums)[part * 2 * n + at] = dw;
      ((C *) p.sums)[part * 2 * n + n + at] = db;
    }
}

/* Computes the gradient of x and partial gradients of weight and bias, each block for its rows, of at most
 * GT_NORM_COLUMNS elements for each thread, which reads them once. */
template <typename T, typename C>
static __device__ __forceinline__ void
layer_norm_grads (const GtLayerNormGrads &p)
{
  constexpr int K = GT_NORM_COLUMNS;
  __shared__ C shared[2][32][2];
  const int64_t n = p.x.n, end = min ((blockIdx.x + (int64_t) 1) * p.part, p.x.rows);
  C *const sums = (C *) p.sums + blockIdx.x * 2 * n;
  C w[K], dw[K] = { 0 }, db[K] = { 0 };
  int64_t row = blockIdx.x * p.part;

#pragma unroll
  for (int k = 0; k < K; k++)
    {
      const int64_t at = threadIdx.x + k * blockDim.x;

      w[k] = p.x.weight == NULL ? (C) 1 : at < n ? gt_get<C, T> (p.x.weight, at) : (C) 0;
    }
  for (int turn = 0; row < end; row++, turn ^= 1)
    {
      const int64_t base = row * n + threadIdx.x;
      const C mean = gt_get<C, T> (p.x.mean, row), rstd = gt_get<C, T> (p.x.rstd, row);
      C g[K], d[K], sum = 0, dot = 0;

#pragma unroll
      for (int k = 0; k < K; k++)
        {
          const bool is_inside = threadIdx.x + k * blockDim.x < n;

          g[k] = is_inside ? gt_get<C, T> (p.x.g, base + k * blockDim.x) : (C) 0;
          d[k] = is_inside ? gt_get<C, T> (p.x.x, base + k * blockDim.x) : mean;
        }
#pragma unroll
      for (int k = 0; k < K; k++)
        {
          d[k] = (d[k] - mean) * rstd;
          dw[k] += g[k] * d[k];
          db[k] += g[k];
          g[k] *= w[k];
          sum += g[k];
          dot += g[k] * d[k];
        }
      gt_row_reduce_two (sum, dot, shared[turn]);
      sum /= n;
      dot /= n;
#pragma unroll
      for (int k = 0; k < K; k++)
        if (threadIdx.x + k * blockDim.x < n)
          gt_put<T> (p.x.grad, base + k * blockDim.x, rstd * (g[k] - sum - d[k] * dot));
    }
#pragma unroll
  for (int k = 0; k < K; k++)
    {
      const int64_t at = threadIdx.x + k * blockDim.x;

      if (at < n)
        {
          sums[at] = dw[k];
          sums[n + at] = db[k];
        }
    }
}

/* Adds the parts in a fixed order: a warp has 32 columns, and the warps of a block share their parts. */
template <typename T, typename C>
static __device__ __forceinline__ void
add_parts (const GtAddParts &p)
{
  __shared__ C shared[32][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;

  for (int64_t first = blockIdx.x * (int64_t) 32; first < 2 * p.n;
       first += gridDim.x * (int64_t) 32)
    {
      const int64_t i = first + lane;
      C sum = 0;

      if (i < 2 * p.n)
#pragma unroll 8
        for (int64_t part = warp; part < p.parts; part += n_warps)
          sum += ((const C *) p.sums)[part * 2 * p.n + i];
      shared[warp][lane] = sum;
      __syncthreads ();
      if (warp == 0 && i < 2 * p.n)
        {
          for (int k = 1; k < n_warps; k++)
            sum += shared[k][lane];
          gt_put<T> (p.grads[i / p.n], i % p.n, sum);
        }
      __syncthreads ();
    }
}

#define OTHERS(dtype, T, C)                                                                       \
  GT_KERNEL (gt_layer_norm_##dtype##_long, GtLayerNorm, 1024) { layer_norm_long<T, C> (p); }      \
  GT_KERNEL (gt_long_norm_stats_##dtype, GtLongNorm, 1024) { long_norm_stats<T, C> (p); }         \
  GT_KERNEL (gt_long_norm_##dtype, GtLongNorm, 1024) { long_norm<T, C> (p); }                     \
  GT_KERNEL (gt_layer_norm_grad_##dtype, GtLayerNormGrad, 1024) { layer_norm_grad<T, C> (p); }    \
  GT_KERNEL (gt_layer_norm_grads_##dtype, GtLayerNormGrads, 1024) { layer_norm_grads<T, C> (p); } \
  GT_KERNEL (gt_layer_norm_sums_##dtype, GtLayerNormSums, 1024) { layer_norm_sums<T, C> (p); }    \
  GT_KERNEL (gt_add_parts_##dtype, GtAddParts, 1024) { add_parts<T, C> (p); }
GT_EACH_FLOAT (OTHERS)
