/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The files that profiles are written to. */

#include "config.h"

#include <glib/gstdio.h>
#include <string.h>

#include <gtorch/base/gtorch-json-private.h>

#include "profiler-test.h"
#include "test-device.h"

static gchar *folder;
static gchar *program; /* its name */

static GFile *
file_new (const gchar *name)
{
  return g_file_new_build_filename (folder, name, NULL);
}

/* The content of the file, without its compression. */
static gchar *
read_file (GFile *file)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GInputStream) stream = (GInputStream *) g_file_read (file, NULL, &error);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_autofree gchar *name = g_file_get_basename (file);
  guint8 part[4096];
  gssize n;

  g_assert_no_error (error);
  if (g_str_has_suffix (name, ".gz"))
    {
      g_autoptr (GZlibDecompressor) plain = g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP);
      GInputStream *read = g_converter_input_stream_new (stream, G_CONVERTER (plain));

      g_object_unref (stream);
      stream = read;
    }
  while ((n = g_input_stream_read (stream, part, sizeof part, NULL, &error)) > 0)
    g_byte_array_append (bytes, part, n);
  g_assert_no_error (error);
  g_byte_array_append (bytes, (const guint8 *) "", 1);
  g_file_delete (file, NULL, NULL);
  return (gchar *) g_byte_array_free (g_steal_pointer (&bytes), FALSE);
}

static GTorchJson *
read_json (GFile *file)
{
  g_autofree gchar *text = read_file (file);
  g_autoptr (GError) error = NULL;
  GTorchJson *json = gtorch_json_parse ("test", text, strlen (text), &error);

  g_assert_no_error (error);
  return json;
}

/* A profile of a forward and a backward pass. */
static GTorchProfiler *
make_profile (void)
{
  GTorchProfiler *profiler;
  g_autoptr (GTorchTensor) x = filled (2, 2, 3), y = NULL, total = NULL;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  profiler = started ("record-shapes", TRUE, "profile-memory", TRUE, "with-flops", TRUE,
                      "with-stack", TRUE);
  {
    GTORCH_PROFILE_RANGE ("a \"range\"\n");

    y = gtorch_tensor_mm (x, x, NULL);
  }
  total = gtorch_tensor_sum (y, NULL, 0, FALSE, 0, NULL);
  g_assert_true (gtorch_tensor_backward (total, NULL, FALSE, FALSE, NULL));
  stop (profiler);
  return profiler;
}

static const gchar *
string_of (const GTorchJsonNode *event, const gchar *key)
{
  const GTorchJsonNode *node = gtorch_json_lookup (event, key);

  return node != NULL && node->kind == GTORCH_JSON_STRING ? node->string : NULL;
}

static gdouble
number_of (const GTorchJsonNode *event, const gchar *key)
{
  const GTorchJsonNode *node = gtorch_json_lookup (event, key);

  g_assert_nonnull (node);
  g_assert_cmpint (node->kind, ==, GTORCH_JSON_NUMBER);
  return node->number;
}

/* Every event has what its phase needs; counts them by category. */
static void
check_events (const GTorchJsonNode *root, GHashTable *counts)
{
  const GTorchJsonNode *list = gtorch_json_lookup (root, "traceEvents"), *event;
  g_autoptr (GHashTable) flows = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  g_assert_cmpint (list->kind, ==, GTORCH_JSON_ARRAY);
  for (event = list->first; event != NULL; event = event->next)
    {
      const gchar *phase = string_of (event, "ph"), *category = string_of (event, "cat");

      g_assert_nonnull (string_of (event, "name"));
      g_assert_cmpfloat (number_of (event, "pid"), >=, 0);
      g_assert_cmpfloat (number_of (event, "tid"), >=, 0);
      g_assert_cmpfloat (number_of (event, "ts"), >, 0);
      g_assert_nonnull (phase);
      if (g_str_equal (phase, "M") || g_str_equal (phase, "C"))
        continue;
      g_assert_nonnull (category);
      g_hash_table_insert (counts, g_strdup (category),
                           GUINT_TO_POINTER (
                               GPOINTER_TO_UINT (g_hash_table_lookup (counts, category)) + 1));
      if (g_str_equal (phase, "X"))
        g_assert_cmpfloat (number_of (event, "dur"), >=, 0);
      else if (g_str_equal (phase, "i"))
        g_assert_cmpstr (string_of (event, "s"), ==, "t");
      else
        {
          g_autofree gchar *id = g_strdup_printf ("%s %g", category, number_of (event, "id"));

          if (g_str_equal (phase, "s"))
            g_hash_table_add (flows, g_steal_pointer (&id));
          else
            {
              g_assert_cmpstr (phase, ==, "f");
              g_assert_cmpstr (string_of (event, "bp"), ==, "e");
              g_assert_true (g_hash_table_contains (flows, id));
            }
        }
    }
}

