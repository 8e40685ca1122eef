/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>

#include "fuzz.h"

const gchar fuzz_name[] = "names";
const guint fuzz_weight = 1;
const FuzzSeed fuzz_seeds[] = {
  FUZZ_SEED ("float32"), FUZZ_SEED ("bfloat16"), FUZZ_SEED ("long"),
  FUZZ_SEED ("cpu"),     FUZZ_SEED ("cuda:0"),   FUZZ_SEED ("cpu:1"),
  FUZZ_SEED ("cuda:"),   FUZZ_SEED ("\xff"),     { NULL, 0 },
};

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autofree gchar *name = g_strndup (size > 0 ? (const gchar *) data : "", size);
  g_autoptr (GError) dtype_error = NULL;
  g_autoptr (GError) device_error = NULL;
  GTorchDType dtype = gtorch_dtype_from_name (name, &dtype_error);
  g_autoptr (GTorchDevice) device = gtorch_device_new_from_string (name, &device_error);

  g_assert_true ((dtype == GTORCH_DTYPE_NONE) == (dtype_error != NULL));
  g_assert_true ((device == NULL) == (device_error != NULL));
  /* bindings make strings of messages, whatever was in the names */
  g_assert_true (dtype_error == NULL || g_utf8_validate (dtype_error->message, -1, NULL));
  g_assert_true (device_error == NULL || g_utf8_validate (device_error->message, -1, NULL));
  return 0;
}
