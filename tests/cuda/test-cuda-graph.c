/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Graphs on a GPU: the effects of captures and replays on the allocator, on other threads and in the
 * driver. Tests in tests/core and tests/ops check the values that graphs compute. */

#include "config.h"

#include <tests/capture-test.h>

#include "cuda-test.h"

#define N 1000

static GTorchStream *
new_stream (void)
{
  GError *error = NULL;
  GTorchStream *stream = gtorch_stream_new (gpu (0), 0, &error);

  g_assert_no_error (error);
  return stream;
}

static GTorchImpl *
filled (gdouble value)
{
  const gint64 n = N;
  GTorchImpl *result = gtorch_op_full (&n, 1, value, GTORCH_DTYPE_FLOAT64, gpu (0), NULL);

  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  return result;
}

static gdouble
first_of (GTorchImpl *impl)
{
  g_autofree gdouble *values = read_doubles (impl);

  return values[0];
}

static void
replay (GTorchCUDAGraph *graph, GTorchStream *stream)
{
  GError *error = NULL;

  gtorch_cuda_graph_replay_on (graph, stream, &error);
  g_assert_no_error (error);
}

/* --- the driver --- */

static void
a_replay_is_one_launch (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = filled (1);
  GTorchGraphCapture *capture = begin (graph, stream, NULL);
  guint i;

  for (i = 0; i < 100; i++)
    g_assert_true (gtorch_op_neg_inplace (x, NULL));
  end (capture);
  replay (graph, stream);
  fake_cuda_reset_calls ();
  replay (graph, stream);
  g_assert_cmpuint (fake_cuda_get_calls ("cuGraphLaunch"), ==, 1);
  g_assert_cmpuint (fake_cuda_get_calls ("cuCtxGetCurrent"), ==, 1);
  g_assert_cmpuint (fake_cuda_get_calls (NULL), ==, 2);
}

static void
random_numbers_cost_one_more_launch (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = NULL;
  const gint64 n = N;
  GTorchGraphCapture *capture = begin (graph, stream, NULL);

  x = gtorch_op_rand (&n, 1, GTORCH_DTYPE_FLOAT64, gpu (0), NULL, NULL);
  end (capture);
  replay (graph, stream);
  fake_cuda_reset_calls ();
  replay (graph, stream);
  g_assert_cmpuint (fake_cuda_get_calls ("cuGraphExecKernelNodeSetParams"), ==, 1);
  g_assert_cmpuint (fake_cuda_get_calls (NULL), ==, 3);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
}

static void
replays_may_wait_for_each_launch (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = filled (1);
  GTorchGraphCapture *capture;

  gtorch_set_launch_blocking (TRUE);
  capture = begin (graph, stream, NULL);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  end (capture);
  fake_cuda_set_seed (3);
  replay (graph, stream);
  g_assert_true (gtorch_stream_is_idle (stream));
  gtorch_set_launch_blocking (FALSE);
  g_assert_cmpfloat (first_of (x), ==, -1);
}

/* A replay that failed is not one that the next replay waits for. */
static void
a_replay_that_fails_changes_no_order (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchStream) other = new_stream ();
  g_autoptr (GTorchImpl) x = filled (1);
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = begin (graph, stream, NULL);

  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  end (capture);
  fake_cuda_hold (TRUE);
  replay (graph, stream);
  fake_cuda_fail ("cuStreamWaitEvent", 1, CUDA_ERROR_INVALID_VALUE);
  g_assert_false (gtorch_cuda_graph_replay_on (graph, other, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_assert_true (fake_cuda_clear_faults ());
  fake_cuda_reset_calls ();
  replay (graph, other);
  g_assert_cmpuint (fake_cuda_get_calls ("cuStreamWaitEvent"), ==, 1);
  fake_cuda_reset_calls ();
  replay (graph, other);
  g_assert_cmpuint (fake_cuda_get_calls ("cuStreamWaitEvent"), ==, 0);
  fake_cuda_hold (FALSE);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  g_assert_cmpfloat (first_of (x), ==, -1);
}

/* Streams of other GPUs do: test-cuda-graph-devices.c. */
static void
streams_of_the_host_and_of_gpus_do_not_mix (void)
{
  GTorchDevice *const devices[] = { gpu (0), gpu (1), gtorch_device_cpu () };
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (devices); i++)
    for (j = 0; j < G_N_ELEMENTS (devices); j++)
      {
        g_autoptr (GTorchStream) stream = gtorch_stream_new (devices[i], 0, NULL);
        g_autoptr (GTorchStream) other = gtorch_stream_new (devices[j], 0, NULL);
        g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
        g_autoptr (GTorchTensor) x = NULL;
        g_autoptr (GError) error = NULL;
        GTorchGraphCapture *capture;

        if (gtorch_device_is_host (devices[i]) == gtorch_device_is_host (devices[j]))
          continue;
        capture = begin (graph, stream, NULL);
        x = gtorch_full (NULL, 0, 1, GTORCH_DTYPE_FLOAT32, devices[i], NULL);
        g_assert_false (gtorch_stream_wait_stream (other, stream, &error));
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
        g_assert_nonnull (strstr (error->message, "it is on another device"));
        g_assert_false (gtorch_stream_is_capturing (other));
        end (capture);
      }
}

