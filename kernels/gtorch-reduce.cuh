/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The kernel bodies of all reductions. Op has the type C (accumulator) and the functions init, step,
 * combine and finish. The order in which elements are combined depends on the shape only: no atomics are
 * used. */

#include "gtorch-pointwise.cuh"

template <typename S, bool truth> struct gt_reduced
{
  template <typename C>
  GT_DEVICE S
  from (C x)
  {
    return gt_convert<S>::from (x);
  }
};
template <typename S> struct gt_reduced<S, true>
{
  template <typename C>
  GT_DEVICE S
  from (C x)
  {
    return (S) (x != 0);
  }
};

template <typename C>
GT_DEVICE C
gt_shuffle_down (C x, int distance, int width)
{
  if constexpr (sizeof (C) < 4)
    return (C) __shfl_down_sync (0xffffffffu, (int) x, distance, width);
  else
    {
      uint32_t words[sizeof (C) / 4];
      C y;

      memcpy (words, &x, sizeof x);
#pragma unroll
      for (int i = 0; i < sizeof (C) / 4; i++)
        words[i] = __shfl_down_sync (0xffffffffu, words[i], distance, width);
      memcpy (&y, words, sizeof y);
      return y;
    }
}

/* Reduces over all threads of the block, with the result in thread 0, or if n_warps is 1 over each warp,
 * with the result in its first thread. */
template <typename Op>
GT_DEVICE typename Op::C
gt_reduce_block (typename Op::C acc, int n_warps)
{
  typedef typename Op::C C;
  __shared__ alignas (16) unsigned char bytes[32 * sizeof (C)];
  C *shared = (C *) bytes;

#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    acc = Op::combine (acc, gt_shuffle_down (acc, d, 32));
  if (n_warps == 1)
    return acc;
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = acc;
  __syncthreads ();
  if (threadIdx.x < 32)
    {
      acc = threadIdx.x < n_warps ? shared[threadIdx.x] : Op::init ();
#pragma unroll
      for (int d = 16; d > 0; d /= 2)
        acc = Op::combine (acc, gt_shuffle_down (acc, d, 32));
    }
  return acc;
}

/* Reduces the elements [begin, end) of a row with `width` threads, of which this one is `at`. Those before
 * the first address that is aligned to vectors, and those after the last vector, are read one by one. */
template <typename Op, typename M>
GT_DEVICE typename Op::C
gt_reduce_row (const M *x, uint64_t begin, uint64_t end, int at, int width)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M);
  C acc[4] = { Op::init (), Op::init (), Op::init (), Op::init () };
  const uint32_t odd = ((uintptr_t) (x + begin) & 15) / sizeof (M);
  const uint64_t first = odd == 0 ? begin : min (begin + V - odd, end);
  const uint64_t n_vectors = (end - first) / V;
  const gt_vector<M, V> *v = (const gt_vector<M, V> *) (x + first);
  uint64_t j = at;

  if (begin + at < first)
    acc[0] = Op::step (acc[0], gt_convert<C>::from (x[begin + at]));
  for (; j + 3 * width < n_vectors; j += 4 * width)
    {
      gt_vector<M, V> in[4];

#pragma unroll
      for (int u = 0; u < 4; u++)
        in[u] = v[j + u * width];
#pragma unroll
      for (int u = 0; u < 4; u++)
#pragma unroll
        for (int k = 0; k < V; k++)
          acc[u] = Op::step (acc[u], gt_convert<C>::from (in[u].at[k]));
    }
  for (; j < n_vectors; j += width)
    {
      const gt_vector<M, V> in = v[j];

#pragma unroll
      for (int k = 0; k < V; k++)
        acc[k % 4] = Op::step (acc[k % 4], gt_convert<C>::from (in.at[k]));
    }
  for (uint64_t i = first + n_vectors * V + at; i < end; i += width)
    acc[0] = Op::step (acc[0], gt_convert<C>::from (x[i]));
  return Op::combine (Op::combine (acc[0], acc[1]), Op::combine (acc[2], acc[3]));
}

