/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-callback-private.h"
#include "base/gtorch-field-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "optim/gtorch-setting-private.h"
#include "optim/gtorch-step-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-grad-mode.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "device/gtorch-object-list-private.h"
#include "gtorch-ops-private.h"
#include "base/gtorch-property-private.h"
#include "base/gtorch-references-private.h"
#include "tensor/gtorch-scope-private.h"
#include "nn/gtorch-spread-private.h"
#include "nn/gtorch-state-private.h"
#include "stream/gtorch-stream-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"
#include "nn/gtorch-module-private.h"
#include "tensor/gtorch-uninitialized-private.h"
#include "profiler/gtorch-profiler-private.h"

/**
 * GTorchOptimizer:
 *
 * Updates parameters by their gradients.
 *
 * Each group of parameters has all settings of its class, such as the momentum, for itself: a property of the
 * optimizer reads that of the first group, and sets it in all of them.
 *
 * A subclass, in any language, overrides `step_param`; it stores the state of a parameter with
 * [method@Optimizer.set_state], which is then part of the state dict.
 *
 * ```c
 * optimizer = GTORCH_OPTIMIZER (gtorch_adam_new (gtorch_module_get_parameters (model), 1e-3, &error));
 * gtorch_optimizer_zero_grad (optimizer, TRUE, &error);
 * gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
 * gtorch_optimizer_step (optimizer, &error);
 * ```
 *
 * Since: 0.1
 */
typedef struct
{
  GTorchObjectList *groups;
  GHashTable *states; /* GTorchTensor -> (name -> GTorchTensor) */
  gboolean capturable;
  gboolean was_captured;
  gboolean is_stepping;
  GTorchOptimizerRates rates;
  GTorchOptimizerShared shared;
  GPtrArray *
      /* the states that were created since the step has begun: alternating parameters and names, or
       * NULL */
      made;
} GTorchOptimizerPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GTorchOptimizer, gtorch_optimizer, G_TYPE_OBJECT)

#define PRIVATE(self) ((GTorchOptimizerPrivate *) gtorch_optimizer_get_instance_private (self))

/* Warns of a change of a setting that a graph has captured. The learning rate is read from memory. */
static void
gtorch_optimizer_notify (GObject *object, GParamSpec *pspec)
{
  GTorchOptimizerPrivate *priv = PRIVATE (GTORCH_OPTIMIZER (object));

  if (pspec->owner_type != GTORCH_TYPE_OPTIMIZER && priv->was_captured && !priv->rates.is_told)
    g_warning ("%s: a graph has captured steps with the former %s: its replays still "
               "use that",
               G_OBJECT_TYPE_NAME (object), pspec->name);
  if (G_OBJECT_CLASS (gtorch_optimizer_parent_class)->notify != NULL)
    G_OBJECT_CLASS (gtorch_optimizer_parent_class)->notify (object, pspec);
}

static void
gtorch_optimizer_finalize (GObject *object)
{
  GTorchOptimizerPrivate *priv = PRIVATE (GTORCH_OPTIMIZER (object));

  g_clear_object (&priv->groups);
  g_clear_pointer (&priv->states, g_hash_table_unref);
  if (priv->shared.destroy != NULL)
    priv->shared.destroy (priv->shared.data);
  G_OBJECT_CLASS (gtorch_optimizer_parent_class)->finalize (object);
}

typedef GTorchOptimizer Self;

static const GTorchField fields[] = {
  /**
   * GTorchOptimizer:capturable:
   *
   * Whether steps may be captured in a graph; see [method@Optimizer.set_capturable].
   *
   * Since: 0.1
   */
  { "capturable",
    GTORCH_PROPERTY_BOOL (gtorch_optimizer_get_capturable, gtorch_optimizer_set_capturable) },
  /**
   * GTorchOptimizer:learning-rate:
   *
   * The learning rate of the first group; setting it sets that of all groups. It can be bound to a
   * slider, and notifies whenever that of the first group changes. Without a group it is the default of
   * those that are added later in PyTorch's form.
   *
   * Since: 0.1
   */
  { "learning-rate",
    GTORCH_PROPERTY_DOUBLE (gtorch_optimizer_get_learning_rate, gtorch_optimizer_set_learning_rate),
    .value = GTORCH_DEFAULT_LEARNING_RATE },
  /**
   * GTorchOptimizer:param-groups:
   *
   * The groups of parameters, #GTorchParamGroup.
   *
   * Since: 0.1
   */
  { "param-groups", GTORCH_PROPERTY_OBJECT (GListModel, g_list_model_get_type,
                                            gtorch_optimizer_get_param_groups, NULL) },
};

