/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"

/* Sets the outputs. Values per channel have the dtype of the weight; without a weight, float32 for
 * 16-bit inputs. */
static gboolean
set_outputs (GTorchOpCall *call, const GTorchImpl *input, const GTorchImpl *weight, GError **error)
{
  gint64 channels = input->shape[1];
  guint dtype = weight != NULL                         ? weight->dtype
                : gtorch_dtype_size (input->dtype) < 4 ? GTORCH_DTYPE_FLOAT32
                                                       : input->dtype;

  call->compute = input->dtype;
  return gtorch_call_check_dtype (call, input->dtype, error)
         && gtorch_call_set_images (call, 0, input->dtype, input->shape, input->n_dims,
                                    gtorch_impl_is_channels_last (input), error)
         && gtorch_call_set_output (call, 1, dtype, &channels, 1, error)
         && gtorch_call_set_output (call, 2, dtype, &channels, 1, error);
}

gboolean
gtorch_shape_native_batch_norm (GTorchOpCall *call, GError **error)
{
  return set_outputs (call, call->inputs[0], call->inputs[1], error);
}

gboolean
gtorch_shape_batch_norm_backward (GTorchOpCall *call, GError **error)
{
  return set_outputs (call, call->inputs[1], call->inputs[2], error);
}

/* Reshapes a parameter of the channels so that it broadcasts over [N, C, …]. */
static GTorchImpl *
per_channel (GTorchImpl *impl, guint n_dims, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  guint i;

  for (i = 0; i < n_dims; i++)
    shape[i] = i == 1 ? impl->numel : 1;
  return gtorch_op_reshape (impl, shape, n_dims, error);
}

gboolean
gtorch_grad_native_batch_norm (GTorchGradContext *context, GError **error)
{
  GTorchImpl *grad = context->grads[0];
  GTorchImpl *input = context->inputs[0], *weight = context->inputs[1];
  GTorchImpl *sources[] = { grad, input, weight };
  gint64 dims[GTORCH_MAX_DIMS] = { 0 };
  gdouble eps = context->attrs[0].d;
  gsize n = input->n_dims - 1, i;

  /* the statistics only serve the backward pass and have no gradient */
  if (context->grads[1] != NULL || context->grads[2] != NULL)
    return gtorch_grad_undefined (context, error);
  if (grad == NULL)
    return TRUE;
  if (!gtorch_autograd_wanted (sources, weight != NULL ? 3 : 2))
    {
      g_autoptr (GTorchImpl) grad_weight = NULL;
      g_autoptr (GTorchImpl) grad_bias = NULL;

      if (!gtorch_op_batch_norm_backward (grad, input, weight, context->outputs[1],
                                          context->outputs[2], eps, &context->result[0],
                                          &grad_weight, &grad_bias, error))
        return FALSE;
      if (context->needs[1])
        context->result[1] = g_steal_pointer (&grad_weight);
      if (context->needs[2])
        context->result[2] = g_steal_pointer (&grad_bias);
      return TRUE;
    }
  for (i = 1; i < n; i++)
    dims[i] = i + 1;
  if (context->needs[0])
    {
      g_autoptr (GTorchImpl) shaped =
          weight != NULL ? per_channel (weight, input->n_dims, error) : NULL;
      g_autoptr (GTorchImpl) scaled = weight == NULL   ? gtorch_impl_ref (grad)
                                      : shaped != NULL ? gtorch_op_mul (grad, shaped, error)
                                                       : NULL;

      context->result[0] = scaled != NULL
                               ? gtorch_op_normalize_dims_grad (scaled, input, dims, n, eps, error)
                               : NULL;
      if (context->result[0] == NULL)
        return FALSE;
    }
  if (context->needs[1])
    {
      g_autoptr (GTorchImpl) normal = gtorch_op_normalize_dims (input, dims, n, eps, error);
      g_autoptr (GTorchImpl) product = normal != NULL ? gtorch_op_mul (grad, normal, error) : NULL;

      context->result[1] = product != NULL
                               ? gtorch_op_sum (product, dims, n, FALSE, GTORCH_DTYPE_NONE, error)
                               : NULL;
      if (context->result[1] == NULL)
        return FALSE;
    }
  if (context->needs[2])
    {
      context->result[2] = gtorch_op_sum (grad, dims, n, FALSE, GTORCH_DTYPE_NONE, error);
      return context->result[2] != NULL;
    }
  return TRUE;
}

