/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Direct convolutions, for cases that no library supports, and the bias, which libraries leave out. */

#include "gtorch-convolve-params.h"
#include "gtorch-plain.cuh"

/* Splits an index into a position in a volume of that size; returns the rest. */
static __device__ __forceinline__ int64_t
split_volume (int64_t index, const int64_t *size, int64_t *z, int64_t *y, int64_t *x)
{
  return gt_split (gt_split (gt_split (index, size[2], x), size[1], y), size[0], z);
}

/* Computes the output. */
template <typename T, typename C>
static __device__ __forceinline__ void
forward (const GtConvolve &p)
{
  const int64_t filters = p.groups * p.filters, channels = p.groups * p.channels;

  for (GT_LOOP (e, p.batch * filters * p.out[0] * p.out[1] * p.out[2]))
    {
      int64_t ox, oy, oz, f, b = gt_split (split_volume (e, p.out, &oz, &oy, &ox), filters, &f);
      const int64_t group = f / p.filters;
      C sum = p.bias != NULL ? gt_get<C, T> (p.bias, f) : (C) 0;

      for (int64_t c = 0; c < p.channels; c++)
        for (int64_t kz = 0; kz < p.kernel[0]; kz++)
          {
            const int64_t z = oz * p.stride[0] - p.padding[0] + kz * p.dilation[0];

            if (z < 0 || z >= p.in[0])
              continue;
            for (int64_t ky = 0; ky < p.kernel[1]; ky++)
              {
                const int64_t y = oy * p.stride[1] - p.padding[1] + ky * p.dilation[1];
                const int64_t row =
                    (((b * channels + group * p.channels + c) * p.in[0] + z) * p.in[1] + y)
                    * p.in[2];
                const int64_t tap =
                    (((f * p.channels + c) * p.kernel[0] + kz) * p.kernel[1] + ky) * p.kernel[2];

                if (y < 0 || y >= p.in[1])
                  continue;
                for (int64_t kx = 0; kx < p.kernel[2]; kx++)
                  {
                    const int64_t x = ox * p.stride[2] - p.padding[2] + kx * p.dilation[2];

                    if (x >= 0 && x < p.in[2])
                      sum += gt_get<C, T> (p.a, row + x) * gt_get<C, T> (p.b, tap + kx);
                  }
              }
          }
      gt_put<T> (p.y, e, sum);
    }
}

/* Finds the position of the output whose window has the element `at` of the input as its element k. */
static __device__ __forceinline__ bool
find_window (const GtConvolve &p, int dim, int64_t at, int64_t k, int64_t *window)
{
  const int64_t first = at + p.padding[dim] - k * p.dilation[dim];

  *window = first / p.stride[dim];
  return first >= 0 && first % p.stride[dim] == 0 && *window < p.out[dim];
}

/* Computes the gradient of the input. */
template <typename T, typename C>
static __device__ __forceinline__ void
input (const GtConvolve &p)
{
  const int64_t filters = p.groups * p.filters, channels = p.groups * p.channels;
  const int64_t pixels = p.out[0] * p.out[1] * p.out[2];
  const int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2];

  for (GT_LOOP (e, p.batch * channels * p.in[0] * p.in[1] * p.in[2]))
    {
      int64_t x, y, z, all, b = gt_split (split_volume (e, p.in, &z, &y, &x), channels, &all);
      const int64_t group = all / p.channels, c = all % p.channels;
      C sum = p.bias != NULL ? gt_get<C, T> (p.bias, all) : (C) 0;

      for (int64_t kz = 0; kz < p.kernel[0]; kz++)
        {
          int64_t oz, oy, ox;

          if (!find_window (p, 0, z, kz, &oz))
            continue;
          for (int64_t ky = 0; ky < p.kernel[1]; ky++)
            {
              if (!find_window (p, 1, y, ky, &oy))
                continue;
              for (int64_t kx = 0; kx < p.kernel[2]; kx++)
                {
                  if (!find_window (p, 2, x, kx, &ox))
                    continue;
                  const int64_t at = (oz * p.out[1] + oy) * p.out[2] + ox;
                  const int64_t tap = (kz * p.kernel[1] + ky) * p.kernel[2] + kx;

                  for (int64_t i = 0; i < p.filters; i++)
                    {
                      const int64_t f = group * p.filters + i;

                      sum += gt_get<C, T> (p.a, (b * filters + f) * pixels + at)
                             * gt_get<C, T> (p.b, (f * p.channels + c) * taps + tap);
                    }
                }
            }
        }
      gt_put<T> (p.y, e, sum);
    }
}

