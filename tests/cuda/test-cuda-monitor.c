/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Monitors of GPUs, on a fake NVML whose answers the test sets. */

#include "config.h"

#include <string.h>
#include <tests/fake-cuda/fake-nvml.h>
#include <unistd.h>

#include "cuda-test.h"

#define LIMIT (20 * G_USEC_PER_SEC) /* the time limit of anything that has to happen */

static const FakeNvml usual = {
  .utilization = 73,
  .memory_utilization = 20,
  .temperature = 61,
  .milliwatts = 350500,
  .sm_clock = 1980,
  .memory_clock = 2619,
  .memory_used = 5000000000,
  .n_processes = 2,
  .processes = { { 4711, 3000 }, { 815, G_MAXUINT64 } },
};

static GTorchDeviceMonitor *
monitor_new_of (GTorchDevice *device)
{
  g_autoptr (GError) error = NULL;
  GTorchDeviceMonitor *monitor = gtorch_device_monitor_new (device, &error);

  g_assert_no_error (error);
  g_assert_false (gtorch_device_monitor_set_interval (monitor, 99, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "device_monitor: the interval is 99, it must be from 100 to 3600000 "
                   "milliseconds");
  g_clear_error (&error);
  g_assert_cmpuint (gtorch_device_monitor_get_interval (monitor), ==, 1000);
  g_assert_true (gtorch_device_monitor_set_interval (monitor, 100, &error));
  g_assert_no_error (error);
  return monitor;
}

static GTorchDeviceMonitor *
monitor_new (guint device)
{
  return monitor_new_of (gpu (device));
}

/* Runs the main loop for a while, or until the flag is set. */
static void
run_for (gint64 us, const gboolean *flag)
{
  gint64 end = g_get_monotonic_time () + us;

  while ((flag == NULL || !*flag) && g_get_monotonic_time () < end)
    {
      while (g_main_context_iteration (g_main_context_get_thread_default (), FALSE))
        ;
      g_usleep (1000);
    }
  if (flag != NULL)
    g_assert_true (*flag);
}

/* A query that was running when the last monitor ended may still finish, but no further ones may start. */
static void
assert_not_asked (guint device)
{
  gint64 end = g_get_monotonic_time () + LIMIT;
  guint before;

  do
    {
      g_assert_cmpint (g_get_monotonic_time (), <, end);
      before = fake_nvml_get_asked (device);
      run_for (G_USEC_PER_SEC / 2, NULL);
    }
  while (fake_nvml_get_asked (device) != before);
}

typedef struct
{
  gboolean seen;
  GThread *thread;
} Notice;

static void
notice (GObject *object, GParamSpec *pspec, Notice *n)
{
  n->seen = TRUE;
  n->thread = g_thread_self ();
}

static void
the_first_query_has_every_value (void)
{
  g_autoptr (GTorchDeviceMonitor) monitor = NULL;
  g_autoptr (GTorchDeviceProcess) first = NULL;
  g_autoptr (GTorchDeviceProcess) second = NULL;
  GListModel *processes;

  fake_nvml_set (1, &usual);
  monitor = monitor_new (1);
  g_assert_true (gtorch_device_monitor_get_device (monitor) == gpu (1));
  g_assert_true (gtorch_device_monitor_get_active (monitor));
  g_assert_null (gtorch_device_monitor_get_error (monitor));
  g_assert_cmpint (gtorch_device_monitor_get_utilization (monitor), ==, 73);
  g_assert_cmpint (gtorch_device_monitor_get_memory_utilization (monitor), ==, 20);
  g_assert_cmpint (gtorch_device_monitor_get_temperature (monitor), ==, 61);
  g_assert_cmpfloat (gtorch_device_monitor_get_power (monitor), ==, 350.5);
  g_assert_cmpint (gtorch_device_monitor_get_sm_clock (monitor), ==, 1980);
  g_assert_cmpint (gtorch_device_monitor_get_memory_clock (monitor), ==, 2619);
  g_assert_cmpuint (gtorch_device_monitor_get_memory_used (monitor), ==, 5000000000);
  processes = gtorch_device_monitor_get_processes (monitor);
  g_assert_cmpuint (g_list_model_get_n_items (processes), ==, 2);
  first = g_list_model_get_item (processes, 0);
  second = g_list_model_get_item (processes, 1);
  g_assert_cmpuint (gtorch_device_process_get_pid (first), ==, 815);
  g_assert_cmpuint (gtorch_device_process_get_memory_used (first), ==, 0); /* not known */
  g_assert_cmpuint (gtorch_device_process_get_pid (second), ==, 4711);
  g_assert_cmpuint (gtorch_device_process_get_memory_used (second), ==, 3000);
}

static void
changes_are_notified_in_this_thread (void)
{
  static const gchar *const names[] = { "notify::utilization", "notify::memory-utilization",
                                        "notify::temperature", "notify::power",
                                        "notify::sm-clock",    "notify::memory-clock",
                                        "notify::memory-used", "notify::processes" };
  g_autoptr (GTorchDeviceMonitor) monitor = NULL;
  Notice notices[G_N_ELEMENTS (names)] = { 0 }, same = { 0 };
  FakeNvml changed = usual;
  gint temperature;
  guint i;

  fake_nvml_set (0, &usual);
  monitor = monitor_new (0);
  run_for (G_USEC_PER_SEC / 4, NULL); /* at least one query that finds no change */
  for (i = 0; i < G_N_ELEMENTS (names); i++)
    g_signal_connect (monitor, names[i], G_CALLBACK (notice), &notices[i]);
  changed.utilization = 1;
  changed.memory_utilization = 2;
  changed.temperature = 3;
  changed.milliwatts = 4;
  changed.sm_clock = 5;
  changed.memory_clock = 6;
  changed.memory_used = 7;
  changed.n_processes = FAKE_NVML_MAX_PROCESSES; /* more than the first query has room for */
  fake_nvml_set (0, &changed);
  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      run_for (LIMIT, &notices[i].seen);
      g_assert_true (notices[i].thread == g_thread_self ());
    }
  g_assert_true (fake_nvml_get_thread () != g_thread_self ());
  g_object_get (monitor, "temperature", &temperature, NULL);
  g_assert_cmpint (temperature, ==, 3);
  g_assert_cmpuint (g_list_model_get_n_items (gtorch_device_monitor_get_processes (monitor)), ==,
                    FAKE_NVML_MAX_PROCESSES);

  g_signal_connect (monitor, "notify", G_CALLBACK (notice), &same);
  run_for (G_USEC_PER_SEC / 3, NULL);
  g_assert_false (same.seen); /* unchanged values are not notified */
}

