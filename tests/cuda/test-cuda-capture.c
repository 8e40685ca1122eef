/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The rules of captures as the fake driver implements them: which calls are recorded, in which order they
 * are replayed, and which call fails with which error. */

#include "config.h"

#include <glib/gstdio.h>
#include <unistd.h>

#include "cuda-test.h"

#define N 300

typedef struct
{
  GTorchStream *stream;
  CUstream handle;
} Queue;

static Queue
new_queue (void)
{
  Queue queue = { gtorch_stream_new (gpu (0), 0, NULL), NULL };

  queue.handle = gtorch_stream_get_handle (queue.stream);
  return queue;
}

static CUevent
new_event (void)
{
  CUevent event = NULL;

  OK (cuEventCreate (&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

static void
add_on (Queue queue, GTorchImpl *to, GTorchImpl *x)
{
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (queue.stream);

  g_assert_true (gtorch_op_add_inplace (to, x, 1, NULL));
}

static void
begin (Queue queue)
{
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  OK (cuStreamBeginCapture (queue.handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

/* Ends a capture that was invalidated. */
static void
end_spoiled (Queue queue, CUresult expected)
{
  CUstreamCaptureStatus status;
  CUgraph graph = (CUgraph) &queue;

  CALL (cuStreamEndCapture (queue.handle, &graph), expected);
  g_assert_null (graph);
  OK (cuStreamIsCapturing (queue.handle, &status));
  g_assert_cmpint (status, ==, CU_STREAM_CAPTURE_STATUS_NONE);
  OK (cuStreamSynchronize (queue.handle));
}

/* --- captured calls --- */

static void
nothing_is_done_before_the_launch (void)
{
  Queue queue = new_queue ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autoptr (GTorchImpl) y = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *before = NULL;
  CUgraphExec exec = NULL;
  CUgraph graph = NULL;
  uint64_t id = 0;
  size_t n = 0;
  guint i;

  begin (queue);
  OK (cuStreamGetCaptureInfo (queue.handle, &status, &id, &graph, &before, &n));
  g_assert_cmpint (status, ==, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  g_assert_cmpuint (id, !=, 0);
  g_assert_nonnull (graph);
  g_assert_cmpuint (n, ==, 0);
  for (i = 0; i < 3; i++)
    add_on (queue, y, x);
  OK (cuStreamGetCaptureInfo (queue.handle, &status, NULL, NULL, &before, &n));
  g_assert_cmpuint (n, ==, 1);
  OK (cuStreamEndCapture (queue.handle, &graph));
  OK (cuGraphGetNodes (graph, NULL, &n));
  g_assert_cmpuint (n, ==, 3);
  OK (cuGraphInstantiateWithFlags (&exec, graph, 0));
  OK (cuGraphDestroy (graph)); /* the executable graph has its own copy */
  OK (cuGraphUpload (exec, queue.handle));
  for (i = 0; i < 5; i++)
    {
      g_autofree gdouble *values = NULL;

      gtorch_device_synchronize (gpu (0), NULL, NULL);
      values = read_doubles (y);
      g_assert_cmpfloat (values[N - 1], ==, (1 + 3.0 * i) * (N - 1));
      fake_cuda_set_seed (i);
      OK (cuGraphLaunch (exec, queue.handle));
    }
  OK (cuStreamSynchronize (queue.handle));
  OK (cuGraphExecDestroy (exec));
  g_object_unref (queue.stream);
}

/* x is doubled on a; then b copies it to y, a to z; a waits for b (or not) and copies y to z. */
static gboolean
branches (guint32 seed, gboolean waits)
{
  Queue a = new_queue (), b = new_queue ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autoptr (GTorchImpl) y = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autoptr (GTorchImpl) z = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  CUevent forked = new_event (), joined = new_event ();
  g_autofree gdouble *values = NULL;
  CUgraphExec exec = NULL;
  CUgraph graph = NULL;

  fake_cuda_set_seed (seed);
  begin (a);
  add_on (a, x, x);
  OK (cuEventRecord (forked, a.handle));
  OK (cuStreamWaitEvent (b.handle, forked, 0));
  add_on (b, y, x);
  OK (cuEventRecord (joined, b.handle));
  add_on (a, z, x);
  if (waits)
    OK (cuStreamWaitEvent (a.handle, joined, 0));
  add_on (a, z, y);
  OK (cuStreamWaitEvent (a.handle, joined, 0));
  OK (cuStreamEndCapture (a.handle, &graph));
  OK (cuGraphInstantiateWithFlags (&exec, graph, 0));
  OK (cuGraphLaunch (exec, b.handle));
  OK (cuStreamSynchronize (b.handle));
  values = read_doubles (z);
  OK (cuGraphExecDestroy (exec));
  OK (cuGraphDestroy (graph));
  OK (cuEventDestroy (forked));
  OK (cuEventDestroy (joined));
  g_object_unref (a.stream);
  g_object_unref (b.stream);
  return values[N - 1] == 6.0 * (N - 1);
}

static void
a_missing_dependency_gives_wrong_values (void)
{
  guint32 seed;
  guint n_wrong = 0;

  for (seed = 0; seed < 100; seed++)
    {
      g_assert_true (branches (seed, TRUE));
      n_wrong += !branches (seed, FALSE);
    }
  g_test_message ("%u of 100 orders show it", n_wrong);
  g_assert_cmpuint (n_wrong, >, 5);
}

static void
a_graph_launched_in_a_capture_becomes_a_node (void)
{
  Queue queue = new_queue ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autofree gchar *path = g_build_filename (g_get_tmp_dir (), "gtorch-capture-XXXXXX", NULL);
  g_autofree gchar *text = NULL;
  g_autofree gdouble *values = NULL;
  CUgraphExec inner = NULL, outer = NULL;
  CUgraph graph = NULL;
  size_t n = 0;

  begin (queue);
  add_on (queue, x, x);
  OK (cuStreamEndCapture (queue.handle, &graph));
  OK (cuGraphInstantiateWithFlags (&inner, graph, 0));
  OK (cuGraphDestroy (graph));
  begin (queue);
  OK (cuGraphLaunch (inner, queue.handle));
  add_on (queue, x, x);
  OK (cuGraphLaunch (inner, queue.handle));
  OK (cuStreamEndCapture (queue.handle, &graph));
  OK (cuGraphExecDestroy (inner));
  OK (cuGraphGetNodes (graph, NULL, &n));
  g_assert_cmpuint (n, ==, 3);
  close (g_mkstemp (path));
  OK (cuGraphDebugDotPrint (graph, path, 0));
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_unlink (path);
  g_assert_nonnull (strstr (text, "\"0\" -> \"1\""));
  g_assert_nonnull (strstr (text, "\"1\" -> \"2\""));
  g_assert_nonnull (strstr (text, "add"));
  OK (cuGraphInstantiateWithFlags (&outer, graph, 0));
  OK (cuGraphDestroy (graph));
  OK (cuGraphLaunch (outer, queue.handle));
  OK (cuStreamSynchronize (queue.handle));
  OK (cuGraphExecDestroy (outer));
  values = read_doubles (x);
  g_assert_cmpfloat (values[N - 1], ==, 8.0 * (N - 1));
  g_object_unref (queue.stream);
}

static void
copies_and_fills_are_captured (void)
{
  Queue queue = new_queue ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autoptr (GTorchImpl) y = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autofree gdouble *values = NULL;
  CUdeviceptr from = (CUdeviceptr) (guintptr) gtorch_impl_data (x);
  CUdeviceptr to = (CUdeviceptr) (guintptr) gtorch_impl_data (y);
  CUgraphExec exec = NULL;
  CUgraph graph = NULL;

  begin (queue);
  OK (cuMemcpyDtoDAsync (to, from, N * 8, queue.handle));
  OK (cuMemsetD8Async (to, 0, 8 * 10, queue.handle));
  OK (cuStreamEndCapture (queue.handle, &graph));
  OK (cuGraphInstantiateWithFlags (&exec, graph, 0));
  OK (cuMemsetD8Async (to, 0xff, N * 8, queue.handle));
  OK (cuGraphLaunch (exec, queue.handle));
  OK (cuStreamSynchronize (queue.handle));
  OK (cuGraphExecDestroy (exec));
  OK (cuGraphDestroy (graph));
  values = read_doubles (y);
  g_assert_cmpfloat (values[9], ==, 0);
  g_assert_cmpfloat (values[10], ==, 10);
  g_assert_cmpfloat (values[N - 1], ==, N - 1);
  g_object_unref (queue.stream);
}

/* --- forbidden calls --- */

static void
waiting_for_a_capture_invalidates_it (void)
{
  Queue queue = new_queue (), other = new_queue ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  CUevent event = new_event ();
  CUstreamCaptureStatus status;
  guint way;

  for (way = 0; way < 5; way++)
    {
      begin (queue);
      add_on (queue, x, x);
      OK (cuEventRecord (event, queue.handle));
      if (way == 0)
        CALL (cuStreamSynchronize (queue.handle), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      else if (way == 1)
        CALL (cuStreamQuery (queue.handle), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      else if (way == 2)
        CALL (cuEventQuery (event), CUDA_ERROR_CAPTURED_EVENT);
      else if (way == 3)
        CALL (cuEventSynchronize (event), CUDA_ERROR_CAPTURED_EVENT);
      else
        CALL (cuCtxSynchronize (), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      OK (cuStreamIsCapturing (queue.handle, &status));
      g_assert_cmpint (status, ==, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
      CALL (cuEventRecord (event, queue.handle), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
      OK (cuStreamSynchronize (other.handle)); /* other streams are not affected */
      end_spoiled (queue, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
  OK (cuEventDestroy (event));
  g_object_unref (queue.stream);
  g_object_unref (other.stream);
}

static void
streams_must_join (void)
{
  Queue a = new_queue (), b = new_queue ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  CUevent event = new_event ();
  CUgraph graph = NULL;

  begin (a);
  OK (cuEventRecord (event, a.handle));
  OK (cuStreamWaitEvent (b.handle, event, 0));
  add_on (b, x, x);
  end_spoiled (a, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  begin (a);
  OK (cuEventRecord (event, a.handle));
  OK (cuStreamWaitEvent (b.handle, event, 0));
  CALL (cuStreamEndCapture (b.handle, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  end_spoiled (a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  OK (cuEventDestroy (event));
  g_object_unref (a.stream);
  g_object_unref (b.stream);
}

static void
captures_do_not_mix (void)
{
  Queue a = new_queue (), b = new_queue ();
  CUevent outside = new_event (), inside = new_event ();

  OK (cuEventRecord (outside, b.handle));
  begin (a);
  CALL (cuStreamBeginCapture (a.handle, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_ILLEGAL_STATE);
  CALL (cuStreamWaitEvent (a.handle, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  end_spoiled (a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin (a);
  OK (cuStreamBeginCapture (b.handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK (cuEventRecord (inside, a.handle));
  CALL (cuStreamWaitEvent (b.handle, inside, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  end_spoiled (a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  end_spoiled (b, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  /* the capture has ended */
  CALL (cuStreamWaitEvent (b.handle, inside, 0), CUDA_ERROR_CAPTURED_EVENT);
  begin (a);
  OK (cuEventRecord (inside, a.handle));
  CALL (cuStreamWaitEvent (NULL, inside, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  end_spoiled (a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CALL (cuStreamBeginCapture (NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  OK (cuEventDestroy (outside));
  OK (cuEventDestroy (inside));
  g_object_unref (a.stream);
  g_object_unref (b.stream);
}

/* --- several devices --- */

static Queue
new_queue_on (guint device)
{
  Queue queue = { gtorch_stream_new (gpu (device), 0, NULL), NULL };

  queue.handle = gtorch_stream_get_handle (queue.stream);
  return queue;
}

static void
activate (guint device)
{
  g_assert_true (gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (gpu (device)), NULL));
}

/* x on the first device is doubled there, and y on the second one there, by one launch. */
static void
streams_of_several_devices_join (void)
{
  Queue a = new_queue (), b = new_queue_on (1);
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  g_autoptr (GTorchImpl) y = ramp_1d (gpu (1), GTORCH_DTYPE_INT64, N);
  CUevent forked, joined;
  CUgraphExec exec = NULL;
  CUgraph graph = NULL;
  guint32 seed;

  activate (1);
  joined = new_event ();
  activate (0);
  forked = new_event ();
  g_assert_true (gtorch_device_synchronize (gpu (1), NULL, NULL));
  begin (a);
  add_on (a, x, x);
  CALL (cuEventRecord (joined, a.handle),
        CUDA_ERROR_INVALID_HANDLE); /* an event of the other device */
  OK (cuEventRecord (forked, a.handle));
  OK (cuStreamWaitEvent (b.handle, forked, 0));
  add_on (b, y, y);
  OK (cuEventRecord (joined, b.handle));
  OK (cuStreamWaitEvent (a.handle, joined, 0));
  OK (cuStreamEndCapture (a.handle, &graph));
  OK (cuGraphInstantiateWithFlags (&exec, graph, 0));
  OK (cuGraphDestroy (graph));
  for (seed = 1; seed <= 10; seed++)
    {
      fake_cuda_set_seed (seed);
      OK (cuGraphLaunch (exec, a.handle));
    }
  OK (cuStreamSynchronize (a.handle));
  OK (cuGraphExecDestroy (exec));
  {
    g_autofree gdouble *first = read_doubles (x), *second = read_doubles (y);

    g_assert_cmpfloat (first[N - 1], ==, 1024.0 * (N - 1));
    g_assert_cmpfloat (second[N - 1], ==, 1024.0 * (N - 1));
  }
  OK (cuEventDestroy (forked));
  OK (cuEventDestroy (joined));
  g_object_unref (a.stream);
  g_object_unref (b.stream);
}

static void
rules_hold_on_all_devices_of_a_capture (void)
{
  Queue a = new_queue (), b = new_queue_on (1);
  g_autoptr (GTorchImpl) y = ramp_1d (gpu (1), GTORCH_DTYPE_INT64, N);
  CUdeviceptr address = (CUdeviceptr) (guintptr) gtorch_impl_data (y);
  CUstream blocking = NULL;
  CUevent event;
  guint way;

  activate (0);
  event = new_event ();
  activate (1);
  OK (cuStreamCreateWithPriority (&blocking, 0, 0));
  for (way = 0; way < 4; way++)
    {
      g_assert_true (gtorch_device_synchronize (gpu (1), NULL, NULL));
      begin (a);
      OK (cuEventRecord (event, a.handle));
      activate (1);
      if (way == 0)
        { /* its work must be waited for */
          OK (cuStreamWaitEvent (b.handle, event, 0));
          OK (cuMemsetD8Async (address, 0, 8, b.handle));
          end_spoiled (a, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
          continue;
        }
      if (way == 1)
        CALL (cuStreamWaitEvent (NULL, event, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
      else if (way == 2)
        { /* the default stream would wait for it */
          OK (cuStreamWaitEvent (blocking, event, 0));
          CALL (cuMemsetD8Async (address, 0, 8, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        }
      else
        {
          OK (cuStreamWaitEvent (b.handle, event, 0));
          OK (cuMemsetD8Async (address, 0, 8, NULL)); /* which does not wait for this one */
          CALL (cuCtxSynchronize (), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
      end_spoiled (a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
  OK (cuStreamDestroy (blocking));
  OK (cuEventDestroy (event));
  activate (0);
  g_object_unref (a.stream);
  g_object_unref (b.stream);
}

typedef struct
{
  CUstream handle;
  CUresult end, alloc;
} Other;

static gpointer
in_another_thread (gpointer data)
{
  Other *other = data;
  CUdeviceptr address = 0;
  CUgraph graph = NULL;

  gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (gpu (0)), NULL);
  other->end = gtorch_cuda.cuStreamEndCapture (other->handle, &graph);
  if (graph != NULL)
    gtorch_cuda.cuGraphDestroy (graph);
  other->alloc = gtorch_cuda.cuMemAlloc (&address, 64);
  if (other->alloc == CUDA_SUCCESS)
    gtorch_cuda.cuMemFree (address);
  return NULL;
}

/* For each mode: may the capturing thread, and may another, allocate memory during the capture? */
static void
modes_restrict_the_calls_of_threads (void)
{
  static const struct
  {
    CUstreamCaptureMode mode;
    CUresult own, other, end_by_other;
  } cases[] = {
    { CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD },
    { CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_SUCCESS,
      CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD },
    { CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS },
  };
  Queue queue = new_queue ();
  CUstreamCaptureMode mode;
  CUdeviceptr address;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      Other other = { queue.handle, CUDA_SUCCESS, CUDA_SUCCESS };
      CUgraph graph = NULL;

      /* another thread */
      OK (cuStreamBeginCapture (queue.handle, cases[i].mode));
      g_thread_join (g_thread_new ("other", in_another_thread, &other));
      g_assert_cmpint (other.end, ==, cases[i].end_by_other);
      if (cases[i].end_by_other != CUDA_SUCCESS)
        {
          g_assert_cmpint (other.alloc, ==, cases[i].other);
          CALL (cuStreamEndCapture (queue.handle, &graph),
                cases[i].other == CUDA_SUCCESS ? CUDA_SUCCESS
                                               : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
          if (graph != NULL)
            OK (cuGraphDestroy (graph));
        }

      /* the same thread, and with another mode of its own */
      OK (cuStreamBeginCapture (queue.handle, cases[i].mode));
      mode = CU_STREAM_CAPTURE_MODE_RELAXED;
      OK (cuThreadExchangeStreamCaptureMode (&mode));
      g_assert_cmpint (mode, ==, CU_STREAM_CAPTURE_MODE_GLOBAL);
      OK (cuMemAlloc (&address, 64));
      OK (cuMemFree (address));
      OK (cuThreadExchangeStreamCaptureMode (&mode));
      g_assert_cmpint (mode, ==, CU_STREAM_CAPTURE_MODE_RELAXED);
      CALL (cuMemAlloc (&address, 64), cases[i].own);
      if (cases[i].own == CUDA_SUCCESS)
        OK (cuMemFree (address));
      CALL (cuStreamEndCapture (queue.handle, &graph),
            cases[i].own == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
      if (graph != NULL)
        OK (cuGraphDestroy (graph));
    }
  g_object_unref (queue.stream);
}

#define TEST(name) g_test_add_func ("/GTorchCudaCapture/" #name, name)

gint
main (gint argc, gchar **argv)
{
  FakeCudaAccounts accounts;
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (nothing_is_done_before_the_launch);
  TEST (a_missing_dependency_gives_wrong_values);
  TEST (a_graph_launched_in_a_capture_becomes_a_node);
  TEST (copies_and_fills_are_captured);
  TEST (waiting_for_a_capture_invalidates_it);
  TEST (streams_must_join);
  TEST (captures_do_not_mix);
  TEST (streams_of_several_devices_join);
  TEST (rules_hold_on_all_devices_of_a_capture);
  TEST (modes_restrict_the_calls_of_threads);
  result = g_test_run ();
  assert_no_misuse ();
  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.graphs, ==, 0);
  return result;
}
