/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "stream/gtorch-timer.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "base/gtorch-error.h"
#include "stream/gtorch-event.h"
#include "stream/gtorch-stream.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-task-private.h"

/**
 * GTorchTimer:
 *
 * Measures how long the work of a stream takes.
 *
 * A clock of the host tells when operations were enqueued, not when they were done. A timer records an
 * event before and one after them, and returns the time between them as measured by the device.
 *
 * ```c
 * g_autoptr (GTorchTimer) timer = gtorch_timer_new (NULL);
 * g_autoptr (GTorchTensor) y = NULL;
 *
 * gtorch_timer_start (timer, &error);
 * y = gtorch_tensor_matmul (a, b, &error);
 * g_print ("%.3f ms\n", gtorch_timer_stop (timer, NULL, &error));
 * ```
 *
 * In a program with a main loop [method@Timer.stop_async] waits without blocking it. A timer must be used
 * in one thread only.
 *
 * Since: 0.1
 */

struct _GTorchTimer
{
  GObject parent_instance;
  GTorchStream *stream; /* NULL: the stream that is current when the timer starts */
  GTorchStream *used;
  GTorchEvent *start;
  gdouble elapsed_ms;
};

G_DEFINE_TYPE (GTorchTimer, gtorch_timer, G_TYPE_OBJECT)

static void
gtorch_timer_finalize (GObject *object)
{
  GTorchTimer *self = GTORCH_TIMER (object);

  g_clear_object (&self->stream);
  g_clear_object (&self->used);
  g_clear_object (&self->start);
  G_OBJECT_CLASS (gtorch_timer_parent_class)->finalize (object);
}

typedef GTorchTimer Self;

static const GTorchField fields[] = {
  /**
   * GTorchTimer:stream:
   *
   * The stream whose work is measured; %NULL for the one that is current when the timer starts.
   *
   * Since: 0.1
   */
  { "stream", GTORCH_FIELD_OBJECT, GTORCH_FIELD (Self, stream), .type = gtorch_stream_get_type,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTimer:elapsed-ms:
   *
   * The last measured time in milliseconds; NaN before the first measurement.
   *
   * Since: 0.1
   */
  { "elapsed-ms", GTORCH_PROPERTY_DOUBLE (gtorch_timer_get_elapsed_ms, NULL), .low = -G_MAXDOUBLE,
    .high = G_MAXDOUBLE },
};

static void
gtorch_timer_class_init (GTorchTimerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_timer_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_timer_init (GTorchTimer *self)
{
  self->elapsed_ms = (gdouble) NAN;
}

/**
 * gtorch_timer_new:
 * @stream: (nullable): the stream whose work is measured, or %NULL for the one that is current when
 *   the timer starts
 *
 * Creates a timer.
 *
 * Returns: (transfer full): a new timer
 *
 * Since: 0.1
 */
GTorchTimer *
gtorch_timer_new (GTorchStream *stream)
{
  g_return_val_if_fail (stream == NULL || GTORCH_IS_STREAM (stream), NULL);
  return g_object_new (GTORCH_TYPE_TIMER, "stream", stream, NULL);
}

/**
 * gtorch_timer_get_stream:
 * @self: a timer
 *
 * Gets the stream that the timer was created for.
 *
 * Returns: (transfer none) (nullable): the stream, or %NULL
 *
 * Since: 0.1
 */
GTorchStream *
gtorch_timer_get_stream (GTorchTimer *self)
{
  g_return_val_if_fail (GTORCH_IS_TIMER (self), NULL);
  return self->stream;
}

/**
 * gtorch_timer_start:
 * @self: a timer
 * @error: return location for an error
 *
 * Starts after the work that is in the stream's queue now. A timer that is running is restarted.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_timer_start (GTorchTimer *self, GError **error)
{
  g_autoptr (GTorchEvent) start = NULL;
  GTorchStream *stream;

  g_return_val_if_fail (GTORCH_IS_TIMER (self), FALSE);
  stream = self->stream != NULL ? self->stream : gtorch_stream_get_current (NULL);
  start = gtorch_event_new (GTORCH_EVENT_TIMING);
  if (!gtorch_event_record (start, stream, error))
    return FALSE;
  g_set_object (&self->used, stream);
  g_set_object (&self->start, start);
  return TRUE;
}

static GTorchEvent *
record_end (GTorchTimer *self, GError **error)
{
  g_autoptr (GTorchEvent) end = NULL;

  if (self->start == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("timer: it was not started"));
      return NULL;
    }
  end = gtorch_event_new (GTORCH_EVENT_TIMING | GTORCH_EVENT_BLOCKING);
  return gtorch_event_record (end, self->used, error) ? g_steal_pointer (&end) : NULL;
}

static gboolean
take_time (GTorchTimer *self, GTorchEvent *start, GTorchEvent *end, GError **error)
{
  gdouble elapsed = gtorch_event_get_elapsed_ms (start, end, error);

  if (isnan (elapsed))
    return FALSE;
  self->elapsed_ms = elapsed;
  g_object_notify (G_OBJECT (self), "elapsed-ms");
  return TRUE;
}

/**
 * gtorch_timer_stop:
 * @self: a timer that was started
 * @cancellable: (nullable): cancels the wait, not the work
 * @error: return location for an error
 *
 * Stops after the work that is in the stream's queue now, and waits for that. The timer can be stopped
 * again, to measure from the same start.
 *
 * Returns: milliseconds since the start; NaN with %GTORCH_ERROR_INVALID if it was not started, with
 *   the error of the work, %G_IO_ERROR_CANCELLED, or %GTORCH_ERROR_CAPTURE
 *
 * Since: 0.1
 */
gdouble
gtorch_timer_stop (GTorchTimer *self, GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchEvent) end = NULL;

  g_return_val_if_fail (GTORCH_IS_TIMER (self), (gdouble) NAN);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), (gdouble) NAN);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return (gdouble) NAN;
  end = record_end (self, error);
  if (end == NULL || !gtorch_event_synchronize (end, cancellable, error)
      || !take_time (self, self->start, end, error))
    return (gdouble) NAN;
  return self->elapsed_ms;
}

