/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

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
  guint i, j;

  if (input_dims != 4 || weight_dims != 4)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the input %s and the weight %s must have 4 dimensions"),
                         gtorch_shape_str (input, input_dims),
                         gtorch_shape_str (weight, weight_dims));
      return FALSE;
    }
  for (i = 0; i < 3; i++)
    {
      if (attrs[i].list.n != 2)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                             _ ("%s must hold 1 or 2 numbers, it holds %u"), names[i],
                             (guint) attrs[i].list.n);
          return FALSE;
        }
      for (j = 0; j < 2; j++)
        {
          lists[i][j] = attrs[i].list.data[j];
          if (lists[i][j] < (i == 1 ? 0 : 1) || lists[i][j] > G_MAXINT32)
            {
              gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                                 _ ("%s must be from %d to %d, it is %" G_GINT64_FORMAT), names[i],
                                 i == 1 ? 0 : 1, G_MAXINT32, lists[i][j]);
              return FALSE;
            }
        }
    }
  if (groups < 1 || weight[0] % groups != 0 || input[1] != weight[1] * groups)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("input %s, weight %s, groups %" G_GINT64_FORMAT
                            ": the input must have groups times the weight's channels, and the "
                            "weight's "
                            "filters must be a multiple of groups"),
                         gtorch_shape_str (input, 4), gtorch_shape_str (weight, 4), groups);
      return FALSE;
    }
  conv->batch = input[0];
  conv->groups = groups;
  conv->in_channels = weight[1];
  conv->out_channels = weight[0] / groups;
  for (j = 0; j < 2; j++)
    {
      gint64 reach;

      conv->in[j] = input[2 + j];
      conv->kernel[j] = weight[2 + j];
      reach = conv->in[j] + 2 * conv->padding[j];
      if (conv->kernel[j] < 1 || conv->kernel[j] > G_MAXINT32
          || reach < conv->dilation[j] * (conv->kernel[j] - 1) + 1)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("the filter %s with dilation %" G_GINT64_FORMAT
                                " does not fit into the input %s with padding %" G_GINT64_FORMAT),
                             gtorch_shape_str (weight, 4), conv->dilation[j],
                             gtorch_shape_str (input, 4), conv->padding[j]);
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

static gboolean
has_channels_last (const GTorchImpl *impl)
{
  gint64 stride = impl->shape[1];

  if (impl->is_contiguous || (impl->shape[1] > 1 && impl->strides[1] != 1)
      || (impl->shape[3] > 1 && impl->strides[3] != stride))
    return FALSE;
  stride *= impl->shape[3];
  return (impl->shape[2] <= 1 || impl->strides[2] == stride)
         && (impl->shape[0] <= 1 || impl->strides[0] == stride * impl->shape[2]);
}

/* Sets the output. It is channels-last if one of the two operands is. */
static gboolean
set_result (GTorchOpCall *call, guint dtype, const gint64 *shape, GError **error)
{
  GTorchImpl *plain;

  if (!gtorch_shape_check (call->op->name, shape, 4, dtype, error)
      || !gtorch_call_set_output (call, 0, dtype, shape, 4, error))
    return FALSE;
  plain = call->outputs[0];
  if (plain->numel > 0
      && (has_channels_last (call->inputs[0]) || has_channels_last (call->inputs[1])))
    {
      const gint64 strides[] = { shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1] };

      call->outputs[0] =
          gtorch_impl_new_strided (plain->storage, dtype, plain->offset, shape, strides, 4);
      gtorch_impl_unref (plain);
    }
  return TRUE;
}

gboolean
gtorch_shape_convolve2d (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *input = call->inputs[0], *weight = call->inputs[1], *bias = call->inputs[2];
  GTorchConv conv;
  gint64 shape[4];

  if (!check_dtypes (call, error)
      || !gtorch_conv_init (&conv, call, input->shape, input->n_dims, weight->shape, weight->n_dims,
                            error))
    return FALSE;
  if (bias != NULL && (bias->n_dims != 1 || bias->shape[0] != weight->shape[0]))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the bias %s must have one element for each filter of the weight %s"),
                         gtorch_impl_shape_str (bias), gtorch_impl_shape_str (weight));
      return FALSE;
    }
  shape[0] = input->shape[0];
  shape[1] = weight->shape[0];
  shape[2] = conv.out[0];
  shape[3] = conv.out[1];
  return set_result (call, input->dtype, shape, error);
}

/* Checks the operands of a gradient: the upper gradient must have the shape of the forward result. */
static gboolean
shape_backward (GTorchOpCall *call, const gint64 *input, guint input_dims, const gint64 *weight,
                guint weight_dims, GError **error)
{
  const GTorchImpl *upper = call->inputs[0];
  gint64 shape[4];
  GTorchConv conv;

  if (!check_dtypes (call, error)
      || !gtorch_conv_init (&conv, call, input, input_dims, weight, weight_dims, error))
    return FALSE;
  shape[0] = input[0];
  shape[1] = weight[0];
  shape[2] = conv.out[0];
  shape[3] = conv.out[1];
  if (!gtorch_same_shape (upper->shape, upper->n_dims, shape, 4))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the gradient has shape %s, the convolution's result %s"),
                         gtorch_impl_shape_str (upper), gtorch_shape_str (shape, 4));
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_shape_convolve2d_input (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *weight = call->inputs[1];

  return shape_backward (call, call->attrs[0].list.data, call->attrs[0].list.n, weight->shape,
                         weight->n_dims, error)
         && set_result (call, call->compute, call->attrs[0].list.data, error);
}

