/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io/gtorch-csv-reader.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-field-private.h"
#include "base/gtorch-none-private.h"
#include "base/gtorch-task-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "io/gtorch-csv-private.h"
#include "io/gtorch-safetensors-private.h"
#include "io/gtorch-source-private.h"
#include "tensor/gtorch-tensor-private.h"

#define OP         "csv_read"
#define BLOCK_ROWS 8192
#define MAX_CELLS  (1 << 20) /* in a block */

/**
 * GTorchCSVReader:
 *
 * Reads numbers from text with delimiters (CSV, TSV), as columns with names or as one tensor of two
 * dimensions, all at once or in blocks of rows.
 *
 * Numbers have a point, whatever the locale, and are read as Python reads them; `nan` and `inf` are
 * numbers. A field may be in quotes, within which a quote is written twice. Lines without anything are
 * skipped, and all others must have the same number of fields. What is no number of the column's dtype, or
 * is missing, is an error that names line and column, unless [property@CSVReader:missing] is a number.
 * Fields of text can only be left out: see [method@CSVReader.set_columns].
 *
 * ```c
 * g_autoptr (GTorchCSVReader) reader = gtorch_csv_reader_new_for_file (file, NULL, &error);
 * g_autoptr (GTorchTable) table = gtorch_csv_reader_read_table (reader, 0, NULL, &error);
 * GTorchTensor *height = gtorch_table_lookup (table, "height", &error);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchCSVReader
{
  GObject parent_instance;
  GInputStream *stream;
  gchar delimiter[2], quote[2];
  gboolean has_header;
  guint skip_rows;
  gdouble missing;
  GTorchDType dtype;
  guint64 max_bytes;
  gchar **wanted;     /* names of columns, or NULL for all */
  GHashTable *dtypes; /* by name */

  GTorchCSVParser parser;
  GArray *columns; /* of GTorchCSVColumn; NULL until reading began */
  guint n_targets;
  gboolean has_read;
  gint is_busy;
};

typedef GTorchCSVReader Self;

static const GTorchField fields[] = {
  /**
   * GTorchCSVReader:delimiter:
   *
   * What is between two fields: one character of ASCII.
   *
   * Since: 0.1
   */
  { "delimiter",
    GTORCH_PROPERTY_STRING (gtorch_csv_reader_get_delimiter, gtorch_csv_reader_set_delimiter) },
  /**
   * GTorchCSVReader:quote:
   *
   * What is around a field that has delimiters: one character of ASCII, or an empty text for none.
   *
   * Since: 0.1
   */
  { "quote", GTORCH_PROPERTY_STRING (gtorch_csv_reader_get_quote, gtorch_csv_reader_set_quote) },
  /**
   * GTorchCSVReader:has-header:
   *
   * Whether the first row has the names of the columns. Without them the names are `0`, `1` and so on.
   *
   * Since: 0.1
   */
  { "has-header",
    GTORCH_PROPERTY_BOOL (gtorch_csv_reader_get_has_header, gtorch_csv_reader_set_has_header),
    .value = TRUE },
  /**
   * GTorchCSVReader:skip-rows:
   *
   * How many lines at the beginning are skipped.
   *
   * Since: 0.1
   */
  { "skip-rows",
    GTORCH_PROPERTY_UINT (gtorch_csv_reader_get_skip_rows, gtorch_csv_reader_set_skip_rows),
    .low = 0, .high = INFINITY },
  /**
   * GTorchCSVReader:missing:
   *
   * The number that stands for a field that is missing: one that is empty, or `NA`, `N/A`, `null`, `NULL`,
   * `None` or `?`. Without a number (%GTORCH_NONE_DOUBLE) such a field is an error.
   *
   * Since: 0.1
   */
  { "missing",
    GTORCH_PROPERTY_DOUBLE (gtorch_csv_reader_get_missing, gtorch_csv_reader_set_missing),
    .value = GTORCH_NONE_DOUBLE, .is_optional = TRUE },
  /**
   * GTorchCSVReader:dtype:
   *
   * The dtype of columns that have none of their own: a real one, an integer or bool.
   *
   * Since: 0.1
   */
  { "dtype",
    GTORCH_PROPERTY_ENUM (GTorchDType, gtorch_dtype_get_type, gtorch_csv_reader_get_dtype,
                          gtorch_csv_reader_set_dtype),
    .value = GTORCH_DTYPE_FLOAT64 },
  /**
   * GTorchCSVReader:max-bytes:
   *
   * The most memory that the tensors of one call may take.
   *
   * Since: 0.1
   */
  { "max-bytes",
    GTORCH_PROPERTY_UINT64 (gtorch_csv_reader_get_max_bytes, gtorch_csv_reader_set_max_bytes),
    .value = GTORCH_SOURCE_MAX_BYTES, .low = 0, .high = INFINITY },
};

