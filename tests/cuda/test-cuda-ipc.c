/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Events that are shared by two processes. The other process runs this program again. */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cuda-test.h"

#define N 100

static GTorchEvent *
shared_event (void)
{
  return gtorch_event_new (GTORCH_EVENT_INTERPROCESS);
}

static gchar *
to_hex (GBytes *bytes)
{
  GString *text = g_string_new (NULL);
  gsize n, i;
  const guint8 *data = g_bytes_get_data (bytes, &n);

  for (i = 0; i < n; i++)
    g_string_append_printf (text, "%02x", data[i]);
  return g_string_free (text, FALSE);
}

static GBytes *
from_hex (const gchar *text)
{
  gsize n = strlen (text) / 2, i;
  guint8 *data = g_malloc (n);

  for (i = 0; i < n; i++)
    data[i] = 16 * g_ascii_xdigit_value (text[2 * i]) + g_ascii_xdigit_value (text[2 * i + 1]);
  return g_bytes_new_take (data, n);
}

/* --- the other process: it executes the commands that it reads, and answers each with a line --- */

static void
answer (const gchar *text)
{
  g_print ("%s\n", text);
  fflush (stdout);
}

static int
serve (void)
{
  g_autoptr (GTorchEvent) event = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchStream) stream = NULL;
  GError *error = NULL;
  gchar line[256];

  while (fgets (line, sizeof line, stdin) != NULL)
    {
      g_strchomp (line);
      if (strcmp (line, "query") == 0)
        answer (gtorch_event_query (event) ? "done" : "not done");
      else if (strcmp (line, "synchronize") == 0)
        answer (gtorch_event_synchronize (event, NULL, &error) ? "done" : error->message);
      else if (strcmp (line, "wait") == 0)
        {
          x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, N);
          stream = gtorch_stream_new (gpu (0), 0, &error);
          if (!gtorch_device_synchronize (gpu (0), NULL, &error)
              || !gtorch_stream_wait_event (stream, event, &error))
            answer (error->message);
          gtorch_stream_set_current (stream);
          answer (gtorch_op_neg_inplace (x, &error) ? "enqueued" : error->message);
        }
      else if (strcmp (line, "idle") == 0)
        answer (gtorch_stream_is_idle (stream) ? "idle" : "busy");
      else if (strcmp (line, "record") == 0)
        answer (gtorch_event_record (event, stream, &error) ? "recorded" : error->message);
      else
        {
          g_autoptr (GBytes) handle = from_hex (line);

          event = gtorch_event_new_from_ipc_handle (gpu (0), handle, &error);
          answer (event != NULL && gtorch_event_is_recorded (event) ? "open" : error->message);
        }
    }
  assert_no_misuse ();
  return 0;
}

typedef struct
{
  GSubprocess *process;
  GDataInputStream *out;
} Other;

static const gchar *program;

static void
tell (Other *other, const gchar *word)
{
  g_autofree gchar *line = g_strconcat (word, "\n", NULL);

  g_assert_true (g_output_stream_write_all (g_subprocess_get_stdin_pipe (other->process), line,
                                            strlen (line), NULL, NULL, NULL));
}

static void
expect (Other *other, const gchar *text)
{
  g_autofree gchar *line = g_data_input_stream_read_line (other->out, NULL, NULL, NULL);

  g_assert_cmpstr (line, ==, text);
}

static Other
start_other (GTorchEvent *event)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) handle = gtorch_event_get_ipc_handle (event, gpu (0), &error);
  g_autofree gchar *text = NULL;
  Other other;

  g_assert_no_error (error);
  text = to_hex (handle);
  other.process = g_subprocess_new (G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE,
                                    &error, program, "--serve", NULL);
  g_assert_no_error (error);
  other.out = g_data_input_stream_new (g_subprocess_get_stdout_pipe (other.process));
  tell (&other, text);
  expect (&other, "open");
  return other;
}

