/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "graph-test.h"

static gdouble
first_of (GTorchTensor *tensor)
{
  return test_element (tensor, 0);
}

static void
set (GTorchTensor *tensor, gdouble value)
{
  g_autoptr (GTorchTensor) other = filled (gtorch_tensor_get_numel (tensor), value);
  g_autoptr (GError) error = NULL;

  gtorch_tensor_copy_inplace (tensor, other, FALSE, &error);
  g_assert_no_error (error);
}

static void
replay_follows_its_inputs (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (100, 2);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture;

  g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_EMPTY);
  capture = begin (graph, NULL, NULL);
  g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_CAPTURING);
  {
    g_autoptr (GTorchTensor) square = gtorch_tensor_mul (x, x, NULL);
    g_autoptr (GTorchTensor) turned = gtorch_tensor_view (square, GTORCH_SHAPE (10, 10), NULL);
    g_autoptr (GTorchTensor) more = gtorch_tensor_add_scalar (turned, 1, 1, NULL);

    y = gtorch_tensor_t (more, NULL);
  }
  end (capture);
  g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_CAPTURED);
  g_assert_cmpuint (gtorch_cuda_graph_get_n_nodes (graph), ==, 2); /* views are no nodes */
  replay (graph);
  g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_READY);
  g_assert_cmpfloat (first_of (y), ==, 5);
  set (x, 7);
  replay (graph);
  g_assert_cmpfloat (first_of (y), ==, 50);
}

static void
capture_computes_nothing (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 1);
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  guint version = gtorch_tensor_get_version (x);

  gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  end (capture);
  g_assert_cmpfloat (first_of (x), ==, 1);
  replay (graph);
  replay (graph);
  g_assert_cmpfloat (first_of (x), ==, 3);
  g_assert_cmpuint (gtorch_tensor_get_version (x), >=, version + 3);
}

static void
memory_is_reused_and_kept (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (1000, 1);
  g_autoptr (GTorchTensor) y = g_object_ref (x);
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  guint i;

  for (i = 0; i < 50; i++)
    {
      GTorchTensor *next = gtorch_tensor_add (y, x, 1, NULL);

      g_object_unref (y);
      y = next;
    }
  end (capture);
  g_assert_cmpuint (gtorch_cuda_graph_get_n_nodes (graph), ==, 50);
  g_assert_cmpuint (gtorch_memory_pool_get_peak_allocated (gtorch_cuda_graph_get_pool (graph)), <=,
                    3 * 8192);
  replay (graph);
  g_assert_cmpfloat (first_of (y), ==, 51);
  g_assert_true (gtorch_cuda_graph_reset (graph, NULL));
  g_assert_cmpfloat (first_of (y), ==, 51); /* the tensor keeps its memory */
}

static void
graph_keeps_inputs_and_generators (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) y = NULL;
  GTorchTensor *x = filled (1000, 3);
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  guint i;

  y = gtorch_tensor_mul_scalar (x, 5, NULL);
  for (i = 0; i < 20; i++)
    gtorch_tensor_add_scalar_inplace (y, i, 1, NULL);
  end (capture);
  g_object_unref (x);
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) other = filled (1000, -1); /* would get freed memory */

      replay (graph);
      g_assert_cmpfloat (first_of (y), ==, 15 + 190);
    }
}

static void
replay_on_any_stream (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  GTorchStream *streams[2] = { gtorch_stream_new (NULL, 0, NULL),
                               gtorch_stream_new (NULL, 0, NULL) };
  g_autoptr (GTorchTensor) x = filled (1000, 0);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture = begin (graph, streams[0], NULL);
  guint i;

  gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  y = gtorch_tensor_mul_scalar (x, 2, NULL);
  end (capture);
  /* waits until x is computed */
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
  for (i = 0; i < 300; i++) /* they do not overlap */
    g_assert_true (gtorch_cuda_graph_replay_on (graph, streams[i % 2], NULL));
  g_assert_cmpfloat (first_of (y), ==, 600); /* a host read waits for the last replay */
  g_assert_cmpfloat (first_of (x), ==, 300);
  g_clear_object (&streams[1]);
  g_clear_object (&streams[0]);
}

