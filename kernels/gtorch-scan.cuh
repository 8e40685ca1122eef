/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What the kernels of running sums have in common: what is combined, within a warp and between blocks,
 * and how elements come and go. */

#include "gtorch-pointwise.cuh"

#define THREADS 256

template <typename C_> struct gt_sum
{
  typedef C_ C;
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

template <typename C_> struct gt_product
{
  typedef C_ C;
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

template <typename C>
GT_DEVICE C
shuffle_up (C x, int distance, int width)
{
  uint32_t words[sizeof (C) / 4];

  memcpy (words, &x, sizeof x);
#pragma unroll
  for (int i = 0; i < (int) sizeof (C) / 4; i++)
    words[i] = __shfl_up_sync (0xffffffffu, words[i], distance, width);
  memcpy (&x, words, sizeof x);
  return x;
}

template <typename C>
GT_DEVICE C
shuffle (C x, int lane, int width)
{
  uint32_t words[sizeof (C) / 4];

  memcpy (words, &x, sizeof x);
#pragma unroll
  for (int i = 0; i < (int) sizeof (C) / 4; i++)
    words[i] = __shfl_sync (0xffffffffu, words[i], lane, width);
  memcpy (&x, words, sizeof x);
  return x;
}

template <typename C>
GT_DEVICE C
shuffle_xor (C x, int mask)
{
  uint32_t words[sizeof (C) / 4];

  memcpy (words, &x, sizeof x);
#pragma unroll
  for (int i = 0; i < (int) sizeof (C) / 4; i++)
    words[i] = __shfl_xor_sync (0xffffffffu, words[i], mask);
  memcpy (&x, words, sizeof x);
  return x;
}

/* Over the lanes of each group of `width`. */
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

/* --- what blocks tell each other --- */
template <typename C>
GT_DEVICE void
tell (const GtScan &p, uint64_t slot, C x)
{
  if constexpr (sizeof (C) == 4)
    { /* the number and its flag at once */
      uint32_t word;

      memcpy (&word, &x, 4);
      asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"((uint64_t *) p.totals + slot),
                   "l"((uint64_t) 1 << 32 | word)
                   : "memory");
    }
  else
    {
      ((C *) p.totals)[slot] = x;
      asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p.flags + slot), "r"(1u) : "memory");
    }
}

template <typename C>
GT_DEVICE C
wait (const GtScan &p, uint64_t slot)
{
  C x;

  if constexpr (sizeof (C) == 4)
    {
      uint64_t both;
      uint32_t word;

      do
        asm volatile("ld.relaxed.gpu.u64 %0, [%1];"
                     : "=l"(both)
                     : "l"((uint64_t *) p.totals + slot)
                     : "memory");
      while (both >> 32 == 0);
      word = (uint32_t) both;
      memcpy (&x, &word, 4);
    }
  else
    {
      uint32_t flag;

      do
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(flag) : "l"(p.flags + slot) : "memory");
      while (flag == 0);
      x = ((const C *) p.totals)[slot];
    }
  return x;
}

/* Of `count` slots, `hop` apart; several are asked for at once. */
template <typename Op>
GT_DEVICE typename Op::C
wait_for (const GtScan &p, uint64_t slot, uint64_t hop, int count)
{
  typedef typename Op::C C;
  constexpr int N = 4;
  C sum = Op::identity ();

  for (; count > 0; count -= N, slot += N * hop)
    {
      uint64_t words[N];

      if constexpr (sizeof (C) == 4)
        {
#pragma unroll
          for (int i = 0; i < N; i++)
            if (i < count)
              asm volatile("ld.relaxed.gpu.u64 %0, [%1];"
                           : "=l"(words[i])
                           : "l"((uint64_t *) p.totals + slot + i * hop)
                           : "memory");
        }
#pragma unroll
      for (int i = 0; i < N; i++)
        if (i < count)
          {
            C x;

            if (sizeof (C) == 4 && words[i] >> 32 != 0)
              memcpy (&x, &words[i], sizeof x < 8 ? sizeof x : 8);
            else
              x = wait<C> (p, slot + i * hop);
            sum = Op::combine (sum, x);
          }
    }
  return sum;
}

/* --- elements --- */

/* 16 bytes to shared memory, without waiting for them. */
GT_DEVICE void
copy_ahead (uint4 *to, const void *from)
{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   (uint32_t) __cvta_generic_to_shared (to)),
               "l"(from)
               : "memory");
}

/* Until what this thread asked for is there. */
GT_DEVICE void
await_copies ()
{
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/* V elements of a line at i, in the order of the scan. */
template <typename C, typename M, int V>
GT_DEVICE void
load (C *y, const M *line, uint64_t i, const GtScan &p, C identity)
{
  if (p.vectors)
    {
      gt_vector<M, V> in;

      if (i < p.n)
        in = *(const gt_vector<M, V> *) (line + (p.reverse ? p.n - V - i : i));
#pragma unroll
      for (int k = 0; k < V; k++)
        y[k] = i < p.n ? gt_convert<C>::from (p.reverse ? in.at[V - 1 - k] : in.at[k]) : identity;
    }
  else
#pragma unroll
    for (int k = 0; k < V; k++)
      y[k] =
          i + k < p.n ? gt_convert<C>::from (line[p.reverse ? p.n - 1 - i - k : i + k]) : identity;
}

template <typename C, typename M, int V>
GT_DEVICE void
store (M *line, const C *y, uint64_t i, const GtScan &p)
{
  if (p.vectors)
    {
      gt_vector<M, V> out;

#pragma unroll
      for (int k = 0; k < V; k++)
        out.at[k] = gt_convert<M>::from (p.reverse ? y[V - 1 - k] : y[k]);
      if (i < p.n)
        *(gt_vector<M, V> *) (line + (p.reverse ? p.n - V - i : i)) = out;
    }
  else
#pragma unroll
    for (int k = 0; k < V; k++)
      if (i + k < p.n)
        line[p.reverse ? p.n - 1 - i - k : i + k] = gt_convert<M>::from (y[k]);
}

/* --- what goes before a tile --- */

/* Of all threads of the block: what is in a, and in b. */
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

/* Tells this tile's total, and that of its group if it is the last of one; gives what goes before it. */
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

/* Tells the totals of a tile's columns, of its group's if it is the last of one; what goes before the tile to
 * carries. `shared` has what each thread's rows come to. */
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
