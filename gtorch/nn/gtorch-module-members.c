/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The members of a module: parameters, buffers and child modules, by name. */

#include "config.h"

#include "nn/gtorch-module-members.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "tensor/gtorch-hold-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-references-private.h"
#include "tensor/gtorch-scope-private.h"
#include "nn/gtorch-computed-private.h"
#include "nn/gtorch-graphed-module-private.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-stand-ins-private.h"

gint gtorch_module_changes;

void
gtorch_member_clear (gpointer data)
{
  GTorchMember *member = data;

  g_free (member->name);
  g_clear_object (&member->tensor);
  g_clear_pointer (&member->computed, gtorch_computed_unref);
}

GTorchMember *
gtorch_members_find (GArray *members, const gchar *name)
{
  guint i;

  for (i = 0; i < members->len; i++)
    if (strcmp (g_array_index (members, GTorchMember, i).name, name) == 0)
      return &g_array_index (members, GTorchMember, i);
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

/* Held while a module becomes the child of another, so that two threads cannot make a cycle together. No
 * object is unreferenced meanwhile. */
static GMutex growth_lock;
GTORCH_FORK_LOCK (growth_lock);

void
gtorch_module_lock (GTorchModule *self)
{
  gtorch_object_list_lock (gtorch_module_get_private (self)->children);
}

void
gtorch_module_unlock (GTorchModule *self)
{
  gtorch_object_list_unlock (gtorch_module_get_private (self)->children);
}

void
gtorch_module_begin_change (GTorchModule *self)
{
  gtorch_references_lock ();
  gtorch_module_lock (self);
}

void
gtorch_module_end_change (GTorchModule *self)
{
  gtorch_module_unlock (self);
  gtorch_references_unlock ();
  g_atomic_int_inc (&gtorch_module_changes);
  gtorch_member_models_look ();
}

static gboolean
check_name (GTorchModule *self, const gchar *name, GError **error)
{
  if (!gtorch_name_check (gtorch_module_type_name (self), name, error))
    return FALSE;
  if (g_object_class_find_property (g_type_class_peek (GTORCH_TYPE_MODULE), name) != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: '%s' is a property of all modules, and no member can have its name"),
                   gtorch_module_type_name (self), name);
      return FALSE;
    }
  if (name[0] != '\0' && strchr (name, '.') == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: '%s' is no name: it must have a letter and no dot"),
               gtorch_module_type_name (self), gtorch_name_str (name));
  return FALSE;
}

/* Returns the kind of member that has the name, or NONE if there is none or it is in the list `own`. */
static GTorchMemberKind
find_taker (GTorchModulePrivate *priv, const gchar *name, gpointer own)
{
  guint position;

  if (own != priv->parameters && gtorch_members_find (priv->parameters, name) != NULL)
    return GTORCH_MEMBER_KIND_PARAMETER;
  if (own != priv->buffers && gtorch_members_find (priv->buffers, name) != NULL)
    return GTORCH_MEMBER_KIND_BUFFER;
  if (own != priv->children && find_child (priv, name, &position))
    return GTORCH_MEMBER_KIND_MODULE;
  return GTORCH_MEMBER_KIND_NONE;
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
  GTorchMemberKind kind;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), GTORCH_MEMBER_KIND_NONE);
  g_return_val_if_fail (name != NULL, GTORCH_MEMBER_KIND_NONE);

  gtorch_module_lock (self);
  kind = find_taker (gtorch_module_get_private (self), name, NULL);
  gtorch_module_unlock (self);
  return kind;
}

/* Fails if there is a taker. */
static gboolean
check_taker (GTorchModule *self, const gchar *name, GTorchMemberKind taker, GError **error)
{
  if (taker == GTORCH_MEMBER_KIND_NONE)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: '%s' is already the name of %s"),
               gtorch_module_type_name (self), gtorch_name_str (name),
               taker == GTORCH_MEMBER_KIND_PARAMETER ? _ ("a parameter")
               : taker == GTORCH_MEMBER_KIND_BUFFER  ? _ ("a buffer")
                                                     : _ ("a module"));
  return FALSE;
}

