/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-adaptive-avg-pool2d.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchAdaptiveAvgPool2d:
 *
 * Takes means over windows of images, [N, C, H, W] or [C, H, W], that are as large as the size of the
 * output asks for.
 *
 * Since: 0.1
 */

struct _GTorchAdaptiveAvgPool2d
{
  GTorchModule parent_instance;
  gint64 output_size;
  gint64 output_width;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "output-size", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchAdaptiveAvgPool2d, output_size), 1 },
  { "output-width", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchAdaptiveAvgPool2d, output_width), -1 },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchAdaptiveAvgPool2d, gtorch_adaptive_avg_pool2d, GTORCH_TYPE_MODULE)

static void
gtorch_adaptive_avg_pool2d_constructed (GObject *object)
{
  GTorchAdaptiveAvgPool2d *self = GTORCH_ADAPTIVE_AVG_POOL2D (object);
  GTorchModule *module = GTORCH_MODULE (object);

  if (self->output_width == -1)
    self->output_width = self->output_size;
  if (gtorch_module_check_size (module, "output_size", self->output_size, 1))
    gtorch_module_check_size (module, "output_width", self->output_width, 1);
  G_OBJECT_CLASS (gtorch_adaptive_avg_pool2d_parent_class)->constructed (object);
}

static GTorchTensor *
gtorch_adaptive_avg_pool2d_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchAdaptiveAvgPool2d *self = GTORCH_ADAPTIVE_AVG_POOL2D (module);
  const gint64 size[] = { self->output_size, self->output_width };

  return gtorch_tensor_wrap (
      gtorch_op_adaptive_avg_pool2d (gtorch_tensor_unwrap (input), size, 2, error));
}

static gchar *
gtorch_adaptive_avg_pool2d_extra_repr (GTorchModule *module)
{
  GTorchAdaptiveAvgPool2d *self = GTORCH_ADAPTIVE_AVG_POOL2D (module);
  g_autofree gchar *size = self->output_size == self->output_width
                               ? g_strdup_printf ("%" G_GINT64_FORMAT, self->output_size)
                               : gtorch_pair_str (self->output_size, self->output_width);

  return g_strdup_printf ("output_size=%s", size);
}

static void
gtorch_adaptive_avg_pool2d_class_init (GTorchAdaptiveAvgPool2dClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_adaptive_avg_pool2d_constructed;
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_adaptive_avg_pool2d_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_adaptive_avg_pool2d_extra_repr;

  /**
   * GTorchAdaptiveAvgPool2d:output-size:
   *
   * The height of the output, and its width unless that is given.
   *
   * Since: 0.1
   */

  /**
   * GTorchAdaptiveAvgPool2d:output-width:
   *
   * The width of the output; -1 for the same as its height.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_adaptive_avg_pool2d_init (GTorchAdaptiveAvgPool2d *self)
{
}

/**
 * gtorch_adaptive_avg_pool2d_new:
 * @output_size: height and width of the output
 * @error: return location for an error
 *
 * Makes a pooling layer with a fixed output size.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if the size is not
 *   positive
 *
 * Since: 0.1
 */
GTorchAdaptiveAvgPool2d *
gtorch_adaptive_avg_pool2d_new (gint64 output_size, GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_ADAPTIVE_AVG_POOL2D, "output-size",
                                              output_size, NULL),
                                error);
}
