/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-lr-choices.h>
#include <gtorch/optim/gtorch-lr-scheduler.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_REDUCE_LR_ON_PLATEAU (gtorch_reduce_lr_on_plateau_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchReduceLROnPlateau, gtorch_reduce_lr_on_plateau, GTORCH,
                      REDUCE_LR_ON_PLATEAU, GTorchLRScheduler)

GTORCH_AVAILABLE_IN_0_1
GTorchReduceLROnPlateau *gtorch_reduce_lr_on_plateau_new (GTorchOptimizer *optimizer,
                                                          GTorchPlateauMode mode, gdouble factor,
                                                          gint64 patience,
                                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_reduce_lr_on_plateau_set_min_lrs (GTorchReduceLROnPlateau *self, const gdouble *min_lrs,
                                              gsize n_min_lrs);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_reduce_lr_on_plateau_step_metric (GTorchReduceLROnPlateau *self, gdouble metric,
                                                  GError **error);

G_END_DECLS
