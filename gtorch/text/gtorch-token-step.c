/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reads the sections normalizer, pre_tokenizer and decoder. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "text/gtorch-tokenizer-private.h"

#define MAX_STEPS 64

typedef struct
{
  const gchar *section;
  const gchar *type;
  const GTorchJsonNode *node;
  GError **error;
} Reader;

void
gtorch_step_clear (gpointer data)
{
  GTorchStep *step = data;

  g_free (step->pattern);
  g_free (step->content);
  g_clear_pointer (&step->regex, g_regex_unref);
}

static gboolean
fail (Reader *reader, const gchar *key, const gchar *rule)
{
  g_set_error (reader->error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("tokenizer: %s %s: “%s” must be %s"), reader->section,
               gtorch_name_str (reader->type), key, rule);
  return FALSE;
}

static gboolean
get_bool (Reader *reader, const gchar *key, gboolean otherwise, gboolean *value)
{
  const GTorchJsonNode *member = gtorch_json_lookup (reader->node, key);

  if (member != NULL && member->kind != GTORCH_JSON_TRUE && member->kind != GTORCH_JSON_FALSE)
    return fail (reader, key, _ ("true or false"));
  *value = member != NULL ? member->kind == GTORCH_JSON_TRUE : otherwise;
  return TRUE;
}

static gboolean
get_string (Reader *reader, const gchar *key, const gchar *otherwise, gchar **value)
{
  const GTorchJsonNode *member = gtorch_json_lookup (reader->node, key);

  if (member != NULL ? member->kind != GTORCH_JSON_STRING : otherwise == NULL)
    return fail (reader, key, _ ("a string"));
  *value = g_strdup (member != NULL ? member->string : otherwise);
  return TRUE;
}

static gboolean
get_count (Reader *reader, const gchar *key, gint64 *value)
{
  const GTorchJsonNode *member = gtorch_json_lookup (reader->node, key);

  if (member == NULL || member->kind != GTORCH_JSON_NUMBER || !member->is_integer
      || member->integer < 0)
    return fail (reader, key, _ ("an integer from 0 on"));
  *value = member->integer;
  return TRUE;
}

/* {"String": "…"} or {"Regex": "…"} */
static gboolean
get_pattern (Reader *reader, GTorchStep *step)
{
  const GTorchJsonNode *pattern = gtorch_json_lookup (reader->node, "pattern");
  const GTorchJsonNode *string = gtorch_json_lookup (pattern, "String");
  const GTorchJsonNode *regex = gtorch_json_lookup (pattern, "Regex");
  g_autoptr (GError) local = NULL;

  if (string != NULL && string->kind == GTORCH_JSON_STRING && regex == NULL
      && *string->string != '\0')
    {
      step->pattern = g_strdup (string->string);
      return TRUE;
    }
  if (regex == NULL || regex->kind != GTORCH_JSON_STRING || string != NULL)
    return fail (reader, "pattern", _ ("an object with String or Regex"));
  step->regex = g_regex_new (regex->string, G_REGEX_OPTIMIZE, 0, &local);
  if (step->regex == NULL)
    {
      g_set_error (reader->error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, _ ("tokenizer: %s %s: %s"),
                   reader->section, reader->type, local->message);
      return FALSE;
    }
  return TRUE;
}

