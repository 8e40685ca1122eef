/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The state of a module as a table, and loading it; copies between tensors. */

#include "config.h"

#include "nn/gtorch-module-state.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "device/gtorch-device-private.h"
#include "tensor/gtorch-hold-private.h"
#include "nn/gtorch-lazy-private.h"
#include "base/gtorch-callback-private.h"
#include "nn/gtorch-module-private.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-state-private.h"
#include "tensor/gtorch-uninitialized-private.h"

GTorchImpl *
gtorch_impl_to (GTorchImpl *impl, GTorchDevice *device, guint dtype, GError **error)
{
  g_autoptr (GTorchImpl) converted = gtorch_impl_ref (impl);
  g_autoptr (GTorchImpl) moved = NULL;

  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("a tensor of shape %s was released"), gtorch_impl_shape_str (impl));
      return NULL;
    }
  if (dtype != GTORCH_DTYPE_NONE && dtype != impl->dtype)
    {
      gtorch_impl_unref (converted);
      converted = gtorch_op_to_dtype (impl, dtype, error);
      if (converted == NULL)
        return NULL;
    }
  if (device == NULL || device == gtorch_impl_device (impl))
    return g_steal_pointer (&converted);
  moved = gtorch_op_empty (converted->shape, converted->n_dims, converted->dtype, device, error);
  if (moved == NULL || !gtorch_op_copy_inplace (moved, converted, FALSE, error))
    return NULL;
  return g_steal_pointer (&moved);
}

/* --- entries of the state --- */

typedef struct
{
  gchar *path;
  GTorchTensor *tensor;
  GTorchImpl
      *target; /* what values are loaded into: the tensor, or what a lazy layer will have there */
  gboolean is_count;
  GTorchModule *owner; /* of an extra state, which has no target; else NULL */
} StateItem;

#define EXTRA_STATE "_extra_state"

static void
clear_item (gpointer data)
{
  StateItem *item = data;

  g_free (item->path);
  g_clear_object (&item->tensor);
  g_clear_pointer (&item->target, gtorch_impl_unref);
  g_clear_object (&item->owner);
}

static gchar *
path_of (const gchar *path, const gchar *name)
{
  return g_strconcat (path, path[0] != '\0' ? "." : "", name, NULL);
}

typedef struct
{
  GArray *items;
  gboolean is_loading;
} StateList;

/* Adds the extra state of a module: its value, or, for loading, a place for one. */
static void
list_extra_state (GTorchModule *self, const gchar *path, const StateList *list)
{
  GTorchModuleClass *klass = GTORCH_MODULE_GET_CLASS (self);
  StateItem item = { 0 };

  if (list->is_loading ? klass->set_extra_state == NULL : klass->get_extra_state == NULL)
    return;
  if (!list->is_loading)
    {
      item.tensor = klass->get_extra_state (self);
      if (!GTORCH_IS_TENSOR (item.tensor))
        {
          g_clear_object (&item.tensor);
          return;
        }
    }
  item.path = path_of (path, EXTRA_STATE);
  item.owner = g_object_ref (self);
  g_array_append_val (list->items, item);
}

/* Shared modules and parameters are listed under each of their names. */
static gboolean
list_state (GTorchModule *self, const gchar *path, gpointer data)
{
  const StateList *list = data;
  guint i, j;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (self, i == 1);

      for (j = 0; j < members->len; j++)
        {
          GTorchMember *member = &g_array_index (members, GTorchMember, j);
          StateItem item = { 0 };

          if (member->tensor == NULL || !member->persistent)
            continue;
          item.path = path_of (path, member->name);
          item.tensor = g_steal_pointer (&member->tensor);
          item.target = gtorch_impl_ref (gtorch_tensor_unwrap (item.tensor));
          item.is_count = member->is_count;
          g_array_append_val (list->items, item);
        }
    }
  list_extra_state (self, path, list);
  return TRUE;
}

static GArray *
get_state (GTorchModule *self, gboolean is_loading)
{
  StateList list = { g_array_new (FALSE, FALSE, sizeof (StateItem)), is_loading };

  g_array_set_clear_func (list.items, clear_item);
  gtorch_module_walk (self, TRUE, list_state, NULL, &list, NULL);
  return list.items;
}

