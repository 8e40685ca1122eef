/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What functions of the program do with a profiler that calls them, and with its properties meanwhile. */

#include "config.h"

#include <string.h>

#include "profiler-test.h"
#include "test-device.h"

static void
compute (void)
{
  g_autoptr (GTorchTensor) x = filled (2, 2, 1);
  g_autoptr (GTorchTensor) y = gtorch_tensor_exp (x, NULL);

  g_assert_nonnull (y);
}

/* Nobody records, and others may. */
static void
assert_idle (void)
{
  g_autoptr (GTorchProfiler) other = NULL;

  g_assert_false (gtorch_is_profiling ());
  other = started (NULL);
  compute ();
  stop (other);
  g_assert_cmpuint (count_records (other, GTORCH_RECORD_OP, "exp"), ==, 1);
}

static GTorchProfiler *
started_with (GCallback handler, gpointer data)
{
  GTorchProfiler *profiler = g_object_new (GTORCH_TYPE_PROFILER, "active", (gint64) 1, NULL);

  g_signal_connect (profiler, "trace-ready", handler, data);
  profiler_start_made (profiler);
  compute ();
  return profiler;
}

/* --- handlers of the signal --- */

static void
stop_it (GTorchProfiler *profiler, gpointer n_ready)
{
  g_autoptr (GError) error = NULL;

  (*(guint *) n_ready)++;
  g_assert_true (gtorch_profiler_stop (profiler, &error));
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_profiler_get_action (profiler), ==, GTORCH_PROFILER_ACTION_NONE);
}

static void
handlers_of_steps_may_stop (void)
{
  guint n_ready = 0;
  g_autoptr (GTorchProfiler) profiler = started_with (G_CALLBACK (stop_it), &n_ready);
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_profiler_step (profiler, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (n_ready, ==, 1);
  g_assert_cmpuint (gtorch_profiler_get_step_number (profiler), ==, 1);
  g_assert_cmpint (gtorch_profiler_get_action (profiler), ==, GTORCH_PROFILER_ACTION_NONE);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_OP, "exp"), ==, 1);
  assert_refused (gtorch_profiler_stop (profiler, &error), &error,
                  "profiler_stop: the profiler was not started");
  assert_idle ();
  profiler_start_made (profiler);
  g_assert_true (gtorch_profiler_step (profiler, &error));
  g_assert_cmpuint (n_ready, ==, 2);
  assert_idle ();
}

static void
step_it (GTorchProfiler *profiler, gpointer n_ready)
{
  g_autoptr (GError) error = NULL;

  if ((*(guint *) n_ready)++ > 0)
    return;
  g_assert_true (gtorch_profiler_step (profiler, &error));
  g_assert_no_error (error);
}

static void
handlers_of_steps_may_step (void)
{
  guint n_ready = 0;
  g_autoptr (GTorchProfiler) profiler = started_with (G_CALLBACK (step_it), &n_ready);
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_profiler_step (profiler, &error));
  g_assert_cmpuint (n_ready, ==, 1);
  g_assert_cmpuint (gtorch_profiler_get_step_number (profiler), ==, 2);
  g_assert_cmpint (gtorch_profiler_get_action (profiler), ==,
                   GTORCH_PROFILER_ACTION_RECORD_AND_SAVE);
  compute ();
  stop (profiler);
  g_assert_cmpuint (n_ready, ==, 2);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_OP, "exp"), ==, 1);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_STEP, NULL), ==, 1);
  g_assert_nonnull (find_record (profiler, GTORCH_RECORD_STEP, "ProfilerStep#2", 0));
  assert_idle ();
}

static void
restart_it (GTorchProfiler *profiler, gpointer n_ready)
{
  g_autoptr (GError) error = NULL;

  if ((*(guint *) n_ready)++ > 0)
    return;
  assert_refused (gtorch_profiler_start (profiler, &error), &error,
                  "profiler_start: the profiler was started already, at step 1");
  g_assert_true (gtorch_profiler_stop (profiler, &error));
  g_assert_true (gtorch_profiler_start (profiler, &error));
  g_assert_no_error (error);
}

