/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Threads that wait for a GPU spin or sleep as the device's wait policy says. A second thread releases
 * the work when the waiting thread has made the expected driver calls. */

#include "config.h"

#include "cuda-test.h"

#define N        500
#define DEADLINE (60 * G_USEC_PER_SEC)
#define LONG_US  2000
#define N_POLLS  2    /* polls of a thread that does not spin: of the event, and of the wait */
#define N_SPINS  3000 /* so many queries take longer than 1.6 ms */

typedef enum
{
  WAIT_FOR_EVENT,
  WAIT_FOR_STREAM,
  WAIT_FOR_DEVICE,
  WAIT_FOR_ELEMENT,
  N_WAITS
} Wait;

static const struct
{
  const gchar *query, *sleep;
} calls[N_WAITS] = {
  { "cuEventQuery", "cuEventSynchronize" },
  { "cuStreamQuery", "cuStreamSynchronize" },
  { "cuStreamQuery", "cuCtxSynchronize" },
  { "cuStreamQuery", "cuStreamSynchronize" },
};

typedef struct
{
  Wait wait;
  gboolean has_slept;
  guint n_queries; /* queries until then, or in total */
} Watch;

/* Watches until the thread sleeps, or has polled for long. */
static gpointer
watch_calls (gpointer data)
{
  const gint64 begin = g_get_monotonic_time ();
  Watch *watch = data;

  do
    {
      g_usleep (200);
      watch->has_slept = fake_cuda_get_calls (calls[watch->wait].sleep) > 0;
      watch->n_queries = fake_cuda_get_calls (calls[watch->wait].query);
    }
  while (!watch->has_slept && watch->n_queries < N_SPINS
         && g_get_monotonic_time () - begin < DEADLINE);
  g_usleep (LONG_US);
  fake_cuda_hold (FALSE);
  return NULL;
}

/* Waits in one of the ways for work on x that is done when the thread sleeps or has made N_SPINS queries.
 * It waits for nothing else. */
static Watch
wait_for_work_on (GTorchImpl *x, Wait wait, GTorchEventFlags flags)
{
  g_autoptr (GTorchEvent) event = gtorch_event_new (flags);
  GTorchStream *stream = gtorch_device_get_default_stream (gpu (0));
  Watch watch = { .wait = wait };
  GThread *thread;
  gint64 element;

  fake_cuda_set_seed (1);
  fake_cuda_hold (TRUE);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  g_assert_true (gtorch_event_record (event, stream, NULL));
  fake_cuda_reset_calls ();
  thread = g_thread_new ("watches", watch_calls, &watch);
  if (wait == WAIT_FOR_EVENT)
    g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  else if (wait == WAIT_FOR_STREAM)
    g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  else if (wait == WAIT_FOR_DEVICE)
    g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  else
    g_assert_true (gtorch_cuda_read (GTORCH_CUDA_STREAM (stream)->lane, &element,
                                     (gchar *) gtorch_impl_data (x) + 8, 8, NULL));
  g_thread_join (thread);
  if (wait == WAIT_FOR_ELEMENT)
    g_assert_cmpint (ABS (element), ==, 1);
  g_assert_cmpuint (fake_cuda_get_pending (), ==, 0);
  return watch;
}

static Watch
wait_for_work (Wait wait, GTorchEventFlags flags)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);

  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  return wait_for_work_on (x, wait, flags);
}

static void
set_policy (GTorchWaitPolicy policy)
{
  gtorch_device_set_wait_policy (gpu (0), policy);
  g_assert_cmpint (gtorch_device_get_wait_policy (gpu (0)), ==, policy);
}

static void
on_notify (GTorchDevice *device, GParamSpec *pspec, guint *n)
{
  (*n)++;
}

static void
policy_is_a_property_of_each_device (void)
{
  g_autoptr (GTorchDevice) current = gtorch_device_new_from_string ("cuda", NULL);
  GTorchWaitPolicy policy = GTORCH_WAIT_POLICY_SLEEP;
  guint n = 0;

  g_object_get (gpu (0), "wait-policy", &policy, NULL);
  g_assert_cmpint (policy, ==, GTORCH_WAIT_POLICY_ADAPTIVE);
  g_signal_connect (gpu (0), "notify::wait-policy", G_CALLBACK (on_notify), &n);
  g_object_set (gpu (0), "wait-policy", GTORCH_WAIT_POLICY_SPIN, NULL);
  g_object_set (gpu (0), "wait-policy", GTORCH_WAIT_POLICY_SPIN, NULL);
  g_assert_cmpuint (n, ==, 1);
  g_assert_cmpint (gtorch_device_get_wait_policy (current), ==, GTORCH_WAIT_POLICY_SPIN);
  g_assert_cmpint (gtorch_device_get_wait_policy (gpu (1)), ==, GTORCH_WAIT_POLICY_ADAPTIVE);
  g_assert_cmpint (gtorch_device_get_wait_policy (gtorch_device_cpu ()), ==,
                   GTORCH_WAIT_POLICY_ADAPTIVE);
  g_object_set (current, "wait-policy", GTORCH_WAIT_POLICY_ADAPTIVE, NULL);
  g_assert_cmpint (gtorch_device_get_wait_policy (gpu (0)), ==, GTORCH_WAIT_POLICY_ADAPTIVE);
  g_signal_handlers_disconnect_by_func (gpu (0), on_notify, &n);
}

