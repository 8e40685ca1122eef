/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "text/gtorch-tokenizer.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-field-private.h"
#include "text/gtorch-tokenizer-private.h"

/**
 * GTorchTokenizer:
 *
 * Turns texts into the numbers that language models take, and back.
 *
 * It is read from the file `tokenizer.json` that accompanies a model, which says everything: how texts are
 * normalized, where they are split, how words become tokens of the vocabulary, which special tokens stand
 * around them. The models are BPE (such as GPT-2's), WordPiece (such as BERT's) and WordLevel. What a file
 * asks for and this version lacks is refused when it is loaded, never left out. [func@Tokenizer.train_bpe]
 * makes a tokenizer from texts.
 *
 * ```c
 * g_autoptr (GTorchTokenizer) tokenizer = gtorch_tokenizer_load_file (file, NULL, &error);
 * const gchar *texts[] = { "What is a tensor?", "A block of numbers.", NULL };
 * g_autoptr (GTorchTensor) mask = NULL;
 * g_autoptr (GTorchTensor) ids = gtorch_tokenizer_encode_batch (tokenizer, texts, NULL, TRUE, &mask, NULL,
 * &error);
 * ```
 *
 * Several threads may encode and decode with one tokenizer, while none changes its padding or truncation.
 *
 * Since: 0.1
 */

G_DEFINE_TYPE (GTorchTokenizer, gtorch_tokenizer, G_TYPE_OBJECT)

typedef GTorchTokenizer Self;

GType
gtorch_truncation_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_TRUNCATION_LONGEST_FIRST, "GTORCH_TRUNCATION_LONGEST_FIRST", "longest-first" },
    { GTORCH_TRUNCATION_ONLY_FIRST, "GTORCH_TRUNCATION_ONLY_FIRST", "only-first" },
    { GTORCH_TRUNCATION_ONLY_SECOND, "GTORCH_TRUNCATION_ONLY_SECOND", "only-second" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchTruncation", values));
  return type;
}

static void
gtorch_tokenizer_finalize (GObject *object)
{
  GTorchTokenizer *self = GTORCH_TOKENIZER (object);

  g_clear_pointer (&self->model, gtorch_token_model_free);
  g_clear_pointer (&self->added, gtorch_added_tokens_free);
  g_clear_pointer (&self->frame, gtorch_token_frame_free);
  g_clear_pointer (&self->normalizers, g_array_unref);
  g_clear_pointer (&self->pre_tokenizers, g_array_unref);
  g_clear_pointer (&self->decoders, g_array_unref);
  for (guint i = 0; i < G_N_ELEMENTS (self->sections); i++)
    g_free (self->sections[i]);
  g_free (self->padding.token);
  G_OBJECT_CLASS (gtorch_tokenizer_parent_class)->finalize (object);
}

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchTokenizer:vocab-size:
   *
   * How many numbers there are: the highest number of a token, added ones included, and one.
   *
   * Since: 0.1
   */
  { "vocab-size", GTORCH_PROPERTY_INT64 (gtorch_tokenizer_get_vocab_size, NULL) },
};
/* clang-format on */

static void
gtorch_tokenizer_class_init (GTorchTokenizerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_tokenizer_finalize;
  GTORCH_FIELDS (klass, fields);
}

/* One that is made with g_object_new () has no tokens and refuses all texts. */
static void
gtorch_tokenizer_init (GTorchTokenizer *self)
{
  static const gchar empty[] = "{\"type\":\"WordLevel\",\"vocab\":{}}";
  g_autoptr (GTorchJson) json = gtorch_json_parse ("tokenizer", empty, strlen (empty), NULL);

  self->model = gtorch_token_model_parse (gtorch_json_get_root (json), NULL);
  self->normalizers = gtorch_steps_parse ("normalizer", NULL, NULL);
  self->pre_tokenizers = gtorch_steps_parse ("pre_tokenizer", NULL, NULL);
  self->decoders = gtorch_steps_parse ("decoder", NULL, NULL);
  self->frame = gtorch_token_frame_parse (NULL, NULL);
  self->added = gtorch_added_tokens_parse (NULL, gtorch_token_model_get_vocab (self->model),
                                           self->normalizers, NULL);
  self->truncation.max_length = -1;
  self->padding.length = -1;
}

/**
 * gtorch_tokenizer_get_vocab_size:
 * @self: a tokenizer
 *
 * Gets how many rows an embedding of the tokens has: the highest number of a token, and one.
 *
 * Returns: the size of the vocabulary, added tokens included
 *
 * Since: 0.1
 */
gint64
gtorch_tokenizer_get_vocab_size (GTorchTokenizer *self)
{
  gint64 size;

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), 0);
  size = gtorch_vocab_get_end (gtorch_token_model_get_vocab (self->model));
  for (guint i = 0; i < gtorch_added_tokens_get_n (self->added); i++)
    size = MAX (size, gtorch_added_tokens_get (self->added, i)->id + (gint64) 1);
  return size;
}