gboolean
gtorch_shape_convolve2d_weight (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *input = call->inputs[1];

  return shape_backward (call, input->shape, input->n_dims, call->attrs[0].list.data,
                         call->attrs[0].list.n, error)
         && set_result (call, call->compute, call->attrs[0].list.data, error);
}

/* --- the public forms --- */

/* Reads one or two numbers; a single one stands for both dimensions. With is_1d the height gets `missing`. */
static gboolean
two_numbers (const gchar *op, const gchar *name, const gint64 *list, gsize n, gboolean is_1d,
             gint64 missing, gint64 *result, GError **error)
{
  if (n == 1)
    {
      result[0] = is_1d ? missing : list[0];
      result[1] = list[0];
      return TRUE;
    }
  if (n == 2 && !is_1d)
    {
      result[0] = list[0];
      result[1] = list[1];
      return TRUE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               is_1d ? _ ("%s: %s must hold 1 number, it holds %u")
                     : _ ("%s: %s must hold 1 or 2 numbers, it holds %u"),
               op, name, (guint) n);
  return FALSE;
}

static GTorchImpl *
insert_dims (GTorchImpl *impl, gboolean batch, gboolean height, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  guint n = 0, i;

  if (!batch && !height)
    return gtorch_impl_ref (impl);
  if (batch)
    shape[n++] = 1;
  for (i = 0; i < impl->n_dims; i++)
    {
      if (height && i == impl->n_dims - 1)
        shape[n++] = 1;
      shape[n++] = impl->shape[i];
    }
  return gtorch_op_reshape (impl, shape, n, error);
}

static GTorchImpl *
convolve (const gchar *op, gboolean is_1d, GTorchImpl *input, GTorchImpl *weight, GTorchImpl *bias,
          const gint64 *const *lists, const gsize *lengths, gint64 groups, GError **error)
{
  gint64 stride[2], padding[2], dilation[2], shape[GTORCH_MAX_DIMS];
  guint full = is_1d ? 3 : 4, n = 0, i;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) w = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  gboolean batched = input->n_dims == full;

  if ((!batched && input->n_dims != full - 1) || weight->n_dims != full)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the input %s must have %u or %u dimensions and the weight %s must have "
                      "%u"),
                   op, gtorch_impl_shape_str (input), full, full - 1,
                   gtorch_impl_shape_str (weight), full);
      return NULL;
    }
  if (!two_numbers (op, "stride", lists[0], lengths[0], is_1d, 1, stride, error)
      || !two_numbers (op, "padding", lists[1], lengths[1], is_1d, 0, padding, error)
      || !two_numbers (op, "dilation", lists[2], lengths[2], is_1d, 1, dilation, error))
    return NULL;
  if (batched && !is_1d)
    return gtorch_op_convolve2d (input, weight, bias, stride, 2, padding, 2, dilation, 2, groups,
                                 error);
  x = insert_dims (input, !batched, is_1d, error);
  w = x != NULL ? insert_dims (weight, FALSE, is_1d, error) : NULL;
  y = w != NULL
          ? gtorch_op_convolve2d (x, w, bias, stride, 2, padding, 2, dilation, 2, groups, error)
          : NULL;
  if (y == NULL)
    return NULL;
  for (i = batched ? 0 : 1; i < 4; i++)
    if (!is_1d || i != 2)
      shape[n++] = y->shape[i];
  return gtorch_op_reshape (y, shape, n, error);
}

GTorchImpl *
gtorch_composite_conv2d (GTorchImpl *input, GTorchImpl *weight, GTorchImpl *bias,
                         const gint64 *stride, gsize n_stride, const gint64 *padding,
                         gsize n_padding, const gint64 *dilation, gsize n_dilation, gint64 groups,
                         GError **error)
{
  const gint64 *lists[] = { stride, padding, dilation };
  gsize lengths[] = { n_stride, n_padding, n_dilation };

  return convolve ("conv2d", FALSE, input, weight, bias, lists, lengths, groups, error);
}

GTorchImpl *
gtorch_composite_conv1d (GTorchImpl *input, GTorchImpl *weight, GTorchImpl *bias,
                         const gint64 *stride, gsize n_stride, const gint64 *padding,
                         gsize n_padding, const gint64 *dilation, gsize n_dilation, gint64 groups,
                         GError **error)
{
  const gint64 *lists[] = { stride, padding, dilation };
  gsize lengths[] = { n_stride, n_padding, n_dilation };

  return convolve ("conv1d", TRUE, input, weight, bias, lists, lengths, groups, error);
}
