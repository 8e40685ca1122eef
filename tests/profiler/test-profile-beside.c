/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What goes on beside the thread that has asked for it: streams of the CPU, and waits for batches. */

#include "config.h"

#include <string.h>

#include "profiler-test.h"
#include "test-device.h"

/* Some operations in a stream of the CPU, which the caller waits for if it is to. */
static GTorchProfiler *
profile_stream (gboolean with_memory)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, 3), 0, gtorch_device_cpu (), NULL);
  g_autoptr (GTorchTensor) y = NULL, z = NULL;
  GTorchProfiler *profiler =
      started ("record-shapes", TRUE, "with-flops", TRUE, "profile-memory", with_memory);

  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    y = gtorch_tensor_exp (x, NULL);
    z = gtorch_tensor_exp (y, NULL);
  }
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  stop (profiler);
  return profiler;
}

static void
streams_tell_what_they_compute (void)
{
  g_autoptr (GTorchProfiler) profiler = profile_stream (FALSE);
  const GTorchRecord *records;
  guint n, i;

  records = gtorch_trace_get_records (gtorch_profiler_get_trace (profiler), &n);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_OP, "exp"), ==, 2);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_RUN, "exp"), ==, 2);
  for (i = 0; i < 2; i++)
    {
      const GTorchRecord *op = find_record (profiler, GTORCH_RECORD_OP, "exp", i);
      const GTorchRecord *run = find_record (profiler, GTORCH_RECORD_RUN, "exp", i);

      g_assert_true (&records[run->forward] == op);
      g_assert_cmpuint (run->correlation, ==, op->id);
      g_assert_cmpuint (op->correlation, ==, op->id);
      g_assert_cmpint (run->thread, !=, op->thread);
      g_assert_cmpint (run->start, >=, op->start);
      g_assert_cmpint (run->end, >=, run->start);
      g_assert_cmpint (run->parent, ==, -1);
      g_assert_cmpuint (run->op.n_inputs, ==, 1);
    }
}

static void
sums_count_what_streams_compute_once (void)
{
  g_autoptr (GTorchProfiler) profiler = profile_stream (FALSE);
  g_autoptr (GTorchProfileList) events = gtorch_profiler_events (profiler, NULL);
  g_autoptr (GTorchProfileList) averages = gtorch_profiler_key_averages (profiler, TRUE, 0, NULL);
  g_autoptr (GTorchProfileRow) sum = find_row (averages, "exp");
  gdouble took = 0;
  guint n_async = 0, i;

  g_assert_cmpuint (gtorch_profile_row_get_count (sum), ==, 2);
  for (i = 0; i < g_list_model_get_n_items (G_LIST_MODEL (events)); i++)
    {
      g_autoptr (GTorchProfileRow) row = g_list_model_get_item (G_LIST_MODEL (events), i);

      if (!g_str_equal (gtorch_profile_row_get_key (row), "exp"))
        continue;
      g_assert_cmpint (gtorch_profile_row_get_kind (row), ==, GTORCH_PROFILE_KIND_OPERATION);
      n_async += gtorch_profile_row_get_is_asynchronous (row);
      took += gtorch_profile_row_get_self_cpu_time_total (row);
      g_assert_cmpuint (gtorch_profile_row_get_count (row), ==,
                        gtorch_profile_row_get_is_asynchronous (row) ? 0 : 1);
    }
  g_assert_cmpuint (n_async, ==, 2);
  g_assert_cmpfloat (ABS (gtorch_profile_row_get_self_cpu_time_total (sum) - took), <, 1e-3);
}

/* What ends after the recording has no event, and the operation still has its own. */
static gboolean
hold (gpointer gate, GError **error)
{
  while (g_atomic_int_get ((gint *) gate) == 0)
    g_thread_yield ();
  return TRUE;
}

static void
what_ends_late_is_left_out (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, 3), 0, gtorch_device_cpu (), NULL);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchProfiler) profiler = started (NULL);
  g_autoptr (GTorchProfiler) next = NULL;
  gint gate = 0;

  GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, hold, &gate, NULL);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    y = gtorch_tensor_exp (x, NULL);
  }
  stop (profiler);
  next = started (NULL);
  g_atomic_int_set (&gate, 1);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  stop (next);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_OP, "exp"), ==, 1);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_RUN, NULL), ==, 0);
  /* the next recording has what went on in it, without the operation */
  g_assert_cmpuint (count_records (next, GTORCH_RECORD_OP, NULL), ==, 0);
  g_assert_cmpuint (count_records (next, GTORCH_RECORD_RUN, "exp"), ==, 1);
  g_assert_cmpint (find_record (next, GTORCH_RECORD_RUN, "exp", 0)->forward, ==, -1);
}

/* --- waits --- */

/* Makes a batch once the program lets it, so that the wait for it lasts. */
static GTorchSample *
collate_late (GTorchSample **samples, gsize n_samples, gpointer gate, GError **error)
{
  return hold (gate, error) ? gtorch_sample_collate (samples, n_samples, error) : NULL;
}

