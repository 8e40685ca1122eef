/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-size.h>
#include <gtorch/optim/gtorch-lr-scheduler.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SEQUENTIAL_LR (gtorch_sequential_lr_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSequentialLR, gtorch_sequential_lr, GTORCH, SEQUENTIAL_LR,
                      GTorchLRScheduler)

GTORCH_AVAILABLE_IN_0_1
GTorchSequentialLR *gtorch_sequential_lr_new (GTorchOptimizer *optimizer, GListModel *schedulers,
                                              GTorchSize *milestones,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_sequential_lr_get_schedulers (GTorchSequentialLR *self);

G_END_DECLS
