/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies from and to pinned memory of the host, and other GPUs, in captured graphs. */

#include "config.h"

#include <gtorch/cuda/memory/gtorch-host-allocator.h>

#include <tests/capture-test.h>
#include "cuda-test.h"

#define N 1000

/* Runs the case once more in a process with these settings. Returns TRUE in that process. */
static gboolean
in_process (const gchar *settings)
{
  g_autofree gchar *former = g_strdup (g_getenv ("GTORCH_FAKE_CUDA"));

  if (g_test_subprocess ())
    return TRUE;
  g_setenv ("GTORCH_FAKE_CUDA", settings, TRUE);
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_setenv ("GTORCH_FAKE_CUDA", former, TRUE);
  g_test_trap_assert_passed ();
  return FALSE;
}

static GTorchTensor *
on_gpu (gdouble value)
{
  GError *error = NULL;
  GTorchTensor *x = gtorch_full (GTORCH_SHAPE (N), value, GTORCH_DTYPE_FLOAT32, gpu (0), &error);

  g_assert_no_error (error);
  return x;
}

static GTorchTensor *
pinned (gdouble value)
{
  g_autoptr (GTorchTensor) plain =
      gtorch_full (GTORCH_SHAPE (N), value, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), NULL);
  GError *error = NULL;
  GTorchTensor *x = gtorch_tensor_pin_memory (plain, &error);

  g_assert_no_error (error);
  return x;
}

static void
assert_all (GTorchTensor *x, gdouble expected)
{
  g_autofree gdouble *values = read_doubles (gtorch_tensor_get_impl (x));
  gint64 i;

  for (i = 0; i < N; i++)
    g_assert_cmpfloat (values[i], ==, expected);
}

static void
replay (GTorchCUDAGraph *graph)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_cuda_graph_replay (graph, &error));
  g_assert_no_error (error);
}

static GTorchStream *
prepared_stream (void)
{
  GTorchStream *stream = gtorch_stream_new (gpu (0), 0, NULL);

  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  return stream;
}

static void
copy (GTorchTensor *to, GTorchTensor *from)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_tensor_copy_inplace (to, from, TRUE, &error));
  g_assert_no_error (error);
}

/* Copies to the GPU, computes and copies back. */
static GTorchCUDAGraph *
round_trip (GTorchTensor *in, GTorchTensor *x, GTorchTensor *out)
{
  g_autoptr (GTorchStream) stream = prepared_stream ();
  GTorchCUDAGraph *graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture = begin (graph, stream, NULL);

  copy (x, in);
  g_assert_true (gtorch_tensor_neg_inplace (x, NULL));
  copy (out, x);
  end (capture);
  return graph;
}

static void
replays_copy_what_is_there (void)
{
  g_autoptr (GTorchTensor) in = pinned (1), out = pinned (0), x = on_gpu (0);
  g_autoptr (GTorchCUDAGraph) graph = round_trip (in, x, out);
  guint i;

  assert_all (out, 0); /* nothing was copied in the capture */
  for (i = 2; i < 20; i++)
    {
      g_assert_true (gtorch_tensor_fill_inplace (in, i, NULL)); /* waits for the last replay */
      replay (graph);
      if (i % 2 == 0)
        assert_all (out, -(gdouble) i); /* waits for this one */
    }
  assert_all (x, -19);
  assert_all (out, -19);
}

static void
the_graph_keeps_the_memory (void)
{
  g_autoptr (GTorchTensor) in = pinned (3), out = pinned (0), x = on_gpu (0);
  g_autoptr (GTorchCUDAGraph) graph = round_trip (in, x, out);
  g_autoptr (GTorchTensor) other = NULL;
  const guint64 before = gtorch_host_allocator_get_allocated (gtorch_host_allocator_get_default ());

  g_clear_object (&in);
  g_clear_object (&out);
  g_assert_cmpuint (gtorch_host_allocator_get_allocated (gtorch_host_allocator_get_default ()), ==,
                    before);
  other = pinned (8); /* does not get the memory */
  replay (graph);
  assert_all (x, -3);
  assert_all (other, 8);
  g_clear_object (&graph);
  g_clear_object (&other);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  gtorch_host_allocator_trim (gtorch_host_allocator_get_default ());
  g_assert_cmpuint (gtorch_host_allocator_get_allocated (gtorch_host_allocator_get_default ()), <,
                    before);
}

