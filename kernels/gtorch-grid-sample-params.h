/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-kernel-params.h"

/* The values of GtGridSample.mode and .padding. */
enum
{
  GT_GRID_BILINEAR,
  GT_GRID_NEAREST,
  GT_GRID_BICUBIC,
};
enum
{
  GT_GRID_ZEROS,
  GT_GRID_BORDER,
  GT_GRID_REFLECTION,
};

/* Sampling of images [n_images, n_channels, n_in] at positions [n_images, n_out, dims]; the first item of
 * `size` is 1 if there are two dimensions. upper is the gradient of the samples, of shape [n_images,
 * n_channels, n_out] for that of the positions and [n_images, n_out, n_channels] for that of the images. */
typedef struct
{
  const void *images, *grid, *upper;
  void *output;   /* samples, or the gradient of the positions */
  void *products; /* [n_images, n_out, taps, n_channels]: parts of the gradient of the images, … */
  int64_t
      *slots; /* [n_images, n_out, taps]: … and to which element each belongs: [n_images, n_in] */
  int64_t size[3];
  int64_t n_images, n_channels, n_in, n_out;
  int64_t chunk; /* channels that a thread computes */
  uint32_t dims, mode, padding, align_corners;
} GtGridSample;
GT_SIZE (GtGridSample, 128);
