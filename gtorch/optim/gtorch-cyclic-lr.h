/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-lambda-lr.h>
#include <gtorch/optim/gtorch-lr-choices.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CYCLIC_LR (gtorch_cyclic_lr_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchCyclicLR, gtorch_cyclic_lr, GTORCH, CYCLIC_LR, GTorchLRScheduler)

GTORCH_AVAILABLE_IN_0_1
GTorchCyclicLR *gtorch_cyclic_lr_new (GTorchOptimizer *optimizer, const gdouble *base_lrs,
                                      gsize n_base_lrs, const gdouble *max_lrs, gsize n_max_lrs,
                                      gdouble step_size_up, GTorchCyclicMode mode,
                                      gboolean cycle_momentum,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_cyclic_lr_set_rates (GTorchCyclicLR *self, const gdouble *base_lrs, gsize n_base_lrs,
                                 const gdouble *max_lrs, gsize n_max_lrs);
GTORCH_AVAILABLE_IN_0_1
void gtorch_cyclic_lr_set_scale_fn (GTorchCyclicLR *self, GTorchLRFunc scale_fn, gpointer user_data,
                                    GDestroyNotify destroy);

G_END_DECLS
