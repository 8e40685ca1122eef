/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gstdio.h>
#include <gtorch/io/gtorch-safetensors-private.h>
#include <math.h>
#include <string.h>

#include "test-device.h"

/* --- files of the reference writer --- */

static GFile *
foreign_file (void)
{
  return g_file_new_build_filename (g_test_get_dir (G_TEST_DIST), "core", "data",
                                    "foreign.safetensors", NULL);
}

static void
check_foreign (GHashTable *tensors, GHashTable *metadata)
{
  guint dtype, i;
  GTorchTensor *single = g_hash_table_lookup (tensors, "single");
  GTorchTensor *empty = g_hash_table_lookup (tensors, "empty");
  const gint64 *shape;
  gsize n_dims;

  g_assert_cmpuint (g_hash_table_size (tensors), ==, 14);
  g_assert_cmpuint (g_hash_table_size (metadata), ==, 1);
  g_assert_cmpstr (g_hash_table_lookup (metadata, "format"), ==, "pt — \"x\"");
  g_assert_true (g_hash_table_contains (tensors, "größe \"\\\n\001\177☃"));
  g_assert_cmpuint (gtorch_tensor_get_n_dims (single), ==, 0);
  g_assert_cmpfloat (gtorch_tensor_item_double (single, NULL), ==, 2.5);
  shape = gtorch_tensor_get_shape (empty, &n_dims);
  g_assert_cmpuint (n_dims, ==, 3);
  g_assert_cmpint (shape[1], ==, 0);
  for (dtype = GTORCH_DTYPE_FLOAT32; dtype <= GTORCH_DTYPE_COMPLEX64; dtype++)
    {
      g_autofree gchar *name = g_strconcat ("of ", gtorch_dtype_get_name (dtype), NULL);
      GTorchTensor *tensor = g_hash_table_lookup (tensors, name);
      guint n_parts = dtype == GTORCH_DTYPE_COMPLEX64 ? 2 : 1;
      g_autofree gdouble *values = NULL;
      gsize n;

      g_assert_nonnull (tensor);
      g_assert_cmpint (gtorch_tensor_get_dtype (tensor), ==, dtype);
      values = gtorch_tensor_to_doubles (tensor, &n, NULL);
      g_assert_cmpuint (n, ==, 6 * n_parts);
      for (i = 0; i < 6; i++)
        g_assert_cmpfloat (values[i * n_parts], ==, dtype == GTORCH_DTYPE_BOOL ? i % 2 : i);
      if (n_parts == 2)
        g_assert_cmpfloat (values[11], ==, 0.5);
    }
}

static void
foreign_files_are_read (void)
{
  g_autoptr (GFile) file = foreign_file ();
  gboolean map;

  for (map = FALSE; map <= TRUE; map++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GHashTable) metadata = NULL;
      g_autoptr (GHashTable) tensors =
          gtorch_safetensors_load_file (file, map, NULL, &metadata, NULL, NULL, NULL, &error);

      g_assert_no_error (error);
      check_foreign (tensors, metadata);
    }
}