/* Computes the gradient of the weight, with one block per element. */
template <typename T, typename C>
static __device__ __forceinline__ void
weight (const GtConvolve &p)
{
  __shared__ C shared[32];
  const int64_t filters = p.groups * p.filters, channels = p.groups * p.channels;
  const int64_t pixels = p.out[0] * p.out[1] * p.out[2];
  const int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2];

  for (int64_t e = blockIdx.x; e < filters * p.channels * taps; e += gridDim.x)
    {
      int64_t kx, ky, kz, c,
          f = gt_split (split_volume (e, p.kernel, &kz, &ky, &kx), p.channels, &c);
      const int64_t group = f / p.filters;
      C sum = 0;

      for (int64_t i = threadIdx.x; i < p.batch * pixels; i += blockDim.x)
        {
          int64_t ox, oy, oz, b = split_volume (i, p.out, &oz, &oy, &ox);
          const int64_t z = oz * p.stride[0] - p.padding[0] + kz * p.dilation[0];
          const int64_t y = oy * p.stride[1] - p.padding[1] + ky * p.dilation[1];
          const int64_t x = ox * p.stride[2] - p.padding[2] + kx * p.dilation[2];

          if (z >= 0 && z < p.in[0] && y >= 0 && y < p.in[1] && x >= 0 && x < p.in[2])
            sum += gt_get<C, T> (p.a, (b * filters + f) * pixels + i - b * pixels)
                   * gt_get<C, T> (p.b, (((b * channels + group * p.channels + c) * p.in[0] + z)
                                             * p.in[1]
                                         + y) * p.in[2]
                                            + x);
        }
      sum = gt_row_reduce (sum, gt_sum_of (), shared);
      if (threadIdx.x == 0)
        gt_put<T> (p.y, e, sum);
    }
}

/* Adds the bias. */
template <typename T, typename C>
static __device__ __forceinline__ void
bias (const GtBias &p)
{
  constexpr int V = 16 / sizeof (T);
  struct alignas (16) Vector { T at[V]; };
  const int64_t n = p.n / V;

  for (GT_LOOP (i, n))
    {
      Vector x = ((const Vector *) p.y)[i];
      int64_t at, channel;

      gt_split (gt_split (i * V, p.pixels, &at), p.channels, &channel);
#pragma unroll
      for (int v = 0; v < V; v++)
        {
          x.at[v] =
              gt_convert<T>::from (gt_convert<C>::from (x.at[v]) + gt_get<C, T> (p.bias, channel));
          if (++at == p.pixels)
            {
              at = 0;
              channel = channel + 1 == p.channels ? 0 : channel + 1;
            }
        }
      ((Vector *) p.y)[i] = x;
    }
  if (blockIdx.x == 0 && threadIdx.x < p.n % V)
    {
      const int64_t i = n * V + threadIdx.x;
      int64_t at, channel;

      gt_split (gt_split (i, p.pixels, &at), p.channels, &channel);
      gt_put<T> (p.y, i, gt_get<C, T> (p.y, i) + gt_get<C, T> (p.bias, channel));
    }
}

/* Transposes and adds the bias, in tiles of 64 by 64 with 256 threads. */
template <typename T, typename C>
static __device__ __forceinline__ void
turn (const GtTurn &p)
{
  __shared__ T tile[64][64 + (sizeof (T) >= 4 ? 1 : 4 / sizeof (T))];
  const int64_t pixels = p.pixels, channels = p.channels;
  const int64_t across = (channels + 63) / 64, down = (pixels + 63) / 64;
  const int column = threadIdx.x % 64, row = threadIdx.x / 64;

  for (int64_t i = blockIdx.x; i < p.images * across * down; i += gridDim.x)
    {
      int64_t at_channel, at_pixel;
      const int64_t image = gt_split (gt_split (i, across, &at_channel), down, &at_pixel);
      const int64_t c0 = at_channel * 64, p0 = at_pixel * 64;
      const T *from = (const T *) p.x + image * pixels * channels;
      T *to = (T *) p.y + image * pixels * channels;
      T x[16];

#pragma unroll
      for (int k = 0; k < 16; k++)
        if (c0 + column < channels && p0 + row + k * 4 < pixels)
          x[k] = from[(p0 + row + k * 4) * channels + c0 + column];
#pragma unroll
      for (int k = 0; k < 16; k++)
        tile[row + k * 4][column] = x[k];
      __syncthreads ();
#pragma unroll
      for (int k = 0; k < 16; k++)
        {
          const int64_t c = c0 + row + k * 4;

          if (c < channels && p0 + column < pixels)
            gt_put<T> (to, c * pixels + p0 + column,
                       gt_convert<C>::from (tile[column][row + k * 4]) + gt_get<C, T> (p.bias, c));
        }
      __syncthreads ();
    }
}

#define CONVOLVE(dtype, T, C)                                                  \
  GT_KERNEL (gt_convolve_##dtype, GtConvolve, 1024) { forward<T, C> (p); }     \
  GT_KERNEL (gt_convolve_input_##dtype, GtConvolve, 1024) { input<T, C> (p); } \
  GT_KERNEL (gt_convolve_weight_##dtype, GtConvolve, 1024) { weight<T, C> (p); }
GT_EACH_FLOAT (CONVOLVE)
GT_EACH_INTEGER (CONVOLVE)

#define BIAS(dtype, T, C)                                                \
  GT_KERNEL (gt_convolve_bias_##dtype, GtBias, 1024) { bias<T, C> (p); } \
  GT_KERNEL (gt_convolve_turn_##dtype, GtTurn, 1024) { turn<T, C> (p); }
GT_EACH_FLOAT (BIAS)
