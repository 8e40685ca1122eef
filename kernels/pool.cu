/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pooling. */

#include "gtorch-plain.cuh"
#include "gtorch-pointwise.cuh"
#include "gtorch-pool-params.h"

/* Numbers of elements are of type I: int32_t if they all fit, whose arithmetic is several times as fast, or
 * int64_t. */

GT_DEVICE int64_t
split (int64_t i, int64_t n, int64_t *rest)
{
  return gt_split (i, n, rest);
}

GT_DEVICE int32_t
split (int32_t i, int32_t n, int32_t *rest)
{
  const uint32_t q = (uint32_t) i / (uint32_t) n;

  *rest = i - (int32_t) q * n;
  return (int32_t) q;
}

/* Finds the position of element i of images of a size, and returns the number of its image. There is no
 * division for dimensions that the images lack. */
template <typename I>
GT_DEVICE I
find_position (const GtPool &p, const int64_t *size, I i, I *at)
{
  at[0] = at[1] = 0;
  i = split (i, (I) size[2], &at[2]);
  if (p.dims > 1)
    i = split (i, (I) size[1], &at[1]);
  if (p.dims > 2)
    i = split (i, (I) size[0], &at[0]);
  return i;
}

/* Finds the window of result o along a dimension, and returns how many elements count for the mean. */
template <typename I>
GT_DEVICE I
find_window (const GtPool &p, int d, I o, I *first, I *end)
{
  const I in = (I) p.in[d], stride = (I) p.stride[d], padding = (I) p.padding[d];
  const I dilation = (I) p.dilation[d];
  I counted;

  *first = 0;
  *end = 1;
  if (d + (int) p.dims < 3)
    return 1;
  if (p.adaptive)
    {
      *first = (I) ((int64_t) o * p.in[d] / p.out[d]);
      *end = (I) (((int64_t) (o + 1) * p.in[d] + p.out[d] - 1) / p.out[d]);
      return *end - *first;
    }
  *first = o * stride - padding;
  *end = min (*first + ((I) p.kernel[d] - 1) * dilation + 1, in + padding);
  counted = *end - *first;
  if (*first < 0)
    *first = dilation == 1 ? 0 : *first + (dilation - 1 - *first) / dilation * dilation;
  *end = min (*end, in);
  return p.include_pad ? counted : *end - *first;
}

/* Finds the results whose windows may have the element at a position. Adaptive windows o have
 * o n / m <= at < ceil ((o + 1) n / m); the range has a margin, and each window is to be checked. */
template <typename I>
GT_DEVICE void
find_results (const GtPool &p, int d, I at, I *first, I *end)
{
  const I stride = (I) p.stride[d], padding = (I) p.padding[d], out = (I) p.out[d];
  const I reach = at + padding - ((I) p.kernel[d] - 1) * (I) p.dilation[d];

  *first = 0;
  *end = 1;
  if (d + (int) p.dims < 3)
    return;
  if (p.adaptive)
    {
      *first = max ((I) ((int64_t) at * p.out[d] / p.in[d]) - 1, (I) 0);
      *end = min ((I) ((int64_t) (at + 1) * p.out[d] / p.in[d]) + 2, out);
      return;
    }
  *first = reach > 0 ? (reach + stride - 1) / stride : 0;
  *end = min ((at + padding) / stride + 1, out);
}

template <typename T, typename C, typename I>
static __device__ __forceinline__ void
max_pool (const GtPool &p)
{
  for (GT_LOOP (o, p.n))
    {
      I to[3], first[3], end[3], at = -1;
      const I base = find_position (p, p.out, (I) o, to) * (I) p.n_in;
      C best = 0;

      for (int d = 0; d < 3; d++)
        find_window (p, d, to[d], &first[d], &end[d]);
      for (I z = first[0]; z < end[0]; z += (I) p.dilation[0])
        for (I y = first[1]; y < end[1]; y += (I) p.dilation[1])
          for (I x = first[2]; x < end[2]; x += (I) p.dilation[2])
            {
              const I place = (z * (I) p.in[1] + y) * (I) p.in[2] + x;
              const C v = gt_get<C, T> (p.x, base + place);

              if (at < 0 || v > best || v != v)
                {
                  best = v;
                  at = place;
                }
            }
      gt_put<T> (p.y, o, best);
      if (p.indices != NULL)
        p.indices[o] = at;
    }
}

