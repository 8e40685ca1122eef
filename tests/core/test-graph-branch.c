/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Branches of graphs: whether they run depends on a value on the device at that point of a replay. */

#include "config.h"

#include <math.h>
#include <string.h>

#include <gtorch/base/gtorch-check-private.h>

#include "graph-test.h"

#define OK(call)                      \
  G_STMT_START                        \
  {                                   \
    g_autoptr (GError) error = NULL;  \
    const gboolean result = !!(call); \
    g_assert_no_error (error);        \
    g_assert_true (result);           \
  }                                   \
  G_STMT_END

static gdouble
first_of (GTorchTensor *tensor)
{
  return test_element (tensor, 0);
}

static void
set (GTorchTensor *tensor, gdouble value)
{
  OK (gtorch_tensor_fill_inplace (tensor, value, &error));
}

static GTorchTensor *
number (GTorchDType dtype, gdouble value)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *result = gtorch_full (NULL, 0, value, dtype, NULL, &error);

  g_assert_no_error (error);
  return result;
}

/* --- execution --- */

/* The predicate may be any number, and one of several elements: everything that is not 0 is true. */
static void
the_predicate_decides (void)
{
  static const struct
  {
    GTorchDType dtype;
    gdouble no, yes;
  } kinds[] = {
    { GTORCH_DTYPE_BOOL, 0, 1 },           { GTORCH_DTYPE_INT64, 0, 1LL << 40 },
    { GTORCH_DTYPE_FLOAT32, -0.0, 1e-30 }, { GTORCH_DTYPE_FLOAT16, 0, NAN },
    { GTORCH_DTYPE_UINT8, 0, 255 },
  };
  guint i, round;

  for (i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchTensor) both =
          gtorch_full (GTORCH_SHAPE (2, 1), kinds[i].yes, kinds[i].dtype, NULL, NULL);
      g_autoptr (GTorchTensor) flag = gtorch_tensor_select (both, 0, 1, NULL);
      g_autoptr (GTorchTensor) x = filled (100, 1);
      g_autoptr (GTorchTensor) before = NULL;
      g_autoptr (GTorchTensor) after = NULL;
      GTorchGraphCapture *capture;
      gdouble expected = 1;

      capture = begin (graph, NULL, NULL);
      before = gtorch_tensor_mul_scalar (x, 10, NULL);
      OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
      OK (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
      OK (gtorch_tensor_mul_scalar_inplace (x, 2, &error));
      OK (gtorch_cuda_graph_end_if (graph, &error));
      after = gtorch_tensor_mul_scalar (x, 10, NULL);
      end (capture);
      g_assert_cmpfloat (first_of (x), ==, 1);
      for (round = 0; round < 5; round++)
        {
          const gboolean yes = round != 1 && round != 2;

          set (flag, yes ? kinds[i].yes : kinds[i].no);
          replay (graph);
          g_assert_cmpfloat (first_of (before), ==, 10 * expected);
          if (yes)
            expected = 2 * (expected + 1);
          g_assert_cmpfloat (first_of (x), ==, expected);
          g_assert_cmpfloat (first_of (after), ==, 10 * expected);
        }
    }
}

/* The predicate is read when a replay reaches the branch, not earlier, and not again inside. */
static void
the_predicate_is_computed_by_the_graph (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = number (GTORCH_DTYPE_FLOAT64, 1);
  g_autoptr (GTorchTensor) flag = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  guint i;

  OK (gtorch_tensor_mul_scalar_inplace (x, 2, &error));
  flag = gtorch_tensor_lt_scalar (x, 10, NULL);
  OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
  OK (gtorch_tensor_fill_inplace (flag, 0, &error));
  OK (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
  OK (gtorch_cuda_graph_end_if (graph, &error));
  OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
  OK (gtorch_tensor_fill_inplace (x, 1000, &error)); /* never */
  OK (gtorch_cuda_graph_end_if (graph, &error));
  end (capture);
  for (i = 0; i < 4; i++)
    {
      static const gdouble expected[] = { 3, 7, 14, 28 };

      replay (graph);
      g_assert_cmpfloat (test_element (x, 0), ==, expected[i]);
    }
}

static void
branches_can_be_nested (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) outer = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) inner = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) x = filled (10, 0);
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  guint i;

  OK (gtorch_cuda_graph_begin_if (graph, outer, &error));
  OK (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
  OK (gtorch_cuda_graph_begin_if (graph, inner, &error));
  OK (gtorch_tensor_add_scalar_inplace (x, 10, 1, &error));
  OK (gtorch_cuda_graph_end_if (graph, &error));
  OK (gtorch_tensor_add_scalar_inplace (x, 100, 1, &error));
  OK (gtorch_cuda_graph_end_if (graph, &error));
  OK (gtorch_tensor_add_scalar_inplace (x, 1000, 1, &error));
  end (capture);
  g_assert_cmpuint (gtorch_cuda_graph_get_n_nodes (graph), ==, 2);
  for (i = 0; i < 4; i++)
    {
      set (x, 0);
      set (outer, i & 1);
      set (inner, i >> 1);
      replay (graph);
      g_assert_cmpfloat (first_of (x), ==, 1000 + (i & 1) * (101 + (i >> 1) * 10));
    }
}