static void
handlers_of_steps_may_start_again (void)
{
  guint n_ready = 0;
  g_autoptr (GTorchProfiler) profiler = started_with (G_CALLBACK (restart_it), &n_ready);
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_profiler_step (profiler, &error));
  g_assert_cmpuint (n_ready, ==, 1);
  g_assert_true (gtorch_is_profiling ());
  compute ();
  stop (profiler);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_OP, "exp"), ==, 1);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_STEP, NULL), ==, 1);
  assert_idle ();
}

static void
start_other (GTorchProfiler *profiler, gpointer other)
{
  profiler_start_made (other);
}

static void
handlers_of_steps_may_start_another_one (void)
{
  g_autoptr (GTorchProfiler) other = gtorch_profiler_new ();
  g_autoptr (GTorchProfiler) profiler = started_with (G_CALLBACK (start_other), other);
  g_autoptr (GError) error = NULL;

  assert_refused (gtorch_profiler_step (profiler, &error), &error,
                  "profiler_step: another profiler is recording, and there can be one at a time "
                  "in a process: stop that one, or drop it");
  g_assert_cmpint (gtorch_profiler_get_action (profiler), ==, GTORCH_PROFILER_ACTION_NONE);
  compute ();
  stop (other);
  g_assert_cmpuint (count_records (other, GTORCH_RECORD_OP, "exp"), ==, 1);
  g_assert_true (gtorch_profiler_stop (profiler, &error));
  assert_idle ();
}

static void
call_after_the_end (GTorchProfiler *profiler, gpointer n_ready)
{
  g_autoptr (GError) error = NULL;

  (*(guint *) n_ready)++;
  assert_refused (gtorch_profiler_stop (profiler, &error), &error,
                  "profiler_stop: the profiler was not started");
  assert_refused (gtorch_profiler_step (profiler, &error), &error,
                  "profiler_step: the profiler was not started");
}

static void
handlers_of_stop_come_after_it (void)
{
  guint n_ready = 0;
  g_autoptr (GTorchProfiler) profiler = started_with (G_CALLBACK (call_after_the_end), &n_ready);

  stop (profiler);
  g_assert_cmpuint (n_ready, ==, 1);
  assert_idle ();
}

static void
drop_it (GTorchProfiler *profiler, gpointer data)
{
  g_object_unref (profiler);
}

static void
handlers_may_drop_the_profiler (void)
{
  gboolean (*const functions[]) (GTorchProfiler *, GError **) = { gtorch_profiler_step,
                                                                  gtorch_profiler_stop };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (functions); i++)
    {
      GTorchProfiler *profiler = started_with (G_CALLBACK (drop_it), NULL);
      g_autoptr (GError) error = NULL;

      g_object_add_weak_pointer (G_OBJECT (profiler), (gpointer *) &profiler);
      g_assert_true (functions[i](profiler, &error));
      g_assert_no_error (error);
      g_assert_null (profiler);
      assert_idle ();
    }
}

static void
on_step_number (GTorchProfiler *profiler, GParamSpec *pspec, gpointer data)
{
  g_object_unref (profiler);
}

static void
handlers_of_properties_may_drop_the_profiler (void)
{
  GTorchProfiler *profiler = started (NULL);

  g_object_add_weak_pointer (G_OBJECT (profiler), (gpointer *) &profiler);
  g_signal_connect (profiler, "notify::step-number", G_CALLBACK (on_step_number), NULL);
  g_assert_true (gtorch_profiler_step (profiler, NULL));
  g_assert_null (profiler);
  assert_idle ();
}

/* --- functions that decide --- */

static GTorchProfilerAction
stop_at_one (guint64 step, gpointer profiler, GError **error)
{
  if (step == 1 && !gtorch_profiler_stop (profiler, error))
    return GTORCH_PROFILER_ACTION_NONE;
  return GTORCH_PROFILER_ACTION_RECORD;
}

