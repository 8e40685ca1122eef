/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The hooks of programs for tensors that are saved for backward passes. */

#include "config.h"

#include "autograd/gtorch-saved-hooks.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-callback-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"

struct _GTorchSavedTensorsGuard
{
  GTorchGuard parent;
};

G_DEFINE_BOXED_TYPE (GTorchSavedTensorsGuard, gtorch_saved_tensors_guard,
                     gtorch_saved_tensors_guard_ref, gtorch_saved_tensors_guard_unref)

/* Stand where hooks would be, and pack nothing. */
typedef struct
{
  GTorchSavedHooks hooks;
  gchar *message; /* why there may be no hooks */
} Refusal;

static gboolean
refusal_pack (GTorchSavedHooks *hooks, GTorchImpl *value, const gchar *op, gpointer *packed,
              GError **error)
{
  return TRUE;
}

static void
refusal_finalize (GTorchSavedHooks *hooks)
{
  g_free (((Refusal *) hooks)->message);
}

static const GTorchSavedHooksClass refusal_class = { refusal_pack, NULL, NULL, refusal_finalize };

gboolean
gtorch_saved_hooks_are_allowed (const gchar *op, GError **error)
{
  const GTorchSavedHooks *hooks;

  gtorch_guards_settle ();
  hooks = gtorch_thread.saved_hooks;
  if (hooks == NULL || hooks->klass != &refusal_class)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD, "%s: %s", op,
               ((const Refusal *) hooks)->message);
  return FALSE;
}

GTorchSavedTensorsGuard *
gtorch_saved_tensors_guard_new (GTorchSavedHooks *hooks)
{
  GTorchSavedTensorsGuard *self = gtorch_guard_new (sizeof *self, NULL);

  gtorch_change_pointer (&self->parent.change, &gtorch_thread.saved_hooks, hooks,
                         gtorch_saved_hooks_unref);
  return self;
}

/* --- functions of the program --- */

typedef struct
{
  GTorchSavedHooks hooks;
  GTorchPackFunc pack;
  gpointer pack_data;
  GDestroyNotify pack_destroy;
  GTorchUnpackFunc unpack;
  gpointer unpack_data;
  GDestroyNotify unpack_destroy;
} UserHooks;

/* With a tensor that shows the same memory, the version of that when it was saved. */
typedef struct
{
  GObject *object;
  guint version;
  gboolean is_shared;
} UserPacked;

static gboolean
user_pack (GTorchSavedHooks *hooks, GTorchImpl *value, const gchar *op, gpointer *packed,
           GError **error)
{
  UserHooks *self = (UserHooks *) hooks;
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (value));
  GError *local = NULL;
  GObject *object = self->pack (tensor, self->pack_data, &local);
  GTorchImpl *impl;
  UserPacked *made;

  if (!gtorch_callback_gave ("saved_tensors_hooks", object, local, error))
    {
      g_clear_object (&object);
      return FALSE;
    }
  impl = GTORCH_IS_TENSOR (object) ? gtorch_tensor_unwrap (GTORCH_TENSOR (object)) : NULL;
  made = g_new (UserPacked, 1);
  made->object = object;
  made->version = g_atomic_int_get (&value->storage->version);
  made->is_shared = impl != NULL && impl->storage == value->storage;
  *packed = made;
  return TRUE;
}

static GTorchImpl *
user_unpack (GTorchSavedHooks *hooks, gpointer packed, GError **error)
{
  UserHooks *self = (UserHooks *) hooks;
  UserPacked *one = packed;
  GError *local = NULL;
  g_autoptr (GTorchTensor) tensor = self->unpack (one->object, self->unpack_data, &local);
  GTorchImpl *impl = NULL, *kept;

  if (!gtorch_callback_gave ("saved_tensors_hooks", tensor, local, error))
    return NULL;
  if (GTORCH_IS_TENSOR (tensor))
    impl = gtorch_tensor_unwrap (tensor);
  if (impl == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("saved_tensors_hooks: the function that unpacks gave back a %s, which is no "
                      "tensor"),
                   G_OBJECT_TYPE_NAME (tensor));
      return NULL;
    }
  kept = one->is_shared ? gtorch_tensor_unwrap (GTORCH_TENSOR (one->object)) : NULL;
  if (kept != NULL && kept->storage != NULL && kept->storage == impl->storage
      && one->version != (guint) g_atomic_int_get (&impl->storage->version))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("saved_tensors_hooks: the packed tensor of dtype %s and shape %s shares its "
                      "memory with the saved one and was changed in place since: pack a clone"),
                   gtorch_dtype_get_name (impl->dtype), gtorch_impl_shape_str (impl));
      return NULL;
    }
  return gtorch_impl_ref (impl);
}