static void
stop_other (Other *other)
{
  g_output_stream_close (g_subprocess_get_stdin_pipe (other->process), NULL, NULL);
  g_assert_true (g_subprocess_wait_check (other->process, NULL, NULL));
  g_object_unref (other->out);
  g_object_unref (other->process);
}

/* --- this process --- */

/* Starts work that does not run before the fake is released. */
static GTorchImpl *
begin_work (GTorchEvent *event)
{
  GTorchImpl *x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, N);
  GError *error = NULL;

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_set_seed (1);
  fake_cuda_hold (TRUE);
  g_assert_true (gtorch_op_neg_inplace (x, NULL));
  g_assert_true (gtorch_event_record (event, gtorch_device_get_default_stream (gpu (0)), &error));
  g_assert_no_error (error);
  return x;
}

static void
the_other_process_waits (void)
{
  g_autoptr (GTorchEvent) event = shared_event ();
  Other other = start_other (event); /* before the first recording */
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  guint i;

  tell (&other, "query");
  expect (&other, "done");
  x = begin_work (event);
  for (i = 0; i < 5; i++)
    {
      tell (&other, "query");
      expect (&other, "not done");
    }
  g_assert_false (gtorch_event_query (event));
  tell (&other, "synchronize");
  fake_cuda_hold (FALSE);
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  expect (&other, "done");
  y = begin_work (event); /* again */
  tell (&other, "query");
  expect (&other, "not done");
  fake_cuda_hold (FALSE);
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  stop_other (&other);
}

static void
its_streams_wait_too (void)
{
  g_autoptr (GTorchEvent) event = shared_event ();
  g_autoptr (GTorchImpl) x = begin_work (event);
  Other other = start_other (event);
  guint i;

  tell (&other, "wait");
  expect (&other, "enqueued");
  for (i = 0; i < 20; i++)
    {
      tell (&other, "idle");
      expect (&other, "busy");
    }
  fake_cuda_hold (FALSE);
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  /* In the other direction: the other process records behind its own work. */
  tell (&other, "record");
  expect (&other, "recorded");
  tell (&other, "synchronize");
  expect (&other, "done");
  g_assert_true (gtorch_event_synchronize (event, NULL, NULL));
  g_assert_true (gtorch_event_query (event));
  stop_other (&other);
}

static void
on_done (GObject *object, GAsyncResult *result, gpointer data)
{
  g_assert_true (gtorch_event_synchronize_finish (GTORCH_EVENT (object), result, NULL));
  *(gboolean *) data = TRUE;
}

static void
main_loops_wait_for_the_other_process (void)
{
  g_autoptr (GTorchEvent) first = shared_event ();
  g_autoptr (GTorchEvent) event = shared_event ();
  g_autoptr (GTorchImpl) x = begin_work (first);
  Other other = start_other (first);
  gboolean done = FALSE;

  gtorch_event_synchronize_async (first, NULL, on_done, &done);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_false (done);
  fake_cuda_hold (FALSE);
  while (!done)
    g_main_context_iteration (NULL, TRUE);
  stop_other (&other);
}

/* --- errors --- */

