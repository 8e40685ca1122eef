/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Parsing text with delimiters into numbers, a record at a time.
 *
 * A record lies in the buffer as a whole while it is parsed: if it does not, more is read and the record
 * begun anew. The buffer ends with a zero, which is no part of any number, so that loops over digits need
 * not look for the end.
 *
 * A number whose digits make an integer of at most 53 bits and whose power of ten is at most 22 is the
 * correctly rounded product or quotient of two doubles that are exact. One with 64 bits and a power up to
 * 27 is computed in the processor's extended precision, where that is 64 bits wide: its result is off by at
 * most half of a bit, so rounding it to 53 bits is right unless the eleven bits that go are next to the
 * middle. All others, some in a thousand, are for g_ascii_strtod (). So numbers are those that Python has,
 * whatever the locale. */

#include "config.h"

#include "io/gtorch-csv-private.h"

#include <float.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "io/gtorch-safetensors-private.h"
#include "tensor/gtorch-cast-private.h"

#define BLOCK      (1 << 20)
#define MAX_RECORD (1 << 26) /* bytes: an open quote makes the rest of a file one record */

typedef enum
{
  DONE,
  MORE, /* the record does not end in the buffer */
  FAILED,
} Outcome;

void
gtorch_csv_parser_clear (GTorchCSVParser *self)
{
  g_clear_pointer (&self->buffer, g_free);
  if (self->token != NULL)
    g_string_free (g_steal_pointer (&self->token), TRUE);
}

gboolean
gtorch_csv_fill (GTorchCSVParser *self, GCancellable *cancellable, GError **error)
{
  gsize kept = self->end - self->at, n_read;

  if (self->is_at_end)
    return TRUE;
  if (kept > MAX_RECORD)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("csv_read: the record in line %" PRIu64
                      " has more than %d bytes; perhaps a quote is open"),
                   self->line, MAX_RECORD);
      return FALSE;
    }
  if (self->buffer != NULL)
    memmove (self->buffer, self->buffer + self->at, kept);
  if (self->room < 2 * kept + BLOCK)
    {
      self->room = 2 * kept + BLOCK;
      self->buffer = g_realloc (self->buffer, self->room + 1);
    }
  self->at = 0;
  self->end = kept;
  if (!gtorch_stream_read_all (self->stream, self->buffer + kept, self->room - kept, &n_read,
                               cancellable, error))
    return FALSE;
  self->is_at_end = n_read < self->room - kept;
  self->end += n_read;
  self->buffer[self->end] = '\0';
  return TRUE;
}

/* --- fields --- */

static gboolean
is_end (const GTorchCSVParser *self, const gchar *at)
{
  return *at == self->delimiter || *at == '\n' || *at == '\r' || at == self->buffer + self->end;
}

static gboolean
is_blank (const GTorchCSVParser *self, gchar c)
{
  return (c == ' ' || c == '\t') && c != self->delimiter;
}

/* Puts the text of a field into token, without the blanks around it, and leaves `at` behind the field. */
static Outcome
read_field (GTorchCSVParser *self, const gchar **at, guint64 *line, gboolean *is_quoted,
            GError **error)
{
  const gchar *end = self->buffer + self->end, *p = *at, *first;

  g_string_truncate (self->token, 0);
  while (is_blank (self, *p))
    p++;
  *is_quoted = self->quote != '\0' && *p == self->quote && p < end;
  if (!*is_quoted)
    {
      for (first = p; !is_end (self, p); p++)
        ;
      *at = p;
      while (p > first && is_blank (self, p[-1]))
        p--;
      g_string_append_len (self->token, first, p - first);
      return *at < end || self->is_at_end ? DONE : MORE;
    }
  for (p++;; p++)
    {
      if (p == end)
        {
          if (!self->is_at_end)
            return MORE;
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("csv_read: line %" PRIu64 ": a quote is not closed"), *line);
          return FAILED;
        }
      if (*p == self->quote)
        {
          if (p + 1 == end && !self->is_at_end)
            return MORE;
          if (p + 1 == end || p[1] != self->quote)
            break;
          p++;
        }
      else if (*p == '\n')
        ++*line;
      g_string_append_c (self->token, *p);
    }
  for (p++; is_blank (self, *p); p++)
    ;
  *at = p;
  if (p == end && !self->is_at_end)
    return MORE;
  if (is_end (self, p))
    return DONE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("csv_read: line %" PRIu64 ": “%.1s” follows a closing quote"), *line,
               (guchar) *p < 0x80 ? p : "?");
  return FAILED;
}

