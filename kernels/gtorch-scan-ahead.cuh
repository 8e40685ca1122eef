/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Scans of lines in tiles that many blocks share, with prefetching. */

#include "gtorch-scan-forms.cuh"

/* Scans rows. Tiles are assigned one by one: while a block waits for the prefix of its tile, its next tile
 * is being copied to shared memory. Each thread reads only what it copied itself. */
template <typename Op, typename M, int U = GT_SCAN_UNROLL (16 / sizeof (M))>
GT_DEVICE void
rows_ahead (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), TILE = THREADS * U * V;
  uint4 (*ahead)[THREADS] = (uint4 (*)[THREADS]) dynamic_memory ();
  __shared__ alignas (16) unsigned char bytes[24 * sizeof (C)];
  __shared__ uint32_t given;
  C *shared = (C *) bytes;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t n_tickets = (uint32_t) p.outer * p.tiles;
  uint32_t ticket;

  auto ask = [&] () {
    const uint32_t line = ticket / p.tiles;
    const uint64_t first = (uint64_t) (ticket - line * p.tiles) * TILE + (warp * U * 32 + lane) * V;
    const M *src = (const M *) p.src + line * p.n;

#pragma unroll
    for (int u = 0; u < U; u++)
      if (ticket < n_tickets && first + u * 32 * V < p.n)
        {
          const uint64_t i = first + u * 32 * V;

          copy_ahead (&ahead[u][threadIdx.x], src + (p.reverse ? p.n - V - i : i));
        }
    commit_copies ();
  };

  if (threadIdx.x == 0)
    given = atomicAdd (p.counter, 1);
  __syncthreads ();
  ticket = given;
  ask ();
  __syncthreads ();
  while (ticket < n_tickets)
    {
      const uint32_t line = ticket / p.tiles, tile = ticket - line * p.tiles;
      const uint64_t first = (uint64_t) tile * TILE + (warp * U * 32 + lane) * V;
      uint32_t next = 0;
      C y[U][V], sum, total, carry;

      if (threadIdx.x == 0)
        next = atomicAdd (p.counter, 1); /* needed only at the barrier */
      await_copies<0> ();
#pragma unroll
      for (int u = 0; u < U; u++)
        take_words<Op, M, V> (y[u], ahead[u][threadIdx.x], first + u * 32 * V < p.n, p.reverse);
      sum = scan_vectors<Op> (y, lane);
      if (lane == 0)
        shared[16 + warp] = sum;
      if (threadIdx.x == 0)
        given = next;
      __syncthreads ();
      ticket = given;
      ask ();
      total = Op::identity ();
      sum = Op::identity ();
#pragma unroll
      for (int w = 0; w < THREADS / 32; w++)
        {
          sum = w == warp ? total : sum;
          total = Op::combine (total, shared[16 + w]);
        }
      carry = before_row_tile<Op> (p, line, tile, total, shared);
      sum = Op::combine (carry, sum);
#pragma unroll
      for (int u = 0; u < U; u++)
        {
#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = Op::combine (sum, y[u][k]);
          store<Op, M, V> (y[u], p, line * p.n, first + u * 32 * V);
        }
    }
}

/* Scans columns, prefetching like rows_ahead (). */
template <typename Op, typename M>
GT_DEVICE void
columns_ahead (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = GT_SCAN_UNROLL (V);
  __shared__ uint4 ahead[U][THREADS];
  __shared__ alignas (16) unsigned char bytes[(THREADS * V + 32 * V) * sizeof (C)];
  __shared__ uint32_t given;
  C (*shared)[THREADS] = (C (*)[THREADS]) bytes;
  C *carries = (C *) bytes + THREADS * V;
  const uint32_t across = threadIdx.x & (p.width - 1), down = threadIdx.x / p.width;
  const uint32_t height = THREADS / p.width, n_columns = p.width * V;
  const uint32_t strips = (uint32_t) ((p.inner + n_columns - 1) / n_columns);
  const uint32_t n_tickets = (uint32_t) p.outer * p.tiles * strips;
  const int64_t hop = p.reverse ? -(int64_t) p.inner : (int64_t) p.inner;
  uint32_t ticket;

  /* The position of this thread's part of a tile. */
  struct Place
  {
    uint64_t first, column;
    int64_t offset;
    uint32_t line, tile;
    bool here;
  };
  auto place = [&] () {
    const uint32_t above = ticket / strips;
    Place at;

    at.column = (uint64_t) (ticket - above * strips) * n_columns;
    at.line = above / p.tiles;
    at.tile = above - at.line * p.tiles;
    at.first = ((uint64_t) at.tile * height + down) * U;
    at.here = ticket < n_tickets && at.column + across * V < p.inner;
    at.offset = (at.line * p.n + (p.reverse ? p.n - 1 - at.first : at.first)) * p.inner + at.column
                + across * V;
    return at;
  };
  auto ask = [&] () {
    const Place at = place ();
    const M *src = (const M *) p.src + at.offset;

#pragma unroll
    for (int u = 0; u < U; u++)
      if (at.here && at.first + u < p.n)
        copy_ahead (&ahead[u][threadIdx.x], src + u * hop);
    commit_copies ();
  };

  if (threadIdx.x == 0)
    given = atomicAdd (p.counter, 1);
  __syncthreads ();
  ticket = given;
  ask ();
  __syncthreads ();
  while (ticket < n_tickets)
    {
      const Place at = place ();
      M *dst = (M *) p.dst + at.offset;
      uint32_t next = 0;
      C y[U][V], before[V];

      if (threadIdx.x == 0)
        next = atomicAdd (p.counter, 1); /* needed only at the barrier */
      await_copies<0> ();
#pragma unroll
      for (int u = 0; u < U; u++)
        {
          take_words<Op, M, V> (y[u], ahead[u][threadIdx.x], at.here && at.first + u < p.n, false);
#pragma unroll
          for (int k = 0; k < V && u > 0; k++)
            y[u][k] = Op::combine (y[u - 1][k], y[u][k]);
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        {
          shared[k][threadIdx.x] = y[U - 1][k];
          before[k] = Op::identity ();
        }
      if (threadIdx.x == 0)
        given = next;
      __syncthreads ();
      ticket = given;
      ask ();
      for (uint32_t d = 0; d < down; d++)
#pragma unroll
        for (int k = 0; k < V; k++)
          before[k] = Op::combine (before[k], shared[k][d * p.width + across]);
      before_column_tile<Op, V> (p, at.line, at.column, at.tile, shared, carries);
#pragma unroll
      for (int k = 0; k < V; k++)
        before[k] = Op::combine (carries[across * V + k], before[k]);
#pragma unroll
      for (int u = 0; u < U; u++)
        {
#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = Op::combine (before[k], y[u][k]);
          if (at.here && at.first + u < p.n)
            *(uint4 *) (dst + u * hop) = give_words<Op, M, V> (y[u], false);
        }
    }
}
