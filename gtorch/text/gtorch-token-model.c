/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Byte pairs (BPE), longest pieces first (WordPiece) and whole words (WordLevel).
 *
 * BPE begins with the characters of a word and merges, again and again, the pair of neighbours that comes
 * first in the list of merges, the leftmost one of several. A heap has all pairs that can be merged; one
 * that is out of date when it is taken is dropped. So a word of n characters takes n log n steps, and one
 * of a megabyte, too. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "text/gtorch-tokenizer-private.h"

typedef struct
{
  guint64 pair; /* two numbers; NO_PAIR: nothing is here */
  gint32 rank;
  gint32 id; /* of what the pair becomes */
} Merge;

#define NO_PAIR   G_MAXUINT64
#define MAX_KNOWN 65536 /* words that are kept while one text, or one part of a batch, is encoded */

struct _GTorchTokenModel
{
  GTorchTokenModelKind kind;
  GTorchVocab *vocab;
  gchar *unk_token;
  gint32 unk_id;          /* -1 if it has no number */
  gchar *prefix, *suffix; /* of parts that continue a word; of the last one. NULL for none */
  gint64 max_chars;
  gboolean fuse_unk, byte_fallback, ignore_merges;
  gint32 bytes[256]; /* the tokens <0x00> to <0xFF>, or -1 */
  gint32 chars
      [512]; /* of the first characters of Unicode, those of byte-level vocabularies among them */
  Merge *merges; /* a hash table */
  guint32 mask;
  GArray *pairs; /* guint64, by rank */
};

static guint64
pair_of (gint32 a, gint32 b)
{
  return (guint64) (guint32) a << 32 | (guint32) b;
}

static Merge *
find_merge (const GTorchTokenModel *model, guint64 pair)
{
  guint64 code = pair * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);

  for (guint32 at = (code >> 32) & model->mask;; at = (at + 1) & model->mask)
    if (model->merges[at].pair == pair || model->merges[at].pair == NO_PAIR)
      return &model->merges[at];
}

/* --- reading --- */

static gboolean
fail (GError **error, const gchar *rule, const gchar *token)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, "tokenizer: model: “%s”: %s",
               gtorch_name_str (token), rule);
  return FALSE;
}

static gboolean
parse_vocab (GTorchTokenModel *model, const GTorchJsonNode *node, GError **error)
{
  const GTorchJsonNode *vocab = gtorch_json_lookup (node, "vocab");

  if (vocab == NULL || vocab->kind != GTORCH_JSON_OBJECT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("tokenizer: model: vocab is %s, but must be an object"),
                   gtorch_json_kind_name (vocab));
      return FALSE;
    }
  for (const GTorchJsonNode *token = vocab->first; token != NULL; token = token->next)
    {
      if (token->kind != GTORCH_JSON_NUMBER || !token->is_integer || token->integer < 0
          || token->integer >= GTORCH_VOCAB_MAX_IDS)
        return fail (error, _ ("the number of a token must be an integer from 0 to 4194303"),
                     token->key);
      if (!gtorch_vocab_insert (model->vocab, token->key, strlen (token->key), token->integer))
        return fail (error, _ ("the token, or its number, is there twice"), token->key);
    }
  return TRUE;
}

/* "a b", or in newer files ["a", "b"]. */
static gboolean
parse_merge (const GTorchJsonNode *node, const gchar **a, gsize *n_a, const gchar **b)
{
  const gchar *blank;

  if (node->kind == GTORCH_JSON_ARRAY)
    {
      if (node->n_children != 2 || node->first->kind != GTORCH_JSON_STRING
          || node->first->next->kind != GTORCH_JSON_STRING)
        return FALSE;
      *a = node->first->string;
      *n_a = strlen (*a);
      *b = node->first->next->string;
      return TRUE;
    }
  if (node->kind != GTORCH_JSON_STRING || (blank = strchr (node->string, ' ')) == NULL
      || strchr (blank + 1, ' ') != NULL)
    return FALSE;
  *a = node->string;
  *n_a = blank - node->string;
  *b = blank + 1;
  return TRUE;
}

