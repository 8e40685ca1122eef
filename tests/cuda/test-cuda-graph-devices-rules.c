/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures in which streams of several GPUs take part: what is refused and checked, and what other threads do
 * meanwhile. */

#include "config.h"

#include "graph-devices.h"
#include "warnings.h"

/* --- what is refused --- */

static void
assert_says (GError **error, gint code, const gchar *text)
{
  g_assert_error (*error, GTORCH_ERROR, code);
  if (strstr ((*error)->message, text) == NULL)
    g_error ("“%s” is not in “%s”", text, (*error)->message);
  g_clear_error (error);
}

/* Both devices do what they did before. */
static void
assert_usable (void)
{
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) x = full (gpu (i), 3), y = plus (x, x);

      assert_all (y, 6);
    }
  capture_and_replay (gpu (0), gpu (1));
}

static void
a_stream_that_does_not_join_is_named (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1);
  g_autoptr (GError) refusal = NULL;
  g_autofree gchar *text = NULL;
  Results results;

  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  results = compute (&pair, x);
  {
    g_autoptr (GTorchTensor) lost = times (results.there, 2);

    text =
        g_strdup_printf ("graph: stream %p of cuda:1 took part in the capture and the first one, "
                         "%p of cuda:0, did not wait for its last work (mul)",
                         pair.t, pair.s);
  }
  g_assert_false (gtorch_graph_capture_end (pair.capture, &refusal));
  assert_says (&refusal, GTORCH_ERROR_CAPTURE, text);
  pair_abandon (&pair);
  results_clear (&results);
  assert_usable ();
}

static void
a_capture_that_is_given_up_harms_no_gpu (void)
{
  guint64 before;
  guint i;

  empty_caches ();
  before = reserved (1);
  for (i = 0; i < 4; i++)
    {
      g_auto (Pair) pair = { NULL };
      g_autoptr (GTorchTensor) x = full (gpu (0), 1), bad = NULL;
      g_autoptr (GError) refusal = NULL;
      Results results;

      pair_init (&pair, gpu (0), gpu (1));
      pair_begin (&pair, NULL);
      results = compute (&pair, x);
      g_assert_null (gtorch_tensor_matmul (results.there, x, &refusal)); /* on two GPUs */
      g_assert_error (refusal, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
      pair_abandon (&pair);
      results_clear (&results);
    }
  empty_caches ();
  g_assert_cmpuint (reserved (1), ==, before);
  assert_usable ();
}

static void
graphs_of_several_gpus_are_not_repeated (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1), other = full (gpu (0), 2);
  g_autoptr (GTorchStream) stream = TRY (gtorch_stream_new (gpu (0), 0, &error));
  g_autoptr (GTorchCUDAGraph) outer = gtorch_cuda_graph_new ();
  g_autoptr (GError) refusal = NULL;
  GTorchGraphCapture *capture;
  Results results;

  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  results = compute (&pair, x);
  pair_end (&pair);
  g_assert_false (gtorch_cuda_graph_rebind (pair.graph, x, other, &refusal));
  assert_says (&refusal, GTORCH_ERROR_NOT_SUPPORTED,
               "graph: streams of cuda:0 and cuda:1 took part in its capture: its inputs cannot be "
               "replaced");
  settle ();
  capture = begin (outer, stream, NULL);
  g_assert_false (gtorch_cuda_graph_replay (pair.graph, &refusal));
  assert_says (&refusal, GTORCH_ERROR_NOT_SUPPORTED, "it cannot become part of another graph");
  TRY (gtorch_tensor_neg_inplace (other, &error)); /* the capture goes on */
  end (capture);
  replay (&pair);
  assert_all (results.here, 6);
  results_clear (&results);
}

/* A graph of the second GPU alone may be part of it, on a stream of that one. */
static void
a_graph_of_the_second_gpu_becomes_a_part (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (1), 1), y = full (gpu (0), 0), moved = NULL;
  g_autoptr (GTorchStream) stream = TRY (gtorch_stream_new (gpu (1), 0, &error));
  g_autoptr (GTorchCUDAGraph) inner = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture;
  guint i;

  settle ();
  capture = begin (inner, stream, NULL);
  TRY (gtorch_tensor_mul_scalar_inplace (x, 2, &error));
  end (capture);
  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  TRY (gtorch_cuda_graph_replay (inner, &error));
  moved = to (x, gpu (0));
  TRY (gtorch_tensor_add_inplace (y, moved, 1, &error));
  pair_end (&pair);
  g_clear_object (&inner);
  for (i = 0; i < 5; i++)
    replay (&pair);
  assert_all (y, 2 + 4 + 8 + 16 + 32);
  assert_all (x, 32);
}

