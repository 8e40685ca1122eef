/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io/gtorch-csv-reader.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-field-private.h"
#include "base/gtorch-none-private.h"
#include "io/gtorch-csv-private.h"
#include "io/gtorch-safetensors-private.h"
#include "io/gtorch-source-private.h"

#define OP "csv_read"

/**
 * GTorchCSVReader:
 *
 * Reads numbers from text with delimiters (CSV, TSV), as columns with names or as one tensor of two
 * dimensions, all at once or in blocks of rows.
 *
 * Numbers are decimal: digits with at most one point, whatever the locale, and an exponent, as in
 * `-1.5e-3`; `nan`, `inf` and `infinity` are numbers, in large letters, too. They are rounded as Python's
 * `float()` rounds them. `1_000` and `0x10` are none, and a number that is too large for the dtype is an
 * error. A field may be in quotes, within which a quote is written twice. Lines without anything are
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
                      "no number and no end of a line, and delimiter and quote must differ"),
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