/* Tensors that are created and dropped in a branch use the memory of the graph like others. */
static void
results_of_a_branch_are_tensors (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) flag = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) x = filled (1000, 3);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);
  guint i;

  OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) square = gtorch_tensor_mul (x, x, NULL);

      g_clear_object (&y);
      y = gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
    }
  OK (gtorch_cuda_graph_end_if (graph, &error));
  z = gtorch_tensor_neg (x, NULL);
  end (capture);
  replay (graph);
  g_assert_cmpfloat (first_of (y), ==, 9000);
  set (flag, 0);
  set (x, 2);
  replay (graph);
  g_assert_cmpfloat (first_of (z), ==, -2);
  set (flag, 1);
  replay (graph);
  g_assert_cmpfloat (first_of (y), ==, 4000);
}

/* The numbers are as if all calls had run, including those in skipped branches. */
static void
random_numbers_are_those_of_eager_calls (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) flag = number (GTORCH_DTYPE_BOOL, 1);
  GTorchTensor *results[3] = { NULL };
  GTorchGraphCapture *capture;
  guint round, i;

  capture = begin (graph, NULL, NULL);
  for (i = 0; i < 3; i++)
    {
      if (i == 1)
        OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
      results[i] = gtorch_rand (GTORCH_SHAPE (100), GTORCH_DTYPE_FLOAT64, NULL, NULL, NULL);
      if (i == 1)
        OK (gtorch_cuda_graph_end_if (graph, &error));
    }
  end (capture);
  for (round = 0; round < 4; round++)
    {
      gdouble expected[3], last = round > 0 ? first_of (results[1]) : 0;

      set (flag, round != 1);
      gtorch_manual_seed (round);
      for (i = 0; i < 3; i++)
        {
          g_autoptr (GTorchTensor) drawn =
              gtorch_rand (GTORCH_SHAPE (100), GTORCH_DTYPE_FLOAT64, NULL, NULL, NULL);

          expected[i] = first_of (drawn);
        }
      gtorch_manual_seed (round);
      replay (graph);
      for (i = 0; i < 3; i++)
        g_assert_cmpfloat (first_of (results[i]), ==, i == 1 && round == 1 ? last : expected[i]);
    }
  for (i = 0; i < 3; i++)
    g_object_unref (results[i]);
}

/* --- streams --- */

static void
streams_take_part_in_a_branch (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) side = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchTensor) flag = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) x = filled (100, 1);
  g_autoptr (GTorchTensor) y = filled (100, 1);
  GTorchGraphCapture *capture = begin (graph, stream, NULL);
  guint i;

  for (i = 0; i < 2; i++) /* the second time on streams that were released */
    {
      OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
      OK (gtorch_stream_wait_stream (side, stream, &error));
      g_assert_true (gtorch_stream_is_capturing (side));
      OK (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
      {
        g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (side);

        OK (gtorch_tensor_mul_scalar_inplace (y, 2, &error));
      }
      OK (gtorch_stream_wait_stream (stream, side, &error));
      OK (gtorch_tensor_add_inplace (y, x, 1, &error));
      OK (gtorch_cuda_graph_end_if (graph, &error));
      g_assert_false (gtorch_stream_is_capturing (side));
    }
  end (capture);
  replay (graph);
  g_assert_cmpfloat (first_of (y), ==, (1 * 2 + 2) * 2 + 3);
  set (flag, 0);
  replay (graph);
  g_assert_cmpfloat (first_of (y), ==, 11);
}

