/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* `count` orders of n rows, from first on, of which each row i below n_pivots was exchanged with row
 * pivots[i] - 1. */
typedef struct
{
  const int64_t *pivots;
  int64_t *order;
  int64_t count, n, n_pivots, first;
  int64_t op;
  void *report; /* GtReport */
} GtPivots;
GT_SIZE (GtPivots, 64);

/* The addresses of `count` matrices that are `step` bytes apart. */
typedef struct
{
  char *first;
  void *addresses;
  int64_t step, count;
} GtAddresses;
GT_SIZE (GtAddresses, 32);