/* Returns a table that borrows its tensors. */
GHashTable *
gtorch_state_from_lists (const gchar *const *names, GTorchTensor **tensors, gsize n_tensors,
                         GError **error)
{
  gsize i, n_names = names != NULL ? g_strv_length ((gchar **) names) : 0;
  GHashTable *state;

  if (n_names != n_tensors)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("load_state_lists: %zu names and %zu tensors: there must be one name for "
                      "each tensor"),
                   n_names, n_tensors);
      return NULL;
    }
  for (i = 0; i < n_tensors; i++)
    if (!GTORCH_IS_TENSOR (tensors[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("load_state_lists: “%s” is no tensor"), gtorch_name_str (names[i]));
        return NULL;
      }
    else if (!gtorch_name_check ("load_state_lists", names[i], error))
      return NULL;
  state = g_hash_table_new (g_str_hash, g_str_equal);
  for (i = 0; i < n_tensors; i++)
    if (!gtorch_name_insert ("load_state_lists", state, names[i], tensors[i], error))
      {
        g_hash_table_unref (state);
        return NULL;
      }
  return state;
}

GPtrArray *
gtorch_state_to_lists (GHashTable *state, gchar ***names)
{
  GPtrArray *tensors = g_ptr_array_new_with_free_func (g_object_unref);
  guint n_keys, i;
  gchar **keys = (gchar **) g_hash_table_get_keys_as_array (state, &n_keys);

  for (i = 0; i < n_keys; i++)
    {
      g_ptr_array_add (tensors, g_object_ref (g_hash_table_lookup (state, keys[i])));
      keys[i] = g_strdup (keys[i]);
    }
  if (names != NULL)
    *names = keys;
  else
    g_strfreev (keys);
  return tensors;
}

/**
 * gtorch_module_get_extra_state:
 * @self: a module
 *
 * Gets what belongs to the state of the module beside its parameters and buffers, which a class may have: it
 * is in [method@Module.state_dict] under the name `_extra_state`.
 *
 * It is a tensor, so that files can have it, of any dtype and shape. What is no number has to be made one,
 * such as a text its bytes.
 *
 * Returns: (transfer full) (nullable): a tensor, or %NULL if there is none
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_module_get_extra_state (GTorchModule *self)
{
  GTorchModuleClass *klass;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  klass = GTORCH_MODULE_GET_CLASS (self);
  return klass->get_extra_state != NULL ? klass->get_extra_state (self) : NULL;
}

static gboolean
set_extra_state (GTorchModule *self, GTorchTensor *state, GError **error)
{
  GError *local = NULL;
  gboolean success = GTORCH_MODULE_GET_CLASS (self)->set_extra_state (self, state, &local);

  return gtorch_callback_ended (gtorch_module_type_name (self), success, local, error);
}

/**
 * gtorch_module_set_extra_state:
 * @self: a module
 * @state: a tensor that [method@Module.get_extra_state] gave
 * @error: return location for an error
 *
 * Takes what belongs to the state of the module beside its parameters and buffers, which
 * [method@Module.load_state_dict] does, too.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED if the class has no such state, or with the error
 *   of the class
 *
 * Since: 0.1
 */
gboolean
gtorch_module_set_extra_state (GTorchModule *self, GTorchTensor *state, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (state), FALSE);
  if (GTORCH_MODULE_GET_CLASS (self)->set_extra_state != NULL)
    return set_extra_state (self, state, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: set_extra_state: the class has no extra state"),
               gtorch_module_type_name (self));
  return FALSE;
}

/**
 * gtorch_module_state_dict:
 * @self: a module
 *
 * Gets all values of the module: its parameters and persistent buffers, its extra state
 * ([method@Module.get_extra_state]) and those of its descendants, by path. The tensors share memory with the
 * module's, and do not require grad.
 *
 * ```c
 * g_autoptr (GHashTable) state = gtorch_module_state_dict (net);
 *
 * gtorch_module_load_state_dict (copy, state, TRUE, &error);
 * ```
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): a table from paths, as
 *   [method@Module.get_state_names] lists them, to tensors
 *
 * Since: 0.1
 */
