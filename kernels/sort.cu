/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sorting: a radix sort of lines by 8-bit digits of their keys, the least significant first; each pass
 * reads and writes everything once. Tiles of a line are assigned to blocks in order, and each block adds up
 * how often each digit occurs in the tiles before its own. Only integers are added, so the result does not
 * depend on timing. Short lines are sorted within a block. */

#include <cub/block/block_radix_rank.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "gtorch-pointwise.cuh"

#define THREADS  384 /* number of threads in a block of sort_pass () */
#define PARTIAL  (1ull << 62)
#define COMPLETE (2ull << 62)
#define COUNT    (~(3ull << 62))

template <typename U>
GT_DEVICE U
key_of (U bits, const GtOrder &p)
{
  const U sign = (U) ((U) 1 << (8 * sizeof (U) - 1)), all = (U) ~(U) 0;
  U key = bits;

  if (p.kind == 2)
    {
      const U plain = bits == sign ? (U) 0 : bits; /* -0 equals 0 */

      key =
          (U) (bits & (U) ~sign) > (U) p.infinity ? all : (U) (plain ^ (plain & sign ? all : sign));
    }
  else if (p.kind == 1)
    key = bits ^ sign;
  return p.descending ? (U) ~key : key;
}

/* Returns the element of a key; it is read from the input if the key does not determine it (NaN and
 * zeros). */
template <typename U>
GT_DEVICE U
element (U key, uint64_t from, const GtOrder &p)
{
  const U sign = (U) ((U) 1 << (8 * sizeof (U) - 1)), all = (U) ~(U) 0;
  const U y = p.descending ? (U) ~key : key;

  if (p.kind == 0)
    return y;
  if (p.kind == 1)
    return y ^ sign;
  if (y == all || y == sign)
    return ((const U *) p.x)[from];
  return y ^ (y & sign ? sign : all);
}

template <typename U>
GT_DEVICE U
key_at (uint64_t line, uint64_t i, const GtOrder &p)
{
  return p.keys_in != NULL ? ((const U *) p.keys_in)[line * p.n + i]
                           : key_of (((const U *) p.x)[line * p.n + i], p);
}

template <typename U> struct Extractor
{
  uint32_t shift;

  __device__ __forceinline__ uint32_t
  Digit (U key) const
  {
    return (uint32_t) (key >> shift) & 255;
  }
};

/* --- long lines --- */

/* Counts how often each digit occurs in each pass; blockIdx.y is the first line of the block. */
template <typename U>
GT_DEVICE void
histogram (const GtOrder &p)
{
  constexpr int PASSES = sizeof (U), COPIES = 4;
  __shared__ uint32_t counts[PASSES][256][COPIES];
  const uint64_t step = (uint64_t) gridDim.x * 256;

  for (int i = threadIdx.x; i < PASSES * 256 * COPIES; i += 256)
    ((uint32_t *) counts)[i] = 0;
  __syncthreads ();
  for (uint64_t line = blockIdx.y; line < p.lines; line += gridDim.y)
    {
#pragma unroll 4
      for (uint64_t i = blockIdx.x * 256 + threadIdx.x; i < p.n; i += step)
        {
          const U key = key_at<U> (line, i, p);

#pragma unroll
          for (int pass = 0; pass < PASSES; pass++)
            atomicAdd (&counts[pass][(uint32_t) (key >> (8 * pass)) & 255][threadIdx.x % COPIES],
                       1);
        }
      __syncthreads ();
      for (int i = threadIdx.x; i < PASSES * 256; i += 256)
        {
          uint32_t *c = counts[i / 256][i % 256], sum = 0;

#pragma unroll
          for (int k = 0; k < COPIES; k++)
            {
              sum += c[k];
              c[k] = 0;
            }
          if (sum > 0)
            atomicAdd (p.histograms + line * PASSES * 256 + i, sum);
        }
      __syncthreads ();
    }
}

