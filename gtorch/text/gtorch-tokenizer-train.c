/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Byte-level BPE from texts: the most frequent pair of neighbours becomes a token, again and again.
 *
 * Words are counted first, and each is looked at once, however often it occurs. A table has each pair with
 * its number of occurrences and the words where it was seen; a heap has the pairs by that number, and of
 * equal ones the one with the lower tokens first, so that the result does not depend on the order of words.
 * Numbers in the heap may be too high; that is seen when a pair is taken, and it goes back with its present
 * number. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-task-private.h"
#include "text/gtorch-tokenizer-private.h"

typedef struct
{
  guint32 begin, length; /* in the symbols */
  gint64 count;
} Word;

typedef struct
{
  guint64 pair;
  gint64 count;
  GArray *words; /* guint32; some may not have the pair any more */
} Pair;

typedef struct
{
  gint64 count;
  guint64 pair;
} Candidate;

typedef struct
{
  GTorchVocab *tokens;
  GTorchVocab *seen; /* texts of words */
  GArray *words;     /* of Word */
  GArray *symbols;   /* gint32 */
  GArray *pairs;     /* of Pair */
  guint32 *slots;    /* of a hash table: the place of a pair and one, or 0 */
  guint32 mask;
  GArray *heap;   /* of Candidate */
  GArray *merges; /* guint64 */
} Trainer;

static guint64
pair_of (gint32 a, gint32 b)
{
  return (guint64) (guint32) a << 32 | (guint32) b;
}

static void
pair_clear (gpointer data)
{
  g_clear_pointer (&((Pair *) data)->words, g_array_unref);
}

static void
trainer_init (Trainer *trainer)
{
  trainer->tokens = gtorch_vocab_new ();
  trainer->seen = gtorch_vocab_new ();
  trainer->words = g_array_new (FALSE, FALSE, sizeof (Word));
  trainer->symbols = g_array_new (FALSE, FALSE, sizeof (gint32));
  trainer->pairs = g_array_new (FALSE, FALSE, sizeof (Pair));
  g_array_set_clear_func (trainer->pairs, pair_clear);
  trainer->mask = 1023;
  trainer->slots = g_new0 (guint32, 1024);
  trainer->heap = g_array_new (FALSE, FALSE, sizeof (Candidate));
  trainer->merges = g_array_new (FALSE, FALSE, sizeof (guint64));
}

static void
trainer_clear (Trainer *trainer)
{
  gtorch_vocab_free (trainer->tokens);
  gtorch_vocab_free (trainer->seen);
  g_array_unref (trainer->words);
  g_array_unref (trainer->symbols);
  g_array_unref (trainer->pairs);
  g_free (trainer->slots);
  g_array_unref (trainer->heap);
  g_array_unref (trainer->merges);
}

/* --- words --- */

static gboolean
count_words (Trainer *trainer, const gchar *text, const GArray *pre_tokenizers,
             GTorchPieces *pieces, GError **error)
{
  if (!gtorch_pre_tokenize (pre_tokenizers, text, strlen (text), pieces, error))
    return FALSE;
  for (guint i = 0; i < pieces->pieces->len; i++)
    {
      const GTorchPiece *piece = &g_array_index (pieces->pieces, GTorchPiece, i);
      const gchar *at = pieces->text->str + piece->begin, *end = pieces->text->str + piece->end;
      gint32 known = gtorch_vocab_lookup (trainer->seen, at, end - at);
      Word word = { trainer->symbols->len, 0, 1 };

      if (known >= 0)
        {
          g_array_index (trainer->words, Word, known).count++;
          continue;
        }
      if (trainer->words->len == GTORCH_VOCAB_MAX_IDS || end - at > G_MAXINT32 / 2
          || trainer->symbols->len > G_MAXUINT32 / 8)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("train_bpe: the texts have more than %u different words, or very long "
                          "ones"),
                       trainer->words->len);
          return FALSE;
        }
      gtorch_vocab_insert (trainer->seen, at, end - at, trainer->words->len);
      for (; at < end; at = g_utf8_next_char (at))
        {
          gint32 id = gtorch_vocab_lookup (trainer->tokens, at, g_utf8_next_char (at) - at);

          g_array_append_val (trainer->symbols, id);
          word.length++;
        }
      g_array_append_val (trainer->words, word);
    }
  return TRUE;
}