static void
a_replay_does_not_join_another_capture (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1);
  g_autoptr (GTorchStream) stream = TRY (gtorch_stream_new (gpu (1), 0, &error));
  g_autoptr (GTorchCUDAGraph) other = gtorch_cuda_graph_new ();
  g_autoptr (GError) refusal = NULL;
  GTorchGraphCapture *capture;
  Results results;

  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  results = compute (&pair, x);
  pair_end (&pair);
  replay (&pair);
  settle ();
  capture = begin (other, stream, NULL);
  g_assert_false (gtorch_cuda_graph_replay (pair.graph, &refusal));
  assert_says (&refusal, GTORCH_ERROR_CAPTURE,
               "graph: a replay works on cuda:1, too, and the current stream there, ");
  gtorch_graph_capture_unref (capture);
  replay (&pair);
  assert_all (results.here, 6);
  results_clear (&results);
}

static void
branches_are_on_the_first_gpu (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) flag = full (gpu (0), 1), x = full (gpu (0), 1),
                           there = full (gpu (1), 1);
  g_autoptr (GTorchTensor) one = NULL, other = NULL;
  g_autoptr (GTorchStream) more = TRY (gtorch_stream_new (gpu (1), 0, &error));
  g_autoptr (GTorchCapture) capture = NULL;
  g_autoptr (GError) refusal = NULL;

  one = TRY (gtorch_tensor_select (flag, 0, 0, &error));
  other = TRY (gtorch_tensor_select (there, 0, 0, &error));
  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  capture = gtorch_stream_dup_capture (pair.s);
  g_assert_false (
      gtorch_capture_begin_branch (capture, pair.t, gtorch_tensor_get_impl (other), &refusal));
  assert_says (&refusal, GTORCH_ERROR_NOT_SUPPORTED,
               "graph: a branch on cuda:1 is not supported in a capture that began on cuda:0");
  if (!gtorch_cuda_graph_begin_if (pair.graph, one, &refusal))
    {
      g_test_skip (refusal->message); /* an old driver */
      pair_abandon (&pair);
      return;
    }
  g_assert_false (gtorch_stream_wait_stream (more, pair.s, &refusal));
  assert_says (&refusal, GTORCH_ERROR_CAPTURE, "all of a branch is on the device of the graph");
  g_assert_false (gtorch_tensor_neg_inplace (there, &refusal));
  assert_says (&refusal, GTORCH_ERROR_CAPTURE, "takes part in the capture but not in the branch");
  g_assert_false (gtorch_tensor_copy_inplace (x, there, FALSE, &refusal));
  assert_says (&refusal, GTORCH_ERROR_CAPTURE, "one of the two is in a branch of the graph");
  g_assert_false (gtorch_tensor_copy_inplace (there, x, FALSE, &refusal));
  assert_says (&refusal, GTORCH_ERROR_CAPTURE, "one of the two is in a branch of the graph");
  TRY (gtorch_tensor_neg_inplace (x, &error));
  TRY (gtorch_cuda_graph_end_if (pair.graph, &error));
  TRY (gtorch_tensor_mul_scalar_inplace (there, 5, &error));
  pair_end (&pair);
  replay (&pair);
  assert_all (x, -1);
  assert_all (there, 5);
}

static void
default_streams_take_no_part (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1);
  g_autoptr (GError) refusal = NULL;
  Results results;

  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  results = compute (&pair, x);
  g_assert_false (
      gtorch_stream_wait_stream (gtorch_device_get_default_stream (gpu (1)), pair.s, &refusal));
  assert_says (&refusal, GTORCH_ERROR_CAPTURE, "it is a default stream");
  g_assert_false (gtorch_stream_synchronize (pair.t, NULL, &refusal));
  assert_says (&refusal, GTORCH_ERROR_CAPTURE, "captures a graph");
  pair_end (&pair);
  replay (&pair);
  assert_all (results.here, 6);
  results_clear (&results);
}

/* --- checks --- */

static void
work_on_other_streams_is_refused (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1), there = full (gpu (1), 1);
  g_autoptr (GTorchStream) other = TRY (gtorch_stream_new (gpu (1), 0, &error));
  g_autoptr (GError) refusal = NULL;
  Results results;

  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (other);

    g_assert_false (gtorch_tensor_neg_inplace (there, &refusal));
    assert_says (&refusal, GTORCH_ERROR_CAPTURE, "takes no part in the capture of stream");
  }
  TRY (gtorch_stream_wait_stream (other, pair.t, &error)); /* now it does */
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (other);

    TRY (gtorch_tensor_neg_inplace (there, &error));
  }
  TRY (gtorch_stream_wait_stream (pair.t, other, &error));
  results = compute (&pair, x);
  pair_end (&pair);
  replay (&pair);
  assert_all (there, -1);
  assert_all (results.here, 6);
  results_clear (&results);
}