/* With the lock held. */
static gboolean
is_computed (GTorchModulePrivate *priv, const gchar *name)
{
  const GTorchMember *member = gtorch_members_find (priv->parameters, name);

  if (member == NULL)
    member = gtorch_members_find (priv->buffers, name);
  return member != NULL && member->computed != NULL;
}

static gboolean
refuse_computed (GTorchModule *self, const gchar *name, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: '%s' is computed from other tensors, and can be replaced or removed only "
                  "after "
                  "that was ended"),
               gtorch_module_type_name (self), gtorch_name_str (name));
  return FALSE;
}

/* With the locks held. Takes the reference of tensor, and returns the former one. */
static GTorchTensor *
put_member (GArray *array, const gchar *name, GTorchTensor *tensor, gboolean persistent)
{
  GTorchMember *member = gtorch_members_find (array, name);
  GTorchMember made = { NULL, NULL, FALSE };
  GTorchTensor *former;

  if (member == NULL)
    {
      made.name = g_strdup (name);
      g_array_append_val (array, made);
      member = &g_array_index (array, GTorchMember, array->len - 1);
    }
  former = member->tensor;
  member->tensor = tensor;
  member->persistent = persistent;
  member->is_count = FALSE;
  return former;
}

/* Returns a reference for a list of members, in which each tensor has its elements. */
static GTorchTensor *
ref_for_member (GTorchTensor *tensor)
{
  if (tensor == NULL)
    return NULL;
  gtorch_tensor_unwrap (tensor);
  if (gtorch_scope_current != NULL)
    gtorch_scope_exempt (tensor);
  return g_object_ref (tensor);
}

static gboolean
set_member (GTorchModule *self, GArray *array, const gchar *name, GTorchTensor *tensor,
            gboolean persistent, GError **error)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  g_autoptr (GTorchTensor) dropped = NULL;
  GTorchMemberKind taker;
  gboolean computed;

  if (!check_name (self, name, error))
    return FALSE;
  dropped = ref_for_member (tensor);
  gtorch_module_begin_change (self);
  taker = find_taker (priv, name, array);
  computed = is_computed (priv, name);
  if (taker == GTORCH_MEMBER_KIND_NONE && !computed)
    dropped = put_member (array, name, dropped, persistent);
  gtorch_module_end_change (self);
  if (taker == GTORCH_MEMBER_KIND_NONE && computed)
    return refuse_computed (self, name, error);
  return check_taker (self, name, taker, error);
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
  if (!set_member (self, priv->parameters, name, (GTorchTensor *) parameter, TRUE, error))
    return FALSE;
  gtorch_parameter_join (parameter, self, name);
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
  return set_member (self, priv->buffers, name, buffer, persistent, error);
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
  GTORCH_HOLD_TENSOR (buffer);
  g_autoptr (GTorchTensor) dropped = NULL;
  const GTorchMember *member;
  GArray *buffers;
  gboolean computed;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (buffer == NULL || GTORCH_IS_TENSOR (buffer), FALSE);

  buffers = gtorch_module_get_private (self)->buffers;
  dropped = ref_for_member (buffer);
  gtorch_module_begin_change (self);
  member = gtorch_members_find (buffers, name);
  computed = member != NULL && member->computed != NULL;
  if (member != NULL && !computed)
    dropped = put_member (buffers, name, dropped, member->persistent);
  gtorch_module_end_change (self);
  if (computed)
    return refuse_computed (self, name, error);
  if (member != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there is no buffer '%s'"),
               gtorch_module_type_name (self), gtorch_name_str (name));
  return FALSE;
}

/* --- traversal --- */

