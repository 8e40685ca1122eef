/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Elements computed from their position i: start + i step, or `last` for the last of n, as the exponent of
 * base if has_base; or if is_integer, first + i by. */
typedef struct
{
  void *y;
  int64_t n;
  int64_t has_last, has_base, is_integer;
  double start, step, last, base;
  int64_t first, by;
} GtProgression;
GT_SIZE (GtProgression, 88);

/* The n elements on the diagonal of a matrix of zeros, which become 1. */
typedef struct
{
  void *y;
  int64_t n, columns;
} GtEye;
GT_SIZE (GtEye, 24);

/* Matrices of n elements in total, copied within a triangle of each; the other elements become 0. is_wide
 * says that rows are whole vectors of 16 bytes. The diagonal is at most a row or a column outside. */
typedef struct
{
  const void *x;
  void *y;
  int64_t n, rows, columns;
  int64_t diagonal;
  int32_t is_lower, is_wide;
} GtTriangle;
GT_SIZE (GtTriangle, 56);

/* The one-hot encoding of n indices of classes; y [n, classes] is 0 initially. */
typedef struct
{
  const int64_t *index;
  int64_t *y;
  int64_t n, classes;
  int64_t op;
  void *report; /* GtReport */
} GtOneHot;
GT_SIZE (GtOneHot, 48);

/* The rows and columns, y [2, n], of the n positions in a triangle. */
typedef struct
{
  int64_t *y;
  int64_t n, rows, columns;
  int64_t diagonal, is_lower;
} GtTriangleIndices;
GT_SIZE (GtTriangleIndices, 48);

/* The number of true flags among n, for each part of `part` flags. */
typedef struct
{
  const uint8_t *flags;
  int64_t *counts;
  int64_t n, part;
} GtCountFlags;
GT_SIZE (GtCountFlags, 32);

/* The exclusive sums of n numbers, in place; the total is appended. */
typedef struct
{
  int64_t *x;
  int64_t n;
} GtSumBefore;
GT_SIZE (GtSumBefore, 16);

/* The positions of the true flags in a tensor: y [total, n_dims]. */
typedef struct
{
  const uint8_t *flags;
  const int64_t *before; /* number of true flags before each part */
  int64_t *y;
  int64_t n, part, n_dims;
  int64_t shape[GT_MAX_DIMS];
} GtFindFlags;
GT_SIZE (GtFindFlags, 176);

/* The conjugates of n elements. */
typedef struct
{
  const void *x;
  void *y;
  int64_t n;
} GtConj;
GT_SIZE (GtConj, 24);

/* The n complex numbers of contiguous, aligned parts, or of absolute values and angles. */
typedef struct
{
  const void *re, *im;
  void *y;
  int64_t n;
} GtUnite;
GT_SIZE (GtUnite, 32);

/* The cross products of n vectors, whose elements are `inner` apart: [n / inner, 3, inner]. */
typedef struct
{
  const void *a, *b;
  void *y;
  int64_t n, inner;
} GtCross;
GT_SIZE (GtCross, 40);
