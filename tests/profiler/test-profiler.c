/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What profilers record, and when. */

#include "config.h"

#include <string.h>

#include <gtorch/base/gtorch-observer-private.h>

#include "capture-test.h"
#include "profiler-test.h"
#include "test-device.h"

static void
operations_are_recorded_with_shapes (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", TRUE, "with-flops", TRUE);
  g_autoptr (GTorchTensor) a = filled (2, 3, 1), b = filled (3, 4, 2), c = NULL;
  const GTorchRecord *record;

  c = gtorch_tensor_mm (a, b, NULL);
  stop (profiler);
  record = find_record (profiler, GTORCH_RECORD_OP, "mm", 0);
  g_assert_nonnull (record);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_OP, "mm"), ==, 1);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_OP, "full"), ==, 2);
  g_assert_cmpint (record->op.n_inputs, ==, 2);
  g_assert_cmpint (record->op.inputs[0].n_dims, ==, 2);
  g_assert_cmpint (record->op.inputs[0].dtype, ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpint (record->op.inputs[0].shape[0], ==, 2);
  g_assert_cmpint (record->op.inputs[1].shape[1], ==, 4);
  g_assert_cmpint (record->op.inputs[1].strides[0], ==, 4);
  g_assert_cmpuint (record->op.flops, ==, 2 * 2 * 3 * 4);
  g_assert_cmpint (record->end, >, record->start);
  g_assert_cmpint (record->start, >=,
                   gtorch_trace_get_start (gtorch_profiler_get_trace (profiler)));
  g_assert_cmpint (record->end, <=, gtorch_trace_get_end (gtorch_profiler_get_trace (profiler)));
  g_assert_true (record->device == test_device ());
}

static void
nothing_observes_without_a_profiler (void)
{
  const GTorchObserverList *before = gtorch_observers;
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", FALSE);

  g_assert_true (gtorch_observers != before);
  stop (profiler);
  g_assert_true (gtorch_observers == before);
}

static void
ranges_contain_operations (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", FALSE);
  g_autoptr (GTorchTensor) x = filled (2, 2, 1), y = NULL, z = NULL;
  const GTorchRecord *inner, *outer, *op;

  {
    GTORCH_PROFILE_RANGE ("outer");
    g_autoptr (GTorchProfileRange) range = gtorch_profile_range_new ("inner");

    y = gtorch_tensor_exp (x, NULL);
    gtorch_profile_range_end (range);
    gtorch_profile_range_end (range); /* does nothing */
    z = gtorch_tensor_sin (x, NULL);
  }
  stop (profiler);
  outer = find_record (profiler, GTORCH_RECORD_RANGE, "outer", 0);
  inner = find_record (profiler, GTORCH_RECORD_RANGE, "inner", 0);
  g_assert_nonnull (outer);
  g_assert_nonnull (inner);
  g_assert_true (parent_of (profiler, inner) == outer);
  g_assert_cmpint (inner->depth, ==, 1);
  g_assert_null (parent_of (profiler, outer));
  op = find_record (profiler, GTORCH_RECORD_OP, "exp", 0);
  g_assert_true (parent_of (profiler, op) == inner);
  op = find_record (profiler, GTORCH_RECORD_OP, "sin", 0);
  g_assert_true (parent_of (profiler, op) == outer);
}

static void
composites_contain_their_parts (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", FALSE);
  g_autoptr (GTorchTensor) x = filled (2, 3, 1), y = NULL;
  const GTorchRecord *whole, *part;
  g_autoptr (GError) error = NULL;

  y = gtorch_tensor_flatten (x, 0, -1, &error);
  g_assert_no_error (error);
  stop (profiler);
  whole = find_record (profiler, GTORCH_RECORD_OP, "flatten", 0);
  g_assert_nonnull (whole);
  part = find_record (profiler, GTORCH_RECORD_OP, "reshape", 0);
  if (part == NULL)
    part = find_record (profiler, GTORCH_RECORD_OP, "view", 0);
  g_assert_nonnull (part);
  g_assert_true (parent_of (profiler, part) == whole);
}

