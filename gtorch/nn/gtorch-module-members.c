/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The members of a module: parameters, buffers and child modules, by name. */

#include "config.h"

#include "nn/gtorch-module-members.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "tensor/gtorch-hold-private.h"
#include "base/gtorch-references-private.h"
#include "tensor/gtorch-scope-private.h"
#include "nn/gtorch-graphed-module.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-sequential.h"

gint gtorch_module_changes;

static GTorchMember *
find_member (GArray *array, const gchar *name)
{
  guint i;

  for (i = 0; i < array->len; i++)
    if (strcmp (g_array_index (array, GTorchMember, i).name, name) == 0)
      return &g_array_index (array, GTorchMember, i);
  return NULL;
}

static gboolean
find_child (GTorchModulePrivate *priv, const gchar *name, guint *position)
{
  for (*position = 0; *position < priv->child_names->len; (*position)++)
    if (strcmp (priv->child_names->pdata[*position], name) == 0)
      return TRUE;
  return FALSE;
}

GType
gtorch_member_kind_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_MEMBER_KIND_NONE, "GTORCH_MEMBER_KIND_NONE", "none" },
        { GTORCH_MEMBER_KIND_PARAMETER, "GTORCH_MEMBER_KIND_PARAMETER", "parameter" },
        { GTORCH_MEMBER_KIND_BUFFER, "GTORCH_MEMBER_KIND_BUFFER", "buffer" },
        { GTORCH_MEMBER_KIND_MODULE, "GTORCH_MEMBER_KIND_MODULE", "module" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchMemberKind", values));
    }
  return type;
}

/**
 * gtorch_module_get_member_kind:
 * @self: a module
 * @name: a name, without dots
 *
 * Tells which kind of member has the name in this module itself, not in its descendants.
 *
 * Returns: the kind, %GTORCH_MEMBER_KIND_NONE if there is no member of this name
 *
 * Since: 0.1
 */
GTorchMemberKind
gtorch_module_get_member_kind (GTorchModule *self, const gchar *name)
{
  GTorchModulePrivate *priv;
  guint position;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), GTORCH_MEMBER_KIND_NONE);
  g_return_val_if_fail (name != NULL, GTORCH_MEMBER_KIND_NONE);

  priv = gtorch_module_get_private (self);
  if (find_member (priv->parameters, name) != NULL)
    return GTORCH_MEMBER_KIND_PARAMETER;
  if (find_member (priv->buffers, name) != NULL)
    return GTORCH_MEMBER_KIND_BUFFER;
  return find_child (priv, name, &position) ? GTORCH_MEMBER_KIND_MODULE : GTORCH_MEMBER_KIND_NONE;
}

/* Checks that a name is free, or taken by a member in the list `own`. */
static gboolean
check_name (GTorchModule *self, const gchar *name, gpointer own, GError **error)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  const gchar *taken = NULL;
  guint position;

  if (name[0] == '\0' || strchr (name, '.') != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: '%s' is no name: it must have a letter and no dot"),
                   gtorch_module_type_name (self), gtorch_name_str (name));
      return FALSE;
    }
  if (own != priv->parameters && find_member (priv->parameters, name) != NULL)
    taken = _ ("a parameter");
  else if (own != priv->buffers && find_member (priv->buffers, name) != NULL)
    taken = _ ("a buffer");
  else if (own != priv->children && find_child (priv, name, &position))
    taken = _ ("a module");
  if (taken == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: '%s' is already the name of %s"),
               gtorch_module_type_name (self), gtorch_name_str (name), taken);
  return FALSE;
}

static void
set_member (GArray *array, const gchar *name, GTorchTensor *tensor, gboolean persistent)
{
  g_autoptr (GTorchTensor) former = NULL;
  GTorchMember *member = find_member (array, name);
  GTorchMember made = { NULL, NULL, FALSE };

  if (tensor != NULL && gtorch_scope_current != NULL)
    gtorch_scope_exempt (tensor);
  if (tensor != NULL)
    g_object_ref (tensor);
  gtorch_references_lock ();
  if (member == NULL)
    {
      made.name = g_strdup (name);
      g_array_append_val (array, made);
      member = &g_array_index (array, GTorchMember, array->len - 1);
    }
  former = member->tensor;
  member->tensor = tensor;
  gtorch_references_unlock ();
  g_atomic_int_inc (&gtorch_module_changes);
  member->persistent = persistent;
  member->is_count = FALSE;
}

