/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The hooks of a module, around its forward. */

#include "config.h"

#include "nn/gtorch-module-hooks.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-callback-private.h"
#include "nn/gtorch-module-private.h"
#include "base/gtorch-references-private.h"

GTorchModuleHook *
gtorch_module_hook_ref (GTorchModuleHook *hook)
{
  g_atomic_int_inc (&hook->ref_count);
  return hook;
}

void
gtorch_module_hook_unref (gpointer data)
{
  GTorchModuleHook *hook = data;

  if (!g_atomic_int_dec_and_test (&hook->ref_count))
    return;
  if (hook->destroy != NULL)
    hook->destroy (hook->user_data);
  g_free (hook);
}

GTorchModuleHook *
gtorch_module_hook_new (GTorchModuleHookKind kind, gboolean always_call, GCallback func,
                        gpointer user_data, GDestroyNotify destroy)
{
  static guint64 last_id;
  GTorchModuleHook *hook = g_new0 (GTorchModuleHook, 1);

  hook->id = __atomic_add_fetch (&last_id, 1, __ATOMIC_RELAXED);
  hook->kind = kind;
  hook->always_call = always_call;
  hook->func = func;
  hook->user_data = user_data;
  hook->destroy = destroy;
  hook->ref_count = 1;
  return hook;
}

guint64
gtorch_module_add_hook (GTorchModule *self, GTorchModuleHookKind kind, gboolean prepend,
                        gboolean always_call, GCallback func, gpointer user_data,
                        GDestroyNotify destroy)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  GTorchModuleHook *hook = gtorch_module_hook_new (kind, always_call, func, user_data, destroy);
  const guint64 id = hook->id;

  gtorch_module_begin_change (self);
  if (priv->hooks == NULL)
    g_atomic_pointer_set (&priv->hooks, g_ptr_array_new_with_free_func (gtorch_module_hook_unref));
  g_ptr_array_insert (priv->hooks, prepend ? 0 : -1, hook);
  gtorch_module_end_change (self);
  return id;
}

GPtrArray *
gtorch_module_dup_hooks (GTorchModule *self)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  g_autoptr (GPtrArray) hooks = NULL;
  guint i;

  if (G_LIKELY (g_atomic_pointer_get (&priv->hooks) == NULL && !gtorch_module_has_global_hooks ()))
    return NULL;
  hooks = g_ptr_array_new_with_free_func (gtorch_module_hook_unref);
  gtorch_module_add_global_hooks (hooks);
  gtorch_module_lock (self);
  for (i = 0; priv->hooks != NULL && i < priv->hooks->len; i++)
    g_ptr_array_add (hooks, gtorch_module_hook_ref (priv->hooks->pdata[i]));
  gtorch_module_unlock (self);
  return hooks->len > 0 ? g_steal_pointer (&hooks) : NULL;
}

/* Arrays from other languages may have no function that frees their elements. */
static GPtrArray *
take_inputs (GTorchModule *self, GPtrArray *given, GError **error)
{
  gsize i, n;
  gpointer *elements = g_ptr_array_steal (given, &n);
  g_autoptr (GPtrArray) inputs = g_ptr_array_new_full (n, g_object_unref);

  g_ptr_array_unref (given);
  for (i = 0; i < n; i++)
    if (elements[i] != NULL)
      g_ptr_array_add (inputs, elements[i]);
  g_free (elements);
  for (i = 0; i < inputs->len; i++)
    if (!GTORCH_IS_TENSOR (inputs->pdata[i]))
      break;
  if (i == n)
    return g_steal_pointer (&inputs);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: register_forward_pre_hook: input %zu that a hook returned is not a tensor"),
               gtorch_module_type_name (self), i);
  return NULL;
}

