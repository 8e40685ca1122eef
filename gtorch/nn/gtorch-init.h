/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/**
 * GTorchFanMode:
 * @GTORCH_FAN_MODE_IN: the number of inputs of a unit: preserves the variance of activations
 * @GTORCH_FAN_MODE_OUT: the number of outputs that a unit feeds: preserves the variance of gradients
 *
 * The fan that determines the spread of initial weights.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_FAN_MODE_IN,
  GTORCH_FAN_MODE_OUT,
} GTorchFanMode;

/**
 * GTorchNonlinearity:
 * @GTORCH_NONLINEARITY_LINEAR: none, also for convolutions
 * @GTORCH_NONLINEARITY_SIGMOID: [class@Sigmoid]
 * @GTORCH_NONLINEARITY_TANH: [class@Tanh]
 * @GTORCH_NONLINEARITY_RELU: [class@ReLU]
 * @GTORCH_NONLINEARITY_LEAKY_RELU: [class@LeakyReLU]
 * @GTORCH_NONLINEARITY_SELU: the scaled exponential linear unit
 *
 * The activation that follows a layer, for [func@init_calculate_gain].
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_NONLINEARITY_LINEAR,
  GTORCH_NONLINEARITY_SIGMOID,
  GTORCH_NONLINEARITY_TANH,
  GTORCH_NONLINEARITY_RELU,
  GTORCH_NONLINEARITY_LEAKY_RELU,
  GTORCH_NONLINEARITY_SELU,
} GTorchNonlinearity;

#define GTORCH_TYPE_FAN_MODE     (gtorch_fan_mode_get_type ())
#define GTORCH_TYPE_NONLINEARITY (gtorch_nonlinearity_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_fan_mode_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_nonlinearity_get_type (void) G_GNUC_CONST;

GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_init_calculate_gain (GTorchNonlinearity nonlinearity, gdouble negative_slope);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_calculate_fan (GTorchTensor *tensor, gint64 *fan_in, gint64 *fan_out,
                                    GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_constant (GTorchTensor *tensor, gdouble value, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_zeros (GTorchTensor *tensor, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_ones (GTorchTensor *tensor, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_uniform (GTorchTensor *tensor, gdouble low, gdouble high,
                              GTorchGenerator *generator, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_normal (GTorchTensor *tensor, gdouble mean, gdouble std,
                             GTorchGenerator *generator, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_xavier_uniform (GTorchTensor *tensor, gdouble gain, GTorchGenerator *generator,
                                     GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_xavier_normal (GTorchTensor *tensor, gdouble gain, GTorchGenerator *generator,
                                    GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_kaiming_uniform (GTorchTensor *tensor, gdouble negative_slope,
                                      GTorchFanMode mode, GTorchNonlinearity nonlinearity,
                                      GTorchGenerator *generator, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_kaiming_normal (GTorchTensor *tensor, gdouble negative_slope,
                                     GTorchFanMode mode, GTorchNonlinearity nonlinearity,
                                     GTorchGenerator *generator, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_orthogonal (GTorchTensor *tensor, gdouble gain, GTorchGenerator *generator,
                                 GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_trunc_normal (GTorchTensor *tensor, gdouble mean, gdouble std, gdouble a,
                                   gdouble b, GTorchGenerator *generator, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_sparse (GTorchTensor *tensor, gdouble sparsity, gdouble std,
                             GTorchGenerator *generator, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_eye (GTorchTensor *tensor, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init_dirac (GTorchTensor *tensor, gint64 groups, GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_reset_parameters (GTorchModule *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_can_reset_parameters (GTorchModule *self);

G_END_DECLS
