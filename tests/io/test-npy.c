/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gstdio.h>

#include "io-test.h"

static const gchar *const kinds[] = { "b1", "i1", "u1", "i2", "i4", "i8",
                                      "f2", "f4", "f8", "c8", "c16" };
static const GTorchDType dtypes[] = {
  GTORCH_DTYPE_BOOL,    GTORCH_DTYPE_INT8,      GTORCH_DTYPE_UINT8,      GTORCH_DTYPE_INT16,
  GTORCH_DTYPE_INT32,   GTORCH_DTYPE_INT64,     GTORCH_DTYPE_FLOAT16,    GTORCH_DTYPE_FLOAT32,
  GTORCH_DTYPE_FLOAT64, GTORCH_DTYPE_COMPLEX64, GTORCH_DTYPE_COMPLEX128,
};

static void
assert_numbers (GTorchTensor *tensor, guint kind)
{
  g_assert_cmpint (gtorch_tensor_get_dtype (tensor), ==, dtypes[kind]);
  assert_shape (tensor, "2,3");
  if (kind == 0)
    assert_values (tensor, VALUES (1, 0, 1, 0, 1, 1));
  else if (kind >= 9)
    assert_values (tensor, VALUES (1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 2, 0));
  else
    assert_values (tensor, VALUES (1, 0, 3, 0, 1, 2));
}

static void
test_npy_reads_all_dtypes_in_both_orders (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    for (guint big = 0; big < 2; big++)
      {
        g_autofree gchar *name = g_strconcat (kinds[i], big ? "-big.npy" : ".npy", NULL);
        g_autoptr (GError) error = NULL;
        g_autoptr (GFile) file = data_file (name);
        g_autoptr (GBytes) bytes = NULL;
        g_autoptr (GInputStream) stream = NULL;

        if (big && gtorch_dtype_get_size (dtypes[i]) == 1)
          continue;
        bytes = data_bytes (name);
        stream = pipe_of (bytes);
        for (guint how = 0; how < 4; how++)
          {
            g_autoptr (GTorchTensor) tensor =
                how == 0   ? gtorch_npy_load_bytes (bytes, &error)
                : how == 1 ? gtorch_npy_load (stream, 0, NULL, &error)
                           : gtorch_npy_load_file (file, how == 3, 0, NULL, &error);

            g_assert_no_error (error);
            assert_numbers (tensor, i);
            g_assert_cmpint (gtorch_tensor_is_read_only (tensor), ==, how == 0 && !big);
          }
      }
}

static void
test_npy_reads_versions_and_layouts (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) version2 = data_bytes ("version2.npy");
  g_autoptr (GBytes) version3 = data_bytes ("version3.npy");
  g_autoptr (GBytes) columns = data_bytes ("fortran.npy");
  g_autoptr (GBytes) number = data_bytes ("number.npy");
  g_autoptr (GBytes) empty = data_bytes ("empty.npy");
  g_autoptr (GTorchTensor) two = gtorch_npy_load_bytes (version2, &error);
  g_autoptr (GTorchTensor) three = gtorch_npy_load_bytes (version3, &error);
  g_autoptr (GTorchTensor) fortran = gtorch_npy_load_bytes (columns, &error);
  g_autoptr (GTorchTensor) five = gtorch_npy_load_bytes (number, &error);
  g_autoptr (GTorchTensor) none = gtorch_npy_load_bytes (empty, &error);
  const gint64 *strides;
  gsize n_dims;

  g_assert_no_error (error);
  assert_numbers (two, 7);
  assert_numbers (three, 7);
  assert_shape (fortran, "2,3,4");
  assert_values (fortran, VALUES (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                                  19, 20, 21, 22, 23));
  strides = gtorch_tensor_get_strides (fortran, &n_dims);
  g_assert_cmpint (strides[0], ==, 1);
  g_assert_cmpint (strides[2], ==, 6);
  assert_shape (five, "");
  assert_values (five, VALUES (5));
  assert_shape (none, "0,3");
}