/* Reduces rows (inner is 1). Short rows (n_splits is 0) have a warp each, 8 to a block; long ones have one
 * block or n_splits blocks each. */
template <typename Op, typename M, typename S, bool truth>
static __device__ __forceinline__ void
gt_reduce_rows (const GtReduce &p)
{
  typedef typename Op::C C;

  if (p.n_splits == 0)
    {
      const uint64_t row = (uint64_t) blockIdx.x * 8 + threadIdx.x / 32;
      C acc;

      if (row >= p.outer)
        return;
      acc = gt_reduce_row<Op, M> ((const M *) p.src + row * p.pitch, 0, p.n, threadIdx.x % 32, 32);
      acc = gt_reduce_block<Op> (acc, 1);
      if (threadIdx.x % 32 == 0)
        ((S *) p.dst)[row] = gt_reduced<S, truth>::from (Op::finish (acc, p.n_total));
      return;
    }
  {
    const uint64_t row = blockIdx.x / p.n_splits;
    const uint32_t split = blockIdx.x - row * p.n_splits;
    const uint64_t part = ((p.n + p.n_splits - 1) / p.n_splits + 15) / 16 * 16;
    const uint64_t begin = split * part < p.n ? split * part : p.n;
    const uint64_t end = begin + part < p.n ? begin + part : p.n;
    C acc = gt_reduce_row<Op, M> ((const M *) p.src + row * p.pitch, begin, end, threadIdx.x,
                                  blockDim.x);

    acc = gt_reduce_block<Op> (acc, blockDim.x / 32);
    if (threadIdx.x > 0)
      return;
    if (p.n_splits > 1)
      ((C *) p.partial)[split * p.outer + row] = acc;
    else
      ((S *) p.dst)[row] = gt_reduced<S, truth>::from (Op::finish (acc, p.n_total));
  }
}

/* Reduces columns (inner > 1), with blocks of 32 columns and 8 rows at a time; blockIdx.y is the split of
 * n. */
template <typename Op, typename M, typename S, bool truth>
static __device__ __forceinline__ void
gt_reduce_columns (const GtReduce &p)
{
  typedef typename Op::C C;
  __shared__ alignas (16) unsigned char bytes[8 * 33 * sizeof (C)];
  C (*shared)[33] = (C (*)[33]) bytes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint64_t across = (p.inner + 31) / 32;
  const uint64_t o = blockIdx.x / across, column = (blockIdx.x - o * across) * 32 + lane;
  const uint64_t part = (p.n + gridDim.y - 1) / gridDim.y;
  const uint64_t begin = blockIdx.y * part < p.n ? blockIdx.y * part : p.n;
  const uint64_t end = begin + part < p.n ? begin + part : p.n;
  const M *x = (const M *) p.src + o * p.pitch + column;
  C acc[4] = { Op::init (), Op::init (), Op::init (), Op::init () };
  uint64_t i = begin + warp;

  if (column < p.inner)
    {
      for (; i + 24 < end; i += 32)
        {
          M in[4];

#pragma unroll
          for (int u = 0; u < 4; u++)
            in[u] = x[(i + 8 * u) * p.inner];
#pragma unroll
          for (int u = 0; u < 4; u++)
            acc[u] = Op::step (acc[u], gt_convert<C>::from (in[u]));
        }
      for (; i < end; i += 8)
        acc[0] = Op::step (acc[0], gt_convert<C>::from (x[i * p.inner]));
    }
  shared[warp][lane] = Op::combine (Op::combine (acc[0], acc[1]), Op::combine (acc[2], acc[3]));
  __syncthreads ();
  if (warp > 0 || column >= p.inner)
    return;
  acc[0] = shared[0][lane];
  for (int w = 1; w < 8; w++)
    acc[0] = Op::combine (acc[0], shared[w][lane]);
  if (gridDim.y > 1)
    ((C *) p.partial)[(blockIdx.y * p.outer + o) * p.inner + column] = acc[0];
  else
    ((S *) p.dst)[o * p.inner + column] =
        gt_reduced<S, truth>::from (Op::finish (acc[0], p.n_total));
}

