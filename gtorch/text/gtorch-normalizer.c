/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "text/gtorch-tokenizer-private.h"

/* White_Space, which is more than g_unichar_isspace () knows. */
gboolean
gtorch_char_is_space (gunichar c)
{
  if (c < 0x80)
    return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028
         || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

gboolean
gtorch_char_is_number (gunichar c)
{
  GUnicodeType type = g_unichar_type (c);

  return type == G_UNICODE_DECIMAL_NUMBER || type == G_UNICODE_LETTER_NUMBER
         || type == G_UNICODE_OTHER_NUMBER;
}

/* Letters, marks, digits, connectors, joiners, and symbols that are Alphabetic. */
gboolean
gtorch_char_is_word (gunichar c)
{
  if (c < 0x80)
    return g_ascii_isalnum (c) || c == '_';
  switch (g_unichar_type (c))
    {
    case G_UNICODE_LOWERCASE_LETTER:
    case G_UNICODE_MODIFIER_LETTER:
    case G_UNICODE_OTHER_LETTER:
    case G_UNICODE_TITLECASE_LETTER:
    case G_UNICODE_UPPERCASE_LETTER:
    case G_UNICODE_SPACING_MARK:
    case G_UNICODE_ENCLOSING_MARK:
    case G_UNICODE_NON_SPACING_MARK:
    case G_UNICODE_DECIMAL_NUMBER:
    case G_UNICODE_LETTER_NUMBER:
    case G_UNICODE_CONNECT_PUNCTUATION:
      return TRUE;
    default:
      return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9)
             || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169)
             || (c >= 0x1f170 && c <= 0x1f189);
    }
}

/* With the symbols of ASCII, such as $. */
gboolean
gtorch_char_is_punctuation (gunichar c)
{
  if (c < 0x80)
    return g_ascii_ispunct (c);
  switch (g_unichar_type (c))
    {
    case G_UNICODE_CONNECT_PUNCTUATION:
    case G_UNICODE_DASH_PUNCTUATION:
    case G_UNICODE_CLOSE_PUNCTUATION:
    case G_UNICODE_FINAL_PUNCTUATION:
    case G_UNICODE_INITIAL_PUNCTUATION:
    case G_UNICODE_OTHER_PUNCTUATION:
    case G_UNICODE_OPEN_PUNCTUATION:
      return TRUE;
    default:
      return FALSE;
    }
}

static gboolean
is_ascii (const GString *text)
{
  for (gsize i = 0; i < text->len; i++)
    if ((guchar) text->str[i] >= 0x80)
      return FALSE;
  return TRUE;
}

static gboolean
is_chinese (gunichar c)
{
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf)
         || (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b81f)
         || (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff)
         || (c >= 0x2f800 && c <= 0x2fa1f);
}

static gboolean
is_control (gunichar c)
{
  GUnicodeType type = g_unichar_type (c);

  return c == 0xfffd || type == G_UNICODE_CONTROL || type == G_UNICODE_FORMAT
         || type == G_UNICODE_PRIVATE_USE;
}

static void
clean (GString *text, gboolean remove_controls, gboolean chinese)
{
  g_autoptr (GString) result = g_string_sized_new (text->len + 16);

  for (const gchar *at = text->str; *at != '\0'; at = g_utf8_next_char (at))
    {
      gunichar c = g_utf8_get_char (at);

      if (remove_controls && c != '\t' && c != '\n' && c != '\r' && is_control (c))
        continue;
      if (remove_controls && gtorch_char_is_space (c))
        c = ' ';
      if (chinese && is_chinese (c))
        {
          g_string_append_c (result, ' ');
          g_string_append_unichar (result, c);
          c = ' ';
        }
      if (c < 0x80)
        g_string_append_c (result, c);
      else
        g_string_append_unichar (result, c);
    }
  g_string_truncate (text, 0);
  g_string_append_len (text, result->str, result->len);
}

static void
normalize (GString *text, GNormalizeMode mode)
{
  g_autofree gchar *result = NULL;

  if (is_ascii (text))
    return;
  result = g_utf8_normalize (text->str, text->len, mode);
  g_string_assign (text, result);
}

/* What is left of a text never needs more bytes. */
static void
remove_marks (GString *text, gboolean all)
{
  gchar *to = text->str;

  if (is_ascii (text))
    return;
  for (const gchar *at = text->str, *next; *at != '\0'; at = next)
    {
      gunichar c = g_utf8_get_char (at);
      GUnicodeType type = c < 0x300 ? G_UNICODE_CONTROL : g_unichar_type (c);

      next = g_utf8_next_char (at);
      if (type == G_UNICODE_NON_SPACING_MARK
          || (all && (type == G_UNICODE_SPACING_MARK || type == G_UNICODE_ENCLOSING_MARK)))
        continue;
      memmove (to, at, next - at);
      to += next - at;
    }
  g_string_truncate (text, to - text->str);
}

