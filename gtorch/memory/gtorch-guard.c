/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "memory/gtorch-guard.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-callback-private.h"
#include "stream/gtorch-stream-private.h"
#include "memory/gtorch-memory-pool-private.h"

/**
 * GTorchDeviceGuard:
 *
 * Keeps a device the current one of its type in this thread; when it ends, the former device is restored.
 *
 * In C, `g_autoptr` ends it at the end of the block. Languages with a garbage collector call
 * [method@DeviceGuard.end].
 *
 * The following applies to all guards. Guards of a thread nest. They may also end in any order: as long as
 * one of them lasts, the youngest one that lasts decides, and when all have ended everything is as it was
 * before the first of them. A setting that is changed without a guard in the meantime, as with
 * [method@Device.set_current], lasts until the end of the youngest guard of the same setting.
 *
 * A guard belongs to the thread that created it. If another thread ends it, or drops the last reference, it
 * lasts until its own thread begins or ends any guard, reads or changes a setting that guards change, or
 * runs an operation. When a thread ends, so do its guards.
 *
 * Since: 0.1
 */
struct _GTorchDeviceGuard
{
  GTorchGuard parent;
};

/**
 * GTorchDefaultDeviceGuard:
 *
 * Keeps a device the default device of this thread, on which tensors are created when none is named; see
 * [func@get_default_device].
 *
 * In C, `g_autoptr` ends it at the end of the block. Languages with a garbage collector call
 * [method@DefaultDeviceGuard.end]. Other threads are not affected. Guards may end in any order, as with
 * [struct@DeviceGuard].
 *
 * Since: 0.1
 */
struct _GTorchDefaultDeviceGuard
{
  GTorchGuard parent;
};

/**
 * GTorchStreamGuard:
 *
 * Keeps a stream the current one of its device in this thread, and its device the current one of its type;
 * when it ends, the former ones are restored.
 *
 * In C, `g_autoptr` ends it at the end of the block. Languages with a garbage collector call
 * [method@StreamGuard.end]. Guards may end in any order, as with [struct@DeviceGuard].
 *
 * Since: 0.1
 */
struct _GTorchStreamGuard
{
  GTorchGuard parent;
};

/**
 * GTorchMemoryPoolGuard:
 *
 * Allocates the thread's tensors on one device from a [class@MemoryPool].
 *
 * In C, `g_autoptr` ends it at the end of the block. Languages with a garbage collector call
 * [method@MemoryPoolGuard.end]. If there are several guards for one device, the youngest one applies. They
 * may end in any order, as with [struct@DeviceGuard].
 *
 * Since: 0.1
 */
struct _GTorchMemoryPoolGuard
{
  GTorchGuard parent;
};

G_DEFINE_BOXED_TYPE (GTorchDeviceGuard, gtorch_device_guard, gtorch_device_guard_ref,
                     gtorch_device_guard_unref)
G_DEFINE_BOXED_TYPE (GTorchDefaultDeviceGuard, gtorch_default_device_guard,
                     gtorch_default_device_guard_ref, gtorch_default_device_guard_unref)
G_DEFINE_BOXED_TYPE (GTorchStreamGuard, gtorch_stream_guard, gtorch_stream_guard_ref,
                     gtorch_stream_guard_unref)
G_DEFINE_BOXED_TYPE (GTorchMemoryPoolGuard, gtorch_memory_pool_guard, gtorch_memory_pool_guard_ref,
                     gtorch_memory_pool_guard_unref)

/* --- the current device --- */

/**
 * gtorch_device_guard_new:
 * @device: a device
 * @error: return location for an error
 *
 * Makes @device the current one of its type in this thread, as [method@Device.set_current] does.
 *
 * Returns: (transfer full): a guard, or %NULL if the device cannot be used
 *
 * Since: 0.1
 */
GTorchDeviceGuard *
gtorch_device_guard_new (GTorchDevice *device, GError **error)
{
  GTorchDeviceGuard *guard;

  g_return_val_if_fail (GTORCH_IS_DEVICE (device), NULL);
  device = gtorch_device_resolved (device);
  if (!gtorch_device_can_be_current (device, error))
    return NULL;
  guard = gtorch_guard_new (sizeof *guard, NULL);
  gtorch_change_current (&guard->parent.change, device);
  return guard;
}

/**
 * gtorch_device_guard_end:
 * @guard: a guard
 *
 * Restores the former current device.
 *
 * Further calls do nothing. If called in another thread than the guard's own, the guard ends when its own
 * thread next begins or ends a guard.
 *
 * Since: 0.1
 */
void
gtorch_device_guard_end (GTorchDeviceGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_end (guard);
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
  return gtorch_guard_ref (guard);
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
  gtorch_guard_unref (guard);
}

