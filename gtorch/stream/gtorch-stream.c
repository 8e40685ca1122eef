/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-callback-private.h"
#include "stream/gtorch-capturing-private.h"
#include "base/gtorch-field-private.h"
#include "stream/gtorch-stream-private.h"
#include "stream/gtorch-event-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-task-private.h"

/**
 * GTorchStream:
 *
 * A queue of work on a device, which is done in order.
 *
 * Each device has a default stream; operations go to the one that is current in the calling thread
 * ([method@Stream.set_current], [struct@StreamGuard], [method@Stream.run]). On the CPU the calling thread
 * does the work of the default stream at once; a stream created with [ctor@Stream.new] has its own thread,
 * and operations return before they are computed.
 *
 * Work on different streams is ordered only by [method@Stream.wait_stream], events and waits of the host.
 * Reading elements on the host waits for the work that writes them.
 *
 * An error that occurs while enqueued work is done is kept, with the name of the operation; the work
 * enqueued after it is skipped, and so is that of streams that wait for this one. The next
 * [method@Stream.synchronize], [method@Stream.check] or read of a skipped result reports it, after which
 * the stream can be used again. On the CPU tensors that were not computed keep the error, for every read
 * and every operation that uses them, until they are overwritten.
 *
 * Dropping the last reference does not wait: enqueued work is still done.
 *
 * ```c
 * g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, &error);
 * g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
 * g_autoptr (GTorchTensor) y = gtorch_tensor_matmul (a, b, &error);
 *
 * gtorch_stream_synchronize (stream, NULL, &error);
 * ```
 *
 * Since: 0.1
 */

gint gtorch_n_auto_syncs;

G_DEFINE_TYPE (GTorchStream, gtorch_stream, G_TYPE_OBJECT)

/* --- all streams --- */

static GMutex list_lock;
GTORCH_FORK_LOCK (list_lock);
static GTorchStream *streams; /* the latest one first */
static guint64 n_registered;

GTorchStream *
gtorch_stream_register (GTorchStream *stream)
{
  if (stream == NULL)
    return NULL;
  g_mutex_lock (&list_lock);
  if (stream->id == 0) /* a backend may give a stream that it gave before */
    {
      stream->id = ++n_registered;
      stream->next = streams;
      if (streams != NULL)
        streams->former = stream;
      streams = stream;
    }
  g_mutex_unlock (&list_lock);
  return stream;
}

void
gtorch_streams_foreach (void (*func) (GTorchStream *stream, gpointer data), gpointer data)
{
  GTorchStream *stream;

  g_mutex_lock (&list_lock);
  for (stream = streams; stream != NULL; stream = stream->next)
    func (stream, data);
  g_mutex_unlock (&list_lock);
}

/* In dispose, since the subclass finalizes its part first. */
static void
gtorch_stream_dispose (GObject *object)
{
  GTorchStream *self = GTORCH_STREAM (object);

  g_mutex_lock (&list_lock);
  if (self->former != NULL)
    self->former->next = self->next;
  else if (streams == self)
    streams = self->next;
  if (self->next != NULL)
    self->next->former = self->former;
  self->next = self->former = NULL;
  g_mutex_unlock (&list_lock);
  G_OBJECT_CLASS (gtorch_stream_parent_class)->dispose (object);
}

static void
gtorch_stream_finalize (GObject *object)
{
  if (GTORCH_STREAM (object)->auto_sync)
    g_atomic_int_add (&gtorch_n_auto_syncs, -1);
  g_clear_object (&GTORCH_STREAM (object)->cancellable);
  G_OBJECT_CLASS (gtorch_stream_parent_class)->finalize (object);
}

typedef GTorchStream Self;