static void
schedules_cannot_stop (void)
{
  g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
  g_autoptr (GError) error = NULL;

  gtorch_profiler_set_schedule_func (profiler, stop_at_one, profiler, NULL);
  profiler_start_made (profiler);
  assert_refused (gtorch_profiler_step (profiler, &error), &error,
                  "profiler_stop: the function that decides what is done in a step cannot start, "
                  "step or stop its profiler");
  g_assert_cmpuint (gtorch_profiler_get_step_number (profiler), ==, 0);
  compute ();
  stop (profiler);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_OP, "exp"), ==, 1);
  assert_idle ();
}

typedef struct
{
  GTorchProfiler *profiler;
  guint n_calls;
} Replacing;

static void
replacing_free (gpointer data)
{
  Replacing *replacing = data;

  replacing->profiler = NULL;
  g_free (replacing);
}

static GTorchProfilerAction
replace_itself (guint64 step, gpointer data, GError **error)
{
  Replacing *replacing = data;

  gtorch_profiler_set_schedule_func (replacing->profiler, NULL, NULL, NULL);
  g_assert_nonnull (replacing->profiler); /* not freed while it is used */
  return GTORCH_PROFILER_ACTION_RECORD;
}

static void
schedules_may_replace_themselves (void)
{
  g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
  Replacing *replacing = g_new0 (Replacing, 1);

  replacing->profiler = profiler;
  gtorch_profiler_set_schedule_func (profiler, replace_itself, replacing, replacing_free);
  profiler_start_made (profiler);
  compute ();
  stop (profiler);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_OP, "exp"), ==, 1);
}

/* --- properties --- */

static void
properties_count_from_the_next_start_on (void)
{
  g_autoptr (GTorchProfiler) profiler = started (NULL);
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchProfileList) averages = NULL;
      g_autofree gchar *table = NULL;
      const GTorchRecord *op;

      /* the first time set to what the second one records */
      g_object_set (profiler, "record-shapes", i == 0, "profile-memory", i == 0, "with-flops", TRUE,
                    "activities", i == 0 ? GTORCH_PROFILER_CPU : GTORCH_PROFILER_CUDA, "active",
                    (gint64) -4, NULL);
      compute ();
      g_assert_true (gtorch_profiler_step (profiler, &error));
      g_assert_true (gtorch_profiler_stop (profiler, &error));
      op = find_record (profiler, GTORCH_RECORD_OP, "exp", 0);
      g_assert_nonnull (op);
      g_assert_cmpuint (op->op.n_inputs, ==, i);
      g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_STEP, NULL), ==, 0);
      g_assert_cmpint (count_records (profiler, GTORCH_RECORD_ALLOC, NULL) > 0, ==, i == 1);
      averages = gtorch_profiler_key_averages (profiler, FALSE, 0, &error);
      table = gtorch_profile_list_table (averages, NULL, 10, 75, 55, 80, NULL, FALSE, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpint (strstr (table, "CPU Mem") != NULL, ==, i == 1);
      assert_refused (gtorch_profiler_start (profiler, &error), &error,
                      "profiler_start: active is -4, it must be at least 0");
      g_object_set (profiler, "active", (gint64) 0, NULL);
      if (i == 0)
        profiler_start_made (profiler);
    }
}

#define TEST(name) g_test_add_func ("/GTorch/profiler-handlers/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (handlers_of_steps_may_stop);
  TEST (handlers_of_steps_may_step);
  TEST (handlers_of_steps_may_start_again);
  TEST (handlers_of_steps_may_start_another_one);
  TEST (handlers_of_stop_come_after_it);
  TEST (handlers_may_drop_the_profiler);
  TEST (handlers_of_properties_may_drop_the_profiler);
  TEST (schedules_cannot_stop);
  TEST (schedules_may_replace_themselves);
  TEST (properties_count_from_the_next_start_on);
  return g_test_run ();
}
