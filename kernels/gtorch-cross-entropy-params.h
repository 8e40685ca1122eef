/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The cross entropy of `rows` examples with the scores x [outer, classes, inner]. */
typedef struct
{
  const void *x;
  const int64_t *target;
  const double *weight; /* weights of the classes, or NULL */
  void *loss;           /* one for each example, of the GTorchDType `dtype` */
  double *logsumexp;    /* one for each example */
  int64_t rows, classes, inner;
  int64_t ignored; /* the class that is ignored */
  int64_t dtype;
  double smoothing;
  int64_t op;
  void *report; /* GtReport */
} GtCrossEntropy;
GT_SIZE (GtCrossEntropy, 104);

/* The total weights of the targets and of the classes; if is_single, the sum or mean of the losses. */
typedef struct
{
  const double *loss;
  const int64_t *target;
  const double *weight;
  void *result;
  double *totals;
  int64_t rows, classes, ignored;
  int64_t is_single, is_mean;
  int64_t dtype; /* of the result */
} GtCrossEntropyTotal;
GT_SIZE (GtCrossEntropyTotal, 88);

/* The gradient of x. */
typedef struct
{
  const void *upper; /* gradient of each example's loss, or of the single one if is_single */
  const void *x;
  const int64_t *target;
  const double *weight, *logsumexp, *totals;
  void *grad;
  int64_t rows, classes, inner;
  int64_t ignored;
  int64_t is_single, is_mean;
  int64_t dtype; /* of upper */
  double smoothing;
} GtCrossEntropyGrad;
GT_SIZE (GtCrossEntropyGrad, 120);
