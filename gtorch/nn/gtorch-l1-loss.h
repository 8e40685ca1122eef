/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-loss.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_L1_LOSS (gtorch_l1_loss_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchL1Loss, gtorch_l1_loss, GTORCH, L1_LOSS, GTorchLoss)

GTORCH_AVAILABLE_IN_0_1
GTorchL1Loss *gtorch_l1_loss_new (GTorchReduction reduction) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
