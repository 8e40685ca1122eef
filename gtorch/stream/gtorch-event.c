/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "stream/gtorch-capturing-private.h"
#include "stream/gtorch-event-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-task-private.h"

/**
 * GTorchEvent:
 *
 * A point in the work of a stream.
 *
 * [method@Event.record] places the event after the work that is in the stream's queue. Other streams can
 * wait for it ([method@Stream.wait_event]), and so can a thread ([method@Event.synchronize]) or a main loop
 * ([method@Event.synchronize_async], [method@Event.create_source], [signal@Event::completed]). An event can
 * be recorded again; waits that have begun still wait for the former recording. An event that was never
 * recorded counts as done. With %GTORCH_EVENT_INTERPROCESS, several processes can share an event of a GPU
 * ([method@Event.get_ipc_handle]).
 *
 * ```c
 * g_autoptr (GTorchEvent) start = gtorch_event_new (GTORCH_EVENT_TIMING);
 * g_autoptr (GTorchEvent) end = gtorch_event_new (GTORCH_EVENT_TIMING);
 *
 * gtorch_event_record (start, NULL, &error);
 * …
 * gtorch_event_record (end, NULL, &error);
 * gtorch_event_synchronize (end, NULL, &error);
 * g_print ("%.3f ms\n", gtorch_event_get_elapsed_ms (start, end, &error));
 * ```
 *
 * Since: 0.1
 */

struct _GTorchEvent
{
  GObject parent_instance;
  GTorchEventFlags flags;
  GMutex lock;
  GTorchFence *fence;
  GTorchDevice *device; /* with flag INTERPROCESS: device of the event, set at first use */
  gpointer shared;      /* with flag INTERPROCESS: the device's native event */
  gboolean is_foreign;  /* opened from a handle of another process */
};

