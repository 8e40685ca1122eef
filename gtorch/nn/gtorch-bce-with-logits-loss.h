/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-loss.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_BCE_WITH_LOGITS_LOSS (gtorch_bce_with_logits_loss_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchBCEWithLogitsLoss, gtorch_bce_with_logits_loss, GTORCH,
                      BCE_WITH_LOGITS_LOSS, GTorchLoss)

GTORCH_AVAILABLE_IN_0_1
GTorchBCEWithLogitsLoss *
gtorch_bce_with_logits_loss_new (GTorchTensor *weight, GTorchTensor *pos_weight,
                                 GTorchReduction reduction) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
