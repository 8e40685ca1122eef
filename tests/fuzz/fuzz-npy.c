/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>

#include "fuzz.h"

#define MAGIC "\223NUMPY"

const gchar fuzz_name[] = "npy";
const guint fuzz_weight = 1;
const FuzzSeed fuzz_seeds[] = {
  /* clang-format off */
  FUZZ_SEED ("\223NUMPY\001\000:\000{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n12"
             "345678"),
  FUZZ_SEED ("\223NUMPY\002\000;\000\000\000{'descr': '>i2', 'fortran_order': True, 'shape': (2, "
             "2), }\n12345678"),
  FUZZ_SEED ("\223NUMPY\003\0006\000\000\000{'shape': (), 'descr': '|b1', 'fortran_order': False}"
             "\n\001"),
  FUZZ_SEED ("\223NUMPY\001\000<\000{'descr': '<c16', 'fortran_order': True, 'shape': (1, 1), }\n"
             "1234567812345678"),
  { NULL, 0 },
  /* clang-format on */
};

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_bytes (bytes);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor = gtorch_npy_load_bytes (bytes, &error);
  /* a stream may go on behind the array */
  g_autoptr (GTorchTensor) streamed = gtorch_npy_load (stream, 1 << 20, NULL, NULL);
  g_autoptr (GOutputStream) out = NULL;
  g_autoptr (GBytes) saved = NULL;
  g_autoptr (GTorchTensor) again = NULL;
  g_autoptr (GBytes) one = NULL;
  g_autoptr (GBytes) other = NULL;

  g_assert_true ((tensor == NULL) == (error != NULL));
  if (tensor == NULL)
    {
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
      if (streamed != NULL)
        g_free (gtorch_tensor_to_string (streamed));
      return 0;
    }
  g_assert_nonnull (streamed);
  out = g_memory_output_stream_new_resizable ();
  gtorch_npy_save (tensor, out, NULL, &error);
  g_assert_no_error (error);
  g_output_stream_close (out, NULL, NULL);
  saved = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (out));
  again = gtorch_npy_load_bytes (saved, &error);
  g_assert_no_error (error);
  one = gtorch_tensor_get_bytes (streamed, NULL);
  other = gtorch_tensor_get_bytes (again, NULL);
  g_assert_true (g_bytes_equal (one, other));
  return 0;
}
