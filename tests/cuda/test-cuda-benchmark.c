/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The fastest algorithm is searched if the benchmark mode is enabled, and only then. */

#include "config.h"

#include <tests/fake-cuda/cudnn/fake-cudnn.h>
#include <tests/fake-cuda/fake-cublaslt.h>

#include "cuda-test.h"
#include "cuda/ops/gtorch-cuda-cudnn-private.h"
#include "cuda/ops/gtorch-cuda-matmul-private.h"

#define N_ALGORITHMS          5 /* as the fake cublasLt has */
#define NOTE_NONDETERMINISTIC 4

static guint quickest, broken;
static gint64 next_size = 8; /* each test has its own shapes */

static void
take_time (void *data)
{
  fake_cuda_pass_time (3000);
}

/* All algorithms but the fastest take time. */
static void
work (void *stream, unsigned algorithm)
{
  if (algorithm != quickest)
    g_assert_cmpint (gtorch_cuda.cuLaunchHostFunc (stream, take_time, NULL), ==, 0);
}

static int
multiply (void *stream, unsigned algorithm)
{
  if (algorithm == broken)
    return 13;
  work (stream, algorithm);
  return 0;
}

static void
set_up (guint which)
{
  guint i;

  quickest = which;
  broken = G_MAXUINT;
  fake_cublaslt.multiply = multiply;
  fake_cudnn.n_engines = 6;
  fake_cudnn.execute = work;
  for (i = 0; i < FAKE_CUDNN_MAX_ENGINES; i++)
    {
      fake_cudnn.engines[i].workspace = 0;
      fake_cudnn.engines[i].note = -1;
      fake_cudnn.engines[i].fails = FALSE;
    }
  gtorch_device_set_benchmark (gpu (0), TRUE);
  next_size += 8;
}

static void
tear_down (void)
{
  GError *error = NULL;

  gtorch_device_synchronize (gpu (0), NULL, &error);
  g_assert_no_error (error);
  gtorch_device_set_benchmark (gpu (0), FALSE);
  gtorch_device_set_deterministic (gpu (0), FALSE);
}

static GTorchImpl *
draw (const gint64 *shape, guint n_dims)
{
  GError *error = NULL;
  GTorchImpl *result = gtorch_impl_new (gpu (0), GTORCH_DTYPE_FLOAT32, shape, n_dims, &error);

  g_assert_no_error (error);
  return result;
}

static CUstream
begin_capture (void)
{
  GError *error = NULL;
  GTorchCudaLane *lane = gtorch_cuda_current_lane (gpu (0), &error);

  g_assert_no_error (error);
  g_assert_cmpint (gtorch_cuda.cuStreamBeginCapture (lane->handle,
                                                     CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                   ==, 0);
  return lane->handle;
}

static void
end_capture (CUstream stream)
{
  CUgraph graph = NULL;

  g_assert_cmpint (gtorch_cuda.cuStreamEndCapture (stream, &graph), ==, 0);
  gtorch_cuda.cuGraphDestroy (graph);
}

/* --- products --- */

/* Returns how many products cublasLt was asked for. */
static guint
mm (void)
{
  g_autoptr (GTorchImpl) x = draw ((gint64[]){ next_size, next_size }, 2);
  g_autoptr (GTorchImpl) y = NULL;
  GError *error = NULL;
  guint n = fake_cublaslt.n_products;

  y = gtorch_op_mm (x, x, &error);
  g_assert_no_error (error);
  return fake_cublaslt.n_products - n;
}

static gint n_given_back;

static gpointer
give_back (gpointer data)
{
  gtorch_cuda_drop_workspaces (gpu (0));
  g_atomic_int_inc (&n_given_back);
  return NULL;
}

static void
wait_until_given_back (void *data)
{
  while (g_atomic_int_get (&n_given_back) < GPOINTER_TO_INT (data))
    g_thread_yield ();
}

/* Before this product is done, another thread frees the workspaces. */
static int
multiply_beside (void *stream, unsigned algorithm)
{
  static gint n;

  OK (cuLaunchHostFunc (stream, wait_until_given_back, GINT_TO_POINTER (++n)));
  g_thread_unref (g_thread_new ("give-back", give_back, NULL));
  return 0;
}

static void
timed_products_keep_their_workspace (void)
{
  if (!gtorch_allocator_get_caching (gpu_allocator ()))
    {
      g_test_skip ("the driver takes memory back when the product is done");
      return;
    }
  set_up (3);
  fake_cublaslt.multiply = multiply_beside;
  g_assert_cmpuint (mm (), >, 10);
  g_assert_cmpuint (fake_cublaslt.n_homeless, ==, 0);
  tear_down ();
}

static void
products_use_the_first_algorithm_by_default (void)
{
  set_up (3);
  gtorch_device_set_benchmark (gpu (0), FALSE);
  g_assert_cmpuint (mm (), ==, 1);
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 0);
  tear_down ();
}