static void
backward_is_linked_to_forward (void)
{
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autoptr (GTorchTensor) x = filled (2, 2, 3), y = NULL, total = NULL;
  const GTorchRecord *records, *node;
  guint n, i, n_linked = 0;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  profiler = started ("profile-memory", TRUE);
  y = gtorch_tensor_exp (x, NULL);
  total = gtorch_tensor_sum (y, NULL, 0, FALSE, 0, NULL);
  g_assert_true (gtorch_tensor_backward (total, NULL, FALSE, FALSE, NULL));
  stop (profiler);
  records = gtorch_trace_get_records (gtorch_profiler_get_trace (profiler), &n);
  for (i = 0; i < n; i++)
    {
      if (records[i].kind != GTORCH_RECORD_BACKWARD)
        continue;
      if (records[i].sequence == 0)
        {
          g_assert_cmpstr (records[i].name, ==, "torch::autograd::AccumulateGrad");
          g_assert_cmpint (records[i].forward, ==, -1);
          continue;
        }
      g_assert_cmpint (records[i].forward, >=, 0);
      node = &records[records[i].forward];
      g_assert_cmpint (node->kind, ==, GTORCH_RECORD_OP);
      g_assert_cmpuint (node->sequence, ==, records[i].sequence);
      g_assert_cmpint (node->end, <=, records[i].start);
      g_assert_cmpstr (records[i].name, ==,
                       g_str_equal (node->name, "exp") ? "ExpBackward0" : "SumBackward0");
      n_linked++;
    }
  g_assert_cmpint (n_linked, ==, 2);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_BACKWARD,
                                  "torch::autograd::AccumulateGrad"),
                   ==, 1);
}

static void
memory_belongs_to_the_operation_that_takes_it (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("profile-memory", TRUE);
  g_autoptr (GTorchTensor) x = filled (16, 16, 1), y = NULL;
  g_autoptr (GTorchProfileList) averages = NULL;
  g_autoptr (GTorchProfileRow) row = NULL, outside = NULL;
  const GTorchRecord *given, *taken;
  const gint64 bytes = 16 * 16 * 4;
  gboolean is_host = gtorch_device_is_host (test_device ());

  y = gtorch_tensor_exp (x, NULL);
  gtorch_tensor_unref (g_steal_pointer (&y));
  stop (profiler);
  given = find_memory (profiler, GTORCH_RECORD_ALLOC, test_device (), 1);
  taken = find_memory (profiler, GTORCH_RECORD_FREE, test_device (), 0);
  g_assert_nonnull (given);
  g_assert_nonnull (taken);
  g_assert_cmpuint (given->memory.n_bytes, ==, bytes);
  g_assert_cmpuint (given->memory.address, ==, taken->memory.address);
  g_assert_cmpint (given->memory.total - taken->memory.total, ==, bytes);
  g_assert_cmpstr (parent_of (profiler, given)->name, ==, "exp");
  g_assert_null (parent_of (profiler, taken));

  averages = gtorch_profiler_key_averages (profiler, FALSE, 0, NULL);
  row = find_row (averages, "exp");
  g_assert_cmpint (is_host ? gtorch_profile_row_get_cpu_memory_usage (row)
                           : gtorch_profile_row_get_device_memory_usage (row),
                   ==, bytes);
  g_assert_cmpint (is_host ? gtorch_profile_row_get_self_cpu_memory_usage (row)
                           : gtorch_profile_row_get_self_device_memory_usage (row),
                   ==, bytes);
  outside = find_row (averages, "[memory]");
  g_assert_nonnull (outside);
  g_assert_cmpint (is_host ? gtorch_profile_row_get_cpu_memory_usage (outside)
                           : gtorch_profile_row_get_device_memory_usage (outside),
                   ==, -bytes);
}

static void
failed_calls_leave_nothing (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("profile-memory", TRUE);
  g_autoptr (GTorchTensor) a = filled (2, 3, 1), b = filled (4, 5, 1), none = NULL, sum = NULL;
  g_autoptr (GError) error = NULL;

  none = gtorch_tensor_mm (a, b, &error);
  g_assert_null (none);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  sum = gtorch_tensor_add (a, a, 1, NULL);
  stop (profiler);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_OP, "mm"), ==, 0);
  g_assert_null (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "add", 0)));
}

/* --- averages --- */

