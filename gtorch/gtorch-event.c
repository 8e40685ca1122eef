/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "gtorch-capture-private.h"
#include "gtorch-event-private.h"

/**
 * GTorchEvent:
 *
 * A point in the work of a stream.
 *
 * [method@Event.record] puts the event behind what is in the stream's queue. Other streams can wait
 * for it ([method@Stream.wait_event]), and so can a thread ([method@Event.synchronize]) or a main
 * loop ([method@Event.synchronize_async], [method@Event.create_source],
 * [signal@Event::completed]). An event can be recorded again; who waits already still waits for
 * the old point. An event that was never recorded counts as done.
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
};

enum
{
  PROP_0,
  PROP_FLAGS,
  N_PROPS
};

enum
{
  COMPLETED,
  N_SIGNALS
};

static GParamSpec *props[N_PROPS];
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
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_flags_register_static ("GTorchEventFlags", values));
  return type;
}

static void
gtorch_event_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  if (prop_id == PROP_FLAGS)
    g_value_set_flags (value, GTORCH_EVENT (object)->flags);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
}

static void
gtorch_event_set_property (GObject *object, guint prop_id, const GValue *value, GParamSpec *pspec)
{
  if (prop_id == PROP_FLAGS)
    GTORCH_EVENT (object)->flags = g_value_get_flags (value);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
}

static void
gtorch_event_finalize (GObject *object)
{
  GTorchEvent *self = GTORCH_EVENT (object);

  g_clear_pointer (&self->fence, gtorch_fence_unref);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gtorch_event_parent_class)->finalize (object);
}

static void
gtorch_event_class_init (GTorchEventClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->get_property = gtorch_event_get_property;
  object_class->set_property = gtorch_event_set_property;
  object_class->finalize = gtorch_event_finalize;

  /**
   * GTorchEvent:flags:
   *
   * What the event is for.
   *
   * Since: 0.1
   */
  props[PROP_FLAGS] =
      g_param_spec_flags ("flags", NULL, NULL, GTORCH_TYPE_EVENT_FLAGS, GTORCH_EVENT_NONE,
                          G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, props);

  /**
   * GTorchEvent::completed:
   * @self: the event
   *
   * The work that the event was recorded behind is done.
   *
   * Emitted from the main context that was the thread's default one when the event was recorded.
   * Handlers must be connected before that.
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
 * @flags: what it is for
 *
 * Makes an event. It belongs to no device until it is recorded.
 *
 * Returns: (transfer full): a new event
 *
 * Since: 0.1
 */
GTorchEvent *
gtorch_event_new (GTorchEventFlags flags)
{
  return g_object_new (GTORCH_TYPE_EVENT, "flags", flags, NULL);
}

/**
 * gtorch_event_get_flags:
 * @self: an event
 *
 * Gets what the event was made for.
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

GTorchFence *
gtorch_event_dup_fence (GTorchEvent *self)
{
  GTorchFence *fence;

  g_mutex_lock (&self->lock);
  fence = self->fence != NULL ? gtorch_fence_ref (self->fence) : NULL;
  g_mutex_unlock (&self->lock);
  return fence;
}

static gboolean
emit_completed (gpointer data)
{
  g_signal_emit (data, signals[COMPLETED], 0);
  return G_SOURCE_REMOVE;
}

/**
 * gtorch_event_record:
 * @self: an event
 * @stream: (nullable): a stream, or %NULL for the current one of the current device
 * @error: return location for an error
 *
 * Puts the event behind what is in the stream's queue now.
 *
 * Returns: %TRUE on success
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
  fence = gtorch_stream_record_fence (stream, self->flags, error);
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
 * @stream: (nullable): a stream, or %NULL for the current one of the current device
 * @error: return location for an error
 *
 * The same as [method@Stream.wait_event]: the stream waits, not the thread.
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
 * Tells whether the event was recorded at least once.
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
  result = self->fence != NULL;
  g_mutex_unlock (&self->lock);
  return result;
}

/**
 * gtorch_event_query:
 * @self: an event
 *
 * Tells, without waiting, whether the work that the event was recorded behind is done. An event
 * recorded in a capture is not done before the capture has ended.
 *
 * Returns: %TRUE if so, or if the event was never recorded
 *
 * Since: 0.1
 */
gboolean
gtorch_event_query (GTorchEvent *self)
{
  gboolean result;

  g_return_val_if_fail (GTORCH_IS_EVENT (self), FALSE);
  g_mutex_lock (&self->lock);
  result = self->fence == NULL || gtorch_fence_is_done (self->fence);
  g_mutex_unlock (&self->lock);
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
 * @cancellable: (nullable): stops the waiting
 * @error: return location for an error
 *
 * Waits, asleep, until the work that the event was recorded behind is done.
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
 * @cancellable: (nullable): stops the waiting
 * @callback: (nullable) (scope async) (closure user_data): called when the work is done
 * @user_data: given to @callback
 *
 * Waits in the main loop until the work that the event was recorded behind is done.
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
  task = g_task_new (self, cancellable, callback, user_data);
  g_task_set_source_tag (task, gtorch_event_synchronize_async);
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
 * @result: what the callback got
 * @error: return location for an error
 *
 * Ends [method@Event.synchronize_async].
 *
 * Returns: as [method@Event.synchronize]
 *
 * Since: 0.1
 */
gboolean
gtorch_event_synchronize_finish (GTorchEvent *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), FALSE);
  return g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_event_get_elapsed_ms:
 * @self: the event that began
 * @end: the event that ended
 * @error: return location for an error
 *
 * Gets the time between the two points, as the device saw it.
 *
 * Returns: milliseconds; NaN with %GTORCH_ERROR_INVALID if an event has no %GTORCH_EVENT_TIMING,
 *   was not recorded or is not done
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
      else if (i == 1 && fence->backend != fences[0]->backend)
        reason = _ ("was recorded on another kind of device than the first");
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
 * @cancellable: (nullable): makes the source ready, too
 *
 * Makes a source that is ready when the work that the event was recorded behind is done. It neither
 * polls nor uses time while it waits. Its callback is a #GSourceFunc and is called once.
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