/* --- other threads --- */

typedef struct
{
  GTorchStream *stream; /* its own stream */
  gint n_rounds;        /* accessed atomically */
  gint stop;
} Other;

/* Makes all calls that captures forbid where they can. */
static gpointer
work_meanwhile (gpointer data)
{
  Other *other = data;
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (other->stream);

  while (!g_atomic_int_get (&other->stop))
    {
      const gint64 n = (1 + other->n_rounds % 4) * MIB;
      g_autoptr (GTorchImpl) x = gtorch_op_full (&n, 1, 2, GTORCH_DTYPE_UINT8, gpu (0), NULL);
      g_autoptr (GTorchImpl) y = gtorch_op_add (x, x, 1, NULL);
      g_autoptr (GTorchEvent) event = gtorch_stream_record_event (other->stream, NULL);

      g_assert_nonnull (y);
      gtorch_event_query (event);
      g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
      g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
      gtorch_device_empty_cache (gpu (0));
      g_atomic_int_inc (&other->n_rounds);
    }
  return NULL;
}

static void
other_threads_are_not_restricted (gconstpointer data)
{
  const GTorchCaptureMode mode = GPOINTER_TO_INT (data);
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchStream) theirs = new_stream ();
  Other other = { theirs };
  GThread *thread = g_thread_new ("other", work_meanwhile, &other);
  guint i;

  for (i = 0; i < 5; i++)
    {
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchImpl) x = filled (i);
      g_autoptr (GTorchImpl) y = NULL;
      GTorchGraphCapture *capture = begin_in_mode (graph, stream, NULL, mode);
      const gint before = g_atomic_int_get (&other.n_rounds);

      y = gtorch_op_add (x, x, 1, NULL);
      while (g_atomic_int_get (&other.n_rounds) < before + 3)
        g_thread_yield ();
      g_clear_pointer (&y, gtorch_impl_unref);
      y = gtorch_op_mul (x, x, NULL);
      end (capture);
      replay (graph, stream);
      g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
      g_assert_cmpfloat (first_of (y), ==, i * i);
    }
  g_atomic_int_set (&other.stop, TRUE);
  g_thread_join (thread);
  assert_no_misuse ();
}

static gpointer
drop (gpointer graph)
{
  g_object_unref (graph);
  return NULL;
}

/* The driver ends a capture only on the thread that began it. */
static void
capture_given_up_elsewhere_loses_its_stream (void)
{
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchStream) next = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  GTorchCUDAGraph *graph;
  gpointer handle;

  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
      g_test_trap_assert_passed ();
      return;
    }
  stream = new_stream ();
  handle = gtorch_stream_get_handle (stream);
  graph = gtorch_cuda_graph_new ();
  g_assert_true (gtorch_device_set_current (gpu (0), NULL));
  gtorch_stream_set_current (stream);
  g_assert_true (
      gtorch_cuda_graph_capture_begin (graph, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, NULL));
  gtorch_stream_set_current (gtorch_device_get_default_stream (gpu (0)));
  g_assert_true (gtorch_device_set_current (gtorch_device_cpu (), NULL));
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "*given up*another thread*");
  g_thread_join (g_thread_new ("drop", drop, graph));
  g_test_assert_expected_messages ();
  gtorch_stream_set_current (stream); /* the stream cannot be used any more */
  x = gtorch_full (GTORCH_SHAPE (1000), 1, GTORCH_DTYPE_FLOAT32, gpu (0), NULL);
  gtorch_stream_set_current (gtorch_device_get_default_stream (gpu (0)));
  g_clear_object (&x);
  g_clear_object (&stream);
  next = new_stream ();
  g_assert_true (gtorch_stream_get_handle (next) != handle);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
}

/* --- calls that make the host wait --- */

#define REFUSED(call, text)                                        \
  G_STMT_START                                                     \
  {                                                                \
    g_autoptr (GError) error = NULL;                               \
    g_assert_true ((call) == 0);                                   \
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);    \
    if (strstr (error->message, text) == NULL)                     \
      g_error ("“%s” says nothing of “%s”", error->message, text); \
  }                                                                \
  G_STMT_END