/* GTORCH_CHECK=streams: the current streams of both are in order with replays, others are not. */
static void
races_with_replays_are_reported (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1), there = full (gpu (1), 1);
  g_autoptr (GTorchStream) other = TRY (gtorch_stream_new (gpu (1), 0, &error));
  guint i;

  count_warnings ();
  gtorch_checks_set (GTORCH_CHECK_STREAMS);
  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  {
    g_autoptr (GTorchTensor) moved = to (x, gpu (1));

    TRY (gtorch_tensor_add_inplace (there, moved, 1, &error));
  }
  pair_end (&pair);
  n_warnings = 0;
  for (i = 0; i < 3; i++)
    {
      replay (&pair);
      TRY (gtorch_tensor_mul_scalar_inplace (there, 2, &error));
    }
  g_assert_cmpuint (n_warnings, ==, 0);
  replay (&pair);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (other);

    TRY (gtorch_tensor_mul_scalar_inplace (there, 2, &error));
  }
  g_assert_cmpuint (n_warnings, ==, 1);
  g_assert_nonnull (strstr (warning, "two streams use one tensor in no defined order"));
  settle ();
  gtorch_checks_set (0);
}

/* --- other threads --- */

typedef struct
{
  gint n_rounds, stop; /* atomic */
} Other;

static gpointer
work_meanwhile (gpointer data)
{
  Other *other = data;
  g_autoptr (GTorchStream) one = TRY (gtorch_stream_new (gpu (0), 0, &error));
  g_autoptr (GTorchStream) two = TRY (gtorch_stream_new (gpu (1), 0, &error));
  guint i;

  for (i = 0; !g_atomic_int_get (&other->stop); i++)
    {
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (i % 2 ? two : one);
      g_autoptr (GTorchTensor) x = full (gpu (i % 2), i), y = plus (x, x);

      TRY (gtorch_device_synchronize (gpu (i % 2), NULL, &error));
      gtorch_device_empty_cache (gpu (i % 2));
      assert_all (y, 2 * (gdouble) i);
      g_atomic_int_inc (&other->n_rounds);
    }
  return NULL;
}

static void
other_threads_work_on_both_gpus (void)
{
  Other other = { 0 };
  GThread *thread = g_thread_new ("other", work_meanwhile, &other);
  guint i;

  for (i = 0; i < 10 || g_atomic_int_get (&other.n_rounds) < 20; i++)
    capture_and_replay (gpu (i % 2), gpu (1 - i % 2));
  g_atomic_int_set (&other.stop, TRUE);
  g_thread_join (thread);
}

static gpointer
capture_in_thread (gpointer data)
{
  guint i;

  for (i = 0; i < 10; i++)
    capture_and_replay (gpu (GPOINTER_TO_UINT (data)), gpu (1 - GPOINTER_TO_UINT (data)));
  return NULL;
}

/* Each begins on the GPU that joins the other's. */
static void
threads_capture_at_once (void)
{
  GThread *threads[2];
  guint i;

  for (i = 0; i < 2; i++)
    threads[i] = g_thread_new ("captures", capture_in_thread, GUINT_TO_POINTER (i));
  for (i = 0; i < 2; i++)
    g_thread_join (threads[i]);
}

#define TEST(name) g_test_add_func ("/GTorchGraphDevices/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  if (skips_without_two_gpus ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  TEST (a_stream_that_does_not_join_is_named);
  TEST (a_capture_that_is_given_up_harms_no_gpu);
  TEST (graphs_of_several_gpus_are_not_repeated);
  TEST (a_graph_of_the_second_gpu_becomes_a_part);
  TEST (a_replay_does_not_join_another_capture);
  TEST (branches_are_on_the_first_gpu);
  TEST (default_streams_take_no_part);
  TEST (work_on_other_streams_is_refused);
  TEST (other_threads_work_on_both_gpus);
  TEST (threads_capture_at_once);
  TEST (races_with_replays_are_reported); /* the last one: warnings do not abort from there on */
  result = g_test_run ();
#ifndef ON_A_REAL_GPU
  assert_no_misuse ();
#endif
  g_free (warning);
  return result;
}
