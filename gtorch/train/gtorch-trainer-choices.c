/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The choices that trainers offer. */

#include "config.h"

#include "train/gtorch-trainer-choices.h"

GType
gtorch_trainer_interval_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_TRAINER_INTERVAL_EPOCH, "GTORCH_TRAINER_INTERVAL_EPOCH", "epoch" },
        { GTORCH_TRAINER_INTERVAL_STEP, "GTORCH_TRAINER_INTERVAL_STEP", "step" },
        { GTORCH_TRAINER_INTERVAL_EVALUATION, "GTORCH_TRAINER_INTERVAL_EVALUATION", "evaluation" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchTrainerInterval", values));
    }
  return type;
}
