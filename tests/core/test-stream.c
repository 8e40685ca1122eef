/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include <gtorch/base/gtorch-check-private.h>

#include "test-device.h"

static GTorchStream *
new_stream (void)
{
  g_autoptr (GError) error = NULL;
  GTorchStream *stream = gtorch_stream_new (NULL, 0, &error);

  g_assert_no_error (error);
  return stream;
}

static GTorchTensor *
ones (gint64 n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) zeros =
      gtorch_zeros (GTORCH_SHAPE (n), GTORCH_DTYPE_FLOAT64, NULL, &error);
  GTorchTensor *result = gtorch_tensor_add_scalar (zeros, 1, 1, &error);

  g_assert_no_error (error);
  /* other streams may use it */
  gtorch_stream_synchronize (gtorch_device_get_default_stream (test_device ()), NULL, &error);
  g_assert_no_error (error);
  return result;
}

static gdouble
value_at (GTorchTensor *tensor, gint64 i)
{
  return test_element (tensor, i);
}

/* Looks at the queue itself. */
static gboolean
is_done (GTorchStream *stream)
{
  GTorchStreamClass *klass = GTORCH_STREAM_GET_CLASS (stream);

  return klass->is_idle != NULL ? klass->is_idle (stream)
                                : gtorch_timeline_completed (stream->timeline)
                                      >= gtorch_timeline_submitted (stream->timeline);
}

/* Work that takes a while, fails or waits, enqueued manually. */
typedef struct
{
  gint go; /* accessed atomically */
  gboolean fail;
} Gate;

static void
pass_gate (gpointer data)
{
  Gate *gate = data;

  while (!g_atomic_int_get (&gate->go))
    g_usleep (100);
}

static gboolean
fail_at_gate (gpointer data, GError **error)
{
  pass_gate (data);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX, "gather: index 7 is out of range");
  return FALSE;
}

static void
close_gate (GTorchStream *stream, Gate *gate)
{
  if (gate->fail)
    GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, fail_at_gate, gate, NULL);
  else
    test_enqueue (stream, pass_gate, gate);
}

static const gchar no_failures[] = "work that fails alone is of the CPU";

static void
default_stream_works_at_once (void)
{
  GTorchStream *stream = gtorch_stream_get_current (NULL);
  g_autoptr (GTorchTensor) x = ones (4);

  g_assert_true (gtorch_stream_is_default (stream));
  g_assert_true (stream == gtorch_device_get_default_stream (test_device ()));
  g_assert_true (gtorch_stream_is_idle (stream));
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  g_assert_cmpfloat (value_at (x, 3), ==, 1);
}

static void
work_is_done_in_order_elsewhere (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones (64);
  Gate gate = { 0 };
  guint i;

  g_assert_false (gtorch_stream_is_default (stream));
  close_gate (stream, &gate);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    g_assert_true (gtorch_stream_get_current (NULL) == stream);
    for (i = 0; i < 10; i++)
      {
        gtorch_tensor_mul_scalar_inplace (x, 2, &error);
        g_assert_no_error (error);
        gtorch_tensor_add_scalar_inplace (x, 1, 1, &error);
        g_assert_no_error (error);
      }
    g_assert_false (gtorch_stream_is_idle (stream));
    /* nothing has been computed yet: the gate is closed */
    if (test_device () == gtorch_device_cpu ())
      g_assert_cmpfloat (((gdouble *) gtorch_impl_data (x->impl))[5], ==, 1);
    g_atomic_int_set (&gate.go, TRUE);
    g_assert_true (gtorch_stream_synchronize (stream, NULL, &error));
  }
  g_assert_true (gtorch_stream_is_idle (stream));
  g_assert_cmpfloat (value_at (x, 5), ==, 2047);
  g_assert_true (gtorch_stream_is_default (gtorch_stream_get_current (NULL)));
}

static void
host_reads_wait_for_the_writer (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones (100000);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchStreamGuard *guard = gtorch_stream_guard_new (stream);
  guint i;

  y = gtorch_tensor_add_scalar (x, 1, 1, NULL);
  for (i = 0; i < 20; i++)
    gtorch_tensor_add_scalar_inplace (y, 1, 1, NULL);
  gtorch_stream_guard_unref (guard);
  g_assert_cmpfloat (value_at (y, 99999), ==, 22);
}