/**
 * gtorch_module_register_parameter:
 * @self: a module
 * @name: its name, without dots
 * @parameter: (nullable): a parameter, or %NULL for an absent one
 * @error: return location for an error
 *
 * Adds a parameter, or replaces the one of this name.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if the name is invalid or belongs to a buffer or
 *   module
 *
 * Since: 0.1
 */
gboolean
gtorch_module_register_parameter (GTorchModule *self, const gchar *name, GTorchParameter *parameter,
                                  GError **error)
{
  GTorchModulePrivate *priv;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (parameter == NULL || GTORCH_IS_PARAMETER (parameter), FALSE);

  priv = gtorch_module_get_private (self);
  if (!check_name (self, name, priv->parameters, error))
    return FALSE;
  set_member (priv->parameters, name, (GTorchTensor *) parameter, TRUE);
  if (parameter != NULL && gtorch_parameter_get_name (parameter) == NULL)
    gtorch_parameter_set_name (parameter, name);
  return TRUE;
}

/**
 * gtorch_module_register_buffer:
 * @self: a module
 * @name: its name, without dots
 * @buffer: (nullable): a tensor, or %NULL for an absent one
 * @persistent: whether it belongs to [method@Module.state_dict]
 * @error: return location for an error
 *
 * Adds a tensor that is not learned, such as the running mean of [class@BatchNorm2d], or replaces the one
 * of this name.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if the name is invalid or belongs to a parameter or
 *   module
 *
 * Since: 0.1
 */
gboolean
gtorch_module_register_buffer (GTorchModule *self, const gchar *name, GTorchTensor *buffer,
                               gboolean persistent, GError **error)
{
  GTORCH_HOLD_TENSOR (buffer);
  GTorchModulePrivate *priv;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (buffer == NULL || GTORCH_IS_TENSOR (buffer), FALSE);

  priv = gtorch_module_get_private (self);
  if (!check_name (self, name, priv->buffers, error))
    return FALSE;
  set_member (priv->buffers, name, buffer, persistent);
  return TRUE;
}

/**
 * gtorch_module_set_buffer:
 * @self: a module
 * @name: the name of one of its buffers
 * @buffer: (nullable): a tensor, or %NULL for none
 * @error: return location for an error
 *
 * Replaces the tensor of a buffer; whether it belongs to [method@Module.state_dict] does not change.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if there is no buffer of this name
 *
 * Since: 0.1
 */
gboolean
gtorch_module_set_buffer (GTorchModule *self, const gchar *name, GTorchTensor *buffer,
                          GError **error)
{
  const GTorchMember *member;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (buffer == NULL || GTORCH_IS_TENSOR (buffer), FALSE);

  member = find_member (gtorch_module_get_private (self)->buffers, name);
  if (member != NULL)
    return gtorch_module_register_buffer (self, name, buffer, member->persistent, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there is no buffer '%s'"),
               gtorch_module_type_name (self), gtorch_name_str (name));
  return FALSE;
}

static void
look_for (GTorchModule *module, const gchar *path, gpointer user_data)
{
  gpointer *searched = user_data;

  if (*searched == module)
    *searched = NULL;
  else if (GTORCH_IS_GRAPHED_MODULE (module)
           && gtorch_graphed_module_get_wrapped (GTORCH_GRAPHED_MODULE (module)) != NULL)
    gtorch_module_visit (gtorch_graphed_module_get_wrapped (GTORCH_GRAPHED_MODULE (module)), TRUE,
                         look_for, user_data);
}

static gboolean
check_child (GTorchModule *self, GTorchModule *child, GError **error)
{
  gpointer searched = self;

  gtorch_module_visit (child, TRUE, look_for, &searched);
  if (searched != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: it is itself inside the %s that was to go into it"),
               gtorch_module_type_name (self), gtorch_module_type_name (child));
  return FALSE;
}

/**
 * gtorch_module_register_module:
 * @self: a module
 * @name: its name, without dots
 * @module: the child module
 * @error: return location for an error
 *
 * Adds a child module, or replaces the one of this name.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if the name is invalid or belongs to a parameter or
 *   buffer, or if @self is inside @module, or inside the one that @module was captured from
 *
 * Since: 0.1
 */
