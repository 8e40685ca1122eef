/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-lr-choices.h>
#include <gtorch/optim/gtorch-lr-scheduler.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SWALR (gtorch_swalr_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSWALR, gtorch_swalr, GTORCH, SWALR, GTorchLRScheduler)

GTORCH_AVAILABLE_IN_0_1
GTorchSWALR *gtorch_swalr_new (GTorchOptimizer *optimizer, const gdouble *swa_lrs, gsize n_swa_lrs,
                               gint64 anneal_epochs, GTorchAnnealStrategy anneal_strategy,
                               GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_swalr_set_swa_lrs (GTorchSWALR *self, const gdouble *swa_lrs, gsize n_swa_lrs);

G_END_DECLS
