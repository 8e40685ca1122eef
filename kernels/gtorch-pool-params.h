/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Pooling of images of in[0] by in[1] elements, whose windows give images of out[0] by out[1]. For
 * gradients, x has the shape of the results, and y that of the images. */
typedef struct
{
  const void *x; /* the images; for gradients, the gradient of the results */
  void *y;
  int64_t *indices; /* positions of the maxima: written, or read for the gradient */
  int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
  int64_t adaptive;
  int64_t include_pad; /* whether zeros of the padding count */
  int64_t divisor;     /* divisor of the mean, or 0 */
  int64_t n;           /* number of elements of y */
} GtPool;
GT_SIZE (GtPool, 152);

/* The elements of images at n indices: each image has `big` elements, of which `small` are taken. */
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
