/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The common parts of the scan kernels: operations, scans within a warp and between blocks, loads and
 * stores. */

#include "gtorch-pointwise.cuh"

#define THREADS 256

/* The base of the operations, which combine values of type C in any grouping. take() makes a value from an
 * element (with TWO, from the elements of two inputs) and its position along the line; give() converts a
 * value back to an element (with WITH, using the element of another input). With POSITIONS, a position is
 * stored as well. */
template <typename C_> struct gt_plain
{
  typedef C_ C;
  static constexpr bool TWO = false, WITH = false, POSITIONS = false;
  template <typename M>
  GT_DEVICE C
  take (M x, M, uint64_t)
  {
    return gt_convert<C>::from (x);
  }
  template <typename M>
  GT_DEVICE M
  give (C x, M)
  {
    return gt_convert<M>::from (x);
  }
};

template <typename C> struct gt_sum : gt_plain<C>
{
  GT_DEVICE C
  identity ()
  {
    return (C) 0;
  }
  GT_DEVICE C
  combine (C a, C b)
  {
    return a + b;
  }
};

template <typename C> struct gt_product : gt_plain<C>
{
  GT_DEVICE C
  identity ()
  {
    return (C) 1;
  }
  GT_DEVICE C
  combine (C a, C b)
  {
    return a * b;
  }
};

/* Moves x between threads of a warp with `move`, which transfers 4 bytes. */
template <typename C, typename Move>
GT_DEVICE C
by_words (C x, Move move)
{
  uint32_t words[sizeof (C) / 4];

  memcpy (words, &x, sizeof x);
#pragma unroll
  for (int i = 0; i < (int) sizeof (C) / 4; i++)
    words[i] = move (words[i]);
  memcpy (&x, words, sizeof x);
  return x;
}

template <typename C>
GT_DEVICE C
shuffle_up (C x, int distance, int width)
{
  return by_words (x, [=] (uint32_t word) {
    return __shfl_up_sync (0xffffffffu, word, distance, width);
  });
}

template <typename C>
GT_DEVICE C
shuffle (C x, int lane, int width)
{
  return by_words (x, [=] (uint32_t word) { return __shfl_sync (0xffffffffu, word, lane, width); });
}

template <typename C>
GT_DEVICE C
shuffle_xor (C x, int mask)
{
  return by_words (x, [=] (uint32_t word) { return __shfl_xor_sync (0xffffffffu, word, mask); });
}

/* Scans over each group of `width` threads in a warp. */
template <typename Op>
GT_DEVICE typename Op::C
scan_lanes (typename Op::C x, int lane, int width)
{
  for (int d = 1; d < width; d *= 2)
    {
      const typename Op::C y = shuffle_up (x, d, width);

      x = lane >= d ? Op::combine (y, x) : x;
    }
  return x;
}

/* Scans the vectors of a warp, which are interleaved between its threads: combines each element with all
 * elements of the warp that precede it. Returns the warp's total. */
template <typename Op, int U, int V>
GT_DEVICE typename Op::C
scan_vectors (typename Op::C (&y)[U][V], int lane)
{
  typedef typename Op::C C;
  C total = Op::identity ();

#pragma unroll
  for (int u = 0; u < U; u++)
    {
      C x, before;

#pragma unroll
      for (int k = 1; k < V; k++)
        y[u][k] = Op::combine (y[u][k - 1], y[u][k]);
      x = scan_lanes<Op> (y[u][V - 1], lane, 32);
      before = shuffle_up (x, 1, 32);
      before = lane == 0 ? total : Op::combine (total, before);
      total = Op::combine (total, shuffle (x, 31, 32));
#pragma unroll
      for (int k = 0; k < V; k++)
        y[u][k] = Op::combine (before, y[u][k]);
    }
  return total;
}

/* --- communication between blocks --- */

/* A published number: every 4 bytes of it share an 8-byte word with a flag, so that both become visible at
 * once. */
template <typename C> struct gt_told
{
  uint64_t words[sizeof (C) / 4];
};

