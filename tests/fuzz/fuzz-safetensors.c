/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>

#include "fuzz.h"

#define A   "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define B   "\"b\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[8,9]}"
#define NUL "\0\0\0\0\0\0\0"

const gchar fuzz_name[] = "safetensors";
const guint fuzz_weight = 2;
const FuzzSeed fuzz_seeds[] = {
  FUZZ_SEED ("\2" NUL "{}"),
  FUZZ_SEED ("\100" NUL "{" A "}        12345678"),
  FUZZ_SEED ("\200" NUL "{" A "," B "}                123456781"),
  FUZZ_SEED ("\260" NUL "{\"__metadata__\":{\"k\\n\":\"v\\u00e9\\ud83d\\ude00\"}," A "," B
             "}                      12345678\1"),
  { NULL, 0 },
};

static void
check (GHashTable *tensors, GHashTable *metadata)
{
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GHashTable) again = NULL;
  g_autoptr (GError) error = NULL;
  GHashTableIter iter;
  gpointer tensor;

  g_hash_table_iter_init (&iter, tensors);
  while (g_hash_table_iter_next (&iter, NULL, &tensor))
    g_free (gtorch_tensor_to_string (tensor));
  /* Accepted tensors can be saved, and the saved file can be loaded. */
  gtorch_safetensors_save (tensors, metadata, out, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_output_stream_close (out, NULL, NULL);
  bytes = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (out));
  again = gtorch_safetensors_load_bytes (bytes, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_hash_table_size (again), ==, g_hash_table_size (tensors));
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_bytes (bytes);
  g_autoptr (GHashTable) metadata = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) stream_error = NULL;
  g_autoptr (GHashTable) tensors = gtorch_safetensors_load_bytes (bytes, &metadata, &error);
  g_autoptr (GHashTable) streamed =
      gtorch_safetensors_load (stream, NULL, NULL, NULL, NULL, NULL, &stream_error);

  g_assert_true ((tensors == NULL) == (error != NULL));
  g_assert_true ((streamed == NULL) == (tensors == NULL));
  if (error != NULL)
    {
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_cmpint (error->code, ==, stream_error->code);
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
    }
  else
    check (tensors, metadata);
  return 0;
}
