/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures for Sysprof, read by its own library. */

#include "config.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sysprof-capture.h>
#include <unistd.h>

#include "profiler-test.h"
#include "test-device.h"

typedef struct
{
  GHashTable *marks; /* how often "group|name" is there */
  GPtrArray *messages;
  guint n_marks, n_values, n_counters;
  gint64 first, last; /* times of marks */
  gint64 start, end;  /* of the capture */
  gint64 most;        /* value of a counter */
} Capture;

static void
capture_read (Capture *capture, const gchar *path)
{
  SysprofCaptureReader *reader = sysprof_capture_reader_new (path);
  SysprofCaptureFrameType type;

  g_assert_nonnull (reader);
  *capture = (Capture){ .first = G_MAXINT64 };
  capture->marks = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  capture->messages = g_ptr_array_new_with_free_func (g_free);
  capture->start = sysprof_capture_reader_get_start_time (reader);
  while (sysprof_capture_reader_peek_type (reader, &type))
    if (type == SYSPROF_CAPTURE_FRAME_MARK)
      {
        const SysprofCaptureMark *mark = sysprof_capture_reader_read_mark (reader);
        gchar *key;

        g_assert_nonnull (mark);
        key = g_strdup_printf ("%s|%s", mark->group, mark->name);
        g_hash_table_replace (capture->marks, key,
                              GUINT_TO_POINTER (
                                  GPOINTER_TO_UINT (g_hash_table_lookup (capture->marks, key))
                                  + 1));
        g_ptr_array_add (capture->messages, g_strdup (mark->message));
        capture->first = MIN (capture->first, mark->frame.time);
        capture->last = MAX (capture->last, mark->frame.time + mark->duration);
        g_assert_cmpint (mark->frame.pid, >, 0);
        g_assert_cmpint (mark->duration, >=, 0);
        g_assert_true (g_utf8_validate (mark->message, -1, NULL));
        capture->n_marks++;
      }
    else if (type == SYSPROF_CAPTURE_FRAME_CTRDEF)
      {
        const SysprofCaptureCounterDefine *define =
            sysprof_capture_reader_read_counter_define (reader);

        g_assert_nonnull (define);
        g_assert_cmpuint (define->n_counters, ==, 2);
        g_assert_cmpstr (define->counters[0].category, ==, "GTorch memory");
        g_assert_true (g_str_has_suffix (define->counters[0].name, " allocated"));
        g_assert_true (g_str_has_suffix (define->counters[1].name, " reserved"));
        capture->n_counters++;
      }
    else if (type == SYSPROF_CAPTURE_FRAME_CTRSET)
      {
        const SysprofCaptureCounterSet *set = sysprof_capture_reader_read_counter_set (reader);

        g_assert_nonnull (set);
        capture->most = MAX (capture->most, set->values[0].values[0].v64);
        capture->n_values++;
      }
    else
      g_assert_true (sysprof_capture_reader_skip (reader));
  capture->end = sysprof_capture_reader_get_end_time (reader);
  sysprof_capture_reader_unref (reader);
}

static void
capture_clear (Capture *capture)
{
  g_hash_table_unref (capture->marks);
  g_ptr_array_unref (capture->messages);
}

/* How many marks have a group with this beginning, and this name. */
static guint
count_marks (const Capture *capture, const gchar *group, const gchar *name)
{
  GHashTableIter iter;
  gpointer key, n;
  guint total = 0;

  g_hash_table_iter_init (&iter, capture->marks);
  while (g_hash_table_iter_next (&iter, &key, &n))
    if (g_str_has_prefix (key, group) && g_str_equal (strchr (key, '|') + 1, name))
      total += GPOINTER_TO_UINT (n);
  return total;
}

static gboolean
has_message (const Capture *capture, const gchar *text)
{
  guint i;

  for (i = 0; i < capture->messages->len; i++)
    if (strstr (capture->messages->pdata[i], text) != NULL)
      return TRUE;
  return FALSE;
}

