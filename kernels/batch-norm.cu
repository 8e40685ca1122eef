/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batch norm, whose statistics are computed in double. */

#include "gtorch-batch-norm-params.h"
#include "gtorch-plain.cuh"

/* Computes the moments of each channel, with a block each. */
template <typename T, typename C>
static __device__ __forceinline__ void
channel_moments (const GtChannelMoments &p)
{
  __shared__ C shared[32];
  const int64_t batch = p.batch, channels = p.channels, inner = p.inner, n = batch * inner;

  for (int64_t c = blockIdx.x; c < channels; c += gridDim.x)
    {
      const C first = gt_get<C, T> (p.x, c * inner);
      C sum = 0, mean, square = 0;

      /* subtract the first element, so that the moments of equal elements are exact */
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          int64_t in, b = gt_split (i, inner, &in);

          sum += gt_get<C, T> (p.x, (b * channels + c) * inner + in) - first;
        }
      mean = first + gt_row_reduce (sum, gt_sum_of (), shared) / n;
      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          int64_t in, b = gt_split (i, inner, &in);
          const C d = gt_get<C, T> (p.x, (b * channels + c) * inner + in) - mean;

          square += d * d;
        }
      square = gt_row_reduce (square, gt_sum_of (), shared) / n;
      if (threadIdx.x == 0)
        {
          p.mean[c] = mean;
          p.var[c] = square;
        }
    }
}

/* Normalises x, and applies weight and bias. */
template <typename T, typename C>
static __device__ __forceinline__ void
channel_scale (const GtChannelScale &p)
{
  const int64_t channels = p.channels, inner = p.inner;

  for (GT_LOOP (i, p.batch * channels * inner))
    {
      int64_t in, c;

      gt_split (gt_split (i, inner, &in), channels, &c);
      const double rstd = 1 / sqrt (p.var[c] + p.eps);
      const C scale = p.weight != NULL ? p.weight[c] * rstd : rstd;
      const C mean = p.mean[c];
      const C shift = p.bias != NULL ? p.bias[c] : 0;

      gt_put<T> (p.y, i, (gt_get<C, T> (p.x, i) - mean) * scale + shift);
    }
}

/* Computes the sums of the backward pass, with a block for each channel. */
template <typename T, typename C>
static __device__ __forceinline__ void
channel_dots (const GtChannelDots &p)
{
  __shared__ C shared[32];
  const int64_t batch = p.batch, channels = p.channels, inner = p.inner, n = batch * inner;

  for (int64_t c = blockIdx.x; c < channels; c += gridDim.x)
    {
      const C mean = p.mean[c];
      C sum = 0, dot = 0;

      for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        {
          int64_t in, b = gt_split (i, inner, &in), at = (b * channels + c) * inner + in;
          const C g = gt_get<C, T> (p.g, at);

          sum += g;
          dot += g * (gt_get<C, T> (p.x, at) - mean);
        }
      sum = gt_row_reduce (sum, gt_sum_of (), shared);
      dot = gt_row_reduce (dot, gt_sum_of (), shared);
      if (threadIdx.x == 0)
        {
          p.sum[c] = sum;
          p.dot[c] = dot;
        }
    }
}

/* Computes the gradient of x. */
template <typename T, typename C>
static __device__ __forceinline__ void
channel_grad (const GtChannelGrad &p)
{
  const int64_t channels = p.channels, inner = p.inner;
  const double n = (double) (p.batch * inner);

  for (GT_LOOP (i, p.batch * channels * inner))
    {
      int64_t in, c;

      gt_split (gt_split (i, inner, &in), channels, &c);
      const double rstd = 1 / sqrt (p.var[c] + p.eps);
      const double scale = p.weight != NULL ? p.weight[c] * rstd : rstd;
      const C mean = p.mean[c];
      const C a = scale, b = -scale * rstd * rstd * p.sums[channels + c] / n;
      const C d = -scale * p.sums[c] / n;

      gt_put<T> (p.grad, i, a * gt_get<C, T> (p.g, i) + b * (gt_get<C, T> (p.x, i) - mean) + d);
    }
}

/* Computes the gradient of the weight: dot * rstd. */
GT_KERNEL (gt_channel_weight_f64, GtChannelWeight, 1024)
{
  for (GT_LOOP (c, p.channels))
    p.grad[c] = p.dot[c] / sqrt (p.var[c] + p.eps);
}

#define EACH(dtype, T, C)                                                                       \
  GT_KERNEL (gt_channel_moments_##dtype, GtChannelMoments, 1024) { channel_moments<T, C> (p); } \
  GT_KERNEL (gt_channel_scale_##dtype, GtChannelScale, 1024) { channel_scale<T, C> (p); }       \
  GT_KERNEL (gt_channel_dots_##dtype, GtChannelDots, 1024) { channel_dots<T, C> (p); }          \
  GT_KERNEL (gt_channel_grad_##dtype, GtChannelGrad, 1024) { channel_grad<T, C> (p); }
GT_EACH_FLOAT (EACH)