static void
averages_add_up (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", TRUE);
  g_autoptr (GTorchTensor) small = filled (2, 2, 1), large = filled (8, 8, 1);
  g_autoptr (GTorchProfileList) events = NULL, averages = NULL, by_shape = NULL;
  g_autoptr (GTorchProfileRow) row = NULL, range = NULL, total = NULL;
  gdouble self = 0;
  guint i, n, n_rows = 0;

  {
    GTORCH_PROFILE_RANGE ("all");

    for (i = 0; i < 3; i++)
      {
        g_autoptr (GTorchTensor) a = gtorch_tensor_exp (small, NULL);
        g_autoptr (GTorchTensor) b = i < 2 ? gtorch_tensor_exp (large, NULL) : NULL;
      }
  }
  stop (profiler);
  events = gtorch_profiler_events (profiler, NULL);
  averages = gtorch_profiler_key_averages (profiler, FALSE, 0, NULL);
  row = find_row (averages, "exp");
  g_assert_cmpuint (gtorch_profile_row_get_count (row), ==, 5);
  g_assert_cmpfloat_with_epsilon (gtorch_profile_row_get_cpu_time (row),
                                  gtorch_profile_row_get_cpu_time_total (row) / 5, 1e-9);
  g_assert_cmpstr (gtorch_profile_row_get_input_shapes (row), ==, "");
  range = find_row (averages, "all");
  g_assert_true (gtorch_profile_row_get_is_user_annotation (range));
  g_assert_cmpfloat_with_epsilon (gtorch_profile_row_get_cpu_time_total (range)
                                      - gtorch_profile_row_get_self_cpu_time_total (range),
                                  gtorch_profile_row_get_cpu_time_total (row), 1e-6);

  by_shape = gtorch_profiler_key_averages (profiler, TRUE, 0, NULL);
  n = g_list_model_get_n_items (G_LIST_MODEL (by_shape));
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchProfileRow) one = g_list_model_get_item (G_LIST_MODEL (by_shape), i);

      if (!g_str_equal (gtorch_profile_row_get_key (one), "exp"))
        continue;
      n_rows++;
      g_assert_cmpuint (gtorch_profile_row_get_count (one), ==,
                        g_str_equal (gtorch_profile_row_get_input_shapes (one), "[[2, 2]]") ? 3
                                                                                            : 2);
    }
  g_assert_cmpint (n_rows, ==, 2);

  n = g_list_model_get_n_items (G_LIST_MODEL (events));
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchProfileRow) one = g_list_model_get_item (G_LIST_MODEL (events), i);

      self += gtorch_profile_row_get_self_cpu_time_total (one);
      g_assert_cmpfloat (gtorch_profile_row_get_end (one), >=, gtorch_profile_row_get_start (one));
      if (gtorch_profile_row_get_device_type (one) == GTORCH_DEVICE_TYPE_CPU)
        g_assert_cmpuint (gtorch_profile_row_get_thread (one), >, 0);
    }
  g_assert_null (g_list_model_get_item (G_LIST_MODEL (events), n));
  g_assert_cmpfloat_with_epsilon (self, gtorch_profile_list_get_self_cpu_time_total (averages),
                                  1e-3);
  total = gtorch_profile_list_total_average (averages);
  g_assert_cmpstr (gtorch_profile_row_get_key (total), ==, "Total");
  g_assert_cmpuint (gtorch_profile_row_get_count (total), ==, n);
}

