/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What cublasLt launches for a product is launched again without it, where nothing but the addresses of the
 * matrices can change; the products are real ones. */

#include "config.h"

#include <tests/fake-cuda/fake-cublaslt.h>

#include "cuda-test.h"
#include "gtorch-multiply-private.h"
#include "kernels/gtorch-kernel-params.h"

#define N_ROWS    8
#define DEPTH     300 /* for which there are no kernels of our own */
#define N_CALLS   8   /* after which a plan is recorded, as gtorch-cuda-matmul.c has it */
#define N_SAMPLES 3

static CUfunction kernel;
static gint64 n_columns = 8; /* each test has products of its own */
static GTorchImpl *library_memory;
static guint n_launched;

/* How the library does it. */
static struct
{
  gboolean packed, sums, clears, borrows, counts, grows;
  guint n_kernels, cluster;
} form;

static GtMultiply
product (void)
{
  const gfloat alpha = fake_cublaslt.last.alpha, beta = 1;
  GtMultiply m;

  memset (&m, 0, sizeof m); /* what is between the members is compared, too */
  m.a = fake_cublaslt.last.a;
  m.b = fake_cublaslt.last.b;
  m.c = fake_cublaslt.last.c;
  m.m = m.a_column = m.c_column = n_columns;
  m.n = N_ROWS;
  m.k = m.b_column = DEPTH;
  m.a_row = m.b_row = m.batch = 1;
  m.tiles_down = (n_columns + 15) / 16;
  m.tiles_across = 1;
  memcpy (&m.alpha, &alpha, sizeof alpha);
  memcpy (&m.beta, &beta, sizeof beta);
  if (form.sums)
    m.sums = (char *) fake_cublaslt.last.workspace + 256;
  if (form.borrows)
    m.sums = gtorch_impl_data (library_memory);
  if (form.counts)
    m.a_batch = n_launched;
  return m;
}

static int
multiply (void *stream, unsigned algorithm)
{
  GtMultiply m = product ();
  CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
  CUlaunchConfig config = { m.tiles_down, 1, 1, 256, 1, 1, 0, stream, &cluster, 0 };
  gsize n_bytes = sizeof m;
  void *pointers[] = { &m };
  void *packed[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &m, CU_LAUNCH_PARAM_BUFFER_SIZE, &n_bytes,
                     CU_LAUNCH_PARAM_END };
  guint i;

  n_launched++;
  if (form.clears
      && gtorch_cuda.cuMemsetD32Async ((guintptr) fake_cublaslt.last.workspace, 0, 1, stream)
             != CUDA_SUCCESS)
    return 13;
  if (form.grows)
    config.sharedMemBytes = n_launched;
  if (form.cluster > 0)
    {
      cluster.value.clusterDim.x = form.cluster;
      cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
      config.numAttrs = 1;
    }
  for (i = 0; i < form.n_kernels; i++)
    {
      m.adds = i > 0;
      if (gtorch_cuda.cuLaunchKernelEx (&config, kernel, form.packed ? NULL : pointers,
                                        form.packed ? packed : NULL)
          != CUDA_SUCCESS)
        return 13;
    }
  return 0;
}

static void
set_up (void)
{
  fake_cublaslt.multiply = multiply;
  memset (&form, 0, sizeof form);
  form.n_kernels = 1;
  n_columns += 8;
}

/* --- products --- */

/* Numbers whose products are exact, other ones each time. */
static GTorchImpl *
draw (GTorchDevice *device, gint64 rows, gint64 columns, guint seed)
{
  const gint64 shape[] = { rows, columns };
  g_autoptr (GTorchImpl) host =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT32, shape, 2, NULL);
  GError *error = NULL;
  GTorchImpl *result;
  gint64 i;

  for (i = 0; i < host->numel; i++)
    ((gfloat *) gtorch_impl_data (host))[i] = (gint64) ((i * 7 + seed * 13) % 19) - 9;
  result = gtorch_op_to_device (host, device, FALSE, &error);
  g_assert_no_error (error);
  return result;
}

