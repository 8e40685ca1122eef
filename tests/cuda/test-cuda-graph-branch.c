/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Branches of graphs in the driver: operations that cannot be in one, work that is captured without the
 * library, drivers without branches, and the number of driver calls of a replay. */

#include "config.h"

#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/tensor/gtorch-tensor-private.h>
#include <kernels/gtorch-kernel-params.h>

#include "cuda-test.h"
#include "warnings.h"

#define N    300
#define MODE GTORCH_CAPTURE_MODE_THREAD_LOCAL

typedef struct
{
  GTorchCUDAGraph *graph;
  GTorchStream *stream;
  GTorchGraphCapture *capture;
  GTorchTensor *flag, *x;
} Program;

static GTorchTensor *
filled (gint64 n, GTorchDType dtype, gdouble value)
{
  GError *error = NULL;
  GTorchTensor *result = gtorch_full (&n, 1, value, dtype, gpu (0), &error);

  g_assert_no_error (error);
  return result;
}

static void
program_begin (Program *self)
{
  GError *error = NULL;

  self->graph = gtorch_cuda_graph_new ();
  self->stream = gtorch_stream_new (gpu (0), 0, NULL);
  self->flag = filled (1, GTORCH_DTYPE_BOOL, 1);
  self->x = filled (N, GTORCH_DTYPE_FLOAT64, 3);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  self->capture = gtorch_graph_capture_new (self->graph, self->stream, NULL, MODE, &error);
  g_assert_no_error (error);
}

static void
begin_if (Program *self)
{
  GError *error = NULL;

  g_assert_true (gtorch_cuda_graph_begin_if (self->graph, self->flag, &error));
  g_assert_no_error (error);
}

static void
negate_x (Program *self)
{
  g_assert_nonnull (gtorch_tensor_neg_inplace (self->x, NULL));
}

static void
assert_error (GError **error, gint code, const gchar *pattern)
{
  g_assert_error (*error, GTORCH_ERROR, code);
  if (!g_pattern_match_simple (pattern, (*error)->message))
    g_error ("“%s” is not like “%s”", (*error)->message, pattern);
  g_clear_error (error);
}

static void
program_end (Program *self)
{
  GError *error = NULL;

  gtorch_graph_capture_end (self->capture, &error);
  g_assert_no_error (error);
  gtorch_graph_capture_unref (self->capture);
}

/* The end of the branch fails, and so does that of the capture. */
static void
program_fail (Program *self, const gchar *pattern)
{
  g_autofree gchar *again = g_strconcat ("the capture is spoiled: ", pattern, NULL);
  GError *error = NULL;

  g_assert_false (gtorch_cuda_graph_end_if (self->graph, &error));
  assert_error (&error, GTORCH_ERROR_CAPTURE, pattern);
  g_assert_false (gtorch_graph_capture_end (self->capture, &error));
  assert_error (&error, GTORCH_ERROR_CAPTURE, again);
  gtorch_graph_capture_unref (self->capture);
  g_assert_cmpint (gtorch_cuda_graph_get_state (self->graph), ==, GTORCH_GRAPH_STATE_EMPTY);
}

static void
program_clear (Program *self)
{
  g_object_unref (self->graph);
  g_object_unref (self->stream);
  g_object_unref (self->flag);
  g_object_unref (self->x);
}

static gdouble
first_of (GTorchTensor *x)
{
  g_autofree gdouble *values = read_doubles (x->impl);

  return values[0];
}

static void
replay (Program *self)
{
  GError *error = NULL;

  gtorch_cuda_graph_replay (self->graph, &error);
  g_assert_no_error (error);
}

/* --- driver calls --- */

static void
the_host_does_not_wait (void)
{
  g_autofree gchar *log = NULL;
  Program program;

  program_begin (&program);
  negate_x (&program);
  begin_if (&program);
  negate_x (&program);
  begin_if (&program);
  negate_x (&program);
  g_assert_true (gtorch_cuda_graph_end_if (program.graph, NULL));
  g_assert_true (gtorch_cuda_graph_end_if (program.graph, NULL));
  program_end (&program);
  replay (&program);
  fake_cuda_hold (TRUE);
  fake_cuda_reset_calls ();
  replay (&program);
  log = fake_cuda_dup_log ();
  g_assert_cmpstr (g_strstrip (log), ==, "cuCtxGetCurrent cuGraphLaunch");
  fake_cuda_hold (FALSE);
  g_assert_cmpfloat (first_of (program.x), ==, 3);
  program_clear (&program);
}