static void
gtorch_optimizer_add_references (gpointer optimizer, GTorchReferences *references)
{
  GTorchOptimizerPrivate *priv = PRIVATE (GTORCH_OPTIMIZER (optimizer));
  GHashTableIter iter;
  gpointer param;

  gtorch_references_add_object (references, priv->groups);
  g_hash_table_iter_init (&iter, priv->states);
  while (g_hash_table_iter_next (&iter, &param, NULL))
    gtorch_references_add_object (references, param);
}

static GTorchReferencesType references_type = { .look = gtorch_optimizer_add_references };

static void
gtorch_optimizer_class_init (GTorchOptimizerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_optimizer_finalize;
  object_class->notify = gtorch_optimizer_notify;
  GTORCH_FIELDS (klass, fields);
  references_type.type = GTORCH_TYPE_OPTIMIZER;
  gtorch_references_add_type (&references_type);
}

GHashTable *
gtorch_optimizer_states_new (void)
{
  return g_hash_table_new_full (NULL, NULL, g_object_unref, (GDestroyNotify) g_hash_table_unref);
}

void
gtorch_optimizer_states_put (GHashTable *all, GTorchTensor *param, const gchar *name,
                             GTorchTensor *value)
{
  GHashTable *states = g_hash_table_lookup (all, param);

  if (states == NULL)
    {
      states = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
      g_object_ref (param);
      gtorch_references_lock ();
      g_hash_table_insert (all, param, states);
      gtorch_references_unlock ();
    }
  if (gtorch_spread != NULL)
    gtorch_spread->share (value, param);
  g_hash_table_insert (states, g_strdup (name), g_object_ref (value));
}

GHashTable *
gtorch_optimizer_get_states (GTorchOptimizer *self)
{
  return PRIVATE (self)->states;
}

void
gtorch_optimizer_take_states (GTorchOptimizer *self, GHashTable *states)
{
  GHashTable *former;

  gtorch_references_lock ();
  former = PRIVATE (self)->states;
  PRIVATE (self)->states = states;
  gtorch_references_unlock ();
  g_hash_table_unref (former);
}

static void
gtorch_optimizer_init (GTorchOptimizer *self)
{
  GTorchOptimizerPrivate *priv = PRIVATE (self);

  priv->groups = gtorch_object_list_new (GTORCH_TYPE_PARAM_GROUP);
  priv->states = gtorch_optimizer_states_new ();
}

GTorchOptimizerShared *
gtorch_optimizer_get_shared (GTorchOptimizer *self)
{
  return &PRIVATE (self)->shared;
}

/* Scalars of the host become constants of a graph. */
static gboolean
check_capture (GTorchOptimizer *self, GTorchParamGroup *group, GTorchTensor *param, GError **error)
{
  GTorchStream *stream = gtorch_current_stream (gtorch_tensor_get_device (param));

  if (G_LIKELY (stream == NULL || !gtorch_stream_is_capturing (stream)))
    return TRUE;
  if (!PRIVATE (self)->capturable && gtorch_step_becomes_capturable (self))
    gtorch_optimizer_set_capturable (self, TRUE);
  if (PRIVATE (self)->capturable)
    {
      PRIVATE (self)->was_captured = TRUE;
      gtorch_param_group_note_capture (group);
      return TRUE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("step: %s is not capturable: its learning-rate, %g, would stay the same in all "
                  "replays of the graph: set “capturable” first"),
               G_OBJECT_TYPE_NAME (self), gtorch_param_group_get_learning_rate (group));
  return FALSE;
}

gboolean
gtorch_optimizer_is_fused (GTorchOptimizer *self)
{
  return GTORCH_OPTIMIZER_GET_CLASS (self)->step_param == gtorch_optimizer_step_one;
}

