/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Offsets of n indices into a dimension. */
typedef struct
{
  const int64_t *index;
  int64_t *offsets; /* to which, unless this is the first dimension, they are added */
  int64_t n, stride, size;
  int64_t wrap; /* do negative indices count from the end? */
  int64_t is_first;
  int64_t left_out,
      leaves_out; /* an index that is skipped; 0: none, 1: it, 2: it, without a report */
  int64_t op;
  void *report; /* GtReport, or NULL */
} GtOffsets;
GT_SIZE (GtOffsets, 88);

/* Finds the last of n writes to each slot; owners are int64 if wide, else int32. */
typedef struct
{
  const int64_t *slots; /* numbers of the blocks; negative: none */
  void *owners;
  int64_t n, wide;
} GtClaim;
GT_SIZE (GtClaim, 32);

/* Marks all writes but the last to each slot as skipped. */
typedef struct
{
  const int64_t *slots;
  const void *owners;
  int64_t *offsets;
  int64_t n, wide;
} GtKeepLast;
GT_SIZE (GtKeepLast, 40);

/* The same by sorted numbers of blocks, int64 if wide, else int32, and their former positions. */
typedef struct
{
  const void *keys;
  const int64_t *at;
  int64_t *offsets;
  int64_t n, wide;
} GtDropEarlier;
GT_SIZE (GtDropEarlier, 40);

/* Copies numbers of blocks, to be sorted. */
typedef struct
{
  const int64_t *slots;
  int32_t *keys;
  int64_t n;
} GtKeys;
GT_SIZE (GtKeys, 24);

/* Takes from x [outer, size, inner] at n positions [outer, inner], or places n elements there. */
typedef struct
{
  const void *x;
  const int64_t *index;
  void *y;
  int64_t n, size, inner;
  int64_t op;
  void *report; /* GtReport */
} GtAt;
GT_SIZE (GtAt, 64);

/* The bounds of n integers: the largest plus 1, and how far the smallest is below 0; zeros at first. */
typedef struct
{
  const int64_t *x;
  int64_t *bounds;
  int64_t n;
} GtBounds;
GT_SIZE (GtBounds, 24);

/* Counts n integers, which are in range. */
typedef struct
{
  const int64_t *x;
  int64_t *counts;
  int64_t n, bins;
} GtCount;
GT_SIZE (GtCount, 32);
