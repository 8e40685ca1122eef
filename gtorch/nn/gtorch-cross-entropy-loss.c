/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-cross-entropy-loss.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchCrossEntropyLoss:
 *
 * The cross entropy between scores, [N, C, …] or [C], and class indices or class probabilities.
 *
 * ```c
 * g_autoptr (GTorchCrossEntropyLoss) loss = gtorch_cross_entropy_loss_new (NULL, GTORCH_REDUCTION_MEAN);
 * g_autoptr (GTorchTensor) value = gtorch_loss_forward (GTORCH_LOSS (loss), scores, target, &error);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchCrossEntropyLoss
{
  GTorchLoss parent_instance;
  gint64 ignore_index;
  gdouble label_smoothing;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "weight", GTORCH_FIELD_BUFFER, 0, 0, TRUE },
  { "ignore-index", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchCrossEntropyLoss, ignore_index), -100, TRUE },
  { "label-smoothing", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchCrossEntropyLoss, label_smoothing), 0.0, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchCrossEntropyLoss, gtorch_cross_entropy_loss, GTORCH_TYPE_LOSS)

static GTorchTensor *
gtorch_cross_entropy_loss_compute (GTorchLoss *module, GTorchTensor *input, GTorchTensor *target,
                                   GError **error)
{
  GTorchCrossEntropyLoss *self = GTORCH_CROSS_ENTROPY_LOSS (module);
  return gtorch_tensor_wrap (
      gtorch_op_cross_entropy (gtorch_tensor_unwrap (input), gtorch_tensor_unwrap (target),
                               gtorch_module_buffer_impl (self, 0),
                               gtorch_loss_get_reduction (module), self->ignore_index,
                               self->label_smoothing, error));
}

static void
gtorch_cross_entropy_loss_class_init (GTorchCrossEntropyLossClass *klass)
{
  GTORCH_LOSS_CLASS (klass)->compute = gtorch_cross_entropy_loss_compute;

  /**
   * GTorchCrossEntropyLoss:weight:
   *
   * A weight for each class, or %NULL.
   *
   * Since: 0.1
   */

  /**
   * GTorchCrossEntropyLoss:ignore-index:
   *
   * A class whose elements do not count.
   *
   * Since: 0.1
   */

  /**
   * GTorchCrossEntropyLoss:label-smoothing:
   *
   * The share of the target that is spread over all classes.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_cross_entropy_loss_init (GTorchCrossEntropyLoss *self)
{
  gtorch_module_register_buffer (GTORCH_MODULE (self), "weight", NULL, TRUE, NULL);
}

/**
 * gtorch_cross_entropy_loss_new:
 * @weight: (nullable): a weight for each class, or %NULL
 * @reduction: what to make of the losses of the elements
 *
 * Makes a loss for scores of classes.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchCrossEntropyLoss *
gtorch_cross_entropy_loss_new (GTorchTensor *weight, GTorchReduction reduction)
{
  g_return_val_if_fail (weight == NULL || GTORCH_IS_TENSOR (weight), NULL);
  g_return_val_if_fail ((guint) reduction <= GTORCH_REDUCTION_SUM, NULL);
  return g_object_new (GTORCH_TYPE_CROSS_ENTROPY_LOSS, "weight", weight, "reduction", reduction,
                       NULL);
}