enum
{
  COMPLETED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

G_DEFINE_TYPE (GTorchEvent, gtorch_event, G_TYPE_OBJECT)

GType
gtorch_event_flags_get_type (void)
{
  static gsize type = 0;
  static const GFlagsValue values[] = {
    { GTORCH_EVENT_NONE, "GTORCH_EVENT_NONE", "none" },
    { GTORCH_EVENT_TIMING, "GTORCH_EVENT_TIMING", "timing" },
    { GTORCH_EVENT_BLOCKING, "GTORCH_EVENT_BLOCKING", "blocking" },
    { GTORCH_EVENT_INTERPROCESS, "GTORCH_EVENT_INTERPROCESS", "interprocess" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_flags_register_static ("GTorchEventFlags", values));
  return type;
}

static void
gtorch_event_finalize (GObject *object)
{
  GTorchEvent *self = GTORCH_EVENT (object);

  g_clear_pointer (&self->fence, gtorch_fence_unref);
  if (self->shared != NULL)
    GTORCH_DEVICE_GET_CLASS (self->device)->shared_events->unref (self->shared);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gtorch_event_parent_class)->finalize (object);
}

static const GTorchField fields[] = {
  /**
   * GTorchEvent:flags:
   *
   * The purposes of the event.
   *
   * Since: 0.1
   */
  { "flags", GTORCH_FIELD_FLAGS, GTORCH_FIELD (GTorchEvent, flags),
    .type = gtorch_event_flags_get_type, .flags = GTORCH_FIELD_FIXED },
};

static void
gtorch_event_class_init (GTorchEventClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_event_finalize;
  GTORCH_FIELDS (klass, fields);

  /**
   * GTorchEvent::completed:
   * @self: the event
   *
   * The work that the event was recorded after is done.
   *
   * Emitted in the main context that was the thread-default one when the event was recorded. Handlers must
   * be connected before that.
   *
   * Since: 0.1
   */
  signals[COMPLETED] = g_signal_new ("completed", GTORCH_TYPE_EVENT, G_SIGNAL_RUN_LAST, 0, NULL,
                                     NULL, NULL, G_TYPE_NONE, 0);
}

static void
gtorch_event_init (GTorchEvent *self)
{
  g_mutex_init (&self->lock);
}

/**
 * gtorch_event_new:
 * @flags: the purposes of the event
 *
 * Creates an event. It belongs to no device until it is recorded.
 *
 * Returns: (transfer full): a new event
 *
 * Since: 0.1
 */
GTorchEvent *
gtorch_event_new (GTorchEventFlags flags)
{
  const guint all = GTORCH_EVENT_TIMING | GTORCH_EVENT_BLOCKING | GTORCH_EVENT_INTERPROCESS;

  g_return_val_if_fail ((flags & ~all) == 0, NULL);
  return g_object_new (GTORCH_TYPE_EVENT, "flags", flags, NULL);
}

/**
 * gtorch_event_get_flags:
 * @self: an event
 *
 * Gets the flags that the event was created with.
 *
 * Returns: the flags
 *
 * Since: 0.1
 */
GTorchEventFlags
gtorch_event_get_flags (GTorchEvent *self)
{
  g_return_val_if_fail (GTORCH_IS_EVENT (self), GTORCH_EVENT_NONE);
  return self->flags;
}

/* Returns the fence of the last recording. If the event is shared, another process may have recorded it
 * again. */
GTorchFence *
gtorch_event_dup_fence (GTorchEvent *self)
{
  GTorchFence *fence = NULL;

  g_mutex_lock (&self->lock);
  if (self->shared != NULL)
    {
      fence = GTORCH_DEVICE_GET_CLASS (self->device)->shared_events->new_fence (self->shared);
      if (self->fence != NULL)
        fence->mark = gtorch_mark_ref (self->fence->mark);
    }
  else if (self->fence != NULL)
    fence = gtorch_fence_ref (self->fence);
  g_mutex_unlock (&self->lock);
  return fence;
}

/* --- sharing between processes --- */

static const struct _GTorchSharedEvents *
find_shared_events (GTorchDevice *device, GError **error)
{
  const struct _GTorchSharedEvents *events = GTORCH_DEVICE_GET_CLASS (device)->shared_events;

  if (events == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("event: %s has no events that can be shared with other processes"),
                 gtorch_device_name (device));
  return events;
}

/* Creates the device's native event if there is none yet. */
static gboolean
ensure_shared (GTorchEvent *self, GTorchDevice *device, GError **error)
{
  const struct _GTorchSharedEvents *events;
  gboolean result = TRUE;

  if (self->flags & GTORCH_EVENT_TIMING)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("event: one that is shared with other processes keeps no time: the "
                      "flags timing and interprocess exclude each other"));
      return FALSE;
    }
  g_mutex_lock (&self->lock);
  if (self->shared == NULL)
    {
      events = find_shared_events (device, error);
      self->shared = events != NULL ? events->open (device, NULL, error) : NULL;
      self->device = device;
      result = self->shared != NULL;
    }
  g_mutex_unlock (&self->lock);
  return result;
}

static GTorchFence *
record_shared (GTorchEvent *self, GTorchStream *stream, GError **error)
{
  GTorchFence *fence;

  if (gtorch_stream_is_capturing (stream))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("event: one that is shared with other processes cannot be recorded in a "
                      "capture"));
      return NULL;
    }
  if (!ensure_shared (self, stream->device, error)
      || !GTORCH_DEVICE_GET_CLASS (self->device)
              ->shared_events->record (self->shared, stream, error))
    return NULL;
  fence = GTORCH_DEVICE_GET_CLASS (self->device)->shared_events->new_fence (self->shared);
  gtorch_stream_mark_fence (stream, fence);
  return fence;
}

/**
 * gtorch_event_get_ipc_handle:
 * @self: an event created with %GTORCH_EVENT_INTERPROCESS
 * @device: (nullable): the device of the event, which is used if it was not recorded yet, or %NULL for this
 *   thread's current device
 * @error: return location for an error
 *
 * Gets a handle by which another process can open the same event: bytes that can be sent by any means.
 *
 * The other process passes them to [ctor@Event.new_from_ipc_handle]. From then on either process may record
 * the event, and either may wait for its last recording. The event must be kept alive in this process as
 * long as another process uses it.
 *
 * Returns: (transfer full): the handle; %NULL with %GTORCH_ERROR_INVALID if the event was created without
 *   the flag, or with timing, %GTORCH_ERROR_NOT_SUPPORTED if the device or its driver does not support such
 *   events (for example the CPU), or with the driver's error
 *
 * Since: 0.1
 */