static void
compute (void)
{
  g_autoptr (GTorchProfileRange) range =
      gtorch_profile_range_new ("a range with a name of more than forty characters");
  g_autoptr (GTorchTensor) x = filled (20, 30, 2);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GTorchTensor) sum = NULL;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  y = gtorch_tensor_mul (x, x, NULL);
  z = gtorch_tensor_exp (y, NULL);
  sum = gtorch_tensor_sum (z, NULL, 0, FALSE, 0, NULL);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, NULL));
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, NULL));
}

static gchar *
new_path (void)
{
  gchar *path = NULL;
  const gint fd = g_file_open_tmp ("gtorch-XXXXXX.syscap", &path, NULL);

  g_assert_cmpint (fd, >=, 0);
  g_assert_true (g_close (fd, NULL));
  return path;
}

/* --- profiles --- */

static void
a_capture_has_what_the_profiler_has (void)
{
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autofree gchar *path = new_path ();
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GError) error = NULL;
  const GTorchRecord *records;
  const GTorchTrace *trace;
  guint n, i, n_memory = 0, n_devices = 0;
  gint64 most = 0;
  Capture capture;

  profiler = started ("record-shapes", TRUE, "profile-memory", TRUE);
  compute ();
  stop (profiler);
  g_assert_true (gtorch_profiler_export_sysprof (profiler, file, NULL, &error));
  g_assert_no_error (error);
  capture_read (&capture, path);
  g_assert_cmpint (g_unlink (path), ==, 0);

  trace = gtorch_profiler_get_trace (profiler);
  records = gtorch_trace_get_records (trace, &n);
  for (i = 0; i < n; i++)
    {
      const gboolean is_memory =
          records[i].kind == GTORCH_RECORD_ALLOC || records[i].kind == GTORCH_RECORD_FREE;

      n_memory += is_memory;
      n_devices += gtorch_record_is_of_device (&records[i]);
      if (is_memory)
        most = MAX (most, records[i].memory.total);
    }
  g_assert_cmpuint (capture.n_marks, ==, n - n_memory);
  g_assert_cmpuint (n_memory, >, 3);
  g_assert_cmpuint (capture.n_values, >, n_memory); /* and what is reserved */
  g_assert_cmpuint (capture.n_counters, >=, 1);
  g_assert_cmpint (capture.most, >=, most);
  g_assert_cmpuint (count_marks (&capture, "ops: ", "exp"), ==,
                    count_records (profiler, GTORCH_RECORD_OP, "exp"));
  g_assert_cmpuint (count_marks (&capture, "ops: ", "exp"), ==, 1);
  g_assert_cmpuint (count_marks (&capture, "ops: ", "mul"), ==,
                    count_records (profiler, GTORCH_RECORD_OP, "mul"));
  g_assert_cmpuint (count_marks (&capture, "ranges: ", "a range with a name of more than forty "),
                    ==, 1);
  g_assert_true (has_message (&capture, "a range with a name of more than forty characters"));
  g_assert_true (has_message (&capture, "[20, 30] [20, 30]"));
  if (!test_computes_on_host ()) /* only GPUs report what they do */
    g_assert_cmpuint (n_devices, >, 0);
  g_assert_cmpint (capture.start, ==, gtorch_trace_get_start (trace));
  g_assert_cmpint (capture.end, >=, capture.last);
  g_assert_cmpint (capture.first, >=, capture.start);
  capture_clear (&capture);
}

