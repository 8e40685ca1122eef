/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Files of NumPy's form .npz: a zip archive of .npy files. */

#include "config.h"

#include "io/gtorch-npz.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-file-save-private.h"
#include "base/gtorch-task-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "io/gtorch-npy-private.h"
#include "io/gtorch-zip-private.h"
#include "tensor/gtorch-tensor-private.h"

#define OP "npz_load"

/* --- reading --- */

static GTorchTable *
read_archive (GTorchSource *source, GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchZip) zip = gtorch_zip_new (source, cancellable, error);
  g_autoptr (GTorchTable) table = gtorch_table_new ();

  if (zip == NULL)
    return NULL;
  for (guint i = 0; i < zip->members->len; i++)
    {
      const GTorchZipMember *member = &g_array_index (zip->members, GTorchZipMember, i);
      g_autoptr (GBytes) bytes = NULL;
      g_autoptr (GTorchTensor) tensor = NULL;
      g_autofree gchar *name = NULL;
      g_autofree gchar *op = NULL;
      gboolean is_read_only;

      if (!g_str_has_suffix (member->name, ".npy"))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("npz_load: the archive has “%s”, which is no array: names of arrays end "
                          "in .npy"),
                       gtorch_name_str (member->name));
          return NULL;
        }
      name = g_strndup (member->name, strlen (member->name) - 4);
      bytes = gtorch_zip_read (zip, member, &is_read_only, cancellable, error);
      if (bytes == NULL)
        return NULL;
      op = g_strdup_printf (OP ": “%s”", gtorch_name_str (name));
      tensor = gtorch_tensor_wrap (gtorch_npy_read (op, source, bytes, is_read_only, error));
      if (tensor == NULL || !gtorch_table_add (table, name, tensor, error))
        return NULL;
    }
  return g_steal_pointer (&table);
}

/**
 * gtorch_npz_load_bytes:
 * @bytes: the content of an .npz file
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB
 * @error: return location for an error
 *
 * Reads arrays that are in memory. Tensors of arrays that are not compressed alias the memory of @bytes and
 * are read-only.
 *
 * Returns: (transfer full): the tensors by name, or %NULL on error as for [func@npz_load]
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_npz_load_bytes (GBytes *bytes, guint64 max_bytes, GError **error)
{
  g_autoptr (GTorchSource) source = NULL;

  g_return_val_if_fail (bytes != NULL, NULL);
  source = gtorch_source_new_from_bytes (OP, bytes, max_bytes);
  return read_archive (source, NULL, error);
}

/**
 * gtorch_npz_load:
 * @stream: a stream of the content of an .npz file
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads the arrays that `numpy.savez()` or `numpy.savez_compressed()` has written. What [func@npy_load]
 * says of an array holds for each.
 *
 * The directory is at the end of such a file: a stream that can seek is read where it has to be, any other
 * to its end. Sizes and check sums are checked.
 *
 * ```c
 * g_autoptr (GTorchTable) arrays = gtorch_npz_load (stream, 0, NULL, &error);
 * GTorchTensor *labels = gtorch_table_lookup (arrays, "labels", &error);
 * ```
 *
 * Returns: (transfer full): the tensors by name, or %NULL with %GTORCH_ERROR_FORMAT if the content is
 *   malformed, cut short or inconsistent, %GTORCH_ERROR_NOT_SUPPORTED for elements without a dtype,
 *   encrypted members and unknown compression, %GTORCH_ERROR_OUT_OF_MEMORY beyond @max_bytes, or an error
 *   of the stream
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_npz_load (GInputStream *stream, guint64 max_bytes, GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchSource) source = NULL;

  g_return_val_if_fail (G_IS_INPUT_STREAM (stream), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  source = gtorch_source_new_from_stream (OP, stream, max_bytes, cancellable, error);
  return source != NULL ? read_archive (source, cancellable, error) : NULL;
}

/**
 * gtorch_npz_load_file:
 * @file: an .npz file
 * @map: whether to map the file into memory if it is local
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB; what is mapped takes none
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads arrays from a file. With @map, arrays that are not compressed are read when they are used, as with
 * [func@npy_load_file], and their check sums are not checked.
 *
 * Returns: (transfer full): the tensors by name, or %NULL on error as for [func@npz_load]
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_npz_load_file (GFile *file, gboolean map, guint64 max_bytes, GCancellable *cancellable,
                      GError **error)
{
  g_autoptr (GTorchSource) source = NULL;

  g_return_val_if_fail (G_IS_FILE (file), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  source = gtorch_source_new_from_file (OP, file, map, max_bytes, cancellable, error);
  return source != NULL ? read_archive (source, cancellable, error) : NULL;
}

/* --- in another thread --- */

