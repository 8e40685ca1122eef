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
  mean += d * (other_count / total);
  square += other_square + d * d * (count * (other_count / total));
  count = total;
}
