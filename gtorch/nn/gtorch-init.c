/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-init.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "dispatch/gtorch-grad-mode.h"
#include "device/gtorch-generator.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"

GType
gtorch_fan_mode_get_type (void)
{
  static gsize type;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_FAN_MODE_IN, "GTORCH_FAN_MODE_IN", "in" },
        { GTORCH_FAN_MODE_OUT, "GTORCH_FAN_MODE_OUT", "out" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchFanMode", values));
    }
  return type;
}

GType
gtorch_nonlinearity_get_type (void)
{
  static gsize type;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_NONLINEARITY_LINEAR, "GTORCH_NONLINEARITY_LINEAR", "linear" },
        { GTORCH_NONLINEARITY_SIGMOID, "GTORCH_NONLINEARITY_SIGMOID", "sigmoid" },
        { GTORCH_NONLINEARITY_TANH, "GTORCH_NONLINEARITY_TANH", "tanh" },
        { GTORCH_NONLINEARITY_RELU, "GTORCH_NONLINEARITY_RELU", "relu" },
        { GTORCH_NONLINEARITY_LEAKY_RELU, "GTORCH_NONLINEARITY_LEAKY_RELU", "leaky-relu" },
        { GTORCH_NONLINEARITY_SELU, "GTORCH_NONLINEARITY_SELU", "selu" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchNonlinearity", values));
    }
  return type;
}

/**
 * gtorch_init_calculate_gain:
 * @nonlinearity: the activation that follows the layer
 * @negative_slope: the slope of a leaky ReLU; ignored for others
 *
 * Gets the recommended gain of the weights before a nonlinearity.
 *
 * Returns: the factor
 *
 * Since: 0.1
 */
gdouble
gtorch_init_calculate_gain (GTorchNonlinearity nonlinearity, gdouble negative_slope)
{
  switch (nonlinearity)
    {
    case GTORCH_NONLINEARITY_TANH:
      return 5.0 / 3.0;
    case GTORCH_NONLINEARITY_RELU:
      return sqrt (2.0);
    case GTORCH_NONLINEARITY_LEAKY_RELU:
      return sqrt (2.0 / (1.0 + negative_slope * negative_slope));
    case GTORCH_NONLINEARITY_SELU:
      return 0.75;
    case GTORCH_NONLINEARITY_LINEAR:
    case GTORCH_NONLINEARITY_SIGMOID:
      break;
    }
  return 1.0;
}

/**
 * gtorch_init_calculate_fan:
 * @tensor: a weight: [out, in] or, of a convolution, [out, in, …]
 * @fan_in: (out) (optional): the number of inputs of a unit
 * @fan_out: (out) (optional): the number of units that an input feeds
 * @error: return location for an error
 *
 * Counts the connections of a layer.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor has fewer than two dimensions
 *
 * Since: 0.1
 */
