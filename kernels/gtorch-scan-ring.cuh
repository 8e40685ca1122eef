/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Scans in which a block processes whole lines, one after the other. Each thread prefetches its part of the
 * next tiles, also those of further lines, and reads only what it copied itself. */

#include "gtorch-scan-forms.cuh"

/* The position of a block: the tile of a line. */
struct Walk
{
  uint32_t line, tile;
};

GT_DEVICE void
walk (Walk &at, const GtScan &p)
{
  if (++at.tile == p.tiles)
    {
      at.tile = 0;
      at.line += gridDim.x;
    }
}

template <typename Op, typename M>
GT_DEVICE void
rows_ring (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = GT_SCAN_UNROLL (V), S = GT_SCAN_RING / U;
  constexpr int TILE = THREADS * U * V, N_WARPS = THREADS / 32;
  __shared__ alignas (16) unsigned char bytes[2 * N_WARPS * sizeof (C)];
  C (*totals)[N_WARPS] = (C (*)[N_WARPS]) bytes;
  uint4 (*ring)[U][THREADS] = (uint4 (*)[U][THREADS]) dynamic_memory ();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t mine = (warp * U * 32 + lane) * V;
  Walk at = { blockIdx.x, 0 }, wanted = at;
  C carry = Op::identity ();

  auto ask = [&] (int stage) {
    const M *src = (const M *) p.src + wanted.line * p.n;
    const uint64_t first = (uint64_t) wanted.tile * TILE + mine;

#pragma unroll
    for (int u = 0; u < U; u++)
      {
        const uint64_t i = first + u * 32 * V;

        if (wanted.line < p.outer && i < p.n)
          copy_ahead (&ring[stage][u][threadIdx.x], src + (p.reverse ? p.n - V - i : i));
      }
    commit_copies ();
    walk (wanted, p);
  };

  for (int stage = 0; stage < S; stage++)
    ask (stage);
  for (uint32_t i = 0; at.line < p.outer; i++, walk (at, p))
    {
      const uint64_t first = (uint64_t) at.tile * TILE + mine;
      C y[U][V], sum, total = Op::identity ();

      await_copies<S - 1> ();
#pragma unroll
      for (int u = 0; u < U; u++)
        take_words<Op, M, V> (y[u], ring[i % S][u][threadIdx.x], first + u * 32 * V < p.n,
                              p.reverse);
      sum = scan_vectors<Op> (y, lane);
      if (lane == 0)
        totals[i & 1][warp] = sum;
      __syncthreads ();
      ask (i % S);
      sum = Op::identity ();
#pragma unroll
      for (int w = 0; w < N_WARPS; w++)
        {
          sum = w == warp ? total : sum;
          total = Op::combine (total, totals[i & 1][w]);
        }
      carry = at.tile == 0 ? Op::identity () : carry;
      sum = Op::combine (carry, sum);
      carry = Op::combine (carry, total);
#pragma unroll
      for (int u = 0; u < U; u++)
        {
#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = Op::combine (sum, y[u][k]);
          store<Op, M, V> (y[u], p, at.line * p.n, first + u * 32 * V);
        }
    }
}

/* Scans columns. A line is a strip of columns here: the threads of a warp have V adjacent columns each, and
 * each warp of the block has U other rows. */
template <typename Op, typename M>
GT_DEVICE void
columns_ring (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = GT_SCAN_UNROLL (V), S = GT_SCAN_RING / U;
  constexpr int N = GT_SCAN_COLUMN_THREADS, HEIGHT = N / 32;
  typedef gt_vector<C, V> Part;
  uint4 (*ring)[U][N] = (uint4 (*)[U][N]) dynamic_memory ();
  Part (*parts)[HEIGHT][32] = (Part (*)[HEIGHT][32]) (ring + S);
  const uint32_t across = threadIdx.x % 32, down = threadIdx.x / 32;
  const uint32_t strips = (uint32_t) ((p.inner + 32 * V - 1) / (32 * V));
  const uint32_t n_lines = (uint32_t) p.outer * strips;
  const int64_t hop = p.reverse ? -(int64_t) p.inner : (int64_t) p.inner;
  Walk at = { blockIdx.x, 0 }, wanted = at;
  C carry[V];

  /* Returns the first of this thread's rows, or p.n if there is none, and its offset. */
  auto place = [&] (const Walk &where, uint64_t *offset) {
    const uint32_t line = where.line / strips;
    const uint64_t column = ((where.line - line * strips) * 32 + across) * (uint64_t) V;
    const uint64_t first = where.line < n_lines && column < p.inner
                               ? ((uint64_t) where.tile * HEIGHT + down) * U
                               : p.n;

    *offset = (line * p.n + (p.reverse ? p.n - 1 - first : first)) * p.inner + column;
    return first;
  };
  auto ask = [&] (int stage) {
    uint64_t offset;
    const uint64_t first = place (wanted, &offset);
    const M *src = (const M *) p.src + offset;

#pragma unroll
    for (int u = 0; u < U; u++)
      if (first + u < p.n)
        copy_ahead (&ring[stage][u][threadIdx.x], src + u * hop);
    commit_copies ();
    walk (wanted, p);
  };

  for (int stage = 0; stage < S; stage++)
    ask (stage);
  for (uint32_t i = 0; at.line < n_lines; i++, walk (at, p))
    {
      uint64_t offset;
      const uint64_t first = place (at, &offset);
      M *dst = (M *) p.dst + offset;
      C y[U][V], before[V], total[V];
      Part part;

      await_copies<S - 1> ();
#pragma unroll
      for (int u = 0; u < U; u++)
        {
          take_words<Op, M, V> (y[u], ring[i % S][u][threadIdx.x], first + u < p.n, false);
#pragma unroll
          for (int k = 0; k < V && u > 0; k++)
            y[u][k] = Op::combine (y[u - 1][k], y[u][k]);
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        {
          part.at[k] = y[U - 1][k];
          before[k] = total[k] = Op::identity ();
          carry[k] = at.tile == 0 ? Op::identity () : carry[k];
        }
      parts[i & 1][down][across] = part;
      __syncthreads ();
      ask (i % S);
#pragma unroll
      for (int d = 0; d < HEIGHT; d++)
        {
          part = parts[i & 1][d][across];
#pragma unroll
          for (int k = 0; k < V; k++)
            {
              before[k] = d == down ? total[k] : before[k];
              total[k] = Op::combine (total[k], part.at[k]);
            }
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        {
          before[k] = Op::combine (carry[k], before[k]);
          carry[k] = Op::combine (carry[k], total[k]);
        }
#pragma unroll
      for (int u = 0; u < U; u++)
        {
#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = Op::combine (before[k], y[u][k]);
          if (first + u < p.n)
            *(uint4 *) (dst + u * hop) = give_words<Op, M, V> (y[u], false);
        }
    }
}
