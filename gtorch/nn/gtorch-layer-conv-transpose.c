/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the rows of transposed convolutions name. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "elements/gtorch-tensor-bytes.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-layer-private.h"

static gboolean
check_zeros (gpointer self, gint padding_mode, GError **error)
{
  if (padding_mode == GTORCH_PADDING_MODE_ZEROS)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: the padding mode of a transposed convolution must be zeros"),
               gtorch_module_type_name (self));
  return FALSE;
}

void
gtorch_layer_check_padding_mode (GTorchModule *self, gint padding_mode)
{
  GError *error = NULL;

  if (!check_zeros (self, padding_mode, &error))
    gtorch_module_set_error (self, error);
}

gboolean
gtorch_layer_read_size (gpointer self, GTorchImpl *output_size, guint input_dims, guint n,
                        gint64 *size, GError **error)
{
  const GTorchImpl *impl = output_size;
  GError *local = NULL;

  if (gtorch_dtype_kind (impl->dtype) != GTORCH_KIND_INT || impl->n_dims != 1
      || (impl->shape[0] != n && impl->shape[0] != input_dims))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: output_size must have %u or %u numbers, it has shape %s and dtype %s"),
                   gtorch_module_type_name (self), n, input_dims, gtorch_impl_shape_str (impl),
                   gtorch_dtype_get_name (impl->dtype));
      return FALSE;
    }
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GTorchImpl) one = gtorch_op_select (output_size, 0, impl->shape[0] - n + i, error);
      g_autoptr (GTorchTensor) element = NULL;

      if (one == NULL)
        return FALSE;
      element = gtorch_tensor_wrap (g_steal_pointer (&one));
      size[i] = gtorch_tensor_item_int (element, &local);
      if (local != NULL)
        {
          g_propagate_error (error, local);
          return FALSE;
        }
    }
  return TRUE;
}

/* Computes the output padding that makes outputs of that size. */
static gboolean
fit_size (gpointer self, const GTorchImpl *input, const GTorchImpl *weight, const gint64 *size,
          guint n, const gint64 *stride, const gint64 *padding, const gint64 *dilation,
          gint64 *output_padding, GError **error)
{
  for (guint i = 0; i < n; i++)
    {
      const gint64 least = (input->shape[input->n_dims - n + i] - 1) * stride[i] - 2 * padding[i]
                           + dilation[i] * (weight->shape[2 + i] - 1) + 1;

      output_padding[i] = size[i] - least;
      if (output_padding[i] >= 0 && output_padding[i] < stride[i])
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: output_size is %" PRId64 " in dimension %u, it must be from "
                      "%" PRId64 " to %" PRId64 " for the input %s"),
                   gtorch_module_type_name (self), size[i], i, least, least + stride[i] - 1,
                   gtorch_impl_shape_str (input));
      return FALSE;
    }
  return TRUE;
}

GTorchTensor *
gtorch_layer_conv_transpose (GTorchConvTranspose *self, GTorchTensor *input,
                             GTorchTensor *output_size, GTorchSize *stride, GTorchSize *padding,
                             GTorchSize *output_padding, gint64 groups, GTorchSize *dilation,
                             gint padding_mode, GError **error)
{
  static const struct
  {
    GTorchImpl *(*run) (GTorchImpl *, GTorchImpl *, GTorchImpl *, const gint64 *, gsize,
                        const gint64 *, gsize, const gint64 *, gsize, gint64, const gint64 *, gsize,
                        GError **);
    guint op;
  } forms[] = { { gtorch_op_conv_transpose1d, GTORCH_OP_CONV_TRANSPOSE1D },
                { gtorch_op_conv_transpose2d, GTORCH_OP_CONV_TRANSPOSE2D },
                { gtorch_op_conv_transpose3d, GTORCH_OP_CONV_TRANSPOSE3D } };
  g_autoptr (GTorchImpl) weight = NULL;
  g_autoptr (GTorchImpl) bias = NULL;
  GTorchImpl *impl = gtorch_tensor_unwrap (input), *output;
  const guint n = (guint) gtorch_size_get_length (stride);
  const gint64 *extra = gtorch_layer_numbers (output_padding);
  gint64 size[3], fitted[3];
  const GTorchOpClass *former;

  if (!gtorch_module_take_parameter (self, 0, &weight, error)
      || !gtorch_module_take_parameter (self, 1, &bias, error))
    return NULL;
  if (weight == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there is no weight"),
                   gtorch_module_type_name (self));
      return NULL;
    }
  if (!check_zeros (self, padding_mode, error))
    return NULL;
  /* other shapes are refused by the operation */
  if (output_size != NULL && weight->n_dims == n + 2
      && (impl->n_dims == n + 1 || impl->n_dims == n + 2))
    {
      if (!gtorch_layer_read_size (self, gtorch_tensor_unwrap (output_size), impl->n_dims, n, size,
                                   error)
          || !fit_size (self, impl, weight, size, n, gtorch_layer_numbers (stride),
                        gtorch_layer_numbers (padding), gtorch_layer_numbers (dilation), fitted,
                        error))
        return NULL;
      extra = fitted;
    }
  former = gtorch_composite_begin (forms[n - 1].op, GTORCH_IMPLS (impl, weight, bias));
  output = forms[n - 1].run (impl, weight, bias, gtorch_layer_numbers (stride), n,
                             gtorch_layer_numbers (padding), n, extra, n, groups,
                             gtorch_layer_numbers (dilation), n, error);
  gtorch_composite_end (former, output != NULL, error);
  return gtorch_tensor_wrap (output);
}
