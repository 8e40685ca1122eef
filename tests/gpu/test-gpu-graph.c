/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Graphs on a real GPU: captures of NVIDIA's libraries and of lazily loaded kernels, whole training
 * steps, and replays compared with eager code bit by bit. */

#include "config.h"

#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/tensor/gtorch-tensor-private.h>

#include "gpu-test.h"

#define MODE GTORCH_CAPTURE_MODE_THREAD_LOCAL

static void
assert_same (const gchar *what, GTorchTensor *x, GTorchTensor *expected)
{
  g_autoptr (GBytes) a = gtorch_tensor_get_bytes (x, NULL);
  g_autoptr (GBytes) b = gtorch_tensor_get_bytes (expected, NULL);

  if (!g_bytes_equal (a, b))
    g_error ("%s: the replay gave other bits", what);
}

/* --- operations whose first call in this process is captured --- */

typedef GTorchTensor *(*Function) (GTorchTensor *x, GError **error);

static GTorchTensor *
multiply (GTorchTensor *x, GError **error)
{
  return gtorch_tensor_matmul (x, x, error);
}

static GTorchTensor *
convolve (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) images = gtorch_tensor_reshape (x, GTORCH_SHAPE (16, 64, 16, 64), error);
  g_autoptr (GTorchTensor) filters =
      gtorch_full (GTORCH_SHAPE (8, 64, 3, 3), 0.01, gtorch_tensor_get_dtype (x), gpu, error);

  return gtorch_conv2d (images, filters, NULL, GTORCH_SHAPE (1, 1), GTORCH_SHAPE (1, 1),
                        GTORCH_SHAPE (1, 1), 1, error);
}

static GTorchTensor *
attend (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) half = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_BFLOAT16, error);
  g_autoptr (GTorchTensor) rows =
      half != NULL ? gtorch_tensor_reshape (half, GTORCH_SHAPE (4, 16, 256, 64), error) : NULL;

  return gtorch_scaled_dot_product_attention (rows, rows, rows, NULL, 0, FALSE, 0.125, FALSE,
                                              error);
}

static GTorchTensor *
transform (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) waves = gtorch_fft_fft (x, -1, -1, GTORCH_FFT_NORM_BACKWARD, error);

  return waves != NULL ? gtorch_tensor_abs (waves, error) : NULL;
}

static GTorchTensor *
order (GTorchTensor *x, GError **error)
{
  GTorchTensor *values = NULL, *indices = NULL;

  if (gtorch_tensor_sort (x, 1, FALSE, FALSE, &values, &indices, error))
    g_object_unref (indices);
  return values;
}

static GTorchTensor *
sum_up (GTorchTensor *x, GError **error)
{
  return gtorch_tensor_cumsum (x, 0, GTORCH_DTYPE_NONE, error);
}

static GTorchTensor *
normalize (GTorchTensor *x, GError **error)
{
  return gtorch_tensor_softmax (x, 1, GTORCH_DTYPE_NONE, error);
}

static void
libraries_begin_in_a_capture (gconstpointer data)
{
  const Function function = *(const Function *) data;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_randn (GTORCH_SHAPE (1024, 1024), GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchGraphCapture) capture = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
  /* a node that is not known as the library's would be a warning */
  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_GRAPH);
  capture = gtorch_graph_capture_new (graph, stream, NULL, MODE, &error);
  g_assert_no_error (error);
  y = must (function (x, &error), error);
  gtorch_graph_capture_end (capture, &error);
  gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_GRAPH);
  g_assert_no_error (error);
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) expected = NULL;

      gtorch_tensor_mul_scalar_inplace (x, 0.9, NULL);
      expected = must (function (x, &error), error);
      g_assert_true (gtorch_cuda_graph_replay (graph, &error));
      g_assert_true (gtorch_device_synchronize (gpu, NULL, &error));
      assert_same ("graph", y, expected);
    }
}

/* --- in branches --- */

