/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A lazy layer is an ordinary one without one of its sizes. Its parameters are there from the start, so that
 * they can be listed and moved, and stay the same objects; but they have no elements. The first input, or a
 * loaded state, tells the size. The tensors for it are made beside the module and given to its parameters
 * when nothing can fail any more. */

#include "config.h"

#include "nn/gtorch-lazy-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-fork-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-uninitialized-private.h"

/* Held while a size is tried, and while a module gets its tensors. */
static GMutex lazy_lock;
GTORCH_FORK_LOCK (lazy_lock);

static const GTorchLazy *
lazy_of (GTorchModule *self)
{
  return GTORCH_MODULE_GET_CLASS (self)->lazy;
}

static gint64 *
place_of_size (GTorchModule *self)
{
  return &G_STRUCT_MEMBER (gint64, self, lazy_of (self)->size);
}

/* --- construction --- */

void
gtorch_lazy_wait (GTorchModule *self)
{
  g_atomic_int_set (&gtorch_module_get_private (self)->is_lazy, TRUE);
}

void
gtorch_lazy_begin (GTorchModule *self, gint64 size)
{
  if (size != 0)
    g_atomic_int_set (&gtorch_module_get_private (self)->is_lazy, FALSE);
}

gboolean
gtorch_lazy_is_waiting (GTorchModule *self)
{
  return g_atomic_int_get (&gtorch_module_get_private (self)->is_lazy);
}

/* --- the tensors for a size --- */

void
gtorch_lazy_plan_free (GTorchLazyPlan *self)
{
  g_object_unref (self->module);
  g_ptr_array_unref (self->targets);
  g_ptr_array_unref (self->values);
  g_free (self);
}

typedef struct
{
  GTorchLazyPlan *plan;
  GHashTable *state;
  const gchar *path;
  GError *error;
} Making;

/* Returns the tensor of a member that is not initialized yet; NULL if the program replaced it, or none. */
static GTorchImpl *
dup_waiting (GTorchModule *self, const GTorchLayerTensor *tensor)
{
  g_autoptr (GArray) members = gtorch_module_dup_members (self, tensor->is_buffer);

  for (guint i = 0; i < members->len; i++)
    {
      const GTorchMember *member = &g_array_index (members, GTorchMember, i);

      if (member->tensor != NULL && strcmp (member->name, tensor->name) == 0
          && gtorch_impl_is_uninitialized (gtorch_tensor_unwrap (member->tensor)))
        return gtorch_impl_ref (gtorch_tensor_unwrap (member->tensor));
    }
  return NULL;
}

static gboolean
state_has (const Making *making, const gchar *name)
{
  g_autofree gchar *key = NULL;

  if (making->state == NULL)
    return FALSE;
  key = g_strconcat (making->path, making->path[0] != '\0' ? "." : "", name, NULL);
  return g_hash_table_contains (making->state, key);
}

/* Creates the values of the tensors of a row, in the order and with the random numbers of an ordinary
 * layer. */
static void
make_values (GTorchModule *self, const GTorchLayerTensor *tensors, guint n, gpointer data)
{
  Making *making = data;
  g_autoptr (GPtrArray) parameters = g_ptr_array_new_with_free_func (g_object_unref);
  g_autofree const GTorchLayerTensor **rows = g_new (const GTorchLayerTensor *, n);
  g_autoptr (GTorchTensor) first = NULL;

  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GTorchImpl) target = tensors[i].is_wanted ? dup_waiting (self, &tensors[i]) : NULL;
      GTorchImpl *value;

      if (target == NULL)
        continue;
      if (tensors[i].is_buffer && tensors[i].init == GTORCH_LAYER_ONES)
        value = gtorch_op_ones (tensors[i].shape, tensors[i].n_dims, target->dtype, target->device,
                                &making->error);
      else if (tensors[i].is_buffer)
        value = gtorch_op_zeros (tensors[i].shape, tensors[i].n_dims, target->dtype, target->device,
                                 &making->error);
      else
        value = gtorch_op_empty (tensors[i].shape, tensors[i].n_dims, target->dtype, target->device,
                                 &making->error);
      if (value == NULL)
        return;
      g_ptr_array_add (making->plan->targets, g_steal_pointer (&target));
      g_ptr_array_add (making->plan->values, value);
      if (tensors[i].is_buffer)
        continue;
      rows[parameters->len] = &tensors[i];
      g_ptr_array_add (parameters, gtorch_tensor_wrap (gtorch_impl_ref (value)));
    }
  /* the program may have replaced the first parameter */
  if (parameters->len > 0)
    first = rows[0] == &tensors[0] ? g_object_ref (parameters->pdata[0])
                                   : gtorch_module_dup_parameter (self, 0);
  for (guint i = 0; i < parameters->len; i++)
    if (!state_has (making, rows[i]->name)
        && !gtorch_layer_set_values (self, parameters->pdata[i], first, rows[i], &making->error))
      return;
}