/**
 * gtorch_device_run:
 * @self: a device
 * @func: (scope call) (closure user_data): the function to call
 * @user_data: passed to @func
 * @error: return location for an error
 *
 * Calls @func in this thread with the device as the current one of its type, and restores the former one.
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

/* --- the default device --- */

/**
 * gtorch_default_device_guard_new:
 * @device: a device
 *
 * Makes @device the default device of this thread. A device without a number stands for the current device
 * of its type at the time when a tensor is created.
 *
 * ```c
 * {
 *   g_autoptr (GTorchDefaultDeviceGuard) guard = gtorch_default_device_guard_new (device);
 *
 *   x = gtorch_zeros (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, &error); // on the device
 * }
 * ```
 *
 * Returns: (transfer full): a guard
 *
 * Since: 0.1
 */
GTorchDefaultDeviceGuard *
gtorch_default_device_guard_new (GTorchDevice *device)
{
  GTorchDefaultDeviceGuard *guard;

  g_return_val_if_fail (GTORCH_IS_DEVICE (device), NULL);
  guard = gtorch_guard_new (sizeof *guard, NULL);
  gtorch_change_device (&guard->parent.change, &gtorch_thread.default_device, device);
  gtorch_change_device (&guard->parent.change, &gtorch_thread.device, NULL);
  return guard;
}

/**
 * gtorch_default_device_guard_end:
 * @guard: a guard
 *
 * Restores the former default device.
 *
 * Further calls do nothing. If called in another thread than the guard's own, the guard ends when its own
 * thread next begins or ends a guard.
 *
 * Since: 0.1
 */
void
gtorch_default_device_guard_end (GTorchDefaultDeviceGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_end (guard);
}

/**
 * gtorch_default_device_guard_ref:
 * @guard: a guard
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @guard
 *
 * Since: 0.1
 */
GTorchDefaultDeviceGuard *
gtorch_default_device_guard_ref (GTorchDefaultDeviceGuard *guard)
{
  g_return_val_if_fail (guard != NULL, NULL);
  return gtorch_guard_ref (guard);
}

/**
 * gtorch_default_device_guard_unref:
 * @guard: (transfer full): a guard
 *
 * Drops a reference; the last one ends the guard.
 *
 * Since: 0.1
 */
void
gtorch_default_device_guard_unref (GTorchDefaultDeviceGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_unref (guard);
}

/**
 * gtorch_device_run_as_default:
 * @self: a device
 * @func: (scope call) (closure user_data): the function to call
 * @user_data: passed to @func
 * @error: return location for an error
 *
 * Calls @func in this thread with the device as the default device, and restores the former one.
 *
 * ```js
 * device.run_as_default(() => {
 *     const x = GTorch.zeros([2, 3]); // on this device
 *     return true;
 * });
 * ```
 *
 * Returns: what @func returned
 *
 * Since: 0.1
 */
gboolean
gtorch_device_run_as_default (GTorchDevice *self, GTorchDeviceFunc func, gpointer user_data,
                              GError **error)
{
  g_autoptr (GTorchDefaultDeviceGuard) guard = NULL;
  GError *local = NULL;
  gboolean success;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  guard = gtorch_default_device_guard_new (self);
  success = func (self, user_data, &local);
  return gtorch_callback_ended ("device_run_as_default", success, local, error);
}

/* --- the current stream --- */

/**
 * gtorch_stream_guard_new:
 * @stream: a stream
 *
 * Makes @stream the current one of its device in this thread, and the device the current one of its type.
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
  guard = gtorch_guard_new (sizeof *guard, NULL);
  gtorch_change_stream (&guard->parent.change, stream->device, stream);
  gtorch_change_current (&guard->parent.change, stream->device);
  return guard;
}

/**
 * gtorch_stream_guard_end:
 * @guard: a guard
 *
 * Restores the former current stream.
 *
 * Further calls do nothing. If called in another thread than the guard's own, the guard ends when its own
 * thread next begins or ends a guard.
 *
 * Since: 0.1
 */
void
gtorch_stream_guard_end (GTorchStreamGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_end (guard);
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
  return gtorch_guard_ref (guard);
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
  gtorch_guard_unref (guard);
}

/* --- memory pools --- */

/**
 * gtorch_memory_pool_guard_new:
 * @pool: a pool
 *
 * Makes this thread allocate from @pool on the pool's device.
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
  guard = gtorch_guard_new (sizeof *guard, NULL);
  gtorch_change_pool (&guard->parent.change, gtorch_memory_pool_get_pool (pool));
  return guard;
}

/**
 * gtorch_memory_pool_guard_end:
 * @guard: a guard
 *
 * Restores the former source of memory. Tensors keep their memory.
 *
 * Further calls do nothing. If called in another thread than the guard's own, the guard ends when its own
 * thread next begins or ends a guard.
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_guard_end (GTorchMemoryPoolGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_end (guard);
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
  return gtorch_guard_ref (guard);
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
  gtorch_guard_unref (guard);
}