/* The driver restricts kernels in a branch; the libraries do not know these rules. */
static void
libraries_are_in_branches (gconstpointer data)
{
  const Function function = *(const Function *) data;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_randn (GTORCH_SHAPE (1024, 1024), GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  g_autoptr (GTorchTensor) flag = TRY (gtorch_full (NULL, 0, 1, GTORCH_DTYPE_BOOL, gpu, &error));
  g_autoptr (GTorchTensor) expected = TRY (function (x, &error));
  g_autoptr (GTorchTensor) kept = TRY (gtorch_tensor_clone (expected, &error));
  g_autoptr (GTorchGraphCapture) capture = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
  gtorch_checks_set (gtorch_checks | GTORCH_CHECK_GRAPH);
  capture = gtorch_graph_capture_new (graph, stream, NULL, MODE, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_cuda_graph_begin_if (graph, flag, &error));
  {
    g_autoptr (GTorchTensor) y = must (function (x, &error), error);

    must (gtorch_tensor_copy_inplace (kept, y, FALSE, &error), error);
  }
  gtorch_cuda_graph_end_if (graph, &error);
  g_assert_no_error (error);
  gtorch_graph_capture_end (capture, &error);
  gtorch_checks_set (gtorch_checks & ~GTORCH_CHECK_GRAPH);
  g_assert_no_error (error);
  for (i = 0; i < 6; i++)
    {
      gtorch_tensor_mul_scalar_inplace (x, 0.9, NULL);
      gtorch_tensor_fill_inplace (flag, i % 3 != 1, NULL);
      if (i % 3 != 1)
        {
          g_clear_object (&expected);
          expected = must (function (x, &error), error);
        }
      gtorch_cuda_graph_replay (graph, &error);
      g_assert_no_error (error);
      g_assert_true (gtorch_device_synchronize (gpu, NULL, &error));
      assert_same ("branch", kept, expected);
    }
}

/* --- kernels of the program --- */

static const gchar program[] = ".version 7.0\n"
                               ".target sm_75\n"
                               ".address_size 64\n"
                               ".visible .entry write_seven (.param .u32 n, .param .u64 to)\n"
                               "{\n"
                               "  .reg .u64 %a<3>;\n"
                               "  .reg .f64 %seven;\n"
                               "  ld.param.u64 %a1, [to];\n"
                               "  cvta.to.global.u64 %a2, %a1;\n"
                               "  mov.f64 %seven, 0d401C000000000000;\n"
                               "  st.global.f64 [%a2], %seven;\n"
                               "  ret;\n"
                               "}\n";

#define OK(call) g_assert_cmpint (gtorch_cuda.call, ==, CUDA_SUCCESS)

static void
write_seven (GTorchStream *stream, GTorchTensor *to)
{
  static CUlibrary library;
  static CUkernel kernel;
  guint32 n = 1;
  gpointer address = gtorch_impl_data (to->impl);
  void *parameters[] = { &n, &address };

  if (kernel == NULL)
    {
      OK (cuLibraryLoadData (&library, program, NULL, NULL, 0, NULL, NULL, 0));
      OK (cuLibraryGetKernel (&kernel, library, "write_seven"));
    }
  OK (cuLaunchKernel ((CUfunction) kernel, 1, 1, 1, 1, 1, 1, 0, gtorch_stream_get_handle (stream),
                      parameters, NULL));
}

enum
{
  OPERAND,
  RESULT,
  INPUT,
  LIVE,
  GONE,
  N_WAYS
};

static void
kernels_of_the_program_are_seen (void)
{
  guint way;

  /* memory that went back to the driver has no owner */
  for (way = OPERAND; way < (memory_is_cached () ? N_WAYS : GONE); way++)
    {
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
      g_autoptr (GTorchTensor) x =
          TRY (gtorch_ones (GTORCH_SHAPE (1000), GTORCH_DTYPE_FLOAT64, gpu, &error));
      GTorchTensor *other =
          TRY (gtorch_ones (GTORCH_SHAPE (1000), GTORCH_DTYPE_FLOAT64, gpu, &error));
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchGraphCapture) capture = NULL;
      g_autoptr (GError) error = NULL;
      GTorchTensor *to;

      write_seven (stream, other); /* this loads the kernel */
      g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
      capture = gtorch_graph_capture_new (graph, stream, NULL, MODE, &error);
      g_assert_no_error (error);
      y = must (gtorch_tensor_neg (x, &error), error);
      to = way == OPERAND ? x : way == RESULT ? y : other;
      write_seven (stream, to);
      if (way == INPUT)
        g_assert_true (gtorch_cuda_graph_add_input (graph, "other", other, NULL));
      if (way == GONE)
        g_clear_object (&other);
      if (way == LIVE)
        g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING,
                               "graph: write_seven, which the library did not launch, uses memory "
                               "at 0x* that belongs to a tensor, which the graph does not keep*");
      gtorch_graph_capture_end (capture, &error);
      g_test_assert_expected_messages ();
      if (way == GONE)
        {
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
          g_assert_nonnull (strstr (error->message, "graph: write_seven, which the library did "));
          continue;
        }
      g_assert_no_error (error);
      g_assert_true (gtorch_cuda_graph_replay_on (graph, stream, &error));
      g_assert_true (gtorch_device_synchronize (gpu, NULL, &error));
      {
        g_autoptr (GTorchTensor) first = must (gtorch_tensor_select (to, 0, 0, &error), error);

        g_assert_cmpfloat (gtorch_tensor_item_double (first, NULL), ==, 7);
      }
      g_clear_object (&other);
    }
}