static guint
count_of (GHashTable *counts, const gchar *category)
{
  return GPOINTER_TO_UINT (g_hash_table_lookup (counts, category));
}

static void
traces_are_json (gconstpointer name)
{
  g_autoptr (GTorchProfiler) profiler = make_profile ();
  g_autoptr (GFile) file = file_new (name);
  g_autoptr (GHashTable) counts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GTorchJson) json = NULL;
  g_autoptr (GError) error = NULL;
  const GTorchJsonNode *root, *event;
  gboolean has_range = FALSE, has_dims = FALSE;

  g_assert_true (gtorch_profiler_add_metadata_json (profiler, "own", "[1, \"two\"]", &error));
  g_assert_false (gtorch_profiler_add_metadata_json (profiler, "own", "[1, ", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);
  g_assert_true (gtorch_profiler_export_chrome_trace (profiler, file, NULL, &error));
  g_assert_no_error (error);
  json = read_json (file);
  root = gtorch_json_get_root (json);
  g_assert_cmpfloat (number_of (root, "schemaVersion"), ==, 1);
  g_assert_cmpint (gtorch_json_lookup (root, "own")->n_children, ==, 2);
  check_events (root, counts);
  g_assert_cmpint (count_of (counts, "user_annotation"), ==, 1);
  g_assert_cmpint (count_of (counts, "cpu_op"), >=, 5);
  g_assert_cmpint (count_of (counts, "cpu_instant_event"), >=, 2);
  g_assert_cmpint (count_of (counts, "fwdbwd"), ==, 4); /* two arrows */
  for (event = gtorch_json_lookup (root, "traceEvents")->first; event != NULL; event = event->next)
    {
      const GTorchJsonNode *args = gtorch_json_lookup (event, "args");

      has_range |= g_str_equal (string_of (event, "name"), "a \"range\"\n");
      has_dims |= g_str_equal (string_of (event, "name"), "mm")
                  && gtorch_json_lookup (args, "Input Dims") != NULL
                  && gtorch_json_lookup (args, "Input Dims")->n_children == 2
                  && number_of (args, "flops") == 16;
    }
  g_assert_true (has_range);
  g_assert_true (has_dims);
}

/* The events of each track are within one another or apart. */
static void
check_nesting (const GTorchJsonNode *root)
{
  const GTorchJsonNode *list = gtorch_json_lookup (root, "traceEvents"), *one, *other;

  for (one = list->first; one != NULL; one = one->next)
    for (other = list->first; other != NULL; other = other->next)
      {
        gdouble start, end, from, to;

        if (!g_str_equal (string_of (one, "ph"), "X") || !g_str_equal (string_of (other, "ph"), "X")
            || number_of (one, "tid") != number_of (other, "tid"))
          continue;
        start = number_of (one, "ts");
        end = start + number_of (one, "dur");
        from = number_of (other, "ts");
        to = from + number_of (other, "dur");
        g_assert_false (start + 1e-3 < from && from + 1e-3 < end && end + 1e-3 < to);
      }
}