static gpointer
load_run (gpointer data, GCancellable *cancellable, GError **error)
{
  const GTorchSourceLoad *load = data;

  return G_IS_FILE (load->from)
             ? (gpointer) gtorch_npz_load_file (G_FILE (load->from), load->map, load->max_bytes,
                                                cancellable, error)
             : gtorch_npz_load (G_INPUT_STREAM (load->from), load->max_bytes, cancellable, error);
}

/**
 * gtorch_npz_load_async:
 * @stream: a stream of the content of the file
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@npz_load] in another thread. Cancelling ends the operation immediately, even if
 * @stream blocks and ignores its cancellable; then the thread uses @stream until that call returns.
 *
 * Since: 0.1
 */
void
gtorch_npz_load_async (GInputStream *stream, guint64 max_bytes, int io_priority,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (G_IS_INPUT_STREAM (stream));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_npz_load_async, cancellable, callback, user_data);
  gtorch_source_load (task, io_priority, load_run, stream, FALSE, max_bytes);
}

/**
 * gtorch_npz_load_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@npz_load_async].
 *
 * Returns: (transfer full): the tensors by name, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_npz_load_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_npz_load_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_npz_load_file_async:
 * @file: the file
 * @map: whether to map the file into memory if it is local
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB; what is mapped takes none
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@npz_load_file] in another thread.
 *
 * Since: 0.1
 */
void
gtorch_npz_load_file_async (GFile *file, gboolean map, guint64 max_bytes, int io_priority,
                            GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_npz_load_file_async, cancellable, callback, user_data);
  gtorch_source_load (task, io_priority, load_run, file, map, max_bytes);
}

/**
 * gtorch_npz_load_file_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@npz_load_file_async].
 *
 * Returns: (transfer full): the tensors by name, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_npz_load_file_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_npz_load_file_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* --- writing --- */

typedef struct
{
  GTorchTable *table; /* of the save's own */
  gboolean compress;
  GObject *to; /* a stream or a file */
} Save;

static void
save_free (gpointer data)
{
  Save *save = data;

  g_object_unref (save->table);
  g_object_unref (save->to);
  g_free (save);
}

static gboolean
write_archive (GOutputStream *stream, GCancellable *cancellable, gpointer data, GError **error)
{
  const Save *save = data;
  g_autoptr (GTorchZipWriter) writer = gtorch_zip_writer_new ("npz_save", stream);

  for (guint i = 0; i < gtorch_table_get_length (save->table); i++)
    {
      GTorchTensor *tensor = gtorch_table_get_tensor (save->table, i);
      g_autofree gchar *name = g_strconcat (gtorch_table_get_name (save->table, i), ".npy", NULL);
      g_autoptr (GBytes) content = gtorch_tensor_get_bytes (tensor, error);
      g_autoptr (GBytes) header = NULL;

      if (content == NULL)
        return FALSE;
      header = gtorch_npy_header_write ("npz_save", gtorch_tensor_unwrap (tensor), error);
      if (header == NULL
          || !gtorch_zip_writer_add (writer, name, header, content, save->compress, cancellable,
                                     error))
        return FALSE;
    }
  return gtorch_zip_writer_close (writer, cancellable, error);
}