static void
tables_have_the_columns_of_what_was_recorded (void)
{
  g_autoptr (GTorchProfiler) profiler =
      started ("record-shapes", TRUE, "profile-memory", TRUE, "with-flops", TRUE);
  g_autoptr (GTorchTensor) a = filled (8, 8, 1), b = NULL, c = NULL;
  g_autoptr (GTorchProfileList) averages = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *table = NULL, *limited = NULL, *none = NULL;
  g_auto (GStrv) lines = NULL;
  static const gchar *const columns[] = { "Name",       "Self CPU %",   "Self CPU", "CPU total %",
                                          "CPU total",  "CPU time avg", "CPU Mem",  "Self CPU Mem",
                                          "# of Calls", "Input Shapes", "FLOPs" };
  const gchar *at;
  guint i;

  b = gtorch_tensor_mm (a, a, NULL);
  c = gtorch_tensor_exp (b, NULL);
  stop (profiler);
  averages = gtorch_profiler_key_averages (profiler, TRUE, 0, NULL);
  table = gtorch_profile_list_table (averages, "self_cpu_time_total", -1, 75, 55, 80, "a header",
                                     FALSE, "us", &error);
  g_assert_no_error (error);
  lines = g_strsplit (table, "\n", -1);
  g_assert_true (g_str_has_prefix (lines[0], "===="));
  g_assert_cmpstr (lines[1], ==, "a header");
  at = lines[3];
  for (i = 0; i < G_N_ELEMENTS (columns); i++)
    {
      at = strstr (at, columns[i]);
      if (at == NULL)
        g_test_message ("no column %s in %s", columns[i], lines[3]);
      g_assert_nonnull (at);
      at += strlen (columns[i]);
    }
  g_assert_nonnull (strstr (table, "[[8, 8], [8, 8]]"));
  g_assert_nonnull (strstr (table, "Self CPU time total: "));

  limited = gtorch_profile_list_table (averages, "count", 1, -1, -1, -1, NULL, TRUE, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (strstr (limited, "This report only display top-level ops statistics"));

  none = gtorch_profile_list_table (averages, "speed", -1, -1, -1, -1, NULL, FALSE, NULL, &error);
  g_assert_null (none);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_true (g_str_has_prefix (error->message,
                                   "profile_list_table: sort_by is “speed”, it must be one of "));
  g_clear_error (&error);
  none = gtorch_profile_list_table (averages, NULL, -1, -1, 2, -1, NULL, FALSE, NULL, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  none = gtorch_profile_list_table (averages, NULL, -1, -1, -1, -1, NULL, FALSE, "h", &error);
  g_assert_cmpstr (error->message, ==,
                   "profile_list_table: time_unit is “h”, it must be s, ms or us");
}

/* --- the schedule --- */

static void
count_ready (GTorchProfiler *profiler, gpointer n)
{
  (*(guint *) n)++;
  g_assert_nonnull (gtorch_profiler_get_trace (profiler));
}

static void
schedules_repeat (void)
{
  static const GTorchProfilerAction wanted[] = { GTORCH_PROFILER_ACTION_NONE,
                                                 GTORCH_PROFILER_ACTION_NONE,
                                                 GTORCH_PROFILER_ACTION_WARMUP,
                                                 GTORCH_PROFILER_ACTION_RECORD,
                                                 GTORCH_PROFILER_ACTION_RECORD_AND_SAVE,
                                                 GTORCH_PROFILER_ACTION_NONE,
                                                 GTORCH_PROFILER_ACTION_WARMUP,
                                                 GTORCH_PROFILER_ACTION_RECORD,
                                                 GTORCH_PROFILER_ACTION_RECORD_AND_SAVE,
                                                 GTORCH_PROFILER_ACTION_NONE,
                                                 GTORCH_PROFILER_ACTION_NONE };
  g_autoptr (GTorchProfiler) profiler =
      g_object_new (GTORCH_TYPE_PROFILER, "skip-first", (gint64) 1, "wait", (gint64) 1, "warmup",
                    (gint64) 1, "active", (gint64) 2, "repeat", (gint64) 2, NULL);
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);
  g_autoptr (GError) error = NULL;
  guint n_ready = 0, i;

  g_signal_connect (profiler, "trace-ready", G_CALLBACK (count_ready), &n_ready);
  g_assert_true (gtorch_profiler_start (profiler, &error));
  for (i = 0; i < G_N_ELEMENTS (wanted); i++)
    {
      g_autoptr (GTorchTensor) y = gtorch_tensor_exp (x, NULL);

      g_assert_cmpint (gtorch_profiler_get_action (profiler), ==, wanted[i]);
      g_assert_cmpuint (gtorch_profiler_get_step_number (profiler), ==, i);
      g_assert_true (gtorch_profiler_step (profiler, &error));
      g_assert_cmpint (n_ready, ==, i < 4 ? 0 : i < 8 ? 1 : 2);
    }
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_STEP, NULL), ==, 2);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_OP, "exp"), ==, 2);
  g_assert_nonnull (find_record (profiler, GTORCH_RECORD_STEP, "ProfilerStep#7", 0));
  g_assert_true (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "exp", 1))
                 == find_record (profiler, GTORCH_RECORD_STEP, "ProfilerStep#8", 0));
  g_assert_true (gtorch_profiler_stop (profiler, &error));
  g_assert_cmpint (n_ready, ==, 2);
  g_assert_false (gtorch_trace_is_running ());
}