static gboolean
step (GTorchStream *stream, gpointer data, GError **error)
{
  GTorchTensor **t = data; /* input, target, weight, loss */
  g_autoptr (GTorchTensor) prediction = NULL;
  g_autoptr (GTorchTensor) difference = NULL;
  g_autoptr (GTorchTensor) square = NULL;
  g_autoptr (GTorchTensor) gradient = NULL;
  g_autoptr (GTorchTensor) detached = NULL;

  if ((prediction = gtorch_tensor_matmul (t[0], t[2], error)) == NULL
      || (difference = gtorch_tensor_sub (prediction, t[1], 1, error)) == NULL
      || (square = gtorch_tensor_mul (difference, difference, error)) == NULL)
    return FALSE;
  g_clear_object (&t[3]);
  t[3] = gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  if (t[3] == NULL || !gtorch_tensor_set_grad (t[2], NULL, error)
      || !gtorch_tensor_backward (t[3], NULL, FALSE, FALSE, error))
    return FALSE;
  gradient = gtorch_tensor_get_grad (t[2]);
  detached = gtorch_tensor_detach (t[2], error);
  return detached != NULL && gtorch_tensor_sub_inplace (detached, gradient, 0.01, error) != NULL;
}

static void
training (GTorchTensor **t)
{
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (1);
  g_autoptr (GError) error = NULL;

  t[0] = gtorch_randn (GTORCH_SHAPE (8, 3), GTORCH_DTYPE_FLOAT64, NULL, generator, &error);
  t[1] = gtorch_randn (GTORCH_SHAPE (8, 2), GTORCH_DTYPE_FLOAT64, NULL, generator, &error);
  t[2] = gtorch_randn (GTORCH_SHAPE (3, 2), GTORCH_DTYPE_FLOAT64, NULL, generator, &error);
  t[3] = NULL;
  gtorch_tensor_set_requires_grad (t[2], TRUE, &error);
  g_assert_no_error (error);
}

static void
whole_training_step_is_captured (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GError) error = NULL;
  GTorchTensor *eager[4], *captured[4];
  guint i;

  training (eager);
  training (captured);
  gtorch_cuda_graph_capture (graph, NULL, NULL, step, captured, &error);
  g_assert_no_error (error);
  for (i = 0; i < 30; i++)
    {
      g_assert_true (step (NULL, eager, &error));
      replay (graph);
      g_assert_cmpfloat (first_of (eager[3]), ==, first_of (captured[3]));
      g_assert_cmpfloat (first_of (eager[2]), ==, first_of (captured[2]));
    }
  for (i = 0; i < 4; i++)
    {
      g_object_unref (eager[i]);
      g_object_unref (captured[i]);
    }
}

static void
random_numbers_continue_as_without_a_graph (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchGenerator) own = gtorch_generator_new_with_seed (4);
  g_autoptr (GTorchTensor) a = NULL;
  g_autoptr (GTorchTensor) b = NULL;
  GTorchGraphCapture *capture;
  gdouble expected[3][2];
  guint i;

  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) x = NULL;
      g_autoptr (GTorchTensor) y = NULL;

      if (i == 0)
        gtorch_manual_seed (8);
      x = gtorch_rand (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT64, NULL, NULL, NULL);
      y = gtorch_randn (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT64, NULL, own, NULL);
      expected[i][0] = first_of (x);
      expected[i][1] = first_of (y);
    }
  gtorch_manual_seed (8);
  gtorch_generator_set_seed (own, 4);
  capture = begin (graph, NULL, NULL);
  a = gtorch_rand (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT64, NULL, NULL, NULL);
  b = gtorch_randn (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT64, NULL, own, NULL);
  end (capture);
  for (i = 0; i < 3; i++)
    {
      replay (graph);
      g_assert_cmpfloat (first_of (a), ==, expected[i][0]);
      g_assert_cmpfloat (first_of (b), ==, expected[i][1]);
    }
}

