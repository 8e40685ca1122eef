/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "text/gtorch-tokenizer-private.h"

typedef struct
{
  gsize offset;
  guint32 length; /* NO_TOKEN: nobody has the number */
  guint32 hash;
} Entry;

#define NO_TOKEN G_MAXUINT32

struct _GTorchVocab
{
  GString *text;   /* all tokens, each with a zero byte */
  GArray *entries; /* of Entry, by number */
  guint32 *slots;  /* a number and one, or 0 */
  guint32 mask;
  gint32 n_tokens;
  gsize longest;
};

/* FNV-1a, mixed at the end, because slots are chosen by its lowest bits. */
static guint32
hash (const gchar *text, gsize length)
{
  guint64 value = G_GUINT64_CONSTANT (0xcbf29ce484222325);

  for (gsize i = 0; i < length; i++)
    value = (value ^ (guchar) text[i]) * G_GUINT64_CONSTANT (0x100000001b3);
  return value ^ value >> 32 ^ value >> 47;
}

GTorchVocab *
gtorch_vocab_new (void)
{
  GTorchVocab *vocab = g_new0 (GTorchVocab, 1);

  vocab->text = g_string_new (NULL);
  vocab->entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  vocab->mask = 63;
  vocab->slots = g_new0 (guint32, 64);
  return vocab;
}

void
gtorch_vocab_free (GTorchVocab *vocab)
{
  g_string_free (vocab->text, TRUE);
  g_array_unref (vocab->entries);
  g_free (vocab->slots);
  g_free (vocab);
}

static guint32 *
find (const GTorchVocab *vocab, const gchar *text, gsize length, guint32 code)
{
  for (guint32 at = code & vocab->mask;; at = (at + 1) & vocab->mask)
    {
      const Entry *entry;

      if (vocab->slots[at] == 0)
        return &vocab->slots[at];
      entry = &g_array_index (vocab->entries, Entry, vocab->slots[at] - 1);
      if (entry->hash == code && entry->length == length
          && memcmp (vocab->text->str + entry->offset, text, length) == 0)
        return &vocab->slots[at];
    }
}

gint32
gtorch_vocab_lookup (const GTorchVocab *vocab, const gchar *text, gsize length)
{
  return (gint32) *find (vocab, text, length, hash (text, length)) - 1;
}

static void
grow (GTorchVocab *vocab)
{
  vocab->mask = vocab->mask * 2 + 1;
  g_free (vocab->slots);
  vocab->slots = g_new0 (guint32, (gsize) vocab->mask + 1);
  for (guint i = 0; i < vocab->entries->len; i++)
    {
      const Entry *entry = &g_array_index (vocab->entries, Entry, i);

      if (entry->length != NO_TOKEN)
        *find (vocab, vocab->text->str + entry->offset, entry->length, entry->hash) = i + 1;
    }
}

gboolean
gtorch_vocab_insert (GTorchVocab *vocab, const gchar *text, gsize length, gint32 id)
{
  static const Entry hole = { 0, NO_TOKEN, 0 };
  guint32 code = hash (text, length);
  guint32 *slot;
  Entry *entry;

  g_assert (id >= 0 && id < GTORCH_VOCAB_MAX_IDS && length < NO_TOKEN);
  if ((guint32) vocab->n_tokens * 2 > vocab->mask)
    grow (vocab);
  slot = find (vocab, text, length, code);
  if (*slot != 0)
    return FALSE;
  while (vocab->entries->len <= (guint) id)
    g_array_append_val (vocab->entries, hole);
  entry = &g_array_index (vocab->entries, Entry, id);
  if (entry->length != NO_TOKEN)
    return FALSE;
  *entry = (Entry){ vocab->text->len, length, code };
  g_string_append_len (vocab->text, text, length);
  g_string_append_c (vocab->text, '\0');
  *slot = id + 1;
  vocab->n_tokens++;
  vocab->longest = MAX (vocab->longest, length);
  return TRUE;
}

const gchar *
gtorch_vocab_get (const GTorchVocab *vocab, gint64 id, gsize *length)
{
  const Entry *entry;

  if (id < 0 || id >= vocab->entries->len)
    return NULL;
  entry = &g_array_index (vocab->entries, Entry, id);
  if (entry->length == NO_TOKEN)
    return NULL;
  if (length != NULL)
    *length = entry->length;
  return vocab->text->str + entry->offset;
}

gint32
gtorch_vocab_get_end (const GTorchVocab *vocab)
{
  return vocab->entries->len;
}

gint32
gtorch_vocab_get_n_tokens (const GTorchVocab *vocab)
{
  return vocab->n_tokens;
}

gsize
gtorch_vocab_get_longest (const GTorchVocab *vocab)
{
  return vocab->longest;
}
