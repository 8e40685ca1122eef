/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-loss.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_NLL_LOSS (gtorch_nll_loss_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchNLLLoss, gtorch_nll_loss, GTORCH, NLL_LOSS, GTorchLoss)

GTORCH_AVAILABLE_IN_0_1
GTorchNLLLoss *gtorch_nll_loss_new (GTorchTensor *weight,
                                    GTorchReduction reduction) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
