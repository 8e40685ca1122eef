/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pickles, in an archive with two storages. */

#include "config.h"

#include <gtorch/gtorch.h>

#include "fuzz.h"
#include "io/gtorch-zip-private.h"

#define STORAGE(type, key, numel) \
  "(X\7\0\0\0storagectorch\n" type "Storage\nX\1\0\0\0" key "X\3\0\0\0cpuK" numel "tQ"
#define TENSOR(type, key, numel, offset, size, stride)                                             \
  "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE (type, key,                                       \
                                                  numel) "K" offset "(K" size "t(K" stride "t\x89" \
                                                         "ccollections\nOrderedDict\n)RtR"

const gchar fuzz_name[] = "checkpoint";
const guint fuzz_weight = 4;
const FuzzSeed fuzz_seeds[] = {
  FUZZ_SEED ("\x80\2}q\0X\1\0\0\0a" TENSOR ("Float", "0", "\4", "\0", "\4", "\1") "s."),
  FUZZ_SEED (
      "\x80\2](" TENSOR ("Long", "1", "\2", "\1", "\1",
                         "\1") "ctorch._utils\n_rebuild_parameter\n(" TENSOR ("Float", "0", "\4",
                                                                              "\0", "\2",
                                                                              "\2") "\x88}tRe."),
  FUZZ_SEED ("\x80\2"
             "ccollections\nOrderedDict\n)R(X\1\0\0\0bK\1X\1\0\0\0a\x8a\1\xffu}X\1\0\0\0mNsb."),
  FUZZ_SEED ("\x80\2(NK\1M\1\2J\1\2\3\4G?\xf0\0\0\0\0\0\0\x88\x89I01\nL5L\nF1.5\n\x85\x86\x87t."),
  FUZZ_SEED ("\x80\4\x95\7\0\0\0\0\0\0\0\x8f(K\1K\2\x90\x94(K\3\x91\x94\x8c\2xyC\2ab\x86."),
  FUZZ_SEED ("\x80\2"
             "ctorch\nSize\n("
             "K\2K\3t\x85Rq\1ctorch\ndevice\nX\3\0\0\0cpu\x85R\x86"
             "ctorch\nfloat16\n\x86"
             "c__builtin__\ncomplex\nG?\xf0\0\0\0\0\0\0K\2\x86R\x86"
             "c_codecs\nencode\nX\2\0\0\0\xc3\xbfX\6\0\0\0latin1\x86R\x86."),
  FUZZ_SEED ("\x80\2]q\0h\0a(ccollections\nCounter\n}X\1\0\0\0aK\2s\x85Rc__builtin__\nset\n]"
             "K\1a\x85Re2g0\n0."),
  { NULL, 0 },
};

static void
walk (GTorchCheckpointFile *checkpoint)
{
  for (guint i = 0; i < gtorch_checkpoint_file_get_n_nodes (checkpoint); i++)
    {
      g_autoptr (GTorchCheckpointNode) node = gtorch_checkpoint_file_get_node (checkpoint, i);
      g_autoptr (GTorchCheckpointNode) attributes = gtorch_checkpoint_node_get_attributes (node);
      g_autoptr (GBytes) bytes = gtorch_checkpoint_node_get_bytes (node);
      GTorchTensor *tensor = gtorch_checkpoint_node_get_tensor (node);
      const gchar *text = gtorch_checkpoint_node_get_text (node);

      g_assert_true (text == NULL || g_utf8_validate (text, -1, NULL));
      for (guint k = 0; k < gtorch_checkpoint_node_get_length (node); k++)
        {
          g_autoptr (GTorchCheckpointNode) child = gtorch_checkpoint_node_get_child (node, k);
          g_autoptr (GTorchCheckpointNode) key = gtorch_checkpoint_node_get_key (node, k);

          g_assert_nonnull (child);
        }
      if (tensor != NULL)
        {
          /* reads all elements */
          g_autoptr (GBytes) elements = gtorch_tensor_get_bytes (tensor, NULL);

          g_assert_nonnull (elements);
          g_assert_nonnull (
              gtorch_checkpoint_file_get_location (checkpoint,
                                                   gtorch_checkpoint_node_get_storage_index (
                                                       node)));
        }
    }
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  static const gint64 numbers[4] = { 1, 2, 3, 4 };
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();
  g_autoptr (GTorchZipWriter) writer = gtorch_zip_writer_new ("fuzz", out);
  g_autoptr (GBytes) nothing = g_bytes_new (NULL, 0);
  g_autoptr (GBytes) pickle = g_bytes_new_static (data, size);
  g_autoptr (GBytes) storage = g_bytes_new_static (numbers, 16);
  g_autoptr (GBytes) archive = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCheckpointFile) checkpoint = NULL;

  gtorch_zip_writer_add (writer, "a/data.pkl", nothing, pickle, FALSE, NULL, NULL);
  gtorch_zip_writer_add (writer, "a/data/0", nothing, storage, FALSE, NULL, NULL);
  gtorch_zip_writer_add (writer, "a/data/1", nothing, storage, FALSE, NULL, NULL);
  gtorch_zip_writer_close (writer, NULL, NULL);
  g_output_stream_close (out, NULL, NULL);
  archive = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (out));
  checkpoint = gtorch_checkpoint_file_load_bytes (archive, 1 << 22, &error);
  g_assert_true ((checkpoint == NULL) == (error != NULL));
  if (checkpoint != NULL)
    {
      g_autoptr (GTorchTable) table = gtorch_checkpoint_file_get_tensors (checkpoint, NULL);

      walk (checkpoint);
    }
  else
    {
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
    }
  return 0;
}