/* --- random numbers --- */

static void
draw (GTorchTensor *x, GTorchTensor **results)
{
  const gint64 n = 100000;

  results[0] = TRY (gtorch_rand (&n, 1, GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  results[1] = TRY (gtorch_randn (&n, 1, GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  results[2] = TRY (gtorch_tensor_dropout (x, 0.3, TRUE, NULL, &error));
  results[3] = TRY (gtorch_randperm (5000, GTORCH_DTYPE_INT64, gpu, NULL, &error));
}

static void
replays_draw_as_eager_code (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_ones (GTORCH_SHAPE (100000), GTORCH_DTYPE_FLOAT32, gpu, &error));
  GTorchTensor *results[4];
  g_autoptr (GTorchGraphCapture) capture = NULL;
  GError *error = NULL;
  guint round, i;

  g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
  capture = gtorch_graph_capture_new (graph, stream, NULL, MODE, &error);
  g_assert_no_error (error);
  draw (x, results);
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  for (round = 0; round < 3; round++)
    {
      GTorchTensor *expected[4];

      gtorch_manual_seed (round);
      draw (x, expected);
      gtorch_manual_seed (round);
      g_assert_true (gtorch_cuda_graph_replay_on (graph, stream, &error));
      g_assert_true (gtorch_device_synchronize (gpu, NULL, &error));
      for (i = 0; i < 4; i++)
        {
          assert_same ("random", results[i], expected[i]);
          g_object_unref (expected[i]);
        }
    }
  for (i = 0; i < 4; i++)
    g_object_unref (results[i]);
}

/* In a branch the numbers are passed to nodes of another graph than the launched one. */
static void
branches_draw_as_eager_code (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
  g_autoptr (GTorchTensor) flag = TRY (gtorch_full (NULL, 0, 1, GTORCH_DTYPE_BOOL, gpu, &error));
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_ones (GTORCH_SHAPE (100000), GTORCH_DTYPE_FLOAT32, gpu, &error));
  GTorchTensor *results[4], *expected[4] = { NULL };
  g_autoptr (GTorchGraphCapture) capture = NULL;
  GError *error = NULL;
  guint round, i;

  g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
  capture = gtorch_graph_capture_new (graph, stream, NULL, MODE, &error);
  g_assert_no_error (error);
  gtorch_cuda_graph_begin_if (graph, flag, &error);
  g_assert_no_error (error);
  gtorch_cuda_graph_begin_if (graph, flag, &error);
  g_assert_no_error (error);
  draw (x, results);
  g_assert_true (gtorch_cuda_graph_end_if (graph, &error));
  g_assert_true (gtorch_cuda_graph_end_if (graph, &error));
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  for (round = 0; round < 5; round++)
    {
      const gboolean is_left_out = round == 2;

      gtorch_manual_seed (round);
      for (i = 0; i < 4 && !is_left_out; i++)
        g_clear_object (&expected[i]);
      if (!is_left_out)
        draw (x, expected);
      gtorch_manual_seed (round);
      gtorch_tensor_fill_inplace (flag, !is_left_out, NULL);
      gtorch_cuda_graph_replay (graph, &error);
      g_assert_no_error (error);
      gtorch_device_synchronize (gpu, NULL, &error);
      g_assert_no_error (error);
      for (i = 0; i < 4; i++)
        assert_same ("random", results[i], expected[i]);
    }
  for (i = 0; i < 4; i++)
    {
      g_object_unref (results[i]);
      g_object_unref (expected[i]);
    }
}

/* --- a whole training step --- */

typedef struct
{
  GTorchModule *model;
  GTorchOptimizer *optimizer;
  GTorchTensor *x, *t, *loss;
} Training;

static void
training_init (Training *self)
{
  g_autoptr (GListModel) parameters = NULL;
  GTorchModule *layers[] = {
    GTORCH_MODULE (gtorch_linear_new (64, 128, NULL)),
    GTORCH_MODULE (gtorch_relu_new ()),
    GTORCH_MODULE (gtorch_dropout_new (0.2, NULL)),
    GTORCH_MODULE (gtorch_linear_new (128, 10, NULL)),
  };
  guint i;

  gtorch_manual_seed (11);
  for (i = 0; i < 2; i++)
    { /* drawn anew, equally for both trainings */
      g_object_unref (layers[3 * i]);
      layers[3 * i] = GTORCH_MODULE (i == 0 ? gtorch_linear_new (64, 128, NULL)
                                            : gtorch_linear_new (128, 10, NULL));
    }
  self->model = GTORCH_MODULE (gtorch_sequential_new_from_modules (layers, 4, NULL));
  for (i = 0; i < 4; i++)
    g_object_unref (layers[i]);
  g_assert_true (gtorch_module_to (self->model, gpu, GTORCH_DTYPE_NONE, NULL));
  parameters = gtorch_module_get_parameters (self->model, TRUE);
  self->optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (parameters, 0.1, 0.9, NULL));
  gtorch_optimizer_set_capturable (self->optimizer, TRUE);
  self->x = TRY (gtorch_randn (GTORCH_SHAPE (32, 64), GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  self->t = TRY (gtorch_randint (0, 10, GTORCH_SHAPE (32), GTORCH_DTYPE_INT64, gpu, NULL, &error));
  self->loss = NULL;
}

static void
training_clear (Training *self)
{
  g_object_unref (self->model);
  g_object_unref (self->optimizer);
  g_object_unref (self->x);
  g_object_unref (self->t);
  g_clear_object (&self->loss);
}

static gboolean
step (GTorchStream *stream, gpointer data, GError **error)
{
  Training *self = data;
  g_autoptr (GTorchTensor) output = NULL;

  if (!gtorch_optimizer_zero_grad (self->optimizer, TRUE, error))
    return FALSE;
  output = gtorch_module_forward (self->model, self->x, error);
  g_clear_object (&self->loss);
  self->loss = output != NULL ? gtorch_tensor_cross_entropy (output, self->t, NULL,
                                                             GTORCH_REDUCTION_MEAN, -100, 0, error)
                              : NULL;
  return self->loss != NULL && gtorch_tensor_backward (self->loss, NULL, FALSE, FALSE, error)
         && gtorch_optimizer_step (self->optimizer, error);
}

static void
training_is_the_same_as_a_graph (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
  Training eager, captured;
  GError *error = NULL;
  guint i;

  training_init (&eager);
  training_init (&captured);
  g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
  /* The momentum is created in the first step, which is not captured. */
  gtorch_manual_seed (5);
  g_assert_true (step (NULL, &eager, &error));
  gtorch_manual_seed (5);
  g_assert_true (gtorch_stream_run (stream, step, &captured, &error));
  gtorch_cuda_graph_capture (graph, stream, NULL, step, &captured, &error);
  g_assert_no_error (error);
  for (i = 0; i < 20; i++)
    {
      gtorch_manual_seed (100 + i);
      step (NULL, &eager, &error);
      g_assert_no_error (error);
      gtorch_manual_seed (100 + i);
      g_assert_true (gtorch_cuda_graph_replay_on (graph, stream, &error));
      g_assert_true (gtorch_device_synchronize (gpu, NULL, &error));
      assert_same ("loss", captured.loss, eager.loss);
    }
  training_clear (&eager);
  training_clear (&captured);
}

static const struct
{
  const gchar *name;
  Function function;
} functions[] = {
  { "matmul", multiply }, { "conv2d", convolve }, { "attention", attend },  { "fft", transform },
  { "sort", order },      { "cumsum", sum_up },   { "softmax", normalize },
};

gint
main (gint argc, gchar **argv)
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  for (i = 0; i < G_N_ELEMENTS (functions); i++)
    {
      g_autofree gchar *path =
          g_strconcat ("/GTorchGpuGraph/libraries_begin_in_a_capture/", functions[i].name, NULL);

      g_test_add_data_func (path, &functions[i].function, libraries_begin_in_a_capture);
    }
  for (i = 0; i < G_N_ELEMENTS (functions); i++)
    {
      g_autofree gchar *path =
          g_strconcat ("/GTorchGpuGraph/libraries_are_in_branches/", functions[i].name, NULL);

      g_test_add_data_func (path, &functions[i].function, libraries_are_in_branches);
    }
  g_test_add_func ("/GTorchGpuGraph/kernels_of_the_program_are_seen",
                   kernels_of_the_program_are_seen);
  g_test_add_func ("/GTorchGpuGraph/replays_draw_as_eager_code", replays_draw_as_eager_code);
  /* compute-sanitizer's instrumentation of these kernels aborts in a branch, without any access of theirs
   * being wrong: neither without instrumentation, nor with initcheck or synccheck, nor outside of
   * branches */
  if (!is_under_sanitizer ())
    g_test_add_func ("/GTorchGpuGraph/branches_draw_as_eager_code", branches_draw_as_eager_code);
  g_test_add_func ("/GTorchGpuGraph/training_is_the_same_as_a_graph",
                   training_is_the_same_as_a_graph);
  return g_test_run ();
}
