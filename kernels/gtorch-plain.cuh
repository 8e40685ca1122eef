/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Support for kernels that are simple loops over elements, and for reductions within a block. */

#include "gtorch-types.cuh"

#define GT_PLAIN_THREADS 256

/* These macros call M (name, element type, compute type) for each dtype. */
#define GT_EACH_FLOAT(M)  \
  M (f32, float, float)   \
  M (f64, double, double) \
  M (f16, gt_f16, float)  \
  M (bf16, gt_bf16, float)
#define GT_EACH_INTEGER(M) \
  M (i8, gint8, gint64)    \
  M (u8, guint8, gint64)   \
  M (i16, gint16, gint64)  \
  M (i32, gint32, gint64)  \
  M (i64, gint64, gint64)
#define GT_EACH_SIZE(M) \
  M (1, uint8_t) M (2, uint16_t) M (4, uint32_t) M (8, uint64_t) M (16, ulonglong2)

/* Declares a kernel with its parameters p and its launch bounds: the maximum number of threads in a block,
 * and optionally the minimum number of blocks resident on a multiprocessor. generator/kernels makes the
 * host's tables from these lines. */
#define GT_KERNEL(name, Parameters, ...)                     \
  extern "C" __global__ void __launch_bounds__ (__VA_ARGS__) \
      name (const __grid_constant__ Parameters p)

/* A grid-stride loop: for (GT_LOOP (i, n)) */
#define GT_LOOP(i, end)                                        \
  int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; \
  i < (int64_t) (end);                                         \
  i += (int64_t) gridDim.x * blockDim.x

template <typename C, typename T>
GT_DEVICE C
gt_get (const void *p, int64_t i)
{
  return gt_convert<C>::from (((const T *) p)[i]);
}

template <typename T, typename C>
GT_DEVICE void
gt_put (void *p, int64_t i, C x)
{
  ((T *) p)[i] = gt_convert<T>::from (x);
}

/* Divides i by n with a remainder, in 32 bits where they suffice, which is much faster. */
GT_DEVICE int64_t
gt_split (int64_t i, int64_t n, int64_t *rest)
{
  if (((i | n) >> 32) == 0)
    {
      const uint32_t q = (uint32_t) i / (uint32_t) n;

      *rest = (uint32_t) i - q * (uint32_t) n;
      return q;
    }
  *rest = i % n;
  return i / n;
}

/* Reports an error, usually an index that is out of range, unless there is a report already: an atomic
 * operation decides whose report is written, and the host reads only complete ones. */
GT_DEVICE void
gt_report (void *where, int64_t op, int64_t value, int64_t size)
{
  GtReport *report = (GtReport *) where;

  if (report == NULL || atomicCAS (&report->state, 0u, 1u) != 0)
    return;
  report->op = (uint32_t) op;
  report->value = value;
  report->size = size;
  __threadfence_system ();
  *(volatile uint32_t *) &report->state = 2;
}

/* Reduces over the threads with the same threadIdx.y, which are a warp or the whole block; all of them get
 * the result. The order is fixed. `shared` has 32 elements. */
template <typename C, typename F>
GT_DEVICE C
gt_row_reduce (C x, F combine, C *shared)
{
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    x = combine (x, __shfl_xor_sync (~0u, x, offset));
  if (blockDim.x > 32)
    {
      __syncthreads ();
      if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = x;
      __syncthreads ();
      x = shared[0];
      for (int i = 1; i < blockDim.x / 32; i++)
        x = combine (x, shared[i]);
    }
  return x;
}

/* Adds up two numbers as gt_row_reduce () does one. The next call of the same threads needs other memory. */
template <typename C>
GT_DEVICE void
gt_row_reduce_two (C &x, C &y, C (*shared)[2])
{
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    {
      x += __shfl_xor_sync (~0u, x, offset);
      y += __shfl_xor_sync (~0u, y, offset);
    }
  if (blockDim.x > 32)
    {
      if (threadIdx.x % 32 == 0)
        {
          shared[threadIdx.x / 32][0] = x;
          shared[threadIdx.x / 32][1] = y;
        }
      __syncthreads ();
      x = shared[0][0];
      y = shared[0][1];
      for (int i = 1; i < blockDim.x / 32; i++)
        {
          x += shared[i][0];
          y += shared[i][1];
        }
    }
}

struct gt_sum_of
{
  template <typename C>
  __device__ __forceinline__ C
  operator() (C a, C b) const
  {
    return a + b;
  }
};

struct gt_max_of
{
  template <typename C>
  __device__ __forceinline__ C
  operator() (C a, C b) const
  {
    return a > b ? a : b;
  }
};
