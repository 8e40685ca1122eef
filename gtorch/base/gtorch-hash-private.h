/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>
#include <string.h>

G_BEGIN_DECLS

/* Of a struct without gaps, of 64-bit words or of what fills them. */
static inline guint
gtorch_hash_words (gconstpointer words, gsize n_bytes)
{
  guint64 hash = 0, word;
  gsize i;

  for (i = 0; i < n_bytes; i += sizeof word)
    {
      memcpy (&word, (const char *) words + i, sizeof word);
      hash = (hash ^ word) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
    }
  return (guint) (hash >> 32);
}

G_END_DECLS
