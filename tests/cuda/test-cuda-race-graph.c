/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* GTORCH_CHECK=streams and graphs: reads and writes of a replay beside other work. Tested on the CPU's
 * streams and on a GPU's, with ON_A_REAL_GPU on those of a real one. */

#include "config.h"

#include <gtorch/base/gtorch-check-private.h>

#include "race-test.h"

static GTorchDevice *device; /* the device under test */

#define N_MORE 100

typedef struct
{
  GTorchStream *a, *b;
  GTorchTensor *x, *y;        /* the graph reads x and writes y */
  GTorchTensor *more[N_MORE]; /* the graph reads and writes them */
  GTorchCUDAGraph *graph;
} Case;

static void
expect (guint n)
{
  if (n_warnings != n)
    g_test_message ("%u warnings; the last: %s", n_warnings, warning);
  g_assert_cmpuint (n_warnings, ==, n);
  n_warnings = 0;
}

/* Expects a warning that names both operations. */
static void
expect_between (const gchar *first, const gchar *second)
{
  g_test_message ("%s", warning);
  g_assert_nonnull (strstr (warning, first));
  g_assert_nonnull (strstr (warning, second));
  g_assert_nonnull (strstr (warning, "called by "));
  expect (1);
}

static GTorchTensor *
filled (void)
{
  GTorchTensor *tensor = gtorch_full (GTORCH_SHAPE (4, 6), 3, GTORCH_DTYPE_FLOAT32, device, NULL);

  g_assert_nonnull (tensor);
  return tensor;
}

static void
finish_all (void)
{
  g_assert_true (gtorch_device_synchronize (device, NULL, NULL));
}

static void
wait_for (GTorchStream *stream, GTorchStream *other)
{
  g_assert_true (gtorch_stream_wait_stream (stream, other, NULL));
}

static void
read_on (GTorchStream *stream, GTorchTensor *x)
{
  g_autoptr (GTorchTensor) y = NULL;

  gtorch_stream_set_current (stream);
  y = gtorch_tensor_neg (x, NULL);
  g_assert_nonnull (y);
}

static void
write_on (GTorchStream *stream, GTorchTensor *x)
{
  gtorch_stream_set_current (stream);
  g_assert_nonnull (gtorch_tensor_fill_inplace (x, 1, NULL));
}

static void
replay_on (GTorchStream *stream, GTorchCUDAGraph *graph)
{
  g_assert_true (gtorch_cuda_graph_replay_on (graph, stream, NULL));
}

/* Captures y = -x; without one of them, y = 1 or -x. */
static GTorchCUDAGraph *
capture (Case *c, GTorchTensor *x, GTorchTensor *y)
{
  GTorchCUDAGraph *graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture =
      gtorch_graph_capture_new (graph, c->a, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, NULL);
  g_autoptr (GTorchTensor) other = NULL;

  g_assert_nonnull (capture);
  if (x != NULL)
    other = gtorch_tensor_neg (x, NULL);
  if (y != NULL && x != NULL)
    g_assert_nonnull (gtorch_tensor_copy_inplace (y, other, FALSE, NULL));
  else if (y != NULL)
    g_assert_nonnull (gtorch_tensor_fill_inplace (y, 1, NULL));
  if (y == c->y)
    {
      guint i;

      for (i = 0; i < N_MORE; i++)
        g_assert_nonnull (gtorch_tensor_neg_inplace (c->more[i], NULL));
    }
  g_assert_true (gtorch_graph_capture_end (capture, NULL));
  gtorch_graph_capture_unref (capture);
  return graph;
}

static void
set_up (Case *c)
{
  guint i;

  gtorch_checks_set (GTORCH_CHECK_STREAMS);
  c->a = gtorch_stream_new (device, 0, NULL);
  c->b = gtorch_stream_new (device, 0, NULL);
  gtorch_stream_set_current (c->a);
  c->x = filled ();
  c->y = filled ();
  for (i = 0; i < N_MORE; i++)
    c->more[i] = filled ();
  c->graph = capture (c, c->x, c->y);
  finish_all ();
  expect (0);
}

static void
tear_down (Case *c)
{
  guint i;

  gtorch_stream_set_current (gtorch_device_get_default_stream (device));
  finish_all ();
  g_clear_object (&c->graph);
  for (i = 0; i < N_MORE; i++)
    g_object_unref (c->more[i]);
  g_object_unref (c->x);
  g_object_unref (c->y);
  g_object_unref (c->a);
  g_object_unref (c->b);
  gtorch_checks_set (0);
}

/* --- reported races --- */

