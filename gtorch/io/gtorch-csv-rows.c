/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The rows of a CSV reader: records become blocks of cells, and these the elements of tensors that grow. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-none-private.h"
#include "base/gtorch-task-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "io/gtorch-csv-private.h"
#include "tensor/gtorch-tensor-private.h"

#define OP         "csv_read"
#define BLOCK_ROWS 8192
#define MAX_CELLS  (1 << 20) /* in a block */

static void
column_clear (gpointer data)
{
  g_free (((GTorchCSVColumn *) data)->name);
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
                   _ ("csv_read: the numbers take more than the limit of %" PRIu64 " bytes"),
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
                       _ ("csv_read: there is no memory for %zu bytes"), room);
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
 * The first call returns a table even if there is no row. After a row that cannot be read the reader is
 * behind it: the next call goes on with the next row. After a cancellation it is in front of the row that was
 * not read. Rows that were read before by the same call are lost: where bad rows are to be left out, read a
 * row at a time, or few.
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
  if (g_cancellable_set_error_if_cancelled (cancellable, error) || !enter (self, error))
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
  if (g_cancellable_set_error_if_cancelled (cancellable, error) || !enter (self, error))
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