/* Computes the gradient of max pooling. For each element of the images, the windows that contain it are
 * searched in order for the element's index. */
template <typename T, typename C, typename I>
static __device__ __forceinline__ void
max_pool_grad (const GtPool &p)
{
  const int64_t *indices = p.indices;

  for (GT_LOOP (e, p.n))
    {
      I at[3], first[3], end[3];
      const I base = find_position (p, p.in, (I) e, at) * (I) p.n_out;
      const I place = (at[0] * (I) p.in[1] + at[1]) * (I) p.in[2] + at[2];
      C sum = 0;

      for (int d = 0; d < 3; d++)
        find_results (p, d, at[d], &first[d], &end[d]);
      for (I z = first[0]; z < end[0]; z++)
        for (I y = first[1]; y < end[1]; y++)
          for (I x = first[2]; x < end[2]; x++)
            {
              const I o = base + (z * (I) p.out[1] + y) * (I) p.out[2] + x;

              if (indices[o] == place)
                sum += gt_get<C, T> (p.x, o);
            }
      gt_put<T> (p.y, e, sum);
    }
}

/* Sums are kept in float64, as windows may have millions of elements; those of integers are taken modulo
 * 2^64, and the fraction of their mean is cut off. */
template <typename C> struct MeanSum
{
  typedef double Sum;
  static __device__ __forceinline__ C
  divide (Sum sum, int64_t divisor)
  {
    return (C) (sum / (double) divisor);
  }
};
template <> struct MeanSum<gint64>
{
  typedef uint64_t Sum;
  static __device__ __forceinline__ gint64
  divide (Sum sum, int64_t divisor)
  {
    return divisor == -1 ? (gint64) (0 - sum) : (gint64) sum / divisor;
  }
};

template <typename T, typename C, typename I>
static __device__ __forceinline__ void
mean_pool (const GtPool &p)
{
  for (GT_LOOP (o, p.n))
    {
      I to[3], first[3], end[3], n = 1;
      const I base = find_position (p, p.out, (I) o, to) * (I) p.n_in;
      typename MeanSum<C>::Sum sum = 0;

      for (int d = 0; d < 3; d++)
        n *= find_window (p, d, to[d], &first[d], &end[d]);
      for (I z = first[0]; z < end[0]; z++)
        for (I y = first[1]; y < end[1]; y++)
          for (I x = first[2]; x < end[2]; x++)
            sum += gt_get<C, T> (p.x, base + (z * (I) p.in[1] + y) * (I) p.in[2] + x);
      gt_put<T> (p.y, o, MeanSum<C>::divide (sum, p.divisor != 0 ? p.divisor : n));
    }
}

/* --- large windows, whose elements are divided among threads --- */

/* The elements of a box that a thread visits, in ascending order. */
struct Walk
{
  int64_t at[3], size[3], step[3]; /* within the box */
  bool ended;
};

/* Begins with element `lane`; the steps are `lanes` elements long. */
GT_DEVICE void
walk_init (Walk *walk, const int64_t *first, const int64_t *end, int64_t lane, int64_t lanes)
{
  walk->ended = false;
  for (int d = 2; d > 0; d--)
    {
      walk->size[d] = max (end[d] - first[d], (int64_t) 1);
      walk->ended |= end[d] <= first[d]; /* the window is in the padding */
      lane = gt_split (lane, walk->size[d], &walk->at[d]);
      lanes = gt_split (lanes, walk->size[d], &walk->step[d]);
    }
  walk->size[0] = end[0] - first[0];
  walk->at[0] = lane;
  walk->step[0] = lanes;
  walk->ended |= lane >= walk->size[0];
}

GT_DEVICE void
walk_on (Walk *walk)
{
  for (int d = 2; d > 0; d--)
    {
      const bool carry = (walk->at[d] += walk->step[d]) >= walk->size[d];

      walk->at[d] -= carry ? walk->size[d] : 0;
      walk->at[d - 1] += carry;
    }
  walk->at[0] += walk->step[0];
  walk->ended = walk->at[0] >= walk->size[0];
}

/* Combines the values of a warp or, if `lanes` is more than 32, of the block, in a fixed order. The
 * first thread gets the result. */