/* --- pairs --- */

static Pair *
find_pair (Trainer *trainer, guint64 pair)
{
  guint64 code = pair * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15) >> 32;
  Pair new_pair = { pair, 0, NULL };

  for (guint32 at = code & trainer->mask;; at = (at + 1) & trainer->mask)
    {
      Pair *found;

      if (trainer->slots[at] == 0)
        {
          g_array_append_val (trainer->pairs, new_pair);
          trainer->slots[at] = trainer->pairs->len;
          break;
        }
      found = &g_array_index (trainer->pairs, Pair, trainer->slots[at] - 1);
      if (found->pair == pair)
        return found;
    }
  if (trainer->pairs->len > trainer->mask / 2)
    {
      trainer->mask = trainer->mask * 2 + 1;
      g_free (trainer->slots);
      trainer->slots = g_new0 (guint32, (gsize) trainer->mask + 1);
      for (guint i = 0; i < trainer->pairs->len; i++)
        {
          guint32 at = (g_array_index (trainer->pairs, Pair, i).pair
                        * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15))
                           >> 32
                       & trainer->mask;

          while (trainer->slots[at] != 0)
            at = (at + 1) & trainer->mask;
          trainer->slots[at] = i + 1;
        }
    }
  return &g_array_index (trainer->pairs, Pair, trainer->pairs->len - 1);
}

static gboolean
comes_before (const Candidate *a, const Candidate *b)
{
  return a->count != b->count ? a->count > b->count : a->pair < b->pair;
}

static void
heap_push (GArray *heap, Candidate candidate)
{
  Candidate *items;
  guint at = heap->len;

  g_array_append_val (heap, candidate);
  items = (Candidate *) heap->data;
  for (; at > 0 && comes_before (&candidate, &items[(at - 1) / 2]); at = (at - 1) / 2)
    items[at] = items[(at - 1) / 2];
  items[at] = candidate;
}

static Candidate
heap_pop (GArray *heap)
{
  Candidate *items = (Candidate *) heap->data;
  Candidate result = items[0], last = items[heap->len - 1];
  guint n = heap->len - 1, at = 0;

  g_array_set_size (heap, n);
  for (guint child = 1; child < n; child = at * 2 + 1)
    {
      if (child + 1 < n && comes_before (&items[child + 1], &items[child]))
        child++;
      if (!comes_before (&items[child], &last))
        break;
      items[at] = items[child];
      at = child;
    }
  if (n > 0)
    items[at] = last;
  return result;
}

/* `changed` collects pairs that were seen at new places, each once for a merge. */
static void
change_pair (Trainer *trainer, guint64 pair, gint64 change, guint32 word, GArray *changed)
{
  Pair *found = find_pair (trainer, pair);

  found->count += change;
  if (change < 0)
    return;
  if (found->words == NULL)
    found->words = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (found->words->len == 0
      || g_array_index (found->words, guint32, found->words->len - 1) != word)
    g_array_append_val (found->words, word);
  if (changed != NULL
      && (changed->len == 0 || g_array_index (changed, guint64, changed->len - 1) != pair))
    g_array_append_val (changed, pair);
}

static void
count_pairs (Trainer *trainer)
{
  for (guint32 i = 0; i < trainer->words->len; i++)
    {
      const Word *word = &g_array_index (trainer->words, Word, i);
      const gint32 *symbols = &g_array_index (trainer->symbols, gint32, word->begin);

      for (guint32 j = 0; j + 1 < word->length; j++)
        change_pair (trainer, pair_of (symbols[j], symbols[j + 1]), word->count, i, NULL);
    }
  for (guint i = 0; i < trainer->pairs->len; i++)
    {
      const Pair *pair = &g_array_index (trainer->pairs, Pair, i);

      heap_push (trainer->heap, (Candidate){ pair->count, pair->pair });
    }
}

