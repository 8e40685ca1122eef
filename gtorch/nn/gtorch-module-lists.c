/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lists of what a module and its descendants consist of. */

#include "config.h"

#include "autograd/gtorch-tensor-autograd.h"
#include "device/gtorch-device-private.h"
#include "nn/gtorch-module-members.h"
#include "nn/gtorch-module-private.h"

typedef struct
{
  gboolean buffers;
  GHashTable *seen;
  GListStore *tensors;
  GPtrArray *names;
} Collection;

GQuark
gtorch_module_stands_for_quark (void)
{
  return g_quark_from_static_string ("gtorch-stands-for");
}

/* What lists have of a member: the parameter for which a computed tensor stands in its place. */
static GTorchTensor *
listed (const GTorchMember *member, gboolean buffers)
{
  if (buffers || member->tensor == NULL || GTORCH_IS_PARAMETER (member->tensor))
    return member->tensor;
  return g_object_get_qdata (G_OBJECT (member->tensor), gtorch_module_stands_for_quark ());
}

static void
collect (GTorchModule *module, const gchar *path, gpointer user_data)
{
  Collection *collection = user_data;
  g_autoptr (GArray) members = gtorch_module_dup_members (module, collection->buffers);
  guint i;

  for (i = 0; i < members->len; i++)
    {
      GTorchMember *member = &g_array_index (members, GTorchMember, i);
      GTorchTensor *tensor = listed (member, collection->buffers);

      if (tensor == NULL || g_hash_table_contains (collection->seen, tensor))
        continue;
      g_hash_table_add (collection->seen, g_object_ref (tensor));
      if (collection->tensors != NULL)
        g_list_store_append (collection->tensors, tensor);
      if (collection->names != NULL)
        g_ptr_array_add (collection->names,
                         g_strconcat (path, path[0] != '\0' ? "." : "", member->name, NULL));
    }
}

static GListModel *
list_members (GTorchModule *self, gboolean recurse, gboolean buffers)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (NULL, NULL, g_object_unref, NULL);
  GListStore *store = g_list_store_new (buffers ? GTORCH_TYPE_TENSOR : GTORCH_TYPE_PARAMETER);
  Collection collection = { buffers, seen, store, NULL };

  gtorch_module_visit (self, recurse, collect, &collection);
  return G_LIST_MODEL (store);
}

static gchar **
list_names (GTorchModule *self, gboolean recurse, gboolean buffers)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (NULL, NULL, g_object_unref, NULL);
  GPtrArray *names = g_ptr_array_new ();
  Collection collection = { buffers, seen, NULL, names };

  gtorch_module_visit (self, recurse, collect, &collection);
  g_ptr_array_add (names, NULL);
  return (gchar **) g_ptr_array_free (names, FALSE);
}

/**
 * gtorch_module_get_member_names:
 * @self: a module
 * @kind: the kind of the members
 *
 * Lists the names of the members of a kind that this module itself has, in the order in which they were
 * registered. A parameter or buffer that has several names is there with each; an absent one is not.
 *
 * Returns: (transfer full) (array zero-terminated=1): the names
 *
 * Since: 0.1
 */
gchar **
gtorch_module_get_member_names (GTorchModule *self, GTorchMemberKind kind)
{
  g_autoptr (GPtrArray) names = NULL;
  g_autoptr (GArray) members = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  if (kind == GTORCH_MEMBER_KIND_MODULE)
    return gtorch_module_get_child_names (self);
  names = g_ptr_array_new ();
  if (kind == GTORCH_MEMBER_KIND_PARAMETER || kind == GTORCH_MEMBER_KIND_BUFFER)
    members = gtorch_module_dup_members (self, kind == GTORCH_MEMBER_KIND_BUFFER);
  for (guint i = 0; members != NULL && i < members->len; i++)
    if (g_array_index (members, GTorchMember, i).tensor != NULL)
      g_ptr_array_add (names, g_strdup (g_array_index (members, GTorchMember, i).name));
  g_ptr_array_add (names, NULL);
  return (gchar **) g_ptr_array_free (g_steal_pointer (&names), FALSE);
}

gchar *
gtorch_module_describe_parameters (GTorchModule *self)
{
  g_autoptr (GArray) members = gtorch_module_dup_members (self, FALSE);
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < members->len; i++)
    {
      const GTorchMember *member = &g_array_index (members, GTorchMember, i);
      const GTorchImpl *impl;

      if (member->tensor == NULL)
        continue;
      impl = gtorch_tensor_unwrap (member->tensor);
      g_string_append_printf (text, "%s  (%s): Parameter containing: [%s of size ",
                              text->len > 0 ? "\n" : "", member->name,
                              gtorch_dtype_get_name (impl->dtype));
      for (guint j = 0; j < impl->n_dims; j++)
        g_string_append_printf (text, "%s%" G_GINT64_FORMAT, j > 0 ? "x" : "", impl->shape[j]);
      if (!gtorch_device_is_host (impl->device))
        g_string_append_printf (text, " (%s)", gtorch_device_name (impl->device));
      g_string_append_c (text, ']');
    }
  return g_string_free (text, FALSE);
}

