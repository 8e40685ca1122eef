/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/train/gtorch-metric.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CONFUSION_MATRIX (gtorch_confusion_matrix_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchConfusionMatrix, gtorch_confusion_matrix, GTORCH, CONFUSION_MATRIX,
                      GTorchMetric)

GTORCH_AVAILABLE_IN_0_1
GTorchConfusionMatrix *gtorch_confusion_matrix_new (gint64 num_classes) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