template <typename V, typename F>
GT_DEVICE V
combine_lanes (V value, F combine, int lanes, V *shared)
{
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value = combine (value, value.from_lane (offset));
  if (lanes > 32)
    {
      __syncthreads ();
      if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = value;
      __syncthreads ();
      value = shared[0];
      for (int i = 1; i < lanes / 32; i++)
        value = combine (value, shared[i]);
    }
  return value;
}

template <typename S> struct Sum
{
  S sum;
  __device__ __forceinline__ Sum
  from_lane (int offset) const
  {
    return { __shfl_xor_sync (~0u, sum, offset) };
  }
  __device__ __forceinline__ Sum
  operator() (const Sum &a, const Sum &b) const
  {
    return { a.sum + b.sum };
  }
};

/* The last NaN, or the first of the largest elements; `at` is -1 if there is none. */
template <typename C> struct Best
{
  C best;
  int64_t at;
  __device__ __forceinline__ Best
  from_lane (int offset) const
  {
    return { __shfl_xor_sync (~0u, best, offset), __shfl_xor_sync (~0u, at, offset) };
  }
  __device__ __forceinline__ Best
  operator() (const Best &a, const Best &b) const
  {
    const bool a_nan = a.best != a.best, b_nan = b.best != b.best;

    if (a.at < 0 || b.at < 0)
      return a.at < 0 ? b : a;
    if (a_nan || b_nan)
      return a_nan && b_nan ? (a.at > b.at ? a : b) : a_nan ? a : b;
    if (a.best != b.best)
      return a.best > b.best ? a : b;
    return a.at < b.at ? a : b;
  }
};

/* for (EACH_LARGE (o)): the results of this warp or, if p.lanes is 0, of this block */
#define LARGE_LANES (p.lanes != 0 ? (int) p.lanes : (int) blockDim.x)
#define EACH_LARGE(o)                                                          \
  int64_t o = ((int64_t) blockIdx.x * blockDim.x + threadIdx.x) / LARGE_LANES; \
  o < p.n;                                                                     \
  o += (int64_t) gridDim.x * blockDim.x / LARGE_LANES

template <typename T, typename C>
static __device__ __forceinline__ void
mean_pool_large (const GtPool &p)
{
  typedef typename MeanSum<C>::Sum S;
  __shared__ Sum<S> shared[32];
  const int lanes = LARGE_LANES;

  for (EACH_LARGE (o))
    {
      int64_t to[3], first[3], end[3], n = 1;
      const int64_t base = find_position (p, p.out, o, to) * p.n_in;
      Sum<S> sum = { 0 };
      Walk walk;

      for (int d = 0; d < 3; d++)
        n *= find_window (p, d, to[d], &first[d], &end[d]);
      for (walk_init (&walk, first, end, threadIdx.x % lanes, lanes); !walk.ended; walk_on (&walk))
        sum.sum +=
            gt_get<C, T> (p.x, base
                                   + ((first[0] + walk.at[0]) * p.in[1] + first[1] + walk.at[1])
                                         * p.in[2]
                                   + first[2] + walk.at[2]);
      sum = combine_lanes (sum, sum, lanes, shared);
      if (threadIdx.x % lanes == 0)
        gt_put<T> (p.y, o, MeanSum<C>::divide (sum.sum, p.divisor != 0 ? p.divisor : n));
    }
}

template <typename T, typename C>
static __device__ __forceinline__ void
max_pool_large (const GtPool &p)
{
  __shared__ Best<C> shared[32];
  const int lanes = LARGE_LANES;

  for (EACH_LARGE (o))
    {
      int64_t to[3], first[3], end[3];
      const int64_t base = find_position (p, p.out, o, to) * p.n_in;
      Best<C> best = { 0, -1 };
      Walk walk;

      for (int d = 0; d < 3; d++)
        find_window (p, d, to[d], &first[d], &end[d]);
      for (walk_init (&walk, first, end, threadIdx.x % lanes, lanes); !walk.ended; walk_on (&walk))
        {
          const int64_t place =
              ((first[0] + walk.at[0]) * p.in[1] + first[1] + walk.at[1]) * p.in[2] + first[2]
              + walk.at[2];
          const C v = gt_get<C, T> (p.x, base + place);

          if (best.at < 0 || v > best.best || v != v)
            best = { v, place };
        }
      best = combine_lanes (best, best, lanes, shared);
      if (threadIdx.x % lanes == 0)
        {
          gt_put<T> (p.y, o, best.best);
          if (p.indices != NULL)
            p.indices[o] = best.at;
        }
    }
}

