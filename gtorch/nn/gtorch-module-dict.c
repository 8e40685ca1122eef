/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-module-dict.h"

#include "nn/gtorch-children-private.h"

/**
 * GTorchModuleDict:
 *
 * Modules by name, for a module whose forward calls them as it likes.
 *
 * [method@Module.register_module] adds a module or replaces the one of a name, [method@Module.get_module]
 * returns it, [method@Module.unregister] removes it, and [method@Module.get_child_names] lists the names in
 * the order in which they were added. It is a [iface@Gio.ListModel] of its modules in that order.
 *
 * ```c
 * g_autoptr (GTorchModuleDict) dict = gtorch_module_dict_new ();
 * g_autoptr (GTorchReLU) relu = gtorch_relu_new ();
 *
 * gtorch_module_register_module (GTORCH_MODULE (dict), "relu", GTORCH_MODULE (relu), &error);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchModuleDict
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE_WITH_CODE (GTorchModuleDict, gtorch_module_dict, GTORCH_TYPE_MODULE,
                         G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, gtorch_children_list_model_init))

static void
gtorch_module_dict_class_init (GTorchModuleDictClass *klass)
{
}

static void
gtorch_module_dict_init (GTorchModuleDict *self)
{
  gtorch_children_init (GTORCH_MODULE (self), FALSE);
}

/**
 * gtorch_module_dict_new:
 *
 * Creates a module without children.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchModuleDict *
gtorch_module_dict_new (void)
{
  return g_object_new (GTORCH_TYPE_MODULE_DICT, NULL);
}