static gboolean
get_behavior (Reader *reader, const gchar *otherwise, GTorchSplitBehavior *behavior)
{
  static const gchar *const names[] = { "Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous" };
  g_autofree gchar *name = NULL;

  if (!get_string (reader, "behavior", otherwise, &name))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (name, names[i]) == 0)
      {
        *behavior = GTORCH_SPLIT_REMOVED + i;
        return TRUE;
      }
  return fail (reader, "behavior",
               "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

/* --- one kind after the other --- */

static gboolean
read_nothing (Reader *reader, GTorchStep *step)
{
  return TRUE;
}

static gboolean
read_bert (Reader *reader, GTorchStep *step)
{
  return get_bool (reader, "clean_text", TRUE, &step->clean_text)
         && get_bool (reader, "handle_chinese_chars", TRUE, &step->chinese)
         && get_bool (reader, "lowercase", TRUE, &step->lowercase)
         && get_bool (reader, "strip_accents", step->lowercase, &step->strip_accents);
}

static gboolean
read_trim (Reader *reader, GTorchStep *step)
{
  return get_bool (reader, "strip_left", TRUE, &step->left)
         && get_bool (reader, "strip_right", TRUE, &step->right);
}

static gboolean
read_prepend (Reader *reader, GTorchStep *step)
{
  return get_string (reader, "prepend", NULL, &step->content);
}

static gboolean
read_replace (Reader *reader, GTorchStep *step)
{
  return get_pattern (reader, step) && get_string (reader, "content", NULL, &step->content);
}

static gboolean
read_punctuation (Reader *reader, GTorchStep *step)
{
  return get_behavior (reader, "Isolated", &step->behavior);
}

static gboolean
read_digits (Reader *reader, GTorchStep *step)
{
  return get_bool (reader, "individual_digits", FALSE, &step->individual);
}

static gboolean
read_split (Reader *reader, GTorchStep *step)
{
  return get_pattern (reader, step) && get_behavior (reader, NULL, &step->behavior)
         && get_bool (reader, "invert", FALSE, &step->invert);
}

static gboolean
read_byte_level (Reader *reader, GTorchStep *step)
{
  return get_bool (reader, "add_prefix_space", TRUE, &step->add_prefix_space)
         && get_bool (reader, "use_regex", TRUE, &step->use_regex);
}

static gboolean
read_wordpiece (Reader *reader, GTorchStep *step)
{
  return get_string (reader, "prefix", "##", &step->content)
         && get_bool (reader, "cleanup", TRUE, &step->cleanup);
}

static gboolean
read_bpe_decoder (Reader *reader, GTorchStep *step)
{
  return get_string (reader, "suffix", "</w>", &step->content);
}

static gboolean
read_strip (Reader *reader, GTorchStep *step)
{
  return get_string (reader, "content", NULL, &step->content)
         && (g_utf8_strlen (step->content, -1) == 1 || fail (reader, "content", _ ("a character")))
         && get_count (reader, "start", &step->start) && get_count (reader, "stop", &step->stop);
}

typedef struct
{
  const gchar *section, *type;
  GTorchStepKind kind;
  gboolean (*read) (Reader *reader, GTorchStep *step);
} Type;

/* clang-format off */
static const Type types[] = {
  { "normalizer",    "BertNormalizer",   GTORCH_STEP_BERT,             read_bert },
  { "normalizer",    "NFD",              GTORCH_STEP_NFD,              read_nothing },
  { "normalizer",    "NFC",              GTORCH_STEP_NFC,              read_nothing },
  { "normalizer",    "NFKD",             GTORCH_STEP_NFKD,             read_nothing },
  { "normalizer",    "NFKC",             GTORCH_STEP_NFKC,             read_nothing },
  { "normalizer",    "Lowercase",        GTORCH_STEP_LOWERCASE,        read_nothing },
  { "normalizer",    "StripAccents",     GTORCH_STEP_STRIP_ACCENTS,    read_nothing },
  { "normalizer",    "Strip",            GTORCH_STEP_TRIM,             read_trim },
  { "normalizer",    "Prepend",          GTORCH_STEP_PREPEND,          read_prepend },
  { "normalizer",    "Replace",          GTORCH_STEP_REPLACE,          read_replace },
  { "pre_tokenizer", "BertPreTokenizer", GTORCH_STEP_BERT_WORDS,       read_nothing },
  { "pre_tokenizer", "Whitespace",       GTORCH_STEP_WHITESPACE,       read_nothing },
  { "pre_tokenizer", "WhitespaceSplit",  GTORCH_STEP_WHITESPACE_SPLIT, read_nothing },
  { "pre_tokenizer", "Punctuation",      GTORCH_STEP_PUNCTUATION,      read_punctuation },
  { "pre_tokenizer", "Digits",           GTORCH_STEP_DIGITS,           read_digits },
  { "pre_tokenizer", "Split",            GTORCH_STEP_SPLIT,            read_split },
  { "pre_tokenizer", "ByteLevel",        GTORCH_STEP_BYTE_LEVEL,       read_byte_level },
  { "decoder",       "ByteLevel",        GTORCH_STEP_BYTE_LEVEL,       read_nothing },
  { "decoder",       "WordPiece",        GTORCH_STEP_WORDPIECE,        read_wordpiece },
  { "decoder",       "BPEDecoder",       GTORCH_STEP_BPE_DECODER,      read_bpe_decoder },
  { "decoder",       "ByteFallback",     GTORCH_STEP_BYTE_FALLBACK,    read_nothing },
  { "decoder",       "Fuse",             GTORCH_STEP_FUSE,             read_nothing },
  { "decoder",       "Strip",            GTORCH_STEP_STRIP,            read_strip },
  { "decoder",       "Replace",          GTORCH_STEP_REPLACE,          read_replace },
};
/* clang-format on */

static gboolean
read_step (Reader *reader, GArray *steps)
{
  const GTorchJsonNode *type = gtorch_json_lookup (reader->node, "type");
  GTorchStep step = { 0 };

  if (type == NULL || type->kind != GTORCH_JSON_STRING)
    {
      reader->type = "";
      return fail (reader, "type", _ ("a string"));
    }
  reader->type = type->string;
  if (steps->len == MAX_STEPS)
    {
      g_set_error (reader->error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("tokenizer: %s: more than %d steps"), reader->section, MAX_STEPS);
      return FALSE;
    }
  if (strcmp (reader->type, "Sequence") == 0)
    {
      const gchar *key = reader->section[0] == 'n'   ? "normalizers"
                         : reader->section[0] == 'p' ? "pretokenizers"
                                                     : "decoders";
      const GTorchJsonNode *list = gtorch_json_lookup (reader->node, key);

      if (list == NULL || list->kind != GTORCH_JSON_ARRAY)
        return fail (reader, key, _ ("an array"));
      for (const GTorchJsonNode *item = list->first; item != NULL; item = item->next)
        {
          reader->node = item;
          if (!read_step (reader, steps))
            return FALSE;
        }
      return TRUE;
    }
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    if (strcmp (types[i].section, reader->section) == 0
        && strcmp (types[i].type, reader->type) == 0)
      {
        step.kind = types[i].kind;
        if (!types[i].read (reader, &step))
          {
            gtorch_step_clear (&step);
            return FALSE;
          }
        g_array_append_val (steps, step);
        return TRUE;
      }
  g_set_error (reader->error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("tokenizer: %s: “%s” is not supported"), reader->section,
               gtorch_name_str (reader->type));
  return FALSE;
}

GArray *
gtorch_steps_parse (const gchar *section, const GTorchJsonNode *node, GError **error)
{
  g_autoptr (GArray) steps = g_array_new (FALSE, FALSE, sizeof (GTorchStep));
  Reader reader = { section, NULL, node, error };

  g_array_set_clear_func (steps, gtorch_step_clear);
  if (node != NULL && !read_step (&reader, steps))
    return NULL;
  return g_steal_pointer (&steps);
}
