/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* GTORCH_CHECK=blocking: waits for a device in threads that serve a main context. */

#include "config.h"

#include <dlfcn.h>

#include <gtorch/base/gtorch-check-private.h>
#include <gtorch/check/gtorch-checks-private.h>

#include "cuda-test.h"
#include "warnings.h"

#define MS G_GINT64_CONSTANT (1000)

/* --- a device that is busy for some time --- */

static gpointer
let_go (gpointer time)
{
  g_usleep (GPOINTER_TO_INT (time));
  fake_cuda_hold (FALSE);
  return NULL;
}

typedef struct
{
  GTorchTensor *result; /* of an addition that is done only after a while */
  GThread *thread;
} Work;

static Work
begin (gint64 time)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT32, gpu (0), NULL);
  Work work;

  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
  g_free (g_steal_pointer (&warning));
  n_warnings = 0;
  fake_cuda_hold (TRUE);
  work.result = gtorch_tensor_add_scalar (x, 1, 1, NULL);
  g_assert_nonnull (work.result);
  work.thread = g_thread_new ("let go", let_go, GINT_TO_POINTER (time));
  return work;
}

static void
work_clear (Work *work)
{
  g_thread_join (work->thread);
  gtorch_tensor_unref (work->result);
}

/* --- ways to wait; each is a place of its own --- */

static G_GNUC_NO_INLINE void
wait_for_stream (const Work *work)
{
  g_assert_true (
      gtorch_stream_synchronize (gtorch_device_get_default_stream (gpu (0)), NULL, NULL));
}

static G_GNUC_NO_INLINE void
wait_for_device (const Work *work)
{
  g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
}

static G_GNUC_NO_INLINE void
wait_for_event (const Work *work)
{
  g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);

  g_assert_true (gtorch_event_record (event, gtorch_device_get_default_stream (gpu (0)), NULL));
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
}

static G_GNUC_NO_INLINE void
wait_for_copy (const Work *work)
{
  g_autoptr (GTorchTensor) host =
      gtorch_tensor_to_device (work->result, gtorch_device_cpu (), FALSE, NULL);

  g_assert_nonnull (host);
}

static G_GNUC_NO_INLINE void
wait_for_number (const Work *work)
{
  g_autoptr (GTorchTensor) first = gtorch_tensor_select (work->result, 0, 0, NULL);

  g_assert_cmpfloat (gtorch_tensor_item_double (first, NULL), ==, 2);
}

typedef struct
{
  void (*wait) (const Work *work);
  gint64 time;
  GMainLoop *loop;
} Call;

static gboolean
on_idle (gpointer data)
{
  const Call *call = data;
  Work work = begin (call->time);

  call->wait (&work);
  work_clear (&work);
  g_main_loop_quit (call->loop);
  return G_SOURCE_REMOVE;
}

/* Calls it as a source of the main context. */
static void
call_in_loop (void (*wait) (const Work *work), GMainContext *context)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (context, FALSE);
  g_autoptr (GSource) source = g_idle_source_new ();
  Call call = { wait, 30 * MS, loop };

  g_source_set_callback (source, on_idle, &call, NULL);
  g_source_attach (source, context);
  g_main_loop_run (loop);
}

static void
check_blocking (gint64 limit)
{
  gtorch_blocking_limit = limit;
  gtorch_checks_set (GTORCH_CHECK_BLOCKING);
}

/* In a program that contains the library, its functions have no names at run time. */
static gboolean
functions_have_names (void)
{
  Dl_info info;

  return dladdr ((gpointer) gtorch_stream_synchronize, &info) != 0 && info.dli_sname != NULL;
}

static void
assert_warned (const gchar *function)
{
  const gchar *known = functions_have_names () ? function : "the library";

  g_assert_cmpuint (n_warnings, ==, 1);
  g_test_message ("%s", warning);
  g_assert_true (g_str_has_prefix (warning, "blocking: a main context waited "));
  g_assert_nonnull (strstr (warning, " ms for cuda:0 in "));
  g_assert_nonnull (strstr (warning, known));
  g_assert_nonnull (strstr (warning, ", after its operation "));
  g_assert_nonnull (strstr (warning, "test-cuda-blocking"));
}

/* --- */

static void
waits_in_callbacks_are_warned_about (void)
{
  static const struct
  {
    void (*wait) (const Work *work);
    const gchar *function;
  } ways[] = {
    { wait_for_stream, " in gtorch_stream_synchronize, after its operation add" },
    { wait_for_device, " in gtorch_device_synchronize, after its operation add" },
    { wait_for_event, " in gtorch_event_synchronize, after its operation add" },
    { wait_for_copy, " in gtorch_tensor_to_device, after its operation " },
    { wait_for_number, " in gtorch_tensor_item_double, after its operation " },
  };
  guint i;

  g_assert_cmpint (gtorch_blocking_limit, ==, 8 * MS);
  check_blocking (8 * MS);
  for (i = 0; i < G_N_ELEMENTS (ways); i++)
    {
      volatile guint n = 2; /* calls from the same place: the loop is not unrolled */

      while (n-- > 0)
        {
          call_in_loop (ways[i].wait, NULL);
          if (n > 0)
            assert_warned (ways[i].function);
          else
            g_assert_cmpuint (n_warnings, ==, 0);
        }
    }
  gtorch_checks_set (0);
}

static void
short_waits_are_not (void)
{
  check_blocking (60 * G_USEC_PER_SEC);
  call_in_loop (wait_for_stream, NULL);
  g_assert_cmpuint (n_warnings, ==, 0);
  gtorch_checks_set (0);
  call_in_loop (wait_for_stream, NULL); /* nor is any with the check off */
  g_assert_cmpuint (n_warnings, ==, 0);
}