GTorchLazyPlan *
gtorch_lazy_prepare (GTorchModule *self, gint64 size, GHashTable *state, const gchar *path,
                     GError **error)
{
  g_autoptr (GTorchLazyPlan) plan = g_new0 (GTorchLazyPlan, 1);
  Making making = { plan, state, path, NULL };

  plan->module = g_object_ref (self);
  plan->size = size;
  plan->targets = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  plan->values = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_mutex_lock (&lazy_lock);
  if (gtorch_lazy_is_waiting (self))
    {
      *place_of_size (self) = size;
      if (lazy_of (self)->check (self, &making.error))
        lazy_of (self)->make (self, make_values, &making);
      *place_of_size (self) = 0;
    }
  g_mutex_unlock (&lazy_lock);
  if (making.error == NULL)
    return g_steal_pointer (&plan);
  g_propagate_error (error, making.error);
  return NULL;
}

gboolean
gtorch_lazy_commit (GTorchLazyPlan *self, GError **error)
{
  gboolean success;

  g_mutex_lock (&lazy_lock);
  success = gtorch_lazy_is_waiting (self->module)
            && gtorch_impls_initialize ((GTorchImpl **) self->targets->pdata,
                                        (GTorchImpl **) self->values->pdata, self->targets->len);
  if (success)
    {
      *place_of_size (self->module) = self->size;
      g_atomic_int_set (&gtorch_module_get_private (self->module)->is_lazy, FALSE);
      g_atomic_int_inc (&gtorch_module_changes);
    }
  g_mutex_unlock (&lazy_lock);
  if (success)
    g_object_notify (G_OBJECT (self->module), lazy_of (self->module)->property);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: another call initialized or released a parameter of the layer meanwhile"),
                 gtorch_module_type_name (self->module));
  return success;
}

/* --- the first input --- */

gboolean
gtorch_lazy_infer (GTorchModule *self, GTorchTensor *input, GError **error)
{
  const GTorchLazy *lazy = lazy_of (self);
  g_autoptr (GTorchLazyPlan) plan = NULL;
  GError *local = NULL;
  GTorchImpl *impl;
  gint64 size;

  impl = gtorch_tensor_unwrap (input);
  if (gtorch_impl_is_released (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED, _ ("%s: the input %s"),
                   gtorch_module_type_name (self), gtorch_impl_loss (impl));
      return FALSE;
    }
  if (impl->n_dims < lazy->least_dims || impl->n_dims > lazy->most_dims)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the first input, which tells %s, must have %u to %u dimensions; it has "
                      "shape %s"),
                   gtorch_module_type_name (self), lazy->property, lazy->least_dims,
                   lazy->most_dims, gtorch_impl_shape_str (impl));
      return FALSE;
    }
  size = impl->shape[lazy->dim < 0 ? (gint) impl->n_dims + lazy->dim : lazy->dim];
  plan = gtorch_lazy_prepare (self, size, NULL, "", error);
  if (plan == NULL)
    return FALSE;
  if (gtorch_lazy_commit (plan, &local))
    return TRUE;
  if (gtorch_lazy_is_waiting (self))
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  g_error_free (local); /* another thread was faster: the layer has its tensors */
  return TRUE;
}