static void
user_drop (GTorchSavedHooks *hooks, gpointer packed)
{
  UserPacked *one = packed;

  g_object_unref (one->object);
  g_free (one);
}

static void
user_finalize (GTorchSavedHooks *hooks)
{
  UserHooks *self = (UserHooks *) hooks;

  if (self->pack_destroy != NULL)
    self->pack_destroy (self->pack_data);
  if (self->unpack_destroy != NULL)
    self->unpack_destroy (self->unpack_data);
}

static const GTorchSavedHooksClass user_class = { user_pack, user_unpack, user_drop,
                                                  user_finalize };

/**
 * gtorch_saved_tensors_hooks:
 * @pack: (scope notified) (closure pack_data) (destroy pack_destroy): called with each tensor that an
 *   operation saves; what it gives is kept instead
 * @pack_data: data for @pack
 * @pack_destroy: (nullable): frees @pack_data
 * @unpack: (scope notified) (closure unpack_data) (destroy unpack_destroy): called with that when a
 *   backward pass needs the tensor
 * @unpack_data: data for @unpack
 * @unpack_destroy: (nullable): frees @unpack_data
 * @error: return location for an error
 *
 * Replaces what operations of this thread save for their backward pass, until the guard ends: by a copy
 * elsewhere, in another dtype, in a file.
 *
 * Operations and functions that are recorded in the meantime keep the hooks, which are called in the thread
 * of the backward pass, for [method@Tensor.backward_async] in the main context of its caller. An operation
 * whose @pack fails is not recorded and fails; one in place has changed its tensor by then. A tensor that
 * the hooks kept is not checked for changes in place, unless @pack gives a tensor that shares its memory.
 * Numbers are not packed. The hooks are those of
 * [`torch.autograd.graph.saved_tensors_hooks`](https://pytorch.org/docs/stable/autograd.html).
 *
 * ```c
 * static GObject *
 * to_half (GTorchTensor *tensor, gpointer user_data, GError **error)
 * {
 *   return (GObject *) gtorch_tensor_to_dtype (tensor, GTORCH_DTYPE_FLOAT16, error);
 * }
 * ```
 *
 * Returns: (transfer full): a guard, or %NULL with %GTORCH_ERROR_AUTOGRAD if there may be no hooks
 *   ([func@disable_saved_tensors_hooks])
 *
 * Since: 0.1
 */
GTorchSavedTensorsGuard *
gtorch_saved_tensors_hooks (GTorchPackFunc pack, gpointer pack_data, GDestroyNotify pack_destroy,
                            GTorchUnpackFunc unpack, gpointer unpack_data,
                            GDestroyNotify unpack_destroy, GError **error)
{
  UserHooks *self;

  g_return_val_if_fail (pack != NULL, NULL);
  g_return_val_if_fail (unpack != NULL, NULL);
  self = g_new0 (UserHooks, 1);
  gtorch_saved_hooks_init (&self->hooks, &user_class);
  self->pack = pack;
  self->pack_data = pack_data;
  self->pack_destroy = pack_destroy;
  self->unpack = unpack;
  self->unpack_data = unpack_data;
  self->unpack_destroy = unpack_destroy;
  if (!gtorch_saved_hooks_are_allowed ("saved_tensors_hooks", error))
    {
      gtorch_saved_hooks_unref (self);
      return NULL;
    }
  return gtorch_saved_tensors_guard_new (&self->hooks);
}

/* --- on the CPU --- */

typedef struct
{
  GTorchSavedHooks hooks;
  gboolean pin_memory;
} HostHooks;

typedef struct
{
  GTorchDevice *device;
  GTorchImpl *copy;
} HostPacked;

static gboolean
host_pack (GTorchSavedHooks *hooks, GTorchImpl *value, const gchar *op, gpointer *packed,
           GError **error)
{
  const gboolean pin_memory = ((HostHooks *) hooks)->pin_memory;
  GTorchDevice *device = gtorch_impl_device (value);
  HostPacked *made;
  GTorchImpl *copy;

  if (device == gtorch_device_cpu ())
    return TRUE; /* it is saved where it is */
  copy = gtorch_op_to_device (value, gtorch_device_cpu (), pin_memory, error);
  if (copy == NULL)
    return FALSE;
  made = g_new (HostPacked, 1);
  *made = (HostPacked){ device, copy };
  *packed = made;
  return TRUE;
}

