/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix products: those of integers (modulo the dtype's range), which no library has for all dtypes, and
 * small ones of floats, for which a library's tiles are too large and its calls take too long. */

#include "gtorch-pointwise.cuh"

#define THREADS 256
#define PART    1024 /* elements of a, and of b, in shared memory: each thread loads 4 */
#define PAD     4    /* padding, so that rows begin in different banks */

/* A tile of ROWS rows of an operand; the other dimension, the depth, is the one that is summed over. */
template <typename T, typename U, int ROWS> struct gt_part
{
  static constexpr int DEPTH = PART / ROWS;
  U at[ROWS][DEPTH + PAD];

  /* Returns the position of this thread's element n. With by_row, adjacent threads have different rows. */
  GT_DEVICE void
  place (int n, bool by_row, int *row, int *deep)
  {
    const int i = n * THREADS + threadIdx.x;

    *row = by_row ? i % ROWS : i / DEPTH;
    *deep = by_row ? i / ROWS : i % DEPTH;
  }

  /* Loads this thread's elements; those beyond rows and depth are 0. */
  GT_DEVICE void
  fetch (U next[4], const T *from, int64_t row_stride, int64_t deep_stride, int64_t rows,
         int64_t depth)
  {
#pragma unroll
    for (int n = 0; n < 4; n++)
      {
        int row, deep;

        place (n, row_stride == 1, &row, &deep);
        next[n] = row < rows && deep < depth
                      ? gt_convert<U>::from (from[row * row_stride + deep * deep_stride])
                      : (U) 0;
      }
  }

  __device__ __forceinline__ void
  keep (const U next[4], bool by_row)
  {
#pragma unroll
    for (int n = 0; n < 4; n++)
      {
        int row, deep;

        place (n, by_row, &row, &deep);
        at[row][deep] = next[n];
      }
  }
};

template <typename T, typename U>
GT_DEVICE void
finish (const GtMultiply &p, T *c, int64_t i, int64_t j, U sum)
{
  if (i >= p.m || j >= p.n)
    return;
  sum *= gt_number<U> (p.alpha);
  if (p.bias != NULL)
    sum += gt_convert<U>::from (((const T *) p.bias)[i]);
  if (p.adds)
    sum += gt_number<U> (p.beta) * gt_convert<U>::from (c[i + j * p.c_column]);
  c[i + j * p.c_column] = gt_convert<T>::from (sum);
}

/* Multiplies a and b. A block computes ROWS x ROWS elements of c, and a thread EACH x EACH of them. If a
 * block has more threads than that takes, they share the depth, and their sums are added up at the end. */
template <typename T, typename U, int ROWS, int EACH>
static __device__ __forceinline__ void
multiply (const GtMultiply &p)
{
  constexpr int SIDE = ROWS / EACH, SHARES = THREADS / (SIDE * SIDE);
  typedef gt_part<T, U, ROWS> Part;
  constexpr int DEPTH = Part::DEPTH, SHARE = DEPTH / SHARES;
  typedef gt_vector<U, 4> Line;
  __shared__ union
  {
    struct
    {
      Part a, b;
    } in;
    U shares[SHARES][ROWS][ROWS];
    Line alignment;
  } s;
  const uint64_t tiles = p.tiles_down * p.tiles_across, batch = blockIdx.x / tiles;
  const uint64_t tile = blockIdx.x % tiles;
  const int64_t i0 = tile % p.tiles_down * ROWS, j0 = tile / p.tiles_down * ROWS;
  const T *a = (const T *) p.a + batch * p.a_batch + i0 * p.a_row;
  const T *b = (const T *) p.b + batch * p.b_batch + j0 * p.b_column;
  T *const c = (T *) p.c + batch * p.c_batch;
  const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE % SIDE;
  const int share = threadIdx.x / (SIDE * SIDE);
  const bool has_sums = p.sums != NULL && i0 == 0;
  U sum[EACH][EACH] = {}, next_a[4], next_b[4], total = 0;

  Part::fetch (next_a, a, p.a_row, p.a_column, p.m - i0, p.k);
  Part::fetch (next_b, b, p.b_column, p.b_row, p.n - j0, p.k);
  for (int64_t k = DEPTH;; k += DEPTH)
    {
      s.in.a.keep (next_a, p.a_row == 1);
      s.in.b.keep (next_b, p.b_column == 1);
      __syncthreads ();
      if (k < p.k)
        {
          Part::fetch (next_a, a + k * p.a_column, p.a_row, p.a_column, p.m - i0, p.k - k);
          Part::fetch (next_b, b + k * p.b_row, p.b_column, p.b_row, p.n - j0, p.k - k);
        }
#pragma unroll
      for (int d = 0; d < SHARE; d += 4)
        {
          Line u[EACH], v[EACH];

#pragma unroll
          for (int r = 0; r < EACH; r++)
            {
              u[r] = *(const Line *) &s.in.a.at[x + r * SIDE][share * SHARE + d];
              v[r] = *(const Line *) &s.in.b.at[y + r * SIDE][share * SHARE + d];
            }
#pragma unroll
          for (int e = 0; e < 4; e++)
#pragma unroll
            for (int r = 0; r < EACH; r++)
#pragma unroll
              for (int q = 0; q < EACH; q++)
                sum[r][q] += u[r].at[e] * v[q].at[e];
        }
      if (has_sums) /* adjacent threads add up parts of a column of b */
#pragma unroll
        for (int d = threadIdx.x % (THREADS / ROWS); d < DEPTH; d += THREADS / ROWS)
          total += s.in.b.at[threadIdx.x / (THREADS / ROWS)][d];
      __syncthreads ();
      if (k >= p.k)
        break;
    }

  if (SHARES == 1)
#pragma unroll
    for (int r = 0; r < EACH; r++)
#pragma unroll
      for (int q = 0; q < EACH; q++)
        finish<T> (p, c, i0 + x + r * SIDE, j0 + y + q * SIDE, sum[r][q]);
  else
    {
#pragma unroll
      for (int r = 0; r < EACH; r++)
#pragma unroll
        for (int q = 0; q < EACH; q++)
          s.shares[share][y + q * SIDE][x + r * SIDE] = sum[r][q];
      __syncthreads ();
      for (int n = threadIdx.x; n < ROWS * ROWS; n += THREADS)
        {
          U all = s.shares[0][n / ROWS][n % ROWS];

#pragma unroll
          for (int r = 1; r < SHARES; r++)
            all += s.shares[r][n / ROWS][n % ROWS];
          finish<T> (p, c, i0 + n % ROWS, j0 + n / ROWS, all);
        }
    }
  if (has_sums)
    {
      const int64_t j = j0 + threadIdx.x / (THREADS / ROWS);

#pragma unroll
      for (int step = THREADS / ROWS / 2; step > 0; step /= 2)
        total += __shfl_xor_sync (~0u, total, step);
      if (threadIdx.x % (THREADS / ROWS) == 0 && j < p.n)
        ((T *) p.sums)[j] = gt_convert<T>::from (total);
    }
}

#define MULTIPLY(name, T, U, size, ROWS, EACH)                           \
  extern "C" __global__ void __launch_bounds__ (THREADS, 2)              \
      gt_multiply_##name##_##size (const __grid_constant__ GtMultiply p) \
  {                                                                      \
    multiply<T, U, ROWS, EACH> (p);                                      \
  }
#define SMALL(name, T, U)    MULTIPLY (name, T, U, small, 16, 2)
#define ANY_SIZE(name, T, U) SMALL (name, T, U) MULTIPLY (name, T, U, large, 64, 4)
ANY_SIZE (i8, gint8, uint32_t)
ANY_SIZE (u8, guint8, uint32_t)
ANY_SIZE (i16, gint16, uint32_t)
ANY_SIZE (i32, gint32, uint32_t)
ANY_SIZE (i64, gint64, uint64_t)
SMALL (f32, float, float)
SMALL (f64, double, double)
SMALL (f16, gt_f16, float)
SMALL (bf16, gt_bf16, float)