static GTorchImpl *
scaled (GTorchImpl *value, gdouble factor, GError **error)
{
  g_autoptr (GTorchImpl) plain = gtorch_impl_alias (value);
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (factor);

  return gtorch_op_mul (plain, number, error);
}

/* Updates the running statistics. Both new values are computed before either is written, since there may
 * be no memory for the second. */
static gboolean
mix (GTorchImpl *running_mean, GTorchImpl *mean, GTorchImpl *running_var, GTorchImpl *var,
     gdouble factor, gdouble momentum, GError **error)
{
  g_autoptr (GTorchImpl) new_mean = NULL;
  g_autoptr (GTorchImpl) new_var = NULL;

  if ((running_mean != NULL && (new_mean = gtorch_impl_alias (mean)) == NULL)
      || (running_var != NULL && (new_var = scaled (var, factor, error)) == NULL))
    return FALSE;
  return (new_mean == NULL || gtorch_op_lerp_inplace (running_mean, new_mean, momentum, error))
         && (new_var == NULL || gtorch_op_lerp_inplace (running_var, new_var, momentum, error));
}

/* Normalises with fixed statistics: input * scale + shift, in the dtype of the input. */
static GTorchImpl *
apply (GTorchImpl *input, GTorchImpl *mean, GTorchImpl *var, GTorchImpl *weight, GTorchImpl *bias,
       gdouble eps, GError **error)
{
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (eps);
  g_autoptr (GTorchImpl) safe = gtorch_op_add (var, number, 1, error);
  g_autoptr (GTorchImpl) rstd = safe != NULL ? gtorch_op_rsqrt (safe, error) : NULL;
  g_autoptr (GTorchImpl) scale = rstd == NULL     ? NULL
                                 : weight != NULL ? gtorch_op_mul (rstd, weight, error)
                                                  : gtorch_impl_ref (rstd);
  g_autoptr (GTorchImpl) offset = scale != NULL ? gtorch_op_mul (mean, scale, error) : NULL;
  g_autoptr (GTorchImpl) shift = offset == NULL ? NULL
                                 : bias != NULL ? gtorch_op_sub (bias, offset, 1, error)
                                                : gtorch_op_neg (offset, error);
  g_autoptr (GTorchImpl) a = shift != NULL ? per_channel (scale, input->n_dims, error) : NULL;
  g_autoptr (GTorchImpl) b = a != NULL ? per_channel (shift, input->n_dims, error) : NULL;

  g_autoptr (GTorchImpl) result = b != NULL ? gtorch_op_addcmul (b, input, a, 1, error) : NULL;

  return result != NULL ? gtorch_op_to (result, input->dtype, NULL, FALSE, FALSE, error) : NULL;
}

GTorchImpl *
gtorch_composite_batch_norm (GTorchImpl *input, GTorchImpl *running_mean, GTorchImpl *running_var,
                             GTorchImpl *weight, GTorchImpl *bias, gboolean training,
                             gdouble momentum, gdouble eps, GError **error)
{
  GTorchImpl *all[] = { running_mean, running_var, weight, bias };
  static const gchar *const names[] = { "running_mean", "running_var", "weight", "bias" };
  g_autoptr (GTorchImpl) output = NULL;
  g_autoptr (GTorchImpl) mean = NULL;
  g_autoptr (GTorchImpl) var = NULL;
  gdouble n;
  guint i;

  if (input->n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("batch_norm: the input %s must have at least 2 dimensions"),
                   gtorch_impl_shape_str (input));
      return NULL;
    }
  for (i = 0; i < 4; i++)
    if (all[i] != NULL && (all[i]->n_dims != 1 || all[i]->shape[0] != input->shape[1]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("batch_norm: %s %s must have one element for each channel of the input %s"),
                     names[i], gtorch_impl_shape_str (all[i]), gtorch_impl_shape_str (input));
        return NULL;
      }
  if (!training)
    {
      if (running_mean != NULL && running_var != NULL)
        return apply (input, running_mean, running_var, weight, bias, eps, error);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("batch_norm: running_mean and running_var are needed when not training"));
      return NULL;
    }
  n = input->shape[1] > 0 ? (gdouble) (input->numel / input->shape[1]) : 0;
  if (n == 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("batch_norm: training needs more than one element for each channel, the "
                      "input is "
                      "%s"),
                   gtorch_impl_shape_str (input));
      return NULL;
    }
  if (!gtorch_op_native_batch_norm (input, weight, bias, eps, &output, &mean, &var, error))
    return NULL;
  if (!mix (running_mean, mean, running_var, var, n / (n - 1), momentum, error))
    return NULL;
  return g_steal_pointer (&output);
}
