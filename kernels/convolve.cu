/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Direct convolutions, for cases that no library supports: n[0] batch, n[1] groups, n[2] channels and n[3]
 * filters of a group, n[4..5] input, n[6..7] kernel, n[8..9] output, n[10..11] stride, n[12..13] padding,
 * n[14..15] dilation. Also the bias, which libraries leave out. */

#include "gtorch-plain.cuh"

/* Computes the output. in: x, weight, bias or NULL */
template <typename T, typename C>
static __device__ __forceinline__ void
forward (const GtPlain &p)
{
  const int64_t filters = p.n[1] * p.n[3], channels = p.n[1] * p.n[2];

  for (GT_LOOP (e, p.n[0] * filters * p.n[8] * p.n[9]))
    {
      int64_t ox, oy, f,
          b = gt_split (gt_split (gt_split (e, p.n[9], &ox), p.n[8], &oy), filters, &f);
      const int64_t group = f / p.n[3];
      C sum = p.in[2] != NULL ? gt_get<C, T> (p.in[2], f) : (C) 0;

      for (int64_t c = 0; c < p.n[2]; c++)
        for (int64_t ky = 0; ky < p.n[6]; ky++)
          {
            const int64_t y = oy * p.n[10] - p.n[12] + ky * p.n[14];

            if (y < 0 || y >= p.n[4])
              continue;
            for (int64_t kx = 0; kx < p.n[7]; kx++)
              {
                const int64_t x = ox * p.n[11] - p.n[13] + kx * p.n[15];

                if (x >= 0 && x < p.n[5])
                  sum +=
                      gt_get<C, T> (p.in[0],
                                    ((b * channels + group * p.n[2] + c) * p.n[4] + y) * p.n[5] + x)
                      * gt_get<C, T> (p.in[1], ((f * p.n[2] + c) * p.n[6] + ky) * p.n[7] + kx);
              }
          }
      gt_put<T> (p.out[0], e, sum);
    }
}

/* Computes the gradient of the input. in: g, weight */
template <typename T, typename C>
static __device__ __forceinline__ void
input (const GtPlain &p)
{
  const int64_t filters = p.n[1] * p.n[3], channels = p.n[1] * p.n[2];

  for (GT_LOOP (e, p.n[0] * channels * p.n[4] * p.n[5]))
    {
      int64_t x, y, all,
          b = gt_split (gt_split (gt_split (e, p.n[5], &x), p.n[4], &y), channels, &all);
      const int64_t group = all / p.n[2], c = all % p.n[2];
      C sum = 0;

      for (int64_t ky = 0; ky < p.n[6]; ky++)
        {
          const int64_t down = y + p.n[12] - ky * p.n[14], oy = down / p.n[10];

          if (down < 0 || down % p.n[10] != 0 || oy >= p.n[8])
            continue;
          for (int64_t kx = 0; kx < p.n[7]; kx++)
            {
              const int64_t across = x + p.n[13] - kx * p.n[15], ox = across / p.n[11];

              if (across < 0 || across % p.n[11] != 0 || ox >= p.n[9])
                continue;
              for (int64_t i = 0; i < p.n[3]; i++)
                {
                  const int64_t f = group * p.n[3] + i;

                  sum += gt_get<C, T> (p.in[0], ((b * filters + f) * p.n[8] + oy) * p.n[9] + ox)
                         * gt_get<C, T> (p.in[1], ((f * p.n[2] + c) * p.n[6] + ky) * p.n[7] + kx);
                }
            }
        }
      gt_put<T> (p.out[0], e, sum);
    }
}

