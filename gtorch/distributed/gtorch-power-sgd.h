/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-grad-bucket.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_POWER_SGD (gtorch_power_sgd_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchPowerSGD, gtorch_power_sgd, GTORCH, POWER_SGD, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchPowerSGD *gtorch_power_sgd_new (guint matrix_approximation_rank, guint64 start_iteration,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_power_sgd_get_iteration (GTorchPowerSGD *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_power_sgd_average (GTorchPowerSGD *self, GTorchGradBucket *bucket,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
