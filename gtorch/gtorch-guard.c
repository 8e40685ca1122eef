/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-guard.h"

#include <glib/gi18n-lib.h>

#include "gtorch-callback-private.h"
#include "gtorch-memory-pool-private.h"

gboolean
gtorch_callback_ended (const gchar *op, gboolean success, GError *local, GError **error)
{
  if (success)
    {
      g_clear_error (&local);
      return TRUE;
    }
  if (local == NULL)
    g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("%s: the function failed without an error"), op);
  g_propagate_error (error, local);
  return FALSE;
}

/**
 * GTorchDeviceGuard:
 *
 * Keeps a device the current one of the thread; the former one comes back at the end.
 *
 * In C, `g_autoptr` ends it with the block. Languages with a garbage collector call
 * [method@DeviceGuard.end]. Guards nest and must end in the order opposite to the one they began.
 *
 * Since: 0.1
 */
struct _GTorchDeviceGuard
{
  gint ref_count;
  GThread *thread; /* NULL: has ended */
  GTorchDevice *former;
};

/**
 * GTorchStreamGuard:
 *
 * Keeps a stream the current one of its device in this thread; the former one comes back at the
 * end.
 *
 * In C, `g_autoptr` ends it with the block. Languages with a garbage collector call
 * [method@StreamGuard.end].
 *
 * Since: 0.1
 */
struct _GTorchStreamGuard
{
  gint ref_count;
  GThread *thread;
  GTorchDevice *device;
  GTorchStream *former;
};

/**
 * GTorchMemoryPoolGuard:
 *
 * Has the thread's tensors of one device take their memory from a [class@MemoryPool].
 *
 * In C, `g_autoptr` ends it with the block. Languages with a garbage collector call
 * [method@MemoryPoolGuard.end]. Of several guards for one device the one that began last counts.
 *
 * Since: 0.1
 */
struct _GTorchMemoryPoolGuard
{
  gint ref_count;
  GThread *thread;
  GTorchPoolUse *use; /* the thread's; NULL: has ended */
};

G_DEFINE_BOXED_TYPE (GTorchDeviceGuard, gtorch_device_guard, gtorch_device_guard_ref,
                     gtorch_device_guard_unref)
G_DEFINE_BOXED_TYPE (GTorchStreamGuard, gtorch_stream_guard, gtorch_stream_guard_ref,
                     gtorch_stream_guard_unref)
G_DEFINE_BOXED_TYPE (GTorchMemoryPoolGuard, gtorch_memory_pool_guard, gtorch_memory_pool_guard_ref,
                     gtorch_memory_pool_guard_unref)

/**
 * gtorch_device_guard_new:
 * @device: a device
 * @error: return location for an error
 *
 * Makes @device the current one of this thread.
 *
 * Returns: (transfer full): a guard, or %NULL if the device cannot be used
 *
 * Since: 0.1
 */
GTorchDeviceGuard *
gtorch_device_guard_new (GTorchDevice *device, GError **error)
{
  GTorchDevice *former = gtorch_thread.device;
  GTorchDeviceGuard *guard;

  g_return_val_if_fail (GTORCH_IS_DEVICE (device), NULL);
  if (!gtorch_device_set_current (device, error))
    return NULL;
  guard = g_new0 (GTorchDeviceGuard, 1);
  guard->ref_count = 1;
  guard->thread = g_thread_self ();
  guard->former = former;
  return guard;
}

/**
 * gtorch_device_guard_end:
 * @guard: a guard
 *
 * Makes the former device current again. Does nothing the second time, or in another thread.
 *
 * Since: 0.1
 */
void
gtorch_device_guard_end (GTorchDeviceGuard *guard)
{
  g_return_if_fail (guard != NULL);
  if (guard->thread != g_thread_self ())
    return;
  guard->thread = NULL;
  if (guard->former == NULL)
    gtorch_thread.device = NULL;
  else
    gtorch_device_set_current (guard->former, NULL);
}

/**
 * gtorch_device_guard_ref:
 * @guard: a guard
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @guard
 *
 * Since: 0.1
 */
GTorchDeviceGuard *
gtorch_device_guard_ref (GTorchDeviceGuard *guard)
{
  g_return_val_if_fail (guard != NULL, NULL);
  g_atomic_int_inc (&guard->ref_count);
  return guard;
}

/**
 * gtorch_device_guard_unref:
 * @guard: (transfer full): a guard
 *
 * Drops a reference; the last one ends the guard.
 *
 * Since: 0.1
 */
void
gtorch_device_guard_unref (GTorchDeviceGuard *guard)
{
  g_return_if_fail (guard != NULL);
  if (!g_atomic_int_dec_and_test (&guard->ref_count))
    return;
  gtorch_device_guard_end (guard);
  g_free (guard);
}

/**
 * gtorch_device_run:
 * @self: a device
 * @func: (scope call) (closure user_data): what to do
 * @user_data: given to @func
 * @error: return location for an error
 *
 * Calls @func in this thread with the device as its current one, and goes back to the former one.
 *
 * ```js
 * device.run(() => {
 *     const stream = GTorch.Stream.new(null, 0); // on this device
 *     return true;
 * });
 * ```
 *
 * Returns: what @func returned, or %FALSE if the device cannot be used
 *
 * Since: 0.1
 */