static GTorchProfilerAction
every_third (guint64 step, gpointer data, GError **error)
{
  (*(guint *) data)++;
  return step % 3 == 2 ? GTORCH_PROFILER_ACTION_RECORD_AND_SAVE
         : step == 5   ? (GTorchProfilerAction) 9
                       : GTORCH_PROFILER_ACTION_NONE;
}

static void
functions_may_be_schedules (void)
{
  g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
  guint n_asked = 0, n_ready = 0, i;

  gtorch_profiler_set_schedule_func (profiler, every_third, &n_asked, NULL);
  g_signal_connect (profiler, "trace-ready", G_CALLBACK (count_ready), &n_ready);
  g_assert_true (gtorch_profiler_start (profiler, NULL));
  for (i = 0; i < 4; i++)
    g_assert_true (gtorch_profiler_step (profiler, NULL));
  g_assert_cmpint (n_asked, ==, 5);
  g_assert_cmpint (n_ready, ==, 1);
  g_assert_true (gtorch_profiler_stop (profiler, NULL));
}

static GTorchProfilerAction
fail_at (guint64 step, gpointer data, GError **error)
{
  if (step == *(guint64 *) data)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "not step %" G_GUINT64_FORMAT, step);
  return GTORCH_PROFILER_ACTION_NONE;
}

static void
errors_of_schedules_propagate (void)
{
  g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
  g_autoptr (GError) error = NULL;
  guint64 step = 0;

  gtorch_profiler_set_schedule_func (profiler, fail_at, &step, NULL);
  g_assert_false (gtorch_profiler_start (profiler, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "not step 0");
  g_clear_error (&error);
  step = 1;
  g_assert_true (gtorch_profiler_start (profiler, NULL));
  g_assert_false (gtorch_profiler_step (profiler, &error));
  g_assert_cmpstr (error->message, ==, "not step 1");
  g_assert_cmpint (gtorch_profiler_get_step_number (profiler), ==, 0);
  step = 5;
  g_assert_true (gtorch_profiler_step (profiler, NULL));
  g_assert_true (gtorch_profiler_stop (profiler, NULL));
}

static void
what_makes_no_sense_is_refused (void)
{
  g_autoptr (GTorchProfiler) one = gtorch_profiler_new ();
  g_autoptr (GTorchProfiler) other = gtorch_profiler_new ();
  g_autoptr (GFile) file = g_file_new_for_path ("/nowhere/trace.json");
  g_autoptr (GError) error = NULL;

  assert_refused (gtorch_profiler_stop (one, &error), &error,
                  "profiler_stop: the profiler was not started");
  assert_refused (gtorch_profiler_step (one, &error), &error,
                  "profiler_step: the profiler was not started");
  assert_refused (gtorch_profiler_key_averages (one, FALSE, 0, &error) != NULL, &error,
                  "profiler_key_averages: there is no profile yet: start and stop the profiler "
                  "before");
  assert_refused (gtorch_profiler_export_chrome_trace (one, file, NULL, &error), &error,
                  "profiler_export_chrome_trace: there is no profile yet: start and stop the "
                  "profiler before");
  g_object_set (one, "wait", (gint64) -2, NULL);
  assert_refused (gtorch_profiler_start (one, &error), &error,
                  "profiler_start: wait is -2, it must be at least 0");
  g_object_set (one, "wait", G_MAXINT64, "warmup", G_MAXINT64, NULL);
  g_assert_false (gtorch_profiler_start (one, &error));
  g_clear_error (&error);
  g_object_set (one, "wait", (gint64) 0, "warmup", (gint64) 0, "activities", 0, NULL);
  assert_refused (gtorch_profiler_start (one, &error), &error,
                  "profiler_start: activities is 0, it must have CPU or CUDA");
  g_object_set (one, "activities", GTORCH_PROFILER_CPU, NULL);
  g_assert_true (gtorch_profiler_start (one, &error));
  assert_refused (gtorch_profiler_start (one, &error), &error,
                  "profiler_start: the profiler was started already, at step 0");
  assert_refused (gtorch_profiler_start (other, &error), &error,
                  "profiler_start: another profiler is recording, and there can be one at a time "
                  "in a "
                  "process: stop that one, or drop it");
  stop (one);
  g_assert_true (gtorch_profiler_start (other, &error));
  g_clear_object (&other); /* ends its recording */
  g_assert_false (gtorch_trace_is_running ());
}

/* --- ranges that are not one in the other --- */

static const GTorchRecord *
find_range (GTorchProfiler *profiler, const gchar *name)
{
  return find_record (profiler, GTORCH_RECORD_RANGE, name, 0);
}

static void
ranges_overlap (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", TRUE);
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GTorchProfileRange) outer = gtorch_profile_range_new ("outer");
  g_autoptr (GTorchProfileRange) one = gtorch_profile_range_new ("one");
  g_autoptr (GTorchProfileRange) two = gtorch_profile_range_new ("two");

  y = gtorch_tensor_exp (x, NULL);
  gtorch_profile_range_end (one);
  z = gtorch_tensor_sin (x, NULL);
  gtorch_profile_range_end (two);
  gtorch_profile_range_end (outer);
  stop (profiler);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_RANGE, NULL), ==, 3);
  g_assert_true (parent_of (profiler, find_range (profiler, "one"))
                 == find_range (profiler, "outer"));
  g_assert_true (parent_of (profiler, find_range (profiler, "two"))
                 == find_range (profiler, "outer"));
  g_assert_cmpint (find_range (profiler, "two")->depth, ==, 1);
  g_assert_cmpint (find_range (profiler, "one")->end, <, find_range (profiler, "two")->end);
  g_assert_true (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "exp", 0))
                 == find_range (profiler, "two"));
  g_assert_true (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "sin", 0))
                 == find_range (profiler, "two"));
}

