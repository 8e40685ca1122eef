/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The negative log likelihood of n targets with the log-probabilities x [outer, classes, inner]. */
typedef struct
{
  const void *x;
  const int64_t *target;
  const double *weight; /* weights of the classes, or NULL */
  void *loss; /* one for each target, or one; in nll_total, the targets' total weight (float64) */
  int64_t n, classes, inner;
  int64_t ignored; /* the class that is ignored */
  int64_t is_mean;
  double smoothing;
  int64_t op;
  void *report; /* GtReport */
} GtNll;
GT_SIZE (GtNll, 96);

/* The gradient of x. */
typedef struct
{
  const void *g; /* gradient of each target's loss, or of the single one if is_single */
  const int64_t *target;
  const double *weight;
  const double *total; /* the divisor of the mean, or NULL */
  void *grad;
  int64_t n, classes, inner;
  int64_t ignored;
  int64_t is_single;
  double smoothing;
} GtNllGrad;
GT_SIZE (GtNllGrad, 88);