/* Replaces the counts of a pass's digits by the digits' offsets in the output. */
extern "C" __global__ void __launch_bounds__ (256)
    gt_order_offsets (const __grid_constant__ GtOrder p)
{
  typedef cub::BlockScan<uint32_t, 256> Scan;
  __shared__ typename Scan::TempStorage temporary;
  uint32_t *at = p.histograms + (uint64_t) blockIdx.x * 256 + threadIdx.x, count = *at;

  Scan (temporary).ExclusiveSum (count, count);
  *at = count;
}

template <typename U, int ITEMS>
GT_DEVICE void
sort_pass (const GtOrder &p)
{
  constexpr int TILE = THREADS * ITEMS;
  typedef cub::BlockRadixRankMatchEarlyCounts<THREADS, 8, false, cub::BLOCK_SCAN_WARP_SCANS> Rank;
  __shared__ union
  {
    typename Rank::TempStorage rank;
    U keys[TILE];
    uint32_t at[TILE];
  } shared;
  __shared__ uint64_t offsets[256];
  __shared__ uint32_t ticket;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Extractor<U> digits = { 8 * p.pass };
  int ranks[ITEMS], before[1];
  uint32_t at[ITEMS];
  U keys[ITEMS];

  if (threadIdx.x == 0)
    ticket = atomicAdd (p.counter, 1);
  __syncthreads ();
  const uint64_t line = ticket / p.tiles;
  const uint32_t tile = ticket - (uint32_t) line * p.tiles;
  const uint64_t begin = (uint64_t) tile * TILE;
  const int n = p.n - begin < TILE ? (int) (p.n - begin) : TILE;
  const int first = warp * 32 * ITEMS + lane;
  uint64_t *states = p.states + (uint64_t) ticket * 256 + threadIdx.x;

#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    keys[i] = first + i * 32 < n ? key_at<U> (line, begin + first + i * 32, p) : (U) ~(U) 0;

  /* Elements beyond the end rank last within the last digit, and are subtracted from its count. */
  Rank (shared.rank).RankKeys (keys, ranks, digits, before, [&] (int (&bins)[1]) {
    if (threadIdx.x < 256)
      {
        const uint64_t count = bins[0] - (threadIdx.x == 255 ? TILE - n : 0);

        asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(states),
                     "l"(count | (tile == 0 ? COMPLETE : PARTIAL))
                     : "memory");
      }
  });
  __syncthreads ();
#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    shared.keys[ranks[i]] = keys[i];

    /* These loads are in flight while the block waits for other tiles. */
#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    {
      const int j = first + i * 32;

      at[i] = j < n && p.at_in != NULL ? p.at_in[line * p.n + begin + j] : (uint32_t) (begin + j);
    }
  if (threadIdx.x < 256)
    {
      uint64_t sum = 0, state;

      if (tile > 0)
        {
          const uint64_t *other = states;

          do
            {
              other -= 256;
              do
                asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(state) : "l"(other) : "memory");
              while (state == 0);
              sum += state & COUNT;
            }
          while (state < COMPLETE);
          asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(state) : "l"(states) : "memory");
          asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(states),
                       "l"(((state & COUNT) + sum) | COMPLETE)
                       : "memory");
        }
      offsets[threadIdx.x] =
          p.histograms[(line * p.passes + p.pass) * 256 + threadIdx.x] + sum - (uint64_t) before[0];
    }
  __syncthreads ();
#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    {
      const int j = i * THREADS + threadIdx.x;

      if (j >= n)
        break;
      keys[i] = shared.keys[j];
      if (p.values == NULL)
        ((U *) p.keys_out)[line * p.n + offsets[digits.Digit (keys[i])] + j] = keys[i];
    }
  __syncthreads ();
#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    if (first + i * 32 < n)
      shared.at[ranks[i]] = at[i];
  __syncthreads ();