/**
 * gtorch_tokenizer_token_to_id:
 * @self: a tokenizer
 * @token: a token, as it is in the vocabulary
 *
 * Gets the number of a token.
 *
 * Returns: the number, or -1 if there is no such token
 *
 * Since: 0.1
 */
gint64
gtorch_tokenizer_token_to_id (GTorchTokenizer *self, const gchar *token)
{
  const GTorchAddedToken *added;

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), -1);
  g_return_val_if_fail (token != NULL, -1);
  added = gtorch_added_tokens_lookup (self->added, token);
  if (added != NULL)
    return added->id;
  return gtorch_vocab_lookup (gtorch_token_model_get_vocab (self->model), token, strlen (token));
}

static const gchar *
get_token (GTorchTokenizer *self, gint64 id)
{
  const GTorchAddedToken *added = gtorch_added_tokens_by_id (self->added, id);

  return added != NULL ? added->content
                       : gtorch_vocab_get (gtorch_token_model_get_vocab (self->model), id, NULL);
}

/**
 * gtorch_tokenizer_id_to_token:
 * @self: a tokenizer
 * @id: a number
 *
 * Gets the token that has a number, as it is in the vocabulary. In byte-level vocabularies such as GPT-2's,
 * each byte is a character there: a blank is `Ġ`.
 *
 * Returns: (transfer full) (nullable): the token, or %NULL if none has this number
 *
 * Since: 0.1
 */
gchar *
gtorch_tokenizer_id_to_token (GTorchTokenizer *self, gint64 id)
{
  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), NULL);
  return g_strdup (get_token (self, id));
}

/**
 * gtorch_tokenizer_enable_padding:
 * @self: a tokenizer
 * @length: the length of every sequence, or 0 for that of the longest of a batch
 * @multiple: the number that a length is made a multiple of, or 0
 * @left: whether padding stands before a text
 * @pad_id: the number of the token that fills up
 * @pad_type_id: its type
 * @pad_token: the token, which is only kept in the file
 * @error: return location for an error
 *
 * Lets [method@Tokenizer.encode] and [method@Tokenizer.encode_batch] fill up sequences to equal lengths.
 *
 * Fails with %GTORCH_ERROR_INVALID if a number is negative or over 16777216.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_tokenizer_enable_padding (GTorchTokenizer *self, gint64 length, gint64 multiple,
                                 gboolean left, gint64 pad_id, gint64 pad_type_id,
                                 const gchar *pad_token, GError **error)
{
  gint64 values[] = { length, multiple, pad_id, pad_type_id };
  static const gchar *const names[] = { "length", "multiple", "pad_id", "pad_type_id" };

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), FALSE);
  g_return_val_if_fail (pad_token != NULL, FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    if (values[i] < 0 || values[i] > GTORCH_TOKENS_MAX)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("enable_padding: %s %" PRId64 " is not between 0 and 16777216"), names[i],
                     values[i]);
        return FALSE;
      }
  if (!gtorch_name_check ("enable_padding", pad_token, error))
    return FALSE;
  g_free (self->padding.token);
  self->padding =
      (GTorchTokenPadding){ length, multiple, left, pad_id, pad_type_id, g_strdup (pad_token) };
  return TRUE;
}

/**
 * gtorch_tokenizer_disable_padding:
 * @self: a tokenizer
 *
 * Leaves sequences as long as their texts make them.
 *
 * Since: 0.1
 */
void
gtorch_tokenizer_disable_padding (GTorchTokenizer *self)
{
  g_return_if_fail (GTORCH_IS_TOKENIZER (self));
  self->padding.length = -1;
}

/**
 * gtorch_tokenizer_enable_truncation:
 * @self: a tokenizer
 * @max_length: the most tokens of a sequence, with special tokens
 * @strategy: which of two texts is cut
 * @left: whether texts lose their beginnings, not their ends
 * @error: return location for an error
 *
 * Lets [method@Tokenizer.encode] and [method@Tokenizer.encode_batch] cut sequences that are too long.
 *
 * Fails with %GTORCH_ERROR_INVALID if @max_length is less than the special tokens of one text, or over
 * 16777216.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_tokenizer_enable_truncation (GTorchTokenizer *self, gint64 max_length,
                                    GTorchTruncation strategy, gboolean left, GError **error)
{
  gint64 n_special;

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), FALSE);
  if (strategy < GTORCH_TRUNCATION_LONGEST_FIRST || strategy > GTORCH_TRUNCATION_ONLY_SECOND)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("enable_truncation: there is no strategy %d"), (gint) strategy);
      return FALSE;
    }
  n_special = gtorch_token_frame_count (self->frame, FALSE);
  if (max_length < n_special || max_length > GTORCH_TOKENS_MAX)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("enable_truncation: max_length %" PRId64
                      " is not between the number of special tokens, %" PRId64 ", and 16777216"),
                   max_length, n_special);
      return FALSE;
    }
  self->truncation = (GTorchTokenTruncation){ max_length, strategy, left, 0 };
  return TRUE;
}

/**
 * gtorch_tokenizer_disable_truncation:
 * @self: a tokenizer
 *
 * Leaves sequences as long as their texts make them.
 *
 * Since: 0.1
 */
