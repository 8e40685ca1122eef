/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-loss.h"

#include "nn/gtorch-field-private.h"

/**
 * GTorchLoss:
 *
 * A module that measures the distance of an input from a target.
 *
 * Subclasses override `compute`.
 *
 * Since: 0.1
 */

typedef struct
{
  gint reduction;
} GTorchLossPrivate;

enum
{
  PROP_0,
  PROP_REDUCTION,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GTorchLoss, gtorch_loss, GTORCH_TYPE_MODULE)

static void
gtorch_loss_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  if (prop_id == PROP_REDUCTION)
    g_value_set_enum (value, gtorch_loss_get_reduction (GTORCH_LOSS (object)));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
}

static void
gtorch_loss_set_property (GObject *object, guint prop_id, const GValue *value, GParamSpec *pspec)
{
  GTorchLossPrivate *priv = gtorch_loss_get_instance_private (GTORCH_LOSS (object));

  if (prop_id == PROP_REDUCTION)
    {
      if (priv->reduction == g_value_get_enum (value))
        return;
      priv->reduction = g_value_get_enum (value);
      g_object_notify_by_pspec (object, pspec);
    }
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
}

static GTorchTensor *
gtorch_loss_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                          GError **error)
{
  GTorchLossClass *klass = GTORCH_LOSS_GET_CLASS (module);

  if (n_inputs == 2)
    return klass->compute != NULL
               ? klass->compute (GTORCH_LOSS (module), inputs[0], inputs[1], error)
               : NULL;
  return GTORCH_MODULE_CLASS (gtorch_loss_parent_class)
      ->forward_many (module, inputs, n_inputs, error);
}

static void
gtorch_loss_class_init (GTorchLossClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = gtorch_loss_get_property;
  object_class->set_property = gtorch_loss_set_property;
  GTORCH_MODULE_CLASS (klass)->forward_many = gtorch_loss_forward_many;

  /**
   * GTorchLoss:reduction: (getter get_reduction)
   *
   * How the losses of the elements are combined.
   *
   * Since: 0.1
   */
  props[PROP_REDUCTION] =
      g_param_spec_enum ("reduction", NULL, NULL, GTORCH_TYPE_REDUCTION, GTORCH_REDUCTION_MEAN,
                         G_PARAM_READWRITE | G_PARAM_CONSTRUCT | G_PARAM_STATIC_STRINGS
                             | G_PARAM_EXPLICIT_NOTIFY);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_loss_init (GTorchLoss *self)
{
  GTorchLossPrivate *priv = gtorch_loss_get_instance_private (self);

  priv->reduction = GTORCH_REDUCTION_MEAN; /* for enum values that GObject refuses */
}

/**
 * gtorch_loss_forward: (virtual compute)
 * @self: a loss
 * @input: the computed values
 * @target: the expected values
 * @error: return location for an error
 *
 * Computes the loss.
 *
 * Returns: (transfer full): the loss, or %NULL with the error of the operation
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_loss_forward (GTorchLoss *self, GTorchTensor *input, GTorchTensor *target, GError **error)
{
  GTorchTensor *inputs[] = { input, target };

  g_return_val_if_fail (GTORCH_IS_LOSS (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (target), NULL);

  return gtorch_module_call (GTORCH_MODULE (self), inputs, 2, error);
}

/**
 * gtorch_loss_get_reduction: (get-property reduction)
 * @self: a loss
 *
 * Gets how the losses of the elements are combined.
 *
 * Returns: the reduction
 *
 * Since: 0.1
 */
GTorchReduction
gtorch_loss_get_reduction (GTorchLoss *self)
{
  GTorchLossPrivate *priv;

  g_return_val_if_fail (GTORCH_IS_LOSS (self), GTORCH_REDUCTION_MEAN);
  priv = gtorch_loss_get_instance_private (self);
  return priv->reduction;
}