static void
work_after_a_replay (void)
{
  Case c;

  set_up (&c);
  replay_on (c.a, c.graph);
  read_on (c.b, c.x); /* both only read */
  expect (0);
  write_on (c.b, c.x);
  expect_between ("graph on ", "fill_ on ");
  finish_all ();
  replay_on (c.a, c.graph);
  read_on (c.b, c.y);
  expect_between ("graph on ", "neg on ");
  finish_all ();
  replay_on (c.a, c.graph);
  write_on (c.b, c.more[N_MORE / 2]);
  expect_between ("graph on ", "fill_ on ");
  write_on (c.b, c.more[N_MORE / 3]); /* reported only once */
  expect (0);
  tear_down (&c);
}

static void
work_before_a_replay (void)
{
  guint i;

  for (i = 0; i < 2; i++) /* the checker knows the graph from its first replay on */
    {
      Case c;

      set_up (&c);
      if (i > 0)
        replay_on (c.a, c.graph);
      finish_all ();
      write_on (c.b, c.x);
      replay_on (c.a, c.graph);
      expect_between ("fill_ on ", "graph on ");
      finish_all ();
      read_on (c.b, c.y);
      replay_on (c.a, c.graph);
      expect_between ("neg on ", "graph on ");
      finish_all ();
      read_on (c.b, c.more[N_MORE - 1]);
      replay_on (c.a, c.graph);
      expect_between ("neg on ", "graph on ");
      replay_on (c.a, c.graph); /* reported only once */
      expect (0);
      tear_down (&c);
    }
}

/* The missing wait comes after many correct ones. */
static void
a_missing_wait_is_found (void)
{
  Case c;
  guint i;

  set_up (&c);
  for (i = 0; i < test_often (20); i++)
    {
      write_on (c.b, c.x);
      wait_for (c.a, c.b);
      replay_on (c.a, c.graph);
      if (i % 3 == 0)
        read_on (c.b, c.x);
      wait_for (c.b, c.a);
      read_on (c.b, c.y);
      wait_for (c.a, c.b);
    }
  expect (0);
  write_on (c.b, c.x);
  expect (0);
  replay_on (c.a, c.graph);
  expect_between ("fill_ on ", "graph on ");
  tear_down (&c);
}

/* A graph that creates zeros like a tensor reads its shape only. */
static void
zeros_like_what_another_stream_writes (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) zeros = NULL;
  GTorchGraphCapture *capture;
  Case c;

  set_up (&c);
  gtorch_stream_set_current (c.a);
  capture = gtorch_graph_capture_new (graph, c.a, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, NULL);
  g_assert_nonnull (capture);
  zeros = gtorch_tensor_zeros_like (c.x, GTORCH_DTYPE_NONE, NULL);
  g_assert_nonnull (zeros);
  g_assert_nonnull (gtorch_tensor_copy_inplace (c.y, zeros, FALSE, NULL));
  g_assert_true (gtorch_graph_capture_end (capture, NULL));
  gtorch_graph_capture_unref (capture);
  finish_all ();
  replay_on (c.a, graph); /* the checker knows the graph from its first replay on */
  write_on (c.b, c.x);
  replay_on (c.a, graph);
  expect (0);
  finish_all ();
  write_on (c.b, c.y);
  replay_on (c.a, graph);
  expect_between ("fill_ on ", "graph on ");
  tear_down (&c);
}

static void
two_graphs (void)
{
  g_autoptr (GTorchCUDAGraph) reads = NULL;
  g_autoptr (GTorchCUDAGraph) writes = NULL;
  Case c;

  set_up (&c);
  reads = capture (&c, c.x, NULL);
  writes = capture (&c, NULL, c.x);
  finish_all ();
  replay_on (c.a, c.graph);
  replay_on (c.b, reads); /* both only read */
  expect (0);
  replay_on (c.b, writes);
  expect_between ("graph on ", "graph on ");
  finish_all ();
  replay_on (c.b, writes);
  replay_on (c.a, c.graph);
  expect_between ("graph on ", "graph on ");
  finish_all ();
  replay_on (c.b, writes);
  wait_for (c.a, c.b);
  replay_on (c.a, c.graph);
  replay_on (c.a, reads);
  wait_for (c.b, c.a);
  replay_on (c.b, writes);
  expect (0);
  tear_down (&c);
}

/* On the CPU a replay waits for the previous one, not for later work on the stream of that one. */
static void
work_behind_the_previous_replay (void)
{
  Case c;

  set_up (&c);
  replay_on (c.a, c.graph);
  write_on (c.a, c.x);
  replay_on (c.b, c.graph);
  if (device->type == GTORCH_DEVICE_TYPE_CPU)
    expect_between ("fill_ on ", "graph on ");
  expect (0);
  tear_down (&c);
}

