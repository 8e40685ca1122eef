/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/gtorch.h>
#include <math.h>

#define WORK_MS 20

static gboolean
work (gpointer data, GError **error)
{
  g_usleep (WORK_MS * 1000);
  if (data != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX, "gather: index 7 is out of range");
  return data == NULL;
}

static GTorchStream *
busy_stream (void)
{
  return gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
}

static gboolean
pass_gate (gpointer data, GError **error)
{
  while (!g_atomic_int_get ((gint *) data))
    g_usleep (100);
  return TRUE;
}

static void
enqueue (GTorchStream *stream, gpointer fails)
{
  GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, work, fails, NULL);
}

static void
count (GObject *object, GParamSpec *pspec, gpointer data)
{
  (*(guint *) data)++;
}

static void
time_of_the_work_is_measured (void)
{
  g_autoptr (GTorchStream) stream = busy_stream ();
  g_autoptr (GTorchTimer) timer = gtorch_timer_new (stream);
  GError *error = NULL;
  gdouble first, second;
  guint n = 0;

  g_signal_connect (timer, "notify::elapsed-ms", G_CALLBACK (count), &n);
  g_assert_true (gtorch_timer_get_stream (timer) == stream);
  g_assert_true (isnan (gtorch_timer_get_elapsed_ms (timer)));
  enqueue (stream, NULL); /* work before the start */
  g_assert_true (gtorch_timer_start (timer, &error));
  enqueue (stream, NULL);
  first = gtorch_timer_stop (timer, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (first, >=, WORK_MS - 1);
  g_assert_cmpfloat (gtorch_timer_get_elapsed_ms (timer), ==, first);
  enqueue (stream, NULL);
  second = gtorch_timer_stop (timer, NULL, &error); /* measured from the same start */
  g_assert_no_error (error);
  g_assert_cmpfloat (second, >=, first + WORK_MS - 1);
  g_assert_cmpuint (n, ==, 2);
}

static void
stopping_before_the_start_is_an_error (void)
{
  g_autoptr (GTorchTimer) timer = gtorch_timer_new (NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (isnan (gtorch_timer_stop (timer, NULL, &error)));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "timer: it was not started");
}

static void
the_default_is_the_current_stream (void)
{
  g_autoptr (GTorchStream) stream = busy_stream ();
  g_autoptr (GTorchTimer) timer = gtorch_timer_new (NULL);
  GTorchStreamGuard *guard = gtorch_stream_guard_new (stream);

  g_assert_null (gtorch_timer_get_stream (timer));
  g_assert_true (gtorch_timer_start (timer, NULL));
  gtorch_stream_guard_unref (guard);
  enqueue (stream, NULL);
  g_assert_cmpfloat (gtorch_timer_stop (timer, NULL, NULL), >=, WORK_MS - 1);
}

static void
waiting_can_be_cancelled (void)
{
  g_autoptr (GTorchStream) stream = busy_stream ();
  g_autoptr (GTorchTimer) timer = gtorch_timer_new (stream);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_timer_start (timer, NULL));
  enqueue (stream, NULL);
  g_cancellable_cancel (cancellable);
  g_assert_true (isnan (gtorch_timer_stop (timer, cancellable, &error)));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_true (isnan (gtorch_timer_get_elapsed_ms (timer)));
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
}

static void
take_result (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
main_loop_waits (void)
{
  g_autoptr (GTorchStream) stream = busy_stream ();
  g_autoptr (GTorchTimer) timer = gtorch_timer_new (stream);
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;
  gint gate = FALSE;

  g_assert_true (gtorch_timer_start (timer, NULL));
  enqueue (stream, NULL);
  GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, pass_gate, &gate, NULL);
  gtorch_timer_stop_async (timer, NULL, take_result, &result); /* would wait for ever */
  g_assert_true (gtorch_timer_start (timer, NULL)); /* does not affect the pending call */
  g_atomic_int_set (&gate, TRUE);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpfloat (gtorch_timer_stop_finish (timer, result, &error), >=, WORK_MS - 1);
  g_assert_no_error (error);
}

static void
error_of_the_work_is_reported (void)
{
  g_autoptr (GTorchStream) stream = busy_stream ();
  g_autoptr (GTorchTimer) timer = gtorch_timer_new (stream);
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_timer_start (timer, NULL));
  enqueue (stream, &error);
  gtorch_timer_stop_async (timer, NULL, take_result, &result);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_true (isnan (gtorch_timer_stop_finish (timer, result, &error)));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  gtorch_stream_synchronize (stream, NULL, NULL);
}

#define TEST(name) g_test_add_func ("/GTorch/timer/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (time_of_the_work_is_measured);
  TEST (stopping_before_the_start_is_an_error);
  TEST (the_default_is_the_current_stream);
  TEST (waiting_can_be_cancelled);
  TEST (main_loop_waits);
  TEST (error_of_the_work_is_reported);
  return g_test_run ();
}
