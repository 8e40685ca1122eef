/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io-test.h"
#include "io/gtorch-zip-private.h"

static GTorchCheckpointFile *
load (const gchar *name)
{
  g_autoptr (GFile) file = data_file (name);
  g_autoptr (GError) error = NULL;
  GTorchCheckpointFile *checkpoint =
      gtorch_checkpoint_file_load_file (file, FALSE, 0, NULL, &error);

  g_assert_no_error (error);
  return checkpoint;
}

static void
test_checkpoint_gives_a_state_dict (void)
{
  g_autoptr (GTorchCheckpointFile) checkpoint = load ("state.pt");
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTable) tensors = gtorch_checkpoint_file_get_tensors (checkpoint, &error);
  g_autoptr (GHashTable) state = gtorch_table_to_hash_table (tensors);
  g_autoptr (GTorchModule) linear = GTORCH_MODULE (gtorch_linear_new (2, 3, NULL));
  g_autoptr (GTorchModule) norm = GTORCH_MODULE (gtorch_batch_norm1d_new (3, NULL));
  GTorchModule *layers[] = { linear, norm };
  g_autoptr (GTorchModule) network =
      GTORCH_MODULE (gtorch_sequential_new_from_modules (layers, 2, NULL));

  g_assert_no_error (error);
  g_assert_cmpuint (gtorch_table_get_length (tensors), ==, 7);
  g_assert_cmpstr (gtorch_table_get_name (tensors, 0), ==, "0.weight");
  g_assert_true (gtorch_module_load_state_dict (network, state, TRUE, &error));
  g_assert_no_error (error);
}

static GTorchCheckpointNode *
get (GTorchCheckpointNode *root, const gchar *key)
{
  g_autoptr (GError) error = NULL;
  GTorchCheckpointNode *node = gtorch_checkpoint_node_lookup (root, key, &error);

  g_assert_no_error (error);
  return node;
}

