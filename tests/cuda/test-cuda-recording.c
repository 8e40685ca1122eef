/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The recorded launches of cublasLt: a matrix product is launched again without the library if only the
 * addresses of the matrices can change. The products are computed. */

#include "config.h"

#include <tests/fake-cuda/fake-cublaslt.h>
#include <tests/sanitizer.h>

#include "cuda-test.h"
#include "cuda/ops/gtorch-cuda-matmul-private.h"
#include "kernels/gtorch-kernel-params.h"

#define N_ROWS    2
#define DEPTH     300 /* the library has no kernels of its own for this depth */
#define N_CALLS   8   /* a plan is recorded after so many calls; same as in gtorch-cuda-matmul.c */
#define N_SAMPLES 3

static CUfunction small, large;
static CUstream side;
static gint64 n_columns = 8; /* each test has its own products */
static GTorchImpl *library_memory;
static guint n_called;

/* How the fake library computes the product. */
static struct
{
  gboolean packed, sums, transposed;
  guint n_kernels, cluster;
  /* the following forms cannot be recorded */
  gboolean clears, borrows, counts, grows, stutters, changes, gathers, keeps, forks;
} form;

static void (*on_call) (CUstream stream);

static GtMultiply
product (guint side_of_tile)
{
  const gfloat alpha = fake_cublaslt.last.alpha, beta = fake_cublaslt.last.beta;
  GtMultiply m;

  memset (&m, 0, sizeof m); /* padding between the members is compared, too */
  m.a = fake_cublaslt.last.a;
  m.b = fake_cublaslt.last.b;
  m.c = fake_cublaslt.last.c;
  m.bias = fake_cublaslt.epilogue != 0 ? fake_cublaslt.last.bias : NULL;
  m.m = m.c_column = n_columns;
  m.n = N_ROWS;
  m.k = m.b_column = DEPTH;
  m.a_row = form.transposed ? DEPTH : 1;
  m.a_column = form.transposed ? 1 : n_columns;
  m.b_row = m.batch = 1;
  m.tiles_down = (n_columns + side_of_tile - 1) / side_of_tile;
  m.tiles_across = 1;
  m.adds = beta != 0;
  memcpy (&m.alpha, &alpha, sizeof alpha);
  memcpy (&m.beta, &beta, sizeof beta);
  if (form.sums)
    m.sums = (char *) fake_cublaslt.last.workspace + 256;
  if (form.borrows)
    m.sums = gtorch_impl_data (library_memory);
  if (form.counts)
    m.a_batch = n_called;
  return m;
}

/* Launches two concurrent kernels. */
static CUresult
fork_off (CUstream stream, const CUlaunchConfig *config, void **pointers)
{
  CUlaunchConfig aside = *config;
  CUevent events[2];
  guint i;

  aside.hStream = side;
  for (i = 0; i < 2; i++)
    OK (cuEventCreate (&events[i], CU_EVENT_DISABLE_TIMING));
  OK (cuEventRecord (events[0], stream));
  OK (cuStreamWaitEvent (side, events[0], 0));
  OK (cuLaunchKernelEx (&aside, small, pointers, NULL));
  OK (cuLaunchKernelEx (config, small, pointers, NULL));
  OK (cuEventRecord (events[1], side));
  OK (cuStreamWaitEvent (stream, events[1], 0));
  for (i = 0; i < 2; i++)
    OK (cuEventDestroy (events[i]));
  return CUDA_SUCCESS;
}

