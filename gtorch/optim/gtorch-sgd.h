/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SGD (gtorch_sgd_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchSGD, gtorch_sgd, GTORCH, SGD, GTorchOptimizer)

GTORCH_AVAILABLE_IN_0_1
GTorchSGD *gtorch_sgd_new (GListModel *params, gdouble learning_rate, gdouble momentum,
                           GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
