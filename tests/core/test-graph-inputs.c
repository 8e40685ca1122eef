/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Inputs of graphs, by name and with other addresses; warm-up. */

#include "config.h"

#include <string.h>

#include "graph-test.h"

/* y = 2 x + b; x is a named input */
static GTorchCUDAGraph *
graph_new (GTorchTensor *x, GTorchTensor *b, GTorchTensor **y)
{
  GTorchCUDAGraph *graph = gtorch_cuda_graph_new ();
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = gtorch_graph_capture_new (graph, NULL, NULL, MODE, &error);
  g_autoptr (GTorchTensor) twice = NULL;

  g_assert_no_error (error);
  twice = gtorch_tensor_mul_scalar (x, 2, NULL);
  *y = gtorch_tensor_add (twice, b, 1, NULL);
  end (capture);
  gtorch_cuda_graph_add_input (graph, "x", x, &error);
  gtorch_cuda_graph_add_input (graph, "b", b, &error);
  g_assert_no_error (error);
  return graph;
}

static void
inputs_have_names (void)
{
  g_autoptr (GTorchTensor) x = filled (4, 1);
  g_autoptr (GTorchTensor) b = filled (4, 10);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) other = filled (4, 5);
  g_autoptr (GTorchTensor) shorter = filled (3, 5);
  g_autoptr (GTorchTensor) narrow = gtorch_tensor_to_dtype (other, GTORCH_DTYPE_FLOAT32, NULL);
  g_autoptr (GTorchTensor) host =
      gtorch_full (GTORCH_SHAPE (4), 7, GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), NULL);
  g_autoptr (GTorchCUDAGraph) graph = graph_new (x, b, &y);
  g_auto (GStrv) names = gtorch_cuda_graph_get_input_names (graph);
  g_autoptr (GError) error = NULL;

  g_assert_cmpstrv (names, ((const gchar *const[]){ "b", "x", NULL }));
  g_assert_true (gtorch_cuda_graph_get_input (graph, "x") == x);
  g_assert_null (gtorch_cuda_graph_get_input (graph, "z"));
  g_assert_true (gtorch_cuda_graph_set_input (graph, "x", other, &error));
  g_assert_no_error (error);
  replay (graph);
  g_assert_cmpfloat (test_element (y, 3), ==, 20);
  g_assert_true (gtorch_cuda_graph_set_input (graph, "x", host, &error));
  g_assert_no_error (error);
  replay (graph);
  g_assert_cmpfloat (test_element (y, 3), ==, 24);

  FAILS (gtorch_cuda_graph_add_input (graph, "x", other, &fault), GTORCH_ERROR_INVALID,
         "graph: it has an input “x” already");
  FAILS (gtorch_cuda_graph_set_input (graph, "z", other, &fault), GTORCH_ERROR_NOT_FOUND,
         "graph: it has no input “z”; its inputs are [b, x]");
  FAILS (gtorch_cuda_graph_set_input (graph, "x", shorter, &fault), GTORCH_ERROR_SHAPE,
         "graph: input “x” has shape [4], the tensor for it [3]");
  FAILS (gtorch_cuda_graph_set_input (graph, "x", narrow, &fault), GTORCH_ERROR_DTYPE,
         "graph: input “x” has dtype float64, the tensor for it float32");
  gtorch_tensor_release (other);
  FAILS (gtorch_cuda_graph_set_input (graph, "x", other, &fault), GTORCH_ERROR_RELEASED,
         "graph: a tensor of shape [4] for input “x” was released");
}

static void
inputs_are_replaced_without_a_copy (void)
{
  g_autoptr (GTorchTensor) x = filled (4, 1);
  g_autoptr (GTorchTensor) b = filled (4, 10);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) rows = gtorch_arange (0, 8, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) second = gtorch_tensor_narrow (rows, 0, 4, 4, NULL);
  g_autoptr (GTorchCUDAGraph) graph = graph_new (x, b, &y);
  g_autoptr (GError) error = NULL;
  GTorchTensor *weak = x;

  g_assert_true (gtorch_cuda_graph_rebind_input (graph, "x", second, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_cuda_graph_get_input (graph, "x") == second);
  g_assert_cmpuint (gtorch_cuda_graph_get_n_nodes (graph), ==, 2);
  replay (graph);
  g_assert_cmpfloat (test_element (y, 0), ==, 18);
  g_assert_cmpfloat (test_element (y, 3), ==, 24);
  gtorch_tensor_fill_inplace (rows, 3, NULL); /* the graph reads it without a copy */
  replay (graph);
  g_assert_cmpfloat (test_element (y, 3), ==, 16);

  g_object_add_weak_pointer (G_OBJECT (x), (gpointer *) &weak);
  g_clear_object (&x);
  g_assert_null (weak); /* the graph has dropped it */
}

static void
written_inputs_are_replaced_too (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) total = filled (4, 1);
  g_autoptr (GTorchTensor) other = filled (4, 100);
  GTorchGraphCapture *capture = gtorch_graph_capture_new (graph, NULL, NULL, MODE, NULL);
  guint version;

  gtorch_tensor_add_scalar_inplace (total, 1, 1, NULL);
  end (capture);
  replay (graph);
  g_assert_true (gtorch_cuda_graph_rebind (graph, total, other, NULL));
  version = gtorch_tensor_get_version (other);
  replay (graph);
  replay (graph);
  g_assert_cmpfloat (test_element (total, 0), ==, 2);
  g_assert_cmpfloat (test_element (other, 0), ==, 102);
  g_assert_cmpuint (gtorch_tensor_get_version (other), ==, version + 2);
}

