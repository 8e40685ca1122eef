/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Foreign streams, work that other libraries enqueue, and waiting without using the CPU. */

#include "config.h"

#include <time.h>

#include <gtorch/tensor/gtorch-hold-private.h>

#include "cuda-test.h"

#define N_SEEDS 100
#define N       500

static CUstream
new_queue (guint index)
{
  CUstream handle = NULL;

  g_assert_true (gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (gpu (index)), NULL));
  g_assert_cmpint (gtorch_cuda.cuStreamCreateWithPriority (&handle, CU_STREAM_NON_BLOCKING, 0), ==,
                   CUDA_SUCCESS);
  return handle;
}

static GTorchStream *
wrap (GTorchDevice *device, gpointer handle)
{
  GError *error = NULL;
  GTorchStream *stream = gtorch_stream_new_external (device, handle, &error);

  g_assert_no_error (error);
  g_assert_true (gtorch_stream_get_handle (stream) == handle);
  return stream;
}

/* --- priorities --- */

static void
priorities_are_those_of_the_device (void)
{
  g_autoptr (GTorchStream) first = NULL;
  g_autoptr (GTorchStream) last = NULL;
  gint least = 1, greatest = 1;

  gtorch_device_get_stream_priority_range (gpu (0), &least, &greatest);
  g_assert_cmpint (least, ==, 0);
  g_assert_cmpint (greatest, ==, -5);
  gtorch_device_get_stream_priority_range (gpu (0), NULL, NULL);
  first = gtorch_stream_new (gpu (0), -100, NULL);
  last = gtorch_stream_new (gpu (0), 100, NULL);
  g_assert_cmpint (gtorch_stream_get_priority (first), ==, -5);
  g_assert_cmpint (gtorch_stream_get_priority (last), ==, 0);
  g_assert_true (gtorch_stream_get_handle (first) != gtorch_stream_get_handle (last));
  gtorch_device_get_stream_priority_range (gtorch_device_cpu (), &least, &greatest);
  g_assert_cmpint (least, ==, 19);
  g_assert_cmpint (greatest, ==, 0);
}

/* --- foreign streams --- */

static void
operations_run_on_a_foreign_stream (void)
{
  CUstream handle = new_queue (0);
  guint32 seed;

  for (seed = 0; seed < N_SEEDS; seed++)
    {
      g_autoptr (GTorchStream) stream = wrap (gpu (0), handle);
      g_autoptr (GTorchStream) same = wrap (gpu (0), handle);
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
      g_autoptr (GTorchStreamGuard) inner = NULL;
      g_autofree gdouble *values = NULL;

      fake_cuda_set_seed (seed);
      g_assert_true (gtorch_op_add_inplace (x, x, 1, NULL));
      inner = gtorch_stream_guard_new (same); /* one queue, one order */
      g_assert_true (gtorch_op_neg_inplace (x, NULL));
      values = read_doubles (x);
      g_assert_cmpfloat (values[N - 1], ==, -2.0 * (N - 1));
    }
  gtorch_device_synchronize (gpu (0), NULL, NULL);
}