/* Goes over the end of a line; `at` is in front of it, or at the end of the buffer. */
static Outcome
end_line (GTorchCSVParser *self, const gchar **at, guint64 *line)
{
  const gchar *end = self->buffer + self->end;

  if (*at == end)
    return self->is_at_end ? DONE : MORE;
  if (**at == '\r')
    {
      if (*at + 1 == end && !self->is_at_end)
        return MORE;
      ++*at;
      if (*at == end || **at != '\n')
        {
          ++*line;
          return DONE;
        }
    }
  ++*at;
  ++*line;
  return DONE;
}

/* Skips lines in which there is nothing. */
static Outcome
skip_blank_lines (GTorchCSVParser *self)
{
  while (TRUE)
    {
      const gchar *p = self->buffer + self->at, *end = self->buffer + self->end;
      Outcome outcome;

      while (is_blank (self, *p))
        p++;
      if (p == end && !self->is_at_end)
        return MORE;
      if (p == end)
        {
          self->at = self->end;
          return DONE;
        }
      if (*p != '\n' && *p != '\r')
        return DONE;
      outcome = end_line (self, &p, &self->line);
      if (outcome != DONE)
        return outcome;
      self->at = p - self->buffer;
    }
}

/* Brings a record into the buffer; FALSE in found at the end of the stream. */
static gboolean
find_record (GTorchCSVParser *self, gboolean *found, GCancellable *cancellable, GError **error)
{
  while (self->buffer == NULL || skip_blank_lines (self) == MORE)
    if (!gtorch_csv_fill (self, cancellable, error))
      return FALSE;
  *found = self->at < self->end;
  return TRUE;
}

typedef Outcome (*ParseFunc) (GTorchCSVParser *self, gpointer data, const gchar **at, guint64 *line,
                              GError **error);

/* Parses the next record, again from its begin whenever more of the stream had to be read. `at` stays in
 * front of it if it is only looked at. Sets found to FALSE at the end. */
