/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies (with conversion, between any strides, or transposing) and fills. */

#include "gtorch-pointwise.cuh"

/* --- contiguous, with conversion: from operand 1 to operand 0 --- */
template <typename D, typename S>
static __device__ __forceinline__ void
cast (const GtContiguous &p)
{
  constexpr int V = 16 / (sizeof (D) > sizeof (S) ? sizeof (D) : sizeof (S));
  const uint64_t n_vectors = p.n / V;
  const uint64_t first = (uint64_t) blockIdx.x * (GT_THREADS * GT_VECTORS) + threadIdx.x;
  gt_vector<S, V> x[GT_VECTORS];

#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    if (first + u * GT_THREADS < n_vectors)
      x[u] = ((const gt_vector<S, V> *) p.data[1])[first + u * GT_THREADS];
#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    {
      gt_vector<D, V> y;

      if (first + u * GT_THREADS >= n_vectors)
        break;
#pragma unroll
      for (int v = 0; v < V; v++)
        y.at[v] = gt_convert<D>::from (x[u].at[v]);
      ((gt_vector<D, V> *) p.data[0])[first + u * GT_THREADS] = y;
    }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < p.n % V)
    {
      const uint64_t i = n_vectors * V + threadIdx.x;

      ((D *) p.data[0])[i] = gt_convert<D>::from (((const S *) p.data[1])[i]);
    }
}

#define CAST(d, D, s, S)                                         \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS)      \
      gt_cast_##d##_##s (const __grid_constant__ GtContiguous p) \
  {                                                              \
    cast<D, S> (p);                                              \
  }
#define CASTS(d, D)                 \
  CAST (d, D, f32, float)           \
  CAST (d, D, f64, double)          \
  CAST (d, D, f16, gt_f16)          \
  CAST (d, D, bf16, gt_bf16)        \
  CAST (d, D, i8, gint8)            \
  CAST (d, D, u8, guint8)           \
  CAST (d, D, i16, gint16)          \
  CAST (d, D, i32, gint32)          \
  CAST (d, D, i64, gint64)          \
  CAST (d, D, bool, guint8)         \
  CAST (d, D, c64, GTorchComplex64) \
  CAST (d, D, c128, GTorchComplex128)
CASTS (f32, float)
CASTS (f64, double)
CASTS (f16, gt_f16)
CASTS (bf16, gt_bf16)
CASTS (i8, gint8)
CASTS (u8, guint8)
CASTS (i16, gint16)
CASTS (i32, gint32)
CASTS (i64, gint64)
CASTS (bool, gt_bool)
CASTS (c64, GTorchComplex64)
CASTS (c128, GTorchComplex128)

/* --- any strides --- */
/* Copies elements, all loads of a thread before its first store, so that they are under way together. */
template <typename T>
static __device__ __forceinline__ void
move (const GtStrided &p)
{
  int32_t at[GT_STEPS][2];
  T x[GT_STEPS];

  gt_walk (p, at);
#pragma unroll
  for (int u = 0; u < GT_STEPS; u++)
    x[u] = *(const T *) ((const char *) p.base.data[1] + at[u][1]);
#pragma unroll
  for (int u = 0; u < GT_STEPS; u++)
    if (gt_step_at (u) < (uint32_t) p.base.n)
      *(T *) ((char *) p.base.data[0] + at[u][0]) = x[u];
}

#define MOVE(size, T)                                       \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS) \
      gt_move_##size (const __grid_constant__ GtStrided p)  \
  {                                                         \
    move<T> (p);                                            \
  }
MOVE (1, uint8_t)
MOVE (2, uint16_t)
MOVE (4, uint32_t)
MOVE (8, uint64_t)
MOVE (16, ulonglong2)

/* Converts elements; C is a type that holds every value of the source's dtype. */
template <typename C>
static __device__ __forceinline__ void
convert (const GtStrided &p)
{
  int32_t at[GT_STEPS][2];

  gt_walk (p, at);
#pragma unroll
  for (int u = 0; u < GT_STEPS; u++)
    if (gt_step_at (u) < (uint32_t) p.base.n)
      gt_store<C> ((char *) p.base.data[0] + at[u][0], p.dtypes[0],
                   gt_load<C> ((const char *) p.base.data[1] + at[u][1], p.dtypes[1]));
}

#define CONVERT(c, C)                                       \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS) \
      gt_convert_##c (const __grid_constant__ GtStrided p)  \
  {                                                         \
    convert<C> (p);                                         \
  }
CONVERT (i64, gint64)
CONVERT (f64, double)
CONVERT (c128, GTorchComplex128)