static void
merge_in_word (Trainer *trainer, guint32 i, gint32 a, gint32 b, gint32 merged, GArray *changed)
{
  Word *word = &g_array_index (trainer->words, Word, i);
  gint32 *symbols = &g_array_index (trainer->symbols, gint32, word->begin);
  guint32 n = 0;

  for (guint32 j = 0; j < word->length; j++)
    {
      if (symbols[j] != a || j + 1 == word->length || symbols[j + 1] != b)
        {
          symbols[n++] = symbols[j];
          continue;
        }
      if (n > 0)
        {
          change_pair (trainer, pair_of (symbols[n - 1], a), -word->count, i, NULL);
          change_pair (trainer, pair_of (symbols[n - 1], merged), word->count, i, changed);
        }
      if (j + 2 < word->length)
        {
          change_pair (trainer, pair_of (b, symbols[j + 2]), -word->count, i, NULL);
          change_pair (trainer, pair_of (merged, symbols[j + 2]), word->count, i, changed);
        }
      symbols[n++] = merged;
      j++;
    }
  word->length = n;
}

static void
merge_everywhere (Trainer *trainer, guint64 pair, gint32 merged)
{
  g_autoptr (GArray) changed = g_array_new (FALSE, FALSE, sizeof (guint64));
  Pair *found = find_pair (trainer, pair);
  g_autoptr (GArray) words = g_steal_pointer (&found->words);

  for (guint i = 0; i < words->len; i++)
    merge_in_word (trainer, g_array_index (words, guint32, i), pair >> 32, pair & G_MAXUINT32,
                   merged, changed);
  find_pair (trainer, pair)->count = 0;
  for (guint i = 0; i < changed->len; i++)
    {
      guint64 other = g_array_index (changed, guint64, i);
      gint64 count = find_pair (trainer, other)->count;

      if (count > 0 && other != pair)
        heap_push (trainer->heap, (Candidate){ count, other });
    }
}

static gboolean
learn_merges (Trainer *trainer, gint64 vocab_size, gint64 min_frequency, GCancellable *cancellable,
              GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);

  while (gtorch_vocab_get_end (trainer->tokens) < vocab_size && trainer->heap->len > 0)
    {
      Candidate best = heap_pop (trainer->heap);
      gint64 count = find_pair (trainer, best.pair)->count;
      gint32 merged;

      if (count != best.count)
        {
          if (count > 0 && count < best.count)
            heap_push (trainer->heap, (Candidate){ count, best.pair });
          continue;
        }
      if (count < MAX (min_frequency, 1))
        break;
      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return FALSE;
      g_string_assign (text, gtorch_vocab_get (trainer->tokens, best.pair >> 32, NULL));
      g_string_append (text, gtorch_vocab_get (trainer->tokens, best.pair & G_MAXUINT32, NULL));
      merged = gtorch_vocab_lookup (trainer->tokens, text->str, text->len);
      if (merged < 0)
        {
          merged = gtorch_vocab_get_end (trainer->tokens);
          gtorch_vocab_insert (trainer->tokens, text->str, text->len, merged);
        }
      g_array_append_val (trainer->merges, best.pair);
      merge_everywhere (trainer, best.pair, merged);
    }
  return TRUE;
}

/* --- the result --- */

static void
write_token (GString *text, const Trainer *trainer, gint32 id)
{
  gsize length;
  const gchar *token = gtorch_vocab_get (trainer->tokens, id, &length);

  gtorch_json_write_string (text, token, length);
}

