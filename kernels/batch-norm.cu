/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batch norm. The moments of vectors of elements are exact up to rounding, and are merged by the formula of
 * Chan, Golub and LeVeque (Updating formulae and a pairwise algorithm for computing sample variances, 1979),
 * which loses no digits where the mean is large compared with the deviation. */

#include "gtorch-batch-norm-params.h"
#include "gtorch-pointwise.cuh"
#include "gtorch-plain.cuh"

#define VECTORS 4 /* a thread loads as many before it uses the first */

/* What the caller has for a channel; `otherwise` if there is nothing. */
GT_DEVICE double
get_channel (const void *values, int64_t c, uint32_t is_single, double otherwise = 0)
{
  if (values == NULL)
    return otherwise;
  return is_single ? ((const float *) values)[c] : ((const double *) values)[c];
}

GT_DEVICE void
put_channel (void *values, int64_t c, uint32_t is_single, double value)
{
  if (is_single)
    ((float *) values)[c] = (float) value;
  else
    ((double *) values)[c] = value;
}

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
  const C mean = get_channel (p.mean, r.channel, p.is_single);
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

/* --- columns of a matrix, inner = 1 ---
 *
 * A block has a tile of neighbouring channels. L threads beside each other have V channels of a row each, 16
 * bytes if possible, and the block's other threads have other rows. What a channel has for itself is read
 * once, and stays in registers for all rows of a thread. */

#define MOST_WARPS  8 /* of a block: 256 threads */
#define MOMENT_ROWS 4 /* a thread loads as many vectors before it uses the first */
#define DOT_ROWS    2
#define SCALE_ROWS  2
#define GRAD_ROWS   1

template <int L, int V> struct tile
{
  int64_t channel; /* of the thread's first element */
  int row, rows;   /* of the block */

  __device__ __forceinline__
  tile (int64_t number)
      : channel ((number * L + threadIdx.x % L) * V), row (threadIdx.x / L), rows (blockDim.x / L)
  {
  }

  static __device__ __forceinline__ int64_t
  count (int64_t channels)
  {
    return (channels + L * V - 1) / (L * V);
  }
};

template <typename T, int V>
GT_DEVICE gt_vector<T, V>
load_columns (const void *from, int64_t row, int64_t channels, int64_t channel)
{
  return *(const gt_vector<T, V> *) ((const T *) from + row * channels + channel);
}

/* The moments of V columns, of which all have as many elements. */
template <typename C, int V> struct column_set
{
  C n, mean[V], squares[V];

  __device__ __forceinline__
  column_set ()
      : n (0)
  {
#pragma unroll
    for (int k = 0; k < V; k++)
      mean[k] = squares[k] = 0;
  }

  template <typename T, int N>
  __device__ __forceinline__ void
  take (const gt_vector<T, V> *x)
  {
    const C f = N / (n + N);

#pragma unroll
    for (int k = 0; k < V; k++)
      {
        const C first = gt_convert<C>::from (x[0].at[k]);
        C sum = 0, mean_of, square = 0, d;

        /* subtract the first element, so that the moments of equal elements are exact */
#pragma unroll
        for (int j = 1; j < N; j++)
          sum += gt_convert<C>::from (x[j].at[k]) - first;
        mean_of = first + sum / N;
#pragma unroll
        for (int j = 0; j < N; j++)
          {
            const C e = gt_convert<C>::from (x[j].at[k]) - mean_of;

            square += e * e;
          }
        d = mean_of - mean[k];
        squares[k] += square + d * d * n * f;
        mean[k] += d * f;
      }
    n += N;
  }
};

