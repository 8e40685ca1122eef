/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Rules for programs with graphs, and the errors and warnings if they are broken. */

#include "config.h"

#include <string.h>

#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/device/gtorch-device-private.h>

#include "graph-test.h"
#include "gtorch-ops-private.h"

#define WARNS(call, text)                                                 \
  G_STMT_START                                                            \
  {                                                                       \
    g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING,                 \
                           "*" text "*; called from *test-graph-rules*"); \
    call;                                                                 \
    g_test_assert_expected_messages ();                                   \
  }                                                                       \
  G_STMT_END

/* --- during the capture --- */

static void
default_stream_is_not_captured (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();

  FAILS (gtorch_cuda_graph_capture_begin (graph, NULL, MODE, &fault), GTORCH_ERROR_CAPTURE,
         "graph: a default stream cannot be captured");
}

static void
host_reads_are_refused (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GTorchTensor) mask = gtorch_tensor_gt_scalar (x, 1, NULL);
  g_autofree gchar *text = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  GError *fault_of_item = NULL;
  gsize n;

  y = gtorch_tensor_mul (x, x, NULL);
  total = gtorch_tensor_sum (y, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  gtorch_tensor_item_double (total, &fault_of_item);
  g_assert_error (fault_of_item, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_assert_nonnull (strstr (fault_of_item->message, "item: the elements of a tensor of shape []"));
  g_clear_error (&fault_of_item);
  FAILS (gtorch_tensor_to_doubles (y, &n, &fault), GTORCH_ERROR_CAPTURE,
         "shape ?4? cannot be read on the host: it is not computed before the graph is replayed");
  FAILS (gtorch_tensor_to_doubles (x, &n, &fault), GTORCH_ERROR_CAPTURE,
         "cannot be read on the host: the current stream captures a graph");
  text = gtorch_tensor_to_string (y);
  g_assert_null (strstr (text, "9"));
  /* operations whose result's shape depends on values */
  FAILS (gtorch_tensor_nonzero (y, &fault), GTORCH_ERROR_CAPTURE, "nonzero: *on the host");
  FAILS (gtorch_tensor_masked_select (x, mask, &fault), GTORCH_ERROR_CAPTURE,
         "masked_select: *on the host");
  FAILS (gtorch_stream_synchronize (gtorch_stream_get_current (NULL), NULL, &fault),
         GTORCH_ERROR_CAPTURE, "");
  FAILS (gtorch_device_synchronize (test_device (), NULL, &fault), GTORCH_ERROR_CAPTURE, "");
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_cmpfloat (test_element (total, 0), ==, 36);
}

static void
work_on_streams_that_take_no_part_is_an_error (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) other = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);

  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (other);

    FAILS (gtorch_tensor_mul (x, x, &fault), GTORCH_ERROR_CAPTURE,
           "mul: the current stream, 0x*, takes no part in the capture of stream 0x*");
  }
  {
    g_autoptr (GTorchStreamGuard) guard =
        gtorch_stream_guard_new (gtorch_device_get_default_stream (test_device ()));

    FAILS (gtorch_tensor_add_scalar_inplace (x, 1, 1, &fault), GTORCH_ERROR_CAPTURE,
           "add*: the current stream, 0x*, takes no part in the capture");
  }
  y = gtorch_tensor_mul (x, x, NULL);
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_cmpfloat (test_element (y, 0), ==, 9);

  /* after a reset, another thread can capture it */
  g_assert_true (gtorch_cuda_graph_reset (graph, NULL));
  capture = gtorch_graph_capture_new (graph, NULL, NULL, GTORCH_CAPTURE_MODE_RELAXED, NULL);
  g_clear_object (&y);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (other);

    y = gtorch_tensor_add (x, x, 1, NULL);
    g_assert_nonnull (y);
  }
  gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  end (capture);
  g_assert_cmpfloat (test_element (y, 0), ==, 6);
}

static gpointer
multiply (gpointer data)
{
  return gtorch_tensor_mul (data, data, NULL);
}

static void
other_threads_are_not_restricted (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) theirs = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);

  y = gtorch_tensor_add (x, x, 1, NULL);
  theirs = g_thread_join (g_thread_new ("other", multiply, x));
  end (capture);
  g_assert_cmpuint (gtorch_cuda_graph_get_n_nodes (graph), ==, 1);
  g_assert_cmpfloat (test_element (theirs, 0), ==, 9);
}

