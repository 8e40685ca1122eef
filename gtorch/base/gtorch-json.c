/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-json-private.h"

#include <glib/gi18n-lib.h>
#include <stdlib.h>
#include <string.h>

#include "base/gtorch-error.h"

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
  gchar *start, *at, *end;
  GError **error;
} Parser;

static gboolean
fail (Parser *parser, const gchar *expected)
{
  g_set_error (parser->error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("%s: byte %zu of the JSON text: expected %s"), parser->who,
               (gsize) (parser->at - parser->start), expected);
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

static void
skip_space (Parser *parser)
{
  while (
      parser->at < parser->end
      && (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n' || *parser->at == '\r'))
    parser->at++;
}

static gboolean
accept (Parser *parser, gchar c)
{
  skip_space (parser);
  if (parser->at == parser->end || *parser->at != c)
    return FALSE;
  parser->at++;
  return TRUE;
}

static gboolean
parse_hex (Parser *parser, guint *unit)
{
  *unit = 0;
  if (parser->end - parser->at < 4)
    return FALSE;
  for (guint i = 0; i < 4; i++)
    {
      gint digit = g_ascii_xdigit_value (*parser->at);

      if (digit < 0)
        return FALSE;
      *unit = *unit * 16 + digit;
      parser->at++;
    }
  return TRUE;
}

/* What an escape stands for is never longer than the escape. */
static gboolean
parse_escape (Parser *parser, gchar **to)
{
  static const gchar letters[] = "\"\\/bfnrt";
  static const gchar meanings[] = "\"\\/\b\f\n\r\t";
  const gchar *letter;
  guint unit, low;

  if (parser->at == parser->end || *parser->at == '\0')
    return FALSE;
  if (*parser->at != 'u')
    {
      letter = strchr (letters, *parser->at++);
      if (letter == NULL)
        return FALSE;
      *(*to)++ = meanings[letter - letters];
      return TRUE;
    }
  parser->at++;
  if (!parse_hex (parser, &unit))
    return FALSE;
  if (unit >= 0xd800 && unit < 0xdc00)
    {
      if (parser->end - parser->at < 2 || parser->at[0] != '\\' || parser->at[1] != 'u')
        return FALSE;
      parser->at += 2;
      if (!parse_hex (parser, &low) || low < 0xdc00 || low > 0xdfff)
        return FALSE;
      unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
  else if (unit == 0 || (unit >= 0xdc00 && unit < 0xe000))
    return FALSE; /* a string would end at a zero byte */
  *to += g_unichar_to_utf8 (unit, *to);
  return TRUE;
}

/* At the opening quote. */
static const gchar *
parse_string (Parser *parser)
{
  gchar *result, *to;

  if (!accept (parser, '"'))
    {
      fail (parser, "\"");
      return NULL;
    }
  result = to = parser->at;
  while (parser->at < parser->end && (guchar) *parser->at >= 0x20 && *parser->at != '"')
    {
      if (*parser->at != '\\')
        {
          *to++ = *parser->at++;
          continue;
        }
      parser->at++;
      if (!parse_escape (parser, &to))
        {
          fail (parser, _ ("an escape sequence other than of a zero byte"));
          return NULL;
        }
    }
  if (parser->at == parser->end || *parser->at != '"')
    {
      fail (parser, _ ("the end of a string"));
      return NULL;
    }
  parser->at++;
  *to = '\0'; /* on the quote at the latest */
  return result;
}

static gchar *
skip_digits (gchar *at)
{
  while (g_ascii_isdigit (*at))
    at++;
  return at;
}

/* The text ends with a zero byte, at which every loop stops. */
static gboolean
parse_number (Parser *parser, GTorchJsonNode *node)
{
  gchar *at = parser->at, *digits, *after;
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
  node->number = g_ascii_strtod (parser->at, NULL);
  for (; is_integer && digits < at; digits++)
    is_integer = !__builtin_mul_overflow (value, 10, &value)
                 && !__builtin_add_overflow (value, *digits - '0', &value);
  node->is_integer = is_integer;
  node->integer = is_integer ? (*parser->at == '-' ? -value : value) : 0;
  parser->at = at;
  return TRUE;
}

static gboolean
parse_word (Parser *parser, GTorchJsonNode *node)
{
  static const gchar *const words[] = { "null", "false", "true" };

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (g_str_has_prefix (parser->at, words[i]))
      {
        parser->at += strlen (words[i]);
        node->kind = GTORCH_JSON_NULL + i;
        return TRUE;
      }
  return fail (parser, _ ("a value"));
}

static gboolean
parse_scalar (Parser *parser, GTorchJsonNode *node)
{
  if (*parser->at == '"')
    {
      node->kind = GTORCH_JSON_STRING;
      return (node->string = parse_string (parser)) != NULL;
    }
  if (*parser->at == '-' || g_ascii_isdigit (*parser->at))
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

      if (level != NULL && accept (parser, closing))
        {
          level->node->end = parser->at - parser->start;
          if (--depth == 0)
            return TRUE;
          continue;
        }
      if (level != NULL && level->last != NULL)
        {
          if (!accept (parser, ','))
            return fail (parser, in_object ? _ ("\",\" or \"}\"") : _ ("\",\" or \"]\""));
        }
      if (in_object)
        {
          if ((key = parse_string (parser)) == NULL)
            return FALSE;
          if (!accept (parser, ':'))
            return fail (parser, "\":\"");
        }
      skip_space (parser);
      node = new_node (parser->json);
      node->key = key;
      node->begin = parser->at - parser->start;
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
      if (*parser->at == '{' || *parser->at == '[')
        {
          if (depth == MAX_DEPTH)
            return fail (parser, _ ("at most 64 values in one another"));
          node->kind = *parser->at++ == '{' ? GTORCH_JSON_OBJECT : GTORCH_JSON_ARRAY;
          levels[depth++] = (Level){ node, NULL };
          continue;
        }
      if (!parse_scalar (parser, node))
        return FALSE;
      node->end = parser->at - parser->start;
      if (depth == 0)
        return TRUE;
    }
}

GTorchJson *
gtorch_json_parse (const gchar *who, const gchar *text, gsize length, GError **error)
{
  g_autoptr (GTorchJson) json = g_new0 (GTorchJson, 1);
  Parser parser = { json, who, NULL, NULL, NULL, error };
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
  parser.start = parser.at = json->text;
  parser.end = json->text + length;
  if (!parse (&parser))
    return NULL;
  skip_space (&parser);
  if (parser.at < parser.end)
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
