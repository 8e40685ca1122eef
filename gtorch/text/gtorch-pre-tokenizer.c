/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gio/gio.h>
#include <string.h>

#include "text/gtorch-tokenizer-private.h"

typedef struct
{
  gsize begin, end;
  gboolean is_match;
} Part;

void
gtorch_pieces_init (GTorchPieces *pieces)
{
  pieces->text = g_string_new (NULL);
  pieces->text_before = g_string_new (NULL);
  pieces->pieces = g_array_new (FALSE, FALSE, sizeof (GTorchPiece));
  pieces->pieces_before = g_array_new (FALSE, FALSE, sizeof (GTorchPiece));
  pieces->parts = g_array_new (FALSE, FALSE, sizeof (Part));
}

void
gtorch_pieces_clear (GTorchPieces *pieces)
{
  g_string_free (pieces->text, TRUE);
  g_string_free (pieces->text_before, TRUE);
  g_array_unref (pieces->pieces);
  g_array_unref (pieces->pieces_before);
  g_array_unref (pieces->parts);
}

static void
add_piece (GTorchPieces *pieces, gsize begin, gsize end)
{
  GTorchPiece piece = { begin, end };

  if (begin < end)
    g_array_append_val (pieces->pieces, piece);
}

static void
add_part (GTorchPieces *pieces, gsize begin, gsize end, gboolean is_match)
{
  Part part = { begin, end, is_match };

  g_array_append_val (pieces->parts, part);
}

/* --- what is found in a piece --- */

typedef gboolean (*IsMatch) (gunichar c);

/* Each matching character is a match of its own. */
static void
find_chars (GTorchPieces *pieces, const GTorchPiece *piece, IsMatch is_match)
{
  const gchar *text = pieces->text->str;
  gsize at = piece->begin, before = at, next;

  for (; at < piece->end; at = next)
    {
      next = g_utf8_next_char (text + at) - text;
      if (!is_match (g_utf8_get_char (text + at)))
        continue;
      if (before < at)
        add_part (pieces, before, at, FALSE);
      add_part (pieces, at, next, TRUE);
      before = next;
    }
  if (before < at)
    add_part (pieces, before, at, FALSE);
}

/* \w+ and [^\w\s]+ are matches. */
static void
find_words (GTorchPieces *pieces, const GTorchPiece *piece)
{
  const gchar *text = pieces->text->str;
  gint before = -1;
  gsize begin = piece->begin, at = begin;

  for (; at < piece->end; at = g_utf8_next_char (text + at) - text)
    {
      gunichar c = g_utf8_get_char (text + at);
      gint class = gtorch_char_is_word (c) ? 1 : gtorch_char_is_space (c) ? 0 : 2;

      if (class != before && begin < at)
        {
          add_part (pieces, begin, at, before != 0);
          begin = at;
        }
      before = class;
    }
  if (begin < at)
    add_part (pieces, begin, at, before != 0);
}

static void
find_string (GTorchPieces *pieces, const GTorchPiece *piece, const gchar *pattern)
{
  const gchar *text = pieces->text->str;
  gsize length = strlen (pattern), before = piece->begin;

  while (length > 0 && before + length <= piece->end)
    {
      const gchar *found = memmem (text + before, piece->end - before, pattern, length);

      if (found == NULL)
        break;
      if (found > text + before)
        add_part (pieces, before, found - text, FALSE);
      add_part (pieces, found - text, found - text + length, TRUE);
      before = found - text + length;
    }
  if (before < piece->end)
    add_part (pieces, before, piece->end, FALSE);
}

/* The piece is the whole text for the expression. */
static gboolean
find_regex (GTorchPieces *pieces, const GTorchPiece *piece, GRegex *regex, GError **error)
{
  g_autoptr (GMatchInfo) info = NULL;
  const gchar *text = pieces->text->str + piece->begin;
  GError *local = NULL;
  gsize before = piece->begin;

  g_regex_match_full (regex, text, piece->end - piece->begin, 0, 0, &info, &local);
  while (local == NULL && g_match_info_matches (info))
    {
      gint begin, end;

      g_match_info_fetch_pos (info, 0, &begin, &end);
      if (before < piece->begin + begin)
        add_part (pieces, before, piece->begin + begin, FALSE);
      add_part (pieces, piece->begin + begin, piece->begin + end, TRUE);
      before = piece->begin + end;
      g_match_info_next (info, &local);
    }
  if (local != NULL)
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  if (before < piece->end)
    add_part (pieces, before, piece->end, FALSE);
  return TRUE;
}

/* --- what becomes of it --- */

