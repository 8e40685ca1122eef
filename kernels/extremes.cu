/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The least and the greatest element of a tensor, NaN if there is one. */

#include "gtorch-extremes-params.h"
#include "gtorch-plain.cuh"
#include "gtorch-pointwise.cuh"

struct Least
{
  template <typename C>
  __device__ __forceinline__ C
  operator() (C a, C b) const
  {
    return b < a || b != b ? b : a;
  }
};

struct Greatest
{
  template <typename C>
  __device__ __forceinline__ C
  operator() (C a, C b) const
  {
    return b > a || b != b ? b : a;
  }
};

template <typename T, typename C>
static __device__ __forceinline__ void
extremes (const GtExtremes &p)
{
  constexpr int V = 16 / sizeof (T), U = 4;
  typedef gt_vector<T, V> Vector;
  __shared__ C shared[32];
  const Vector *x = (const Vector *) p.x;
  const int64_t threads = (int64_t) gridDim.x * blockDim.x;
  const int64_t own = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t n_vectors = p.is_aligned ? p.n / V : 0;
  C least = gt_get<C, T> (p.x, 0), greatest = least;
  int64_t i = own;

  for (; i < n_vectors; i += U * threads)
    {
      Vector in[U];

#pragma unroll
      for (int u = 0; u < U; u++)
        in[u] = x[i + u * threads < n_vectors ? i + u * threads : i];
#pragma unroll
      for (int u = 0; u < U; u++)
#pragma unroll
        for (int v = 0; v < V; v++)
          {
            const C one = gt_convert<C>::from (in[u].at[v]);

            least = Least () (least, one);
            greatest = Greatest () (greatest, one);
          }
    }
  for (i = n_vectors * V + own; i < p.n; i += threads)
    {
      const C one = gt_get<C, T> (p.x, i);

      least = Least () (least, one);
      greatest = Greatest () (greatest, one);
    }
  least = gt_row_reduce (least, Least (), shared);
  greatest = gt_row_reduce (greatest, Greatest (), shared);
  if (threadIdx.x == 0)
    {
      ((C *) p.partial)[2 * blockIdx.x] = least;
      ((C *) p.partial)[2 * blockIdx.x + 1] = greatest;
    }
}

template <typename T, typename C>
static __device__ __forceinline__ void
extremes_end (const GtExtremes &p)
{
  __shared__ C shared[32];
  const C *partial = (const C *) p.partial;
  C least = partial[0], greatest = partial[1];

  for (uint32_t i = threadIdx.x; i < p.blocks; i += blockDim.x)
    {
      least = Least () (least, partial[2 * i]);
      greatest = Greatest () (greatest, partial[2 * i + 1]);
    }
  least = gt_row_reduce (least, Least (), shared);
  greatest = gt_row_reduce (greatest, Greatest (), shared);
  if (threadIdx.x == 0)
    {
      gt_put<T> (p.least, 0, least);
      gt_put<T> (p.greatest, 0, greatest);
    }
}

#define EXTREMES(dtype, T, C)                                              \
  GT_KERNEL (gt_extremes_##dtype, GtExtremes, 256) { extremes<T, C> (p); } \
  GT_KERNEL (gt_extremes_end_##dtype, GtExtremes, 1024) { extremes_end<T, C> (p); }
GT_EACH_FLOAT (EXTREMES)
EXTREMES (i8, gint8, gint32)
EXTREMES (u8, guint8, gint32)
EXTREMES (i16, gint16, gint32)
EXTREMES (i32, gint32, gint32)
EXTREMES (i64, gint64, gint64)
EXTREMES (bool, guint8, gint32)
