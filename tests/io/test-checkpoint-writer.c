/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Files of CheckpointWriter, as CheckpointFile reads them; tests/peer/checkpoints.py lets PyTorch do so. */

#include "config.h"

#include <glib/gstdio.h>

#include "io-test.h"

static gint
number (GTorchCheckpointWriter *writer, GTorchCheckpointKind kind, const gint *items, gsize n)
{
  g_autoptr (GError) error = NULL;
  const gint id = gtorch_checkpoint_writer_add_container (writer, kind, items, n, &error);

  g_assert_no_error (error);
  g_assert_cmpint (id, >=, 0);
  return id;
}

static gint
tensor_of (GTorchCheckpointWriter *writer, GTorchTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  const gint id = gtorch_checkpoint_writer_add_tensor (writer, tensor, &error);

  g_assert_no_error (error);
  return id;
}

static GBytes *
write_bytes (GTorchCheckpointWriter *writer, gint root)
{
  g_autoptr (GOutputStream) stream = g_memory_output_stream_new_resizable ();
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_checkpoint_writer_save (writer, root, stream, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (g_output_stream_close (stream, NULL, NULL));
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (stream));
}

static GTorchCheckpointNode *
read_again (GTorchCheckpointWriter *writer, gint root)
{
  g_autoptr (GBytes) bytes = write_bytes (writer, root);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCheckpointFile) checkpoint =
      gtorch_checkpoint_file_load_bytes (bytes, 0, &error);

  g_assert_no_error (error);
  return gtorch_checkpoint_file_get_root (checkpoint);
}

static GTorchTensor *
count_to (gint64 n)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor =
      gtorch_arange (0, (gdouble) n, 1, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), &error);

  g_assert_no_error (error);
  return tensor;
}

static void
test_values_are_read_again (void)
{
  g_autoptr (GTorchCheckpointWriter) writer = gtorch_checkpoint_writer_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) raw = g_bytes_new ("\0\xff", 2);
  g_autoptr (GBytes) text = g_bytes_new ("n\xc3\xa4\0m", 5);
  const gint64 ints[] = { 0, 255, 256, 65535, 65536, -1, G_MININT32, G_MAXINT64, G_MININT64 };
  gint items[16];
  guint n = 0;
  g_autoptr (GTorchCheckpointNode) root = NULL;
  static const GTorchCheckpointKind kinds[] = {
    GTORCH_CHECKPOINT_KIND_NONE,   GTORCH_CHECKPOINT_KIND_BOOL,  GTORCH_CHECKPOINT_KIND_DOUBLE,
    GTORCH_CHECKPOINT_KIND_STRING, GTORCH_CHECKPOINT_KIND_BYTES, GTORCH_CHECKPOINT_KIND_DTYPE,
    GTORCH_CHECKPOINT_KIND_DEVICE,
  };

  items[n++] = gtorch_checkpoint_writer_add_none (writer);
  items[n++] = gtorch_checkpoint_writer_add_bool (writer, TRUE);
  items[n++] = gtorch_checkpoint_writer_add_double (writer, -0.25);
  items[n++] =
      gtorch_checkpoint_writer_add_bytes (writer, GTORCH_CHECKPOINT_KIND_STRING, text, &error);
  items[n++] =
      gtorch_checkpoint_writer_add_bytes (writer, GTORCH_CHECKPOINT_KIND_BYTES, raw, &error);
  items[n++] = gtorch_checkpoint_writer_add_dtype (writer, GTORCH_DTYPE_BFLOAT16, &error);
  items[n++] = gtorch_checkpoint_writer_add_device (writer, gtorch_device_cpu ());
  g_assert_no_error (error);
  root = read_again (writer, number (writer, GTORCH_CHECKPOINT_KIND_TUPLE, items, n));
  g_assert_cmpuint (gtorch_checkpoint_node_get_length (root), ==, n);
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GTorchCheckpointNode) node = gtorch_checkpoint_node_get_child (root, i);
      g_autoptr (GBytes) bytes = gtorch_checkpoint_node_get_bytes (node);

      g_assert_cmpint (gtorch_checkpoint_node_get_kind (node), ==, kinds[i]);
      if (i == 2)
        g_assert_cmpfloat (gtorch_checkpoint_node_get_double (node), ==, -0.25);
      if (i == 3 || i == 4)
        g_assert_true (g_bytes_equal (bytes, i == 3 ? text : raw));
      if (i == 5)
        g_assert_cmpint (gtorch_checkpoint_node_get_dtype (node), ==, GTORCH_DTYPE_BFLOAT16);
    }
  for (guint i = 0; i < G_N_ELEMENTS (ints); i++)
    {
      g_autoptr (GTorchCheckpointNode) node =
          read_again (writer, gtorch_checkpoint_writer_add_int (writer, ints[i]));

      g_assert_cmpint (gtorch_checkpoint_node_get_int (node), ==, ints[i]);
    }
}

