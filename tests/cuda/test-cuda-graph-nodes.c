/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The nodes of a capture besides the library's own operations: kernels, copies and fills of the program,
 * and the memory that they use; and kernels that are loaded during a capture. */

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
  CUstream handle;
  GTorchGraphCapture *capture;
} Program;

static GTorchTensor *
filled (gdouble value)
{
  GError *error = NULL;
  GTorchTensor *result =
      gtorch_full (GTORCH_SHAPE (N), value, GTORCH_DTYPE_FLOAT64, gpu (0), &error);

  g_assert_no_error (error);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  return result;
}

static CUdeviceptr
address_of (GTorchTensor *x)
{
  return (CUdeviceptr) (guintptr) gtorch_impl_data (x->impl);
}

static gdouble
first_of (GTorchTensor *x)
{
  g_autofree gdouble *values = read_doubles (x->impl);

  return values[0];
}

static void
program_begin (Program *self, GTorchCaptureMode mode)
{
  GError *error = NULL;

  self->graph = gtorch_cuda_graph_new ();
  self->stream = gtorch_stream_new (gpu (0), 0, NULL);
  self->handle = gtorch_stream_get_handle (self->stream);
  self->capture = gtorch_graph_capture_new (self->graph, self->stream, NULL, mode, &error);
  g_assert_no_error (error);
}

/* Ends the capture and returns the error, or NULL. */
static GError *
program_end (Program *self)
{
  GError *error = NULL;

  gtorch_graph_capture_end (self->capture, &error);
  gtorch_graph_capture_unref (self->capture);
  return error;
}

static void
program_clear (Program *self)
{
  g_object_unref (self->graph);
  g_object_unref (self->stream);
}

/* Launches a kernel of the program: y = -x. */
static void
negate (CUstream stream, CUdeviceptr y, CUdeviceptr x)
{
  static const gint64 image;
  static CUlibrary library;
  static CUkernel kernel;
  GtContiguous parameters = { .data = { (void *) (guintptr) y, (void *) (guintptr) x }, .n = N };
  void *pointers[] = { &parameters };

  if (kernel == NULL)
    {
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

      OK (cuThreadExchangeStreamCaptureMode (&mode));
      OK (cuLibraryLoadData (&library, &image, NULL, NULL, 0, NULL, NULL, 0));
      OK (cuThreadExchangeStreamCaptureMode (&mode));
      OK (cuLibraryGetKernel (&kernel, library, "gt_neg_f64"));
    }
  OK (cuLaunchKernel ((CUfunction) kernel, 1, 1, 1, 128, 1, 1, 0, stream, pointers, NULL));
}

#define ASSERT_WARNINGS(n, pattern)                          \
  G_STMT_START                                               \
  {                                                          \
    g_assert_cmpuint (n_warnings, ==, n);                    \
    if (n > 0 && !g_pattern_match_simple (pattern, warning)) \
      g_error ("the warning is “%s”", warning);              \
    n_warnings = 0;                                          \
  }                                                          \
  G_STMT_END

/* --- nodes of the library --- */

static GTorchTensor *
use_much (Program *self, GTorchTensor *x, GTorchTensor *matrix, GTorchCUDAGraph *child)
{
  g_autoptr (GTorchStream) side = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchTensor) squares = gtorch_tensor_mul (x, x, NULL);
  g_autoptr (GTorchTensor) product = gtorch_tensor_matmul (matrix, matrix, NULL);
  g_autoptr (GTorchTensor) total =
      gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_autoptr (GTorchTensor) noise =
      gtorch_rand (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT64, gpu (0), NULL, NULL);
  g_autoptr (GTorchTensor) elsewhere = NULL;

  g_assert_true (gtorch_stream_wait_stream (side, self->stream, NULL));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (side);

    elsewhere = gtorch_tensor_neg (squares, NULL);
  }
  g_assert_true (gtorch_cuda_graph_replay (child, NULL));
  g_assert_true (gtorch_stream_wait_stream (self->stream, side, NULL));
  g_assert_nonnull (gtorch_tensor_add_inplace (squares, noise, 1, NULL));
  g_assert_nonnull (gtorch_tensor_zero_inplace (squares, NULL));
  return gtorch_tensor_sub (squares, elsewhere, 1, NULL);
}