static void
default_stream_waits_for_its_operands (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones (1000);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  GTorchStreamGuard *guard;
  guint i;

  if (test_is_elsewhere ("streams of a GPU are in no order by themselves"))
    return;
  guard = gtorch_stream_guard_new (stream);
  y = gtorch_tensor_add_scalar (x, 1, 1, NULL);
  for (i = 0; i < 200; i++)
    gtorch_tensor_add_scalar_inplace (y, 1, 1, NULL);
  gtorch_stream_guard_unref (guard);
  z = gtorch_tensor_mul_scalar (y, 2, NULL);
  g_assert_cmpfloat (value_at (z, 999), ==, 404);
}

static void
operands_may_be_dropped_at_once (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) result = NULL;
  Gate gate = { 0 };

  close_gate (stream, &gate);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
    g_autoptr (GTorchTensor) a = ones (1000);
    g_autoptr (GTorchTensor) b = gtorch_tensor_add_scalar (a, 41, 1, NULL);

    result = gtorch_tensor_mul (a, b, NULL);
  }
  g_atomic_int_set (&gate.go, TRUE);
  g_assert_cmpfloat (value_at (result, 999), ==, 42);
}

static void
operands_may_be_released_at_once (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) a = ones (1000);
  g_autoptr (GTorchTensor) result = NULL;
  g_autoptr (GError) error = NULL;
  Gate gate = { 0 };

  close_gate (stream, &gate);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    result = gtorch_tensor_add_scalar (a, 41, 1, NULL);
    gtorch_tensor_release (a);
  }
  g_atomic_int_set (&gate.go, TRUE);
  g_assert_cmpfloat (value_at (result, 999), ==, 42);
  g_assert_false (gtorch_impl_sync (a->impl, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
}

static void
stream_may_be_dropped_at_once (void)
{
  g_autoptr (GTorchTensor) x = ones (1000);
  GTorchStream *stream = new_stream ();
  GTorchStreamGuard *guard = gtorch_stream_guard_new (stream);
  guint i;

  for (i = 0; i < 50; i++)
    gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  gtorch_stream_guard_unref (guard);
  g_object_unref (stream);
  g_assert_cmpfloat (value_at (x, 0), ==, 51);
}

static void
errors_are_reported_once_at_synchronize (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones (4);
  Gate gate = { .go = TRUE, .fail = TRUE };

  if (test_is_elsewhere (no_failures))
    return;
  close_gate (stream, &gate);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    gtorch_tensor_add_scalar_inplace (x, 1, 1, &error); /* skipped */
    g_assert_no_error (error);
  }
  g_assert_false (gtorch_stream_synchronize (stream, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==, "gather: index 7 is out of range");
  g_clear_error (&error);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, &error));
  g_assert_true (gtorch_stream_check (stream, &error));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    gtorch_tensor_fill_inplace (x, 1, &error);
    gtorch_tensor_add_scalar_inplace (x, 1, 1, &error);
  }
  g_assert_cmpfloat (value_at (x, 0), ==, 2);
}

static void
assert_shows_failure (const gchar *text)
{
  g_assert_cmpstr (text, ==,
                   "tensor(..., size=(4,), dtype=float64, error=\"gather: index 7 is out of "
                   "range\")");
}

static void
printing_does_not_consume_errors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones (4);
  Gate gate = { .go = TRUE, .fail = TRUE };
  guint how, i;

  if (test_is_elsewhere (no_failures))
    return;
  for (how = 0; how < 3; how++)
    {
      g_autofree gchar *after = NULL;

      close_gate (stream, &gate);
      {
        g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

        gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL); /* skipped */
        for (i = 0; i < 2; i++)
          {
            g_autofree gchar *text = gtorch_tensor_to_string (x);

            assert_shows_failure (text);
          }
      }
      for (i = 0; i < 2; i++)
        {
          g_autofree gchar *text = gtorch_tensor_to_string (x); /* waits for the writer */

          assert_shows_failure (text);
        }
      if (how == 0)
        g_assert_false (gtorch_stream_synchronize (stream, NULL, &error));
      else if (how == 1)
        g_assert_false (gtorch_device_synchronize (test_device (), NULL, &error));
      else
        g_assert_false (gtorch_impl_sync (x->impl, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
      g_clear_error (&error);
      after = gtorch_tensor_to_string (x);
      assert_shows_failure (after);
      gtorch_tensor_fill_inplace (x, 1, &error);
      g_assert_true (gtorch_stream_synchronize (stream, NULL, &error));
    }
}