static void
what_overlaps_has_tracks_of_its_own (void)
{
  g_autoptr (GTorchProfiler) profiler = started (NULL);
  g_autoptr (GTorchTensor) x = filled (2, 2, 3), y = NULL, z = NULL;
  g_autoptr (GFile) file = file_new ("overlap.json");
  g_autoptr (GTorchProfileRange) first = NULL, second = NULL, third = NULL;
  g_autoptr (GTorchJson) json = NULL;
  const GTorchJsonNode *root, *event;
  g_autoptr (GHashTable) tracks = g_hash_table_new (NULL, NULL);
  g_autoptr (GString) names = g_string_new (NULL);

  first = gtorch_profile_range_new ("first");
  y = gtorch_tensor_exp (x, NULL);
  second = gtorch_profile_range_new ("second");
  third = gtorch_profile_range_new ("third");
  gtorch_profile_range_end (first);
  z = gtorch_tensor_exp (x, NULL);
  gtorch_profile_range_end (second);
  gtorch_profile_range_end (third);
  stop (profiler);
  g_assert_true (gtorch_profiler_export_chrome_trace (profiler, file, NULL, NULL));
  json = read_json (file);
  root = gtorch_json_get_root (json);
  check_nesting (root);
  for (event = gtorch_json_lookup (root, "traceEvents")->first; event != NULL; event = event->next)
    {
      const gchar *name = string_of (event, "name");
      const gsize tid = number_of (event, "tid");

      if (g_str_equal (string_of (event, "ph"), "X")
          && g_str_equal (string_of (event, "cat"), "user_annotation"))
        g_hash_table_insert (tracks, GSIZE_TO_POINTER (tid), (gpointer) name);
      if (g_str_equal (name, "thread_name") && tid >= 1 << 22)
        g_string_append_printf (names, "%s\n",
                                strchr (string_of (gtorch_json_lookup (event, "args"), "name"),
                                        ')'));
    }
  g_assert_cmpuint (g_hash_table_size (tracks), ==, 3);
  g_assert_cmpstr (names->str, ==, ") (2)\n) (3)\n");
}

/* The curve of a device ends with what its storages have then. */
static void
memory_is_a_curve (void)
{
  g_autoptr (GTorchProfiler) profiler = make_profile ();
  g_autoptr (GFile) file = file_new ("curve.json");
  g_autofree gchar *wanted = g_strconcat ("Memory of ", gtorch_device_name (test_device ()), NULL);
  const GTorchRecord *records;
  g_autoptr (GTorchJson) json = NULL;
  const GTorchJsonNode *event;
  guint n_records, n_moments = 0, n = 0, i;

  records = gtorch_trace_get_records (gtorch_profiler_get_trace (profiler), &n_records);
  for (i = 0; i < n_records; i++)
    n_moments += (records[i].kind == GTORCH_RECORD_ALLOC || records[i].kind == GTORCH_RECORD_FREE)
                 && records[i].device == test_device ();
  g_assert_true (gtorch_profiler_export_chrome_trace (profiler, file, NULL, NULL));
  json = read_json (file);
  for (event = gtorch_json_lookup (gtorch_json_get_root (json), "traceEvents")->first;
       event != NULL; event = event->next)
    if (g_str_equal (string_of (event, "ph"), "C")
        && g_str_equal (string_of (event, "name"), wanted))
      {
        g_assert_cmpfloat (number_of (gtorch_json_lookup (event, "args"), "bytes"), >=, 0);
        n++;
      }
  g_assert_cmpuint (n, >, 0);
  g_assert_cmpuint (n, ==, n_moments);
}