static const GTorchField fields[] = {
  /**
   * GTorchStream:device:
   *
   * The device of the stream.
   *
   * Since: 0.1
   */
  { "device",
    GTORCH_PROPERTY_OBJECT (GTorchDevice, gtorch_device_get_type, gtorch_stream_get_device, NULL) },
  /**
   * GTorchStream:priority:
   *
   * The priority: 0 is normal, smaller numbers go first.
   *
   * Since: 0.1
   */
  { "priority", GTORCH_PROPERTY_INT (gtorch_stream_get_priority, NULL) },
  /**
   * GTorchStream:auto-sync:
   *
   * Whether operations of the stream wait for earlier work of the device's other streams; see
   * [method@Stream.set_auto_sync].
   *
   * Since: 0.1
   */
  { "auto-sync", GTORCH_PROPERTY_BOOL (gtorch_stream_get_auto_sync, gtorch_stream_set_auto_sync) },
  /**
   * GTorchStream:cancellable:
   *
   * What cancels the work of the stream; see [method@Stream.set_cancellable].
   *
   * Since: 0.1
   */
  { "cancellable",
    GTORCH_PROPERTY_OBJECT (GCancellable, g_cancellable_get_type, gtorch_stream_get_cancellable,
                            gtorch_stream_set_cancellable) },
};

static void
gtorch_stream_class_init (GTorchStreamClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = gtorch_stream_dispose;
  object_class->finalize = gtorch_stream_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_stream_init (GTorchStream *self)
{
  self->device =
      gtorch_device_cpu (); /* a stream constructed by a binding does its work in the caller */
}

/**
 * gtorch_stream_new:
 * @device: (nullable): a device, or %NULL for this thread's current device
 * @priority: 0 is normal, smaller numbers go first where the device supports it
 * @error: return location for an error
 *
 * Creates a stream with its own queue.
 *
 * Returns: (transfer full): a new stream, or %NULL
 *
 * Since: 0.1
 */
GTorchStream *
gtorch_stream_new (GTorchDevice *device, gint priority, GError **error)
{
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  device = gtorch_device_or_current (device);
  return gtorch_stream_register (
      GTORCH_DEVICE_GET_CLASS (device)->new_stream (device, priority, NULL, error));
}

/**
 * gtorch_stream_new_external: (skip)
 * @device: a device
 * @handle: (nullable): a queue of the device's driver, for CUDA a `CUstream`
 * @error: return location for an error
 *
 * Wraps a queue that another library has created, so that GTorch can enqueue work on it. Several streams
 * may wrap the same queue. %NULL is the driver's default queue (stream 0).
 *
 * The caller keeps ownership of the queue, which must exist as long as there are streams that wrap it,
 * tensors that were used on them, and graphs that were replayed on them.
 *
 * Returns: (transfer full): a new stream, or %NULL with %GTORCH_ERROR_NOT_SUPPORTED if the device has no
 *   such queues (for example the CPU), %GTORCH_ERROR_DEVICE_MISMATCH if this one belongs to another device
 *
 * Since: 0.1
 */
GTorchStream *
gtorch_stream_new_external (GTorchDevice *device, gpointer handle, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (device), NULL);
  device = gtorch_device_resolved (device);
  return gtorch_stream_register (
      GTORCH_DEVICE_GET_CLASS (device)->new_stream (device, 0, &handle, error));
}

/**
 * gtorch_stream_new_from_address:
 * @device: a device
 * @address: the result of [method@Stream.get_address], or another library's handle of a queue as a number
 * @error: return location for an error
 *
 * Wraps a queue that another library has created, for languages without pointers.
 *
 * ```python
 * theirs = GTorch.Stream.new_from_address(device, torch.cuda.current_stream().cuda_stream)
 * ```
 *
 * See `gtorch_stream_new_external ()` for how long the queue must exist.
 *
 * Returns: (transfer full): a new stream, or %NULL with %GTORCH_ERROR_NOT_SUPPORTED if the device has no
 *   such queues (for example the CPU), %GTORCH_ERROR_DEVICE_MISMATCH if this one belongs to another device
 *
 * Since: 0.1
 */
GTorchStream *
gtorch_stream_new_from_address (GTorchDevice *device, gsize address, GError **error)
{
  return gtorch_stream_new_external (device, (gpointer) address, error);
}

/**
 * gtorch_stream_get_handle: (skip)
 * @self: a stream
 *
 * Gets the native queue of the stream for use with another library; for CUDA a `CUstream`. It is valid as
 * long as the stream is. If that library uses tensors that were created on another stream, call
 * [method@Tensor.record_stream] for them.
 *
 * Returns: (transfer none) (nullable): the handle; %NULL if there is none, and for the driver's default
 *   queue
 *
 * Since: 0.1
 */
gpointer
gtorch_stream_get_handle (GTorchStream *self)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), NULL);
  if (GTORCH_STREAM_GET_CLASS (self)->get_handle == NULL)
    return NULL;
  return GTORCH_STREAM_GET_CLASS (self)->get_handle (self);
}

