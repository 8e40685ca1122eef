/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Moments of contiguous rows of n elements: (mean, sum of squared deviations, count) of each part of a row,
 * [rows, parts, 3] of accumulators. */
typedef struct
{
  const void *x;
  void *moments;
  int64_t rows, n, parts;
} GtMoments;
GT_SIZE (GtMoments, 40);

/* The variance of each row, or its square root if `root`; `correction` is subtracted from the count. */
typedef struct
{
  const void *moments;
  void *y;
  int64_t rows, n, parts;
  int64_t root;
  double correction;
  int64_t width; /* threads for each row: 1, or a warp */
} GtVariance;
GT_SIZE (GtVariance, 64);