static void
reads_and_device_waits_report_errors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones (4);
  Gate gate = { .go = TRUE, .fail = TRUE };

  if (test_is_elsewhere (no_failures))
    return;
  close_gate (stream, &gate);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  }
  g_assert_false (gtorch_impl_sync (x->impl, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_clear_error (&error);

  close_gate (stream, &gate);
  g_assert_false (gtorch_device_synchronize (test_device (), NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
}

static void
streams_wait_for_each_other (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) first = new_stream ();
  g_autoptr (GTorchStream) second = new_stream ();
  g_autoptr (GTorchTensor) x = ones (1000);
  Gate gate = { 0 };

  close_gate (first, &gate);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (first);

    gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  }
  g_assert_true (gtorch_stream_wait_stream (second, first, &error));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (second);

    gtorch_tensor_mul_scalar_inplace (x, 10, NULL);
  }
  g_usleep (2000);
  g_assert_false (gtorch_stream_is_idle (second));
  g_atomic_int_set (&gate.go, TRUE);
  g_assert_true (gtorch_stream_synchronize (second, NULL, &error));
  g_assert_cmpfloat (value_at (x, 0), ==, 20);
}

static void
waiting_can_be_cancelled (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Gate gate = { 0 };

  close_gate (stream, &gate);
  g_cancellable_cancel (cancellable);
  g_assert_false (gtorch_stream_synchronize (stream, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_atomic_int_set (&gate.go, TRUE);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
}

static gpointer
cancel_soon (gpointer data)
{
  g_usleep (5000);
  g_cancellable_cancel (data);
  return NULL;
}

static void
waiting_is_cancelled_from_another_thread (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Gate gate = { 0 };
  GThread *thread;

  close_gate (stream, &gate);
  thread = g_thread_new ("cancel", cancel_soon, cancellable);
  g_assert_false (gtorch_stream_synchronize (stream, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_thread_join (thread);
  g_atomic_int_set (&gate.go, TRUE);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
}

static void
got_result (GObject *source, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static gboolean
open_gate (gpointer data)
{
  g_atomic_int_set (&((Gate *) data)->go, TRUE);
  return G_SOURCE_REMOVE;
}

static void
main_loop_waits_without_blocking (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GAsyncResult) device_result = NULL;
  Gate gate = { 0 };

  close_gate (stream, &gate);
  gtorch_stream_synchronize_async (stream, NULL, got_result, &result);
  gtorch_device_synchronize_async (test_device (), NULL, got_result, &device_result);
  g_timeout_add (5, open_gate, &gate); /* only a running main loop opens it */
  while (result == NULL || device_result == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_true (gtorch_stream_synchronize_finish (stream, result, &error));
  g_assert_true (gtorch_device_synchronize_finish (test_device (), device_result, &error));
}

/* The read neither sees nor waits for work that is enqueued later on the same stream. */
static void
main_loop_reads_in_stream_order (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones (1);
  g_autoptr (GTorchStreamGuard) guard = NULL;
  g_autoptr (GAsyncResult) real = NULL;
  g_autoptr (GAsyncResult) whole = NULL;
  g_autoptr (GAsyncResult) last = NULL;
  Gate before = { 0 }, behind = { 0 };

  /* There, a closed gate keeps the driver from reporting anything. */
  if (test_is_elsewhere ("one gate behind another is of the CPU"))
    return;
  guard = gtorch_stream_guard_new (stream);
  close_gate (stream, &before);
  gtorch_tensor_add_scalar_inplace (x, 1, 1, &error);
  gtorch_tensor_item_double_async (x, NULL, got_result, &real);
  gtorch_tensor_item_int_async (x, NULL, got_result, &whole);
  close_gate (stream, &behind);
  gtorch_tensor_add_scalar_inplace (x, 1, 1, &error);
  gtorch_tensor_item_int_async (x, NULL, got_result, &last);
  g_assert_no_error (error);
  g_timeout_add (5, open_gate, &before);
  while (real == NULL || whole == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpfloat (gtorch_tensor_item_double_finish (x, real, &error), ==, 2);
  g_assert_cmpint (gtorch_tensor_item_int_finish (x, whole, &error), ==, 2);
  g_assert_null (last);
  g_assert_false (gtorch_stream_is_idle (stream));
  g_atomic_int_set (&behind.go, TRUE);
  while (last == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpint (gtorch_tensor_item_int_finish (x, last, &error), ==, 3);
  g_assert_no_error (error);
  g_assert_true (gtorch_stream_get_current (NULL) == stream);
}

static void
main_loop_gets_errors_and_cancellation (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GAsyncResult) cancelled = NULL;
  g_autoptr (GAsyncResult) failed = NULL;
  Gate gate = { .fail = TRUE };

  if (test_is_elsewhere (no_failures))
    return;
  close_gate (stream, &gate);
  gtorch_stream_synchronize_async (stream, cancellable, got_result, &cancelled);
  gtorch_stream_synchronize_async (stream, NULL, got_result, &failed);
  g_cancellable_cancel (cancellable);
  while (cancelled == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_false (gtorch_stream_synchronize_finish (stream, cancelled, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_null (failed);
  g_atomic_int_set (&gate.go, TRUE);
  while (failed == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_false (gtorch_stream_synchronize_finish (stream, failed, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
}

static gboolean
check_current (GTorchStream *stream, gpointer data, GError **error)
{
  g_assert_true (gtorch_stream_get_current (NULL) == stream);
  if (data != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, "as asked");
  return data == NULL;
}

static gpointer
check_default (gpointer data)
{
  return GINT_TO_POINTER (gtorch_stream_is_default (gtorch_stream_get_current (NULL)));
}

static void
current_stream_nests_and_is_the_threads_own (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) first = new_stream ();
  g_autoptr (GTorchStream) second = new_stream ();

  gtorch_stream_set_current (first);
  g_assert_true (gtorch_stream_run (second, check_current, NULL, NULL));
  g_assert_true (gtorch_stream_get_current (NULL) == first);
  g_assert_false (gtorch_stream_run (second, check_current, first, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_true (gtorch_stream_get_current (NULL) == first);
  {
    g_autoptr (GTorchStreamGuard) outer = gtorch_stream_guard_new (second);
    g_autoptr (GTorchStreamGuard) inner = gtorch_stream_guard_new (first);

    g_assert_true (gtorch_stream_get_current (NULL) == first);
    gtorch_stream_guard_end (inner);
    g_assert_true (gtorch_stream_get_current (NULL) == second);
    gtorch_stream_guard_end (inner); /* the second call does nothing */
    g_assert_true (gtorch_stream_get_current (NULL) == second);
  }
  g_assert_true (gtorch_stream_get_current (NULL) == first);
  g_assert_true (GPOINTER_TO_INT (g_thread_join (g_thread_new ("other", check_default, NULL))));
  gtorch_stream_set_current (gtorch_device_get_default_stream (test_device ()));
  g_assert_true (gtorch_stream_is_default (gtorch_stream_get_current (NULL)));
}

static void
launch_blocking_waits_for_each_call (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchTensor) x = ones (1000);
  GTorchStreamGuard *guard;

  gtorch_set_launch_blocking (TRUE);
  guard = gtorch_stream_guard_new (stream);
  gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  g_assert_true (gtorch_stream_is_idle (stream));
  gtorch_stream_guard_unref (guard);
  gtorch_set_launch_blocking (FALSE);
}

static void
many_streams_are_created_and_freed (void)
{
  g_autoptr (GTorchTensor) x = ones (16);
  g_autoptr (GPtrArray) results = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; i < 200; i++)
    {
      g_autoptr (GTorchStream) stream = new_stream ();
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

      g_ptr_array_add (results, gtorch_tensor_add_scalar (x, i, 1, NULL));
    }
  for (i = 0; i < 200; i++)
    g_assert_cmpfloat (value_at (results->pdata[i], 7), ==, i + 1);
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
}

static void
bare_object_works_like_the_default_stream (void)
{
  g_autoptr (GTorchStream) stream = g_object_new (GTORCH_TYPE_STREAM, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchTensor) x = ones (4);

  g_assert_true (gtorch_stream_is_idle (stream));
  g_assert_true (gtorch_stream_get_device (stream) == gtorch_device_cpu ());
  g_assert_cmpfloat (value_at (x, 3), ==, 1);
}

static gpointer
open_later (gpointer data)
{
  g_usleep (20000);
  g_atomic_int_set (&((Gate *) data)->go, TRUE);
  return NULL;
}

static void
auto_sync_waits_for_other_streams (void)
{
  g_autoptr (GTorchStream) first = new_stream ();
  g_autoptr (GTorchStream) second = new_stream ();
  g_autoptr (GTorchTensor) x = ones (1000);
  guint way;

  g_assert_false (gtorch_stream_get_auto_sync (first));
  for (way = 0; way < 2; way++) /* on a worker thread, and in the calling thread */
    {
      GTorchStream *last =
          way == 0 ? second : gtorch_device_get_default_stream (gtorch_device_cpu ());
      Gate gate = { 0 };
      GThread *opener = NULL;

      g_object_set (last, "auto-sync", TRUE, NULL);
      close_gate (first, &gate);
      gtorch_stream_set_current (first);
      g_assert_true (gtorch_tensor_mul_scalar_inplace (x, 2, NULL));
      gtorch_stream_set_current (last);
      opener = g_thread_new ("opener", open_later, &gate);
      g_assert_true (gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL));
      gtorch_stream_set_current (gtorch_device_get_default_stream (gtorch_device_cpu ()));
      g_thread_join (opener);
      g_assert_true (gtorch_stream_synchronize (last, NULL, NULL));
      g_assert_cmpfloat (value_at (x, 999), ==, way == 0 ? 3 : 7);
      gtorch_stream_set_auto_sync (last, FALSE);
    }
}

/* What the checker says does not depend on whether a queue happens to be idle when it is joined. */
static void
auto_sync_orders_work_that_is_done (void)
{
  const guint checks = gtorch_checks;
  g_autoptr (GTorchStream) first = gtorch_stream_new (test_device (), 0, NULL);
  g_autoptr (GTorchStream) last = gtorch_stream_new (test_device (), 0, NULL);
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_checks_set (checks | GTORCH_CHECK_STREAMS | GTORCH_CHECK_STREAMS_FATAL);
  gtorch_stream_set_current (first);
  x = gtorch_full (GTORCH_SHAPE (4), 2, GTORCH_DTYPE_FLOAT32, test_device (), &error);
  g_assert_no_error (error);
  g_assert_nonnull (gtorch_tensor_neg_inplace (x, &error));
  while (!is_done (first)) /* which no observer is told of */
    g_thread_yield ();
  gtorch_stream_set_current (last);
  g_assert_null (gtorch_tensor_neg_inplace (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  gtorch_stream_set_auto_sync (last, TRUE);
  g_assert_nonnull (gtorch_tensor_neg_inplace (x, &error));
  g_assert_no_error (error);
  gtorch_stream_set_auto_sync (last, FALSE);
  gtorch_checks_set (checks);
  gtorch_stream_set_current (gtorch_device_get_default_stream (test_device ()));
  g_assert_true (gtorch_stream_synchronize (last, NULL, &error));
  g_assert_cmpfloat (value_at (x, 3), ==, 2);
}

static void
take_result (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static GAsyncResult *
wait_for_result (GAsyncResult **result)
{
  while (*result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return *result;
}

/* Copies in the background take the elements that a device has when they are called. */
static void
main_loop_copies_between_devices (void)
{
  GTorchDevice *const cpu = gtorch_device_cpu ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (test_device (), 0, NULL);
  g_autoptr (GTorchTensor) source = gtorch_full (NULL, 0, 3, GTORCH_DTYPE_FLOAT32, cpu, NULL);
  guint way;

  for (way = 0; way < 2; way++) /* on the default stream, and on another one */
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GAsyncResult) there_result = NULL;
      g_autoptr (GAsyncResult) item_result = NULL;
      g_autoptr (GAsyncResult) back_result = NULL;
      g_autoptr (GAsyncResult) into_result = NULL;
      g_autoptr (GTorchTensor) into = gtorch_zeros (NULL, 0, GTORCH_DTYPE_FLOAT32, cpu, NULL);
      g_autoptr (GTorchTensor) there = NULL;
      g_autoptr (GTorchTensor) back = NULL;

      gtorch_stream_set_current (way == 0 ? gtorch_device_get_default_stream (test_device ())
                                          : stream);
      gtorch_tensor_to_device_async (source, test_device (), NULL, take_result, &there_result);
      there = gtorch_tensor_to_device_finish (source, wait_for_result (&there_result), &error);
      g_assert_no_error (error);
      g_assert_true (gtorch_tensor_get_device (there) == test_device ());
      if (test_device () == cpu) /* the tensor itself */
        {
          g_assert_true (there == source);
          continue;
        }
      g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (there, 2, &error));
      gtorch_tensor_item_double_async (there, NULL, take_result, &item_result);
      gtorch_tensor_to_device_async (there, cpu, NULL, take_result, &back_result);
      g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (there, 2, &error));
      gtorch_tensor_copy_inplace_async (into, there, NULL, take_result, &into_result);
      g_assert_cmpfloat (gtorch_tensor_item_double_finish (there, wait_for_result (&item_result),
                                                           &error),
                         ==, 6);
      g_assert_no_error (error);
      back = gtorch_tensor_to_device_finish (there, wait_for_result (&back_result), &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (gtorch_tensor_item_double (back, NULL), ==, 6);
      g_assert_true (
          gtorch_tensor_copy_inplace_finish (into, wait_for_result (&into_result), &error));
      g_assert_cmpfloat (gtorch_tensor_item_double (into, NULL), ==, 12);
    }
  gtorch_stream_set_current (gtorch_device_get_default_stream (test_device ()));
}

#define TEST(name) g_test_add_func ("/GTorch/stream/" #name, name)
/* A test that blocks a queue while it enqueues work behind it: it would hang where each launch waits for the
 * work before it. */
#define TEST_HOLDING(name)    \
  if (!is_under_sanitizer ()) \
  TEST (name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (default_stream_works_at_once);
  TEST_HOLDING (work_is_done_in_order_elsewhere);
  TEST (host_reads_wait_for_the_writer);
  TEST (default_stream_waits_for_its_operands);
  TEST_HOLDING (operands_may_be_dropped_at_once);
  TEST_HOLDING (operands_may_be_released_at_once);
  TEST (stream_may_be_dropped_at_once);
  TEST_HOLDING (errors_are_reported_once_at_synchronize);
  TEST_HOLDING (printing_does_not_consume_errors);
  TEST_HOLDING (reads_and_device_waits_report_errors);
  TEST_HOLDING (streams_wait_for_each_other);
  TEST_HOLDING (waiting_can_be_cancelled);
  TEST_HOLDING (waiting_is_cancelled_from_another_thread);
  TEST_HOLDING (main_loop_waits_without_blocking);
  TEST_HOLDING (main_loop_reads_in_stream_order);
  TEST_HOLDING (main_loop_gets_errors_and_cancellation);
  TEST (current_stream_nests_and_is_the_threads_own);
  TEST (launch_blocking_waits_for_each_call);
  TEST (many_streams_are_created_and_freed);
  TEST (bare_object_works_like_the_default_stream);
  TEST_HOLDING (auto_sync_waits_for_other_streams);
  TEST (auto_sync_orders_work_that_is_done);
  TEST (main_loop_copies_between_devices);
  return g_test_run ();
}
