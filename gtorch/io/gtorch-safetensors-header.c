/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The header of a safetensors file: JSON of one fixed form,
 *
 *   {"__metadata__": {"key": "value"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
 *
 * parsed by a parser for exactly that form, which needs no recursion and detects duplicate names. The
 * rules for offsets (no overlap, no gap, matching sizes) make it safe to map a file. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-json-lexer-private.h"
#include "io/gtorch-safetensors-private.h"

typedef struct
{
  GTorchJsonLexer in;
  GError **error;
} Parser;

static void
entry_clear (gpointer data)
{
  g_free (((GTorchSafetensorsEntry *) data)->name);
}

GTorchSafetensorsHeader *
gtorch_safetensors_header_new (void)
{
  GTorchSafetensorsHeader *header = g_new0 (GTorchSafetensorsHeader, 1);

  header->entries = g_array_new (FALSE, TRUE, sizeof (GTorchSafetensorsEntry));
  g_array_set_clear_func (header->entries, entry_clear);
  header->metadata = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  return header;
}

void
gtorch_safetensors_header_free (GTorchSafetensorsHeader *header)
{
  g_array_unref (header->entries);
  g_hash_table_unref (header->metadata);
  g_free (header);
}

/* --- the grammar --- */

static gboolean
fail (Parser *parser, const gchar *expected)
{
  g_set_error (parser->error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("safetensors: byte %zu of the header: expected %s"),
               (gsize) (parser->in.at - parser->in.start), expected);
  return FALSE;
}

static gboolean
expect (Parser *parser, gchar c)
{
  gchar text[] = { '"', c, '"', '\0' };

  return gtorch_json_accept (&parser->in, c) || fail (parser, text);
}

static gchar *
parse_string (Parser *parser)
{
  g_autofree gchar *string = NULL;
  const gchar *expected;

  if (!expect (parser, '"'))
    return NULL;
  string = g_malloc (gtorch_json_string_room (&parser->in));
  expected = gtorch_json_read_string (&parser->in, string);
  if (expected == NULL)
    return g_steal_pointer (&string);
  fail (parser, expected);
  return NULL;
}

static gboolean
parse_integer (Parser *parser, guint64 *value)
{
  const gchar *first;

  gtorch_json_skip_space (&parser->in);
  first = parser->in.at;
  *value = 0;
  while (parser->in.at < parser->in.end && g_ascii_isdigit (*parser->in.at))
    {
      if (__builtin_mul_overflow (*value, 10, value)
          || __builtin_add_overflow (*value, *parser->in.at - '0', value)
          || *value > (guint64) G_MAXINT64)
        return fail (parser, _ ("an integer of at most 63 bits"));
      parser->in.at++;
    }
  if (parser->in.at == first || (*first == '0' && parser->in.at - first > 1))
    return fail (parser, _ ("an integer"));
  return TRUE;
}

static gboolean
parse_integers (Parser *parser, guint64 *values, guint max, guint *n)
{
  *n = 0;
  if (!expect (parser, '['))
    return FALSE;
  if (gtorch_json_accept (&parser->in, ']'))
    return TRUE;
  do
    {
      if (*n == max)
        return fail (parser, max == 2 ? _ ("two integers") : _ ("at most 16 integers"));
      if (!parse_integer (parser, &values[(*n)++]))
        return FALSE;
    }
  while (gtorch_json_accept (&parser->in, ','));
  return expect (parser, ']');
}

static gboolean
parse_metadata (Parser *parser, GTorchSafetensorsHeader *header)
{
  if (!expect (parser, '{'))
    return FALSE;
  if (gtorch_json_accept (&parser->in, '}'))
    return TRUE;
  do
    {
      g_autofree gchar *key = parse_string (parser);
      g_autofree gchar *value = NULL;

      if (key == NULL || !expect (parser, ':') || (value = parse_string (parser)) == NULL)
        return FALSE;
      if (!g_hash_table_insert (header->metadata, g_steal_pointer (&key), g_steal_pointer (&value)))
        return fail (parser, _ ("a key that did not appear before"));
    }
  while (gtorch_json_accept (&parser->in, ','));
  return expect (parser, '}');
}

static guint
find_dtype (const gchar *name)
{
  guint dtype;

  for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
    if (g_strcmp0 (gtorch_dtype_infos[dtype].safetensors, name) == 0)
      return dtype;
  return GTORCH_DTYPE_NONE;
}

static gboolean
parse_entry (Parser *parser, GTorchSafetensorsEntry *entry)
{
  guint64 values[GTORCH_MAX_DIMS];
  guint seen = 0, n, i;

  if (!expect (parser, '{'))
    return FALSE;
  do
    {
      g_autofree gchar *key = parse_string (parser);
      g_autofree gchar *dtype = NULL;
      guint bit;

      if (key == NULL || !expect (parser, ':'))
        return FALSE;
      bit = strcmp (key, "dtype") == 0          ? 1
            : strcmp (key, "shape") == 0        ? 2
            : strcmp (key, "data_offsets") == 0 ? 4
                                                : 0;
      if (bit == 0 || (seen & bit) != 0)
        return fail (parser, _ ("dtype, shape and data_offsets, once each"));
      seen |= bit;
      switch (bit)
        {
        case 1:
          dtype = parse_string (parser);
          if (dtype == NULL)
            return FALSE;
          entry->dtype = find_dtype (dtype);
          if (entry->dtype == GTORCH_DTYPE_NONE)
            {
              g_set_error (parser->error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                           _ ("safetensors: “%s” has elements of type %s, which has no "
                              "dtype"),
                           gtorch_name_str (entry->name), gtorch_name_str (dtype));
              return FALSE;
            }
          break;
        case 2:
          if (!parse_integers (parser, values, GTORCH_MAX_DIMS, &entry->n_dims))
            return FALSE;
          for (i = 0; i < entry->n_dims; i++)
            entry->shape[i] = values[i];
          break;
        default:
          if (!parse_integers (parser, values, 2, &n))
            return FALSE;
          if (n != 2)
            return fail (parser, _ ("two integers"));
          entry->begin = values[0];
          entry->end = values[1];
        }
    }
  while (gtorch_json_accept (&parser->in, ','));
  if (seen != 7)
    return fail (parser, _ ("dtype, shape and data_offsets, once each"));
  return expect (parser, '}');
}

/* --- rules --- */

static gboolean
check_entry (const GTorchSafetensorsEntry *entry, GError **error)
{
  guint64 size = gtorch_dtype_size (entry->dtype);
  guint i;

  if (!gtorch_shape_check ("safetensors", entry->shape, entry->n_dims, entry->dtype, error))
    {
      if (error != NULL && *error != NULL)
        (*error)->code = GTORCH_ERROR_FORMAT;
      return FALSE;
    }
  for (i = 0; i < entry->n_dims; i++)
    size *= entry->shape[i];
  if (entry->begin <= entry->end && entry->end - entry->begin == size)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("safetensors: “%s” of shape %s and %s takes %" PRIu64
                  " bytes, not those from %" PRIu64 " to %" PRIu64),
               gtorch_name_str (entry->name), gtorch_shape_str (entry->shape, entry->n_dims),
               gtorch_dtype_get_name (entry->dtype), size, entry->begin, entry->end);
  return FALSE;
}

static gint
by_place (gconstpointer a, gconstpointer b)
{
  const GTorchSafetensorsEntry *x = a, *y = b;

  if (x->begin != y->begin)
    return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

static gboolean
check_places (GTorchSafetensorsHeader *header, GError **error)
{
  guint i;

  g_array_sort (header->entries, by_place);
  header->n_bytes = 0;
  for (i = 0; i < header->entries->len; i++)
    {
      const GTorchSafetensorsEntry *entry =
          &g_array_index (header->entries, GTorchSafetensorsEntry, i);

      if (entry->begin != header->n_bytes)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       entry->begin < header->n_bytes
                           ? _ ("safetensors: “%s” begins at %" PRIu64
                                ", inside of another one, which ends at %" PRIu64)
                           : _ ("safetensors: “%s” begins at %" PRIu64
                                ", behind a gap from %" PRIu64 " on"),
                       gtorch_name_str (entry->name), entry->begin, header->n_bytes);
          return FALSE;
        }
      header->n_bytes = entry->end;
    }
  return TRUE;
}