static gboolean
step_each (GTorchOptimizer *self, GTorchParamGroup *group, GPtrArray *params, GPtrArray *grads,
           GError **error)
{
  GTorchOptimizerClass *klass = GTORCH_OPTIMIZER_GET_CLASS (self);
  guint i;

  for (i = 0; i < params->len; i++)
    {
      GError *failure = NULL;

      if (klass->step_param (self, group, params->pdata[i], grads->pdata[i], &failure)
          && failure == NULL)
        continue;
      if (failure == NULL) /* an exception of another language has no GError */
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("step: step_param of %s failed without saying why"),
                     G_OBJECT_TYPE_NAME (self));
      else
        g_propagate_error (error, failure);
      return FALSE;
    }
  return TRUE;
}

/* A failed step has no effect: the states that it has created are dropped, too. */
static void
end_step (GTorchOptimizer *self, gboolean ok)
{
  GTorchOptimizerPrivate *priv = PRIVATE (self);
  g_autoptr (GPtrArray) made = g_steal_pointer (&priv->made);
  guint i;

  priv->is_stepping = FALSE;
  for (i = 0; !ok && made != NULL && i < made->len; i += 2)
    gtorch_optimizer_set_state (self, made->pdata[i], made->pdata[i + 1], NULL);
}

/* All parameters have one device and dtype. */
static gboolean
step_together (GTorchOptimizer *self, GTorchParamGroup *group, GTorchTensor *const *params,
               GTorchTensor *const *grads, guint n, GTorchImpl *skip, GError **error)
{
  GTorchOptimStepParams step_params = GTORCH_OPTIMIZER_GET_CLASS (self)->step_params;
  GTorchDevice *device = gtorch_tensor_get_device (params[0]);
  GTorchOptimStep step = { .group = group, .params = params, .grads = grads, .n = n };
  g_autoptr (GTorchImpl) near =
      skip != NULL ? gtorch_op_to_device (skip, device, FALSE, error) : NULL;
  gboolean ok;

  step.skip = near;
  if ((skip != NULL && near == NULL)
      || !gtorch_optimizer_find_cell (self, group, params[0], &step.cell, error))
    return FALSE;
  PRIVATE (self)->is_stepping = TRUE;
  ok = step_params (self, &step, error);
  end_step (self, ok);
  return ok;
}

gboolean
gtorch_optimizer_step_one (GTorchOptimizer *self, GTorchParamGroup *group, GTorchTensor *param,
                           GTorchTensor *grad, GError **error)
{
  return step_together (self, group, &param, &grad, 1, NULL, error);
}

static gboolean
step_kinds (GTorchOptimizer *self, GTorchParamGroup *group, GPtrArray *params, GPtrArray *grads,
            GTorchImpl *skip, GError **error)
{
  guint n = params->len, n_left = n, i;
  g_autofree gpointer *rest = g_memdup2 (params->pdata, n * sizeof (gpointer));
  g_autofree gpointer *rest_grads = g_memdup2 (grads->pdata, n * sizeof (gpointer));
  g_autofree GTorchTensor **taken = g_new (GTorchTensor *, 2 * n);

  while (n_left > 0)
    {
      const GTorchImpl *first = gtorch_tensor_unwrap (rest[0]);
      guint n_taken = 0, n_kept = 0;

      for (i = 0; i < n_left; i++)
        {
          const GTorchImpl *impl = gtorch_tensor_unwrap (rest[i]);

          if (impl->dtype == first->dtype
              && gtorch_impl_device (impl) == gtorch_impl_device (first))
            {
              taken[n_taken] = rest[i];
              taken[n + n_taken++] = rest_grads[i];
            }
          else
            {
              rest[n_kept] = rest[i];
              rest_grads[n_kept++] = rest_grads[i];
            }
        }
      if (!step_together (self, group, taken, taken + n, n_taken, skip, error))
        return FALSE;
      n_left = n_kept;
    }
  return TRUE;
}

