/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The choices that schedules offer. */

#include "config.h"

#include "optim/gtorch-lr-choices.h"

GType
gtorch_cyclic_mode_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_CYCLIC_MODE_TRIANGULAR, "GTORCH_CYCLIC_MODE_TRIANGULAR", "triangular" },
        { GTORCH_CYCLIC_MODE_TRIANGULAR2, "GTORCH_CYCLIC_MODE_TRIANGULAR2", "triangular2" },
        { GTORCH_CYCLIC_MODE_EXP_RANGE, "GTORCH_CYCLIC_MODE_EXP_RANGE", "exp-range" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchCyclicMode", values));
    }
  return type;
}

GType
gtorch_scale_mode_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_SCALE_MODE_CYCLE, "GTORCH_SCALE_MODE_CYCLE", "cycle" },
        { GTORCH_SCALE_MODE_ITERATIONS, "GTORCH_SCALE_MODE_ITERATIONS", "iterations" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchScaleMode", values));
    }
  return type;
}

GType
gtorch_anneal_strategy_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_ANNEAL_STRATEGY_COS, "GTORCH_ANNEAL_STRATEGY_COS", "cos" },
        { GTORCH_ANNEAL_STRATEGY_LINEAR, "GTORCH_ANNEAL_STRATEGY_LINEAR", "linear" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchAnnealStrategy", values));
    }
  return type;
}

GType
gtorch_plateau_mode_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_PLATEAU_MODE_MIN, "GTORCH_PLATEAU_MODE_MIN", "min" },
        { GTORCH_PLATEAU_MODE_MAX, "GTORCH_PLATEAU_MODE_MAX", "max" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchPlateauMode", values));
    }
  return type;
}

GType
gtorch_threshold_mode_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_THRESHOLD_MODE_REL, "GTORCH_THRESHOLD_MODE_REL", "rel" },
        { GTORCH_THRESHOLD_MODE_ABS, "GTORCH_THRESHOLD_MODE_ABS", "abs" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchThresholdMode", values));
    }
  return type;
}
