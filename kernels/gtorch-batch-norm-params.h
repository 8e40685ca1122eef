/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Batch norm of [batch, channels, inner]. Statistics, weights and sums are float64, with one for each
 * channel.
 *
 * The elements of a channel are divided into `splits` parts. Each has three numbers in `parts`: how many
 * elements it has, their mean, and the sum of the squares of their differences from it. */

typedef struct
{
  const void *x;
  double *parts;
  int64_t batch, channels, inner, splits;
} GtChannelMoments;
GT_SIZE (GtChannelMoments, 48);

/* The mean and the variance of each channel from its parts, and what the elements are multiplied by; weight
 * may be NULL. */
typedef struct
{
  const double *parts, *weight;
  double *mean, *var, *scale;
  int64_t channels, splits;
  double eps;
} GtChannelStatistics;
GT_SIZE (GtChannelStatistics, 64);

/* The normalised output, (x - mean) scale + bias; bias may be NULL. */
typedef struct
{
  const void *x;
  const double *mean, *scale, *bias;
  void *y;
  int64_t batch, channels, inner;
} GtChannelScale;
GT_SIZE (GtChannelScale, 64);

/* The sums that the backward pass needs, of each part: of g, and of g (x - mean). */
typedef struct
{
  const void *g, *x;
  const double *mean;
  double *parts;
  int64_t batch, channels, inner, splits;
} GtChannelDots;
GT_SIZE (GtChannelDots, 64);

/* The gradients of weight and bias from the parts, and the three factors of each channel's gradient; weight
 * may be NULL. */
typedef struct
{
  const double *parts, *var, *weight;
  double *grad_weight, *grad_bias, *factors;
  int64_t channels, splits;
  double n, eps;
} GtChannelFactors;
GT_SIZE (GtChannelFactors, 80);

/* The gradient of x, f[0] g + f[1] (x - mean) + f[2] with the factors f of the channel. */
typedef struct
{
  const void *g, *x;
  const double *mean, *factors;
  void *grad;
  int64_t batch, channels, inner;
} GtChannelGrad;
GT_SIZE (GtChannelGrad, 64);