GHashTable *
gtorch_module_state_dict (GTorchModule *self)
{
  g_autoptr (GArray) items = NULL;
  GHashTable *state;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  items = get_state (self, FALSE);
  state = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  for (i = 0; i < items->len; i++)
    {
      StateItem *item = &g_array_index (items, StateItem, i);

      g_hash_table_insert (state, g_strdup (item->path),
                           gtorch_tensor_wrap (
                               gtorch_impl_alias (gtorch_tensor_unwrap (item->tensor))));
    }
  return state;
}

/**
 * gtorch_module_get_state_names:
 * @self: a module
 *
 * Lists the keys of [method@Module.state_dict] in the order in which they were registered.
 *
 * Returns: (transfer full): the paths
 *
 * Since: 0.1
 */
gchar **
gtorch_module_get_state_names (GTorchModule *self)
{
  g_autoptr (GArray) items = NULL;
  gchar **names;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  items = get_state (self, FALSE);
  names = g_new0 (gchar *, items->len + 1);
  for (i = 0; i < items->len; i++)
    names[i] = g_steal_pointer (&g_array_index (items, StateItem, i).path);
  return names;
}

/**
 * gtorch_module_state_lists:
 * @self: a module
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the paths, as
 *   [method@Module.get_state_names] lists them
 *
 * Gets the tensors of [method@Module.state_dict], in the order in which they were registered.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_module_state_lists (GTorchModule *self, gchar ***names)
{
  g_autoptr (GArray) items = NULL;
  GPtrArray *tensors;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  items = get_state (self, FALSE);
  tensors = g_ptr_array_new_with_free_func (g_object_unref);
  if (names != NULL)
    *names = g_new0 (gchar *, items->len + 1);
  for (i = 0; i < items->len; i++)
    {
      StateItem *item = &g_array_index (items, StateItem, i);

      g_ptr_array_add (tensors, gtorch_tensor_wrap (
                                    gtorch_impl_alias (gtorch_tensor_unwrap (item->tensor))));
      if (names != NULL)
        (*names)[i] = g_steal_pointer (&item->path);
    }
  return tensors;
}

static void append_fault (GString *text, const gchar *path, const gchar *format, ...)
    G_GNUC_PRINTF (3, 4);

static void
append_fault (GString *text, const gchar *path, const gchar *format, ...)
{
  va_list args;

  g_string_append_printf (text, "%s%s ", text->len > 0 ? ", " : "", path);
  va_start (args, format);
  g_string_append_vprintf (text, format, args);
  va_end (args);
}

/* The state of a lazy layer that was not used is no more than that. */
static gboolean
stays_uninitialized (const StateItem *item, GTorchTensor *value)
{
  return gtorch_impl_is_uninitialized (item->target)
         && gtorch_impl_is_uninitialized (gtorch_tensor_unwrap (value));
}

