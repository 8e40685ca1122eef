/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_ADAM   (gtorch_adam_get_type ())
#define GTORCH_TYPE_ADAM_W (gtorch_adam_w_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchAdam, gtorch_adam, GTORCH, ADAM, GTorchOptimizer)
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchAdamW, gtorch_adam_w, GTORCH, ADAM_W, GTorchAdam)

GTORCH_AVAILABLE_IN_0_1
GTorchAdam *gtorch_adam_new (GListModel *params, gdouble learning_rate,
                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchAdamW *gtorch_adam_w_new (GListModel *params, gdouble learning_rate, gdouble weight_decay,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
