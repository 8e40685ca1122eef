/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Streams and events of a GPU under many orders of work. */

#include "config.h"

#include <math.h>
#include <unistd.h>

#include "cuda-test.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"

#define N_SEEDS 300

static GTorchStream *
new_stream (void)
{
  GError *error = NULL;
  GTorchStream *stream = gtorch_stream_new (gpu (0), 0, &error);

  g_assert_no_error (error);
  return stream;
}

/* Enqueues work on the stream that starts late. */
static void
work (GTorchStream *stream, GTorchImpl *x)
{
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  GError *error = NULL;

  gtorch_op_add_inplace (x, x, 1, &error);
  g_assert_no_error (error);
}

/* --- single operations --- */

static void
events_pass_when_the_work_before_them_has (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 8);
  g_autoptr (GTorchEvent) event = NULL;

  fake_cuda_set_seed (1);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  g_assert_true (gtorch_stream_is_idle (stream));
  fake_cuda_hold (TRUE);
  work (stream, x);
  event = gtorch_stream_record_event (stream, NULL);
  g_assert_false (gtorch_stream_is_idle (stream));
  g_assert_false (gtorch_event_query (event));
  g_assert_true (gtorch_stream_check (stream, NULL));
  fake_cuda_hold (FALSE);
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  g_assert_true (gtorch_event_query (event));
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  g_assert_true (gtorch_stream_is_idle (stream));
}

static void
polling_makes_progress (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 8);
  g_autoptr (GTorchEvent) event = NULL;
  guint seed;

  for (seed = 1; seed < 10; seed++)
    {
      fake_cuda_set_seed (seed);
      work (stream, x);
      g_clear_object (&event);
      event = gtorch_stream_record_event (stream, NULL);
      while (!gtorch_event_query (event))
        ;
      g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
      while (!gtorch_stream_is_idle (stream))
        ;
    }
}

static void
times_are_measured_between_events (void)
{
  g_autoptr (GTorchEvent) start = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GTorchEvent) end = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 8);
  gint64 began = g_get_monotonic_time ();
  gdouble elapsed;

  g_assert_true (gtorch_event_record (start, stream, NULL));
  g_assert_true (gtorch_event_synchronize (start, NULL, NULL));
  fake_cuda_hold (TRUE);
  work (stream, x);
  g_assert_true (gtorch_event_record (end, stream, NULL));
  g_assert_true (isnan (gtorch_event_get_elapsed_ms (start, end, NULL)));
  g_usleep (5000);
  fake_cuda_hold (FALSE);
  g_assert_true (gtorch_event_synchronize (end, NULL, NULL));
  elapsed = gtorch_event_get_elapsed_ms (start, end, NULL);
  g_assert_cmpfloat (elapsed, >=, 4.9);
  g_assert_cmpfloat (elapsed, <=, (g_get_monotonic_time () - began) / 1e3 + 0.1);
}

static void
times_are_those_of_one_device (void)
{
  g_autoptr (GTorchEvent) first = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GTorchEvent) second = gtorch_event_new (GTORCH_EVENT_TIMING);
  GTorchEvent *events[] = { first, second };

  for (guint i = 0; i < 2; i++)
    {
      g_assert_true (
          gtorch_event_record (events[i], gtorch_device_get_default_stream (gpu (i)), NULL));
      g_assert_true (gtorch_event_synchronize (events[i], NULL, NULL));
    }
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_true (isnan (gtorch_event_get_elapsed_ms (events[i], events[1 - i], &error)));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_cmpstr (error->message, ==,
                       "elapsed time: the second event was recorded on another device than the "
                       "first");
    }
}

static void
cancelling_ends_the_waiting_not_the_work (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 8);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_autofree gdouble *values = NULL;

  fake_cuda_set_seed (1);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_hold (TRUE);
  work (stream, x);
  g_cancellable_cancel (cancellable);
  g_assert_false (gtorch_stream_synchronize (stream, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  fake_cuda_hold (FALSE);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  values = read_doubles (x);
  g_assert_cmpfloat (values[3], ==, 6);
}

static void
streams_share_queues_when_there_are_many (void)
{
  GTorchStream *streams[100];
  FakeCudaAccounts accounts;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (streams); i++)
    streams[i] = new_stream ();
  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.streams, <=, 66);
  for (i = 0; i < G_N_ELEMENTS (streams); i++)
    {
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (streams[i]);
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 10 + i);
      g_autofree gdouble *values = read_doubles (x);

      g_assert_cmpfloat (values[9 + i], ==, 9 + i);
    }
  for (i = 0; i < G_N_ELEMENTS (streams); i++)
    g_object_unref (streams[i]);
}

/* --- in a main loop --- */

typedef struct
{
  GMainLoop *loop;
  guint pending;
  guint n_errors;
} Waiting;

