/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-leaky-relu.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchLeakyReLU:
 *
 * The rectifier that lets a part of what is negative through: x, or x · slope below zero.
 *
 * Since: 0.1
 */

struct _GTorchLeakyReLU
{
  GTorchModule parent_instance;
  gdouble negative_slope;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "negative-slope", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchLeakyReLU, negative_slope), 0.01, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchLeakyReLU, gtorch_leaky_relu, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_leaky_relu_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchLeakyReLU *self = GTORCH_LEAKY_RELU (module);
  return gtorch_tensor_wrap (
      gtorch_op_leaky_relu (gtorch_tensor_unwrap (input), self->negative_slope, error));
}

static gchar *
gtorch_leaky_relu_extra_repr (GTorchModule *module)
{
  GTorchLeakyReLU *self = GTORCH_LEAKY_RELU (module);
  return g_strdup_printf ("negative_slope=%s", gtorch_double_str (self->negative_slope));
}

static void
gtorch_leaky_relu_class_init (GTorchLeakyReLUClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_leaky_relu_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_leaky_relu_extra_repr;

  /**
   * GTorchLeakyReLU:negative-slope:
   *
   * The slope below zero.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_leaky_relu_init (GTorchLeakyReLU *self)
{
}

/**
 * gtorch_leaky_relu_new:
 * @negative_slope: the slope below zero, usually 0.01
 *
 * Makes a leaky ReLU.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchLeakyReLU *
gtorch_leaky_relu_new (gdouble negative_slope)
{
  return g_object_new (GTORCH_TYPE_LEAKY_RELU, "negative-slope", negative_slope, NULL);
}
