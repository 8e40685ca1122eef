/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* Pooling of images of `dims` dimensions. Of the arrays the last `dims` items describe these; the others
 * are those of a dimension of size 1 that has one window. For gradients, x has the shape of the results,
 * and y that of the images. */
typedef struct
{
  const void *x; /* the images; for gradients, the gradient of the results */
  void *y;
  int64_t *indices; /* positions of the maxima: written unless NULL, or read for the gradient */
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t n_in, n_out; /* elements of an image and of its result */
  int64_t divisor;     /* divisor of the mean, or 0 */
  int64_t n;           /* number of elements of y */
  int64_t channels;    /* for images whose channels are last in memory */
  uint32_t dims, adaptive;
  uint32_t include_pad; /* whether zeros of the padding count */
  uint32_t lanes;       /* for large windows: the threads that share one, 32 or 0 for a block */
  uint32_t
      is_narrow; /* whether all numbers of elements, and positions in the padding, fit in 31 bits */
  uint32_t unused;
} GtPool;
GT_SIZE (GtPool, 232);
