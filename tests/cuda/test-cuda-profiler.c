/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Kernels and copies in profiles, on the fake driver and the fake CUPTI, and what there is without it. */

#include "config.h"

#include "cuda-test.h"

#include <glib/gstdio.h>
#include <tests/capture-test.h>
#include <tests/fake-cuda/fake-cupti.h>
#include <tests/profiler/profiler-test.h>
#include <unistd.h>

static GTorchTensor *
on_gpu (gint64 n, gdouble value)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor =
      gtorch_full (GTORCH_SHAPE (n), value, GTORCH_DTYPE_FLOAT32, gpu (0), &error);

  g_assert_no_error (error);
  return tensor;
}

static void
kernels_belong_to_their_operations (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL, host = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autoptr (GTorchProfileList) averages = NULL;
  g_autoptr (GTorchProfileRow) row = NULL;
  const GTorchRecord *kernel, *call, *copy;
  guint before, i;

  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  before = fake_cupti_get_kernels ();
  profiler = started ("record-shapes", TRUE);
  g_assert_cmpint (gtorch_profiler_get_gpu_source (profiler), ==, GTORCH_PROFILER_GPU_ACTIVITIES);
  g_assert_null (gtorch_profiler_get_gpu_message (profiler));
  for (i = 0; i < 3; i++)
    {
      g_clear_object (&y);
      y = gtorch_tensor_add (x, x, 1, NULL);
    }
  host = gtorch_tensor_to_device (y, gtorch_device_cpu (), FALSE, NULL);
  stop (profiler);
  g_assert_cmpint (fake_cupti_get_enabled (), ==, 0);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==,
                   fake_cupti_get_kernels () - before);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==, 3);
  for (i = 0; i < 3; i++)
    {
      kernel = find_record (profiler, GTORCH_RECORD_KERNEL, NULL, i);
      g_assert_cmpstr (parent_of (profiler, kernel)->name, ==, "add");
      g_assert_true (kernel->device == gpu (0));
      g_assert_cmpint (kernel->thread, ==, -1);
      g_assert_cmpint (kernel->kernel.block[0], >, 0);
      g_assert_cmpint (kernel->end, >=, kernel->start);
    }
  g_assert_true (parent_of (profiler, find_record (profiler, GTORCH_RECORD_KERNEL, NULL, 0))
                 != parent_of (profiler, find_record (profiler, GTORCH_RECORD_KERNEL, NULL, 1)));
  call = find_record (profiler, GTORCH_RECORD_DRIVER, "cuLaunchKernel", 0);
  if (call == NULL)
    call = find_record (profiler, GTORCH_RECORD_DRIVER, "cuLaunchKernelEx", 0);
  g_assert_nonnull (call);
  g_assert_cmpstr (parent_of (profiler, call)->name, ==, "add");
  g_assert_cmpint (call->thread, ==, parent_of (profiler, call)->thread);
  copy = find_record (profiler, GTORCH_RECORD_COPY, NULL, 0);
  g_assert_nonnull (copy);
  g_assert_cmpstr (copy->copy.direction, ==, "DtoH");
  g_assert_cmpuint (copy->copy.n_bytes, ==, 64 * 4);
  g_assert_true (g_str_has_prefix (copy->name, "Memcpy DtoH ("));
  g_assert_nonnull (parent_of (profiler, copy));

  averages = gtorch_profiler_key_averages (profiler, FALSE, 0, NULL);
  row = find_row (averages, "add");
  g_assert_cmpfloat (gtorch_profile_row_get_self_device_time_total (row), >, 0);
  g_clear_object (&row);
  row = find_row (averages, kernel->name);
  g_assert_cmpint (gtorch_profile_row_get_device_type (row), ==, GTORCH_DEVICE_TYPE_CUDA);
  g_assert_cmpfloat (gtorch_profile_row_get_cpu_time_total (row), ==, 0);
}