gboolean
gtorch_module_register_module (GTorchModule *self, const gchar *name, GTorchModule *module,
                               GError **error)
{
  GTorchModulePrivate *priv;
  guint position;
  gboolean replace;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_MODULE (module), FALSE);

  priv = gtorch_module_get_private (self);
  if (!check_name (self, name, priv->children, error) || !check_child (self, module, error))
    return FALSE;
  replace = find_child (priv, name, &position);
  if (!replace)
    g_ptr_array_add (priv->child_names, g_strdup (name));
  gtorch_object_list_splice (priv->children, position, replace, (gpointer *) &module, 1);
  g_atomic_int_inc (&gtorch_module_changes);
  return TRUE;
}

/* Layers find their parameters and buffers by position. */
static gboolean
belongs_to_class (GTorchModule *self, const gchar *name)
{
  g_autofree gchar *property = g_strdelimit (g_strdup (name), "_", '-');
  GParamSpec *pspec = g_object_class_find_property (G_OBJECT_GET_CLASS (self), property);

  return pspec != NULL && g_type_is_a (pspec->value_type, GTORCH_TYPE_TENSOR);
}

static gboolean
remove_tensor (GTorchModule *self, GArray *members, const gchar *name, GError **error)
{
  g_autoptr (GTorchTensor) former = NULL;
  GTorchMember *member = find_member (members, name);

  if (belongs_to_class (self, name))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: '%s' is part of the layer and cannot be removed, but it can be set to "
                      "none"),
                   gtorch_module_type_name (self), gtorch_name_str (name));
      return FALSE;
    }
  gtorch_references_lock ();
  former = g_steal_pointer (&member->tensor);
  g_array_remove_index (members, (guint) (member - (GTorchMember *) (gpointer) members->data));
  gtorch_references_unlock ();
  g_atomic_int_inc (&gtorch_module_changes);
  return TRUE;
}

/**
 * gtorch_module_unregister:
 * @self: a module
 * @name: the name of a parameter, buffer or module of this module
 * @error: return location for an error
 *
 * Removes a parameter, a buffer or a module. What a layer computes with, such as the weight of
 * [class@Linear], stays: [method@Module.register_parameter] can set it to %NULL. In a [class@Sequential] the
 * modules behind a removed one move up, as [method@Sequential.remove] says.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if there is no member of this name or it cannot be
 *   removed
 *
 * Since: 0.1
 */
gboolean
gtorch_module_unregister (GTorchModule *self, const gchar *name, GError **error)
{
  GTorchModulePrivate *priv;
  guint position;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);

  priv = gtorch_module_get_private (self);
  if (find_member (priv->parameters, name) != NULL)
    return remove_tensor (self, priv->parameters, name, error);
  if (find_member (priv->buffers, name) != NULL)
    return remove_tensor (self, priv->buffers, name, error);
  if (find_child (priv, name, &position) && GTORCH_IS_SEQUENTIAL (self))
    {
      gtorch_module_remove_child (self, position);
      return TRUE;
    }
  if (find_child (priv, name, &position))
    {
      g_ptr_array_remove_index (priv->child_names, position);
      gtorch_object_list_splice (priv->children, position, 1, NULL, 0);
      g_atomic_int_inc (&gtorch_module_changes);
      return TRUE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: there is no parameter, buffer or module '%s' that could be removed"),
               gtorch_module_type_name (self), gtorch_name_str (name));
  return FALSE;
}

static gboolean
has_child (GTorchModulePrivate *priv, const gchar *name)
{
  guint position;

  return find_child (priv, name, &position);
}

/* The child at @i moves. If it is called by its former position its name becomes the new one; a name that
 * the program gave stays, and so does a number whose successor is such a name. */
static void
rename_child (GTorchModulePrivate *priv, guint i, guint former, guint position)
{
  g_autofree gchar *number = g_strdup_printf ("%u", former);
  g_autofree gchar *moved = g_strdup_printf ("%u", position);

  if (strcmp (priv->child_names->pdata[i], number) != 0 || has_child (priv, moved))
    return;
  g_free (priv->child_names->pdata[i]);
  priv->child_names->pdata[i] = g_steal_pointer (&moved);
}

/* The position, or the next number that is no name yet. */
static gchar *
free_number (GTorchModulePrivate *priv, guint number)
{
  gchar *name = g_strdup_printf ("%u", number);

  while (has_child (priv, name) || find_member (priv->parameters, name) != NULL
         || find_member (priv->buffers, name) != NULL)
    {
      g_free (name);
      name = g_strdup_printf ("%u", ++number);
    }
  return name;
}

