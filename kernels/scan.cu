/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Running sums and products in one pass over memory. Tiles of a line are given out in order; each
 * tells its total as soon as it has it and then takes in those before it: of its own group of tiles
 * one by one, of all earlier groups as one number. What is added to what depends on the shape only,
 * never on who came first. */

#include "gtorch-scan-forms.cuh"

/* The same for tiles that are given out one by one: while a block waits for what goes before its tile,
 * the next one is on its way to shared memory. Each thread reads only what it asked for itself. */
template <typename Op, typename M>
GT_DEVICE void
rows_ahead (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = V >= 8 ? 4 : 8, TILE = THREADS * U * V;
  __shared__ uint4 ahead[U][THREADS];
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
        next = atomicAdd (p.counter, 1); /* wanted behind the barrier */
      await_copies ();
#pragma unroll
      for (int u = 0; u < U; u++)
        {
          const uint4 words = ahead[u][threadIdx.x];
          gt_vector<M, V> in;

          memcpy (&in, &words, 16);
#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = first + u * 32 * V < p.n
                          ? gt_convert<C>::from (p.reverse ? in.at[V - 1 - k] : in.at[k])
                          : Op::identity ();
        }
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

/* The same ahead of time, as for rows. */
template <typename Op, typename M>
GT_DEVICE void
columns_ahead (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = V >= 8 ? 4 : 8;
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

  /* Where this thread's part of a tile is. */
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
        next = atomicAdd (p.counter, 1); /* wanted behind the barrier */
      await_copies ();
#pragma unroll
      for (int u = 0; u < U; u++)
        {
          const uint4 words = ahead[u][threadIdx.x];
          gt_vector<M, V> in;

          memcpy (&in, &words, 16);
#pragma unroll
          for (int k = 0; k < V; k++)
            {
              y[u][k] =
                  at.here && at.first + u < p.n ? gt_convert<C>::from (in.at[k]) : Op::identity ();
              if (u > 0)
                y[u][k] = Op::combine (y[u - 1][k], y[u][k]);
            }
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
          gt_vector<M, V> out;

#pragma unroll
          for (int k = 0; k < V; k++)
            out.at[k] = gt_convert<M>::from (Op::combine (before[k], y[u][k]));
          if (at.here && at.first + u < p.n)
            *(gt_vector<M, V> *) (dst + u * hop) = out;
        }
    }
}

/* --- gradients, a block for each line --- */

/* Over the threads of the block; the total in *total. */
template <typename Op>
GT_DEVICE typename Op::C
scan_block (typename Op::C x, typename Op::C *total, typename Op::C *shared)
{
  typedef typename Op::C C;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  C before = Op::identity ();

  x = scan_lanes<Op> (x, lane, 32);
  __syncthreads ();
  if (lane == 31)
    shared[warp] = x;
  __syncthreads ();
  *total = Op::identity ();
#pragma unroll
  for (int w = 0; w < 8; w++)
    {
      before = w == warp ? *total : before;
      *total = Op::combine (*total, shared[w]);
    }
  return Op::combine (before, x);
}

/* The first i >= begin where x is 0, n if there is none. */
template <typename C>
GT_DEVICE uint64_t
find_zero (const C *x, uint64_t begin, uint64_t n, unsigned long long *shared)
{
  uint64_t i;

  __syncthreads ();
  if (threadIdx.x == 0)
    *shared = n;
  __syncthreads ();
  for (i = begin + threadIdx.x; i < n && !(x[i] == (C) 0); i += THREADS)
    ;
  if (i < n)
    atomicMin (shared, (unsigned long long) i);
  __syncthreads ();
  return *shared;
}

/* With z the first zero: before it every result holds x[i] as a factor; at z the results up to the
 * next zero do not vanish; behind it all vanish. */
