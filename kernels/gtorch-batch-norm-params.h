/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Batch norm of [batch, channels, inner]. What each channel has one of is float64, but what belongs to the
 * caller, which is float32 if `is_single`: statistics, weights and their gradients.
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

/* The mean and the variance of each channel from its parts, and for GtChannelScale the mean and what the
 * elements are multiplied by; weight may be NULL. */
typedef struct
{
  const double *parts;
  const void *weight;
  void *mean, *var;
  double *center, *scale;
  int64_t channels, splits;
  double eps;
  uint32_t is_single, unused;
} GtChannelStatistics;
GT_SIZE (GtChannelStatistics, 80);

/* The normalised output, (x - center) scale + bias; bias may be NULL. */
typedef struct
{
  const void *x;
  const double *center, *scale;
  const void *bias;
  void *y;
  int64_t batch, channels, inner;
  uint32_t is_single, unused;
} GtChannelScale;
GT_SIZE (GtChannelScale, 72);

/* The sums that the backward pass needs, of each part: of g, and of g (x - mean). */
typedef struct
{
  const void *g, *x, *mean;
  double *parts;
  int64_t batch, channels, inner, splits;
  uint32_t is_single, unused;
} GtChannelDots;
GT_SIZE (GtChannelDots, 72);

/* The gradients of weight and bias from the parts, and the three factors of each channel's gradient; weight
 * may be NULL. */
typedef struct
{
  const double *parts;
  const void *var, *weight;
  void *grad_weight, *grad_bias;
  double *factors;
  int64_t channels, splits;
  double n, eps;
  uint32_t is_single, unused;
} GtChannelFactors;
GT_SIZE (GtChannelFactors, 88);

/* The gradient of x, f[0] g + f[1] (x - mean) + f[2] with the factors f of the channel. */
typedef struct
{
  const void *g, *x, *mean;
  const double *factors;
  void *grad;
  int64_t batch, channels, inner;
  uint32_t is_single, unused;
} GtChannelGrad;
GT_SIZE (GtChannelGrad, 72);
