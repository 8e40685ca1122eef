/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Draws n words; interpreted as signed numbers they are in the order of the unsigned ones. Of `random`, here
 * and below, only start and keys count. */
typedef struct
{
  GtRandom random;
  int64_t *keys;
  int64_t n;
} GtRandomKeys;
GT_SIZE (GtRandomKeys, 232);

/* Draws when each of n exponential clocks with these rates rings first. */
typedef struct
{
  GtRandom random;
  const double *rates;
  double *keys;
  int64_t n;
} GtMultinomialKeys;
GT_SIZE (GtMultinomialKeys, 240);

/* Draws n indices, n_samples from each row of n_weights weights, by their running sums. */
typedef struct
{
  GtRandom random;
  const double *sums, *weights;
  int64_t *y;
  int64_t n, n_weights, n_samples;
} GtMultinomialFind;
GT_SIZE (GtMultinomialFind, 264);

/* Checks that each row of weights can be drawn from: at least `least` of them must be above 0. */
typedef struct
{
  const double *weights;
  int64_t rows, n_weights, least;
  int64_t op;
  void *report; /* GtReport */
} GtMultinomialCheck;
GT_SIZE (GtMultinomialCheck, 48);