static gboolean
step_group (GTorchOptimizer *self, GTorchParamGroup *group, GTorchImpl *skip, GError **error)
{
  g_autoptr (GPtrArray) params = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) grads = g_ptr_array_new_with_free_func (g_object_unref);
  GListModel *items = gtorch_param_group_get_params (group);
  guint i, n = g_list_model_get_n_items (items);

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) param = g_list_model_get_item (items, i);
      GTorchTensor *grad = gtorch_tensor_get_grad (param);

      if (grad == NULL)
        continue;
      if (!gtorch_optimizer_owns (self, param))
        {
          g_object_unref (grad);
          continue;
        }
      g_ptr_array_add (grads, grad);
      g_ptr_array_add (params, g_steal_pointer (&param));
      if (!check_capture (self, group, params->pdata[params->len - 1], error))
        return FALSE;
    }
  if (params->len == 0)
    return TRUE;
  return gtorch_optimizer_is_fused (self) ? step_kinds (self, group, params, grads, skip, error)
                                          : step_each (self, group, params, grads, error);
}

static gboolean
has_params (GListModel *groups)
{
  const guint n = g_list_model_get_n_items (groups);
  gboolean found = FALSE;
  guint i;

  for (i = 0; i < n && !found; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      found = g_list_model_get_n_items (gtorch_param_group_get_params (group)) > 0;
    }
  return found;
}

static gboolean
step_groups (GTorchOptimizer *self, GTorchImpl *skip, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  GListModel *groups = G_LIST_MODEL (PRIVATE (self)->groups);
  guint i, n = g_list_model_get_n_items (groups);

  if (!has_params (groups))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are no parameters to optimize"), "step");
      return FALSE;
    }
  if (!gtorch_optimizer_check (self, error))
    return FALSE;
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      if (!step_group (self, group, skip, error))
        return FALSE;
    }
  return gtorch_optimizer_end_shared (self, error);
}

static GTorchProfileScope
begin_step_range (GTorchOptimizer *self)
{
  return gtorch_profile_scope_begin ("Optimizer.step#%s.step", self);
}

gboolean
gtorch_optimizer_step_unless (GTorchOptimizer *self, GTorchImpl *skip, GError **error)
{
  g_auto (GTorchProfileScope) scope = { 0 };

  g_return_val_if_fail (gtorch_optimizer_is_fused (self), FALSE);
  scope = begin_step_range (self);
  return step_groups (self, skip, error);
}

gpointer
gtorch_optimizer_start (gpointer self, const gchar *who, GListModel *params, gdouble learning_rate,
                        gdouble weight_decay, GError **error)
{
  g_autoptr (GTorchOptimizer) owned = self;
  g_autoptr (GTorchParamGroup) group =
      gtorch_param_group_new (params, learning_rate, weight_decay, error);

  if (group == NULL)
    return NULL;
  if (g_list_model_get_n_items (params) == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are no parameters to optimize"), who);
      return NULL;
    }
  if (!gtorch_optimizer_add_param_group (owned, group, error)
      || !gtorch_optimizer_check (owned, error))
    return NULL;
  gtorch_optimizer_set_default_rates (owned, learning_rate, weight_decay);
  return g_steal_pointer (&owned);
}

gboolean
gtorch_optimizer_check_plain (GTorchOptimizer *self, const gchar *who, GError **error)
{
  if (!PRIVATE (self)->capturable)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: capturable is true, but steps of this optimizer cannot be captured"), who);
  return FALSE;
}