static void
merge_parts (GTorchPieces *pieces, GTorchSplitBehavior behavior)
{
  Part *parts = (Part *) pieces->parts->data;
  guint n = pieces->parts->len;
  gboolean was_match = FALSE;
  GTorchPiece piece = { 0, 0 };

  switch (behavior)
    {
    case GTORCH_SPLIT_REMOVED:
    case GTORCH_SPLIT_ISOLATED:
      for (guint i = 0; i < n; i++)
        if (behavior == GTORCH_SPLIT_ISOLATED || !parts[i].is_match)
          add_piece (pieces, parts[i].begin, parts[i].end);
      return;
    case GTORCH_SPLIT_MERGED_WITH_NEXT:
      for (guint i = n; i-- > 0;)
        {
          if (i + 1 < n && parts[i].is_match && !was_match)
            {
              parts[i].end = parts[i + 1].end;
              parts[i + 1].begin = parts[i + 1].end;
            }
          was_match = parts[i].is_match;
        }
      for (guint i = 0; i < n; i++)
        add_piece (pieces, parts[i].begin, parts[i].end);
      return;
    case GTORCH_SPLIT_MERGED_WITH_PREVIOUS:
    case GTORCH_SPLIT_CONTIGUOUS:
      for (guint i = 0; i < n; i++)
        {
          gboolean joins = behavior == GTORCH_SPLIT_CONTIGUOUS ? parts[i].is_match == was_match
                                                               : parts[i].is_match && !was_match;

          if (i == 0 || !joins)
            {
              add_piece (pieces, piece.begin, piece.end);
              piece.begin = parts[i].begin;
            }
          piece.end = parts[i].end;
          was_match = parts[i].is_match;
        }
      add_piece (pieces, piece.begin, piece.end);
      return;
    }
}

/* --- byte-level --- */

/* Printable characters of Latin-1 stand for themselves, the other bytes for characters from U+0100 on. */
gunichar
gtorch_byte_char (guint8 byte)
{
  if (byte <= 32)
    return 256 + byte;
  if (byte >= 127 && byte <= 160)
    return 256 + 33 + (byte - 127);
  return byte == 173 ? 256 + 67 : byte;
}

gint
gtorch_char_byte (gunichar c)
{
  if (c < 256)
    return c <= 32 || (c >= 127 && c <= 160) || c == 173 ? -1 : (gint) c;
  c -= 256;
  if (c <= 32)
    return c;
  return c < 67 ? (gint) c - 33 + 127 : c == 67 ? 173 : -1;
}

typedef enum
{
  OTHER,
  LETTER,
  NUMBER,
  SPACE,
} Class;

static Class
class_of (gunichar c)
{
  if (c < 0x80)
    {
      if (g_ascii_isalpha (c))
        return LETTER;
      return g_ascii_isdigit (c) ? NUMBER : gtorch_char_is_space (c) ? SPACE : OTHER;
    }
  if (gtorch_char_is_space (c))
    return SPACE;
  switch (g_unichar_type (c))
    {
    case G_UNICODE_LOWERCASE_LETTER:
    case G_UNICODE_MODIFIER_LETTER:
    case G_UNICODE_OTHER_LETTER:
    case G_UNICODE_TITLECASE_LETTER:
    case G_UNICODE_UPPERCASE_LETTER:
      return LETTER;
    case G_UNICODE_DECIMAL_NUMBER:
    case G_UNICODE_LETTER_NUMBER:
    case G_UNICODE_OTHER_NUMBER:
      return NUMBER;
    default:
      return OTHER;
    }
}

static const gchar *
end_of_class (const gchar *at, const gchar *end, Class class)
{
  while (at < end && class_of (g_utf8_get_char (at)) == class)
    at = g_utf8_next_char (at);
  return at;
}

/* The end of what GPT-2's expression matches at `at`:
 *
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Blanks before a word are one match without the last of them, which belongs to the word. */
static const gchar *
end_of_word (const gchar *at, const gchar *end)
{
  static const gchar *const contractions[] = { "'s", "'t", "'re", "'ve", "'m", "'ll", "'d" };
  const gchar *from = at, *last;
  Class class;

  if (*at == '\'')
    for (guint i = 0; i < G_N_ELEMENTS (contractions); i++)
      {
        gsize length = strlen (contractions[i]);

        if (length <= (gsize) (end - at) && memcmp (at, contractions[i], length) == 0)
          return at + length;
      }
  class = class_of (g_utf8_get_char (at));
  if (*at == ' ' && at + 1 < end && class_of (g_utf8_get_char (at + 1)) != SPACE)
    class = class_of (g_utf8_get_char (++from));
  from = end_of_class (from, end, class);
  if (class != SPACE || from == end)
    return from;
  last = g_utf8_prev_char (from);
  return last > at ? last : from;
}