static void
a_device_is_queried_ten_times_a_second_at_most (void)
{
  g_autoptr (GPtrArray) monitors = g_ptr_array_new_with_free_func (g_object_unref);
  gint64 start = g_get_monotonic_time (), took;
  guint i, before = fake_nvml_get_asked (1), asked;

  for (i = 0; i < 5; i++)
    g_ptr_array_add (monitors, monitor_new (1));
  do
    {
      run_for (G_USEC_PER_SEC, NULL);
      asked = fake_nvml_get_asked (1) - before;
      took = g_get_monotonic_time () - start;
    }
  while (asked < 2 && took < LIMIT);
  /* One more query may have started before, and is counted late. */
  g_assert_cmpuint (asked, <=, 2 + took / (G_USEC_PER_SEC / 10));
  g_assert_cmpuint (asked, >=, 2);
}

static void
no_device_is_queried_without_a_monitor (void)
{
  GTorchDeviceMonitor *monitor = monitor_new (0);
  Notice active = { 0 }, hot = { 0 };
  FakeNvml changed = usual;

  g_signal_connect (monitor, "notify::active", G_CALLBACK (notice), &active);
  gtorch_device_monitor_set_active (monitor, FALSE);
  g_assert_true (active.seen);
  assert_not_asked (0);

  changed.temperature = 99;
  fake_nvml_set (0, &changed);
  g_signal_connect (monitor, "notify::temperature", G_CALLBACK (notice), &hot);
  gtorch_device_monitor_set_active (monitor, TRUE);
  run_for (LIMIT, &hot.seen);
  g_object_unref (monitor);
  assert_not_asked (0);
}

static gboolean
count_tick (gpointer data)
{
  ++*(guint *) data;
  return G_SOURCE_CONTINUE;
}

static void
a_slow_answer_blocks_no_main_loop (void)
{
  g_autoptr (GTorchDeviceMonitor) monitor = monitor_new (0);
  guint ticks = 0, before, source = g_timeout_add (5, count_tick, &ticks);

  fake_nvml_hold (TRUE);
  before = fake_nvml_get_asked (0);
  while (fake_nvml_get_asked (0) == before)
    g_main_context_iteration (NULL, TRUE);
  ticks = 0;
  while (ticks < 10)
    g_main_context_iteration (NULL, TRUE); /* or it blocks for ever */
  fake_nvml_hold (FALSE);
  g_source_remove (source);
}