/* --- a state --- */

typedef struct
{
  GHashTable *state;
  GHashTable *seen;
  GPtrArray *plans;
  GError *error;
} Loading;

/* Returns the size that the tensors of the state tell, or -1. */
static gint64
size_in_state (GTorchModule *self, const gchar *path, GHashTable *state)
{
  const GTorchLazy *lazy = lazy_of (self);

  for (guint i = 0; i < G_N_ELEMENTS (lazy->sources) && lazy->sources[i].name != NULL; i++)
    {
      const GTorchLazySource *source = &lazy->sources[i];
      g_autofree gchar *key = g_strconcat (path, path[0] != '\0' ? "." : "", source->name, NULL);
      GTorchTensor *tensor = g_hash_table_lookup (state, key);
      const GTorchImpl *impl = GTORCH_IS_TENSOR (tensor) ? gtorch_tensor_unwrap (tensor) : NULL;
      gint64 size;

      if (impl == NULL || gtorch_impl_is_released (impl) || impl->n_dims <= source->dim)
        continue;
      size = impl->shape[source->dim];
      if (source->factor == 0
          || !__builtin_mul_overflow (size, G_STRUCT_MEMBER (gint64, self, source->factor), &size))
        return size;
    }
  return -1;
}

static gboolean
prepare_one (GTorchModule *module, const gchar *path, gpointer user_data)
{
  Loading *loading = user_data;
  GTorchLazyPlan *plan;
  gint64 size;

  if (loading->error != NULL)
    return FALSE;
  if (!gtorch_lazy_is_waiting (module) || g_hash_table_contains (loading->seen, module))
    return TRUE;
  size = size_in_state (module, path, loading->state);
  if (size < 0)
    return TRUE;
  g_hash_table_add (loading->seen, module);
  plan = gtorch_lazy_prepare (module, size, loading->state, path, &loading->error);
  if (plan != NULL)
    g_ptr_array_add (loading->plans, plan);
  return plan != NULL;
}

GPtrArray *
gtorch_lazy_prepare_all (GTorchModule *self, GHashTable *state, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  Loading loading = { state, seen, NULL, NULL };

  loading.plans = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_lazy_plan_free);
  gtorch_module_walk (self, TRUE, prepare_one, NULL, &loading, NULL);
  if (loading.error == NULL)
    return loading.plans;
  g_ptr_array_unref (loading.plans);
  g_propagate_error (error, loading.error);
  return NULL;
}

/* --- questions --- */

/**
 * gtorch_module_has_uninitialized_params:
 * @self: a module
 *
 * Tells whether the module itself, not its descendants, is a lazy layer that was not used yet: whether one
 * of its parameters or buffers has no elements.
 *
 * A lazy layer, such as [class@LazyLinear], gets its size from its first input, or from a state that is
 * loaded. Until then its parameters can be listed and the module can be moved; every operation refuses
 * them, and so do optimizers and files.
 *
 * ```c
 * g_autoptr (GTorchModule) layer = GTORCH_MODULE (gtorch_lazy_linear_new (8, &error));
 * g_autoptr (GTorchTensor) y = gtorch_module_forward (layer, x, &error);
 *
 * g_assert (!gtorch_module_has_uninitialized_params (layer));
 * ```
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_module_has_uninitialized_params (GTorchModule *self)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (self, i == 1);

      for (guint j = 0; j < members->len; j++)
        {
          GTorchTensor *tensor = g_array_index (members, GTorchMember, j).tensor;

          if (tensor != NULL && gtorch_impl_is_uninitialized (gtorch_tensor_unwrap (tensor)))
            return TRUE;
        }
    }
  return FALSE;
}

/**
 * gtorch_is_lazy:
 * @tensor: a parameter or buffer
 *
 * Tells whether a tensor has no elements yet, since the lazy layer that it belongs to was not used yet.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_is_lazy (GTorchTensor *tensor)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  return gtorch_impl_is_uninitialized (gtorch_tensor_unwrap (tensor));
}
