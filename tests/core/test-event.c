/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include "test-device.h"

static void
pass_gate (gpointer data)
{
  while (!g_atomic_int_get ((gint *) data))
    g_usleep (100);
}

static gboolean
fail (gpointer data, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX, "gather: index 7 is out of range");
  return FALSE;
}

static GTorchStream *
gated_stream (gint *gate)
{
  GTorchStream *stream = gtorch_stream_new (NULL, 0, NULL);

  test_enqueue (stream, pass_gate, gate);
  return stream;
}

static gboolean
open_gate (gpointer data)
{
  g_atomic_int_set ((gint *) data, TRUE);
  return G_SOURCE_REMOVE;
}

static void
unrecorded_events_are_complete (void)
{
  g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);

  g_assert_false (gtorch_event_is_recorded (event));
  g_assert_true (gtorch_event_query (event));
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  g_assert_true (gtorch_event_wait (event, NULL, NULL));
}

static void
event_completes_with_the_work_before_it (void)
{
  gint gate = FALSE;
  g_autoptr (GTorchStream) stream = gated_stream (&gate);
  g_autoptr (GTorchEvent) event = gtorch_stream_record_event (stream, NULL);
  g_autoptr (GTorchEvent) early = gtorch_event_new (GTORCH_EVENT_BLOCKING);

  g_assert_true (gtorch_event_record (early, NULL, NULL)); /* the default stream is idle */
  g_assert_true (gtorch_event_synchronize (early, NULL, NULL));
  g_assert_true (gtorch_event_query (early));
  g_assert_true (gtorch_event_is_recorded (event));
  g_assert_false (gtorch_event_query (event));
  open_gate (&gate);
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  g_assert_true (gtorch_event_query (event));
}

/* A thread that has waited for one of the events finds the earlier ones done. */
static void
a_wait_completes_earlier_events (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  guint i;

  for (i = 0; i < 30000; i++)
    {
      g_autoptr (GTorchEvent) event = gtorch_stream_record_event (stream, NULL);

      if (i % 3 == 0)
        g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
      else if (i % 3 == 1)
        g_assert_true (gtorch_device_synchronize (gtorch_stream_get_device (stream), NULL, NULL));
      else
        g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
      g_assert_true (gtorch_event_query (event));
      g_assert_true (gtorch_stream_is_idle (stream));
    }
}

static void
other_streams_wait (void)
{
  gint gate = FALSE;
  g_autoptr (GTorchStream) first = gated_stream (&gate);
  g_autoptr (GTorchStream) second = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchEvent) event = gtorch_stream_record_event (first, NULL);
  g_autoptr (GTorchEvent) after = NULL;

  g_assert_true (gtorch_stream_wait_event (second, event, NULL));
  after = gtorch_stream_record_event (second, NULL);
  g_usleep (2000);
  g_assert_false (gtorch_event_query (after));
  open_gate (&gate);
  g_assert_true (gtorch_event_synchronize (after, NULL, NULL));
  g_assert_true (gtorch_event_query (event));
}

static void
elapsed_time_is_measured (void)
{
  gint gate = FALSE;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchEvent) start = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GTorchEvent) end = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GError) error = NULL;
  gint64 began = g_get_monotonic_time ();
  gdouble elapsed;

  g_assert_true (gtorch_event_record (start, stream, NULL));
  g_assert_true (gtorch_event_synchronize (start, NULL, NULL));
  test_enqueue (stream, pass_gate, &gate);
  g_assert_true (gtorch_event_record (end, stream, NULL));
  g_assert_true (isnan (gtorch_event_get_elapsed_ms (start, end, &error)));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_usleep (10000);
  open_gate (&gate);
  g_assert_true (gtorch_event_synchronize (end, NULL, NULL));
  elapsed = gtorch_event_get_elapsed_ms (start, end, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (elapsed, >, 9);
  g_assert_cmpfloat (elapsed, <=, (g_get_monotonic_time () - began) / 1e3 + 0.1);
}

static void
invalid_elapsed_times_are_errors (void)
{
  g_autoptr (GTorchEvent) timed = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GTorchEvent) untimed = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GError) error = NULL;

  g_assert_true (isnan (gtorch_event_get_elapsed_ms (timed, timed, &error)));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "not recorded"));
  g_clear_error (&error);
  gtorch_event_record (timed, NULL, NULL);
  gtorch_event_record (untimed, NULL, NULL);
  g_assert_true (gtorch_event_synchronize (timed, NULL, NULL));
  g_assert_true (gtorch_event_synchronize (untimed, NULL, NULL));
  g_assert_true (isnan (gtorch_event_get_elapsed_ms (timed, untimed, &error)));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "second"));
}