static GTorchTokenizer *
make_tokenizer (const Trainer *trainer, const gchar *const *special_tokens, const gchar *section,
                GError **error)
{
  g_autoptr (GString) text = g_string_new ("{\"version\":\"1.0\",\"added_tokens\":[");

  for (guint i = 0; special_tokens != NULL && special_tokens[i] != NULL; i++)
    {
      g_string_append_printf (text, "%s{\"id\":%u,\"special\":true,\"content\":", i > 0 ? "," : "",
                              i);
      gtorch_json_write_string (text, special_tokens[i], -1);
      g_string_append_c (text, '}');
    }
  g_string_append_printf (text,
                          "],\"pre_tokenizer\":%s,\"decoder\":%s,\"model\":{\"type\":\"BPE\","
                          "\"vocab\":{",
                          section, section);
  for (gint32 i = 0; i < gtorch_vocab_get_end (trainer->tokens); i++)
    {
      if (i > 0)
        g_string_append_c (text, ',');
      write_token (text, trainer, i);
      g_string_append_printf (text, ":%d", i);
    }
  g_string_append (text, "},\"merges\":[");
  for (guint i = 0; i < trainer->merges->len; i++)
    {
      guint64 pair = g_array_index (trainer->merges, guint64, i);

      g_string_append (text, i > 0 ? ",[" : "[");
      write_token (text, trainer, pair >> 32);
      g_string_append_c (text, ',');
      write_token (text, trainer, pair & G_MAXUINT32);
      g_string_append_c (text, ']');
    }
  g_string_append (text, "]}}");
  return gtorch_tokenizer_parse (text->str, text->len, error);
}

/* The special tokens, and the 256 characters that stand for bytes, in their order in Unicode. */
static gboolean
begin_vocab (Trainer *trainer, const gchar *const *special_tokens, GError **error)
{
  gint32 n = 0;

  for (guint i = 0; special_tokens != NULL && special_tokens[i] != NULL; i++, n++)
    {
      if (!gtorch_name_check ("train_bpe", special_tokens[i], error))
        return FALSE;
      if (*special_tokens[i] == '\0' || i == 65536
          || !gtorch_vocab_insert (trainer->tokens, special_tokens[i], strlen (special_tokens[i]),
                                   n))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("train_bpe: special_tokens[%u], “%s”, is empty, there twice, or one of "
                          "more than 65536"),
                       i, gtorch_name_str (special_tokens[i]));
          return FALSE;
        }
    }
  for (gunichar c = 0; c < 512; c++)
    {
      gchar text[6];

      if (gtorch_char_byte (c) >= 0
          && gtorch_vocab_insert (trainer->tokens, text, g_unichar_to_utf8 (c, text), n))
        n++;
    }
  return TRUE;
}

static GTorchTokenizer *
train (Trainer *trainer, const gchar *const *texts, gint64 vocab_size, gint64 min_frequency,
       const gchar *const *special_tokens, gboolean add_prefix_space, GCancellable *cancellable,
       GError **error)
{
  g_autofree gchar *section =
      g_strdup_printf ("{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,"
                       "\"use_regex\":true}",
                       add_prefix_space ? "true" : "false");
  g_autoptr (GTorchJson) json = gtorch_json_parse ("train_bpe", section, strlen (section), NULL);
  g_autoptr (GArray) steps =
      gtorch_steps_parse ("pre_tokenizer", gtorch_json_get_root (json), NULL);
  GTorchPieces pieces;
  gboolean is_done = TRUE;

  if (!begin_vocab (trainer, special_tokens, error))
    return NULL;
  if (vocab_size < gtorch_vocab_get_end (trainer->tokens) || vocab_size > GTORCH_VOCAB_MAX_IDS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("train_bpe: vocab_size %" PRId64
                      " is not between the number of bytes and special tokens, %d, and %d"),
                   vocab_size, gtorch_vocab_get_end (trainer->tokens), GTORCH_VOCAB_MAX_IDS);
      return NULL;
    }
  gtorch_pieces_init (&pieces);
  for (guint i = 0; is_done && texts[i] != NULL; i++)
    is_done = !g_cancellable_set_error_if_cancelled (cancellable, error)
              && gtorch_name_check ("train_bpe", texts[i], error)
              && count_words (trainer, texts[i], steps, &pieces, error);
  gtorch_pieces_clear (&pieces);
  if (!is_done)
    return NULL;
  count_pairs (trainer);
  if (!learn_merges (trainer, vocab_size, min_frequency, cancellable, error))
    return NULL;
  return make_tokenizer (trainer, special_tokens, section, error);
}