G_DEFINE_TYPE (GTorchCSVReader, gtorch_csv_reader, G_TYPE_OBJECT)

static void
column_clear (gpointer data)
{
  g_free (((GTorchCSVColumn *) data)->name);
}

static void
gtorch_csv_reader_finalize (GObject *object)
{
  GTorchCSVReader *self = GTORCH_CSV_READER (object);

  g_clear_object (&self->stream);
  g_strfreev (self->wanted);
  g_hash_table_unref (self->dtypes);
  gtorch_csv_parser_clear (&self->parser);
  g_clear_pointer (&self->columns, g_array_unref);
  G_OBJECT_CLASS (gtorch_csv_reader_parent_class)->finalize (object);
}

static void
gtorch_csv_reader_class_init (GTorchCSVReaderClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_csv_reader_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_csv_reader_init (GTorchCSVReader *self)
{
  g_strlcpy (self->delimiter, ",", sizeof self->delimiter);
  g_strlcpy (self->quote, "\"", sizeof self->quote);
  self->has_header = TRUE;
  self->missing = GTORCH_NONE_DOUBLE;
  self->dtype = GTORCH_DTYPE_FLOAT64;
  self->max_bytes = GTORCH_SOURCE_MAX_BYTES;
  self->dtypes = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
}

/**
 * gtorch_csv_reader_new: (constructor)
 * @stream: a stream of text
 *
 * Creates a reader. Nothing is read yet.
 *
 * Returns: (transfer full): the reader
 *
 * Since: 0.1
 */
GTorchCSVReader *
gtorch_csv_reader_new (GInputStream *stream)
{
  GTorchCSVReader *self;

  g_return_val_if_fail (G_IS_INPUT_STREAM (stream), NULL);
  self = g_object_new (GTORCH_TYPE_CSV_READER, NULL);
  self->stream = g_object_ref (stream);
  return self;
}

/**
 * gtorch_csv_reader_new_for_file: (constructor)
 * @file: a file of text
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Opens a file and creates a reader for it.
 *
 * Returns: (transfer full): the reader, or %NULL with an error of the file
 *
 * Since: 0.1
 */
GTorchCSVReader *
gtorch_csv_reader_new_for_file (GFile *file, GCancellable *cancellable, GError **error)
{
  g_autoptr (GInputStream) stream = NULL;

  g_return_val_if_fail (G_IS_FILE (file), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  stream = gtorch_file_open (file, cancellable, error);
  return stream != NULL ? gtorch_csv_reader_new (stream) : NULL;
}

/* --- settings --- */

static gboolean
check_unread (GTorchCSVReader *self, const gchar *what, GError **error)
{
  if (self->columns == NULL && !g_atomic_int_get (&self->is_busy))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("csv_read: %s cannot be changed any more: reading has begun"), what);
  return FALSE;
}

static gboolean
set_character (GTorchCSVReader *self, const gchar *what, gchar *place, const gchar *text,
               gboolean is_optional, const gchar *other, GError **error)
{
  gboolean fits =
      text != NULL && (guchar) text[0] < 0x80 && (text[0] != '\0' ? text[1] == '\0' : is_optional)
      && text[0] != '\n' && text[0] != '\r'
      && (text[0] == '\0' || (!g_ascii_isalnum (text[0]) && strchr (".+-", text[0]) == NULL));

  if (!check_unread (self, what, error))
    return FALSE;
  if (!fits || (text[0] != '\0' && text[0] == other[0]))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("csv_read: the %s is “%s”: it must be one character of ASCII that belongs to "
                      "no "
                      "number and no end of "
                      "a line, and delimiter and quote must differ"),
                   what, gtorch_name_str (text != NULL ? text : ""));
      return FALSE;
    }
  if (place[0] == text[0])
    return TRUE;
  place[0] = text[0];
  g_object_notify (G_OBJECT (self), what);
  return TRUE;
}

