/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Added tokens are cut out of a text before anything else is done to it. Of several that begin at one place
 * the longest counts. They are sorted by the byte that they begin with, the longest first. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "text/gtorch-tokenizer-private.h"

struct _GTorchAddedTokens
{
  GArray *tokens;         /* of GTorchAddedToken, in the order of the file */
  GHashTable *by_name;    /* content to position and one */
  GHashTable *by_id;      /* likewise */
  GArray *begins[2][256]; /* positions, of those in raw and in normalized texts; NULL for none */
};

static void
token_clear (gpointer data)
{
  GTorchAddedToken *token = data;

  g_free (token->content);
  g_free (token->sought);
}

static gint
compare_lengths (gconstpointer a, gconstpointer b, gpointer data)
{
  const GTorchAddedToken *tokens = data;
  guint i = *(const guint *) a, j = *(const guint *) b;

  if (tokens[i].length != tokens[j].length)
    return tokens[i].length > tokens[j].length ? -1 : 1;
  return i < j ? -1 : i > j;
}

static gboolean
fail (GError **error, guint i, const gchar *rule)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, "tokenizer: added_tokens[%u]: %s", i,
               rule);
  return FALSE;
}

static gboolean
get_flag (const GTorchJsonNode *node, const gchar *key)
{
  const GTorchJsonNode *member = gtorch_json_lookup (node, key);

  return member != NULL && member->kind == GTORCH_JSON_TRUE;
}

static gboolean
parse_token (GTorchAddedTokens *tokens, const GTorchJsonNode *node, guint i,
             const GTorchVocab *vocab, const GArray *normalizers, GError **error)
{
  const GTorchJsonNode *content = gtorch_json_lookup (node, "content");
  const GTorchJsonNode *id = gtorch_json_lookup (node, "id");
  GTorchAddedToken token = { 0 };
  g_autoptr (GString) sought = NULL;
  const gchar *other;

  if (content == NULL || content->kind != GTORCH_JSON_STRING || *content->string == '\0')
    return fail (error, i, _ ("content must be a string that is not empty"));
  if (id == NULL || id->kind != GTORCH_JSON_NUMBER || !id->is_integer || id->integer < 0
      || id->integer >= GTORCH_VOCAB_MAX_IDS)
    return fail (error, i, _ ("id must be an integer from 0 to 4194303"));
  other = gtorch_vocab_get (vocab, id->integer, NULL);
  if (other != NULL ? strcmp (other, content->string) != 0
                    : gtorch_vocab_lookup (vocab, content->string, strlen (content->string)) >= 0)
    return fail (error, i, _ ("the vocabulary has this token, or its number, for another"));
  if (g_hash_table_contains (tokens->by_name, content->string)
      || g_hash_table_contains (tokens->by_id, GINT_TO_POINTER ((gint) id->integer)))
    return fail (error, i, _ ("the token, or its number, is there twice"));
  token.single_word = get_flag (node, "single_word");
  token.lstrip = get_flag (node, "lstrip");
  token.rstrip = get_flag (node, "rstrip");
  token.normalized = get_flag (node, "normalized");
  token.special = get_flag (node, "special");
  token.id = id->integer;
  sought = g_string_new (content->string);
  if (token.normalized && !gtorch_text_normalize (normalizers, sought, error))
    return FALSE;
  token.length = sought->len;
  token.sought = g_string_free (g_steal_pointer (&sought), FALSE);
  token.content = g_strdup (content->string);
  g_array_append_val (tokens->tokens, token);
  g_hash_table_insert (tokens->by_name, token.content, GUINT_TO_POINTER (i + 1));
  g_hash_table_insert (tokens->by_id, GINT_TO_POINTER (token.id), GUINT_TO_POINTER (i + 1));
  if (token.length > 0)
    {
      GArray **begins = &tokens->begins[token.normalized][(guchar) token.sought[0]];

      if (*begins == NULL)
        *begins = g_array_new (FALSE, FALSE, sizeof (guint));
      g_array_append_val (*begins, i);
    }
  return TRUE;
}