static void
test_tensors_share_memory (void)
{
  g_autoptr (GTorchCheckpointWriter) writer = gtorch_checkpoint_writer_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) base = count_to (1000);
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (base, 0, 990, 3, &error);
  g_autoptr (GTorchTensor) unused = count_to (100000);
  const gint items[] = { gtorch_checkpoint_writer_add_string (writer, "part"),
                         tensor_of (writer, part),
                         gtorch_checkpoint_writer_add_string (writer, "base"),
                         tensor_of (writer, base) };
  const gint root = number (writer, GTORCH_CHECKPOINT_KIND_DICT, items, 4);
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GTorchCheckpointFile) checkpoint = NULL;
  g_autoptr (GTorchTable) table = NULL;

  tensor_of (writer, unused); /* which the file does not have */
  bytes = write_bytes (writer, root);
  g_assert_cmpuint (g_bytes_get_size (bytes), <, 6000);
  checkpoint = gtorch_checkpoint_file_load_bytes (bytes, 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (gtorch_checkpoint_file_get_n_storages (checkpoint), ==, 1);
  table = gtorch_checkpoint_file_get_tensors (checkpoint, &error);
  g_assert_no_error (error);
  assert_values (gtorch_table_lookup (table, "part", &error), VALUES (990, 991, 992));
  assert_shape (gtorch_table_lookup (table, "base", &error), "1000");
}

static void
test_a_list_may_contain_itself (void)
{
  g_autoptr (GTorchCheckpointWriter) writer = gtorch_checkpoint_writer_new ();
  const gint list = number (writer, GTORCH_CHECKPOINT_KIND_LIST, NULL, 0);
  const gint pair = number (writer, GTORCH_CHECKPOINT_KIND_TUPLE, &list, 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCheckpointNode) root = NULL;
  g_autoptr (GTorchCheckpointNode) first = NULL;
  g_autoptr (GTorchCheckpointNode) again = NULL;

  g_assert_true (gtorch_checkpoint_writer_append (writer, list, (gint[]){ list, pair }, 2, &error));
  root = read_again (writer, pair);
  first = gtorch_checkpoint_node_get_child (root, 0);
  again = gtorch_checkpoint_node_get_child (first, 0);
  g_assert_cmpuint (gtorch_checkpoint_node_get_index (first), ==,
                    gtorch_checkpoint_node_get_index (again));
  g_clear_object (&again);
  again = gtorch_checkpoint_node_get_child (first, 1);
  g_assert_cmpuint (gtorch_checkpoint_node_get_index (root), ==,
                    gtorch_checkpoint_node_get_index (again));
}

#define assert_refused(call, code, text)        \
  G_STMT_START                                  \
  {                                             \
    g_assert_false ((call) > 0);                \
    g_assert_error (error, GTORCH_ERROR, code); \
    g_assert_cmpstr (error->message, ==, text); \
    g_clear_error (&error);                     \
  }                                             \
  G_STMT_END

