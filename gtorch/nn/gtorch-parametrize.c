/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Parametrizations of the tensors of modules, and the cache of what they compute. */

#include "config.h"

#include "nn/gtorch-parametrize.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-fork-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-computed-private.h"
#include "nn/gtorch-module-dict.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-parametrize-private.h"
#include "tensor/gtorch-scope-private.h"

#define CHILD "parametrizations"

GTorchParametrizationList *
gtorch_parametrizations_get (GTorchModule *module, const gchar *name, GError **error)
{
  g_autofree gchar *path = g_strconcat (CHILD ".", name, NULL);
  g_autoptr (GTorchModule) list = gtorch_module_get_module (module, path, error);

  if (list == NULL)
    return NULL;
  if (GTORCH_IS_PARAMETRIZATION_LIST (list))
    return GTORCH_PARAMETRIZATION_LIST (g_steal_pointer (&list));
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: '%s' is no %s"),
               gtorch_module_type_name (module), path, "ParametrizationList");
  return NULL;
}

/* Puts the list below the child, which is made if there is none. */
static gboolean
put_list (GTorchModule *module, const gchar *name, GTorchParametrizationList *list, GError **error)
{
  g_autoptr (GTorchModule) lists = NULL;

  if (gtorch_module_get_member_kind (module, CHILD) == GTORCH_MEMBER_KIND_NONE)
    {
      lists = GTORCH_MODULE (gtorch_module_dict_new ());
      if (!gtorch_module_register_module (module, CHILD, lists, error))
        return FALSE;
    }
  else
    lists = gtorch_module_get_module (module, CHILD, error);
  return lists != NULL && gtorch_module_register_module (lists, name, GTORCH_MODULE (list), error);
}

static gboolean
begin (GTorchModule *self, const gchar *name, GTorchModule *parametrization, gboolean unsafe,
       GError **error)
{
  g_autoptr (GTorchTensor) original = gtorch_module_dup_computable (self, name, TRUE, error);
  g_autoptr (GTorchParametrizationList) list = NULL;
  g_autoptr (GTorchComputed) computed = NULL;

  if (original == NULL)
    return FALSE;
  list = gtorch_parametrization_list_make (original, parametrization, unsafe, error);
  if (list == NULL || !put_list (self, name, list, error)
      || !gtorch_parametrization_list_adopt (list, original, error))
    return FALSE;
  computed = gtorch_computed_new (GTORCH_COMPUTED_PARAMETRIZATION, 0, 0, 0);
  gtorch_module_put_computed (self, name, computed);
  return TRUE;
}

/**
 * gtorch_module_register_parametrization:
 * @self: a module
 * @tensor_name: the name of a parameter or buffer of this module, such as `weight`
 * @parametrization: a module whose forward computes the tensor
 * @unsafe: whether it may have another shape or dtype than before
 * @error: return location for an error
 *
 * Lets a tensor of a module be computed by another module whenever it is used. The parameter is then
 * `parametrizations.weight.original`, the same object as before; layers, [method@Module.get_tensor] and the
 * property of the name see what the forward of @parametrization computes from it, with its graph. Of a tensor
 * that is parametrized already, it computes from what the former ones compute.
 *
 * A parametrization may have a right inverse, the virtual function `right_inverse`: the original then gets
 * the value from which forward computes the tensor. If that gives several tensors, forward takes as many, and
 * they are `parametrizations.weight.original0`, `original1` and so on, as with [class@WeightNorm].
 *
 * ```c
 * g_autoptr (GTorchWeightNorm) norm = gtorch_weight_norm_new (0);
 *
 * gtorch_module_register_parametrization (layer, "weight", GTORCH_MODULE (norm), FALSE, &error);
 * ```
 *
 * Source: PyTorch's `torch.nn.utils.parametrize`.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_FOUND if there is no tensor of the name,
 *   %GTORCH_ERROR_INVALID if it is computed otherwise or has no elements yet, %GTORCH_ERROR_NOT_SUPPORTED for
 *   a buffer of a layer, %GTORCH_ERROR_SHAPE or %GTORCH_ERROR_DTYPE if what is computed differs, and with the
 *   errors of @parametrization
 *
 * Since: 0.1
 */