/**
 * gtorch_optimizer_check:
 * @self: an optimizer
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
gtorch_optimizer_check (GTorchOptimizer *self, GError **error)
{
  const GTorchSettings *settings;
  GTorchOptimCheck check;
  GListModel *groups;
  gdouble numbers[GTORCH_SETTINGS_MAX];
  guint i;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), FALSE);
  settings = gtorch_settings_of (self);
  groups = G_LIST_MODEL (PRIVATE (self)->groups);
  for (i = 0; i < g_list_model_get_n_items (groups); i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      if (!gtorch_param_group_check (group, error)
          || !gtorch_param_group_check_numbers (group, self, error))
        return FALSE;
    }
  if (i == 0 && settings != NULL)
    {
      gtorch_optimizer_get_defaults (self, numbers);
      if (!gtorch_settings_check (settings, numbers, error))
        return FALSE;
    }
  check = (GTorchOptimCheck) GTORCH_OPTIMIZER_GET_CLASS (self)->check;
  return check == NULL || check (self, error);
}

static gboolean
step (GTorchOptimizer *self, GError **error)
{
  if (GTORCH_OPTIMIZER_GET_CLASS (self)->step_closure != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("step: %s needs a closure, which computes the loss and its gradients"),
                   G_OBJECT_TYPE_NAME (self));
      return FALSE;
    }
  if (GTORCH_OPTIMIZER_GET_CLASS (self)->step_param == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("step: %s does not override step_param"), G_OBJECT_TYPE_NAME (self));
      return FALSE;
    }
  return step_groups (self, NULL, error);
}

/**
 * gtorch_optimizer_step:
 * @self: an optimizer
 * @error: return location for an error
 *
 * Updates every parameter that has a gradient.
 *
 * If it fails, for example because of a lack of memory, the parameters of one group with the same device
 * and dtype have all changed, with their state, or none has; so with one group of one kind nothing has
 * changed.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_CAPTURE if the current stream captures a graph
 *   and the optimizer is not [property@Optimizer:capturable], %GTORCH_ERROR_INVALID for settings that
 *   [method@Optimizer.check] refuses, if there are no parameters, or if the class needs
 *   [method@Optimizer.step_closure]
 *
 * Since: 0.1
 */
gboolean
gtorch_optimizer_step (GTorchOptimizer *self, GError **error)
{
  g_auto (GTorchProfileScope) scope = { 0 };

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), FALSE);
  scope = begin_step_range (self);
  return step (self, error);
}

/**
 * gtorch_optimizer_step_closure:
 * @self: an optimizer
 * @closure: (scope call) (closure user_data): computes the loss and its gradients
 * @user_data: data for @closure
 * @error: return location for an error
 *
 * Calls @closure with the grad mode on, and updates the parameters by the gradients. @closure should drop the
 * former gradients, compute the loss, and call [method@Tensor.backward] on it.
 *
 * Most optimizers call it once. #GTorchLBFGS calls it several times in a step, with changed parameters; if it
 * fails then, the parameters remain as the last complete iteration has left them.
 *
 * Returns: (transfer full): the first loss, or %NULL with @error set: that of @closure, or those of
 *   [method@Optimizer.step]
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_optimizer_step_closure (GTorchOptimizer *self, GTorchOptimizerClosure closure,
                               gpointer user_data, GError **error)
{
  g_auto (GTorchProfileScope) scope = { 0 };
  GTorchOptimStepClosure own;
  g_autoptr (GTorchTensor) loss = NULL;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), NULL);
  g_return_val_if_fail (closure != NULL, NULL);
  scope = begin_step_range (self);
  own = (GTorchOptimStepClosure) GTORCH_OPTIMIZER_GET_CLASS (self)->step_closure;
  if (own != NULL)
    return gtorch_optimizer_check (self, error) ? own (self, closure, user_data, error) : NULL;
  loss = gtorch_optimizer_call_closure (self, closure, user_data, error);
  if (loss == NULL || !step (self, error))
    return NULL;
  return g_steal_pointer (&loss);
}

/* A state dict identifies parameters by their positions. */
GPtrArray *
gtorch_optimizer_dup_params (GTorchOptimizer *self)
{
  GPtrArray *params = g_ptr_array_new_with_free_func (g_object_unref);
  GListModel *groups = G_LIST_MODEL (PRIVATE (self)->groups);
  guint i, j;

  for (i = 0; i < g_list_model_get_n_items (groups); i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      GListModel *items = gtorch_param_group_get_params (group);

      for (j = 0; j < g_list_model_get_n_items (items); j++)
        g_ptr_array_add (params, g_list_model_get_item (items, j));
    }
  return params;
}

