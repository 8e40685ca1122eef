/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Running sums and products in one pass over memory. A block has whole lines, or tiles of a line are
 * assigned to blocks in order; each block publishes its tile's total as soon as it is known and then
 * combines the totals before it. The grouping of the additions depends on the shape and the kind of GPU
 * only, never on timing. */

#include "gtorch-scan-bulk.cuh"
#include "gtorch-scan-ring.cuh"

/* --- gradients, with a block for each line --- */

/* Scans x over the threads of the block; *total becomes the total of all threads. */
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

/* Returns the first i >= begin where x is 0, or n if there is none. */
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

/* Computes the gradient of a running product, with z the first index where x is 0. Before z, it is a sum of
 * g[j] times the running products for j from i to z - 1, divided by x[i]. At z, it is a sum of g[j] times
 * the products of the other elements for j from z up to the next zero. After z it is 0. */
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

#define FORMS_OF(op, name, M, C)                                     \
  GT_SCAN_FORM (short_rows, op, name, M, THREADS, 4, gt_##op<C>)     \
  GT_SCAN_FORM (rows, op, name, M, THREADS, 4, gt_##op<C>)           \
  GT_SCAN_FORM (rows_ahead, op, name, M, THREADS, 4, gt_##op<C>)     \
  GT_SCAN_FORM (rows_ring, op, name, M, THREADS, 2, gt_##op<C>)      \
  GT_SCAN_FORM (rows_bulk, op, name, M, THREADS + 64, 1, gt_##op<C>) \
  GT_SCAN_FORM (columns, op, name, M, THREADS, 3, gt_##op<C>)        \
  GT_SCAN_FORM (columns_ahead, op, name, M, THREADS, 3, gt_##op<C>)  \
  GT_SCAN_FORM (columns_ring, op, name, M, GT_SCAN_COLUMN_THREADS, 1, gt_##op<C>)
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