#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    {
      const int j = i * THREADS + threadIdx.x;

      if (j >= n)
        break;
      const uint64_t to = offsets[digits.Digit (keys[i])] + j;
      const uint32_t from = shared.at[j];

      if (p.values == NULL)
        p.at_out[line * p.n + to] = from;
      else if (to >= p.skip && to < p.k)
        {
          const uint64_t out = line * (p.k - p.skip) + to - p.skip;

          p.indices[out] = from;
          ((U *) p.values)[out] = element (keys[i], line * p.row + from, p);
        }
    }
}

/* --- short lines --- */

template <typename U>
GT_DEVICE void
write (const GtOrder &p, uint64_t line, uint64_t to, uint32_t at)
{
  if (to < p.skip || to >= p.k)
    return;
  to += line * (p.k - p.skip) - p.skip;
  p.indices[to] = at;
  ((U *) p.values)[to] = ((const U *) p.x)[line * p.row + at];
}

/* Sorts a line in each block. */
template <typename U, int N_THREADS, int ITEMS>
GT_DEVICE void
sort_block (const GtOrder &p)
{
  typedef cub::BlockRadixSort<U, N_THREADS, ITEMS, uint16_t> Sort;
  __shared__ typename Sort::TempStorage temporary;
  const uint64_t line = blockIdx.x;
  U keys[ITEMS];
  uint16_t at[ITEMS];

#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    {
      at[i] = threadIdx.x * ITEMS + i;
      keys[i] = at[i] < p.n ? key_at<U> (line, at[i], p) : (U) ~(U) 0;
    }
  Sort (temporary).SortBlockedToStriped (keys, at);
#pragma unroll
  for (int i = 0; i < ITEMS; i++)
    if (i * N_THREADS + threadIdx.x < p.n)
      write<U> (p, line, i * N_THREADS + threadIdx.x,
                p.at_in != NULL ? p.at_in[line * p.n + at[i]] : at[i]);
}

/* Sorts lines of up to `width` elements with `width` threads each: a thread counts the elements that
 * precede its own. */
template <typename U>
GT_DEVICE void
sort_tiny (const GtOrder &p)
{
  const uint64_t line = ((uint64_t) blockIdx.x * 256 + threadIdx.x) / p.width;
  const uint32_t lane = threadIdx.x & (p.width - 1);
  const bool here = line < p.lines && lane < p.n;
  const U key = here ? key_at<U> (line, lane, p) : (U) 0;
  uint32_t to = 0;

  for (uint32_t i = 0; i < p.n; i++)
    {
      U other;

      if constexpr (sizeof (U) == 8)
        other = __shfl_sync (0xffffffffu, (unsigned long long) key, i, p.width);
      else
        other = (U) __shfl_sync (0xffffffffu, (uint32_t) key, i, p.width);
      to += other < key || (other == key && i < lane);
    }
  if (here)
    write<U> (p, line, to, lane);
}

/* --- the first k --- */

/* Counts the digits of the pass in those keys whose higher digits are the ones chosen so far. */
template <typename U>
GT_DEVICE void
select_count (const GtOrder &p)
{
  __shared__ uint32_t counts[256][32];
  const uint32_t lane = threadIdx.x % 32, shift = 8 * p.pass;
  const uint64_t step = (uint64_t) gridDim.x * 256;
  constexpr uint32_t top = 8 * (sizeof (U) - 1);

  for (int i = threadIdx.x; i < 256 * 32; i += 256)
    ((uint32_t *) counts)[i] = 0;
  __syncthreads ();
  for (uint64_t line = blockIdx.y; line < p.lines; line += gridDim.y)
    {
      const U chosen = (U) p.chosen[2 * line];

#pragma unroll 8
      for (uint64_t i = blockIdx.x * 256 + threadIdx.x; i < p.n; i += step)
        {
          const U key = key_of (((const U *) p.x)[line * p.n + i], p);

          if (shift == top || (U) ((U) (key ^ chosen) >> shift) < 256)
            atomicAdd (&counts[(uint32_t) (key >> shift) & 255][lane], 1);
        }
      __syncthreads ();
      {
        uint32_t sum = 0;

        for (int k = 0; k < 32; k++)
          {
            uint32_t *c = &counts[threadIdx.x][(k + threadIdx.x) % 32];

            sum += *c;
            *c = 0;
          }
        if (sum > 0)
          atomicAdd (p.histograms + line * 256 + threadIdx.x, sum);
      }
      __syncthreads ();
    }
}

