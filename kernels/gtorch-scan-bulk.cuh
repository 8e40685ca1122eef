/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Scans of long lines in tiles that are assigned one by one. The copy engine (TMA) loads the tiles and
 * stores the results. One warp of a block requests tiles, one computes their prefixes, all others scan. */

#include "gtorch-scan-ahead.cuh"

#if __CUDA_ARCH__ >= 900
/* --- barriers in shared memory, and the copy engine --- */

GT_DEVICE uint32_t
shared_address (const void *p)
{
  return (uint32_t) __cvta_generic_to_shared (p);
}

GT_DEVICE void
barrier_init (uint64_t *barrier)
{
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address (barrier)) : "memory");
}

/* Makes initialised barriers visible to the copy engine. */
GT_DEVICE void
barriers_are_ready ()
{
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

GT_DEVICE void
barrier_arrive (uint64_t *barrier)
{
  asm volatile(
      "{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(shared_address (barrier))
      : "memory");
}

GT_DEVICE void
barrier_expect (uint64_t *barrier, uint32_t n_bytes)
{
  asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }" ::"r"(
                   shared_address (barrier)),
               "r"(n_bytes)
               : "memory");
}

GT_DEVICE void
barrier_wait (uint64_t *barrier, uint32_t parity)
{
  uint32_t done;

  do
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 "
                 "%0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(shared_address (barrier)), "r"(parity)
                 : "memory");
  while (!done);
}

GT_DEVICE void
bulk_load (void *to, const void *from, uint32_t n_bytes, uint64_t *barrier)
{
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
               "[%3];" ::"r"(shared_address (to)),
               "l"(from), "r"(n_bytes), "r"(shared_address (barrier))
               : "memory");
}

