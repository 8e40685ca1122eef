/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-json-lexer-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

static gboolean
parse_hex (GTorchJsonLexer *self, guint *unit)
{
  *unit = 0;
  if (self->end - self->at < 4)
    return FALSE;
  for (guint i = 0; i < 4; i++)
    {
      gint digit = g_ascii_xdigit_value (*self->at);

      if (digit < 0)
        return FALSE;
      *unit = *unit * 16 + digit;
      self->at++;
    }
  return TRUE;
}

/* What an escape stands for is never longer than the escape. */
static gboolean
parse_escape (GTorchJsonLexer *self, gchar **to)
{
  static const gchar letters[] = "\"\\/bfnrt";
  static const gchar meanings[] = "\"\\/\b\f\n\r\t";
  const gchar *letter;
  guint unit, low;

  if (self->at == self->end || *self->at == '\0')
    return FALSE;
  if (*self->at != 'u')
    {
      letter = strchr (letters, *self->at++);
      if (letter == NULL)
        return FALSE;
      *(*to)++ = meanings[letter - letters];
      return TRUE;
    }
  self->at++;
  if (!parse_hex (self, &unit))
    return FALSE;
  if (unit >= 0xd800 && unit < 0xdc00)
    {
      if (self->end - self->at < 2 || self->at[0] != '\\' || self->at[1] != 'u')
        return FALSE;
      self->at += 2;
      if (!parse_hex (self, &low) || low < 0xdc00 || low > 0xdfff)
        return FALSE;
      unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
  else if (unit == 0 || (unit >= 0xdc00 && unit < 0xe000))
    return FALSE; /* a string would end at a zero byte */
  *to += g_unichar_to_utf8 (unit, *to);
  return TRUE;
}

const gchar *
gtorch_json_read_string (GTorchJsonLexer *self, gchar *to)
{
  while (self->at < self->end && (guchar) *self->at >= 0x20 && *self->at != '"')
    {
      if (*self->at != '\\')
        {
          *to++ = *self->at++;
          continue;
        }
      self->at++;
      if (!parse_escape (self, &to))
        return _ ("an escape sequence other than of a zero byte");
    }
  if (self->at == self->end || *self->at != '"')
    return _ ("the end of a string");
  self->at++;
  *to = '\0'; /* on the quote at the latest */
  return NULL;
}

gsize
gtorch_json_string_room (const GTorchJsonLexer *self)
{
  const gchar *at = self->at;

  while (at < self->end && *at != '"')
    at += *at == '\\' && self->end - at > 1 ? 2 : 1;
  return at - self->at + 1;
}