/**
 * gtorch_tokenizer_train_bpe:
 * @texts: (array zero-terminated=1): texts
 * @vocab_size: how many tokens there may be, at least 256 and the special ones
 * @min_frequency: how often a pair must occur to become a token
 * @special_tokens: (nullable) (array zero-terminated=1): tokens that are never split, which get the lowest
 * numbers
 * @add_prefix_space: whether a blank is put before each text
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Makes a tokenizer of GPT-2's kind, byte-level BPE, from texts.
 *
 * It begins with the 256 bytes, so it has tokens for any text, and makes the most frequent pair a token
 * until there are @vocab_size, or no pair is frequent enough. The same texts give the same tokens, in any
 * order.
 *
 * Fails with %GTORCH_ERROR_INVALID for a size that is too small or over 4194304, for a text that is not
 * UTF-8, and for special tokens that are empty or given twice.
 *
 * Returns: (transfer full): a new tokenizer, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTokenizer *
gtorch_tokenizer_train_bpe (const gchar *const *texts, gint64 vocab_size, gint64 min_frequency,
                            const gchar *const *special_tokens, gboolean add_prefix_space,
                            GCancellable *cancellable, GError **error)
{
  GTorchTokenizer *tokenizer;
  Trainer trainer;

  g_return_val_if_fail (texts != NULL, NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  trainer_init (&trainer);
  tokenizer = train (&trainer, texts, vocab_size, min_frequency, special_tokens, add_prefix_space,
                     cancellable, error);
  trainer_clear (&trainer);
  return tokenizer;
}

/* --- in another thread --- */

typedef struct
{
  gchar **texts, **special_tokens;
  gint64 vocab_size, min_frequency;
  gboolean add_prefix_space;
} Training;

static void
training_free (gpointer data)
{
  Training *training = data;

  g_strfreev (training->texts);
  g_strfreev (training->special_tokens);
  g_free (training);
}

static void
train_in_thread (GTask *task, gpointer source_object, gpointer data, GCancellable *cancellable)
{
  const Training *training = data;
  GError *error = NULL;
  GTorchTokenizer *tokenizer =
      gtorch_tokenizer_train_bpe ((const gchar *const *) training->texts, training->vocab_size,
                                  training->min_frequency,
                                  (const gchar *const *) training->special_tokens,
                                  training->add_prefix_space, cancellable, &error);

  if (tokenizer != NULL)
    g_task_return_pointer (task, tokenizer, g_object_unref);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_tokenizer_train_bpe_async:
 * @texts: (array zero-terminated=1): texts, which are copied
 * @vocab_size: how many tokens there may be, at least 256 and the special ones
 * @min_frequency: how often a pair must occur to become a token
 * @special_tokens: (nullable) (array zero-terminated=1): tokens that are never split, which get the lowest
 * numbers
 * @add_prefix_space: whether a blank is put before each text
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Makes a tokenizer from texts in another thread; see [func@Tokenizer.train_bpe].
 *
 * Since: 0.1
 */
void
gtorch_tokenizer_train_bpe_async (const gchar *const *texts, gint64 vocab_size,
                                  gint64 min_frequency, const gchar *const *special_tokens,
                                  gboolean add_prefix_space, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  Training *training;

  g_return_if_fail (texts != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  training = g_new0 (Training, 1);
  training->texts = g_strdupv ((gchar **) texts);
  training->special_tokens = g_strdupv ((gchar **) special_tokens);
  training->vocab_size = vocab_size;
  training->min_frequency = min_frequency;
  training->add_prefix_space = add_prefix_space;
  task = gtorch_task_new (NULL, gtorch_tokenizer_train_bpe_async, cancellable, callback, user_data);
  g_task_set_task_data (task, training, training_free);
  g_task_run_in_thread (task, train_in_thread);
}

/**
 * gtorch_tokenizer_train_bpe_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@Tokenizer.train_bpe_async].
 *
 * Returns: (transfer full): a new tokenizer, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTokenizer *
gtorch_tokenizer_train_bpe_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_tokenizer_train_bpe_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}