static void
work_of_other_threads_is_reported (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) first = NULL;
  g_autoptr (GTorchTensor) second = NULL;
  GTorchGraphCapture *capture;

  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_GRAPH); /* as the environment has it done */
  capture = begin (graph, NULL, NULL);
  first = gtorch_tensor_add (x, x, 1, NULL);
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING,
                         "graph: mul is not captured: another thread captures stream 0x*");
  second = g_thread_join (g_thread_new ("other", multiply, x));
  g_test_assert_expected_messages ();
  end (capture);
  gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_GRAPH);
}

typedef struct
{
  GTorchStream *stream;
  GTorchTensor *x;
  gint is_over, n;
} Busy;

/* Each call is captured, or refused because the capture has just ended, or runs as if there was no
 * capture. */
static gpointer
go_on_and_on (gpointer data)
{
  Busy *busy = data;
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (busy->stream);

  while (!g_atomic_int_get (&busy->is_over))
    {
      g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) y = gtorch_tensor_neg (busy->x, &error);

      if (y == NULL)
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
      g_clear_error (&error);
      if (!gtorch_event_record (event, busy->stream, &error)
          || !gtorch_event_wait (event, busy->stream, &error))
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
      g_atomic_int_inc (&busy->n);
    }
  return NULL;
}

static void
captures_end_beside_the_work_of_another_thread (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (test_device (), 0, NULL);
  g_autoptr (GTorchStream) side = gtorch_stream_new (test_device (), 0, NULL);
  g_autoptr (GTorchTensor) x = filled (4, 3);
  guint round;

  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
  for (round = 0; round < 20; round++)
    {
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      GTorchGraphCapture *capture =
          gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_RELAXED, NULL);
      Busy busy = { side, x };
      GThread *thread;

      g_assert_true (gtorch_stream_wait_stream (side, stream, NULL));
      thread = g_thread_new ("busy", go_on_and_on, &busy);
      while (g_atomic_int_get (&busy.n) < 3)
        g_thread_yield ();
      FAILS (gtorch_graph_capture_end (capture, &fault), GTORCH_ERROR_CAPTURE,
             "graph: stream 0x* took part in the capture");
      gtorch_graph_capture_unref (capture);
      g_atomic_int_set (&busy.is_over, TRUE);
      g_thread_join (thread);
      g_assert_false (gtorch_stream_is_capturing (side));
      gtorch_stream_synchronize (side, NULL, NULL);
    }
}

static gpointer
end_elsewhere (gpointer data)
{
  FAILS (gtorch_graph_capture_end (data, &fault), GTORCH_ERROR_CAPTURE,
         "graph: the capture must end in the thread in which it began");
  return NULL;
}

static gpointer
end_graph_elsewhere (gpointer data)
{
  FAILS (gtorch_cuda_graph_capture_end (data, &fault), GTORCH_ERROR_CAPTURE,
         "graph: the capture must end in the thread in which it began");
  return NULL;
}

static void
ending_in_another_thread_keeps_the_capture (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  guint i;

  y = gtorch_tensor_add (x, x, 1, NULL);
  for (i = 0; i < 2; i++)
    {
      g_thread_join (g_thread_new ("other", end_elsewhere, capture));
      g_thread_join (g_thread_new ("other", end_graph_elsewhere, graph));
      g_assert_true (gtorch_stream_is_capturing (gtorch_stream_get_current (NULL)));
    }
  z = gtorch_tensor_mul_scalar (y, 7, NULL);
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_cmpfloat (test_element (z, 0), ==, 42);
}

static gpointer
capture_elsewhere (gpointer data)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture;

  capture = begin (graph, NULL, NULL);
  y = gtorch_tensor_mul_scalar (data, 7, NULL);
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_cmpfloat (test_element (y, 0), ==, 21);
  return NULL;
}

static void
threads_capture_at_the_same_time (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) second = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);

  y = gtorch_tensor_add (x, x, 1, NULL);
  g_thread_join (g_thread_new ("other", capture_elsewhere, x));
  /* but not on the same stream */
  FAILS (gtorch_cuda_graph_capture_begin (second, NULL, MODE, &fault), GTORCH_ERROR_CAPTURE,
         "graph: another graph captures the current stream");
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_cmpfloat (test_element (y, 0), ==, 6);
}