static void
on_done (GObject *object, GAsyncResult *result, gpointer data)
{
  Waiting *waiting = data;
  g_autoptr (GError) error = NULL;
  gboolean done;

  if (GTORCH_IS_EVENT (object))
    done = gtorch_event_synchronize_finish (GTORCH_EVENT (object), result, &error);
  else if (GTORCH_IS_STREAM (object))
    done = gtorch_stream_synchronize_finish (GTORCH_STREAM (object), result, &error);
  else
    done = gtorch_device_synchronize_finish (GTORCH_DEVICE (object), result, &error);
  g_assert_true (done == (error == NULL));
  waiting->n_errors += !done;
  if (--waiting->pending == 0)
    g_main_loop_quit (waiting->loop);
}

static void
a_main_loop_is_woken (void)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  guint seed, i;

  for (seed = 0; seed < 60; seed++)
    {
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 100);
      Waiting waiting = { loop };

      gtorch_device_synchronize (gpu (0), NULL, NULL);
      fake_cuda_set_seed (seed);
      for (i = 0; i < 5; i++)
        {
          g_autoptr (GTorchStream) stream = new_stream ();
          g_autoptr (GTorchImpl) y = NULL;
          g_autoptr (GTorchEvent) event = NULL;

          work (stream, x); /* waiting in turns would be right, but nothing checks it */
          event = gtorch_stream_record_event (stream, NULL);
          gtorch_event_synchronize_async (event, NULL, on_done, &waiting);
          gtorch_stream_synchronize_async (stream, NULL, on_done, &waiting);
          waiting.pending += 2;
        }
      gtorch_device_synchronize_async (gpu (0), NULL, on_done, &waiting);
      waiting.pending++;
      g_main_loop_run (loop);
      g_assert_cmpuint (waiting.n_errors, ==, 0);
    }
}

static gboolean
release (gpointer data)
{
  fake_cuda_hold (FALSE);
  return G_SOURCE_REMOVE;
}

static void
a_main_loop_goes_on_meanwhile (void)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 100);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Waiting waiting = { loop, 2 };

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_set_seed (1);
  fake_cuda_hold (TRUE);
  work (stream, x);
  gtorch_stream_synchronize_async (stream, NULL, on_done, &waiting);
  gtorch_stream_synchronize_async (stream, cancellable, on_done, &waiting);
  g_cancellable_cancel (cancellable);
  g_timeout_add (5, release, NULL);
  g_main_loop_run (loop);
  g_assert_cmpuint (waiting.n_errors, ==, 1);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
}

/* A failed device does not call back; the waiting program must be notified nevertheless. */
static void
a_main_loop_is_notified_of_failures (void)
{
  if (g_test_subprocess ())
    {
      g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
      g_autoptr (GTorchStream) stream = new_stream ();
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 100);
      Waiting waiting = { loop, 1 };

      gtorch_device_synchronize (gpu (0), NULL, NULL);
      fake_cuda_set_seed (1);
      fake_cuda_hold (TRUE);
      fake_cuda_break (0, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
      work (stream, x);
      gtorch_stream_synchronize_async (stream, NULL, on_done, &waiting);
      g_timeout_add (5, release, NULL);
      g_main_loop_run (loop);
      g_assert_cmpuint (waiting.n_errors, ==, 1);
      _exit (0); /* resources of a broken device cannot be freed */
    }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_passed ();
}

/* --- several streams --- */

/* Computes y = x + x on a stream that does not wait for x: it is right by chance only. */
static gboolean
is_right (guint32 seed, gboolean waits)
{
  g_autoptr (GTorchStream) producer = new_stream ();
  g_autoptr (GTorchStream) consumer = new_stream ();
  g_autoptr (GTorchStreamGuard) guard = NULL;
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, 50);
  g_autoptr (GTorchImpl) y = NULL;
  g_autofree gdouble *values = NULL;
  guint i;

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_set_seed (seed);
  for (i = 0; i < 4; i++)
    work (producer, x);
  if (waits)
    g_assert_true (gtorch_stream_wait_stream (consumer, producer, NULL));
  guard = gtorch_stream_guard_new (consumer);
  y = gtorch_op_add (x, x, 1, NULL);
  values = read_doubles (y);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  return values[49] == 49 * 32;
}

static void
a_missing_wait_gives_wrong_values (void)
{
  guint seed, n_wrong = 0;

  g_assert_true (is_right (0, FALSE)); /* as on a fast GPU */
  for (seed = 1; seed <= N_SEEDS; seed++)
    {
      n_wrong += !is_right (seed, FALSE);
      g_assert_true (is_right (seed, TRUE));
    }
  g_test_message ("%u of %u orders show it", n_wrong, N_SEEDS);
  g_assert_cmpuint (n_wrong, >, N_SEEDS / 4);
}