static gchar *
tell (gpointer line, GError **error)
{
  return g_strdup_printf ("app.py:%d, in on_click\nmain.py:3, in <module>", GPOINTER_TO_INT (line));
}

static void
places_are_named_in_the_words_of_the_language (void)
{
  check_blocking (8 * MS);
  gtorch_set_place_func (TRUE, tell, GINT_TO_POINTER (12), NULL);
  call_in_loop (wait_for_stream, NULL);
  g_assert_cmpuint (n_warnings, ==, 1);
  g_assert_true (g_str_has_suffix (warning, "(called by app.py:12, in on_click)"));
  call_in_loop (wait_for_stream, NULL);
  g_assert_cmpuint (n_warnings, ==, 0);
  gtorch_set_place_func (TRUE, tell, GINT_TO_POINTER (13), NULL); /* another line */
  call_in_loop (wait_for_stream, NULL);
  g_assert_cmpuint (n_warnings, ==, 1);
  gtorch_set_place_func (TRUE, NULL, NULL, NULL);
  gtorch_checks_set (0);
}

/* --- threads --- */

static G_GNUC_NO_INLINE gpointer
wait_in_worker (gpointer has_context)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  Work work = begin (30 * MS);

  if (has_context)
    g_main_context_push_thread_default (context);
  wait_for_stream (&work);
  if (has_context)
    g_main_context_pop_thread_default (context);
  work_clear (&work);
  return NULL;
}

static gpointer
run_a_loop (gpointer unused)
{
  g_autoptr (GMainContext) context = g_main_context_new ();

  call_in_loop (wait_for_stream, context);
  return NULL;
}

static void
workers_may_wait (void)
{
  check_blocking (8 * MS);
  gtorch_set_place_func (TRUE, tell, GINT_TO_POINTER (21), NULL);
  g_thread_join (g_thread_new ("worker", wait_in_worker, NULL));
  g_assert_cmpuint (n_warnings, ==, 0);
  g_thread_join (g_thread_new ("worker", wait_in_worker, GINT_TO_POINTER (1)));
  g_assert_cmpuint (n_warnings, ==, 0);
  g_thread_join (g_thread_new ("loop", run_a_loop, NULL)); /* whose sources wait */
  g_assert_cmpuint (n_warnings, ==, 1);
  gtorch_set_place_func (TRUE, NULL, NULL, NULL);
  gtorch_checks_set (0);
}

static void
programs_without_a_loop_may_wait (void)
{
  check_blocking (8 * MS);
  gtorch_set_place_func (TRUE, tell, GINT_TO_POINTER (31), NULL);
  wait_in_worker (NULL);
  g_assert_cmpuint (n_warnings, ==, 0);
  g_assert_true (g_main_context_acquire (NULL)); /* as g_application_run () does */
  wait_in_worker (NULL);
  g_main_context_release (NULL);
  g_assert_cmpuint (n_warnings, ==, 1);
  gtorch_set_place_func (TRUE, NULL, NULL, NULL);
  gtorch_checks_set (0);
}

/* --- what is no wait --- */

static void
on_synchronized (GObject *source, GAsyncResult *result, gpointer loop)
{
  g_assert_true (gtorch_stream_synchronize_finish (GTORCH_STREAM (source), result, NULL));
  g_main_loop_quit (loop);
}

static G_GNUC_NO_INLINE void
wait_without_blocking (const Work *work)
{
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);

  gtorch_stream_synchronize_async (gtorch_device_get_default_stream (gpu (0)), NULL,
                                   on_synchronized, loop);
  g_main_loop_run (loop);
}

static G_GNUC_NO_INLINE void
compute_on_the_cpu (const Work *work)
{
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (300, 300), GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), NULL);
  g_autoptr (GTorchTensor) y = gtorch_tensor_matmul (x, x, NULL);
  g_autoptr (GTorchTensor) sum = gtorch_tensor_sum (y, NULL, 0, FALSE, 0, NULL);

  g_assert_cmpfloat (gtorch_tensor_item_double (sum, NULL), ==, 300.0 * 300 * 300);
}

static void
other_work_is_no_wait (void)
{
  check_blocking (8 * MS);
  call_in_loop (wait_without_blocking, NULL);
  g_assert_cmpuint (n_warnings, ==, 0);
  check_blocking (0);
  call_in_loop (compute_on_the_cpu, NULL);
  g_assert_cmpuint (n_warnings, ==, 0);
  gtorch_blocking_limit = 8 * MS;
  gtorch_checks_set (0);
}

static void
the_environment_turns_it_on (void)
{
  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, 0);
      g_test_trap_assert_passed ();
      g_test_trap_assert_stderr_unmatched ("*GTORCH_CHECK*");
      return;
    }
  g_setenv ("GTORCH_CHECK", "errors,blocking", TRUE);
  count_warnings ();
  call_in_loop (wait_for_stream, NULL);
  assert_warned ("gtorch_stream_synchronize");
}

#define TEST(name) g_test_add_func ("/GTorch/Blocking/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (!g_test_subprocess ())
    count_warnings ();
  TEST (waits_in_callbacks_are_warned_about);
  TEST (short_waits_are_not);
  TEST (places_are_named_in_the_words_of_the_language);
  TEST (workers_may_wait);
  TEST (programs_without_a_loop_may_wait);
  TEST (other_work_is_no_wait);
  TEST (the_environment_turns_it_on);
  return g_test_run ();
}