static void
error_of_the_work_is_reported (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchEvent) event = NULL;
  g_autoptr (GError) error = NULL;

  if (test_is_elsewhere ("work that fails alone is of the CPU"))
    return;
  GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, fail, NULL, NULL);
  event = gtorch_stream_record_event (stream, NULL);
  g_assert_false (gtorch_event_synchronize (event, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
}

static gboolean
count (gpointer data)
{
  (*(guint *) data)++;
  return G_SOURCE_CONTINUE;
}

static void
source_becomes_ready_once (void)
{
  gint gate = FALSE;
  guint n = 0;
  g_autoptr (GTorchStream) stream = gated_stream (&gate);
  g_autoptr (GTorchEvent) event = gtorch_stream_record_event (stream, NULL);
  GSource *source = gtorch_event_create_source (event, NULL);

  g_source_set_callback (source, count, &n, NULL);
  g_source_attach (source, NULL);
  while (g_main_context_iteration (NULL, FALSE))
    continue;
  g_assert_cmpuint (n, ==, 0);
  g_assert_cmpint (g_source_get_ready_time (source), ==, -1); /* it does not poll */
  g_timeout_add (5, open_gate, &gate);
  while (n == 0)
    g_main_context_iteration (NULL, TRUE);
  while (g_main_context_iteration (NULL, FALSE))
    continue;
  g_assert_cmpuint (n, ==, 1);
  g_source_destroy (source);
  g_source_unref (source);
}

static void
source_may_be_destroyed_early (void)
{
  gint gate = FALSE;
  guint n = 0;
  g_autoptr (GTorchStream) stream = gated_stream (&gate);
  g_autoptr (GTorchEvent) event = gtorch_stream_record_event (stream, NULL);
  GSource *source = gtorch_event_create_source (event, NULL);

  g_source_set_callback (source, count, &n, NULL);
  g_source_attach (source, NULL);
  g_source_destroy (source);
  g_source_unref (source);
  open_gate (&gate);
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  while (g_main_context_iteration (NULL, FALSE))
    continue;
  g_assert_cmpuint (n, ==, 0);
}

static void
source_takes_a_closure (void)
{
  guint n = 0;
  g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);
  GSource *source = gtorch_event_create_source (event, NULL);

  g_source_set_closure (source, g_cclosure_new (G_CALLBACK (count), &n, NULL));
  g_source_attach (source, NULL);
  while (n == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (n, ==, 1);
  g_source_destroy (source);
  g_source_unref (source);
}

static void
source_can_be_cancelled (void)
{
  gint gate = FALSE;
  guint n = 0;
  g_autoptr (GTorchStream) stream = gated_stream (&gate);
  g_autoptr (GTorchEvent) event = gtorch_stream_record_event (stream, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GSource *source = gtorch_event_create_source (event, cancellable);

  g_source_set_callback (source, count, &n, NULL);
  g_source_attach (source, NULL);
  g_cancellable_cancel (cancellable);
  while (n == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_false (gtorch_event_query (event));
  g_source_destroy (source);
  g_source_unref (source);
  open_gate (&gate);
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
}

typedef struct
{
  GThread *thread;
  guint n;
} Seen;

static void
on_completed (GTorchEvent *event, gpointer data)
{
  Seen *seen = data;

  seen->thread = g_thread_self ();
  seen->n++;
}

static void
completed_is_emitted_in_the_recorders_context (void)
{
  gint gate = FALSE;
  Seen seen = { NULL, 0 };
  g_autoptr (GMainContext) context = g_main_context_new ();
  g_autoptr (GTorchStream) stream = gated_stream (&gate);
  GTorchEvent *event = gtorch_event_new (GTORCH_EVENT_NONE);

  g_signal_connect (event, "completed", G_CALLBACK (on_completed), &seen);
  g_main_context_push_thread_default (context);
  g_assert_true (gtorch_event_record (event, stream, NULL));
  g_main_context_pop_thread_default (context);
  g_object_unref (event); /* the recorded work keeps the event alive */
  open_gate (&gate);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  while (g_main_context_iteration (NULL, FALSE))
    continue;
  g_assert_cmpuint (seen.n, ==, 0);
  while (seen.n == 0)
    g_main_context_iteration (context, TRUE);
  g_assert_true (seen.thread == g_thread_self ());
  g_assert_cmpuint (seen.n, ==, 1);
}

static void
got_result (GObject *source, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
main_loop_waits (void)
{
  gint gate = FALSE;
  g_autoptr (GTorchStream) stream = gated_stream (&gate);
  g_autoptr (GTorchEvent) event = gtorch_stream_record_event (stream, NULL);
  g_autoptr (GTorchEvent) fresh = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GAsyncResult) at_once = NULL;

  gtorch_event_synchronize_async (event, NULL, got_result, &result);
  gtorch_event_synchronize_async (fresh, NULL, got_result, &at_once);
  g_timeout_add (5, open_gate, &gate);
  while (result == NULL || at_once == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_true (gtorch_event_synchronize_finish (event, result, NULL));
  g_assert_true (gtorch_event_synchronize_finish (fresh, at_once, NULL));
}

static void
take_a_moment (gpointer data)
{
  g_usleep (GPOINTER_TO_UINT (data));
}

/* The thread that woke the context may still be inside that call. */
static void
context_may_be_freed_after_the_wake_up (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  guint i;

  for (i = 0; i < 300; i++)
    {
      g_autoptr (GMainContext) context = g_main_context_new ();
      g_autoptr (GTorchEvent) event = NULL;
      g_autoptr (GAsyncResult) result = NULL;

      test_enqueue (stream, take_a_moment, GUINT_TO_POINTER (i % 50));
      event = gtorch_stream_record_event (stream, NULL);
      g_main_context_push_thread_default (context);
      gtorch_event_synchronize_async (event, NULL, got_result, &result);
      while (result == NULL)
        g_main_context_iteration (context, TRUE);
      g_main_context_pop_thread_default (context);
      g_assert_true (gtorch_event_synchronize_finish (event, result, NULL));
    }
}

#define TEST(name) g_test_add_func ("/GTorch/event/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (unrecorded_events_are_complete);
  TEST (event_completes_with_the_work_before_it);
  TEST (a_wait_completes_earlier_events);
  TEST (other_streams_wait);
  TEST (elapsed_time_is_measured);
  TEST (invalid_elapsed_times_are_errors);
  TEST (error_of_the_work_is_reported);
  TEST (source_becomes_ready_once);
  TEST (source_may_be_destroyed_early);
  TEST (source_takes_a_closure);
  TEST (source_can_be_cancelled);
  TEST (completed_is_emitted_in_the_recorders_context);
  TEST (main_loop_waits);
  TEST (context_may_be_freed_after_the_wake_up);
  return g_test_run ();
}
