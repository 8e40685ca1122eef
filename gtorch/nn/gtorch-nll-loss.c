/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-nll-loss.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchNLLLoss:
 *
 * The negative log likelihood of class indices, given logarithms of probabilities, [N, C, …] or [C].
 *
 * Since: 0.1
 */

struct _GTorchNLLLoss
{
  GTorchLoss parent_instance;
  gint64 ignore_index;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "weight", GTORCH_FIELD_BUFFER, 0, 0, TRUE },
  { "ignore-index", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchNLLLoss, ignore_index), -100, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchNLLLoss, gtorch_nll_loss, GTORCH_TYPE_LOSS)

static GTorchTensor *
gtorch_nll_loss_compute (GTorchLoss *module, GTorchTensor *input, GTorchTensor *target,
                         GError **error)
{
  GTorchNLLLoss *self = GTORCH_NLL_LOSS (module);
  return gtorch_tensor_wrap (
      gtorch_op_nll_loss (gtorch_tensor_unwrap (input), gtorch_tensor_unwrap (target),
                          gtorch_module_buffer_impl (self, 0), gtorch_loss_get_reduction (module),
                          self->ignore_index, error));
}

static void
gtorch_nll_loss_class_init (GTorchNLLLossClass *klass)
{
  GTORCH_LOSS_CLASS (klass)->compute = gtorch_nll_loss_compute;

  /**
   * GTorchNLLLoss:weight:
   *
   * A weight for each class, or %NULL.
   *
   * Since: 0.1
   */

  /**
   * GTorchNLLLoss:ignore-index:
   *
   * A class whose elements do not count.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_nll_loss_init (GTorchNLLLoss *self)
{
  gtorch_module_register_buffer (GTORCH_MODULE (self), "weight", NULL, TRUE, NULL);
}

/**
 * gtorch_nll_loss_new:
 * @weight: (nullable): a weight for each class, or %NULL
 * @reduction: what to make of the losses of the elements
 *
 * Makes a loss for logarithms of probabilities.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchNLLLoss *
gtorch_nll_loss_new (GTorchTensor *weight, GTorchReduction reduction)
{
  g_return_val_if_fail (weight == NULL || GTORCH_IS_TENSOR (weight), NULL);
  g_return_val_if_fail ((guint) reduction <= GTORCH_REDUCTION_SUM, NULL);
  return g_object_new (GTORCH_TYPE_NLL_LOSS, "weight", weight, "reduction", reduction, NULL);
}