GPtrArray *
gtorch_module_run_pre_hooks (GTorchModule *self, GPtrArray *hooks, GTorchTensor **inputs,
                             gsize n_inputs, GError **error)
{
  g_autoptr (GPtrArray) seen = g_ptr_array_new_full (n_inputs, g_object_unref);
  guint i;

  for (i = 0; i < n_inputs; i++)
    g_ptr_array_add (seen, g_object_ref (inputs[i]));
  for (i = 0; i < hooks->len; i++)
    {
      GTorchModuleHook *hook = hooks->pdata[i];
      GPtrArray *others;
      GError *local = NULL;

      if (hook->kind != GTORCH_MODULE_HOOK_BEFORE)
        continue;
      others = ((GTorchForwardPreHook) hook->func) (self, (GTorchTensor **) seen->pdata, seen->len,
                                                    hook->user_data, &local);
      if (others != NULL)
        {
          others = take_inputs (self, others, local == NULL ? &local : NULL);
          g_ptr_array_unref (seen);
          seen = others;
        }
      if (local != NULL)
        {
          g_propagate_error (error, local);
          return NULL;
        }
    }
  return g_steal_pointer (&seen);
}

void
gtorch_module_run_always (GTorchModule *self, GPtrArray *hooks, guint from, GTorchTensor **inputs,
                          gsize n_inputs, GTorchTensor *output)
{
  guint i;

  for (i = from; i < hooks->len; i++)
    {
      GTorchModuleHook *hook = hooks->pdata[i];
      g_autoptr (GTorchTensor) other = NULL;
      g_autoptr (GError) local = NULL;

      if (hook->kind != GTORCH_MODULE_HOOK_AFTER || !hook->always_call)
        continue;
      other = ((GTorchForwardHook) hook->func) (self, inputs, n_inputs, output, hook->user_data,
                                                &local);
      if (local != NULL)
        g_warning ("%s: a hook failed after another error: %s", gtorch_module_type_name (self),
                   local->message);
    }
}

GTorchTensor *
gtorch_module_run_hooks (GTorchModule *self, GPtrArray *hooks, GPtrArray *inputs,
                         GTorchTensor *output, GError **error)
{
  guint i;

  for (i = 0; i < hooks->len; i++)
    {
      GTorchModuleHook *hook = hooks->pdata[i];
      GTorchTensor *other;
      GError *local = NULL;

      if (hook->kind != GTORCH_MODULE_HOOK_AFTER)
        continue;
      other = ((GTorchForwardHook) hook->func) (self, (GTorchTensor **) inputs->pdata, inputs->len,
                                                output, hook->user_data, &local);
      if (other != NULL && local == NULL)
        gtorch_callback_check (gtorch_module_type_name (self), N_ ("a forward hook"), &other,
                               GTORCH_TYPE_TENSOR, &local);
      if (other != NULL)
        {
          g_object_unref (output);
          output = other;
        }
      if (local != NULL)
        {
          gtorch_module_run_always (self, hooks, i + 1, (GTorchTensor **) inputs->pdata,
                                    inputs->len, output);
          g_object_unref (output);
          g_propagate_error (error, local);
          return NULL;
        }
    }
  return output;
}

