/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-json-private.h"

#include <glib/gi18n-lib.h>
#include <stdlib.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-json-lexer-private.h"

#define MAX_DEPTH 64
/* A comma, a bracket and a colon begin at most one value each. */
#define NODES_PER_BLOCK 4096

typedef struct _Block Block;

struct _Block
{
  Block *before;
  guint n;
  GTorchJsonNode nodes[NODES_PER_BLOCK];
};

struct _GTorchJson
{
  gchar *text; /* strings are unescaped in it */
  Block *blocks;
  GTorchJsonNode *root;
};

typedef struct
{
  GTorchJson *json;
  const gchar *who;
  GTorchJsonLexer in;
  GError **error;
} Parser;

static gboolean
fail (Parser *parser, const gchar *expected)
{
  g_set_error (parser->error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("%s: byte %zu of the JSON text: expected %s"), parser->who,
               (gsize) (parser->in.at - parser->in.start), expected);
  return FALSE;
}

static GTorchJsonNode *
new_node (GTorchJson *json)
{
  if (json->blocks == NULL || json->blocks->n == NODES_PER_BLOCK)
    {
      Block *block = g_new (Block, 1);

      block->before = json->blocks;
      block->n = 0;
      json->blocks = block;
    }
  memset (&json->blocks->nodes[json->blocks->n], 0, sizeof (GTorchJsonNode));
  return &json->blocks->nodes[json->blocks->n++];
}

/* At the opening quote; in the place of the text. */
static const gchar *
parse_string (Parser *parser)
{
  const gchar *expected = "\"";
  gchar *result;

  if (gtorch_json_accept (&parser->in, '"'))
    {
      result = parser->json->text + (parser->in.at - parser->in.start);
      expected = gtorch_json_read_string (&parser->in, result);
      if (expected == NULL)
        return result;
    }
  fail (parser, expected);
  return NULL;
}

static const gchar *
skip_digits (const gchar *at)
{
  while (g_ascii_isdigit (*at))
    at++;
  return at;
}

/* The text ends with a zero byte, at which every loop stops. */
static gboolean
parse_number (Parser *parser, GTorchJsonNode *node)
{
  const gchar *at = parser->in.at, *digits, *after;
  gboolean is_integer = TRUE;
  gint64 value = 0;

  if (*at == '-')
    at++;
  digits = at;
  at = skip_digits (at);
  if (at == digits || (*digits == '0' && at - digits > 1))
    return fail (parser, _ ("a value"));
  if (*at == '.')
    {
      is_integer = FALSE;
      after = skip_digits (at + 1);
      if (after == at + 1)
        return fail (parser, _ ("a number"));
      at = after;
    }
  if (*at == 'e' || *at == 'E')
    {
      is_integer = FALSE;
      at++;
      if (*at == '+' || *at == '-')
        at++;
      after = skip_digits (at);
      if (after == at)
        return fail (parser, _ ("a number"));
      at = after;
    }
  node->kind = GTORCH_JSON_NUMBER;
  node->number = g_ascii_strtod (parser->in.at, NULL);
  for (; is_integer && digits < at; digits++)
    is_integer = !__builtin_mul_overflow (value, 10, &value)
                 && !__builtin_add_overflow (value, *digits - '0', &value);
  node->is_integer = is_integer;
  node->integer = is_integer ? (*parser->in.at == '-' ? -value : value) : 0;
  parser->in.at = at;
  return TRUE;
}

static gboolean
parse_word (Parser *parser, GTorchJsonNode *node)
{
  static const gchar *const words[] = { "null", "false", "true" };

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (g_str_has_prefix (parser->in.at, words[i]))
      {
        parser->in.at += strlen (words[i]);
        node->kind = GTORCH_JSON_NULL + i;
        return TRUE;
      }
  return fail (parser, _ ("a value"));
}

static gboolean
parse_scalar (Parser *parser, GTorchJsonNode *node)
{
  if (*parser->in.at == '"')
    {
      node->kind = GTORCH_JSON_STRING;
      return (node->string = parse_string (parser)) != NULL;
    }
  if (*parser->in.at == '-' || g_ascii_isdigit (*parser->in.at))
    return parse_number (parser, node);
  return parse_word (parser, node);
}

typedef struct
{
  GTorchJsonNode *node, *last;
} Level;

