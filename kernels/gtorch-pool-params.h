/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Pooling: images of in[0] by in[1], of which windows give out[0] by out[1]. Gradients have x and y of each
 * other's shape. */
typedef struct
{
  const void *x; /* the images; of gradients: the gradient of the results */
  void *y;
  int64_t *indices; /* where the greatest were found: written, and read by the gradient */
  int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
  int64_t adaptive;
  int64_t include_pad; /* do zeros of the padding count? */
  int64_t divisor;     /* or 0 */
  int64_t n;           /* elements of y */
} GtPool;
GT_SIZE (GtPool, 152);

/* Takes n elements of images of `big` elements each, `small` of an image. */
typedef struct
{
  const void *x;
  const int64_t *indices;
  void *y;
  int64_t n, big, small;
  int64_t op;
  void *report; /* GtReport */
} GtPoolTake;
GT_SIZE (GtPoolTake, 64);