/* Chooses the digit that the k-th key has in the pass, with a block for each line. */
extern "C" __global__ void __launch_bounds__ (256)
    gt_order_choose (const __grid_constant__ GtOrder p)
{
  typedef cub::BlockScan<uint64_t, 256> Scan;
  __shared__ typename Scan::TempStorage temporary;
  uint32_t *counts = p.histograms + (uint64_t) blockIdx.x * 256 + threadIdx.x;
  uint64_t *chosen = p.chosen + 2 * (uint64_t) blockIdx.x;
  const uint64_t wanted = p.pass + 1 == p.passes ? p.k : chosen[1], count = *counts;
  uint64_t before;

  *counts = 0;
  Scan (temporary).ExclusiveSum (count, before);
  __syncthreads ();
  if (before < wanted && wanted <= before + count)
    {
      chosen[0] = (p.pass + 1 == p.passes ? 0 : chosen[0]) | (uint64_t) threadIdx.x << 8 * p.pass;
      chosen[1] = wanted - before;
    }
}

#define CHUNK 4096 /* number of elements per block */

/* Counts the elements of each chunk that are smaller than, and equal to, the k-th one. */
template <typename U>
GT_DEVICE void
select_mark (const GtOrder &p)
{
  typedef cub::BlockReduce<uint32_t, 256> Reduce;
  __shared__ typename Reduce::TempStorage temporary;
  const uint64_t line = blockIdx.x / p.tiles, begin = (blockIdx.x - line * p.tiles) * CHUNK;
  const U chosen = (U) p.chosen[2 * line];
  uint32_t both = 0;

#pragma unroll
  for (int i = 0; i < CHUNK / 256; i++)
    {
      const uint64_t j = begin + i * 256 + threadIdx.x;
      const U key = j < p.n ? key_of (((const U *) p.x)[line * p.n + j], p) : (U) 0;

      if (j < p.n)
        both += key < chosen ? 1 : (key == chosen ? 1 << 16 : 0);
    }
  both = Reduce (temporary).Sum (both);
  if (threadIdx.x == 0)
    {
      p.counts[2 * (uint64_t) blockIdx.x] = both & 0xffff;
      p.counts[2 * (uint64_t) blockIdx.x + 1] = both >> 16;
    }
}

/* Replaces the counts of the chunks by exclusive sums, with a block for each line. */
extern "C" __global__ void __launch_bounds__ (1024)
    gt_order_sums (const __grid_constant__ GtOrder p)
{
  typedef cub::BlockScan<uint64_t, 1024> Scan;
  __shared__ typename Scan::TempStorage temporary;
  uint32_t *counts = p.counts + 2 * (uint64_t) blockIdx.x * p.tiles;
  uint64_t carry = 0;

  for (uint64_t begin = 0; begin < p.tiles; begin += 1024)
    {
      const uint64_t i = begin + threadIdx.x;
      uint64_t both = i < p.tiles ? (uint64_t) counts[2 * i + 1] << 32 | counts[2 * i] : 0, sum;

      Scan (temporary).ExclusiveSum (both, both, sum);
      if (i < p.tiles)
        {
          counts[2 * i] = (uint32_t) (carry + both);
          counts[2 * i + 1] = (uint32_t) ((carry + both) >> 32);
        }
      carry += sum;
      __syncthreads ();
    }
}

/* Takes the first k elements: those smaller than the k-th one, then those equal to it, each in the order of
 * the line. */
