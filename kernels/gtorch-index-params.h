/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The offsets of n indices into a dimension. */
typedef struct
{
  const int64_t *index;
  int64_t *offsets; /* receives the offsets, which are added unless is_first */
  int64_t n, stride, size;
  int64_t wrap; /* whether negative indices count from the end */
  int64_t is_first;
  /* left_out: an index that is skipped if leaves_out is 1, and also not reported if that is 2 */
  int64_t left_out, leaves_out;
  int64_t op;
  void *report; /* GtReport, or NULL */
} GtOffsets;
GT_SIZE (GtOffsets, 88);

/* The search for the last of n writes to each slot; owners are int64 if wide, else int32. */
typedef struct
{
  const int64_t *slots; /* numbers of the blocks; negative ones are skipped */
  void *owners;
  int64_t n, wide;
} GtClaim;
GT_SIZE (GtClaim, 32);

/* The marking of all writes but the last to each slot as skipped. */
typedef struct
{
  const int64_t *slots;
  const void *owners;
  int64_t *offsets;
  int64_t n, wide;
} GtKeepLast;
GT_SIZE (GtKeepLast, 40);

/* The same marking with the sorted numbers of the blocks (`keys`, int64 if wide, else int32) and their
 * positions before sorting (`at`). */
typedef struct
{
  const void *keys;
  const int64_t *at;
  int64_t *offsets;
  int64_t n, wide;
} GtDropEarlier;
GT_SIZE (GtDropEarlier, 40);

/* Conversion of the numbers of blocks to int32, to be sorted. */
typedef struct
{
  const int64_t *slots;
  int32_t *keys;
  int64_t n;
} GtKeys;
GT_SIZE (GtKeys, 24);

/* The elements of x [outer, size, inner] at n positions [outer, inner], which are read, or written to y. */
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

/* The bounds of n integers: the largest plus 1, and how far the smallest is below 0. Both are 0
 * initially. */
typedef struct
{
  const int64_t *x;
  int64_t *bounds;
  int64_t n;
} GtBounds;
GT_SIZE (GtBounds, 24);

/* The number of occurrences of each of n integers from 0 to bins - 1. */
typedef struct
{
  const int64_t *x;
  int64_t *counts;
  int64_t n, bins;
} GtCount;
GT_SIZE (GtCount, 32);