gboolean
gtorch_init_calculate_fan (GTorchTensor *tensor, gint64 *fan_in, gint64 *fan_out, GError **error)
{
  const GTorchImpl *impl;
  gint64 field = 1;
  guint i;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  impl = gtorch_tensor_unwrap (tensor);
  if (impl->n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("init: fans need at least 2 dimensions, the shape is %s"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  for (i = 2; i < impl->n_dims; i++)
    field *= impl->shape[i];
  if (fan_in != NULL)
    *fan_in = impl->shape[1] * field;
  if (fan_out != NULL)
    *fan_out = impl->shape[0] * field;
  return TRUE;
}

/**
 * gtorch_init_constant:
 * @tensor: a tensor
 * @value: a number
 * @error: return location for an error
 *
 * Fills a tensor with one number. Like all of these functions, it does not record a gradient.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_init_constant (GTorchTensor *tensor, gdouble value, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  guard = gtorch_no_grad ();
  return gtorch_op_fill_inplace (gtorch_tensor_unwrap (tensor), value, error);
}

/**
 * gtorch_init_zeros:
 * @tensor: a tensor
 * @error: return location for an error
 *
 * Fills a tensor with zeros.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_init_zeros (GTorchTensor *tensor, GError **error)
{
  return gtorch_init_constant (tensor, 0, error);
}

/**
 * gtorch_init_ones:
 * @tensor: a tensor
 * @error: return location for an error
 *
 * Fills a tensor with ones.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_init_ones (GTorchTensor *tensor, GError **error)
{
  return gtorch_init_constant (tensor, 1, error);
}

/**
 * gtorch_init_uniform:
 * @tensor: a tensor
 * @low: the lower bound, inclusive
 * @high: the upper bound, exclusive
 * @generator: (nullable): the source of random numbers, or %NULL for the device's default
 * @error: return location for an error
 *
 * Fills a tensor with numbers from the uniform distribution over [@low, @high).
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_init_uniform (GTorchTensor *tensor, gdouble low, gdouble high, GTorchGenerator *generator,
                     GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), FALSE);
  guard = gtorch_no_grad ();
  return gtorch_op_uniform_inplace (gtorch_tensor_unwrap (tensor), low, high, generator, error);
}

/**
 * gtorch_init_normal:
 * @tensor: a tensor
 * @mean: the mean
 * @std: the standard deviation
 * @generator: (nullable): the source of random numbers, or %NULL for the device's default
 * @error: return location for an error
 *
 * Fills a tensor with numbers from a normal distribution.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_init_normal (GTorchTensor *tensor, gdouble mean, gdouble std, GTorchGenerator *generator,
                    GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), FALSE);
  guard = gtorch_no_grad ();
  return gtorch_op_normal_inplace (gtorch_tensor_unwrap (tensor), mean, std, generator, error);
}

static gboolean
fill_with_spread (GTorchTensor *tensor, gdouble std, gboolean uniform, GTorchGenerator *generator,
                  GError **error)
{
  const gdouble bound = sqrt (3.0) * std;

  return uniform ? gtorch_init_uniform (tensor, -bound, bound, generator, error)
                 : gtorch_init_normal (tensor, 0, std, generator, error);
}

static gboolean
xavier (GTorchTensor *tensor, gdouble gain, gboolean uniform, GTorchGenerator *generator,
        GError **error)
{
  gint64 fan_in, fan_out;

  if (!gtorch_init_calculate_fan (tensor, &fan_in, &fan_out, error))
    return FALSE;
  if (gtorch_tensor_unwrap (tensor)->numel == 0)
    return TRUE;
  return fill_with_spread (tensor, gain * sqrt (2.0 / (gdouble) (fan_in + fan_out)), uniform,
                           generator, error);
}

static gboolean
kaiming (GTorchTensor *tensor, gdouble negative_slope, GTorchFanMode mode,
         GTorchNonlinearity nonlinearity, gboolean uniform, GTorchGenerator *generator,
         GError **error)
{
  gint64 fan_in, fan_out;

  if ((guint) nonlinearity > GTORCH_NONLINEARITY_SELU)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("init: %d is no nonlinearity"),
                   (gint) nonlinearity);
      return FALSE;
    }
  if ((guint) mode > GTORCH_FAN_MODE_OUT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("init: %d is no mode of the fan"),
                   (gint) mode);
      return FALSE;
    }
  if (!gtorch_init_calculate_fan (tensor, &fan_in, &fan_out, error))
    return FALSE;
  if (gtorch_tensor_unwrap (tensor)->numel == 0)
    return TRUE;
  return fill_with_spread (tensor,
                           gtorch_init_calculate_gain (nonlinearity, negative_slope)
                               / sqrt ((gdouble) (mode == GTORCH_FAN_MODE_OUT ? fan_out : fan_in)),
                           uniform, generator, error);
}

/**
 * gtorch_init_xavier_uniform:
 * @tensor: a weight with at least two dimensions
 * @gain: a factor, see [func@init_calculate_gain]
 * @generator: (nullable): the source of random numbers, or %NULL for the device's default
 * @error: return location for an error
 *
 * Fills a weight from a uniform distribution with variance gain² · 2 / (fan_in + fan_out) (Glorot and Bengio,
 * Understanding the difficulty of training deep feedforward neural networks, 2010).
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor has fewer than two dimensions
 *
 * Since: 0.1
 */
gboolean
gtorch_init_xavier_uniform (GTorchTensor *tensor, gdouble gain, GTorchGenerator *generator,
                            GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), FALSE);
  return xavier (tensor, gain, TRUE, generator, error);
}

/**
 * gtorch_init_xavier_normal:
 * @tensor: a weight with at least two dimensions
 * @gain: a factor, see [func@init_calculate_gain]
 * @generator: (nullable): the source of random numbers, or %NULL for the device's default
 * @error: return location for an error
 *
 * Fills a weight from a normal distribution with variance gain² · 2 / (fan_in + fan_out) (Glorot and Bengio,
 * Understanding the difficulty of training deep feedforward neural networks, 2010).
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor has fewer than two dimensions
 *
 * Since: 0.1
 */
gboolean
gtorch_init_xavier_normal (GTorchTensor *tensor, gdouble gain, GTorchGenerator *generator,
                           GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), FALSE);
  return xavier (tensor, gain, FALSE, generator, error);
}

/**
 * gtorch_init_kaiming_uniform:
 * @tensor: a weight with at least two dimensions
 * @negative_slope: the slope of a leaky ReLU; ignored for others
 * @mode: whether the variance of activations or of gradients is preserved
 * @nonlinearity: the activation that follows the layer
 * @generator: (nullable): the source of random numbers, or %NULL for the device's default
 * @error: return location for an error
 *
 * Fills a weight from a uniform distribution with variance gain² / fan (He et al., Delving deep into
 * rectifiers, 2015).
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor has fewer than two dimensions
 *
 * Since: 0.1
 */
gboolean
gtorch_init_kaiming_uniform (GTorchTensor *tensor, gdouble negative_slope, GTorchFanMode mode,
                             GTorchNonlinearity nonlinearity, GTorchGenerator *generator,
                             GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), FALSE);
  return kaiming (tensor, negative_slope, mode, nonlinearity, TRUE, generator, error);
}

/**
 * gtorch_init_kaiming_normal:
 * @tensor: a weight with at least two dimensions
 * @negative_slope: the slope of a leaky ReLU; ignored for others
 * @mode: whether the variance of activations or of gradients is preserved
 * @nonlinearity: the activation that follows the layer
 * @generator: (nullable): the source of random numbers, or %NULL for the device's default
 * @error: return location for an error
 *
 * Fills a weight from a normal distribution with variance gain² / fan (He et al., Delving deep into
 * rectifiers, 2015).
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if @tensor has fewer than two dimensions
 *
 * Since: 0.1
 */
gboolean
gtorch_init_kaiming_normal (GTorchTensor *tensor, gdouble negative_slope, GTorchFanMode mode,
                            GTorchNonlinearity nonlinearity, GTorchGenerator *generator,
                            GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), FALSE);
  return kaiming (tensor, negative_slope, mode, nonlinearity, FALSE, generator, error);
}
