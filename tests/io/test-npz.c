/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io-test.h"
#include "io/gtorch-zip-private.h"

static void
assert_content (GTorchTable *table, gboolean has_zeros)
{
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (gtorch_table_get_length (table), ==, has_zeros ? 4 : 3);
  g_assert_cmpstr (gtorch_table_get_name (table, 2), ==, "z/deep");
  assert_values (gtorch_table_lookup (table, "x", &error), VALUES (1, 0, 3, 0, 1, 2));
  assert_values (gtorch_table_lookup (table, "y", &error), VALUES (0, 1, 2, 3, 4));
  assert_values (gtorch_table_lookup (table, "z/deep", &error), VALUES (1));
  if (has_zeros)
    assert_shape (gtorch_table_lookup (table, "zeros", &error), "1000");
  g_assert_no_error (error);
}

static void
test_npz_reads_files_of_numpy (void)
{
  static const gchar *const names[] = { "stored.npz", "compressed.npz" };

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GFile) file = data_file (names[i]);
      g_autoptr (GBytes) bytes = data_bytes (names[i]);
      g_autoptr (GError) error = NULL;

      for (guint how = 0; how < 5; how++)
        {
          g_autoptr (GInputStream) stream =
              how < 2 ? g_memory_input_stream_new_from_bytes (bytes) : pipe_of (bytes);
          g_autoptr (GTorchTable) table =
              how == 0   ? gtorch_npz_load_bytes (bytes, 0, &error)
              : how <= 2 ? gtorch_npz_load (stream, 0, NULL, &error)
                         : gtorch_npz_load_file (file, how == 4, 0, NULL, &error);

          g_assert_no_error (error);
          assert_content (table, i == 1);
          /* one byte cannot be misaligned, which NumPy's other members are */
          g_assert_cmpint (gtorch_tensor_is_read_only (gtorch_table_get_tensor (table, 2)), ==,
                           how == 0 && i == 0);
        }
    }
}

static GBytes *
save (GTorchTable *table, gboolean compress)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();

  g_assert_true (gtorch_npz_save (table, compress, out, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (g_output_stream_close (out, NULL, NULL));
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (out));
}

static void
test_npz_saves_what_it_loads (void)
{
  g_autoptr (GBytes) bytes = data_bytes ("compressed.npz");
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTable) table = gtorch_npz_load_bytes (bytes, 0, &error);

  for (guint compress = 0; compress < 2; compress++)
    {
      g_autoptr (GBytes) saved = save (table, compress);
      g_autoptr (GBytes) same = save (table, compress);
      g_autoptr (GTorchTable) again = gtorch_npz_load_bytes (saved, 0, &error);

      g_assert_no_error (error);
      assert_content (again, TRUE);
      g_assert_true (g_bytes_equal (saved, same));
      if (compress)
        g_assert_cmpuint (g_bytes_get_size (saved), <, 2000);
      else /* the data can be mapped */
        g_assert_cmpuint (gtorch_tensor_get_data_ptr (gtorch_table_get_tensor (again, 0))
                              - (gsize) g_bytes_get_data (saved, NULL),
                          ==, 192);
    }
}

