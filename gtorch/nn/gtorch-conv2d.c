/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-conv2d.h"

#include <glib/gi18n-lib.h>

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchConv2d:
 *
 * Convolves images, [N, C, H, W] or [C, H, W], with learned filters.
 *
 * `weight`, [out, in / groups, height, width], and `bias`, [out], begin as numbers from a uniform
 * distribution over ± 1 / √(in / groups · height · width).
 *
 * Since: 0.1
 */

struct _GTorchConv2d
{
  GTorchModule parent_instance;
  gint64 in_channels;
  gint64 out_channels;
  gint64 kernel_size;
  gint64 kernel_width;
  gint64 stride;
  gint64 stride_width;
  gint64 padding;
  gint64 padding_width;
  gint64 dilation;
  gint64 dilation_width;
  gint64 groups;
  gboolean has_bias;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "in-channels", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, in_channels), 0 },
  { "out-channels", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, out_channels), 0 },
  { "kernel-size", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, kernel_size), 0 },
  { "kernel-width", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, kernel_width), -1 },
  { "stride", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, stride), 1 },
  { "stride-width", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, stride_width), -1 },
  { "padding", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, padding), 0 },
  { "padding-width", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, padding_width), -1 },
  { "dilation", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, dilation), 1 },
  { "dilation-width", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, dilation_width), -1 },
  { "groups", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchConv2d, groups), 1 },
  { "has-bias", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchConv2d, has_bias), 1 },
  { "weight", GTORCH_FIELD_PARAMETER, 0 },
  { "bias", GTORCH_FIELD_PARAMETER, 1 },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchConv2d, gtorch_conv2d, GTORCH_TYPE_MODULE)

static gboolean
gtorch_conv2d_check (GTorchConv2d *self)
{
  GTorchModule *module = GTORCH_MODULE (self);
  GError *error = NULL;

  if (!gtorch_module_check_size (module, "in_channels", self->in_channels, 1)
      || !gtorch_module_check_size (module, "out_channels", self->out_channels, 1)
      || !gtorch_module_check_size (module, "kernel_size", self->kernel_size, 1)
      || !gtorch_module_check_size (module, "kernel_width", self->kernel_width, 1)
      || !gtorch_module_check_size (module, "stride", MIN (self->stride, self->stride_width), 1)
      || !gtorch_module_check_size (module, "padding", MIN (self->padding, self->padding_width), 0)
      || !gtorch_module_check_size (module, "dilation", MIN (self->dilation, self->dilation_width),
                                    1)
      || !gtorch_module_check_size (module, "groups", self->groups, 1))
    return FALSE;
  if (self->in_channels % self->groups == 0 && self->out_channels % self->groups == 0)
    return TRUE;
  g_set_error (&error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT
                  " channels cannot be divided into %" G_GINT64_FORMAT " groups"),
               gtorch_module_type_name (self), self->in_channels, self->out_channels, self->groups);
  gtorch_module_set_error (module, error);
  return FALSE;
}

static void
gtorch_conv2d_constructed (GObject *object)
{
  GTorchConv2d *self = GTORCH_CONV2D (object);
  GTorchModule *module = GTORCH_MODULE (object);

  if (self->kernel_width == -1)
    self->kernel_width = self->kernel_size;
  if (self->stride_width == -1)
    self->stride_width = self->stride;
  if (self->padding_width == -1)
    self->padding_width = self->padding;
  if (self->dilation_width == -1)
    self->dilation_width = self->dilation;
  if (gtorch_conv2d_check (self))
    {
      const gint64 shape[] = { self->out_channels, self->in_channels / self->groups,
                               self->kernel_size, self->kernel_width };

      gtorch_module_add_parameter (module, "weight", shape, 4);
      if (self->has_bias)
        gtorch_module_add_parameter (module, "bias", shape, 1);
      else
        gtorch_module_register_parameter (module, "bias", NULL, NULL);
      gtorch_module_reset_weights (module);
    }
  G_OBJECT_CLASS (gtorch_conv2d_parent_class)->constructed (object);
}

