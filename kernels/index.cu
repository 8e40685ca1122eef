/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Elements addressed by index, chosen by truth values, or computed from their position. */

#include "gtorch-pointwise.cuh"
#include "gtorch-blocks.cuh"

/* --- atomic addition: of integers, for which the order does not matter --- */
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

/* clang-format off */
#define EACH_ELEMENT(M)                                                          \
  M (f32, float) M (f64, double) M (f16, gt_f16) M (bf16, gt_bf16)               \
  M (i8, gint8) M (u8, guint8) M (i16, gint16) M (i32, gint32) M (i64, gint64)   \
  M (bool, gt_bool) M (c64, GTorchComplex64) M (c128, GTorchComplex128)
#define EACH_ADDED(M)                                                            \
  M (i8, gint8) M (u8, guint8) M (i16, gint16) M (i32, gint32) M (i64, gint64)   \
  M (bool, gt_bool)
/* clang-format on */

/* --- blocks --- */

/* Computes offsets: out[0] (+)= in[0] * n[1], for n[0] indices into a dimension of n[2]; n[3] negative ones
 * count from the end, n[4] is it the first? n[5] op; n[6] an index that is skipped if n[7], and not
 * reported if n[7] is 2 */
GT_KERNEL (gt_offsets_i64, GtPlain, 1024)
{
  int64_t *offsets = (int64_t *) p.out[0];

  for (GT_LOOP (i, p.n[0]))
    {
      const int64_t index = ((const int64_t *) p.in[0])[i];
      const int64_t at = index + (p.n[3] && index < 0 ? p.n[2] : 0);
      const int64_t before = p.n[4] ? 0 : offsets[i];

      if ((at < 0 || at >= p.n[2]) && !(p.n[7] == 2 && index == p.n[6]))
        gt_report (p.report, p.n[5], index, p.n[2]);
      offsets[i] = at < 0 || at >= p.n[2] || before == GT_NOWHERE || (p.n[7] && index == p.n[6])
                       ? GT_NOWHERE
                       : before + at * p.n[1];
    }
}

/* --- of several writes to one block the last one is kept --- */

/* Finds the last write to each slot, out[0], from in[0], n[0] numbers of blocks; n[1]: int64, not int32 */
GT_KERNEL (gt_claim_i64, GtPlain, 1024)
{
  for (GT_LOOP (i, p.n[0]))
    {
      const int64_t slot = ((const int64_t *) p.in[0])[i];

      if (slot >= 0)
        gt_claim (p.out[0], p.n[1], slot, i);
    }
}

/* Marks all writes but the last to each block as skipped: out[0] offsets */
GT_KERNEL (gt_keep_last_i64, GtPlain, 1024)
{
  for (GT_LOOP (i, p.n[0]))
    {
      const int64_t slot = ((const int64_t *) p.in[0])[i];

      if (slot >= 0 && !gt_owns (p.in[1], p.n[1], slot, i))
        ((int64_t *) p.out[0])[i] = GT_NOWHERE;
    }
}

/* Marks all writes but the last to each block as skipped, by in[0] sorted numbers of blocks and in[1] their
 * former positions. */
GT_KERNEL (gt_drop_earlier_i64, GtPlain, 1024)
{
  for (GT_LOOP (j, p.n[0] - 1))
    if (p.n[1] ? ((const int64_t *) p.in[0])[j] == ((const int64_t *) p.in[0])[j + 1]
               : ((const int32_t *) p.in[0])[j] == ((const int32_t *) p.in[0])[j + 1])
      ((int64_t *) p.out[0])[((const int64_t *) p.in[1])[j]] = GT_NOWHERE;
}

/* Copies numbers of blocks, to be sorted. */
GT_KERNEL (gt_keys_i32, GtPlain, 1024)
{
  for (GT_LOOP (i, p.n[0]))
    {
      const int64_t slot = ((const int64_t *) p.in[0])[i];

      ((int32_t *) p.out[0])[i] = slot < 0 ? -1 : (int32_t) slot;
    }
}

