/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/train/gtorch-metric.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_ACCURACY (gtorch_accuracy_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchAccuracy, gtorch_accuracy, GTORCH, ACCURACY, GTorchMetric)

GTORCH_AVAILABLE_IN_0_1
GTorchAccuracy *gtorch_accuracy_new (gint64 top_k) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