static void
the_quickest_product_is_kept (void)
{
  guint n_plans;

  set_up (3);
  g_assert_cmpuint (mm (), >, 2 * N_ALGORITHMS);
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 3);
  n_plans = fake_cublaslt.n_plans;
  g_assert_cmpuint (mm (), ==, 1);
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 3);
  g_assert_cmpuint (fake_cublaslt.n_plans, ==, n_plans);

  gtorch_device_set_benchmark (gpu (0), FALSE);
  g_assert_cmpuint (mm (), ==, 1);
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 0);
  gtorch_device_set_benchmark (gpu (0), TRUE);
  g_assert_cmpuint (mm (), ==, 1);
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 3);
  tear_down ();
}

static void
the_first_stays_if_it_is_the_quickest (void)
{
  set_up (0);
  mm ();
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 0);
  tear_down ();
}

static void
failing_algorithms_are_skipped (void)
{
  guint n_present;

  set_up (2);
  broken = 2;
  n_present = fake_cublaslt.n_present;
  mm ();
  g_assert_cmpuint (fake_cublaslt.algorithm, !=, 2);
  g_assert_cmpuint (mm (), ==, 1);
  g_assert_cmpuint (fake_cublaslt.n_present, ==, n_present + 1);
  tear_down ();
}

static void
nothing_is_timed_in_a_capture (void)
{
  CUstream capture;

  set_up (3);
  capture = begin_capture ();
  g_assert_cmpuint (mm (), ==, 1);
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 0);
  end_capture (capture);

  /* … but known results are used */
  mm ();
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 3);
  capture = begin_capture ();
  g_assert_cmpuint (mm (), ==, 1);
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 3);
  end_capture (capture);
  tear_down ();
}

static void
accumulating_products_are_not_timed (void)
{
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GError *error = NULL;
  guint n;

  set_up (3);
  x = draw ((gint64[]){ next_size, next_size }, 2);
  n = fake_cublaslt.n_products;
  y = gtorch_op_addmm (x, x, x, 1, 1, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 1);
  g_assert_cmpuint (fake_cublaslt.algorithm, ==, 0);
  tear_down ();
}

/* --- convolutions --- */

/* Returns how many convolutions cuDNN was asked for. */
static guint
convolve (void)
{
  const gint64 ones[] = { 1, 1 };
  g_autoptr (GTorchImpl) x = draw ((gint64[]){ 1, 4, next_size, next_size }, 4);
  g_autoptr (GTorchImpl) w = draw ((gint64[]){ 4, 4, 3, 3 }, 4);
  g_autoptr (GTorchImpl) y = NULL;
  GError *error = NULL;
  guint n = fake_cudnn.n_executed;

  y = gtorch_op_convolve (x, w, NULL, ones, 2, ones, 2, ones, 2, 1, &error);
  g_assert_no_error (error);
  return fake_cudnn.n_executed - n;
}