static gboolean
parse_merges (GTorchTokenModel *model, const GTorchJsonNode *node, GError **error)
{
  const GTorchJsonNode *merges = gtorch_json_lookup (node, "merges");
  gsize n_prefix = model->prefix != NULL ? strlen (model->prefix) : 0;
  g_autoptr (GString) whole = g_string_new (NULL);
  gint32 rank = 0;

  if (merges == NULL || merges->kind != GTORCH_JSON_ARRAY)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("tokenizer: model: merges is %s, but must be an array"),
                   gtorch_json_kind_name (merges));
      return FALSE;
    }
  for (model->mask = 15; model->mask < merges->n_children * (guint64) 2;)
    model->mask = model->mask * 2 + 1;
  model->merges = g_new (Merge, (gsize) model->mask + 1);
  for (guint64 i = 0; i <= model->mask; i++)
    model->merges[i].pair = NO_PAIR;
  for (const GTorchJsonNode *item = merges->first; item != NULL; item = item->next, rank++)
    {
      const gchar *a, *b;
      gsize n_a;
      gint32 id_a, id_b, id;
      guint64 pair;
      Merge *merge;

      if (!parse_merge (item, &a, &n_a, &b))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("tokenizer: model: merge %d is not two tokens with one blank between"),
                       rank);
          return FALSE;
        }
      id_a = gtorch_vocab_lookup (model->vocab, a, n_a);
      id_b = gtorch_vocab_lookup (model->vocab, b, strlen (b));
      g_string_truncate (whole, 0);
      g_string_append_len (whole, a, n_a);
      g_string_append (whole, strlen (b) >= n_prefix ? b + n_prefix : b);
      id = gtorch_vocab_lookup (model->vocab, whole->str, whole->len);
      if (id_a < 0 || id_b < 0 || id < 0)
        {
          g_autofree gchar *first = g_strndup (a, n_a);

          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("tokenizer: model: merge %d: the token “%s” is not in the vocabulary"),
                       rank,
                       gtorch_name_str (id < 0     ? whole->str
                                        : id_b < 0 ? b
                                                   : first));
          return FALSE;
        }
      pair = pair_of (id_a, id_b);
      g_array_append_val (model->pairs, pair);
      merge = find_merge (model, pair);
      *merge = (Merge){ pair, rank, id }; /* of two equal ones the last counts, as in tokenizers */
    }
  return TRUE;
}

static gboolean
get_string (const GTorchJsonNode *node, const gchar *key, gchar **value, GError **error)
{
  const GTorchJsonNode *member = gtorch_json_lookup (node, key);

  if (member == NULL)
    return TRUE;
  if (member->kind != GTORCH_JSON_STRING)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("tokenizer: model: “%s” is %s, but must be a string"), key,
                   gtorch_json_kind_name (member));
      return FALSE;
    }
  *value = g_strdup (member->string);
  return TRUE;
}

static gboolean
is_true (const GTorchJsonNode *node, const gchar *key)
{
  const GTorchJsonNode *member = gtorch_json_lookup (node, key);

  return member != NULL && member->kind == GTORCH_JSON_TRUE;
}