gboolean
gtorch_module_register_parametrization (GTorchModule *self, const gchar *tensor_name,
                                        GTorchModule *parametrization, gboolean unsafe,
                                        GError **error)
{
  g_autoptr (GTorchComputed) computed = NULL;
  g_autoptr (GTorchParametrizationList) list = NULL;
  g_autoptr (GTorchTensor) value = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (tensor_name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_MODULE (parametrization), FALSE);
  computed = gtorch_module_dup_computed (self, tensor_name);
  if (computed == NULL || computed->kind != GTORCH_COMPUTED_PARAMETRIZATION)
    return begin (self, tensor_name, parametrization, unsafe, error);
  list = gtorch_parametrizations_get (self, tensor_name, error);
  value = list != NULL ? gtorch_parametrization_list_compute (list, error) : NULL;
  return value != NULL
         && gtorch_parametrization_list_add (list, parametrization, value, unsafe, error);
}

/* Returns the tensor that the module gets instead: the original with the computed value, or with its own. */
static GTorchTensor *
end_value (GTorchModule *self, const gchar *name, GTorchParametrizationList *list,
           gboolean leave_parametrized, GError **error)
{
  g_autoptr (GTorchTensor) original = gtorch_parametrization_list_dup_original (list);
  g_autoptr (GTorchTensor) value = NULL;
  g_autoptr (GTorchTensor) plain = NULL;
  g_autoptr (GTorchImpl) detached = NULL;
  gboolean wants_grad;

  if (original == NULL && !leave_parametrized)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: '%s' is computed from several tensors: leave_parametrized must be true"),
                   gtorch_module_type_name (self), name);
      return NULL;
    }
  if (!leave_parametrized)
    return g_steal_pointer (&original);
  value = gtorch_parametrization_list_compute (list, error);
  if (value == NULL)
    return NULL;
  wants_grad = gtorch_tensor_get_requires_grad (value);
  if (original != NULL && gtorch_tensor_get_dtype (original) == gtorch_tensor_get_dtype (value))
    return gtorch_tensor_put_value (gtorch_module_type_name (self), original, value, error)
               ? g_steal_pointer (&original)
               : NULL;
  detached = gtorch_impl_alias (gtorch_tensor_unwrap (value));
  plain = gtorch_tensor_wrap (gtorch_op_clone (detached, error));
  if (plain == NULL || gtorch_module_get_member_kind (self, name) == GTORCH_MEMBER_KIND_BUFFER)
    return g_steal_pointer (&plain);
  return (GTorchTensor *) gtorch_parameter_new (plain, wants_grad, error);
}

/**
 * gtorch_module_remove_parametrizations:
 * @self: a module
 * @tensor_name: the name of a tensor that is parametrized
 * @leave_parametrized: whether the tensor keeps the value that it is computed to have
 * @error: return location for an error
 *
 * Ends [method@Module.register_parametrization]: the tensor is a parameter or buffer of the module itself
 * again. It is the object that `parametrizations.weight.original` was, so that an optimizer that has that
 * keeps it; from several tensors, a new parameter is made.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_FOUND if the tensor is not parametrized, with
 *   %GTORCH_ERROR_INVALID if @leave_parametrized is %FALSE for a tensor that is computed from several ones,
 *   and with the errors of the parametrizations
 *
 * Since: 0.1
 */
gboolean
gtorch_module_remove_parametrizations (GTorchModule *self, const gchar *tensor_name,
                                       gboolean leave_parametrized, GError **error)
{
  g_autoptr (GTorchParametrizationList) list = NULL;
  g_autoptr (GTorchModule) lists = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;
  g_auto (GStrv) names = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (tensor_name != NULL, FALSE);
  if (!gtorch_module_is_parametrized (self, tensor_name))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, _ ("%s: '%s' is not parametrized"),
                   gtorch_module_type_name (self), gtorch_name_str (tensor_name));
      return FALSE;
    }
  list = gtorch_parametrizations_get (self, tensor_name, error);
  lists = list != NULL ? gtorch_module_get_module (self, CHILD, error) : NULL;
  tensor = lists != NULL ? end_value (self, tensor_name, list, leave_parametrized, error) : NULL;
  if (tensor == NULL)
    return FALSE;
  gtorch_module_end_computed (self, tensor_name, tensor);
  if (!gtorch_module_unregister (lists, tensor_name, error))
    return FALSE;
  names = gtorch_module_get_child_names (lists);
  return names[0] != NULL || gtorch_module_unregister (self, CHILD, error);
}