static void
lowercase (GString *text)
{
  g_autoptr (GString) result = NULL;

  if (is_ascii (text))
    {
      g_string_ascii_down (text);
      return;
    }
  result = g_string_sized_new (text->len + 16);
  for (const gchar *at = text->str; *at != '\0'; at = g_utf8_next_char (at))
    {
      gunichar c = g_utf8_get_char (at);

      /* The first is the only one that becomes two. GLib changes letters only, not numbers and symbols. */
      if (c == 0x130)
        g_string_append (result, "i\314\207");
      else if (c >= 0x2160 && c <= 0x216f)
        g_string_append_unichar (result, c + 16);
      else if (c >= 0x24b6 && c <= 0x24cf)
        g_string_append_unichar (result, c + 26);
      else
        g_string_append_unichar (result, g_unichar_tolower (c));
    }
  g_string_assign (text, result->str);
}

static void
trim (GString *text, gboolean left, gboolean right)
{
  const gchar *begin = text->str, *end = text->str + text->len;

  while (left && begin < end && gtorch_char_is_space (g_utf8_get_char (begin)))
    begin = g_utf8_next_char (begin);
  while (right && end > begin)
    {
      const gchar *last = g_utf8_prev_char (end);

      if (!gtorch_char_is_space (g_utf8_get_char (last)))
        break;
      end = last;
    }
  g_string_truncate (text, end - text->str);
  g_string_erase (text, 0, begin - text->str);
}

/* In linear time, unlike g_string_replace () of GLib before 2.82. */
void
gtorch_text_replace (GString *text, const gchar *pattern, const gchar *content)
{
  g_autoptr (GString) result = NULL;
  gsize length = strlen (pattern);
  const gchar *before = text->str, *found = length > 0 ? strstr (before, pattern) : NULL;

  if (found == NULL)
    return;
  result = g_string_sized_new (text->len + 16);
  for (; found != NULL; found = strstr (before, pattern))
    {
      g_string_append_len (result, before, found - before);
      g_string_append (result, content);
      before = found + length;
    }
  g_string_append (result, before);
  g_string_assign (text, result->str);
}

gboolean
gtorch_step_replace (const GTorchStep *step, GString *text, GError **error)
{
  g_autofree gchar *result = NULL;

  if (step->regex == NULL)
    {
      gtorch_text_replace (text, step->pattern, step->content);
      return TRUE;
    }
  result = g_regex_replace_literal (step->regex, text->str, text->len, 0, step->content, 0, error);
  if (result == NULL)
    return FALSE;
  g_string_assign (text, result);
  return TRUE;
}

gboolean
gtorch_text_normalize (const GArray *steps, GString *text, GError **error)
{
  for (guint i = 0; i < steps->len; i++)
    {
      const GTorchStep *step = &g_array_index (steps, GTorchStep, i);

      switch (step->kind)
        {
        case GTORCH_STEP_BERT:
          if (step->clean_text || step->chinese)
            clean (text, step->clean_text, step->chinese);
          if (step->strip_accents)
            {
              normalize (text, G_NORMALIZE_NFD);
              remove_marks (text, FALSE);
            }
          if (step->lowercase)
            lowercase (text);
          break;
        case GTORCH_STEP_NFD:
          normalize (text, G_NORMALIZE_NFD);
          break;
        case GTORCH_STEP_NFC:
          normalize (text, G_NORMALIZE_NFC);
          break;
        case GTORCH_STEP_NFKD:
          normalize (text, G_NORMALIZE_NFKD);
          break;
        case GTORCH_STEP_NFKC:
          normalize (text, G_NORMALIZE_NFKC);
          break;
        case GTORCH_STEP_LOWERCASE:
          lowercase (text);
          break;
        case GTORCH_STEP_STRIP_ACCENTS:
          remove_marks (text, TRUE);
          break;
        case GTORCH_STEP_TRIM:
          trim (text, step->left, step->right);
          break;
        case GTORCH_STEP_PREPEND:
          if (text->len > 0)
            g_string_prepend (text, step->content);
          break;
        case GTORCH_STEP_REPLACE:
          if (!gtorch_step_replace (step, text, error))
            return FALSE;
          break;
        default:
          g_assert_not_reached ();
        }
    }
  return TRUE;
}