/* Sysprof's program merges captures, which it reads and writes. */
static void
sysprof_reads_a_capture (void)
{
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autofree gchar *program = g_find_program_in_path ("sysprof-cli");
  g_autofree gchar *path = new_path ();
  g_autofree gchar *merged_path = new_path ();
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GSubprocess) process = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) error = NULL;
  Capture capture, merged;

  if (program == NULL)
    {
      g_test_skip ("sysprof-cli is not there");
      return;
    }
  profiler = started ("profile-memory", TRUE);
  compute ();
  stop (profiler);
  g_assert_true (gtorch_profiler_export_sysprof (profiler, file, NULL, &error));
  process = g_subprocess_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error, program, "--merge", path,
                              path, NULL);
  g_assert_no_error (error);
  g_assert_true (g_subprocess_communicate (process, NULL, NULL, &bytes, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (g_file_set_contents (merged_path, g_bytes_get_data (bytes, NULL),
                                      g_bytes_get_size (bytes), &error));
  capture_read (&capture, path);
  capture_read (&merged, merged_path);
  g_assert_cmpuint (merged.n_marks, ==, 2 * capture.n_marks);
  g_assert_cmpuint (merged.n_values, ==, 2 * capture.n_values);
  g_assert_cmpint (g_unlink (path), ==, 0);
  g_assert_cmpint (g_unlink (merged_path), ==, 0);
  capture_clear (&capture);
  capture_clear (&merged);
}

static void
mistakes_are_refused (void)
{
  g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
  g_autoptr (GFile) nowhere = g_file_new_for_path ("/nowhere/at/all.syscap");
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_profiler_export_sysprof (profiler, nowhere, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_true (g_str_has_prefix (error->message, "profiler_export_sysprof: "));
  g_clear_error (&error);
  profiler_start_made (profiler);
  stop (profiler);
  g_assert_false (gtorch_profiler_export_sysprof (profiler, nowhere, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_cancellable_cancel (cancelled);
  g_assert_false (gtorch_profiler_export_sysprof (profiler, nowhere, cancelled, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* --- a program under Sysprof --- */

static gpointer
compute_in_thread (gpointer data)
{
  compute ();
  return NULL;
}

static int
run_traced (void)
{
  g_autoptr (GTorchProfiler) profiler = NULL;

  compute ();
  g_thread_join (g_thread_new ("other", compute_in_thread, NULL));
  profiler = started ("profile-memory", FALSE);
  compute ();
  stop (profiler);
  if (test_device () == gtorch_device_cpu () && fork () == 0)
    {
      compute ();
      exit (0);
    }
  return 0;
}

static void
set_descriptor (gpointer fd)
{
  dup2 (GPOINTER_TO_INT (fd), 9);
}

static void
a_program_under_sysprof_is_marked (void)
{
  const gchar *argv[] = { "/proc/self/exe", NULL };
  g_auto (GStrv) environment = g_get_environ ();
  g_autofree gchar *path = new_path ();
  const gint fd = g_open (path, O_RDWR | O_CLOEXEC, 0600);
  g_autoptr (GError) error = NULL;
  gint status;
  Capture capture;

  environment = g_environ_setenv (environment, "SYSPROF_TRACE_FD", "9", TRUE);
  environment = g_environ_setenv (environment, "TEST_TRACED", "1", TRUE);
  g_spawn_sync (NULL, (gchar **) argv, environment, G_SPAWN_LEAVE_DESCRIPTORS_OPEN, set_descriptor,
                GINT_TO_POINTER (fd), NULL, NULL, &status, &error);
  g_assert_no_error (error);
  g_assert_true (g_spawn_check_wait_status (status, &error));
  g_assert_no_error (error);
  g_assert_true (g_close (fd, NULL));
  capture_read (&capture, path);
  g_assert_cmpint (g_unlink (path), ==, 0);
  g_assert_cmpuint (count_marks (&capture, "ops: ", "exp"), ==, 3);
  g_assert_cmpuint (count_marks (&capture, "ops: other", "exp"), ==, 1);
  g_assert_cmpuint (count_marks (&capture, "ranges: ", "a range with a name of more than forty "),
                    ==, 3);
  g_assert_cmpuint (capture.n_counters, ==, 1);
  g_assert_cmpuint (capture.n_values, >=, 1);
  g_assert_cmpint (capture.most, >, 0);
  if (test_device () != gtorch_device_cpu ())
    g_assert_cmpuint (count_marks (&capture, "waits: ", "wait"), >=, 3);
  capture_clear (&capture);
}

#define TEST(name) g_test_add_func ("/GTorch/Sysprof/" #name, name)

int
main (int argc, char *argv[])
{
  if (g_getenv ("TEST_TRACED") != NULL)
    return run_traced ();
  g_test_init (&argc, &argv, NULL);
  TEST (a_capture_has_what_the_profiler_has);
  TEST (sysprof_reads_a_capture);
  TEST (mistakes_are_refused);
  TEST (a_program_under_sysprof_is_marked);
  return g_test_run ();
}
