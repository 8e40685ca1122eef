/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batch norm. The moments of vectors of elements are exact up to rounding, and are merged by the formula of
 * Chan, Golub and LeVeque (Updating formulae and a pairwise algorithm for computing sample variances, 1979),
 * which loses no digits where the mean is large compared with the deviation. */

#include "gtorch-batch-norm-params.h"
#include "gtorch-pointwise.cuh"
#include "gtorch-plain.cuh"

#define VECTORS 4 /* a thread loads as many before it uses the first */

template <typename C> struct moments
{
  C n, mean, squares;

  __device__ __forceinline__ void
  merge (C m, C other_mean, C other_squares)
  {
    const C total = n + m, d = other_mean - mean, f = total > 0 ? m / total : 0;

    squares += other_squares + d * d * n * f;
    mean += d * f;
    n = total;
  }

  template <int N>
  __device__ __forceinline__ void
  take (const C *x)
  {
    C sum = 0, mean_of, square = 0;

    /* subtract the first element, so that the moments of equal elements are exact */
#pragma unroll
    for (int i = 1; i < N; i++)
      sum += x[i] - x[0];
    mean_of = x[0] + sum / N;
#pragma unroll
    for (int i = 0; i < N; i++)
      square += (x[i] - mean_of) * (x[i] - mean_of);
    merge (N, mean_of, square);
  }
};

template <typename C> struct dots
{
  C sum, dot;

  template <int N>
  __device__ __forceinline__ void
  take (const C *g, const C *x, C mean)
  {
#pragma unroll
    for (int i = 0; i < N; i++)
      {
        sum += g[i];
        dot += g[i] * (x[i] - mean);
      }
  }
};

/* The elements of a channel that a block processes: [begin, end) counts vectors of V elements. */
struct range
{
  int64_t channel, begin, end;

  __device__ __forceinline__
  range (int64_t block, int64_t splits, int64_t n)
  {
    int64_t split;

    channel = gt_split (block, splits, &split);
    begin = n * split / splits;
    end = n * (split + 1) / splits;
  }
};

template <typename T, typename C, int V>
GT_DEVICE void
load (C *x, const void *from, int64_t i, int64_t channel, int64_t channels, int64_t vectors)
{
  int64_t in, b = gt_split (i, vectors, &in);
  const gt_vector<T, V> v =
      ((const gt_vector<T, V> *) from)[(b * channels + channel) * vectors + in];

#pragma unroll
  for (int k = 0; k < V; k++)
    x[k] = gt_convert<C>::from (v.at[k]);
}

/* Calls one (i) for each index of a thread, and before that all (i) for VECTORS of them at a time. */
template <typename All, typename One>
GT_DEVICE void
each (const range &r, All all, One one)
{
  int64_t i = r.begin + threadIdx.x;

  for (; i + (VECTORS - 1) * (int64_t) blockDim.x < r.end; i += VECTORS * (int64_t) blockDim.x)
    all (i);
  for (; i < r.end; i += blockDim.x)
    one (i);
}

template <typename T, typename C, int V>
GT_DEVICE moments<C>
moments_of (const GtChannelMoments &p, const range &r)
{
  const int64_t vectors = p.inner / V;
  moments<C> m = { 0, 0, 0 };

  each (
      r,
      [&] (int64_t i) {
        C x[VECTORS * V];

#pragma unroll
        for (int k = 0; k < VECTORS; k++)
          load<T, C, V> (x + k * V, p.x, i + k * blockDim.x, r.channel, p.channels, vectors);
        m.template take<VECTORS * V> (x);
      },
      [&] (int64_t i) {
        C x[V];

        load<T, C, V> (x, p.x, i, r.channel, p.channels, vectors);
        m.template take<V> (x);
      });
  return m;
}

template <typename T, typename C, int V>
GT_DEVICE dots<C>
dots_of (const GtChannelDots &p, const range &r)
{
  const int64_t vectors = p.inner / V;
  const C mean = p.mean[r.channel];
  dots<C> d = { 0, 0 };

  each (
      r,
      [&] (int64_t i) {
        C g[VECTORS * V], x[VECTORS * V];

#pragma unroll
        for (int k = 0; k < VECTORS; k++)
          {
            load<T, C, V> (g + k * V, p.g, i + k * blockDim.x, r.channel, p.channels, vectors);
            load<T, C, V> (x + k * V, p.x, i + k * blockDim.x, r.channel, p.channels, vectors);
          }
        d.template take<VECTORS * V> (g, x, mean);
      },
      [&] (int64_t i) {
        C g[V], x[V];

        load<T, C, V> (g, p.g, i, r.channel, p.channels, vectors);
        load<T, C, V> (x, p.x, i, r.channel, p.channels, vectors);
        d.template take<V> (g, x, mean);
      });
  return d;
}

