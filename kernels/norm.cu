/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Layer norm, batch norm, variance. */

#include "gtorch-rows.cuh"

/* --- layer norm: in x, weight, bias; out y, mean, rstd; n[0] rows, n[1] n; d[0] eps --- */
template <typename T, typename C, int V, int K>
static __device__ __forceinline__ void
layer_norm (const GtPlain &p)
{
  __shared__ C shared[32];
  const int64_t row = (int64_t) blockIdx.x * blockDim.y + threadIdx.y, n = p.n[1];
  gt_row<T, C, V, K> r;
  C sum = 0, mean, rstd;

  if (row >= p.n[0])
    return;
  r.load ((const T *) p.in[0] + row * n, n, 0);
#pragma unroll
  for (int i = 0; i < V * K; i++)
    sum += r.x[i];
  mean = gt_row_reduce (sum, gt_sum_of (), shared) / n;
  sum = 0;
#pragma unroll
  for (int i = 0; i < V * K; i++)
    if ((threadIdx.x + i / V * blockDim.x) * V < n)
      sum += (r.x[i] - mean) * (r.x[i] - mean);
  rstd = 1 / sqrt (gt_row_reduce (sum, gt_sum_of (), shared) / n + (C) p.d[0]);
#pragma unroll
  for (int i = 0; i < V * K; i++)
    r.x[i] = (r.x[i] - mean) * rstd;
  if (p.in[1] != NULL)
    {
      r.combine (p.in[1], n, [] (C x, C w) { return x * w; });
    }
  if (p.in[2] != NULL)
    {
      r.combine (p.in[2], n, [] (C x, C w) { return x + w; });
    }
  r.store ((T *) p.out[0] + row * n, n);
  if (threadIdx.x == 0)
    {
      gt_put<T> (p.out[1], row, mean);
      gt_put<T> (p.out[2], row, rstd);
    }
}

template <typename T, typename C>
static __device__ __forceinline__ void
layer_norm_long (const GtPlain &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n[1];

  for (int64_t row = blockIdx.x; row < p.n[0]; row += gridDim.x)
    {
      const int64_t base = row * n;
      C sum = 0, mean, rstd;

      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += gt_get<C, T> (p.in[0], base + i);
      mean = gt_row_reduce (sum, gt_sum_of (), shared) / n;
      sum = 0;
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          const C d = gt_get<C, T> (p.in[0], base + i) - mean;

          sum += d * d;
        }
      rstd = 1 / sqrt (gt_row_reduce (sum, gt_sum_of (), shared) / n + (C) p.d[0]);
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          C y = (gt_get<C, T> (p.in[0], base + i) - mean) * rstd;

          if (p.in[1] != NULL)
            y *= gt_get<C, T> (p.in[1], i);
          if (p.in[2] != NULL)
            y += gt_get<C, T> (p.in[2], i);
          gt_put<T> (p.out[0], base + i, y);
        }
      if (threadIdx.x == 0)
        {
          gt_put<T> (p.out[1], row, mean);
          gt_put<T> (p.out[2], row, rstd);
        }
    }
}

#define LAYER_NORM(dtype, T, C, form, V, K) \
  GT_KERNEL (gt_layer_norm_##dtype##_##form, GtPlain, 1024) { layer_norm<T, C, V, K> (p); }
GT_EACH_ROW (LAYER_NORM)

/* Computes the gradient of x, with a block for each row. in: g, x, weight, mean, rstd (mean and rstd as
 * stored) */
template <typename T, typename C>
static __device__ __forceinline__ void
layer_norm_grad (const GtPlain &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n[1];

  for (int64_t row = blockIdx.x; row < p.n[0]; row += gridDim.x)
    {
      const int64_t base = row * n;
      const C mean = gt_get<C, T> (p.in[3], row), rstd = gt_get<C, T> (p.in[4], row);
      C sum = 0, dot = 0;

      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          const C w = p.in[2] != NULL ? gt_get<C, T> (p.in[2], i) : (C) 1;
          const C g = gt_get<C, T> (p.in[0], base + i) * w;

          sum += g;
          dot += g * (gt_get<C, T> (p.in[1], base + i) - mean);
        }
      sum = gt_row_reduce (sum, gt_sum_of (), shared) / n;
      dot = gt_row_reduce (dot, gt_sum_of (), shared) * rstd * rstd / n;
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          const C w = p.in[2] != NULL ? gt_get<C, T> (p.in[2], i) : (C) 1;
          const C g = gt_get<C, T> (p.in[0], base + i) * w;
          const C d = gt_get<C, T> (p.in[1], base + i) - mean;

          gt_put<T> (p.out[0], base + i, rstd * (g - sum - d * dot));
        }
    }
}

/* Computes partial gradients of weight and bias, over n[2] rows each: out[0] [parts][2][n]; add_parts ()
 * adds them in order. */
