/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The sum of the products of two vectors of n elements, by way of one sum for each block. */
typedef struct
{
  const void *a, *b;
  void *y;
  void *partial; /* in the compute dtype */
  int64_t n;
  uint32_t blocks;
  uint32_t is_aligned; /* whether both vectors can be read in words of 16 bytes */
} GtDot;
GT_SIZE (GtDot, 48);