static int
multiply (void *stream, unsigned algorithm)
{
  const gboolean is_large = form.changes && n_called % 2 == 1;
  GtMultiply m = product (is_large ? 64 : 16);
  CUlaunchAttribute attributes[2];
  CUlaunchConfig config = { m.tiles_down, 1, 1, 256, 1, 1, 0, stream, attributes, 0 };
  gsize n_bytes = sizeof m;
  void *pointers[] = { &m };
  void *packed[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &m, CU_LAUNCH_PARAM_BUFFER_SIZE, &n_bytes,
                     CU_LAUNCH_PARAM_END };
  guint i, n = form.n_kernels + (form.stutters && n_called % 2 == 1);

  n_called++;
  if (on_call != NULL)
    on_call (stream);
  if (form.clears
      && gtorch_cuda.cuMemsetD32Async ((guintptr) fake_cublaslt.last.workspace, 0, 1, stream)
             != CUDA_SUCCESS)
    return 13;
  if (form.grows)
    config.sharedMemBytes = n_called;
  if (form.cluster > 0)
    attributes[config.numAttrs++] =
        (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                             .value.clusterDim = { form.cluster, 1, 1 } };
  if (form.gathers)
    attributes[config.numAttrs++] =
        (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                             .value.clusterDim = { 1 + n_called % 2, 1, 1 } };
  if (form.keeps)
    attributes[config.numAttrs++] =
        (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW };
  if (form.forks && fork_off (stream, &config, pointers) != CUDA_SUCCESS)
    return 13;
  for (i = 0; i < n; i++)
    {
      m.adds |= i > 0 && !form.stutters;
      if (i > 0 && m.adds)
        memcpy (&m.beta, &(gfloat){ 1 }, sizeof (gfloat));
      if (gtorch_cuda.cuLaunchKernelEx (&config, is_large ? large : small,
                                        form.packed ? NULL : pointers, form.packed ? packed : NULL)
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

/* Draws numbers whose products are exact, other ones each time. */
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

static void
assert_equal (GTorchImpl *result, GTorchImpl *expected, gdouble factor)
{
  g_autoptr (GTorchImpl) host = NULL;
  GError *error = NULL;
  gint64 i;

  host = gtorch_op_to_device (result, gtorch_device_cpu (), FALSE, &error);
  g_assert_no_error (error);
  for (i = 0; i < expected->numel; i++)
    g_assert_cmpfloat (((gfloat *) gtorch_impl_data (host))[i], ==,
                       factor * ((gfloat *) gtorch_impl_data (expected))[i]);
}

typedef GTorchImpl *(*Compute) (GTorchImpl *x, GTorchImpl *y, GTorchImpl *z, GError **error);

static GTorchImpl *
compute_mm (GTorchImpl *x, GTorchImpl *y, GTorchImpl *z, GError **error)
{
  return gtorch_op_mm (x, y, error);
}

static GTorchImpl *
compute_sum (GTorchImpl *x, GTorchImpl *y, GTorchImpl *z, GError **error)
{
  return gtorch_op_addmm (z, x, y, 1, 1, error);
}

static GTorchImpl *
compute_half_of_sum (GTorchImpl *x, GTorchImpl *y, GTorchImpl *z, GError **error)
{
  return gtorch_op_addmm (z, x, y, 0.5, 1, error);
}

static GTorchImpl *
compute_sum_of_two (GTorchImpl *x, GTorchImpl *y, GTorchImpl *z, GError **error)
{
  return gtorch_op_addmm (z, x, y, 1, 2, error);
}

static GTorchImpl *
compute_linear (GTorchImpl *x, GTorchImpl *y, GTorchImpl *z, GError **error)
{
  const gint64 n = z->shape[1];
  g_autoptr (GTorchImpl) bias = gtorch_impl_new_view (z, 0, &n, NULL, 1);

  return gtorch_op_linear (x, y, bias, error);
}

/* Compares the product with the CPU's; returns how often the library was called. With a fault the
 * driver's nth call fails, and the product may fail. */
static guint
run (Compute compute, guint device, gdouble factor, guint nth, gint fault)
{
  static guint seed;
  const gboolean is_linear = compute == compute_linear;
  const gint64 rows = is_linear ? n_columns : DEPTH, columns = is_linear ? DEPTH : n_columns;
  GTorchDevice *devices[] = { gpu (device), gtorch_device_cpu () };
  g_autoptr (GTorchImpl) result = NULL;
  g_autoptr (GTorchImpl) expected = NULL;
  GError *error = NULL;
  guint n = fake_cublaslt.n_products, i;

  seed++;
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) x = draw (devices[i], N_ROWS, DEPTH, seed);
      g_autoptr (GTorchImpl) y = draw (devices[i], rows, columns, seed);
      g_autoptr (GTorchImpl) z = draw (devices[i], N_ROWS, n_columns, seed);

      if (i == 1)
        {
          expected = compute (x, y, z, &error);
          g_assert_no_error (error);
          break;
        }
      g_assert_true (gtorch_device_synchronize (devices[i], NULL, NULL));
      fake_cuda_reset_calls ();
      if (nth > 0)
        fake_cuda_fail (NULL, nth, fault);
      result = compute (x, y, z, &error);
      if (nth > 0)
        g_assert_true (fake_cuda_clear_faults ());
      g_assert_true ((result == NULL) == (error != NULL));
      if (nth == 0)
        g_assert_no_error (error);
      g_clear_error (&error);
    }
  if (result != NULL)
    assert_equal (result, expected, factor);
  return fake_cublaslt.n_products - n;
}

static guint
mm (gdouble factor)
{
  return run (compute_mm, 0, factor, 0, 0);
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
  g_assert_cmpuint (n, >, N_CALLS); /* recording was tried … */
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

/* The library's workspace belongs to the stream, and may be freed. */
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
  g_assert_cmpuint (mm (1), ==, 0);
  g_assert_nonnull (lane->workspace);
  OK (cuMemsetD8Async ((guintptr) lane->workspace->data, 0, 1024, lane->handle));
  g_assert_cmpuint (mm (1), ==, 0);
  g_assert_true (fake_cuda_peek ((char *) lane->workspace->data + 256, sums, sizeof sums));
  for (i = 0; i < N_ROWS && sums[i] == 0; i++)
    ;
  g_assert_cmpuint (i, <, N_ROWS);
  gtorch_cuda_drop_workspaces (gpu (0));
  g_assert_null (lane->workspace);
  g_assert_cmpuint (mm (1), ==, 0);
  g_assert_nonnull (lane->workspace);
}

static void
launches_with_other_variables_are_not_recorded (void)
{
  gboolean *const forms[] = { &form.clears,  &form.borrows,  &form.counts,
                              &form.grows,   &form.stutters, &form.changes,
                              &form.gathers, &form.keeps,    &form.forks };
  gint64 next = n_columns;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (forms); i++)
    {
      n_columns = next;
      set_up ();
      next = n_columns;
      *forms[i] = TRUE;
      /* nothing else may differ: both kernels need one block there, and two form a cluster */
      n_columns = form.changes ? 12 : form.gathers ? 4096 : n_columns;
      assert_not_recorded ();
    }
  n_columns = next;
}

