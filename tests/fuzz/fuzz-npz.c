/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Archives as they are, and with the right check sums of stored members, behind which the arrays are. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <string.h>

#include "fuzz.h"
#include "io/gtorch-zip-private.h"

const gchar fuzz_name[] = "npz";
const guint fuzz_weight = 1;
const FuzzSeed fuzz_seeds[] = {
  /* clang-format off */
  FUZZ_SEED ("PK\005\006\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"),
  FUZZ_SEED ("PK\003\004\024\000\000\000\000\000\000\000!\000\234\014-/L\000\000\000L\000\000\000"
             "\005\000\000\000a.npy\223NUMPY\001\000:\000{'descr': '<f4', 'fortran_order': False,"
             " 'shape': (2,), }\n12345678PK\001\002\024\003\024\000\000\000\000\000\000\000!\000\234"
             "\014-/L\000\000\000L\000\000\000\005\000\000\000\000\000\000\000\000\000\000\000\200"
             "\001\000\000\000\000a.npyPK\005\006\000\000\000\000\001\000\001\0003\000\000\000o\000"
             "\000\000\000\000"),
  FUZZ_SEED ("PK\003\004\024\000\000\000\000\000\000\000!\000N|\261;C\000\000\000C\000\000\000\005"
             "\000\000\000a.npy\223NUMPY\003\0006\000\000\000{'shape': (), 'descr': '|b1', 'fortr"
             "an_order': False}\n\001PK\003\004\024\000\000\000\000\000\000\000!\000Kb\350oO\000\000"
             "\000O\000\000\000\005\000\000\000b.npy\223NUMPY\002\000;\000\000\000{'descr': '>i2'"
             ", 'fortran_order': True, 'shape': (2, 2), }\n12345678PK\001\002\024\003\024\000\000"
             "\000\000\000\000\000!\000N|\261;C\000\000\000C\000\000\000\005\000\000\000\000\000\000"
             "\000\000\000\000\000\200\001\000\000\000\000a.npyPK\001\002\024\003\024\000\000\000"
             "\000\000\000\000!\000Kb\350oO\000\000\000O\000\000\000\005\000\000\000\000\000\000\000"
             "\000\000\000\000\200\001f\000\000\000b.npyPK\005\006\000\000\000\000\002\000\002\000"
             "f\000\000\000\330\000\000\000\000\000"),
  FUZZ_SEED ("PK\003\004\024\000\000\000\010\000\000\000!\000AQ\333\236M\000\000\000V\000\000\000"
             "\005\000\000\000z.npy\233\354\027\352\033\020\311\310`\303P\255\236\222Z\234\\\244n"
             "\245\240n\223lh\246\256\243\240\236\226_TR\224\230\027\237_\224\222\n\222\010)*M\005"
             "\n\027g$\026\244\002\271\032\206:\n\206\232:\n\265\\\206F\306&\246f\346\0260\032\000"
             "PK\003\004\024\000\000\000\010\000\000\000!\000\234\014-/I\000\000\000L\000\000\000"
             "\005\000\000\000y.npy\233\354\027\352\033\020\311\310`\305P\255\236\222Z\234\\\244n"
             "\245\240n\223f\242\256\243\240\236\226_TR\224\230\027\237_\224\222\n\022wK\314)N\005"
             "\212\027g$\026\244\002\371\032F:\232:\n\265\\\206F\306&\246f\346\026\000PK\001\002\024"
             "\003\024\000\000\000\010\000\000\000!\000AQ\333\236M\000\000\000V\000\000\000\005\000"
             "\000\000\000\000\000\000\000\000\000\000\200\001\000\000\000\000z.npyPK\001\002\024"
             "\003\024\000\000\000\010\000\000\000!\000\234\014-/I\000\000\000L\000\000\000\005\000"
             "\000\000\000\000\000\000\000\000\000\000\200\001p\000\000\000y.npyPK\005\006\000\000"
             "\000\000\002\000\002\000f\000\000\000\334\000\000\000\000\000"),
  { NULL, 0 },
  /* clang-format on */
};

static guint32
get (const guint8 *at, guint n)
{
  guint32 value = 0;

  while (n-- > 0)
    value = value << 8 | at[n];
  return value;
}

/* Writes the sums of stored members into the directory. */
static void
mend (guint8 *data, gsize size)
{
  for (gsize i = 0; i + 46 <= size; i++)
    {
      gsize header, start, n;
      guint32 sum;

      if (memcmp (data + i, "PK\1\2", 4) != 0)
        continue;
      header = get (data + i + 42, 4);
      n = get (data + i + 20, 4);
      if (header > size || size - header < 30)
        continue;
      start = header + 30 + get (data + header + 26, 2) + get (data + header + 28, 2);
      if (start > size || n > size - start)
        continue;
      sum = GUINT32_TO_LE (gtorch_zip_crc (0, data + start, n));
      memcpy (data + i + 16, &sum, 4);
    }
}

static void
load (const guint8 *data, gsize size)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_bytes (bytes);
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) stream_error = NULL;
  g_autoptr (GTorchTable) table = gtorch_npz_load_bytes (bytes, 1 << 22, &error);
  g_autoptr (GTorchTable) streamed = gtorch_npz_load (stream, 1 << 22, NULL, &stream_error);
  g_autoptr (GOutputStream) out = NULL;

  g_assert_true ((table == NULL) == (error != NULL));
  g_assert_true ((table == NULL) == (streamed == NULL));
  if (table == NULL)
    {
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_cmpint (error->code, ==, stream_error->code);
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
      return;
    }
  out = g_memory_output_stream_new_resizable ();
  gtorch_npz_save (table, TRUE, out, NULL, &error);
  g_assert_no_error (error);
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autofree guint8 *copy = g_memdup2 (data, size);

  load (data, size);
  if (copy != NULL)
    {
      mend (copy, size);
      load (copy, size);
    }
  return 0;
}
