/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Values that are saved for the backward pass. Without hooks such a value is a storage and a description, and
 * its version tells whether it was changed since. Hooks get the value without autograd, so that nothing they
 * keep leads back to the graph, and are trusted to give it back as it was: only its dtype, shape and device
 * are compared. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "stream/gtorch-stream-private.h"
#include "tensor/gtorch-recorder-private.h"

void
gtorch_saved_hooks_init (GTorchSavedHooks *self, const GTorchSavedHooksClass *klass)
{
  self->ref_count = 1;
  self->klass = klass;
}

GTorchSavedHooks *
gtorch_saved_hooks_ref (GTorchSavedHooks *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
gtorch_saved_hooks_unref (gpointer hooks)
{
  GTorchSavedHooks *self = hooks;

  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  self->klass->finalize (self);
  g_free (self);
}

void
gtorch_change_to_saved_hooks (GTorchChange *change, GTorchSavedHooks *hooks)
{
  gtorch_change_begin (change);
  gtorch_change_pointer (change, &gtorch_thread.saved_hooks,
                         hooks != NULL ? gtorch_saved_hooks_ref (hooks) : NULL,
                         gtorch_saved_hooks_unref);
}

GTorchPacked *
gtorch_packed_ref (GTorchPacked *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
gtorch_packed_unref (GTorchPacked *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  self->hooks->klass->drop (self->hooks, self->value);
  gtorch_saved_hooks_unref (self->hooks);
  g_free (self);
}

/* --- saving --- */

/* Calls the hooks of this thread. Meanwhile there are none, and nothing is recorded. */
static gboolean
pack (GTorchSaved *saved, GTorchImpl *impl, const gchar *op, GError **error)
{
  GTorchSavedHooks *hooks = gtorch_saved_hooks_ref (gtorch_thread.saved_hooks);
  GTorchImpl *value = gtorch_impl_alias (impl);
  guint version = g_atomic_int_get (&impl->storage->version);
  GTorchChange none, mode;
  gpointer packed = NULL;
  gboolean success;

  value->is_silent_view = TRUE;
  gtorch_change_to_saved_hooks (&none, NULL);
  gtorch_change_to_grad (&mode, FALSE);
  success = hooks->klass->pack (hooks, value, op, &packed, error);
  gtorch_change_end (&mode);
  gtorch_change_end (&none);
  if (success && version != (guint) g_atomic_int_get (&impl->storage->version))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("a hook changed the saved tensor of dtype %s and shape %s in place: it must "
                      "pack a copy"),
                   gtorch_dtype_get_name (impl->dtype), gtorch_impl_shape_str (impl));
      success = FALSE;
    }
  if (success && packed != NULL)
    {
      saved->packed = g_new (GTorchPacked, 1);
      *saved->packed = (GTorchPacked){ 1, gtorch_saved_hooks_ref (hooks), packed };
      saved->is_packed = TRUE;
    }
  else if (packed != NULL)
    hooks->klass->drop (hooks, packed);
  gtorch_impl_unref (value);
  gtorch_saved_hooks_unref (hooks);
  return success;
}

gboolean
gtorch_saved_init (GTorchSaved *saved, GTorchImpl *impl, const gchar *op, gint64 *strides,
                   GError **error)
{
  guint i;

  if (G_UNLIKELY (impl->inference))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("%s: the tensor of shape %s was made in inference mode and cannot be saved "
                      "for a backward pass: clone it before"),
                   op, gtorch_impl_shape_str (impl));
      return FALSE;
    }
  saved->is_number = impl->is_number;
  if (G_UNLIKELY (gtorch_forward_is_on ()) && !gtorch_tangent_of (impl, &saved->tangent, error))
    return FALSE;
  if (G_UNLIKELY (gtorch_thread.saved_hooks != NULL) && !impl->is_number
      && !pack (saved, impl, op, error))
    return FALSE;
  if (G_UNLIKELY (saved->is_packed))
    return TRUE;
  saved->storage = gtorch_storage_ref (impl->storage);
  saved->offset = impl->offset;
  saved->strides = strides;
  saved->version = g_atomic_int_get (&impl->storage->version);
  for (i = 0; i < impl->n_dims; i++)
    strides[i] = impl->strides[i];
  return TRUE;
}

GTorchPacked *
gtorch_saved_steal (GTorchSaved *saved)
{
  GTorchPacked *packed = saved->is_packed ? saved->packed : NULL;

  if (packed == NULL && saved->storage != NULL)
    gtorch_storage_unref (saved->storage);
  g_clear_pointer (&saved->tangent, gtorch_tangent_unref);
  saved->storage = NULL;
  saved->is_packed = FALSE;
  return packed;
}

/* --- giving back --- */

typedef struct
{
  GTorchPacked *packed;
  GTorchImpl *value;
  GError *error;
} Unpacking;

static void
call_unpack (gpointer data)
{
  Unpacking *call = data;
  GTorchSavedHooks *hooks = call->packed->hooks;
  GTorchChange mode;

  gtorch_change_to_grad (&mode, FALSE);
  call->value = hooks->klass->unpack (hooks, call->packed->value, &call->error);
  gtorch_change_end (&mode);
}

GTorchImpl *
gtorch_packed_unpack (GTorchPacked *self, const GTorchMeta *meta, const gchar *what, guint i,
                      GError **error)
{
  Unpacking call = { self, NULL, NULL };
  g_autoptr (GTorchImpl) value = NULL;

  gtorch_engine_call_user (call_unpack, &call);
  value = call.value;
  if (value == NULL)
    {
      g_propagate_error (error, call.error);
      return NULL;
    }
  if (value->storage == NULL || value->dtype != meta->dtype
      || gtorch_impl_device (value) != meta->device
      || !gtorch_same_shape (value->shape, value->n_dims, meta->shape, meta->n_dims))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("its %s %u was saved as %s of shape %s on %s, and a hook gave back %s of "
                      "shape %s on %s%s"),
                   _ (what), i, gtorch_dtype_get_name (meta->dtype),
                   gtorch_shape_str (meta->shape, meta->n_dims), gtorch_device_name (meta->device),
                   gtorch_dtype_get_name (value->dtype), gtorch_impl_shape_str (value),
                   gtorch_device_name (gtorch_impl_device (value)),
                   value->storage == NULL ? _ (", which was released") : "");
      return NULL;
    }
  return gtorch_impl_alias (value); /* its place in the graph is that of the saved value */
}

GTorchImpl *
gtorch_saved_unpack (const GTorchSaved *saved, const GTorchMeta *meta, const gchar *what, guint i,
                     GError **error)
{
  GTorchImpl *impl;
  guint version = g_atomic_int_get (&saved->storage->version);

  if (G_UNLIKELY (version != saved->version))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("its %s %u, of dtype %s and shape %s, is needed and was changed in place "
                      "since: it is at version %u, version %u was saved; clone it before changing "
                      "it"),
                   _ (what), i, gtorch_dtype_get_name (meta->dtype),
                   gtorch_shape_str (meta->shape, meta->n_dims), version, saved->version);
      return NULL;
    }
  impl = gtorch_impl_new_strided (saved->storage, meta->dtype, saved->offset, meta->shape,
                                  saved->strides, meta->n_dims);
  impl->is_number = saved->is_number;
  return impl;
}
