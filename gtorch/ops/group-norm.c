/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Normalisations that are composed of those of layers and batches, of reductions and of pointwise
 * operations. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "dispatch/gtorch-constants-private.h"
#include "base/gtorch-dtype-private.h"
#include "base/gtorch-none-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"

/* Checks a tensor that has a number for each channel, or is NULL. */
static gboolean
check_channels (const gchar *op, const gchar *name, GTorchImpl *of, GTorchImpl *input,
                GError **error)
{
  if (of == NULL || gtorch_same_shape (of->shape, of->n_dims, input->shape + 1, 1))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: %s of shape %s for %" PRId64 " channels"), op, name,
               gtorch_impl_shape_str (of), input->shape[1]);
  return FALSE;
}

static gboolean
check_affine (const gchar *op, GTorchImpl *input, GTorchImpl *weight, GTorchImpl *bias,
              GError **error)
{
  if (input->n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE, _ ("%s: shape %s is not [N, C, …]"), op,
                   gtorch_impl_shape_str (input));
      return FALSE;
    }
  return check_channels (op, "weight", weight, input, error)
         && check_channels (op, "bias", bias, input, error);
}

/* Returns a view of one number for each channel that broadcasts to the input. */
static GTorchImpl *
spread (GTorchImpl *of, GTorchImpl *input, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];

  for (guint i = 0; i < input->n_dims - 1; i++)
    shape[i] = i == 0 ? input->shape[1] : 1;
  return gtorch_op_reshape (of, shape, input->n_dims - 1, error);
}

/* Multiplies by a weight and adds a bias for each channel. Takes the reference on input, which may be
 * NULL. */
static GTorchImpl *
affine (GTorchImpl *input, GTorchImpl *weight, GTorchImpl *bias, GError **error)
{
  g_autoptr (GTorchImpl) owned = input;
  g_autoptr (GTorchImpl) factor = NULL;
  g_autoptr (GTorchImpl) summand = NULL;

  if (owned == NULL || (weight == NULL && bias == NULL))
    return g_steal_pointer (&owned);
  if (weight != NULL && (factor = spread (weight, input, error)) == NULL)
    return NULL;
  if (bias == NULL)
    return gtorch_op_mul (owned, factor, error);
  summand = spread (bias, input, error);
  if (summand == NULL)
    return NULL;
  return factor != NULL ? gtorch_op_addcmul (summand, owned, factor, 1, error)
                        : gtorch_op_add (owned, summand, 1, error);
}

gboolean
gtorch_shape_native_group_norm (GTorchOpCall *call, GError **error)
{
  GTorchImpl *input = call->inputs[0];

  call->compute = input->dtype;
  return gtorch_call_set_output (call, 0, input->dtype, input->shape, input->n_dims, error);
}

/* Tells whether the device normalises groups at once, without a gradient. */
static gboolean
is_native (GTorchImpl *input, GTorchImpl *weight, GTorchImpl *bias)
{
  GTorchImpl *inputs[3] = { input };
  guint n = 1;

  if (weight != NULL)
    inputs[n++] = weight;
  if (bias != NULL)
    inputs[n++] = bias;
  for (guint i = 1; i < n; i++)
    if (inputs[i]->dtype != input->dtype || inputs[i]->device != input->device)
      return FALSE;
  return n > 1 && gtorch_dtype_kind (input->dtype) == GTORCH_KIND_FLOAT
         && gtorch_impl_has_op (input, GTORCH_OP_NATIVE_GROUP_NORM)
         && !gtorch_autograd_wanted (inputs, n);
}

GTorchImpl *
gtorch_composite_group_norm (GTorchImpl *input, gint64 num_groups, GTorchImpl *weight,
                             GTorchImpl *bias, gdouble eps, GError **error)
{
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) normal = NULL;
  gint64 shape[2], n;

  if (!check_affine ("group_norm", input, weight, bias, error))
    return NULL;
  if (num_groups < 1 || input->shape[1] % num_groups != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("group_norm: %" PRId64 " groups of %" PRId64
                      " channels: there must be groups, of equal size"),
                   num_groups, input->shape[1]);
      return NULL;
    }
  n = input->shape[1] / num_groups;
  for (guint i = 2; i < input->n_dims; i++)
    n *= input->shape[i];
  if (n == 0)
    return affine (gtorch_op_clone (input, error), weight, bias, error);
  if (is_native (input, weight, bias))
    return gtorch_op_native_group_norm (input, weight, bias, num_groups, eps, error);
  shape[0] = input->shape[0] * num_groups;
  shape[1] = n;
  rows = gtorch_op_reshape (input, shape, 2, error);
  normal = rows != NULL ? gtorch_op_layer_norm (rows, &n, 1, NULL, NULL, eps, error) : NULL;
  return normal != NULL ? affine (gtorch_op_reshape (normal, input->shape, input->n_dims, error),
                                  weight, bias, error)
                        : NULL;
}

