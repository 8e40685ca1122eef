/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The header of an .npy file: a dictionary as Python writes it,
 *
 *   {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }
 *
 * parsed by a parser for exactly these three entries in any order, which needs no recursion. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "io/gtorch-npy-private.h"

typedef struct
{
  const gchar *op;
  const gchar *start, *at, *end;
  GError **error;
} Parser;

static gboolean
fail (Parser *parser, const gchar *expected)
{
  g_set_error (parser->error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("%s: byte %zu of the header: expected %s"), parser->op,
               (gsize) (parser->at - parser->start), expected);
  return FALSE;
}

static void
skip_space (Parser *parser)
{
  while (parser->at < parser->end
         && (*parser->at == ' ' || *parser->at == '\n' || *parser->at == '\t'))
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
expect (Parser *parser, gchar c)
{
  gchar text[] = { '"', c, '"', '\0' };

  return accept (parser, c) || fail (parser, text);
}

/* A text without escapes, which none of the three entries has. */
static gboolean
parse_text (Parser *parser, const gchar **text, gsize *length)
{
  gchar quote;

  skip_space (parser);
  if (parser->at == parser->end || (*parser->at != '\'' && *parser->at != '"'))
    return fail (parser, _ ("a text"));
  quote = *parser->at++;
  *text = parser->at;
  while (parser->at < parser->end && *parser->at != quote && *parser->at != '\\'
         && *parser->at != '\n')
    parser->at++;
  if (parser->at == parser->end || *parser->at != quote)
    return fail (parser, _ ("the end of a text"));
  *length = parser->at++ - *text;
  return TRUE;
}

static gboolean
parse_flag (Parser *parser, gboolean *flag)
{
  gsize left;

  skip_space (parser);
  left = parser->end - parser->at;
  *flag = left >= 4 && memcmp (parser->at, "True", 4) == 0;
  if (!*flag && !(left >= 5 && memcmp (parser->at, "False", 5) == 0))
    return fail (parser, _ ("True or False"));
  parser->at += *flag ? 4 : 5;
  return TRUE;
}

static gboolean
parse_shape (Parser *parser, GTorchNpyHeader *header)
{
  if (!expect (parser, '('))
    return FALSE;
  header->n_dims = 0;
  while (!accept (parser, ')'))
    {
      gint64 size = 0;
      const gchar *first;

      if (header->n_dims == GTORCH_MAX_DIMS)
        return fail (parser, _ ("at most 16 sizes"));
      if (header->n_dims > 0 && !expect (parser, ','))
        return FALSE;
      if (header->n_dims > 0 && accept (parser, ')'))
        break;
      skip_space (parser);
      for (first = parser->at; parser->at < parser->end && g_ascii_isdigit (*parser->at);
           parser->at++)
        if (__builtin_mul_overflow (size, 10, &size)
            || __builtin_add_overflow (size, *parser->at - '0', &size))
          return fail (parser, _ ("a size of at most 63 bits"));
      if (parser->at == first)
        return fail (parser, _ ("a size"));
      if (parser->at < parser->end && *parser->at == 'L') /* of Python 2 */
        parser->at++;
      header->shape[header->n_dims++] = size;
    }
  return TRUE;
}

static gboolean
refuse_type (Parser *parser, const gchar *type, gsize length, const gchar *what)
{
  g_autofree gchar *text = g_strndup (type, MIN (length, 100));

  g_set_error (parser->error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: the array has elements of type “%s”, %s, for which there is no dtype"),
               parser->op, gtorch_name_str (text), what);
  return FALSE;
}

static gboolean
find_dtype (Parser *parser, const gchar *type, gsize length, GTorchNpyHeader *header)
{
  static const struct
  {
    gchar text[4];
    guint dtype;
  } types[] = {
    { "b1", GTORCH_DTYPE_BOOL },        { "i1", GTORCH_DTYPE_INT8 },
    { "u1", GTORCH_DTYPE_UINT8 },       { "i2", GTORCH_DTYPE_INT16 },
    { "i4", GTORCH_DTYPE_INT32 },       { "i8", GTORCH_DTYPE_INT64 },
    { "f2", GTORCH_DTYPE_FLOAT16 },     { "f4", GTORCH_DTYPE_FLOAT32 },
    { "f8", GTORCH_DTYPE_FLOAT64 },     { "c8", GTORCH_DTYPE_COMPLEX64 },
    { "c16", GTORCH_DTYPE_COMPLEX128 },
  };
  gchar order = length > 0 ? type[0] : '\0';

  if (order == '\0' || strchr ("<>=|", order) == NULL)
    return refuse_type (parser, type, length, _ ("whose order of bytes is not known"));
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    if (strlen (types[i].text) == length - 1 && memcmp (types[i].text, type + 1, length - 1) == 0)
      {
        header->dtype = types[i].dtype;
        if (gtorch_dtype_size (header->dtype) > 1 && order == '|')
          return fail (parser, _ ("an order of bytes"));
        header->swap = gtorch_dtype_size (header->dtype) > 1
                       && order == (G_BYTE_ORDER == G_LITTLE_ENDIAN ? '>' : '<');
        return TRUE;
      }
  switch (length > 1 ? type[1] : '\0')
    {
    case 'O':
      return refuse_type (parser, type, length,
                          _ ("objects of Python, which would run code of the file"));
    case 'S':
    case 'U':
    case 'a':
      return refuse_type (parser, type, length, _ ("texts"));
    case 'M':
    case 'm':
      return refuse_type (parser, type, length, _ ("times"));
    case 'u':
      return refuse_type (parser, type, length, _ ("unsigned integers"));
    case 'V':
      return refuse_type (parser, type, length, _ ("records"));
    default:
      return refuse_type (parser, type, length, _ ("which NumPy does not know here"));
    }
}

gboolean
gtorch_npy_header_parse (const gchar *op, const gchar *text, gsize length, GTorchNpyHeader *header,
                         GError **error)
{
  Parser parser = { op, text, text, text + length, error };
  guint seen = 0;

  memset (header, 0, sizeof *header);
  if (!expect (&parser, '{'))
    return FALSE;
  while (!accept (&parser, '}'))
    {
      const gchar *key, *type;
      gsize n_key, n_type;
      guint bit;

      if (seen != 0 && !expect (&parser, ','))
        return FALSE;
      if (seen != 0 && accept (&parser, '}'))
        break;
      if (!parse_text (&parser, &key, &n_key) || !expect (&parser, ':'))
        return FALSE;
      bit = n_key == 5 && memcmp (key, "descr", 5) == 0             ? 1
            : n_key == 13 && memcmp (key, "fortran_order", 13) == 0 ? 2
            : n_key == 5 && memcmp (key, "shape", 5) == 0           ? 4
                                                                    : 0;
      if (bit == 0 || (seen & bit) != 0)
        return fail (&parser, _ ("descr, fortran_order and shape, once each"));
      seen |= bit;
      if (bit == 1)
        {
          skip_space (&parser);
          if (parser.at < parser.end && (*parser.at == '[' || *parser.at == '('))
            return refuse_type (&parser, parser.at, parser.end - parser.at,
                                _ ("records with fields"));
          if (!parse_text (&parser, &type, &n_type) || !find_dtype (&parser, type, n_type, header))
            return FALSE;
        }
      else if (bit == 2 ? !parse_flag (&parser, &header->fortran) : !parse_shape (&parser, header))
        return FALSE;
    }
  skip_space (&parser);
  if (parser.at < parser.end)
    return fail (&parser, _ ("nothing more"));
  if (seen != 7)
    return fail (&parser, _ ("descr, fortran_order and shape, once each"));
  if (!gtorch_shape_check (op, header->shape, header->n_dims, header->dtype, error))
    {
      if (error != NULL && *error != NULL)
        (*error)->code = GTORCH_ERROR_FORMAT;
      return FALSE;
    }
  header->n_bytes = gtorch_dtype_size (header->dtype);
  for (guint i = 0; i < header->n_dims; i++)
    header->n_bytes *= header->shape[i];
  return TRUE;
}

GBytes *
gtorch_npy_header_write (const gchar *op, GTorchImpl *impl, GError **error)
{
  static const gchar *const types[GTORCH_N_DTYPES] = {
    [GTORCH_DTYPE_BOOL] = "|b1",       [GTORCH_DTYPE_INT8] = "|i1",
    [GTORCH_DTYPE_UINT8] = "|u1",      [GTORCH_DTYPE_INT16] = "i2",
    [GTORCH_DTYPE_INT32] = "i4",       [GTORCH_DTYPE_INT64] = "i8",
    [GTORCH_DTYPE_FLOAT16] = "f2",     [GTORCH_DTYPE_FLOAT32] = "f4",
    [GTORCH_DTYPE_FLOAT64] = "f8",     [GTORCH_DTYPE_COMPLEX64] = "c8",
    [GTORCH_DTYPE_COMPLEX128] = "c16",
  };
  g_autoptr (GString) text = NULL;
  const gchar *type = types[impl->dtype];
  guint16 length;

  if (type == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: the format has no type for %s: convert the tensor of shape %s first"),
                   op, gtorch_dtype_get_name (impl->dtype), gtorch_impl_shape_str (impl));
      return NULL;
    }
  text = g_string_new_len ("\223NUMPY\1\0\0\0", 10);
  g_string_append_printf (text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                          type[0] == '|'                    ? ""
                          : G_BYTE_ORDER == G_LITTLE_ENDIAN ? "<"
                                                            : ">",
                          type);
  for (guint i = 0; i < impl->n_dims; i++)
    g_string_append_printf (text, i > 0 ? ", %" G_GINT64_FORMAT : "%" G_GINT64_FORMAT,
                            impl->shape[i]);
  g_string_append (text, impl->n_dims == 1 ? ",), }" : "), }");
  while ((text->len + 1) % 64 != 0)
    g_string_append_c (text, ' ');
  g_string_append_c (text, '\n');
  length = GUINT16_TO_LE (text->len - 10);
  memcpy (text->str + 8, &length, 2);
  return g_string_free_to_bytes (g_steal_pointer (&text));
}
