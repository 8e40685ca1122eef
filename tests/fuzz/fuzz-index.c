/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>
#include <string.h>

#include "fuzz.h"

const gchar fuzz_name[] = "index";
const guint fuzz_weight = 2;
const FuzzSeed fuzz_seeds[] = {
  FUZZ_SEED ("0, 1:3, ..., None, ::2"), FUZZ_SEED ("-1"), FUZZ_SEED (":, -2:, 4:0:1"),
  FUZZ_SEED ("True, ..., 2"),           FUZZ_SEED (""),   { NULL, 0 },
};

static GTorchTensor *
new_tensor (void)
{
  g_autoptr (GTorchTensor) range = gtorch_arange (0, 60, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);

  return gtorch_tensor_reshape (range, GTORCH_SHAPE (4, 3, 5), NULL);
}

static void
by_text (GTorchTensor *tensor, const gchar *spec)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) set_error = NULL;
  g_autoptr (GTorchTensor) part = gtorch_tensor_get (tensor, spec, &error);

  g_assert_true ((part == NULL) == (error != NULL));
  if (part != NULL && gtorch_tensor_get_numel (part) < 4096)
    g_free (gtorch_tensor_to_string (part));
  g_assert_true ((gtorch_tensor_set_scalar (tensor, spec, 1.5, &set_error) == NULL)
                 == (set_error != NULL));
}

static void
by_items (GTorchTensor *tensor, const guint8 *data, gsize size)
{
  gsize n = size / 4 * 4, i;
  g_autofree gint64 *items = g_new (gint64, MAX (n, 1));
  const gint64 places[] = { 0, 2, -1 };
  g_autoptr (GTorchTensor) list =
      gtorch_tensor_new_from_ints (places, 3, GTORCH_SHAPE (3), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) part = NULL;
  g_autoptr (GError) error = NULL;

  for (i = 0; i < n; i++)
    items[i] = i % 4 == 0 ? data[i] % 8
                          : (data[i] == 0x7f   ? G_MAXINT64
                             : data[i] == 0x80 ? G_MININT64
                                               : (gint8) data[i]);
  part = gtorch_tensor_index (tensor, items, n, &list, 1, &error);
  g_assert_true ((part == NULL) == (error != NULL));
  if (part != NULL && gtorch_tensor_get_numel (part) < 4096)
    g_free (gtorch_tensor_to_string (part));
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autofree gchar *spec = g_strndup (size > 0 ? (const gchar *) data : "", size);
  g_autoptr (GTorchTensor) tensor = new_tensor ();

  by_text (tensor, spec);
  by_items (tensor, data, MIN (size, 64));
  return 0;
}