/**
 * gtorch_stream_get_address:
 * @self: a stream
 *
 * Gets the result of [method@Stream.get_handle] as a number, for languages without pointers.
 *
 * Returns: the address; 0 if there is no handle, and for the driver's default queue
 *
 * Since: 0.1
 */
gsize
gtorch_stream_get_address (GTorchStream *self)
{
  return (gsize) gtorch_stream_get_handle (self);
}

/**
 * gtorch_stream_get_device:
 * @self: a stream
 *
 * Gets the device of the stream.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_stream_get_device (GTorchStream *self)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), NULL);
  return self->device;
}

/**
 * gtorch_stream_get_priority:
 * @self: a stream
 *
 * Gets the priority that the stream was created with.
 *
 * Returns: the priority
 *
 * Since: 0.1
 */
gint
gtorch_stream_get_priority (GTorchStream *self)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), 0);
  return self->priority;
}

/**
 * gtorch_stream_is_default:
 * @self: a stream
 *
 * Tells whether this is the default stream of its device.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_is_default (GTorchStream *self)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  return self->is_default;
}

/**
 * gtorch_stream_get_auto_sync:
 * @self: a stream
 *
 * Tells whether operations of the stream wait for earlier work of the device's other streams.
 *
 * Returns: %TRUE if so; %FALSE by default
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_get_auto_sync (GTorchStream *self)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  return g_atomic_int_get (&self->auto_sync);
}

/**
 * gtorch_stream_set_auto_sync:
 * @self: a stream
 * @auto_sync: whether to wait
 *
 * Sets whether operations of the stream wait for all earlier work of the device's other streams, as if
 * [method@Stream.wait_stream] were called each time.
 *
 * This makes a stream safe on which the work of several others meets: it neither reads too early what
 * others compute, nor overwrites what they still read. Other streams do not wait for this one unless they
 * have the property, too. Its work no longer overlaps with that of other streams. A stream that captures a
 * graph does not wait.
 *
 * Since: 0.1
 */
void
gtorch_stream_set_auto_sync (GTorchStream *self, gboolean auto_sync)
{
  g_return_if_fail (GTORCH_IS_STREAM (self));
  auto_sync = auto_sync != FALSE;
  if (__atomic_exchange_n (&self->auto_sync, auto_sync, __ATOMIC_ACQ_REL) == auto_sync)
    return;
  g_atomic_int_add (&gtorch_n_auto_syncs, auto_sync ? 1 : -1);
  g_object_notify (G_OBJECT (self), "auto-sync");
}

/* --- cancelling --- */

/* Returns whether the stream has a queue; the CPU's default stream has none. */
static gboolean
has_queue (GTorchStream *self)
{
  return self->timeline != NULL || GTORCH_STREAM_GET_CLASS (self)->synchronize != NULL;
}

G_LOCK_DEFINE_STATIC (cancellable);

GCancellable *
gtorch_stream_dup_cancellable (GTorchStream *stream)
{
  GCancellable *found;

  if (G_LIKELY (__atomic_load_n (&stream->cancellable, __ATOMIC_RELAXED) == NULL))
    return NULL;
  G_LOCK (cancellable);
  found = stream->cancellable != NULL ? g_object_ref (stream->cancellable) : NULL;
  G_UNLOCK (cancellable);
  return found;
}

void
gtorch_stream_set_cancelled (GTorchDevice *device, gpointer stream, const gchar *op, GError **error)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED,
               _ ("%s: the work of stream %p on %s was cancelled"), op, stream,
               gtorch_device_name (device));
}

gboolean
gtorch_stream_look_for_cancellation (GTorchStream *stream, const gchar *op, GError **error)
{
  g_autoptr (GCancellable) found = gtorch_stream_dup_cancellable (stream);

  if (!g_cancellable_is_cancelled (found))
    return TRUE;
  gtorch_stream_set_cancelled (stream->device, stream, op, error);
  return FALSE;
}

/**
 * gtorch_stream_get_cancellable:
 * @self: a stream
 *
 * Gets what cancels the work of the stream.
 *
 * Returns: (transfer none) (nullable): a cancellable, or %NULL
 *
 * Since: 0.1
 */