static void
new_tensors_are_captured (void)
{
  g_autoptr (GTorchStream) stream = prepared_stream ();
  g_autoptr (GTorchTensor) in = pinned (2), there = NULL, twice = NULL, back = NULL;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = begin (graph, stream, NULL);

  there = gtorch_tensor_to_device (in, gpu (0), TRUE, &error);
  g_assert_no_error (error);
  twice = gtorch_tensor_add (there, there, 1, &error);
  g_assert_no_error (error);
  back = gtorch_tensor_to_device (twice, gtorch_device_cpu (), TRUE, &error);
  g_assert_no_error (error);
  end (capture);
  replay (graph);
  assert_all (back, 4);
  g_assert_true (gtorch_tensor_fill_inplace (in, 5, NULL));
  replay (graph);
  assert_all (back, 10);
  assert_all (there, 5);
}

static void
conversions_are_made_on_the_gpu (void)
{
  g_autoptr (GTorchStream) stream = prepared_stream ();
  g_autoptr (GTorchTensor) in = pinned (2), x = NULL;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture;

  x = gtorch_full (GTORCH_SHAPE (N), 0, GTORCH_DTYPE_FLOAT64, gpu (0), NULL);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  capture = begin (graph, stream, NULL);
  copy (x, in);
  end (capture);
  replay (graph);
  assert_all (x, 2);
}

static void
a_child_graph_copies_too (void)
{
  g_autoptr (GTorchTensor) in = pinned (1), out = pinned (0), x = on_gpu (0);
  g_autoptr (GTorchCUDAGraph) child = round_trip (in, x, out);
  g_autoptr (GTorchStream) stream = prepared_stream ();
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture = begin (graph, stream, NULL);

  replay (child);
  end (capture);
  g_clear_object (&child);
  g_assert_true (gtorch_tensor_fill_inplace (in, 6, NULL));
  replay (graph);
  assert_all (out, -6);
}

static void
assert_refused (GTorchTensor *to, GTorchTensor *from, gboolean non_blocking, const gchar *text)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_tensor_copy_inplace (to, from, non_blocking, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  if (strstr (error->message, text) == NULL)
    g_error ("“%s” is not in “%s”", text, error->message);
}

static void
other_copies_are_refused (void)
{
  const gchar *in = "copy: from cpu to cuda:0 cannot be captured unless the memory of the host is "
                    "pinned";
  const gchar *out = "copy: from cuda:0 to cpu cannot be captured unless the memory of the host is "
                     "pinned";
  g_autoptr (GTorchStream) stream = prepared_stream ();
  g_autoptr (GTorchTensor) host = pinned (2), x = on_gpu (0), plain = NULL, wide = NULL;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture;

  plain = gtorch_full (GTORCH_SHAPE (N), 1, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), NULL);
  wide = gtorch_full (GTORCH_SHAPE (N), 1, GTORCH_DTYPE_FLOAT64, gpu (0), NULL);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  g_assert_true (gtorch_device_synchronize (gpu (1), NULL, NULL));
  capture = begin (graph, stream, NULL);
  assert_refused (x, plain, TRUE, in);
  assert_refused (plain, x, TRUE, out);
  assert_refused (x, host, FALSE, in);
  assert_refused (host, x, FALSE, out);
  assert_refused (host, wide, TRUE, out);
  copy (x, host); /* the capture goes on */
  end (capture);
  replay (graph);
  assert_all (x, 2);
}

static GTorchTensor *
on_other (gdouble value, GTorchDType dtype)
{
  GError *error = NULL;
  GTorchTensor *x = gtorch_full (GTORCH_SHAPE (N), value, dtype, gpu (1), &error);

  g_assert_no_error (error);
  g_assert_true (gtorch_device_synchronize (gpu (1), NULL, NULL));
  return x;
}

static void
copies_between_gpus_are_captured (void)
{
  g_autoptr (GTorchTensor) in = on_other (1, GTORCH_DTYPE_FLOAT32), out = NULL, x = on_gpu (0);
  g_autoptr (GTorchTensor) made = NULL;
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture;
  guint i;

  out = on_other (0, GTORCH_DTYPE_FLOAT32);
  copy (x, in); /* enables the access of one to the other */
  copy (out, x);
  stream = prepared_stream ();
  g_assert_true (gtorch_device_synchronize (gpu (1), NULL, NULL));
  capture = begin (graph, stream, NULL);
  copy (x, in);
  g_assert_true (gtorch_tensor_neg_inplace (x, NULL));
  copy (out, x);
  made = gtorch_tensor_to_device (x, gpu (1), FALSE, &error);
  g_assert_no_error (error);
  end (capture);
  for (i = 2; i < 20; i++)
    { /* the current stream of the other GPU comes before and behind each replay */
      g_assert_true (gtorch_tensor_fill_inplace (in, i, NULL));
      replay (graph);
      g_assert_true (gtorch_tensor_neg_inplace (out, NULL));
      if (i % 3 == 0)
        {
          assert_all (out, i);
          assert_all (made, -(gdouble) i);
          assert_all (x, -(gdouble) i);
        }
    }
  g_clear_object (&in); /* the graph keeps what it copies */
  g_clear_object (&out);
  in = on_other (7, GTORCH_DTYPE_FLOAT32);
  out = on_other (8, GTORCH_DTYPE_FLOAT32);
  replay (graph);
  assert_all (x, -19);
  assert_all (in, 7);
  assert_all (out, 8);
}

