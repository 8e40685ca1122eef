/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchTrainerInterval:
 * @GTORCH_TRAINER_INTERVAL_EPOCH: at the end of each epoch
 * @GTORCH_TRAINER_INTERVAL_STEP: after each step of the optimizer
 * @GTORCH_TRAINER_INTERVAL_EVALUATION: after each evaluation, with the number that is monitored, for
 *   [class@ReduceLROnPlateau]
 *
 * When a trainer makes the steps of a schedule of the learning rate.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_TRAINER_INTERVAL_EPOCH,
  GTORCH_TRAINER_INTERVAL_STEP,
  GTORCH_TRAINER_INTERVAL_EVALUATION,
} GTorchTrainerInterval;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_trainer_interval_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_TRAINER_INTERVAL (gtorch_trainer_interval_get_type ())

G_END_DECLS