static void
the_librarys_nodes_are_known (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GTorchTensor) matrix =
      gtorch_ones (GTORCH_SHAPE (40, 40), GTORCH_DTYPE_FLOAT32, gpu (0), NULL);
  g_autoptr (GTorchTensor) y = NULL;
  Program inner, outer;
  GError *error;

  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_GRAPH);
  program_begin (&inner, MODE);
  g_assert_nonnull (gtorch_tensor_neg_inplace (x, NULL));
  error = program_end (&inner);
  g_assert_no_error (error);
  program_begin (&outer, MODE);
  y = use_much (&outer, x, matrix, inner.graph);
  error = program_end (&outer);
  gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_GRAPH);
  g_assert_no_error (error);
  ASSERT_WARNINGS (0, "");
  g_assert_true (gtorch_cuda_graph_replay_on (outer.graph, outer.stream, &error));
  g_assert_true (gtorch_stream_synchronize (outer.stream, NULL, NULL));
  g_assert_cmpfloat (first_of (y), ==, 9);
  program_clear (&inner);
  program_clear (&outer);
}

/* --- nodes of the program --- */

/* The graph keeps the results of the capture, its operands and its named inputs. */
static void
memory_of_the_graph_may_be_used (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GTorchTensor) named = filled (4);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchTensor *dropped;
  CUdeviceptr other;
  Program program;
  GError *error;

  OK (cuMemAlloc (&other, N * 8));
  program_begin (&program, MODE);
  dropped = gtorch_tensor_add_scalar (x, 1, 1, NULL);
  y = gtorch_tensor_neg (x, NULL);
  OK (cuMemcpyDtoDAsync (address_of (y), address_of (named), 8, program.handle));
  negate (program.handle, address_of (dropped), address_of (x));
  OK (cuMemcpyDtoDAsync (address_of (y) + 8, address_of (dropped), 8, program.handle));
  OK (cuMemsetD8Async (other, 0, N * 8, program.handle)); /* not memory of the library */
  g_object_unref (dropped);
  g_assert_true (gtorch_cuda_graph_add_input (program.graph, "named", named, NULL));
  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_GRAPH);
  error = program_end (&program);
  gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_GRAPH);
  g_assert_no_error (error);
  ASSERT_WARNINGS (1,
                   "graph: 4 of its nodes were captured without the library: a copy, gt_neg_f64, "
                   "a copy, a fill");
  g_assert_cmpuint (gtorch_cuda_graph_get_n_nodes (program.graph), ==, 2);
  g_assert_true (gtorch_cuda_graph_replay_on (program.graph, program.stream, &error));
  g_assert_true (gtorch_stream_synchronize (program.stream, NULL, NULL));
  g_assert_cmpfloat (first_of (y), ==, 4);
  program_clear (&program);
  OK (cuMemFree (other));
}

static void
a_graph_of_the_programs_kernels_is_not_empty (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  Program program;
  GError *error = NULL;

  program_begin (&program, MODE);
  g_assert_true (gtorch_cuda_graph_add_input (program.graph, "x", x, NULL));
  negate (program.handle, address_of (x), address_of (x));
  error = program_end (&program);
  g_assert_no_error (error);
  ASSERT_WARNINGS (0, "");
  g_assert_true (gtorch_cuda_graph_replay_on (program.graph, program.stream, &error));
  g_assert_true (gtorch_stream_synchronize (program.stream, NULL, NULL));
  g_assert_cmpfloat (first_of (x), ==, -3);
  program_clear (&program);
}

static void
memory_that_the_graph_does_not_keep_is_reported (void)
{
  guint way;

  for (way = 0; way < 4; way++) /* written and read by a kernel, a fill, a copy */
    {
      static const gchar *const names[] = { "gt_neg_f64", "gt_neg_f64", "a fill", "a copy" };
      g_autoptr (GTorchTensor) x = filled (3);
      g_autoptr (GTorchTensor) theirs = filled (4);
      g_autofree gchar *pattern =
          g_strdup_printf ("graph: %s, which the library did not launch, uses memory at 0x* that "
                           "belongs to a "
                           "tensor, which the graph does not keep: make the tensor an input*",
                           names[way]);
      Program program;
      GError *error;

      program_begin (&program, MODE);
      gtorch_tensor_neg_inplace (x, NULL);
      if (way < 2)
        negate (program.handle, address_of (way == 0 ? theirs : x),
                address_of (way == 0 ? x : theirs) + 80);
      else if (way == 2)
        OK (cuMemsetD32Async (address_of (theirs), 0, 2, program.handle));
      else
        OK (cuMemcpyDtoDAsync (address_of (x), address_of (theirs), 80, program.handle));
      gtorch_tensor_neg_inplace (x, NULL);
      error = program_end (&program);
      g_assert_no_error (error);
      ASSERT_WARNINGS (1, pattern);
      program_clear (&program);
    }
}