void
gtorch_tokenizer_disable_truncation (GTorchTokenizer *self)
{
  g_return_if_fail (GTORCH_IS_TOKENIZER (self));
  self->truncation.max_length = -1;
}

/* --- back to text --- */

static gboolean
decode (GTorchTokenizer *self, const gint64 *ids, gsize n_ids, gboolean skip_special_tokens,
        GString *bytes, GError **error)
{
  g_autoptr (GPtrArray) tokens = g_ptr_array_sized_new (MIN (n_ids, 1 << 20));

  for (gsize i = 0; i < n_ids; i++)
    {
      const GTorchAddedToken *added = gtorch_added_tokens_by_id (self->added, ids[i]);
      const gchar *token = get_token (self, ids[i]);

      if (token == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                       _ ("decode: ids[%zu]: no token has the number "
                          "%" PRId64),
                       i, ids[i]);
          return FALSE;
        }
      if (!skip_special_tokens || added == NULL || !added->special)
        g_ptr_array_add (tokens, (gpointer) token);
    }
  return gtorch_decode_tokens (self->decoders, (const gchar *const *) tokens->pdata, tokens->len,
                               bytes, error);
}

/* How many bytes at `at` are one character, or, with *is_valid FALSE, the longest beginning of one. */
static gsize
character_length (const guchar *at, const guchar *end, gboolean *is_valid)
{
  guchar low = 0x80, high = 0xbf;
  gsize length, n;

  *is_valid = TRUE;
  if (*at < 0x80)
    return 1;
  length = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
  *is_valid = FALSE;
  if (*at < 0xc2 || *at > 0xf4)
    return 1;
  if (*at == 0xe0)
    low = 0xa0;
  else if (*at == 0xed)
    high = 0x9f;
  else if (*at == 0xf0)
    low = 0x90;
  else if (*at == 0xf4)
    high = 0x8f;
  for (n = 1; n < length && at + n < end && at[n] >= low && at[n] <= high; n++)
    {
      low = 0x80;
      high = 0xbf;
    }
  *is_valid = n == length;
  return n;
}

/**
 * gtorch_tokenizer_decode:
 * @self: a tokenizer
 * @ids: (array length=n_ids): numbers of tokens
 * @n_ids: how many
 * @skip_special_tokens: whether special tokens are left out
 * @error: return location for an error
 *
 * Turns numbers into text.
 *
 * Bytes that are no UTF-8, such as half a character at the end, become U+FFFD. Fails with
 * %GTORCH_ERROR_INDEX for a number that no token has, and with %GTORCH_ERROR_FORMAT if the text has a zero
 * byte, which a string cannot; then [method@Tokenizer.decode_bytes] gives it.
 *
 * Returns: (transfer full): the text, or %NULL on error
 *
 * Since: 0.1
 */
gchar *
gtorch_tokenizer_decode (GTorchTokenizer *self, const gint64 *ids, gsize n_ids,
                         gboolean skip_special_tokens, GError **error)
{
  g_autoptr (GString) bytes = NULL;
  g_autoptr (GString) text = NULL;
  const guchar *at, *end;

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), NULL);
  g_return_val_if_fail (ids != NULL || n_ids == 0, NULL);
  bytes = g_string_new (NULL);
  if (!decode (self, ids, n_ids, skip_special_tokens, bytes, error))
    return NULL;
  if (memchr (bytes->str, '\0', bytes->len) != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("decode: the text has a zero byte, which a string cannot have; "
                      "decode_bytes () gives it"));
      return NULL;
    }
  text = g_string_sized_new (bytes->len);
  at = (const guchar *) bytes->str;
  for (end = at + bytes->len; at < end;)
    {
      gboolean is_valid;
      gsize length = character_length (at, end, &is_valid);

      g_string_append_len (text, is_valid ? (const gchar *) at : "\357\277\275",
                           is_valid ? length : 3);
      at += length;
    }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/**
 * gtorch_tokenizer_decode_bytes:
 * @self: a tokenizer
 * @ids: (array length=n_ids): numbers of tokens
 * @n_ids: how many
 * @skip_special_tokens: whether special tokens are left out
 * @error: return location for an error
 *
 * Turns numbers into the bytes of a text, which need not be UTF-8: a token may end within a character. A
 * program that shows a text while a model writes it keeps the incomplete end for the next token.
 *
 * Returns: (transfer full): the bytes, or %NULL on error
 *
 * Since: 0.1
 */
GBytes *
gtorch_tokenizer_decode_bytes (GTorchTokenizer *self, const gint64 *ids, gsize n_ids,
                               gboolean skip_special_tokens, GError **error)
{
  g_autoptr (GString) bytes = NULL;

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), NULL);
  g_return_val_if_fail (ids != NULL || n_ids == 0, NULL);
  bytes = g_string_new (NULL);
  if (!decode (self, ids, n_ids, skip_special_tokens, bytes, error))
    return NULL;
  return g_string_free_to_bytes (g_steal_pointer (&bytes));
}