static void
waiting_is_refused_and_harms_nothing (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = filled (3);
  g_autoptr (GTorchImpl) host = gtorch_op_to_device (x, gtorch_device_cpu (), FALSE, NULL);
  g_autoptr (GTorchImpl) y = NULL;
  GTorchGraphCapture *capture = begin (graph, stream, NULL);

  REFUSED (gtorch_impl_to_host ("item", x, &error), "item");
  REFUSED (gtorch_op_to_device (x, gtorch_device_cpu (), FALSE, &error), "cpu");
  REFUSED (gtorch_op_to_device (host, gpu (0), FALSE, &error), "from cpu to cuda:0");
  REFUSED (gtorch_op_nonzero (x, &error), "nonzero");
  REFUSED (gtorch_stream_synchronize (stream, NULL, &error), "captures a graph");
  REFUSED (gtorch_device_synchronize (gpu (0), NULL, &error), "captures a graph");
  y = gtorch_op_add (x, x, 1, NULL);
  end (capture);
  replay (graph, stream);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  g_assert_cmpfloat (first_of (y), ==, 6);
  assert_no_misuse ();
}

/* --- memory --- */

/* The stream used it before the capture began, and has not finished. */
static void
memory_waits_for_work_from_before_the_capture (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) kept = filled (0);
  GTorchImpl *x = filled (7);
  g_autoptr (GTorchImpl) other = NULL;
  gpointer address = gtorch_impl_data (x);
  GTorchGraphCapture *capture;

  fake_cuda_set_seed (1);
  fake_cuda_hold (TRUE);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    g_assert_true (gtorch_op_add_inplace (kept, x, 1, NULL));
  }
  capture = begin_in_mode (graph, stream, NULL, GTORCH_CAPTURE_MODE_RELAXED);
  gtorch_impl_unref (x);
  {
    g_autoptr (GTorchStreamGuard) guard =
        gtorch_stream_guard_new (gtorch_device_get_default_stream (gpu (0)));
    const gint64 n = N;

    other = gtorch_op_full (&n, 1, -1, GTORCH_DTYPE_FLOAT64, gpu (0), NULL);
    g_assert_true (gtorch_impl_data (other) != address);
  }
  fake_cuda_hold (FALSE);
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "graph: nothing was captured*");
  end (capture);
  g_test_assert_expected_messages ();
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  g_assert_cmpfloat (first_of (kept), ==, 7);
  assert_no_misuse ();
}

/* Memory that two streams of a capture have used is not reused in it. */
static void
memory_of_two_streams_stays_till_the_end (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (gpu (0));
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchStream) side = new_stream ();
  g_autoptr (GTorchImpl) x = filled (2);
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) z = NULL;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) later = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture = gtorch_graph_capture_new (graph, stream, pool, 0, NULL);
  guint64 reserved, seed;
  gpointer address;

  {
    g_autoptr (GTorchImpl) a = gtorch_op_add (x, x, 1, NULL);

    address = gtorch_impl_data (a);
    g_assert_true (gtorch_stream_wait_stream (side, stream, NULL));
    {
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (side);

      y = gtorch_op_mul (a, a, NULL);
    }
  }
  z = gtorch_op_add (x, x, 1, NULL);
  g_assert_true (gtorch_impl_data (z) != address);
  g_assert_true (gtorch_stream_wait_stream (stream, side, NULL));
  end (capture);
  for (seed = 0; seed < 20; seed++)
    {
      fake_cuda_set_seed (seed);
      replay (graph, seed % 2 ? stream : side);
      g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
      g_assert_cmpfloat (first_of (y), ==, 16);
      g_assert_cmpfloat (first_of (z), ==, 4);
    }
  gtorch_device_empty_cache (gpu (0)); /* records the current free memory */
  reserved = gtorch_memory_pool_get_reserved (pool);
  capture = gtorch_graph_capture_new (later, stream, pool, 0, NULL);
  {
    g_autoptr (GTorchImpl) a = gtorch_op_add (x, x, 1, NULL);

    g_assert_true (gtorch_impl_data (a) == address);
  }
  end (capture);
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, reserved);
  assert_no_misuse ();
}

/* The program drops everything while the replay is running. */
static void
memory_outlives_a_replay_under_way (void)
{
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) kept = filled (0);
  guint seed;

  for (seed = 1; seed < 20; seed++)
    {
      GTorchCUDAGraph *graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchImpl) more = NULL;
      const gint64 n = 4 * N;
      GTorchGraphCapture *capture;
      GTorchImpl *x;

      g_assert_true (gtorch_op_zero_inplace (kept, NULL));
      x = filled (seed);
      capture = begin (graph, stream, NULL);
      {
        g_autoptr (GTorchImpl) y = gtorch_op_add (x, x, 1, NULL);
        g_autoptr (GTorchImpl) z = gtorch_op_mul (y, x, NULL);

        g_assert_true (gtorch_op_add_inplace (kept, z, 1, NULL));
      }
      end (capture);
      fake_cuda_set_seed (seed);
      fake_cuda_hold (TRUE);
      replay (graph, stream);
      g_object_unref (graph);
      gtorch_impl_unref (x);
      more = gtorch_op_full (&n, 1, -1, GTORCH_DTYPE_FLOAT64, gpu (0), NULL);
      fake_cuda_hold (FALSE);
      g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
      g_assert_cmpfloat (first_of (kept), ==, 2. * seed * seed);
    }
  assert_no_misuse ();
}