static void
sums_are_recorded_by_themselves (void)
{
  guint i;

  set_up ();
  assert_recorded (1);
  for (i = 1; i < N_CALLS; i++)
    g_assert_cmpuint (run (compute_sum, 0, 1, 0, 0), ==, 1);
  g_assert_cmpuint (run (compute_sum, 0, 1, 0, 0), ==, 1 + N_SAMPLES);
  for (i = 0; i < 5; i++)
    {
      g_assert_cmpuint (run (compute_sum, 0, 1, 0, 0), ==, 0);
      g_assert_cmpuint (mm (1), ==, 0);
    }
  /* with other numbers the library is called */
  for (i = 0; i < 2 * N_CALLS; i++)
    {
      g_assert_cmpuint (run (compute_half_of_sum, 0, 1, 0, 0), ==, 1);
      g_assert_cmpuint (run (compute_sum_of_two, 0, 1, 0, 0), ==, 1);
    }
}

static void
a_bias_is_added (void)
{
  guint i;

  set_up ();
  form.transposed = TRUE;
  for (i = 1; i < N_CALLS; i++)
    g_assert_cmpuint (run (compute_linear, 0, 1, 0, 0), ==, 1);
  g_assert_cmpuint (run (compute_linear, 0, 1, 0, 0), ==, 1 + N_SAMPLES);
  for (i = 0; i < 5; i++)
    g_assert_cmpuint (run (compute_linear, 0, 1, 0, 0), ==, 0);
}