static void
open_ranges_last_until_the_end (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", TRUE);
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchProfileRange) over = gtorch_profile_range_new ("over");
  g_autoptr (GTorchProfileRange) open = gtorch_profile_range_new ("open");
  g_autoptr (GTorchProfileRange) inner = gtorch_profile_range_new ("inner");

  y = gtorch_tensor_exp (x, NULL);
  gtorch_profile_range_end (over);
  stop (profiler);
  gtorch_profile_range_end (open);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_RANGE, NULL), ==, 3);
  g_assert_cmpint (find_range (profiler, "open")->end, ==,
                   gtorch_trace_get_end (gtorch_profiler_get_trace (profiler)));
  g_assert_null (parent_of (profiler, find_range (profiler, "open")));
  g_assert_true (parent_of (profiler, find_range (profiler, "inner"))
                 == find_range (profiler, "open"));
  g_assert_true (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "exp", 0))
                 == find_range (profiler, "inner"));
}

static gpointer
end_range (gpointer range)
{
  gtorch_profile_range_end (range);
  return NULL;
}

static void
ranges_end_in_any_thread (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", TRUE);
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GTorchProfileRange) outer = gtorch_profile_range_new ("outer");
  g_autoptr (GTorchProfileRange) given = gtorch_profile_range_new ("given");
  const GTorchRecord *range, *exp;

  z = gtorch_tensor_sin (x, NULL);
  g_thread_join (g_thread_new ("other", end_range, given));
  y = gtorch_tensor_exp (x, NULL);
  gtorch_profile_range_end (outer);
  stop (profiler);
  range = find_range (profiler, "given");
  exp = find_record (profiler, GTORCH_RECORD_OP, "exp", 0);
  g_assert_nonnull (range);
  g_assert_cmpint (range->thread, ==, exp->thread);
  g_assert_cmpint (range->end, >, range->start);
  g_assert_cmpint (range->end, <=, exp->start);
  g_assert_true (parent_of (profiler, range) == find_range (profiler, "outer"));
  g_assert_true (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "sin", 0)) == range);
  g_assert_true (parent_of (profiler, exp) == find_range (profiler, "outer"));
}

static void
ranges_of_threads_that_are_gone_are_ended (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", TRUE);
  g_autoptr (GThread) thread =
      g_thread_new ("other", (GThreadFunc) gtorch_profile_range_new, (gpointer) "begun there");
  g_autoptr (GTorchProfileRange) range = g_thread_join (g_steal_pointer (&thread));

  gtorch_profile_range_end (range);
  stop (profiler);
  g_assert_cmpint (find_range (profiler, "begun there")->end, <,
                   gtorch_trace_get_end (gtorch_profiler_get_trace (profiler)));
}