/* Collects all faults, so that they can be repaired at once. */
static gchar *
find_faults (GArray *items, GHashTable *state, gboolean strict, GTorchError *code)
{
  g_autoptr (GHashTable) known = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) missing = g_ptr_array_new ();
  g_autoptr (GString) wrong = g_string_new (NULL);
  g_autoptr (GPtrArray) unexpected = g_ptr_array_new ();
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  GHashTableIter iter;
  gpointer key;
  guint i;

  *code = GTORCH_ERROR_SHAPE;
  for (i = 0; i < items->len; i++)
    {
      StateItem *item = &g_array_index (items, StateItem, i);
      GTorchTensor *value = g_hash_table_lookup (state, item->path);
      GTorchImpl *have = item->target;

      g_hash_table_add (known, item->path);
      if (value == NULL)
        g_ptr_array_add (missing, item->path);
      else if (!GTORCH_IS_TENSOR (value))
        append_fault (wrong, item->path, _ ("is no tensor in the table"));
      else if (have == NULL)
        continue; /* an extra state, which its owner takes */
      else if (stays_uninitialized (item, value))
        continue;
      else if (gtorch_tensor_unwrap (value)->storage == NULL)
        append_fault (wrong, item->path, "%s", gtorch_impl_loss (gtorch_tensor_unwrap (value)));
      else if (gtorch_impl_write_obstacle (have) != NULL)
        {
          append_fault (wrong, item->path, "%s", gtorch_impl_write_obstacle (have));
          *code = GTORCH_ERROR_INVALID;
        }
      else if (!gtorch_impl_same_shape (have, gtorch_tensor_unwrap (value)))
        append_fault (wrong, item->path, _ ("has shape %s in the module and %s in the table"),
                      gtorch_impl_shape_str (have),
                      gtorch_impl_shape_str (gtorch_tensor_unwrap (value)));
      else if (gtorch_dtype_loses_imaginary (gtorch_tensor_unwrap (value)->dtype, have->dtype))
        {
          append_fault (wrong, item->path, _ ("is %s in the module and %s in the table"),
                        gtorch_dtype_get_name (have->dtype),
                        gtorch_dtype_get_name (gtorch_tensor_unwrap (value)->dtype));
          *code = GTORCH_ERROR_DTYPE;
        }
    }
  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    if (!g_hash_table_contains (known, key))
      g_ptr_array_add (unexpected, key);

  if (strict && missing->len + unexpected->len > 0)
    g_ptr_array_add (parts, gtorch_state_describe_names (missing, unexpected));
  if (parts->len > 0)
    *code = GTORCH_ERROR_NOT_FOUND;
  if (wrong->len > 0)
    g_ptr_array_add (parts, g_strdup (wrong->str));
  if (parts->len == 0)
    return NULL;
  g_ptr_array_add (parts, NULL);
  return g_strjoinv ("; ", (gchar **) parts->pdata);
}

/* Other threads may release tensors of both sides meanwhile. */
static GPtrArray *
list_used (GArray *items, GHashTable *state)
{
  GPtrArray *used = g_ptr_array_new ();
  guint i;

  for (i = 0; i < items->len; i++)
    {
      StateItem *item = &g_array_index (items, StateItem, i);
      GTorchTensor *value = g_hash_table_lookup (state, item->path);

      if (item->target != NULL)
        g_ptr_array_add (used, item->target);
      if (GTORCH_IS_TENSOR (value))
        g_ptr_array_add (used, gtorch_tensor_unwrap (value));
    }
  return used;
}

static gboolean
load_item (const StateItem *item, GTorchTensor *value, const gchar *who, GTorchStateWrites *writes,
           GError **error)
{
  if (item->is_count
      && !gtorch_state_get_number (who, item->path, value, 0, G_MAXDOUBLE, TRUE, NULL, error))
    return FALSE;
  return gtorch_state_writes_add (writes, item->target, gtorch_tensor_unwrap (value), who,
                                  item->path, error);
}

/* Lets values be loaded into the tensors that lazy layers will have. */
static void
aim_at_plans (GArray *items, GPtrArray *plans)
{
  g_autoptr (GHashTable) values = g_hash_table_new (NULL, NULL);
  guint i, j;

  for (i = 0; i < plans->len; i++)
    {
      const GTorchLazyPlan *plan = plans->pdata[i];

      for (j = 0; j < plan->targets->len; j++)
        g_hash_table_insert (values, plan->targets->pdata[j], plan->values->pdata[j]);
    }
  for (i = 0; i < items->len; i++)
    {
      StateItem *item = &g_array_index (items, StateItem, i);
      GTorchImpl *value = g_hash_table_lookup (values, item->target);

      if (value == NULL)
        continue;
      gtorch_impl_unref (item->target);
      item->target = gtorch_impl_ref (value);
    }
}

static gboolean
load_items (GTorchModule *self, GArray *items, GHashTable *state, gboolean strict, GPtrArray *used,
            GError **error)
{
  GTORCH_HOLD_MANY ((GTorchImpl **) used->pdata, used->len);
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchStateWrites) writes = gtorch_state_writes_new ();
  g_autofree gchar *faults = NULL;
  g_autofree gchar *who = NULL;
  GTorchError code;
  guint i;

  faults = find_faults (items, state, strict, &code);
  if (faults != NULL)
    {
      g_set_error (error, GTORCH_ERROR, code, _ ("%s: load_state_dict: %s"),
                   gtorch_module_type_name (self), faults);
      return FALSE;
    }
  guard = gtorch_no_grad ();
  who = g_strdup_printf ("%s: load_state_dict", gtorch_module_type_name (self));
  for (i = 0; i < items->len; i++)
    {
      StateItem *item = &g_array_index (items, StateItem, i);
      GTorchTensor *value = g_hash_table_lookup (state, item->path);

      if (value != NULL && item->target != NULL && !stays_uninitialized (item, value)
          && !load_item (item, value, who, writes, error))
        return FALSE;
    }
  return gtorch_state_writes_run (writes, error);
}