template <typename T, typename C>
static __device__ __forceinline__ void
layer_norm_sums (const GtPlain &p)
{
  const int64_t n = p.n[1], parts = (p.n[0] + p.n[2] - 1) / p.n[2];

  for (GT_LOOP (i, parts * n))
    {
      int64_t at, part = gt_split (i, n, &at), end = min ((part + 1) * p.n[2], p.n[0]);
      C dw = 0, db = 0;

      for (int64_t row = part * p.n[2]; row < end; row++)
        {
          const C g = gt_get<C, T> (p.in[0], row * n + at);

          dw += g * (gt_get<C, T> (p.in[1], row * n + at) - gt_get<C, T> (p.in[3], row))
                * gt_get<C, T> (p.in[4], row);
          db += g;
        }
      ((C *) p.out[0])[part * 2 * n + at] = dw;
      ((C *) p.out[0])[part * 2 * n + n + at] = db;
    }
}

/* Adds parts: in[0] [n[0]][2][n[1]]; out: two of n[1] */
template <typename T, typename C>
static __device__ __forceinline__ void
add_parts (const GtPlain &p)
{
  for (GT_LOOP (i, 2 * p.n[1]))
    {
      C sum = 0;

      for (int64_t part = 0; part < p.n[0]; part++)
        sum += ((const C *) p.in[0])[part * 2 * p.n[1] + i];
      gt_put<T> (p.out[i / p.n[1]], i % p.n[1], sum);
    }
}

/* --- moments of in[0] [outer, n, inner], a part of n per block: (mean, sum of squared deviations, count)
 * --- */
template <typename C>
GT_DEVICE void
merge (C &mean, C &square, C &count, C other_mean, C other_square, C other_count)
{
  const C total = count + other_count, d = other_mean - mean;

  if (other_count == 0)
    return;
  mean += d * (other_count / total);
  square += other_square + d * d * (count * (other_count / total));
  count = total;
}

/* Computes moments of contiguous rows (n[2] = 1), in n[3] parts each. out[0]: [rows][parts][3]. */
template <typename T, typename C>
static __device__ __forceinline__ void
moments_rows (const GtPlain &p)
{
  __shared__ C shared[32];
  const int64_t n = p.n[1], parts = p.n[3], size = (n + parts - 1) / parts;

  for (int64_t i = blockIdx.x; i < p.n[0] * parts; i += gridDim.x)
    {
      const int64_t row = i / parts, begin = i % parts * size, end = min (begin + size, n);
      const int64_t base = row * n;
      C sum = 0, mean, square = 0, count = end > begin ? end - begin : 0;

      for (int64_t j = begin + threadIdx.x; j < end; j += blockDim.x)
        sum += gt_get<C, T> (p.in[0], base + j);
      mean = gt_row_reduce (sum, gt_sum_of (), shared) / (count > 0 ? count : 1);
      for (int64_t j = begin + threadIdx.x; j < end; j += blockDim.x)
        {
          const C d = gt_get<C, T> (p.in[0], base + j) - mean;

          square += d * d;
        }
      square = gt_row_reduce (square, gt_sum_of (), shared);
      if (threadIdx.x == 0)
        {
          C *to = (C *) p.out[0] + i * 3;

          to[0] = mean;
          to[1] = square;
          to[2] = count;
        }
    }
}

/* Computes the variance from the moments: d[0] is subtracted from the count, n[4]: standard deviation;
 * out[0] of T */
template <typename T, typename C>
static __device__ __forceinline__ void
variance (const GtPlain &p)
{
  for (GT_LOOP (row, p.n[0]))
    {
      const C *from = (const C *) p.in[0] + row * p.n[3] * 3;
      C mean = from[0], square = from[1], count = from[2], v;

      for (int64_t i = 1; i < p.n[3]; i++)
        merge (mean, square, count, from[3 * i], from[3 * i + 1], from[3 * i + 2]);
      v = square / (p.n[1] > p.d[0] ? (C) (p.n[1] - p.d[0]) : (C) 0);
      gt_put<T> (p.out[0], row, p.n[4] ? sqrt (v) : v);
    }
}

/* --- batch norm of [batch n[0], channels n[1], inner n[2]]; statistics in double --- */

/* Computes the moments of each channel, with a block each. in[0] x, out[0] mean, out[1] var */
template <typename T, typename C>
static __device__ __forceinline__ void
channel_moments (const GtPlain &p)
{
  __shared__ C shared[32];
  const int64_t batch = p.n[0], channels = p.n[1], inner = p.n[2], n = batch * inner;

  for (int64_t c = blockIdx.x; c < channels; c += gridDim.x)
    {
      const C first = gt_get<C, T> (p.in[0], c * inner);
      C sum = 0, mean, square = 0;

      /* relative to the first element: the moments of equal elements are exact */
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          int64_t in, b = gt_split (i, inner, &in);

          sum += gt_get<C, T> (p.in[0], (b * channels + c) * inner + in) - first;
        }
      mean = first + gt_row_reduce (sum, gt_sum_of (), shared) / n;
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          int64_t in, b = gt_split (i, inner, &in);
          const C d = gt_get<C, T> (p.in[0], (b * channels + c) * inner + in) - mean;

          square += d * d;
        }
      square = gt_row_reduce (square, gt_sum_of (), shared) / n;
      if (threadIdx.x == 0)
        {
          ((double *) p.out[0])[c] = mean;
          ((double *) p.out[1])[c] = square;
        }
    }
}

