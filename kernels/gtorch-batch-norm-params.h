/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Batch norm of [batch, channels, inner]. Statistics, weights and sums are float64, with one for each
 * channel.
 *
 * The mean and variance of each channel. */

typedef struct
{
  const void *x;
  double *mean, *var;
  int64_t batch, channels, inner;
} GtChannelMoments;
GT_SIZE (GtChannelMoments, 48);

/* The normalised output; weight and bias may be NULL. */
typedef struct
{
  const void *x;
  const double *mean, *var, *weight, *bias;
  void *y;
  int64_t batch, channels, inner;
  double eps;
} GtChannelScale;
GT_SIZE (GtChannelScale, 80);

/* The sums that the backward pass needs: of g, and of g (x - mean). */
typedef struct
{
  const void *g, *x;
  const double *mean;
  double *sum, *dot;
  int64_t batch, channels, inner;
} GtChannelDots;
GT_SIZE (GtChannelDots, 64);

/* The gradient of x. `sums` has the sum of every channel, then the dot of every channel; weight may be
 * NULL. */
typedef struct
{
  const void *g, *x;
  const double *mean, *var, *weight, *sums;
  void *grad;
  int64_t batch, channels, inner;
  double eps;
} GtChannelGrad;
GT_SIZE (GtChannelGrad, 88);

/* The gradient of the weight. */
typedef struct
{
  const double *dot, *var;
  double *grad;
  int64_t channels;
  double eps;
} GtChannelWeight;
GT_SIZE (GtChannelWeight, 40);
