/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-module-list.h"

#include "nn/gtorch-children-private.h"
#include "nn/gtorch-module-private.h"

/**
 * GTorchModuleList:
 *
 * A list of modules, for a module whose forward calls them as it likes.
 *
 * Unlike [class@Sequential] it computes nothing itself. It is a [iface@Gio.ListModel] of its modules, which
 * are named `0`, `1` and so on; such names change with the position.
 *
 * ```c
 * g_autoptr (GTorchModuleList) list = gtorch_module_list_new ();
 * g_autoptr (GTorchLinear) layer = gtorch_linear_new (4, 4, &error);
 *
 * gtorch_module_list_append (list, GTORCH_MODULE (layer), &error);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchModuleList
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE_WITH_CODE (GTorchModuleList, gtorch_module_list, GTORCH_TYPE_MODULE,
                         G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, gtorch_children_list_model_init))

static void
gtorch_module_list_class_init (GTorchModuleListClass *klass)
{
}

static void
gtorch_module_list_init (GTorchModuleList *self)
{
  gtorch_children_init (GTORCH_MODULE (self), TRUE);
}

/**
 * gtorch_module_list_new:
 *
 * Creates an empty list.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchModuleList *
gtorch_module_list_new (void)
{
  return g_object_new (GTORCH_TYPE_MODULE_LIST, NULL);
}

/**
 * gtorch_module_list_new_from_modules:
 * @modules: (array length=n_modules): modules
 * @n_modules: the length of @modules
 * @error: return location for an error
 *
 * Creates a list of modules.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if one of @modules is not a
 *   module
 *
 * Since: 0.1
 */
GTorchModuleList *
gtorch_module_list_new_from_modules (GTorchModule **modules, gsize n_modules, GError **error)
{
  g_autoptr (GTorchModuleList) self = gtorch_module_list_new ();

  g_return_val_if_fail (modules != NULL || n_modules == 0, NULL);
  if (!gtorch_children_append (GTORCH_MODULE (self), modules, n_modules, error))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_module_list_append:
 * @self: a list of modules
 * @module: a module
 * @error: return location for an error
 *
 * Appends a module. Its name is its position, or the next number that is no name yet.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if @self is inside @module
 *
 * Since: 0.1
 */
gboolean
gtorch_module_list_append (GTorchModuleList *self, GTorchModule *module, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_LIST (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_MODULE (module), FALSE);
  return gtorch_module_insert_child (GTORCH_MODULE (self), NULL, module, error);
}

/**
 * gtorch_module_list_insert:
 * @self: a list of modules
 * @position: the position; negative ones count from the end
 * @module: a module
 * @error: return location for an error
 *
 * Inserts a module before the one at @position. Those behind it that are named by their positions get the
 * names of their new ones.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INDEX or, if @self is inside @module,
 *   %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
gboolean
gtorch_module_list_insert (GTorchModuleList *self, gint position, GTorchModule *module,
                           GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_LIST (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_MODULE (module), FALSE);
  return gtorch_module_insert_child (GTORCH_MODULE (self), &position, module, error);
}

/**
 * gtorch_module_list_remove:
 * @self: a list of modules
 * @position: the position; negative ones count from the end
 * @error: return location for an error
 *
 * Removes a module. Those behind it that are named by their positions get the names of their new ones.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INDEX
 *
 * Since: 0.1
 */
gboolean
gtorch_module_list_remove (GTorchModuleList *self, gint position, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_LIST (self), FALSE);
  return gtorch_module_remove_child (GTORCH_MODULE (self), position, error);
}