static gboolean
parse_model (GTorchTokenModel *model, const GTorchJsonNode *node, GError **error)
{
  const GTorchJsonNode *type = gtorch_json_lookup (node, "type");
  const GTorchJsonNode *number;
  const gchar *name = type != NULL && type->kind == GTORCH_JSON_STRING ? type->string : NULL;

  /* Old files have no type. */
  if (name == NULL)
    name = gtorch_json_lookup (node, "merges") != NULL ? "BPE" : "WordPiece";
  if (strcmp (name, "BPE") == 0)
    model->kind = GTORCH_TOKEN_MODEL_BPE;
  else if (strcmp (name, "WordPiece") == 0)
    model->kind = GTORCH_TOKEN_MODEL_WORDPIECE;
  else if (strcmp (name, "WordLevel") == 0)
    model->kind = GTORCH_TOKEN_MODEL_WORDLEVEL;
  else
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("tokenizer: model: “%s” is not supported; BPE, WordPiece and WordLevel are"),
                   gtorch_name_str (name));
      return FALSE;
    }
  number = gtorch_json_lookup (node, "dropout");
  if (number != NULL && !(number->kind == GTORCH_JSON_NUMBER && number->number == 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("tokenizer: model: dropout is not supported"));
      return FALSE;
    }
  model->max_chars = 100;
  number = gtorch_json_lookup (node, "max_input_chars_per_word");
  if (number != NULL)
    {
      if (number->kind != GTORCH_JSON_NUMBER || !number->is_integer || number->integer < 0)
        return fail (error, _ ("it must be an integer from 0 on"), "max_input_chars_per_word");
      model->max_chars = number->integer;
    }
  if (!get_string (node, "unk_token", &model->unk_token, error)
      || !get_string (node, "continuing_subword_prefix", &model->prefix, error)
      || !get_string (node, "end_of_word_suffix", &model->suffix, error)
      || !parse_vocab (model, node, error))
    return FALSE;
  if (model->kind == GTORCH_TOKEN_MODEL_WORDPIECE && model->prefix == NULL)
    model->prefix = g_strdup ("##");
  model->fuse_unk = is_true (node, "fuse_unk");
  model->byte_fallback = is_true (node, "byte_fallback");
  model->ignore_merges = is_true (node, "ignore_merges");
  model->unk_id = model->unk_token != NULL ? gtorch_vocab_lookup (model->vocab, model->unk_token,
                                                                  strlen (model->unk_token))
                                           : -1;
  return model->kind != GTORCH_TOKEN_MODEL_BPE || parse_merges (model, node, error);
}

GTorchTokenModel *
gtorch_token_model_parse (const GTorchJsonNode *node, GError **error)
{
  GTorchTokenModel *model;
  gchar text[8];

  if (node == NULL || node->kind != GTORCH_JSON_OBJECT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("tokenizer: model is %s, but must be an object"),
                   gtorch_json_kind_name (node));
      return NULL;
    }
  model = g_new0 (GTorchTokenModel, 1);
  model->vocab = gtorch_vocab_new ();
  model->pairs = g_array_new (FALSE, FALSE, sizeof (guint64));
  if (!parse_model (model, node, error))
    {
      gtorch_token_model_free (model);
      return NULL;
    }
  for (guint i = 0; i < 256; i++)
    {
      g_snprintf (text, sizeof text, "<0x%02X>", i);
      model->bytes[i] = gtorch_vocab_lookup (model->vocab, text, 6);
    }
  for (guint i = 0; i < G_N_ELEMENTS (model->chars); i++)
    model->chars[i] = gtorch_vocab_lookup (model->vocab, text, g_unichar_to_utf8 (i, text));
  return model;
}

void
gtorch_token_model_free (GTorchTokenModel *model)
{
  gtorch_vocab_free (model->vocab);
  g_array_unref (model->pairs);
  g_free (model->merges);
  g_free (model->unk_token);
  g_free (model->prefix);
  g_free (model->suffix);
  g_free (model);
}

GTorchVocab *
gtorch_token_model_get_vocab (GTorchTokenModel *model)
{
  return model->vocab;
}

/* --- writing --- */

static void
write_member (GString *text, const gchar *key, const gchar *value)
{
  g_string_append_printf (text, ",\"%s\":", key);
  if (value != NULL)
    gtorch_json_write_string (text, value, -1);
  else
    g_string_append (text, "null");
}

