/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-loss.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CROSS_ENTROPY_LOSS (gtorch_cross_entropy_loss_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchCrossEntropyLoss, gtorch_cross_entropy_loss, GTORCH, CROSS_ENTROPY_LOSS,
                      GTorchLoss)

GTORCH_AVAILABLE_IN_0_1
GTorchCrossEntropyLoss *
gtorch_cross_entropy_loss_new (GTorchTensor *weight,
                               GTorchReduction reduction) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