/**
 * gtorch_module_is_parametrized:
 * @self: a module
 * @tensor_name: (nullable): the name of a tensor, or %NULL for any
 *
 * Tells whether a tensor of the module, or any of them, is parametrized.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_module_is_parametrized (GTorchModule *self, const gchar *tensor_name)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  for (guint k = 0; k < 2; k++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (self, k == 1);

      for (guint i = 0; i < members->len; i++)
        {
          const GTorchMember *member = &g_array_index (members, GTorchMember, i);

          if (member->computed != NULL && member->computed->kind == GTORCH_COMPUTED_PARAMETRIZATION
              && (tensor_name == NULL || g_str_equal (member->name, tensor_name)))
            return TRUE;
        }
    }
  return FALSE;
}

/* --- the cache --- */

typedef struct
{
  GTorchModule *module;
  gchar *name;
  gboolean has_graph;
} Key;

static GMutex cache_lock;
GTORCH_FORK_LOCK (cache_lock);
static gint cache_depth;   /* written with the lock */
static GHashTable *cached; /* from Key to tensors */

static guint
hash_key (gconstpointer data)
{
  const Key *key = data;

  return g_direct_hash (key->module) ^ g_str_hash (key->name) ^ (guint) key->has_graph;
}

static gboolean
equal_keys (gconstpointer a, gconstpointer b)
{
  const Key *one = a, *other = b;

  return one->module == other->module && one->has_graph == other->has_graph
         && g_str_equal (one->name, other->name);
}

static void
free_key (gpointer data)
{
  Key *key = data;

  g_object_unref (key->module);
  g_free (key->name);
  g_free (key);
}

GTorchTensor *
gtorch_parametrize_cache_look_up (GTorchModule *module, const gchar *name)
{
  const Key key = { module, (gchar *) name, gtorch_is_grad_enabled () };
  GTorchTensor *tensor = NULL;

  if (g_atomic_int_get (&cache_depth) == 0)
    return NULL;
  g_mutex_lock (&cache_lock);
  if (cached != NULL)
    tensor = g_hash_table_lookup (cached, &key);
  if (tensor != NULL)
    g_object_ref (tensor);
  g_mutex_unlock (&cache_lock);
  return tensor;
}

void
gtorch_parametrize_cache_insert (GTorchModule *module, const gchar *name, GTorchTensor *tensor)
{
  Key *key;

  if (g_atomic_int_get (&cache_depth) == 0)
    return;
  gtorch_tensor_unwrap (tensor);
  if (gtorch_scope_current != NULL)
    gtorch_scope_exempt (tensor);
  key = g_new (Key, 1);
  *key = (Key){ g_object_ref (module), g_strdup (name), gtorch_is_grad_enabled () };
  g_mutex_lock (&cache_lock);
  if (cached != NULL && !g_hash_table_contains (cached, key))
    {
      g_hash_table_insert (cached, key, g_object_ref (tensor));
      key = NULL;
    }
  g_mutex_unlock (&cache_lock);
  if (key != NULL)
    free_key (key);
}

/**
 * gtorch_parametrize_begin_cache:
 *
 * Lets each parametrized tensor of all modules be computed once, until [func@parametrize_end_cache]: a
 * recurrent network or a module that is called several times then computes its weight once. Values that
 * change meanwhile, as by an optimizer, are not seen. Calls nest, and hold for all threads.
 *
 * ```c
 * gtorch_parametrize_begin_cache ();
 * y = gtorch_module_forward (net, x, &error);
 * z = gtorch_module_forward (net, y, &error);
 * gtorch_parametrize_end_cache ();
 * ```
 *
 * Since: 0.1
 */
void
gtorch_parametrize_begin_cache (void)
{
  g_mutex_lock (&cache_lock);
  if (cached == NULL)
    cached = g_hash_table_new_full (hash_key, equal_keys, free_key, g_object_unref);
  g_atomic_int_inc (&cache_depth);
  g_mutex_unlock (&cache_lock);
}

/**
 * gtorch_parametrize_end_cache:
 *
 * Ends a call of [func@parametrize_begin_cache]. The last one forgets the tensors. Without such a call it
 * does nothing.
 *
 * Since: 0.1
 */
void
gtorch_parametrize_end_cache (void)
{
  GHashTable *dropped = NULL;

  g_mutex_lock (&cache_lock);
  if (g_atomic_int_get (&cache_depth) > 0 && g_atomic_int_dec_and_test (&cache_depth))
    dropped = g_steal_pointer (&cached);
  g_mutex_unlock (&cache_lock);
  if (dropped != NULL)
    g_hash_table_unref (dropped);
}