static void
an_unjoined_stream_invalidates_the_capture (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) side = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchTensor) flag = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) x = filled (100, 1);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture;

  /* because the other stream uses x */
  OK (gtorch_device_synchronize (test_device (), NULL, &error));
  capture = begin (graph, stream, NULL);
  OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
  OK (gtorch_stream_wait_stream (side, stream, &error));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (side);

    OK (gtorch_tensor_mul_scalar_inplace (x, 2, &error));
  }
  FAILS (gtorch_cuda_graph_end_if (graph, &fault), GTORCH_ERROR_CAPTURE,
         "graph: stream 0x* took part in the branch * did not wait for its last work (mul");
  g_assert_false (gtorch_stream_is_capturing (side));
  FAILS (gtorch_graph_capture_end (capture, &fault), GTORCH_ERROR_CAPTURE,
         "the capture is spoiled: graph: stream 0x* took part in the branch");
  gtorch_graph_capture_unref (capture);
  g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_EMPTY);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (side);

    y = gtorch_tensor_add (x, x, 1, NULL);
  }
  OK (gtorch_stream_synchronize (side, NULL, &error));
  g_assert_cmpfloat (first_of (y), ==, 2);
}

static void
streams_outside_the_branch_are_refused (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) side = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchStream) third = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchEvent) outside = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GTorchEvent) known = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GTorchEvent) inside = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GTorchTensor) flag = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) x = filled (100, 1);
  g_autoptr (GTorchTensor) y = filled (100, 1);
  g_autoptr (GTorchTensor) z = filled (100, 1);
  GTorchGraphCapture *capture = begin (graph, stream, NULL);

  OK (gtorch_tensor_mul_scalar_inplace (x, 2, &error));
  OK (gtorch_event_record (known, stream, &error));
  OK (gtorch_stream_wait_stream (side, stream, &error));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (side);

    OK (gtorch_tensor_add_inplace (y, x, 1, &error));
    OK (gtorch_event_record (outside, side, &error));
  }
  OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (side);

    FAILS (gtorch_tensor_mul_scalar_inplace (y, 2, &fault), GTORCH_ERROR_CAPTURE,
           "*graph: stream 0x* takes part in the capture but not in the branch that stream 0x*");
    FAILS (gtorch_cuda_graph_begin_if (graph, flag, &fault), GTORCH_ERROR_CAPTURE,
           "takes part in the capture but not in the branch");
    FAILS (gtorch_cuda_graph_end_if (graph, &fault), GTORCH_ERROR_CAPTURE,
           "graph: the branch did not begin on stream 0x*");
  }
  OK (gtorch_event_wait (known, stream, &error)); /* it is before the branch in any case */
  FAILS (gtorch_event_wait (outside, stream, &fault), GTORCH_ERROR_CAPTURE,
         "one of the two is in a branch of the graph, and the other is not");
  FAILS (gtorch_event_wait (outside, third, &fault), GTORCH_ERROR_CAPTURE, "one of the two is in");
  OK (gtorch_tensor_add_scalar_inplace (z, 1, 1, &error));
  OK (gtorch_event_record (inside, stream, &error));
  FAILS (gtorch_event_wait (inside, side, &fault), GTORCH_ERROR_CAPTURE, "one of the two is in");
  OK (gtorch_cuda_graph_end_if (graph, &error));
  FAILS (gtorch_event_wait (inside, side, &fault), GTORCH_ERROR_CAPTURE,
         "it was recorded in a branch of the graph, which has ended");
  OK (gtorch_event_wait (inside, stream, &error));
  OK (gtorch_event_wait (outside, stream, &error));
  OK (gtorch_tensor_add_inplace (y, z, 1, &error));
  end (capture);
  replay (graph);
  g_assert_cmpfloat (first_of (y), ==, 1 + 2 + 2);
}

/* --- errors --- */

static void
wrong_predicates_are_refused (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) two = filled (2, 1);
  g_autoptr (GTorchTensor) none = filled (0, 1);
  g_autoptr (GTorchTensor) released = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) elsewhere =
      gtorch_full (NULL, 0, 1, GTORCH_DTYPE_BOOL, gtorch_device_cpu (), NULL);
  g_autoptr (GTorchTensor) x = filled (3, 1);
  g_autofree gchar *where = NULL;
  GTorchGraphCapture *capture;

  where = g_strdup_printf ("graph: the capture is on %s and the predicate on cpu",
                           gtorch_device_name (test_device ()));
  gtorch_tensor_release (released);
  capture = begin (graph, NULL, NULL);
  FAILS (gtorch_cuda_graph_begin_if (graph, two, &fault), GTORCH_ERROR_SHAPE,
         "graph: a predicate has one element, not the shape ?2?");
  FAILS (gtorch_cuda_graph_begin_if (graph, none, &fault), GTORCH_ERROR_SHAPE, "shape ?0?");
  FAILS (gtorch_cuda_graph_begin_if (graph, released, &fault), GTORCH_ERROR_RELEASED,
         "graph: the predicate of shape ?? was released");
  if (test_device () != gtorch_device_cpu ())
    FAILS (gtorch_cuda_graph_begin_if (graph, elsewhere, &fault), GTORCH_ERROR_DEVICE_MISMATCH,
           where);
  OK (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
  end (capture);
  g_assert_cmpuint (gtorch_cuda_graph_get_n_nodes (graph), ==, 1);
}