GTorchSafetensorsHeader *
gtorch_safetensors_header_parse (const gchar *text, gsize length, GError **error)
{
  g_autoptr (GTorchSafetensorsHeader) header = gtorch_safetensors_header_new ();
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  Parser parser = { { text, text, text + length }, error };

  if (!g_utf8_validate_len (text, length, &parser.in.at))
    {
      fail (&parser, _ ("UTF-8"));
      return NULL;
    }
  parser.in.at = text;
  if (!expect (&parser, '{'))
    return NULL;
  if (!gtorch_json_accept (&parser.in, '}'))
    {
      gboolean has_metadata = FALSE;

      do
        {
          GTorchSafetensorsEntry entry = { .name = parse_string (&parser) };
          gboolean repeated;

          if (entry.name == NULL)
            return NULL;
          if (!expect (&parser, ':'))
            {
              g_free (entry.name);
              return NULL;
            }
          if (strcmp (entry.name, "__metadata__") == 0)
            {
              g_free (entry.name);
              if (has_metadata)
                {
                  fail (&parser, _ ("__metadata__ only once"));
                  return NULL;
                }
              has_metadata = TRUE;
              if (!parse_metadata (&parser, header))
                return NULL;
              continue;
            }
          repeated = !g_hash_table_add (names, entry.name);
          if (repeated)
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                         _ ("safetensors: “%s” appears twice"), gtorch_name_str (entry.name));
          else
            g_array_append_val (header->entries, entry);
          if (repeated)
            {
              g_free (entry.name);
              return NULL;
            }
          if (!parse_entry (&parser, &g_array_index (header->entries, GTorchSafetensorsEntry,
                                                     header->entries->len - 1))
              || !check_entry (&g_array_index (header->entries, GTorchSafetensorsEntry,
                                               header->entries->len - 1),
                               error))
            return NULL;
        }
      while (gtorch_json_accept (&parser.in, ','));
      if (!expect (&parser, '}'))
        return NULL;
    }
  gtorch_json_skip_space (&parser.in);
  if (parser.in.at != parser.in.end)
    {
      fail (&parser, _ ("nothing more"));
      return NULL;
    }
  if (!check_places (header, error))
    return NULL;
  return g_steal_pointer (&header);
}

