/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a capture promises is not there before a replay: nobody gets it, and no other graph uses it. */

#include "config.h"

#include "graph-test.h"

typedef GTorchTensor *(*Use) (GTorchTensor *tensor, GTorchTensor *other, GError **error);

static GTorchTensor *
add_to_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return gtorch_tensor_add (other, tensor, 1, error);
}

static GTorchTensor *
sum_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return gtorch_tensor_sum (tensor, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
}

static GTorchTensor *
clone_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return gtorch_tensor_clone (tensor, error);
}

static GTorchTensor *
clone_a_view_of_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  g_autoptr (GTorchTensor) view = gtorch_tensor_slice (tensor, 0, 1, 3, 1, NULL);

  return gtorch_tensor_clone (view, error);
}

static GTorchTensor *
copy_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return gtorch_tensor_copy_inplace (other, tensor, FALSE, error) ? g_object_ref (other) : NULL;
}

static GTorchTensor *
add_into_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return gtorch_tensor_add_inplace (tensor, other, 1, error) ? g_object_ref (tensor) : NULL;
}

static GTorchTensor *
convert_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return gtorch_tensor_to_dtype (tensor, GTORCH_DTYPE_FLOAT32, error);
}

static GTorchTensor *
move_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return gtorch_tensor_to (tensor, GTORCH_DTYPE_NONE, gtorch_device_cpu (), FALSE, TRUE, error);
}

static GTorchTensor *
find_nonzero (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return gtorch_tensor_nonzero (tensor, error);
}

static GTorchTensor *
read_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  gsize n;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (tensor, &n, error);

  return values != NULL ? g_object_ref (tensor) : NULL;
}

static GTorchTensor *
read_item (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  g_autoptr (GTorchTensor) one = gtorch_tensor_select (tensor, 0, 1, NULL);
  GError *local = NULL;

  gtorch_tensor_item_double (one, &local);
  if (local == NULL)
    return g_object_ref (tensor);
  g_propagate_error (error, local);
  return NULL;
}

static GTorchTensor *
read_bytes (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (tensor, error);

  return bytes != NULL ? g_object_ref (tensor) : NULL;
}

static GTorchTensor *
export_it (GTorchTensor *tensor, GTorchStream *stream, gboolean copy, GError **error)
{
  gpointer managed = gtorch_tensor_to_dlpack (tensor, TRUE, copy, stream, error);

  if (managed == NULL)
    return NULL;
  gtorch_dlpack_delete ((gsize) managed, TRUE);
  return g_object_ref (tensor);
}

static GTorchTensor *
export_to_a_stream (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  GTorchDevice *device = gtorch_tensor_get_device (tensor);

  return export_it (tensor, gtorch_device_get_default_stream (device), FALSE, error);
}

static GTorchTensor *
export_to_a_new_stream (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_tensor_get_device (tensor), 0, NULL);

  return export_it (tensor, stream, FALSE, error);
}

static GTorchTensor *
export_to_anyone (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return export_it (tensor, NULL, FALSE, error);
}

static GTorchTensor *
export_a_copy (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  return export_it (tensor, NULL, TRUE, error);
}

static GTorchTensor *
save_it (GTorchTensor *tensor, GTorchTensor *other, GError **error)
{
  g_autoptr (GOutputStream) stream = g_memory_output_stream_new_resizable ();
  g_autoptr (GHashTable) table = g_hash_table_new (g_str_hash, g_str_equal);

  g_hash_table_insert (table, (gpointer) "t", tensor);
  return gtorch_safetensors_save (table, NULL, stream, NULL, NULL, NULL, error)
             ? g_object_ref (tensor)
             : NULL;
}

static const Use uses[] = {
  add_to_it,
  sum_it,
  clone_it,
  clone_a_view_of_it,
  copy_it,
  add_into_it,
  convert_it,
  move_it,
  find_nonzero,
  read_it,
  read_item,
  read_bytes,
  export_to_a_stream,
  export_to_a_new_stream,
  export_to_anyone,
  export_a_copy,
  save_it,
};

/* Nobody gets what no replay has computed, and what does not need it goes on. */
static gpointer
assert_promised (gpointer data)
{
  GTorchTensor *tensor = data;
  g_autoptr (GTorchTensor) view = NULL;
  g_autoptr (GTorchTensor) zeros = NULL;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (uses); i++)
    {
      g_autoptr (GTorchTensor) other = filled (4, 2);
      g_autoptr (GError) error = NULL;

      g_assert_null (uses[i](tensor, other, &error));
      /* DLPack does not know each type of device */
      if (!g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED)
          || strstr (error->message, "DLPack") == NULL)
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
      g_assert_cmpfloat (test_element (other, 0), ==, 2);
    }
  view = gtorch_tensor_reshape (tensor, GTORCH_SHAPE (2, 2), NULL);
  g_assert_nonnull (view);
  zeros = gtorch_tensor_zeros_like (tensor, GTORCH_DTYPE_NONE, NULL);
  g_assert_nonnull (zeros);
  return NULL;
}

static void
results_are_there_from_the_first_replay_on (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) second = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  guint i;

  y = gtorch_tensor_mul (x, x, NULL);
  g_thread_join (g_thread_new ("other", assert_promised, y));
  end (capture);
  assert_promised (y);

  capture = begin (second, NULL, gtorch_cuda_graph_get_pool (graph));
  z = gtorch_tensor_add (y, y, 1, &error);
  g_assert_no_error (error);
  end (capture);
  assert_promised (y);
  assert_promised (z);
  g_assert_true (gtorch_tensor_zero_inplace (z, &error));
  g_assert_no_error (error);

  replay (graph);
  g_assert_cmpfloat (test_element (y, 0), ==, 9);
  assert_promised (z);
  replay (second);
  g_assert_cmpfloat (test_element (z, 3), ==, 18);
  for (i = 0; i < G_N_ELEMENTS (uses); i++)
    {
      g_autoptr (GTorchTensor) other = filled (4, 2);
      g_autoptr (GError) refused = NULL;
      g_autoptr (GTorchTensor) result = uses[i](y, other, &refused);

      if (g_error_matches (refused, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED)
          && strstr (refused->message, "DLPack") != NULL)
        continue;
      g_assert_no_error (refused);
      g_assert_nonnull (result);
    }
}

