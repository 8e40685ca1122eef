/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-lr-choices.h>
#include <gtorch/optim/gtorch-lr-scheduler.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_ONE_CYCLE_LR (gtorch_one_cycle_lr_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchOneCycleLR, gtorch_one_cycle_lr, GTORCH, ONE_CYCLE_LR,
                      GTorchLRScheduler)

GTORCH_AVAILABLE_IN_0_1
GTorchOneCycleLR *gtorch_one_cycle_lr_new (GTorchOptimizer *optimizer, const gdouble *max_lrs,
                                           gsize n_max_lrs, gint64 total_steps,
                                           gboolean cycle_momentum,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_one_cycle_lr_set_max_lrs (GTorchOneCycleLR *self, const gdouble *max_lrs,
                                      gsize n_max_lrs);

G_END_DECLS
