/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Rows, of which a block has blockDim.y: those that fit into the registers of their threads, and passes over
 * those of any length. */

#include "gtorch-plain.cuh"
#include "gtorch-pointwise.cuh"

/* Computes exp with an accuracy that suffices for 16-bit floats. */
GT_DEVICE float
gt_quick_exp (float x)
{
  float y;

  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}

/* K vectors of V elements per thread. */
template <typename T, typename C, int V, int K> struct gt_row
{
  C x[K * V];

  /* Loads a row; elements beyond its end become `fill`. */
  __device__ __forceinline__ void
  load (const void *from, int64_t n, C fill)
  {
    gt_vector<T, V> v[K];

#pragma unroll
    for (int k = 0; k < K; k++)
      if ((threadIdx.x + k * blockDim.x) * V < n)
        v[k] = ((const gt_vector<T, V> *) from)[threadIdx.x + k * blockDim.x];
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
      for (int i = 0; i < V; i++)
        x[k * V + i] =
            (threadIdx.x + k * blockDim.x) * V < n ? gt_convert<C>::from (v[k].at[i]) : fill;
  }

  template <typename F>
  __device__ __forceinline__ void
  combine (const void *other, int64_t n, F f)
  {
#pragma unroll
    for (int k = 0; k < K; k++)
      if ((threadIdx.x + k * blockDim.x) * V < n)
        {
          const gt_vector<T, V> v = ((const gt_vector<T, V> *) other)[threadIdx.x + k * blockDim.x];

#pragma unroll
          for (int i = 0; i < V; i++)
            x[k * V + i] = f (x[k * V + i], gt_convert<C>::from (v.at[i]));
        }
  }

  __device__ __forceinline__ void
  store (void *to, int64_t n) const
  {
#pragma unroll
    for (int k = 0; k < K; k++)
      {
        gt_vector<T, V> v;

#pragma unroll
        for (int i = 0; i < V; i++)
          v.at[i] = gt_convert<T>::from (x[k * V + i]);
        if ((threadIdx.x + k * blockDim.x) * V < n)
          ((gt_vector<T, V> *) to)[threadIdx.x + k * blockDim.x] = v;
      }
  }
};

/* --- passes --- */

/* for (GT_ROW_LOOP (row, rows)): the rows of these threads, which reduce together (gt_row_reduce ()). */
#define GT_ROW_LOOP(row, rows)                                   \
  int64_t row = (int64_t) blockIdx.x * blockDim.y + threadIdx.y; \
  row < (int64_t) (rows);                                        \
  row += (int64_t) gridDim.x * blockDim.y

/* Computes exp with an accuracy that suffices for elements of type T. */
template <typename T, typename C>
GT_DEVICE C
gt_exp_for (C x)
{
  if constexpr (sizeof (T) == 2)
    return gt_quick_exp (x);
  else
    return exp (x);
}

/* Returns the number of elements before the first one that is aligned to 16 bytes, at most n. */
template <typename T>
GT_DEVICE int64_t
gt_unaligned (const T *x, int64_t n)
{
  const int64_t head = (int64_t) ((0 - (uintptr_t) x) % 16 / sizeof (T));

  return head < n ? head : n;
}

/* Calls f.take<N> (values, position of the first one) for all elements of a row, in vectors of 16 bytes where
 * they are aligned, unless has_vectors is false. U vectors are under way together. */
template <int U, typename T, typename F>
static __device__ __forceinline__ void
gt_pass (const T *x, int64_t n, bool has_vectors, F &f)
{
  constexpr int V = 16 / sizeof (T);
  const int64_t head = has_vectors ? gt_unaligned (x, n) : n;
  const int64_t n_vectors = (n - head) / V, step = blockDim.x;
  const gt_vector<T, V> *const from = (const gt_vector<T, V> *) (x + head);

  for (int64_t i = threadIdx.x; i < head; i += step)
    f.template take<1> (x + i, i);
  for (int64_t i = threadIdx.x; i < n_vectors; i += U * step)
    {
      gt_vector<T, V> v[U];

#pragma unroll
      for (int u = 0; u < U; u++)
        if (i + u * step < n_vectors)
          v[u] = from[i + u * step];
#pragma unroll
      for (int u = 0; u < U; u++)
        if (i + u * step < n_vectors)
          f.template take<V> (v[u].at, head + (i + u * step) * V);
    }
  for (int64_t i = head + n_vectors * V + threadIdx.x; i < n; i += step)
    f.template take<1> (x + i, i);
}

/* The greatest element and sum (exp (x - most)), in one pass; begins with -INFINITY and 0. */
template <typename T, typename C> struct gt_exp_sum
{
  C most, sum;

  template <int N>
  __device__ __forceinline__ void
  take (const T *v, int64_t at)
  {
    C x[N], top = most, base;

#pragma unroll
    for (int i = 0; i < N; i++)
      {
        x[i] = gt_convert<C>::from (v[i]);
        top = fmax (top, x[i]); /* passes over NaN */
      }
    if (top > most)
      {
        sum *= gt_exp_for<T> (most - top);
        most = top;
      }
    base = most == (C) -INFINITY ? (C) 0 : most;
#pragma unroll
    for (int i = 0; i < N; i++)
      sum += gt_exp_for<T> (x[i] - base);
  }

  /* Gives all threads of the row the result of the whole row. */
  __device__ __forceinline__ void
  reduce (C *shared)
  {
    const C all = gt_row_reduce (most, gt_max_of (), shared);

    sum = gt_row_reduce (most == all ? sum : sum * exp (most - all), gt_sum_of (), shared);
    most = all;
  }
};

/* Writes zeros to a row. */
template <typename T>
static __device__ __forceinline__ void
gt_clear_row (T *y, int64_t n)
{
  constexpr int V = 16 / sizeof (T);
  const int64_t head = gt_unaligned (y, n), n_vectors = (n - head) / V;

  for (int64_t i = threadIdx.x; i < head; i += blockDim.x)
    y[i] = gt_convert<T>::from (0.f);
  for (int64_t i = threadIdx.x; i < n_vectors; i += blockDim.x)
    ((uint4 *) (y + head))[i] = make_uint4 (0, 0, 0, 0);
  for (int64_t i = head + n_vectors * V + threadIdx.x; i < n; i += blockDim.x)
    y[i] = gt_convert<T>::from (0.f);
}

/* These macros call M (dtype, T, C, form, V, K) for forms with vectors of 16 bytes and with single
 * elements. */
#define GT_EACH_ROW_OF(M, dtype, T, C)      \
  M (dtype, T, C, v1, (16 / sizeof (T)), 1) \
  M (dtype, T, C, v2, (16 / sizeof (T)), 2) \
  M (dtype, T, C, v4, (16 / sizeof (T)), 4) \
  M (dtype, T, C, s1, 1, 1)                 \
  M (dtype, T, C, s4, 1, 4)                 \
  M (dtype, T, C, s8, 1, 8)
#define GT_EACH_ROW(M)                    \
  GT_EACH_ROW_OF (M, f32, float, float)   \
  GT_EACH_ROW_OF (M, f64, double, double) \
  GT_EACH_ROW_OF (M, f16, gt_f16, float)  \
  GT_EACH_ROW_OF (M, bf16, gt_bf16, float)
