/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The number of elements in each of the intervals of the same length from min to max, or of integers from 0
 * to bins - 1. */
typedef struct
{
  const void *x;
  int64_t *counts; /* which begin with 0 */
  int64_t n, bins;
  double min, max;
} GtHistogram;
GT_SIZE (GtHistogram, 48);