static void
forks_must_join (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) first = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) second = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchGraphCapture) capture =
      gtorch_graph_capture_new (graph, first, NULL, MODE, NULL);

  g_assert_true (gtorch_stream_wait_stream (second, first, NULL));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (second);

    y = gtorch_tensor_mul (x, x, NULL);
  }
  FAILS (gtorch_graph_capture_end (capture, &fault), GTORCH_ERROR_CAPTURE,
         "graph: stream 0x* took part in the capture *did not wait for its last work (mul)*join");
}

static void
custom_generators_are_captured (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchGenerator) own = gtorch_generator_new_with_seed (4);
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GBytes) state = NULL;
  gdouble expected[2];
  GTorchGraphCapture *capture;
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) value =
          gtorch_randn (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT64, NULL, own, NULL);

      expected[i] = test_element (value, 0);
    }
  gtorch_generator_set_seed (own, 4);
  state = gtorch_generator_get_state (own);
  capture = begin (graph, NULL, NULL);
  x = gtorch_randn (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT64, NULL, own, NULL);
  WARNS (gtorch_generator_set_seed (own, 4), "seeding a generator happens now");
  WARNS (gtorch_generator_set_state (own, state, NULL),
         "setting the state of a generator happens now");
  WARNS (gtorch_manual_seed (4), "seeding the generators happens now");
  end (capture);
  for (i = 0; i < 2; i++)
    {
      g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
      g_assert_cmpfloat (test_element (x, 0), ==, expected[i]);
    }
}

static void
existing_gradients_cause_a_warning (void)
{
  guint how;

  for (how = 0; how < 3; how++) /* the gradient exists, is zeroed in the graph, or does not exist */
    {
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchTensor) x = filled (4, 3);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) loss = NULL;
      g_autoptr (GTorchTensor) old = filled (4, 1);
      g_autoptr (GTorchTensor) grad = NULL;
      GTorchGraphCapture *capture;

      gtorch_tensor_set_requires_grad (x, TRUE, NULL);
      g_assert_true (gtorch_tensor_set_grad (x, how < 2 ? old : NULL, NULL));
      capture = begin (graph, NULL, NULL);
      if (how == 1)
        gtorch_tensor_zero_inplace (old, NULL);
      y = gtorch_tensor_mul (x, x, NULL);
      loss = gtorch_tensor_sum (y, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
      if (how == 0)
        WARNS (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, NULL),
               "backward adds to a gradient of shape ?4? that existed before the capture");
      else
        gtorch_tensor_backward (loss, NULL, FALSE, FALSE, NULL);
      end (capture);
      g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
      g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
      grad = gtorch_tensor_get_grad (x);
      g_assert_cmpfloat (test_element (grad, 0), ==, how == 0 ? 13 : 6);
    }
}

static void
empty_captures_cause_a_warning (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);

  WARNS (gtorch_graph_capture_end (capture, &error), "graph: nothing was captured");
  g_assert_no_error (error);
  gtorch_graph_capture_unref (capture);
}

/* --- replays --- */

static void
outside_operands_are_kept_alive (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) y = NULL;
  GTorchTensor *x = filled (1000, 3);
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  guint i;

  y = gtorch_tensor_mul_scalar (x, 5, NULL);
  end (capture);
  g_object_unref (x);
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) other = filled (1000, -1); /* would get freed memory */

      g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
      g_assert_cmpfloat (test_element (y, 0), ==, 15);
    }
}

