/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Layer norm of rows of n elements; weight and bias may be NULL. */
typedef struct
{
  const void *x, *weight, *bias;
  void *y, *mean, *rstd;
  int64_t rows, n;
  double eps;
} GtLayerNorm;
GT_SIZE (GtLayerNorm, 72);

/* Layer norm of a few long rows by the moments of their parts, [rows, parts, 3] of accumulators; `stats` gets
 * the mean and the factor of each row, [rows, 2]. */
typedef struct
{
  GtLayerNorm norm;
  const void *moments;
  void *stats;
  int64_t parts;
} GtLongNorm;
GT_SIZE (GtLongNorm, 96);

/* The gradient of x; mean and rstd are those of the forward pass. */
typedef struct
{
  const void *g, *x, *weight, *mean, *rstd;
  void *grad;
  int64_t rows, n;
} GtLayerNormGrad;
GT_SIZE (GtLayerNormGrad, 64);

/* Partial gradients of weight and bias, each over `part` rows. `sums` has accumulators [parts, 2, n]. */
typedef struct
{
  const void *g, *x, *mean, *rstd;
  void *sums;
  int64_t rows, n, part;
} GtLayerNormSums;
GT_SIZE (GtLayerNormSums, 64);

/* All three at once, for rows of at most GT_NORM_COLUMNS * 1024 elements: one block for each part. */
#define GT_NORM_COLUMNS 4
typedef struct
{
  GtLayerNormGrad x;
  void *sums;
  int64_t part;
} GtLayerNormGrads;
GT_SIZE (GtLayerNormGrads, 80);

/* The parts of sums [parts, 2, n], added up in order: grads[0] is the weight's gradient, grads[1] the
 * bias's. */
typedef struct
{
  const void *sums;
  void *grads[2];
  int64_t parts, n;
} GtAddParts;
GT_SIZE (GtAddParts, 40);
