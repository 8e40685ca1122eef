/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The bodies of scan kernels. */

#include "gtorch-scan.cuh"

/* --- rows --- */

/* Scans rows, each with `width` threads. */
template <typename Op, typename M>
GT_DEVICE void
short_rows (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M);
  const uint64_t row = ((uint64_t) blockIdx.x * THREADS + threadIdx.x) / p.width;
  const uint32_t lane = threadIdx.x & (p.width - 1);
  const bool here = row < p.outer;
  const uint64_t line = (here ? row : 0) * p.n;
  C carry = Op::identity (), y[V], next[V];

  load<Op, M, V> (next, p, line, lane * V);
  for (uint64_t i = 0; i < p.n; i += p.width * V)
    {
      const uint64_t at = i + lane * V;
      C before;

#pragma unroll
      for (int k = 0; k < V; k++)
        y[k] = k == 0 ? next[0] : Op::combine (y[k - 1], next[k]);
      load<Op, M, V> (next, p, line, at + p.width * V);
      const C sum = scan_lanes<Op> (y[V - 1], lane, p.width);
      before = shuffle_up (sum, 1, p.width);
      before = lane == 0 ? carry : Op::combine (carry, before);
      carry = Op::combine (carry, shuffle (sum, p.width - 1, p.width));
#pragma unroll
      for (int k = 0; k < V; k++)
        y[k] = Op::combine (before, y[k]);
      if (here)
        store<Op, M, V> (y, p, line, at);
    }
}

/* Scans rows. A block has one tile, assigned in order, or all tiles of a line; it has as many warps as a
 * row needs. */
template <typename Op, typename M>
GT_DEVICE void
rows (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = GT_SCAN_UNROLL (V);
  __shared__ alignas (16) unsigned char bytes[24 * sizeof (C)];
  __shared__ uint32_t ticket;
  C *shared = (C *) bytes;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n_warps = blockDim.x / 32;
  uint64_t line = blockIdx.x;
  uint32_t tile = 0, end = p.tiles;
  C carry = Op::identity ();

  if (p.counter != NULL)
    {
      if (threadIdx.x == 0)
        ticket = atomicAdd (p.counter, 1);
      __syncthreads ();
      line = ticket / p.tiles;
      tile = ticket - line * p.tiles;
      end = tile + 1;
    }
  for (; tile < end; tile++)
    {
      const uint64_t first = (uint64_t) tile * blockDim.x * (U * V) + (warp * U * 32 + lane) * V;
      C y[U][V], sum, total = Op::identity ();

#pragma unroll
      for (int u = 0; u < U; u++)
        load<Op, M, V> (y[u], p, line * p.n, first + u * 32 * V);
      sum = scan_vectors<Op> (y, lane);
      if (lane == 0)
        shared[16 + warp] = sum;
      __syncthreads ();
      sum = Op::identity ();
      for (int w = 0; w < n_warps; w++)
        {
          sum = w == warp ? total : sum;
          total = Op::combine (total, shared[16 + w]);
        }
      if (p.counter != NULL)
        carry = before_row_tile<Op> (p, line, tile, total, shared);
      else
        __syncthreads ();
      sum = Op::combine (carry, sum);
#pragma unroll
      for (int u = 0; u < U; u++)
        {
#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = Op::combine (sum, y[u][k]);
          store<Op, M, V> (y[u], p, line * p.n, first + u * 32 * V);
        }
      carry = Op::combine (carry, total);
    }
}

/* --- columns --- */

/* Scans columns. `width` adjacent threads have V columns each, and in these U rows each; the other threads
 * of the block have the same columns and other rows. */
