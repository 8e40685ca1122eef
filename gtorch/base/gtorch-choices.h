/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchPadMode:
 * @GTORCH_PAD_MODE_CONSTANT: a number
 * @GTORCH_PAD_MODE_REFLECT: the elements mirrored at the first and the last one, which are not repeated
 * @GTORCH_PAD_MODE_REPLICATE: the first and the last element
 * @GTORCH_PAD_MODE_CIRCULAR: the elements from the other end
 *
 * What a tensor is padded with.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PAD_MODE_CONSTANT,
  GTORCH_PAD_MODE_REFLECT,
  GTORCH_PAD_MODE_REPLICATE,
  GTORCH_PAD_MODE_CIRCULAR,
} GTorchPadMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_pad_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_PAD_MODE (gtorch_pad_mode_get_type ())

/**
 * GTorchInterpolation:
 * @GTORCH_INTERPOLATION_LINEAR: between the two neighbours, as far as the position is from each
 * @GTORCH_INTERPOLATION_LOWER: the lower neighbour
 * @GTORCH_INTERPOLATION_HIGHER: the higher neighbour
 * @GTORCH_INTERPOLATION_MIDPOINT: the mean of both
 * @GTORCH_INTERPOLATION_NEAREST: the nearer one; of two that are equally near the one at the even position
 *
 * What a quantile is if its position lies between two elements.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_INTERPOLATION_LINEAR,
  GTORCH_INTERPOLATION_LOWER,
  GTORCH_INTERPOLATION_HIGHER,
  GTORCH_INTERPOLATION_MIDPOINT,
  GTORCH_INTERPOLATION_NEAREST,
} GTorchInterpolation;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_interpolation_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_INTERPOLATION (gtorch_interpolation_get_type ())

/**
 * GTorchBagMode:
 * @GTORCH_BAG_MODE_SUM: their sum, in which each may have a weight
 * @GTORCH_BAG_MODE_MEAN: their mean
 * @GTORCH_BAG_MODE_MAX: the greatest of each of their elements
 *
 * What becomes of the vectors of a bag.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_BAG_MODE_SUM,
  GTORCH_BAG_MODE_MEAN,
  GTORCH_BAG_MODE_MAX,
} GTorchBagMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_bag_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_BAG_MODE (gtorch_bag_mode_get_type ())

G_END_DECLS