void
gtorch_token_model_write (GTorchTokenModel *model, GString *text)
{
  static const gchar *const types[] = { "BPE", "WordPiece", "WordLevel" };
  static const gchar *const words[] = { "false", "true" };
  const gchar *separator = "";
  gsize length;

  g_string_append_printf (text, "{\"type\":\"%s\"", types[model->kind]);
  write_member (text, "unk_token", model->unk_token);
  if (model->kind != GTORCH_TOKEN_MODEL_WORDLEVEL)
    write_member (text, "continuing_subword_prefix", model->prefix);
  if (model->kind == GTORCH_TOKEN_MODEL_WORDPIECE)
    g_string_append_printf (text, ",\"max_input_chars_per_word\":%" G_GINT64_FORMAT,
                            model->max_chars);
  if (model->kind == GTORCH_TOKEN_MODEL_BPE)
    {
      write_member (text, "end_of_word_suffix", model->suffix);
      g_string_append_printf (text,
                              ",\"dropout\":null,\"fuse_unk\":%s,\"byte_fallback\":%s,\"ignore_"
                              "merges\":%s",
                              words[model->fuse_unk], words[model->byte_fallback],
                              words[model->ignore_merges]);
    }
  g_string_append (text, ",\"vocab\":{");
  for (gint32 i = 0; i < gtorch_vocab_get_end (model->vocab); i++)
    {
      const gchar *token = gtorch_vocab_get (model->vocab, i, &length);

      if (token == NULL)
        continue;
      g_string_append (text, separator);
      gtorch_json_write_string (text, token, length);
      g_string_append_printf (text, ":%d", i);
      separator = ",";
    }
  g_string_append_c (text, '}');
  if (model->kind == GTORCH_TOKEN_MODEL_BPE)
    {
      g_string_append (text, ",\"merges\":[");
      for (guint i = 0; i < model->pairs->len; i++)
        {
          guint64 pair = g_array_index (model->pairs, guint64, i);
          const gchar *token = gtorch_vocab_get (model->vocab, pair >> 32, &length);

          g_string_append (text, i > 0 ? ",[" : "[");
          gtorch_json_write_string (text, token, length);
          g_string_append_c (text, ',');
          token = gtorch_vocab_get (model->vocab, pair & G_MAXUINT32, &length);
          gtorch_json_write_string (text, token, length);
          g_string_append_c (text, ']');
        }
      g_string_append_c (text, ']');
    }
  g_string_append_c (text, '}');
}

/* --- encoding --- */

typedef struct
{
  gint32 id;
  gint32 before, after; /* positions, or -1 */
} Symbol;

typedef struct
{
  guint64 key; /* the rank, and the position of the left one */
} Candidate;

void
gtorch_token_coder_init (GTorchTokenCoder *coder, GTorchTokenModel *model)
{
  coder->model = model;
  gtorch_pieces_init (&coder->pieces);
  coder->symbols = g_array_new (FALSE, FALSE, sizeof (Symbol));
  coder->heap = g_array_new (FALSE, FALSE, sizeof (guint64));
  coder->scratch = g_string_new (NULL);
  coder->words = gtorch_vocab_new ();
  coder->ranges = g_array_new (FALSE, FALSE, sizeof (GTorchPiece));
  coder->known = g_array_new (FALSE, FALSE, sizeof (gint64));
}

void
gtorch_token_coder_clear (GTorchTokenCoder *coder)
{
  gtorch_pieces_clear (&coder->pieces);
  g_array_unref (coder->symbols);
  g_array_unref (coder->heap);
  g_string_free (coder->scratch, TRUE);
  gtorch_vocab_free (coder->words);
  g_array_unref (coder->ranges);
  g_array_unref (coder->known);
}

static void
heap_push (GArray *heap, guint64 key)
{
  guint64 *keys;
  guint at = heap->len;

  g_array_append_val (heap, key);
  keys = (guint64 *) heap->data;
  for (; at > 0 && keys[(at - 1) / 2] > key; at = (at - 1) / 2)
    keys[at] = keys[(at - 1) / 2];
  keys[at] = key;
}

static guint64
heap_pop (GArray *heap)
{
  guint64 *keys = (guint64 *) heap->data;
  guint64 result = keys[0], last = keys[heap->len - 1];
  guint n = heap->len - 1, at = 0;

  g_array_set_size (heap, n);
  for (guint child = 1; child < n; child = at * 2 + 1)
    {
      if (child + 1 < n && keys[child + 1] < keys[child])
        child++;
      if (keys[child] >= last)
        break;
      keys[at] = keys[child];
      at = child;
    }
  if (n > 0)
    keys[at] = last;
  return result;
}

static void
add_candidate (GTorchTokenCoder *coder, gint32 left)
{
  const Symbol *symbols = (const Symbol *) coder->symbols->data;
  const Merge *merge;

  if (left < 0 || symbols[left].after < 0)
    return;
  merge = find_merge (coder->model, pair_of (symbols[left].id, symbols[symbols[left].after].id));
  if (merge->pair != NO_PAIR)
    heap_push (coder->heap, pair_of (merge->rank, left));
}