static gboolean
read_record (GTorchCSVParser *self, ParseFunc parse, gpointer data, gboolean look, gboolean *found,
             GCancellable *cancellable, GError **error)
{
  if (!find_record (self, found, cancellable, error))
    return FALSE;
  while (*found)
    {
      const gchar *at = self->buffer + self->at;
      guint64 line = self->line;
      Outcome outcome = parse (self, data, &at, &line, error);

      if (outcome == FAILED)
        return FALSE;
      if (outcome == DONE)
        {
          if (!look)
            {
              self->at = at - self->buffer;
              self->line = line;
            }
          return TRUE;
        }
      if (!gtorch_csv_fill (self, cancellable, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_csv_skip_line (GTorchCSVParser *self, GCancellable *cancellable, GError **error)
{
  if (self->buffer == NULL && !gtorch_csv_fill (self, cancellable, error))
    return FALSE;
  while (TRUE)
    {
      const gchar *p = self->buffer + self->at, *end = self->buffer + self->end;

      while (p < end && *p != '\n' && *p != '\r')
        p++;
      if (end_line (self, &p, &self->line) == DONE)
        {
          self->at = p - self->buffer;
          return TRUE;
        }
      if (!gtorch_csv_fill (self, cancellable, error))
        return FALSE;
    }
}

static Outcome
parse_texts (GTorchCSVParser *self, gpointer data, const gchar **at, guint64 *line, GError **error)
{
  GPtrArray *fields = data;
  gboolean is_quoted;
  Outcome outcome;

  g_ptr_array_set_size (fields, 0);
  while (TRUE)
    {
      outcome = read_field (self, at, line, &is_quoted, error);
      if (outcome != DONE)
        return outcome;
      if (memchr (self->token->str, '\0', self->token->len) != NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("csv_read: line %" PRIu64 ", column %u: a text has a NUL"), *line,
                       fields->len + 1);
          return FAILED;
        }
      g_ptr_array_add (fields, g_strndup (self->token->str, self->token->len));
      if (*at == self->buffer + self->end || **at != self->delimiter)
        return end_line (self, at, line);
      ++*at;
    }
}

GPtrArray *
gtorch_csv_read_texts (GTorchCSVParser *self, gboolean look, GCancellable *cancellable,
                       GError **error)
{
  g_autoptr (GPtrArray) fields = g_ptr_array_new_with_free_func (g_free);
  gboolean found;

  return read_record (self, parse_texts, fields, look, &found, cancellable, error) && found
             ? g_steal_pointer (&fields)
             : NULL;
}

/* --- numbers --- */

#define N_POWERS 28

static const gdouble powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
#if LDBL_MANT_DIG == 64
static const long double long_powers[N_POWERS] = {
  1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
  1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L
};
#endif

static gboolean
scale (guint64 digits, gint exponent, gdouble *value)
{
  if (digits <= G_GUINT64_CONSTANT (1) << 53 && exponent >= -22 && exponent <= 22)
    {
      *value = exponent < 0 ? digits / powers[-exponent] : digits * powers[exponent];
      return TRUE;
    }
#if LDBL_MANT_DIG == 64
  if (exponent > -N_POWERS && exponent < N_POWERS)
    {
      long double wide =
          exponent < 0 ? digits / long_powers[-exponent] : digits * long_powers[exponent];
      guint64 bits;

      memcpy (&bits, &wide, sizeof bits); /* the mantissa is first */
      bits &= 0x7ff;
      *value = wide;
      return bits < 0x3ff || bits > 0x401;
    }
#endif
  return FALSE;
}

/* Returns what follows a decimal number, or NULL if this is none or one that takes longer. */
static const gchar *
parse_double (const gchar *p, gdouble *value)
{
  const gchar *first, *point = NULL;
  gboolean is_negative = *p == '-', is_small;
  guint64 digits = 0;
  gint exponent = 0, stated = 0, n;
  guint digit;

  if (*p == '-' || *p == '+')
    p++;
  for (first = p; (digit = (guchar) *p - '0') < 10; p++)
    digits = digits * 10 + digit;
  n = p - first;
  if (*p == '.')
    {
      for (point = ++p; (digit = (guchar) *p - '0') < 10; p++)
        digits = digits * 10 + digit;
      exponent = point - p;
      n += p - point;
    }
  if (n == 0)
    return NULL;
  if (n > 19) /* zeros in front do not count */
    {
      const gchar *c = first;

      for (; *c == '0' || *c == '.'; c++)
        n -= *c == '0';
      if (n > 19)
        return NULL;
    }
  if (*p == 'e' || *p == 'E')
    {
      p++;
      is_small = *p == '-';
      if (*p == '-' || *p == '+')
        p++;
      for (first = p; (digit = (guchar) *p - '0') < 10; p++)
        stated = MIN (stated * 10 + (gint) digit, 10000);
      if (p == first)
        return NULL;
      exponent += is_small ? -stated : stated;
    }
  if (!scale (digits, exponent, value))
    return NULL;
  if (is_negative)
    *value = -*value;
  return p;
}

static const gchar *
parse_whole (const gchar *p, gint64 *value)
{
  gboolean is_negative = *p == '-';
  const gchar *first;
  gint64 sum = 0;
  guint digit;

  if (*p == '-' || *p == '+')
    p++;
  for (first = p; (digit = (guchar) *p - '0') < 10; p++)
    if (__builtin_mul_overflow (sum, 10, &sum)
        || (is_negative ? __builtin_sub_overflow (sum, digit, &sum)
                        : __builtin_add_overflow (sum, digit, &sum)))
      return NULL;
  *value = sum;
  return p > first ? p : NULL;
}

static gboolean
is_missing (const gchar *text)
{
  static const gchar *const words[] = { "", "NA", "N/A", "null", "NULL", "None", "?" };

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (strcmp (text, words[i]) == 0)
      return TRUE;
  return FALSE;
}

/* Whether a number is less than infinity in the dtype, or infinity or NaN itself. */
static gboolean
fits (guint dtype, gdouble number)
{
  guint64 narrow = 0;
  gdouble wide = 0;

  if (!isfinite (number) || dtype == GTORCH_DTYPE_FLOAT64
      || fabs (number) <= gtorch_dtype_infos[dtype].max)
    return TRUE;
  /* it may yet be rounded to the largest number */
  gtorch_host_cast (dtype, GTORCH_DTYPE_FLOAT64) ((char *) &narrow, gtorch_dtype_size (dtype),
                                                  (const char *) &number, sizeof number, 1);
  gtorch_host_cast (GTORCH_DTYPE_FLOAT64, dtype) ((char *) &wide, sizeof wide,
                                                  (const char *) &narrow, gtorch_dtype_size (dtype),
                                                  1);
  return isfinite (wide);
}

/* A field as a number of the kind of the dtype. */
static gboolean
parse_text (const GTorchCSVParser *self, const gchar *text, guint dtype, GTorchCSVCell *cell)
{
  gchar *end;

  switch (gtorch_dtype_kind (dtype))
    {
    case GTORCH_KIND_BOOL:
      cell->whole = g_ascii_strcasecmp (text, "true") == 0 || strcmp (text, "1") == 0;
      return cell->whole || g_ascii_strcasecmp (text, "false") == 0 || strcmp (text, "0") == 0;
    case GTORCH_KIND_INT:
      {
        const gchar *after = parse_whole (text, &cell->whole);

        return after != NULL && *after == '\0'
               && cell->whole >= (gint64) gtorch_dtype_infos[dtype].min
               && (dtype == GTORCH_DTYPE_INT64
                   || cell->whole <= (gint64) gtorch_dtype_infos[dtype].max);
      }
    default:
      if (g_ascii_isxdigit (text[0]) && (text[1] == 'x' || text[1] == 'X'))
        return FALSE;
      cell->real = g_ascii_strtod (text, &end);
      if (end == text || *end != '\0' || strpbrk (text, "xX(") != NULL)
        return FALSE;
      if (isinf (cell->real) && strpbrk (text, "nN") == NULL) /* too large a number, not “inf” */
        return FALSE;
      return fits (dtype, cell->real);
    }
}

static Outcome
read_slowly (GTorchCSVParser *self, const GTorchCSVColumn *column, guint number, const gchar **at,
             guint64 *line, GTorchCSVCell *cell, GError **error)
{
  const guint64 first = *line;
  g_autofree gchar *name = NULL;
  gboolean is_quoted;
  Outcome outcome = read_field (self, at, line, &is_quoted, error);

  if (outcome != DONE)
    return outcome;
  if (strlen (self->token->str) == self->token->len)
    {
      if (is_missing (self->token->str))
        {
          if (self->allow_missing && gtorch_dtype_kind (column->dtype) == GTORCH_KIND_FLOAT
              && fits (column->dtype, self->missing))
            {
              cell->real = self->missing;
              return DONE;
            }
          if (self->allow_missing && gtorch_dtype_kind (column->dtype) != GTORCH_KIND_FLOAT
              && self->missing == floor (self->missing)
              && self->missing >= gtorch_dtype_infos[column->dtype].min
              && self->missing <= gtorch_dtype_infos[column->dtype].max
              && fabs (self->missing) < 0x1p63)
            {
              cell->whole = self->missing;
              return DONE;
            }
        }
      else if (parse_text (self, self->token->str, column->dtype, cell))
        return DONE;
    }
  name = column->name != NULL ? g_strdup_printf (" (“%s”)", gtorch_name_str (column->name))
                              : g_strdup ("");
  if (is_missing (self->token->str) && self->allow_missing)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("csv_read: line %" PRIu64
                    ", column %u%s: %g, which stands for what is missing, is no %s"),
                 first, number, name, self->missing, gtorch_dtype_get_name (column->dtype));
  else if (is_missing (self->token->str))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                 _ ("csv_read: line %" PRIu64
                    ", column %u%s: the number is missing; “missing” may name one"),
                 first, number, name);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                 _ ("csv_read: line %" PRIu64 ", column %u%s: “%s” is no %s"), first, number, name,
                 gtorch_name_str (self->token->str), gtorch_dtype_get_name (column->dtype));
  return FAILED;
}

