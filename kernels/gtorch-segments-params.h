/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The recurrence e[0] = start, e[k] = x[k - 1] + f[k - 1] e[k - 1] along the n elements of each line of
 * [outer, n, inner]. */
typedef struct
{
  const void *x, *f;
  void *y;
  int64_t lines; /* outer * inner */
  int64_t n, inner;
  int64_t reverse; /* whether to begin at the end */
  double start;
} GtRecurrence;
GT_SIZE (GtRecurrence, 64);