/* Writes the means over the examples to a running statistic. */
static gboolean
keep_mean (GTorchImpl *running, GTorchImpl *each, const gint64 *shape, GError **error)
{
  const gint64 first = 0;
  g_auto (GTorchChange) mode;
  g_autoptr (GTorchImpl) shaped = NULL;
  g_autoptr (GTorchImpl) mean = NULL;

  gtorch_change_to_constants (&mode);
  if (running == NULL)
    return TRUE;
  shaped = gtorch_op_reshape (each, shape, 2, error);
  mean =
      shaped != NULL ? gtorch_op_mean (shaped, &first, 1, FALSE, GTORCH_DTYPE_NONE, error) : NULL;
  return mean != NULL && gtorch_op_copy_inplace (running, mean, FALSE, error);
}

GTorchImpl *
gtorch_composite_instance_norm (GTorchImpl *input, GTorchImpl *running_mean,
                                GTorchImpl *running_var, GTorchImpl *weight, GTorchImpl *bias,
                                gboolean use_input_stats, gdouble momentum, gdouble eps,
                                GError **error)
{
  g_autoptr (GTorchImpl) mean = NULL;
  g_autoptr (GTorchImpl) var = NULL;
  g_autoptr (GTorchImpl) joined = NULL;
  g_autoptr (GTorchImpl) normal = NULL;
  g_autoptr (GTorchImpl) factors = NULL;
  g_autoptr (GTorchImpl) summands = NULL;
  gint64 shape[GTORCH_MAX_DIMS], n = 1;
  const gboolean at_once = (weight == NULL || weight->dtype == input->dtype)
                           && (bias == NULL || bias->dtype == input->dtype);

  if (!check_affine ("instance_norm", input, weight, bias, error)
      || !check_channels ("instance_norm", "running_mean", running_mean, input, error)
      || !check_channels ("instance_norm", "running_var", running_var, input, error))
    return NULL;
  if ((running_mean == NULL) != (running_var == NULL) || (!use_input_stats && running_mean == NULL))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("instance_norm: running_mean and running_var must both be given, or neither "
                      "with use_input_stats"));
      return NULL;
    }
  if (!use_input_stats)
    return gtorch_op_batch_norm (input, running_mean, running_var, weight, bias, FALSE, momentum,
                                 eps, error);
  for (guint i = 2; i < input->n_dims; i++)
    n *= shape[i] = input->shape[i];
  if (n == 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("instance_norm: the channels of shape %s have one element, which has no "
                      "variance"),
                   gtorch_impl_shape_str (input));
      return NULL;
    }
  if (input->numel == 0)
    return affine (gtorch_op_clone (input, error), weight, bias, error);
  shape[0] = 1;
  shape[1] = input->shape[0] * input->shape[1];
  if (running_mean != NULL)
    {
      g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

      mean = gtorch_op_repeat (running_mean, input->shape, 1, error);
      var = mean != NULL ? gtorch_op_repeat (running_var, input->shape, 1, error) : NULL;
      if (var == NULL)
        return NULL;
    }
  if (at_once
      && ((weight != NULL && (factors = gtorch_op_repeat (weight, input->shape, 1, error)) == NULL)
          || (bias != NULL
              && (summands = gtorch_op_repeat (bias, input->shape, 1, error)) == NULL)))
    return NULL;
  joined = gtorch_op_reshape (input, shape, input->n_dims, error);
  normal = joined != NULL ? gtorch_op_batch_norm (joined, mean, var, factors, summands, TRUE,
                                                  momentum, eps, error)
                          : NULL;
  if (normal == NULL || !keep_mean (running_mean, mean, input->shape, error)
      || !keep_mean (running_var, var, input->shape, error))
    return NULL;
  return affine (gtorch_op_reshape (normal, input->shape, input->n_dims, error),
                 at_once ? NULL : weight, at_once ? NULL : bias, error);
}

/* x / √(mean x² + eps), in float32 for 16-bit dtypes */
static GTorchImpl *
rms_normal (GTorchImpl *x, const gint64 *dims, gsize n_dims, gdouble eps, GError **error)
{
  g_autoptr (GTorchImpl) squares = gtorch_op_square (x, error);
  g_autoptr (GTorchImpl) mean =
      squares != NULL ? gtorch_op_mean (squares, dims, n_dims, TRUE, GTORCH_DTYPE_NONE, error)
                      : NULL;
  g_autoptr (GTorchImpl) least = gtorch_impl_new_number (eps);
  g_autoptr (GTorchImpl) sum = mean != NULL ? gtorch_op_add (mean, least, 1, error) : NULL;
  g_autoptr (GTorchImpl) factor = sum != NULL ? gtorch_op_rsqrt (sum, error) : NULL;

  return factor != NULL ? gtorch_op_mul (x, factor, error) : NULL;
}