GArray *
gtorch_module_dup_members (GTorchModule *self, gboolean buffers)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  GArray *members = buffers ? priv->buffers : priv->parameters;
  GArray *copy = g_array_new (FALSE, FALSE, sizeof (GTorchMember));
  guint i;

  g_array_set_clear_func (copy, gtorch_member_clear);
  gtorch_module_lock (self);
  for (i = 0; i < members->len; i++)
    {
      GTorchMember member = g_array_index (members, GTorchMember, i);

      member.name = g_strdup (member.name);
      if (member.tensor != NULL)
        member.tensor = g_object_ref (gtorch_stand_in (member.tensor));
      if (member.computed != NULL)
        gtorch_computed_ref (member.computed);
      g_array_append_val (copy, member);
    }
  gtorch_module_unlock (self);
  return copy;
}

GPtrArray *
gtorch_module_dup_children (GTorchModule *self, gchar ***names)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  GPtrArray *copy = g_ptr_array_new_with_free_func (g_object_unref);
  GPtrArray *children;
  guint i;

  gtorch_module_lock (self);
  children = gtorch_object_list_get_items (priv->children);
  if (names != NULL)
    *names = g_new0 (gchar *, children->len + 1);
  for (i = 0; i < children->len; i++)
    {
      g_ptr_array_add (copy, g_object_ref (children->pdata[i]));
      if (names != NULL)
        (*names)[i] = g_strdup (priv->child_names->pdata[i]);
    }
  gtorch_module_unlock (self);
  return copy;
}

/* --- children --- */

typedef struct
{
  gpointer searched; /* NULL: found */
  GHashTable *seen;
} Search;

static void
look_for (GTorchModule *module, const gchar *path, gpointer user_data)
{
  Search *search = user_data;
  GTorchModule *wrapped = GTORCH_IS_GRAPHED_MODULE (module)
                              ? gtorch_graphed_module_get_wrapped (GTORCH_GRAPHED_MODULE (module))
                              : NULL;

  if (search->searched == module)
    search->searched = NULL;
  else if (wrapped != NULL)
    gtorch_module_visit_unseen (wrapped, FALSE, search->seen, look_for, search);
}

/* With the lock of growth. Keeps the modules that it finds in `seen`. */
static gboolean
check_child (GTorchModule *self, GTorchModule *child, GHashTable *seen, GError **error)
{
  Search search = { self, seen };

  gtorch_module_visit_unseen (child, FALSE, seen, look_for, &search);
  if (search.searched != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: it is itself inside the %s that was to be added to it"),
               gtorch_module_type_name (self), gtorch_module_type_name (child));
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

  while (has_child (priv, name) || gtorch_members_find (priv->parameters, name) != NULL
         || gtorch_members_find (priv->buffers, name) != NULL)
    {
      g_free (name);
      name = g_strdup_printf ("%u", ++number);
    }
  return name;
}

void
gtorch_module_append_parameter (GTorchModule *self, GTorchParameter *parameter)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  g_autofree gchar *name = NULL;
  GTorchTensor *owned = ref_for_member ((GTorchTensor *) parameter);

  gtorch_module_begin_change (self);
  name = free_number (priv, priv->parameters->len);
  put_member (priv->parameters, name, owned, TRUE);
  gtorch_module_end_change (self);
  gtorch_parameter_join (parameter, self, name);
}

/* With the locks held. */
static void
remove_child (GTorchModule *self, guint position, GPtrArray *removed)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  guint i;

  g_ptr_array_remove_index (priv->child_names, position);
  for (i = position; priv->is_numbered && i < priv->child_names->len; i++)
    rename_child (priv, i, i + 1, i);
  gtorch_object_list_change (priv->children, position, 1, NULL, 0, removed);
}

/* With the locks held. Makes a position that may be negative one from 0 on. */
static gboolean
normalize (GTorchModulePrivate *priv, gint *position, guint beyond)
{
  const gint n = (gint) priv->child_names->len;

  if (*position < -n || *position >= n + (gint) beyond)
    return FALSE;
  if (*position < 0)
    *position += n;
  return TRUE;
}

static gboolean
refuse_position (GTorchModule *self, gint position, guint n, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
               _ ("%s: position %d is out of range for %d modules"), gtorch_module_type_name (self),
               position, (gint) n);
  return FALSE;
}