static void
convolutions_use_the_first_engine_by_default (void)
{
  set_up (3);
  gtorch_device_set_benchmark (gpu (0), FALSE);
  g_assert_cmpuint (convolve (), ==, 1);
  g_assert_cmpuint (fake_cudnn.last, ==, 0);
  tear_down ();
}

static void
the_quickest_engine_is_kept (void)
{
  guint n_plans, n_present = fake_cudnn.n_present;

  set_up (3);
  g_assert_cmpuint (convolve (), >, 2 * fake_cudnn.n_engines);
  g_assert_cmpuint (fake_cudnn.last, ==, 3);
  g_assert_cmpuint (fake_cudnn.n_present, ==, n_present + 2); /* cuDNN's own choice as well */
  n_plans = fake_cudnn.n_plans;
  g_assert_cmpuint (convolve (), ==, 1);
  g_assert_cmpuint (fake_cudnn.last, ==, 3);
  gtorch_device_set_benchmark (gpu (0), FALSE);
  g_assert_cmpuint (convolve (), ==, 1);
  g_assert_cmpuint (fake_cudnn.last, ==, 0);
  g_assert_cmpuint (fake_cudnn.n_plans, ==, n_plans);
  g_assert_cmpuint (fake_cudnn.n_present, ==, n_present + 2);
  tear_down ();
}

static void
failing_engines_are_skipped (void)
{
  set_up (3);
  fake_cudnn.engines[3].fails = TRUE;
  convolve ();
  g_assert_cmpuint (fake_cudnn.last, !=, 3);
  tear_down ();
}

static void
nondeterministic_engines_must_be_allowed (void)
{
  set_up (3);
  fake_cudnn.engines[3].note = NOTE_NONDETERMINISTIC;
  convolve ();
  g_assert_cmpuint (fake_cudnn.last, ==, 3);
  gtorch_device_set_deterministic (gpu (0), TRUE);
  convolve ();
  g_assert_cmpuint (fake_cudnn.last, !=, 3);
  gtorch_device_set_deterministic (gpu (0), FALSE);
  convolve ();
  g_assert_cmpuint (fake_cudnn.last, ==, 3);

  /* never without that setting */
  set_up (3);
  fake_cudnn.engines[0].note = NOTE_NONDETERMINISTIC;
  gtorch_device_set_benchmark (gpu (0), FALSE);
  convolve ();
  g_assert_cmpuint (fake_cudnn.last, ==, 1);
  tear_down ();
}

static void
engines_with_too_much_workspace_are_skipped (void)
{
  FakeCudaAccounts accounts;
  guint i;

  set_up (3);
  for (i = 0; i < fake_cudnn.n_engines; i++)
    fake_cudnn.engines[i].workspace = i == 5 ? 0 : (i == 3 ? 60 * MIB : 50 * MIB);
  gtorch_device_empty_cache (gpu (0));
  fake_cuda_get_accounts (&accounts);
  fake_cuda_set_memory (0, accounts.n_bytes + 8 * MIB);
  convolve ();
  g_assert_cmpuint (fake_cudnn.last, ==, 5);
  fake_cuda_set_memory (0, 256 * MIB);

  /* More workspace than allowed: the engine is not tried. */
  set_up (3);
  fake_cudnn.engines[3].workspace = 1024 * MIB;
  convolve ();
  g_assert_cmpuint (fake_cudnn.last, !=, 3);
  tear_down ();
}

static void
convolutions_are_not_timed_in_a_capture (void)
{
  CUstream capture;

  set_up (3);
  capture = begin_capture ();
  g_assert_cmpuint (convolve (), ==, 1);
  g_assert_cmpuint (fake_cudnn.last, ==, 0);
  end_capture (capture);
  tear_down ();
}

/* --- the cache of plans --- */