GCancellable *
gtorch_stream_get_cancellable (GTorchStream *self)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), NULL);
  return __atomic_load_n (&self->cancellable, __ATOMIC_ACQUIRE);
}

/**
 * gtorch_stream_set_cancellable: (set-property cancellable)
 * @self: a stream, but not the default one of its device, which other parts of the program use as well
 * @cancellable: (nullable): cancels the work of the stream, or %NULL
 * @error: return location for an error
 *
 * Lets a cancellable stop the work of the stream.
 *
 * After it was cancelled, from any thread, the stream takes no more work: operations and replays of graphs
 * on it fail with %G_IO_ERROR_CANCELLED, and so do asynchronous calls at their next operation. On the CPU,
 * operations that are in the queue and have not begun are dropped as well: [method@Stream.synchronize] and
 * reads of what they would have computed report %G_IO_ERROR_CANCELLED. What was launched on a GPU cannot be
 * taken back, and is done. Events, and waits of the host and of other streams, work as before.
 *
 * The stream is used again after this function has set another cancellable, or %NULL, or after
 * [method@Gio.Cancellable.reset]. Operations that were in the queue before keep the cancellable that they
 * were enqueued with.
 *
 * ```c
 * g_autoptr (GCancellable) cancellable = g_cancellable_new ();
 *
 * if (!gtorch_stream_set_cancellable (stream, cancellable, &error))
 *   return FALSE;
 * g_signal_connect_object (button, "clicked", G_CALLBACK (g_cancellable_cancel), cancellable,
 *                          G_CONNECT_SWAPPED);
 * ```
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED for the default stream of a device
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_set_cancellable (GTorchStream *self, GCancellable *cancellable, GError **error)
{
  g_autoptr (GCancellable) former = NULL; /* its last reference is not dropped under the lock */

  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (cancellable != NULL && (self->is_default || !has_queue (self)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("stream: the default stream of %s has no cancellable, since other parts of "
                      "the program use it, too: create a stream"),
                   gtorch_device_name (self->device));
      return FALSE;
    }
  G_LOCK (cancellable);
  former = self->cancellable;
  __atomic_store_n (&self->cancellable, cancellable != NULL ? g_object_ref (cancellable) : NULL,
                    __ATOMIC_RELEASE);
  G_UNLOCK (cancellable);
  if (former != cancellable)
    g_object_notify (G_OBJECT (self), "cancellable");
  return TRUE;
}

static gboolean
look_whether_idle (gpointer data, GCancellable *cancellable, gboolean *is_over, GError **error)
{
  GTorchStream *self = data;
  GTorchTimeline *timeline = self->timeline;

  if (GTORCH_STREAM_GET_CLASS (self)->is_idle != NULL)
    *is_over = GTORCH_STREAM_GET_CLASS (self)->is_idle (self);
  else
    *is_over = timeline == NULL || timeline->is_orphan
               || gtorch_timeline_completed (timeline) >= gtorch_timeline_submitted (timeline);
  return *is_over;
}

/**
 * gtorch_stream_is_idle:
 * @self: a stream
 *
 * Tells, without waiting, whether all enqueued work is done.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_is_idle (GTorchStream *self)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), TRUE);
  return gtorch_host_wait (self->device, gtorch_stream_get_queue (self), look_whether_idle, self,
                           NULL, NULL);
}

/**
 * gtorch_stream_is_capturing:
 * @self: a stream
 *
 * Tells whether operations on the stream are recorded in a graph instead of being executed.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_is_capturing (GTorchStream *self)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  return __atomic_load_n (&self->capture, __ATOMIC_ACQUIRE) != NULL;
}

/* --- the current stream --- */

/**
 * gtorch_stream_get_current:
 * @device: (nullable): a device, or %NULL for this thread's current device
 *
 * Gets the stream on which operations of this thread on the device run.
 *
 * The current device of a thread is the one that it made current last, itself or by one of its streams, or
 * by a [struct@DefaultDeviceGuard]; until then it is the default device of the process.
 *
 * Returns: (transfer none): the stream
 *
 * Since: 0.1
 */
GTorchStream *
gtorch_stream_get_current (GTorchDevice *device)
{
  GTorchStream *stream;

  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  gtorch_guards_settle ();
  device = gtorch_device_or_current (device);
  stream = gtorch_current_stream (device);
  return stream != NULL ? stream : gtorch_device_get_default_stream (device);
}