GBytes *
gtorch_event_get_ipc_handle (GTorchEvent *self, GTorchDevice *device, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_EVENT (self), NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  if (!(self->flags & GTORCH_EVENT_INTERPROCESS))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("event: it was made without the flag interprocess, and cannot be shared "
                      "with other processes"));
      return NULL;
    }
  if (!ensure_shared (self, gtorch_device_or_current (device), error))
    return NULL;
  return GTORCH_DEVICE_GET_CLASS (self->device)->shared_events->get_handle (self->shared, error);
}

/**
 * gtorch_event_new_from_ipc_handle:
 * @device: the device of the event, which may have another index in the other process
 * @handle: the result of [method@Event.get_ipc_handle] in the other process
 * @error: return location for an error
 *
 * Opens an event of another process.
 *
 * Returns: (transfer full): an event; %NULL with %GTORCH_ERROR_INVALID if @handle is not a valid handle,
 *   %GTORCH_ERROR_NOT_SUPPORTED if the device does not support such events, or with the driver's error, for
 *   example if @handle is of this process
 *
 * Since: 0.1
 */
GTorchEvent *
gtorch_event_new_from_ipc_handle (GTorchDevice *device, GBytes *handle, GError **error)
{
  const struct _GTorchSharedEvents *events;
  GTorchEvent *self;
  gpointer shared;

  g_return_val_if_fail (GTORCH_IS_DEVICE (device), NULL);
  g_return_val_if_fail (handle != NULL, NULL);
  device = gtorch_device_resolved (device);
  events = find_shared_events (device, error);
  shared = events != NULL ? events->open (device, handle, error) : NULL;
  if (shared == NULL)
    return NULL;
  self = gtorch_event_new (GTORCH_EVENT_INTERPROCESS);
  self->device = device;
  self->shared = shared;
  self->is_foreign = TRUE;
  return self;
}

/* --- recording and waiting --- */

static gboolean
emit_completed (gpointer data)
{
  g_signal_emit (data, signals[COMPLETED], 0);
  return G_SOURCE_REMOVE;
}

/**
 * gtorch_event_record:
 * @self: an event
 * @stream: (nullable): a stream, or %NULL for the current stream of this thread's current device (see
 *   [func@Stream.get_current])
 * @error: return location for an error
 *
 * Places the event after the work that is in the stream's queue now.
 *
 * An event with %GTORCH_EVENT_INTERPROCESS belongs to the device on which it was first recorded.
 *
 * Returns: %TRUE on success; %FALSE with the driver's error or, for an event with
 *   %GTORCH_EVENT_INTERPROCESS, with %GTORCH_ERROR_INVALID if it also has %GTORCH_EVENT_TIMING,
 *   %GTORCH_ERROR_DEVICE_MISMATCH if it belongs to another device, %GTORCH_ERROR_NOT_SUPPORTED on the CPU,
 *   %GTORCH_ERROR_CAPTURE in a capture
 *
 * Since: 0.1
 */
gboolean
gtorch_event_record (GTorchEvent *self, GTorchStream *stream, GError **error)
{
  GTorchFence *fence, *former;

  g_return_val_if_fail (GTORCH_IS_EVENT (self), FALSE);
  g_return_val_if_fail (stream == NULL || GTORCH_IS_STREAM (stream), FALSE);
  if (stream == NULL)
    stream = gtorch_stream_get_current (NULL);
  fence = self->flags & GTORCH_EVENT_INTERPROCESS
              ? record_shared (self, stream, error)
              : gtorch_stream_record_fence (stream, self->flags, error);
  if (fence == NULL)
    return FALSE;

  g_mutex_lock (&self->lock);
  former = self->fence;
  self->fence = gtorch_fence_ref (fence);
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&former, gtorch_fence_unref);

  if (fence->capture == NULL && g_signal_has_handler_pending (self, signals[COMPLETED], 0, FALSE))
    {
      GMainContext *context = g_main_context_ref_thread_default ();
      GSource *source = gtorch_fence_source_new (fence, NULL);

      g_source_set_callback (source, emit_completed, g_object_ref (self), g_object_unref);
      g_source_attach (source, context);
      g_source_unref (source);
      g_main_context_unref (context);
    }
  gtorch_fence_unref (fence);
  return TRUE;
}