static void
graphs_of_a_pool_replay_in_capture_order (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (NULL);
  GTorchCUDAGraph *graphs[3];
  g_autoptr (GTorchTensor) x = filled (4, 3);
  GTorchTensor *y[3];
  guint i;

  for (i = 0; i < 3; i++)
    {
      GTorchGraphCapture *capture;

      graphs[i] = gtorch_cuda_graph_new ();
      capture = begin (graphs[i], NULL, pool);
      y[i] = gtorch_tensor_mul_scalar (x, i + 1, NULL);
      end (capture);
    }
  FAILS (gtorch_cuda_graph_replay (graphs[1], &fault), GTORCH_ERROR_INVALID,
         "graph: graph 2 of pool * is replayed before graph 1 was");
  for (i = 0; i < 6; i++)
    g_assert_true (gtorch_cuda_graph_replay (graphs[i % 3], NULL));
  g_assert_true (gtorch_cuda_graph_replay (graphs[0], NULL));
  g_assert_true (gtorch_cuda_graph_replay (graphs[2], NULL)); /* a graph may be skipped */
  g_assert_true (gtorch_cuda_graph_replay (graphs[2], NULL));
  FAILS (gtorch_cuda_graph_replay (graphs[1], &fault), GTORCH_ERROR_INVALID,
         "graph: graph 2 of pool * is replayed after graph 3, whose results it overwrites");
  g_assert_true (gtorch_cuda_graph_replay (graphs[2], NULL));
  g_clear_object (&graphs[0]); /* now the second is the first */
  g_assert_true (gtorch_cuda_graph_replay (graphs[1], NULL));
  g_assert_true (gtorch_cuda_graph_replay (graphs[2], NULL));

  g_assert_true (gtorch_memory_pool_get_check_order (pool));
  gtorch_memory_pool_set_check_order (pool, FALSE);
  for (i = 0; i < 4; i++)
    g_assert_true (gtorch_cuda_graph_replay (graphs[1 + i % 2], NULL));
  for (i = 0; i < 3; i++)
    {
      g_assert_cmpfloat (test_element (y[i], 0), ==, 3 * (i + 1));
      g_object_unref (y[i]);
      g_clear_object (&graphs[i]);
    }
}

/* Returns a device on which the tests do not run, or NULL. */
static GTorchDevice *
other_device (void)
{
  GTorchDeviceManager *manager = gtorch_device_manager_get_default ();
  GTorchDevice *other = NULL;
  guint i;

  for (i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (manager)); i++)
    {
      g_autoptr (GTorchDevice) device = g_list_model_get_item (G_LIST_MODEL (manager), i);

      if (device != test_device ())
        other = device;
    }
  return other;
}

static void
work_on_another_device_alone_is_an_error (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) theirs = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  GTorchDevice *other = other_device ();
  GTorchGraphCapture *capture;

  if (other == NULL
      || (theirs = gtorch_ones (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT64, other, NULL)) == NULL)
    {
      g_test_skip ("only one device");
      return;
    }
  capture = begin (graph, NULL, NULL);
  y = gtorch_tensor_mul (theirs, theirs, NULL);
  FAILS (gtorch_graph_capture_end (capture, &fault), GTORCH_ERROR_CAPTURE,
         "graph: nothing was captured on *: the operations between begin and end were on *");
  gtorch_graph_capture_unref (capture);
  g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_EMPTY);

  /* a value of theirs that is read is no work on this device */
  capture = begin_in_mode (graph, NULL, NULL, GTORCH_CAPTURE_MODE_RELAXED);
  sum = gtorch_tensor_sum (theirs, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  gtorch_tensor_item_double (sum, NULL);
  FAILS (gtorch_graph_capture_end (capture, &fault), GTORCH_ERROR_CAPTURE,
         "graph: nothing was captured on *: the operations between begin and end were on *");
  gtorch_graph_capture_unref (capture);
  capture = begin (graph, NULL, NULL);
  g_clear_object (&sum);
  sum = gtorch_tensor_sum (theirs, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  gtorch_tensor_item_double (sum, NULL);
  FAILS (gtorch_graph_capture_end (capture, &fault), GTORCH_ERROR_CAPTURE,
         "graph: nothing was captured on *: the operations between begin and end were on *");
  gtorch_graph_capture_unref (capture);

  /* in other cases it is up to the program */
  capture = begin (graph, NULL, NULL);
  g_clear_object (&y);
  y = gtorch_tensor_mul (theirs, theirs, NULL);
  gtorch_tensor_neg_inplace (x, NULL);
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_cmpfloat (test_element (x, 0), ==, -3);
}

static void
replays_stay_on_their_device (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchStream) stream = NULL;
  GTorchDevice *other = other_device ();
  GTorchGraphCapture *capture;

  if (other == NULL || (stream = gtorch_stream_new (other, 0, NULL)) == NULL)
    {
      g_test_skip ("only one device");
      return;
    }
  capture = begin (graph, NULL, NULL);
  gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  end (capture);
  FAILS (gtorch_cuda_graph_replay_on (graph, stream, &fault), GTORCH_ERROR_DEVICE_MISMATCH,
         "graph: captured on *, it cannot be replayed on a stream of ");
}

/* --- comparison with the operations themselves --- */

static gint n_counted;