/* With the locks held: replaces the child of the name, adds one, or, without a name, inserts one at the
 * position. Takes the reference of child. */
static void
put_child (GTorchModulePrivate *priv, const gchar *name, guint *position, GTorchModule *child,
           GPtrArray *removed)
{
  gboolean replace = name != NULL && find_child (priv, name, position);
  guint i;

  if (name == NULL)
    {
      for (i = priv->child_names->len; i-- > *position;)
        rename_child (priv, i, i, i + 1);
      g_ptr_array_insert (priv->child_names, (gint) *position, free_number (priv, *position));
    }
  else if (!replace)
    g_ptr_array_add (priv->child_names, g_strdup (name));
  gtorch_object_list_change (priv->children, *position, replace, (gpointer *) &child, 1, removed);
}

/* Without a name, at the given position; without that, at the end. */
static gboolean
add_child (GTorchModule *self, const gchar *name, const gint *given, GTorchModule *child,
           GError **error)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (NULL, NULL, g_object_unref, NULL);
  g_autoptr (GPtrArray) removed = g_ptr_array_new_with_free_func (g_object_unref);
  GTorchMemberKind taker = GTORCH_MEMBER_KIND_NONE;
  gboolean success, in_range = TRUE;
  gint position;
  guint at = 0, n = 0;

  g_object_ref (child);
  g_mutex_lock (&growth_lock);
  success = check_child (self, child, seen, error);
  if (success)
    {
      gtorch_module_begin_change (self);
      n = priv->child_names->len;
      position = given != NULL ? *given : (gint) n;
      in_range = normalize (priv, &position, 1);
      if (name != NULL)
        taker = find_taker (priv, name, priv->children);
      at = (guint) position;
      success = in_range && taker == GTORCH_MEMBER_KIND_NONE;
      if (success)
        put_child (priv, name, &at, child, removed);
      gtorch_module_end_change (self);
    }
  g_mutex_unlock (&growth_lock);
  if (success)
    {
      gtorch_module_be_inside (&gtorch_module_get_private (child)->outer, self, child);
      g_list_model_items_changed (G_LIST_MODEL (priv->children), at, removed->len, 1);
      return TRUE;
    }
  g_object_unref (child);
  if (!in_range)
    return refuse_position (self, *given, n, error);
  return check_taker (self, name, taker, error) && FALSE;
}

gboolean
gtorch_module_insert_child (GTorchModule *self, const gint *position, GTorchModule *child,
                            GError **error)
{
  return add_child (self, NULL, position, child, error);
}

gboolean
gtorch_module_remove_child (GTorchModule *self, gint position, GError **error)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  g_autoptr (GPtrArray) removed = g_ptr_array_new_with_free_func (g_object_unref);
  const gint given = position;
  gboolean in_range;
  guint n;

  gtorch_module_begin_change (self);
  n = priv->child_names->len;
  in_range = normalize (priv, &position, 0);
  if (in_range)
    remove_child (self, (guint) position, removed);
  gtorch_module_end_change (self);
  if (!in_range)
    return refuse_position (self, given, n, error);
  g_list_model_items_changed (G_LIST_MODEL (priv->children), (guint) position, 1, 0);
  return TRUE;
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
  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_MODULE (module), FALSE);

  return check_name (self, name, error) && add_child (self, name, NULL, module, error);
}

gboolean
gtorch_module_owns (GTorchModule *self, const gchar *name)
{
  g_autofree gchar *property = g_strdelimit (g_strdup (name), "_", '-');
  GParamSpec *pspec = g_object_class_find_property (G_OBJECT_GET_CLASS (self), property);

  return pspec != NULL && g_type_is_a (pspec->value_type, GTORCH_TYPE_TENSOR);
}

static void
unref_nullable (gpointer object)
{
  if (object != NULL)
    g_object_unref (object);
}

