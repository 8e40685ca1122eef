/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The values of GtResample.method. */
enum
{
  GT_RESAMPLE_NEAREST,
  GT_RESAMPLE_NEAREST_EXACT,
  GT_RESAMPLE_LINEAR,
  GT_RESAMPLE_CUBIC,
  GT_RESAMPLE_LINEAR_SMOOTH,
  GT_RESAMPLE_CUBIC_SMOOTH,
};

/* Resampling of images, whose last `dims` dimensions change their size from `in` to `out`; the other items of
 * the arrays are 1. For the gradient, x has the shape of the results, and y that of the images. */
typedef struct
{
  const void *x;
  void *y;
  int64_t in[3], out[3];
  int64_t n_in, n_out; /* elements of an image and of its result */
  double scale[3];     /* the distance of results in units of that of elements */
  int64_t n;           /* number of elements of y */
  uint32_t dims, method, align_corners, unused;
} GtResample;
GT_SIZE (GtResample, 128);