/**
 * gtorch_stream_set_current:
 * @stream: a stream
 *
 * Makes operations of this thread on the stream's device run on the stream, and makes the device the
 * current one of its type. The current streams of other devices do not change.
 *
 * This lasts until another stream is set; inside a [struct@StreamGuard] only until the guard ends.
 *
 * Since: 0.1
 */
void
gtorch_stream_set_current (GTorchStream *stream)
{
  g_autoptr (GTorchStream) former = NULL;
  GTorchDevice *device;

  g_return_if_fail (GTORCH_IS_STREAM (stream));
  gtorch_guards_settle ();
  gtorch_thread_clean_up_later ();
  device = stream->device;
  former = gtorch_thread.streams[device->slot];
  gtorch_thread.streams[device->slot] = stream->is_default ? NULL : g_object_ref (stream);
  gtorch_thread.current[device->type] = device;
  gtorch_thread.device = device;
}

/**
 * gtorch_stream_run:
 * @self: a stream
 * @func: (scope call) (closure user_data): the function to call
 * @user_data: passed to @func
 * @error: return location for an error
 *
 * Calls @func in this thread with the stream and its device as the current ones, and restores the former
 * ones.
 *
 * Returns: what @func returned
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_run (GTorchStream *self, GTorchStreamFunc func, gpointer user_data, GError **error)
{
  GTorchChange change;
  GError *local = NULL;
  gboolean success;

  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  gtorch_change_to_stream (&change, self->device, self);
  gtorch_change_current (&change, self->device);
  success = func (self, user_data, &local);
  gtorch_change_end (&change);
  return gtorch_callback_ended ("stream_run", success, local, error);
}

/* --- ordering --- */

gpointer
gtorch_stream_get_queue (GTorchStream *stream)
{
  if (GTORCH_STREAM_GET_CLASS (stream)->get_queue != NULL)
    return GTORCH_STREAM_GET_CLASS (stream)->get_queue (stream);
  return stream->timeline != NULL ? (gpointer) stream->timeline : stream->device;
}

static gboolean
refuse_in_capture (GTorchStream *self, GError **error)
{
  if (__atomic_load_n (&self->capture, __ATOMIC_ACQUIRE) == NULL)
    return FALSE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("stream: %p captures a graph, there is nothing to wait for before it is "
                  "replayed"),
               self);
  return TRUE;
}

static void
joined (GTorchStream *stream, gpointer queue)
{
  gtorch_observe_join (stream, queue);
}

static void
wait_here (GTorchTimeline *timeline, guint64 seq, gpointer stream)
{
  gtorch_timeline_wait (timeline, G_MAXUINT64, NULL, NULL);
}

typedef struct
{
  GTorchTimeline *timeline;
  guint64 seq;
} Place;

static gboolean
await_place (gpointer data, GError **error)
{
  const Place *place = data;

  return gtorch_timeline_wait (place->timeline, place->seq, NULL, error)
         && gtorch_timeline_check_work (place->timeline, place->seq, error);
}

static void
come_after (GTorchTimeline *timeline, guint64 seq, gpointer stream)
{
  Place *place;

  joined (stream, timeline); /* what an idle one had is done, and comes before as well */
  if (gtorch_timeline_completed (timeline) >= seq)
    return;
  place = g_new (Place, 1);
  *place = (Place){ timeline, seq };
  GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, await_place, place, g_free);
}

gboolean
gtorch_stream_join_others (GTorchDevice *device, GError **error)
{
  GTorchStream *stream = gtorch_stream_peek_current (device);

  if (stream == NULL || !g_atomic_int_get (&stream->auto_sync) || gtorch_thread.worker != NULL
      || __atomic_load_n (&stream->capture, __ATOMIC_ACQUIRE) != NULL)
    return TRUE;
  if (GTORCH_STREAM_GET_CLASS (stream)->join_all != NULL)
    return GTORCH_STREAM_GET_CLASS (stream)->join_all (stream, joined, error);
  if (stream->timeline != NULL && G_UNLIKELY (stream->timeline->is_orphan))
    return gtorch_fork_refuse_stream (error);
  gtorch_timelines_foreach (device, stream->timeline,
                            stream->timeline != NULL ? come_after : wait_here, stream);
  return TRUE;
}