/* Computes the gradient of the weight, with one block per element. in: g, x */
template <typename T, typename C>
static __device__ __forceinline__ void
weight (const GtPlain &p)
{
  __shared__ C shared[32];
  const int64_t filters = p.n[1] * p.n[3], channels = p.n[1] * p.n[2];

  for (int64_t e = blockIdx.x; e < filters * p.n[2] * p.n[6] * p.n[7]; e += gridDim.x)
    {
      int64_t kx, ky, c,
          f = gt_split (gt_split (gt_split (e, p.n[7], &kx), p.n[6], &ky), p.n[2], &c);
      const int64_t group = f / p.n[3];
      C sum = 0;

      for (int64_t i = threadIdx.x; i < p.n[0] * p.n[8] * p.n[9]; i += blockDim.x)
        {
          int64_t ox, oy, b = gt_split (gt_split (i, p.n[9], &ox), p.n[8], &oy);
          const int64_t y = oy * p.n[10] - p.n[12] + ky * p.n[14];
          const int64_t x = ox * p.n[11] - p.n[13] + kx * p.n[15];

          if (y >= 0 && y < p.n[4] && x >= 0 && x < p.n[5])
            sum += gt_get<C, T> (p.in[0], ((b * filters + f) * p.n[8] + oy) * p.n[9] + ox)
                   * gt_get<C, T> (p.in[1],
                                   ((b * channels + group * p.n[2] + c) * p.n[4] + y) * p.n[5] + x);
        }
      sum = gt_row_reduce (sum, gt_sum_of (), shared);
      if (threadIdx.x == 0)
        gt_put<T> (p.out[0], e, sum);
    }
}

/* Adds the bias: out += in, n[0] elements, in n[2] channels of n[1] elements each */
template <typename T, typename C>
static __device__ __forceinline__ void
bias (const GtPlain &p)
{
  constexpr int V = 16 / sizeof (T);
  struct alignas (16) Vector { T at[V]; };
  const int64_t n = p.n[0] / V;

  for (GT_LOOP (i, n))
    {
      Vector x = ((const Vector *) p.out[0])[i];
      int64_t at, channel;

      gt_split (gt_split (i * V, p.n[1], &at), p.n[2], &channel);
#pragma unroll
      for (int v = 0; v < V; v++)
        {
          x.at[v] =
              gt_convert<T>::from (gt_convert<C>::from (x.at[v]) + gt_get<C, T> (p.in[0], channel));
          if (++at == p.n[1])
            {
              at = 0;
              channel = channel + 1 == p.n[2] ? 0 : channel + 1;
            }
        }
      ((Vector *) p.out[0])[i] = x;
    }
  if (blockIdx.x == 0 && threadIdx.x < p.n[0] % V)
    {
      const int64_t i = n * V + threadIdx.x;
      int64_t at, channel;

      gt_split (gt_split (i, p.n[1], &at), p.n[2], &channel);
      gt_put<T> (p.out[0], i, gt_get<C, T> (p.out[0], i) + gt_get<C, T> (p.in[0], channel));
    }
}

/* Transposes and adds the bias: out [n[0], n[2], n[1]] = in[0] [n[0], n[1], n[2]] + in[1] [n[2]], in tiles
 * of 64 by 64; 256 threads */
template <typename T, typename C>
static __device__ __forceinline__ void
turn (const GtPlain &p)
{
  __shared__ T tile[64][64 + (sizeof (T) >= 4 ? 1 : 4 / sizeof (T))];
  const int64_t pixels = p.n[1], channels = p.n[2];
  const int64_t across = (channels + 63) / 64, down = (pixels + 63) / 64;
  const int column = threadIdx.x % 64, row = threadIdx.x / 64;

  for (int64_t i = blockIdx.x; i < p.n[0] * across * down; i += gridDim.x)
    {
      int64_t at_channel, at_pixel;
      const int64_t image = gt_split (gt_split (i, across, &at_channel), down, &at_pixel);
      const int64_t c0 = at_channel * 64, p0 = at_pixel * 64;
      const T *from = (const T *) p.in[0] + image * pixels * channels;
      T *to = (T *) p.out[0] + image * pixels * channels;
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
                       gt_convert<C>::from (tile[column][row + k * 4]) + gt_get<C, T> (p.in[1], c));
        }
      __syncthreads ();
    }
}

#define CONVOLVE(dtype, T, C)                                               \
  GT_KERNEL (gt_convolve_##dtype, GtPlain, 1024) { forward<T, C> (p); }     \
  GT_KERNEL (gt_convolve_input_##dtype, GtPlain, 1024) { input<T, C> (p); } \
  GT_KERNEL (gt_convolve_weight_##dtype, GtPlain, 1024) { weight<T, C> (p); }
GT_EACH_FLOAT (CONVOLVE)
GT_EACH_INTEGER (CONVOLVE)

#define BIAS(dtype, T, C)                                                 \
  GT_KERNEL (gt_convolve_bias_##dtype, GtPlain, 1024) { bias<T, C> (p); } \
  GT_KERNEL (gt_convolve_turn_##dtype, GtPlain, 1024) { turn<T, C> (p); }
GT_EACH_FLOAT (BIAS)