/* With the locks held. */
static GTorchTensor *
steal_tensor (GArray *members, GTorchMember *member)
{
  GTorchTensor *tensor = g_steal_pointer (&member->tensor);

  g_array_remove_index (members, (guint) (member - (GTorchMember *) (gpointer) members->data));
  return tensor;
}

/**
 * gtorch_module_unregister:
 * @self: a module
 * @name: the name of a parameter, buffer or module of this module
 * @error: return location for an error
 *
 * Removes a parameter, a buffer or a module. What a layer computes with, such as the weight of
 * [class@Linear], stays: [method@Module.register_parameter] can set it to %NULL. In a [class@Sequential] or
 * [class@ModuleList] the modules behind a removed one move up, as [method@Sequential.remove] says.
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
  g_autoptr (GPtrArray) removed = NULL;
  GTorchMemberKind kind;
  GTorchMember *member;
  gboolean is_part, computed;
  guint position = 0;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);

  priv = gtorch_module_get_private (self);
  removed = g_ptr_array_new_with_free_func (unref_nullable);
  is_part = gtorch_module_owns (self, name);
  gtorch_module_begin_change (self);
  kind = find_taker (priv, name, NULL);
  computed = is_computed (priv, name);
  if (kind == GTORCH_MEMBER_KIND_MODULE)
    {
      find_child (priv, name, &position);
      remove_child (self, position, removed);
    }
  else if (kind != GTORCH_MEMBER_KIND_NONE && !is_part && !computed)
    {
      GArray *members = kind == GTORCH_MEMBER_KIND_BUFFER ? priv->buffers : priv->parameters;

      member = gtorch_members_find (members, name);
      g_ptr_array_add (removed, steal_tensor (members, member));
    }
  gtorch_module_end_change (self);
  if (kind == GTORCH_MEMBER_KIND_MODULE)
    g_list_model_items_changed (G_LIST_MODEL (priv->children), position, 1, 0);
  if (kind == GTORCH_MEMBER_KIND_NONE)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: there is no parameter, buffer or module '%s' that could be removed"),
                 gtorch_module_type_name (self), gtorch_name_str (name));
  else if (computed)
    refuse_computed (self, name, error);
  else if (removed->len == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: '%s' is part of the layer and cannot be removed, but it can be set to "
                    "none"),
                 gtorch_module_type_name (self), gtorch_name_str (name));
  return removed->len > 0;
}

/* Returns the tensor, or computes it. Returns FALSE only if that failed. */
static gboolean
take_nth (GTorchModule *self, GArray *members, guint i, GTorchTensor **tensor, GError **error)
{
  g_autoptr (GTorchComputed) computed = NULL;
  g_autofree gchar *name = NULL;

  *tensor = NULL;
  gtorch_module_lock (self);
  if (i < members->len)
    {
      const GTorchMember *member = &g_array_index (members, GTorchMember, i);

      if (member->tensor != NULL)
        *tensor = g_object_ref (gtorch_stand_in (member->tensor));
      else if (member->computed != NULL)
        {
          computed = gtorch_computed_ref (member->computed);
          name = g_strdup (member->name);
        }
    }
  gtorch_module_unlock (self);
  if (computed != NULL)
    *tensor = gtorch_computed_run (computed, self, name, error);
  return computed == NULL || *tensor != NULL;
}

GTorchTensor *
gtorch_module_dup_parameter (GTorchModule *self, guint i)
{
  GTorchTensor *tensor;

  take_nth (self, gtorch_module_get_private (self)->parameters, i, &tensor, NULL);
  return tensor;
}

GTorchTensor *
gtorch_module_dup_buffer (GTorchModule *self, guint i)
{
  GTorchTensor *tensor;

  take_nth (self, gtorch_module_get_private (self)->buffers, i, &tensor, NULL);
  return tensor;
}