/**
 * gtorch_optimizer_zero_grad:
 * @self: an optimizer
 * @set_to_none: drop the gradients, which is faster, instead of filling them with zeros
 * @error: return location for an error
 *
 * Resets the gradients of all parameters.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_optimizer_zero_grad (GTorchOptimizer *self, gboolean set_to_none, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GPtrArray) params = NULL;
  g_auto (GTorchProfileScope) scope = { 0, GTORCH_RECORD_RANGE, NULL };

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), FALSE);
  scope = gtorch_profile_scope_begin ("Optimizer.zero_grad#%s.zero_grad", self);
  guard = gtorch_no_grad ();
  params = gtorch_optimizer_dup_params (self);
  return gtorch_zero_grads (params, set_to_none, error);
}

static gboolean
contains (GTorchOptimizer *self, gpointer param)
{
  GListModel *groups = G_LIST_MODEL (PRIVATE (self)->groups);
  guint i, j;

  for (i = 0; i < g_list_model_get_n_items (groups); i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      GListModel *params = gtorch_param_group_get_params (group);

      for (j = 0; j < g_list_model_get_n_items (params); j++)
        {
          g_autoptr (GObject) other = g_list_model_get_item (params, j);

          if ((gpointer) other == param)
            return TRUE;
        }
    }
  return FALSE;
}

/* The learning rate of the optimizer is that of its first group. */
void
gtorch_optimizer_notify_learning_rate (GTorchOptimizer *self)
{
  g_object_notify (G_OBJECT (self), "learning-rate");
}

GTorchOptimizerRates *
gtorch_optimizer_get_rates (GTorchOptimizer *self)
{
  return &PRIVATE (self)->rates;
}

/**
 * gtorch_optimizer_add_param_group:
 * @self: an optimizer
 * @group: a group
 * @error: return location for an error
 *
 * Adds parameters with their own settings. What the group was not given by
 * [method@ParamGroup.set_setting] it has from the optimizer, as [method@Optimizer.get_default] returns it;
 * the learning rate and the weight decay are always those of the group.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if a parameter is in a group already or belongs to a
 *   lazy layer that was not used yet, or if a setting of the group is invalid, %GTORCH_ERROR_NOT_FOUND if the
 *   optimizer has no such setting, or %GTORCH_ERROR_AUTOGRAD if a parameter is not a leaf
 *
 * Since: 0.1
 */
gboolean
gtorch_optimizer_add_param_group (GTorchOptimizer *self, GTorchParamGroup *group, GError **error)
{
  GListModel *params;
  gboolean is_first;
  gdouble former;
  guint i;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (group), FALSE);
  params = gtorch_param_group_get_params (group);
  for (i = 0; i < g_list_model_get_n_items (params); i++)
    {
      g_autoptr (GTorchTensor) param = g_list_model_get_item (params, i);

      if (gtorch_impl_is_uninitialized (gtorch_tensor_unwrap (param)))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("add_param_group: parameter %u %s"), i,
                       gtorch_impl_loss (gtorch_tensor_unwrap (param)));
          return FALSE;
        }
      if (!gtorch_tensor_is_leaf (param))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("add_param_group: parameter %u, of shape %s, is not a leaf"), i,
                       gtorch_impl_shape_str (gtorch_tensor_unwrap (param)));
          return FALSE;
        }
      if (contains (self, param))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("add_param_group: parameter %u, of shape %s, is in a group already"), i,
                       gtorch_impl_shape_str (gtorch_tensor_unwrap (param)));
          return FALSE;
        }
    }
  if (!gtorch_param_group_adopt (group, self, error))
    return FALSE;
  is_first = g_list_model_get_n_items (G_LIST_MODEL (PRIVATE (self)->groups)) == 0;
  if (is_first)
    {
      g_signal_connect_object (group, "notify::learning-rate",
                               G_CALLBACK (gtorch_optimizer_notify_learning_rate), self,
                               G_CONNECT_SWAPPED);
      g_signal_connect_object (group, "setting-changed", G_CALLBACK (gtorch_optimizer_follow), self,
                               G_CONNECT_SWAPPED);
    }
  if (is_first && gtorch_settings_of (self) != NULL)
    gtorch_param_group_get_numbers (group, self, PRIVATE (self)->rates.shown);
  former = gtorch_optimizer_get_learning_rate (self);
  gtorch_object_list_append (PRIVATE (self)->groups, group);
  if (is_first && gtorch_param_group_get_learning_rate (group) != former)
    gtorch_optimizer_notify_learning_rate (self);
  return TRUE;
}