/* Combines partial results: n accumulators for each result, which are `inner` apart. A block has `width`
 * results, and several threads for each. */
template <typename Op, typename S, bool truth>
static __device__ __forceinline__ void
gt_reduce_parts (const GtReduce &p)
{
  typedef typename Op::C C;
  __shared__ alignas (16) unsigned char bytes[256 * sizeof (C)];
  C *shared = (C *) bytes;
  const uint64_t i = (uint64_t) blockIdx.x * p.width + (threadIdx.x & (p.width - 1));
  const C *parts = (const C *) p.partial;
  C acc = Op::init ();

  if (i < p.inner)
#pragma unroll 4
    for (uint64_t k = threadIdx.x / p.width; k < p.n; k += 256 / p.width)
      acc = Op::combine (acc, parts[k * p.inner + i]);
  shared[threadIdx.x] = acc;
  for (uint32_t d = 128; d >= p.width; d /= 2)
    {
      __syncthreads ();
      if (threadIdx.x < d)
        shared[threadIdx.x] = acc = Op::combine (acc, shared[threadIdx.x + d]);
    }
  if (threadIdx.x < p.width && i < p.inner)
    ((S *) p.dst)[i] = gt_reduced<S, truth>::from (Op::finish (acc, p.n_total));
}

#define GT_REDUCE_KERNELS(op, compute, memory, M, S, truth)             \
  extern "C" __global__ void __launch_bounds__ (256)                    \
      gt_##op##_##memory##_rows (const __grid_constant__ GtReduce p)    \
  {                                                                     \
    gt_reduce_rows<gt_op_##op##_##compute, M, S, truth> (p);            \
  }                                                                     \
  extern "C" __global__ void __launch_bounds__ (256)                    \
      gt_##op##_##memory##_columns (const __grid_constant__ GtReduce p) \
  {                                                                     \
    gt_reduce_columns<gt_op_##op##_##compute, M, S, truth> (p);         \
  }                                                                     \
  extern "C" __global__ void __launch_bounds__ (256)                    \
      gt_##op##_##memory##_parts (const __grid_constant__ GtReduce p)   \
  {                                                                     \
    gt_reduce_parts<gt_op_##op##_##compute, S, truth> (p);              \
  }

/* These functions return the limits of a type's range. */
template <typename T> __device__ __forceinline__ T gt_lowest_of ();
template <>
__device__ __forceinline__ float
gt_lowest_of<float> ()
{
  return -INFINITY;
}
template <>
__device__ __forceinline__ double
gt_lowest_of<double> ()
{
  return -(double) INFINITY;
}
template <>
__device__ __forceinline__ gint32
gt_lowest_of<gint32> ()
{
  return INT32_MIN;
}
template <>
__device__ __forceinline__ gint64
gt_lowest_of<gint64> ()
{
  return INT64_MIN;
}
template <>
__device__ __forceinline__ guint8
gt_lowest_of<guint8> ()
{
  return 0;
}
template <typename T> __device__ __forceinline__ T gt_highest_of ();
template <>
__device__ __forceinline__ float
gt_highest_of<float> ()
{
  return INFINITY;
}
template <>
__device__ __forceinline__ double
gt_highest_of<double> ()
{
  return INFINITY;
}
template <>
__device__ __forceinline__ gint32
gt_highest_of<gint32> ()
{
  return INT32_MAX;
}
template <>
__device__ __forceinline__ gint64
gt_highest_of<gint64> ()
{
  return INT64_MAX;
}
template <>
__device__ __forceinline__ guint8
gt_highest_of<guint8> ()
{
  return 1;
}
#define gt_lowest(T)  gt_lowest_of<T> ()
#define gt_highest(T) gt_highest_of<T> ()