/**
 * gtorch_csv_reader_get_delimiter:
 * @self: a reader
 *
 * Gets what is between two fields: a comma, unless it was set.
 *
 * Returns: the character
 *
 * Since: 0.1
 */
const gchar *
gtorch_csv_reader_get_delimiter (GTorchCSVReader *self)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), NULL);
  return self->delimiter;
}

/**
 * gtorch_csv_reader_set_delimiter:
 * @self: a reader
 * @delimiter: one character of ASCII, such as `;` or a tabulator
 * @error: return location for an error
 *
 * Sets what is between two fields.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if it cannot be a delimiter, or reading has begun
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_set_delimiter (GTorchCSVReader *self, const gchar *delimiter, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  g_return_val_if_fail (delimiter != NULL, FALSE);
  return set_character (self, "delimiter", self->delimiter, delimiter, FALSE, self->quote, error);
}

/**
 * gtorch_csv_reader_get_quote:
 * @self: a reader
 *
 * Gets what is around a field that has delimiters: `"`, unless it was set.
 *
 * Returns: the character, or an empty text
 *
 * Since: 0.1
 */
const gchar *
gtorch_csv_reader_get_quote (GTorchCSVReader *self)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), NULL);
  return self->quote;
}

/**
 * gtorch_csv_reader_set_quote:
 * @self: a reader
 * @quote: one character of ASCII, or an empty text if there are no quotes
 * @error: return location for an error
 *
 * Sets what is around a field that has delimiters.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if it cannot be a quote, or reading has begun
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_set_quote (GTorchCSVReader *self, const gchar *quote, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  g_return_val_if_fail (quote != NULL, FALSE);
  return set_character (self, "quote", self->quote, quote, TRUE, self->delimiter, error);
}

/**
 * gtorch_csv_reader_get_has_header:
 * @self: a reader
 *
 * Tells whether the first row has the names of the columns.
 *
 * Returns: %TRUE, unless it was set
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_get_has_header (GTorchCSVReader *self)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  return self->has_header;
}

/**
 * gtorch_csv_reader_set_has_header:
 * @self: a reader
 * @has_header: whether it has
 * @error: return location for an error
 *
 * Sets whether the first row has the names of the columns.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if reading has begun
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_set_has_header (GTorchCSVReader *self, gboolean has_header, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  if (!check_unread (self, "has-header", error))
    return FALSE;
  if (self->has_header == has_header)
    return TRUE;
  self->has_header = has_header;
  g_object_notify (G_OBJECT (self), "has-header");
  return TRUE;
}

/**
 * gtorch_csv_reader_get_skip_rows:
 * @self: a reader
 *
 * Gets how many lines at the beginning are skipped.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_csv_reader_get_skip_rows (GTorchCSVReader *self)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), 0);
  return self->skip_rows;
}

/**
 * gtorch_csv_reader_set_skip_rows:
 * @self: a reader
 * @skip_rows: the number
 * @error: return location for an error
 *
 * Sets how many lines at the beginning are skipped.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if reading has begun
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_set_skip_rows (GTorchCSVReader *self, guint skip_rows, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  if (!check_unread (self, "skip-rows", error))
    return FALSE;
  if (self->skip_rows == skip_rows)
    return TRUE;
  self->skip_rows = skip_rows;
  g_object_notify (G_OBJECT (self), "skip-rows");
  return TRUE;
}

/**
 * gtorch_csv_reader_get_missing:
 * @self: a reader
 *
 * Gets the number that stands for a field that is missing.
 *
 * Returns: the number, or %GTORCH_NONE_DOUBLE if it is an error
 *
 * Since: 0.1
 */
gdouble
gtorch_csv_reader_get_missing (GTorchCSVReader *self)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), 0);
  return self->missing;
}