/* Checks it against the CPU; gives how often the library was asked. */
static guint
mm (gdouble factor)
{
  static guint seed;
  g_autoptr (GTorchImpl) x = draw (gpu (0), N_ROWS, DEPTH, ++seed);
  g_autoptr (GTorchImpl) y = draw (gpu (0), DEPTH, n_columns, seed);
  g_autoptr (GTorchImpl) x_host = draw (gtorch_device_cpu (), N_ROWS, DEPTH, seed);
  g_autoptr (GTorchImpl) y_host = draw (gtorch_device_cpu (), DEPTH, n_columns, seed);
  g_autoptr (GTorchImpl) result = NULL;
  g_autoptr (GTorchImpl) expected = NULL;
  g_autoptr (GTorchImpl) host = NULL;
  GError *error = NULL;
  guint n = fake_cublaslt.n_products;
  gint64 i;

  result = gtorch_op_mm (x, y, &error);
  g_assert_no_error (error);
  host = gtorch_op_to_device (result, gtorch_device_cpu (), FALSE, &error);
  g_assert_no_error (error);
  expected = gtorch_op_mm (x_host, y_host, &error);
  g_assert_no_error (error);
  for (i = 0; i < expected->numel; i++)
    g_assert_cmpfloat (((gfloat *) gtorch_impl_data (host))[i], ==,
                       factor * ((gfloat *) gtorch_impl_data (expected))[i]);
  return fake_cublaslt.n_products - n;
}

static void
assert_recorded (gdouble factor)
{
  guint i;

  for (i = 1; i < N_CALLS; i++)
    g_assert_cmpuint (mm (factor), ==, 1);
  g_assert_cmpuint (mm (factor), ==, 1 + N_SAMPLES);
  for (i = 0; i < 12; i++)
    g_assert_cmpuint (mm (factor), ==, 0);
}

static void
assert_not_recorded (void)
{
  guint i, n = 0;

  for (i = 0; i < N_CALLS; i++)
    n += mm (1);
  g_assert_cmpuint (n, >, N_CALLS); /* tried … */
  for (i = 0; i < 12; i++)
    g_assert_cmpuint (mm (1), ==, 1); /* … once */
}

static void
calls_are_recorded (void)
{
  set_up ();
  assert_recorded (1);
}

static void
parameters_may_be_bytes (void)
{
  set_up ();
  form.packed = TRUE;
  assert_recorded (1);
}

static void
kernels_may_follow_each_other (void)
{
  set_up ();
  form.n_kernels = 2;
  assert_recorded (2);
  set_up ();
  form.n_kernels = 4;
  form.packed = TRUE;
  assert_recorded (4);
}

static void
clusters_stay_together (void)
{
  FakeCudaAccounts accounts;
  guint n, i;

  set_up ();
  n_columns = 1024;
  form.cluster = 2;
  assert_recorded (1);
  fake_cuda_get_accounts (&accounts);
  n = accounts.clusters;
  for (i = 0; i < 5; i++)
    g_assert_cmpuint (mm (1), ==, 0);
  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.clusters, ==, n + 5);
}

/* Where the library works is the stream's. */
static void
streams_have_workspaces_of_their_own (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchStreamGuard) guard = NULL;
  GTorchCudaLane *lane;
  gfloat sums[N_ROWS] = { 0 };
  guint i;

  set_up ();
  form.sums = TRUE;
  assert_recorded (1);
  guard = gtorch_stream_guard_new (stream);
  lane = gtorch_cuda_current_lane (gpu (0), NULL);
  for (i = 0; i < 3; i++)
    g_assert_cmpuint (mm (1), ==, 0);
  g_assert_nonnull (lane->workspace);
  g_assert_true (fake_cuda_peek ((char *) lane->workspace->data + 256, sums, sizeof sums));
  for (i = 0; i < N_ROWS && sums[i] == 0; i++)
    ;
  g_assert_cmpuint (i, <, N_ROWS);
}

static void
what_else_may_change_is_not_recorded (void)
{
  set_up ();
  form.clears = TRUE;
  assert_not_recorded ();
  set_up ();
  form.borrows = TRUE;
  assert_not_recorded ();
  set_up ();
  form.counts = TRUE;
  assert_not_recorded ();
  set_up ();
  form.grows = TRUE;
  assert_not_recorded ();
}

/* Other numbers, other alignments and captures are the library's. */
static void
the_library_does_the_rest (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchGraphCapture) capture = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) both = NULL;
  g_autoptr (GTorchImpl) later = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  g_autoptr (GTorchImpl) captured = NULL;
  GError *error = NULL;
  guint n, i;

  set_up ();
  assert_recorded (1);
  x = draw (gpu (0), N_ROWS, DEPTH, 1);
  y = draw (gpu (0), DEPTH, n_columns, 1);

  n = fake_cublaslt.n_products;
  sum = gtorch_op_mm (x, y, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n);
  result = gtorch_op_addmm (sum, x, y, 1, 2, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 1);

  both = draw (gpu (0), N_ROWS + 1, DEPTH, 1);
  later = gtorch_op_slice (both, 0, 1, N_ROWS + 1, 1, &error);
  g_assert_no_error (error);
  for (i = 0; i < 2 * N_CALLS; i++)
    {
      g_autoptr (GTorchImpl) z = NULL;

      n = fake_cublaslt.n_products;
      z = gtorch_op_mm (later, y, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 1);
    }

  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  g_assert_no_error (error);
  n = fake_cublaslt.n_products;
  captured = gtorch_op_mm (x, y, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 1);
  g_assert_true (gtorch_graph_capture_end (capture, &error));
  g_assert_no_error (error);
}