template <typename C>
GT_DEVICE void
tell (const GtScan &p, uint64_t slot, C x)
{
  constexpr int N = sizeof (C) / 4;
  uint32_t words[N];

  memcpy (words, &x, sizeof x);
#pragma unroll
  for (int i = 0; i < N; i++)
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(p.totals + slot * N + i),
                 "l"((uint64_t) 1 << 32 | words[i])
                 : "memory");
}

/* Reads the slot without waiting for its number. */
template <typename C>
GT_DEVICE gt_told<C>
look (const GtScan &p, uint64_t slot)
{
  constexpr int N = sizeof (C) / 4;
  gt_told<C> told;

#pragma unroll
  for (int i = 0; i < N; i++)
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];"
                 : "=l"(told.words[i])
                 : "l"(p.totals + slot * N + i)
                 : "memory");
  return told;
}

template <typename C>
GT_DEVICE bool
is_there (const gt_told<C> &told)
{
  bool all = true;

#pragma unroll
  for (int i = 0; i < (int) (sizeof (C) / 4); i++)
    all &= told.words[i] >> 32 != 0;
  return all;
}

template <typename C>
GT_DEVICE C
number_of (const gt_told<C> &told)
{
  constexpr int N = sizeof (C) / 4;
  uint32_t words[N];
  C x;

#pragma unroll
  for (int i = 0; i < N; i++)
    words[i] = (uint32_t) told.words[i];
  memcpy (&x, words, sizeof x);
  return x;
}

/* Waits until the slot has its number, and returns it; `told` is what look() returned for the slot. */
template <typename C>
GT_DEVICE C
wait (const GtScan &p, uint64_t slot, gt_told<C> told)
{
  while (!is_there (told))
    told = look<C> (p, slot);
  return number_of (told);
}

template <typename C>
GT_DEVICE C
wait (const GtScan &p, uint64_t slot)
{
  return wait (p, slot, look<C> (p, slot));
}

/* Waits for `count` slots that are `hop` apart, and combines their numbers. Several slots are read at
 * once. */
template <typename Op>
GT_DEVICE typename Op::C
wait_for (const GtScan &p, uint64_t slot, uint64_t hop, int count)
{
  typedef typename Op::C C;
  constexpr int N = 16 / sizeof (C);
  C sum = Op::identity ();

  for (; count > 0; count -= N, slot += N * hop)
    {
      gt_told<C> told[N];

#pragma unroll
      for (int i = 0; i < N; i++)
        if (i < count)
          told[i] = look<C> (p, slot + i * hop);
#pragma unroll
      for (int i = 0; i < N; i++)
        if (i < count)
          sum = Op::combine (sum, wait (p, slot + i * hop, told[i]));
    }
  return sum;
}

/* --- elements --- */

/* Begins to copy 16 bytes to shared memory. */
GT_DEVICE void
copy_ahead (uint4 *to, const void *from)
{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   (uint32_t) __cvta_generic_to_shared (to)),
               "l"(from)
               : "memory");
}

