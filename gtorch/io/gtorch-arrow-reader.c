/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-task-private.h"
#include "io/gtorch-arrow-private.h"
#include "io/gtorch-arrow.h"

/**
 * GTorchArrowReader:
 *
 * Reads record batches of another library one by one, by the Arrow C stream interface.
 *
 * The memory of a batch is shared, as with [func@arrow_import_table].
 *
 * Since: 0.1
 */
struct _GTorchArrowReader
{
  GObject parent_instance;
  GTorchArrowStream stream;
  GTorchArrowSchema schema;
  gint is_busy;
};

G_DEFINE_TYPE (GTorchArrowReader, gtorch_arrow_reader, G_TYPE_OBJECT)

static void
gtorch_arrow_reader_finalize (GObject *object)
{
  GTorchArrowReader *self = GTORCH_ARROW_READER (object);

  gtorch_arrow_release_schema (&self->schema);
  gtorch_arrow_release_stream (&self->stream);
  G_OBJECT_CLASS (gtorch_arrow_reader_parent_class)->finalize (object);
}

static void
gtorch_arrow_reader_class_init (GTorchArrowReaderClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_arrow_reader_finalize;
}

static void
gtorch_arrow_reader_init (GTorchArrowReader *self)
{
}

static gboolean
fail (GTorchArrowStream *stream, int code, GError **error)
{
  const gchar *text = stream->get_last_error (stream);

  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
               _ ("from_arrow: the other library's stream fails: %s (%d)"),
               text != NULL ? gtorch_name_str (text) : g_strerror (code), code);
  return FALSE;
}

/**
 * gtorch_arrow_reader_new: (constructor)
 * @stream: the address of an `ArrowArrayStream`
 * @error: return location for an error
 *
 * Creates a reader of a stream, which is moved away on success, as the interface says.
 *
 * Returns: (transfer full): the reader, or %NULL with %GTORCH_ERROR_FORMAT if there is no stream, and
 *   %GTORCH_ERROR_FAILED with the other library's message if it has no schema
 *
 * Since: 0.1
 */
GTorchArrowReader *
gtorch_arrow_reader_new (gsize stream, GError **error)
{
  GTorchArrowStream *given = (GTorchArrowStream *) stream;
  GTorchArrowSchema schema = { NULL };
  GTorchArrowReader *self;
  int code;

  if (given == NULL || given->release == NULL || given->get_schema == NULL
      || given->get_next == NULL || given->get_last_error == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("from_arrow: there is no stream, or it was released"));
      return NULL;
    }
  code = given->get_schema (given, &schema);
  if (code != 0)
    {
      fail (given, code, error);
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_ARROW_READER, NULL);
  self->schema = schema;
  self->stream = *given;
  given->release = NULL;
  return self;
}

static gboolean
enter (GTorchArrowReader *self, GError **error)
{
  if (self->stream.release == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("from_arrow: the reader has no stream"));
      return FALSE;
    }
  if (g_atomic_int_compare_and_exchange (&self->is_busy, FALSE, TRUE))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("from_arrow: the reader is in use by another call"));
  return FALSE;
}

/* A stream of arrays that are no structs has one column. */
static GTorchTable *
import_batch (GTorchArrowReader *self, GTorchArrowArray *array, GError **error)
{
  const GTorchArrowSchema *schema = &self->schema;
  g_autoptr (GTorchTable) table = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;

  if (schema->format == NULL || strcmp (schema->format, "+s") == 0)
    return gtorch_arrow_import (schema, array, error);
  tensor = gtorch_arrow_import_tensor ((gsize) schema, (gsize) array, error);
  table = gtorch_table_new ();
  if (tensor == NULL
      || !gtorch_table_add (table, schema->name != NULL ? schema->name : "", tensor, error))
    return NULL;
  return g_steal_pointer (&table);
}

static GTorchTable *
read_table (GTorchArrowReader *self, GCancellable *cancellable, GError **error)
{
  GTorchArrowArray array = { 0 };
  GTorchTable *table = NULL;
  int code;

  if (!g_cancellable_set_error_if_cancelled (cancellable, error))
    {
      code = self->stream.get_next (&self->stream, &array);
      if (code != 0)
        fail (&self->stream, code, error);
      else if (array.release != NULL)
        table = import_batch (self, &array, error);
      if (code == 0)
        gtorch_arrow_release_array (&array);
    }
  g_atomic_int_set (&self->is_busy, FALSE);
  return table;
}

/**
 * gtorch_arrow_reader_read_table:
 * @self: a reader
 * @cancellable: (nullable): a cancellable, which is asked before the other library is
 * @error: return location for an error
 *
 * Reads the next record batch.
 *
 * Returns: (transfer full) (nullable): the columns; %NULL without an error at the end, and with one of
 *   [func@arrow_import_table], or %GTORCH_ERROR_FAILED with the other library's message
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_arrow_reader_read_table (GTorchArrowReader *self, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_ARROW_READER (self), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (g_cancellable_set_error_if_cancelled (cancellable, error) || !enter (self, error))
    return NULL;
  return read_table (self, cancellable, error);
}

static void
read_in_thread (GTask *task, gpointer source_object, gpointer task_data, GCancellable *cancellable)
{
  GError *error = NULL;
  GTorchTable *table = read_table (source_object, cancellable, &error);

  if (error != NULL)
    g_task_return_error (task, error);
  else
    g_task_return_pointer (task, table, g_object_unref);
}

/**
 * gtorch_arrow_reader_read_table_async:
 * @self: a reader
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable, which is asked before the other library is
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [method@ArrowReader.read_table] in another thread. One call at a time can use a reader.
 *
 * Since: 0.1
 */
void
gtorch_arrow_reader_read_table_async (GTorchArrowReader *self, int io_priority,
                                      GCancellable *cancellable, GAsyncReadyCallback callback,
                                      gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;

  g_return_if_fail (GTORCH_IS_ARROW_READER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_arrow_reader_read_table_async, cancellable, callback,
                          user_data);
  g_task_set_priority (task, io_priority);
  if (enter (self, &error))
    g_task_run_in_thread (task, read_in_thread);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_arrow_reader_read_table_finish:
 * @self: a reader
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [method@ArrowReader.read_table_async].
 *
 * Returns: (transfer full) (nullable): the columns; %NULL without an error at the end, and with one as
 *   [method@ArrowReader.read_table]
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_arrow_reader_read_table_finish (GTorchArrowReader *self, GAsyncResult *result,
                                       GError **error)
{
  g_return_val_if_fail (GTORCH_IS_ARROW_READER (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_arrow_reader_read_table_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}
