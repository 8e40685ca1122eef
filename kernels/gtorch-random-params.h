/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* n random words, stored as signed numbers that have the order of the unsigned words. In this struct and
 * the next two, only start and keys of `random` are used. */
typedef struct
{
  GtRandom random;
  int64_t *keys;
  int64_t n;
} GtRandomKeys;
GT_SIZE (GtRandomKeys, 232);

/* The first event of each of n exponential processes with these rates. */
typedef struct
{
  GtRandom random;
  const double *rates;
  double *keys;
  int64_t n;
} GtMultinomialKeys;
GT_SIZE (GtMultinomialKeys, 240);

/* n random indices, n_samples for each row of n_weights weights, by the running sums of the weights. */
typedef struct
{
  GtRandom random;
  const double *sums, *weights;
  int64_t *y;
  int64_t n, n_weights, n_samples;
} GtMultinomialFind;
GT_SIZE (GtMultinomialFind, 264);

/* A check that each row of weights is valid: at least `least` of them must be above 0. */
typedef struct
{
  const double *weights;
  int64_t rows, n_weights, least;
  int64_t op;
  void *report; /* GtReport */
} GtMultinomialCheck;
GT_SIZE (GtMultinomialCheck, 48);