static void
branches_need_a_capture (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) other = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) flag = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) x = filled (3, 1);
  GTorchGraphCapture *capture;

  FAILS (gtorch_cuda_graph_begin_if (graph, flag, &fault), GTORCH_ERROR_CAPTURE,
         "graph: it is not capturing");
  FAILS (gtorch_cuda_graph_end_if (graph, &fault), GTORCH_ERROR_CAPTURE,
         "graph: it is not capturing");
  capture = begin (graph, NULL, NULL);
  FAILS (gtorch_cuda_graph_end_if (graph, &fault), GTORCH_ERROR_CAPTURE,
         "graph: there is no branch to end");
  FAILS (gtorch_cuda_graph_begin_if (other, flag, &fault), GTORCH_ERROR_CAPTURE,
         "graph: it is not capturing");
  {
    g_autoptr (GTorchStreamGuard) guard =
        gtorch_stream_guard_new (gtorch_device_get_default_stream (test_device ()));

    FAILS (gtorch_cuda_graph_begin_if (graph, flag, &fault), GTORCH_ERROR_CAPTURE,
           "graph: the current stream takes no part in its capture");
  }
  OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
  FAILS (gtorch_cuda_graph_capture_end (graph, &fault), GTORCH_ERROR_CAPTURE,
         "graph: a branch is open");
  OK (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
  OK (gtorch_cuda_graph_end_if (graph, &error));
  end (capture);
  replay (graph);
  g_assert_cmpfloat (first_of (x), ==, 2);
}

static void
open_branches_end_with_the_capture (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchTensor) flag = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) x = filled (3, 1);
  guint i;

  /* because the other stream uses x */
  OK (gtorch_device_synchronize (test_device (), NULL, &error));
  for (i = 0; i < 3; i++)
    {
      GTorchGraphCapture *capture = begin (graph, stream, NULL);

      OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
      OK (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
      if (i == 1)
        OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
      if (i == 2)
        FAILS (gtorch_graph_capture_end (capture, &fault), GTORCH_ERROR_CAPTURE,
               "graph: a branch is open");
      gtorch_graph_capture_unref (capture);
      g_assert_cmpint (gtorch_cuda_graph_get_state (graph), ==, GTORCH_GRAPH_STATE_EMPTY);
      g_assert_false (gtorch_stream_is_capturing (stream));
      {
        g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

        OK (gtorch_tensor_mul_scalar_inplace (x, 2, &error));
      }
      OK (gtorch_stream_synchronize (stream, NULL, &error));
      g_assert_cmpfloat (first_of (x), ==, 2 << i);
    }
}

/* --- combinations --- */

static void
a_graph_with_branches_can_be_a_child_graph (void)
{
  g_autoptr (GTorchCUDAGraph) inner = gtorch_cuda_graph_new ();
  g_autoptr (GTorchCUDAGraph) outer = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) flag = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) other = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) x = filled (100, 0);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchGraphCapture *capture;
  guint i;

  capture = begin (inner, NULL, NULL);
  OK (gtorch_cuda_graph_begin_if (inner, flag, &error));
  OK (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
  OK (gtorch_cuda_graph_end_if (inner, &error));
  OK (gtorch_tensor_add_scalar_inplace (x, 10, 1, &error));
  end (capture);
  capture = begin (outer, NULL, NULL);
  OK (gtorch_cuda_graph_begin_if (outer, other, &error));
  OK (gtorch_cuda_graph_replay (inner, &error));
  OK (gtorch_cuda_graph_end_if (outer, &error));
  y = gtorch_tensor_mul_scalar (x, 2, NULL);
  end (capture);
  for (i = 0; i < 4; i++)
    {
      set (x, 0);
      set (flag, i & 1);
      set (other, i >> 1);
      replay (outer);
      g_assert_cmpfloat (first_of (y), ==, 2 * (i >> 1) * (10 + (i & 1)));
    }
}

