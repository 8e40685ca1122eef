/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* From tokens to text. Each decoder changes the list of texts that the tokens have become; what is left is
 * put together. Texts have lengths here, since tokens of bytes may stand for zero bytes and for parts of
 * characters. */

#include "config.h"

#include <gio/gio.h>
#include <string.h>

#include "text/gtorch-tokenizer-private.h"

static void
string_free (gpointer string)
{
  g_string_free (string, TRUE);
}

static void
cleanup (GString *text)
{
  static const gchar *const table[][2] = {
    { " .", "." },   { " ?", "?" },     { " !", "!" },     { " ,", "," },
    { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },   { " do not", " don't" },
    { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (table); i++)
    gtorch_text_replace (text, table[i][0], table[i][1]);
}

static void
decode_wordpiece (const GTorchStep *step, GPtrArray *texts)
{
  for (guint i = 0; i < texts->len; i++)
    {
      GString *text = texts->pdata[i];

      if (i > 0 && g_str_has_prefix (text->str, step->content))
        g_string_erase (text, 0, strlen (step->content));
      else if (i > 0)
        g_string_prepend_c (text, ' ');
      if (step->cleanup)
        cleanup (text);
    }
}

static void
decode_suffixes (const GTorchStep *step, GPtrArray *texts)
{
  for (guint i = 0; i < texts->len; i++)
    gtorch_text_replace (texts->pdata[i], step->content, i + 1 < texts->len ? " " : "");
}

/* A token with a character that stands for no byte, such as an added one, stays as it is. */
static void
decode_bytes (GPtrArray *texts)
{
  for (guint i = 0; i < texts->len; i++)
    {
      GString *text = texts->pdata[i];
      gchar *to = text->str;
      const gchar *at;

      for (at = text->str; *at != '\0'; at = g_utf8_next_char (at))
        if (gtorch_char_byte (g_utf8_get_char (at)) < 0)
          break;
      if (*at != '\0')
        continue;
      for (at = text->str; *at != '\0'; to++)
        {
          gint byte = gtorch_char_byte (g_utf8_get_char (at));

          at = g_utf8_next_char (at);
          *to = byte;
        }
      g_string_truncate (text, to - text->str);
    }
}

static gint
byte_of_token (const GString *text)
{
  gint high, low;

  if (text->len != 6 || !g_str_has_prefix (text->str, "<0x") || text->str[5] != '>')
    return -1;
  high = g_ascii_xdigit_value (text->str[3]);
  low = g_ascii_xdigit_value (text->str[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Bytes that are no UTF-8 become as many replacement characters. */
static void
decode_byte_tokens (GPtrArray *texts)
{
  for (guint i = 0, n; i < texts->len; i += n)
    {
      g_autoptr (GString) bytes = g_string_new (NULL);
      gboolean is_valid;

      for (n = 0; i + n < texts->len; n++)
        {
          gint byte = byte_of_token (texts->pdata[i + n]);

          if (byte < 0)
            break;
          g_string_append_c (bytes, byte);
        }
      if (n == 0)
        {
          n = 1;
          continue;
        }
      is_valid = g_utf8_validate_len (bytes->str, bytes->len, NULL)
                 || memchr (bytes->str, '\0', bytes->len) != NULL;
      for (guint j = 0; j < n; j++)
        {
          g_string_truncate (texts->pdata[i + j], 0);
          if (!is_valid)
            g_string_append (texts->pdata[i + j], "\357\277\275");
        }
      if (is_valid)
        g_string_append_len (texts->pdata[i], bytes->str, bytes->len);
    }
}

static void
fuse (GPtrArray *texts)
{
  for (guint i = 1; i < texts->len; i++)
    {
      GString *text = texts->pdata[i];

      g_string_append_len (texts->pdata[0], text->str, text->len);
    }
  if (texts->len > 1)
    g_ptr_array_set_size (texts, 1);
}

static void
strip (const GTorchStep *step, GPtrArray *texts)
{
  gsize length = strlen (step->content);

  for (guint i = 0; i < texts->len; i++)
    {
      GString *text = texts->pdata[i];

      for (gint64 n = 0; n < step->start && g_str_has_prefix (text->str, step->content); n++)
        g_string_erase (text, 0, length);
      for (gint64 n = 0; n < step->stop && text->len >= length
                         && memcmp (text->str + text->len - length, step->content, length) == 0;
           n++)
        g_string_truncate (text, text->len - length);
    }
}

gboolean
gtorch_decode_tokens (const GArray *steps, const gchar *const *tokens, gsize n_tokens,
                      GString *bytes, GError **error)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_full (n_tokens, string_free);

  for (gsize i = 0; i < n_tokens; i++)
    g_ptr_array_add (texts, g_string_new (tokens[i]));
  for (guint i = 0; i < steps->len; i++)
    {
      const GTorchStep *step = &g_array_index (steps, GTorchStep, i);

      switch (step->kind)
        {
        case GTORCH_STEP_WORDPIECE:
          decode_wordpiece (step, texts);
          break;
        case GTORCH_STEP_BPE_DECODER:
          decode_suffixes (step, texts);
          break;
        case GTORCH_STEP_BYTE_LEVEL:
          decode_bytes (texts);
          break;
        case GTORCH_STEP_BYTE_FALLBACK:
          decode_byte_tokens (texts);
          break;
        case GTORCH_STEP_FUSE:
          fuse (texts);
          break;
        case GTORCH_STEP_STRIP:
          strip (step, texts);
          break;
        case GTORCH_STEP_REPLACE:
          for (guint j = 0; j < texts->len; j++)
            if (!gtorch_step_replace (step, texts->pdata[j], error))
              return FALSE;
          break;
        default:
          g_assert_not_reached ();
        }
    }
  for (guint i = 0; i < texts->len; i++)
    {
      const GString *text = texts->pdata[i];

      if (i > 0 && steps->len == 0)
        g_string_append_c (bytes, ' ');
      g_string_append_len (bytes, text->str, text->len);
    }
  return TRUE;
}
