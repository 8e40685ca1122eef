/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-max-pool2d.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchMaxPool2d:
 *
 * Takes the greatest element of each window of images, [N, C, H, W] or [C, H, W].
 *
 * Since: 0.1
 */

struct _GTorchMaxPool2d
{
  GTorchModule parent_instance;
  gint64 kernel_size;
  gint64 kernel_width;
  gint64 stride;
  gint64 stride_width;
  gint64 padding;
  gint64 padding_width;
  gint64 dilation;
  gint64 dilation_width;
  gboolean ceil_mode;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "kernel-size", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchMaxPool2d, kernel_size), 0 },
  { "kernel-width", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchMaxPool2d, kernel_width), -1 },
  { "stride", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchMaxPool2d, stride), -1 },
  { "stride-width", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchMaxPool2d, stride_width), -1 },
  { "padding", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchMaxPool2d, padding), 0 },
  { "padding-width", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchMaxPool2d, padding_width), -1 },
  { "dilation", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchMaxPool2d, dilation), 1 },
  { "dilation-width", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchMaxPool2d, dilation_width), -1 },
  { "ceil-mode", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchMaxPool2d, ceil_mode), 0, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchMaxPool2d, gtorch_max_pool2d, GTORCH_TYPE_MODULE)

static void
gtorch_max_pool2d_constructed (GObject *object)
{
  GTorchMaxPool2d *self = GTORCH_MAX_POOL2D (object);
  GTorchModule *module = GTORCH_MODULE (object);

  if (self->kernel_width == -1)
    self->kernel_width = self->kernel_size;
  if (self->stride_width == -1)
    self->stride_width = self->stride == -1 ? self->kernel_width : self->stride;
  if (self->stride == -1)
    self->stride = self->kernel_size;
  if (self->padding_width == -1)
    self->padding_width = self->padding;
  if (self->dilation_width == -1)
    self->dilation_width = self->dilation;
  if (gtorch_module_check_size (module, "kernel_size", self->kernel_size, 1)
      && gtorch_module_check_size (module, "kernel_width", self->kernel_width, 1)
      && gtorch_module_check_size (module, "stride", MIN (self->stride, self->stride_width), 1)
      && gtorch_module_check_size (module, "dilation", MIN (self->dilation, self->dilation_width),
                                   1))
    gtorch_module_check_size (module, "padding", MIN (self->padding, self->padding_width), 0);
  G_OBJECT_CLASS (gtorch_max_pool2d_parent_class)->constructed (object);
}

static GTorchTensor *
gtorch_max_pool2d_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchMaxPool2d *self = GTORCH_MAX_POOL2D (module);
  const gint64 kernel[] = { self->kernel_size, self->kernel_width };
  const gint64 stride[] = { self->stride, self->stride_width };
  const gint64 padding[] = { self->padding, self->padding_width };
  const gint64 dilation[] = { self->dilation, self->dilation_width };

  return gtorch_tensor_wrap (gtorch_op_max_pool2d (gtorch_tensor_unwrap (input), kernel, 2, stride,
                                                   2, padding, 2, dilation, 2, self->ceil_mode,
                                                   error));
}

static gchar *
gtorch_max_pool2d_extra_repr (GTorchModule *module)
{
  GTorchMaxPool2d *self = GTORCH_MAX_POOL2D (module);
  const gboolean square = self->kernel_size == self->kernel_width
                          && self->stride == self->stride_width
                          && self->padding == self->padding_width;
  g_autofree gchar *dilation = self->dilation == self->dilation_width
                                   ? g_strdup_printf ("%" G_GINT64_FORMAT, self->dilation)
                                   : gtorch_pair_str (self->dilation, self->dilation_width);
  g_autofree gchar *kernel = square ? g_strdup_printf ("%" G_GINT64_FORMAT, self->kernel_size)
                                    : gtorch_pair_str (self->kernel_size, self->kernel_width);
  g_autofree gchar *stride = square ? g_strdup_printf ("%" G_GINT64_FORMAT, self->stride)
                                    : gtorch_pair_str (self->stride, self->stride_width);
  g_autofree gchar *padding = square ? g_strdup_printf ("%" G_GINT64_FORMAT, self->padding)
                                     : gtorch_pair_str (self->padding, self->padding_width);

  return g_strdup_printf ("kernel_size=%s, stride=%s, padding=%s, dilation=%s, ceil_mode=%s",
                          kernel, stride, padding, dilation, GTORCH_BOOL_STR (self->ceil_mode));
}

static void
gtorch_max_pool2d_class_init (GTorchMaxPool2dClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_max_pool2d_constructed;
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_max_pool2d_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_max_pool2d_extra_repr;

  /**
   * GTorchMaxPool2d:kernel-size:
   *
   * The size of the windows. In height, and in width too unless that is given.
   *
   * Since: 0.1
   */

  /**
   * GTorchMaxPool2d:kernel-width:
   *
   * The size of the windows. In width; -1 for the same as in height.
   *
   * Since: 0.1
   */

  /**
   * GTorchMaxPool2d:stride:
   *
   * The steps between the windows. In height, and in width too unless that is given; -1 for the size of
   * the windows.
   *
   * Since: 0.1
   */

  /**
   * GTorchMaxPool2d:stride-width:
   *
   * The steps in width; -1 for the same as in height.
   *
   * Since: 0.1
   */

  /**
   * GTorchMaxPool2d:padding:
   *
   * How far windows may reach over the edge. In height, and in width too unless that is given.
   *
   * Since: 0.1
   */

  /**
   * GTorchMaxPool2d:padding-width:
   *
   * How far windows may reach over the edge. In width; -1 for the same as in height.
   *
   * Since: 0.1
   */

  /**
   * GTorchMaxPool2d:dilation:
   *
   * The distance of the elements in a window. In height, and in width too unless that is given.
   *
   * Since: 0.1
   */

  /**
   * GTorchMaxPool2d:dilation-width:
   *
   * The distance of the elements in a window. In width; -1 for the same as in height.
   *
   * Since: 0.1
   */

  /**
   * GTorchMaxPool2d:ceil-mode:
   *
   * Whether a last window that does not fit into the image wholly counts.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_max_pool2d_init (GTorchMaxPool2d *self)
{
}

/**
 * gtorch_max_pool2d_new:
 * @kernel_size: height and width of the windows
 * @stride: steps between the windows; -1: side by side
 * @padding: how far windows may reach over the edge, usually 0
 * @error: return location for an error
 *
 * Makes a pooling layer.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if a number is out of
 *   its range
 *
 * Since: 0.1
 */
GTorchMaxPool2d *
gtorch_max_pool2d_new (gint64 kernel_size, gint64 stride, gint64 padding, GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_MAX_POOL2D, "kernel-size", kernel_size,
                                              "stride", stride, "padding", padding, NULL),
                                error);
}