static void
foreign_streams_of_other_devices_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  CUstream handle = new_queue (1);
  gint nothing;

  g_assert_null (gtorch_stream_new_external (gpu (0), handle, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
  g_clear_error (&error);
  g_assert_null (gtorch_stream_new_external (gpu (0), &nothing, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_clear_error (&error);
  g_assert_null (gtorch_stream_new_external (gtorch_device_cpu (), handle, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_null (
      gtorch_stream_get_handle (gtorch_device_get_default_stream (gtorch_device_cpu ())));
}

static void
the_drivers_default_stream_can_be_wrapped (void)
{
  guint32 seed;

  if (!g_test_subprocess ())
    {
      g_setenv ("GTORCH_DEFAULT_STREAM", "legacy", TRUE);
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
      g_unsetenv ("GTORCH_DEFAULT_STREAM");
      return;
    }
  for (seed = 0; seed < 20; seed++)
    {
      g_autoptr (GTorchImpl) a = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
      g_autoptr (GTorchImpl) b = ramp_1d (gpu (1), GTORCH_DTYPE_INT64, N);
      g_autofree gdouble *of_a = NULL;
      g_autofree gdouble *of_b = NULL;
      guint i;

      fake_cuda_set_seed (seed);
      for (i = 0; i < 3; i++) /* each on its own device */
        {
          g_assert_true (gtorch_op_add_inplace (a, a, 1, NULL));
          g_assert_true (gtorch_op_neg_inplace (b, NULL));
        }
      of_a = read_doubles (a);
      of_b = read_doubles (b);
      g_assert_cmpfloat (of_a[N - 1], ==, 8.0 * (N - 1));
      g_assert_cmpfloat (of_b[N - 1], ==, -1.0 * (N - 1));
      g_assert_true (
          gtorch_stream_synchronize (gtorch_device_get_default_stream (gpu (0)), NULL, NULL));
    }
  g_assert_null (gtorch_stream_get_handle (gtorch_device_get_default_stream (gpu (0))));
  assert_no_misuse ();
}

/* --- foreign work --- */

/* Another library copies from a tensor that is dropped at once. Returns whether the copy is right. */
static gboolean
foreign_copy (guint32 seed, GTorchStream *stream, gboolean records)
{
  g_autoptr (GTorchTensor) x = gtorch_tensor_wrap (ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N));
  g_autoptr (GTorchImpl) y = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autoptr (GTorchImpl) z = NULL;
  g_autofree gdouble *values = NULL;
  gpointer from = gtorch_impl_data (gtorch_tensor_get_impl (x));
  const gint64 shape[] = { N };

  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  fake_cuda_set_seed (seed);
  g_assert_cmpint (gtorch_cuda.cuMemcpyDtoDAsync ((CUdeviceptr) (guintptr) gtorch_impl_data (y),
                                                  (CUdeviceptr) (guintptr) from, N * 8,
                                                  gtorch_stream_get_handle (stream)),
                   ==, CUDA_SUCCESS);
  if (records)
    g_assert_true (gtorch_tensor_record_stream (x, stream, NULL));
  g_clear_object (&x);
  z = gtorch_op_full_int (shape, 1, -1, GTORCH_DTYPE_INT64, gpu (0), NULL);
  g_assert_true (records == (gtorch_impl_data (z) != from));
  g_assert_true (
      gtorch_stream_synchronize (gtorch_device_get_default_stream (gpu (0)), NULL, NULL));
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  values = read_doubles (y);
  return values[N - 1] == N - 1;
}

static void
memory_waits_for_work_that_was_recorded (void)
{
  g_autoptr (GTorchStream) stream = wrap (gpu (0), new_queue (0));
  guint32 seed;
  guint n_wrong = 0;

  for (seed = 1; seed <= N_SEEDS; seed++)
    {
      n_wrong += !foreign_copy (seed, stream, FALSE);
      g_assert_true (foreign_copy (seed, stream, TRUE));
    }
  g_test_message ("%u of %u orders are wrong without", n_wrong, N_SEEDS);
  g_assert_cmpuint (n_wrong, >, 0);
}

static void
streams_of_other_devices_are_not_recorded (void)
{
  g_autoptr (GTorchTensor) x = gtorch_tensor_wrap (ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N));
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (1), 0, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_tensor_record_stream (x, stream, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
}

static void
a_cpu_stream_keeps_the_memory (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (cpu, 0, NULL);
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchImpl) work = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autoptr (GTorchEvent) event = NULL;
  GTorchImpl *impl = ramp_1d (cpu, GTORCH_DTYPE_INT64, N);
  GTorchStorage *storage = impl->storage;
  GTorchTensor *x = gtorch_tensor_wrap (impl);

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_set_seed (1);
  fake_cuda_hold (TRUE);
  gtorch_stream_set_current (other);
  g_assert_true (gtorch_op_neg_inplace (work, NULL));
  gtorch_stream_set_current (gtorch_device_get_default_stream (gpu (0)));
  event = gtorch_stream_record_event (other, NULL);
  g_assert_true (gtorch_stream_wait_event (stream, event, NULL)); /* it blocks all later work */
  gtorch_storage_ref (storage);
  g_assert_true (gtorch_tensor_record_stream (x, stream, NULL));
  g_object_unref (x);
  g_assert_cmpint (g_atomic_int_get (&storage->ref_count), ==, 2);
  fake_cuda_hold (FALSE);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  g_assert_cmpint (g_atomic_int_get (&storage->ref_count), ==, 1);
  gtorch_storage_unref (storage);
}

/* --- waiting --- */

static gpointer
let_go_later (gpointer data)
{
  g_usleep (300000);
  fake_cuda_hold (FALSE);
  return NULL;
}

static void
on_done (GObject *object, GAsyncResult *result, gpointer data)
{
  g_assert_true (gtorch_event_synchronize_finish (GTORCH_EVENT (object), result, NULL));
  g_main_loop_quit (data);
}

static gint64
cpu_time_ms (void)
{
  struct timespec now;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return (gint64) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
wait_does_not_spin (void)
{
  guint way;

  for (way = 0; way < 5; way++)
    {
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
      g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_BLOCKING);
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      GTorchStream *stream = gtorch_device_get_default_stream (gpu (0));
      gint64 before, wall;
      GThread *thread;

      gtorch_device_synchronize (gpu (0), NULL, NULL);
      fake_cuda_set_seed (1);
      fake_cuda_hold (TRUE);
      g_assert_true (gtorch_op_neg_inplace (x, NULL));
      g_assert_true (gtorch_event_record (event, stream, NULL));
      before = cpu_time_ms ();
      wall = g_get_monotonic_time ();
      thread = g_thread_new ("lets-go", let_go_later, NULL);
      if (way == 0)
        g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
      else if (way == 1)
        g_assert_true (gtorch_event_synchronize (event, cancellable, NULL));
      else if (way == 2)
        g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
      else if (way == 3)
        g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
      else
        {
          g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);

          gtorch_event_synchronize_async (event, NULL, on_done, loop);
          g_main_loop_run (loop);
        }
      wall = (g_get_monotonic_time () - wall) / 1000;
      g_assert_cmpint (wall, >=, 300);
      g_assert_cmpint (cpu_time_ms () - before, <, wall / 3);
      g_thread_join (thread);
    }
}

typedef struct
{
  GMainContext *context;
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
  g_autoptr (GMainContext) context = g_main_context_new ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  GTorchEvent *event = gtorch_event_new (GTORCH_EVENT_NONE);
  Seen seen = { context, NULL, 0 };

  g_signal_connect (event, "completed", G_CALLBACK (on_completed), &seen);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_set_seed (1);
  fake_cuda_hold (TRUE);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  g_main_context_push_thread_default (context);
  g_assert_true (gtorch_event_record (event, gtorch_device_get_default_stream (gpu (0)), NULL));
  g_main_context_pop_thread_default (context);
  g_object_unref (event);
  while (g_main_context_iteration (context, FALSE))
    ;
  g_assert_cmpuint (seen.n, ==, 0);
  fake_cuda_hold (FALSE);
  while (seen.n == 0)
    g_main_context_iteration (context, TRUE);
  g_assert_true (seen.thread == g_thread_self ());
  g_assert_cmpuint (seen.n, ==, 1);
}

static void
handles_of_capturing_streams_are_refused (void)
{
  GTorchStream *first = gtorch_stream_new (gpu (0), 0, NULL);
  CUstream handle = gtorch_stream_get_handle (first);
  g_autoptr (GTorchStream) second = NULL;
  g_autoptr (GTorchStream) third = NULL;
  CUgraph graph;

  g_object_unref (first);
  g_assert_cmpint (gtorch_cuda.cuStreamBeginCapture (handle, CU_STREAM_CAPTURE_MODE_RELAXED), ==,
                   CUDA_SUCCESS);
  second = gtorch_stream_new (gpu (0), 0, NULL);
  g_assert_true (gtorch_stream_get_handle (second) != handle);
  g_assert_cmpint (gtorch_cuda.cuStreamEndCapture (handle, &graph), ==, CUDA_SUCCESS);
  gtorch_cuda.cuGraphDestroy (graph);
  third = gtorch_stream_new (gpu (0), 0, NULL);
  g_assert_true (gtorch_stream_get_handle (third) == handle);
}

/* --- auto-sync --- */

/* A tensor is written on one stream, read on another, and written again on the first one. */
static gboolean
is_right (guint32 seed, gboolean auto_sync, gboolean copies)
{
  g_autoptr (GTorchStream) first = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchStream) second = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autoptr (GTorchImpl) y = NULL;
  g_autofree gdouble *values = NULL;
  g_autofree gdouble *later = NULL;
  GError *error = NULL;

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_set_seed (seed);
  gtorch_stream_set_auto_sync (first, auto_sync);
  gtorch_stream_set_auto_sync (second, auto_sync);
  gtorch_stream_set_current (first);
  g_assert_true (gtorch_op_neg_inplace (x, &error));
  gtorch_stream_set_current (second);
  y = copies ? gtorch_op_to_device (x, gpu (1), FALSE, &error) : gtorch_op_add (x, x, 1, &error);
  g_assert_no_error (error);
  gtorch_stream_set_current (first);
  gtorch_op_neg_inplace (x, &error);
  g_assert_no_error (error);
  gtorch_stream_set_current (gtorch_device_get_default_stream (gpu (0)));
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  gtorch_device_synchronize (gpu (1), NULL, NULL);
  values = read_doubles (y);
  later = read_doubles (x);
  return values[N - 1] == (copies ? -1 : -2) * (N - 1.0) && later[N - 1] == N - 1.0;
}

static void
auto_sync_equals_explicit_waits (void)
{
  guint seed, n_wrong = 0, copies;

  gtorch_checks_set (gtorch_checks | (GTORCH_CHECK_STREAMS | GTORCH_CHECK_STREAMS_FATAL));
  for (seed = 1; seed <= N_SEEDS; seed++)
    for (copies = 0; copies < 2; copies++)
      g_assert_true (is_right (seed, TRUE, copies));
  gtorch_checks_set (0);
  for (seed = 1; seed <= N_SEEDS; seed++)
    for (copies = 0; copies < 2; copies++)
      n_wrong += !is_right (seed, FALSE, copies);
  g_test_message ("%u of %u orders are wrong without", n_wrong, 2 * N_SEEDS);
  g_assert_cmpuint (n_wrong, >, N_SEEDS / 4);
}

static void
auto_sync_waits_once_for_each_queue (void)
{
  g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
  GTorchStream *stream = gtorch_device_get_default_stream (gpu (0));
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autoptr (GTorchImpl) y = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_hold (TRUE);
  gtorch_stream_set_current (other);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  gtorch_stream_set_current (stream);
  gtorch_stream_set_auto_sync (stream, TRUE);
  fake_cuda_reset_calls ();
  g_assert_true (gtorch_op_neg_inplace (y, NULL));
  g_assert_true (gtorch_op_neg_inplace (y, NULL));
  g_assert_cmpuint (fake_cuda_get_calls ("cuStreamWaitEvent"), ==, 1);
  g_assert_cmpuint (fake_cuda_get_calls ("cuLaunchKernel"), ==, 2);
  fake_cuda_fail ("cuStreamWaitEvent", 1, CUDA_ERROR_INVALID_VALUE);
  gtorch_stream_set_current (other);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  gtorch_stream_set_current (stream);
  g_assert_false (gtorch_op_neg_inplace (y, NULL)); /* never, without having waited */
  g_assert_true (fake_cuda_clear_faults ());
  g_assert_true (gtorch_op_neg_inplace (y, NULL));
  gtorch_stream_set_auto_sync (stream, FALSE);
  fake_cuda_hold (FALSE);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
}

/* Work from before the capture is waited for; work from inside it belongs to the graph. */
static void
auto_sync_waits_for_queues_that_capture (void)
{
  GTorchStream *stream = gtorch_device_get_default_stream (gpu (0));
  guint32 seed;
  guint late;

  for (seed = 1; seed <= N_SEEDS; seed++)
    for (late = 0; late < 2; late++)
      {
        g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
        g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
        g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
        g_autoptr (GTorchImpl) y = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
        g_autofree gdouble *values = NULL;
        GTorchGraphCapture *capture;

        gtorch_device_synchronize (gpu (0), NULL, NULL);
        fake_cuda_set_seed (seed);
        gtorch_stream_set_current (other);
        g_assert_true (gtorch_op_neg_inplace (x, NULL));
        capture = gtorch_graph_capture_new (graph, other, NULL, GTORCH_CAPTURE_MODE_RELAXED, NULL);
        g_assert_nonnull (capture);
        g_assert_true (gtorch_op_neg_inplace (y, NULL)); /* the graph is never replayed */
        gtorch_stream_set_current (stream);
        gtorch_stream_set_auto_sync (stream, TRUE);
        g_assert_true (gtorch_op_add_inplace (y, late ? y : x, 1, NULL));
        gtorch_stream_set_current (other);
        g_assert_true (gtorch_graph_capture_end (capture, NULL));
        gtorch_graph_capture_unref (capture);
        gtorch_stream_set_current (stream);
        if (late)
          g_assert_true (gtorch_op_add_inplace (y, x, 1, NULL));
        gtorch_stream_set_auto_sync (stream, FALSE);
        values = read_doubles (y);
        g_assert_cmpfloat (values[N - 1], ==, late ? N - 1 : 0);
        gtorch_device_synchronize (gpu (0), NULL, NULL);
      }
}

/* The owner of the foreign stream knows that its work is done. */
static void
auto_sync_does_not_query_freed_streams (void)
{
  GTorchStream *stream = gtorch_device_get_default_stream (gpu (0));
  g_autoptr (GTorchImpl) y = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  GTorchImpl *x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  GTorchStream *theirs;
  CUstream handle;

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  handle = new_queue (0);
  theirs = wrap (gpu (0), handle);
  gtorch_stream_set_current (theirs);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  gtorch_stream_set_current (stream);
  g_assert_cmpint (gtorch_cuda.cuStreamSynchronize (handle), ==, CUDA_SUCCESS);
  gtorch_impl_unref (x);
  g_object_unref (theirs);
  g_assert_cmpint (gtorch_cuda.cuStreamDestroy (handle), ==, CUDA_SUCCESS);
  gtorch_stream_set_auto_sync (stream, TRUE);
  g_assert_true (gtorch_op_neg_inplace (y, NULL));
  gtorch_stream_set_auto_sync (stream, FALSE);
  assert_no_misuse ();
  gtorch_device_synchronize (gpu (0), NULL, NULL);
}

/* What can be done with a tensor that a foreign stream used, after the owner has destroyed it. */
static void
tensors_outlive_foreign_streams (void)
{
  guint kind;

  for (kind = 0; kind < 4; kind++)
    {
      GTorchStream *stream = gtorch_device_get_default_stream (gpu (0));
      GTorchImpl *x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
      g_autofree gdouble *values = NULL;
      GTorchStream *theirs;
      CUstream handle;

      gtorch_device_synchronize (gpu (0), NULL, NULL);
      handle = new_queue (0);
      theirs = wrap (gpu (0), handle);
      gtorch_stream_set_current (theirs);
      g_assert_true (gtorch_op_neg_inplace (x, NULL));
      gtorch_stream_set_current (stream);
      g_object_unref (theirs);
      g_assert_cmpint (gtorch_cuda.cuStreamDestroy (handle), ==, CUDA_SUCCESS);
      if (kind == 1)
        {
          values = read_doubles (x);
          g_assert_cmpfloat (values[N - 1], ==, 1 - N);
        }
      else if (kind == 2)
        {
          gtorch_stream_set_auto_sync (stream, TRUE);
          g_assert_true (gtorch_op_neg_inplace (x, NULL));
          gtorch_stream_set_auto_sync (stream, FALSE);
        }
      else if (kind == 3)
        gtorch_impl_release (x);
      gtorch_impl_unref (x);
      assert_no_misuse ();
      gtorch_device_synchronize (gpu (0), NULL, NULL);
      gtorch_device_empty_cache (gpu (0));
      assert_no_misuse ();
    }
}

#define TEST(name) g_test_add_func ("/GTorchCudaQueue/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (priorities_are_those_of_the_device);
  TEST (operations_run_on_a_foreign_stream);
  TEST (foreign_streams_of_other_devices_are_refused);
  TEST (the_drivers_default_stream_can_be_wrapped);
  TEST (memory_waits_for_work_that_was_recorded);
  TEST (streams_of_other_devices_are_not_recorded);
  TEST (a_cpu_stream_keeps_the_memory);
  TEST (wait_does_not_spin);
  TEST (completed_is_emitted_in_the_recorders_context);
  TEST (handles_of_capturing_streams_are_refused);
  TEST (auto_sync_equals_explicit_waits);
  TEST (auto_sync_waits_once_for_each_queue);
  TEST (auto_sync_waits_for_queues_that_capture);
  TEST (auto_sync_does_not_query_freed_streams);
  TEST (tensors_outlive_foreign_streams);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