template <typename C>
GT_DEVICE void
cumprod_backward (const GtLines &p)
{
  __shared__ alignas (16) unsigned char bytes[8 * sizeof (C)];
  __shared__ unsigned long long zero;
  C *shared = (C *) bytes;
  const C *x = (const C *) p.x + blockIdx.x * p.n, *g = (const C *) p.g + blockIdx.x * p.n;
  C *y = (C *) p.y + blockIdx.x * p.n;
  const uint64_t z = find_zero (x, 0, p.n, &zero);
  const uint64_t next = z < p.n ? find_zero (x, z + 1, p.n, &zero) : p.n;
  C carry = (C) 1, sum = (C) 0, total;

  for (uint64_t begin = 0; begin < next; begin += THREADS)
    {
      const uint64_t i = begin + threadIdx.x;
      const C factor = i < next && i != z ? x[i] : (C) 1;
      const C product = carry * scan_block<gt_product<C> > (factor, &total, shared);

      if (i < z)
        y[i] = g[i] * product;
      else if (i < next)
        sum = sum + g[i] * product;
      carry = carry * total;
    }
  for (uint64_t i = z + threadIdx.x; i < p.n; i += THREADS)
    y[i] = (C) 0;
  scan_block<gt_sum<C> > (sum, &total, shared);
  if (threadIdx.x == 0 && z < p.n)
    y[z] = total;
  carry = (C) 0;
  for (uint64_t begin = 0; begin < z; begin += THREADS)
    {
      const uint64_t i = z - 1 - begin - threadIdx.x;
      const bool here = begin + threadIdx.x < z;
      const C after = carry + scan_block<gt_sum<C> > (here ? y[i] : (C) 0, &total, shared);

      if (here)
        y[i] = after / x[i];
      carry = carry + total;
    }
}

template <typename C>
GT_DEVICE void
prod_others (const GtLines &p)
{
  __shared__ alignas (16) unsigned char bytes[8 * sizeof (C)];
  __shared__ alignas (16) unsigned char all[THREADS * sizeof (C)];
  C *shared = (C *) bytes, *before = (C *) all;
  const C *x = (const C *) p.x + blockIdx.x * p.n;
  C *y = (C *) p.y + blockIdx.x * p.n;

  for (int back = 1; back >= 0; back--)
    {
      C carry = (C) 1, total;

      for (uint64_t begin = 0; begin < p.n; begin += THREADS)
        {
          const bool here = begin + threadIdx.x < p.n;
          const uint64_t i = back ? p.n - 1 - begin - threadIdx.x : begin + threadIdx.x;
          C others;

          before[threadIdx.x] = scan_block<gt_product<C> > (here ? x[i] : (C) 1, &total, shared);
          __syncthreads ();
          others = threadIdx.x == 0 ? carry : carry * before[threadIdx.x - 1];
          if (here)
            y[i] = back ? others : others * y[i];
          carry = carry * total;
        }
    }
}

#define FORMS_OF(op, name, M, C)                        \
  GT_SCAN_FORM (short_rows, op, name, M, 4, gt_##op<C>) \
  GT_SCAN_FORM (rows, op, name, M, 4, gt_##op<C>)       \
  GT_SCAN_FORM (rows_ahead, op, name, M, 4, gt_##op<C>) \
  GT_SCAN_FORM (columns, op, name, M, 3, gt_##op<C>)    \
  GT_SCAN_FORM (columns_ahead, op, name, M, 3, gt_##op<C>)
#define FORMS(name, M, C)    \
  FORMS_OF (sum, name, M, C) \
  FORMS_OF (product, name, M, C)
FORMS (f32, float, float)
FORMS (f64, double, double)
FORMS (f16, gt_f16, float)
FORMS (bf16, gt_bf16, float)
FORMS (i32, gint32, gint32)
FORMS (i64, gint64, gint64)
FORMS (c64, GTorchComplex64, GTorchComplex64)
FORMS (c128, GTorchComplex128, GTorchComplex128)

#define LINES(op, name, C)                                 \
  extern "C" __global__ void __launch_bounds__ (THREADS)   \
      gt_##op##_##name (const __grid_constant__ GtLines p) \
  {                                                        \
    op<C> (p);                                             \
  }
LINES (cumprod_backward, f32, float)
LINES (cumprod_backward, f64, double)
LINES (cumprod_backward, c64, GTorchComplex64)
LINES (cumprod_backward, c128, GTorchComplex128)
LINES (prod_others, f32, float)
LINES (prod_others, f64, double)
LINES (prod_others, c64, GTorchComplex64)
LINES (prod_others, c128, GTorchComplex128)