/* In lists, too: what an event has launched is beside what is inside of it. */
static void
events_have_their_kernels (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL;
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", TRUE);
  g_autoptr (GTorchProfileList) events = NULL, kernels = NULL, children = NULL;
  g_autoptr (GTorchProfileRow) add = NULL, kernel = NULL, above = NULL, call = NULL;

  y = gtorch_tensor_add (x, x, 1, NULL);
  stop (profiler);
  events = gtorch_profiler_events (profiler, NULL);
  add = find_row (events, "add");
  kernels = gtorch_profile_row_dup_kernels (add);
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (kernels)), ==, 1);
  kernel = g_list_model_get_item (G_LIST_MODEL (kernels), 0);
  g_assert_cmpint (gtorch_profile_row_get_kind (kernel), ==, GTORCH_PROFILE_KIND_KERNEL);
  g_assert_cmpint (gtorch_profile_row_get_device_index (kernel), ==, 0);
  g_assert_cmpuint (gtorch_profile_row_get_thread (kernel), ==, 0);
  above = gtorch_profile_row_dup_parent (kernel);
  g_assert_cmpint (gtorch_profile_row_get_position (above), ==,
                   gtorch_profile_row_get_position (add));
  children = gtorch_profile_row_dup_children (add);
  g_assert_cmpuint (g_list_model_get_n_items (G_LIST_MODEL (children)), >=, 1);
  call = g_list_model_get_item (G_LIST_MODEL (children), 0);
  g_assert_cmpint (gtorch_profile_row_get_kind (call), ==, GTORCH_PROFILE_KIND_DRIVER);
  g_assert_cmpuint (gtorch_profile_row_get_id (call), ==, gtorch_profile_row_get_id (kernel));
}

static GTorchProfileRow *
child_of (GTorchProfileRow *row)
{
  g_autoptr (GTorchProfileList) children = gtorch_profile_row_dup_children (row);

  return g_list_model_get_item (G_LIST_MODEL (children), 0);
}

/* What NCCL enqueues is inside of the operation, and one of several tensors is one. */
static void
collectives_are_recorded (void)
{
  g_autoptr (GTorchHashStore) store = gtorch_hash_store_new ();
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = on_gpu (3, 1);
  GTorchTensor *both[] = { x, y };
  g_autoptr (GTorchProcessGroup) group = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autoptr (GTorchWork) first = NULL, second = NULL, third = NULL;
  g_autoptr (GTorchProfileList) averages = NULL;
  g_autoptr (GTorchProfileRow) call = NULL, transfer = NULL, several = NULL;
  g_autoptr (GError) error = NULL;

  group = gtorch_process_group_new ("nccl", GTORCH_STORE (store), 0, 1, 60, NULL, &error);
  g_assert_no_error (error);
  first = gtorch_process_group_all_reduce (group, x, GTORCH_REDUCE_OP_SUM, &error); /* connects */
  g_assert_no_error (error);
  profiler = started ("record-shapes", TRUE);
  second = gtorch_process_group_all_reduce (group, x, GTORCH_REDUCE_OP_SUM, &error);
  third = gtorch_process_group_all_reduce_coalesced (group, both, 2, GTORCH_REDUCE_OP_SUM, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_work_wait (third, -1, NULL, &error));
  stop (profiler);
  averages = gtorch_profiler_key_averages (profiler, TRUE, 0, NULL);
  call = find_row (averages, "c10d::allreduce_");
  g_assert_cmpuint (gtorch_profile_row_get_count (call), ==, 1);
  g_assert_cmpstr (gtorch_profile_row_get_input_shapes (call), ==, "[[64]]");
  transfer = child_of (call);
  g_assert_cmpstr (gtorch_profile_row_get_key (transfer), ==, "nccl:all_reduce");
  g_assert_cmpint (gtorch_profile_row_get_kind (transfer), ==, GTORCH_PROFILE_KIND_TRANSFER);
  g_assert_false (gtorch_profile_row_get_is_asynchronous (transfer));
  several = find_row (averages, "c10d::allreduce_coalesced_");
  g_assert_cmpuint (gtorch_profile_row_get_count (several), ==, 1);
  g_assert_cmpstr (gtorch_profile_row_get_input_shapes (several), ==, "[[64], [3]]");
}

static void
replays_have_the_kernels_of_their_graph (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL, z = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  GTorchGraphCapture *capture;
  guint i, n;

  capture = begin (graph, NULL, NULL);
  y = gtorch_tensor_add (x, x, 1, NULL);
  z = gtorch_tensor_mul (y, x, NULL);
  end (capture);
  profiler = started ("record-shapes", FALSE);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  stop (profiler);
  n = count_records (profiler, GTORCH_RECORD_KERNEL, NULL);
  g_assert_cmpint (n, ==, 4);
  for (i = 0; i < n; i++)
    g_assert_cmpint (parent_of (profiler, find_record (profiler, GTORCH_RECORD_KERNEL, NULL, i))
                         ->kind,
                     ==, GTORCH_RECORD_REPLAY);
}