static void
environment_sets_the_policy (void)
{
  static const struct
  {
    const gchar *text;
    GTorchWaitPolicy policy;
  } cases[] = {
    { "spin", GTORCH_WAIT_POLICY_SPIN },         { "sleep", GTORCH_WAIT_POLICY_SLEEP },
    { "adaptive", GTORCH_WAIT_POLICY_ADAPTIVE }, { "", GTORCH_WAIT_POLICY_ADAPTIVE },
    { "nap", GTORCH_WAIT_POLICY_ADAPTIVE },
  };
  guint i;

  if (g_test_subprocess ())
    {
      const gchar *text = g_getenv ("GTORCH_WAIT_POLICY");

      for (i = 0; !g_str_equal (cases[i].text, text); i++)
        ;
      if (g_str_equal (text, "nap"))
        g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "*GTORCH_WAIT_POLICY*nap*spin*");
      g_assert_cmpint (gtorch_device_get_wait_policy (gpu (1)), ==, cases[i].policy);
      g_assert_cmpint (gtorch_device_get_wait_policy (gtorch_device_cpu ()), ==, cases[i].policy);
      g_test_assert_expected_messages ();
      return;
    }
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_setenv ("GTORCH_WAIT_POLICY", cases[i].text, TRUE);
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_test_trap_assert_passed ();
    }
  g_unsetenv ("GTORCH_WAIT_POLICY");
}

static void
sleep_does_not_spin (void)
{
  Wait wait;

  set_policy (GTORCH_WAIT_POLICY_SLEEP);
  for (wait = 0; wait < N_WAITS; wait++)
    {
      Watch watch = wait_for_work (wait, GTORCH_EVENT_NONE);

      g_assert_true (watch.has_slept);
      g_assert_cmpuint (watch.n_queries, <=, N_POLLS);
    }
  set_policy (GTORCH_WAIT_POLICY_ADAPTIVE);
}

static void
spin_does_not_sleep (void)
{
  Wait wait;

  set_policy (GTORCH_WAIT_POLICY_SPIN);
  for (wait = 0; wait < N_WAITS; wait++)
    {
      Watch watch = wait_for_work (wait, GTORCH_EVENT_NONE);

      g_assert_false (watch.has_slept);
      g_assert_cmpuint (watch.n_queries, >=, N_SPINS);
    }
  set_policy (GTORCH_WAIT_POLICY_ADAPTIVE);
}

static gboolean
wait_in_callback (gpointer data)
{
  Wait wait;

  for (wait = 0; wait < N_WAITS; wait++)
    {
      Watch watch = wait_for_work (wait, GTORCH_EVENT_NONE);

      g_assert_true (watch.has_slept);
      g_assert_cmpuint (watch.n_queries, >, 1);
    }
  g_main_loop_quit (data);
  return G_SOURCE_REMOVE;
}

static void
spin_sleeps_in_callbacks_of_a_main_loop (void)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);

  set_policy (GTORCH_WAIT_POLICY_SPIN);
  g_idle_add (wait_in_callback, loop);
  g_main_loop_run (loop);
  set_policy (GTORCH_WAIT_POLICY_ADAPTIVE);
}

static void
blocking_events_are_slept_for (void)
{
  GTorchWaitPolicy policy;

  for (policy = GTORCH_WAIT_POLICY_ADAPTIVE; policy <= GTORCH_WAIT_POLICY_SLEEP; policy++)
    {
      Watch watch;

      set_policy (policy);
      watch = wait_for_work (WAIT_FOR_EVENT, GTORCH_EVENT_BLOCKING);
      g_assert_true (watch.has_slept);
      g_assert_cmpuint (watch.n_queries, <=, N_POLLS);
    }
  set_policy (GTORCH_WAIT_POLICY_ADAPTIVE);
}

/* The system may suspend a spinning thread, so the maximum of four tries is checked. */
static void
adaptive_spins_less_after_long_waits (void)
{
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_INT64, N);
  guint most[2] = { 0, 0 };
  guint i;

  set_policy (GTORCH_WAIT_POLICY_ADAPTIVE);
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  for (i = 0; i < 8; i++)
    {
      Watch watch = wait_for_work_on (x, i % N_WAITS, GTORCH_EVENT_NONE);

      g_assert_true (watch.has_slept);
      most[i / 4] = MAX (most[i / 4], watch.n_queries);
    }
  g_assert_cmpuint (most[0], >, 2 * most[1]);
}

static gpointer
wait_in_thread (gpointer data)
{
  guint i;

  for (i = 0; i < 20; i++)
    wait_for_work (i % N_WAITS, i % 3 == 0 ? GTORCH_EVENT_BLOCKING : GTORCH_EVENT_NONE);
  g_atomic_int_set ((gint *) data, TRUE);
  return NULL;
}

static void
policy_may_change_while_threads_wait (void)
{
  gboolean is_over = FALSE;
  GThread *thread = g_thread_new ("waits", wait_in_thread, &is_over);
  guint i;

  for (i = 0; !g_atomic_int_get (&is_over); i++)
    {
      gtorch_device_set_wait_policy (gpu (0), i % 3);
      g_usleep (100);
    }
  g_thread_join (thread);
  set_policy (GTORCH_WAIT_POLICY_ADAPTIVE);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);

#define TEST(name) g_test_add_func ("/GTorch/cuda-wait/" #name, name)
  TEST (policy_is_a_property_of_each_device);
  TEST (environment_sets_the_policy);
  TEST (adaptive_spins_less_after_long_waits);
  TEST (sleep_does_not_spin);
  TEST (spin_does_not_sleep);
  TEST (spin_sleeps_in_callbacks_of_a_main_loop);
  TEST (blocking_events_are_slept_for);
  TEST (policy_may_change_while_threads_wait);
  return g_test_run ();
}