GTorchImpl *
gtorch_composite_rms_norm (GTorchImpl *input, const gint64 *normalized_shape,
                           gsize n_normalized_shape, GTorchImpl *weight, gdouble eps,
                           GError **error)
{
  g_autoptr (GTorchImpl) wide = NULL;
  g_autoptr (GTorchImpl) normal = NULL;
  const gsize n = n_normalized_shape;
  gint64 dims[GTORCH_MAX_DIMS];

  if (n == 0 || n > input->n_dims
      || !gtorch_same_shape (input->shape + input->n_dims - n, n, normalized_shape, n))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("rms_norm: the shape %s does not end in the normalized shape %s"),
                   gtorch_impl_shape_str (input), gtorch_shape_str (normalized_shape, n));
      return NULL;
    }
  if (weight != NULL && !gtorch_same_shape (weight->shape, weight->n_dims, normalized_shape, n))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("rms_norm: the weight's shape %s must be the normalized shape %s"),
                   gtorch_impl_shape_str (weight), gtorch_shape_str (normalized_shape, n));
      return NULL;
    }
  for (gsize i = 0; i < n; i++)
    dims[i] = (gint64) i - (gint64) n;
  if (gtorch_is_none_double (eps))
    eps = gtorch_dtype_infos[input->dtype].eps;
  wide = gtorch_op_to_dtype (input, gtorch_dtype_infos[input->dtype].compute, error);
  normal = wide != NULL ? rms_normal (wide, dims, n, eps, error) : NULL;
  if (normal != NULL && weight != NULL)
    {
      GTorchImpl *weighed = gtorch_op_mul (normal, weight, error);

      gtorch_impl_unref (normal);
      normal = weighed;
    }
  return normal != NULL ? gtorch_op_to_dtype (normal, input->dtype, error) : NULL;
}

/* Returns the mean squares of the neighbouring channels: zeros are put before and behind the channels. */
static GTorchImpl *
neighbour_squares (GTorchImpl *input, gint64 size, GError **error)
{
  const gint64 last = -1;
  g_autoptr (GTorchImpl) squares = gtorch_op_square (input, error);
  g_autoptr (GTorchImpl) before = NULL;
  g_autoptr (GTorchImpl) behind = NULL;
  g_autoptr (GTorchImpl) padded = NULL;
  g_autoptr (GTorchImpl) windows = NULL;
  gint64 shape[GTORCH_MAX_DIMS];

  if (squares == NULL)
    return NULL;
  for (guint i = 0; i < input->n_dims; i++)
    shape[i] = input->shape[i];
  shape[1] = size / 2;
  before = gtorch_op_zeros (shape, input->n_dims, squares->dtype, squares->device, error);
  shape[1] = (size - 1) / 2;
  behind = before != NULL
               ? gtorch_op_zeros (shape, input->n_dims, squares->dtype, squares->device, error)
               : NULL;
  if (behind == NULL)
    return NULL;
  padded = gtorch_op_cat ((GTorchImpl *const[]){ before, squares, behind }, 3, 1, error);
  windows = padded != NULL ? gtorch_op_unfold (padded, 1, size, 1, error) : NULL;
  return windows != NULL ? gtorch_op_mean (windows, &last, 1, FALSE, GTORCH_DTYPE_NONE, error)
                         : NULL;
}

GTorchImpl *
gtorch_op_local_response_norm (GTorchImpl *input, gint64 size, gdouble alpha, gdouble beta,
                               gdouble k, GError **error)
{
  g_autoptr (GTorchImpl) squares = NULL;
  g_autoptr (GTorchImpl) scaled = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  g_autoptr (GTorchImpl) divisor = NULL;
  g_autoptr (GTorchImpl) factor = gtorch_impl_new_number (alpha);
  g_autoptr (GTorchImpl) summand = gtorch_impl_new_number (k);
  g_autoptr (GTorchImpl) exponent = gtorch_impl_new_number (beta);

  if (input->n_dims < 3 || input->n_dims == GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("local_response_norm: shape %s must have from 3 to %d dimensions"),
                   gtorch_impl_shape_str (input), GTORCH_MAX_DIMS - 1);
      return NULL;
    }
  if (size < 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("local_response_norm: size is %" PRId64 ", it must be at least 1"), size);
      return NULL;
    }
  if (input->numel == 0)
    return gtorch_op_clone (input, error);
  squares = neighbour_squares (input, size, error);
  scaled = squares != NULL ? gtorch_op_mul (squares, factor, error) : NULL;
  sum = scaled != NULL ? gtorch_op_add (scaled, summand, 1, error) : NULL;
  divisor = sum != NULL ? gtorch_op_pow (sum, exponent, error) : NULL;
  return divisor != NULL ? gtorch_op_div (input, divisor, error) : NULL;
}