#define BLOCKS(size, T)                                   \
  GT_KERNEL (gt_blocks_get_##size, GtBlocks, 256)         \
  {                                                       \
    for (GT_LOOP (e, p.total))                            \
      {                                                   \
        const T *from = (const T *) gt_find_block (p, e); \
        T zero = {};                                      \
        ((T *) p.dense)[e] = from != NULL ? *from : zero; \
      }                                                   \
  }                                                       \
  GT_KERNEL (gt_blocks_put_##size, GtBlocks, 256)         \
  {                                                       \
    for (GT_LOOP (e, p.total))                            \
      {                                                   \
        T *to = (T *) gt_find_block (p, e);               \
        if (to != NULL)                                   \
          *to = ((const T *) p.dense)[e * p.step];        \
      }                                                   \
  }
GT_EACH_SIZE (BLOCKS)

#define BLOCKS_ADD(name, T)                                  \
  GT_KERNEL (gt_blocks_add_##name, GtBlocks, 256)            \
  {                                                          \
    for (GT_LOOP (e, p.total))                               \
      {                                                      \
        T *to = (T *) gt_find_block (p, e);                  \
        if (to != NULL)                                      \
          add_to<T> (to, ((const T *) p.dense)[e * p.step]); \
      }                                                      \
  }
EACH_ADDED (BLOCKS_ADD)

/* --- gather and scatter --- */

/* Calls f (e, offset in indexed, offset in plain), or bad (e) where the index is out of range. Handles
 * several elements at a time, so that their indices are loaded together. */
template <typename F, typename G>
static __device__ __forceinline__ void
each_index (const GtGather &p, F f, G bad)
{
  constexpr int U = 4;
  const int64_t threads = (int64_t) gridDim.x * blockDim.x;

  for (int64_t first = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; first < p.n;
       first += threads * U)
    {
      char *indexed[U], *plain[U];
      int64_t index[U];

#pragma unroll
      for (int u = 0; u < U; u++)
        {
          const char *from = (const char *) p.index;
          int64_t rest = first + u * threads, at;

          indexed[u] = (char *) p.indexed;
          plain[u] = (char *) p.plain;
          if (rest >= p.n)
            break;
          for (int d = (int) p.n_dims - 1; d > 0; d--)
            {
              rest = gt_split (rest, p.shape[d], &at);
              indexed[u] += at * p.strides[d][0];
              from += at * p.strides[d][1];
              plain[u] += at * p.strides[d][2];
            }
          indexed[u] += rest * p.strides[0][0];
          plain[u] += rest * p.strides[0][2];
          index[u] = *(const int64_t *) (from + rest * p.strides[0][1]);
        }
#pragma unroll
      for (int u = 0; u < U; u++)
        {
          const int64_t e = first + u * threads;

          if (e >= p.n)
            break;
          if (index[u] >= 0 && index[u] < p.size)
            f (e, indexed[u] + index[u] * p.stride, plain[u]);
          else
            {
              gt_report (p.report, p.op, index[u], p.size);
              bad (e);
            }
        }
    }
}

struct gt_nothing
{
  __device__ __forceinline__ void
  operator() (int64_t e) const
  {
  }
};

GT_DEVICE int64_t
slot_of (const GtGather &p, const char *at)
{
  const int64_t bytes = at - (const char *) p.indexed;

  switch (p.element)
    {
    case 1:
      return bytes;
    case 2:
      return bytes >> 1;
    case 4:
      return bytes >> 2;
    case 8:
      return bytes >> 3;
    default:
      return bytes >> 4;
    }
}

#define GATHER(size, T)                                                             \
  GT_KERNEL (gt_gather_##size, GtGather, 256)                                       \
  {                                                                                 \
    each_index (                                                                    \
        p, [] (int64_t e, char *from, char *to) { *(T *) to = *(const T *) from; }, \
        gt_nothing ());                                                             \
  }                                                                                 \
  GT_KERNEL (gt_scatter_##size, GtGather, 256)                                      \
  {                                                                                 \
    each_index (                                                                    \
        p, [] (int64_t e, char *to, char *from) { *(T *) to = *(const T *) from; }, \
        gt_nothing ());                                                             \
  }                                                                                 \
  GT_KERNEL (gt_scatter_last_##size, GtGather, 256)                                 \
  {                                                                                 \
    each_index (                                                                    \
        p,                                                                          \
        [&p] (int64_t e, char *to, char *from) {                                    \
          if (gt_owns (p.owner, p.wide, slot_of (p, to), e))                        \
            *(T *) to = *(const T *) from;                                          \
        },                                                                          \
        gt_nothing ());                                                             \
  }
GT_EACH_SIZE (GATHER)

GT_KERNEL (gt_scatter_claim_i64, GtGather, 256)
{
  each_index (
      p, [&p] (int64_t e, char *to, char *from) { gt_claim (p.owner, p.wide, slot_of (p, to), e); },
      gt_nothing ());
}

GT_KERNEL (gt_scatter_slots_i64, GtGather, 256)
{
  each_index (
      p, [&p] (int64_t e, char *to, char *from) { p.slots[e] = slot_of (p, to); },
      [&p] (int64_t e) { p.slots[e] = GT_NOWHERE; });
}

#define SCATTER_ADD(name, T)                                                                  \
  GT_KERNEL (gt_scatter_add_##name, GtGather, 256)                                            \
  {                                                                                           \
    each_index (                                                                              \
        p, [] (int64_t e, char *to, char *from) { add_to<T> ((T *) to, *(const T *) from); }, \
        gt_nothing ());                                                                       \
  }
EACH_ADDED (SCATTER_ADD)

/* Adds floats where no two indices name the same element. */
#define SCATTER_ADD_ONCE(name, T, C)                                           \
  GT_KERNEL (gt_scatter_add_##name, GtGather, 256)                             \
  {                                                                            \
    each_index (                                                               \
        p,                                                                     \
        [] (int64_t e, char *to, char *from) {                                 \
          gt_put<T, C> (to, 0, gt_get<C, T> (to, 0) + gt_get<C, T> (from, 0)); \
        },                                                                     \
        gt_nothing ());                                                        \
  }
GT_EACH_FLOAT (SCATTER_ADD_ONCE)
SCATTER_ADD_ONCE (c64, GTorchComplex64, GTorchComplex64)
SCATTER_ADD_ONCE (c128, GTorchComplex128, GTorchComplex128)

/* Takes from [outer, n, inner] at positions [outer, inner]: n[0] positions, n[1] n, n[2] inner, n[3] op */
#define AT(size, T)                                                                         \
  GT_KERNEL (gt_take_at_##size, GtPlain, 1024)                                              \
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
  GT_KERNEL (gt_place_at_##size, GtPlain, 1024)                                             \
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

/* --- where: operands out, condition, a, b with any strides --- */
#define WHERE(size, T)                                                             \
  GT_KERNEL (gt_where_##size, GtStrided, GT_THREADS)                               \
  {                                                                                \
    for (uint32_t u = 0; u < GT_STEPS; u++)                                        \
      {                                                                            \
        const uint32_t i = (blockIdx.x * GT_STEPS + u) * GT_THREADS + threadIdx.x; \
        int64_t at[4] = { 0, 0, 0, 0 };                                            \
        uint32_t rest = i;                                                         \
        if (i >= (uint32_t) p.base.n)                                              \
          return;                                                                  \
        for (uint32_t d = 0; d < p.n_dims; d++)                                    \
          {                                                                        \
            const uint32_t next = gt_divide (rest, p.shape[d]);                    \
            const uint32_t k = rest - next * p.shape[d].divisor;                   \
            for (int j = 0; j < 4; j++)                                            \
              at[j] += k * p.strides[d][j];                                        \
            rest = next;                                                           \
          }                                                                        \
        *(T *) ((char *) p.base.data[0] + at[0]) =                                 \
            *((const guint8 *) p.base.data[1] + at[1])                             \
                ? *(const T *) ((const char *) p.base.data[2] + at[2])             \
                : *(const T *) ((const char *) p.base.data[3] + at[3]);            \
      }                                                                            \
  }
GT_EACH_SIZE (WHERE)

/* Computes where for contiguous operands, or ones of one element (bits 2 and 3 of p.numbers); as many
 * elements at once as the widest load holds. */
template <typename T>
static __device__ __forceinline__ void
where_flat (const GtContiguous &p)
{
  constexpr int V = 16 / sizeof (T);
  typedef gt_vector<T, V> Vector;
  typedef gt_vector<guint8, V> Mask;
  const uint64_t i = (uint64_t) blockIdx.x * (GT_THREADS * GT_VECTORS) + threadIdx.x;
  const uint64_t n = p.n / V;
  const bool one_a = p.numbers >> 2 & 1, one_b = p.numbers >> 3 & 1;
  Vector a[GT_VECTORS], b[GT_VECTORS];
  Mask m[GT_VECTORS];

#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    if (i + u * GT_THREADS < n)
      {
        m[u] = ((const Mask *) p.data[1])[i + u * GT_THREADS];
        if (!one_a)
          a[u] = ((const Vector *) p.data[2])[i + u * GT_THREADS];
        if (!one_b)
          b[u] = ((const Vector *) p.data[3])[i + u * GT_THREADS];
      }
  if (one_a || one_b)
    {
      const T x = *(const T *) p.data[2], y = *(const T *) p.data[3];

#pragma unroll
      for (int u = 0; u < GT_VECTORS; u++)
#pragma unroll
        for (int k = 0; k < V; k++)
          {
            a[u].at[k] = one_a ? x : a[u].at[k];
            b[u].at[k] = one_b ? y : b[u].at[k];
          }
    }
#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    if (i + u * GT_THREADS < n)
      {
#pragma unroll
        for (int k = 0; k < V; k++)
          a[u].at[k] = m[u].at[k] ? a[u].at[k] : b[u].at[k];
        ((Vector *) p.data[0])[i + u * GT_THREADS] = a[u];
      }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < p.n % V)
    {
      const uint64_t k = n * V + threadIdx.x;

      ((T *) p.data[0])[k] = ((const guint8 *) p.data[1])[k]
                                 ? ((const T *) p.data[2])[one_a ? 0 : k]
                                 : ((const T *) p.data[3])[one_b ? 0 : k];
    }
}

#define WHERE_FLAT(size, T) \
  GT_KERNEL (gt_where_flat_##size, GtContiguous, GT_THREADS) { where_flat<T> (p); }
WHERE_FLAT (1, uint8_t)
WHERE_FLAT (2, uint16_t)
WHERE_FLAT (4, uint32_t)
WHERE_FLAT (8, uint64_t)

/* Computes where for a contiguous output and operands that are, along its rows, contiguous or one element.
 * Bits 2 and 3 of numbers: a or b is the output itself, so elements chosen from it need not be written.
 * Elements that are not chosen are not read. */
template <typename T>
static __device__ __forceinline__ void
where_rows (const GtRows &p)
{
  constexpr int V = 16 / sizeof (T);
  typedef gt_vector<T, V> Vector;
  typedef gt_vector<guint8, V> Mask;
  const uint32_t first = blockIdx.x * (GT_THREADS * GT_VECTORS) + threadIdx.x;

#pragma unroll
  for (int u = 0; u < GT_VECTORS; u++)
    {
      const uint32_t i = first + u * GT_THREADS;
      const uint32_t row = gt_divide (i, p.inner), column = i - row * p.inner.divisor;
      bool any = false, all = true;
      Vector x[2];
      Mask m;

      if (i >= (uint32_t) p.base.n)
        return;
      if (p.column_strides[1])
        {
          m = ((const Mask *) p.base.data[1])[(uint64_t) row * p.row_strides[1] + column];
#pragma unroll
          for (int v = 0; v < V; v++)
            {
              any |= m.at[v] != 0;
              all &= m.at[v] != 0;
            }
        }
      else
        {
          const guint8 one = ((const guint8 *) p.base.data[1])[(uint64_t) row * p.row_strides[1]];

          any = all = one != 0;
#pragma unroll
          for (int v = 0; v < V; v++)
            m.at[v] = one;
        }
      if ((all && p.base.numbers & 4) || (!any && p.base.numbers & 8))
        continue;
#pragma unroll
      for (int k = 0; k < 2; k++)
        if (k == 0 ? any : !all)
          {
            if (p.column_strides[k + 2])
              x[k] = ((const Vector *)
                          p.base.data[k + 2])[(uint64_t) row * p.row_strides[k + 2] + column];
            else
              {
                const T one =
                    ((const T *) p.base.data[k + 2])[(uint64_t) row * p.row_strides[k + 2]];

#pragma unroll
                for (int v = 0; v < V; v++)
                  x[k].at[v] = one;
              }
          }
#pragma unroll
      for (int v = 0; v < V; v++)
        x[0].at[v] = m.at[v] ? x[0].at[v] : x[1].at[v];
      ((Vector *) p.base.data[0])[i] = x[0];
    }
}

#define WHERE_ROWS(size, T) \
  GT_KERNEL (gt_where_rows_##size, GtRows, GT_THREADS) { where_rows<T> (p); }
WHERE_ROWS (1, uint8_t)
WHERE_ROWS (2, uint16_t)
WHERE_ROWS (4, uint32_t)
WHERE_ROWS (8, uint64_t)

/* --- elements computed from their position --- */

/* Computes out[0] i = d[0] + i d[1] in double; the last one of n[0] is d[2] if n[1]. If n[3], computes in
 * integers: n[4] + i n[5]. */
template <typename T>
static __device__ __forceinline__ void
progression (const GtPlain &p)
{
  for (GT_LOOP (i, p.n[0]))
    {
      if (p.n[3])
        {
          ((T *) p.out[0])[i] = gt_convert<T>::from ((gint64) (p.n[4] + i * p.n[5]));
          continue;
        }
      const double x =
          p.n[1] && i + 1 == p.n[0] && i > 0 ? p.d[2] : __dadd_rn (p.d[0], __dmul_rn (i, p.d[1]));

      ((T *) p.out[0])[i] = gt_convert<T>::from (p.n[2] ? pow (p.d[3], x) : x);
    }
}

/* Sets the diagonal of zeros to one: n[0] elements of it, rows of n[1] */
template <typename T>
static __device__ __forceinline__ void
eye (const GtPlain &p)
{
  for (GT_LOOP (i, p.n[0]))
    ((T *) p.out[0])[i * (p.n[1] + 1)] = gt_convert<T>::from (1);
}

#define MADE(name, T)                                                      \
  GT_KERNEL (gt_progression_##name, GtPlain, 1024) { progression<T> (p); } \
  GT_KERNEL (gt_eye_##name, GtPlain, 1024) { eye<T> (p); }
EACH_ELEMENT (MADE)

/* Copies in[0] within the triangle: n[0] elements, n[1] rows, n[2] columns, n[3] diagonal, n[4] lower? */
#define TRIANGLE(size, T)                                                        \
  GT_KERNEL (gt_triangle_##size, GtPlain, 1024)                                  \
  {                                                                              \
    const T zero = {};                                                           \
    for (GT_LOOP (i, p.n[0]))                                                    \
      {                                                                          \
        int64_t column, row;                                                     \
        gt_split (gt_split (i, p.n[2], &column), p.n[1], &row);                  \
        const bool out = p.n[4] ? column - row > p.n[3] : column - row < p.n[3]; \
        ((T *) p.out[0])[i] = out ? zero : ((const T *) p.in[0])[i];             \
      }                                                                          \
  }
GT_EACH_SIZE (TRIANGLE)

/* Computes one_hot: in[0] n[0] indices, out[0] zeros [n[0], n[1]]; n[2] op */
GT_KERNEL (gt_one_hot_i64, GtPlain, 1024)
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

/* Returns the sum of min (i, most) over the integers i from 0 to m - 1. */
GT_DEVICE int64_t
up_to (int64_t m, int64_t most)
{
  if (m <= 0)
    return 0;
  return m <= most + 1 ? m * (m - 1) / 2 : most * (most + 1) / 2 + (m - most - 1) * most;
}

/* Computes triangle indices: out[0] [2, n[0]] rows and columns of the positions in a triangle of n[1] rows
 * and n[2] columns; n[3] diagonal, n[4] lower? */
GT_KERNEL (gt_triangle_indices_i64, GtPlain, 1024)
{
  const int64_t columns = p.n[2], start = p.n[3] + (p.n[4] ? 1 : 0);
  const int64_t before = up_to (start, columns);

  for (GT_LOOP (i, p.n[0]))
    {
      int64_t row = 0, end = p.n[1], count = 0;

      while (end - row > 1)
        {
          const int64_t middle = row + (end - row) / 2;
          const int64_t left = up_to (middle + start, columns) - before;
          const int64_t those = p.n[4] ? left : middle * columns - left;

          if (those <= i)
            {
              row = middle;
              count = those;
            }
          else
            end = middle;
        }
      ((int64_t *) p.out[0])[i] = row;
      ((int64_t *) p.out[0])[p.n[0] + i] =
          i - count + (p.n[4] ? 0 : min (max (row + p.n[3], (int64_t) 0), columns));
    }
}

/* --- bincount --- */

/* Finds bounds: in[0] n[0] integers; out[0], initially zeros: the largest one plus 1, and how far the
 * smallest is below 0 */
GT_KERNEL (gt_bounds_i64, GtPlain, 1024)
{
  __shared__ int64_t shared[32];
  int64_t high = 0, low = 0;

  for (GT_LOOP (i, p.n[0]))
    {
      const int64_t x = ((const int64_t *) p.in[0])[i];

      high = max (high, x < INT64_MAX ? x + 1 : x);
      low = max (low, x == INT64_MIN ? INT64_MAX : -x);
    }
  high = gt_row_reduce (high, gt_max_of (), shared);
  low = gt_row_reduce (low, gt_max_of (), shared);
  if (threadIdx.x == 0)
    {
      atomicMax ((long long *) p.out[0], (long long) high);
      atomicMax ((long long *) p.out[0] + 1, (long long) low);
    }
}

#define FEW_BINS 8192

/* Counts: out[0] n[1] counts of the n[0] integers in[0], which are in range */
GT_KERNEL (gt_count_i64, GtPlain, 1024)
{
  __shared__ unsigned int counts[FEW_BINS];
  unsigned long long *out = (unsigned long long *) p.out[0];

  if (p.n[1] <= FEW_BINS)
    {
      for (int64_t bin = threadIdx.x; bin < p.n[1]; bin += blockDim.x)
        counts[bin] = 0;
      __syncthreads ();
      for (GT_LOOP (i, p.n[0]))
        atomicAdd (&counts[((const int64_t *) p.in[0])[i]], 1u);
      __syncthreads ();
      for (int64_t bin = threadIdx.x; bin < p.n[1]; bin += blockDim.x)
        if (counts[bin] != 0)
          atomicAdd (&out[bin], (unsigned long long) counts[bin]);
    }
  else
    for (GT_LOOP (i, p.n[0]))
      atomicAdd (&out[((const int64_t *) p.in[0])[i]], 1ull);
}

/* --- nonzero: the n[0] flags in[0] in parts of n[1] --- */

/* Counts the true flags of each part: out[0] */
GT_KERNEL (gt_count_flags_bool, GtPlain, 1024)
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

/* Computes exclusive sums, in one block: each of the n[0] numbers of out[0] becomes the sum of those
 * before; the total is appended. */
GT_KERNEL (gt_sum_before_i64, GtPlain, 1024)
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

/* Lists the positions of true flags. in[1]: the sums before each part; out[0] [total, n[2]] positions in a
 * tensor of n[2] dims, n[3..] sizes. Each warp has a part. */
GT_KERNEL (gt_find_flags_bool, GtPlain, 1024)
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
  GT_KERNEL (gt_conj_##name, GtPlain, 1024)              \
  {                                                      \
    for (GT_LOOP (i, p.n[0]))                            \
      {                                                  \
        const T x = ((const T *) p.in[0])[i];            \
        ((T *) p.out[0])[i] = T (x.real (), -x.imag ()); \
      }                                                  \
  }
CONJ (c64, GTorchComplex64)
CONJ (c128, GTorchComplex128)