gboolean
gtorch_device_run (GTorchDevice *self, GTorchDeviceFunc func, gpointer user_data, GError **error)
{
  g_autoptr (GTorchDeviceGuard) guard = NULL;
  GError *local = NULL;
  gboolean success;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  guard = gtorch_device_guard_new (self, error);
  if (guard == NULL)
    return FALSE;
  success = func (self, user_data, &local);
  return gtorch_callback_ended ("device_run", success, local, error);
}

/**
 * gtorch_stream_guard_new:
 * @stream: a stream
 *
 * Makes @stream the current one of its device in this thread.
 *
 * Returns: (transfer full): a guard
 *
 * Since: 0.1
 */
GTorchStreamGuard *
gtorch_stream_guard_new (GTorchStream *stream)
{
  GTorchStreamGuard *guard;

  g_return_val_if_fail (GTORCH_IS_STREAM (stream), NULL);
  guard = g_new0 (GTorchStreamGuard, 1);
  guard->ref_count = 1;
  guard->thread = g_thread_self ();
  guard->device = gtorch_stream_get_device (stream);
  guard->former = gtorch_stream_swap (guard->device, stream);
  return guard;
}

/**
 * gtorch_stream_guard_end:
 * @guard: a guard
 *
 * Makes the former stream current again. Does nothing the second time, or in another thread.
 *
 * Since: 0.1
 */
void
gtorch_stream_guard_end (GTorchStreamGuard *guard)
{
  g_autoptr (GTorchStream) own = NULL;

  g_return_if_fail (guard != NULL);
  if (guard->thread != g_thread_self ())
    return;
  guard->thread = NULL;
  own = gtorch_stream_swap (guard->device, guard->former);
  g_clear_object (&guard->former);
}

/**
 * gtorch_stream_guard_ref:
 * @guard: a guard
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @guard
 *
 * Since: 0.1
 */
GTorchStreamGuard *
gtorch_stream_guard_ref (GTorchStreamGuard *guard)
{
  g_return_val_if_fail (guard != NULL, NULL);
  g_atomic_int_inc (&guard->ref_count);
  return guard;
}

/**
 * gtorch_stream_guard_unref:
 * @guard: (transfer full): a guard
 *
 * Drops a reference; the last one ends the guard.
 *
 * Since: 0.1
 */
void
gtorch_stream_guard_unref (GTorchStreamGuard *guard)
{
  g_return_if_fail (guard != NULL);
  if (!g_atomic_int_dec_and_test (&guard->ref_count))
    return;
  gtorch_stream_guard_end (guard);
  g_clear_object (&guard->former);
  g_free (guard);
}

static void
pool_use_free (GTorchPoolUse *use)
{
  gtorch_pool_unref (use->pool);
  g_free (use);
}

void
gtorch_pool_uses_clear (void)
{
  GTorchPoolUse *use;

  while ((use = gtorch_thread.pools) != NULL)
    {
      gtorch_thread.pools = use->below;
      pool_use_free (use);
    }
}

/**
 * gtorch_memory_pool_guard_new:
 * @pool: a pool
 *
 * Lets what this thread allocates on the device of @pool come from there.
 *
 * Returns: (transfer full): a guard
 *
 * Since: 0.1
 */
GTorchMemoryPoolGuard *
gtorch_memory_pool_guard_new (GTorchMemoryPool *pool)
{
  GTorchMemoryPoolGuard *guard;

  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (pool), NULL);
  gtorch_thread_clean_up_later ();
  guard = g_new0 (GTorchMemoryPoolGuard, 1);
  guard->ref_count = 1;
  guard->thread = g_thread_self ();
  guard->use = g_new (GTorchPoolUse, 1);
  guard->use->pool = gtorch_pool_ref (gtorch_memory_pool_get_pool (pool));
  guard->use->below = gtorch_thread.pools;
  gtorch_thread.pools = guard->use;
  return guard;
}

/**
 * gtorch_memory_pool_guard_end:
 * @guard: a guard
 *
 * Lets memory come from where it came before. Does nothing the second time, or in another thread.
 *
 * Tensors keep the memory that they have. Guards may end in any order.
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_guard_end (GTorchMemoryPoolGuard *guard)
{
  GTorchPoolUse **at = &gtorch_thread.pools;

  g_return_if_fail (guard != NULL);
  if (guard->thread != g_thread_self () || guard->use == NULL)
    return;
  while (*at != NULL && *at != guard->use)
    at = &(*at)->below;
  if (*at != NULL)
    {
      *at = guard->use->below;
      pool_use_free (guard->use);
    }
  guard->use = NULL;
}

/**
 * gtorch_memory_pool_guard_ref:
 * @guard: a guard
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @guard
 *
 * Since: 0.1
 */
GTorchMemoryPoolGuard *
gtorch_memory_pool_guard_ref (GTorchMemoryPoolGuard *guard)
{
  g_return_val_if_fail (guard != NULL, NULL);
  g_atomic_int_inc (&guard->ref_count);
  return guard;
}

/**
 * gtorch_memory_pool_guard_unref:
 * @guard: (transfer full): a guard
 *
 * Drops a reference; the last one ends the guard.
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_guard_unref (GTorchMemoryPoolGuard *guard)
{
  g_return_if_fail (guard != NULL);
  if (!g_atomic_int_dec_and_test (&guard->ref_count))
    return;
  gtorch_memory_pool_guard_end (guard);
  g_free (guard);
}