/* --- the gradient --- */

/* Computes the gradient of mean pooling. Each element of the images collects the gradients of the windows
 * that contain it. */
template <typename T, typename C, typename I>
static __device__ __forceinline__ void
mean_pool_grad (const GtPool &p)
{
  for (GT_LOOP (e, p.n))
    {
      I at[3], first[3], end[3], to[3], n[3], start, stop;
      const I base = find_position (p, p.in, (I) e, at) * (I) p.n_out;
      C sum = 0;

      for (int d = 0; d < 3; d++)
        find_results (p, d, at[d], &first[d], &end[d]);
      for (to[0] = first[0]; to[0] < end[0]; to[0]++)
        {
          n[0] = find_window (p, 0, to[0], &start, &stop);
          if (at[0] < start || at[0] >= stop)
            continue;
          for (to[1] = first[1]; to[1] < end[1]; to[1]++)
            {
              n[1] = n[0] * find_window (p, 1, to[1], &start, &stop);
              if (at[1] < start || at[1] >= stop)
                continue;
              for (to[2] = first[2]; to[2] < end[2]; to[2]++)
                {
                  n[2] = n[1] * find_window (p, 2, to[2], &start, &stop);
                  if (at[2] >= start && at[2] < stop)
                    sum += gt_get<C, T> (p.x, base + (to[0] * (I) p.out[1] + to[1]) * (I) p.out[2]
                                                  + to[2])
                           / (C) (p.divisor != 0 ? p.divisor : n[2]);
                }
            }
        }
      gt_put<T> (p.y, e, sum);
    }
}

/* --- channels last ---
 *
 * A thread has V neighbouring channels of a pixel, 16 bytes of them if all addresses allow for that. */

/* The indices of V channels. */
template <typename I, int V>
GT_DEVICE void
load_indices (const int64_t *from, I *at)
{
  const int W = V > 1 ? 2 : 1;

#pragma unroll
  for (int k = 0; k < V; k += W)
    {
      const gt_vector<int64_t, W> pair = *(const gt_vector<int64_t, W> *) (from + k);

#pragma unroll
      for (int j = 0; j < W; j++)
        at[k + j] = (I) pair.at[j];
    }
}

template <typename I, int V>
GT_DEVICE void
store_indices (int64_t *to, const I *at)
{
  const int W = V > 1 ? 2 : 1;

#pragma unroll
  for (int k = 0; k < V; k += W)
    {
      gt_vector<int64_t, W> pair;

#pragma unroll
      for (int j = 0; j < W; j++)
        pair.at[j] = at[k + j];
      *(gt_vector<int64_t, W> *) (to + k) = pair;
    }
}

template <typename T, typename C, typename I, int V>
static __device__ __forceinline__ void
max_pool_last (const GtPool &p)
{
  const I groups = (I) (p.channels / V);

  for (GT_LOOP (o, p.n / V))
    {
      I to[3], first[3], end[3], group, at[V];
      const I base = find_position (p, p.out, split ((I) o, groups, &group), to) * (I) p.n_in;
      gt_vector<T, V> result;
      C best[V];

#pragma unroll
      for (int k = 0; k < V; k++)
        {
          at[k] = -1;
          best[k] = 0;
        }
      for (int d = 0; d < 3; d++)
        find_window (p, d, to[d], &first[d], &end[d]);
      for (I z = first[0]; z < end[0]; z += (I) p.dilation[0])
        for (I y = first[1]; y < end[1]; y += (I) p.dilation[1])
          for (I x = first[2]; x < end[2]; x += (I) p.dilation[2])
            {
              const I place = (z * (I) p.in[1] + y) * (I) p.in[2] + x;
              const gt_vector<T, V> v =
                  ((const gt_vector<T, V> *) p.x)[(base + place) * groups + group];

#pragma unroll
              for (int k = 0; k < V; k++)
                {
                  const C one = gt_convert<C>::from (v.at[k]);

                  if (at[k] < 0 || one > best[k] || one != one)
                    {
                      best[k] = one;
                      at[k] = place;
                    }
                }
            }
#pragma unroll
      for (int k = 0; k < V; k++)
        result.at[k] = gt_convert<T>::from (best[k]);
      ((gt_vector<T, V> *) p.y)[o] = result;
      if (p.indices != NULL)
        store_indices<I, V> (p.indices + o * V, at);
    }
}