/* Normalises. in: x, mean, var, weight, bias (all but x double, the last two may be NULL); d[0] eps */
template <typename T, typename C>
static __device__ __forceinline__ void
channel_scale (const GtPlain &p)
{
  const int64_t channels = p.n[1], inner = p.n[2];

  for (GT_LOOP (i, p.n[0] * channels * inner))
    {
      int64_t in, c;

      gt_split (gt_split (i, inner, &in), channels, &c);
      const double rstd = 1 / sqrt (((const double *) p.in[2])[c] + p.d[0]);
      const C scale = p.in[3] != NULL ? ((const double *) p.in[3])[c] * rstd : rstd;
      const C mean = ((const double *) p.in[1])[c];
      const C shift = p.in[4] != NULL ? ((const double *) p.in[4])[c] : 0;

      gt_put<T> (p.out[0], i, (gt_get<C, T> (p.in[0], i) - mean) * scale + shift);
    }
}

/* Computes the sums of the backward pass. in: g, x, mean; out[0] sum of g, out[1] of g (x - mean), double */
template <typename T, typename C>
static __device__ __forceinline__ void
channel_dots (const GtPlain &p)
{
  __shared__ C shared[32];
  const int64_t batch = p.n[0], channels = p.n[1], inner = p.n[2], n = batch * inner;

  for (int64_t c = blockIdx.x; c < channels; c += gridDim.x)
    {
      const C mean = ((const double *) p.in[2])[c];
      C sum = 0, dot = 0;

      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          int64_t in, b = gt_split (i, inner, &in), at = (b * channels + c) * inner + in;
          const C g = gt_get<C, T> (p.in[0], at);

          sum += g;
          dot += g * (gt_get<C, T> (p.in[1], at) - mean);
        }
      sum = gt_row_reduce (sum, gt_sum_of (), shared);
      dot = gt_row_reduce (dot, gt_sum_of (), shared);
      if (threadIdx.x == 0)
        {
          ((double *) p.out[0])[c] = sum;
          ((double *) p.out[1])[c] = dot;
        }
    }
}

/* Computes the gradient of x, out[0]. in: g, x, mean, var, weight, sums ([2][channels]: sum, dot) */
template <typename T, typename C>
static __device__ __forceinline__ void
channel_grad (const GtPlain &p)
{
  const int64_t channels = p.n[1], inner = p.n[2];
  const double n = (double) (p.n[0] * inner);

  for (GT_LOOP (i, p.n[0] * channels * inner))
    {
      int64_t in, c;

      gt_split (gt_split (i, inner, &in), channels, &c);
      const double rstd = 1 / sqrt (((const double *) p.in[3])[c] + p.d[0]);
      const double scale = p.in[4] != NULL ? ((const double *) p.in[4])[c] * rstd : rstd;
      const C mean = ((const double *) p.in[2])[c];
      const C a = scale, b = -scale * rstd * rstd * ((const double *) p.in[5])[channels + c] / n;
      const C d = -scale * ((const double *) p.in[5])[c] / n;

      gt_put<T> (p.out[0], i,
                 a * gt_get<C, T> (p.in[0], i) + b * (gt_get<C, T> (p.in[1], i) - mean) + d);
    }
}

/* Computes the gradient of the weight: out[0] = dot * rstd; in dots, var; n[1] channels */
GT_KERNEL (gt_channel_weight_f64, GtPlain, 1024)
{
  for (GT_LOOP (c, p.n[1]))
    ((double *) p.out[0])[c] =
        ((const double *) p.in[0])[c] / sqrt (((const double *) p.in[1])[c] + p.d[0]);
}

#define REST(dtype, T, C)                                                                \
  GT_KERNEL (gt_layer_norm_##dtype##_long, GtPlain, 1024) { layer_norm_long<T, C> (p); } \
  GT_KERNEL (gt_layer_norm_grad_##dtype, GtPlain, 1024) { layer_norm_grad<T, C> (p); }   \
  GT_KERNEL (gt_layer_norm_sums_##dtype, GtPlain, 1024) { layer_norm_sums<T, C> (p); }   \
  GT_KERNEL (gt_add_parts_##dtype, GtPlain, 1024) { add_parts<T, C> (p); }               \
  GT_KERNEL (gt_moments_rows_##dtype, GtPlain, 1024) { moments_rows<T, C> (p); }         \
  GT_KERNEL (gt_variance_##dtype, GtPlain, 1024) { variance<T, C> (p); }                 \
  GT_KERNEL (gt_channel_moments_##dtype, GtPlain, 1024) { channel_moments<T, C> (p); }   \
  GT_KERNEL (gt_channel_scale_##dtype, GtPlain, 1024) { channel_scale<T, C> (p); }       \
  GT_KERNEL (gt_channel_dots_##dtype, GtPlain, 1024) { channel_dots<T, C> (p); }         \
  GT_KERNEL (gt_channel_grad_##dtype, GtPlain, 1024) { channel_grad<T, C> (p); }
GT_EACH_FLOAT (REST)