static void
test_checkpoint_keeps_kinds_and_values (void)
{
  g_autoptr (GTorchCheckpointFile) checkpoint = load ("nested.pt");
  g_autoptr (GTorchCheckpointNode) root = gtorch_checkpoint_file_get_root (checkpoint);
  g_autoptr (GTorchCheckpointNode) epoch = get (root, "epoch");
  g_autoptr (GTorchCheckpointNode) loss = get (root, "loss");
  g_autoptr (GTorchCheckpointNode) name = get (root, "name");
  g_autoptr (GTorchCheckpointNode) zero = get (root, "zero");
  g_autoptr (GTorchCheckpointNode) flags = get (root, "flags");
  g_autoptr (GTorchCheckpointNode) large = get (root, "large");
  g_autoptr (GTorchCheckpointNode) bytes = get (root, "bytes");
  g_autoptr (GTorchCheckpointNode) number = get (root, "complex");
  g_autoptr (GTorchCheckpointNode) order = get (root, "order");
  g_autoptr (GTorchCheckpointNode) size = get (root, "size");
  g_autoptr (GTorchCheckpointNode) dtype = get (root, "dtype");
  g_autoptr (GTorchCheckpointNode) device = get (root, "device");
  g_autoptr (GTorchCheckpointNode) one = get (root, "one");
  g_autoptr (GTorchCheckpointNode) other = get (root, "other");
  g_autoptr (GTorchCheckpointNode) model = get (root, "model");
  g_autoptr (GTorchCheckpointNode) attributes = gtorch_checkpoint_node_get_attributes (model);
  g_autoptr (GTorchCheckpointNode) last = gtorch_checkpoint_node_get_key (order, 1);
  g_autoptr (GTorchCheckpointNode) missing = gtorch_checkpoint_node_get_child (order, 2);
  g_autoptr (GTorchCheckpointNode) flag = gtorch_checkpoint_node_get_child (flags, 0);
  g_autoptr (GBytes) raw = gtorch_checkpoint_node_get_bytes (bytes);
  g_autoptr (GBytes) text = gtorch_checkpoint_node_get_bytes (zero);
  g_autoptr (GBytes) digits = gtorch_checkpoint_node_get_bytes (large);
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (gtorch_checkpoint_node_get_kind (root), ==, GTORCH_CHECKPOINT_KIND_DICT);
  g_assert_cmpint (gtorch_checkpoint_node_get_int (epoch), ==, 7);
  g_assert_cmpfloat (gtorch_checkpoint_node_get_double (loss), ==, 0.25);
  g_assert_cmpstr (gtorch_checkpoint_node_get_text (name), ==, "näme");
  g_assert_null (gtorch_checkpoint_node_get_text (zero));
  g_assert_cmpmem (g_bytes_get_data (text, NULL), g_bytes_get_size (text), "a\0b", 3);
  g_assert_cmpint (gtorch_checkpoint_node_get_kind (flags), ==, GTORCH_CHECKPOINT_KIND_TUPLE);
  g_assert_cmpint (gtorch_checkpoint_node_get_int (flag), ==, 1);
  g_assert_cmpint (gtorch_checkpoint_node_get_kind (large), ==, GTORCH_CHECKPOINT_KIND_LONG);
  g_assert_cmpuint (g_bytes_get_size (digits), ==, 9);
  g_assert_cmpmem (g_bytes_get_data (raw, NULL), g_bytes_get_size (raw), "\0\xff", 2);
  g_assert_cmpfloat (gtorch_checkpoint_node_get_double (number), ==, 1);
  g_assert_cmpfloat (gtorch_checkpoint_node_get_imaginary (number), ==, -2);
  g_assert_cmpint (gtorch_checkpoint_node_get_kind (order), ==,
                   GTORCH_CHECKPOINT_KIND_ORDERED_DICT);
  g_assert_cmpstr (gtorch_checkpoint_node_get_text (last), ==, "a");
  g_assert_null (missing);
  g_assert_cmpuint (gtorch_checkpoint_node_get_length (size), ==, 2);
  g_assert_cmpint (gtorch_checkpoint_node_get_dtype (dtype), ==, GTORCH_DTYPE_FLOAT16);
  g_assert_cmpstr (gtorch_checkpoint_node_get_text (device), ==, "cpu");
  g_assert_cmpuint (gtorch_checkpoint_node_get_index (one), ==,
                    gtorch_checkpoint_node_get_index (other));
  g_assert_nonnull (attributes);
  g_assert_null (gtorch_checkpoint_node_lookup (root, "nothing", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "checkpoint_lookup: the dict has no key “nothing”");
  g_clear_error (&error);
  g_assert_null (
      gtorch_checkpoint_file_get_tensors (checkpoint, &error)); /* a list contains itself */
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

static GTorchTensor *
tensor_of (GTorchCheckpointNode *root, const gchar *key)
{
  g_autoptr (GTorchCheckpointNode) node = get (root, key);

  return gtorch_checkpoint_node_get_tensor (node);
}

static void
test_checkpoint_shares_storages (void)
{
  g_autoptr (GFile) file = data_file ("nested.pt");
  g_autoptr (GBytes) bytes = data_bytes ("nested.pt");
  g_autoptr (GError) error = NULL;

  for (guint how = 0; how < 4; how++)
    {
      g_autoptr (GInputStream) pipe = pipe_of (bytes);
      g_autoptr (GTorchCheckpointFile) checkpoint =
          how == 0   ? gtorch_checkpoint_file_load_bytes (bytes, 0, &error)
          : how == 1 ? gtorch_checkpoint_file_load (pipe, 0, NULL, &error)
                     : gtorch_checkpoint_file_load_file (file, how == 3, 0, NULL, &error);
      g_autoptr (GTorchCheckpointNode) root = NULL;
      g_autoptr (GTorchCheckpointNode) node = NULL;
      GTorchTensor *base, *columns, *parameter;
      guint storage;

      g_assert_no_error (error);
      root = gtorch_checkpoint_file_get_root (checkpoint);
      base = tensor_of (root, "base");
      columns = tensor_of (root, "columns");
      parameter = tensor_of (root, "parameter");
      node = get (root, "columns");
      storage = gtorch_checkpoint_node_get_storage_index (node);
      assert_values (base, VALUES (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
      assert_values (columns, VALUES (4, 6, 8, 10));
      g_assert_cmpuint (gtorch_tensor_get_data_ptr (base), ==,
                        gtorch_tensor_get_data_ptr (columns) - 16);
      g_assert_cmpuint (gtorch_tensor_get_data_ptr (
                            gtorch_checkpoint_file_get_storage (checkpoint, storage)),
                        ==, gtorch_tensor_get_data_ptr (base));
      g_assert_cmpstr (gtorch_checkpoint_file_get_location (checkpoint, storage), ==, "cpu");
      g_assert_null (
          gtorch_checkpoint_file_get_storage (checkpoint,
                                              gtorch_checkpoint_file_get_n_storages (checkpoint)));
      assert_shape (tensor_of (root, "none"), "0,3");
      g_assert_cmpint (gtorch_tensor_get_dtype (tensor_of (root, "half")), ==,
                       GTORCH_DTYPE_BFLOAT16);
      assert_values (tensor_of (root, "half"), VALUES (1.5));
      g_assert_true (GTORCH_IS_PARAMETER (parameter));
      g_assert_true (gtorch_tensor_get_requires_grad (parameter));
      g_assert_true (gtorch_tensor_get_requires_grad (tensor_of (root, "leaf")));
      g_assert_cmpint (gtorch_tensor_is_read_only (base), ==, how == 0);
      if (how > 0)
        g_assert_true (gtorch_tensor_zero_inplace (base, &error) == base);
      if (how > 0)
        assert_values (columns, VALUES (0, 0, 0, 0));
    }
}

static void
test_checkpoint_refuses_by_name (void)
{
  static const struct
  {
    const gchar *name, *text;
    gint code;
  } cases[] = {
    { "unsigned.pt", "uint16, a dtype that is missing here", GTORCH_ERROR_NOT_SUPPORTED },
    { "module.pt", "it calls torch.nn.modules.linear.Linear", GTORCH_ERROR_NOT_SUPPORTED },
    { "legacy.pt", "no end record", GTORCH_ERROR_FORMAT },
    { "stored.npz", "it has no member data.pkl", GTORCH_ERROR_NOT_SUPPORTED },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GBytes) bytes = data_bytes (cases[i].name);
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_checkpoint_file_load_bytes (bytes, 0, &error));
      g_assert_error (error, GTORCH_ERROR, cases[i].code);
      g_assert_true (g_str_has_prefix (error->message, "checkpoint_load: "));
      g_assert_nonnull (strstr (error->message, cases[i].text));
    }
}

/* An archive with this pickle and a storage of four zeros. */
static GBytes *
archive_of (const gchar *pickle, gsize n)
{
  static const gchar zeros[16] = { 0 };
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();
  g_autoptr (GTorchZipWriter) writer = gtorch_zip_writer_new ("test", out);
  g_autoptr (GBytes) nothing = g_bytes_new (NULL, 0);
  g_autoptr (GBytes) content = g_bytes_new (pickle, n);
  g_autoptr (GBytes) storage = g_bytes_new_static (zeros, sizeof zeros);

  g_assert_true (gtorch_zip_writer_add (writer, "a/data.pkl", nothing, content, FALSE, NULL, NULL));
  g_assert_true (gtorch_zip_writer_add (writer, "a/data/0", nothing, storage, TRUE, NULL, NULL));
  g_assert_true (gtorch_zip_writer_close (writer, NULL, NULL));
  g_output_stream_close (out, NULL, NULL);
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (out));
}

#define TENSOR(numel, offset, size, stride)                                                    \
  "\x80\2ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" \
  "0"                                                                                          \
  "X\3\0\0\0cpuK" numel "tQK" offset "(K" size "t(K" stride "t\x89"                            \
  "}tR."

static void
test_checkpoint_refuses_what_lies (void)
{
  static const struct
  {
    const gchar *pickle;
    gsize n;
    const gchar *text;
  } cases[] = {
#define CASE(pickle, text) { pickle, sizeof pickle - 1, text }
    CASE ("", "ends without its last instruction"),
    CASE (".", "misses its operand"),
    CASE ("K\1", "ends without"),
    CASE ("K\1.x", "1 bytes follow"),
    CASE ("K\1a.", "misses its operand"),
    CASE ("]K\1s.", "misses its operand"),
    CASE ("K\1K\2a.", "items are added to a int"),
    CASE ("}(K\1u.", "has no value"),
    CASE ("}]K\1s.", "a key of type list"),
    CASE ("h\1.", "the memo has no number 1"),
    CASE ("t.", "misses its mark"),
    CASE ("X\xff\xff\xff\x7f"
          "a.",
          "2147483647 bytes are wanted"),
    CASE ("X\1\0\0\0\xff.", "not UTF-8"),
    CASE ("cos\nsystem\n.", "it calls os.system"),
    CASE ("ccollections\nOrderedDict\n.", "in place of a value"),
    CASE ("ctorch\nfloat32\n)R.", "it calls a dtype"),
    CASE ("}}b.", "attributes of a dict"),
    CASE ("c__builtin__\nset\n(K\1tR.", "a set is made of a int"),
    CASE ("(S'a'\nios\nsystem\n.", "the instruction 0x53"),
    CASE ("\x80\6.", "protocol 6"),
    CASE ("I99999999999999999999\n.", "no integer of 64 bits"),
    CASE ("(K\1tQ.", "a storage is described as a tuple of 1"),
    CASE (TENSOR ("\4", "\1", "\4", "\1"), "a tensor of shape [4] needs 5 elements of 4"),
    CASE (TENSOR ("\4", "\0", "\4", "\2"), "needs 7 elements of 4"),
    CASE (TENSOR ("\5", "\0", "\4", "\1"), "storage 0 has 16 bytes for 5 elements of float32"),
#undef CASE
  };
  g_autoptr (GBytes) good =
      archive_of (TENSOR ("\4", "\1", "\3", "\1"), sizeof TENSOR ("\4", "\1", "\3", "\1") - 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCheckpointFile) checkpoint = gtorch_checkpoint_file_load_bytes (good, 0, &error);
  g_autoptr (GTorchTable) tensors = NULL;

  g_assert_no_error (error);
  tensors = gtorch_checkpoint_file_get_tensors (checkpoint, &error);
  g_assert_cmpstr (gtorch_table_get_name (tensors, 0), ==, "");
  assert_shape (gtorch_table_get_tensor (tensors, 0), "3");
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GBytes) bytes = archive_of (cases[i].pickle, cases[i].n);

      g_assert_null (gtorch_checkpoint_file_load_bytes (bytes, 0, &error));
      g_assert_nonnull (error);
      g_test_message ("%u: %s", i, error->message);
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_nonnull (strstr (error->message, cases[i].text));
      g_clear_error (&error);
    }
}