/* Each replay has its own predicate and numbers, though none has run when the next is launched. */
static void
replays_are_queued (void)
{
  g_autoptr (GTorchTensor) total = filled (1, GTORCH_DTYPE_FLOAT64, 0);
  g_autoptr (GTorchTensor) drawn = NULL;
  gdouble expected = 0;
  Program program;
  guint i;

  program_begin (&program);
  begin_if (&program);
  drawn = gtorch_rand (GTORCH_SHAPE (1), GTORCH_DTYPE_FLOAT64, gpu (0), NULL, NULL);
  gtorch_tensor_add_inplace (total, drawn, 1, NULL);
  g_assert_true (gtorch_cuda_graph_end_if (program.graph, NULL));
  program_end (&program);
  gtorch_manual_seed (7);
  for (i = 0; i < 6; i++)
    {
      g_autoptr (GTorchTensor) x =
          gtorch_rand (GTORCH_SHAPE (1), GTORCH_DTYPE_FLOAT64, gpu (0), NULL, NULL);

      if (i % 3 != 1)
        expected += first_of (x);
    }
  gtorch_manual_seed (7);
  fake_cuda_hold (TRUE);
  for (i = 0; i < 6; i++)
    {
      gtorch_tensor_fill_inplace (program.flag, i % 3 != 1, NULL);
      replay (&program);
    }
  fake_cuda_hold (FALSE);
  g_assert_cmpfloat (first_of (total), ==, expected);
  program_clear (&program);
}

static void
a_branch_runs_in_the_order_of_its_stream (void)
{
  CUstream before, inside;
  Program program;

  program_begin (&program);
  before = gtorch_stream_get_handle (program.stream);
  begin_if (&program);
  inside = gtorch_stream_get_handle (program.stream);
  g_assert_true (inside != before);
  negate_x (&program);
  g_assert_true (gtorch_cuda_graph_end_if (program.graph, NULL));
  g_assert_true (gtorch_stream_get_handle (program.stream) == before);
  program_end (&program);
  program_clear (&program);
}

/* --- work that the library does not launch --- */

static void
call_nothing (void *data)
{
}

static void
host_functions_are_refused_in_branches (void)
{
  Program program;

  program_begin (&program);
  begin_if (&program);
  negate_x (&program);
  OK (cuLaunchHostFunc (gtorch_stream_get_handle (program.stream), call_nothing, NULL));
  program_fail (&program, "graph: a branch cannot call a function of the host (node 1 of it)*");
  program_clear (&program);
}

static void
work_bypassing_a_branch_is_detected (void)
{
  CUstream before;
  Program program;

  program_begin (&program);
  before = gtorch_stream_get_handle (program.stream);
  begin_if (&program);
  negate_x (&program);
  OK (cuMemsetD8Async ((CUdeviceptr) (guintptr) gtorch_impl_data (program.x->impl), 0, 8, before));
  program_fail (&program, "graph: something was launched outside of a branch while it was open*");
  program_clear (&program);
}

static void
memory_of_the_programs_kernels_is_checked (void)
{
  guint i;

  for (i = 0; i < 9; i++)
    {
      const guint way = i / 3, place = i % 3; /* first, in the middle, last */
      GTorchTensor *theirs = filled (N, GTORCH_DTYPE_FLOAT64, 4);
      GError *error = NULL;
      Program program;

      program_begin (&program);
      if (way == 0)
        gtorch_checks_set (gtorch_checks | GTORCH_CHECK_GRAPH);
      begin_if (&program);
      if (place > 0)
        negate_x (&program);
      OK (cuMemsetD8Async ((CUdeviceptr) (guintptr) gtorch_impl_data (way == 0 ? program.x->impl
                                                                               : theirs->impl),
                           0, 8, gtorch_stream_get_handle (program.stream)));
      if (place < 2)
        negate_x (&program);
      g_assert_true (gtorch_cuda_graph_end_if (program.graph, NULL));
      if (way == 2)
        g_clear_object (&theirs);
      gtorch_graph_capture_end (program.capture, &error);
      gtorch_graph_capture_unref (program.capture);
      gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_GRAPH);
      if (way == 2)
        assert_error (&error, GTORCH_ERROR_CAPTURE,
                      "graph: a fill, which the library did not launch, uses memory at 0x* that "
                      "belongs to no tensor*");
      g_assert_no_error (error);
      g_assert_cmpuint (n_warnings, ==, way < 2);
      if (way == 0)
        g_assert_cmpstr (warning, ==,
                         "graph: 1 of its nodes were captured without the library: a fill");
      else if (way == 1)
        g_assert_nonnull (strstr (warning, "that belongs to a tensor, which the graph does not"));
      n_warnings = 0;
      g_clear_object (&theirs);
      program_clear (&program);
    }
}

