/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchResampling:
 * @GTORCH_RESAMPLING_NEAREST: the element at the position, rounded down
 * @GTORCH_RESAMPLING_NEAREST_EXACT: the element whose center is nearest
 * @GTORCH_RESAMPLING_LINEAR: in one dimension, between the two nearest elements
 * @GTORCH_RESAMPLING_BILINEAR: in two dimensions, between the four nearest elements
 * @GTORCH_RESAMPLING_BICUBIC: in two dimensions, by cubic convolution of sixteen elements
 * @GTORCH_RESAMPLING_TRILINEAR: in three dimensions, between the eight nearest elements
 * @GTORCH_RESAMPLING_AREA: the mean of the elements that a result covers
 *
 * How the elements of an image of another size are made.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_RESAMPLING_NEAREST,
  GTORCH_RESAMPLING_NEAREST_EXACT,
  GTORCH_RESAMPLING_LINEAR,
  GTORCH_RESAMPLING_BILINEAR,
  GTORCH_RESAMPLING_BICUBIC,
  GTORCH_RESAMPLING_TRILINEAR,
  GTORCH_RESAMPLING_AREA,
} GTorchResampling;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_resampling_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_RESAMPLING (gtorch_resampling_get_type ())

/**
 * GTorchGridMode:
 * @GTORCH_GRID_MODE_BILINEAR: between the nearest elements, four of images and eight of volumes
 * @GTORCH_GRID_MODE_NEAREST: the nearest element; of two that are equally near the one at the even position
 * @GTORCH_GRID_MODE_BICUBIC: by cubic convolution of sixteen elements of an image
 *
 * How a sample between elements is made.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_GRID_MODE_BILINEAR,
  GTORCH_GRID_MODE_NEAREST,
  GTORCH_GRID_MODE_BICUBIC,
} GTorchGridMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_grid_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_GRID_MODE (gtorch_grid_mode_get_type ())

/**
 * GTorchGridPadding:
 * @GTORCH_GRID_PADDING_ZEROS: zeros
 * @GTORCH_GRID_PADDING_BORDER: the nearest element of the border
 * @GTORCH_GRID_PADDING_REFLECTION: the image, mirrored at its borders
 *
 * What lies beyond the borders of an image.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_GRID_PADDING_ZEROS,
  GTORCH_GRID_PADDING_BORDER,
  GTORCH_GRID_PADDING_REFLECTION,
} GTorchGridPadding;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_grid_padding_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_GRID_PADDING (gtorch_grid_padding_get_type ())

G_END_DECLS
