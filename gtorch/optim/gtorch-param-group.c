/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-param-group.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-field-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "optim/gtorch-param-group-private.h"
#include "base/gtorch-references-private.h"
#include "tensor/gtorch-scope-private.h"
#include "base/gtorch-property-private.h"

/**
 * GTorchParamGroup:
 *
 * Parameters that share a learning rate, a weight decay, and all other settings of their optimizer.
 *
 * The properties notify and can be bound, for example to a slider. The other settings have PyTorch's names,
 * and are read and written by [method@ParamGroup.get_setting] and [method@ParamGroup.set_setting].
 *
 * Since: 0.1
 */
G_DEFINE_TYPE (GTorchParamGroup, gtorch_param_group, G_TYPE_OBJECT)

static void
gtorch_param_group_finalize (GObject *object)
{
  g_object_unref (GTORCH_PARAM_GROUP (object)->params);
  g_ptr_array_unref (GTORCH_PARAM_GROUP (object)->cells);
  g_ptr_array_unref (GTORCH_PARAM_GROUP (object)->names);
  g_ptr_array_unref (GTORCH_PARAM_GROUP (object)->values);
  G_OBJECT_CLASS (gtorch_param_group_parent_class)->finalize (object);
}

typedef GTorchParamGroup Self;

static const GTorchField fields[] = {
  /**
   * GTorchParamGroup:params:
   *
   * The parameters, tensors that require grad.
   *
   * Since: 0.1
   */
  { "params", GTORCH_PROPERTY_OBJECT (GListModel, g_list_model_get_type,
                                      gtorch_param_group_get_params, NULL) },
  /**
   * GTorchParamGroup:initial-learning-rate:
   *
   * The initial learning rate of a [class@LRScheduler]; negative before there was one.
   *
   * Since: 0.1
   */
  { "initial-learning-rate",
    GTORCH_PROPERTY_DOUBLE (gtorch_param_group_get_initial_learning_rate,
                            gtorch_param_group_set_initial_learning_rate),
    .low = -1, .high = INFINITY, .value = -1 },
  /**
   * GTorchParamGroup:learning-rate:
   *
   * The step size.
   *
   * Since: 0.1
   */
  { "learning-rate",
    GTORCH_PROPERTY_DOUBLE (gtorch_param_group_get_learning_rate,
                            gtorch_param_group_set_learning_rate),
    .value = GTORCH_DEFAULT_LEARNING_RATE },
  /**
   * GTorchParamGroup:weight-decay:
   *
   * The strength of the weight decay.
   *
   * Since: 0.1
   */
  { "weight-decay", GTORCH_PROPERTY_DOUBLE (gtorch_param_group_get_weight_decay,
                                            gtorch_param_group_set_weight_decay) },
};

static void
gtorch_param_group_add_references (gpointer group, GTorchReferences *references)
{
  gtorch_references_add_object (references, GTORCH_PARAM_GROUP (group)->params);
}

static GTorchReferencesType references_type = { .look = gtorch_param_group_add_references };

static void
gtorch_param_group_class_init (GTorchParamGroupClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_param_group_finalize;
  GTORCH_FIELDS (klass, fields);

  /**
   * GTorchParamGroup::setting-changed:
   * @self: the group
   * @name: the name of the setting
   *
   * A setting that is no property has changed, such as `betas`.
   *
   * Since: 0.1
   */
  g_signal_new ("setting-changed", GTORCH_TYPE_PARAM_GROUP, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                G_TYPE_NONE, 1, G_TYPE_STRING);
  references_type.type = GTORCH_TYPE_PARAM_GROUP;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_param_group_init (GTorchParamGroup *self)
{
  self->params = gtorch_object_list_new (GTORCH_TYPE_TENSOR);
  self->cells = g_ptr_array_new_with_free_func (g_object_unref);
  self->names = g_ptr_array_new_with_free_func (g_free);
  self->values = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  self->learning_rate = GTORCH_DEFAULT_LEARNING_RATE;
  self->initial_learning_rate = -1;
}

/**
 * gtorch_param_group_check:
 * @self: a group
 * @error: return location for an error
 *
 * Tells whether a step can be made with the present settings. Properties accept any number; this function
 * and [method@Optimizer.step] report an invalid one.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
gboolean
gtorch_param_group_check (GTorchParamGroup *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (self), FALSE);
  return gtorch_check_range ("param_group", N_ ("the learning rate"), self->learning_rate, 0,
                             G_MAXDOUBLE, FALSE, error)
         && gtorch_check_range ("param_group", N_ ("the weight decay"), self->weight_decay, 0,
                                G_MAXDOUBLE, FALSE, error);
}

/**
 * gtorch_param_group_new:
 * @params: a list of tensors, such as the result of [method@Module.get_parameters]
 * @learning_rate: the step size, not negative
 * @weight_decay: the strength of the weight decay, not negative
 * @error: return location for an error
 *
 * Creates a group of the parameters that are in @params now.
 *
 * Returns: (transfer full): the group, or %NULL with %GTORCH_ERROR_INVALID if a value is negative or not
 *   finite, or @params contains something else than tensors, or a tensor twice
 *
 * Since: 0.1
 */
GTorchParamGroup *
gtorch_param_group_new (GListModel *params, gdouble learning_rate, gdouble weight_decay,
                        GError **error)
{
  g_autoptr (GHashTable) seen = NULL; /* of parameters */
  g_autoptr (GTorchParamGroup) self = NULL;
  guint i, n;

  g_return_val_if_fail (G_IS_LIST_MODEL (params), NULL);
  seen = g_hash_table_new (NULL, NULL);
  self = g_object_new (GTORCH_TYPE_PARAM_GROUP, NULL);
  self->learning_rate = learning_rate;
  self->weight_decay = weight_decay;
  if (!gtorch_param_group_check (self, error))
    return NULL;
  n = g_list_model_get_n_items (params);
  for (i = 0; i < n; i++)
    {
      g_autoptr (GObject) item = g_list_model_get_item (params, i);

      if (!GTORCH_IS_TENSOR (item))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("param_group: item %u is a %s, not a tensor"), i,
                       G_OBJECT_TYPE_NAME (item));
          return NULL;
        }
      if (!g_hash_table_add (seen, item))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("param_group: item %u is in the list already, and would be changed twice "
                          "by each step"),
                       i);
          return NULL;
        }
      gtorch_object_list_append (self->params, item);
    }
  return g_steal_pointer (&self);
}

