/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC11) and the
 * distributions made from it. A block of four words is computed from a key, the seed, and a counter of 128
 * bits, whose first and third words number the calls and whose other words number the blocks of one call.
 * The first round does not multiply the other words, so much of the first three rounds is the same for all
 * blocks.
 *
 * A 32-bit result takes one word: element i is word i % 4 of block i / 4. A 64-bit result takes two:
 * element i is words 2 (i % 2) and 2 (i % 2) + 1 of block i / 2. Two neighbouring elements of a normal
 * distribution share their words. All devices must give the same numbers, so the functions here consist of
 * single IEEE operations, and only those that every device fuses are fused. */

static inline void
gtorch_philox (guint64 seed, guint64 counter, guint64 block, guint32 words[4])
{
  guint32 c0 = (guint32) counter, c1 = (guint32) block;
  guint32 c2 = (guint32) (counter >> 32), c3 = (guint32) (block >> 32);
  guint32 k0 = (guint32) seed, k1 = (guint32) (seed >> 32);
  int i;

  for (i = 0; i < 10; i++)
    {
      guint64 p0 = (guint64) 0xD2511F53u * c0;
      guint64 p1 = (guint64) 0xCD9E8D57u * c2;

      c0 = (guint32) (p1 >> 32) ^ c1 ^ k0;
      c1 = (guint32) p1;
      c2 = (guint32) (p0 >> 32) ^ c3 ^ k1;
      c3 = (guint32) p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

G_END_DECLS
