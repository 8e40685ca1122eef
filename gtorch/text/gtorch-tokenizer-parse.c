/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Between a tokenizer and the text of a tokenizer.json. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-text-private.h"
#include "text/gtorch-tokenizer-private.h"

static const gchar *const section_names[] = { "normalizer", "pre_tokenizer", "post_processor",
                                              "decoder" };
static const gchar *const strategies[] = { "LongestFirst", "OnlyFirst", "OnlySecond" };

static gboolean
fail (GError **error, const gchar *section, const gchar *rule)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, "tokenizer: %s: %s", section, rule);
  return FALSE;
}

/* A count, or `otherwise` if there is none. */
static gboolean
get_count (const GTorchJsonNode *node, const gchar *section, const gchar *key, gint64 otherwise,
           gint64 *value, GError **error)
{
  const GTorchJsonNode *member = gtorch_json_lookup (node, key);

  if (member != NULL
      && (member->kind != GTORCH_JSON_NUMBER || !member->is_integer || member->integer < 0
          || member->integer > GTORCH_TOKENS_MAX))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("tokenizer: %s: “%s” must be an integer from 0 to 16777216"), section, key);
      return FALSE;
    }
  *value = member != NULL ? member->integer : otherwise;
  return TRUE;
}

static gboolean
get_side (const GTorchJsonNode *node, const gchar *section, gboolean *left, GError **error)
{
  const GTorchJsonNode *member = gtorch_json_lookup (node, "direction");
  const gchar *name = member == NULL                       ? "Right"
                      : member->kind == GTORCH_JSON_STRING ? member->string
                                                           : "";

  *left = strcmp (name, "Left") == 0;
  return *left || strcmp (name, "Right") == 0
         || fail (error, section, _ ("direction must be Left or Right"));
}

static gboolean
parse_truncation (GTorchTokenizer *self, const GTorchJsonNode *node, GError **error)
{
  const GTorchJsonNode *strategy = gtorch_json_lookup (node, "strategy");
  guint i = 0;

  if (node == NULL)
    return TRUE;
  if (node->kind != GTORCH_JSON_OBJECT)
    return fail (error, "truncation", _ ("it must be an object"));
  if (strategy != NULL)
    for (; i < G_N_ELEMENTS (strategies); i++)
      if (strategy->kind == GTORCH_JSON_STRING && strcmp (strategy->string, strategies[i]) == 0)
        break;
  if (i == G_N_ELEMENTS (strategies))
    return fail (error, "truncation", _ ("strategy must be LongestFirst, OnlyFirst or OnlySecond"));
  self->truncation.strategy = i;
  return get_count (node, "truncation", "max_length", -1, &self->truncation.max_length, error)
         && get_count (node, "truncation", "stride", 0, &self->truncation.stride, error)
         && get_side (node, "truncation", &self->truncation.left, error);
}

static gboolean
parse_padding (GTorchTokenizer *self, const GTorchJsonNode *node, GError **error)
{
  const GTorchJsonNode *strategy = gtorch_json_lookup (node, "strategy");
  const GTorchJsonNode *token = gtorch_json_lookup (node, "pad_token");
  gint64 length = 0;

  if (node == NULL)
    return TRUE;
  if (strategy == NULL
      || !(strategy->kind == GTORCH_JSON_STRING
               ? strcmp (strategy->string, "BatchLongest") == 0
               : strategy->kind == GTORCH_JSON_OBJECT && strategy->n_children == 1
                     && strcmp (strategy->first->key, "Fixed") == 0))
    return fail (error, "padding", _ ("strategy must be BatchLongest or {\"Fixed\": length}"));
  if (token != NULL && token->kind != GTORCH_JSON_STRING)
    return fail (error, "padding", _ ("pad_token must be a string"));
  if (!get_count (strategy, "padding", "Fixed", 0, &length, error)
      || !get_count (node, "padding", "pad_to_multiple_of", 0, &self->padding.multiple, error)
      || !get_count (node, "padding", "pad_id", 0, &self->padding.id, error)
      || !get_count (node, "padding", "pad_type_id", 0, &self->padding.type_id, error)
      || !get_side (node, "padding", &self->padding.left, error))
    return FALSE;
  self->padding.length = length;
  g_free (self->padding.token);
  self->padding.token = g_strdup (token != NULL ? token->string : "[PAD]");
  return TRUE;
}