static void
bytes_are_read_without_a_copy (void)
{
  g_autoptr (GFile) file = foreign_file ();
  g_autoptr (GBytes) bytes = g_file_load_bytes (file, NULL, NULL, NULL);
  g_autoptr (GHashTable) metadata = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GHashTable) tensors = gtorch_safetensors_load_bytes (bytes, &metadata, &error);
  GTorchTensor *first;
  gsize address;

  g_assert_no_error (error);
  check_foreign (tensors, metadata);
  first = g_hash_table_lookup (tensors, "of int64");
  address = gtorch_tensor_get_data_ptr (first);
  g_assert_cmpuint (address, >, (gsize) g_bytes_get_data (bytes, NULL));
  g_assert_cmpuint (address, <, (gsize) g_bytes_get_data (bytes, NULL) + g_bytes_get_size (bytes));
  g_assert_null (gtorch_tensor_zero_inplace (first, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
finish_lists (GObject *source, GAsyncResult *result, gpointer user_data)
{
  GPtrArray **tensors = user_data;

  *tensors = gtorch_safetensors_load_finish_lists (result, NULL, NULL, NULL);
  g_main_context_wakeup (NULL);
}

static void
lists_keep_the_order_of_the_file (void)
{
  g_autoptr (GFile) file = foreign_file ();
  g_autoptr (GBytes) bytes = g_file_load_bytes (file, NULL, NULL, NULL);
  g_autoptr (GBytes) start = g_bytes_new_from_bytes (bytes, 0, 100);
  g_autoptr (GError) error = NULL;
  guint how, i;

  for (how = 0; how < 3; how++)
    {
      g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_bytes (bytes);
      g_autoptr (GPtrArray) tensors = NULL;
      g_autoptr (GHashTable) table = g_hash_table_new (g_str_hash, g_str_equal);
      g_autoptr (GHashTable) texts = g_hash_table_new (g_str_hash, g_str_equal);
      g_auto (GStrv) names = NULL;
      g_auto (GStrv) metadata = NULL;
      gsize address = 0;

      if (how == 0)
        tensors = gtorch_safetensors_load_bytes_lists (bytes, &names, &metadata, &error);
      else if (how == 1)
        tensors = gtorch_safetensors_load_lists (stream, NULL, &names, &metadata, NULL, NULL, NULL,
                                                 &error);
      else
        tensors = gtorch_safetensors_load_file_lists (file, TRUE, NULL, &names, &metadata, NULL,
                                                      NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (tensors->len, ==, g_strv_length (names));
      g_assert_cmpuint (g_strv_length (metadata), ==, 2);
      for (i = 0; i < tensors->len; i++)
        {
          GTorchTensor *tensor = tensors->pdata[i];

          g_hash_table_insert (table, names[i], tensor);
          if (how == 1 || gtorch_tensor_get_numel (tensor) == 0)
            continue;
          if (test_device () == gtorch_device_cpu ())
            g_assert_cmpuint (gtorch_tensor_get_data_ptr (tensor), >, address);
          address = gtorch_tensor_get_data_ptr (tensor);
        }
      g_hash_table_insert (texts, metadata[0], metadata[1]);
      check_foreign (table, texts);
    }
  g_assert_null (gtorch_safetensors_load_bytes_lists (start, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
}

static void
lists_come_from_both_asynchronous_loads (void)
{
  g_autoptr (GFile) file = foreign_file ();
  g_autoptr (GInputStream) stream = G_INPUT_STREAM (g_file_read (file, NULL, NULL));
  g_autoptr (GPtrArray) first = NULL;
  g_autoptr (GPtrArray) second = NULL;

  gtorch_safetensors_load_async (stream, NULL, 0, NULL, NULL, NULL, NULL, finish_lists, &first);
  gtorch_safetensors_load_file_async (file, FALSE, NULL, 0, NULL, NULL, NULL, NULL, finish_lists,
                                      &second);
  while (first == NULL || second == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_cmpuint (first->len, ==, 14);
  g_assert_cmpuint (second->len, ==, 14);
}

/* The bytes are those of the reference writer. */
static void
saving_gives_the_same_bytes (void)
{
  g_autoptr (GFile) file = foreign_file ();
  g_autoptr (GBytes) bytes = g_file_load_bytes (file, NULL, NULL, NULL);
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();
  g_autoptr (GHashTable) metadata = NULL;
  g_autoptr (GHashTable) tensors = NULL;
  g_autoptr (GError) error = NULL;
  gsize n_bytes;
  gconstpointer data = g_bytes_get_data (bytes, &n_bytes);

  tensors = gtorch_safetensors_load_bytes (bytes, &metadata, NULL);
  gtorch_safetensors_save (tensors, metadata, out, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpmem (g_memory_output_stream_get_data (G_MEMORY_OUTPUT_STREAM (out)),
                   g_memory_output_stream_get_data_size (G_MEMORY_OUTPUT_STREAM (out)), data,
                   n_bytes);
}

/* --- malformed files --- */

static GBytes *
file_of (const gchar *header, gsize n_data)
{
  g_autoptr (GByteArray) array = g_byte_array_new ();
  guint64 length = GUINT64_TO_LE (strlen (header));
  guint i;

  g_byte_array_append (array, (const guint8 *) &length, 8);
  g_byte_array_append (array, (const guint8 *) header, strlen (header));
  for (i = 0; i < n_data; i++)
    g_byte_array_append (array, (const guint8 *) "\1", 1);
  return g_byte_array_free_to_bytes (g_steal_pointer (&array));
}

static void
assert_refused (GBytes *bytes, GTorchError code, const gchar *text)
{
  g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_bytes (bytes);
  g_autoptr (GHashTable) metadata = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_safetensors_load_bytes (bytes, &metadata, &error));
  g_assert_error (error, GTORCH_ERROR, (gint) code);
  g_assert_cmpstr (error->message, ==, text);
  g_assert_null (metadata);
  g_clear_error (&error);
  g_assert_null (gtorch_safetensors_load (stream, NULL, &metadata, NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, (gint) code);
  g_assert_null (metadata);
}

static void
refuse (const gchar *header, gsize n_data, GTorchError code, const gchar *text)
{
  g_autoptr (GBytes) bytes = file_of (header, n_data);

  assert_refused (bytes, code, text);
}

static void
lying_headers_are_errors (void)
{
#define ENTRY(name, dtype, shape, offsets) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

  refuse ("{" ENTRY ("a", "F32", "[2,3]", "[0,20]") "}", 20, GTORCH_ERROR_FORMAT,
          "safetensors: “a” of shape [2, 3] and float32 takes 24 bytes, not those from 0 to 20");
  refuse ("{" ENTRY ("a", "F32", "[1]", "[4,0]") "}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: “a” of shape [1] and float32 takes 4 bytes, not those from 4 to 0");
  refuse ("{" ENTRY ("a", "F32", "[1]", "[0,4]") "," ENTRY ("b", "F32", "[1]", "[2,6]") "}", 6,
          GTORCH_ERROR_FORMAT,
          "safetensors: “b” begins at 2, inside of another one, which ends at 4");
  refuse ("{" ENTRY ("a", "F32", "[1]", "[0,4]") "," ENTRY ("b", "F32", "[1]", "[8,12]") "}", 12,
          GTORCH_ERROR_FORMAT, "safetensors: “b” begins at 8, behind a gap from 4 on");
  refuse ("{" ENTRY ("a", "F32", "[1]", "[0,4]") "," ENTRY ("a", "F32", "[1]", "[4,8]") "}", 8,
          GTORCH_ERROR_FORMAT, "safetensors: “a” appears twice");
  refuse ("{" ENTRY ("a", "F32", "[9223372036854775807,9]", "[0,4]") "}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: the size of shape [9223372036854775807, 9] overflows 64 bits");
  refuse ("{" ENTRY ("a", "F32", "[18446744073709551615]", "[0,4]") "}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: byte 48 of the header: expected an integer of at most 63 bits");
  refuse ("{" ENTRY ("a", "F32", "[-1]", "[0,4]") "}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: byte 29 of the header: expected an integer");
  refuse ("{" ENTRY ("a", "F32", "[1.0]", "[0,4]") "}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: byte 30 of the header: expected \"]\"");
  refuse ("{" ENTRY ("a", "F32", "[01]", "[0,4]") "}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: byte 31 of the header: expected an integer");
  refuse ("{" ENTRY ("a", "F32", "[1]", "[0,4,8]") "}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: byte 52 of the header: expected two integers");
  refuse ("{" ENTRY ("a", "F32", "[1]", "[4]") "}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: byte 50 of the header: expected two integers");
  refuse ("{" ENTRY ("a", "F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4,
          GTORCH_ERROR_FORMAT, "safetensors: byte 61 of the header: expected at most 16 integers");
  refuse ("{" ENTRY ("a", "F8_E4M3", "[1]", "[0,1]") "}", 1, GTORCH_ERROR_NOT_SUPPORTED,
          "safetensors: “a” has elements of type F8_E4M3, which has no dtype");
  refuse ("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: byte 31 of the header: expected dtype, shape and data_offsets, once each");
  refuse ("{\"a\":{\"shape\":[1],\"shape\":[1]}}", 4, GTORCH_ERROR_FORMAT,
          "safetensors: byte 26 of the header: expected dtype, shape and data_offsets, once each");
  refuse ("{\"a\":{}}", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 6 of the header: expected \"\"\"");
  refuse ("{\"a\":[[[[[[[[]]]]]]]]}", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 5 of the header: expected \"{\"");
  refuse ("[]", 0, GTORCH_ERROR_FORMAT, "safetensors: byte 0 of the header: expected \"{\"");
  refuse ("{},", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 2 of the header: expected nothing more");
  refuse ("{\"__metadata__\":{\"a\":1}}", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 21 of the header: expected \"\"\"");
  refuse ("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 32 of the header: expected a key that did not appear before");
  refuse ("{\"__metadata__\":{},\"__metadata__\":{}}", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 34 of the header: expected __metadata__ only once");
  refuse ("{\"\\ud800\":1}", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 8 of the header: expected an escape sequence other than of a zero "
          "byte");
  refuse ("{\"\\u0000\":1}", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 8 of the header: expected an escape sequence other than of a zero "
          "byte");
  refuse ("{\"\xff\":1}", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 2 of the header: expected UTF-8");
  refuse ("{\"a", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 3 of the header: expected the end of a string");
  refuse ("{\"a\n\":1}", 0, GTORCH_ERROR_FORMAT,
          "safetensors: byte 3 of the header: expected the end of a string");
}

static void
wrong_lengths_are_errors (void)
{
  const gchar *header = "{" ENTRY ("a", "F32", "[2]", "[0,8]") "}";
  const struct
  {
    guint64 length;
    const gchar *text;
  } headers[] = {
    { 0, "safetensors: a header of 0 bytes: there can be 2 to 100000000" },
    { 100000001, "safetensors: a header of 100000001 bytes: there can be 2 to 100000000" },
    { G_MAXUINT64,
      "safetensors: a header of 18446744073709551615 bytes: there can be 2 to 100000000" },
    { 99999999, "safetensors: the file is cut short: 8 bytes instead of 100000007" },
  };
  guint i;

  refuse (header, 7, GTORCH_ERROR_FORMAT,
          "safetensors: the file is cut short: 69 bytes instead of 70");
  refuse (header, 9, GTORCH_ERROR_FORMAT,
          "safetensors: 1 bytes follow the last tensor, which ends at 70");
  for (i = 0; i < G_N_ELEMENTS (headers); i++)
    {
      guint64 length = GUINT64_TO_LE (headers[i].length);
      g_autoptr (GBytes) bytes = g_bytes_new (&length, 8);

      assert_refused (bytes, GTORCH_ERROR_FORMAT, headers[i].text);
    }
  for (i = 0; i < 70; i++)
    {
      g_autoptr (GBytes) whole = file_of (header, 8);
      g_autoptr (GBytes) part = g_bytes_new_from_bytes (whole, 0, i);
      g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_bytes (part);
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_safetensors_load_bytes (part, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      g_clear_error (&error);
      g_assert_null (gtorch_safetensors_load (stream, NULL, NULL, NULL, NULL, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
    }
}

/* A claimed terabyte of data is found missing before memory for it is allocated. */
static void
huge_claims_are_errors (void)
{
  refuse ("{" ENTRY ("a", "F32", "[274877906944]", "[0,1099511627776]") "}", 64,
          GTORCH_ERROR_FORMAT,
          "safetensors: the file is cut short: 149 bytes instead of 1099511627861");
}

static void
bools_are_0_or_1 (void)
{
  g_autoptr (GBytes) good = file_of ("{" ENTRY ("a", "BOOL", "[2]", "[0,2]") "}", 2);
  gsize n;
  const guint8 *data = g_bytes_get_data (good, &n);
  g_autofree guint8 *copy = g_memdup2 (data, n);
  g_autoptr (GHashTable) tensors = gtorch_safetensors_load_bytes (good, NULL, NULL);
  g_autoptr (GBytes) bad = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GInputStream) stream = NULL;

  g_assert_nonnull (tensors);
  copy[n - 1] = 255;
  bad = g_bytes_new_static (copy, n);
  g_assert_null (gtorch_safetensors_load_bytes (bad, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);
  stream = g_memory_input_stream_new_from_bytes (bad);
  g_assert_null (gtorch_safetensors_load (stream, NULL, NULL, NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_assert_cmpstr (error->message, ==,
                   "safetensors: element 1 of “a” is 255 and not a bool, which is 0 or 1");
}

static void
other_writers_are_understood (void)
{
  g_autoptr (GBytes) bytes = file_of (" { \"a\\u00e9\\ud83d\\ude00\" : { \"data_offsets\" : [ 0 , "
                                      "2 ] ,\n\"shape\":[ 2 , 1 "
                                      "], \"dtype\":\"I8\" } }   ",
                                      2);
  g_autoptr (GError) error = NULL;
  g_autoptr (GHashTable) tensors = gtorch_safetensors_load_bytes (bytes, NULL, &error);

  g_assert_no_error (error);
  g_assert_true (g_hash_table_contains (tensors, "aé😀"));
}

/* --- files of this library --- */

static gchar *folder;

static gchar *
temporary (const gchar *name)
{
  return g_build_filename (folder, name, NULL);
}

static GHashTable *
some_tensors (gint64 n)
{
  GHashTable *tensors = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  g_autoptr (GTorchTensor) range = gtorch_arange (0, n, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_reshape (range, GTORCH_SHAPE (2, -1), NULL);

  g_hash_table_insert (tensors, g_strdup ("transposed"), gtorch_tensor_t (matrix, NULL));
  g_hash_table_insert (tensors, g_strdup ("row"), gtorch_tensor_select (matrix, 0, 1, NULL));
  return tensors;
}

static void
views_are_saved_by_value (void)
{
  g_autofree gchar *path = temporary ("views.safetensors");
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GHashTable) tensors = some_tensors (6);
  g_autoptr (GHashTable) back = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *a = NULL;
  g_autofree gchar *b = NULL;
  g_autofree gchar *row = NULL;

  gtorch_safetensors_save_file (tensors, NULL, file, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  back = gtorch_safetensors_load_file (file, TRUE, NULL, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  a = test_to_string (g_hash_table_lookup (tensors, "transposed"));
  b = test_to_string (g_hash_table_lookup (back, "transposed"));
  g_assert_cmpstr (a, ==, b);
  row = test_to_string (g_hash_table_lookup (back, "row"));
  g_assert_cmpstr (row, ==, "tensor([3., 4., 5.])");
  g_unlink (path);
}

static void
mapped_tensors_change_apart_from_the_file (void)
{
  g_autofree gchar *path = temporary ("mapped.safetensors");
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GHashTable) tensors = some_tensors (6);
  g_autoptr (GHashTable) mapped = NULL;
  g_autoptr (GHashTable) again = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;

  gtorch_safetensors_save_file (tensors, NULL, file, NULL, NULL, NULL, &error);
  mapped = gtorch_safetensors_load_file (file, TRUE, NULL, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (gtorch_tensor_zero_inplace (g_hash_table_lookup (mapped, "row"), &error));
  again = gtorch_safetensors_load_file (file, FALSE, NULL, NULL, NULL, NULL, NULL, &error);
  text = test_to_string (g_hash_table_lookup (again, "row"));
  g_assert_cmpstr (text, ==, "tensor([3., 4., 5.])");
  /* and the file may be replaced while it is mapped */
  gtorch_safetensors_save_file (mapped, NULL, file, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_clear_pointer (&again, g_hash_table_unref);
  g_clear_pointer (&text, g_free);
  again = gtorch_safetensors_load_file (file, FALSE, NULL, NULL, NULL, NULL, NULL, &error);
  text = test_to_string (g_hash_table_lookup (again, "row"));
  g_assert_cmpstr (text, ==, "tensor([0., 0., 0.])");
  g_unlink (path);
}

static void
impossible_saves_are_errors (void)
{
  g_autoptr (GHashTable) tensors =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();
  g_autoptr (GError) error = NULL;
  GTorchTensor *released = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);

  g_hash_table_insert (tensors, g_strdup ("z"),
                       gtorch_ones (NULL, 0, GTORCH_DTYPE_COMPLEX128, NULL, NULL));
  g_assert_false (gtorch_safetensors_save (tensors, NULL, out, NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==,
                   "safetensors: the format has no type for the complex128 of “z”");
  g_clear_error (&error);
  g_hash_table_remove_all (tensors);
  gtorch_tensor_release (released);
  g_hash_table_insert (tensors, g_strdup ("r"), released);
  g_assert_false (gtorch_safetensors_save (tensors, NULL, out, NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_clear_error (&error);
  g_hash_table_remove_all (tensors);
  g_hash_table_insert (tensors, g_strdup ("__metadata__"),
                       gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT32, NULL, NULL));
  g_assert_false (gtorch_safetensors_save (tensors, NULL, out, NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_hash_table_remove_all (tensors);
  g_hash_table_insert (tensors, g_strdup ("\xff"),
                       gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT32, NULL, NULL));
  g_assert_false (gtorch_safetensors_save (tensors, NULL, out, NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpuint (g_memory_output_stream_get_data_size (G_MEMORY_OUTPUT_STREAM (out)), ==, 0);
}

static void
missing_files_are_errors (void)
{
  g_autoptr (GFile) file = g_file_new_for_path ("/nonexistent/x.safetensors");
  g_autoptr (GHashTable) none = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_safetensors_load_file (file, TRUE, NULL, NULL, NULL, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_false (gtorch_safetensors_save_file (none, NULL, file, NULL, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
}

/* --- progress, cancellation, other threads --- */

typedef struct
{
  GMainLoop *loop;
  GThread *thread;
  goffset last, total;
  guint n_calls, n_freed;
  GCancellable *cancel_at_first;
  GHashTable *tensors, *metadata;
  GError *error;
} State;

static void
on_progress (goffset current, goffset total, gpointer data)
{
  State *state = data;

  g_assert_true (g_thread_self () == state->thread);
  g_assert_cmpint (current, >, state->last);
  g_assert_cmpint (current, <=, total);
  state->last = current;
  state->total = total;
  state->n_calls++;
  if (state->cancel_at_first != NULL)
    g_cancellable_cancel (state->cancel_at_first);
}

static void
on_freed (gpointer data)
{
  State *state = data;

  g_assert_true (g_thread_self () == state->thread);
  state->n_freed++;
}

static void
on_saved (GObject *source, GAsyncResult *result, gpointer data)
{
  State *state = data;

  g_assert_cmpint (gtorch_safetensors_save_file_finish (result, &state->error), ==,
                   state->error == NULL);
  g_main_loop_quit (state->loop);
}

static void
on_loaded (GObject *source, GAsyncResult *result, gpointer data)
{
  State *state = data;

  state->tensors = gtorch_safetensors_load_file_finish (result, &state->metadata, &state->error);
  g_assert_true ((state->tensors == NULL) == (state->error != NULL));
  g_main_loop_quit (state->loop);
}

static void
work_in_threads_reports_to_the_caller (void)
{
  g_autofree gchar *path = temporary ("async.safetensors");
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (GHashTable) tensors = some_tensors (8 << 20);
  g_autoptr (GHashTable) metadata = g_hash_table_new (g_str_hash, g_str_equal);
  State state = { .loop = loop, .thread = g_thread_self () };

  g_hash_table_insert (metadata, (gpointer) "key", (gpointer) "value");
  gtorch_safetensors_save_file_async (tensors, metadata, file, G_PRIORITY_DEFAULT, NULL,
                                      on_progress, &state, on_freed, on_saved, &state);
  g_hash_table_remove_all (tensors);
  g_main_loop_run (loop);
  g_assert_no_error (state.error);
  g_assert_cmpuint (state.n_calls, >=, 12);
  g_assert_cmpint (state.last, ==, state.total);
  g_assert_cmpuint (state.n_freed, ==, 1);

  state.last = state.n_calls = 0;
  gtorch_safetensors_load_file_async (file, FALSE, NULL, G_PRIORITY_DEFAULT, NULL, on_progress,
                                      &state, on_freed, on_loaded, &state);
  g_main_loop_run (loop);
  g_assert_no_error (state.error);
  g_assert_cmpuint (state.n_calls, >=, 12);
  g_assert_cmpint (state.last, ==, state.total);
  g_assert_cmpuint (state.n_freed, ==, 2);
  g_assert_cmpstr (g_hash_table_lookup (state.metadata, "key"), ==, "value");
  g_assert_cmpint (gtorch_tensor_get_numel (g_hash_table_lookup (state.tensors, "transposed")), ==,
                   8 << 20);
  g_hash_table_unref (state.metadata);
  g_hash_table_unref (state.tensors);
  g_unlink (path);
}

static gpointer
report_and_drop (gpointer data)
{
  gtorch_progress_report (1, 2, data);
  gtorch_progress_unref (data);
  return NULL;
}

/* The work may finish before the caller returns to its main loop. */
static void
progress_waits_for_the_main_loop (void)
{
  State state = { .thread = g_thread_self () };

  g_thread_join (
      g_thread_new (NULL, report_and_drop, gtorch_progress_new (on_progress, &state, on_freed)));
  g_assert_cmpuint (state.n_calls, ==, 0);
  g_assert_cmpuint (state.n_freed, ==, 0);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpuint (state.n_calls, ==, 1);
  g_assert_cmpint (state.total, ==, 2);
  g_assert_cmpuint (state.n_freed, ==, 1);
}

static void
cancelled_work_leaves_no_trace (void)
{
  g_autofree gchar *path = temporary ("cancelled.safetensors");
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GHashTable) tensors = some_tensors (8 << 20);
  g_autoptr (GHashTable) small = some_tensors (6);
  g_autoptr (GHashTable) back = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  State state = { .thread = g_thread_self (), .cancel_at_first = cancellable };

  g_assert_true (gtorch_safetensors_save_file (small, NULL, file, NULL, NULL, NULL, NULL));
  g_assert_false (
      gtorch_safetensors_save_file (tensors, NULL, file, cancellable, on_progress, &state, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpuint (state.n_calls, ==, 1);
  g_clear_error (&error);
  back = gtorch_safetensors_load_file (file, FALSE, NULL, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_numel (g_hash_table_lookup (back, "row")), ==, 3);
  g_clear_pointer (&back, g_hash_table_unref);

  g_assert_true (gtorch_safetensors_save_file (tensors, NULL, file, NULL, NULL, NULL, NULL));
  g_cancellable_reset (cancellable);
  state.n_calls = state.last = 0;
  back = gtorch_safetensors_load_file (file, FALSE, NULL, NULL, cancellable, on_progress, &state,
                                       &error);
  g_assert_null (back);
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpuint (state.n_calls, ==, 1);
  g_unlink (path);
}

static void
pipes_are_read (void)
{
  g_autoptr (GHashTable) tensors = some_tensors (6);
  g_autoptr (GHashTable) back = NULL;
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();
  g_autoptr (GInputStream) memory = NULL;
  g_autoptr (GInputStream) buffered = NULL;
  g_autoptr (GConverter) packer =
      G_CONVERTER (g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_RAW, 6));
  g_autoptr (GConverter) unpacker =
      G_CONVERTER (g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_RAW));
  g_autoptr (GOutputStream) packed = g_converter_output_stream_new (out, packer);
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_safetensors_save (tensors, NULL, packed, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_output_stream_close (packed, NULL, NULL);
  bytes = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (out));
  memory = g_memory_input_stream_new_from_bytes (bytes);
  buffered = g_converter_input_stream_new (memory, unpacker);
  back = gtorch_safetensors_load (buffered, NULL, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_hash_table_size (back), ==, 2);
}

static gpointer
drop_progress (gpointer data)
{
  gtorch_progress_unref (data);
  return NULL;
}

static void
progress_freed (gpointer data)
{
  *(gboolean *) data = TRUE;
}

/* The thread's last reference leads to the owner's context, which may be freed as soon as it has been
 * notified. Sanitizers see whether the thread uses it too late. */
static void
context_is_freed_at_once (void)
{
  guint i;

  for (i = 0; i < 500; i++)
    {
      GMainContext *context = g_main_context_new ();
      GTorchProgress *progress;
      GThread *thread;
      gboolean freed = FALSE;

      g_main_context_push_thread_default (context);
      progress = gtorch_progress_new (NULL, &freed, progress_freed);
      g_main_context_pop_thread_default (context);
      thread = g_thread_new ("progress", drop_progress, progress);
      while (!freed)
        g_main_context_iteration (context, TRUE);
      g_main_context_unref (context);
      g_thread_join (thread);
    }
}

static void
lists_save_the_same_bytes (void)
{
  static const gchar *const names[] = { "a", "b", NULL };
  static const gchar *const metadata[] = { "key", "value", NULL };
  static const gchar *const odd[] = { "key", NULL };
  static const gchar *const twice[] = { "a", "a", NULL };
  static const gchar *const same_key[] = { "key", "value", "key", "other", NULL };
  g_autoptr (GTorchTensor) a = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) b = gtorch_zeros (GTORCH_SHAPE (2, 2), GTORCH_DTYPE_INT64, NULL, NULL);
  GTorchTensor *tensors[] = { a, b }, *wrong[] = { a, NULL };
  g_autoptr (GHashTable) by_name = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) texts = g_hash_table_new (g_str_hash, g_str_equal);
  GOutputStream *streams[2];
  GBytes *bytes[2];
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_hash_table_insert (by_name, (gpointer) names[i], tensors[i]);
      streams[i] = g_memory_output_stream_new_resizable ();
    }
  g_hash_table_insert (texts, (gpointer) metadata[0], (gpointer) metadata[1]);
  g_assert_true (gtorch_safetensors_save (by_name, texts, streams[0], NULL, NULL, NULL, &error));
  g_assert_true (gtorch_safetensors_save_lists (names, tensors, 2, metadata, streams[1], NULL, NULL,
                                                NULL, &error));
  g_assert_no_error (error);
  for (i = 0; i < 2; i++)
    {
      g_output_stream_close (streams[i], NULL, NULL);
      bytes[i] = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (streams[i]));
      g_object_unref (streams[i]);
    }
  g_assert_true (g_bytes_equal (bytes[0], bytes[1]));
  for (i = 0; i < 2; i++)
    g_bytes_unref (bytes[i]);

  streams[0] = g_memory_output_stream_new_resizable ();
  g_assert_false (gtorch_safetensors_save_lists (names, tensors, 1, NULL, streams[0], NULL, NULL,
                                                 NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (
      gtorch_safetensors_save_lists (names, tensors, 2, odd, streams[0], NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (
      gtorch_safetensors_save_lists (names, wrong, 2, NULL, streams[0], NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_safetensors_save_lists (twice, tensors, 2, NULL, streams[0], NULL, NULL,
                                                 NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "safetensors: the name “a” appears twice");
  g_clear_error (&error);
  g_assert_false (gtorch_safetensors_save_lists (names, tensors, 2, same_key, streams[0], NULL,
                                                 NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "safetensors: metadata: the name “key” appears twice");
  g_object_unref (streams[0]);
}

int
main (int argc, char *argv[])
{
  int result;

  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("gtorch-XXXXXX", NULL);
#define ADD(fact) g_test_add_func ("/GTorch/safetensors/" #fact, fact)
  ADD (foreign_files_are_read);
  ADD (bytes_are_read_without_a_copy);
  ADD (lists_keep_the_order_of_the_file);
  ADD (lists_come_from_both_asynchronous_loads);
  ADD (saving_gives_the_same_bytes);
  ADD (lying_headers_are_errors);
  ADD (wrong_lengths_are_errors);
  ADD (huge_claims_are_errors);
  ADD (bools_are_0_or_1);
  ADD (other_writers_are_understood);
  ADD (views_are_saved_by_value);
  ADD (mapped_tensors_change_apart_from_the_file);
  ADD (impossible_saves_are_errors);
  ADD (missing_files_are_errors);
  ADD (work_in_threads_reports_to_the_caller);
  ADD (progress_waits_for_the_main_loop);
  ADD (cancelled_work_leaves_no_trace);
  ADD (pipes_are_read);
  ADD (context_is_freed_at_once);
  ADD (lists_save_the_same_bytes);
  result = g_test_run ();
  g_rmdir (folder);
  g_free (folder);
  return result;
}
