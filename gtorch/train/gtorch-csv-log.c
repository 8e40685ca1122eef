/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-csv-log.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-text-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-file-save-private.h"
#include "train/gtorch-log-private.h"

/**
 * GTorchCSVLog:
 *
 * A log of comma-separated values: one row for each record, a column `step`, and one for each name.
 *
 * What a record lacks is empty. A name that comes later adds a column: the file is written anew then, with an
 * empty value in the rows before. Rows are appended to a file that exists, whose first line has the names.
 * Each row is given to the system at once, so that other programs can follow the log.
 *
 * ```c
 * g_autoptr (GFile) file = g_file_new_for_path ("log.csv");
 * g_autoptr (GTorchLog) log = GTORCH_LOG (gtorch_csv_log_new (file));
 * ```
 *
 * Since: 0.1
 */
struct _GTorchCSVLog
{
  GTorchLog parent_instance;
  GTorchLogFile to;
  GPtrArray *columns; /* without the step; NULL: the file was not looked at */
};

G_DEFINE_TYPE (GTorchCSVLog, gtorch_csv_log, GTORCH_TYPE_LOG)

static const GTorchField fields[] = {
  /**
   * GTorchCSVLog:file:
   *
   * The file.
   *
   * Since: 0.1
   */
  { "file", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchCSVLog, to.file), 0, g_file_get_type,
    GTORCH_FIELD_FIXED },
};

/* What would be read as more than a name. */
static gboolean
check_names (const gchar *const *names, GError **error)
{
  for (; *names != NULL; names++)
    if (**names == '\0' || strpbrk (*names, ",\"\r\n") != NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("csv_log: the name “%s” must have characters, and no comma, quote or line "
                        "break"),
                     gtorch_name_str (*names));
        return FALSE;
      }
  return TRUE;
}

/* Reads the names of a file that exists. */
static gboolean
read_columns (GTorchCSVLog *self, GError **error)
{
  GError *local = NULL;
  g_autofree gchar *content = NULL;
  g_auto (GStrv) names = NULL;
  gchar *end;

  if (!g_file_load_contents (self->to.file, NULL, &content, NULL, NULL, &local))
    {
      if (!g_error_matches (local, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
        {
          g_propagate_error (error, local);
          return FALSE;
        }
      g_clear_error (&local);
      content = g_strdup ("");
    }
  end = strchr (content, '\n');
  if (*content != '\0'
      && (end == NULL || !g_str_has_prefix (content, "step")
          || (content[4] != ',' && content[4] != '\n')))
    {
      g_autofree gchar *name = g_file_get_parse_name (self->to.file);

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("csv_log: %s exists and is no log: its first line does not begin with "
                      "“step”"),
                   name);
      return FALSE;
    }
  self->columns = g_ptr_array_new_with_free_func (g_free);
  if (*content == '\0')
    return TRUE;
  *end = '\0';
  names = g_strsplit (content, ",", -1);
  for (guint i = 1; names[i] != NULL; i++)
    g_ptr_array_add (self->columns, g_strdup (names[i]));
  return TRUE;
}

static void
append_header (GTorchCSVLog *self, GString *text)
{
  g_string_append (text, "step");
  for (guint i = 0; i < self->columns->len; i++)
    g_string_append_printf (text, ",%s", (const gchar *) self->columns->pdata[i]);
  g_string_append_c (text, '\n');
}

/* Writes the file anew, with empty values at the ends of its rows. */
static gboolean
widen (GTorchCSVLog *self, guint n_former, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree gchar *content = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_auto (GStrv) rows = NULL;

  append_header (self, text);
  if (!gtorch_log_file_close (&self->to, error))
    return FALSE;
  if (g_file_load_contents (self->to.file, NULL, &content, NULL, NULL, NULL))
    {
      rows = g_strsplit (content, "\n", -1);
      for (guint i = 1; rows[0] != NULL && rows[i] != NULL && *rows[i] != '\0'; i++)
        {
          g_string_append (text, rows[i]);
          for (guint j = n_former; j < self->columns->len; j++)
            g_string_append_c (text, ',');
          g_string_append_c (text, '\n');
        }
    }
  bytes = g_string_free_to_bytes (g_steal_pointer (&text));
  return gtorch_file_save_bytes (self->to.file, bytes, NULL, error);
}

static gboolean
gtorch_csv_log_write (GTorchLog *log, gint64 step, const gchar *const *names, const gdouble *values,
                      gsize n_values, GError **error)
{
  GTorchCSVLog *self = GTORCH_CSV_LOG (log);
  g_autoptr (GString) text = g_string_new (NULL);
  guint n_former;

  if (!gtorch_log_file_check (&self->to, error) || !check_names (names, error)
      || (self->columns == NULL && !read_columns (self, error)))
    return FALSE;
  n_former = self->columns->len;
  for (gsize i = 0; i < n_values; i++)
    if (!g_ptr_array_find_with_equal_func (self->columns, names[i], g_str_equal, NULL))
      g_ptr_array_add (self->columns, g_strdup (names[i]));
  if (self->columns->len > n_former && !widen (self, n_former, error))
    {
      g_ptr_array_set_size (self->columns, n_former);
      return FALSE;
    }
  g_string_append_printf (text, "%" G_GINT64_FORMAT, step);
  for (guint i = 0; i < self->columns->len; i++)
    {
      g_string_append_c (text, ',');
      for (gsize j = 0; j < n_values; j++)
        if (g_str_equal (names[j], self->columns->pdata[i]))
          {
            gtorch_log_append_number (text, values[j]);
            break;
          }
    }
  g_string_append_c (text, '\n');
  return gtorch_log_file_write (&self->to, text->str, text->len, error)
         && gtorch_log_file_flush (&self->to, error);
}

static gboolean
gtorch_csv_log_flush (GTorchLog *log, GError **error)
{
  return gtorch_log_file_flush (&GTORCH_CSV_LOG (log)->to, error);
}

static gboolean
gtorch_csv_log_close (GTorchLog *log, GError **error)
{
  return gtorch_log_file_close (&GTORCH_CSV_LOG (log)->to, error);
}

static void
gtorch_csv_log_finalize (GObject *object)
{
  GTorchCSVLog *self = GTORCH_CSV_LOG (object);

  gtorch_log_file_clear (&self->to);
  g_clear_pointer (&self->columns, g_ptr_array_unref);
  G_OBJECT_CLASS (gtorch_csv_log_parent_class)->finalize (object);
}

static void
gtorch_csv_log_class_init (GTorchCSVLogClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_csv_log_finalize;
  GTORCH_LOG_CLASS (klass)->write = gtorch_csv_log_write;
  GTORCH_LOG_CLASS (klass)->flush = gtorch_csv_log_flush;
  GTORCH_LOG_CLASS (klass)->close = gtorch_csv_log_close;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_csv_log_init (GTorchCSVLog *self)
{
}

/**
 * gtorch_csv_log_new:
 * @file: the file, which is made by the first record
 *
 * Creates a log.
 *
 * Returns: (transfer full): the log
 *
 * Since: 0.1
 */
GTorchCSVLog *
gtorch_csv_log_new (GFile *file)
{
  g_return_val_if_fail (G_IS_FILE (file), NULL);
  return g_object_new (GTORCH_TYPE_CSV_LOG, "file", file, NULL);
}
