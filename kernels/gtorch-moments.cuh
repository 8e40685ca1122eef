/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-types.cuh"

/* Moments of parts: (mean, sum of squared deviations, count). */

template <typename C>
GT_DEVICE void
gt_merge_moments (C &mean, C &square, C &count, C other_mean, C other_square, C other_count)
{
  const C total = count + other_count, d = other_mean - mean;

  if (other_count == 0)
    return;
  if (count == 0)
    { /* the square of a great mean may overflow */
      mean = other_mean;
      square = other_square;
      count = other_count;
      return;
    }
  mean += d * (other_count / total);
  square += other_square + d * d * (count * (other_count / total));
  count = total;
}

/* Merges the moments of the warp's threads; each gets the result. */
template <typename C>
GT_DEVICE void
gt_merge_warp (C &mean, C &square, C &count)
{
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    {
      const C other_mean = __shfl_down_sync (~0u, mean, offset);
      const C other_square = __shfl_down_sync (~0u, square, offset);
      const C other_count = __shfl_down_sync (~0u, count, offset);

      gt_merge_moments (mean, square, count, other_mean, other_square, other_count);
    }
  mean = __shfl_sync (~0u, mean, 0);
  square = __shfl_sync (~0u, square, 0);
  count = __shfl_sync (~0u, count, 0);
}
