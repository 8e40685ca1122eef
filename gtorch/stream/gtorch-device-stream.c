/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The default streams of devices, and waiting for all streams of one. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-task-private.h"
#include "device/gtorch-device-manager.h"
#include "device/gtorch-device-private.h"
#include "stream/gtorch-stream-private.h"

static GMutex lock; /* protects default_stream and no_stream of devices */
GTORCH_FORK_LOCK (lock);

/* --- default streams --- */

GTorchStream *
gtorch_device_make_default_stream (GTorchDevice *self, GError **error)
{
  GTorchStream *stream = g_atomic_pointer_get (&self->default_stream);
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (self);
  const gpointer legacy = NULL; /* the driver's own default queue */
  g_autoptr (GError) reason = NULL;
  gboolean is_legacy;

  if (G_LIKELY (stream != NULL))
    return stream;
  is_legacy = gtorch_env_choice ("GTORCH_DEFAULT_STREAM") == 0;
  g_mutex_lock (&lock);
  stream = self->default_stream;
  if (stream == NULL)
    {
      if (self->in_caller)
        stream = g_object_new (GTORCH_TYPE_STREAM, NULL);
      else
        {
          stream = is_legacy ? klass->new_stream (self, 0, &legacy, &reason) : NULL;
          if (!is_legacy || g_error_matches (reason, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
            stream = klass->new_stream (self, 0, NULL, error);
          else if (stream == NULL)
            g_propagate_error (error, g_steal_pointer (&reason));
        }
      if (stream != NULL)
        {
          stream->device = self;
          stream->is_default = TRUE;
          gtorch_stream_register (stream);
          g_atomic_pointer_set (&self->default_stream, stream);
        }
    }
  g_mutex_unlock (&lock);
  return stream;
}

/**
 * gtorch_device_get_default_stream:
 * @self: a device
 *
 * Gets the stream that is current unless another one was set.
 *
 * On a GPU it is a queue of GTorch's own. With `GTORCH_DEFAULT_STREAM=legacy` in the environment it is the
 * driver's stream 0, which other libraries use by default, so that their work and GTorch's are ordered with
 * each other; that stream waits for all others and cannot be captured.
 *
 * Returns: (transfer none): the stream
 *
 * Since: 0.1
 */
GTorchStream *
gtorch_device_get_default_stream (GTorchDevice *self)
{
  GTorchStream *stream;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);
  stream = gtorch_device_make_default_stream (self, NULL);
  if (stream != NULL)
    return stream;
  g_mutex_lock (
      &lock); /* a stream without a queue stands in for it; operations on it report the error */
  if (self->no_stream == NULL)
    {
      self->no_stream = g_object_new (GTORCH_TYPE_STREAM, NULL);
      self->no_stream->device = self;
      self->no_stream->is_default = TRUE;
    }
  g_mutex_unlock (&lock);
  return self->no_stream;
}

/**
 * gtorch_init:
 * @error: return location for an error
 *
 * Initialises the current GPU of this thread.
 *
 * Calling this is optional and may be repeated: the first operation on a GPU initialises it as well, which
 * then takes some tenths of a second longer and reports the errors of a GPU that does not work. Without a
 * GPU this does nothing.
 *
 * Returns: %TRUE if a GPU is ready or there is none; %FALSE with %GTORCH_ERROR_CUDA, %GTORCH_ERROR_FORKED
 *   or %GTORCH_ERROR_OUT_OF_MEMORY
 *
 * Since: 0.1
 */
gboolean
gtorch_init (GError **error)
{
  const GTorchBackend *backend = gtorch_backend_find_accelerator ();
  GTorchDevice *device;

  if (backend->count (NULL) == 0)
    return TRUE;
  device = gtorch_device_get_current (backend->type, error);
  return device != NULL && gtorch_device_make_default_stream (device, error) != NULL;
}

/* --- waiting --- */

static gboolean
wait_for_queues (gpointer self, GCancellable *cancellable, gboolean *is_over, GError **error)
{
  return GTORCH_DEVICE_GET_CLASS (self)->synchronize (self, cancellable, is_over, error);
}

static gboolean
synchronize (GTorchDevice *self, GCancellable *cancellable, GError **error)
{
  if (GTORCH_DEVICE_GET_CLASS (self)->synchronize == NULL)
    return gtorch_timelines_synchronize (self, cancellable, error);
  return gtorch_host_wait (self, GTORCH_ALL_QUEUES, wait_for_queues, self, cancellable, error);
}

/**
 * gtorch_device_synchronize:
 * @self: a device
 * @cancellable: (nullable): cancels the wait, not the work
 * @error: return location for an error
 *
 * Waits until all work enqueued on any stream of the device is done.
 *
 * Returns: %TRUE on success; %FALSE with the first error of the work, %G_IO_ERROR_CANCELLED, or
 *   %GTORCH_ERROR_CAPTURE while the current stream captures a graph
 *
 * Since: 0.1
 */
gboolean
gtorch_device_synchronize (GTorchDevice *self, GCancellable *cancellable, GError **error)
{
  /* Its end lets this function stay on the stack, by whose name the wait is reported. */
  g_auto (GTorchHostBlock) block = { NULL };
  GTorchStream *stream;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  self = gtorch_device_resolved (self);
  block = gtorch_observe_host_block (self);
  stream = gtorch_current_stream (self);
  if (stream != NULL && gtorch_stream_is_capturing (stream))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("device: %s cannot be waited for while the current stream captures a graph"),
                   self->string);
      return FALSE;
    }
  return synchronize (self, cancellable, error);
}

static void
synchronize_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  GError *error = NULL;

  if (synchronize (data, cancellable, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_device_synchronize_async:
 * @self: a device
 * @cancellable: (nullable): cancels the wait, not the work
 * @callback: (nullable) (scope async) (closure user_data): called when all work is done
 * @user_data: passed to @callback
 *
 * Waits asynchronously until all work on the device is done.
 *
 * Since: 0.1
 */
void
gtorch_device_synchronize_async (GTorchDevice *self, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_DEVICE (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_device_synchronize_async, cancellable, callback, user_data);
  if (g_task_return_error_if_cancelled (task))
    return;
  g_task_set_task_data (task, gtorch_device_resolved (self), NULL);
  g_task_run_in_thread (task, synchronize_in_thread);
}

/**
 * gtorch_device_synchronize_finish:
 * @self: a device
 * @result: the result that the callback was given
 * @error: return location for an error
 *
 * Finishes [method@Device.synchronize_async].
 *
 * Returns: like [method@Device.synchronize]
 *
 * Since: 0.1
 */
gboolean
gtorch_device_synchronize_finish (GTorchDevice *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_device_synchronize_async, error))
    return FALSE;
  return g_task_propagate_boolean (G_TASK (result), error);
}