/**
 * gtorch_csv_reader_set_missing:
 * @self: a reader
 * @missing: the number, which may be NaN, or %GTORCH_NONE_DOUBLE
 * @error: return location for an error
 *
 * Sets the number that stands for a field that is missing, which the dtype of the column must have.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if reading has begun
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_set_missing (GTorchCSVReader *self, gdouble missing, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  if (!check_unread (self, "missing", error))
    return FALSE;
  if (memcmp (&self->missing, &missing, sizeof missing) == 0)
    return TRUE;
  self->missing = missing;
  g_object_notify (G_OBJECT (self), "missing");
  return TRUE;
}

/**
 * gtorch_csv_reader_get_max_bytes:
 * @self: a reader
 *
 * Gets the most memory that the tensors of one call may take: 16 GiB, unless it was set.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_csv_reader_get_max_bytes (GTorchCSVReader *self)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), 0);
  return self->max_bytes;
}

/**
 * gtorch_csv_reader_set_max_bytes:
 * @self: a reader
 * @max_bytes: the number of bytes
 * @error: return location for an error
 *
 * Sets the most memory that the tensors of one call may take.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if reading has begun
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_set_max_bytes (GTorchCSVReader *self, guint64 max_bytes, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  if (!check_unread (self, "max-bytes", error))
    return FALSE;
  if (self->max_bytes == max_bytes)
    return TRUE;
  self->max_bytes = max_bytes;
  g_object_notify (G_OBJECT (self), "max-bytes");
  return TRUE;
}

/**
 * gtorch_csv_reader_get_dtype:
 * @self: a reader
 *
 * Gets the dtype of columns that have none of their own: float64, unless it was set.
 *
 * Returns: the dtype
 *
 * Since: 0.1
 */
GTorchDType
gtorch_csv_reader_get_dtype (GTorchCSVReader *self)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), GTORCH_DTYPE_NONE);
  return self->dtype;
}

static gboolean
check_dtype (GTorchDType dtype, GError **error)
{
  if ((guint) dtype < GTORCH_N_DTYPES && dtype != GTORCH_DTYPE_NONE
      && gtorch_dtype_kind (dtype) != GTORCH_KIND_COMPLEX)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("csv_read: a column cannot have the dtype %s (%d): it must be bool, an integer "
                  "or a "
                  "real number"),
               gtorch_dtype_get_name (dtype), (gint) dtype);
  return FALSE;
}

/**
 * gtorch_csv_reader_set_dtype:
 * @self: a reader
 * @dtype: a dtype
 * @error: return location for an error
 *
 * Sets the dtype of columns that have none of their own.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_DTYPE for a complex dtype or none, and %GTORCH_ERROR_INVALID
 *   if reading has begun
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_set_dtype (GTorchCSVReader *self, GTorchDType dtype, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  if (!check_unread (self, "dtype", error) || !check_dtype (dtype, error))
    return FALSE;
  if (self->dtype == dtype)
    return TRUE;
  self->dtype = dtype;
  g_object_notify (G_OBJECT (self), "dtype");
  return TRUE;
}

/**
 * gtorch_csv_reader_set_columns:
 * @self: a reader
 * @names: (nullable) (array zero-terminated=1): names of columns, or %NULL for all
 * @error: return location for an error
 *
 * Chooses the columns that are read, and their order. Fields of others may be anything.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID for a name that appears twice, or if reading has
 *   begun
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_set_columns (GTorchCSVReader *self, const gchar *const *names, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  if (!check_unread (self, "columns", error))
    return FALSE;
  for (guint i = 0; names != NULL && names[i] != NULL; i++)
    for (guint k = 0; k < i; k++)
      if (strcmp (names[i], names[k]) == 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("csv_read: column “%s” is chosen twice"), gtorch_name_str (names[i]));
          return FALSE;
        }
  g_strfreev (self->wanted);
  self->wanted = g_strdupv ((gchar **) names);
  return TRUE;
}

/**
 * gtorch_csv_reader_set_column_dtype:
 * @self: a reader
 * @name: the name of a column
 * @dtype: a dtype
 * @error: return location for an error
 *
 * Sets the dtype of one column. Tensors of two dimensions have one dtype, and ignore it.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_DTYPE for a complex dtype or none, and %GTORCH_ERROR_INVALID
 *   if reading has begun
 *
 * Since: 0.1
 */
