/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Kernels and copies of a real GPU in profiles, as CUPTI reports them, and what timing events tell without
 * it. */

#include "config.h"

#include <tests/capture-test.h>
#include <tests/profiler/profiler-test.h>

#include "gpu-test.h"

#define N_CALLS 100
#define CLOCKS  50000 /* nanoseconds by which the clocks of host and GPU may differ */

static GTorchTensor *
on_gpu (gint64 n)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_full (GTORCH_SHAPE (n, n), 1, GTORCH_DTYPE_FLOAT32, gpu, &error);

  g_assert_no_error (error);
  return tensor;
}

/* Stops the profiler; FALSE, and the test is skipped, without CUPTI. */
static gboolean
has_kernels (GTorchProfiler *profiler)
{
  stop (profiler);
  if (gtorch_profiler_get_gpu_source (profiler) == GTORCH_PROFILER_GPU_ACTIVITIES)
    return TRUE;
  g_test_skip (gtorch_profiler_get_gpu_message (profiler));
  return FALSE;
}

static guint
count_launches (GTorchProfiler *profiler)
{
  const GTorchRecord *record;
  guint i, n = 0;

  for (i = 0; (record = find_record (profiler, GTORCH_RECORD_DRIVER, NULL, i)) != NULL; i++)
    n += g_str_has_prefix (record->name, "cuLaunchKernel")
         || g_str_has_prefix (record->name, "cudaLaunchKernel");
  return n;
}

static void
each_launch_is_a_kernel (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (256), y = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  const GTorchRecord *kernel;
  gint64 start, end;
  guint i, n;

  y = gtorch_tensor_add (x, x, 1, NULL); /* loads the kernel */
  g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
  profiler = started ("record-shapes", TRUE);
  for (i = 0; i < N_CALLS; i++)
    {
      g_clear_object (&y);
      y = gtorch_tensor_add (x, x, 1, NULL);
    }
  if (!has_kernels (profiler))
    return;
  n = count_records (profiler, GTORCH_RECORD_KERNEL, NULL);
  g_test_message ("%u kernels, %u launches", n, count_launches (profiler));
  g_assert_cmpint (n, ==, N_CALLS);
  g_assert_cmpint (count_launches (profiler), ==, N_CALLS);
  start = gtorch_trace_get_start (gtorch_profiler_get_trace (profiler));
  end = gtorch_profile_now ();
  for (i = 0; i < n; i++)
    {
      kernel = find_record (profiler, GTORCH_RECORD_KERNEL, NULL, i);
      g_assert_true (kernel->device == gpu);
      g_assert_cmpint (kernel->end, >, kernel->start);
      /* the clocks agree */
      g_assert_cmpint (kernel->start, >=, start - CLOCKS);
      g_assert_cmpint (kernel->end, <=, end + CLOCKS);
      g_assert_nonnull (parent_of (profiler, kernel));
      g_assert_cmpstr (parent_of (profiler, kernel)->name, ==, "add");
      g_assert_cmpint (kernel->start, >=, parent_of (profiler, kernel)->start - CLOCKS);
    }
}

static void
copies_and_fills_are_recorded (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (512), host = NULL, back = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  const GTorchRecord *copy;

  g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
  profiler = started ("record-shapes", FALSE);
  host = gtorch_tensor_to_device (x, gtorch_device_cpu (), FALSE, NULL);
  back = gtorch_tensor_to_device (host, gpu, FALSE, NULL);
  if (!has_kernels (profiler))
    return;
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_COPY, NULL), >=, 2);
  copy = find_record (profiler, GTORCH_RECORD_COPY, NULL, 0);
  g_test_message ("%s: %u bytes", copy->name, (guint) copy->copy.n_bytes);
  g_assert_cmpstr (copy->copy.direction, ==, "DtoH");
  g_assert_cmpuint (copy->copy.n_bytes, ==, 512 * 512 * 4);
  g_assert_nonnull (parent_of (profiler, copy));
}

static void
libraries_kernels_belong_to_operations (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (1024), y = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  const GTorchRecord *kernel;
  guint i;

  y = gtorch_tensor_mm (x, x, NULL);
  g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
  profiler = started ("record-shapes", FALSE);
  g_clear_object (&y);
  y = gtorch_tensor_mm (x, x, NULL);
  if (!has_kernels (profiler))
    return;
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), >=, 1);
  for (i = 0; (kernel = find_record (profiler, GTORCH_RECORD_KERNEL, NULL, i)) != NULL; i++)
    {
      g_test_message ("%s", kernel->name);
      g_assert_nonnull (parent_of (profiler, kernel));
      g_assert_cmpstr (parent_of (profiler, kernel)->name, ==, "mm");
    }
}

static void
kernels_of_graphs_belong_to_replays (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchTensor) x = on_gpu (64), y = NULL, z = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  const GTorchRecord *kernel;
  GTorchGraphCapture *capture;
  guint i;

  capture = begin (graph, NULL, NULL);
  y = gtorch_tensor_add (x, x, 1, NULL);
  z = gtorch_tensor_mul (y, x, NULL);
  end (capture);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_true (gtorch_device_synchronize (gpu, NULL, NULL));
  profiler = started ("record-shapes", FALSE);
  for (i = 0; i < 3; i++)
    g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  if (!has_kernels (profiler))
    return;
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==, 3 * 2);
  for (i = 0; (kernel = find_record (profiler, GTORCH_RECORD_KERNEL, NULL, i)) != NULL; i++)
    {
      g_assert_nonnull (parent_of (profiler, kernel));
      g_assert_cmpint (parent_of (profiler, kernel)->kind, ==, GTORCH_RECORD_REPLAY);
      g_assert_cmpuint (kernel->kernel.graph, !=, 0);
    }
}

static void
profiles_may_be_repeated (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64), y = NULL;
  guint i;

  for (i = 0; i < 5; i++)
    {
      g_autoptr (GTorchProfiler) profiler = started ("profile-memory", TRUE);

      g_clear_object (&y);
      y = gtorch_tensor_add (x, x, 1, NULL);
      if (!has_kernels (profiler))
        return;
      g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==, 1);
    }
}

static gboolean
refuse (GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA, "not now");
  return FALSE;
}

static void
timing_events_stand_in (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (2048), y = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  const GTorchGpuTracer *tracer = gtorch_gpu_tracer;
  GTorchGpuTracer none = *tracer;
  const GTorchRecord *span;

  none.begin = refuse;
  y = gtorch_tensor_exp (x, NULL);
  g_clear_object (&y);
  gtorch_gpu_tracer = &none;
  profiler = started ("record-shapes", FALSE);
  y = gtorch_tensor_exp (x, NULL);
  stop (profiler);
  gtorch_gpu_tracer = tracer;
  g_assert_cmpint (gtorch_profiler_get_gpu_source (profiler), ==, GTORCH_PROFILER_GPU_EVENTS);
  span = find_record (profiler, GTORCH_RECORD_SPAN, "exp", 0);
  g_assert_nonnull (span);
  g_assert_cmpint (span->end - span->start, >, 1000); /* 16 MB are read and written */
  g_assert_cmpint (span->end - span->start, <, 100000000);
}

#define TEST(name) g_test_add_func ("/GTorch/gpu-profiler/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  TEST (each_launch_is_a_kernel);
  TEST (copies_and_fills_are_recorded);
  TEST (libraries_kernels_belong_to_operations);
  TEST (kernels_of_graphs_belong_to_replays);
  TEST (profiles_may_be_repeated);
  TEST (timing_events_stand_in);
  return g_test_run ();
}
