/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

/**
 * GTorchAdjustLR:
 * @GTORCH_ADJUST_LR_ORIGINAL: by the root of the ratio of rows to columns, if that is greater than 1
 * @GTORCH_ADJUST_LR_MATCH_RMS_ADAMW: so that steps are as great as those of #GTorchAdamW
 * @GTORCH_ADJUST_LR_SPECTRAL_UNCLAMPED: by the root of the ratio of rows to columns
 *
 * How #GTorchMuon adapts the learning rate to the shape of a matrix.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_ADJUST_LR_ORIGINAL,
  GTORCH_ADJUST_LR_MATCH_RMS_ADAMW,
  GTORCH_ADJUST_LR_SPECTRAL_UNCLAMPED,
} GTorchAdjustLR;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_adjust_lr_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_ADJUST_LR (gtorch_adjust_lr_get_type ())

#define GTORCH_TYPE_MUON (gtorch_muon_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchMuon, gtorch_muon, GTORCH, MUON, GTorchOptimizer)

GTORCH_AVAILABLE_IN_0_1
GTorchMuon *gtorch_muon_new (GListModel *params, gdouble learning_rate, gdouble weight_decay,
                             GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