static void
streams_fork_and_join (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) first = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) second = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchTensor) x = filled (10, 3);
  g_autoptr (GTorchTensor) a = NULL;
  g_autoptr (GTorchTensor) b = NULL;
  g_autoptr (GTorchTensor) c = NULL;
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = begin (graph, first, NULL);

  a = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_assert_true (gtorch_stream_wait_stream (second, first, &error));
  g_assert_true (gtorch_stream_is_capturing (second));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (second);

    b = gtorch_tensor_add_scalar (a, 1, 1, NULL);
  }
  g_assert_true (gtorch_stream_wait_stream (first, second, &error));
  c = gtorch_tensor_mul (a, b, NULL);
  end (capture);
  g_assert_false (gtorch_stream_is_capturing (second));
  replay (graph);
  g_assert_cmpfloat (first_of (c), ==, 42);
}

static void
stream_that_does_not_join_is_an_error (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) first = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) second = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchEvent) event = NULL;
  g_autoptr (GTorchTensor) x = filled (10, 3);
  g_autoptr (GTorchTensor) b = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGraphCapture) capture = begin (graph, first, NULL);

  event = gtorch_stream_record_event (first, NULL);
  g_assert_false (gtorch_event_query (event));
  g_assert_false (gtorch_event_synchronize (event, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_clear_error (&error);
  g_assert_false (
      gtorch_stream_wait_event (gtorch_device_get_default_stream (test_device ()), event, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_clear_error (&error);
  g_assert_true (gtorch_stream_wait_event (second, event, NULL));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (second);

    b = gtorch_tensor_add_scalar (x, 1, 1, NULL);
  }
  g_assert_false (gtorch_graph_capture_end (capture, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_assert_nonnull (strstr (error->message, "add"));
  g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_EMPTY);
  g_assert_false (gtorch_stream_is_capturing (first));
  g_assert_false (gtorch_stream_is_capturing (second));
  g_assert_true (gtorch_event_query (event));
  g_assert_true (gtorch_stream_is_default (gtorch_stream_get_current (NULL)));
}

#define REFUSED(call)                                           \
  G_STMT_START                                                  \
  {                                                             \
    g_autoptr (GError) error = NULL;                            \
    g_assert_false ((call));                                    \
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE); \
  }                                                             \
  G_STMT_END

static void
order_of_calls_is_checked (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) other = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) elsewhere = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GOutputStream) output = g_memory_output_stream_new_resizable ();

  REFUSED (gtorch_cuda_graph_capture_end (graph, &error));
  REFUSED (gtorch_cuda_graph_replay (graph, &error));
  REFUSED (gtorch_cuda_graph_instantiate (graph, &error));
  REFUSED (gtorch_cuda_graph_debug_dump (graph, output, NULL, &error));
  REFUSED (gtorch_cuda_graph_capture_begin (graph, NULL, MODE, &error)); /* the default stream */
  REFUSED (gtorch_cuda_graph_capture_begin (graph, NULL, 17, &error));

  gtorch_stream_set_current (stream);
  g_assert_true (gtorch_cuda_graph_capture_begin (graph, NULL, MODE, NULL));
  REFUSED (gtorch_cuda_graph_capture_begin (graph, NULL, MODE, &error));
  REFUSED (gtorch_cuda_graph_capture_begin (other, NULL, MODE, &error));
  REFUSED (gtorch_cuda_graph_replay (graph, &error));
  REFUSED (gtorch_cuda_graph_reset (graph, &error));
  REFUSED (gtorch_stream_synchronize (stream, NULL, &error));
  REFUSED (gtorch_device_synchronize (test_device (), NULL, &error));
  REFUSED (gtorch_stream_wait_stream (stream, elsewhere, &error));
  gtorch_stream_set_current (elsewhere);
  REFUSED (gtorch_cuda_graph_capture_end (graph, &error));
  g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_CAPTURING);
  gtorch_stream_set_current (stream);
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "*nothing was captured*");
  g_assert_true (gtorch_cuda_graph_capture_end (graph, NULL));
  g_test_assert_expected_messages ();
  REFUSED (gtorch_cuda_graph_capture_begin (graph, NULL, MODE, &error)); /* not empty */
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));                /* an empty graph */
  g_assert_true (gtorch_cuda_graph_reset (graph, NULL));
  REFUSED (gtorch_cuda_graph_replay (graph, &error));
  gtorch_stream_set_current (gtorch_device_get_default_stream (test_device ()));
}