/* Sets *impl unless the member must be computed. */
static gboolean
take_nth_impl (GTorchModule *self, GArray *members, guint i, GTorchImpl **impl)
{
  const GTorchMember *member = NULL;
  gboolean is_computed;

  *impl = NULL;
  gtorch_module_lock (self);
  if (i < members->len)
    member = &g_array_index (members, GTorchMember, i);
  if (member != NULL && member->tensor != NULL)
    *impl = gtorch_impl_ref (gtorch_tensor_unwrap (gtorch_stand_in (member->tensor)));
  is_computed = member != NULL && member->computed != NULL;
  gtorch_module_unlock (self);
  return !is_computed;
}

gboolean
gtorch_module_take_parameter (gpointer self, guint i, GTorchImpl **impl, GError **error)
{
  GArray *parameters = gtorch_module_get_private (self)->parameters;
  g_autoptr (GTorchTensor) tensor = NULL;

  if (G_LIKELY (take_nth_impl (self, parameters, i, impl)))
    return TRUE;
  if (!take_nth (self, parameters, i, &tensor, error))
    return FALSE;
  if (tensor != NULL)
    *impl = gtorch_impl_ref (gtorch_tensor_unwrap (tensor));
  return TRUE;
}

/* A buffer that a layer has itself is never computed. */
GTorchImpl *
gtorch_module_dup_buffer_impl (gpointer self, guint i)
{
  GTorchImpl *impl;

  take_nth_impl (self, gtorch_module_get_private (self)->buffers, i, &impl);
  return impl;
}

/* --- lookup --- */

static GTorchModule *
dup_child (GTorchModule *self, const gchar *name)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  GTorchModule *child = NULL;
  guint position;

  gtorch_module_lock (self);
  if (find_child (priv, name, &position))
    child = g_object_ref (gtorch_object_list_get_items (priv->children)->pdata[position]);
  gtorch_module_unlock (self);
  return child;
}

static GTorchModule *
walk_path (GTorchModule *self, const gchar *path, gsize length, GError **error)
{
  g_autoptr (GTorchModule) module = g_object_ref (self);
  g_auto (GStrv) names = NULL;
  g_autofree gchar *part = g_strndup (path, length);
  guint i;

  if (length == 0)
    return g_steal_pointer (&module);
  names = g_strsplit (part, ".", -1);
  for (i = 0; names[i] != NULL; i++)
    {
      GTorchModule *child = dup_child (module, names[i]);

      if (child == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                       _ ("%s: no module '%s', wanted for '%s'"), gtorch_module_type_name (module),
                       gtorch_name_str (names[i]), gtorch_name_str (path));
          return NULL;
        }
      g_object_unref (module);
      module = child;
    }
  return g_steal_pointer (&module);
}

static GTorchTensor *
find_tensor (GTorchModule *self, const gchar *path, gboolean buffer, GError **error)
{
  const gchar *dot = strrchr (path, '.');
  g_autoptr (GTorchModule) module = walk_path (self, path, dot != NULL ? dot - path : 0, error);
  GTorchModulePrivate *priv;
  GTorchTensor *tensor = NULL;
  GTorchMember *member;
  gboolean is_known;

  if (module == NULL)
    return NULL;
  priv = gtorch_module_get_private (module);
  gtorch_module_lock (module);
  member =
      gtorch_members_find (buffer ? priv->buffers : priv->parameters, dot != NULL ? dot + 1 : path);
  is_known = member != NULL;
  if (member != NULL && member->tensor != NULL)
    tensor = g_object_ref (gtorch_stand_in (member->tensor));
  gtorch_module_unlock (module);
  if (tensor != NULL)
    return tensor;
  if (is_known)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                 buffer ? _ ("%s: the buffer '%s' is absent: it was registered as none")
                        : _ ("%s: the parameter '%s' is absent: it was registered as none"),
                 gtorch_module_type_name (module), gtorch_name_str (path));
  else
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
 * Returns: (transfer full): the parameter, or %NULL with %GTORCH_ERROR_NOT_FOUND
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
 * Returns: (transfer full): the buffer, or %NULL with %GTORCH_ERROR_NOT_FOUND
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
 * Returns: (transfer full): the module, or %NULL with %GTORCH_ERROR_NOT_FOUND
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
}