#define MAX_PLANS 4096 /* same as in gtorch-cuda-cudnn.c */

static gpointer
keep_plan (gpointer data)
{
  static gint64 last;
  const gint64 form = ++last;
  GError *error = NULL;

  gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (gpu (0)), &error);
  g_assert_no_error (error);
  g_assert_nonnull (gtorch_cudnn_begin (0));
  gtorch_cudnn_keep (0, &form, sizeof form, &(GTorchCudnnPlan){ NULL });
  gtorch_cudnn_end ();
  return NULL;
}

static void
empty_table (void)
{
  fake_cuda_reset_calls ();
  while (fake_cuda_get_calls ("cuCtxSynchronize") == 0)
    keep_plan (NULL);
}

/* The plan may own the kernels of an engine. */
static void
graphs_keep_their_plans (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchGraphCapture) capture = NULL;
  GError *error = NULL;
  guint n;

  set_up (3);
  gtorch_device_set_benchmark (gpu (0), FALSE);
  empty_table ();
  n = fake_cudnn.n_present;
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (convolve (), ==, 1);
  g_assert_cmpuint (convolve (), ==, 1);
  g_assert_cmpuint (fake_cudnn.n_present, ==, n + 1);
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  empty_table ();
  g_assert_cmpuint (fake_cudnn.n_present, ==, n + 1);
  g_assert_true (gtorch_cuda_graph_replay (graph, &error));
  g_assert_true (gtorch_cuda_graph_reset (graph, &error));
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, &error));
  g_assert_no_error (error);
  gtorch_device_empty_cache (gpu (0));
  keep_plan (NULL);
  g_assert_cmpuint (fake_cudnn.n_present, ==, n);
  tear_down ();
}

static gpointer
let_go (gpointer data)
{
  g_usleep (50000); /* a chance for the capture to begin too early */
  fake_cuda_hold (FALSE);
  return NULL;
}

/* A full cache is emptied when the GPU is idle, which a thread waits for. */
static void
no_capture_begins_while_plans_are_freed (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchGraphCapture) capture = NULL;
  g_autoptr (GTorchStreamGuard) guard = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  GThread *threads[2];
  GError *error = NULL;
  guint i;

  set_up (0);
  x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 8);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  empty_table ();
  for (i = 1; i < MAX_PLANS; i++)
    keep_plan (NULL);
  fake_cuda_hold (TRUE);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  fake_cuda_reset_calls ();
  threads[0] = g_thread_new ("keep", keep_plan, NULL);
  while (fake_cuda_get_calls ("cuCtxSynchronize") == 0)
    g_thread_yield ();
  threads[1] = g_thread_new ("let-go", let_go, NULL);
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  g_assert_no_error (error);
  for (i = 0; i < 2; i++)
    g_thread_join (threads[i]);
  guard = gtorch_stream_guard_new (stream);
  g_assert_true (gtorch_op_neg_inplace (x, &error));
  g_assert_no_error (error);
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  tear_down ();
}

#define TEST(name) g_test_add_func ("/GTorchCudaBenchmark/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  fake_cuda_stop_clock ();
  TEST (products_use_the_first_algorithm_by_default);
  TEST (timed_products_keep_their_workspace);
  TEST (the_quickest_product_is_kept);
  TEST (the_first_stays_if_it_is_the_quickest);
  TEST (failing_algorithms_are_skipped);
  TEST (nothing_is_timed_in_a_capture);
  TEST (accumulating_products_are_not_timed);
  TEST (convolutions_use_the_first_engine_by_default);
  TEST (the_quickest_engine_is_kept);
  TEST (failing_engines_are_skipped);
  TEST (nondeterministic_engines_must_be_allowed);
  TEST (engines_with_too_much_workspace_are_skipped);
  TEST (convolutions_are_not_timed_in_a_capture);
  TEST (graphs_keep_their_plans);
  TEST (no_capture_begins_while_plans_are_freed);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