gboolean
gtorch_stream_order_storage (GTorchStream *stream, GTorchDevice *device, GTorchStorage *storage,
                             GError **error)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (device);

  return klass->order_storage == NULL
         || klass->order_storage (device, storage, stream, joined, error);
}

void
gtorch_stream_mark_fence (GTorchStream *stream, GTorchFence *fence)
{
  fence->mark = gtorch_observe_record (stream->device, gtorch_stream_get_queue (stream));
}

GTorchFence *
gtorch_stream_record_fence (GTorchStream *stream, guint flags, GError **error)
{
  g_autoptr (GTorchCapture) capture = gtorch_stream_dup_capture (stream);
  GTorchFence *fence = gtorch_fence_new ();

  fence->flags = flags;
  if (capture != NULL)
    {
      if (!GTORCH_CAPTURE_BASE (capture)->klass->record (capture, stream, fence, error))
        g_clear_pointer (&fence, gtorch_fence_unref);
    }
  else if (!has_queue (stream))
    gtorch_fence_complete (fence, NULL);
  else if (!GTORCH_STREAM_GET_CLASS (stream)->record (stream, fence, error))
    g_clear_pointer (&fence, gtorch_fence_unref);
  if (fence != NULL && capture == NULL)
    gtorch_stream_mark_fence (stream, fence);
  return fence;
}

gboolean
gtorch_stream_wait_fence (GTorchStream *stream, GTorchFence *fence, GError **error)
{
  g_autoptr (GTorchCapture) capture = gtorch_stream_dup_capture (stream);

  if (gtorch_fence_is_orphan (fence))
    return gtorch_fork_refuse_stream (error);
  if (fence->capture != NULL && !gtorch_fence_is_done (fence))
    return GTORCH_CAPTURE_BASE (fence->capture)->klass->join (fence->capture, stream, fence, error);
  if (capture != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("stream: %p captures a graph and cannot wait for work outside of the "
                      "capture: "
                      "wait before the capture begins"),
                   stream);
      return FALSE;
    }
  gtorch_observe_wait (stream, fence->mark);
  if (!has_queue (stream))
    return gtorch_fence_wait (fence, NULL, error);
  return GTORCH_STREAM_GET_CLASS (stream)->wait (stream, fence, error);
}

/**
 * gtorch_stream_check:
 * @self: a stream
 * @error: return location for an error
 *
 * Reports, without waiting, an error of work that has been done since the last report.
 *
 * Returns: %TRUE if there was no error
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_check (GTorchStream *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  if (GTORCH_STREAM_GET_CLASS (self)->check != NULL)
    return GTORCH_STREAM_GET_CLASS (self)->check (self, error);
  return self->timeline == NULL || gtorch_timeline_report (self->timeline, error);
}

static gboolean
wait_for_queue (gpointer self, GCancellable *cancellable, gboolean *is_over, GError **error)
{
  return GTORCH_STREAM_GET_CLASS (self)->synchronize (self, cancellable, is_over, error);
}

/**
 * gtorch_stream_synchronize:
 * @self: a stream
 * @cancellable: (nullable): cancels the wait, not the work
 * @error: return location for an error
 *
 * Waits until all work enqueued so far is done.
 *
 * In a program with a main loop prefer [method@Stream.synchronize_async].
 *
 * Returns: %TRUE on success; %FALSE with the error of the work, with %G_IO_ERROR_CANCELLED, or with
 *   %GTORCH_ERROR_CAPTURE while the stream captures a graph
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_synchronize (GTorchStream *self, GCancellable *cancellable, GError **error)
{
  /* Its end lets this function stay on the stack, by whose name the wait is reported. */
  g_auto (GTorchHostBlock) block = { NULL };

  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error) || refuse_in_capture (self, error))
    return FALSE;
  block = gtorch_observe_host_block (self->device);
  if (GTORCH_STREAM_GET_CLASS (self)->synchronize != NULL)
    return gtorch_host_wait (self->device, gtorch_stream_get_queue (self), wait_for_queue, self,
                             cancellable, error);
  if (self->timeline == NULL)
    return TRUE;
  return gtorch_timeline_wait (self->timeline, G_MAXUINT64, cancellable, error)
         && gtorch_timeline_report (self->timeline, error);
}

