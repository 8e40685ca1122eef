/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Events that are shared by two processes (the other runs this program again), timers, auto-sync streams,
 * and asynchronous reads. */

#include "config.h"

#include <stdio.h>

#include "gpu-test.h"

#define N 2048

static const gchar *program;

/* Enqueues some milliseconds of work on the current stream. */
static GTorchTensor *
work (guint n_products)
{
  GTorchTensor *x =
      TRY (gtorch_full (GTORCH_SHAPE (N, N), 1.0 / N, GTORCH_DTYPE_FLOAT64, gpu, &error));
  g_autoptr (GTorchTensor) factor = g_object_ref (x);

  for (; n_products > 0; n_products--)
    {
      GTorchTensor *next = TRY (gtorch_tensor_matmul (x, factor, &error));

      g_object_unref (x);
      x = next;
    }
  return x;
}

/* --- two processes --- */

/* Prints each step when it is done, and records the event behind work of its own. */
static int
serve (const gchar *text)
{
  GError *error = NULL;
  guint8 *data = g_malloc (strlen (text) / 2);
  g_autoptr (GBytes) handle = NULL;
  g_autoptr (GTorchEvent) event = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  GTorchStream *stream = gtorch_device_get_default_stream (gpu);
  gchar line[16];
  gsize i;

  for (i = 0; text[2 * i] != '\0'; i++)
    data[i] = 16 * g_ascii_xdigit_value (text[2 * i]) + g_ascii_xdigit_value (text[2 * i + 1]);
  handle = g_bytes_new_take (data, i);
  event = gtorch_event_new_from_ipc_handle (gpu, handle, &error);
  g_assert_no_error (error);
  g_print ("open\n");
  fflush (stdout);
  while (fgets (line, sizeof line, stdin) != NULL)
    {
      g_assert_true (gtorch_stream_wait_event (stream, event, &error));
      g_assert_true (gtorch_event_synchronize (event, NULL, &error));
      g_assert_true (gtorch_event_query (event));
      g_clear_object (&x);
      x = work (5);
      g_assert_true (gtorch_event_record (event, stream, &error));
      g_assert_no_error (error);
      g_print ("recorded\n");
      fflush (stdout);
    }
  gtorch_device_synchronize (gpu, NULL, NULL);
  return 0;
}

static void
two_processes_have_one_event (void)
{
  g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_INTERPROCESS);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) handle = gtorch_event_get_ipc_handle (event, gpu, &error);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GSubprocess) other = NULL;
  g_autoptr (GDataInputStream) out = NULL;
  const guint8 *data;
  gsize n, i;
  guint round;

  if (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
    {
      g_test_skip (error->message);
      return;
    }
  g_assert_no_error (error);
  data = g_bytes_get_data (handle, &n);
  for (i = 0; i < n; i++)
    g_string_append_printf (text, "%02x", data[i]);
  other = g_subprocess_new (G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error,
                            program, "--serve", text->str, NULL);
  g_assert_no_error (error);
  out = g_data_input_stream_new (g_subprocess_get_stdout_pipe (other));
  for (round = 0; round < 3; round++)
    {
      g_autofree gchar *line = g_data_input_stream_read_line (out, NULL, NULL, NULL);
      g_autoptr (GTorchTensor) x = NULL;

      g_assert_cmpstr (line, ==, round == 0 ? "open" : "recorded");
      if (round > 0)
        /* the other process's work */
        g_assert_true (gtorch_event_synchronize (event, NULL, &error));
      g_assert_true (gtorch_event_query (event));
      x = work (5);
      g_assert_true (gtorch_event_record (event, gtorch_device_get_default_stream (gpu), &error));
      g_assert_false (gtorch_event_query (event));
      g_output_stream_write_all (g_subprocess_get_stdin_pipe (other), "go\n", 3, NULL, NULL, NULL);
    }
  g_output_stream_close (g_subprocess_get_stdin_pipe (other), NULL, NULL);
  g_assert_true (g_subprocess_wait_check (other, NULL, &error));
  g_assert_no_error (error);
}

/* --- one process --- */

static void
take_result (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
a_main_loop_waits_for_elements_and_times (void)
{
  g_autoptr (GTorchTimer) timer = gtorch_timer_new (gtorch_device_get_default_stream (gpu));
  g_autoptr (GTorchTensor) warm = work (1);
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) one = NULL;
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GAsyncResult) element = NULL;
  g_autoptr (GAsyncResult) all = NULL;
  g_autoptr (GAsyncResult) time = NULL;
  GError *problem = NULL;
  gint64 begun;

  gtorch_device_synchronize (gpu, NULL, NULL);
  g_assert_true (gtorch_timer_start (timer, &problem));
  x = work (20);
  begun = g_get_monotonic_time ();
  gtorch_timer_stop_async (timer, NULL, take_result, &time);
  one = TRY (gtorch_tensor_max (x, &error));
  gtorch_tensor_item_double_async (one, NULL, take_result, &element);
  gtorch_tensor_to_device_async (x, gtorch_device_cpu (), NULL, take_result, &all);
  g_test_message ("the calls took %" G_GINT64_FORMAT " us", g_get_monotonic_time () - begun);
  while (element == NULL || all == NULL || time == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpfloat_with_epsilon (gtorch_tensor_item_double_finish (one, element, &problem),
                                  1.0 / N, 1e-12);
  host = gtorch_tensor_to_device_finish (x, all, &problem);
  g_assert_no_error (problem);
  agree ("what a main loop waited for", x, host, 0);
  g_assert_cmpfloat (gtorch_timer_stop_finish (timer, time, &problem), >, 1);
  g_assert_no_error (problem);
}

static void
auto_sync_waits (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
  GTorchStream *first = gtorch_device_get_default_stream (gpu);
  guint round;

  gtorch_stream_set_auto_sync (first, TRUE);
  gtorch_stream_set_auto_sync (stream, TRUE);
  for (round = 0; round < 20; round++)
    {
      g_autoptr (GTorchTensor) zero =
          TRY (gtorch_zeros (GTORCH_SHAPE (N, N), GTORCH_DTYPE_FLOAT64, gpu, &error));
      g_autoptr (GTorchTensor) late = NULL;
      g_autoptr (GTorchTensor) got = NULL;
      g_autoptr (GTorchTensor) host = NULL;
      g_autoptr (GTorchTensor) expected = NULL;

      gtorch_stream_set_current (stream);
      late = work (5);
      g_assert_true (gtorch_tensor_copy_inplace (zero, late, FALSE, NULL));
      gtorch_stream_set_current (first);
      got = TRY (gtorch_tensor_mul_scalar (zero, N, &error));
      gtorch_stream_set_current (stream);
      g_assert_true (gtorch_tensor_zero_inplace (zero, NULL));
      gtorch_stream_set_current (first);
      expected = TRY (
          gtorch_ones (GTORCH_SHAPE (N, N), GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), &error));
      agree ("read on another stream", got, expected, 1e-12);
    }
  gtorch_stream_set_auto_sync (first, FALSE);
}

int
main (int argc, char *argv[])
{
  if (!find_gpu ())
    return 0;
  program = argv[0];
  if (argc == 3 && strcmp (argv[1], "--serve") == 0)
    return serve (argv[2]);
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/gpu/" #name, name)
  ADD (two_processes_have_one_event);
  ADD (a_main_loop_waits_for_elements_and_times);
  ADD (auto_sync_waits);
  return g_test_run ();
}