/* Each algorithm on trial is timed in the way that it will be called. */
static void
trials_are_recorded (void)
{
  guint i;

  set_up ();
  gtorch_device_set_benchmark (gpu (0), TRUE);
  g_assert_cmpuint (mm (1), ==, 5 * (1 + N_SAMPLES));
  for (i = 0; i < 5; i++)
    g_assert_cmpuint (mm (1), ==, 0);
  set_up ();
  form.clears = TRUE;
  g_assert_cmpuint (mm (1), >, 5 * (1 + N_SAMPLES));
  g_assert_cmpuint (mm (1), ==, 1);
  gtorch_device_set_benchmark (gpu (0), FALSE);
}

/* --- faults --- */

/* The product that is recorded, which may fail. What the driver did; free it. */
static GStrv
record (guint nth, gint result)
{
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) z = NULL;
  g_autofree gchar *log = NULL;
  GError *error = NULL;
  guint i;

  set_up ();
  n_columns += 300;
  for (i = 1; i < N_CALLS; i++)
    g_assert_cmpuint (mm (1), ==, 1);
  x = draw (gpu (0), N_ROWS, DEPTH, 1);
  y = draw (gpu (0), DEPTH, n_columns, 1);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, &error));
  g_assert_no_error (error);
  fake_cuda_reset_calls ();
  if (nth > 0)
    fake_cuda_fail (NULL, nth, result);
  z = gtorch_op_mm (x, y, &error);
  g_assert_cmpint (fake_cuda_clear_faults (), ==, nth > 0);
  g_assert_true ((z == NULL) == (error != NULL));
  g_clear_error (&error);
  log = fake_cuda_dup_log ();
  for (i = 0; i < 3; i++)
    g_assert_cmpuint (mm (1), <=, 1 + N_SAMPLES);
  n_columns -= 300;
  return g_strsplit (log, " ", -1);
}

/* Whatever fails while a call is recorded, the product is right, or fails with an error, and nothing stays
 * but what the driver does not take back. */
static void
faults_leave_nothing (void)
{
  g_auto (GStrv) calls = record (0, 0);
  FakeCudaAccounts before, after;
  guint n_kept = 0, i;

  g_assert_cmpuint (g_strv_length (calls), >, 30);
  fake_cuda_get_accounts (&before);
  for (i = 0; calls[i] != NULL; i++)
    {
      g_strfreev (record (i + 1, i & 1 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_OUT_OF_MEMORY));
      n_kept +=
          strcmp (calls[i], "cuStreamDestroy") == 0 || strcmp (calls[i], "cuGraphDestroy") == 0;
    }
  fake_cuda_get_accounts (&after);
  g_assert_cmpuint (after.streams + after.graphs, ==, before.streams + before.graphs + n_kept);
}

#define TEST(name) g_test_add_func ("/GTorchCudaRecording/" #name, name)

gint
main (gint argc, gchar **argv)
{
  CUlibrary library;
  CUkernel found;
  GError *error = NULL;
  gint result;

  g_test_init (&argc, &argv, NULL);
  g_assert_true (gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (gpu (0)), &error));
  OK (cuLibraryLoadData (&library, "fake", NULL, NULL, 0, NULL, NULL, 0));
  OK (cuLibraryGetKernel (&found, library, "gt_multiply_f32_small"));
  OK (cuKernelGetFunction (&kernel, found));
  library_memory = bytes (4096);
  TEST (calls_are_recorded);
  TEST (parameters_may_be_bytes);
  TEST (kernels_may_follow_each_other);
  TEST (clusters_stay_together);
  TEST (streams_have_workspaces_of_their_own);
  TEST (what_else_may_change_is_not_recorded);
  TEST (the_library_does_the_rest);
  TEST (trials_are_recorded);
  TEST (faults_leave_nothing);
  result = g_test_run ();
  gtorch_impl_unref (library_memory);
  assert_no_misuse ();
  return result;
}