static void
devices_have_recordings_of_their_own (void)
{
  guint i;

  set_up ();
  assert_recorded (1);
  for (i = 1; i < N_CALLS; i++)
    g_assert_cmpuint (run (compute_mm, 1, 1, 0, 0), ==, 1);
  g_assert_cmpuint (run (compute_mm, 1, 1, 0, 0), ==, 1 + N_SAMPLES);
  for (i = 0; i < 5; i++)
    g_assert_cmpuint (run (compute_mm, i % 2, 1, 0, 0), ==, 0);
}

/* The library computes captured products and those of other alignments; during a capture, nothing is
 * recorded. */
static void
other_products_use_the_library (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchGraphCapture) capture = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) both = NULL;
  g_autoptr (GTorchImpl) later = NULL;
  g_autoptr (GTorchImpl) captured = NULL;
  GTorchImpl *results[2 * N_CALLS];
  GError *error = NULL;
  guint n, i;

  set_up ();
  assert_recorded (1);
  x = draw (gpu (0), N_ROWS, DEPTH, 1);
  y = draw (gpu (0), DEPTH, n_columns, 1);
  both = draw (gpu (0), N_ROWS + 1, DEPTH, 1);
  later = gtorch_op_slice (both, 0, 1, N_ROWS + 1, 1, &error);
  g_assert_no_error (error);
  n = fake_cublaslt.n_products;
  for (i = 0; i < 2 * N_CALLS; i++)
    {
      results[i] = gtorch_op_mm (later, y, &error);
      g_assert_no_error (error);
    }
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 2 * N_CALLS);
  for (i = 0; i < 2 * N_CALLS; i++)
    gtorch_impl_unref (results[i]);

  capture = gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_RELAXED, &error);
  g_assert_no_error (error);
  n = fake_cublaslt.n_products;
  captured = gtorch_op_mm (x, y, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 1);
  {
    g_autoptr (GTorchStreamGuard) guard =
        gtorch_stream_guard_new (gtorch_device_get_default_stream (gpu (0)));
    g_autoptr (GTorchImpl) z = NULL;

    set_up ();
    y = (gtorch_impl_unref (y), draw (gpu (0), DEPTH, n_columns, 1));
    n = fake_cublaslt.n_products;
    for (i = 0; i < 2 * N_CALLS; i++)
      {
        g_clear_pointer (&z, gtorch_impl_unref);
        z = gtorch_op_mm (x, y, &error);
        g_assert_no_error (error);
      }
    g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 2 * N_CALLS);
  }
  g_assert_true (gtorch_graph_capture_end (capture, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (mm (1), ==, 1 + N_SAMPLES);
  g_assert_cmpuint (mm (1), ==, 0);
}

static void
recordings_can_be_turned_off (void)
{
  guint i;

  set_up ();
  g_setenv ("GTORCH_CUDA_RECORDINGS", "0", TRUE);
  for (i = 0; i < 2 * N_CALLS; i++)
    g_assert_cmpuint (mm (1), ==, 1);
  g_unsetenv ("GTORCH_CUDA_RECORDINGS");
}

static gpointer
wait_once (gpointer data)
{
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  return NULL;
}

static void
nothing_is_recorded_while_the_context_is_waited_for (void)
{
  g_autoptr (GTorchImpl) x = draw (gpu (0), N_ROWS, DEPTH, 1);
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) z = NULL;
  GThread *thread;
  GError *error = NULL;
  guint i, n;

  set_up ();
  for (i = 1; i < N_CALLS; i++)
    g_assert_cmpuint (mm (1), ==, 1);
  y = draw (gpu (0), DEPTH, n_columns, 1);
  fake_cuda_hold (TRUE);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  fake_cuda_reset_calls ();
  thread = g_thread_new ("wait", wait_once, NULL);
  while (fake_cuda_get_calls ("cuCtxSynchronize") == 0)
    g_thread_yield ();
  n = fake_cublaslt.n_products;
  z = gtorch_op_mm (x, y, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 1);
  fake_cuda_hold (FALSE);
  g_thread_join (thread);
  g_assert_cmpuint (mm (1), ==, 1 + N_SAMPLES);
  g_assert_cmpuint (mm (1), ==, 0);
}