static GTorchImpl *
host_unpack (GTorchSavedHooks *hooks, gpointer packed, GError **error)
{
  HostPacked *one = packed;

  return gtorch_op_to_device (one->copy, one->device, ((HostHooks *) hooks)->pin_memory, error);
}

static void
host_drop (GTorchSavedHooks *hooks, gpointer packed)
{
  HostPacked *one = packed;

  gtorch_impl_unref (one->copy);
  g_free (one);
}

static void
host_finalize (GTorchSavedHooks *hooks)
{
}

static const GTorchSavedHooksClass host_class = { host_pack, host_unpack, host_drop,
                                                  host_finalize };

/**
 * gtorch_save_on_cpu:
 * @pin_memory: copy to pinned memory, and do not wait for the copies
 * @error: return location for an error
 *
 * Keeps the tensors that operations of this thread save for their backward pass in the memory of the CPU,
 * until the guard ends; the backward pass copies each back when it needs it. What is on the CPU is saved as
 * always.
 *
 * Copies to the CPU cannot be captured in graphs.
 *
 * ```c
 * {
 *   g_autoptr (GTorchSavedTensorsGuard) guard = gtorch_save_on_cpu (TRUE, &error);
 *   loss = gtorch_module_forward (model, x, &error);
 * }
 * ```
 *
 * Returns: (transfer full): a guard, or %NULL with %GTORCH_ERROR_AUTOGRAD if there may be no hooks
 *   ([func@disable_saved_tensors_hooks])
 *
 * Since: 0.1
 */
GTorchSavedTensorsGuard *
gtorch_save_on_cpu (gboolean pin_memory, GError **error)
{
  HostHooks *self;

  if (!gtorch_saved_hooks_are_allowed ("save_on_cpu", error))
    return NULL;
  self = g_new0 (HostHooks, 1);
  gtorch_saved_hooks_init (&self->hooks, &host_class);
  self->pin_memory = pin_memory;
  return gtorch_saved_tensors_guard_new (&self->hooks);
}

/* --- none --- */

/**
 * gtorch_disable_saved_tensors_hooks:
 * @message: why there may be no hooks
 * @error: return location for an error
 *
 * Refuses [func@saved_tensors_hooks] and what uses it in this thread, with @message, until the guard ends.
 *
 * Returns: (transfer full): a guard, or %NULL with %GTORCH_ERROR_AUTOGRAD if hooks are in use
 *
 * Since: 0.1
 */
GTorchSavedTensorsGuard *
gtorch_disable_saved_tensors_hooks (const gchar *message, GError **error)
{
  Refusal *self;

  g_return_val_if_fail (message != NULL, NULL);
  gtorch_guards_settle ();
  if (gtorch_thread.saved_hooks != NULL && gtorch_thread.saved_hooks->klass != &refusal_class)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("disable_saved_tensors_hooks: hooks for saved tensors are in use here, and "
                      "were to be refused because of: %s"),
                   message);
      return NULL;
    }
  self = g_new0 (Refusal, 1);
  gtorch_saved_hooks_init (&self->hooks, &refusal_class);
  self->message = g_strdup (message);
  return gtorch_saved_tensors_guard_new (&self->hooks);
}

/**
 * gtorch_saved_tensors_guard_end:
 * @guard: a guard
 *
 * Restores the hooks from before the guard, or leaves that to a younger guard that lasts. Further calls do
 * nothing. If called in another thread than the guard's own, the guard ends when its own thread next begins
 * or ends a guard, or runs an operation.
 *
 * Since: 0.1
 */
void
gtorch_saved_tensors_guard_end (GTorchSavedTensorsGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_end (guard);
}

/**
 * gtorch_saved_tensors_guard_ref:
 * @guard: a guard
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @guard
 *
 * Since: 0.1
 */
GTorchSavedTensorsGuard *
gtorch_saved_tensors_guard_ref (GTorchSavedTensorsGuard *guard)
{
  g_return_val_if_fail (guard != NULL, NULL);
  return gtorch_guard_ref (guard);
}

/**
 * gtorch_saved_tensors_guard_unref:
 * @guard: (transfer full): a guard
 *
 * Drops a reference; the last one ends the guard.
 *
 * Since: 0.1
 */
void
gtorch_saved_tensors_guard_unref (GTorchSavedTensorsGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_unref (guard);
}
