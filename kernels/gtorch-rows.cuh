/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Rows that fit into the registers of their threads: K vectors of V elements per thread. A block has
 * blockDim.y rows. */

#include "gtorch-plain.cuh"
#include "gtorch-pointwise.cuh"

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
