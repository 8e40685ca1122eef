/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Readers of files and what they give, shared memory and handles, to pass to functions. */

#include "config.h"

#include <gio/gio.h>

#include "refuse.h"

static GTorchTable *
table_new (void)
{
  g_autoptr (GTorchTensor) tensor =
      gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_NONE, NULL, NULL);
  GTorchTable *table = gtorch_table_new ();

  gtorch_table_add (table, "ones", tensor, NULL);
  return table;
}

gpointer
refuse_make_file_object (const gchar *type)
{
  if (g_str_equal (type, "GApplication"))
    return g_application_new (NULL, 0);
  if (g_str_equal (type, "GFile"))
    return g_file_new_for_path ("/proc/nowhere/to/be/found");
  if (g_str_equal (type, "GTorchTable"))
    return table_new ();
  if (g_str_equal (type, "GTorchSharedMemory"))
    {
      GTorchSharedMemory *memory = gtorch_shared_memory_new (64, NULL);

      gtorch_shared_memory_hold (memory); /* which the release ends */
      return memory;
    }
  if (g_str_equal (type, "GTorchTensorHandle"))
    {
      g_autoptr (GTorchTensor) tensor =
          gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_NONE, gtorch_device_cpu (), NULL);

      return gtorch_tensor_handle_new (tensor, NULL);
    }
  if (g_str_equal (type, "GTorchCSVReader"))
    {
      g_autoptr (GInputStream) stream =
          g_memory_input_stream_new_from_data ("a,b\n1,2\n", -1, NULL);

      return gtorch_csv_reader_new (stream);
    }
  if (g_str_equal (type, "GTorchCheckpointWriter"))
    {
      GTorchCheckpointWriter *writer = gtorch_checkpoint_writer_new ();

      for (guint i = 0; i < 8; i++) /* whichever number a function gets */
        gtorch_checkpoint_writer_add_container (writer, GTORCH_CHECKPOINT_KIND_LIST, NULL, 0, NULL);
      return writer;
    }
  /* without content: only files have some */
  if (g_str_equal (type, "GTorchCheckpointFile"))
    return g_object_new (GTORCH_TYPE_CHECKPOINT_FILE, NULL);
  if (g_str_equal (type, "GTorchCheckpointNode"))
    return g_object_new (GTORCH_TYPE_CHECKPOINT_NODE, NULL);
  if (g_str_equal (type, "GTorchArrowReader"))
    return g_object_new (GTORCH_TYPE_ARROW_READER, NULL);
  return NULL;
}
