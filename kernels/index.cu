/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations on elements that are addressed by index. */

#include "gtorch-blocks.cuh"
#include "gtorch-index-params.h"
#include "gtorch-pointwise.cuh"

/* --- atomic addition, for integers, whose sum does not depend on the order --- */
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
#define EACH_ADDED(M)                                                            \
  M (i8, gint8) M (u8, guint8) M (i16, gint16) M (i32, gint32) M (i64, gint64)   \
  M (bool, gt_bool)
/* clang-format on */

/* --- blocks --- */

/* Computes the offsets of indices into a dimension, and adds them to those of former dimensions. */
GT_KERNEL (gt_offsets_i64, GtOffsets, 1024)
{
  int64_t *offsets = p.offsets;

  for (GT_LOOP (i, p.n))
    {
      const int64_t index = p.index[i];
      const int64_t at = index + (p.wrap && index < 0 ? p.size : 0);
      const int64_t before = p.is_first ? 0 : offsets[i];

      if ((at < 0 || at >= p.size) && !(p.leaves_out == 2 && index == p.left_out))
        gt_report (p.report, p.op, index, p.size);
      offsets[i] =
          at < 0 || at >= p.size || before == GT_NOWHERE || (p.leaves_out && index == p.left_out)
              ? GT_NOWHERE
              : before + at * p.stride;
    }
}

/* --- keeping only the last of several writes to a block --- */

/* Finds the last write to each slot, that is to each block by number. */
GT_KERNEL (gt_claim_i64, GtClaim, 1024)
{
  for (GT_LOOP (i, p.n))
    {
      const int64_t slot = p.slots[i];

      if (slot >= 0)
        gt_claim (p.owners, p.wide, slot, i);
    }
}

/* Marks all writes but the last to each block as skipped. */
GT_KERNEL (gt_keep_last_i64, GtKeepLast, 1024)
{
  for (GT_LOOP (i, p.n))
    {
      const int64_t slot = p.slots[i];

      if (slot >= 0 && !gt_owns (p.owners, p.wide, slot, i))
        p.offsets[i] = GT_NOWHERE;
    }
}

/* Marks all writes but the last to each block as skipped, given the sorted numbers of the blocks. */
GT_KERNEL (gt_drop_earlier_i64, GtDropEarlier, 1024)
{
  for (GT_LOOP (j, p.n - 1))
    if (p.wide ? ((const int64_t *) p.keys)[j] == ((const int64_t *) p.keys)[j + 1]
               : ((const int32_t *) p.keys)[j] == ((const int32_t *) p.keys)[j + 1])
      p.offsets[p.at[j]] = GT_NOWHERE;
}

/* Converts the numbers of blocks to int32, to be sorted. */
GT_KERNEL (gt_keys_i32, GtKeys, 1024)
{
  for (GT_LOOP (i, p.n))
    {
      const int64_t slot = p.slots[i];

      p.keys[i] = slot < 0 ? -1 : (int32_t) slot;
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

/* Calls f (e, address in indexed, address in plain) for each index e, or bad (e) if it is out of range.
 * Handles several elements at a time, so that their indices are loaded together. */
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

/* Reads one element of each line, or writes one. */
#define AT(bytes, T)                                                                \
  GT_KERNEL (gt_take_at_##bytes, GtAt, 1024)                                        \
  {                                                                                 \
    for (GT_LOOP (i, p.n))                                                          \
      {                                                                             \
        int64_t in, outer = gt_split (i, p.inner, &in), at = p.index[i];            \
        if (at < 0 || at >= p.size)                                                 \
          gt_report (p.report, p.op, at, p.size);                                   \
        else                                                                        \
          ((T *) p.y)[i] = ((const T *) p.x)[(outer * p.size + at) * p.inner + in]; \
      }                                                                             \
  }                                                                                 \
  GT_KERNEL (gt_place_at_##bytes, GtAt, 1024)                                       \
  {                                                                                 \
    for (GT_LOOP (i, p.n))                                                          \
      {                                                                             \
        int64_t in, outer = gt_split (i, p.inner, &in), at = p.index[i];            \
        if (at < 0 || at >= p.size)                                                 \
          gt_report (p.report, p.op, at, p.size);                                   \
        else                                                                        \
          ((T *) p.y)[(outer * p.size + at) * p.inner + in] = ((const T *) p.x)[i]; \
      }                                                                             \
  }
GT_EACH_SIZE (AT)

/* --- bincount --- */

GT_KERNEL (gt_bounds_i64, GtBounds, 1024)
{
  __shared__ int64_t shared[32];
  int64_t high = 0, low = 0;

  for (GT_LOOP (i, p.n))
    {
      const int64_t x = p.x[i];

      high = max (high, x < INT64_MAX ? x + 1 : x);
      low = max (low, x == INT64_MIN ? INT64_MAX : -x);
    }
  high = gt_row_reduce (high, gt_max_of (), shared);
  low = gt_row_reduce (low, gt_max_of (), shared);
  if (threadIdx.x == 0)
    {
      atomicMax ((long long *) p.bounds, (long long) high);
      atomicMax ((long long *) p.bounds + 1, (long long) low);
    }
}

#define FEW_BINS 8192

GT_KERNEL (gt_count_i64, GtCount, 1024)
{
  __shared__ unsigned int counts[FEW_BINS];
  unsigned long long *out = (unsigned long long *) p.counts;

  if (p.bins <= FEW_BINS)
    {
      for (int64_t bin = threadIdx.x; bin < p.bins; bin += blockDim.x)
        counts[bin] = 0;
      __syncthreads ();
      for (GT_LOOP (i, p.n))
        atomicAdd (&counts[p.x[i]], 1u);
      __syncthreads ();
      for (int64_t bin = threadIdx.x; bin < p.bins; bin += blockDim.x)
        if (counts[bin] != 0)
          atomicAdd (&out[bin], (unsigned long long) counts[bin]);
    }
  else
    for (GT_LOOP (i, p.n))
      atomicAdd (&out[p.x[i]], 1ull);
}