/**
 * gtorch_param_group_get_params:
 * @self: a group
 *
 * Gets the parameters.
 *
 * Returns: (transfer none): a list of #GTorchTensor
 *
 * Since: 0.1
 */
GListModel *
gtorch_param_group_get_params (GTorchParamGroup *self)
{
  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (self), NULL);
  return G_LIST_MODEL (self->params);
}

/**
 * gtorch_param_group_get_learning_rate:
 * @self: a group
 *
 * Gets the learning rate.
 *
 * Returns: the learning rate
 *
 * Since: 0.1
 */
gdouble
gtorch_param_group_get_learning_rate (GTorchParamGroup *self)
{
  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (self), 0);
  return self->learning_rate;
}

/**
 * gtorch_param_group_set_learning_rate:
 * @self: a group
 * @learning_rate: the step size
 *
 * Sets the learning rate from the next step on, which fails if the number is negative or not finite; also
 * in graphs that have captured steps of a [property@Optimizer:capturable] optimizer: they read it from
 * memory, which is written on the current stream. That stream must wait for pending replays on other
 * streams, and later replays must wait for it.
 *
 * Since: 0.1
 */
void
gtorch_param_group_set_learning_rate (GTorchParamGroup *self, gdouble learning_rate)
{
  guint i;

  g_return_if_fail (GTORCH_IS_PARAM_GROUP (self));
  if (!gtorch_property_set_double (&self->learning_rate, learning_rate))
    return;
  for (i = 0; i < self->cells->len; i++)
    {
      g_autoptr (GError) error = NULL;

      if (!gtorch_optim_fill (self->cells->pdata[i], learning_rate, &error))
        g_warning ("param_group: the learning rate of captured steps stays as it was: %s",
                   error->message);
    }
  g_object_notify (G_OBJECT (self), "learning-rate");
}

/**
 * gtorch_param_group_get_initial_learning_rate:
 * @self: a group
 *
 * Gets the initial learning rate of a schedule.
 *
 * Returns: the learning rate; negative if there was no schedule yet
 *
 * Since: 0.1
 */
gdouble
gtorch_param_group_get_initial_learning_rate (GTorchParamGroup *self)
{
  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (self), 0);
  return self->initial_learning_rate;
}

/**
 * gtorch_param_group_set_initial_learning_rate:
 * @self: a group
 * @learning_rate: the learning rate of the first epoch; a negative number for none
 *
 * Sets the initial learning rate of schedules that are created from now on; by default it is the learning
 * rate of the group when the first one is created.
 *
 * Since: 0.1
 */
void
gtorch_param_group_set_initial_learning_rate (GTorchParamGroup *self, gdouble learning_rate)
{
  g_return_if_fail (GTORCH_IS_PARAM_GROUP (self));
  if (!(learning_rate >= 0))
    learning_rate = -1;
  if (!gtorch_property_set_double (&self->initial_learning_rate, learning_rate))
    return;
  g_object_notify (G_OBJECT (self), "initial-learning-rate");
}

/**
 * gtorch_param_group_get_weight_decay:
 * @self: a group
 *
 * Gets the weight decay.
 *
 * Returns: the weight decay
 *
 * Since: 0.1
 */
gdouble
gtorch_param_group_get_weight_decay (GTorchParamGroup *self)
{
  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (self), 0);
  return self->weight_decay;
}

/**
 * gtorch_param_group_set_weight_decay:
 * @self: a group
 * @weight_decay: the strength of the weight decay
 *
 * Sets the weight decay from the next step on, which fails if the number is negative or not finite.
 *
 * Since: 0.1
 */
void
gtorch_param_group_set_weight_decay (GTorchParamGroup *self, gdouble weight_decay)
{
  g_return_if_fail (GTORCH_IS_PARAM_GROUP (self));
  if (!gtorch_property_set_double (&self->weight_decay, weight_decay))
    return;
  if (self->was_captured)
    g_warning ("param_group: a graph has captured steps with the former weight-decay: "
               "its replays still use that");
  g_object_notify (G_OBJECT (self), "weight-decay");
}

GTorchTensor *
gtorch_param_group_get_cell (GTorchParamGroup *self, GTorchDevice *device, GError **error)
{
  GTorchTensor *cell;
  guint i;

  for (i = 0; i < self->cells->len; i++)
    if (gtorch_tensor_get_device (self->cells->pdata[i]) == device)
      return self->cells->pdata[i];
  cell = gtorch_optim_new_filled (NULL, device, self->learning_rate, error);
  if (cell == NULL)
    return NULL;
  gtorch_scope_exempt (cell);
  g_ptr_array_add (self->cells, cell);
  return cell;
}

void
gtorch_param_group_note_capture (GTorchParamGroup *self)
{
  self->was_captured = TRUE;
}