static gpointer
look_in_thread (gpointer data)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  g_autoptr (GTorchDeviceMonitor) monitor = NULL;
  Notice hot = { 0 };
  FakeNvml changed = usual;

  g_main_context_push_thread_default (context);
  fake_nvml_set (0, &usual);
  monitor = monitor_new (0);
  g_signal_connect (monitor, "notify::temperature", G_CALLBACK (notice), &hot);
  changed.temperature = 17;
  fake_nvml_set (0, &changed);
  run_for (LIMIT, &hot.seen);
  g_assert_true (hot.thread == g_thread_self ());
  g_clear_object (&monitor);
  g_main_context_pop_thread_default (context);
  return NULL;
}

static void
each_owner_is_notified_in_its_own_context (void)
{
  GThread *thread;

  g_usleep (G_USEC_PER_SEC / 5); /* the answers of earlier cases are too old by then */
  thread = g_thread_new ("owner", look_in_thread, NULL);
  g_thread_join (thread);
}

static void
a_lost_device_ends_the_monitor (void)
{
  g_autoptr (GTorchDeviceMonitor) monitor = NULL;
  g_autoptr (GTorchDeviceMonitor) another = NULL;
  g_autoptr (GError) error = NULL;
  Notice lost = { 0 }, ended = { 0 }, back = { 0 };
  FakeNvml values = usual;

  fake_nvml_set (0, &values);
  g_usleep (G_USEC_PER_SEC / 5);
  monitor = monitor_new (0);
  g_signal_connect (monitor, "notify::error", G_CALLBACK (notice), &lost);
  g_signal_connect (monitor, "notify::active", G_CALLBACK (notice), &ended);
  values.result = 15;
  fake_nvml_set (0, &values);
  run_for (LIMIT, &lost.seen);
  g_assert_true (lost.thread == g_thread_self ());
  g_assert_true (ended.seen);
  g_assert_false (gtorch_device_monitor_get_active (monitor));
  g_assert_error (gtorch_device_monitor_get_error (monitor), GTORCH_ERROR,
                  GTORCH_ERROR_DEVICE_LOST);
  g_assert_cmpstr (gtorch_device_monitor_get_error (monitor)->message, ==,
                   "cuda:0: GPU is lost (15)");
  g_assert_cmpint (gtorch_device_monitor_get_temperature (monitor), ==, 61); /* the last value */
  assert_not_asked (0);

  another = gtorch_device_monitor_new (gpu (0), &error);
  g_assert_null (another);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_LOST);

  values.result = 0;
  values.temperature = 30;
  fake_nvml_set (0, &values);
  g_signal_connect (monitor, "notify::temperature", G_CALLBACK (notice), &back);
  gtorch_device_monitor_set_active (monitor, TRUE);
  g_assert_null (gtorch_device_monitor_get_error (monitor));
  run_for (LIMIT, &back.seen);
}

static void
unsupported_values_are_unknown (void)
{
  static const gint results[] = { 3, 4 }; /* not supported, no permission */
  guint i;

  for (i = 0; i < G_N_ELEMENTS (results); i++)
    {
      g_autoptr (GTorchDeviceMonitor) monitor = NULL;
      FakeNvml values = usual;

      g_usleep (G_USEC_PER_SEC / 5);
      values.power_result = results[i];
      fake_nvml_set (0, &values);
      monitor = monitor_new (0);
      g_assert_cmpfloat (gtorch_device_monitor_get_power (monitor), ==, -1);
      g_assert_cmpint (gtorch_device_monitor_get_temperature (monitor), ==, 61);
    }
}

static void
processes_have_names_and_fans_a_speed (void)
{
  g_autoptr (GTorchDeviceMonitor) monitor = NULL;
  g_autoptr (GTorchDeviceProcess) process = NULL;
  FakeNvml values = usual;

  g_usleep (G_USEC_PER_SEC / 5);
  values.milliwatts_limit = 450000;
  values.fan_speed = 37;
  values.n_processes = 1;
  values.processes[0].pid = getpid ();
  fake_nvml_set (0, &values);
  monitor = monitor_new (0);
  g_assert_cmpfloat (gtorch_device_monitor_get_power_limit (monitor), ==, 450);
  g_assert_cmpint (gtorch_device_monitor_get_fan_speed (monitor), ==, 37);
  process = g_list_model_get_item (gtorch_device_monitor_get_processes (monitor), 0);
  g_assert_cmpuint (gtorch_device_process_get_pid (process), ==, getpid ());
  g_assert_true (g_str_has_prefix ("test-cuda-monitor", gtorch_device_process_get_name (process)));
  g_assert_cmpuint (strlen (gtorch_device_process_get_name (process)), >=, 10);
}

