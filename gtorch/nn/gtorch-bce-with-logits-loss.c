/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-bce-with-logits-loss.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchBCEWithLogitsLoss:
 *
 * The binary cross entropy between scores and probabilities of the same shape, computed without
 * overflow.
 *
 * Since: 0.1
 */

struct _GTorchBCEWithLogitsLoss
{
  GTorchLoss parent_instance;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "weight", GTORCH_FIELD_BUFFER, 0, 0, TRUE },
  { "pos-weight", GTORCH_FIELD_BUFFER, 1, 0, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchBCEWithLogitsLoss, gtorch_bce_with_logits_loss, GTORCH_TYPE_LOSS)

static GTorchTensor *
gtorch_bce_with_logits_loss_compute (GTorchLoss *module, GTorchTensor *input, GTorchTensor *target,
                                     GError **error)
{
  GTorchBCEWithLogitsLoss *self = GTORCH_BCE_WITH_LOGITS_LOSS (module);
  return gtorch_tensor_wrap (
      gtorch_op_binary_cross_entropy_with_logits (gtorch_tensor_unwrap (input),
                                                  gtorch_tensor_unwrap (target),
                                                  gtorch_module_buffer_impl (self, 0),
                                                  gtorch_module_buffer_impl (self, 1),
                                                  gtorch_loss_get_reduction (module), error));
}

static void
gtorch_bce_with_logits_loss_class_init (GTorchBCEWithLogitsLossClass *klass)
{
  GTORCH_LOSS_CLASS (klass)->compute = gtorch_bce_with_logits_loss_compute;

  /**
   * GTorchBCEWithLogitsLoss:weight:
   *
   * A weight for each element, or %NULL.
   *
   * Since: 0.1
   */

  /**
   * GTorchBCEWithLogitsLoss:pos-weight:
   *
   * A weight for the positive examples of each class, or %NULL.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_bce_with_logits_loss_init (GTorchBCEWithLogitsLoss *self)
{
  gtorch_module_register_buffer (GTORCH_MODULE (self), "weight", NULL, TRUE, NULL);
  gtorch_module_register_buffer (GTORCH_MODULE (self), "pos_weight", NULL, TRUE, NULL);
}

/**
 * gtorch_bce_with_logits_loss_new:
 * @weight: (nullable): a weight for each element, or %NULL
 * @pos_weight: (nullable): a weight for the positive examples, or %NULL
 * @reduction: what to make of the losses of the elements
 *
 * Makes a loss for scores of yes or no.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchBCEWithLogitsLoss *
gtorch_bce_with_logits_loss_new (GTorchTensor *weight, GTorchTensor *pos_weight,
                                 GTorchReduction reduction)
{
  g_return_val_if_fail (weight == NULL || GTORCH_IS_TENSOR (weight), NULL);
  g_return_val_if_fail (pos_weight == NULL || GTORCH_IS_TENSOR (pos_weight), NULL);
  g_return_val_if_fail ((guint) reduction <= GTORCH_REDUCTION_SUM, NULL);
  return g_object_new (GTORCH_TYPE_BCE_WITH_LOGITS_LOSS, "weight", weight, "pos-weight", pos_weight,
                       "reduction", reduction, NULL);
}
