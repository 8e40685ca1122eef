/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Indexing of rows and elements, and concatenation. Tensors are contiguous, and are copied in the widest
 * words that they allow. */

#include "gtorch-plain.cuh"

#define THREADS 256
#define UNROLL  4

template <typename T>
static __device__ __forceinline__ void
pick (const GtPick &p)
{
  const uint32_t first = blockIdx.x * (THREADS * UNROLL) + threadIdx.x;
  int64_t at[UNROLL];
  T x[UNROLL];

#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    {
      const uint32_t v = first + u * THREADS;

      if (v < p.n)
        {
          const uint32_t row = gt_divide (v, p.inner), pre = gt_divide (row, p.n_index);

          at[u] = p.index[p.each ? v : row - pre * p.n_index.divisor];
        }
    }
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    {
      const uint32_t v = first + u * THREADS;

      if (v < p.n)
        {
          const uint32_t row = gt_divide (v, p.inner), pre = gt_divide (row, p.n_index);
          const int64_t index = at[u] + (p.wrap && at[u] < 0 ? p.size : 0);

          if (index >= 0 && index < p.size)
            x[u] =
                ((const T *)
                     p.src)[(pre * p.size + index) * p.inner.divisor + (v - row * p.inner.divisor)];
          else
            {
              gt_report (p.report, p.op, at[u], p.size);
              x[u] = T ();
            }
        }
    }
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (first + u * THREADS < p.n)
      ((T *) p.dst)[first + u * THREADS] = x[u];
}

template <typename T>
static __device__ __forceinline__ void
join (const GtJoin &p)
{
  uint32_t low = 0, high = p.n_inputs;
  T x[UNROLL];

  while (high - low > 1)
    {
      const uint32_t middle = (low + high) / 2;

      if (p.inputs[middle].first_block <= blockIdx.x)
        low = middle;
      else
        high = middle;
    }
  const GtJoined &in = p.inputs[low];
  const uint32_t first = (blockIdx.x - in.first_block) * (THREADS * UNROLL) + threadIdx.x;
  const uint32_t n = in.n;
  const T *src = (const T *) in.src;
  T *dst = (T *) p.dst + in.start;

#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (first + u * THREADS < n)
      x[u] = src[first + u * THREADS];
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    {
      const uint32_t v = first + u * THREADS;

      if (v < n)
        {
          const uint32_t row = gt_divide (v, in.width);

          dst[row * p.pitch + (v - row * in.width.divisor)] = x[u];
        }
    }
}

#define PICK(size, T)                                          \
  GT_KERNEL (gt_pick_##size, GtPick, THREADS) { pick<T> (p); } \
  GT_KERNEL (gt_join_##size, GtJoin, THREADS) { join<T> (p); }
GT_EACH_SIZE (PICK)
