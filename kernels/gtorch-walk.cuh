/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Where the elements of a thread are, in operands of any strides. */

#include "gtorch-types.cuh"

/* Returns the position of the thread's element `u` of GT_STEPS, which may be beyond the end. */
GT_DEVICE uint32_t
gt_step_at (int u)
{
  return (blockIdx.x * GT_STEPS + u) * GT_THREADS + threadIdx.x;
}

/* Computes the offsets in bytes of the thread's GT_STEPS elements in the first N operands; those of elements
 * beyond the end are of the first element, so that they can be read. A dimension is divided off for all
 * elements before the next one, since the divisions of one element wait for each other. The host launches
 * parts whose offsets fit 32 bits: sums of products in 64 bits take three times as many instructions, which
 * are then more than the memory gives time for. */
template <int N>
GT_DEVICE void
gt_walk (const GtStrided &p, int32_t (&offsets)[GT_STEPS][N])
{
  const uint32_t last = p.n_dims - 1;
  uint32_t rest[GT_STEPS];

#pragma unroll
  for (int u = 0; u < GT_STEPS; u++)
    {
      rest[u] = gt_step_at (u) < (uint32_t) p.base.n ? gt_step_at (u) : 0;
#pragma unroll
      for (int k = 0; k < N; k++)
        offsets[u][k] = 0;
    }
  for (uint32_t d = 0; d < last; d++)
#pragma unroll
    for (int u = 0; u < GT_STEPS; u++)
      {
        const uint32_t next = gt_divide (rest[u], p.shape[d]);
        const int32_t at = rest[u] - next * p.shape[d].divisor;

#pragma unroll
        for (int k = 0; k < N; k++)
          offsets[u][k] += at * p.strides[d][k];
        rest[u] = next;
      }
#pragma unroll
  for (int u = 0; u < GT_STEPS; u++)
#pragma unroll
    for (int k = 0; k < N; k++)
      offsets[u][k] += (int32_t) rest[u] * p.strides[last][k];
}
