/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/train/gtorch-metric.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MEAN_SQUARED_ERROR (gtorch_mean_squared_error_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchMeanSquaredError, gtorch_mean_squared_error, GTORCH, MEAN_SQUARED_ERROR,
                      GTorchMetric)

GTORCH_AVAILABLE_IN_0_1
GTorchMeanSquaredError *gtorch_mean_squared_error_new (gboolean squared) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