template <typename U>
GT_DEVICE void
select_take (const GtOrder &p)
{
  typedef cub::BlockScan<uint32_t, 256> Scan;
  constexpr int ITEMS = CHUNK / 256;
  __shared__ typename Scan::TempStorage temporary;
  const uint64_t line = blockIdx.x / p.tiles, begin = (blockIdx.x - line * p.tiles) * CHUNK;
  const U chosen = (U) p.chosen[2 * line];
  const uint64_t equal = p.k - p.chosen[2 * line + 1];
  uint64_t to = p.counts[2 * (uint64_t) blockIdx.x];
  uint64_t to_equal = equal + p.counts[2 * (uint64_t) blockIdx.x + 1];
  const bool last = blockIdx.x + 1 - line * p.tiles == p.tiles;
  /* Return early if nothing is taken from this chunk. */
  if (!last && p.counts[2 * (uint64_t) blockIdx.x + 2] == to
      && (to_equal >= p.k || equal + p.counts[2 * (uint64_t) blockIdx.x + 3] == to_equal))
    return;
  for (int i = 0; i < ITEMS; i++)
    {
      const uint64_t j = begin + i * 256 + threadIdx.x;
      const U key = j < p.n ? key_of (((const U *) p.x)[line * p.n + j], p) : (U) 0;
      const uint32_t mine = j >= p.n ? 0 : (key < chosen ? 1 : (key == chosen ? 1 << 16 : 0));
      uint32_t before, all;

      Scan (temporary).ExclusiveSum (mine, before, all);
      __syncthreads ();
      if (mine != 0)
        {
          const uint64_t at = mine == 1 ? to + (before & 0xffff) : to_equal + (before >> 16);

          if (p.values != NULL) /* only the k-th element is wanted */
            {
              if (at == p.k - 1)
                {
                  p.indices[line] = j;
                  ((U *) p.values)[line] = ((const U *) p.x)[line * p.n + j];
                }
            }
          else if (at < p.k)
            {
              ((U *) p.keys_out)[line * p.k + at] = key;
              p.at_out[line * p.k + at] = (uint32_t) j;
            }
        }
      to += all & 0xffff;
      to_equal += all >> 16;
    }
}

/* --- unique elements --- */

template <typename U>
GT_DEVICE bool
begins (const GtUnique &p, uint64_t i)
{
  const U *keys = (const U *) p.keys;

  return i < p.n && (i == 0 || keys[i] != keys[i - 1] || (p.nan && keys[i] == (U) ~(U) 0));
}