template <typename T, typename C, typename I, int V>
static __device__ __forceinline__ void
max_pool_grad_last (const GtPool &p)
{
  const I groups = (I) (p.channels / V);

  for (GT_LOOP (e, p.n / V))
    {
      I at[3], first[3], end[3], group;
      const I base = find_position (p, p.in, split ((I) e, groups, &group), at) * (I) p.n_out;
      const I place = (at[0] * (I) p.in[1] + at[1]) * (I) p.in[2] + at[2];
      gt_vector<T, V> result;
      C sum[V];

#pragma unroll
      for (int k = 0; k < V; k++)
        sum[k] = 0;
      for (int d = 0; d < 3; d++)
        find_results (p, d, at[d], &first[d], &end[d]);
      for (I z = first[0]; z < end[0]; z++)
        for (I y = first[1]; y < end[1]; y++)
          for (I x = first[2]; x < end[2]; x++)
            {
              const I o = (base + (z * (I) p.out[1] + y) * (I) p.out[2] + x) * groups + group;
              const gt_vector<T, V> g = ((const gt_vector<T, V> *) p.x)[o];
              I places[V];

              load_indices<I, V> (p.indices + (int64_t) o * V, places);
#pragma unroll
              for (int k = 0; k < V; k++)
                if (places[k] == place)
                  sum[k] += gt_convert<C>::from (g.at[k]);
            }
#pragma unroll
      for (int k = 0; k < V; k++)
        result.at[k] = gt_convert<T>::from (sum[k]);
      ((gt_vector<T, V> *) p.y)[e] = result;
    }
}

template <typename T, typename C, typename I, int V>
static __device__ __forceinline__ void
mean_pool_last (const GtPool &p)
{
  const I groups = (I) (p.channels / V);

  for (GT_LOOP (o, p.n / V))
    {
      I to[3], first[3], end[3], group, n = 1;
      const I base = find_position (p, p.out, split ((I) o, groups, &group), to) * (I) p.n_in;
      gt_vector<T, V> result;
      double sum[V];

#pragma unroll
      for (int k = 0; k < V; k++)
        sum[k] = 0;
      for (int d = 0; d < 3; d++)
        n *= find_window (p, d, to[d], &first[d], &end[d]);
      for (I z = first[0]; z < end[0]; z++)
        for (I y = first[1]; y < end[1]; y++)
          for (I x = first[2]; x < end[2]; x++)
            {
              const gt_vector<T, V> v =
                  ((const gt_vector<T, V> *)
                       p.x)[(base + (z * (I) p.in[1] + y) * (I) p.in[2] + x) * groups + group];

#pragma unroll
              for (int k = 0; k < V; k++)
                sum[k] += gt_convert<C>::from (v.at[k]);
            }
#pragma unroll
      for (int k = 0; k < V; k++)
        result.at[k] =
            gt_convert<T>::from ((C) (sum[k] / (double) (p.divisor != 0 ? p.divisor : n)));
      ((gt_vector<T, V> *) p.y)[o] = result;
    }
}

