/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "gtorch-ops-private.h"

gboolean
gtorch_shape_native_layer_norm (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *input = call->inputs[0];
  guint outer = input->n_dims - call->attrs[0].i;

  call->compute = input->dtype;
  return gtorch_call_check_dtype (call, input->dtype, error)
         && gtorch_call_set_output (call, 0, input->dtype, input->shape, input->n_dims, error)
         && gtorch_call_set_output (call, 1, input->dtype, input->shape, outer, error)
         && gtorch_call_set_output (call, 2, input->dtype, input->shape, outer, error);
}

gboolean
gtorch_shape_layer_norm_backward (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *input = call->inputs[1], *mean = call->inputs[3];
  guint outer = mean->n_dims, n = input->n_dims - outer;

  call->compute = input->dtype;
  return gtorch_call_check_dtype (call, input->dtype, error)
         && gtorch_call_set_output (call, 0, input->dtype, input->shape, input->n_dims, error)
         && gtorch_call_set_output (call, 1, input->dtype, input->shape + outer, n, error)
         && gtorch_call_set_output (call, 2, input->dtype, input->shape + outer, n, error);
}

gboolean
gtorch_grad_native_layer_norm (GTorchGradContext *context, GError **error)
{
  GTorchImpl *grad = context->grads[0];
  GTorchImpl *input = context->inputs[0], *weight = context->inputs[1];
  GTorchImpl *sources[] = { grad, input, weight };
  gint64 dims[GTORCH_MAX_DIMS];
  gsize n = context->attrs[0].i, i;

  /* the statistics only serve the backward pass and have no gradient */
  if (context->grads[1] != NULL || context->grads[2] != NULL)
    return gtorch_grad_undefined (context, error);
  if (grad == NULL)
    return TRUE;
  if (!gtorch_autograd_wanted (sources, weight != NULL ? 3 : 2))
    {
      g_autoptr (GTorchImpl) grad_weight = NULL;
      g_autoptr (GTorchImpl) grad_bias = NULL;

      if (!gtorch_op_layer_norm_backward (grad, input, weight, context->outputs[1],
                                          context->outputs[2], &context->result[0], &grad_weight,
                                          &grad_bias, error))
        return FALSE;
      if (context->needs[1])
        context->result[1] = g_steal_pointer (&grad_weight);
      if (context->needs[2])
        context->result[2] = g_steal_pointer (&grad_bias);
      return TRUE;
    }
  for (i = 0; i < n; i++)
    dims[i] = (gint64) i - (gint64) n;
  if (context->needs[0])
    {
      g_autoptr (GTorchImpl) scaled =
          weight != NULL ? gtorch_op_mul (grad, weight, error) : gtorch_impl_ref (grad);

      context->result[0] =
          scaled != NULL
              ? gtorch_op_normalize_dims_grad (scaled, input, dims, n, context->attrs[1].d, error)
              : NULL;
      if (context->result[0] == NULL)
        return FALSE;
    }
  if (context->needs[1])
    {
      g_autoptr (GTorchImpl) normal =
          gtorch_op_normalize_dims (input, dims, n, context->attrs[1].d, error);

      context->result[1] = normal != NULL ? gtorch_op_mul (grad, normal, error) : NULL;
      if (context->result[1] == NULL)
        return FALSE;
    }
  if (context->needs[2])
    context->result[2] = gtorch_impl_ref (grad);
  return TRUE;
}

GTorchImpl *
gtorch_composite_layer_norm (GTorchImpl *input, const gint64 *normalized_shape,
                             gsize n_normalized_shape, GTorchImpl *weight, GTorchImpl *bias,
                             gdouble eps, GError **error)
{
  GTorchImpl *parameters[] = { weight, bias }, *output = NULL;
  guint i;

  if (n_normalized_shape < 1 || n_normalized_shape > input->n_dims
      || memcmp (input->shape + input->n_dims - n_normalized_shape, normalized_shape,
                 n_normalized_shape * sizeof (gint64))
             != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("layer_norm: the input %s does not end in the normalized shape %s"),
                   gtorch_impl_shape_str (input),
                   gtorch_shape_str (normalized_shape, n_normalized_shape));
      return NULL;
    }
  for (i = 0; i < 2; i++)
    if (parameters[i] != NULL
        && (parameters[i]->n_dims != n_normalized_shape
            || memcmp (parameters[i]->shape, normalized_shape, n_normalized_shape * sizeof (gint64))
                   != 0))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("layer_norm: weight and bias must have the normalized shape %s, one has "
                        "%s"),
                     gtorch_shape_str (normalized_shape, n_normalized_shape),
                     gtorch_impl_shape_str (parameters[i]));
        return NULL;
      }
  gtorch_op_native_layer_norm (input, weight, bias, n_normalized_shape, eps, &output, NULL, NULL,
                               error);
  return output;
}