template <typename T, typename C, int L, int V>
GT_DEVICE void
column_moments (const GtChannelMoments &p)
{
  __shared__ double means[MOST_WARPS][L * V], squares[MOST_WARPS][L * V], counts[MOST_WARPS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

  for (int64_t block = blockIdx.x; block < tile<L, V>::count (p.channels) * p.splits;
       block += gridDim.x)
    {
      const range r (block, p.splits, p.batch);
      const tile<L, V> t (r.channel);
      column_set<C, V> m;
      moments<double> all[V];

      if (t.channel < p.channels)
        {
          int64_t i = r.begin + t.row;
          gt_vector<T, V> x[MOMENT_ROWS];

          for (; i + (MOMENT_ROWS - 1) * t.rows < r.end; i += MOMENT_ROWS * t.rows)
            {
#pragma unroll
              for (int j = 0; j < MOMENT_ROWS; j++)
                x[j] = load_columns<T, V> (p.x, i + j * t.rows, p.channels, t.channel);
              m.template take<T, MOMENT_ROWS> (x);
            }
          for (; i < r.end; i += t.rows)
            {
              x[0] = load_columns<T, V> (p.x, i, p.channels, t.channel);
              m.template take<T, 1> (x);
            }
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        {
          all[k] = { m.n, m.mean[k], m.squares[k] };
          for (int offset = L; offset < 32; offset *= 2)
            {
              const double n = __shfl_xor_sync (~0u, all[k].n, offset),
                           mean = __shfl_xor_sync (~0u, all[k].mean, offset),
                           square = __shfl_xor_sync (~0u, all[k].squares, offset);

              all[k].merge (n, mean, square);
            }
        }
      __syncthreads (); /* the former values have been read */
      if (lane < L)
#pragma unroll
        for (int k = 0; k < V; k++)
          {
            means[warp][lane * V + k] = all[k].mean;
            squares[warp][lane * V + k] = all[k].squares;
          }
      if (lane == 0)
        counts[warp] = all[0].n;
      __syncthreads ();
      for (int k = threadIdx.x; k < L * V; k += blockDim.x)
        if (r.channel * L * V + k < p.channels)
          {
            moments<double> whole = { counts[0], means[0][k], squares[0][k] };
            double *part = p.parts + ((r.channel * L * V + k) * p.splits + block % p.splits) * 3;

            for (int w = 1; w < warps; w++)
              whole.merge (counts[w], means[w][k], squares[w][k]);
            part[0] = whole.n;
            part[1] = whole.mean;
            part[2] = whole.squares;
          }
    }
}

template <typename T, typename C, int L, int V>
GT_DEVICE void
column_dots (const GtChannelDots &p)
{
  __shared__ double shared[2][MOST_WARPS][L * V];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

  for (int64_t block = blockIdx.x; block < tile<L, V>::count (p.channels) * p.splits;
       block += gridDim.x)
    {
      const range r (block, p.splits, p.batch);
      const tile<L, V> t (r.channel);
      C mean[V], sum[V], dot[V];

#pragma unroll
      for (int k = 0; k < V; k++)
        {
          mean[k] = t.channel < p.channels ? get_channel (p.mean, t.channel + k, p.is_single) : 0;
          sum[k] = dot[k] = 0;
        }
      if (t.channel < p.channels)
        for (int64_t i = r.begin + t.row; i < r.end; i += DOT_ROWS * t.rows)
          {
            gt_vector<T, V> g[DOT_ROWS], x[DOT_ROWS];

#pragma unroll
            for (int j = 0; j < DOT_ROWS; j++)
              if (i + j * t.rows < r.end)
                {
                  g[j] = load_columns<T, V> (p.g, i + j * t.rows, p.channels, t.channel);
                  x[j] = load_columns<T, V> (p.x, i + j * t.rows, p.channels, t.channel);
                }
#pragma unroll
            for (int j = 0; j < DOT_ROWS; j++)
              if (i + j * t.rows < r.end)
#pragma unroll
                for (int k = 0; k < V; k++)
                  {
                    const C grad = gt_convert<C>::from (g[j].at[k]);

                    sum[k] += grad;
                    dot[k] += grad * (gt_convert<C>::from (x[j].at[k]) - mean[k]);
                  }
          }
      __syncthreads (); /* the former values have been read */
#pragma unroll
      for (int k = 0; k < V; k++)
        {
          double s = sum[k], d = dot[k];

          for (int offset = L; offset < 32; offset *= 2)
            {
              s += __shfl_xor_sync (~0u, s, offset);
              d += __shfl_xor_sync (~0u, d, offset);
            }
          if (lane < L)
            {
              shared[0][warp][lane * V + k] = s;
              shared[1][warp][lane * V + k] = d;
            }
        }
      __syncthreads ();
      for (int k = threadIdx.x; k < 2 * L * V; k += blockDim.x)
        {
          const int which = k / (L * V), column = k % (L * V);
          const int64_t c = r.channel * L * V + column;
          double all = 0;

          for (int w = 0; w < warps && c < p.channels; w++)
            all += shared[which][w][column];
          if (c < p.channels)
            p.parts[(c * p.splits + block % p.splits) * 2 + which] = all;
        }
    }
}

/* Calls begin (channel) for the channels of each tile that a block has, and rows (i, step, channel) for N of
 * its rows, of which those from the batch's end on do not exist. */
template <int L, int V, int N, typename Begin, typename Rows>
GT_DEVICE void
each_row (int64_t batch, int64_t channels, Begin begin, Rows rows)
{
  const int64_t tiles = tile<L, V>::count (channels),
                parts = gridDim.x > tiles ? gridDim.x / tiles : 1;

  for (int64_t block = blockIdx.x; block < tiles * parts; block += gridDim.x)
    {
      int64_t number;
      const int64_t part = gt_split (block, tiles, &number);
      const tile<L, V> t (number);

      if (t.channel >= channels)
        continue;
      begin (t.channel);
      for (int64_t i = part * t.rows + t.row; i < batch; i += N * parts * t.rows)
        rows (i, parts * t.rows, t.channel);
    }
}

template <typename T, typename C, int L, int V>
GT_DEVICE void
column_scale (const GtChannelScale &p)
{
  C scale[V], center[V], bias[V];

  each_row<L, V, SCALE_ROWS> (
      p.batch, p.channels,
      [&] (int64_t c) {
#pragma unroll
        for (int k = 0; k < V; k++)
          {
            scale[k] = p.scale[c + k];
            center[k] = p.center[c + k];
            bias[k] = get_channel (p.bias, c + k, p.is_single);
          }
      },
      [&] (int64_t i, int64_t step, int64_t c) {
        gt_vector<T, V> x[SCALE_ROWS];

#pragma unroll
        for (int j = 0; j < SCALE_ROWS; j++)
          if (i + j * step < p.batch)
            x[j] = load_columns<T, V> (p.x, i + j * step, p.channels, c);
#pragma unroll
        for (int j = 0; j < SCALE_ROWS; j++)
          if (i + j * step < p.batch)
            {
              gt_vector<T, V> y;

#pragma unroll
              for (int k = 0; k < V; k++)
                y.at[k] = gt_convert<T>::from (
                    (gt_convert<C>::from (x[j].at[k]) - center[k]) * scale[k] + bias[k]);
              *(gt_vector<T, V> *) ((T *) p.y + (i + j * step) * p.channels + c) = y;
            }
      });
}

template <typename T, typename C, int L, int V>
GT_DEVICE void
column_grad (const GtChannelGrad &p)
{
  C mean[V], a[V], b[V], d[V];

  each_row<L, V, GRAD_ROWS> (
      p.batch, p.channels,
      [&] (int64_t c) {
#pragma unroll
        for (int k = 0; k < V; k++)
          {
            mean[k] = get_channel (p.mean, c + k, p.is_single);
            a[k] = p.factors[(c + k) * 3];
            b[k] = p.factors[(c + k) * 3 + 1];
            d[k] = p.factors[(c + k) * 3 + 2];
          }
      },
      [&] (int64_t i, int64_t step, int64_t c) {
        gt_vector<T, V> g[GRAD_ROWS], x[GRAD_ROWS];

#pragma unroll
        for (int j = 0; j < GRAD_ROWS; j++)
          if (i + j * step < p.batch)
            {
              g[j] = load_columns<T, V> (p.g, i + j * step, p.channels, c);
              x[j] = load_columns<T, V> (p.x, i + j * step, p.channels, c);
            }
#pragma unroll
        for (int j = 0; j < GRAD_ROWS; j++)
          if (i + j * step < p.batch)
            {
              gt_vector<T, V> grad;

#pragma unroll
              for (int k = 0; k < V; k++)
                grad.at[k] = gt_convert<T>::from (
                    a[k] * gt_convert<C>::from (g[j].at[k])
                    + b[k] * (gt_convert<C>::from (x[j].at[k]) - mean[k]) + d[k]);
              *(gt_vector<T, V> *) ((T *) p.grad + (i + j * step) * p.channels + c) = grad;
            }
      });
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
      if (has_vectors<T, V> (p.x, p.x, p.channels))
        column_moments<T, C, 8, V> (p);
      else
        column_moments<T, C, 32, 1> (p);
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
      if (has_vectors<T, V> (p.x, p.g, p.channels))
        column_dots<T, C, 8, V> (p);
      else
        column_dots<T, C, 32, 1> (p);
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

/* A warp has a channel. */
GT_KERNEL (gt_channel_statistics_f64, GtChannelStatistics, 1024)
{
  for (GT_LOOP (i, p.channels * 32))
    {
      const int64_t c = i / 32;
      moments<double> all = { 0, 0, 0 };

      for (int64_t k = i % 32; k < p.splits; k += 32)
        all.merge (p.parts[(c * p.splits + k) * 3], p.parts[(c * p.splits + k) * 3 + 1],
                   p.parts[(c * p.splits + k) * 3 + 2]);
      for (int offset = 16; offset > 0; offset /= 2)
        {
          const double n = __shfl_down_sync (~0u, all.n, offset),
                       mean = __shfl_down_sync (~0u, all.mean, offset),
                       squares = __shfl_down_sync (~0u, all.squares, offset);

          all.merge (n, mean, squares);
        }
      if (i % 32 == 0)
        {
          const double var = all.squares / all.n;

          put_channel (p.mean, c, p.is_single, all.mean);
          put_channel (p.var, c, p.is_single, var);
          p.center[c] = all.mean;
          p.scale[c] = get_channel (p.weight, c, p.is_single, 1) / sqrt (var + p.eps);
        }
    }
}

GT_KERNEL (gt_channel_factors_f64, GtChannelFactors, 1024)
{
  for (GT_LOOP (i, p.channels * 32))
    {
      const int64_t c = i / 32;
      const double rstd = 1 / sqrt (get_channel (p.var, c, p.is_single) + p.eps),
                   scale = get_channel (p.weight, c, p.is_single, 1) * rstd;
      double sum = 0, dot = 0;

      for (int64_t k = i % 32; k < p.splits; k += 32)
        {
          sum += p.parts[(c * p.splits + k) * 2];
          dot += p.parts[(c * p.splits + k) * 2 + 1];
        }
      for (int offset = 16; offset > 0; offset /= 2)
        {
          sum += __shfl_down_sync (~0u, sum, offset);
          dot += __shfl_down_sync (~0u, dot, offset);
        }
      if (i % 32 == 0)
        {
          put_channel (p.grad_weight, c, p.is_single, dot * rstd);
          put_channel (p.grad_bias, c, p.is_single, sum);
          p.factors[c * 3] = scale;
          p.factors[c * 3 + 1] = -scale * rstd * rstd * dot / p.n;
          p.factors[c * 3 + 2] = -scale * sum / p.n;
        }
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
      const C scale = p.scale[c], center = p.center[c], bias = get_channel (p.bias, c, p.is_single);
      const gt_vector<T, V> v = ((const gt_vector<T, V> *) p.x)[i];
      gt_vector<T, V> y;

#pragma unroll
      for (int k = 0; k < V; k++)
        y.at[k] = gt_convert<T>::from ((gt_convert<C>::from (v.at[k]) - center) * scale + bias);
      ((gt_vector<T, V> *) p.y)[i] = y;
    }
}

template <typename T, typename C>
GT_DEVICE void
channel_scale (const GtChannelScale &p)
{
  const int V = 16 / sizeof (T);

  if (p.inner == 1)
    {
      if (has_vectors<T, V> (p.x, p.y, p.channels))
        column_scale<T, C, 8, V> (p);
      else
        column_scale<T, C, 32, 1> (p);
    }
  else if (has_vectors<T, V> (p.x, p.y, p.inner))
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
      const C mean = get_channel (p.mean, c, p.is_single), a = p.factors[c * 3],
              b = p.factors[c * 3 + 1], d = p.factors[c * 3 + 2];
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

  if (p.inner == 1)
    {
      if (has_vectors<T, V> (p.x, p.g, p.channels)
          && has_vectors<T, V> (p.grad, p.grad, p.channels))
        column_grad<T, C, 8, V> (p);
      else
        column_grad<T, C, 32, 1> (p);
    }
  else if (has_vectors<T, V> (p.x, p.g, p.inner) && has_vectors<T, V> (p.grad, p.grad, p.inner))
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