gboolean
gtorch_csv_reader_set_column_dtype (GTorchCSVReader *self, const gchar *name, GTorchDType dtype,
                                    GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  if (!check_unread (self, "dtype", error) || !check_dtype (dtype, error))
    return FALSE;
  g_hash_table_insert (self->dtypes, g_strdup (name), GUINT_TO_POINTER ((guint) dtype));
  return TRUE;
}

/* --- columns --- */

static gboolean
choose_columns (GTorchCSVReader *self, GArray *columns, GError **error)
{
  GHashTableIter iter;
  gpointer name;

  self->n_targets = self->wanted != NULL ? g_strv_length (self->wanted) : columns->len;
  for (guint i = 0; i < columns->len; i++)
    g_array_index (columns, GTorchCSVColumn, i).target = self->wanted != NULL ? -1 : (gint) i;
  for (guint k = 0; self->wanted != NULL && self->wanted[k] != NULL; k++)
    {
      guint i;

      for (i = 0; i < columns->len; i++)
        if (strcmp (g_array_index (columns, GTorchCSVColumn, i).name, self->wanted[k]) == 0)
          break;
      if (i == columns->len)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                       _ ("csv_read: there is no column “%s” among %u"),
                       gtorch_name_str (self->wanted[k]), columns->len);
          return FALSE;
        }
      g_array_index (columns, GTorchCSVColumn, i).target = k;
    }
  g_hash_table_iter_init (&iter, self->dtypes);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    {
      guint i;

      for (i = 0; i < columns->len; i++)
        if (strcmp (g_array_index (columns, GTorchCSVColumn, i).name, name) == 0)
          break;
      if (i == columns->len)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                       _ ("csv_read: there is no column “%s” among %u, for which a dtype was set"),
                       gtorch_name_str (name), columns->len);
          return FALSE;
        }
    }
  return TRUE;
}

/* Reads the header, or counts the fields of the first row. */
static gboolean
begin (GTorchCSVReader *self, GCancellable *cancellable, GError **error)
{
  g_autoptr (GArray) columns = g_array_new (FALSE, TRUE, sizeof (GTorchCSVColumn));
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) texts = NULL;
  g_autoptr (GError) reason = NULL;
  GTorchCSVParser *parser = &self->parser;

  g_array_set_clear_func (columns, column_clear);
  if (parser->buffer == NULL)
    {
      *parser = (GTorchCSVParser){ .stream = self->stream,
                                   .delimiter = self->delimiter[0],
                                   .quote = self->quote[0],
                                   .allow_missing = !gtorch_is_none_double (self->missing),
                                   .missing = self->missing,
                                   .line = 1,
                                   .token = g_string_new (NULL) };
      if (!gtorch_csv_fill (parser, cancellable, error))
        {
          gtorch_csv_parser_clear (parser);
          return FALSE;
        }
      if (parser->end >= 3 && memcmp (parser->buffer, "\xef\xbb\xbf", 3) == 0)
        parser->at = 3;
      for (guint i = 0; i < self->skip_rows; i++)
        if (!gtorch_csv_skip_line (parser, cancellable, error))
          return FALSE;
    }
  texts = gtorch_csv_read_texts (parser, !self->has_header, cancellable, &reason);
  if (reason != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&reason));
      return FALSE;
    }
  for (guint i = 0; texts != NULL && i < texts->len; i++)
    {
      GTorchCSVColumn column = { .name = self->has_header ? g_steal_pointer (&texts->pdata[i])
                                                          : g_strdup_printf ("%u", i) };
      gpointer dtype;
      gboolean is_new = g_hash_table_add (seen, column.name);

      g_array_append_val (columns, column);
      if (!gtorch_name_check (OP, column.name, error))
        return FALSE;
      if (!is_new)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("csv_read: two columns are called “%s”"), gtorch_name_str (column.name));
          return FALSE;
        }
      dtype = g_hash_table_lookup (self->dtypes, column.name);
      g_array_index (columns, GTorchCSVColumn, i).dtype =
          dtype != NULL ? GPOINTER_TO_UINT (dtype) : (guint) self->dtype;
    }
  if (!choose_columns (self, columns, error))
    return FALSE;
  self->columns = g_steal_pointer (&columns);
  return TRUE;
}