/**
 * gtorch_module_register_forward_pre_hook:
 * @self: a module
 * @hook: (scope notified) (closure user_data) (destroy destroy): called before each forward
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Calls a function before each [method@Module.forward] and [method@Module.forward_many]. If it sets its
 * error, they fail with that.
 *
 * Returns: an id for [method@Module.remove_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_forward_pre_hook (GTorchModule *self, GTorchForwardPreHook hook,
                                         gpointer user_data, GDestroyNotify destroy)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), 0);
  g_return_val_if_fail (hook != NULL, 0);
  return gtorch_module_add_hook (self, GTORCH_MODULE_HOOK_BEFORE, FALSE, FALSE, G_CALLBACK (hook),
                                 user_data, destroy);
}

/**
 * gtorch_module_register_forward_pre_hook_full:
 * @self: a module
 * @prepend: call it before the hooks that are there
 * @hook: (scope notified) (closure user_data) (destroy destroy): called before each forward
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Does what [method@Module.register_forward_pre_hook] does, and chooses the place of the hook.
 *
 * Returns: an id for [method@Module.remove_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_forward_pre_hook_full (GTorchModule *self, gboolean prepend,
                                              GTorchForwardPreHook hook, gpointer user_data,
                                              GDestroyNotify destroy)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), 0);
  g_return_val_if_fail (hook != NULL, 0);
  return gtorch_module_add_hook (self, GTORCH_MODULE_HOOK_BEFORE, prepend, FALSE, G_CALLBACK (hook),
                                 user_data, destroy);
}

/**
 * gtorch_module_register_forward_hook:
 * @self: a module
 * @hook: (scope notified) (closure user_data) (destroy destroy): called after each forward
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Calls a function after each [method@Module.forward] and [method@Module.forward_many] that succeeded. If it
 * sets its error, they fail with that.
 *
 * Returns: an id for [method@Module.remove_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_forward_hook (GTorchModule *self, GTorchForwardHook hook, gpointer user_data,
                                     GDestroyNotify destroy)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), 0);
  g_return_val_if_fail (hook != NULL, 0);
  return gtorch_module_add_hook (self, GTORCH_MODULE_HOOK_AFTER, FALSE, FALSE, G_CALLBACK (hook),
                                 user_data, destroy);
}

/**
 * gtorch_module_register_forward_hook_full:
 * @self: a module
 * @prepend: call it before the hooks that are there
 * @always_call: call it after an error, too: with what there is of the output, which may be %NULL
 * @hook: (scope notified) (closure user_data) (destroy destroy): called after each forward
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Does what [method@Module.register_forward_hook] does, and chooses the place of the hook and when it is
 * called. After an error, an error of the hook is only a warning.
 *
 * Returns: an id for [method@Module.remove_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_forward_hook_full (GTorchModule *self, gboolean prepend,
                                          gboolean always_call, GTorchForwardHook hook,
                                          gpointer user_data, GDestroyNotify destroy)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), 0);
  g_return_val_if_fail (hook != NULL, 0);
  return gtorch_module_add_hook (self, GTORCH_MODULE_HOOK_AFTER, prepend, always_call,
                                 G_CALLBACK (hook), user_data, destroy);
}

/**
 * gtorch_module_remove_hook:
 * @self: a module
 * @id: the id that registering it returned
 *
 * Removes a hook.
 *
 * Returns: %FALSE if there is none with this id
 *
 * Since: 0.1
 */
gboolean
gtorch_module_remove_hook (GTorchModule *self, guint64 id)
{
  GTorchModulePrivate *priv;
  gpointer hook = NULL;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  priv = gtorch_module_get_private (self);
  gtorch_module_begin_change (self);
  for (i = 0; priv->hooks != NULL && i < priv->hooks->len; i++)
    if (((GTorchModuleHook *) priv->hooks->pdata[i])->id == id)
      {
        hook = g_ptr_array_steal_index (priv->hooks, i);
        break;
      }
  gtorch_module_end_change (self);
  if (hook != NULL)
    gtorch_module_hook_unref (hook);
  return hook != NULL;
}

/**
 * gtorch_module_has_hooks:
 * @self: a module
 *
 * Tells whether [method@Module.forward] calls hooks of this module, or of all modules.
 *
 * Returns: %TRUE if there is a hook
 *
 * Since: 0.1
 */
gboolean
gtorch_module_has_hooks (GTorchModule *self)
{
  GTorchModulePrivate *priv;
  gboolean has_hooks;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  priv = gtorch_module_get_private (self);
  gtorch_module_lock (self);
  has_hooks = gtorch_module_has_global_hooks () || (priv->hooks != NULL && priv->hooks->len > 0);
  gtorch_module_unlock (self);
  return has_hooks;
}
