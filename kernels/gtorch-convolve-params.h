/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Direct convolutions and their gradients. */
typedef struct
{
  const void *a;    /* the input; for gradients, the gradient of the output */
  const void *b;    /* the weight; for the weight's gradient, the input */
  const void *bias; /* or NULL */
  void *y;
  /* The lists are in the order depth, height, width; images are volumes of depth 1. */
  int64_t batch, groups;
  int64_t channels, filters; /* of one group */
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
} GtConvolve;
GT_SIZE (GtConvolve, 208);

/* The addition of a bias to y, which has n elements in channels of `pixels` elements each. */
typedef struct
{
  const void *bias;
  void *y;
  int64_t n, pixels, channels;
} GtBias;
GT_SIZE (GtBias, 40);

/* Transposition with the addition of a bias: y [images, channels, pixels] from x [images, pixels,
 * channels]. */
typedef struct
{
  const void *x, *bias;
  void *y;
  int64_t images, pixels, channels;
} GtTurn;
GT_SIZE (GtTurn, 48);
