/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pages about the memory of devices. */

#include "config.h"

#include <glib/gstdio.h>

#include "cuda-test.h"

/* --- a page is read as XML, which it also is --- */

typedef struct
{
  GString *text; /* of all elements and titles */
  guint n_rects, n_points, n_rows;
} Page;

static void
start_element (GMarkupParseContext *context, const gchar *name, const gchar **names,
               const gchar **values, gpointer data, GError **error)
{
  Page *page = data;
  guint i;

  g_assert_cmpstr (name, !=, "script");
  g_assert_cmpstr (name, !=, "link");
  g_assert_cmpstr (name, !=, "img");
  for (i = 0; names[i] != NULL; i++)
    {
      g_assert_cmpstr (names[i], !=, "src");
      g_assert_cmpstr (names[i], !=, "href");
      g_assert_false (g_str_has_prefix (names[i], "on"));
      g_assert_null (strstr (values[i], "://"));
    }
  page->n_rects += g_str_equal (name, "rect");
  page->n_points += g_str_equal (name, "polyline");
  page->n_rows += g_str_equal (name, "tr");
}

static void
add_text (GMarkupParseContext *context, const gchar *text, gsize length, gpointer data,
          GError **error)
{
  const gchar *element = g_markup_parse_context_get_element (context);

  if (g_str_equal (element, "style"))
    {
      g_assert_null (g_strstr_len (text, length, "url"));
      g_assert_null (g_strstr_len (text, length, "@import"));
      return;
    }
  g_string_append_len (((Page *) data)->text, text, length);
  g_string_append_c (((Page *) data)->text, '\n');
}

static void
page_read (Page *page, const gchar *path)
{
  const GMarkupParser parser = { .start_element = start_element, .text = add_text };
  GMarkupParseContext *context = g_markup_parse_context_new (&parser, 0, page, NULL);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *contents = NULL;
  gsize n;

  *page = (Page){ .text = g_string_new (NULL) };
  g_file_get_contents (path, &contents, &n, &error);
  g_assert_no_error (error);
  g_assert_true (g_str_has_prefix (contents, "<!DOCTYPE html>"));
  g_assert_true (g_utf8_validate (contents, n, NULL));
  g_markup_parse_context_parse (context, contents, n, &error);
  g_assert_no_error (error);
  g_markup_parse_context_end_parse (context, &error);
  g_assert_no_error (error);
  g_markup_parse_context_free (context);
}

static void
page_clear (Page *page)
{
  g_string_free (page->text, TRUE);
}

static gboolean
has (const Page *page, const gchar *text)
{
  return strstr (page->text->str, text) != NULL;
}

static void
save (Page *page)
{
  g_autofree gchar *path = NULL;
  g_autoptr (GFile) file = NULL;
  g_autoptr (GError) error = NULL;
  gint fd = g_file_open_tmp ("gtorch-report-XXXXXX.html", &path, NULL);

  g_assert_cmpint (fd, >=, 0);
  g_assert_true (g_close (fd, NULL));
  file = g_file_new_for_path (path);
  g_assert_true (gtorch_memory_report_save (file, NULL, &error));
  g_assert_no_error (error);
  page_read (page, path);
  g_assert_cmpint (g_unlink (path), ==, 0);
}

static void
record (GTorchHistoryLevel level)
{
  g_autoptr (GError) error = NULL;

  gtorch_allocator_record_history (gpu_allocator (), level,
                                   level == GTORCH_HISTORY_NEVER ? 0 : 5000, &error);
  g_assert_no_error (error);
}

/* --- */

static void
a_device_without_history_says_so (void)
{
  Page page;
  gint64 one = 1;
  g_autoptr (GTorchImpl) host =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_UINT8, &one, 1, NULL);
  g_autoptr (GTorchImpl) x = bytes (3 * MIB);

  g_assert_nonnull (host);
  save (&page);
  g_assert_true (has (&page, "\ncpu\n"));
  g_assert_true (has (&page, "keeps no list of blocks and no history"));
  g_assert_true (has (&page, "\ncuda:0\n"));
  g_assert_true (has (&page, "No history of this device was recorded"));
  g_assert_true (has (&page, "elsewhere, or before the recording"));
  g_assert_cmpuint (page.n_points, ==, 0);
  g_assert_cmpuint (page.n_rects, >=, 2); /* the tensor, and what is free beside it */
  page_clear (&page);
}