/* Merges the moments of a block's threads into those of the first one. */
GT_DEVICE void
merge_threads (moments<double> &m)
{
  __shared__ moments<double> shared[32];

  for (int offset = 16; offset > 0; offset /= 2)
    {
      const double n = __shfl_down_sync (~0u, m.n, offset),
                   mean = __shfl_down_sync (~0u, m.mean, offset),
                   squares = __shfl_down_sync (~0u, m.squares, offset);

      m.merge (n, mean, squares);
    }
  __syncthreads (); /* the former values have been read */
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = m;
  __syncthreads ();
  if (threadIdx.x == 0)
    for (int i = 1; i < blockDim.x / 32; i++)
      m.merge (shared[i].n, shared[i].mean, shared[i].squares);
}

/* Columns of a matrix, inner = 1: 32 threads read as many neighbours. Each warp has other rows. */
template <typename T, typename C>
GT_DEVICE void
column_moments (const GtChannelMoments &p)
{
  __shared__ moments<double> shared[32][33];
  const int64_t tiles = (p.channels + 31) / 32, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t warps = blockDim.x / 32;

  for (int64_t block = blockIdx.x; block < tiles * p.splits; block += gridDim.x)
    {
      const range r (block, p.splits, p.batch);
      const int64_t c = r.channel * 32 + lane;
      moments<C> m = { 0, 0, 0 };

      if (c < p.channels)
        for (int64_t i = r.begin + warp; i < r.end; i += warps)
          {
            const C x = gt_get<C, T> (p.x, i * p.channels + c);

            m.template take<1> (&x);
          }
      __syncthreads (); /* the former values have been read */
      shared[warp][lane] = { m.n, m.mean, m.squares };
      __syncthreads ();
      if (warp == 0 && c < p.channels)
        {
          moments<double> all = shared[0][lane];
          double *part = p.parts + (c * p.splits + block % p.splits) * 3;

          for (int k = 1; k < warps; k++)
            all.merge (shared[k][lane].n, shared[k][lane].mean, shared[k][lane].squares);
          part[0] = all.n;
          part[1] = all.mean;
          part[2] = all.squares;
        }
    }
}

template <typename T, typename C>
GT_DEVICE void
column_dots (const GtChannelDots &p)
{
  __shared__ double shared[2][32][33];
  const int64_t tiles = (p.channels + 31) / 32, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t warps = blockDim.x / 32;

  for (int64_t block = blockIdx.x; block < tiles * p.splits; block += gridDim.x)
    {
      const range r (block, p.splits, p.batch);
      const int64_t c = r.channel * 32 + lane;
      dots<C> d = { 0, 0 };

      if (c < p.channels)
        {
          const C mean = p.mean[c];

          for (int64_t i = r.begin + warp; i < r.end; i += warps)
            {
              const C g = gt_get<C, T> (p.g, i * p.channels + c),
                      x = gt_get<C, T> (p.x, i * p.channels + c);

              d.template take<1> (&g, &x, mean);
            }
        }
      __syncthreads (); /* the former values have been read */
      shared[0][warp][lane] = d.sum;
      shared[1][warp][lane] = d.dot;
      __syncthreads ();
      if (warp < 2 && c < p.channels)
        {
          double sum = 0;

          for (int k = 0; k < warps; k++)
            sum += shared[warp][k][lane];
          p.parts[(c * p.splits + block % p.splits) * 2 + warp] = sum;
        }
    }
}

template <typename T, int V>
GT_DEVICE bool
has_vectors (const void *a, const void *b, int64_t inner)
{
  return inner % V == 0 && (((uintptr_t) a | (uintptr_t) b) & (sizeof (T) * V - 1)) == 0;
}

template <typename T, typename C>
GT_DEVICE void
channel_moments (const GtChannelMoments &p)
{
  const int V = 16 / sizeof (T);
  const bool is_wide = has_vectors<T, V> (p.x, p.x, p.inner);
  const int64_t n = p.batch * p.inner;

  if (p.inner == 1)
    {
      column_moments<T, C> (p);
      return;
    }
  for (int64_t block = blockIdx.x; block < p.channels * p.splits; block += gridDim.x)
    {
      const range r (block, p.splits, is_wide ? n / V : n);
      const moments<C> m = is_wide ? moments_of<T, C, V> (p, r) : moments_of<T, C, 1> (p, r);
      moments<double> all = { m.n, m.mean, m.squares };

      merge_threads (all);
      if (threadIdx.x == 0)
        {
          p.parts[block * 3] = all.n;
          p.parts[block * 3 + 1] = all.mean;
          p.parts[block * 3 + 2] = all.squares;
        }
    }
}

/* Computes the sums of the backward pass. */
template <typename T, typename C>
GT_DEVICE void
channel_dots (const GtChannelDots &p)
{
  __shared__ double shared[32];
  const int V = 16 / sizeof (T);
  const bool is_wide = has_vectors<T, V> (p.x, p.g, p.inner);
  const int64_t n = p.batch * p.inner;

  if (p.inner == 1)
    {
      column_dots<T, C> (p);
      return;
    }
  for (int64_t block = blockIdx.x; block < p.channels * p.splits; block += gridDim.x)
    {
      const range r (block, p.splits, is_wide ? n / V : n);
      const dots<C> d = is_wide ? dots_of<T, C, V> (p, r) : dots_of<T, C, 1> (p, r);
      const double sum = gt_row_reduce ((double) d.sum, gt_sum_of (), shared);
      const double dot = gt_row_reduce ((double) d.dot, gt_sum_of (), shared);

      if (threadIdx.x == 0)
        {
          p.parts[block * 2] = sum;
          p.parts[block * 2 + 1] = dot;
        }
    }
}