static void
files_that_cannot_be_written_are_an_error (void)
{
  g_autoptr (GTorchProfiler) profiler = make_profile ();
  g_autoptr (GFile) file = g_file_new_for_path ("/nowhere/at/all.json");
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_profiler_export_chrome_trace (profiler, file, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
}

static void
memory_over_time_is_written (void)
{
  g_autoptr (GTorchProfiler) profiler = make_profile ();
  g_autoptr (GFile) file = file_new ("memory.json"), raw = file_new ("memory.raw.json.gz");
  g_autoptr (GFile) other = file_new ("memory.png");
  g_autoptr (GTorchJson) json = NULL, raw_json = NULL;
  g_autoptr (GError) error = NULL;
  const GTorchJsonNode *root, *times, *sizes, *event;
  guint n = 0, i;
  gint64 balance = 0;

  for (i = 0; find_memory (profiler, GTORCH_RECORD_ALLOC, test_device (), i) != NULL; i++)
    n++;
  for (i = 0; find_memory (profiler, GTORCH_RECORD_FREE, test_device (), i) != NULL; i++)
    n++;

  g_assert_true (
      gtorch_profiler_export_memory_timeline (profiler, file, test_device (), NULL, &error));
  g_assert_no_error (error);
  json = read_json (file);
  root = gtorch_json_get_root (json);
  g_assert_cmpint (root->n_children, ==, 2);
  times = root->first;
  sizes = times->next;
  g_assert_cmpint (times->n_children, ==, n);
  g_assert_cmpint (sizes->n_children, ==, n);
  g_assert_cmpint (sizes->first->n_children, ==, 9);

  g_assert_true (
      gtorch_profiler_export_memory_timeline (profiler, raw, test_device (), NULL, &error));
  raw_json = read_json (raw);
  root = gtorch_json_get_root (raw_json);
  g_assert_cmpint (root->n_children, ==, n);
  for (event = root->first; event != NULL; event = event->next)
    {
      const GTorchJsonNode *action = event->first->next, *bytes = action->next;

      g_assert_cmpint (event->n_children, ==, 4);
      g_assert_true (action->integer == 2 ? bytes->integer > 0 : bytes->integer < 0);
      g_assert_cmpint (bytes->next->integer, <, 8);
      balance += bytes->integer;
    }
  g_assert_cmpint (balance, >, 0); /* results and the gradient are still there */

  g_assert_false (gtorch_profiler_export_memory_timeline (profiler, other, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "profiler_export_memory_timeline: the name “memory.png” must end with .json, "
                   ".raw.json, .json.gz, .raw.json.gz or .html");
}

static guint
count_parts (const gchar *text, const gchar *part)
{
  guint n = 0;

  for (text = strstr (text, part); text != NULL; text = strstr (text + 1, part))
    n++;
  return n;
}

static void
memory_over_time_is_a_page (void)
{
  g_autoptr (GTorchProfiler) profiler = NULL, without = NULL;
  g_autoptr (GTorchTensor) x = NULL, y = NULL;
  g_autoptr (GFile) file = file_new ("memory.html");
  g_autoptr (GError) error = NULL;
  g_autofree gchar *page = NULL;

  profiler = started ("profile-memory", TRUE);
  x = filled (256, 1024, 1); /* 1 MiB */
  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  y = gtorch_tensor_exp (x, NULL);
  stop (profiler);
  g_assert_true (
      gtorch_profiler_export_memory_timeline (profiler, file, test_device (), NULL, &error));
  g_assert_no_error (error);
  g_assert_true (g_file_load_contents (file, NULL, &page, NULL, NULL, NULL));
  g_assert_true (g_str_has_prefix (page, "<!DOCTYPE html>"));
  g_assert_true (g_str_has_suffix (page, "</body>\n</html>\n"));
  g_assert_null (strstr (page, "http://"));
  g_assert_null (strstr (page, "https://"));
  g_assert_null (strstr (page, "<script"));
  g_assert_nonnull (strstr (page, "<title>Memory over time: "));
  /* the input of an operation without a gradient, and the result that is kept for the backward pass */
  g_assert_cmpuint (count_parts (page, "<polygon class=\"c3\""), ==, 1);
  g_assert_cmpuint (count_parts (page, "<polygon class=\"c4\""), ==, 1);
  g_assert_cmpuint (count_parts (page, "<polygon class=\"c5\""), ==, 0);
  g_assert_nonnull (strstr (page, "1.0\302\240MiB"));
  g_assert_cmpuint (count_parts (page, "<svg"), ==,
                    1 + count_parts (page, "class=\"swatch\"><rect"));

  without = started ("with-flops", FALSE);
  stop (without);
  g_assert_false (gtorch_profiler_export_memory_timeline (without, file, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static gchar *
tell_stack (gpointer data, GError **error)
{
  return g_strdup ("program.py(12): inner part\nprogram.py(3): outer");
}

static gchar *
fail_to_tell (gpointer data, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "no line is known");
  return NULL;
}

static void
errors_of_functions_are_told (void)
{
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autoptr (GTorchTensor) x = filled (2, 2, 1), y = NULL;
  g_autoptr (GTorchProfileList) averages = NULL;
  g_autoptr (GTorchProfileRow) row = NULL;

  gtorch_profiler_set_stack_func (fail_to_tell, NULL, NULL);
  profiler = started ("with-stack", TRUE);
  y = gtorch_tensor_mm (x, x, NULL);
  stop (profiler);
  gtorch_profiler_set_stack_func (NULL, NULL, NULL);
  averages = gtorch_profiler_key_averages (profiler, FALSE, 1, NULL);
  row = find_row (averages, "mm");
  g_assert_cmpstr (gtorch_profile_row_get_stack (row), ==, "? (no line is known)");
}

static void
stacks_are_written (void)
{
  g_autoptr (GTorchProfiler) profiler = NULL, plain = NULL;
  g_autoptr (GFile) file = file_new ("stacks.txt");
  g_autoptr (GTorchTensor) x = filled (64, 64, 1), y = NULL;
  g_autoptr (GTorchProfileList) averages = NULL;
  g_autoptr (GTorchProfileRow) row = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;
  g_autofree gchar *table = NULL;

  gtorch_profiler_set_stack_func (tell_stack, NULL, NULL);
  profiler = started ("with-stack", TRUE);
  y = gtorch_tensor_mm (x, x, NULL);
  stop (profiler);
  gtorch_profiler_set_stack_func (NULL, NULL, NULL);
  g_assert_true (
      gtorch_profiler_export_stacks (profiler, file, "self_cpu_time_total", NULL, &error));
  g_assert_no_error (error);
  text = read_file (file);
  g_assert_true (g_str_has_prefix (text, "program.py(3):_outer;program.py(12):_inner_part "));
  averages = gtorch_profiler_key_averages (profiler, FALSE, 1, NULL);
  row = find_row (averages, "mm");
  g_assert_cmpstr (gtorch_profile_row_get_stack (row), ==, "program.py(12): inner part");
  table = gtorch_profile_list_table (averages, NULL, -1, -1, -1, -1, NULL, FALSE, NULL, NULL);
  g_assert_nonnull (strstr (table, "Source Location"));

  g_assert_false (gtorch_profiler_export_stacks (profiler, file, "time", NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  plain = started ("with-stack", FALSE);
  stop (plain);
  g_assert_false (gtorch_profiler_export_stacks (plain, file, "self_cpu_time_total", NULL, &error));
  g_assert_cmpstr (error->message, ==,
                   "profiler_export_stacks: there are no frames in the profile: set with_stack");
}

static void
functions_of_c_are_a_stack_too (void)
{
  g_autoptr (GTorchProfiler) profiler = make_profile ();
  const GTorchRecord *record = find_record (profiler, GTORCH_RECORD_OP, "mm", 0);
  g_autofree gchar *own = g_strdup_printf ("(%s+0x", program);

  g_assert_nonnull (record->place);
  g_test_message ("%s", record->place);
  g_assert_nonnull (strstr (record->place, own));
}

#define TEST(name) g_test_add_func ("/GTorch/profile_files/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  program = g_path_get_basename (argv[0]);
  folder = g_dir_make_tmp ("gtorch-profile-XXXXXX", NULL);
  g_test_add_data_func ("/GTorch/profile_files/traces_are_json", "trace.json", traces_are_json);
  g_test_add_data_func ("/GTorch/profile_files/traces_are_compressed", "trace.json.gz",
                        traces_are_json);
  TEST (what_overlaps_has_tracks_of_its_own);
  TEST (memory_is_a_curve);
  TEST (files_that_cannot_be_written_are_an_error);
  TEST (memory_over_time_is_written);
  TEST (memory_over_time_is_a_page);
  TEST (stacks_are_written);
  TEST (errors_of_functions_are_told);
  TEST (functions_of_c_are_a_stack_too);
  result = g_test_run ();
  g_rmdir (folder);
  g_free (folder);
  g_free (program);
  return result;
}
