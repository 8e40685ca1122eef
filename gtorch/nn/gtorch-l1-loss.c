/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-l1-loss.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchL1Loss:
 *
 * The absolute difference of input and target.
 *
 * Since: 0.1
 */

struct _GTorchL1Loss
{
  GTorchLoss parent_instance;
};

G_DEFINE_TYPE (GTorchL1Loss, gtorch_l1_loss, GTORCH_TYPE_LOSS)

static GTorchTensor *
gtorch_l1_loss_compute (GTorchLoss *module, GTorchTensor *input, GTorchTensor *target,
                        GError **error)
{
  return gtorch_tensor_wrap (gtorch_op_l1_loss (gtorch_tensor_unwrap (input),
                                                gtorch_tensor_unwrap (target),
                                                gtorch_loss_get_reduction (module), error));
}

static void
gtorch_l1_loss_class_init (GTorchL1LossClass *klass)
{
  GTORCH_LOSS_CLASS (klass)->compute = gtorch_l1_loss_compute;
}

static void
gtorch_l1_loss_init (GTorchL1Loss *self)
{
}

/**
 * gtorch_l1_loss_new:
 * @reduction: what to make of the losses of the elements
 *
 * Makes a loss. The absolute difference of input and target.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchL1Loss *
gtorch_l1_loss_new (GTorchReduction reduction)
{
  g_return_val_if_fail ((guint) reduction <= GTORCH_REDUCTION_SUM, NULL);
  return g_object_new (GTORCH_TYPE_L1_LOSS, "reduction", reduction, NULL);
}