static void
test_wrong_values_are_refused (void)
{
  g_autoptr (GTorchCheckpointWriter) writer = gtorch_checkpoint_writer_new ();
  g_autoptr (GError) error = NULL;
  const gint list = number (writer, GTORCH_CHECKPOINT_KIND_LIST, NULL, 0);
  const gint text = gtorch_checkpoint_writer_add_string (writer, "x");
  const gint fixed = number (writer, GTORCH_CHECKPOINT_KIND_TUPLE, &list, 1);
  g_autoptr (GBytes) wrong = g_bytes_new ("a\xff", 2);
  g_autoptr (GTorchTensor) leaf = count_to (3);
  g_autoptr (GTorchTensor) made = NULL;
  gint deep = list;

  assert_refused (gtorch_checkpoint_writer_add_container (writer, GTORCH_CHECKPOINT_KIND_DICT,
                                                          (gint[]){ list, text }, 2, &error),
                  GTORCH_ERROR_INVALID,
                  "checkpoint_save: item 0 of a dict is a list, which can be changed and so is no "
                  "key");
  assert_refused (gtorch_checkpoint_writer_add_container (writer, GTORCH_CHECKPOINT_KIND_SET,
                                                          &fixed, 1, &error),
                  GTORCH_ERROR_INVALID,
                  "checkpoint_save: item 0 of a set is a tuple, which can be changed and so is no "
                  "key");
  assert_refused (gtorch_checkpoint_writer_add_container (writer, GTORCH_CHECKPOINT_KIND_DICT,
                                                          &text, 1, &error),
                  GTORCH_ERROR_INVALID,
                  "checkpoint_save: 1 items are no pairs of a key and a value, which a dict has");
  assert_refused (gtorch_checkpoint_writer_add_container (writer, GTORCH_CHECKPOINT_KIND_INT, NULL,
                                                          0, &error),
                  GTORCH_ERROR_INVALID, "checkpoint_save: int is no container");
  assert_refused (gtorch_checkpoint_writer_add_container (writer, GTORCH_CHECKPOINT_KIND_SIZE,
                                                          &text, 1, &error),
                  GTORCH_ERROR_INVALID,
                  "checkpoint_save: item 0 of a size is no integer that is not negative");
  assert_refused (gtorch_checkpoint_writer_append (writer, fixed, &text, 1, &error),
                  GTORCH_ERROR_INVALID,
                  "checkpoint_save: value 2 is a tuple, which takes no more items");
  assert_refused (gtorch_checkpoint_writer_append (writer, list, (gint[]){ 9 }, 1, &error),
                  GTORCH_ERROR_INDEX, "checkpoint_save: there is no value 9, of 3 that were added");
  assert_refused (gtorch_checkpoint_writer_set_attributes (writer, list, list, &error),
                  GTORCH_ERROR_INVALID,
                  "checkpoint_save: an ordered-dict has attributes in a dict, and value 0 is a "
                  "list, value 0 a list");
  assert_refused (gtorch_checkpoint_writer_add_bytes (writer, GTORCH_CHECKPOINT_KIND_STRING, wrong,
                                                      &error),
                  GTORCH_ERROR_INVALID, "checkpoint_save: a text has a byte at 1 that is no UTF-8");
  assert_refused (gtorch_checkpoint_writer_add_bytes (writer, GTORCH_CHECKPOINT_KIND_INT, wrong,
                                                      &error),
                  GTORCH_ERROR_INVALID,
                  "checkpoint_save: bytes are of the kind bytes, string or long, not int");
  gtorch_tensor_set_requires_grad (leaf, TRUE, &error);
  made = gtorch_tensor_mul (leaf, leaf, &error);
  assert_refused (gtorch_checkpoint_writer_add_tensor (writer, made, &error), GTORCH_ERROR_AUTOGRAD,
                  "checkpoint_save: a tensor of shape [3] has a history of gradients, which no "
                  "file keeps: detach it");
  for (guint i = 0; i < 1000; i++)
    deep = number (writer, GTORCH_CHECKPOINT_KIND_TUPLE, &deep, 1);
  {
    g_autoptr (GOutputStream) stream = g_memory_output_stream_new_resizable ();

    assert_refused (gtorch_checkpoint_writer_save (writer, deep, stream, NULL, &error),
                    GTORCH_ERROR_INVALID, "checkpoint_save: values are nested more than 1000 deep");
    assert_refused (gtorch_checkpoint_writer_save (writer, -1, stream, NULL, &error),
                    GTORCH_ERROR_INDEX,
                    "checkpoint_save: there is no value -1, of 1003 that were added");
  }
}

static void
on_saved (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_checkpoint_writer_save_file_finish (GTORCH_CHECKPOINT_WRITER (source),
                                                            result, &error));
  g_assert_no_error (error);
  g_main_loop_quit (data);
}

static void
test_files_are_replaced_whole (void)
{
  g_autoptr (GTorchCheckpointWriter) writer = gtorch_checkpoint_writer_new ();
  g_autoptr (GError) error = NULL;
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-checkpoint-XXXXXX", &error);
  g_autofree gchar *path = g_build_filename (folder, "point.pt", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GTorchTensor) tensor = count_to (4);
  const gint items[] = { gtorch_checkpoint_writer_add_string (writer, "x"),
                         tensor_of (writer, tensor) };
  const gint root = number (writer, GTORCH_CHECKPOINT_KIND_DICT, items, 2);

  g_assert_true (gtorch_checkpoint_writer_save_file (writer, root, file, NULL, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchCheckpointFile) checkpoint =
          gtorch_checkpoint_file_load_file (file, TRUE, 0, NULL, &error);
      g_autoptr (GTorchTable) table = NULL;

      g_assert_no_error (error);
      table = gtorch_checkpoint_file_get_tensors (checkpoint, &error);
      assert_values (gtorch_table_lookup (table, "x", &error), VALUES (0, 1, 2, 3));
      gtorch_checkpoint_writer_save_file_async (writer, root, file, 0, NULL, on_saved, loop);
      g_main_loop_run (loop);
    }
  g_cancellable_cancel (cancelled);
  g_assert_false (gtorch_checkpoint_writer_save_file (writer, root, file, cancelled, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_true (g_file_delete (file, NULL, NULL));
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/CheckpointWriter/" #name, test_##name)
  ADD (values_are_read_again);
  ADD (tensors_share_memory);
  ADD (a_list_may_contain_itself);
  ADD (wrong_values_are_refused);
  ADD (files_are_replaced_whole);
  return g_test_run ();
}