/* --- transposed, one tile at a time through shared memory --- */
#define TILE 64

/* Transposes matrices: p.rows and p.columns are the sizes along the contiguous dimensions of the source and
 * of the destination. */
template <typename T>
static __device__ __forceinline__ void
transpose (const GtTranspose &p)
{
  __shared__ T tile[TILE][TILE + (sizeof (T) >= 4 ? 1 : 4 / sizeof (T))];
  const uint32_t n = gt_divide (blockIdx.x, p.tiles); /* index of the matrix in the batch */
  const uint32_t in = blockIdx.x - n * p.tiles.divisor;
  const uint32_t down = gt_divide (in, p.tiles_across), across = in - down * p.tiles_across.divisor;
  const uint32_t r0 = across * TILE, c0 = down * TILE;
  const T *src = (const T *) p.src;
  T *dst = (T *) p.dst;
  uint32_t rest = n;
  int64_t to = 0, from = 0;

  for (uint32_t d = 0; d < p.n_dims; d++)
    {
      const uint32_t next = gt_divide (rest, p.shape[d]);
      const uint32_t at = rest - next * p.shape[d].divisor;

      to += at * p.strides[d][0];
      from += at * p.strides[d][1];
      rest = next;
    }
  src = (const T *) ((const char *) src + from);
  dst = (T *) ((char *) dst + to);

  {
    T x[TILE * TILE / 256];

#pragma unroll
    for (int i = 0; i < TILE * TILE / 256; i++)
      {
        const uint32_t r = threadIdx.x % TILE, c = threadIdx.x / TILE + i * (256 / TILE);

        if (r0 + r < p.rows && c0 + c < p.columns)
          x[i] = src[(int64_t) (c0 + c) * p.src_column + r0 + r];
      }
#pragma unroll
    for (int i = 0; i < TILE * TILE / 256; i++)
      tile[threadIdx.x / TILE + i * (256 / TILE)][threadIdx.x % TILE] = x[i];
  }
  __syncthreads ();
#pragma unroll
  for (int i = 0; i < TILE * TILE / 256; i++)
    {
      const uint32_t c = threadIdx.x % TILE, r = threadIdx.x / TILE + i * (256 / TILE);

      if (r0 + r < p.rows && c0 + c < p.columns)
        dst[(int64_t) (r0 + r) * p.dst_row + c0 + c] = tile[c][r];
    }
}

#define TRANSPOSE(size, T)                                        \
  extern "C" __global__ void __launch_bounds__ (256)              \
      gt_transpose_##size (const __grid_constant__ GtTranspose p) \
  {                                                               \
    transpose<T> (p);                                             \
  }
TRANSPOSE (1, uint8_t)
TRANSPOSE (2, uint16_t)
TRANSPOSE (4, uint32_t)
TRANSPOSE (8, uint64_t)

/* --- filling with number[0], which has the output's dtype --- */
#define FILL(size, T)                                                                           \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS)                                     \
      gt_fill_##size (const __grid_constant__ GtContiguous p)                                   \
  {                                                                                             \
    constexpr int V = 16 / sizeof (T);                                                          \
    const uint64_t n_vectors = p.n / V;                                                         \
    const T value = *(const T *) &p.number[0];                                                  \
    gt_vector<T, V> x;                                                                          \
    for (int v = 0; v < V; v++)                                                                 \
      x.at[v] = value;                                                                          \
    for (int u = 0; u < GT_VECTORS; u++)                                                        \
      {                                                                                         \
        const uint64_t i = ((uint64_t) blockIdx.x * GT_VECTORS + u) * GT_THREADS + threadIdx.x; \
        if (i < n_vectors)                                                                      \
          ((gt_vector<T, V> *) p.data[0])[i] = x;                                               \
      }                                                                                         \
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < p.n % V)                                   \
      ((T *) p.data[0])[n_vectors * V + threadIdx.x] = value;                                   \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS)                                     \
      gt_spread_##size (const __grid_constant__ GtStrided p)                                    \
  {                                                                                             \
    const T value = *(const T *) &p.base.number[0];                                             \
    int32_t at[GT_STEPS][1];                                                                    \
    gt_walk (p, at);                                                                            \
    for (int u = 0; u < GT_STEPS; u++)                                                          \
      if (gt_step_at (u) < (uint32_t) p.base.n)                                                 \
        *(T *) ((char *) p.base.data[0] + at[u][0]) = value;                                    \
  }
FILL (1, uint8_t)
FILL (2, uint16_t)
FILL (4, uint32_t)
FILL (8, uint64_t)
FILL (16, ulonglong2)