/* Makes the threads' writes to shared memory visible to the copy engine. */
GT_DEVICE void
bulk_fence ()
{
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

GT_DEVICE void
bulk_store (void *to, const void *from, uint32_t n_bytes)
{
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address (from)), "r"(n_bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until all stores but the last one have read their source. */
GT_DEVICE void
bulk_await_reads ()
{
  asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
}

GT_DEVICE void
bulk_await_stores ()
{
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Synchronises the first THREADS threads. */
template <int ID>
GT_DEVICE void
meet ()
{
  asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(THREADS) : "memory");
}

/* --- the prefix of a tile --- */

/* The total of the first `groups` groups of 32 tiles of a line. */
template <typename C> struct gt_before
{
  uint32_t line, groups;
  C sum;
};

/* Waits for the slots of all threads in the warp that want one. The threads poll together: if they
 * diverged, they would wait one after the other. */
template <typename C>
GT_DEVICE C
wait_together (const GtScan &p, uint64_t slot, gt_told<C> told, bool wanted)
{
  while (!__all_sync (~0u, !wanted || is_there (told)))
    if (wanted && !is_there (told))
      told = look<C> (p, slot);
  return number_of (told);
}

/* Computes the prefix of a tile with one warp. Groups of 32 tiles are combined in their order, and their
 * total is kept in `before` for later tiles of the line. */
template <typename Op>
GT_DEVICE typename Op::C
look_back (gt_before<typename Op::C> &before, const GtScan &p, uint32_t line, uint32_t tile,
           int lane)
{
  typedef typename Op::C C;
  constexpr int N = 32 / sizeof (C);
  const uint32_t n_groups = tile / 32;
  const uint64_t slot = (uint64_t) line * p.tiles + lane, last = slot + n_groups * 32;
  const bool mine = lane < (int) (tile % 32);
  gt_told<C> told[N], told_last = {};
  C x[N];

  if (before.line != line)
    before = { line, 0, Op::identity () };
  if (mine)
    told_last = look<C> (p, last);
  for (uint32_t g = before.groups; g < n_groups; g += N)
    {
#pragma unroll
      for (int k = 0; k < N; k++)
        if (g + k < n_groups)
          told[k] = look<C> (p, slot + (g + k) * 32);
#pragma unroll
      for (int k = 0; k < N; k++)
        {
          x[k] = Op::identity ();
          if (g + k < n_groups)
            x[k] = wait_together (p, slot + (g + k) * 32, told[k], true);
        }
#pragma unroll
      for (int d = 16; d > 0; d /= 2)
#pragma unroll
        for (int k = 0; k < N; k++)
          x[k] = Op::combine (x[k], shuffle_xor (x[k], d));
#pragma unroll
      for (int k = 0; k < N; k++)
        if (g + k < n_groups)
          before.sum = Op::combine (before.sum, x[k]);
    }
  before.groups = n_groups;
  x[0] = wait_together (p, last, told_last, mine);
  x[0] = mine ? x[0] : Op::identity ();
#pragma unroll
  for (int d = 16; d > 0; d /= 2)
    x[0] = Op::combine (x[0], shuffle_xor (x[0], d));
  return Op::combine (before.sum, x[0]);
}
#endif

template <typename Op, typename M>
GT_DEVICE void
rows_bulk (const GtScan &p)
{
#if __CUDA_ARCH__ >= 900
  typedef typename Op::C C;
  constexpr int V = 16 / sizeof (M), U = GT_SCAN_BULK_UNROLL, S = GT_SCAN_BULK_STAGES;
  constexpr int LATER = 2; /* a tile's prefix is applied this many tiles later */
  constexpr int N_WARPS = THREADS / 32, N_VECTORS = THREADS * U;
  __shared__ uint64_t full[S], empty[S], found[S];
  __shared__ uint32_t tickets[S];
  __shared__ alignas (16) unsigned char bytes[(S + 2 * N_WARPS) * sizeof (C)];
  C *carries = (C *) bytes;
  C (*totals)[N_WARPS] = (C (*)[N_WARPS]) (carries + S);
  uint4 (*ring)[N_VECTORS] = (uint4 (*)[N_VECTORS]) dynamic_memory ();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t n_tickets = (uint32_t) p.outer * p.tiles;

  /* Returns the number of vectors in a tile, and its offset. */
  auto place = [&] (uint32_t ticket, uint64_t *offset) {
    const uint32_t line = ticket / p.tiles;
    const uint64_t first = (uint64_t) (ticket - line * p.tiles) * (N_VECTORS * V);
    const uint64_t rest = p.n - first, n = rest < N_VECTORS * V ? rest : N_VECTORS * V;

    *offset = line * p.n + (p.reverse ? rest - n : first);
    return (uint32_t) n / V;
  };

  if (threadIdx.x == 0)
    {
      for (int s = 0; s < S; s++)
        {
          barrier_init (&full[s]);
          barrier_init (&empty[s]);
          barrier_init (&found[s]);
        }
      barriers_are_ready ();
    }
  __syncthreads ();
  if (warp == N_WARPS)
    {
      for (uint32_t i = 0, ticket = 0; lane == 0 && ticket < n_tickets; i++)
        {
          const int s = i % S;
          uint64_t offset;
          uint32_t n_bytes;

          ticket = atomicAdd (p.counter, 1);
          if (i >= S)
            barrier_wait (&empty[s], (i / S - 1) & 1);
          tickets[s] = ticket;
          if (ticket >= n_tickets)
            barrier_arrive (&full[s]);
          else
            {
              n_bytes = place (ticket, &offset) * 16;
              barrier_expect (&full[s], n_bytes);
              bulk_load (ring[s], (const M *) p.src + offset, n_bytes, &full[s]);
            }
        }
      return;
    }
  if (warp > N_WARPS)
    {
      gt_before<C> before = { 0, 0, Op::identity () };

      for (uint32_t i = 0;; i++)
        {
          const int s = i % S;

          barrier_wait (&full[s], i / S & 1);
          const uint32_t ticket = tickets[s], line = ticket / p.tiles;
          if (ticket >= n_tickets)
            return;
          const C x = look_back<Op> (before, p, line, ticket - line * p.tiles, lane);
          if (lane == 0)
            {
              carries[s] = x;
              barrier_arrive (&found[s]);
            }
        }
    }

  /* prefixes of this thread's vectors within the latest tiles, the newest first */
  C sums[LATER + 1];
  uint32_t end = ~0u;
  for (uint32_t i = 0; i < LATER || i - LATER < end; i++)
    {
      C y[V], sum = Op::identity ();

      if (i < end)
        {
          const int s = i % S;

          barrier_wait (&full[s], i / S & 1);
          const uint32_t ticket = tickets[s];
          if (ticket >= n_tickets)
            end = i;
          else
            {
              uint64_t offset;
              const uint32_t n = place (ticket, &offset);
              C total = Op::identity (), before = Op::identity ();

#pragma unroll
              for (int u = 0; u < U; u++)
                {
                  const uint32_t j = threadIdx.x * U + u;

                  take_words<Op, M, V> (y, ring[s][p.reverse && j < n ? n - 1 - j : j], j < n,
                                        p.reverse);
#pragma unroll
                  for (int k = 0; k < V; k++)
                    sum = Op::combine (sum, y[k]);
                }
              const C x = scan_lanes<Op> (sum, lane, 32);
              if (lane == 31)
                totals[i & 1][warp] = x;
              sum = shuffle_up (x, 1, 32);
              sum = lane == 0 ? Op::identity () : sum;
              meet<1> ();
#pragma unroll
              for (int w = 0; w < N_WARPS; w++)
                {
                  before = w == warp ? total : before;
                  total = Op::combine (total, totals[i & 1][w]);
                }
              sum = Op::combine (before, sum);
              if (threadIdx.x == 0 && (ticket + 1) % p.tiles != 0)
                tell (p, ticket, total);
            }
        }
#pragma unroll
      for (int d = LATER; d > 0; d--)
        sums[d] = sums[d - 1];
      sums[0] = sum;
      if (i >= LATER && i - LATER < end)
        {
          const uint32_t early = i - LATER, s = early % S;
          uint64_t offset;
          const uint32_t n = place (tickets[s], &offset);

          barrier_wait (&found[s], early / S & 1);
          sum = Op::combine (carries[s], sums[LATER]);
#pragma unroll
          for (int u = 0; u < U; u++)
            {
              const uint32_t j = threadIdx.x * U + u, at = p.reverse && j < n ? n - 1 - j : j;

              take_words<Op, M, V> (y, ring[s][at], true, p.reverse);
#pragma unroll
              for (int k = 0; k < V; k++)
                y[k] = sum = Op::combine (sum, y[k]);
              if (j < n)
                ring[s][at] = give_words<Op, M, V> (y, p.reverse);
            }
          bulk_fence ();
          meet<2> ();
          if (threadIdx.x == 0)
            {
              bulk_store ((M *) p.dst + offset, ring[s], n * 16);
              bulk_await_reads ();
              if (early > 0)
                barrier_arrive (&empty[(early - 1) % S]);
            }
        }
    }
  if (threadIdx.x == 0)
    bulk_await_stores ();
#else
  if (threadIdx.x < THREADS)
    rows_ahead<Op, M, GT_SCAN_BULK_UNROLL> (p);
#endif
}