template <typename U>
GT_DEVICE void
unique_count (const GtUnique &p)
{
  const uint64_t begin = (uint64_t) blockIdx.x * CHUNK;
  uint32_t count = 0;
  __shared__ uint32_t sum;

  if (threadIdx.x == 0)
    sum = 0;
  __syncthreads ();
#pragma unroll 4
  for (int i = 0; i < CHUNK / 256; i++)
    count += begins<U> (p, begin + i * 256 + threadIdx.x);
  count = __reduce_add_sync (0xffffffffu, count);
  if (threadIdx.x % 32 == 0)
    atomicAdd (&sum, count);
  __syncthreads ();
  if (threadIdx.x == 0)
    p.sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__ (1024)
    gt_order_unique_sums (const __grid_constant__ GtUnique p)
{
  typedef cub::BlockScan<uint64_t, 1024> Scan;
  __shared__ typename Scan::TempStorage temporary;
  uint64_t carry = 0;

  for (uint64_t begin = 0; begin < p.tiles; begin += 1024)
    {
      const uint64_t i = begin + threadIdx.x;
      uint64_t x = i < p.tiles ? p.sums[i] : 0, sum;

      Scan (temporary).ExclusiveSum (x, x, sum);
      if (i < p.tiles)
        p.sums[i] = carry + x;
      carry += sum;
      __syncthreads ();
    }
  if (threadIdx.x == 0)
    p.sums[p.tiles] = carry;
}

template <typename U>
GT_DEVICE void
unique_write (const GtUnique &p)
{
  typedef cub::BlockScan<uint32_t, 256> Scan;
  __shared__ typename Scan::TempStorage temporary;
  const uint64_t begin = (uint64_t) blockIdx.x * CHUNK;
  uint64_t sum = p.sums[blockIdx.x];

  for (int i = 0; i < CHUNK / 256; i++)
    {
      const uint64_t j = begin + i * 256 + threadIdx.x;
      const uint32_t first = begins<U> (p, j);
      uint32_t through, all;

      Scan (temporary).InclusiveSum (first, through, all);
      __syncthreads ();
      if (j < p.n)
        {
          const uint64_t to = sum + through - 1;

          p.inverse[p.at[j]] = to;
          if (first)
            {
              p.starts[to] = j;
              ((U *) p.values)[to] = ((const U *) p.x)[p.at[j]];
            }
        }
      sum += all;
    }
}

extern "C" __global__ void __launch_bounds__ (256)
    gt_order_unique_lengths (const __grid_constant__ GtUnique p)
{
  const uint64_t i = (uint64_t) blockIdx.x * 256 + threadIdx.x;

  if (i < p.n_values)
    p.counts[i] = (i + 1 < p.n_values ? p.starts[i + 1] : (int64_t) p.n) - p.starts[i];
}

/* --- searching --- */
template <typename T>
GT_DEVICE void
searchsorted (const GtSearch &p)
{
  const uint64_t i = (uint64_t) blockIdx.x * 256 + threadIdx.x;
  const T *line = (const T *) p.sequence;
  uint64_t low = 0, high = p.n;

  if (i >= p.numel)
    return;
  line += i / p.per_line * p.n;
  const T value = ((const T *) p.values)[i];
  while (low < high)
    {
      const uint64_t middle = low + (high - low) / 2;

      if (p.right ? !(line[middle] > value) : !(line[middle] >= value))
        low = middle + 1;
      else
        high = middle;
    }
  p.out[i] = (int64_t) low;
}

#define KERNEL(name, bits, body, threads, P)                 \
  extern "C" __global__ void __launch_bounds__ (threads)     \
      gt_order_##name##_##bits (const __grid_constant__ P p) \
  {                                                          \
    body (p);                                                \
  }
#define KERNELS(bits, U, PASS_ITEMS, LARGE_ITEMS)               \
  KERNEL (histogram, bits, histogram<U>, 256, GtOrder)          \
  extern "C" __global__ void __launch_bounds__ (THREADS, 2)     \
      gt_order_pass_##bits (const __grid_constant__ GtOrder p)  \
  {                                                             \
    sort_pass<U, PASS_ITEMS> (p);                               \
  }                                                             \
  extern "C" __global__ void __launch_bounds__ (128)            \
      gt_order_small_##bits (const __grid_constant__ GtOrder p) \
  {                                                             \
    sort_block<U, 128, 8> (p);                                  \
  }                                                             \
  extern "C" __global__ void __launch_bounds__ (512)            \
      gt_order_large_##bits (const __grid_constant__ GtOrder p) \
  {                                                             \
    sort_block<U, 512, LARGE_ITEMS> (p);                        \
  }                                                             \
  KERNEL (tiny, bits, sort_tiny<U>, 256, GtOrder)               \
  KERNEL (count, bits, select_count<U>, 256, GtOrder)           \
  KERNEL (mark, bits, select_mark<U>, 256, GtOrder)             \
  KERNEL (take, bits, select_take<U>, 256, GtOrder)             \
  KERNEL (unique_count, bits, unique_count<U>, 256, GtUnique)   \
  KERNEL (unique_write, bits, unique_write<U>, 256, GtUnique)
KERNELS (8, uint8_t, 16, 16)
KERNELS (16, uint16_t, 16, 16)
KERNELS (32, uint32_t, 16, 16)
KERNELS (64, uint64_t, 12, 8)

#define SEARCH(name, T)                                           \
  extern "C" __global__ void __launch_bounds__ (256)              \
      gt_order_search_##name (const __grid_constant__ GtSearch p) \
  {                                                               \
    searchsorted<T> (p);                                          \
  }
SEARCH (f32, float)
SEARCH (f64, double)
SEARCH (i32, gint32)
SEARCH (i64, gint64)