/* The writes of a graph are not forgotten when it is freed. */
static void
a_freed_graph_still_counts (void)
{
  Case c;

  set_up (&c);
  replay_on (c.a, c.graph);
  g_clear_object (&c.graph);
  write_on (c.b, c.x);
  if (device->type != GTORCH_DEVICE_TYPE_CPU || n_warnings > 0) /* which may have executed it */
    expect_between ("graph on ", "fill_ on ");
  tear_down (&c);

  set_up (&c);
  replay_on (c.a, c.graph);
  g_clear_object (&c.graph);
  c.graph = capture (&c, NULL, c.y);
  replay_on (c.b, c.graph);
  if (device->type != GTORCH_DEVICE_TYPE_CPU || n_warnings > 0)
    expect_between ("graph on ", "graph on ");
  tear_down (&c);
}

static void
fatal_checks_make_it_an_error (void)
{
  g_autoptr (GError) error = NULL;
  Case c;

  set_up (&c);
  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_STREAMS_FATAL);
  read_on (c.b, c.y);
  g_assert_false (gtorch_cuda_graph_replay_on (c.graph, c.a, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "neg on "));
  g_clear_error (&error); /* and it is no more correct the second time */
  g_assert_false (gtorch_cuda_graph_replay_on (c.graph, c.a, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  write_on (c.b, c.x); /* nothing was replayed */
  expect (0);
  wait_for (c.a, c.b);
  replay_on (c.a, c.graph);
  tear_down (&c);
}

/* --- no races --- */

static void
every_way_of_waiting_counts (void)
{
  guint way;

  for (way = 0; way < 5; way++)
    {
      g_autoptr (GTorchEvent) event = NULL;
      Case c;

      set_up (&c);
      replay_on (c.a, c.graph);
      event = gtorch_stream_record_event (c.a, NULL);
      if (way == 0)
        wait_for (c.b, c.a);
      else if (way == 1)
        gtorch_stream_synchronize (c.a, NULL, NULL);
      else if (way == 2)
        gtorch_event_synchronize (event, NULL, NULL);
      else if (way == 3)
        while (!gtorch_stream_is_idle (c.a))
          ;
      else /* through the same graph, whose replays are ordered */
        replay_on (c.b, c.graph);
      read_on (c.b, c.y);
      write_on (c.b, c.x);
      write_on (c.b, c.more[0]);
      if (n_warnings > 0)
        g_test_message ("way %u", way);
      expect (0);
      tear_down (&c);
    }
}

/* The allocator is responsible for the safe reuse of memory. */
static void
memory_of_a_freed_graph_is_no_race (void)
{
  Case c;
  guint i;

  for (i = 0; i < test_often (10); i++)
    {
      g_autoptr (GTorchTensor) x = NULL;

      set_up (&c);
      replay_on (c.a, c.graph);
      g_clear_object (&c.graph);
      g_clear_object (&c.x);
      gtorch_stream_set_current (c.b);
      x = filled ();
      read_on (c.b, x);
      expect (0);
      c.x = g_object_ref (x);
      tear_down (&c);
    }
}

#define TEST(name)                                                      \
  do                                                                    \
    {                                                                   \
      g_test_add_func ("/GTorchRace/cpu/graph/" #name, name##_on_cpu);  \
      g_test_add_func ("/GTorchRace/cuda/graph/" #name, name##_on_gpu); \
    }                                                                   \
  while (0)

RACING (work_after_a_replay)
RACING (work_before_a_replay)
RACING (a_missing_wait_is_found)
RACING (zeros_like_what_another_stream_writes)
RACING (two_graphs)
RACING (work_behind_the_previous_replay)
RACING (a_freed_graph_still_counts)
ON_BOTH (fatal_checks_make_it_an_error)
ON_BOTH (every_way_of_waiting_counts)
ON_BOTH (memory_of_a_freed_graph_is_no_race)

gint
main (gint argc, gchar **argv)
{
  gint result;

  if (skips_without_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  count_warnings ();
  TEST (work_after_a_replay);
  TEST (work_before_a_replay);
  TEST (a_missing_wait_is_found);
  TEST (zeros_like_what_another_stream_writes);
  TEST (two_graphs);
  TEST (work_behind_the_previous_replay);
  TEST (a_freed_graph_still_counts);
  TEST (fatal_checks_make_it_an_error);
  TEST (every_way_of_waiting_counts);
  TEST (memory_of_a_freed_graph_is_no_race);
  result = g_test_run ();
#ifndef ON_A_REAL_GPU
  assert_no_misuse ();
#endif
  g_free (warning);
  return result;
}