/* Longer than the pages that records are written to. */
static void
long_names_are_kept (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", TRUE);
  g_autofree gchar *name = g_strnfill (200000, 'n');
  g_autofree gchar *args = g_strnfill (300000, 'a');
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchProfileRange) range = gtorch_profile_range_new_with_args (name, args);
  g_autoptr (GTorchProfileRange) empty = gtorch_profile_range_new_with_args ("", "");
  g_autoptr (GTorchProfileRange) plain = gtorch_profile_range_new_with_args ("plain", NULL);

  y = gtorch_tensor_exp (x, NULL);
  gtorch_profile_range_end (plain);
  gtorch_profile_range_end (empty);
  gtorch_profile_range_end (range);
  stop (profiler);
  g_assert_nonnull (find_range (profiler, name));
  g_assert_cmpstr (find_range (profiler, name)->range.args, ==, args);
  g_assert_cmpstr (find_range (profiler, "")->range.args, ==, "");
  g_assert_null (find_range (profiler, "plain")->range.args);
  g_assert_nonnull (find_record (profiler, GTORCH_RECORD_OP, "exp", 0));
}

#define N_DEEP 1000

static void
any_number_of_ranges_is_open (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", TRUE);
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  GTorchProfileRange *ranges[N_DEEP];
  guint i;

  for (i = 0; i < N_DEEP; i++)
    ranges[i] = gtorch_profile_range_new ("deep");
  y = gtorch_tensor_exp (x, NULL);
  for (i = 0; i < N_DEEP; i++) /* the first one first */
    gtorch_profile_range_unref (ranges[i]);
  z = gtorch_tensor_sin (x, NULL);
  stop (profiler);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_RANGE, "deep"), ==, N_DEEP);
  g_assert_nonnull (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "exp", 0)));
  g_assert_null (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "sin", 0)));
}

/* --- threads --- */

#define N_READS 300

static gpointer
read_often (gpointer profiler)
{
  guint i;

  for (i = 0; i < N_READS; i++)
    {
      g_autoptr (GTorchProfileList) averages =
          gtorch_profiler_key_averages (profiler, FALSE, 0, NULL);
      g_autoptr (GTorchProfileList) events = gtorch_profiler_events (profiler, NULL);

      g_assert_nonnull (averages);
      g_assert_nonnull (events);
      gtorch_profiler_add_metadata_json (profiler, "number", "1", NULL);
      gtorch_profiler_get_gpu_message (profiler);
      gtorch_profiler_get_action (profiler);
    }
  return NULL;
}

static gpointer
record_often (gpointer profiler)
{
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);
  guint i;

  for (i = 0; i < N_READS; i++)
    {
      g_autoptr (GTorchTensor) y = NULL;

      gtorch_profiler_start (profiler, NULL); /* refused if the other thread has done so */
      y = gtorch_tensor_exp (x, NULL);
      gtorch_profiler_step (profiler, NULL);
      gtorch_profiler_stop (profiler, NULL);
    }
  return NULL;
}

static void
threads_share_a_profiler (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", TRUE);
  GThread *threads[4];
  guint i;

  stop (profiler);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("sharing", i < 2 ? read_often : record_often, profiler);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_false (gtorch_trace_is_running ());
}

#define N_THREADS 3
#define N_CALLS   2000

static gpointer
work (gpointer data)
{
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);
  guint i;

  for (i = 0; i < N_CALLS; i++)
    {
      GTORCH_PROFILE_RANGE ("a call");
      g_autoptr (GTorchTensor) y = gtorch_tensor_exp (x, NULL);
    }
  return NULL;
}