gboolean
gtorch_module_insert_child (GTorchModule *self, guint position, GTorchModule *child, GError **error)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  guint i;

  if (!check_child (self, child, error))
    return FALSE;
  for (i = priv->child_names->len; i-- > position;)
    rename_child (priv, i, i, i + 1);
  g_ptr_array_insert (priv->child_names, (gint) position, free_number (priv, position));
  gtorch_object_list_splice (priv->children, position, 0, (gpointer *) &child, 1);
  g_atomic_int_inc (&gtorch_module_changes);
  return TRUE;
}

void
gtorch_module_remove_child (GTorchModule *self, guint position)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  guint i;

  g_ptr_array_remove_index (priv->child_names, position);
  for (i = position; i < priv->child_names->len; i++)
    rename_child (priv, i, i + 1, i);
  gtorch_object_list_splice (priv->children, position, 1, NULL, 0);
  g_atomic_int_inc (&gtorch_module_changes);
}

GTorchTensor *
gtorch_module_nth_parameter (GTorchModule *self, guint i)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);

  return i < priv->parameters->len ? g_array_index (priv->parameters, GTorchMember, i).tensor
                                   : NULL;
}

GTorchTensor *
gtorch_module_nth_buffer (GTorchModule *self, guint i)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);

  return i < priv->buffers->len ? g_array_index (priv->buffers, GTorchMember, i).tensor : NULL;
}

/* --- traversal --- */

static void
visit (GTorchModule *self, GString *path, GHashTable *seen, GTorchModuleVisit func,
       gpointer user_data)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  gsize length = path->len;
  guint i;

  if (!g_hash_table_add (seen, self))
    return;
  func (self, path->str, user_data);
  for (i = 0; i < priv->child_names->len; i++)
    {
      g_autoptr (GTorchModule) child = g_list_model_get_item (G_LIST_MODEL (priv->children), i);

      g_string_append_printf (path, "%s%s", length > 0 ? "." : "",
                              (const gchar *) priv->child_names->pdata[i]);
      visit (child, path, seen, func, user_data);
      g_string_truncate (path, length);
    }
}

void
gtorch_module_visit (GTorchModule *self, gboolean recurse, GTorchModuleVisit func,
                     gpointer user_data)
{
  g_autoptr (GHashTable) seen = NULL;
  g_autoptr (GString) path = NULL;

  if (!recurse)
    {
      func (self, "", user_data);
      return;
    }
  seen = g_hash_table_new (NULL, NULL);
  path = g_string_new (NULL);
  visit (self, path, seen, func, user_data);
}

typedef struct
{
  gboolean buffers;
  GHashTable *seen;
  GListStore *tensors;
  GPtrArray *names;
} Collection;

static void
collect (GTorchModule *module, const gchar *path, gpointer user_data)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (module);
  Collection *collection = user_data;
  GArray *members = collection->buffers ? priv->buffers : priv->parameters;
  guint i;

  for (i = 0; i < members->len; i++)
    {
      GTorchMember *member = &g_array_index (members, GTorchMember, i);

      if (member->tensor == NULL || !g_hash_table_add (collection->seen, member->tensor))
        continue;
      if (collection->tensors != NULL)
        g_list_store_append (collection->tensors, member->tensor);
      if (collection->names != NULL)
        g_ptr_array_add (collection->names,
                         g_strconcat (path, path[0] != '\0' ? "." : "", member->name, NULL));
    }
}

static GListModel *
list_members (GTorchModule *self, gboolean recurse, gboolean buffers)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  GListStore *store = g_list_store_new (buffers ? GTORCH_TYPE_TENSOR : GTORCH_TYPE_PARAMETER);
  Collection collection = { buffers, seen, store, NULL };

  gtorch_module_visit (self, recurse, collect, &collection);
  return G_LIST_MODEL (store);
}

static gchar **
list_names (GTorchModule *self, gboolean recurse, gboolean buffers)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  GPtrArray *names = g_ptr_array_new ();
  Collection collection = { buffers, seen, NULL, names };

  gtorch_module_visit (self, recurse, collect, &collection);
  g_ptr_array_add (names, NULL);
  return (gchar **) g_ptr_array_free (names, FALSE);
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
  GTorchModulePrivate *priv;
  gchar **names;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  priv = gtorch_module_get_private (self);
  names = g_new0 (gchar *, priv->child_names->len + 1);
  for (i = 0; i < priv->child_names->len; i++)
    names[i] = g_strdup (priv->child_names->pdata[i]);
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