static void
test_npy_reads_one_array_after_the_other (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GFile) file = data_file ("two.npy");
  g_autoptr (GInputStream) stream = G_INPUT_STREAM (g_file_read (file, NULL, &error));
  g_autoptr (GTorchTensor) one = gtorch_npy_load (stream, 0, NULL, &error);
  g_autoptr (GTorchTensor) two = gtorch_npy_load (stream, 0, NULL, &error);

  g_assert_no_error (error);
  assert_numbers (one, 4);
  assert_numbers (two, 8);
  g_assert_null (gtorch_npy_load (stream, 0, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);
  for (guint map = 0; map < 2; map++)
    {
      g_assert_null (gtorch_npy_load_file (file, map, 0, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      g_assert_nonnull (strstr (error->message, "from a stream"));
      g_clear_error (&error);
    }
}

static void
test_npy_refuses_by_name (void)
{
  static const struct
  {
    const gchar *name, *text;
  } cases[] = {
    { "text.npy", "“<U2”, texts" },
    { "records.npy", "records with fields" },
    { "unsigned.npy", "“<u4”, unsigned integers" },
    { "times.npy", "“<M8[D]”, times" },
    { "objects.npy", "“|O”, objects of Python" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GBytes) bytes = data_bytes (cases[i].name);
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_npy_load_bytes (bytes, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_assert_true (g_str_has_prefix (error->message, "npy_load: "));
      g_assert_nonnull (strstr (error->message, cases[i].text));
    }
}

static void
test_npy_refuses_what_lies (void)
{
  static const struct
  {
    const gchar *header;
    guint n_data;
    const gchar *text;
  } cases[] = {
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 4,
      "npy_load: the file is cut short: shape [2] of float32 takes 8 bytes, and there are 4" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 8)}", 0,
      "npy_load: the size of shape" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 0,
      "a size of at most 63 bits" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 0, "expected a size" },
    { "{'descr': '<f4', 'fortran_order': False}", 0, "once each" },
    { "{'descr': '<f4', 'descr': '<f4', 'shape': ()}", 0, "once each" },
    { "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", 4, "True or False" },
    { "{'descr': '|f4', 'fortran_order': False, 'shape': ()}", 4, "an order of bytes" },
    { "{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", 1, "is not a bool" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 4, "nothing more" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", 4,
      "at most 16 sizes" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      GString *text = g_string_new_len ("\223NUMPY\1\0\0\0", 10);
      g_autoptr (GBytes) bytes = NULL;
      g_autoptr (GError) error = NULL;

      text->str[8] = strlen (cases[i].header);
      g_string_append (text, cases[i].header);
      for (guint k = 0; k < cases[i].n_data; k++)
        g_string_append_c (text, '\2');
      bytes = g_string_free_to_bytes (text);
      g_assert_null (gtorch_npy_load_bytes (bytes, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      g_assert_nonnull (strstr (error->message, cases[i].text));
    }
}

static void
test_npy_keeps_to_the_limit (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GFile) file = data_file ("f8.npy");

  g_assert_null (gtorch_npy_load_file (file, FALSE, 47, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_cmpstr (error->message, ==,
                   "npy_load: the content takes 48 bytes and more: the limit is 47");
}

static void
test_npy_mapped_memory_is_private (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GFile) from = data_file ("f4.npy");
  g_autofree gchar *folder = g_dir_make_tmp (NULL, &error);
  g_autofree gchar *path = g_build_filename (folder, "x.npy", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GTorchTensor) mapped = NULL;
  g_autoptr (GTorchTensor) again = NULL;

  g_assert_true (g_file_copy (from, file, G_FILE_COPY_NONE, NULL, NULL, NULL, &error));
  mapped = gtorch_npy_load_file (file, TRUE, 1, NULL, &error); /* what is mapped takes no memory */
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_add_scalar_inplace (mapped, 1, 1, &error) != NULL);
  assert_values (mapped, VALUES (2, 1, 4, 1, 2, 3));
  again = gtorch_npy_load_file (file, FALSE, 0, NULL, &error);
  assert_numbers (again, 7);
  g_remove (path);
  g_rmdir (folder);
}

static void
test_npy_saves_what_it_loads (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_autofree gchar *name = g_strconcat (kinds[i], ".npy", NULL);
      g_autoptr (GError) error = NULL;
      g_autoptr (GBytes) bytes = data_bytes (name);
      g_autoptr (GTorchTensor) tensor = gtorch_npy_load_bytes (bytes, &error);
      g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();
      g_autoptr (GBytes) saved = NULL;

      g_assert_true (gtorch_npy_save (tensor, out, NULL, &error));
      g_assert_true (g_output_stream_close (out, NULL, NULL));
      saved = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (out));
      g_assert_true (g_bytes_equal (saved, bytes)); /* NumPy's bytes */
    }
}

static void
test_npy_refuses_bfloat16 (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor =
      gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_BFLOAT16, NULL, NULL);
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();

  g_assert_false (gtorch_npy_save (tensor, out, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==,
                   "npy_save: the format has no type for bfloat16: convert the tensor of shape [2] "
                   "first");
}

static void
test_npy_loads_and_saves_in_threads (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *folder = g_dir_make_tmp (NULL, &error);
  g_autofree gchar *path = g_build_filename (folder, "x.npy", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GTorchTensor) tensor = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) loaded = NULL;
  Waiting saving = { NULL }, loading = { NULL }, ended = { NULL };

  gtorch_npy_save_file_async (tensor, file, 0, NULL, on_done, &saving);
  g_assert_true (gtorch_npy_save_file_finish (wait_for (&saving), &error));
  gtorch_npy_load_file_async (file, FALSE, 0, 0, NULL, on_done, &loading);
  loaded = gtorch_npy_load_file_finish (wait_for (&loading), &error);
  g_assert_no_error (error);
  assert_values (loaded, VALUES (1, 1, 1));
  g_cancellable_cancel (cancelled);
  gtorch_npy_load_file_async (file, FALSE, 0, 0, cancelled, on_done, &ended);
  g_assert_null (gtorch_npy_load_file_finish (wait_for (&ended), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_object_unref (saving.result);
  g_object_unref (loading.result);
  g_object_unref (ended.result);
  g_remove (path);
  g_rmdir (folder);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/npy/reads_all_dtypes_in_both_orders",
                   test_npy_reads_all_dtypes_in_both_orders);
  g_test_add_func ("/GTorch/npy/reads_versions_and_layouts", test_npy_reads_versions_and_layouts);
  g_test_add_func ("/GTorch/npy/reads_one_array_after_the_other",
                   test_npy_reads_one_array_after_the_other);
  g_test_add_func ("/GTorch/npy/refuses_by_name", test_npy_refuses_by_name);
  g_test_add_func ("/GTorch/npy/refuses_what_lies", test_npy_refuses_what_lies);
  g_test_add_func ("/GTorch/npy/keeps_to_the_limit", test_npy_keeps_to_the_limit);
  g_test_add_func ("/GTorch/npy/mapped_memory_is_private", test_npy_mapped_memory_is_private);
  g_test_add_func ("/GTorch/npy/saves_what_it_loads", test_npy_saves_what_it_loads);
  g_test_add_func ("/GTorch/npy/refuses_bfloat16", test_npy_refuses_bfloat16);
  g_test_add_func ("/GTorch/npy/loads_and_saves_in_threads", test_npy_loads_and_saves_in_threads);
  return g_test_run ();
}
