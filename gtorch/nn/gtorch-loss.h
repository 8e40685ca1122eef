/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-enums.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_LOSS (gtorch_loss_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchLoss, gtorch_loss, GTORCH, LOSS, GTorchModule)

/**
 * GTorchLossClass:
 * @parent_class: the parent class
 * @compute: computes the loss of an input for a target
 *
 * The virtual functions of a loss.
 *
 * Since: 0.1
 */
struct _GTorchLossClass
{
  GTorchModuleClass parent_class;

  GTorchTensor *(*compute) (GTorchLoss *self, GTorchTensor *input, GTorchTensor *target,
                            GError **error);

  /*< private >*/
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_loss_forward (GTorchLoss *self, GTorchTensor *input, GTorchTensor *target,
                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchReduction gtorch_loss_get_reduction (GTorchLoss *self);

G_END_DECLS