static gpointer
end_elsewhere (gpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_cuda_graph_capture_end (data, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  return NULL;
}

static gpointer
read_elsewhere (gpointer data)
{
  return GINT_TO_POINTER (gtorch_impl_sync (gtorch_tensor_get_impl (data), NULL));
}

static void
host_reads_are_refused (void)
{
  /* reads in the capturing thread, by mode */
  static const gboolean own[] = { FALSE, FALSE, TRUE };
  static const gboolean others[] = { TRUE, FALSE, TRUE }; /* reads in another thread */
  guint mode;

  for (mode = 0; mode < 3; mode++)
    {
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchTensor) x = filled (10, 3);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchGraphCapture) capture =
          gtorch_graph_capture_new (graph, NULL, NULL, mode, NULL);

      y = gtorch_tensor_mul (x, x, NULL);
      g_assert_cmpint (gtorch_impl_sync (x->impl, NULL), ==, own[mode]);
      g_assert_cmpint (GPOINTER_TO_INT (g_thread_join (g_thread_new ("read", read_elsewhere, x))),
                       ==, others[mode]);
      g_assert_false (GPOINTER_TO_INT (g_thread_join (g_thread_new ("read", read_elsewhere, y))));
      g_assert_false (gtorch_impl_sync (y->impl, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
      g_thread_join (g_thread_new ("end", end_elsewhere, graph));
      g_assert_true (gtorch_graph_capture_end (capture, NULL)); /* a refusal does no harm */
      replay (graph);
      g_assert_cmpfloat (first_of (y), ==, 9);
    }
}

static gboolean
fail (GTorchStream *stream, gpointer data, GError **error)
{
  g_autoptr (GTorchTensor) a = gtorch_tensor_add_scalar (data, 1, 1, NULL);
  g_autoptr (GTorchTensor) wrong = filled (3, 0);

  return gtorch_tensor_add (a, wrong, 1, error) != NULL;
}

static void
failed_capture_leaves_an_empty_graph (void)
{
  guint64 before;

  /* frees the graphs of other tests */
  gtorch_allocator_trim (gtorch_device_get_allocator (test_device ()));
  before = gtorch_device_get_memory_allocated (test_device ());
  {
    g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
    g_autoptr (GTorchTensor) x = filled (10000, 3);
    g_autoptr (GTorchTensor) y = NULL;
    g_autoptr (GError) error = NULL;

    g_assert_false (gtorch_cuda_graph_capture (graph, NULL, NULL, fail, x, &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
    g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_EMPTY);
    g_assert_true (gtorch_stream_is_default (gtorch_stream_get_current (NULL)));
    {
      g_autoptr (GTorchGraphCapture) dropped = begin (graph, NULL, NULL);

      y = gtorch_tensor_mul (x, x, NULL);
      g_assert_nonnull (dropped);
    }
    g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_EMPTY);
    g_assert_true (gtorch_stream_is_default (gtorch_stream_get_current (NULL)));
  }
  g_assert_cmpuint (gtorch_device_get_memory_allocated (test_device ()), ==, before);
}

static void
graph_may_be_dropped_in_the_middle (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  GTorchCUDAGraph *graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (1000, 1);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture;

  /* waits until x is computed */
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
  gtorch_stream_set_current (stream);
  g_assert_true (gtorch_cuda_graph_capture_begin (graph, NULL, MODE, NULL));
  y = gtorch_tensor_mul (x, x, NULL);
  g_object_unref (graph);
  g_assert_false (gtorch_stream_is_capturing (stream));
  g_clear_object (&y);
  gtorch_stream_set_current (gtorch_device_get_default_stream (test_device ()));

  graph = gtorch_cuda_graph_new ();
  capture = begin (graph, stream, NULL);
  y = gtorch_tensor_add_scalar (x, 1, 1, NULL);
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay_on (graph, stream, NULL));
  g_object_unref (graph); /* while the replay is running */
  g_assert_cmpfloat (first_of (y), ==, 2);
}