static void
on_batch (GObject *iter, GAsyncResult *result, gpointer is_done)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchSample) batch =
      gtorch_data_loader_iter_next_finish (GTORCH_DATA_LOADER_ITER (iter), result, &error);

  g_assert_no_error (error);
  g_assert_nonnull (batch);
  *(gboolean *) is_done = TRUE;
}

static void
asynchronous_waits_are_beside_the_program (gconstpointer n_workers)
{
  static gint gate; /* of workers, which may outlive the call */
  const gchar *name = n_workers != NULL
                          ? "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
                          : "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  g_autoptr (GTorchTensor) x = filled (6, 2, 1), y = NULL;
  g_autoptr (GTorchTensorDataset) data = gtorch_tensor_dataset_new (&x, 1, NULL);
  g_autoptr (GTorchDataLoader) loader =
      g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", data, "batch-size", (gint64) 2,
                    "num-workers", GPOINTER_TO_UINT (n_workers), NULL);
  g_autoptr (GTorchProfiler) profiler = started (NULL);
  g_autoptr (GTorchDataLoaderIter) iter = NULL;
  g_autoptr (GTorchProfileList) events = NULL;
  g_autoptr (GTorchProfileRow) row = NULL;
  g_autoptr (GError) error = NULL;
  const GTorchRecord *wait, *op;
  gboolean is_done = FALSE;

  g_atomic_int_set (&gate, 0);
  gtorch_data_loader_set_collate (loader, collate_late, &gate, NULL);
  iter = gtorch_data_loader_iterate (loader, &error);
  g_assert_no_error (error);
  gtorch_data_loader_iter_next_async (iter, NULL, on_batch, &is_done);
  y = gtorch_tensor_tanh (x, NULL);
  g_atomic_int_set (&gate, 1);
  while (!is_done)
    g_main_context_iteration (NULL, TRUE);
  stop (profiler);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_WAIT, name), ==, 1);
  wait = find_record (profiler, GTORCH_RECORD_WAIT, name, 0);
  op = find_record (profiler, GTORCH_RECORD_OP, "tanh", 0);
  g_assert_cmpint (wait->start, <=, op->start);
  g_assert_cmpint (wait->end, >=, op->end);
  g_assert_cmpint (op->parent, ==, -1); /* the program's own, not a part of the wait */
  events = gtorch_profiler_events (profiler, NULL);
  row = find_row (events, name);
  g_assert_true (gtorch_profile_row_get_is_asynchronous (row));
  g_assert_cmpint (gtorch_profile_row_get_kind (row), ==, GTORCH_PROFILE_KIND_RANGE);
  g_assert_cmpfloat (gtorch_profile_row_get_self_cpu_time_total (row), ==, 0);
  g_assert_cmpfloat (gtorch_profile_row_get_cpu_time_total (row), >, 0);
}

/* --- steps --- */

static GTorchTensor *
compute_loss (gpointer param, GError **error)
{
  g_autoptr (GTorchTensor) square = gtorch_tensor_mul (param, param, error);
  g_autoptr (GTorchTensor) loss = gtorch_tensor_sum (square, NULL, 0, FALSE, 0, error);

  return gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error) ? g_steal_pointer (&loss) : NULL;
}

static void
steps_have_their_closures (void)
{
  g_autoptr (GTorchTensor) value = filled (2, 2, 1);
  g_autoptr (GTorchParameter) param = gtorch_parameter_new (value, TRUE, NULL);
  g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchOptimizer) optimizer = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  const GTorchRecord *step;

  g_list_store_append (params, param);
  optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (G_LIST_MODEL (params), 0.1, 0, &error));
  g_assert_no_error (error);
  profiler = started (NULL);
  loss = gtorch_optimizer_step_closure (optimizer, compute_loss, param, &error);
  g_assert_no_error (error);
  stop (profiler);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_RANGE, "Optimizer.step#SGD.step"), ==,
                    1);
  step = find_record (profiler, GTORCH_RECORD_RANGE, "Optimizer.step#SGD.step", 0);
  g_assert_true (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "mul", 0)) == step);
}

#define TEST(name) g_test_add_func ("/GTorch/profile-beside/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (streams_tell_what_they_compute);
  TEST (sums_count_what_streams_compute_once);
  TEST (what_ends_late_is_left_out);
  g_test_add_data_func ("/GTorch/profile-beside/asynchronous_waits_are_beside_the_program/0",
                        GUINT_TO_POINTER (0), asynchronous_waits_are_beside_the_program);
  g_test_add_data_func ("/GTorch/profile-beside/asynchronous_waits_are_beside_the_program/2",
                        GUINT_TO_POINTER (2), asynchronous_waits_are_beside_the_program);
  TEST (steps_have_their_closures);
  return g_test_run ();
}