template <typename T, typename C, typename I, int V>
static __device__ __forceinline__ void
mean_pool_grad_last (const GtPool &p)
{
  const I groups = (I) (p.channels / V);

  for (GT_LOOP (e, p.n / V))
    {
      I at[3], first[3], end[3], to[3], n[3], start, stop, group;
      const I base = find_position (p, p.in, split ((I) e, groups, &group), at) * (I) p.n_out;
      gt_vector<T, V> result;
      C sum[V];

#pragma unroll
      for (int k = 0; k < V; k++)
        sum[k] = 0;
      for (int d = 0; d < 3; d++)
        find_results (p, d, at[d], &first[d], &end[d]);
      for (to[0] = first[0]; to[0] < end[0]; to[0]++)
        {
          n[0] = find_window (p, 0, to[0], &start, &stop);
          if (at[0] < start || at[0] >= stop)
            continue;
          for (to[1] = first[1]; to[1] < end[1]; to[1]++)
            {
              n[1] = n[0] * find_window (p, 1, to[1], &start, &stop);
              if (at[1] < start || at[1] >= stop)
                continue;
              for (to[2] = first[2]; to[2] < end[2]; to[2]++)
                {
                  const I o = base + (to[0] * (I) p.out[1] + to[1]) * (I) p.out[2] + to[2];

                  n[2] = n[1] * find_window (p, 2, to[2], &start, &stop);
                  if (at[2] < start || at[2] >= stop)
                    continue;
                  const gt_vector<T, V> g = ((const gt_vector<T, V> *) p.x)[o * groups + group];

#pragma unroll
                  for (int k = 0; k < V; k++)
                    sum[k] +=
                        gt_convert<C>::from (g.at[k]) / (C) (p.divisor != 0 ? p.divisor : n[2]);
                }
            }
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        result.at[k] = gt_convert<T>::from (sum[k]);
      ((gt_vector<T, V> *) p.y)[e] = result;
    }
}

/* Defines a function that runs the one of this name with the type of numbers and the vectors that suffice. */
#define WITH_VECTORS(name)                                                                        \
  template <typename T, typename C> static __device__ __forceinline__ void name (const GtPool &p) \
  {                                                                                               \
    const int V = 16 / sizeof (T);                                                                \
                                                                                                  \
    if (p.channels % V != 0                                                                       \
        || (((uintptr_t) p.x | (uintptr_t) p.y | (uintptr_t) p.indices) & 15) != 0)               \
      name<T, C, int64_t, 1> (p);                                                                 \
    else if (p.is_narrow)                                                                         \
      name<T, C, int32_t, V> (p);                                                                 \
    else                                                                                          \
      name<T, C, int64_t, V> (p);                                                                 \
  }
WITH_VECTORS (max_pool_last)
WITH_VECTORS (max_pool_grad_last)
WITH_VECTORS (mean_pool_last)
WITH_VECTORS (mean_pool_grad_last)

/* Defines a function that runs the one of this name with the type of numbers that suffices. */
#define WITH_NUMBERS(name)                                                                        \
  template <typename T, typename C> static __device__ __forceinline__ void name (const GtPool &p) \
  {                                                                                               \
    if (p.is_narrow)                                                                              \
      name<T, C, int32_t> (p);                                                                    \
    else                                                                                          \
      name<T, C, int64_t> (p);                                                                    \
  }
WITH_NUMBERS (max_pool)
WITH_NUMBERS (max_pool_grad)
WITH_NUMBERS (mean_pool)
WITH_NUMBERS (mean_pool_grad)

#define EACH(dtype, T, C)                                                                  \
  GT_KERNEL (gt_max_pool_##dtype, GtPool, 1024) { max_pool<T, C> (p); }                    \
  GT_KERNEL (gt_max_pool_grad_##dtype, GtPool, 1024) { max_pool_grad<T, C> (p); }          \
  GT_KERNEL (gt_mean_pool_##dtype, GtPool, 1024) { mean_pool<T, C> (p); }                  \
  GT_KERNEL (gt_max_pool_large_##dtype, GtPool, 1024) { max_pool_large<T, C> (p); }        \
  GT_KERNEL (gt_mean_pool_large_##dtype, GtPool, 1024) { mean_pool_large<T, C> (p); }      \
  GT_KERNEL (gt_mean_pool_grad_##dtype, GtPool, 1024) { mean_pool_grad<T, C> (p); }        \
  GT_KERNEL (gt_max_pool_last_##dtype, GtPool, 256) { max_pool_last<T, C> (p); }           \
  GT_KERNEL (gt_max_pool_grad_last_##dtype, GtPool, 256) { max_pool_grad_last<T, C> (p); } \
  GT_KERNEL (gt_mean_pool_last_##dtype, GtPool, 256) { mean_pool_last<T, C> (p); }         \
  GT_KERNEL (gt_mean_pool_grad_last_##dtype, GtPool, 256) { mean_pool_grad_last<T, C> (p); }
GT_EACH_FLOAT (EACH)

#define EACH_INTEGER(dtype, T, C)                                       \
  GT_KERNEL (gt_max_pool_##dtype, GtPool, 1024) { max_pool<T, C> (p); } \
  GT_KERNEL (gt_max_pool_large_##dtype, GtPool, 1024) { max_pool_large<T, C> (p); }
GT_EACH_INTEGER (EACH_INTEGER)
GT_KERNEL (gt_mean_pool_i64, GtPool, 1024) { mean_pool<gint64, gint64> (p); }
GT_KERNEL (gt_mean_pool_large_i64, GtPool, 1024) { mean_pool_large<gint64, gint64> (p); }