/* --- lookup --- */

static GTorchModule *
walk_path (GTorchModule *self, const gchar *path, gsize length, GError **error)
{
  g_auto (GStrv) names = NULL;
  g_autofree gchar *part = g_strndup (path, length);
  guint i, position;

  if (length == 0)
    return self;
  names = g_strsplit (part, ".", -1);
  for (i = 0; names[i] != NULL; i++)
    {
      GTorchModulePrivate *priv = gtorch_module_get_private (self);
      GTorchModule *child;

      if (!find_child (priv, names[i], &position))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                       _ ("%s: no module '%s', wanted for '%s'"), gtorch_module_type_name (self),
                       gtorch_name_str (names[i]), gtorch_name_str (path));
          return NULL;
        }
      child = g_list_model_get_item (G_LIST_MODEL (priv->children), position);
      g_object_unref (child); /* its parent has a reference */
      self = child;
    }
  return self;
}

static GTorchTensor *
find_tensor (GTorchModule *self, const gchar *path, gboolean buffer, GError **error)
{
  const gchar *dot = strrchr (path, '.');
  GTorchModule *module = walk_path (self, path, dot != NULL ? dot - path : 0, error);
  GTorchModulePrivate *priv;
  GTorchMember *member;

  if (module == NULL)
    return NULL;
  priv = gtorch_module_get_private (module);
  member = find_member (buffer ? priv->buffers : priv->parameters, dot != NULL ? dot + 1 : path);
  if (member != NULL && member->tensor != NULL)
    return member->tensor;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
               buffer ? _ ("%s: no buffer '%s'") : _ ("%s: no parameter '%s'"),
               gtorch_module_type_name (module), gtorch_name_str (path));
  return NULL;
}

/**
 * gtorch_module_get_parameter:
 * @self: a module
 * @path: a name, with dots for parameters of descendants: `0.weight`
 * @error: return location for an error
 *
 * Finds a parameter.
 *
 * Returns: (transfer none): the parameter, or %NULL with %GTORCH_ERROR_NOT_FOUND
 *
 * Since: 0.1
 */
GTorchParameter *
gtorch_module_get_parameter (GTorchModule *self, const gchar *path, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (path != NULL, NULL);
  return (GTorchParameter *) find_tensor (self, path, FALSE, error);
}

/**
 * gtorch_module_get_buffer:
 * @self: a module
 * @path: a name, with dots for buffers of descendants
 * @error: return location for an error
 *
 * Finds a buffer.
 *
 * Returns: (transfer none): the buffer, or %NULL with %GTORCH_ERROR_NOT_FOUND
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_module_get_buffer (GTorchModule *self, const gchar *path, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (path != NULL, NULL);
  return find_tensor (self, path, TRUE, error);
}

/**
 * gtorch_module_get_module:
 * @self: a module
 * @path: a name, with dots for deeper descendants; empty for the module itself
 * @error: return location for an error
 *
 * Finds a module.
 *
 * Returns: (transfer none): the module, or %NULL with %GTORCH_ERROR_NOT_FOUND
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_module_get_module (GTorchModule *self, const gchar *path, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (path != NULL, NULL);
  return walk_path (self, path, strlen (path), error);
}

/* --- references --- */

static void
add_members (GArray *members, GTorchReferences *references)
{
  guint i;

  for (i = 0; i < members->len; i++)
    gtorch_references_add_object (references, g_array_index (members, GTorchMember, i).tensor);
}

void
gtorch_module_add_references (gpointer module, GTorchReferences *references)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (module);
  guint i;

  add_members (priv->parameters, references);
  add_members (priv->buffers, references);
  gtorch_references_add_object (references, priv->children);
  for (i = 0; priv->hooks != NULL && i < priv->hooks->len; i++)
    {
      GTorchModuleHook *hook = priv->hooks->pdata[i];

      if (g_atomic_int_get (&hook->ref_count) == 1) /* the hook is not running */
        gtorch_references_add_data (references, hook->user_data, hook->destroy);
    }
  if (GTORCH_IS_GRAPHED_MODULE (module))
    gtorch_references_add_object (references, gtorch_graphed_module_get_wrapped (
                                                  GTORCH_GRAPHED_MODULE (module)));
}