/**
 * gtorch_event_wait:
 * @self: an event
 * @stream: (nullable): a stream, or %NULL for the current stream of this thread's current device (see
 *   [func@Stream.get_current])
 * @error: return location for an error
 *
 * Makes the stream, not the thread, wait for the event; see [method@Stream.wait_event].
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_event_wait (GTorchEvent *self, GTorchStream *stream, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_EVENT (self), FALSE);
  g_return_val_if_fail (stream == NULL || GTORCH_IS_STREAM (stream), FALSE);
  return gtorch_stream_wait_event (stream != NULL ? stream : gtorch_stream_get_current (NULL), self,
                                   error);
}

/**
 * gtorch_event_is_recorded:
 * @self: an event
 *
 * Tells whether the event was recorded at least once. For an event that another process created this is not
 * known, and it counts as recorded.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_event_is_recorded (GTorchEvent *self)
{
  gboolean result;

  g_return_val_if_fail (GTORCH_IS_EVENT (self), FALSE);
  g_mutex_lock (&self->lock);
  result = self->fence != NULL || self->is_foreign;
  g_mutex_unlock (&self->lock);
  return result;
}

/**
 * gtorch_event_query:
 * @self: an event
 *
 * Tells, without waiting, whether the work that the event was recorded after is done. An event recorded in
 * a capture is not done before the capture has ended.
 *
 * Returns: %TRUE if so, or if the event was never recorded
 *
 * Since: 0.1
 */
gboolean
gtorch_event_query (GTorchEvent *self)
{
  GTorchFence *fence;
  gboolean result;

  g_return_val_if_fail (GTORCH_IS_EVENT (self), FALSE);
  fence = gtorch_event_dup_fence (self);
  result = fence == NULL || gtorch_fence_is_done (fence);
  g_clear_pointer (&fence, gtorch_fence_unref);
  return result;
}

static gboolean
refuse_captured (GTorchFence *fence, GError **error)
{
  if (fence == NULL || fence->capture == NULL || gtorch_fence_is_done (fence))
    return FALSE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("event: it was recorded in a capture that has not ended: only streams can wait "
                  "for it"));
  return TRUE;
}

/**
 * gtorch_event_synchronize:
 * @self: an event
 * @cancellable: (nullable): cancels the wait
 * @error: return location for an error
 *
 * Waits until the work that the event was recorded after is done; the thread sleeps.
 *
 * Returns: %TRUE on success; %FALSE with the error of the work, %G_IO_ERROR_CANCELLED or
 *   %GTORCH_ERROR_CAPTURE
 *
 * Since: 0.1
 */