/* Returns the number of its calls: a graph must not contain such an operation. */
static gboolean
count_on_host (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  gdouble *values = gtorch_impl_data (call->outputs[0]);
  gint64 i;

  n_counted++;
  for (i = 0; i < call->outputs[0]->numel; i++)
    values[i] = i < 2 ? 0 : n_counted;
  return TRUE;
}

static const GTorchArgSpec counter_args[] = { { "self", GTORCH_ARG_TENSOR, NULL } };
static const GTorchOpClass counter = {
  .name = "counter",
  .id = GTORCH_OP_CUMPROD, /* whose place in the device's table it takes */
  .n_args = 1,
  .n_inputs = 1,
  .n_outputs = 1,
  .promote = GTORCH_PROMOTE_COMMON,
  .loop = -1,
  .dtypes = G_MAXUINT32,
  .args = counter_args,
  .shape = gtorch_shape_same,
};

static void
replays_are_compared (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (100, 3);
  g_autoptr (GTorchTensor) total = filled (100, 0);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) noise = NULL;
  GTorchGraphCapture *capture;
  guint i;

  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_REPLAY); /* as the environment has it done */
  capture = begin (graph, NULL, NULL);
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) square = gtorch_tensor_mul (x, x, NULL); /* their memory is reused */
      g_autoptr (GTorchTensor) more = gtorch_tensor_add_scalar (square, i, 1, NULL);

      gtorch_tensor_add_inplace (total, more, 1, NULL);
    }
  noise = gtorch_randn (GTORCH_SHAPE (100), GTORCH_DTYPE_FLOAT64, NULL, NULL, NULL);
  y = gtorch_tensor_mul (noise, total, NULL);
  end (capture);
  for (i = 0; i < 5; i++)
    {
      g_autoptr (GError) error = NULL;

      gtorch_cuda_graph_replay (graph, &error);
      g_assert_no_error (error);
      g_assert_cmpfloat (test_element (total, 0), ==, 30 * (i + 1)); /* each replay counts once */
    }
  gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_REPLAY);
}

static void
differences_are_named (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (10, 3);
  g_autoptr (GTorchTensor) sum = NULL;
  GTorchGraphCapture *capture;
  GTorchImpl *input = x->impl, *counted;
  GTorchDevice *cpu = gtorch_device_cpu ();
  const GTorchRun *former = cpu->runs;
  g_autofree GTorchRun *runs = g_memdup2 (former, gtorch_n_ops * sizeof *runs);

  if (test_is_elsewhere ("the operation of this test runs on the CPU"))
    return;
  runs[counter.id] = count_on_host;
  cpu->runs = runs;
  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_REPLAY);
  capture = begin (graph, NULL, NULL);
  {
    g_autoptr (GTorchTensor) first = gtorch_tensor_mul (x, x, NULL);

    input = first->impl;
    g_assert_true (gtorch_op_run (&counter, &input, 1, NULL, &counted, NULL));
  }
  {
    g_autoptr (GTorchTensor) wrapped = gtorch_tensor_wrap (counted);

    sum = gtorch_tensor_add_scalar (wrapped, 1, 1, NULL);
  }
  end (capture);
  FAILS (gtorch_cuda_graph_replay (graph, &fault), GTORCH_ERROR_FAILED,
         "graph: the result of the replay differs from that of its operations: node 1, counter of "
         "float64 "
         "?10?, element 2: 0x3ff0000000000000 instead of 0x4000000000000000");
  gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_REPLAY);
}

#define TEST(name) g_test_add_func ("/GTorch/graph/rules/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!test_can_capture ())
    return 0;
  TEST (default_stream_is_not_captured);
  TEST (host_reads_are_refused);
  TEST (work_on_streams_that_take_no_part_is_an_error);
  TEST (work_on_another_device_alone_is_an_error);
  TEST (other_threads_are_not_restricted);
  TEST (work_of_other_threads_is_reported);
  TEST (captures_end_beside_the_work_of_another_thread);
  TEST (ending_in_another_thread_keeps_the_capture);
  TEST (threads_capture_at_the_same_time);
  TEST (forks_must_join);
  TEST (custom_generators_are_captured);
  TEST (existing_gradients_cause_a_warning);
  TEST (empty_captures_cause_a_warning);
  TEST (outside_operands_are_kept_alive);
  TEST (graphs_of_a_pool_replay_in_capture_order);
  TEST (replays_stay_on_their_device);
  TEST (replays_are_compared);
  TEST (differences_are_named);
  return g_test_run ();
}