static void
running_replays_keep_the_old_input (void)
{
  g_autoptr (GTorchTensor) x = filled (100000, 1);
  g_autoptr (GTorchTensor) b = filled (100000, 10);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) kept = filled (100000, 0);
  g_autoptr (GTorchTensor) other = filled (100000, 5);
  g_autoptr (GTorchCUDAGraph) graph = graph_new (x, b, &y);
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  guint i;

  /* waits until all inputs are computed */
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
  for (i = 0; i < 20; i++)
    {
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

      g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
      g_assert_nonnull (gtorch_tensor_copy_inplace (kept, y, FALSE, NULL));
      g_assert_true (gtorch_cuda_graph_rebind_input (graph, "x", i % 2 == 0 ? other : x, NULL));
      g_assert_cmpfloat (test_element (kept, 99999), ==, i % 2 == 0 ? 12 : 20);
    }
}

static void
rebinding_is_checked (void)
{
  g_autoptr (GTorchTensor) rows = filled (8, 1);
  g_autoptr (GTorchTensor) x = gtorch_tensor_narrow (rows, 0, 0, 4, NULL);
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (rows, 0, 0, 2, NULL);
  g_autoptr (GTorchTensor) b = filled (4, 10);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) two = filled (2, 0);
  g_autoptr (GTorchTensor) four = filled (4, 0);
  g_autoptr (GTorchTensor) eight = filled (8, 0);
  g_autoptr (GTorchTensor) strided = NULL;
  g_autoptr (GTorchTensor) view = NULL;
  g_autoptr (GTorchCUDAGraph) empty = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) graph = graph_new (x, b, &y);

  view = gtorch_tensor_view (eight, GTORCH_SHAPE (4, 2), NULL);
  strided = gtorch_tensor_select (view, 1, 0, NULL);
  FAILS (gtorch_cuda_graph_rebind (empty, x, four, &fault), GTORCH_ERROR_CAPTURE,
         "graph: nothing was captured");
  FAILS (gtorch_cuda_graph_rebind (graph, four, x, &fault), GTORCH_ERROR_NOT_FOUND,
         "graph: it does not use the tensor of shape [4]");
  FAILS (gtorch_cuda_graph_rebind (graph, part, two, &fault), GTORCH_ERROR_INVALID,
         "graph: mul uses more of the memory than the tensor of shape [2]");
  FAILS (gtorch_cuda_graph_rebind (graph, y, four, &fault), GTORCH_ERROR_INVALID,
         "graph: the tensor of shape [4] is computed by a graph");
  FAILS (gtorch_cuda_graph_rebind_input (graph, "x", eight, &fault), GTORCH_ERROR_SHAPE,
         "graph: input “x” has shape [4], the tensor for it [8]");
  FAILS (gtorch_cuda_graph_rebind_input (graph, "x", strided, &fault), GTORCH_ERROR_INVALID,
         "graph: input “x” has strides [1], the tensor for it [2]");
  FAILS (gtorch_cuda_graph_rebind_input (graph, "z", four, &fault), GTORCH_ERROR_NOT_FOUND, "“z”");
  replay (graph);
  g_assert_cmpfloat (test_element (y, 0), ==, 12); /* nothing has changed */
}

typedef struct
{
  GTorchTensor *x;
  GTorchTensor *y;
  guint n_calls;
  guint n_captured;
  guint fails_at;
} Step;

static gboolean
step (GTorchStream *stream, gpointer data, GError **error)
{
  Step *self = data;

  g_assert_true (gtorch_stream_get_current (test_device ()) == stream);
  g_assert_false (gtorch_stream_is_default (stream));
  self->n_captured += gtorch_stream_is_capturing (stream);
  if (++self->n_calls == self->fails_at)
    return FALSE;
  g_clear_object (&self->y);
  gtorch_tensor_add_scalar_inplace (self->x, 1, 1, error);
  self->y = gtorch_tensor_mul (self->x, self->x, error);
  return self->y != NULL;
}

static void
functions_are_warmed_up (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 0);
  g_autoptr (GError) error = NULL;
  Step self = { .x = x };

  g_assert_cmpuint (gtorch_cuda_graph_get_warmup_iterations (graph), ==, 0);
  gtorch_cuda_graph_set_warmup_iterations (graph, 3);
  gtorch_cuda_graph_capture (graph, NULL, NULL, step, &self, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (self.n_calls, ==, 4);
  g_assert_cmpuint (self.n_captured, ==, 1);
  g_assert_cmpfloat (test_element (x, 0), ==, 3);
  g_assert_true (gtorch_stream_is_default (gtorch_stream_get_current (test_device ())));
  replay (graph);
  g_assert_cmpfloat (test_element (self.y, 0), ==, 16);

  g_assert_true (gtorch_cuda_graph_reset (graph, NULL));
  self.fails_at = 6;
  FAILS (gtorch_cuda_graph_capture (graph, NULL, NULL, step, &self, &fault), GTORCH_ERROR_FAILED,
         "warming up: graph: the function failed without an error");
  g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_EMPTY);
  g_assert_cmpuint (self.n_captured, ==, 1);
  g_clear_object (&self.y);
}

#define TEST(name) g_test_add_func ("/GTorch/graph/inputs/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!test_can_capture ())
    return 0;
  TEST (inputs_have_names);
  TEST (inputs_are_replaced_without_a_copy);
  TEST (written_inputs_are_replaced_too);
  TEST (running_replays_keep_the_old_input);
  TEST (rebinding_is_checked);
  TEST (functions_are_warmed_up);
  return g_test_run ();
}