static void
warmup_is_dropped (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1);
  g_autoptr (GTorchProfiler) profiler = started ("warmup", (gint64) 1, "active", (gint64) 1);
  g_autoptr (GTorchTensor) y = gtorch_tensor_add (x, x, 1, NULL), z = NULL;

  g_assert_cmpint (fake_cupti_get_enabled (), >, 0);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  g_assert_true (gtorch_profiler_step (profiler, NULL));
  z = gtorch_tensor_mul (x, x, NULL);
  g_assert_true (gtorch_profiler_step (profiler, NULL));
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==, 1);
  g_assert_true (gtorch_profiler_stop (profiler, NULL));
}

static void
lost_records_are_told (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL;
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", FALSE);

  fake_cupti_drop (2);
  y = gtorch_tensor_add (x, x, 1, NULL);
  stop (profiler);
  fake_cupti_drop (0);
  g_assert_cmpstr (gtorch_profiler_get_gpu_message (profiler), ==,
                   "2 records of kernels and copies were lost");
}

/* The clock of a device is known to some microseconds only. */
static void
kernels_of_the_profile_stay_whatever_their_clock_says (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL, z = NULL;
  g_autoptr (GTorchProfiler) profiler = started ("warmup", (gint64) 1, "active", (gint64) 1);
  const GTorchRecord *kernel;

  y = gtorch_tensor_add (x, x, 1, NULL); /* of the warmup */
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  fake_cupti_skew (G_GINT64_CONSTANT (3600000000000));
  g_assert_true (gtorch_profiler_step (profiler, NULL));
  z = gtorch_tensor_mul (x, x, NULL);
  g_assert_true (gtorch_profiler_step (profiler, NULL));
  fake_cupti_skew (0);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==, 1);
  kernel = find_record (profiler, GTORCH_RECORD_KERNEL, NULL, 0);
  g_assert_cmpstr (parent_of (profiler, kernel)->name, ==, "mul");
  g_assert_null (gtorch_profiler_get_gpu_message (profiler));
  g_assert_true (gtorch_profiler_stop (profiler, NULL));
}

/* What goes on in the profile although it was launched before is in it, and what is launched behind
 * it is not. */
static void
what_is_launched_outside_is_left_out (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL, z = NULL;
  g_autoptr (GTorchProfiler) profiler = started ("warmup", (gint64) 1, "active", (gint64) 1);

  fake_cupti_skew (-G_GINT64_CONSTANT (3600000000000)); /* it ends in an hour */
  y = gtorch_tensor_add (x, x, 1, NULL);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  fake_cupti_skew (0);
  g_assert_true (gtorch_profiler_step (profiler, NULL));
  g_assert_true (gtorch_profiler_step (profiler, NULL));
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==, 1);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_DRIVER, "cuLaunchKernel"), ==, 0);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_DRIVER, "cuLaunchKernelEx"), ==, 0);
  g_assert_true (gtorch_profiler_stop (profiler, NULL));
}

static gchar *
write_trace (GTorchProfiler *profiler)
{
  g_autofree gchar *path = g_build_filename (g_get_tmp_dir (), "gtorch-losses-XXXXXX", NULL);
  g_autoptr (GFile) file = NULL;
  gchar *text = NULL;

  close (g_mkstemp (path));
  file = g_file_new_for_path (path);
  g_assert_true (gtorch_profiler_export_chrome_trace (profiler, file, NULL, NULL));
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_true (g_file_delete (file, NULL, NULL));
  return text;
}

static void
kernels_without_times_are_told (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL, z = NULL;
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", FALSE);
  g_autoptr (GTorchProfileList) averages = NULL;
  g_autofree gchar *text = NULL;
  g_autofree gchar *table = NULL;

  y = gtorch_tensor_add (x, x, 1, NULL);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  fake_cupti_untime (1);
  z = gtorch_tensor_mul (x, x, NULL);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  fake_cupti_drop (1);
  g_clear_object (&y);
  y = gtorch_tensor_sub (x, x, 1, NULL);
  stop (profiler);
  fake_cupti_drop (0);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), >=, 1);
  g_assert_cmpstr (gtorch_profiler_get_gpu_message (profiler), ==,
                   "1 records of kernels and copies were lost; 1 kernels and copies are left out: "
                   "their times are not known");
  text = write_trace (profiler);
  g_assert_nonnull (strstr (text, "\"gpu_records_lost\": 1,"));
  g_assert_nonnull (strstr (text, "\"gpu_records_without_times\": 1,"));
  averages = gtorch_profiler_key_averages (profiler, FALSE, 0, NULL);
  table = gtorch_profile_list_table (averages, NULL, -1, -1, -1, -1, NULL, FALSE, NULL, NULL);
  g_assert_nonnull (strstr (table, "2 records of kernels and copies are missing"));
}

