/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Elements found by index, chosen by truth values, or made from their position. */

#include "gtorch-pointwise.cuh"
#include "gtorch-plain.cuh"

#define NOWHERE INT64_MIN

/* --- addition where several meet: floats in any order, so their last bit may differ between runs --- */
template <typename T>
GT_DEVICE void
add_to (T *to, T x)
{
  atomicAdd (to, x);
}

template <typename W, typename T>
GT_DEVICE void
add_in_word (T *to, T x)
{
  const uintptr_t at = (uintptr_t) to, word = at & ~(uintptr_t) 3;
  const int shift = (int) (at - word) * 8;
  unsigned int *where = (unsigned int *) word, before = *where, seen;
  const unsigned int mask = (sizeof (T) == 1 ? 0xffu : 0xffffu) << shift;

  do
    {
      const T sum = (T) ((T) (before >> shift) + x);

      seen = before;
      before = atomicCAS (where, seen, (seen & ~mask) | ((unsigned int) (W) sum << shift));
    }
  while (before != seen);
}

template <>
__device__ __forceinline__ void
add_to (gint8 *to, gint8 x)
{
  add_in_word<guint8> (to, x);
}
template <>
__device__ __forceinline__ void
add_to (guint8 *to, guint8 x)
{
  add_in_word<guint8> (to, x);
}
template <>
__device__ __forceinline__ void
add_to (gint16 *to, gint16 x)
{
  add_in_word<guint16> (to, x);
}
template <>
__device__ __forceinline__ void
add_to (gint64 *to, gint64 x)
{
  atomicAdd ((unsigned long long *) to, (unsigned long long) x);
}
template <>
__device__ __forceinline__ void
add_to (gt_bool *to, gt_bool x)
{
  if (x.value)
    to->value = 1;
}
template <>
__device__ __forceinline__ void
add_to (GTorchComplex64 *to, GTorchComplex64 x)
{
  atomicAdd ((float *) to, x.real ());
  atomicAdd ((float *) to + 1, x.imag ());
}
template <>
__device__ __forceinline__ void
add_to (GTorchComplex128 *to, GTorchComplex128 x)
{
  atomicAdd ((double *) to, x.real ());
  atomicAdd ((double *) to + 1, x.imag ());
}

/* clang-format off */
#define EACH_ELEMENT(M)                                                          \
  M (f32, float) M (f64, double) M (f16, gt_f16) M (bf16, gt_bf16)               \
  M (i8, gint8) M (u8, guint8) M (i16, gint16) M (i32, gint32) M (i64, gint64)   \
  M (bool, gt_bool) M (c64, GTorchComplex64) M (c128, GTorchComplex128)
/* clang-format on */

/* --- blocks --- */

/* out[0] (+)= in[0] * n[1], for n[0] indices into a dimension of n[2]; n[3] negative ones count from the end,
 * n[4] is it the first? n[5] op; n[6] an index that is left out where n[7] */
GT_KERNEL (gt_offsets_i64)
{
  int64_t *offsets = (int64_t *) p.out[0];

  for (GT_LOOP (i, p.n[0]))
    {
      const int64_t index = ((const int64_t *) p.in[0])[i];
      const int64_t at = index + (p.n[3] && index < 0 ? p.n[2] : 0);
      const int64_t before = p.n[4] ? 0 : offsets[i];

      if (at < 0 || at >= p.n[2])
        gt_report (p.report, p.n[5], index, p.n[2]);
      offsets[i] = at < 0 || at >= p.n[2] || before == NOWHERE || (p.n[7] && index == p.n[6])
                       ? NOWHERE
                       : before + at * p.n[1];
    }
}

/* Where element e of the dense tensor is; NULL: nowhere. */
GT_DEVICE char *
find (const GtBlocks &p, int64_t e)
{
  int64_t in, b, pre = gt_split (gt_split (e, p.inner, &in), p.n_index, &b), at;
  const int64_t offset = p.offsets[b];
  char *where = (char *) p.indexed + offset;

  if (offset == NOWHERE)
    return NULL;
  for (int d = (int) p.n_inner_dims - 1; d > 0; d--)
    {
      in = gt_split (in, p.inner_shape[d], &at);
      where += at * p.inner_strides[d];
    }
  if (p.n_inner_dims > 0)
    where += in * p.inner_strides[0];
  for (int d = (int) p.n_pre_dims - 1; d > 0; d--)
    {
      pre = gt_split (pre, p.pre_shape[d], &at);
      where += at * p.pre_strides[d];
    }
  if (p.n_pre_dims > 0)
    where += pre * p.pre_strides[0];
  return where;
}

#define BLOCKS_KERNEL(name) \
  extern "C" __global__ void __launch_bounds__ (256) name (const __grid_constant__ GtBlocks p)

