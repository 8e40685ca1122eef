/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-none.h>
#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchApproximation:
 * @GTORCH_APPROXIMATION_NONE: the function itself
 * @GTORCH_APPROXIMATION_TANH: the approximation with tanh that some networks were trained with
 *
 * The formula of an activation.
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
 * @GTORCH_PADDING_MODE_REFLECT: the image, mirrored at its edges
 * @GTORCH_PADDING_MODE_REPLICATE: copies of the edges
 * @GTORCH_PADDING_MODE_CIRCULAR: the opposite side of the image
 *
 * The values with which an image is padded.
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
 * GTorchRNNNonlinearity:
 * @GTORCH_RNN_NONLINEARITY_TANH: the hyperbolic tangent
 * @GTORCH_RNN_NONLINEARITY_RELU: 0 for what is negative
 *
 * The function of the states of a [class@RNN].
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_RNN_NONLINEARITY_TANH,
  GTORCH_RNN_NONLINEARITY_RELU,
} GTorchRNNNonlinearity;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_rnn_nonlinearity_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_RNN_NONLINEARITY (gtorch_rnn_nonlinearity_get_type ())

/**
 * GTorchPaddingRule:
 * @GTORCH_PADDING_RULE_NUMBERS: the property with the numbers sets it
 * @GTORCH_PADDING_RULE_VALID: no padding
 * @GTORCH_PADDING_RULE_SAME: enough to make the output as large as the input
 *
 * The rule for the amount of padding.
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