/* --- drivers and builds without branches --- */

/* The kernel is the first in this program. */
static void
a_missing_kernel_leaves_the_graph_as_it_is (void)
{
  GError *error = NULL;
  Program program;

  program_begin (&program);
  negate_x (&program);
  fake_cuda_fail ("cuLibraryGetKernel", 1, CUDA_ERROR_NOT_FOUND);
  g_assert_false (gtorch_cuda_graph_begin_if (program.graph, program.flag, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_assert_nonnull (strstr (error->message, "gt_branch"));
  g_clear_error (&error);
  negate_x (&program);
  negate_x (&program);
  program_end (&program);
  replay (&program);
  g_assert_cmpfloat (first_of (program.x), ==, -3);
  program_clear (&program);
}

typedef struct
{
  gint is_over, has_joined;
  GTorchStream *stream;
  GTorchTensor *x;
} Other;

/* Creates streams; each creation looks at all queues. */
static gpointer
make_streams (gpointer data)
{
  while (!g_atomic_int_get (&((Other *) data)->is_over))
    {
      g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);

      g_assert_nonnull (stream);
    }
  return NULL;
}

/* Other threads do not see the queue of a branch after its end. */
static void
other_threads_do_not_see_the_queues_of_branches (void)
{
  Other other = { FALSE };
  GThread *thread;
  Program program;
  guint i;

  if (!g_test_subprocess ())
    {
      g_autofree gchar *more = g_strdup (g_getenv ("GTORCH_FAKE_CUDA_MORE"));

      g_setenv ("GTORCH_FAKE_CUDA_MORE", "jitter=300", TRUE);
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_setenv ("GTORCH_FAKE_CUDA_MORE", more != NULL ? more : "", TRUE);
      g_test_trap_assert_passed ();
      return;
    }
  gtorch_device_get_default_stream (gpu (0)); /* no other stream gets its queue */
  program_begin (&program);
  thread = g_thread_new ("other", make_streams, &other);
  for (i = 0; i < 300; i++)
    {
      begin_if (&program);
      negate_x (&program);
      g_assert_true (gtorch_cuda_graph_end_if (program.graph, NULL));
    }
  g_atomic_int_set (&other.is_over, TRUE);
  g_thread_join (thread);
  program_end (&program);
  replay (&program);
  g_assert_cmpfloat (first_of (program.x), ==, 3);
  program_clear (&program);
  assert_no_misuse ();
}

/* Uses the stream as soon as it does not capture any more. */
static gpointer
use_stream (gpointer data)
{
  Other *other = data;

  gtorch_stream_set_current (other->stream);
  while (!g_atomic_int_get (&other->is_over))
    if (g_atomic_int_get (&other->has_joined) && !gtorch_stream_is_capturing (other->stream))
      {
        g_autoptr (GTorchTensor) y = gtorch_tensor_neg (other->x, NULL);

        g_assert_nonnull (y);
        g_atomic_int_set (&other->has_joined, FALSE);
      }
  gtorch_stream_set_current (gtorch_device_get_default_stream (gpu (0)));
  return NULL;
}

static void
another_thread_may_use_a_stream_that_has_left (void)
{
  Other other = { FALSE };
  GThread *thread;
  guint i;

  other.stream = gtorch_stream_new (gpu (0), 0, NULL);
  other.x = filled (N, GTORCH_DTYPE_FLOAT64, 3);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  thread = g_thread_new ("other", use_stream, &other);
  for (i = 0; i < 100; i++)
    {
      Program program;

      program_begin (&program);
      begin_if (&program);
      g_assert_true (gtorch_stream_wait_stream (other.stream, program.stream, NULL));
      negate_x (&program);
      g_assert_true (gtorch_stream_wait_stream (program.stream, other.stream, NULL));
      g_atomic_int_set (&other.has_joined, TRUE);
      g_assert_true (gtorch_cuda_graph_end_if (program.graph, NULL));
      while (g_atomic_int_get (&other.has_joined))
        g_thread_yield ();
      program_end (&program);
      program_clear (&program);
    }
  g_atomic_int_set (&other.is_over, TRUE);
  g_thread_join (thread);
  g_object_unref (other.x);
  g_object_unref (other.stream);
  assert_no_misuse ();
}

#define N_JOINING 8

typedef struct
{
  GTorchEvent *event;
  GTorchStream *streams[N_JOINING];
} Joining;

static gpointer
join (gpointer data)
{
  Joining *joining = data;
  guint i;

  for (i = 0; i < N_JOINING; i++)
    {
      g_assert_true (gtorch_stream_wait_event (joining->streams[i], joining->event, NULL));
      g_thread_yield ();
    }
  return NULL;
}

/* The branches of a child graph are not branches of the outer one. */
static void
other_threads_let_streams_join (void)
{
  Program inner;
  guint i, j;

  program_begin (&inner);
  for (i = 0; i < 10; i++)
    {
      begin_if (&inner);
      negate_x (&inner);
      g_assert_true (gtorch_cuda_graph_end_if (inner.graph, NULL));
    }
  program_end (&inner);
  for (i = 0; i < 30; i++)
    {
      Joining joining;
      Program program;
      GThread *thread;

      for (j = 0; j < N_JOINING; j++)
        joining.streams[j] = gtorch_stream_new (gpu (0), 0, NULL);
      program_begin (&program);
      negate_x (&program);
      joining.event = gtorch_stream_record_event (program.stream, NULL);
      thread = g_thread_new ("joins", join, &joining);
      for (j = 0; j < 3; j++)
        g_assert_true (gtorch_cuda_graph_replay (inner.graph, NULL));
      g_thread_join (thread);
      for (j = 0; j < N_JOINING; j++)
        g_assert_true (gtorch_stream_is_capturing (joining.streams[j]));
      gtorch_stream_set_current (joining.streams[0]);
      negate_x (&program);
      gtorch_stream_set_current (program.stream);
      g_assert_true (gtorch_stream_wait_stream (program.stream, joining.streams[0], NULL));
      program_end (&program);
      replay (&program);
      g_assert_cmpfloat (first_of (program.x), ==, 3);
      program_clear (&program);
      for (j = 0; j < N_JOINING; j++)
        g_object_unref (joining.streams[j]);
      g_object_unref (joining.event);
    }
  program_clear (&inner);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  program_begin (&inner); /* frees the resources of the last replay */
  negate_x (&inner);
  program_end (&inner);
  program_clear (&inner);
  assert_no_misuse ();
}

static void
an_old_driver_is_reported (void)
{
  static const gchar *const missing[] = {
    "cuGraphConditionalHandleCreate",
    "cuGraphAddNode",
    "cuStreamUpdateCaptureDependencies",
    "cuStreamBeginCaptureToGraph",
  };
  guint i;

  if (g_test_subprocess ())
    {
      GError *error = NULL;
      Program program;

      program_begin (&program);
      negate_x (&program);
      g_assert_false (gtorch_cuda_graph_begin_if (program.graph, program.flag, &error));
      assert_error (&error, GTORCH_ERROR_NOT_SUPPORTED, "graph: *");
      negate_x (&program);
      if (g_getenv ("TEST_IS_FIRST") != NULL) /* nothing was begun */
        {
          program_end (&program);
          replay (&program);
          g_assert_cmpfloat (first_of (program.x), ==, 3);
        }
      else
        gtorch_graph_capture_unref (program.capture);
      program_clear (&program);
      return;
    }
  for (i = 0; i < G_N_ELEMENTS (missing); i++)
    {
      g_autofree gchar *settings = g_strconcat ("borrow=1,hide=", missing[i], NULL);

      g_setenv ("GTORCH_FAKE_CUDA", settings, TRUE);
      if (i == 0)
        g_setenv ("TEST_IS_FIRST", "1", TRUE);
      else
        g_unsetenv ("TEST_IS_FIRST");
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
    }
}

#define TEST(name) g_test_add_func ("/GTorchCudaGraph/branch/" #name, name)

gint
main (gint argc, gchar **argv)
{
  FakeCudaAccounts accounts;
  gint result;

  g_test_init (&argc, &argv, NULL);
  count_warnings ();
  TEST (a_missing_kernel_leaves_the_graph_as_it_is);
  TEST (the_host_does_not_wait);
  TEST (replays_are_queued);
  TEST (a_branch_runs_in_the_order_of_its_stream);
  TEST (host_functions_are_refused_in_branches);
  TEST (work_bypassing_a_branch_is_detected);
  TEST (memory_of_the_programs_kernels_is_checked);
  TEST (other_threads_do_not_see_the_queues_of_branches);
  TEST (another_thread_may_use_a_stream_that_has_left);
  TEST (other_threads_let_streams_join);
  TEST (an_old_driver_is_reported);
  result = g_test_run ();
  assert_no_misuse ();
  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.graphs, ==, 0);
  return result;
}