/**
 * gtorch_module_get_parameters:
 * @self: a module
 * @recurse: whether to include those of descendants
 *
 * Lists the present parameters, each once, in the order in which they were registered.
 *
 * Returns: (transfer full): a list of #GTorchParameter
 *
 * Since: 0.1
 */
GListModel *
gtorch_module_get_parameters (GTorchModule *self, gboolean recurse)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  return list_members (self, recurse, FALSE);
}

/**
 * gtorch_module_get_parameter_names:
 * @self: a module
 * @recurse: whether to include those of descendants
 *
 * Lists the paths of the parameters from [method@Module.get_parameters], in the same order.
 *
 * Returns: (transfer full): names like `0.weight`
 *
 * Since: 0.1
 */
gchar **
gtorch_module_get_parameter_names (GTorchModule *self, gboolean recurse)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  return list_names (self, recurse, FALSE);
}

/**
 * gtorch_module_get_buffers:
 * @self: a module
 * @recurse: whether to include those of descendants
 *
 * Lists the present buffers, each once.
 *
 * Returns: (transfer full): a list of #GTorchTensor
 *
 * Since: 0.1
 */
GListModel *
gtorch_module_get_buffers (GTorchModule *self, gboolean recurse)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  return list_members (self, recurse, TRUE);
}

/**
 * gtorch_module_get_buffer_names:
 * @self: a module
 * @recurse: whether to include those of descendants
 *
 * Lists the paths of the buffers from [method@Module.get_buffers], in the same order.
 *
 * Returns: (transfer full): names like `1.running_mean`
 *
 * Since: 0.1
 */
gchar **
gtorch_module_get_buffer_names (GTorchModule *self, gboolean recurse)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  return list_names (self, recurse, TRUE);
}

/**
 * gtorch_module_get_children:
 * @self: a module
 *
 * Gets the child modules. The list changes with the module.
 *
 * Returns: (transfer none): a list of #GTorchModule
 *
 * Since: 0.1
 */
GListModel *
gtorch_module_get_children (GTorchModule *self)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  return G_LIST_MODEL (gtorch_module_get_private (self)->children);
}

/**
 * gtorch_module_get_child_names:
 * @self: a module
 *
 * Lists the names of the modules from [method@Module.get_children], in the same order.
 *
 * Returns: (transfer full): the names
 *
 * Since: 0.1
 */
gchar **
gtorch_module_get_child_names (GTorchModule *self)
{
  g_autoptr (GPtrArray) children = NULL;
  gchar **names;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  children = gtorch_module_dup_children (self, &names);
  return names;
}

static void
collect_module (GTorchModule *module, const gchar *path, gpointer user_data)
{
  g_list_store_append (user_data, module);
}

/**
 * gtorch_module_get_modules:
 * @self: a module
 *
 * Lists the module and all its present descendants, each once, parents first.
 *
 * Returns: (transfer full): a list of #GTorchModule
 *
 * Since: 0.1
 */
GListModel *
gtorch_module_get_modules (GTorchModule *self)
{
  GListStore *store;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  store = g_list_store_new (GTORCH_TYPE_MODULE);
  gtorch_module_visit (self, TRUE, collect_module, store);
  return G_LIST_MODEL (store);
}

static void
collect_path (GTorchModule *module, const gchar *path, gpointer user_data)
{
  g_ptr_array_add (user_data, g_strdup (path));
}

/**
 * gtorch_module_get_module_names:
 * @self: a module
 *
 * Lists the paths of the modules from [method@Module.get_modules], in the same order; the first is empty.
 *
 * Returns: (transfer full): the paths
 *
 * Since: 0.1
 */
gchar **
gtorch_module_get_module_names (GTorchModule *self)
{
  GPtrArray *names;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  names = g_ptr_array_new ();
  gtorch_module_visit (self, TRUE, collect_path, names);
  g_ptr_array_add (names, NULL);
  return (gchar **) g_ptr_array_free (names, FALSE);
}

/**
 * gtorch_module_count_parameters:
 * @self: a module
 * @trainable_only: whether to count only parameters that require grad
 *
 * Counts the elements of all parameters.
 *
 * Returns: the number of elements
 *
 * Since: 0.1
 */
gint64
gtorch_module_count_parameters (GTorchModule *self, gboolean trainable_only)
{
  g_autoptr (GListModel) parameters = NULL;
  gint64 count = 0;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), 0);
  parameters = gtorch_module_get_parameters (self, TRUE);
  for (i = 0; i < g_list_model_get_n_items (parameters); i++)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);

      if (!trainable_only || gtorch_tensor_get_requires_grad (parameter))
        count += gtorch_tensor_get_numel (parameter);
    }
  return count;
}