static gboolean
parse (Parser *parser)
{
  Level levels[MAX_DEPTH];
  guint depth = 0;

  for (;;)
    {
      Level *level = depth > 0 ? &levels[depth - 1] : NULL;
      gboolean in_object = level != NULL && level->node->kind == GTORCH_JSON_OBJECT;
      gchar closing = in_object ? '}' : ']';
      GTorchJsonNode *node;
      const gchar *key = NULL;

      if (level != NULL && gtorch_json_accept (&parser->in, closing))
        {
          level->node->end = parser->in.at - parser->in.start;
          if (--depth == 0)
            return TRUE;
          continue;
        }
      if (level != NULL && level->last != NULL)
        {
          if (!gtorch_json_accept (&parser->in, ','))
            return fail (parser, in_object ? _ ("\",\" or \"}\"") : _ ("\",\" or \"]\""));
        }
      if (in_object)
        {
          if ((key = parse_string (parser)) == NULL)
            return FALSE;
          if (!gtorch_json_accept (&parser->in, ':'))
            return fail (parser, "\":\"");
        }
      gtorch_json_skip_space (&parser->in);
      node = new_node (parser->json);
      node->key = key;
      node->begin = parser->in.at - parser->in.start;
      if (level == NULL)
        parser->json->root = node;
      else if (level->last == NULL)
        level->node->first = node;
      else
        level->last->next = node;
      if (level != NULL)
        {
          level->last = node;
          level->node->n_children++;
        }
      if (*parser->in.at == '{' || *parser->in.at == '[')
        {
          if (depth == MAX_DEPTH)
            return fail (parser, _ ("at most 64 values in one another"));
          node->kind = *parser->in.at++ == '{' ? GTORCH_JSON_OBJECT : GTORCH_JSON_ARRAY;
          levels[depth++] = (Level){ node, NULL };
          continue;
        }
      if (!parse_scalar (parser, node))
        return FALSE;
      node->end = parser->in.at - parser->in.start;
      if (depth == 0)
        return TRUE;
    }
}

GTorchJson *
gtorch_json_parse (const gchar *who, const gchar *text, gsize length, GError **error)
{
  g_autoptr (GTorchJson) json = g_new0 (GTorchJson, 1);
  Parser parser = { json, who, { NULL, NULL, NULL }, error };
  const gchar *invalid;

  if (!g_utf8_validate_len (text, length, &invalid))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("%s: byte %zu of the JSON text: expected UTF-8"), who,
                   (gsize) (invalid - text));
      return NULL;
    }
  json->text = g_try_malloc (length + 1);
  if (json->text == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                   _ ("%s: %zu bytes could not be allocated"), who, length + 1);
      return NULL;
    }
  memcpy (json->text, text, length);
  json->text[length] = '\0';
  parser.in = (GTorchJsonLexer){ json->text, json->text, json->text + length };
  if (!parse (&parser))
    return NULL;
  gtorch_json_skip_space (&parser.in);
  if (parser.in.at < parser.in.end)
    {
      fail (&parser, _ ("the end of the text"));
      return NULL;
    }
  return g_steal_pointer (&json);
}

const GTorchJsonNode *
gtorch_json_get_root (GTorchJson *json)
{
  return json->root;
}

void
gtorch_json_free (GTorchJson *json)
{
  while (json->blocks != NULL)
    {
      Block *block = json->blocks;

      json->blocks = block->before;
      g_free (block);
    }
  g_free (json->text);
  g_free (json);
}

const GTorchJsonNode *
gtorch_json_lookup (const GTorchJsonNode *object, const gchar *key)
{
  const GTorchJsonNode *result = NULL;

  if (object == NULL || object->kind != GTORCH_JSON_OBJECT)
    return NULL;
  for (const GTorchJsonNode *node = object->first; node != NULL; node = node->next)
    if (strcmp (node->key, key) == 0)
      result = node;
  return result != NULL && result->kind != GTORCH_JSON_NULL ? result : NULL;
}

const gchar *
gtorch_json_kind_name (const GTorchJsonNode *node)
{
  static const gchar *const names[] = { "null",          "false",         "true",
                                        N_ ("a number"), N_ ("a string"), N_ ("an array"),
                                        N_ ("an object") };

  return node != NULL ? _ (names[node->kind]) : _ ("nothing");
}

void
gtorch_json_write_string (GString *text, const gchar *string, gssize length)
{
  const gchar *end = string + (length >= 0 ? (gsize) length : strlen (string));

  g_string_append_c (text, '"');
  for (; string < end; string++)
    {
      guchar c = *string;

      if (c == '"' || c == '\\')
        {
          g_string_append_c (text, '\\');
          g_string_append_c (text, c);
        }
      else if (c == '\n')
        g_string_append (text, "\\n");
      else if (c < 0x20 || c == 0x7f)
        g_string_append_printf (text, "\\u%04x", c);
      else
        g_string_append_c (text, c);
    }
  g_string_append_c (text, '"');
}