static gchar *
tell (gpointer text, GError **error)
{
  return g_strdup (text);
}

/* The peak is of the first two tensors; the last one and the first are left. */
static void
the_peak_and_the_present_are_told_apart (void)
{
  g_autoptr (GTorchImpl) early = NULL;
  g_autoptr (GTorchImpl) large = NULL;
  g_autoptr (GTorchImpl) left = NULL;
  g_autofree gchar *peak = NULL;
  const gchar *at_peak, *now;
  const gint64 too_much = 900 * MIB;
  guint64 before;
  Page page;

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  gtorch_allocator_trim (gpu_allocator ());
  before = gtorch_allocator_get_allocated (gpu_allocator ());
  record (GTORCH_HISTORY_ALLOC);
  gtorch_set_place_func (TRUE, tell, "early.py:1, in load\nmain.py:9, in <module>", NULL);
  early = bytes (10 * MIB);
  gtorch_set_place_func (TRUE, tell, "large.py:2, in step", NULL);
  large = bytes (60 * MIB);
  gtorch_impl_unref (g_steal_pointer (&large));
  gtorch_set_place_func (TRUE, tell, "left.py:3, in keep", NULL);
  left = bytes (5 * MIB);
  g_assert_null (gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &too_much, 1, NULL));
  gtorch_set_place_func (TRUE, NULL, NULL, NULL);
  save (&page);
  record (GTORCH_HISTORY_NEVER);
  at_peak = strstr (page.text->str, "Who held memory at the peak");
  now = strstr (page.text->str, "Who holds memory now");
  g_assert_true (at_peak != NULL && now > at_peak);
  peak = g_format_size_full (before + 70 * MIB, G_FORMAT_SIZE_IEC_UNITS);
  g_assert_nonnull (g_strstr_len (at_peak, now - at_peak, peak));
  g_assert_nonnull (g_strstr_len (at_peak, now - at_peak, "large.py:2, in step"));
  g_assert_nonnull (g_strstr_len (at_peak, now - at_peak, "main.py:9, in <module>"));
  g_assert_null (g_strstr_len (at_peak, now - at_peak, "left.py"));
  g_assert_null (strstr (now, "large.py"));
  g_assert_nonnull (strstr (now, "left.py:3, in keep"));
  g_assert_nonnull (strstr (now, "early.py:1, in load"));
  g_assert_true (has (&page, "out of memory: "));
  g_assert_true (has (&page, " were asked for"));
  g_assert_cmpuint (page.n_points, ==, 2);
  page_clear (&page);
}

static void
what_texts_contain_is_escaped (void)
{
  g_autoptr (GTorchImpl) x = NULL;
  Page page;

  record (GTORCH_HISTORY_ALLOC);
  gtorch_set_place_func (TRUE, tell,
                         "a.py:1, in <script>alert(1)</script> & \"' </title></svg> \xff \x01",
                         NULL);
  x = bytes (MIB);
  gtorch_set_place_func (TRUE, NULL, NULL, NULL);
  save (&page); /* which looks for elements of that name, and for UTF-8 */
  record (GTORCH_HISTORY_NEVER);
  g_assert_true (has (&page, "in <script>alert(1)</script> & \"' </title></svg> \xef\xbf\xbd"));
  page_clear (&page);
}

static void
what_is_left_out_is_counted (void)
{
  g_autoptr (GPtrArray) live = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  Page page;
  guint i;

  record (GTORCH_HISTORY_STATE);
  for (i = 0; i < 1200; i++)
    g_ptr_array_add (live, bytes (512));
  save (&page);
  record (GTORCH_HISTORY_NEVER);
  g_assert_true (has (&page, " smaller blocks are not shown."));
  g_assert_true (has (&page, " blocks, together "));
  g_assert_cmpuint (page.n_rects, <, 1000); /* those narrower than a point are drawn together */
  g_assert_cmpuint (page.n_points, ==, 0);
  page_clear (&page);
}

