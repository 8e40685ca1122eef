/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Running sums and products in one pass over memory. Tiles of a line are given out in order; each
 * tells its total as soon as it has it and then takes in those before it: of its own group of tiles
 * one by one, of all earlier groups as one number. What is added to what depends on the shape only,
 * never on who came first. */

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

/* --- rows --- */

/* `width` threads have a row. */
template <typename Op, typename M>
GT_DEVICE void
short_rows (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M);
  const uint64_t row = ((uint64_t) blockIdx.x * THREADS + threadIdx.x) / p.width;
  const uint32_t lane = threadIdx.x & (p.width - 1);
  const bool here = row < p.outer;
  const M *src = (const M *) p.src + (here ? row : 0) * p.n;
  M *dst = (M *) p.dst + (here ? row : 0) * p.n;
  C carry = Op::identity (), y[V], next[V];

  load<C, M, V> (next, src, lane * V, p, Op::identity ());
  for (uint64_t i = 0; i < p.n; i += p.width * V)
    {
      const uint64_t at = i + lane * V;
      C before;

#pragma unroll
      for (int k = 0; k < V; k++)
        y[k] = k == 0 ? next[0] : Op::combine (y[k - 1], next[k]);
      load<C, M, V> (next, src, at + p.width * V, p, Op::identity ());
      const C sum = scan_lanes<Op> (y[V - 1], lane, p.width);
      before = shuffle_up (sum, 1, p.width);
      before = lane == 0 ? carry : Op::combine (carry, before);
      carry = Op::combine (carry, shuffle (sum, p.width - 1, p.width));
#pragma unroll
      for (int k = 0; k < V; k++)
        y[k] = Op::combine (before, y[k]);
      if (here)
        store<C, M, V> (dst, y, at, p);
    }
}

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
  const uint64_t tiles = line * p.tiles, groups = p.outer * p.tiles + tiles;
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

/* A block for each tile in turn, or for each line, of as many warps as it needs. */
template <typename Op, typename M>
GT_DEVICE void
rows (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = V >= 8 ? 4 : 8;
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
      const M *src = (const M *) p.src + line * p.n;
      M *dst = (M *) p.dst + line * p.n;
      const uint64_t first = (uint64_t) tile * blockDim.x * (U * V) + (warp * U * 32 + lane) * V;
      C y[U][V], sum = Op::identity (), total;

#pragma unroll
      for (int u = 0; u < U; u++)
        load<C, M, V> (y[u], src, first + u * 32 * V, p, Op::identity ());
#pragma unroll
      for (int u = 0; u < U; u++)
        {
          C x, before;

#pragma unroll
          for (int k = 1; k < V; k++)
            y[u][k] = Op::combine (y[u][k - 1], y[u][k]);
          x = scan_lanes<Op> (y[u][V - 1], lane, 32);
          before = shuffle_up (x, 1, 32);
          before = lane == 0 ? sum : Op::combine (sum, before);
          sum = Op::combine (sum, shuffle (x, 31, 32));
#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = Op::combine (before, y[u][k]);
        }
      if (lane == 0)
        shared[16 + warp] = sum;
      __syncthreads ();
      total = Op::identity ();
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
          store<C, M, V> (dst, y[u], first + u * 32 * V, p);
        }
      carry = Op::combine (carry, total);
    }
}