template <typename Op, typename M>
GT_DEVICE void
columns (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = GT_SCAN_UNROLL (V);
  __shared__ alignas (16) unsigned char bytes[(THREADS * V + 32 * V) * sizeof (C)];
  __shared__ uint32_t ticket;
  C (*shared)[THREADS] = (C (*)[THREADS]) bytes;
  C *carries = (C *) bytes + THREADS * V;
  const uint32_t across = threadIdx.x & (p.width - 1), down = threadIdx.x / p.width;
  const uint32_t height = THREADS / p.width, n_columns = p.width * V;
  const uint32_t strips = (uint32_t) ((p.inner + n_columns - 1) / n_columns);
  uint64_t line = blockIdx.x / strips; /* index along the outer dimension */
  uint32_t strip = blockIdx.x - (uint32_t) line * strips, tile = 0, end = p.tiles;

  if (p.counter != NULL)
    { /* tickets count all strips of a tile, then those of the next tile */
      if (threadIdx.x == 0)
        ticket = atomicAdd (p.counter, 1);
      __syncthreads ();
      strip = ticket % strips;
      line = ticket / strips;
      tile = (uint32_t) (line % p.tiles);
      line /= p.tiles;
      end = tile + 1;
    }
  const uint64_t column = (uint64_t) strip * n_columns, mine = column + across * V;
  const int filled = mine < p.inner ? (p.inner - mine < V ? (int) (p.inner - mine) : V) : 0;

  for (uint32_t i = threadIdx.x; i < n_columns; i += THREADS)
    carries[i] = Op::identity ();
  for (; tile < end; tile++)
    {
      const uint64_t first = ((uint64_t) tile * height + down) * U;
      const int64_t hop = p.reverse ? -(int64_t) p.inner : (int64_t) p.inner;
      const int64_t offset = (line * p.n + (p.reverse ? p.n - 1 - first : first)) * p.inner + mine;
      C y[U][V], before[V];

#pragma unroll
      for (int u = 0; u < U; u++)
        {
          const bool here = first + u < p.n && filled > 0;

#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = Op::identity ();
          if (here && p.vectors)
            take_vector<Op, M, V> (y[u], p, offset + u * hop, first + u, 0);
          else if (here)
#pragma unroll
            for (int k = 0; k < V; k++)
              if (k < filled)
                take<Op, M> (&y[u][k], p, offset + u * hop + k, first + u);
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        {
#pragma unroll
          for (int u = 1; u < U; u++)
            y[u][k] = Op::combine (y[u - 1][k], y[u][k]);
          shared[k][threadIdx.x] = y[U - 1][k];
        }
      __syncthreads ();
      /* Each thread combines the parts above its own. */
#pragma unroll
      for (int k = 0; k < V; k++)
        before[k] = Op::identity ();
      for (uint32_t d = 0; d < down; d++)
#pragma unroll
        for (int k = 0; k < V; k++)
          before[k] = Op::combine (before[k], shared[k][d * p.width + across]);
      if (p.counter != NULL && p.tiles > 1)
        before_column_tile<Op, V> (p, line, column, tile, shared, carries);
#pragma unroll
      for (int k = 0; k < V; k++)
        before[k] = Op::combine (carries[across * V + k], before[k]);
#pragma unroll
      for (int u = 0; u < U; u++)
        {
#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = Op::combine (before[k], y[u][k]);
          if (first + u < p.n && filled > 0)
            {
              if (p.vectors)
                give_vector<Op, M, V> (y[u], p, offset + u * hop);
              else
#pragma unroll
                for (int k = 0; k < V; k++)
                  if (k < filled)
                    give<Op, M> (y[u][k], p, offset + u * hop + k);
            }
        }
      if (tile + 1 < end)
        {
          __syncthreads ();
          if (down == height - 1) /* the last values are the prefixes of the next tile */
#pragma unroll
            for (int k = 0; k < V; k++)
              carries[across * V + k] = y[U - 1][k];
          __syncthreads ();
        }
    }
}

/* Declares a scan kernel of which at least `blocks` blocks can be resident on a multiprocessor. */
#define GT_SCAN_FORM(form, op, name, M, threads, blocks, ...)      \
  extern "C" __global__ void __launch_bounds__ (threads, blocks)   \
      gt_##op##_##form##_##name (const __grid_constant__ GtScan p) \
  {                                                                \
    form<__VA_ARGS__, M> (p);                                      \
  }
