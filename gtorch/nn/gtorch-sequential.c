/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-sequential.h"

#include "nn/gtorch-children-private.h"
#include "nn/gtorch-module-private.h"

/**
 * GTorchSequential:
 *
 * A chain of modules: the output of each is the input of the next.
 *
 * It is a [iface@Gio.ListModel] of its modules. Those that are put into it by position are named `0`, `1`
 * and so on, and such names change with the position. A name that [method@Module.register_module] gave stays.
 *
 * ```c
 * g_autoptr (GTorchSequential) net = gtorch_sequential_new ();
 * g_autoptr (GTorchLinear) first = gtorch_linear_new (4, 8, &error);
 * g_autoptr (GTorchReLU) second = gtorch_relu_new ();
 *
 * gtorch_sequential_append (net, GTORCH_MODULE (first), &error);
 * gtorch_sequential_append (net, GTORCH_MODULE (second), &error);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchSequential
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE_WITH_CODE (GTorchSequential, gtorch_sequential, GTORCH_TYPE_MODULE,
                         G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, gtorch_children_list_model_init))

static GTorchTensor *
gtorch_sequential_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  g_autoptr (GPtrArray) children = gtorch_module_dup_children (module, NULL);
  g_autoptr (GTorchTensor) value = g_object_ref (input);
  guint i;

  for (i = 0; i < children->len; i++)
    {
      GTorchTensor *output = gtorch_module_forward (children->pdata[i], value, error);

      if (output == NULL)
        {
          g_prefix_error (error, "%s: %u: ", gtorch_module_type_name (module), i);
          return NULL;
        }
      g_object_unref (value);
      value = output;
    }
  return g_steal_pointer (&value);
}

static void
gtorch_sequential_class_init (GTorchSequentialClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_sequential_forward;
}

static void
gtorch_sequential_init (GTorchSequential *self)
{
  gtorch_children_init (GTORCH_MODULE (self), TRUE);
}

/**
 * gtorch_sequential_new:
 *
 * Creates an empty chain, whose output is its input.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchSequential *
gtorch_sequential_new (void)
{
  return g_object_new (GTORCH_TYPE_SEQUENTIAL, NULL);
}

/**
 * gtorch_sequential_new_from_modules:
 * @modules: (array length=n_modules): modules
 * @n_modules: the length of @modules
 * @error: return location for an error
 *
 * Creates a chain of modules.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if one of @modules is not a
 *   module
 *
 * Since: 0.1
 */
GTorchSequential *
gtorch_sequential_new_from_modules (GTorchModule **modules, gsize n_modules, GError **error)
{
  g_autoptr (GTorchSequential) self = gtorch_sequential_new ();

  g_return_val_if_fail (modules != NULL || n_modules == 0, NULL);
  if (!gtorch_children_append (GTORCH_MODULE (self), modules, n_modules, error))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_sequential_append:
 * @self: a chain of modules
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
gtorch_sequential_append (GTorchSequential *self, GTorchModule *module, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_SEQUENTIAL (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_MODULE (module), FALSE);
  return gtorch_module_insert_child (GTORCH_MODULE (self), NULL, module, error);
}

/**
 * gtorch_sequential_insert:
 * @self: a chain of modules
 * @position: the position; negative ones count from the end
 * @module: a module
 * @error: return location for an error
 *
 * Inserts a module before the one at @position. Those behind it that are named by their positions get the
 * names of their new ones; other names stay.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INDEX or, if @self is inside @module,
 *   %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
gboolean
gtorch_sequential_insert (GTorchSequential *self, gint position, GTorchModule *module,
                          GError **error)
{
  g_return_val_if_fail (GTORCH_IS_SEQUENTIAL (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_MODULE (module), FALSE);
  return gtorch_module_insert_child (GTORCH_MODULE (self), &position, module, error);
}

/**
 * gtorch_sequential_remove:
 * @self: a chain of modules
 * @position: the position; negative ones count from the end
 * @error: return location for an error
 *
 * Removes a module. Those behind it that are named by their positions get the names of their new ones;
 * other names stay.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INDEX
 *
 * Since: 0.1
 */
gboolean
gtorch_sequential_remove (GTorchSequential *self, gint position, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_SEQUENTIAL (self), FALSE);
  return gtorch_module_remove_child (GTORCH_MODULE (self), position, error);
}