static gboolean
load_extra_states (GTorchModule *self, GArray *items, GHashTable *state, GError **error)
{
  guint i;

  for (i = 0; i < items->len; i++)
    {
      StateItem *item = &g_array_index (items, StateItem, i);
      GTorchTensor *value = g_hash_table_lookup (state, item->path);

      if (item->owner == NULL || value == NULL || set_extra_state (item->owner, value, error))
        continue;
      g_prefix_error (error, "%s: load_state_dict: %s: ", gtorch_module_type_name (self),
                      item->path);
      return FALSE;
    }
  return TRUE;
}

/**
 * gtorch_module_load_state_dict:
 * @self: a module
 * @state: (element-type utf8 GTorchTensor): a table from paths to tensors, as [method@Module.state_dict]
 *   returns it and a safetensors file contains it
 * @strict: whether the names in the module and the table must be the same
 * @error: return location for an error
 *
 * Copies values into the parameters and buffers, converting dtypes and moving between devices where
 * they differ. A lazy layer that was not used yet gets the size that the table tells.
 *
 * Returns: %TRUE on success. On failure nothing was copied, and the error lists the names that are
 *   missing or unexpected (%GTORCH_ERROR_NOT_FOUND), shapes that differ (%GTORCH_ERROR_SHAPE), complex
 *   values for real tensors (%GTORCH_ERROR_DTYPE), tensors that cannot be written (%GTORCH_ERROR_INVALID)
 *   and counts that are not whole numbers of at least 0 (%GTORCH_ERROR_FORMAT). Only a GPU that fails to
 *   copy within its own memory, with %GTORCH_ERROR_CUDA, may leave some tensors loaded, and a class that
 *   refuses its extra state, which comes last, with the error of the class, all of them
 *
 * Since: 0.1
 */
gboolean
gtorch_module_load_state_dict (GTorchModule *self, GHashTable *state, gboolean strict,
                               GError **error)
{
  g_autoptr (GArray) items = NULL;
  g_autoptr (GPtrArray) used = NULL;
  g_autoptr (GPtrArray) plans = NULL;
  guint i;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (state != NULL, FALSE);
  items = get_state (self, TRUE);
  plans = gtorch_lazy_prepare_all (self, state, error);
  if (plans == NULL)
    {
      g_prefix_error (error, "%s: load_state_dict: ", gtorch_module_type_name (self));
      return FALSE;
    }
  aim_at_plans (items, plans);
  used = list_used (items, state);
  if (!load_items (self, items, state, strict, used, error))
    return FALSE;
  for (i = 0; i < plans->len; i++)
    if (!gtorch_lazy_commit (plans->pdata[i], error))
      return FALSE;
  return load_extra_states (self, items, state, error);
}

/**
 * gtorch_module_load_state_lists:
 * @self: a module
 * @names: (array zero-terminated=1): the path of each tensor
 * @tensors: (array length=n_tensors): tensors
 * @n_tensors: the length of @tensors, which is that of @names
 * @strict: whether the names must be those of the module
 * @error: return location for an error
 *
 * Does the same as [method@Module.load_state_dict].
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if the lengths differ or a name appears twice,
 *   and with the errors
 *   of [method@Module.load_state_dict]
 *
 * Since: 0.1
 */
gboolean
gtorch_module_load_state_lists (GTorchModule *self, const gchar *const *names,
                                GTorchTensor **tensors, gsize n_tensors, gboolean strict,
                                GError **error)
{
  GTORCH_HOLD_TENSORS (tensors, n_tensors);
  g_autoptr (GHashTable) state = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  state = gtorch_state_from_lists (names, tensors, n_tensors, error);
  return state != NULL && gtorch_module_load_state_dict (self, state, strict, error);
}