/* --- records --- */

static Outcome
skip_field (GTorchCSVParser *self, const gchar **at, guint64 *line, GError **error)
{
  const gchar *p = *at;
  gboolean is_quoted;

  while (is_blank (self, *p))
    p++;
  if (self->quote != '\0' && *p == self->quote)
    return read_field (self, at, line, &is_quoted, error);
  while (!is_end (self, p))
    p++;
  *at = p;
  return p < self->buffer + self->end || self->is_at_end ? DONE : MORE;
}

typedef struct
{
  const GTorchCSVColumn *columns;
  guint n_columns;
  GTorchCSVCell *cells;
  gsize step;
} Record;

static Outcome
parse_record (GTorchCSVParser *self, gpointer data, const gchar **at, guint64 *line, GError **error)
{
  const Record *record = data;
  const GTorchCSVColumn *columns = record->columns;
  const guint n_columns = record->n_columns;
  GTorchCSVCell *cells = record->cells;
  const gsize step = record->step;
  const gchar *end = self->buffer + self->end;
  Outcome outcome;

  for (guint i = 0; i < n_columns; i++)
    {
      const GTorchCSVColumn *column = &columns[i];
      const gchar *p = *at, *after = NULL;

      if (i > 0)
        {
          if (p == end || *p != self->delimiter)
            {
              g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                           _ ("csv_read: line %" PRIu64 " has %u fields, and others %u"),
                           self->line, i, n_columns);
              return FAILED;
            }
          *at = ++p;
        }
      if (column->target < 0)
        outcome = skip_field (self, at, line, error);
      else
        {
          GTorchCSVCell *cell = &cells[column->target * step];

          while (is_blank (self, *p))
            p++;
          if (gtorch_dtype_kind (column->dtype) == GTORCH_KIND_FLOAT)
            {
              after = parse_double (p, &cell->real);
              if (after != NULL && column->dtype != GTORCH_DTYPE_FLOAT64
                  && !fits (column->dtype, cell->real))
                after = NULL; /* which is an error */
            }
          else if (column->dtype == GTORCH_DTYPE_INT64)
            after = parse_whole (p, &cell->whole);
          while (after != NULL && is_blank (self, *after))
            after++;
          if (after != NULL && after < end && is_end (self, after))
            {
              *at = after;
              continue;
            }
          outcome = read_slowly (self, column, i + 1, at, line, cell, error);
        }
      if (outcome != DONE)
        return outcome;
    }
  if (*at < end && **at == self->delimiter)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("csv_read: line %" PRIu64 " has more than %u fields, as others have"),
                   self->line, n_columns);
      return FAILED;
    }
  return end_line (self, at, line);
}

/* Goes behind a record that cannot be read: to the end of its fields or, if quotes are wrong, of its line. */
static void
skip_record (GTorchCSVParser *self, GCancellable *cancellable)
{
  g_autoptr (GPtrArray) fields = g_ptr_array_new_with_free_func (g_free);
  const guint64 line = self->line;
  gboolean found;

  if (!read_record (self, parse_texts, fields, FALSE, &found, cancellable, NULL)
      && self->line == line)
    gtorch_csv_skip_line (self, cancellable, NULL);
}

gboolean
gtorch_csv_read_record (GTorchCSVParser *self, const GTorchCSVColumn *columns, guint n_columns,
                        GTorchCSVCell *cells, gsize step, gboolean *found,
                        GCancellable *cancellable, GError **error)
{
  Record record = { columns, n_columns, cells, step };

  g_autoptr (GError) local = NULL;

  if (read_record (self, parse_record, &record, FALSE, found, cancellable, &local))
    return TRUE;
  if (g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_FORMAT)
      || g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_INVALID))
    skip_record (self, cancellable);
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}
