/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The hooks of all modules. */

#include "config.h"

#include "nn/gtorch-module-global-hooks.h"

#include "nn/gtorch-module-private.h"

static GMutex lock;
static GPtrArray *hooks; /* protected by the lock */
static gint n_hooks;     /* accessed atomically */

gboolean
gtorch_module_has_global_hooks (void)
{
  return G_UNLIKELY (__atomic_load_n (&n_hooks, __ATOMIC_RELAXED) > 0);
}

void
gtorch_module_add_global_hooks (GPtrArray *to)
{
  if (!gtorch_module_has_global_hooks ())
    return;
  g_mutex_lock (&lock);
  for (guint i = 0; i < hooks->len; i++)
    g_ptr_array_add (to, gtorch_module_hook_ref (hooks->pdata[i]));
  g_mutex_unlock (&lock);
}

static guint64
add (GTorchModuleHookKind kind, gboolean always_call, GCallback func, gpointer user_data,
     GDestroyNotify destroy)
{
  GTorchModuleHook *hook = gtorch_module_hook_new (kind, always_call, func, user_data, destroy);
  const guint64 id = hook->id;

  g_mutex_lock (&lock);
  if (hooks == NULL)
    hooks = g_ptr_array_new_with_free_func (gtorch_module_hook_unref);
  g_ptr_array_add (hooks, hook);
  g_atomic_int_set (&n_hooks, (gint) hooks->len);
  g_mutex_unlock (&lock);
  return id;
}

/**
 * gtorch_module_register_global_forward_pre_hook:
 * @hook: (scope notified) (closure user_data) (destroy destroy): called before each forward of each module
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Adds a hook of all modules of the program, which is called before those of the module; see
 * [method@Module.register_forward_pre_hook].
 *
 * Returns: an id for [func@Module.remove_global_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_global_forward_pre_hook (GTorchForwardPreHook hook, gpointer user_data,
                                                GDestroyNotify destroy)
{
  g_return_val_if_fail (hook != NULL, 0);
  return add (GTORCH_MODULE_HOOK_BEFORE, FALSE, G_CALLBACK (hook), user_data, destroy);
}

/**
 * gtorch_module_register_global_forward_hook:
 * @always_call: call it after an error, too: with what there is of the output, which may be %NULL
 * @hook: (scope notified) (closure user_data) (destroy destroy): called after each forward of each module
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Adds a hook of all modules of the program, which is called before those of the module; see
 * [method@Module.register_forward_hook].
 *
 * Returns: an id for [func@Module.remove_global_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_global_forward_hook (gboolean always_call, GTorchForwardHook hook,
                                            gpointer user_data, GDestroyNotify destroy)
{
  g_return_val_if_fail (hook != NULL, 0);
  return add (GTORCH_MODULE_HOOK_AFTER, always_call, G_CALLBACK (hook), user_data, destroy);
}

/**
 * gtorch_module_register_global_full_backward_pre_hook:
 * @hook: (scope notified) (closure user_data) (destroy destroy): called before each backward pass of each
 *   module
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Adds a hook of all modules of the program, which is called before those of the module; see
 * [method@Module.register_full_backward_pre_hook].
 *
 * Returns: an id for [func@Module.remove_global_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_global_full_backward_pre_hook (GTorchBackwardPreHook hook,
                                                      gpointer user_data, GDestroyNotify destroy)
{
  g_return_val_if_fail (hook != NULL, 0);
  return add (GTORCH_MODULE_HOOK_BACKWARD_BEFORE, FALSE, G_CALLBACK (hook), user_data, destroy);
}

/**
 * gtorch_module_register_global_full_backward_hook:
 * @hook: (scope notified) (closure user_data) (destroy destroy): called after each backward pass of each
 *   module
 * @user_data: data for @hook
 * @destroy: (nullable): frees @user_data
 *
 * Adds a hook of all modules of the program, which is called before those of the module; see
 * [method@Module.register_full_backward_hook].
 *
 * Returns: an id for [func@Module.remove_global_hook]
 *
 * Since: 0.1
 */
guint64
gtorch_module_register_global_full_backward_hook (GTorchBackwardHook hook, gpointer user_data,
                                                  GDestroyNotify destroy)
{
  g_return_val_if_fail (hook != NULL, 0);
  return add (GTORCH_MODULE_HOOK_BACKWARD_AFTER, FALSE, G_CALLBACK (hook), user_data, destroy);
}

/**
 * gtorch_module_remove_global_hook:
 * @id: the id that registering it returned
 *
 * Removes a hook of all modules.
 *
 * Returns: %FALSE if there is none with this id
 *
 * Since: 0.1
 */
gboolean
gtorch_module_remove_global_hook (guint64 id)
{
  gpointer hook = NULL;

  g_mutex_lock (&lock);
  for (guint i = 0; hooks != NULL && i < hooks->len && hook == NULL; i++)
    if (((GTorchModuleHook *) hooks->pdata[i])->id == id)
      hook = g_ptr_array_steal_index (hooks, i);
  g_atomic_int_set (&n_hooks, hooks != NULL ? (gint) hooks->len : 0);
  g_mutex_unlock (&lock);
  if (hook != NULL)
    gtorch_module_hook_unref (hook);
  return hook != NULL;
}
