/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-lr-scheduler.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CHAINED_SCHEDULER (gtorch_chained_scheduler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchChainedScheduler, gtorch_chained_scheduler, GTORCH, CHAINED_SCHEDULER,
                      GTorchLRScheduler)

GTORCH_AVAILABLE_IN_0_1
GTorchChainedScheduler *gtorch_chained_scheduler_new (GListModel *schedulers,
                                                      GTorchOptimizer *optimizer,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_chained_scheduler_get_schedulers (GTorchChainedScheduler *self);

G_END_DECLS