/**
 * gtorch_optimizer_get_param_groups:
 * @self: an optimizer
 *
 * Gets the groups of parameters.
 *
 * Returns: (transfer none): a list of #GTorchParamGroup
 *
 * Since: 0.1
 */
GListModel *
gtorch_optimizer_get_param_groups (GTorchOptimizer *self)
{
  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), NULL);
  return G_LIST_MODEL (PRIVATE (self)->groups);
}

/**
 * gtorch_optimizer_get_learning_rate:
 * @self: an optimizer
 *
 * Gets the learning rate of the first group.
 *
 * Returns: the learning rate; if there is no group, the one that was set for later groups, or the default of
 *   the class
 *
 * Since: 0.1
 */
gdouble
gtorch_optimizer_get_learning_rate (GTorchOptimizer *self)
{
  g_autoptr (GTorchParamGroup) group = NULL;
  const GTorchSettings *settings;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), 0);
  group = g_list_model_get_item (G_LIST_MODEL (PRIVATE (self)->groups), 0);
  if (group != NULL)
    return gtorch_param_group_get_learning_rate (group);
  if (PRIVATE (self)->rates.has_rate)
    return PRIVATE (self)->rates.learning_rate;
  settings = gtorch_settings_of (self);
  return settings != NULL ? settings->numbers[0].value : GTORCH_DEFAULT_LEARNING_RATE;
}

/**
 * gtorch_optimizer_set_learning_rate:
 * @self: an optimizer
 * @learning_rate: the step size, not negative
 *
 * Sets the learning rate of all groups, from the next step on, and the default of those that are added later
 * by PyTorch's form, `{params: …}`, in Python and JavaScript.
 *
 * Since: 0.1
 */
void
gtorch_optimizer_set_learning_rate (GTorchOptimizer *self, gdouble learning_rate)
{
  GListModel *groups;
  gdouble former;
  guint i, n;

  g_return_if_fail (GTORCH_IS_OPTIMIZER (self));
  former = gtorch_optimizer_get_learning_rate (self);
  PRIVATE (self)->rates.learning_rate = learning_rate;
  PRIVATE (self)->rates.has_rate = TRUE;
  groups = G_LIST_MODEL (PRIVATE (self)->groups);
  n = g_list_model_get_n_items (groups);
  g_object_freeze_notify (G_OBJECT (self)); /* until all groups have it */
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      gtorch_param_group_set_learning_rate (group, learning_rate);
    }
  if (n == 0 && former != learning_rate)
    gtorch_optimizer_notify_learning_rate (self);
  g_object_thaw_notify (G_OBJECT (self));
}

/**
 * gtorch_optimizer_get_capturable:
 * @self: an optimizer
 *
 * Tells whether steps may be captured in a graph.
 *
 * Returns: %TRUE if so; %FALSE at first
 *
 * Since: 0.1
 */
gboolean
gtorch_optimizer_get_capturable (GTorchOptimizer *self)
{
  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), FALSE);
  return PRIVATE (self)->capturable;
}

/**
 * gtorch_optimizer_set_capturable:
 * @self: an optimizer
 * @capturable: whether steps may be captured
 *
 * Makes steps read the learning rate and the step count from device memory, so that replays of a captured
 * step behave like successive steps: the count increases, and a new learning rate takes effect at the
 * next replay. The other settings become constants of the graph; changing one afterwards causes a
 * warning.
 *
 * ```c
 * gtorch_optimizer_set_capturable (optimizer, TRUE); // Adam; SGD becomes capturable in the capture
 * capture = gtorch_graph_capture_new (graph, NULL, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
 * loss = train (model, input, target, optimizer); // forward, backward, gtorch_optimizer_step ()
 * gtorch_graph_capture_end (capture, &error);
 * for (i = 0; i < n; i++)
 *   {
 *     gtorch_tensor_copy_inplace (input, batches[i], FALSE, &error);
 *     gtorch_cuda_graph_replay (graph, &error);
 *     gtorch_optimizer_set_learning_rate (optimizer, rates[i]);
 *   }
 * ```
 *
 * [class@SGD] and [class@Adagrad], whose steps PyTorch captures without a setting, become capturable by their
 * first step in a capture, unless a subclass has a `step_param` of its own.
 *
 * A subclass that sets this promises that its `step_param` uses tensors for all values that change from
 * step to step.
 *
 * Since: 0.1
 */