static void
inputs_of_branches_can_be_replaced (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) flag = number (GTORCH_DTYPE_BOOL, 1);
  g_autoptr (GTorchTensor) no = number (GTORCH_DTYPE_BOOL, 0);
  g_autoptr (GTorchTensor) x = filled (100, 1);
  g_autoptr (GTorchTensor) more = filled (100, 5);
  g_autoptr (GTorchTensor) much = filled (100, 50);
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);

  OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
  OK (gtorch_tensor_add_inplace (x, more, 1, &error));
  OK (gtorch_cuda_graph_end_if (graph, &error));
  OK (gtorch_tensor_add_scalar_inplace (x, 1, 1, &error));
  end (capture);
  replay (graph);
  g_assert_cmpfloat (first_of (x), ==, 7);
  OK (gtorch_cuda_graph_rebind (graph, more, much, &error));
  replay (graph);
  g_assert_cmpfloat (first_of (x), ==, 58);
  OK (gtorch_cuda_graph_rebind (graph, flag, no, &error));
  replay (graph);
  g_assert_cmpfloat (first_of (x), ==, 59);
  set (no, 1);
  replay (graph);
  g_assert_cmpfloat (first_of (x), ==, 110);
}

/* The repetition of a replay without the graph skips the same calls. */
static void
replays_are_compared (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = filled (100, 1);
  g_autoptr (GTorchTensor) few = NULL;
  g_autoptr (GTorchTensor) flag = NULL;
  GTorchGraphCapture *capture;
  guint i;

  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_REPLAY); /* as the environment has it done */
  capture = begin (graph, NULL, NULL);
  few = gtorch_tensor_narrow (x, 0, 7, 1, NULL);
  flag = gtorch_tensor_lt_scalar (few, 6, NULL);
  OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
  {
    g_autoptr (GTorchTensor) noise =
        gtorch_rand (GTORCH_SHAPE (100), GTORCH_DTYPE_FLOAT64, NULL, NULL, NULL);

    OK (gtorch_cuda_graph_begin_if (graph, few, &error));
    OK (gtorch_tensor_mul_scalar_inplace (x, 4, &error));
    OK (gtorch_cuda_graph_end_if (graph, &error));
    OK (gtorch_tensor_add_inplace (x, noise, 1, &error));
  }
  OK (gtorch_cuda_graph_end_if (graph, &error));
  OK (gtorch_tensor_floor_inplace (x, &error));
  end (capture);
  for (i = 0; i < 4; i++)
    {
      static const gdouble expected[] = { 4, 16, 16, 16 };

      replay (graph);
      g_assert_cmpfloat (first_of (x), ==, expected[i]);
    }
  gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_REPLAY);
}

static void
a_dump_shows_the_branches (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GOutputStream) output = g_memory_output_stream_new_resizable ();
  g_autoptr (GTorchTensor) x = filled (1, 1);
  g_autoptr (GTorchTensor) flag = NULL;
  g_autofree gchar *text = NULL;
  GTorchGraphCapture *capture = begin (graph, NULL, NULL);

  flag = gtorch_tensor_gt_scalar (x, 1, NULL);
  OK (gtorch_cuda_graph_begin_if (graph, flag, &error));
  OK (gtorch_tensor_mul_scalar_inplace (x, 2, &error));
  OK (gtorch_cuda_graph_end_if (graph, &error));
  OK (gtorch_tensor_neg_inplace (x, &error));
  end (capture);
  OK (gtorch_cuda_graph_debug_dump (graph, output, NULL, &error));
  text = g_strndup (g_memory_output_stream_get_data (G_MEMORY_OUTPUT_STREAM (output)),
                    g_memory_output_stream_get_data_size (G_MEMORY_OUTPUT_STREAM (output)));
  g_assert_nonnull (strstr (text, "n1 [label=\"1: branch of 1 nodes\"];\n  n0 -> n1;\n"
                                  "  subgraph cluster_n1 {\n  n1_0 [label=\"0: mul"));
  g_assert_nonnull (strstr (text, "n1_0 -> n2;"));
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (!test_can_capture ())
    return 0;
#define ADD(name) g_test_add_func ("/GTorchCUDAGraph/branch/" #name, name)
  ADD (the_predicate_decides);
  ADD (the_predicate_is_computed_by_the_graph);
  ADD (branches_can_be_nested);
  ADD (results_of_a_branch_are_tensors);
  ADD (random_numbers_are_those_of_eager_calls);
  ADD (streams_take_part_in_a_branch);
  ADD (an_unjoined_stream_invalidates_the_capture);
  ADD (streams_outside_the_branch_are_refused);
  ADD (wrong_predicates_are_refused);
  ADD (branches_need_a_capture);
  ADD (open_branches_end_with_the_capture);
  ADD (a_graph_with_branches_can_be_a_child_graph);
  ADD (inputs_of_branches_can_be_replaced);
  ADD (replays_are_compared);
  ADD (a_dump_shows_the_branches);
  return g_test_run ();
}
