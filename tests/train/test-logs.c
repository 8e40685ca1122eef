/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Logs, the progress bar, and the bytes of files of events. */

#include "config.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <gtorch/gtorch.h>
#include <gtorch/train/gtorch-event-records-private.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "test-device.h"

static GFile *
temporary_file (const gchar *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-log-XXXXXX", &error);

  g_assert_no_error (error);
  return g_file_new_build_filename (folder, name, NULL);
}

static gchar *
take_content (GFile *file)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GFile) folder = g_file_get_parent (file);
  gchar *content;

  g_assert_true (g_file_load_contents (file, NULL, &content, NULL, NULL, &error));
  g_assert_no_error (error);
  g_file_delete (file, NULL, NULL);
  g_file_delete (folder, NULL, NULL);
  return content;
}

static void
write_one (gpointer log, gint64 step, const gchar *name, gdouble value)
{
  const gchar *const names[] = { name, NULL };
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_log_write (log, step, names, &value, 1, &error));
  g_assert_no_error (error);
}

static void
assert_refused (gpointer log, const gchar *const *names, gsize n, gint code, const gchar *message)
{
  const gdouble values[4] = { 0 };
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_log_write (log, 0, names, values, n, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  g_assert_cmpstr (error->message, ==, message);
}

static void
csv_gets_columns_later (void)
{
  g_autoptr (GFile) file = temporary_file ("log.csv");
  GTorchCSVLog *log = gtorch_csv_log_new (file);
  g_autofree gchar *content = NULL;

  write_one (log, 1, "loss", 0.1);
  write_one (log, 2, "loss", 1.0 / 3);
  write_one (log, 2, "accuracy", 1);
  g_object_unref (log);
  log = gtorch_csv_log_new (file); /* goes on */
  write_one (log, 3, "accuracy", -2.5e-20);
  g_object_unref (log);
  content = take_content (file);
  g_assert_cmpstr (content, ==,
                   "step,loss,accuracy\n1,0.1,\n2,0.3333333333333333,\n2,,1\n3,,-2.5e-20\n");
}

static void
csv_refuses_names_and_files (void)
{
  g_autoptr (GFile) file = temporary_file ("log.csv");
  g_autoptr (GTorchCSVLog) log = gtorch_csv_log_new (file);
  g_autofree gchar *path = g_file_get_path (file);
  g_autofree gchar *message = g_strdup_printf ("csv_log: %s exists and is no log: its first line "
                                               "does not begin with “step”",
                                               path);
  g_autofree gchar *content = NULL;

  assert_refused (log, ((const gchar *const[]){ "a,b", NULL }), 1, GTORCH_ERROR_INVALID,
                  "csv_log: the name “a,b” must have characters, and no comma, quote or line "
                  "break");
  assert_refused (log, ((const gchar *const[]){ "a", NULL }), 2, GTORCH_ERROR_INVALID,
                  "log_write: 1 names and 2 numbers are given, and each number has a name");
  g_file_set_contents (path, "a novel\n", -1, NULL);
  assert_refused (log, ((const gchar *const[]){ "a", NULL }), 1, GTORCH_ERROR_FORMAT, message);
  content = take_content (file);
  g_assert_cmpstr (content, ==, "a novel\n");
}

static void
json_has_an_object_to_a_line (void)
{
  g_autoptr (GFile) file = temporary_file ("log.jsonl");
  g_autoptr (GTorchJSONLog) log = gtorch_json_log_new (file);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *content = NULL;
  g_auto (GStrv) lines = NULL;

  write_one (log, 1, "a \"b\"", 0.25);
  write_one (log, 2, "loss", NAN);
  g_assert_true (gtorch_log_close (GTORCH_LOG (log), &error));
  g_assert_true (gtorch_log_is_closed (GTORCH_LOG (log)));
  assert_refused (log, ((const gchar *const[]){ "a", NULL }), 1, GTORCH_ERROR_INVALID,
                  "log_write: the GTorchJSONLog is closed");
  g_assert_true (gtorch_log_close (GTORCH_LOG (log), &error));
  content = take_content (file);
  lines = g_strsplit (content, "\n", -1);
  g_assert_cmpuint (g_strv_length (lines), ==, 3);
  g_assert_true (g_str_has_prefix (lines[0], "{\"step\": 1, \"time\": "));
  g_assert_true (g_str_has_suffix (lines[0], ", \"a \\\"b\\\"\": 0.25}"));
  g_assert_true (g_str_has_suffix (lines[1], ", \"loss\": null}"));
}

static void
a_folder_that_cannot_be_made_is_an_error (void)
{
  g_autoptr (GFile) folder = g_file_new_for_path ("/proc/none/of/these");
  g_autoptr (GTorchEventWriter) writer = gtorch_event_writer_new (folder, NULL);
  g_autoptr (GTorchLog) nowhere = g_object_new (GTORCH_TYPE_CSV_LOG, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_event_writer_add_scalar (writer, "x", 1, 1, GTORCH_NONE_DOUBLE, &error));
  g_assert_nonnull (error);
  g_assert_true (error->domain == G_IO_ERROR);
  assert_refused (nowhere, ((const gchar *const[]){ "a", NULL }), 1, GTORCH_ERROR_INVALID,
                  "log_write: the log has no file");
}

/* --- events --- */

/* The checksums of "123456789" are in every list of them. */
static void
checksums_are_the_known_ones (void)
{
  g_assert_cmphex (gtorch_crc32c ("123456789", 9), ==, 0xe3069283);
  g_assert_cmphex (gtorch_crc32 (0, "123456789", 9), ==, 0xcbf43926);
}

static void
an_event_has_the_bytes_that_the_format_says (void)
{
  g_autoptr (GByteArray) data = g_byte_array_new ();
  g_autoptr (GBytes) record = NULL;
  gsize n;
  const guint8 *bytes;

  gtorch_proto_add_int (data, 2, 300);
  gtorch_proto_add_string (data, 3, "ab");
  g_assert_cmpmem (data->data, data->len,
                   "\x10\xac\x02\x1a\x02"
                   "ab",
                   7);
  record = gtorch_tfrecord_new (data);
  bytes = g_bytes_get_data (record, &n);
  g_assert_cmpuint (n, ==, 8 + 4 + 7 + 4);
  g_assert_cmpmem (bytes, 8, "\x07\0\0\0\0\0\0\0", 8);
  g_assert_cmpmem (bytes + 12, 7, data->data, 7);
}

static void
what_is_no_picture_is_refused (void)
{
  g_autoptr (GFile) folder = g_file_new_for_path ("/proc/none");
  g_autoptr (GTorchEventWriter) writer = gtorch_event_writer_new (folder, NULL);
  g_autoptr (GTorchTensor) image =
      gtorch_zeros (GTORCH_SHAPE (2, 4, 5), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) number =
      gtorch_zeros (GTORCH_SHAPE (4, 5), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) none = gtorch_zeros (GTORCH_SHAPE (0), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_event_writer_add_image (writer, "x", image, "HW", 0, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_false (gtorch_event_writer_add_image (writer, "x", image, "CHW", 0, 0, &error));
  g_assert_cmpstr (error->message, ==,
                   "add_image: the shape is [2, 4, 5] in the order CHW: a picture has elements, "
                   "and 1, "
                   "3 or 4 channels");
  g_clear_error (&error);
  g_assert_false (gtorch_event_writer_add_image (writer, "x", number, "HW", 0, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_clear_error (&error);
  g_assert_false (gtorch_event_writer_add_histogram (writer, "x", none, NULL, 0, 0, 0, &error));
  g_assert_cmpstr (error->message, ==,
                   "add_histogram: 0 of 0 values are not finite, and a histogram has at least one "
                   "value");
  g_clear_error (&error);
  g_assert_false (gtorch_event_writer_add_histogram (writer, "x", image, (const gdouble[]){ 1, 1 },
                                                     2, 0, 0, &error));
  g_assert_cmpstr (error->message, ==,
                   "add_histogram: the bound 1 is followed by 1, and bounds must grow");
  g_clear_error (&error);
  g_assert_false (gtorch_event_writer_add_text (writer, "", "x", 0, 0, &error));
  g_assert_cmpstr (error->message, ==, "add_text: the tag is empty");
}

/* --- the progress bar --- */

static gchar *
read_all (gint fd)
{
  GString *text = g_string_new (NULL);
  gchar buffer[4096];
  gssize n;

  fcntl (fd, F_SETFL, O_NONBLOCK);
  while ((n = read (fd, buffer, sizeof buffer)) > 0)
    g_string_append_len (text, buffer, n);
  return g_string_free (text, FALSE);
}

static void
a_terminal_shows_a_line_that_fits (void)
{
  const gint outer = posix_openpt (O_RDWR | O_NOCTTY);
  struct winsize size = { .ws_col = 30, .ws_row = 5 };
  g_autoptr (GTorchProgressBar) bar = NULL;
  g_autofree gchar *text = NULL;
  g_auto (GStrv) lines = NULL;
  gint inner;

  if (outer < 0 || grantpt (outer) != 0 || unlockpt (outer) != 0)
    {
      g_test_skip ("no pseudo-terminals");
      return;
    }
  inner = open (ptsname (outer), O_RDWR | O_NOCTTY);
  g_assert_cmpint (inner, >=, 0);
  ioctl (inner, TIOCSWINSZ, &size);
  bar = g_object_new (GTORCH_TYPE_PROGRESS_BAR, "fd", inner, NULL);
  g_assert_true (gtorch_progress_bar_is_shown (bar));
  gtorch_progress_bar_begin (bar, "epoch 1", 10000);
  for (gint64 i = 0; i < 10000; i++)
    gtorch_progress_bar_update (bar, i + 1,
                                "loss 0.5 and very much more text than there is room for");
  gtorch_progress_bar_end (bar);
  text = read_all (outer);
  lines = g_strsplit (text, "\r", -1);
  g_assert_cmpuint (g_strv_length (lines), >=, 3);
  g_assert_cmpuint (g_strv_length (lines), <, 100); /* few of 10,000 */
  for (guint i = 1; lines[i] != NULL && strstr (lines[i], "epoch") != NULL; i++)
    {
      gchar *end = strstr (lines[i], "\x1b[K");

      g_assert_nonnull (end);
      *end = '\0';
      g_assert_cmpint (g_utf8_strlen (lines[i], -1), <=, 29);
      g_assert_true (g_str_has_prefix (lines[i], "epoch 1"));
    }
  close (inner);
  close (outer);
}

static void
a_pipe_gets_nothing (void)
{
  gint ends[2];
  g_autoptr (GTorchProgressBar) bar = NULL;
  g_autofree gchar *text = NULL;

  g_assert_cmpint (pipe (ends), ==, 0);
  bar = g_object_new (GTORCH_TYPE_PROGRESS_BAR, "fd", ends[1], NULL);
  g_assert_false (gtorch_progress_bar_is_shown (bar));
  gtorch_progress_bar_begin (bar, "epoch 1", 10);
  gtorch_progress_bar_update (bar, 5, NULL);
  gtorch_progress_bar_end (bar);
  text = read_all (ends[0]);
  g_assert_cmpstr (text, ==, "");
  close (ends[0]);
  close (ends[1]);
}

#define ADD(fact) g_test_add_func ("/GTorch/Log/" #fact, fact)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (csv_gets_columns_later);
  ADD (csv_refuses_names_and_files);
  ADD (json_has_an_object_to_a_line);
  ADD (a_folder_that_cannot_be_made_is_an_error);
  ADD (checksums_are_the_known_ones);
  ADD (an_event_has_the_bytes_that_the_format_says);
  ADD (what_is_no_picture_is_refused);
  ADD (a_terminal_shows_a_line_that_fits);
  ADD (a_pipe_gets_nothing);
  return g_test_run ();
}