/* Many events share a column of the picture; the numbers are those of the statistics. */
static void
a_long_history_is_drawn (void)
{
  Page page;
  guint i;

  record (GTORCH_HISTORY_ALL);
  for (i = 0; i < 4000; i++)
    gtorch_impl_unref (bytes (1000 * (i % 50 + 1)));
  save (&page);
  record (GTORCH_HISTORY_NEVER);
  g_assert_true (has (&page, "5000 events were recorded."));
  g_assert_cmpuint (page.n_points, ==, 2);
  page_clear (&page);
}

static void
errors_of_the_file_are_told (void)
{
  g_autoptr (GFile) nowhere = g_file_new_for_path ("/nowhere/at/all.html");
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_memory_report_save (nowhere, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_cancellable_cancel (cancelled);
  g_assert_false (gtorch_memory_report_save (nowhere, cancelled, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* --- at exit --- */

/* Runs this program again with the variable; `what` tells what it does. */
static gchar *
run_again (const gchar *report, const gchar *what, gint *pid_out)
{
  const gchar *argv[] = { "/proc/self/exe", NULL };
  g_auto (GStrv) environment = g_get_environ ();
  g_autofree gchar *output = NULL;
  gchar *messages = NULL;
  g_autoptr (GError) error = NULL;
  gint status;

  environment = g_environ_setenv (environment, "GTORCH_MEMORY_REPORT", report, TRUE);
  environment = g_environ_setenv (environment, "TEST_REPORT", what, TRUE);
  g_spawn_sync (NULL, (gchar **) argv, environment, G_SPAWN_LEAVE_DESCRIPTORS_OPEN, NULL, NULL,
                &output, &messages, &status, &error);
  g_assert_no_error (error);
  g_assert_true (g_spawn_check_wait_status (status, &error));
  g_assert_no_error (error);
  *pid_out = g_ascii_strtoll (output, NULL, 10);
  return messages;
}

static int
run_for_report (const gchar *what)
{
  g_autoptr (GTorchImpl) x = bytes (6 * MIB);
  g_autoptr (GTorchImpl) y = bytes (7 * MIB);

  g_print ("%d\n", (gint) getpid ());
  if (g_str_equal (what, "fork") && fork () == 0)
    exit (0);
  return 0;
}

static void
the_environment_asks_for_a_report (void)
{
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-report-XXXXXX", NULL);
  g_autofree gchar *pattern = g_build_filename (folder, "m-%p-%p.html", NULL);
  g_autofree gchar *name = NULL;
  g_autofree gchar *path = NULL;
  g_autofree gchar *messages = NULL;
  g_autoptr (GDir) dir = NULL;
  gint pid;
  Page page;

  messages = run_again (pattern, "fork", &pid);
  g_assert_cmpstr (messages, ==, "");
  name = g_strdup_printf ("m-%d-%d.html", pid, pid);
  path = g_build_filename (folder, name, NULL);
  page_read (&page, path);
  g_assert_true (has (&page, "\ncuda:0\n"));
  g_assert_true (has (&page, " events were recorded."));
  g_assert_true (has (&page, "13.0"));
  g_assert_true (has (&page, "exe, process "));
  g_assert_cmpuint (page.n_points, ==, 2);
  page_clear (&page);
  dir = g_dir_open (folder, 0, NULL);
  g_assert_cmpstr (g_dir_read_name (dir), ==, name); /* and none of the child */
  g_assert_null (g_dir_read_name (dir));
  g_assert_cmpint (g_unlink (path), ==, 0);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

static void
a_report_that_cannot_be_written_is_warned_about (void)
{
  gint pid;
  g_autofree gchar *messages = run_again ("/nowhere/at/all.html", "plain", &pid);

  g_assert_nonnull (strstr (messages, "GTORCH_MEMORY_REPORT: "));
}

#define TEST(name) g_test_add_func ("/GTorch/MemoryReport/" #name, name)

gint
main (gint argc, gchar **argv)
{
  const gchar *what = g_getenv ("TEST_REPORT");

  if (what != NULL)
    return run_for_report (what);
  g_test_init (&argc, &argv, NULL);
  TEST (a_device_without_history_says_so);
  TEST (the_peak_and_the_present_are_told_apart);
  TEST (what_texts_contain_is_escaped);
  TEST (what_is_left_out_is_counted);
  TEST (a_long_history_is_drawn);
  TEST (errors_of_the_file_are_told);
  TEST (the_environment_asks_for_a_report);
  TEST (a_report_that_cannot_be_written_is_warned_about);
  return g_test_run ();
}