static void
replays_need_what_other_graphs_compute (void)
{
  for (guint shared = 0; shared < 2; shared++)
    {
      g_autoptr (GTorchCUDAGraph) first = gtorch_cuda_graph_new ();
      g_autoptr (GTorchCUDAGraph) second = gtorch_cuda_graph_new ();
      g_autoptr (GTorchTensor) x = filled (4, 3);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) z = NULL;
      GTorchGraphCapture *capture = begin (first, NULL, NULL);

      y = gtorch_tensor_mul (x, x, NULL);
      end (capture);
      capture = begin (second, NULL, shared ? gtorch_cuda_graph_get_pool (first) : NULL);
      z = gtorch_tensor_add (y, x, 1, NULL);
      end (capture);
      if (shared)
        FAILS (gtorch_cuda_graph_replay (second, &fault), GTORCH_ERROR_INVALID,
               "graph: graph 2 of pool * is replayed before graph 1 was");
      else
        FAILS (gtorch_cuda_graph_replay (second, &fault), GTORCH_ERROR_CAPTURE,
               "graph: it reads a tensor of shape ?4? that was not computed: the graph that "
               "computes it was never replayed");
      assert_promised (z);
      replay (first);
      replay (second);
      g_assert_cmpfloat (test_element (z, 0), ==, 12);
    }
}

static void
replays_do_not_need_what_they_overwrite (void)
{
  g_autoptr (GTorchCUDAGraph) first = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) second = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  GTorchGraphCapture *capture = begin (first, NULL, NULL);

  y = gtorch_tensor_mul (x, x, NULL);
  end (capture);
  capture = begin (second, NULL, NULL);
  g_assert_true (gtorch_tensor_copy_inplace (y, x, FALSE, NULL));
  z = gtorch_tensor_add (y, x, 1, NULL);
  end (capture);
  replay (second);
  g_assert_cmpfloat (test_element (z, 0), ==, 6);
}

/* A graph in a graph gives what the rest of it needs, and needs what it reads. */
static void
needs_of_a_graph_in_a_graph (void)
{
  g_autoptr (GTorchCUDAGraph) first = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) second = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) both = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) half = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  GTorchGraphCapture *capture = begin (first, NULL, NULL);

  y = gtorch_tensor_mul (x, x, NULL);
  end (capture);
  capture = begin (second, NULL, NULL);
  z = gtorch_tensor_add (y, x, 1, NULL);
  end (capture);
  capture = begin (half, NULL, NULL);
  replay (second);
  end (capture);
  capture = begin (both, NULL, NULL);
  replay (first);
  replay (second);
  sum = gtorch_tensor_add (z, y, 1, NULL);
  end (capture);
  FAILS (gtorch_cuda_graph_replay (half, &fault), GTORCH_ERROR_CAPTURE,
         "graph: it reads a tensor of shape ?4? that was not computed");
  replay (both);
  g_assert_cmpfloat (test_element (sum, 0), ==, 21);
  replay (half);
  g_assert_cmpfloat (test_element (z, 0), ==, 12);
}

static void
results_of_a_graph_in_a_graph_are_there_with_its_replay (void)
{
  g_autoptr (GTorchCUDAGraph) inner = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) outer = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (4, 3);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture = begin (inner, NULL, NULL);

  y = gtorch_tensor_mul (x, x, NULL);
  end (capture);
  capture = begin (outer, NULL, NULL);
  replay (inner);
  end (capture);
  assert_promised (y);
  replay (outer);
  g_assert_cmpfloat (test_element (y, 0), ==, 9);
}

static void
results_of_abandoned_captures_are_never_there (void)
{
  guint how;

  for (how = 0; how < 3; how++)
    {
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchTensor) x = filled (4, 3);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) z = NULL;
      GTorchGraphCapture *capture = begin (graph, NULL, NULL);

      y = gtorch_tensor_mul (x, x, NULL);
      if (how == 0)
        gtorch_graph_capture_unref (capture);
      else
        end (capture);
      if (how == 1)
        g_assert_true (gtorch_cuda_graph_reset (graph, NULL));
      if (how == 2)
        g_clear_object (&graph);
      assert_promised (y);
      if (how == 2)
        continue;
      g_assert_true (how == 0 || gtorch_cuda_graph_reset (graph, NULL));
      capture = begin (graph, NULL, NULL);
      z = gtorch_tensor_mul (x, x, NULL);
      end (capture);
      replay (graph);
      g_assert_cmpfloat (test_element (z, 0), ==, 9);
      assert_promised (y);
    }
}

#define TEST(name) g_test_add_func ("/GTorch/graph/promises/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!test_can_capture ())
    return 0;
  TEST (results_are_there_from_the_first_replay_on);
  TEST (replays_need_what_other_graphs_compute);
  TEST (replays_do_not_need_what_they_overwrite);
  TEST (needs_of_a_graph_in_a_graph);
  TEST (results_of_a_graph_in_a_graph_are_there_with_its_replay);
  TEST (results_of_abandoned_captures_are_never_there);
  return g_test_run ();
}
