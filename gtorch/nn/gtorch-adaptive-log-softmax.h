/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-size.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS \
  (gtorch_adaptive_log_softmax_with_loss_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchAdaptiveLogSoftmaxWithLoss, gtorch_adaptive_log_softmax_with_loss,
                      GTORCH, ADAPTIVE_LOG_SOFTMAX_WITH_LOSS, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchAdaptiveLogSoftmaxWithLoss *
gtorch_adaptive_log_softmax_with_loss_new (gint64 in_features, gint64 n_classes,
                                           GTorchSize *cutoffs,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_adaptive_log_softmax_with_loss_forward (GTorchAdaptiveLogSoftmaxWithLoss *self,
                                                        GTorchTensor *input, GTorchTensor *target,
                                                        GTorchTensor **output, GTorchTensor **loss,
                                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *
gtorch_adaptive_log_softmax_with_loss_log_prob (GTorchAdaptiveLogSoftmaxWithLoss *self,
                                                GTorchTensor *input,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_adaptive_log_softmax_with_loss_predict (GTorchAdaptiveLogSoftmaxWithLoss *self,
                                                             GTorchTensor *input, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