#define BLOCKS(size, T)                                   \
  BLOCKS_KERNEL (gt_blocks_get_##size)                    \
  {                                                       \
    for (GT_LOOP (e, p.total))                            \
      {                                                   \
        const T *from = (const T *) find (p, e);          \
        T zero = {};                                      \
        ((T *) p.dense)[e] = from != NULL ? *from : zero; \
      }                                                   \
  }                                                       \
  BLOCKS_KERNEL (gt_blocks_put_##size)                    \
  {                                                       \
    for (GT_LOOP (e, p.total))                            \
      {                                                   \
        T *to = (T *) find (p, e);                        \
        if (to != NULL)                                   \
          *to = ((const T *) p.dense)[e];                 \
      }                                                   \
  }
GT_EACH_SIZE (BLOCKS)

#define BLOCKS_ADD(name, T)                         \
  BLOCKS_KERNEL (gt_blocks_add_##name)              \
  {                                                 \
    for (GT_LOOP (e, p.total))                      \
      {                                             \
        T *to = (T *) find (p, e);                  \
        if (to != NULL)                             \
          add_to<T> (to, ((const T *) p.dense)[e]); \
      }                                             \
  }
EACH_ELEMENT (BLOCKS_ADD)

/* --- gather and scatter --- */
template <typename F>
static __device__ __forceinline__ void
each_index (const GtGather &p, F f)
{
  for (GT_LOOP (e, p.n))
    {
      char *indexed = (char *) p.indexed, *plain = (char *) p.plain;
      const char *index = (const char *) p.index;
      int64_t rest = e, at;

      for (int d = (int) p.n_dims - 1; d >= 0; d--)
        {
          rest = gt_split (rest, p.shape[d], &at);
          indexed += at * p.strides[d][0];
          index += at * p.strides[d][1];
          plain += at * p.strides[d][2];
        }
      at = *(const int64_t *) index;
      if (at < 0 || at >= p.size)
        gt_report (p.report, p.op, at, p.size);
      else
        f (indexed + at * p.stride, plain);
    }
}

#define GATHER_KERNEL(name) \
  extern "C" __global__ void __launch_bounds__ (256) name (const __grid_constant__ GtGather p)

#define GATHER(size, T)                                                           \
  GATHER_KERNEL (gt_gather_##size)                                                \
  {                                                                               \
    each_index (p, [] (char *from, char *to) { *(T *) to = *(const T *) from; }); \
  }                                                                               \
  GATHER_KERNEL (gt_scatter_##size)                                               \
  {                                                                               \
    each_index (p, [] (char *to, char *from) { *(T *) to = *(const T *) from; }); \
  }
GT_EACH_SIZE (GATHER)

#define SCATTER_ADD(name, T)                                                                \
  GATHER_KERNEL (gt_scatter_add_##name)                                                     \
  {                                                                                         \
    each_index (p, [] (char *to, char *from) { add_to<T> ((T *) to, *(const T *) from); }); \
  }
EACH_ELEMENT (SCATTER_ADD)

/* [outer, n, inner] and [outer, inner] of places: n[0] places, n[1] n, n[2] inner, n[3] op */
#define AT(size, T)                                                                         \
  GT_KERNEL (gt_take_at_##size)                                                             \
  {                                                                                         \
    for (GT_LOOP (i, p.n[0]))                                                               \
      {                                                                                     \
        int64_t in, outer = gt_split (i, p.n[2], &in), at = ((const int64_t *) p.in[1])[i]; \
        if (at < 0 || at >= p.n[1])                                                         \
          gt_report (p.report, p.n[3], at, p.n[1]);                                         \
        else                                                                                \
          ((T *) p.out[0])[i] = ((const T *) p.in[0])[(outer * p.n[1] + at) * p.n[2] + in]; \
      }                                                                                     \
  }                                                                                         \
  GT_KERNEL (gt_place_at_##size)                                                            \
  {                                                                                         \
    for (GT_LOOP (i, p.n[0]))                                                               \
      {                                                                                     \
        int64_t in, outer = gt_split (i, p.n[2], &in), at = ((const int64_t *) p.in[1])[i]; \
        if (at < 0 || at >= p.n[1])                                                         \
          gt_report (p.report, p.n[3], at, p.n[1]);                                         \
        else                                                                                \
          ((T *) p.out[0])[(outer * p.n[1] + at) * p.n[2] + in] = ((const T *) p.in[0])[i]; \
      }                                                                                     \
  }
GT_EACH_SIZE (AT)

/* --- where: operands out, condition, a, b of any layout --- */
#define WHERE(size, T)                                                              \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS)                         \
      gt_where_##size (const __grid_constant__ GtStrided p)                         \
  {                                                                                 \
    for (uint32_t u = 0; u < GT_UNROLL; u++)                                        \
      {                                                                             \
        const uint32_t i = (blockIdx.x * GT_UNROLL + u) * GT_THREADS + threadIdx.x; \
        int64_t at[4] = { 0, 0, 0, 0 };                                             \
        uint32_t rest = i;                                                          \
        if (i >= (uint32_t) p.base.n)                                               \
          return;                                                                   \
        for (uint32_t d = 0; d < p.n_dims; d++)                                     \
          {                                                                         \
            const uint32_t next = gt_divide (rest, p.shape[d]);                     \
            const uint32_t k = rest - next * p.shape[d].divisor;                    \
            for (int j = 0; j < 4; j++)                                             \
              at[j] += k * p.strides[d][j];                                         \
            rest = next;                                                            \
          }                                                                         \
        *(T *) ((char *) p.base.data[0] + at[0]) =                                  \
            *((const guint8 *) p.base.data[1] + at[1])                              \
                ? *(const T *) ((const char *) p.base.data[2] + at[2])              \
                : *(const T *) ((const char *) p.base.data[3] + at[3]);             \
      }                                                                             \
  }
GT_EACH_SIZE (WHERE)

/* The same where all are contiguous; as many elements at once as the widest load has. */
#define WHERE_FLAT(size, T)                                                                      \
  extern "C" __global__ void __launch_bounds__ (GT_THREADS)                                      \
      gt_where_flat_##size (const __grid_constant__ GtContiguous p)                              \
  {                                                                                              \
    constexpr int V = 16 / size;                                                                 \
    typedef gt_vector<T, V> Vector;                                                              \
    typedef gt_vector<guint8, V> Mask;                                                           \
    const uint64_t i = (uint64_t) blockIdx.x * (2 * GT_THREADS) + threadIdx.x;                   \
    const uint64_t n = p.n / V;                                                                  \
    Vector a[2], b[2];                                                                           \
    Mask m[2];                                                                                   \
    _Pragma ("unroll") for (int u = 0; u < 2; u++) if (i + u * GT_THREADS < n)                   \
    {                                                                                            \
      m[u] = ((const Mask *) p.data[1])[i + u * GT_THREADS];                                     \
      a[u] = ((const Vector *) p.data[2])[i + u * GT_THREADS];                                   \
      b[u] = ((const Vector *) p.data[3])[i + u * GT_THREADS];                                   \
    }                                                                                            \
    _Pragma ("unroll") for (int u = 0; u < 2; u++) if (i + u * GT_THREADS < n)                   \
    {                                                                                            \
      for (int k = 0; k < V; k++)                                                                \
        a[u].at[k] = m[u].at[k] ? a[u].at[k] : b[u].at[k];                                       \
      ((Vector *) p.data[0])[i + u * GT_THREADS] = a[u];                                         \
    }                                                                                            \
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < p.n % V)                                    \
      {                                                                                          \
        const uint64_t k = n * V + threadIdx.x;                                                  \
        ((T *) p.data[0])[k] = ((const T *) p.data[((const guint8 *) p.data[1])[k] ? 2 : 3])[k]; \
      }                                                                                          \
  }
WHERE_FLAT (1, uint8_t)
WHERE_FLAT (2, uint16_t)
WHERE_FLAT (4, uint32_t)
WHERE_FLAT (8, uint64_t)

/* --- made from the position --- */

/* out[0] i = d[0] + i d[1] in double; the last one of n[0] is d[2] where n[1] */
template <typename T>
static __device__ __forceinline__ void
progression (const GtPlain &p)
{
  for (GT_LOOP (i, p.n[0]))
    {
      const double x =
          p.n[1] && i + 1 == p.n[0] && i > 0 ? p.d[2] : __dadd_rn (p.d[0], __dmul_rn (i, p.d[1]));

      ((T *) p.out[0])[i] = gt_convert<T>::from (p.n[2] ? pow (p.d[3], x) : x);
    }
}

/* Ones at the diagonal of zeros: n[0] of them, rows of n[1] */
template <typename T>
static __device__ __forceinline__ void
eye (const GtPlain &p)
{
  for (GT_LOOP (i, p.n[0]))
    ((T *) p.out[0])[i * (p.n[1] + 1)] = gt_convert<T>::from (1);
}

#define MADE(name, T)                                       \
  GT_KERNEL (gt_progression_##name) { progression<T> (p); } \
  GT_KERNEL (gt_eye_##name) { eye<T> (p); }
EACH_ELEMENT (MADE)

/* Clears what is not in the triangle: n[0] elements, n[1] rows, n[2] columns, n[3] diagonal, n[4] lower? */
#define TRIANGLE(size, T)                                           \
  GT_KERNEL (gt_triangle_##size)                                    \
  {                                                                 \
    T zero = {};                                                    \
    for (GT_LOOP (i, p.n[0]))                                       \
      {                                                             \
        int64_t column, row;                                        \
        gt_split (gt_split (i, p.n[2], &column), p.n[1], &row);     \
        if (p.n[4] ? column - row > p.n[3] : column - row < p.n[3]) \
          ((T *) p.out[0])[i] = zero;                               \
      }                                                             \
  }
GT_EACH_SIZE (TRIANGLE)

/* in[0] n[0] indices, out[0] zeros [n[0], n[1]]; n[2] op */
GT_KERNEL (gt_one_hot_i64)
{
  for (GT_LOOP (i, p.n[0]))
    {
      const int64_t at = ((const int64_t *) p.in[0])[i];

      if (at < 0 || at >= p.n[1])
        gt_report (p.report, p.n[2], at, p.n[1]);
      else
        ((int64_t *) p.out[0])[i * p.n[1] + at] = 1;
    }
}

/* --- nonzero: parts of n[1] of the n[0] flags in[0] --- */

/* out[0]: how many in each part */
GT_KERNEL (gt_count_flags_bool)
{
  __shared__ int64_t shared[32];

  for (int64_t part = blockIdx.x; part * p.n[1] < p.n[0]; part += gridDim.x)
    {
      const int64_t end = min ((part + 1) * p.n[1], p.n[0]);
      int64_t count = 0;

      for (int64_t i = part * p.n[1] + threadIdx.x; i < end; i += blockDim.x)
        count += ((const guint8 *) p.in[0])[i] != 0;
      count = gt_row_reduce (count, gt_sum_of (), shared);
      if (threadIdx.x == 0)
        ((int64_t *) p.out[0])[part] = count;
      __syncthreads ();
    }
}

/* One block: out[0] of n[0] numbers becomes the sum of those before, the total at the end. */
GT_KERNEL (gt_sum_before_i64)
{
  __shared__ int64_t sums[1024];
  int64_t *x = (int64_t *) p.out[0], base = 0;

  for (int64_t first = 0; first < p.n[0]; first += blockDim.x)
    {
      const int64_t i = first + threadIdx.x, own = i < p.n[0] ? x[i] : 0;

      sums[threadIdx.x] = own;
      __syncthreads ();
      for (int step = 1; step < blockDim.x; step *= 2)
        {
          const int64_t other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;

          __syncthreads ();
          sums[threadIdx.x] += other;
          __syncthreads ();
        }
      if (i < p.n[0])
        x[i] = base + sums[threadIdx.x] - own;
      base += sums[blockDim.x - 1];
      __syncthreads ();
    }
  if (threadIdx.x == 0)
    x[p.n[0]] = base;
}

/* in[1]: the sums before; out[0] [total, n[2]] positions in a tensor of n[2] dims, n[3..] sizes. A warp has a
 * part. */
GT_KERNEL (gt_find_flags_bool)
{
  const int lane = threadIdx.x % 32;

  for (int64_t part = ((int64_t) blockIdx.x * blockDim.x + threadIdx.x) / 32;
       part * p.n[1] < p.n[0]; part += (int64_t) gridDim.x * blockDim.x / 32)
    {
      const int64_t end = min ((part + 1) * p.n[1], p.n[0]);
      int64_t at = ((const int64_t *) p.in[1])[part];

      for (int64_t i = part * p.n[1]; i < end; i += 32)
        {
          const bool mine = i + lane < end && ((const guint8 *) p.in[0])[i + lane] != 0;
          const unsigned int all = __ballot_sync (~0u, mine);

          if (mine)
            {
              int64_t *to =
                  (int64_t *) p.out[0] + (at + __popc (all & ((1u << lane) - 1))) * p.n[2];
              int64_t rest = i + lane, k;

              for (int64_t d = p.n[2] - 1; d >= 0; d--)
                {
                  rest = gt_split (rest, p.n[3 + d], &k);
                  to[d] = k;
                }
            }
          at += __popc (all);
        }
    }
}

/* --- conjugates of n[0] elements --- */
#define CONJ(name, T)                                    \
  GT_KERNEL (gt_conj_##name)                             \
  {                                                      \
    for (GT_LOOP (i, p.n[0]))                            \
      {                                                  \
        const T x = ((const T *) p.in[0])[i];            \
        ((T *) p.out[0])[i] = T (x.real (), -x.imag ()); \
      }                                                  \
  }
CONJ (c64, GTorchComplex64)
CONJ (c128, GTorchComplex128)