static void
graphs_share_a_pool (void)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (NULL);
  g_autoptr (GTorchCUDAGraph) first = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) second = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (1000, 2);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  GTorchGraphCapture *capture = begin (first, NULL, pool);
  guint64 reserved;

  {
    g_autoptr (GTorchTensor) a = gtorch_tensor_mul (x, x, NULL);

    y = gtorch_tensor_mul (a, x, NULL);
  }
  end (capture);
  g_assert_true (gtorch_cuda_graph_get_pool (first) == pool);
  reserved = gtorch_memory_pool_get_reserved (pool);
  capture = begin (second, NULL, gtorch_cuda_graph_get_pool (first));
  z = gtorch_tensor_add_scalar (y, 1, 1, NULL);
  end (capture);
  g_assert_cmpuint (gtorch_memory_pool_get_reserved (pool), ==, reserved);
  replay (first);
  replay (second);
  g_assert_cmpfloat (first_of (z), ==, 9);
  g_assert_cmpfloat (first_of (y), ==, 8);
}

static void
graph_becomes_a_child_graph (void)
{
  g_autoptr (GTorchCUDAGraph) inner = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) outer = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (10, 1);
  GTorchGraphCapture *capture = begin (inner, NULL, NULL);

  gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  end (capture);
  capture = begin (outer, NULL, NULL);
  g_assert_true (gtorch_cuda_graph_replay (inner, NULL));
  gtorch_tensor_mul_scalar_inplace (x, 10, NULL);
  g_assert_true (gtorch_cuda_graph_replay (inner, NULL));
  end (capture);
  g_assert_cmpfloat (first_of (x), ==, 1);
  g_clear_object (&inner);
  replay (outer);
  g_assert_cmpfloat (first_of (x), ==, 21);
}

static void
child_graph_has_its_own_memory (void)
{
  g_autoptr (GTorchCUDAGraph) inner = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) outer = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (10, 1);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = begin (inner, NULL, NULL);

  y = gtorch_tensor_exp (x, NULL);
  end (capture);
  capture = begin (outer, NULL, gtorch_cuda_graph_get_pool (inner));
  g_assert_false (gtorch_cuda_graph_replay (inner, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  end (capture);
  replay (inner); /* in the order of their captures */
  replay (outer);
  g_assert_cmpfloat (first_of (x), ==, 2);
}

/* Replays of a graph alone and as a part of another graph use the same memory. */
static void
child_graph_replays_do_not_overlap (void)
{
  g_autoptr (GTorchCUDAGraph) inner = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) outer = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) other = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchTensor) x = filled (20000, 1);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) result = NULL;
  GTorchGraphCapture *capture;
  guint i;

  /* because the other stream uses x */
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
  capture = begin (inner, stream, NULL);
  y = gtorch_tensor_mul_scalar (x, 0, NULL);
  for (i = 0; i < 10; i++)
    g_assert_nonnull (gtorch_tensor_add_inplace (y, x, 1, NULL));
  end (capture);
  capture = begin (outer, other, NULL);
  g_assert_true (gtorch_cuda_graph_replay (inner, NULL));
  result = gtorch_tensor_mul_scalar (y, 2, NULL);
  end (capture);
  for (i = 0; i < 50; i++)
    {
      g_autofree gdouble *values = NULL;
      gsize n, j;

      g_assert_true (gtorch_cuda_graph_replay_on (inner, stream, NULL));
      g_assert_true (gtorch_cuda_graph_replay_on (outer, other, NULL));
      g_assert_true (gtorch_cuda_graph_replay_on (inner, stream, NULL));
      g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
      g_assert_true (gtorch_stream_synchronize (other, NULL, NULL));
      values = gtorch_tensor_to_doubles (result, &n, NULL);
      for (j = 0; j < n; j++)
        g_assert_cmpfloat (values[j], ==, 20);
    }
}

static void
pass_gate (gpointer data)
{
  while (!g_atomic_int_get ((gint *) data))
    g_usleep (100);
}

static gpointer
open_soon (gpointer data)
{
  g_usleep (20000);
  g_atomic_int_set ((gint *) data, TRUE);
  return NULL;
}