static void
merge_symbols (GTorchTokenCoder *coder)
{
  Symbol *symbols = (Symbol *) coder->symbols->data;

  g_array_set_size (coder->heap, 0);
  for (guint i = 0; i + 1 < coder->symbols->len; i++)
    add_candidate (coder, i);
  while (coder->heap->len > 0)
    {
      guint64 key = heap_pop (coder->heap);
      gint32 left = key & G_MAXUINT32, right;
      const Merge *merge;

      if (symbols[left].id < 0 || (right = symbols[left].after) < 0)
        continue;
      merge = find_merge (coder->model, pair_of (symbols[left].id, symbols[right].id));
      if (merge->pair == NO_PAIR || (guint64) merge->rank != key >> 32)
        continue;
      symbols[left].id = merge->id;
      symbols[left].after = symbols[right].after;
      if (symbols[right].after >= 0)
        symbols[symbols[right].after].before = left;
      symbols[right].id = -1;
      add_candidate (coder, symbols[left].before);
      add_candidate (coder, left);
    }
}

static void
add_symbol (GTorchTokenCoder *coder, gint32 id)
{
  Symbol symbol = { id, (gint32) coder->symbols->len - 1, coder->symbols->len + 1 };

  g_array_append_val (coder->symbols, symbol);
}

static gint32
lookup_char (GTorchTokenCoder *coder, const gchar *at, gsize length, gboolean is_first,
             gboolean is_last)
{
  const GTorchTokenModel *model = coder->model;
  gunichar c;

  if ((is_first || model->prefix == NULL) && (!is_last || model->suffix == NULL))
    {
      c = g_utf8_get_char (at);
      return c < G_N_ELEMENTS (model->chars) ? model->chars[c]
                                             : gtorch_vocab_lookup (model->vocab, at, length);
    }
  g_string_truncate (coder->scratch, 0);
  if (!is_first && model->prefix != NULL)
    g_string_append (coder->scratch, model->prefix);
  g_string_append_len (coder->scratch, at, length);
  if (is_last && model->suffix != NULL)
    g_string_append (coder->scratch, model->suffix);
  return gtorch_vocab_lookup (model->vocab, coder->scratch->str, coder->scratch->len);
}

static gboolean
unknown (GTorchTokenModel *model, const gchar *text, gsize length, GError **error)
{
  g_autofree gchar *word = g_strndup (text, length);

  if (model->unk_id >= 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
               _ ("encode: “%s” has no token, and the token for what is unknown, “%s”, is not in "
                  "the vocabulary"),
               gtorch_name_str (word), model->unk_token != NULL ? model->unk_token : "");
  return FALSE;
}

static gboolean
has_bytes (const GTorchTokenModel *model, const gchar *at, gsize length)
{
  for (gsize i = 0; i < length; i++)
    if (model->bytes[(guchar) at[i]] < 0)
      return FALSE;
  return model->byte_fallback;
}

/* The characters of a word; those without a token become tokens of bytes, or the unknown one, or nothing. */
static gboolean
begin_symbols (GTorchTokenCoder *coder, const gchar *text, gsize length, GError **error)
{
  GTorchTokenModel *model = coder->model;
  const gchar *end = text + length;
  gboolean after_unknown = FALSE;

  g_array_set_size (coder->symbols, 0);
  for (const gchar *at = text, *next; at < end; at = next)
    {
      gint32 id;

      next = g_utf8_next_char (at);
      id = lookup_char (coder, at, next - at, at == text, next == end);
      if (id >= 0)
        {
          add_symbol (coder, id);
          after_unknown = FALSE;
        }
      else if (has_bytes (model, at, next - at))
        {
          for (; at < next; at++)
            add_symbol (coder, model->bytes[(guchar) *at]);
          after_unknown = FALSE;
        }
      else if (model->unk_token != NULL)
        {
          if (!unknown (model, at, next - at, error))
            return FALSE;
          if (!after_unknown || !model->fuse_unk)
            add_symbol (coder, model->unk_id);
          after_unknown = TRUE;
        }
    }
  if (coder->symbols->len > 0)
    g_array_index (coder->symbols, Symbol, coder->symbols->len - 1).after = -1;
  return TRUE;
}