/* Changes `n` bytes at `at` of a saved archive and tells the message that loading it gives. */
static gchar *
damage (gsize at, const gchar *text, gsize n, gint code)
{
  g_autoptr (GBytes) bytes = data_bytes ("stored.npz");
  g_autofree guint8 *copy = g_memdup2 (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  g_autoptr (GBytes) damaged = NULL;
  g_autoptr (GError) error = NULL;
  gsize size = g_bytes_get_size (bytes);

  memcpy (copy + (at < size ? at : size - (G_MAXSIZE - at) - 1), text, n);
  damaged = g_bytes_new (copy, size);
  g_assert_null (gtorch_npz_load_bytes (damaged, 0, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  return g_strdup (error->message);
}

/* Where the directory of the archive has its first record. */
static gsize
find_directory (void)
{
  g_autoptr (GBytes) bytes = data_bytes ("stored.npz");
  const gchar *data = g_bytes_get_data (bytes, NULL);
  const gchar *found = memmem (data, g_bytes_get_size (bytes), "PK\1\2", 4);

  return found - data;
}

static void
test_npz_refuses_what_lies (void)
{
  const gsize record = find_directory ();
  const struct
  {
    gsize at;
    const gchar *text;
    gsize n;
    const gchar *message;
    gint code;
  } cases[] = {
    { 0, "x", 1, "does not begin at 0", GTORCH_ERROR_FORMAT },
    { record + 20, "\xff\xff\xff\x7f", 4, "does not end before the directory",
      GTORCH_ERROR_FORMAT },
    { record + 24, "\xff\xff\xff\x7f", 4, "cannot have 2147483647 bytes", GTORCH_ERROR_FORMAT },
    { record + 20, "\xff\xff\xff\xff", 4, "has no sizes of 64 bits", GTORCH_ERROR_FORMAT },
    { record + 16, "\1\2\3\4", 4, "check sum of “x.npy” is", GTORCH_ERROR_FORMAT },
    { record + 10, "\14\0", 2, "compressed by method 12", GTORCH_ERROR_NOT_SUPPORTED },
    { record + 8, "\1\0", 2, "encrypted", GTORCH_ERROR_NOT_SUPPORTED },
    { record + 42, "\1\0\0\0", 4, "does not begin at 1", GTORCH_ERROR_FORMAT },
    { record + 46, "y", 1, "“y.npy” appears twice", GTORCH_ERROR_FORMAT },
    { record + 46, "\xff", 1, "is not UTF-8", GTORCH_ERROR_FORMAT },
    { record + 46 + 4, "x", 1, "which is no array", GTORCH_ERROR_NOT_SUPPORTED },
    { record, "x", 1, "record 0 of the directory is missing", GTORCH_ERROR_FORMAT },
    { record + 28, "\xff\xff", 2, "record 0 of the directory is cut short", GTORCH_ERROR_FORMAT },
    { G_MAXSIZE - 21, "x", 1, "no end record", GTORCH_ERROR_FORMAT },
    { G_MAXSIZE - 11, "\xff\xff", 2, "has no 65283 records", GTORCH_ERROR_FORMAT },
    { G_MAXSIZE - 9, "\xff\xff\xff\xff", 4, "does not end at", GTORCH_ERROR_FORMAT },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree gchar *message = damage (cases[i].at, cases[i].text, cases[i].n, cases[i].code);

      g_test_message ("%u: %s", i, message);
      g_assert_true (g_str_has_prefix (message, "npz_load: "));
      if (i != 14)
        g_assert_nonnull (strstr (message, cases[i].message));
    }
}

static void
test_npz_refuses_every_cut (void)
{
  g_autoptr (GBytes) bytes = data_bytes ("compressed.npz");

  for (gsize n = 0; n < g_bytes_get_size (bytes); n++)
    {
      g_autoptr (GBytes) cut = g_bytes_new_from_bytes (bytes, 0, n);
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_npz_load_bytes (cut, 0, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
    }
}

static void
test_npz_bombs_keep_to_the_limit (void)
{
  const gint64 n = 1 << 22;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) zeros = gtorch_zeros (&n, 1, GTORCH_DTYPE_UINT8, NULL, &error);
  g_autoptr (GTorchTable) table = gtorch_table_new ();
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GTorchTable) whole = NULL;

  g_assert_true (gtorch_table_add (table, "a", zeros, &error));
  g_assert_true (gtorch_table_add (table, "b", zeros, &error));
  bytes = save (table, TRUE);
  g_assert_cmpuint (g_bytes_get_size (bytes), <, 20000);
  g_assert_null (gtorch_npz_load_bytes (bytes, 2 * n, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, "the limit is 8388608"));
  g_clear_error (&error);
  whole = gtorch_npz_load_bytes (bytes, 2 * n + 256, &error);
  g_assert_no_error (error);
}

static void
test_npz_sums_are_those_of_zip (void)
{
  g_assert_cmphex (gtorch_zip_crc (0, "123456789", 9), ==, 0xcbf43926);
  g_assert_cmphex (gtorch_zip_crc (gtorch_zip_crc (0, "1234", 4), "56789", 5), ==, 0xcbf43926);
}

static void
test_npz_loads_and_saves_in_threads (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = data_bytes ("stored.npz");
  g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_bytes (bytes);
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();
  g_autoptr (GTorchTable) table = NULL;
  Waiting loading = { NULL }, saving = { NULL };

  gtorch_npz_load_async (stream, 0, 0, NULL, on_done, &loading);
  table = gtorch_npz_load_finish (wait_for (&loading), &error);
  g_assert_no_error (error);
  assert_content (table, FALSE);
  gtorch_npz_save_async (table, FALSE, out, 0, NULL, on_done, &saving);
  g_assert_true (gtorch_npz_save_finish (wait_for (&saving), &error));
  g_assert_false (gtorch_npz_save_finish (saving.result, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_object_unref (loading.result);
  g_object_unref (saving.result);
}

static void
test_table_refuses_and_tells (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTable) table = gtorch_table_new ();
  g_autoptr (GTorchTensor) one = gtorch_ones (GTORCH_SHAPE (1), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GHashTable) hash = NULL;

  g_assert_true (gtorch_table_add (table, "a", one, &error));
  g_assert_false (gtorch_table_add (table, "a", one, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "table_add: “a” is in the table already");
  g_clear_error (&error);
  g_assert_null (gtorch_table_lookup (table, "b", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "table_lookup: there is no “b”, only “a”");
  g_assert_true (gtorch_table_contains (table, "a"));
  g_assert_null (gtorch_table_get_name (table, 1));
  g_assert_null (gtorch_table_get_tensor (table, 1));
  hash = gtorch_table_to_hash_table (table);
  g_assert_true (g_hash_table_lookup (hash, "a") == one);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/npz/reads_files_of_numpy", test_npz_reads_files_of_numpy);
  g_test_add_func ("/GTorch/npz/saves_what_it_loads", test_npz_saves_what_it_loads);
  g_test_add_func ("/GTorch/npz/refuses_what_lies", test_npz_refuses_what_lies);
  g_test_add_func ("/GTorch/npz/refuses_every_cut", test_npz_refuses_every_cut);
  g_test_add_func ("/GTorch/npz/bombs_keep_to_the_limit", test_npz_bombs_keep_to_the_limit);
  g_test_add_func ("/GTorch/npz/sums_are_those_of_zip", test_npz_sums_are_those_of_zip);
  g_test_add_func ("/GTorch/npz/loads_and_saves_in_threads", test_npz_loads_and_saves_in_threads);
  g_test_add_func ("/GTorch/Table/refuses_and_tells", test_table_refuses_and_tells);
  return g_test_run ();
}
