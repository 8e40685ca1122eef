/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-log-private.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-file-save-private.h"

/**
 * GTorchLog:
 *
 * Where a [class@Trainer] writes numbers of its steps and evaluations; a program may write its own.
 *
 * There are logs of comma-separated values ([class@CSVLog]), of JSON ([class@JSONLog]) and for TensorBoard
 * ([class@EventWriter]). A subclass, in any language, overrides `write`. Logs may be used from any thread.
 *
 * Since: 0.1
 */

typedef struct
{
  GRecMutex lock; /* a function of a subclass may call others */
  gboolean is_closed;
} GTorchLogPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GTorchLog, gtorch_log, G_TYPE_OBJECT)

#define PRIVATE(self) ((GTorchLogPrivate *) gtorch_log_get_instance_private (self))

static gboolean
gtorch_log_real_end (GTorchLog *self, GError **error)
{
  return TRUE;
}

static void
gtorch_log_finalize (GObject *object)
{
  g_rec_mutex_clear (&PRIVATE (GTORCH_LOG (object))->lock);
  G_OBJECT_CLASS (gtorch_log_parent_class)->finalize (object);
}

static void
gtorch_log_class_init (GTorchLogClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_log_finalize;
  klass->flush = gtorch_log_real_end;
  klass->close = gtorch_log_real_end;
}

static void
gtorch_log_init (GTorchLog *self)
{
  g_rec_mutex_init (&PRIVATE (self)->lock);
}

gboolean
gtorch_log_lock (GTorchLog *self, const gchar *op, GError **error)
{
  GTorchLogPrivate *priv = PRIVATE (self);

  g_rec_mutex_lock (&priv->lock);
  if (!priv->is_closed)
    return TRUE;
  g_rec_mutex_unlock (&priv->lock);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: the %s is closed"), op,
               G_OBJECT_TYPE_NAME (self));
  return FALSE;
}

void
gtorch_log_unlock (GTorchLog *self)
{
  g_rec_mutex_unlock (&PRIVATE (self)->lock);
}

/**
 * gtorch_log_write:
 * @self: a log
 * @step: the step that the numbers belong to
 * @names: (array zero-terminated=1): the names of the numbers, such as `train/loss`
 * @values: (array length=n_values): the numbers
 * @n_values: the length of @values, which is that of @names
 * @error: return location for an error
 *
 * Writes numbers.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if there are not as many names as numbers, or the log
 *   is closed, or with the error of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_log_write (GTorchLog *self, gint64 step, const gchar *const *names, const gdouble *values,
                  gsize n_values, GError **error)
{
  GTorchLogClass *klass;
  GError *local = NULL;
  gboolean done;

  g_return_val_if_fail (GTORCH_IS_LOG (self), FALSE);
  g_return_val_if_fail (names != NULL, FALSE);
  g_return_val_if_fail (values != NULL || n_values == 0, FALSE);
  klass = GTORCH_LOG_GET_CLASS (self);
  if (g_strv_length ((gchar **) names) != n_values)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("log_write: %u names and %zu numbers are given, and each number has a name"),
                   g_strv_length ((gchar **) names), n_values);
      return FALSE;
    }
  if (klass->write == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("log_write: %s does not override write"), G_OBJECT_TYPE_NAME (self));
      return FALSE;
    }
  if (!gtorch_log_lock (self, "log_write", error))
    return FALSE;
  done = klass->write (self, step, names, values, n_values, &local);
  gtorch_log_unlock (self);
  return gtorch_callback_ended ("log_write", done, local, error);
}

/**
 * gtorch_log_flush:
 * @self: a log
 * @error: return location for an error
 *
 * Gives what was written to the system, so that other programs can read it.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if the log is closed, or with the error of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_log_flush (GTorchLog *self, GError **error)
{
  GError *local = NULL;
  gboolean done;

  g_return_val_if_fail (GTORCH_IS_LOG (self), FALSE);
  if (!gtorch_log_lock (self, "log_flush", error))
    return FALSE;
  done = GTORCH_LOG_GET_CLASS (self)->flush (self, &local);
  gtorch_log_unlock (self);
  return gtorch_callback_ended ("log_flush", done, local, error);
}

/**
 * gtorch_log_close:
 * @self: a log
 * @error: return location for an error
 *
 * Writes what is left and closes the file. A log that is closed stays so; to close it again does nothing.
 *
 * Returns: %TRUE, or %FALSE with the error of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_log_close (GTorchLog *self, GError **error)
{
  GError *local = NULL;
  gboolean done;

  g_return_val_if_fail (GTORCH_IS_LOG (self), FALSE);
  if (!gtorch_log_lock (self, "log_close", NULL))
    return TRUE;
  done = GTORCH_LOG_GET_CLASS (self)->close (self, &local);
  PRIVATE (self)->is_closed = TRUE;
  gtorch_log_unlock (self);
  return gtorch_callback_ended ("log_close", done, local, error);
}

/**
 * gtorch_log_is_closed:
 * @self: a log
 *
 * Tells whether the log is closed.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
gtorch_log_is_closed (GTorchLog *self)
{
  gboolean is_closed;

  g_return_val_if_fail (GTORCH_IS_LOG (self), TRUE);
  g_rec_mutex_lock (&PRIVATE (self)->lock);
  is_closed = PRIVATE (self)->is_closed;
  gtorch_log_unlock (self);
  return is_closed;
}

/* --- files --- */

gboolean
gtorch_log_file_check (const GTorchLogFile *self, GError **error)
{
  if (self->file != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("log_write: the log has no file"));
  return FALSE;
}

gboolean
gtorch_log_file_write (GTorchLogFile *self, gconstpointer data, gsize n_bytes, GError **error)
{
  if (!gtorch_log_file_check (self, error))
    return FALSE;
  if (self->stream == NULL)
    {
      g_autoptr (GOutputStream) base = gtorch_file_append (self->file, error);

      if (base == NULL)
        return FALSE;
      self->stream = g_buffered_output_stream_new_sized (base, 1 << 16);
    }
  return g_output_stream_write_all (self->stream, data, n_bytes, NULL, NULL, error);
}

gboolean
gtorch_log_file_flush (GTorchLogFile *self, GError **error)
{
  return self->stream == NULL || g_output_stream_flush (self->stream, NULL, error);
}

gboolean
gtorch_log_file_close (GTorchLogFile *self, GError **error)
{
  g_autoptr (GOutputStream) stream = g_steal_pointer (&self->stream);

  return stream == NULL || g_output_stream_close (stream, NULL, error);
}

void
gtorch_log_file_clear (GTorchLogFile *self)
{
  g_autoptr (GError) error = NULL;

  if (!gtorch_log_file_close (self, &error))
    {
      g_autofree gchar *name = g_file_get_parse_name (self->file);

      g_warning ("the end of %s could not be written: %s", name, error->message);
    }
  g_clear_object (&self->file);
}

void
gtorch_log_append_number (GString *text, gdouble value)
{
  gchar buffer[G_ASCII_DTOSTR_BUF_SIZE];

  for (gint digits = 6; digits <= 17; digits++)
    {
      gchar format[8];

      g_snprintf (format, sizeof format, "%%.%dg", digits);
      g_ascii_formatd (buffer, sizeof buffer, format, value);
      if (isnan (value) || g_ascii_strtod (buffer, NULL) == value)
        break;
    }
  g_string_append (text, buffer);
}