static void
freed_graphs_leak_nothing (void)
{
  FakeCudaAccounts before, after;
  guint i;

  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchStream) stream = new_stream ();
      GTorchCUDAGraph *graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchImpl) x = filled (1);
      GTorchImpl *y;
      GTorchGraphCapture *capture;

      gtorch_device_empty_cache (gpu (0));
      fake_cuda_get_accounts (i == 1 ? &before : &after);
      capture = begin (graph, stream, NULL);
      y = gtorch_op_exp (x, NULL);
      end (capture);
      replay (graph, stream);
      g_object_unref (graph);
      gtorch_impl_unref (y);
    }
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  gtorch_device_empty_cache (gpu (0));
  fake_cuda_get_accounts (&after);
  g_assert_cmpuint (after.graphs, ==, before.graphs);
  g_assert_cmpuint (after.n_bytes, <=, before.n_bytes);
  g_assert_cmpuint (after.events, <=, before.events + 2);
  g_assert_cmpuint (after.misuses, ==, 0);
}

static void
no_memory_in_a_capture_is_an_error (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) x = filled (3);
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GError) error = NULL;
  const gint64 n = 1024 * MIB;
  GTorchGraphCapture *capture = begin (graph, stream, NULL);

  g_assert_null (gtorch_op_full (&n, 1, 0, GTORCH_DTYPE_FLOAT64, gpu (0), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  y = gtorch_op_neg (x, NULL);
  end (capture);
  replay (graph, stream);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  g_assert_cmpfloat (first_of (y), ==, -3);
}

/* --- libraries --- */

/* The eager product uses the stream's workspace, the graph has its own. */
static void
products_in_graphs_have_their_own_workspace (void)
{
  const gint64 shape[] = { 40, 40 };
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchImpl) a = ramp (gpu (0), GTORCH_DTYPE_FLOAT32, shape, 2);
  g_autoptr (GTorchImpl) expected = gtorch_op_matmul (a, a, NULL);
  g_autoptr (GTorchImpl) product = NULL;
  GTorchGraphCapture *capture;
  guint64 in_pool;

  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  capture = begin (graph, stream, NULL);
  product = gtorch_op_matmul (a, a, NULL);
  in_pool = gtorch_memory_pool_get_peak_allocated (gtorch_cuda_graph_get_pool (graph));
  end (capture);
  g_assert_nonnull (product);
  g_assert_cmpuint (in_pool, >, gtorch_impl_n_bytes (product) + 4096);
  g_assert_cmpuint (gtorch_memory_pool_get_allocated (gtorch_cuda_graph_get_pool (graph)), <,
                    in_pool);
  replay (graph, stream);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  g_assert_cmpfloat (first_of (product), ==, first_of (expected));
}

#define TEST(name) g_test_add_func ("/GTorchCudaGraph/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (a_replay_is_one_launch);
  TEST (random_numbers_cost_one_more_launch);
  TEST (replays_may_wait_for_each_launch);
  TEST (a_replay_that_fails_changes_no_order);
  TEST (streams_of_the_host_and_of_gpus_do_not_mix);
  g_test_add_data_func ("/GTorchCudaGraph/other_threads_are_not_restricted/thread-local",
                        GINT_TO_POINTER (GTORCH_CAPTURE_MODE_THREAD_LOCAL),
                        other_threads_are_not_restricted);
  g_test_add_data_func ("/GTorchCudaGraph/other_threads_are_not_restricted/relaxed",
                        GINT_TO_POINTER (GTORCH_CAPTURE_MODE_RELAXED),
                        other_threads_are_not_restricted);
  TEST (capture_given_up_elsewhere_loses_its_stream);
  TEST (waiting_is_refused_and_harms_nothing);
  TEST (memory_waits_for_work_from_before_the_capture);
  TEST (memory_of_two_streams_stays_till_the_end);
  TEST (memory_outlives_a_replay_under_way);
  TEST (freed_graphs_leak_nothing);
  TEST (no_memory_in_a_capture_is_an_error);
  TEST (products_in_graphs_have_their_own_workspace);
  return g_test_run ();
}