GT_KERNEL (gt_channel_statistics_f64, GtChannelStatistics, 1024)
{
  for (GT_LOOP (c, p.channels))
    {
      moments<double> all = { 0, 0, 0 };

      for (int64_t i = c * p.splits; i < (c + 1) * p.splits; i++)
        all.merge (p.parts[i * 3], p.parts[i * 3 + 1], p.parts[i * 3 + 2]);
      p.mean[c] = all.mean;
      p.var[c] = all.squares / all.n;
      p.scale[c] = (p.weight != NULL ? p.weight[c] : 1) / sqrt (all.squares / all.n + p.eps);
    }
}

GT_KERNEL (gt_channel_factors_f64, GtChannelFactors, 1024)
{
  for (GT_LOOP (c, p.channels))
    {
      const double rstd = 1 / sqrt (p.var[c] + p.eps),
                   scale = (p.weight != NULL ? p.weight[c] : 1) * rstd;
      double sum = 0, dot = 0;

      for (int64_t i = c * p.splits; i < (c + 1) * p.splits; i++)
        {
          sum += p.parts[i * 2];
          dot += p.parts[i * 2 + 1];
        }
      p.grad_weight[c] = dot * rstd;
      p.grad_bias[c] = sum;
      p.factors[c * 3] = scale;
      p.factors[c * 3 + 1] = -scale * rstd * rstd * dot / p.n;
      p.factors[c * 3 + 2] = -scale * sum / p.n;
    }
}

template <typename T, typename C, int V>
GT_DEVICE void
scale_vectors (const GtChannelScale &p)
{
  const int64_t vectors = p.inner / V;

  for (GT_LOOP (i, p.batch * p.channels * vectors))
    {
      int64_t in, c;

      gt_split (gt_split (i, vectors, &in), p.channels, &c);
      const C scale = p.scale[c], mean = p.mean[c], bias = p.bias != NULL ? p.bias[c] : 0;
      const gt_vector<T, V> v = ((const gt_vector<T, V> *) p.x)[i];
      gt_vector<T, V> y;

#pragma unroll
      for (int k = 0; k < V; k++)
        y.at[k] = gt_convert<T>::from ((gt_convert<C>::from (v.at[k]) - mean) * scale + bias);
      ((gt_vector<T, V> *) p.y)[i] = y;
    }
}

template <typename T, typename C>
GT_DEVICE void
channel_scale (const GtChannelScale &p)
{
  const int V = 16 / sizeof (T);

  if (has_vectors<T, V> (p.x, p.y, p.inner))
    scale_vectors<T, C, V> (p);
  else
    scale_vectors<T, C, 1> (p);
}

template <typename T, typename C, int V>
GT_DEVICE void
grad_vectors (const GtChannelGrad &p)
{
  const int64_t vectors = p.inner / V;

  for (GT_LOOP (i, p.batch * p.channels * vectors))
    {
      int64_t in, c;

      gt_split (gt_split (i, vectors, &in), p.channels, &c);
      const C mean = p.mean[c], a = p.factors[c * 3], b = p.factors[c * 3 + 1],
              d = p.factors[c * 3 + 2];
      const gt_vector<T, V> g = ((const gt_vector<T, V> *) p.g)[i],
                            x = ((const gt_vector<T, V> *) p.x)[i];
      gt_vector<T, V> grad;

#pragma unroll
      for (int k = 0; k < V; k++)
        grad.at[k] = gt_convert<T>::from (a * gt_convert<C>::from (g.at[k])
                                          + b * (gt_convert<C>::from (x.at[k]) - mean) + d);
      ((gt_vector<T, V> *) p.grad)[i] = grad;
    }
}

/* Computes the gradient of x. */
template <typename T, typename C>
GT_DEVICE void
channel_grad (const GtChannelGrad &p)
{
  const int V = 16 / sizeof (T);

  if (has_vectors<T, V> (p.x, p.g, p.inner) && has_vectors<T, V> (p.grad, p.grad, p.inner))
    grad_vectors<T, C, V> (p);
  else
    grad_vectors<T, C, 1> (p);
}

#define EACH(dtype, T, C)                                                                       \
  GT_KERNEL (gt_channel_moments_##dtype, GtChannelMoments, 1024) { channel_moments<T, C> (p); } \
  GT_KERNEL (gt_channel_scale_##dtype, GtChannelScale, 1024) { channel_scale<T, C> (p); }       \
  GT_KERNEL (gt_channel_dots_##dtype, GtChannelDots, 1024) { channel_dots<T, C> (p); }          \
  GT_KERNEL (gt_channel_grad_##dtype, GtChannelGrad, 1024) { channel_grad<T, C> (p); }
GT_EACH_FLOAT (EACH)
