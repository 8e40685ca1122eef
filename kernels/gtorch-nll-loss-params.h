/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The negative log likelihood of n targets, of x [outer, classes, inner]. */
typedef struct
{
  const void *x;
  const int64_t *target;
  const double *weight; /* of the classes, or NULL */
  void *loss;           /* of each target, or one; of nll_total: the targets' weight, float64 */
  int64_t n, classes, inner;
  int64_t ignored; /* the class that does not count */
  int64_t is_mean;
  double smoothing;
  int64_t op;
  void *report; /* GtReport */
} GtNll;
GT_SIZE (GtNll, 96);

/* The gradient of x. */
typedef struct
{
  const void *g; /* of each target, or, if is_single, one */
  const int64_t *target;
  const double *weight;
  const double *total; /* what the mean divides by, or NULL */
  void *grad;
  int64_t n, classes, inner;
  int64_t ignored;
  int64_t is_single;
  double smoothing;
} GtNllGrad;
GT_SIZE (GtNllGrad, 88);