GT_DEVICE void
commit_copies ()
{
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until this thread's copies are complete, except for the last N groups that were committed. */
template <int N>
GT_DEVICE void
await_copies ()
{
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Returns the dynamic shared memory, whose size the launch determines. */
GT_DEVICE uint4 *
dynamic_memory ()
{
  extern __shared__ __align__ (128) uint4 gt_dynamic[];

  return gt_dynamic;
}

/* Converts 16 bytes to V values in the order of the scan, reversed if `turn`; unless `here`, the values are
 * the operation's identity. */
template <typename Op, typename M, int V>
GT_DEVICE void
take_words (typename Op::C *y, uint4 words, bool here, bool turn)
{
  gt_vector<M, V> in;

  memcpy (&in, &words, 16);
#pragma unroll
  for (int k = 0; k < V; k++)
    y[k] = here ? gt_convert<typename Op::C>::from (turn ? in.at[V - 1 - k] : in.at[k])
                : Op::identity ();
}

template <typename Op, typename M, int V>
GT_DEVICE uint4
give_words (const typename Op::C *y, bool turn)
{
  gt_vector<M, V> out;
  uint4 words;

#pragma unroll
  for (int k = 0; k < V; k++)
    out.at[k] = gt_convert<M>::from (turn ? y[V - 1 - k] : y[k]);
  memcpy (&words, &out, 16);
  return words;
}

/* Makes the value y from the inputs' elements at `at`. */
template <typename Op, typename M>
GT_DEVICE void
take (typename Op::C *y, const GtScan &p, uint64_t at, uint64_t position)
{
  const M x = ((const M *) p.src)[at];

  *y = Op::take (x, Op::TWO ? ((const M *) p.also)[at] : x, position);
}

template <typename Op, typename M, int V>
GT_DEVICE void
take_vector (typename Op::C *y, const GtScan &p, uint64_t at, uint64_t position, uint64_t hop)
{
  const gt_vector<M, V> in = *(const gt_vector<M, V> *) ((const M *) p.src + at);
  const gt_vector<M, V> also = Op::TWO ? *(const gt_vector<M, V> *) ((const M *) p.also + at) : in;

#pragma unroll
  for (int k = 0; k < V; k++)
    y[k] = Op::take (in.at[k], also.at[k], position + k * hop);
}

/* Converts the value y and stores it at `at` in the outputs. */
template <typename Op, typename M>
GT_DEVICE void
give (const typename Op::C &y, const GtScan &p, uint64_t at)
{
  ((M *) p.dst)[at] = Op::give (y, Op::WITH ? ((const M *) p.with)[at] : M ());
  if constexpr (Op::POSITIONS)
    p.positions[at] = y.position;
}

template <typename Op, typename M, int V>
GT_DEVICE void
give_vector (const typename Op::C *y, const GtScan &p, uint64_t at)
{
  gt_vector<M, V> out;

  if constexpr (Op::WITH)
    out = *(const gt_vector<M, V> *) ((const M *) p.with + at);
#pragma unroll
  for (int k = 0; k < V; k++)
    out.at[k] = Op::give (y[k], out.at[k]);
  *(gt_vector<M, V> *) ((M *) p.dst + at) = out;
  if constexpr (Op::POSITIONS)
#pragma unroll
    for (int k = 0; k < V; k += 2)
      *(gt_vector<int64_t, 2> *) (p.positions + at + k) = { y[k].position, y[k + 1].position };
}

/* Loads V elements from position i of the line that begins at `line`, in the order of the scan. */
template <typename Op, typename M, int V>
GT_DEVICE void
load (typename Op::C *y, const GtScan &p, uint64_t line, uint64_t i)
{
  typename Op::C in[V];

#pragma unroll
  for (int k = 0; k < V; k++)
    in[k] = y[k] = Op::identity ();
  if (p.vectors && i < p.n)
    {
      take_vector<Op, M, V> (in, p, line + (p.reverse ? p.n - V - i : i), i, 1);
#pragma unroll
      for (int k = 0; k < V; k++)
        y[k] = p.reverse ? in[V - 1 - k] : in[k];
    }
  else if (!p.vectors)
#pragma unroll
    for (int k = 0; k < V; k++)
      if (i + k < p.n)
        take<Op, M> (&y[k], p, line + (p.reverse ? p.n - 1 - i - k : i + k), i + k);
}

template <typename Op, typename M, int V>
GT_DEVICE void
store (const typename Op::C *y, const GtScan &p, uint64_t line, uint64_t i)
{
  typename Op::C out[V];

#pragma unroll
  for (int k = 0; k < V; k++)
    out[k] = p.reverse ? y[V - 1 - k] : y[k];
  if (p.vectors && i < p.n)
    give_vector<Op, M, V> (out, p, line + (p.reverse ? p.n - V - i : i));
  else if (!p.vectors)
#pragma unroll
    for (int k = 0; k < V; k++)
      if (i + k < p.n)
        give<Op, M> (y[k], p, line + (p.reverse ? p.n - 1 - i - k : i + k));
}

/* --- the prefix of a tile --- */

/* Reduces a and b over all threads of the block, which all get the results. */
template <typename Op>
GT_DEVICE void
gather (typename Op::C *a, typename Op::C *b, typename Op::C *shared)
{
  const int lane = threadIdx.x % 32;

#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    {
      *a = Op::combine (*a, shuffle_xor (*a, d));
      *b = Op::combine (*b, shuffle_xor (*b, d));
    }
  if (lane == 0)
    {
      shared[threadIdx.x / 32] = *a;
      shared[8 + threadIdx.x / 32] = *b;
    }
  __syncthreads ();
  *a = shared[0];
  *b = shared[8];
#pragma unroll
  for (int w = 1; w < THREADS / 32; w++)
    {
      *a = Op::combine (*a, shared[w]);
      *b = Op::combine (*b, shared[8 + w]);
    }
}

/* Publishes the total of a tile, and that of its group if the tile is the last of it. Returns the tile's
 * prefix. */
template <typename Op>
GT_DEVICE typename Op::C
before_row_tile (const GtScan &p, uint64_t line, uint32_t tile, typename Op::C total,
                 typename Op::C *shared)
{
  typedef typename Op::C C;
  const uint32_t group = tile / p.group, first = group * p.group;
  const uint64_t tiles = line * p.tiles;
  const uint64_t groups = p.outer * p.tiles + line * p.groups;
  C a = Op::identity (), b = Op::identity ();

  if (threadIdx.x == 0 && tile + 1 < p.tiles)
    tell (p, tiles + tile, total);
  if (first + threadIdx.x < tile)
    a = wait<C> (p, tiles + first + threadIdx.x);
  if (tile == first + p.group - 1 && tile + 1 < p.tiles)
    {
      C x = a;

      gather<Op> (&x, &b, shared);
      if (threadIdx.x == 0)
        tell (p, groups + group, Op::combine (x, total));
      __syncthreads ();
      b = Op::identity ();
    }
  for (uint32_t g = threadIdx.x; g < group; g += THREADS)
    b = Op::combine (b, wait<C> (p, groups + g));
  gather<Op> (&a, &b, shared);
  return Op::combine (b, a);
}

/* Publishes the totals of a tile's columns, and those of its group if the tile is the last of it. Stores
 * the prefixes of the tile's columns in carries. `shared` has the totals of each thread's rows. */
template <typename Op, int V>
GT_DEVICE void
before_column_tile (const GtScan &p, uint64_t line, uint64_t column, uint32_t tile,
                    typename Op::C (*shared)[THREADS], typename Op::C *carries)
{
  typedef typename Op::C C;
  const uint32_t height = THREADS / p.width, n_columns = p.width * V;
  const uint32_t c = threadIdx.x % n_columns, part = threadIdx.x / n_columns;
  const uint32_t n_parts = THREADS / n_columns;
  const uint32_t group = tile / p.group, first_tile = group * p.group;
  const uint64_t slot = line * p.tiles * p.inner + column + c, hop = n_parts * p.inner;
  const uint64_t groups = (p.outer * p.tiles + line * p.groups) * p.inner + column + c;
  const bool here = part < n_parts && column + c < p.inner;
  C a = Op::identity (), b = Op::identity (), total = Op::identity ();

  if (here && part == 0)
    {
      for (uint32_t d = 0; d < height; d++)
        total = Op::combine (total, shared[c % V][d * p.width + c / V]);
      if (tile + 1 < p.tiles)
        tell (p, slot + tile * p.inner, total);
    }
  if (here && first_tile + part < tile)
    a = wait_for<Op> (p, slot + (first_tile + part) * p.inner, hop,
                      (tile - first_tile - part + n_parts - 1) / n_parts);
  __syncthreads ();
  shared[0][threadIdx.x] = a;
  __syncthreads ();
  if (here && part == 0)
    {
      for (uint32_t i = 1; i < n_parts; i++)
        a = Op::combine (a, shared[0][i * n_columns + c]);
      if (tile == first_tile + p.group - 1 && tile + 1 < p.tiles)
        tell (p, groups + group * p.inner, Op::combine (a, total));
    }
  if (here && part < group)
    b = wait_for<Op> (p, groups + part * p.inner, hop, (group - part + n_parts - 1) / n_parts);
  __syncthreads ();
  shared[0][threadIdx.x] = b;
  __syncthreads ();
  if (here && part == 0)
    {
      for (uint32_t i = 1; i < n_parts; i++)
        b = Op::combine (b, shared[0][i * n_columns + c]);
      carries[c] = Op::combine (b, a);
    }
  __syncthreads ();
}