static void
test_checkpoint_keeps_to_the_limit (void)
{
  g_autoptr (GString) pickle = g_string_new (NULL);
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < 100000; i++)
    g_string_append_c (pickle, ']');
  g_string_append_c (pickle, '.');
  bytes = archive_of (pickle->str, pickle->len);
  g_assert_null (gtorch_checkpoint_file_load_bytes (bytes, 1000000, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, "the limit of 1000000 bytes"));
}

/* Each list has the one before it twice: a walk over them would take 2^60 steps. */
static void
test_checkpoint_walks_end (void)
{
  g_autoptr (GString) pickle = g_string_new ("]q");
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCheckpointFile) checkpoint = NULL;

  g_string_append_c (pickle, 0);
  for (guint i = 0; i < 60; i++)
    {
      g_string_append_printf (pickle, "](h%ch%ceq%c", i + 128, i + 128, i + 129);
      for (gsize k = pickle->len - 8; k < pickle->len; k++)
        if ((guchar) pickle->str[k] >= 128)
          pickle->str[k] -= 128;
    }
  g_string_append_c (pickle, '.');
  bytes = archive_of (pickle->str, pickle->len);
  checkpoint = gtorch_checkpoint_file_load_bytes (bytes, 0, &error);
  g_assert_no_error (error);
  g_assert_null (gtorch_checkpoint_file_get_tensors (checkpoint, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

static void
test_checkpoint_loads_in_threads (void)
{
  g_autoptr (GFile) file = data_file ("single.pt");
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCheckpointFile) checkpoint = NULL;
  g_autoptr (GTorchTable) tensors = NULL;
  Waiting loading = { NULL };

  gtorch_checkpoint_file_load_file_async (file, TRUE, 0, 0, NULL, on_done, &loading);
  checkpoint = gtorch_checkpoint_file_load_file_finish (wait_for (&loading), &error);
  g_assert_no_error (error);
  tensors = gtorch_checkpoint_file_get_tensors (checkpoint, &error);
  assert_values (gtorch_table_get_tensor (tensors, 0), VALUES (0, 1, 2));
  g_object_unref (loading.result);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/Checkpoint/gives_a_state_dict", test_checkpoint_gives_a_state_dict);
  g_test_add_func ("/GTorch/Checkpoint/keeps_kinds_and_values",
                   test_checkpoint_keeps_kinds_and_values);
  g_test_add_func ("/GTorch/Checkpoint/shares_storages", test_checkpoint_shares_storages);
  g_test_add_func ("/GTorch/Checkpoint/refuses_by_name", test_checkpoint_refuses_by_name);
  g_test_add_func ("/GTorch/Checkpoint/refuses_what_lies", test_checkpoint_refuses_what_lies);
  g_test_add_func ("/GTorch/Checkpoint/keeps_to_the_limit", test_checkpoint_keeps_to_the_limit);
  g_test_add_func ("/GTorch/Checkpoint/walks_end", test_checkpoint_walks_end);
  g_test_add_func ("/GTorch/Checkpoint/loads_in_threads", test_checkpoint_loads_in_threads);
  return g_test_run ();
}