/**
 * gtorch_stream_synchronize_async:
 * @self: a stream
 * @cancellable: (nullable): cancels the wait, not the work
 * @callback: (nullable) (scope async) (closure user_data): called when the work is done
 * @user_data: passed to @callback
 *
 * Waits asynchronously until all work enqueued so far is done. Waiting uses no CPU time.
 *
 * Since: 0.1
 */
void
gtorch_stream_synchronize_async (GTorchStream *self, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;
  GTorchFence *fence;

  g_return_if_fail (GTORCH_IS_STREAM (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_stream_synchronize_async, cancellable, callback, user_data);
  if (g_task_return_error_if_cancelled (task))
    return;
  if (refuse_in_capture (self, &error))
    {
      g_task_return_error (task, error);
      return;
    }
  fence = gtorch_stream_record_fence (self, GTORCH_EVENT_NONE, &error);
  if (fence == NULL)
    {
      g_task_return_error (task, error);
      return;
    }
  gtorch_fence_return_task (fence, task, self->timeline);
  gtorch_fence_unref (fence);
}

/**
 * gtorch_stream_synchronize_finish:
 * @self: a stream
 * @result: the result that the callback was given
 * @error: return location for an error
 *
 * Finishes [method@Stream.synchronize_async].
 *
 * Returns: like [method@Stream.synchronize]
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_synchronize_finish (GTorchStream *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_stream_synchronize_async, error))
    return FALSE;
  return g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_stream_record_event:
 * @self: a stream
 * @error: return location for an error
 *
 * Creates an event, without timing, that is done when all work enqueued so far is done.
 *
 * Returns: (transfer full): a new event, or %NULL
 *
 * Since: 0.1
 */
GTorchEvent *
gtorch_stream_record_event (GTorchStream *self, GError **error)
{
  g_autoptr (GTorchEvent) event = NULL;

  g_return_val_if_fail (GTORCH_IS_STREAM (self), NULL);
  event = gtorch_event_new (GTORCH_EVENT_NONE);
  return gtorch_event_record (event, self, error) ? g_steal_pointer (&event) : NULL;
}

/**
 * gtorch_stream_wait_event:
 * @self: a stream
 * @event: an event
 * @error: return location for an error
 *
 * Makes work that is enqueued from now on wait for @event. The call does not block, unless the stream is
 * the CPU's default one, which has no queue. An event that was never recorded counts as done.
 *
 * A stream that waits for an event recorded in a capture joins the capture, on a GPU also one of another GPU;
 * the first stream of the capture must wait for it before the capture ends.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_CAPTURE if a capture does not allow it
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_wait_event (GTorchStream *self, GTorchEvent *event, GError **error)
{
  GTorchFence *fence;
  gboolean result;

  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_EVENT (event), FALSE);
  fence = gtorch_event_dup_fence (event);
  if (fence == NULL)
    return TRUE;
  result = gtorch_stream_wait_fence (self, fence, error);
  gtorch_fence_unref (fence);
  return result;
}

/**
 * gtorch_stream_wait_stream:
 * @self: a stream
 * @other: another stream
 * @error: return location for an error
 *
 * Makes work that is enqueued from now on wait for the work now in the queue of @other.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_CAPTURE if a capture does not allow it
 *
 * Since: 0.1
 */
gboolean
gtorch_stream_wait_stream (GTorchStream *self, GTorchStream *other, GError **error)
{
  GTorchFence *fence;
  gboolean result;

  g_return_val_if_fail (GTORCH_IS_STREAM (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_STREAM (other), FALSE);
  if (self == other)
    return TRUE;
  fence = gtorch_stream_record_fence (other, GTORCH_EVENT_NONE, error);
  if (fence == NULL)
    return FALSE;
  result = gtorch_stream_wait_fence (self, fence, error);
  gtorch_fence_unref (fence);
  return result;
}

/* --- changes of the current stream --- */

void
gtorch_change_slot (GTorchChange *self, guint slot, GTorchStream *stream)
{
  gtorch_change_pointer (self, &gtorch_thread.streams[slot],
                         stream == NULL || stream->is_default ? NULL : g_object_ref (stream),
                         g_object_unref);
}

void
gtorch_change_stream (GTorchChange *self, GTorchDevice *device, GTorchStream *stream)
{
  gtorch_change_slot (self, device->slot, stream);
}