/* --- rows --- */

/* Memory that grows while rows come. */
typedef struct
{
  gchar *data;
  gsize room, used;
} Growing;

static void
growing_clear (Growing *growing, guint n)
{
  for (guint i = 0; i < n; i++)
    g_free (growing[i].data);
  g_free (growing);
}

/* Makes room for n bytes more, of which `left` is what is allowed. */
static gchar *
grow (Growing *self, gsize n, guint64 *left, guint64 limit, GError **error)
{
  if (n > *left)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                   _ ("csv_read: the numbers take more than the limit of %" G_GUINT64_FORMAT
                      " bytes"),
                   limit);
      return NULL;
    }
  if (self->room - self->used < n)
    {
      gsize room = MAX (self->used + n, self->room + self->room / 2);
      gchar *data = g_try_realloc (self->data, room);

      if (data == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                       _ ("csv_read: there is no memory for %" G_GSIZE_FORMAT " bytes"), room);
          return NULL;
        }
      self->data = data;
      self->room = room;
    }
  *left -= n;
  self->used += n;
  return self->data + self->used - n;
}

static GTorchTensor *
finish (Growing *growing, guint dtype, const gint64 *shape, guint n_dims, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;
  gsize n = growing->used;

  if (n > 0 && n < growing->room)
    growing->data = g_realloc (growing->data, n);
  bytes = g_bytes_new_take (g_steal_pointer (&growing->data), n);
  return gtorch_tensor_wrap (
      gtorch_impl_new_from_bytes (OP, bytes, 0, n, FALSE, dtype, shape, n_dims, error));
}

static guint
cell_dtype (guint dtype)
{
  return gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT ? GTORCH_DTYPE_FLOAT64 : GTORCH_DTYPE_INT64;
}

/* Reads rows of cells, up to a block of them. */
static gboolean
read_block (GTorchCSVReader *self, const GTorchCSVColumn *columns, GTorchCSVCell *cells,
            gsize n_rows, gsize row_step, gsize column_step, gsize *n_read,
            GCancellable *cancellable, GError **error)
{
  gboolean found = TRUE;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  for (*n_read = 0; *n_read < n_rows; ++*n_read)
    {
      if (!gtorch_csv_read_record (&self->parser, columns, self->columns->len,
                                   cells + *n_read * row_step, column_step, &found, cancellable,
                                   error))
        return FALSE;
      if (!found)
        break;
    }
  return TRUE;
}

/* All columns have a tensor of their own, or, as a matrix, one tensor. */
static gboolean
read_rows (GTorchCSVReader *self, gboolean is_matrix, guint64 max_rows, Growing *growing,
           gint64 *n_rows, GCancellable *cancellable, GError **error)
{
  const guint n_targets = self->n_targets;
  const gsize block = CLAMP (MAX_CELLS / MAX (n_targets, 1), 1, BLOCK_ROWS);
  g_autofree GTorchCSVColumn *columns =
      g_memdup2 (self->columns->data, self->columns->len * sizeof *columns);
  g_autofree GTorchCSVCell *cells = g_new (GTorchCSVCell, block * MAX (n_targets, 1));
  guint64 left = self->max_bytes;

  for (guint i = 0; is_matrix && i < self->columns->len; i++)
    columns[i].dtype = self->dtype;
  *n_rows = 0;
  while (TRUE)
    {
      gsize wanted = max_rows > 0 ? MIN (block, max_rows - (guint64) *n_rows) : block, n = 0;

      if (!read_block (self, columns, cells, wanted, is_matrix ? n_targets : 1,
                       is_matrix ? 1 : block, &n, cancellable, error))
        return FALSE;
      for (guint i = 0; i < self->columns->len; i++)
        {
          const gint target = is_matrix ? 0 : columns[i].target;
          const gsize count = is_matrix ? n * n_targets : n;
          const guint dtype = columns[i].dtype, from = cell_dtype (dtype);
          gchar *to;

          if (target < 0 || count == 0)
            continue;
          to = grow (&growing[target], count * gtorch_dtype_size (dtype), &left, self->max_bytes,
                     error);
          if (to == NULL)
            return FALSE;
          gtorch_host_cast (dtype, from) (to, gtorch_dtype_size (dtype),
                                          (const char *) (cells + target * block), 8, count);
          if (is_matrix)
            break;
        }
      *n_rows += n;
      if (n < block) /* the end, or as many as are wanted */
        return TRUE;
    }
}