/**
 * gtorch_npz_save:
 * @table: tensors by name
 * @compress: whether to compress them, which takes long and cannot be mapped
 * @stream: the stream to write to, which need not seek
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes tensors as `numpy.savez()` or, with @compress, `numpy.savez_compressed()` does. Equal tensors give
 * equal bytes.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_SUPPORTED for bfloat16, which NumPy lacks,
 *   %GTORCH_ERROR_INVALID for a name of more than 65531 bytes, %GTORCH_ERROR_RELEASED, or an error of the
 *   stream
 *
 * Since: 0.1
 */
gboolean
gtorch_npz_save (GTorchTable *table, gboolean compress, GOutputStream *stream,
                 GCancellable *cancellable, GError **error)
{
  Save save = { table, compress, NULL };

  g_return_val_if_fail (GTORCH_IS_TABLE (table), FALSE);
  g_return_val_if_fail (G_IS_OUTPUT_STREAM (stream), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return write_archive (stream, cancellable, &save, error);
}

/**
 * gtorch_npz_save_file:
 * @table: tensors by name
 * @compress: whether to compress them, which takes long and cannot be mapped
 * @file: the file to write or replace
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes tensors to an .npz file. If anything fails, an existing file is unchanged, as with
 * [func@safetensors_save_file].
 *
 * Returns: %TRUE, or %FALSE with an error of [func@npz_save], or of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_npz_save_file (GTorchTable *table, gboolean compress, GFile *file, GCancellable *cancellable,
                      GError **error)
{
  Save save = { table, compress, NULL };

  g_return_val_if_fail (GTORCH_IS_TABLE (table), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return gtorch_file_save (file, write_archive, &save, cancellable, error);
}

static gpointer
save_run (gpointer data, GCancellable *cancellable, GError **error)
{
  Save *save = data;
  gboolean result =
      G_IS_FILE (save->to)
          ? gtorch_file_save (G_FILE (save->to), write_archive, save, cancellable, error)
          : write_archive (G_OUTPUT_STREAM (save->to), cancellable, save, error);

  return result ? GINT_TO_POINTER (TRUE) : NULL;
}

static void
save_begin (GTask *task, GTorchTable *table, gboolean compress, gpointer to, int io_priority)
{
  Save *save = g_new (Save, 1);

  *save = (Save){ gtorch_table_new (), compress, g_object_ref (to) };
  for (guint i = 0; i < gtorch_table_get_length (table); i++)
    gtorch_table_add (save->table, gtorch_table_get_name (table, i),
                      gtorch_table_get_tensor (table, i), NULL);
  gtorch_source_run (task, io_priority, save_run, save, save_free, NULL);
}

/**
 * gtorch_npz_save_async:
 * @table: tensors by name; the table may be changed immediately
 * @compress: whether to compress them
 * @stream: the stream to write to
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@npz_save] in another thread. The elements must not be changed until it is done.
 *
 * Since: 0.1
 */
void
gtorch_npz_save_async (GTorchTable *table, gboolean compress, GOutputStream *stream,
                       int io_priority, GCancellable *cancellable, GAsyncReadyCallback callback,
                       gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_TABLE (table));
  g_return_if_fail (G_IS_OUTPUT_STREAM (stream));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_npz_save_async, cancellable, callback, user_data);
  save_begin (task, table, compress, stream, io_priority);
}

/**
 * gtorch_npz_save_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@npz_save_async].
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_npz_save_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, NULL, gtorch_npz_save_async, error)
         && g_task_propagate_pointer (G_TASK (result), error) != NULL;
}

/**
 * gtorch_npz_save_file_async:
 * @table: tensors by name; the table may be changed immediately
 * @compress: whether to compress them
 * @file: the file to write or replace
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@npz_save_file] in another thread. The elements must not be changed until it is
 * done.
 *
 * Since: 0.1
 */
void
gtorch_npz_save_file_async (GTorchTable *table, gboolean compress, GFile *file, int io_priority,
                            GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_TABLE (table));
  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_npz_save_file_async, cancellable, callback, user_data);
  save_begin (task, table, compress, file, io_priority);
}

/**
 * gtorch_npz_save_file_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@npz_save_file_async].
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_npz_save_file_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, NULL, gtorch_npz_save_file_async, error)
         && g_task_propagate_pointer (G_TASK (result), error) != NULL;
}
