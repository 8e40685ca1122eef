/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_ADAFACTOR (gtorch_adafactor_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchAdafactor, gtorch_adafactor, GTORCH, ADAFACTOR, GTorchOptimizer)

GTORCH_AVAILABLE_IN_0_1
GTorchAdafactor *gtorch_adafactor_new (GListModel *params, gdouble learning_rate,
                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