static void
unowned_memory_is_an_error (void)
{
  guint relaxed;

  for (relaxed = 0; relaxed < 2; relaxed++)
    {
      g_autoptr (GTorchTensor) x = filled (3);
      GTorchTensor *theirs = filled (4);
      Program program;
      GError *error;

      program_begin (&program, relaxed ? GTORCH_CAPTURE_MODE_RELAXED : MODE);
      gtorch_tensor_neg_inplace (x, NULL);
      negate (program.handle, address_of (x), address_of (theirs));
      g_object_unref (theirs);
      error = program_end (&program);
      if (relaxed)
        {
          g_assert_no_error (error);
          ASSERT_WARNINGS (1, "graph: gt_neg_f64, which *that belongs to no tensor*");
        }
      else
        {
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
          g_assert_true (g_pattern_match_simple ("graph: gt_neg_f64, which the library did not "
                                                 "launch, uses memory at 0x* that "
                                                 "belongs to no tensor, and every replay would*",
                                                 error->message));
          g_clear_error (&error);
          g_assert_cmpint (gtorch_cuda_graph_get_state (program.graph), ==,
                           GTORCH_GRAPH_STATE_EMPTY);
          ASSERT_WARNINGS (0, "");
          /* and the graph can be used again */
          program.capture =
              gtorch_graph_capture_new (program.graph, program.stream, NULL, MODE, &error);
          g_assert_no_error (error);
          gtorch_tensor_neg_inplace (x, NULL);
          error = program_end (&program);
          g_assert_no_error (error);
          g_assert_true (gtorch_cuda_graph_replay_on (program.graph, program.stream, &error));
        }
      program_clear (&program);
    }
}