/* --- columns: `width` threads have V columns each, all others of the block U other rows each --- */
template <typename Op, typename M>
GT_DEVICE void
columns (const GtScan &p)
{
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = V >= 8 ? 4 : 8;
  __shared__ alignas (16) unsigned char bytes[(THREADS * V + 32 * V) * sizeof (C)];
  __shared__ uint32_t ticket;
  C (*shared)[THREADS] = (C (*)[THREADS]) bytes;
  C *carries = (C *) bytes + THREADS * V;
  const uint32_t across = threadIdx.x & (p.width - 1), down = threadIdx.x / p.width;
  const uint32_t height = THREADS / p.width, n_columns = p.width * V;
  const uint32_t strips = (uint32_t) ((p.inner + n_columns - 1) / n_columns);
  const uint64_t n_slots = p.outer * p.tiles * p.inner;
  uint64_t line = blockIdx.x / strips; /* the outer index */
  uint32_t strip = blockIdx.x - (uint32_t) line * strips, tile = 0, end = p.tiles;

  if (p.counter != NULL)
    { /* all strips of a tile, then the next tile */
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
  const uint32_t c = threadIdx.x % n_columns, part = threadIdx.x / n_columns;
  const uint32_t n_parts = THREADS / n_columns;

  for (uint32_t i = threadIdx.x; i < n_columns; i += THREADS)
    carries[i] = Op::identity ();
  for (; tile < end; tile++)
    {
      const uint64_t first = ((uint64_t) tile * height + down) * U;
      const int64_t hop = p.reverse ? -(int64_t) p.inner : (int64_t) p.inner;
      const int64_t offset = (line * p.n + (p.reverse ? p.n - 1 - first : first)) * p.inner + mine;
      const M *src = (const M *) p.src + offset;
      M *dst = (M *) p.dst + offset;
      C y[U][V], before[V];

#pragma unroll
      for (int u = 0; u < U; u++)
        {
          gt_vector<M, V> in;
          const bool here = first + u < p.n && filled > 0;

          if (p.vectors)
            {
              if (here)
                in = *(const gt_vector<M, V> *) (src + u * hop);
            }
          else
#pragma unroll
            for (int k = 0; k < V; k++)
              if (here && k < filled)
                in.at[k] = src[u * hop + k];
#pragma unroll
          for (int k = 0; k < V; k++)
            y[u][k] = here && k < filled ? gt_convert<C>::from (in.at[k]) : Op::identity ();
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
      /* A thread for each column: what goes before each of its parts, and the total. */
#pragma unroll
      for (int k = 0; k < V; k++)
        before[k] = Op::identity ();
      for (uint32_t d = 0; d < down; d++)
#pragma unroll
        for (int k = 0; k < V; k++)
          before[k] = Op::combine (before[k], shared[k][d * p.width + across]);
      if (p.counter != NULL && p.tiles > 1)
        {
          const uint32_t group = tile / p.group, first_tile = group * p.group;
          const uint64_t slot = line * p.tiles * p.inner + column + c, hop = n_parts * p.inner;
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
                tell (p, n_slots + slot + group * p.inner, Op::combine (a, total));
            }
          if (here && part < group)
            b = wait_for<Op> (p, n_slots + slot + part * p.inner, hop,
                              (group - part + n_parts - 1) / n_parts);
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
#pragma unroll
      for (int k = 0; k < V; k++)
        before[k] = Op::combine (carries[across * V + k], before[k]);
#pragma unroll
      for (int u = 0; u < U; u++)
        {
          gt_vector<M, V> out;

#pragma unroll
          for (int k = 0; k < V; k++)
            {
              y[u][k] = Op::combine (before[k], y[u][k]);
              out.at[k] = gt_convert<M>::from (y[u][k]);
            }
          if (first + u < p.n && filled > 0)
            {
              if (p.vectors)
                *(gt_vector<M, V> *) (dst + u * hop) = out;
              else
#pragma unroll
                for (int k = 0; k < V; k++)
                  if (k < filled)
                    dst[u * hop + k] = out.at[k];
            }
        }
      if (tile + 1 < end)
        {
          __syncthreads ();
          if (down == height - 1) /* what it had last is what goes before the next tile */
#pragma unroll
            for (int k = 0; k < V; k++)
              carries[across * V + k] = y[U - 1][k];
          __syncthreads ();
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

#define FORM(form, op, name, M, C, blocks)                         \
  extern "C" __global__ void __launch_bounds__ (THREADS, blocks)   \
      gt_##op##_##form##_##name (const __grid_constant__ GtScan p) \
  {                                                                \
    form<gt_##op<C>, M> (p);                                       \
  }
#define FORMS(name, M, C)                   \
  FORM (short_rows, sum, name, M, C, 4)     \
  FORM (rows, sum, name, M, C, 4)           \
  FORM (columns, sum, name, M, C, 3)        \
  FORM (short_rows, product, name, M, C, 4) \
  FORM (rows, product, name, M, C, 4)       \
  FORM (columns, product, name, M, C, 3)
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