/* The context cannot be synchronised while a capture uses it. */
static gpointer
wait_for_context (gpointer over)
{
  guint n = 0;

  for (; !g_atomic_int_get ((gint *) over); n++)
    {
      GError *error = NULL;

      g_assert_true (gtorch_device_synchronize (gpu (0), NULL, &error));
      g_assert_no_error (error);
      g_thread_yield ();
    }
  return GUINT_TO_POINTER (n);
}

static GThread *waiting;

/* It starts to wait while the call is being recorded, and is still waiting at the end of that. */
static void
meet (CUstream stream)
{
  CUstreamCaptureStatus status;
  guint n;

  OK (cuStreamIsCapturing (stream, &status));
  if (status == CU_STREAM_CAPTURE_STATUS_NONE)
    return;
  n = fake_cuda_get_calls ("cuCtxSynchronize");
  if (waiting == NULL)
    waiting = g_thread_new ("wait", wait_once, NULL);
  g_usleep (20000);
  g_assert_cmpuint (fake_cuda_get_calls ("cuCtxSynchronize"), ==, n);
}

static void
context_waits_wait_for_recordings (void)
{
  guint i;

  set_up ();
  on_call = meet;
  for (i = 1; i < N_CALLS; i++)
    g_assert_cmpuint (mm (1), ==, 1);
  g_assert_cmpuint (mm (1), ==, 1 + N_SAMPLES);
  on_call = NULL;
  g_assert_nonnull (waiting);
  g_thread_join (g_steal_pointer (&waiting));
  g_assert_cmpuint (mm (1), ==, 0);
}

static void
others_may_wait_for_the_context (void)
{
  gint over = FALSE;
  GThread *thread = g_thread_new ("wait", wait_for_context, &over);
  guint i, k;

  for (k = 0; k < 10; k++)
    {
      set_up ();
      for (i = 0; i < 2 * N_CALLS; i++)
        mm (1);
    }
  g_atomic_int_set (&over, TRUE);
  g_assert_cmpuint (GPOINTER_TO_UINT (g_thread_join (thread)), >, 0);
  for (i = 0; i < 2; i++)
    mm (1);
  g_assert_cmpuint (mm (1), ==, 0);
}

/* Each algorithm on trial is timed in the way in which it will be called. */
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

/* Records a product. Returns the log of driver calls; free it. */
static GStrv
record (guint nth, gint fault)
{
  g_autofree gchar *log = NULL;
  guint i;

  set_up ();
  for (i = 1; i < N_CALLS; i++)
    g_assert_cmpuint (mm (1), ==, 1);
  run (compute_mm, 0, 1, nth, fault);
  log = fake_cuda_dup_log ();
  for (i = 0; i < 3; i++)
    g_assert_cmpuint (mm (1), <=, 1 + N_SAMPLES);
  return g_strsplit (log, " ", -1);
}

/* Whatever fails while a call is recorded, the product is right, or fails with an error, and nothing
 * leaks except what the driver does not take back. */
static void
faults_leak_nothing (void)
{
  const gint64 next = n_columns;
  g_auto (GStrv) calls = NULL;
  FakeCudaAccounts before, after;
  guint n_kept = 0, i;

  n_columns = 1; /* the other numbers of columns are even */
  calls = record (0, 0);
  for (i = 0; strcmp (calls[i], "cuStreamCreateWithPriority") != 0; i++)
    ;
  g_assert_cmpuint (g_strv_length (calls), >, 30);
  fake_cuda_get_accounts (&before);
  for (; calls[i] != NULL && strcmp (calls[i], "cuStreamDestroy") != 0; i++)
    {
      /* of the calls in each of the three captures both */
      g_strfreev (
          record (i + 1, i / 2 % 2 == 0 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_OUT_OF_MEMORY));
      n_kept += strcmp (calls[i], "cuGraphDestroy") == 0;
    }
  fake_cuda_get_accounts (&after);
  g_assert_cmpuint (after.streams, ==, before.streams);
  g_assert_cmpuint (after.graphs, ==, before.graphs + n_kept);
  n_columns = next;
}

