/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-layer-enums.h"

static GType
register_enum (gsize *type, const gchar *name, const GEnumValue *values)
{
  if (g_once_init_enter (type))
    g_once_init_leave (type, g_enum_register_static (name, values));
  return *type;
}

GType
gtorch_approximation_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_APPROXIMATION_NONE, "GTORCH_APPROXIMATION_NONE", "none" },
    { GTORCH_APPROXIMATION_TANH, "GTORCH_APPROXIMATION_TANH", "tanh" },
    { 0, NULL, NULL },
  };

  return register_enum (&type, "GTorchApproximation", values);
}

GType
gtorch_padding_mode_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_PADDING_MODE_ZEROS, "GTORCH_PADDING_MODE_ZEROS", "zeros" },
    { GTORCH_PADDING_MODE_REFLECT, "GTORCH_PADDING_MODE_REFLECT", "reflect" },
    { GTORCH_PADDING_MODE_REPLICATE, "GTORCH_PADDING_MODE_REPLICATE", "replicate" },
    { GTORCH_PADDING_MODE_CIRCULAR, "GTORCH_PADDING_MODE_CIRCULAR", "circular" },
    { 0, NULL, NULL },
  };

  return register_enum (&type, "GTorchPaddingMode", values);
}

GType
gtorch_rnn_nonlinearity_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_RNN_NONLINEARITY_TANH, "GTORCH_RNN_NONLINEARITY_TANH", "tanh" },
    { GTORCH_RNN_NONLINEARITY_RELU, "GTORCH_RNN_NONLINEARITY_RELU", "relu" },
    { 0, NULL, NULL },
  };

  return register_enum (&type, "GTorchRNNNonlinearity", values);
}

GType
gtorch_padding_rule_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_PADDING_RULE_NUMBERS, "GTORCH_PADDING_RULE_NUMBERS", "numbers" },
    { GTORCH_PADDING_RULE_VALID, "GTORCH_PADDING_RULE_VALID", "valid" },
    { GTORCH_PADDING_RULE_SAME, "GTORCH_PADDING_RULE_SAME", "same" },
    { 0, NULL, NULL },
  };

  return register_enum (&type, "GTorchPaddingRule", values);
}