static void
timing_is_excluded (void)
{
  g_autoptr (GTorchEvent) event =
      gtorch_event_new (GTORCH_EVENT_INTERPROCESS | GTORCH_EVENT_TIMING);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_event_record (event, gtorch_device_get_default_stream (gpu (0)), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "event: one that is shared with other processes keeps no time: the flags timing "
                   "and interprocess exclude each other");
  g_clear_error (&error);
  g_assert_null (gtorch_event_get_ipc_handle (event, gpu (0), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
other_events_have_no_handle (void)
{
  g_autoptr (GTorchEvent) plain = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GTorchEvent) event = shared_event ();
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_event_get_ipc_handle (plain, gpu (0), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "event: it was made without the flag interprocess, and cannot be shared with "
                   "other processes");
  g_clear_error (&error);
  g_assert_null (gtorch_event_get_ipc_handle (event, gtorch_device_cpu (), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_false (
      gtorch_event_record (event, gtorch_device_get_default_stream (gtorch_device_cpu ()), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_false (gtorch_event_is_recorded (event));
  g_assert_true (gtorch_event_query (event));
}

static void
wrong_handles_are_errors (void)
{
  g_autoptr (GTorchEvent) event = shared_event ();
  g_autoptr (GBytes) own = gtorch_event_get_ipc_handle (event, gpu (0), NULL);
  g_autoptr (GBytes) zeros = g_bytes_new_take (g_malloc0 (64), 64);
  g_autoptr (GBytes) narrow = g_bytes_new_static ("abacus", 6);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_event_new_from_ipc_handle (gpu (0), narrow, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "event: a handle has 64 bytes, not 6");
  g_clear_error (&error);
  g_assert_null (gtorch_event_new_from_ipc_handle (gpu (0), zeros, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_clear_error (&error);
  g_assert_null (gtorch_event_new_from_ipc_handle (gpu (0), own, &error)); /* in this process */
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
  g_clear_error (&error);
  g_assert_null (gtorch_event_new_from_ipc_handle (gtorch_device_cpu (), own, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

static void
an_event_stays_with_its_device (void)
{
  g_autoptr (GTorchEvent) event = shared_event ();
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_event_record (event, gtorch_device_get_default_stream (gpu (1)), NULL));
  g_assert_false (gtorch_event_record (event, gtorch_device_get_default_stream (gpu (0)), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
  g_assert_cmpstr (error->message, ==,
                   "event: it is shared with other processes as an event of cuda:1, and the stream "
                   "is on cuda:0");
}

static void
each_call_of_the_driver_may_fail (void)
{
  static const gchar *const names[] = { "cuEventCreate", "cuIpcGetEventHandle" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autoptr (GTorchEvent) event = shared_event ();
      g_autoptr (GBytes) handle = NULL;
      g_autoptr (GError) error = NULL;

      fake_cuda_fail (names[i], 1, CUDA_ERROR_NOT_SUPPORTED);
      g_assert_null (gtorch_event_get_ipc_handle (event, gpu (0), &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_assert_nonnull (strstr (error->message, names[i]));
      g_assert_true (fake_cuda_clear_faults ());
      handle = gtorch_event_get_ipc_handle (event, gpu (0), NULL);
      g_assert_nonnull (handle);
    }
}

static void
events_are_given_back (void)
{
  FakeCudaAccounts before, after;
  guint i;

  for (i = 0; i < 10; i++)
    {
      g_autoptr (GTorchEvent) event = shared_event ();

      if (i >= 2 && i < 6) /* these fail later */
        fake_cuda_fail ("cuEventDestroy", 1, CUDA_ERROR_NOT_SUPPORTED);
      g_assert_true (gtorch_event_record (event, gtorch_device_get_default_stream (gpu (0)), NULL));
      g_assert_true (fake_cuda_clear_faults () == (i >= 2 && i < 6));
      if (i == 0)
        fake_cuda_get_accounts (&before);
    }
  fake_cuda_get_accounts (&after);
  g_assert_cmpuint (after.events, <=, before.events + 1);
}

#define TEST(name) g_test_add_func ("/GTorchCudaIpc/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  program = argv[0];
  if (argc == 2 && strcmp (argv[1], "--serve") == 0)
    return serve ();
  g_test_init (&argc, &argv, NULL);
  TEST (the_other_process_waits);
  TEST (its_streams_wait_too);
  TEST (main_loops_wait_for_the_other_process);
  TEST (timing_is_excluded);
  TEST (other_events_have_no_handle);
  TEST (wrong_handles_are_errors);
  TEST (an_event_stays_with_its_device);
  TEST (each_call_of_the_driver_may_fail);
  TEST (events_are_given_back);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