/* If the driver refuses the recorded launch, the library is called, provided that no kernel was launched. */
static void
a_refused_launch_falls_back_to_the_library (void)
{
  guint n;

  set_up ();
  assert_recorded (1);
  n = fake_cublaslt.n_products;
  fake_cuda_fail ("cuLaunchKernelEx", 1, CUDA_ERROR_INVALID_VALUE);
  mm (1);
  g_assert_true (fake_cuda_clear_faults ());
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 1);
  g_assert_cmpuint (mm (1), ==, 1);
}

static void
a_refused_second_launch_is_an_error (void)
{
  g_autoptr (GTorchImpl) x = draw (gpu (0), N_ROWS, DEPTH, 1);
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) z = NULL;
  g_autoptr (GError) error = NULL;
  guint n;

  set_up ();
  form.n_kernels = 2;
  assert_recorded (2);
  y = draw (gpu (0), DEPTH, n_columns, 1);
  n = fake_cublaslt.n_products;
  fake_cuda_fail ("cuLaunchKernelEx", 2, CUDA_ERROR_INVALID_VALUE);
  z = gtorch_op_mm (x, y, &error);
  g_assert_true (fake_cuda_clear_faults ());
  g_assert_null (z);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_assert_nonnull (strstr (error->message, "mm"));
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n);
  g_assert_cmpuint (mm (2), ==, 0);
}

/* The error is the original cause, not the status of the library. */
static void
a_lost_device_is_reported (void)
{
  g_autoptr (GTorchImpl) x = draw (gpu (0), N_ROWS, DEPTH, 1);
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) z = NULL;
  g_autoptr (GError) error = NULL;
  guint n;

  set_up ();
  assert_recorded (1);
  y = draw (gpu (0), DEPTH, n_columns, 1);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  n = fake_cublaslt.n_products;
  fake_cuda_break (0, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  while (fake_cuda_get_pending () > 0)
    gtorch_cuda.cuStreamQuery (side); /* the error has not been reported yet */
  z = gtorch_op_mm (x, y, &error);
  fake_cuda_clear_faults ();
  g_assert_null (z);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n);
  gtorch_device_forget_failure (gpu (0));
}

/* It is tried again after 8, 64 and 512 calls, in case that something has changed. */
static void
unrecordable_products_are_tried_three_times (void)
{
  const guint n_calls = is_slowed () ? 8 + 64 + 100 : 8 + 64 + 512 + 600;
  guint i, n = 0, n_tries = 0;

  set_up ();
  form.clears = TRUE;
  for (i = 0; i < n_calls; i++)
    {
      n = mm (1);
      n_tries += n > 1;
      if (n > 1)
        g_assert_true (i + 1 == 8 || i + 1 == 8 + 64 || i + 1 == 8 + 64 + 512);
    }
  g_assert_cmpuint (n_tries, ==, is_slowed () ? 2 : 3);
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
  small = (CUfunction) found; /* on any device */
  OK (cuLibraryGetKernel (&found, library, "gt_multiply_f32_large"));
  large = (CUfunction) found;
  OK (cuStreamCreateWithPriority (&side, CU_STREAM_NON_BLOCKING, 0));
  library_memory = bytes (4096);
  TEST (calls_are_recorded);
  TEST (parameters_may_be_bytes);
  TEST (kernels_may_follow_each_other);
  TEST (clusters_stay_together);
  TEST (streams_have_workspaces_of_their_own);
  TEST (launches_with_other_variables_are_not_recorded);
  TEST (sums_are_recorded_by_themselves);
  TEST (a_bias_is_added);
  TEST (devices_have_recordings_of_their_own);
  TEST (other_products_use_the_library);
  TEST (recordings_can_be_turned_off);
  TEST (nothing_is_recorded_while_the_context_is_waited_for);
  TEST (context_waits_wait_for_recordings);
  TEST (others_may_wait_for_the_context);
  TEST (trials_are_recorded);
  TEST (faults_leak_nothing);
  TEST (a_refused_launch_falls_back_to_the_library);
  TEST (a_refused_second_launch_is_an_error);
  TEST (unrecordable_products_are_tried_three_times);
  TEST (a_lost_device_is_reported);
  result = g_test_run ();
  gtorch_impl_unref (library_memory);
  OK (cuStreamDestroy (side));
  OK (cuLibraryUnload (library));
  assert_no_misuse ();
  return result;
}