void
gtorch_optimizer_set_capturable (GTorchOptimizer *self, gboolean capturable)
{
  g_return_if_fail (GTORCH_IS_OPTIMIZER (self));
  capturable = capturable != FALSE;
  if (PRIVATE (self)->capturable == capturable)
    return;
  PRIVATE (self)->capturable = capturable;
  g_object_notify (G_OBJECT (self), "capturable");
}

gboolean
gtorch_optimizer_find_cell (GTorchOptimizer *self, GTorchParamGroup *group, GTorchTensor *param,
                            GTorchImpl **cell, GError **error)
{
  GTorchTensor *tensor;

  *cell = NULL;
  if (!PRIVATE (self)->capturable)
    return TRUE;
  tensor = gtorch_param_group_get_cell (group, gtorch_tensor_get_device (param), error);
  if (tensor == NULL)
    return FALSE;
  *cell = gtorch_tensor_unwrap (tensor);
  return TRUE;
}

/**
 * gtorch_optimizer_get_state:
 * @self: an optimizer
 * @param: a parameter
 * @name: the name of a state, such as `exp_avg`
 *
 * Gets a state of @param.
 *
 * Returns: (transfer none) (nullable): the tensor, or %NULL
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_optimizer_get_state (GTorchOptimizer *self, GTorchTensor *param, const gchar *name)
{
  GHashTable *states;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (param), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  states = g_hash_table_lookup (PRIVATE (self)->states, param);
  return states != NULL ? g_hash_table_lookup (states, name) : NULL;
}

/**
 * gtorch_optimizer_get_state_names:
 * @self: an optimizer
 * @param: a parameter
 *
 * Gets the names of the states that @param has.
 *
 * Returns: (transfer full) (array zero-terminated=1): the names, sorted
 *
 * Since: 0.1
 */
gchar **
gtorch_optimizer_get_state_names (GTorchOptimizer *self, GTorchTensor *param)
{
  GHashTable *states;
  GList *names = NULL, *item;
  gchar **found;
  guint i = 0;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (param), NULL);
  states = g_hash_table_lookup (PRIVATE (self)->states, param);
  if (states != NULL)
    names = g_list_sort (g_hash_table_get_keys (states), (GCompareFunc) strcmp);
  found = g_new0 (gchar *, g_list_length (names) + 1);
  for (item = names; item != NULL; item = item->next)
    found[i++] = g_strdup (item->data);
  g_list_free (names);
  return found;
}

/**
 * gtorch_optimizer_set_state:
 * @self: an optimizer
 * @param: a parameter
 * @name: the name of a state
 * @value: (nullable): the tensor, or %NULL to remove it
 *
 * Stores a state of @param, as part of the state dict.
 *
 * Since: 0.1
 */
void
gtorch_optimizer_set_state (GTorchOptimizer *self, GTorchTensor *param, const gchar *name,
                            GTorchTensor *value)
{
  GTorchOptimizerPrivate *priv;
  GHashTable *states;

  g_return_if_fail (GTORCH_IS_OPTIMIZER (self));
  g_return_if_fail (GTORCH_IS_TENSOR (param));
  g_return_if_fail (name != NULL && g_utf8_validate (name, -1, NULL));
  g_return_if_fail (value == NULL || GTORCH_IS_TENSOR (value));
  priv = PRIVATE (self);
  states = g_hash_table_lookup (priv->states, param);
  if (value != NULL)
    {
      if (priv->is_stepping && (states == NULL || !g_hash_table_contains (states, name)))
        {
          if (priv->made == NULL)
            priv->made = g_ptr_array_new ();
          g_ptr_array_add (priv->made, param); /* the step has a reference to it */
          g_ptr_array_add (priv->made, (gpointer) g_intern_string (name));
        }
      gtorch_scope_exempt (value);
      gtorch_optimizer_states_put (priv->states, param, name, value);
    }
  else if (states != NULL)
    g_hash_table_remove (states, name);
}
