/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The least and the greatest of n elements, by way of those of each block, [blocks, 2]. */
typedef struct
{
  const void *x;
  void *partial; /* in the compute dtype */
  void *least, *greatest;
  int64_t n;
  uint32_t blocks;
  uint32_t is_aligned; /* whether elements can be read in words of 16 bytes */
} GtExtremes;
GT_SIZE (GtExtremes, 48);