static void
conversions_by_the_other_gpu_are_refused (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (1), wide = on_other (1, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) table =
      gtorch_ones (GTORCH_SHAPE (N, 2), GTORCH_DTYPE_FLOAT32, gpu (1), NULL);
  g_autoptr (GTorchTensor) column = gtorch_tensor_select (table, 1, 0, NULL);
  g_autoptr (GTorchStream) stream = prepared_stream (),
                           other = gtorch_stream_new (gpu (1), 0, NULL);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new (), second = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture, *beside;

  g_assert_true (gtorch_device_synchronize (gpu (1), NULL, NULL));
  capture = begin (graph, stream, NULL);
  assert_refused (wide, x, TRUE,
                  "copy: from cuda:0 to cuda:1 cannot be captured unless the tensor");
  assert_refused (x, column, TRUE,
                  "copy: from cuda:1 to cuda:0 cannot be captured unless the tensor");
  copy (x, wide); /* converted on this GPU */
  beside = begin (second, other, NULL);
  assert_refused (x, wide, TRUE, "the current streams of both capture graphs");
  gtorch_graph_capture_unref (beside);
  end (capture);
  replay (graph);
  assert_all (x, 1);
}

/* The only copy is the captured one. */
static void
a_capture_enables_the_access_itself (void)
{
  if (in_process ("devices=2,seed=3"))
    {
      g_autoptr (GTorchTensor) in = on_other (4, GTORCH_DTYPE_FLOAT32), x = on_gpu (0);
      g_autoptr (GTorchStream) stream = prepared_stream ();
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      GTorchGraphCapture *capture = begin (graph, stream, NULL);

      copy (x, in);
      g_assert_cmpuint (fake_cuda_get_calls ("cuMemcpyPeerAsync"), ==, 0);
      end (capture);
      replay (graph);
      assert_all (x, 4);
      assert_no_misuse ();
    }
}

static void
copies_without_peer_access_are_refused (void)
{
  if (in_process ("devices=2,seed=3,peers=0"))
    {
      g_autoptr (GTorchTensor) in = on_other (4, GTORCH_DTYPE_FLOAT32), x = on_gpu (0);
      g_autoptr (GTorchStream) stream = NULL;
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      GTorchGraphCapture *capture;

      copy (x, in); /* through the host */
      stream = prepared_stream ();
      capture = begin (graph, stream, NULL);
      assert_refused (x, in, TRUE,
                      "copy: from cuda:1 to cuda:0 cannot be captured: cuda:0 cannot use the "
                      "memory "
                      "of cuda:1");
      assert_refused (in, x, TRUE,
                      "copy: from cuda:0 to cuda:1 cannot be captured: cuda:0 cannot use the "
                      "memory "
                      "of cuda:1");
      g_assert_true (gtorch_tensor_neg_inplace (x, NULL)); /* the capture goes on */
      end (capture);
      replay (graph);
      assert_all (x, -4);
    }
}

static void
each_call_of_the_driver_may_fail (void)
{
  static const gchar *const names[] = { "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync" };
  g_autoptr (GTorchTensor) host = pinned (2), x = on_gpu (0);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autoptr (GTorchStream) stream = prepared_stream ();
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GError) error = NULL;
      GTorchGraphCapture *capture = begin (graph, stream, NULL);

      fake_cuda_fail (names[i], 1, CUDA_ERROR_NOT_SUPPORTED);
      g_assert_false (i == 0 ? gtorch_tensor_copy_inplace (x, host, TRUE, &error)
                             : gtorch_tensor_copy_inplace (host, x, TRUE, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_assert_true (fake_cuda_clear_faults ());
      copy (x, host);
      end (capture);
      replay (graph);
      assert_all (x, 2);
    }
}

#define TEST(name) g_test_add_func ("/GTorchCudaGraphHost/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (replays_copy_what_is_there);
  TEST (the_graph_keeps_the_memory);
  TEST (new_tensors_are_captured);
  TEST (conversions_are_made_on_the_gpu);
  TEST (a_child_graph_copies_too);
  TEST (other_copies_are_refused);
  TEST (copies_between_gpus_are_captured);
  TEST (conversions_by_the_other_gpu_are_refused);
  TEST (a_capture_enables_the_access_itself);
  TEST (copies_without_peer_access_are_refused);
  TEST (each_call_of_the_driver_may_fail);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