/* --- writing --- */

static void
write_string (GString *text, const gchar *string)
{
  const gchar *c;

  g_string_append_c (text, '"');
  for (c = string; *c != '\0'; c++)
    switch (*c)
      {
      case '"':
      case '\\':
        g_string_append_c (text, '\\');
        g_string_append_c (text, *c);
        break;
      case '\b':
        g_string_append (text, "\\b");
        break;
      case '\f':
        g_string_append (text, "\\f");
        break;
      case '\n':
        g_string_append (text, "\\n");
        break;
      case '\r':
        g_string_append (text, "\\r");
        break;
      case '\t':
        g_string_append (text, "\\t");
        break;
      default:
        if ((guchar) *c < 0x20)
          g_string_append_printf (text, "\\u%04x", (guchar) *c);
        else
          g_string_append_c (text, *c);
      }
  g_string_append_c (text, '"');
}

/* The order of other writers: by dtype, the widest first so that all are aligned, then by name. */
static guint
rank (guint dtype)
{
  static const guint8 order[] = {
    GTORCH_DTYPE_INT64, GTORCH_DTYPE_FLOAT64,  GTORCH_DTYPE_COMPLEX64, GTORCH_DTYPE_FLOAT32,
    GTORCH_DTYPE_INT32, GTORCH_DTYPE_BFLOAT16, GTORCH_DTYPE_FLOAT16,   GTORCH_DTYPE_INT16,
    GTORCH_DTYPE_INT8,  GTORCH_DTYPE_UINT8,    GTORCH_DTYPE_BOOL,
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (order) && order[i] != dtype; i++)
    ;
  return i;
}

static gint
by_rank (gconstpointer a, gconstpointer b)
{
  const GTorchSafetensorsEntry *x = a, *y = b;

  if (x->dtype != y->dtype)
    return (gint) rank (x->dtype) - (gint) rank (y->dtype);
  return strcmp (x->name, y->name);
}

static void
write_metadata (GHashTable *metadata, GString *text)
{
  g_autoptr (GList) keys = g_list_sort (g_hash_table_get_keys (metadata), (GCompareFunc) strcmp);
  GList *l;

  g_string_append (text, "\"__metadata__\":{");
  for (l = keys; l != NULL; l = l->next)
    {
      if (l != keys)
        g_string_append_c (text, ',');
      write_string (text, l->data);
      g_string_append_c (text, ':');
      write_string (text, g_hash_table_lookup (metadata, l->data));
    }
  g_string_append_c (text, '}');
}

void
gtorch_safetensors_header_write (GTorchSafetensorsHeader *header, GString *text)
{
  gsize start = text->len + 8;
  guint64 length;
  guint i, k;

  g_array_sort (header->entries, by_rank);
  g_string_append_len (text, "\0\0\0\0\0\0\0\0", 8);
  g_string_append_c (text, '{');
  if (g_hash_table_size (header->metadata) > 0)
    write_metadata (header->metadata, text);
  header->n_bytes = 0;
  for (i = 0; i < header->entries->len; i++)
    {
      GTorchSafetensorsEntry *entry = &g_array_index (header->entries, GTorchSafetensorsEntry, i);
      guint64 size = gtorch_dtype_size (entry->dtype);

      if (text->len > start + 1)
        g_string_append_c (text, ',');
      write_string (text, entry->name);
      g_string_append_printf (text, ":{\"dtype\":\"%s\",\"shape\":[",
                              gtorch_dtype_infos[entry->dtype].safetensors);
      for (k = 0; k < entry->n_dims; k++)
        {
          g_string_append_printf (text, k > 0 ? ",%" PRId64 : "%" PRId64, entry->shape[k]);
          size *= entry->shape[k];
        }
      entry->begin = header->n_bytes;
      entry->end = header->n_bytes = entry->begin + size;
      g_string_append_printf (text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", entry->begin,
                              entry->end);
    }
  g_string_append_c (text, '}');
  while ((text->len - start) % 8 != 0)
    g_string_append_c (text, ' ');
  length = GUINT64_TO_LE (text->len - start);
  memcpy (text->str + start - 8, &length, sizeof length);
}