GTorchTokenizer *
gtorch_tokenizer_parse (const gchar *text, gsize length, GError **error)
{
  g_autoptr (GTorchJson) json = gtorch_json_parse ("tokenizer", text, length, error);
  g_autoptr (GTorchTokenizer) self = NULL;
  const GTorchJsonNode *root, *sections[4];

  if (json == NULL)
    return NULL;
  root = gtorch_json_get_root (json);
  if (root->kind != GTORCH_JSON_OBJECT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("tokenizer: the file is %s, but must be an object"),
                   gtorch_json_kind_name (root));
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_TOKENIZER, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++)
    {
      sections[i] = gtorch_json_lookup (root, section_names[i]);
      if (sections[i] != NULL)
        self->sections[i] =
            g_strndup (text + sections[i]->begin, sections[i]->end - sections[i]->begin);
    }
  g_clear_pointer (&self->frame, gtorch_token_frame_free);
  g_clear_pointer (&self->normalizers, g_array_unref);
  g_clear_pointer (&self->pre_tokenizers, g_array_unref);
  g_clear_pointer (&self->decoders, g_array_unref);
  g_clear_pointer (&self->added, gtorch_added_tokens_free);
  g_clear_pointer (&self->model, gtorch_token_model_free);
  if ((self->model = gtorch_token_model_parse (gtorch_json_lookup (root, "model"), error)) == NULL
      || (self->normalizers = gtorch_steps_parse (section_names[0], sections[0], error)) == NULL
      || (self->pre_tokenizers = gtorch_steps_parse (section_names[1], sections[1], error)) == NULL
      || (self->frame = gtorch_token_frame_parse (sections[2], error)) == NULL
      || (self->decoders = gtorch_steps_parse (section_names[3], sections[3], error)) == NULL
      || (self->added = gtorch_added_tokens_parse (gtorch_json_lookup (root, "added_tokens"),
                                                   gtorch_token_model_get_vocab (self->model),
                                                   self->normalizers, error))
             == NULL
      || !parse_truncation (self, gtorch_json_lookup (root, "truncation"), error)
      || !parse_padding (self, gtorch_json_lookup (root, "padding"), error))
    return NULL;
  return g_steal_pointer (&self);
}

/* --- back --- */

static void
write_rules (GTorchTokenizer *self, GString *text)
{
  const gchar *const sides[] = { "Right", "Left" };

  g_string_append (text, "\"truncation\":");
  if (self->truncation.max_length < 0)
    g_string_append (text, "null");
  else
    g_string_append_printf (text,
                            "{\"direction\":\"%s\",\"max_length\":%" G_GINT64_FORMAT
                            ",\"strategy\":\"%s\",\"stride\":%" G_GINT64_FORMAT "}",
                            sides[self->truncation.left], self->truncation.max_length,
                            strategies[self->truncation.strategy], self->truncation.stride);
  g_string_append (text, ",\"padding\":");
  if (self->padding.length < 0)
    {
      g_string_append (text, "null");
      return;
    }
  if (self->padding.length == 0)
    g_string_append (text, "{\"strategy\":\"BatchLongest\"");
  else
    g_string_append_printf (text, "{\"strategy\":{\"Fixed\":%" G_GINT64_FORMAT "}",
                            self->padding.length);
  g_string_append_printf (text, ",\"direction\":\"%s\",\"pad_to_multiple_of\":",
                          sides[self->padding.left]);
  if (self->padding.multiple > 0)
    g_string_append_printf (text, "%" G_GINT64_FORMAT, self->padding.multiple);
  else
    g_string_append (text, "null");
  g_string_append_printf (text,
                          ",\"pad_id\":%" G_GINT64_FORMAT ",\"pad_type_id\":%" G_GINT64_FORMAT
                          ",\"pad_token\":",
                          self->padding.id, self->padding.type_id);
  gtorch_json_write_string (text, self->padding.token, -1);
  g_string_append_c (text, '}');
}

static void
write_added_tokens (GTorchTokenizer *self, GString *text)
{
  static const gchar *const words[] = { "false", "true" };

  g_string_append (text, ",\"added_tokens\":[");
  for (guint i = 0; i < gtorch_added_tokens_get_n (self->added); i++)
    {
      const GTorchAddedToken *token = gtorch_added_tokens_get (self->added, i);

      g_string_append_printf (text, "%s{\"id\":%d,\"content\":", i > 0 ? "," : "", token->id);
      gtorch_json_write_string (text, token->content, -1);
      g_string_append_printf (text,
                              ",\"single_word\":%s,\"lstrip\":%s,\"rstrip\":%s,"
                              "\"normalized\":%s,\"special\":%s}",
                              words[token->single_word], words[token->lstrip], words[token->rstrip],
                              words[token->normalized], words[token->special]);
    }
  g_string_append_c (text, ']');
}

/**
 * gtorch_tokenizer_to_bytes:
 * @self: a tokenizer
 *
 * Gets the tokenizer as the text of a `tokenizer.json`, with its present rules of padding and truncation.
 *
 * Returns: (transfer full): the text
 *
 * Since: 0.1
 */
GBytes *
gtorch_tokenizer_to_bytes (GTorchTokenizer *self)
{
  GString *text;

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), NULL);
  text = g_string_new ("{\"version\":\"1.0\",");
  write_rules (self, text);
  write_added_tokens (self, text);
  for (guint i = 0; i < G_N_ELEMENTS (section_names); i++)
    g_string_append_printf (text, ",\"%s\":%s", section_names[i],
                            self->sections[i] != NULL ? self->sections[i] : "null");
  g_string_append (text, ",\"model\":");
  gtorch_token_model_write (self->model, text);
  g_string_append_c (text, '}');
  return g_string_free_to_bytes (text);
}