static void
failed_calls_have_their_result (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL;
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", FALSE);
  g_autofree gchar *text = NULL;

  fake_cupti_return (719);
  y = gtorch_tensor_add (x, x, 1, NULL);
  stop (profiler);
  text = write_trace (profiler);
  g_assert_nonnull (strstr (text, "\"result\": 719}"));
  g_assert_null (strstr (text, "gpu_records_lost"));
  g_assert_null (strstr (text, "gpu_records_without_times"));
}

static void
timing_events_stand_in_for_the_library (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autoptr (GTorchProfileList) averages = NULL;
  g_autoptr (GTorchProfileRow) row = NULL;
  const GTorchRecord *span;
  g_autofree gchar *table = NULL;

  fake_cupti_fail ("cuptiActivityEnable", 3, 35);
  profiler = started ("record-shapes", FALSE);
  fake_cupti_fail (NULL, 0, 0);
  g_assert_cmpint (gtorch_profiler_get_gpu_source (profiler), ==, GTORCH_PROFILER_GPU_EVENTS);
  g_assert_cmpint (fake_cupti_get_enabled (), ==, 0);
  g_assert_cmpstr (gtorch_profiler_get_gpu_message (profiler), ==,
                   "kernels and copies are not recorded, and timing events around operations give "
                   "the "
                   "times of the GPU: cuptiActivityEnable: CUPTI_ERROR_OF_THE_FAKE (35)");
  fake_cuda_stop_clock (); /* a microsecond passes at each event */
  y = gtorch_tensor_add (x, x, 1, NULL);
  stop (profiler);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==, 0);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_SPAN, NULL), ==, 1);
  span = find_record (profiler, GTORCH_RECORD_SPAN, "add", 0);
  g_assert_cmpstr (parent_of (profiler, span)->name, ==, "add");
  g_assert_cmpint (span->end - span->start, ==, 1000);
  averages = gtorch_profiler_key_averages (profiler, FALSE, 0, NULL);
  row = find_row (averages, "add");
  g_assert_cmpfloat (gtorch_profile_row_get_self_device_time_total (row), ==, 1);
  g_assert_cmpint (gtorch_profile_row_get_device_type (row), ==, GTORCH_DEVICE_TYPE_CPU);
  table = gtorch_profile_list_table (averages, NULL, -1, -1, -1, -1, NULL, FALSE, NULL, NULL);
  g_assert_nonnull (strstr (table, "Self CUDA %"));
  g_assert_nonnull (strstr (table, "Self CUDA time total: 1.000us"));
}

static void
the_gpu_may_be_left_out (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL;
  g_autoptr (GTorchProfiler) profiler = started ("activities", GTORCH_PROFILER_CPU);

  g_assert_cmpint (gtorch_profiler_get_gpu_source (profiler), ==, GTORCH_PROFILER_GPU_NONE);
  y = gtorch_tensor_add (x, x, 1, NULL);
  stop (profiler);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_OP, "add"), ==, 1);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==, 0);
}

static void
the_host_may_be_left_out (void)
{
  g_autoptr (GTorchTensor) x = on_gpu (64, 1), y = NULL;
  g_autoptr (GTorchProfiler) profiler = started ("activities", GTORCH_PROFILER_CUDA);

  y = gtorch_tensor_add (x, x, 1, NULL);
  stop (profiler);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_OP, NULL), ==, 0);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_KERNEL, NULL), ==, 1);
}

#define TEST(name) g_test_add_func ("/GTorch/cuda-profiler/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (kernels_belong_to_their_operations);
  TEST (events_have_their_kernels);
  TEST (collectives_are_recorded);
  TEST (replays_have_the_kernels_of_their_graph);
  TEST (warmup_is_dropped);
  TEST (lost_records_are_told);
  TEST (kernels_of_the_profile_stay_whatever_their_clock_says);
  TEST (what_is_launched_outside_is_left_out);
  TEST (kernels_without_times_are_told);
  TEST (failed_calls_have_their_result);
  TEST (the_gpu_may_be_left_out);
  TEST (the_host_may_be_left_out);
  TEST (timing_events_stand_in_for_the_library);
  return g_test_run ();
}
