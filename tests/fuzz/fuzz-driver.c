/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Runs a target on inputs that are mutated from its seeds, always the same ones. The suite runs some
 * thousand of them, also under the sanitizers; GTORCH_FUZZ_RUNS=n runs more, and GTORCH_FUZZ_SEED=n
 * others. Files named on the command line are run unchanged. Built with clang -fsanitize=fuzzer the
 * targets work without this file. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define MAX_SIZE  8192
#define POOL_SIZE 64

static const gchar *const words[] = {
  "0",
  "1",
  "-1",
  "2147483648",
  "4294967296",
  "9223372036854775807",
  "-9223372036854775808",
  "18446744073709551616",
  "[",
  "]",
  "{",
  "}",
  "\"",
  ",",
  ":",
  "...",
  "None",
  "True",
  "\\u0000",
  "\\ud800",
  "F64",
  "__metadata__",
  "\xff",
  "\xf0\x9f\x98\x80",
  " ",
};

static void
mutate (GByteArray *input, GPtrArray *pool, GRand *rand)
{
  guint n = g_rand_int_range (rand, 1, 6);

  while (n-- > 0)
    {
      guint at = input->len > 0 ? g_rand_int_range (rand, 0, input->len) : 0;
      guint rest = input->len - at;
      guint length = rest > 0 ? g_rand_int_range (rand, 0, MIN (rest, 32) + 1) : 0;

      switch (g_rand_int_range (rand, 0, 8))
        {
        case 0:
          if (rest > 0)
            input->data[at] ^= 1 << g_rand_int_range (rand, 0, 8);
          break;
        case 1:
          if (rest > 0)
            input->data[at] = g_rand_int (rand);
          break;
        case 2:
          if (length > 0)
            g_byte_array_remove_range (input, at, length);
          break;
        case 3: /* overwrites with a word, or inserts it */
        case 4:
          {
            const gchar *word = words[g_rand_int_range (rand, 0, G_N_ELEMENTS (words))];
            gsize size = strlen (word);
            guint before = input->len;

            if (g_rand_boolean (rand) || rest < size)
              {
                g_byte_array_set_size (input, before + size);
                memmove (input->data + at + size, input->data + at, rest);
              }
            memcpy (input->data + at, word, size);
          }
          break;
        case 5: /* duplicates a piece */
          if (length > 0)
            {
              g_autofree guint8 *piece = g_memdup2 (input->data + at, length);

              g_byte_array_append (input, piece, length);
            }
          break;
        case 6: /* appends the end of another input */
          {
            GByteArray *other = pool->pdata[g_rand_int_range (rand, 0, pool->len)];
            guint from = other->len > 0 ? g_rand_int_range (rand, 0, other->len) : 0;
            g_autofree guint8 *piece = g_memdup2 (other->data + from, other->len - from);

            g_byte_array_set_size (input, at);
            if (piece != NULL)
              g_byte_array_append (input, piece, other->len - from);
          }
          break;
        default: /* writes an extreme number of eight bytes */
          if (rest >= 8)
            {
              static const guint64 extremes[] = { 0,           1,
                                                  7,           G_MAXUINT64,
                                                  G_MAXINT64,  G_GUINT64_CONSTANT (1) << 63,
                                                  G_MAXUINT32, 100000001 };

              memcpy (input->data + at, &extremes[g_rand_int_range (rand, 0, 8)], 8);
            }
        }
      if (input->len > MAX_SIZE)
        g_byte_array_set_size (input, MAX_SIZE);
    }
}

static void
mutated_inputs_are_survived (void)
{
  const gchar *runs = g_getenv ("GTORCH_FUZZ_RUNS"), *seed = g_getenv ("GTORCH_FUZZ_SEED");
  guint64 n = runs != NULL ? g_ascii_strtoull (runs, NULL, 10) : 200000 / fuzz_weight;
  g_autoptr (GRand) rand =
      g_rand_new_with_seed (seed != NULL ? g_ascii_strtoull (seed, NULL, 10) : 42);
  g_autoptr (GPtrArray) pool = g_ptr_array_new_with_free_func ((GDestroyNotify) g_byte_array_unref);
  const FuzzSeed *s;

  for (s = fuzz_seeds; s->data != NULL; s++)
    {
      GByteArray *input = g_byte_array_new ();

      g_byte_array_append (input, (const guint8 *) s->data, s->size);
      g_ptr_array_add (pool, input);
      LLVMFuzzerTestOneInput (input->data, input->len);
    }
  while (n-- > 0)
    {
      guint pick = g_rand_int_range (rand, 0, pool->len);
      GByteArray *parent = pool->pdata[pick];
      GByteArray *input = g_byte_array_new ();
      g_autofree guint8 *exact = NULL;

      g_byte_array_append (input, parent->data, parent->len);
      mutate (input, pool, rand);
      /* its end is where the sanitizer detects overruns */
      exact = g_memdup2 (input->data, input->len);
      LLVMFuzzerTestOneInput (exact, input->len);
      if (pool->len < POOL_SIZE)
        g_ptr_array_add (pool, input);
      else if (pick >= (guint) (s - fuzz_seeds) && g_rand_int_range (rand, 0, 4) == 0)
        {
          g_byte_array_unref (pool->pdata[pick]);
          pool->pdata[pick] = input;
        }
      else
        g_byte_array_unref (input);
    }
}

int
main (int argc, char *argv[])
{
  g_autofree gchar *path = g_strconcat ("/GTorch/fuzz/", fuzz_name, NULL);
  int i;

  g_test_init (&argc, &argv, NULL);
  for (i = 1; i < argc; i++)
    {
      g_autofree gchar *data = NULL;
      gsize size;

      if (!g_file_get_contents (argv[i], &data, &size, NULL))
        return 1;
      LLVMFuzzerTestOneInput ((const guint8 *) data, size);
    }
  if (argc > 1)
    return 0;
  g_test_add_func (path, mutated_inputs_are_survived);
  return g_test_run ();
}