static void
threads_are_recorded (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("record-shapes", TRUE, "profile-memory", TRUE);
  GThread *threads[N_THREADS];
  gboolean seen[N_THREADS + 64] = { FALSE };
  const GTorchRecord *records;
  guint i, n, n_calls = 0, n_seen = 0;

  for (i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("worker", work, NULL);
  for (i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  stop (profiler);
  records = gtorch_trace_get_records (gtorch_profiler_get_trace (profiler), &n);
  for (i = 0; i < n; i++)
    if (records[i].kind == GTORCH_RECORD_OP && g_str_equal (records[i].name, "exp"))
      {
        g_assert_cmpstr (parent_of (profiler, &records[i])->name, ==, "a call");
        g_assert_cmpint (parent_of (profiler, &records[i])->thread, ==, records[i].thread);
        if (!seen[records[i].thread])
          n_seen++;
        seen[records[i].thread] = TRUE;
        n_calls++;
      }
  g_assert_cmpint (n_calls, ==, N_THREADS * N_CALLS);
  g_assert_cmpint (n_seen, ==, N_THREADS);
}

static gpointer
work_until (gpointer is_over)
{
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);

  while (!g_atomic_int_get ((gint *) is_over))
    {
      GTORCH_PROFILE_RANGE ("a call");
      g_autoptr (GTorchTensor) y = gtorch_tensor_exp (x, NULL);
    }
  return NULL;
}

static void
profiles_begin_and_end_while_threads_work (void)
{
  GThread *threads[2];
  gint is_over = FALSE;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("worker", work_until, &is_over);
  for (i = 0; i < 50; i++)
    {
      g_autoptr (GTorchProfiler) profiler = started ("record-shapes", TRUE, "profile-memory", TRUE);

      g_thread_yield ();
      stop (profiler);
    }
  g_atomic_int_set (&is_over, TRUE);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

/* --- sinks --- */

static guint n_traces;
static GString *told;
static guint64 last_id;

static void
sink_trace (GTorchProfiler *profiler, GTorchTrace *trace)
{
  n_traces++;
}

static void
sink_begin (guint64 id, const gchar *name)
{
  g_assert_cmpuint (id, !=, 0);
  last_id = id;
  g_string_append_printf (told, "(%s", name);
}

static void
sink_end (guint64 id)
{
  g_string_append_c (told, id == last_id ? ']' : ')');
}

static const GTorchProfileSink sink = { sink_trace, sink_begin, sink_end };

static void
sinks_are_told (void)
{
  g_autoptr (GTorchProfiler) profiler = NULL;

  told = g_string_new (NULL);
  gtorch_profile_sink_add (&sink);
  {
    GTORCH_PROFILE_RANGE ("a");
    GTORCH_PROFILE_RANGE ("b");
  }
  {
    g_autoptr (GTorchProfileRange) given = gtorch_profile_range_new ("given");

    g_thread_join (g_thread_new ("other", end_range, given));
  }
  profiler = started ("record-shapes", FALSE);
  stop (profiler);
  gtorch_profile_sink_remove (&sink);
  {
    GTORCH_PROFILE_RANGE ("c");
  }
  g_assert_cmpstr (told->str, ==, "(a(b])(given]");
  g_assert_cmpint (n_traces, ==, 1);
  g_string_free (told, TRUE);
}

static void
graphs_are_replayed (void)
{
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autoptr (GTorchCUDAGraph) graph = NULL;
  g_autoptr (GTorchTensor) x = filled (2, 2, 1), y = NULL;
  GTorchGraphCapture *capture;
  g_autoptr (GError) error = NULL;

  if (!test_can_capture ())
    return;
  graph = gtorch_cuda_graph_new ();
  capture = begin (graph, NULL, NULL);
  y = gtorch_tensor_exp (x, NULL);
  end (capture);
  profiler = started ("record-shapes", FALSE);
  g_assert_true (gtorch_cuda_graph_replay (graph, &error));
  g_assert_true (gtorch_cuda_graph_replay (graph, &error));
  stop (profiler);
  g_assert_cmpint (count_records (profiler, GTORCH_RECORD_REPLAY, "graph replay"), ==, 2);
}

#define TEST(name) g_test_add_func ("/GTorch/profiler/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (operations_are_recorded_with_shapes);
  TEST (nothing_observes_without_a_profiler);
  TEST (ranges_contain_operations);
  TEST (composites_contain_their_parts);
  TEST (backward_is_linked_to_forward);
  TEST (memory_belongs_to_the_operation_that_takes_it);
  TEST (failed_calls_leave_nothing);
  TEST (averages_add_up);
  TEST (tables_have_the_columns_of_what_was_recorded);
  TEST (schedules_repeat);
  TEST (functions_may_be_schedules);
  TEST (errors_of_schedules_propagate);
  TEST (what_makes_no_sense_is_refused);
  TEST (ranges_overlap);
  TEST (open_ranges_last_until_the_end);
  TEST (ranges_end_in_any_thread);
  TEST (ranges_of_threads_that_are_gone_are_ended);
  TEST (long_names_are_kept);
  TEST (any_number_of_ranges_is_open);
  TEST (threads_share_a_profiler);
  TEST (threads_are_recorded);
  TEST (profiles_begin_and_end_while_threads_work);
  TEST (sinks_are_told);
  TEST (graphs_are_replayed);
  return g_test_run ();
}