GTorchAddedTokens *
gtorch_added_tokens_parse (const GTorchJsonNode *node, const GTorchVocab *vocab,
                           const GArray *normalizers, GError **error)
{
  GTorchAddedTokens *tokens;
  guint i = 0;

  if (node != NULL && node->kind != GTORCH_JSON_ARRAY)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("tokenizer: added_tokens is %s, but must be an array"),
                   gtorch_json_kind_name (node));
      return NULL;
    }
  tokens = g_new0 (GTorchAddedTokens, 1);
  tokens->tokens = g_array_new (FALSE, FALSE, sizeof (GTorchAddedToken));
  g_array_set_clear_func (tokens->tokens, token_clear);
  tokens->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  tokens->by_id = g_hash_table_new (NULL, NULL);
  for (node = node != NULL ? node->first : NULL; node != NULL; node = node->next, i++)
    if (!parse_token (tokens, node, i, vocab, normalizers, error))
      {
        gtorch_added_tokens_free (tokens);
        return NULL;
      }
  for (guint j = 0; j < 512; j++)
    if (tokens->begins[j / 256][j % 256] != NULL)
      g_array_sort_with_data (tokens->begins[j / 256][j % 256], compare_lengths,
                              tokens->tokens->data);
  return tokens;
}

void
gtorch_added_tokens_free (GTorchAddedTokens *tokens)
{
  g_hash_table_unref (tokens->by_name);
  g_hash_table_unref (tokens->by_id);
  g_array_unref (tokens->tokens);
  for (guint j = 0; j < 512; j++)
    g_clear_pointer (&tokens->begins[j / 256][j % 256], g_array_unref);
  g_free (tokens);
}

guint
gtorch_added_tokens_get_n (const GTorchAddedTokens *tokens)
{
  return tokens->tokens->len;
}

const GTorchAddedToken *
gtorch_added_tokens_get (const GTorchAddedTokens *tokens, guint i)
{
  return &g_array_index (tokens->tokens, GTorchAddedToken, i);
}

const GTorchAddedToken *
gtorch_added_tokens_lookup (const GTorchAddedTokens *tokens, const gchar *content)
{
  guint i = GPOINTER_TO_UINT (g_hash_table_lookup (tokens->by_name, content));

  return i > 0 ? gtorch_added_tokens_get (tokens, i - 1) : NULL;
}

const GTorchAddedToken *
gtorch_added_tokens_by_id (const GTorchAddedTokens *tokens, gint64 id)
{
  guint i = 0;

  if (id >= 0 && id < GTORCH_VOCAB_MAX_IDS)
    i = GPOINTER_TO_UINT (g_hash_table_lookup (tokens->by_id, GINT_TO_POINTER ((gint) id)));
  return i > 0 ? gtorch_added_tokens_get (tokens, i - 1) : NULL;
}

/* Whether the token stands between the beginning, the end or what is no part of a word. */
static gboolean
is_apart (const gchar *text, const gchar *begin, const gchar *end, const gchar *end_of_text)
{
  return (begin == text || !gtorch_char_is_word (g_utf8_get_char (g_utf8_prev_char (begin))))
         && (end == end_of_text || !gtorch_char_is_word (g_utf8_get_char (end)));
}

static void
add_stretch (GArray *stretches, gsize begin, gsize end, gint32 id)
{
  GTorchStretch stretch = { begin, end, id };

  if (begin < end)
    g_array_append_val (stretches, stretch);
}

void
gtorch_added_tokens_split (const GTorchAddedTokens *tokens, gboolean normalized, const gchar *text,
                           gsize length, GArray *stretches)
{
  const gchar *end_of_text = text + length, *before = text, *at = text;

  while (tokens->tokens->len > 0 && at < end_of_text)
    {
      const GArray *begins = tokens->begins[normalized][(guchar) *at];
      const GTorchAddedToken *token = NULL;
      const gchar *begin = at, *end;

      for (guint i = 0; begins != NULL && i < begins->len && token == NULL; i++)
        {
          token = gtorch_added_tokens_get (tokens, g_array_index (begins, guint, i));
          if (token->length > (gsize) (end_of_text - at)
              || memcmp (at, token->sought, token->length) != 0)
            token = NULL;
        }
      if (token == NULL)
        {
          at++;
          continue;
        }
      end = at = at + token->length;
      if (token->single_word && !is_apart (text, begin, end, end_of_text))
        continue;
      while (token->lstrip && begin > before
             && gtorch_char_is_space (g_utf8_get_char (g_utf8_prev_char (begin))))
        begin = g_utf8_prev_char (begin);
      while (token->rstrip && end < end_of_text && gtorch_char_is_space (g_utf8_get_char (end)))
        end = g_utf8_next_char (end);
      /* blanks that the token before took belong to that one */
      begin = MAX (begin, before);
      end = MAX (end, begin);
      add_stretch (stretches, before - text, begin - text, -1);
      add_stretch (stretches, begin - text, end - text, token->id);
      before = end;
    }
  add_stretch (stretches, before - text, length, -1);
}