static void
end_passed (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  GError *error = NULL;

  if (!gtorch_event_synchronize_finish (GTORCH_EVENT (object), result, &error)
      || !take_time (g_task_get_source_object (task), g_task_get_task_data (task),
                     GTORCH_EVENT (object), &error))
    g_task_return_error (task, error);
  else
    g_task_return_boolean (task, TRUE);
}

/**
 * gtorch_timer_stop_async:
 * @self: a timer that was started
 * @cancellable: (nullable): cancels the wait, not the work
 * @callback: (nullable) (scope async) (closure user_data): called when the time is known
 * @user_data: passed to @callback
 *
 * Stops after the work that is in the stream's queue now, and waits for that asynchronously.
 *
 * Since: 0.1
 */
void
gtorch_timer_stop_async (GTorchTimer *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data)
{
  g_autoptr (GTorchEvent) end = NULL;
  GError *error = NULL;
  GTask *task;

  g_return_if_fail (GTORCH_IS_TIMER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_timer_stop_async, cancellable, callback, user_data);
  end = !g_task_return_error_if_cancelled (task) ? record_end (self, &error) : NULL;
  if (end == NULL)
    {
      if (error != NULL)
        g_task_return_error (task, error);
      g_object_unref (task);
      return;
    }
  g_task_set_task_data (task, g_object_ref (self->start), g_object_unref);
  gtorch_event_synchronize_async (end, cancellable, end_passed, task);
}

/**
 * gtorch_timer_stop_finish:
 * @self: a timer
 * @result: the result that the callback was given
 * @error: return location for an error
 *
 * Finishes [method@Timer.stop_async].
 *
 * Returns: like [method@Timer.stop]
 *
 * Since: 0.1
 */
gdouble
gtorch_timer_stop_finish (GTorchTimer *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TIMER (self), (gdouble) NAN);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), (gdouble) NAN);
  if (!gtorch_task_take (result, self, gtorch_timer_stop_async, error))
    return (gdouble) NAN;
  return g_task_propagate_boolean (G_TASK (result), error) ? self->elapsed_ms : (gdouble) NAN;
}

/**
 * gtorch_timer_get_elapsed_ms:
 * @self: a timer
 *
 * Gets the last measured time.
 *
 * Returns: milliseconds; NaN before the first measurement
 *
 * Since: 0.1
 */
gdouble
gtorch_timer_get_elapsed_ms (GTorchTimer *self)
{
  g_return_val_if_fail (GTORCH_IS_TIMER (self), (gdouble) NAN);
  return self->elapsed_ms;
}