gboolean
gtorch_event_synchronize (GTorchEvent *self, GCancellable *cancellable, GError **error)
{
  GTorchFence *fence;
  gboolean result;

  g_return_val_if_fail (GTORCH_IS_EVENT (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  fence = gtorch_event_dup_fence (self);
  if (fence == NULL)
    return TRUE;
  result = !refuse_captured (fence, error) && gtorch_fence_wait (fence, cancellable, error);
  gtorch_fence_unref (fence);
  return result;
}

/**
 * gtorch_event_synchronize_async:
 * @self: an event
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the work is done
 * @user_data: passed to @callback
 *
 * Waits asynchronously until the work that the event was recorded after is done.
 *
 * Since: 0.1
 */
void
gtorch_event_synchronize_async (GTorchEvent *self, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;
  GTorchFence *fence;

  g_return_if_fail (GTORCH_IS_EVENT (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_event_synchronize_async, cancellable, callback, user_data);
  if (g_task_return_error_if_cancelled (task))
    return;
  fence = gtorch_event_dup_fence (self);
  if (fence == NULL)
    g_task_return_boolean (task, TRUE);
  else if (refuse_captured (fence, &error))
    g_task_return_error (task, error);
  else
    gtorch_fence_return_task (fence, task, NULL);
  g_clear_pointer (&fence, gtorch_fence_unref);
}

/**
 * gtorch_event_synchronize_finish:
 * @self: an event
 * @result: the result that the callback was given
 * @error: return location for an error
 *
 * Finishes [method@Event.synchronize_async].
 *
 * Returns: like [method@Event.synchronize]
 *
 * Since: 0.1
 */
gboolean
gtorch_event_synchronize_finish (GTorchEvent *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_EVENT (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_event_synchronize_async, error))
    return FALSE;
  return g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_event_get_elapsed_ms:
 * @self: the event at the beginning
 * @end: the event at the end
 * @error: return location for an error
 *
 * Gets the time between the two events, as measured by the device.
 *
 * Returns: milliseconds; NaN with %GTORCH_ERROR_INVALID if an event has no %GTORCH_EVENT_TIMING, was not
 *   recorded or is not done
 *
 * Since: 0.1
 */
gdouble
gtorch_event_get_elapsed_ms (GTorchEvent *self, GTorchEvent *end, GError **error)
{
  GTorchEvent *events[2] = { self, end };
  GTorchFence *fences[2] = { NULL, NULL };
  gdouble result = (gdouble) NAN;
  guint i;

  g_return_val_if_fail (GTORCH_IS_EVENT (self), (gdouble) NAN);
  g_return_val_if_fail (GTORCH_IS_EVENT (end), (gdouble) NAN);
  for (i = 0; i < 2; i++)
    {
      GTorchFence *fence = fences[i] = gtorch_event_dup_fence (events[i]);
      const gchar *which = i == 0 ? _ ("first") : _ ("second");
      const gchar *reason = NULL;

      if (!(events[i]->flags & GTORCH_EVENT_TIMING))
        reason = _ ("was made without timing");
      else if (fence == NULL)
        reason = _ ("was not recorded");
      else if (!gtorch_fence_is_done (fence))
        reason = _ ("is not done");
      else if (fence->capture != NULL)
        reason = _ ("was recorded in a capture");
      else if (i == 1
               && (fence->backend != fences[0]->backend || fence->device != fences[0]->device))
        reason = _ ("was recorded on another device than the first");
      if (reason != NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("elapsed time: the %s event %s"), which, reason);
          break;
        }
    }
  if (i == 2 && fences[0]->backend == NULL)
    result = (gdouble) (fences[1]->time_ns - fences[0]->time_ns) / 1e6;
  else if (i == 2 && !fences[0]->backend->elapsed (fences[0], fences[1], &result, error))
    result = (gdouble) NAN;
  g_clear_pointer (&fences[0], gtorch_fence_unref);
  g_clear_pointer (&fences[1], gtorch_fence_unref);
  return result;
}

/**
 * gtorch_event_create_source:
 * @self: an event
 * @cancellable: (nullable): a cancellable that also makes the source ready
 *
 * Creates a source that is ready when the work that the event was recorded after is done. Waiting uses no
 * CPU time. The callback is a #GSourceFunc and is called once.
 *
 * ```c
 * GSource *source = gtorch_event_create_source (event, NULL);
 *
 * g_source_set_callback (source, on_done, self, NULL);
 * g_source_attach (source, NULL);
 * g_source_unref (source);
 * ```
 *
 * Returns: (transfer full): a new source
 *
 * Since: 0.1
 */
GSource *
gtorch_event_create_source (GTorchEvent *self, GCancellable *cancellable)
{
  GTorchFence *fence;
  GSource *source;

  g_return_val_if_fail (GTORCH_IS_EVENT (self), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  fence = gtorch_event_dup_fence (self);
  if (fence == NULL)
    {
      fence = gtorch_fence_new ();
      gtorch_fence_complete (fence, NULL);
    }
  source = gtorch_fence_source_new (fence, cancellable);
  gtorch_fence_unref (fence);
  return source;
}