static void
unknown_nodes_are_not_cloned (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  g_autoptr (GTorchTensor) other = filled (4);
  Program inner, outer;
  GError *error;

  program_begin (&inner, MODE);
  gtorch_tensor_neg_inplace (x, NULL);
  negate (inner.handle, address_of (x), address_of (x));
  error = program_end (&inner);
  g_assert_no_error (error);
  g_assert_false (gtorch_cuda_graph_rebind (inner.graph, x, other, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==,
                   "graph: it has 1 nodes that the library did not launch, whose inputs cannot be "
                   "replaced");
  g_clear_error (&error);
  program_begin (&outer, MODE);
  gtorch_tensor_neg_inplace (x, NULL);
  g_assert_false (gtorch_cuda_graph_replay (inner.graph, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_assert_cmpstr (error->message, ==,
                   "graph: a graph with 1 nodes that the library did not launch cannot become part "
                   "of another one");
  g_clear_error (&error);
  error = program_end (&outer);
  g_assert_no_error (error);
  ASSERT_WARNINGS (0, "");
  program_clear (&inner);
  program_clear (&outer);
}

/* Replays are compared with the library's operations only; such kernels are not among them. */
static void
graphs_with_unknown_nodes_are_not_compared (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  Program program;
  GError *error;
  guint i;

  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_REPLAY);
  program_begin (&program, MODE);
  gtorch_tensor_add_scalar_inplace (x, 1, 1, NULL);
  negate (program.handle, address_of (x), address_of (x));
  error = program_end (&program);
  g_assert_no_error (error);
  for (i = 0; i < 2; i++)
    {
      gtorch_cuda_graph_replay_on (program.graph, program.stream, &error);
      g_assert_no_error (error);
    }
  gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_REPLAY);
  g_assert_true (gtorch_stream_synchronize (program.stream, NULL, NULL));
  g_assert_cmpfloat (first_of (x), ==, 3);
  program_clear (&program);
}

static void
failures_of_the_audit_are_errors (void)
{
  static const gchar *const calls[] = { "cuGraphGetNodes", "cuStreamGetCaptureInfo",
                                        "cuGraphNodeGetDependencies" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (calls); i++)
    {
      g_autoptr (GTorchTensor) x = filled (3);
      Program program;
      GError *error;

      program_begin (&program, MODE);
      fake_cuda_fail (calls[i], 1, CUDA_ERROR_OUT_OF_MEMORY);
      gtorch_tensor_neg_inplace (x, NULL);
      gtorch_tensor_neg_inplace (x, NULL);
      error = program_end (&program);
      g_assert_true (fake_cuda_clear_faults ());
      if (i == 0)
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
      else /* then nothing is known, and nothing is reported */
        g_assert_no_error (error);
      g_clear_error (&error);
      ASSERT_WARNINGS (0, "");
      program_clear (&program);
    }
}

/* --- kernels that are loaded late --- */

static gchar *message;

static GLogWriterOutput
keep_message (GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer data)
{
  gsize i;

  for (i = 0; i < n_fields; i++)
    if (level == G_LOG_LEVEL_MESSAGE && strcmp (fields[i].key, "MESSAGE") == 0)
      {
        g_free (message);
        message = g_strdup (fields[i].value);
      }
  return G_LOG_WRITER_HANDLED;
}

static void
kernels_are_loaded_in_captures (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  guint i;

  g_log_set_writer_func (keep_message, NULL, NULL);
  for (i = 0; i < 3; i++) /* not loaded; loaded; without the check */
    {
      Program program;
      GError *error;

      g_clear_pointer (&message, g_free);
      fake_cuda_reset_calls ();
      if (i < 2)
        gtorch_checks_set (gtorch_checks | GTORCH_CHECK_GRAPH);
      program_begin (&program, MODE);
      if (i < 2)
        gtorch_tensor_exp_inplace (x, NULL);
      else
        gtorch_tensor_sin_inplace (x, NULL);
      error = program_end (&program);
      gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_GRAPH);
      g_assert_no_error (error);
      g_assert_cmpuint (fake_cuda_get_calls ("cuFuncIsLoaded"), ==, 1);
      g_assert_cmpuint (fake_cuda_get_calls ("cuFuncLoad"), ==, i != 1);
      if (i == 0)
        g_assert_cmpstr (message, ==,
                         "graph: these kernels were loaded while it was captured, which may have "
                         "taken long: gt_exp_f64; a warm-up loads them before");
      else
        g_assert_null (message);
      program_clear (&program);
    }
}

static void
a_kernel_that_cannot_be_loaded_is_an_error (void)
{
  g_autoptr (GTorchTensor) x = filled (3);
  Program program;
  GError *error = NULL;

  program_begin (&program, MODE);
  fake_cuda_fail ("cuFuncLoad", 1, CUDA_ERROR_OUT_OF_MEMORY);
  g_assert_null (gtorch_tensor_cos_inplace (x, &error));
  g_assert_true (fake_cuda_clear_faults ());
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  g_assert_nonnull (gtorch_tensor_cos_inplace (x, &error)); /* the capture continues */
  error = program_end (&program);
  g_assert_no_error (error);
  program_clear (&program);
}

#define TEST(name) g_test_add_func ("/GTorchCudaGraph/nodes/" #name, name)

gint
main (gint argc, gchar **argv)
{
  FakeCudaAccounts accounts;
  gint result;

  g_test_init (&argc, &argv, NULL);
  count_warnings ();
  TEST (kernels_are_loaded_in_captures);
  TEST (a_kernel_that_cannot_be_loaded_is_an_error);
  TEST (the_librarys_nodes_are_known);
  TEST (memory_of_the_graph_may_be_used);
  TEST (a_graph_of_the_programs_kernels_is_not_empty);
  TEST (memory_that_the_graph_does_not_keep_is_reported);
  TEST (unowned_memory_is_an_error);
  TEST (unknown_nodes_are_not_cloned);
  TEST (graphs_with_unknown_nodes_are_not_compared);
  TEST (failures_of_the_audit_are_errors);
  result = g_test_run ();
  assert_no_misuse ();
  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.graphs, ==, 0);
  return result;
}
