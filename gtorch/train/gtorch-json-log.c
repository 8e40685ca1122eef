/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-json-log.h"

#include <math.h>

#include "base/gtorch-field-private.h"
#include "train/gtorch-log-private.h"

/**
 * GTorchJSONLog:
 *
 * A log with one JSON object to a line, such as `{"step": 20, "time": 1764428000.5, "train/loss": 0.25}`.
 *
 * `time` is in seconds since 1970. JSON has neither infinity nor NaN: such numbers are `null`. Lines are
 * appended to a file that exists. Each record is given to the system at once, so that other programs can
 * follow the log.
 *
 * ```c
 * g_autoptr (GFile) file = g_file_new_for_path ("log.jsonl");
 * g_autoptr (GTorchLog) log = GTORCH_LOG (gtorch_json_log_new (file));
 * ```
 *
 * Since: 0.1
 */
struct _GTorchJSONLog
{
  GTorchLog parent_instance;
  GTorchLogFile to;
};

G_DEFINE_TYPE (GTorchJSONLog, gtorch_json_log, GTORCH_TYPE_LOG)

static const GTorchField fields[] = {
  /**
   * GTorchJSONLog:file:
   *
   * The file.
   *
   * Since: 0.1
   */
  { "file", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchJSONLog, to.file), 0, g_file_get_type,
    GTORCH_FIELD_FIXED },
};

static void
append_string (GString *text, const gchar *string)
{
  g_autofree gchar *valid = g_utf8_make_valid (string, -1);

  g_string_append_c (text, '"');
  for (const gchar *c = valid; *c != '\0'; c++)
    if (*c == '"' || *c == '\\')
      g_string_append_printf (text, "\\%c", *c);
    else if ((guchar) *c < 0x20)
      g_string_append_printf (text, "\\u%04x", *c);
    else
      g_string_append_c (text, *c);
  g_string_append_c (text, '"');
}

static gboolean
gtorch_json_log_write (GTorchLog *log, gint64 step, const gchar *const *names,
                       const gdouble *values, gsize n_values, GError **error)
{
  GTorchJSONLog *self = GTORCH_JSON_LOG (log);
  g_autoptr (GString) text = g_string_new (NULL);

  g_string_append_printf (text,
                          "{\"step\": %" G_GINT64_FORMAT ", \"time\": %" G_GINT64_FORMAT ".%06d",
                          step, g_get_real_time () / G_USEC_PER_SEC,
                          (gint) (g_get_real_time () % G_USEC_PER_SEC));
  for (gsize i = 0; i < n_values; i++)
    {
      g_string_append (text, ", ");
      append_string (text, names[i]);
      g_string_append (text, ": ");
      if (isfinite (values[i]))
        gtorch_log_append_number (text, values[i]);
      else
        g_string_append (text, "null");
    }
  g_string_append (text, "}\n");
  return gtorch_log_file_write (&self->to, text->str, text->len, error)
         && gtorch_log_file_flush (&self->to, error);
}

static gboolean
gtorch_json_log_flush (GTorchLog *log, GError **error)
{
  return gtorch_log_file_flush (&GTORCH_JSON_LOG (log)->to, error);
}

static gboolean
gtorch_json_log_close (GTorchLog *log, GError **error)
{
  return gtorch_log_file_close (&GTORCH_JSON_LOG (log)->to, error);
}

static void
gtorch_json_log_finalize (GObject *object)
{
  gtorch_log_file_clear (&GTORCH_JSON_LOG (object)->to);
  G_OBJECT_CLASS (gtorch_json_log_parent_class)->finalize (object);
}

static void
gtorch_json_log_class_init (GTorchJSONLogClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_json_log_finalize;
  GTORCH_LOG_CLASS (klass)->write = gtorch_json_log_write;
  GTORCH_LOG_CLASS (klass)->flush = gtorch_json_log_flush;
  GTORCH_LOG_CLASS (klass)->close = gtorch_json_log_close;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_json_log_init (GTorchJSONLog *self)
{
}

/**
 * gtorch_json_log_new:
 * @file: the file, which is made by the first record
 *
 * Creates a log.
 *
 * Returns: (transfer full): the log
 *
 * Since: 0.1
 */
GTorchJSONLog *
gtorch_json_log_new (GFile *file)
{
  g_return_val_if_fail (G_IS_FILE (file), NULL);
  return g_object_new (GTORCH_TYPE_JSON_LOG, "file", file, NULL);
}