static void
byte_level (const GTorchStep *step, GTorchPieces *pieces)
{
  g_autoptr (GString) prefixed = g_string_new (NULL);
  GString *result = pieces->text;

  for (guint i = 0; i < pieces->pieces_before->len; i++)
    {
      const GTorchPiece *piece = &g_array_index (pieces->pieces_before, GTorchPiece, i);
      const gchar *at = pieces->text_before->str + piece->begin;
      const gchar *end = pieces->text_before->str + piece->end, *next;

      if (step->add_prefix_space && *at != ' ')
        {
          g_string_assign (prefixed, " ");
          g_string_append_len (prefixed, at, end - at);
          at = prefixed->str;
          end = at + prefixed->len;
        }
      for (; at < end; at = next)
        {
          gsize begin = result->len;

          next = step->use_regex ? end_of_word (at, end) : end;
          for (const gchar *byte = at; byte < next; byte++)
            {
              gunichar c = gtorch_byte_char (*byte);

              if (c < 0x80)
                g_string_append_c (result, c);
              else
                {
                  g_string_append_c (result, 0xc0 | c >> 6);
                  g_string_append_c (result, 0x80 | (c & 0x3f));
                }
            }
          add_piece (pieces, begin, result->len);
        }
    }
}

static gboolean
split_piece (const GTorchStep *step, GTorchPieces *pieces, const GTorchPiece *piece, GError **error)
{
  GTorchSplitBehavior behavior = step->behavior;

  g_array_set_size (pieces->parts, 0);
  switch (step->kind)
    {
    case GTORCH_STEP_BERT_WORDS:
      find_chars (pieces, piece, gtorch_char_is_space);
      behavior = GTORCH_SPLIT_REMOVED;
      break;
    case GTORCH_STEP_WHITESPACE_SPLIT:
      find_chars (pieces, piece, gtorch_char_is_space);
      behavior = GTORCH_SPLIT_REMOVED;
      break;
    case GTORCH_STEP_WHITESPACE:
      find_words (pieces, piece);
      for (guint i = 0; i < pieces->parts->len; i++)
        g_array_index (pieces->parts, Part, i).is_match ^= TRUE;
      behavior = GTORCH_SPLIT_REMOVED;
      break;
    case GTORCH_STEP_PUNCTUATION:
      find_chars (pieces, piece, gtorch_char_is_punctuation);
      break;
    case GTORCH_STEP_DIGITS:
      find_chars (pieces, piece, gtorch_char_is_number);
      behavior = step->individual ? GTORCH_SPLIT_ISOLATED : GTORCH_SPLIT_CONTIGUOUS;
      break;
    case GTORCH_STEP_SPLIT:
      if (step->regex == NULL)
        find_string (pieces, piece, step->pattern);
      else if (!find_regex (pieces, piece, step->regex, error))
        return FALSE;
      for (guint i = 0; step->invert && i < pieces->parts->len; i++)
        g_array_index (pieces->parts, Part, i).is_match ^= TRUE;
      break;
    default:
      g_assert_not_reached ();
    }
  merge_parts (pieces, behavior);
  return TRUE;
}

static void
swap_pieces (GTorchPieces *pieces)
{
  GArray *array = pieces->pieces;

  pieces->pieces = pieces->pieces_before;
  pieces->pieces_before = array;
  g_array_set_size (pieces->pieces, 0);
}

gboolean
gtorch_pre_tokenize (const GArray *steps, const gchar *text, gsize length, GTorchPieces *pieces,
                     GError **error)
{
  static const GTorchStep punctuation = { .kind = GTORCH_STEP_PUNCTUATION,
                                          .behavior = GTORCH_SPLIT_ISOLATED };

  g_string_truncate (pieces->text, 0);
  g_string_append_len (pieces->text, text, length);
  g_array_set_size (pieces->pieces, 0);
  add_piece (pieces, 0, length);
  for (guint i = 0; i < steps->len; i++)
    {
      const GTorchStep *step = &g_array_index (steps, GTorchStep, i);

      swap_pieces (pieces);
      if (step->kind == GTORCH_STEP_BYTE_LEVEL)
        {
          GString *string = pieces->text;

          pieces->text = pieces->text_before;
          pieces->text_before = string;
          g_string_truncate (pieces->text, 0);
          byte_level (step, pieces);
          continue;
        }
      for (guint j = 0; j < pieces->pieces_before->len; j++)
        if (!split_piece (step, pieces, &g_array_index (pieces->pieces_before, GTorchPiece, j),
                          error))
          return FALSE;
      if (step->kind != GTORCH_STEP_BERT_WORDS)
        continue;
      swap_pieces (pieces);
      for (guint j = 0; j < pieces->pieces_before->len; j++)
        split_piece (&punctuation, pieces, &g_array_index (pieces->pieces_before, GTorchPiece, j),
                     NULL);
    }
  return TRUE;
}