static gboolean
enter (GTorchCSVReader *self, GError **error)
{
  if (self->stream == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("csv_read: the reader has no stream"));
      return FALSE;
    }
  if (g_atomic_int_compare_and_exchange (&self->is_busy, FALSE, TRUE))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("csv_read: the reader is in use by another call"));
  return FALSE;
}

static GTorchTable *
read_table (GTorchCSVReader *self, guint64 max_rows, GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchTable) table = NULL;
  Growing *growing = NULL;
  gint64 n_rows = 0;
  gboolean result;

  if (self->columns == NULL && !begin (self, cancellable, error))
    return NULL;
  growing = g_new0 (Growing, MAX (self->n_targets, 1));
  result = read_rows (self, FALSE, max_rows, growing, &n_rows, cancellable, error);
  if (result && (n_rows > 0 || !self->has_read))
    table = gtorch_table_new ();
  for (guint target = 0; table != NULL && target < self->n_targets; target++)
    for (guint i = 0; table != NULL && i < self->columns->len; i++)
      {
        const GTorchCSVColumn *column = &g_array_index (self->columns, GTorchCSVColumn, i);
        g_autoptr (GTorchTensor) tensor = NULL;

        if (column->target != (gint) target)
          continue;
        tensor = finish (&growing[target], column->dtype, &n_rows, 1, error);
        if (tensor == NULL || !gtorch_table_add (table, column->name, tensor, error))
          g_clear_object (&table);
      }
  self->has_read = TRUE;
  growing_clear (growing, self->n_targets);
  return g_steal_pointer (&table);
}

static GTorchTensor *
read_tensor (GTorchCSVReader *self, guint64 max_rows, GCancellable *cancellable, GError **error)
{
  GTorchTensor *tensor = NULL;
  Growing *growing = NULL;
  gint64 n_rows = 0;

  if (self->columns == NULL && !begin (self, cancellable, error))
    return NULL;
  growing = g_new0 (Growing, 1);
  if (read_rows (self, TRUE, max_rows, growing, &n_rows, cancellable, error)
      && (n_rows > 0 || !self->has_read))
    tensor = finish (growing, self->dtype, (const gint64[]){ n_rows, self->n_targets }, 2, error);
  self->has_read = TRUE;
  growing_clear (growing, 1);
  return tensor;
}

/**
 * gtorch_csv_reader_read_table:
 * @self: a reader
 * @max_rows: how many rows to read at most, 0 for all
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads the next rows as columns: tensors of one dimension, by name.
 *
 * The first call returns a table even if there is no row. After an error or a cancellation the reader is in
 * front of the row that failed, and rows that were read before it by the same call are lost.
 *
 * Returns: (transfer full) (nullable): the columns; %NULL without an error at the end, and with one if a
 *   field is no number (%GTORCH_ERROR_FORMAT), a column does not exist (%GTORCH_ERROR_NOT_FOUND), the limit
 *   of memory is exceeded (%GTORCH_ERROR_OUT_OF_MEMORY), or the stream fails
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_csv_reader_read_table (GTorchCSVReader *self, guint64 max_rows, GCancellable *cancellable,
                              GError **error)
{
  GTorchTable *table;

  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!enter (self, error))
    return NULL;
  table = read_table (self, max_rows, cancellable, error);
  g_atomic_int_set (&self->is_busy, FALSE);
  return table;
}

/**
 * gtorch_csv_reader_read_tensor:
 * @self: a reader
 * @max_rows: how many rows to read at most, 0 for all
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads the next rows as one tensor of the shape rows by columns, of [property@CSVReader:dtype].
 *
 * ```c
 * g_autoptr (GTorchTensor) numbers = gtorch_csv_reader_read_tensor (reader, 0, NULL, &error);
 * ```
 *
 * Returns: (transfer full) (nullable): the tensor; %NULL without an error at the end, and with one as
 *   [method@CSVReader.read_table]
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_csv_reader_read_tensor (GTorchCSVReader *self, guint64 max_rows, GCancellable *cancellable,
                               GError **error)
{
  GTorchTensor *tensor;

  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!enter (self, error))
    return NULL;
  tensor = read_tensor (self, max_rows, cancellable, error);
  g_atomic_int_set (&self->is_busy, FALSE);
  return tensor;
}

/* --- in another thread --- */

