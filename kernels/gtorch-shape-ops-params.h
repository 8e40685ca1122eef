/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Elements from their position: base to the power of start + i step, which is `last` for the last of n; or
 * first + i by, in integers. */
typedef struct
{
  void *y;
  int64_t n;
  int64_t has_last, has_base, is_integer;
  double start, step, last, base;
  int64_t first, by;
} GtProgression;
GT_SIZE (GtProgression, 88);

/* Sets the n elements of the diagonal of zeros to one. */
typedef struct
{
  void *y;
  int64_t n, columns;
} GtEye;
GT_SIZE (GtEye, 24);

/* Copies n elements within the triangle of each matrix; the others become zeros. */
typedef struct
{
  const void *x;
  void *y;
  int64_t n, rows, columns;
  int64_t diagonal, is_lower;
} GtTriangle;
GT_SIZE (GtTriangle, 56);

/* n indices of classes; y [n, classes] has zeros at first. */
typedef struct
{
  const int64_t *index;
  int64_t *y;
  int64_t n, classes;
  int64_t op;
  void *report; /* GtReport */
} GtOneHot;
GT_SIZE (GtOneHot, 48);

/* Rows and columns, y [2, n], of the positions in a triangle. */
typedef struct
{
  int64_t *y;
  int64_t n, rows, columns;
  int64_t diagonal, is_lower;
} GtTriangleIndices;
GT_SIZE (GtTriangleIndices, 48);

/* Counts the true ones of n flags, in parts. */
typedef struct
{
  const uint8_t *flags;
  int64_t *counts;
  int64_t n, part;
} GtCountFlags;
GT_SIZE (GtCountFlags, 32);

/* Each of n numbers becomes the sum of those before; their total is appended. */
typedef struct
{
  int64_t *x;
  int64_t n;
} GtSumBefore;
GT_SIZE (GtSumBefore, 16);

/* Lists the positions of true flags in a tensor: y [total, n_dims]. */
typedef struct
{
  const uint8_t *flags;
  const int64_t *before; /* true flags before each part */
  int64_t *y;
  int64_t n, part, n_dims;
  int64_t shape[GT_MAX_DIMS];
} GtFindFlags;
GT_SIZE (GtFindFlags, 176);

/* Conjugates of n elements. */
typedef struct
{
  const void *x;
  void *y;
  int64_t n;
} GtConj;
GT_SIZE (GtConj, 24);
