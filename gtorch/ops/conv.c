/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The geometry of convolutions, and what their gradients share with them. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_conv_init (GTorchConv *conv, GTorchOpCall *call, const gint64 *input, guint input_dims,
                  const gint64 *weight, guint weight_dims, GError **error)
{
  static const gchar *const names[] = { "stride", "padding", "dilation" };
  const GTorchAttr *attrs = call->attrs + (call->op->n_attrs - 4);
  gint64 *lists[] = { conv->stride, conv->padding, conv->dilation };
  gint64 groups = attrs[3].i;
  guint n = input_dims - 2, i, j;

  if (input_dims < 4 || input_dims > 5 || weight_dims != input_dims)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the input %s and the weight %s must both have 4 or 5 dimensions"),
                         gtorch_shape_str (input, input_dims),
                         gtorch_shape_str (weight, weight_dims));
      return FALSE;
    }
  for (i = 0; i < 3; i++)
    {
      if (attrs[i].list.n != n)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                             _ ("%s must hold 1 or %u numbers, it holds %u"), names[i], n,
                             (guint) attrs[i].list.n);
          return FALSE;
        }
      lists[i][0] = i != 1;
      for (j = 0; j < n; j++)
        {
          gint64 number = attrs[i].list.data[j];

          if (number < (i == 1 ? 0 : 1) || number > G_MAXINT32)
            {
              gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                                 _ ("%s must be from %d to %d, it is %" PRId64), names[i],
                                 i == 1 ? 0 : 1, G_MAXINT32, number);
              return FALSE;
            }
          lists[i][3 - n + j] = number;
        }
    }
  if (groups < 1 || weight[0] % groups != 0 || input[1] != weight[1] * groups)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("input %s, weight %s, groups %" PRId64
                            ": the input must have groups times the weight's channels, and the "
                            "weight's filters must be a multiple of groups"),
                         gtorch_shape_str (input, input_dims),
                         gtorch_shape_str (weight, weight_dims), groups);
      return FALSE;
    }
  conv->n_dims = input_dims;
  conv->batch = input[0];
  conv->groups = groups;
  conv->in_channels = weight[1];
  conv->out_channels = weight[0] / groups;
  conv->in[0] = conv->kernel[0] = conv->out[0] = 1;
  for (j = 3 - n; j < 3; j++)
    {
      gint64 reach;

      conv->in[j] = input[n - 1 + j];
      conv->kernel[j] = weight[n - 1 + j];
      reach = conv->in[j] + 2 * conv->padding[j];
      if (conv->kernel[j] < 1 || conv->kernel[j] > G_MAXINT32
          || reach < conv->dilation[j] * (conv->kernel[j] - 1) + 1)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("the filter %s with dilation %" PRId64
                                " does not fit into the input %s with padding %" PRId64),
                             gtorch_shape_str (weight, weight_dims), conv->dilation[j],
                             gtorch_shape_str (input, input_dims), conv->padding[j]);
          return FALSE;
        }
      conv->out[j] = (reach - conv->dilation[j] * (conv->kernel[j] - 1) - 1) / conv->stride[j] + 1;
    }
  conv->dtype = gtorch_dtype_infos[call->compute].compute;
  return TRUE;
}

static gboolean
check_dtypes (GTorchOpCall *call, GError **error)
{
  guint i;

  call->compute = call->inputs[0]->dtype;
  for (i = 1; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && call->inputs[i]->dtype != call->compute)
      {
        gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                           _ ("%s has dtype %s, the input has %s: they must be the same"),
                           call->op->args[i].name, gtorch_dtype_get_name (call->inputs[i]->dtype),
                           gtorch_dtype_get_name (call->compute));
        return FALSE;
      }
  return gtorch_call_check_dtype (call, call->compute, error);
}

/* Sets the output. It is channels-last if one of the two operands is. */
static gboolean
set_result (GTorchOpCall *call, guint dtype, const gint64 *shape, guint n_dims, GError **error)
{
  return gtorch_shape_check (call->op->name, shape, n_dims, dtype, error)
         && gtorch_call_set_images (call, 0, dtype, shape, n_dims,
                                    gtorch_impl_is_channels_last (call->inputs[0])
                                        || gtorch_impl_is_channels_last (call->inputs[1]),
                                    error);
}

static gboolean
check_bias (GTorchOpCall *call, gint64 n_channels, GError **error)
{
  const GTorchImpl *weight = call->inputs[1], *bias = call->inputs[2];

  if (bias == NULL || (bias->n_dims == 1 && bias->shape[0] == n_channels))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("the bias %s must have one element for each of the %" PRId64
                        " channels that the weight %s makes"),
                     gtorch_impl_shape_str (bias), n_channels, gtorch_impl_shape_str (weight));
  return FALSE;
}

/* Computes the shape of the result of the convolution itself. */
static void
result_shape (const GTorchConv *conv, gint64 *shape)
{
  guint i;

  shape[0] = conv->batch;
  shape[1] = conv->out_channels * conv->groups;
  for (i = 2; i < conv->n_dims; i++)
    shape[i] = conv->out[3 - conv->n_dims + i];
}

gboolean
gtorch_shape_convolve (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *input = call->inputs[0], *weight = call->inputs[1];
  GTorchConv conv;
  gint64 shape[5];

  if (!check_dtypes (call, error)
      || !gtorch_conv_init (&conv, call, input->shape, input->n_dims, weight->shape, weight->n_dims,
                            error)
      || !check_bias (call, weight->shape[0], error))
    return FALSE;
  result_shape (&conv, shape);
  return set_result (call, input->dtype, shape, conv.n_dims, error);
}

/* Checks the operands of a gradient: the upper gradient must have the shape of the forward result. */
static gboolean
shape_backward (GTorchOpCall *call, const gint64 *input, guint input_dims, const gint64 *weight,
                guint weight_dims, GError **error)
{
  const GTorchImpl *upper = call->inputs[0];
  gint64 shape[5];
  GTorchConv conv;

  if (!check_dtypes (call, error)
      || !gtorch_conv_init (&conv, call, input, input_dims, weight, weight_dims, error))
    return FALSE;
  result_shape (&conv, shape);
  if (!gtorch_same_shape (upper->shape, upper->n_dims, shape, conv.n_dims))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the gradient has shape %s, the convolution's result %s"),
                         gtorch_impl_shape_str (upper), gtorch_shape_str (shape, conv.n_dims));
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_shape_convolve_input (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *weight = call->inputs[1];
  const GTorchAttr *size = &call->attrs[0];

  return shape_backward (call, size->list.data, size->list.n, weight->shape, weight->n_dims, error)
         && check_bias (call, size->list.data[1], error)
         && set_result (call, call->compute, size->list.data, size->list.n, error);
}

gboolean
gtorch_shape_convolve_weight (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *input = call->inputs[1];
  const GTorchAttr *size = &call->attrs[0];

  return shape_backward (call, input->shape, input->n_dims, size->list.data, size->list.n, error)
         && set_result (call, call->compute, size->list.data, size->list.n, error);
}

GTorchImpl *
gtorch_op_sum_channels (GTorchImpl *self, GError **error)
{
  static const gint64 dims[] = { 0, 2, 3, 4 };

  return gtorch_op_sum (self, dims, self->n_dims - 1, FALSE, GTORCH_DTYPE_NONE, error);
}
