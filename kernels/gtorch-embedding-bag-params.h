/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Sums, means or maxima of the rows of weight [rows, columns] at n indices in bags. */
typedef struct
{
  const void *weight;
  const int64_t *indices, *offsets;
  const void *factors; /* of the rows, or NULL */
  void *output;        /* [bags, columns] */
  int64_t *numbers;    /* the bag of each index, or -1 */
  int64_t *sizes;      /* how many indices each bag has */
  int64_t *places;     /* the rows of the maxima, or -1 */
  int64_t n, n_offsets, bags, rows, columns;
  int64_t padding; /* the row that is left out, or -1 */
  uint32_t mode;   /* GTorchBagMode */
  uint32_t op;
  void *report;     /* GtReport */
  uint32_t is_wide; /* a thread takes 16 bytes of a row at once */
  uint32_t is_long; /* bags have many indices for each of their threads */
} GtBags;
GT_SIZE (GtBags, 136);