/* The failure is like that of a kernel that found an index out of range. */
static void
printing_does_not_consume_errors (void)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 3);
  g_autoptr (GTorchTensor) tensor = gtorch_tensor_wrap (gtorch_impl_ref (x));
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GError) error = NULL;
  GTorchCudaLane *lane = gtorch_cuda_current_lane (gpu (0), &error);
  GtReport *report = gtorch_cuda_report (lane, &error);
  guint i, round;

  g_assert_no_error (error);
  for (round = 0; round < 2; round++)
    {
      g_autofree gchar *after = NULL;

      g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
      report->op = 0;
      report->value = 7;
      report->size = 3;
      __atomic_store_n (&report->state, 2, __ATOMIC_RELEASE);
      for (i = 0; i < 2; i++)
        {
          g_autofree gchar *text = gtorch_tensor_to_string (tensor);

          g_assert_cmpstr (text, ==,
                           "tensor(..., device='cuda:0', size=(3,), error=\"index 7 is out of "
                           "range for "
                           "size 3, found on cuda:0\")");
        }
      g_assert_false (round == 0 ? gtorch_device_synchronize (gpu (0), NULL, &error)
                                 : gtorch_stream_synchronize (stream, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
      g_clear_error (&error);
      after = gtorch_tensor_to_string (tensor);
      g_assert_cmpstr (after, ==, "tensor([0., 1., 2.], device='cuda:0')");
    }
}

static gpointer
sleep_on (gpointer event)
{
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  return NULL;
}

/* Each sleeping thread has its own event, and passes it on to the next. */
static void
sleeping_threads_do_not_share (void)
{
  GTorchStream *stream = gtorch_device_get_default_stream (gpu (0));
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 8);
  GTorchCudaDevice *device = GTORCH_CUDA_DEVICE (gpu (0));
  const guint n = device->sleepers != NULL ? MAX (device->sleepers->len, 2) : 2;
  GThread *threads[2];
  guint i, k;

  for (k = 0; k < 2; k++)
    {
      g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);

      fake_cuda_hold (TRUE);
      fake_cuda_reset_calls ();
      g_assert_true (gtorch_op_neg_inplace (x, NULL));
      g_assert_true (gtorch_event_record (event, stream, NULL));
      for (i = 0; i < 2; i++)
        threads[i] = g_thread_new ("sleep", sleep_on, event);
      while (fake_cuda_get_calls ("cuEventSynchronize") < 2)
        g_thread_yield ();
      g_assert_cmpuint (device->sleepers->len, ==, n - 2);
      fake_cuda_hold (FALSE);
      for (i = 0; i < 2; i++)
        g_thread_join (threads[i]);
      g_assert_cmpuint (device->sleepers->len, ==, n);
    }
}

/* The event may fail to be created, but the thread still waits. */
static void
a_failed_sleep_still_waits (void)
{
  static const gchar *const calls[] = { "cuStreamWaitEvent", "cuEventRecord",
                                        "cuStreamCreateWithPriority", "cuEventCreate" };
  GTorchStream *stream = gtorch_device_get_default_stream (gpu (0));
  GTorchCudaDevice *device = GTORCH_CUDA_DEVICE (gpu (0));
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 8);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (calls); i++)
    {
      g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);
      GThread *thread;

      if (i >= 2) /* it has to be created */
        g_array_set_size (device->sleepers, 0);
      fake_cuda_hold (TRUE);
      g_assert_true (gtorch_op_neg_inplace (x, NULL));
      g_assert_true (gtorch_event_record (event, stream, NULL));
      fake_cuda_reset_calls ();
      fake_cuda_fail (calls[i], 1, CUDA_ERROR_OUT_OF_MEMORY);
      thread = g_thread_new ("sleep", sleep_on, event);
      while (fake_cuda_get_calls ("cuEventSynchronize") == 0)
        g_thread_yield ();
      g_assert_true (fake_cuda_clear_faults ());
      g_assert_false (gtorch_event_query (event));
      fake_cuda_hold (FALSE);
      g_thread_join (thread);
      g_assert_true (gtorch_event_query (event));
    }
}

#define TEST(name) g_test_add_func ("/GTorchCudaStream/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (events_pass_when_the_work_before_them_has);
  TEST (polling_makes_progress);
  TEST (times_are_measured_between_events);
  TEST (times_are_those_of_one_device);
  TEST (cancelling_ends_the_waiting_not_the_work);
  TEST (a_main_loop_is_woken);
  TEST (a_main_loop_goes_on_meanwhile);
  TEST (a_main_loop_is_notified_of_failures);
  TEST (a_missing_wait_gives_wrong_values);
  TEST (printing_does_not_consume_errors);
  TEST (streams_share_queues_when_there_are_many);
  TEST (sleeping_threads_do_not_share);
  TEST (a_failed_sleep_still_waits);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
