/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-linear.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchLinear:
 *
 * Multiplies its input by a learned matrix and adds a learned vector: x · weightᵀ + bias.
 *
 * The input has any shape that ends in `in-features`; the output ends in `out-features` instead.
 * `weight`, [out, in], and `bias`, [out], begin as numbers from a uniform distribution over ± 1 / √in.
 *
 * Since: 0.1
 */

struct _GTorchLinear
{
  GTorchModule parent_instance;
  gint64 in_features;
  gint64 out_features;
  gboolean has_bias;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "in-features", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchLinear, in_features), 0 },
  { "out-features", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchLinear, out_features), 0 },
  { "has-bias", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchLinear, has_bias), 1 },
  { "weight", GTORCH_FIELD_PARAMETER, 0 },
  { "bias", GTORCH_FIELD_PARAMETER, 1 },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchLinear, gtorch_linear, GTORCH_TYPE_MODULE)

static void
gtorch_linear_constructed (GObject *object)
{
  GTorchLinear *self = GTORCH_LINEAR (object);
  GTorchModule *module = GTORCH_MODULE (object);
  const gint64 shape[] = { self->out_features, self->in_features };

  if (gtorch_module_check_size (module, "in_features", self->in_features, 1)
      && gtorch_module_check_size (module, "out_features", self->out_features, 1))
    {
      gtorch_module_add_parameter (module, "weight", shape, 2);
      if (self->has_bias)
        gtorch_module_add_parameter (module, "bias", shape, 1);
      else
        gtorch_module_register_parameter (module, "bias", NULL, NULL);
      gtorch_module_reset_weights (module);
    }
  G_OBJECT_CLASS (gtorch_linear_parent_class)->constructed (object);
}

static GTorchTensor *
gtorch_linear_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return gtorch_tensor_wrap (gtorch_op_linear (gtorch_tensor_unwrap (input),
                                               gtorch_module_parameter_impl (module, 0),
                                               gtorch_module_parameter_impl (module, 1), error));
}

static gchar *
gtorch_linear_extra_repr (GTorchModule *module)
{
  GTorchLinear *self = GTORCH_LINEAR (module);
  return g_strdup_printf ("in_features=%" G_GINT64_FORMAT ", out_features=%" G_GINT64_FORMAT
                          ", bias=%s",
                          self->in_features, self->out_features, GTORCH_BOOL_STR (self->has_bias));
}

static void
gtorch_linear_class_init (GTorchLinearClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_linear_constructed;
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_linear_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_linear_extra_repr;

  /**
   * GTorchLinear:in-features:
   *
   * The size of the last dimension of the input.
   *
   * Since: 0.1
   */

  /**
   * GTorchLinear:out-features:
   *
   * The size of the last dimension of the output.
   *
   * Since: 0.1
   */

  /**
   * GTorchLinear:has-bias:
   *
   * Whether there is a bias.
   *
   * Since: 0.1
   */

  /**
   * GTorchLinear:weight:
   *
   * The matrix.
   *
   * Since: 0.1
   */

  /**
   * GTorchLinear:bias:
   *
   * The vector, or %NULL.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_linear_init (GTorchLinear *self)
{
}

/**
 * gtorch_linear_new:
 * @in_features: size of the last dimension of the input
 * @out_features: size of the last dimension of the output
 * @bias: whether to add a vector
 * @error: return location for an error
 *
 * Makes a linear layer with new weights from the default generator.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if a size is not
 *   positive
 *
 * Since: 0.1
 */
GTorchLinear *
gtorch_linear_new (gint64 in_features, gint64 out_features, gboolean bias, GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_LINEAR, "in-features", in_features,
                                              "out-features", out_features, "has-bias",
                                              bias != FALSE, NULL),
                                error);
}
