/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Products of integer matrices, which no library has for all of them: tiles in shared memory, sums modulo the
 * dtype's range. */

#include "gtorch-types.cuh"

#define TILE 32
#define ROWS 8 /* of threads: each has TILE / ROWS elements of a column */

template <typename T, typename U>
static __device__ __forceinline__ void
multiply (const GtMultiply &p)
{
  __shared__ T a[TILE][TILE + 1], b[TILE][TILE + 1];
  const uint64_t tiles = p.tiles_down * p.tiles_across, batch = blockIdx.x / tiles;
  const uint64_t in = blockIdx.x % tiles;
  const int64_t i0 = in % p.tiles_down * TILE, j0 = in / p.tiles_down * TILE;
  const T *pa = (const T *) p.a + batch * p.a_batch, *pb = (const T *) p.b + batch * p.b_batch;
  T *pc = (T *) p.c + batch * p.c_batch;
  const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  U sum[TILE / ROWS] = {};

  for (int64_t k0 = 0; k0 < p.k; k0 += TILE)
    {
      /* neighbouring threads read neighbouring elements, whichever way the matrix lies */
      for (int r = y; r < TILE; r += ROWS)
        {
          const int ai = p.a_row == 1 ? x : r, ak = p.a_row == 1 ? r : x;
          const int bk = p.b_row == 1 ? x : r, bj = p.b_row == 1 ? r : x;

          a[ai][ak] = i0 + ai < p.m && k0 + ak < p.k
                          ? pa[(i0 + ai) * p.a_row + (k0 + ak) * p.a_column]
                          : (T) 0;
          b[bk][bj] = k0 + bk < p.k && j0 + bj < p.n
                          ? pb[(k0 + bk) * p.b_row + (j0 + bj) * p.b_column]
                          : (T) 0;
        }
      __syncthreads ();
      for (int k = 0; k < TILE; k++)
#pragma unroll
        for (int r = 0; r < TILE / ROWS; r++)
          sum[r] += (U) a[x][k] * (U) b[k][y + r * ROWS];
      __syncthreads ();
    }
#pragma unroll
  for (int r = 0; r < TILE / ROWS; r++)
    {
      const int64_t i = i0 + x, j = j0 + y + r * ROWS;

      if (i < p.m && j < p.n)
        {
          T *to = &pc[i + j * p.c_column];

          *to = (T) ((U) p.alpha * sum[r] + (p.beta != 0 ? (U) p.beta * (U) *to : (U) 0));
        }
    }
}

#define MULTIPLY(name, T, U)                                    \
  extern "C" __global__ void __launch_bounds__ (TILE *ROWS)     \
      gt_multiply_##name (const __grid_constant__ GtMultiply p) \
  {                                                             \
    multiply<T, U> (p);                                         \
  }
MULTIPLY (i8, gint8, uint32_t)
MULTIPLY (u8, guint8, uint32_t)
MULTIPLY (i16, gint16, uint32_t)
MULTIPLY (i32, gint32, uint32_t)
MULTIPLY (i64, gint64, uint64_t)