static GTorchTensor *
gtorch_conv2d_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchConv2d *self = GTORCH_CONV2D (module);
  const gint64 stride[] = { self->stride, self->stride_width };
  const gint64 padding[] = { self->padding, self->padding_width };
  const gint64 dilation[] = { self->dilation, self->dilation_width };

  return gtorch_tensor_wrap (gtorch_op_conv2d (gtorch_tensor_unwrap (input),
                                               gtorch_module_parameter_impl (module, 0),
                                               gtorch_module_parameter_impl (module, 1), stride, 2,
                                               padding, 2, dilation, 2, self->groups, error));
}

static gchar *
gtorch_conv2d_extra_repr (GTorchModule *module)
{
  GTorchConv2d *self = GTORCH_CONV2D (module);
  g_autofree gchar *kernel = gtorch_pair_str (self->kernel_size, self->kernel_width);
  g_autofree gchar *stride = gtorch_pair_str (self->stride, self->stride_width);
  g_autofree gchar *padding = gtorch_pair_str (self->padding, self->padding_width);
  g_autofree gchar *dilation = gtorch_pair_str (self->dilation, self->dilation_width);
  GString *text = g_string_new (NULL);

  g_string_printf (text, "%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT ", kernel_size=%s, stride=%s",
                   self->in_channels, self->out_channels, kernel, stride);
  if (self->padding != 0 || self->padding_width != 0)
    g_string_append_printf (text, ", padding=%s", padding);
  if (self->dilation != 1 || self->dilation_width != 1)
    g_string_append_printf (text, ", dilation=%s", dilation);
  if (self->groups != 1)
    g_string_append_printf (text, ", groups=%" G_GINT64_FORMAT, self->groups);
  if (!self->has_bias)
    g_string_append (text, ", bias=False");
  return g_string_free (text, FALSE);
}

static void
gtorch_conv2d_class_init (GTorchConv2dClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_conv2d_constructed;
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_conv2d_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_conv2d_extra_repr;

  /**
   * GTorchConv2d:in-channels:
   *
   * How many channels the input has.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:out-channels:
   *
   * How many channels the output has.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:kernel-size:
   *
   * The size of the filters. In height, and in width too unless that is given.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:kernel-width:
   *
   * The size of the filters. In width; -1 for the same as in height.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:stride:
   *
   * The steps between their places. In height, and in width too unless that is given.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:stride-width:
   *
   * The steps between their places. In width; -1 for the same as in height.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:padding:
   *
   * How many zeros stand around the image. In height, and in width too unless that is given.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:padding-width:
   *
   * How many zeros stand around the image. In width; -1 for the same as in height.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:dilation:
   *
   * The distance of the elements under the filters. In height, and in width too unless that is given.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:dilation-width:
   *
   * The distance of the elements under the filters. In width; -1 for the same as in height.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:groups:
   *
   * Into how many parts, independent of each other, the channels are divided.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:has-bias:
   *
   * Whether there is a bias.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:weight:
   *
   * The filters.
   *
   * Since: 0.1
   */

  /**
   * GTorchConv2d:bias:
   *
   * A number for each channel of the output, or %NULL.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_conv2d_init (GTorchConv2d *self)
{
}

/**
 * gtorch_conv2d_new:
 * @in_channels: channels of the input
 * @out_channels: channels of the output
 * @kernel_size: height and width of the filters
 * @stride: steps between their places, usually 1
 * @padding: zeros around the image, usually 0
 * @bias: whether to add a number to each channel
 * @error: return location for an error
 *
 * Makes a convolution with new filters from the default generator. For filters that are not square,
 * dilation and groups use [ctor@GObject.Object.new] with properties.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if a number is out of
 *   its range
 *
 * Since: 0.1
 */
GTorchConv2d *
gtorch_conv2d_new (gint64 in_channels, gint64 out_channels, gint64 kernel_size, gint64 stride,
                   gint64 padding, gboolean bias, GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_CONV2D, "in-channels", in_channels,
                                              "out-channels", out_channels, "kernel-size",
                                              kernel_size, "stride", stride, "padding", padding,
                                              "has-bias", bias != FALSE, NULL),
                                error);
}