/* The part waits on one stream while the other graph is replayed on another. */
static void
child_graph_replays_are_ordered (void)
{
  g_autoptr (GTorchCUDAGraph) part = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) first = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) second = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchTensor) x = filled (10, 1);
  g_autoptr (GTorchTensor) between = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture = begin (part, NULL, NULL);
  GThread *thread;
  gint go = FALSE;

  between = gtorch_tensor_mul_scalar (x, 2, NULL);
  end (capture);
  capture = begin (graph, NULL, NULL);
  replay (part);
  y = gtorch_tensor_add_scalar (between, 1, 1, NULL);
  end (capture);
  replay (graph); /* loads the kernels now: later, loading would wait */
  replay (part);
  g_assert_cmpfloat (first_of (y), ==, 3);

  thread = g_thread_new ("gate", open_soon, &go);
  test_enqueue (first, pass_gate, &go);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (first);

    gtorch_tensor_fill_inplace (x, 5, NULL);
  }
  g_assert_true (gtorch_cuda_graph_replay_on (part, first, NULL));
  g_assert_true (gtorch_cuda_graph_replay_on (graph, second, NULL));
  g_assert_true (gtorch_stream_synchronize (first, NULL, NULL));
  g_assert_true (gtorch_stream_synchronize (second, NULL, NULL));
  g_thread_join (thread);
  g_assert_cmpfloat (first_of (y), ==, 11);
}

static void
dump_shows_nodes_and_edges (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GOutputStream) output = g_memory_output_stream_new_resizable ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GTorchTensor) x = filled (10, 1);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  g_autofree gchar *text = NULL;

  y = gtorch_tensor_mul (x, x, NULL);
  z = gtorch_tensor_add (y, x, 1, NULL);
  end (capture);
  g_assert_true (gtorch_cuda_graph_debug_dump (graph, output, NULL, NULL));
  text = g_strndup (g_memory_output_stream_get_data (G_MEMORY_OUTPUT_STREAM (output)),
                    g_memory_output_stream_get_data_size (G_MEMORY_OUTPUT_STREAM (output)));
  g_assert_true (g_str_has_prefix (text, "digraph"));
  g_assert_nonnull (strstr (text, "0: mul\\nfloat64 [10]"));
  g_assert_nonnull (strstr (text, "n0 -> n1;"));
  g_cancellable_cancel (cancellable);
  g_assert_false (gtorch_cuda_graph_debug_dump (graph, output, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static void
count (GTorchCUDAGraph *graph, gpointer data)
{
  (*(guint *) data)++;
}

static void
signals_are_emitted_in_the_owners_context (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchTensor) x = filled (10, 1);
  guint n_captured = 0, n_replayed = 0;
  GTorchGraphCapture *capture;

  g_signal_connect (graph, "captured", G_CALLBACK (count), &n_captured);
  g_signal_connect (graph, "replayed", G_CALLBACK (count), &n_replayed);
  capture = begin (graph, NULL, NULL);
  gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  end (capture);
  g_assert_cmpuint (n_captured, ==, 1);
  replay (graph);
  while (test_device () != gtorch_device_cpu () && n_replayed == 0)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (n_replayed, ==, 1); /* immediately, on a device that works synchronously */
  g_assert_true (gtorch_cuda_graph_replay_on (graph, stream, NULL));
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  while (n_replayed < 2)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (n_replayed, ==, 2);
}

#define TEST(name) g_test_add_func ("/GTorch/graph/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!test_can_capture ())
    return 0;
  TEST (replay_follows_its_inputs);
  TEST (capture_computes_nothing);
  TEST (memory_is_reused_and_kept);
  TEST (graph_keeps_inputs_and_generators);
  TEST (replay_on_any_stream);
  TEST (whole_training_step_is_captured);
  TEST (random_numbers_continue_as_without_a_graph);
  TEST (streams_fork_and_join);
  TEST (stream_that_does_not_join_is_an_error);
  TEST (order_of_calls_is_checked);
  TEST (host_reads_are_refused);
  TEST (failed_capture_leaves_an_empty_graph);
  TEST (graph_may_be_dropped_in_the_middle);
  TEST (graphs_share_a_pool);
  TEST (graph_becomes_a_child_graph);
  TEST (child_graph_has_its_own_memory);
  TEST (child_graph_replays_are_ordered);
  TEST (child_graph_replays_do_not_overlap);
  TEST (dump_shows_nodes_and_edges);
  TEST (signals_are_emitted_in_the_owners_context);
  return g_test_run ();
}