static gboolean
encode_bpe (GTorchTokenCoder *coder, const gchar *text, gsize length, GArray *ids, GError **error)
{
  GTorchTokenModel *model = coder->model;
  gint64 id;

  if (model->ignore_merges && (id = gtorch_vocab_lookup (model->vocab, text, length)) >= 0)
    {
      g_array_append_val (ids, id);
      return TRUE;
    }
  if (!begin_symbols (coder, text, length, error))
    return FALSE;
  merge_symbols (coder);
  for (guint i = 0; i < coder->symbols->len; i++)
    {
      id = g_array_index (coder->symbols, Symbol, i).id;
      if (id >= 0)
        g_array_append_val (ids, id);
    }
  return TRUE;
}

static gboolean
encode_wordpiece (GTorchTokenCoder *coder, const gchar *text, gsize length, GArray *ids,
                  GError **error)
{
  GTorchTokenModel *model = coder->model;
  GString *scratch = coder->scratch;
  gsize n_prefix = strlen (model->prefix), begin = 0;
  gsize longest = gtorch_vocab_get_longest (model->vocab);
  guint n_before = ids->len;
  gint64 unk = model->unk_id;

  if (g_utf8_strlen (text, length) <= model->max_chars)
    while (begin < length)
      {
        gsize n = begin > 0 ? n_prefix : 0, end = MIN (length, begin + longest);
        gint64 id = -1;

        while (end > begin && end < length && (text[end] & 0xc0) == 0x80)
          end--;
        g_string_truncate (scratch, 0);
        g_string_append_len (scratch, model->prefix, n);
        g_string_append_len (scratch, text + begin, end - begin);
        while (end > begin
               && (id = gtorch_vocab_lookup (model->vocab, scratch->str, n + end - begin)) < 0)
          end = g_utf8_prev_char (text + end) - text;
        if (id < 0)
          break;
        g_array_append_val (ids, id);
        begin = end;
      }
  if (begin == length)
    return TRUE;
  if (!unknown (model, text, length, error))
    return FALSE;
  g_array_set_size (ids, n_before);
  g_array_append_val (ids, unk);
  return TRUE;
}

static gboolean
encode_word (GTorchTokenCoder *coder, const gchar *text, gsize length, GArray *ids, GError **error)
{
  GTorchTokenModel *model = coder->model;
  gint64 id;

  id = gtorch_vocab_lookup (model->vocab, text, length);
  if (id < 0)
    {
      if (!unknown (model, text, length, error))
        return FALSE;
      id = model->unk_id;
    }
  g_array_append_val (ids, id);
  return TRUE;
}

gboolean
gtorch_token_model_encode (GTorchTokenCoder *coder, const gchar *text, gsize length, GArray *ids,
                           GError **error)
{
  gint32 word = gtorch_vocab_lookup (coder->words, text, length);
  GTorchPiece range = { ids->len, 0 };
  gboolean is_done;

  if (word >= 0)
    {
      range = g_array_index (coder->ranges, GTorchPiece, word);
      g_array_append_vals (ids, &g_array_index (coder->known, gint64, range.begin),
                           range.end - range.begin);
      return TRUE;
    }
  if (length > G_MAXINT32 / 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("encode: a word of %zu bytes is longer than 1 GiB"), length);
      return FALSE;
    }
  if (coder->model->kind == GTORCH_TOKEN_MODEL_BPE)
    is_done = encode_bpe (coder, text, length, ids, error);
  else if (coder->model->kind == GTORCH_TOKEN_MODEL_WORDPIECE)
    is_done = encode_wordpiece (coder, text, length, ids, error);
  else
    is_done = encode_word (coder, text, length, ids, error);
  if (!is_done || length > 256 || coder->ranges->len >= MAX_KNOWN)
    return is_done;
  gtorch_vocab_insert (coder->words, text, length, coder->ranges->len);
  {
    gsize n = ids->len - range.begin, begin = coder->known->len;

    if (n > 0)
      g_array_append_vals (coder->known, &g_array_index (ids, gint64, range.begin), n);
    range = (GTorchPiece){ begin, begin + n };
    g_array_append_val (coder->ranges, range);
  }
  return TRUE;
}
