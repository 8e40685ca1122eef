/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-none.h>
#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchApproximation:
 * @GTORCH_APPROXIMATION_NONE: the function itself
 * @GTORCH_APPROXIMATION_TANH: the formula with tanh that some networks were trained with
 *
 * How an activation is computed.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_APPROXIMATION_NONE,
  GTORCH_APPROXIMATION_TANH,
} GTorchApproximation;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_approximation_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_APPROXIMATION (gtorch_approximation_get_type ())

/**
 * GTorchPaddingMode:
 * @GTORCH_PADDING_MODE_ZEROS: zeros
 * @GTORCH_PADDING_MODE_REFLECT: the image, mirrored at its outermost elements
 * @GTORCH_PADDING_MODE_REPLICATE: the outermost elements
 * @GTORCH_PADDING_MODE_CIRCULAR: the image again
 *
 * What stands around an image.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PADDING_MODE_ZEROS,
  GTORCH_PADDING_MODE_REFLECT,
  GTORCH_PADDING_MODE_REPLICATE,
  GTORCH_PADDING_MODE_CIRCULAR,
} GTorchPaddingMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_padding_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_PADDING_MODE (gtorch_padding_mode_get_type ())

/**
 * GTorchPaddingRule:
 * @GTORCH_PADDING_RULE_NUMBERS: as the property with the numbers says
 * @GTORCH_PADDING_RULE_VALID: none
 * @GTORCH_PADDING_RULE_SAME: so much that the output is as large as the input
 *
 * What says how much stands around an image.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PADDING_RULE_NUMBERS,
  GTORCH_PADDING_RULE_VALID,
  GTORCH_PADDING_RULE_SAME,
} GTorchPaddingRule;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_padding_rule_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_PADDING_RULE (gtorch_padding_rule_get_type ())

G_END_DECLS