static void
the_cpu_has_a_load_and_memory (void)
{
  g_autoptr (GTorchDeviceMonitor) monitor = monitor_new_of (gtorch_device_cpu ());
  Notice load = { 0 };
  volatile guint n = 0;
  gint64 end = g_get_monotonic_time () + LIMIT;

  g_signal_connect (monitor, "notify::utilization", G_CALLBACK (notice), &load);
  while (gtorch_device_monitor_get_utilization (monitor) <= 0)
    {
      g_assert_cmpint (g_get_monotonic_time (), <, end);
      n++; /* work */
      g_main_context_iteration (NULL, FALSE);
    }
  g_assert_true (load.thread == g_thread_self ());
  g_assert_cmpint (gtorch_device_monitor_get_utilization (monitor), <=, 100);
  g_assert_cmpuint (gtorch_device_monitor_get_memory_used (monitor), >, 1 << 20);
  g_assert_cmpuint (gtorch_device_monitor_get_memory_used (monitor), <,
                    gtorch_device_get_total_memory (gtorch_device_cpu ()));
  g_assert_cmpint (gtorch_device_monitor_get_temperature (monitor), ==, -1);
  g_assert_cmpfloat (gtorch_device_monitor_get_power_limit (monitor), ==, -1);
  g_assert_cmpint (gtorch_device_monitor_get_fan_speed (monitor), ==, -1);
  g_assert_cmpuint (g_list_model_get_n_items (gtorch_device_monitor_get_processes (monitor)), ==,
                    0);
}

typedef struct
{
  gboolean done;
  GTorchDeviceMonitor *monitor;
  GError *error;
} Made;

static void
made (GObject *source, GAsyncResult *result, gpointer data)
{
  Made *m = data;

  m->monitor = gtorch_device_open_monitor_finish (GTORCH_DEVICE (source), result, &m->error);
  m->done = TRUE;
}

static void
a_monitor_can_be_opened_asynchronously (void)
{
  Made first = { 0 }, second = { 0 };
  Notice hot = { 0 };
  FakeNvml values = usual;

  g_usleep (G_USEC_PER_SEC / 5);
  fake_nvml_set (0, &usual);
  gtorch_device_open_monitor_async (gpu (0), NULL, made, &first);
  g_assert_false (first.done);
  run_for (LIMIT, &first.done);
  g_assert_no_error (first.error);
  g_assert_cmpint (gtorch_device_monitor_get_temperature (first.monitor), ==, 61);
  g_assert_true (fake_nvml_get_thread () != g_thread_self ());
  g_assert_true (gtorch_device_monitor_set_interval (first.monitor, 100, NULL));
  g_signal_connect (first.monitor, "notify::temperature", G_CALLBACK (notice), &hot);
  values.temperature = 33;
  fake_nvml_set (0, &values);
  run_for (LIMIT, &hot.seen);
  g_assert_true (hot.thread == g_thread_self ());
  g_clear_object (&first.monitor);

  gtorch_device_open_monitor_async (gtorch_device_cpu (), NULL, made, &second);
  run_for (LIMIT, &second.done);
  g_assert_no_error (second.error);
  g_assert_true (gtorch_device_monitor_get_device (second.monitor) == gtorch_device_cpu ());
  g_clear_object (&second.monitor);
}

/* Answers are on their way to a context that never runs again. */
static void
an_undelivered_answer_is_dropped (void)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  GTorchDeviceMonitor *monitor;
  gpointer gone;
  guint before;

  g_main_context_push_thread_default (context);
  monitor = monitor_new (1);
  g_main_context_pop_thread_default (context);
  gone = monitor;
  g_object_add_weak_pointer (G_OBJECT (monitor), &gone);
  before = fake_nvml_get_asked (1);
  while (fake_nvml_get_asked (1) < before + 3)
    g_usleep (1000);
  g_object_unref (monitor);
  g_assert_null (gone);
}

#define TEST(name) g_test_add_func ("/GTorchDeviceMonitor/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (the_first_query_has_every_value);
  TEST (changes_are_notified_in_this_thread);
  TEST (a_device_is_queried_ten_times_a_second_at_most);
  TEST (no_device_is_queried_without_a_monitor);
  TEST (a_slow_answer_blocks_no_main_loop);
  TEST (each_owner_is_notified_in_its_own_context);
  TEST (a_lost_device_ends_the_monitor);
  TEST (unsupported_values_are_unknown);
  TEST (processes_have_names_and_fans_a_speed);
  TEST (the_cpu_has_a_load_and_memory);
  TEST (a_monitor_can_be_opened_asynchronously);
  TEST (an_undelivered_answer_is_dropped);
  return g_test_run ();
}
