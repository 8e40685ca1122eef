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
  int64_t batch, groups;
  int64_t channels, filters; /* of one group */
  int64_t in[2], kernel[2], out[2], stride[2], padding[2], dilation[2];
} GtConvolve;
GT_SIZE (GtConvolve, 160);

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