typedef struct
{
  GTorchCSVReader *reader;
  guint64 max_rows;
  gboolean is_matrix;
} Read;

static void
read_free (gpointer data)
{
  Read *read = data;

  g_object_unref (read->reader);
  g_free (read);
}

static void
read_in_thread (GTask *task, gpointer source_object, gpointer task_data, GCancellable *cancellable)
{
  Read *read = task_data;
  GError *error = NULL;
  gpointer result = read->is_matrix
                        ? (gpointer) read_tensor (read->reader, read->max_rows, cancellable, &error)
                        : read_table (read->reader, read->max_rows, cancellable, &error);

  g_atomic_int_set (&read->reader->is_busy, FALSE);
  if (error != NULL)
    g_task_return_error (task, error);
  else
    g_task_return_pointer (task, result, g_object_unref);
}

static void
read_begin (GTask *task, GTorchCSVReader *self, gboolean is_matrix, guint64 max_rows,
            int io_priority)
{
  GError *error = NULL;
  Read *read;

  if (!enter (self, &error))
    {
      g_task_return_error (task, error);
      return;
    }
  read = g_new (Read, 1);
  *read = (Read){ g_object_ref (self), max_rows, is_matrix };
  g_task_set_priority (task, io_priority);
  g_task_set_task_data (task, read, read_free);
  g_task_run_in_thread (task, read_in_thread);
}

/**
 * gtorch_csv_reader_read_table_async:
 * @self: a reader
 * @max_rows: how many rows to read at most, 0 for all
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [method@CSVReader.read_table] in another thread. One call at a time can use a reader.
 *
 * Since: 0.1
 */
void
gtorch_csv_reader_read_table_async (GTorchCSVReader *self, guint64 max_rows, int io_priority,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_CSV_READER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (self, gtorch_csv_reader_read_table_async, cancellable, callback, user_data);
  read_begin (task, self, FALSE, max_rows, io_priority);
}

/**
 * gtorch_csv_reader_read_table_finish:
 * @self: a reader
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [method@CSVReader.read_table_async].
 *
 * Returns: (transfer full) (nullable): the columns; %NULL without an error at the end, and with one as
 *   [method@CSVReader.read_table]
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_csv_reader_read_table_finish (GTorchCSVReader *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_csv_reader_read_table_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_csv_reader_read_tensor_async:
 * @self: a reader
 * @max_rows: how many rows to read at most, 0 for all
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [method@CSVReader.read_tensor] in another thread. One call at a time can use a reader.
 *
 * Since: 0.1
 */
void
gtorch_csv_reader_read_tensor_async (GTorchCSVReader *self, guint64 max_rows, int io_priority,
                                     GCancellable *cancellable, GAsyncReadyCallback callback,
                                     gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_CSV_READER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (self, gtorch_csv_reader_read_tensor_async, cancellable, callback, user_data);
  read_begin (task, self, TRUE, max_rows, io_priority);
}

/**
 * gtorch_csv_reader_read_tensor_finish:
 * @self: a reader
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [method@CSVReader.read_tensor_async].
 *
 * Returns: (transfer full) (nullable): the tensor; %NULL without an error at the end, and with one as
 *   [method@CSVReader.read_table]
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_csv_reader_read_tensor_finish (GTorchCSVReader *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CSV_READER (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_csv_reader_read_tensor_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}
