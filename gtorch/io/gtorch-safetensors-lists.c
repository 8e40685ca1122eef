/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reading and writing with lists in place of tables, for programs that need the order of the file and for
 * languages that leak tables. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "io/gtorch-safetensors.h"

#include "device/gtorch-device.h"
#include "io/gtorch-safetensors-private.h"
#include "base/gtorch-task-private.h"

static gchar **
list_metadata (GHashTable *metadata)
{
  g_autofree const gchar **keys = NULL;
  guint n_keys, i;
  gchar **texts;

  keys = (const gchar **) g_hash_table_get_keys_as_array (metadata, &n_keys);
  texts = g_new0 (gchar *, 2 * (gsize) n_keys + 1);
  for (i = 0; i < n_keys; i++)
    {
      texts[2 * i] = g_strdup (keys[i]);
      texts[2 * i + 1] = g_strdup (g_hash_table_lookup (metadata, keys[i]));
    }
  return texts;
}

/* Takes ownership of content, which may be NULL. */
static GPtrArray *
content_to_lists (GTorchSafetensorsContent *content, gchar ***names, gchar ***metadata)
{
  GPtrArray *tensors;
  guint i;

  if (content == NULL)
    return NULL;
  tensors = g_ptr_array_ref (content->tensors);
  if (metadata != NULL)
    *metadata = list_metadata (content->metadata);
  if (names != NULL)
    {
      *names = g_new0 (gchar *, content->names->len + 1);
      for (i = 0; i < content->names->len; i++)
        (*names)[i] = g_steal_pointer (&content->names->pdata[i]);
    }
  gtorch_safetensors_content_free (content);
  return tensors;
}

/**
 * gtorch_safetensors_load_bytes_lists:
 * @bytes: the content of a safetensors file
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names of the tensors
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the metadata of the file:
 *   alternating keys and values
 * @error: return location for an error
 *
 * Does the same as [func@safetensors_load_bytes], and keeps the order of the file.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors, or %NULL with its errors
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_safetensors_load_bytes_lists (GBytes *bytes, gchar ***names, gchar ***metadata,
                                     GError **error)
{
  g_return_val_if_fail (bytes != NULL, NULL);
  return content_to_lists (gtorch_safetensors_read_bytes (bytes, error), names, metadata);
}

/**
 * gtorch_safetensors_load_lists:
 * @stream: a stream of the content of a safetensors file, which is read to its end
 * @device: (nullable): the device of the tensors, %NULL for the default device
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names of the tensors
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the metadata of the file:
 *   alternating keys and values
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called from time to time with the number of
 *   bytes read and the total
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Does the same as [func@safetensors_load], and keeps the order of the file.
 *
 * ```c
 * g_auto (GStrv) names = NULL;
 * g_autoptr (GPtrArray) tensors =
 *     gtorch_safetensors_load_lists (stream, NULL, &names, NULL, NULL, NULL, NULL, &error);
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors, or %NULL with its errors
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_safetensors_load_lists (GInputStream *stream, GTorchDevice *device, gchar ***names,
                               gchar ***metadata, GCancellable *cancellable,
                               GFileProgressCallback progress, gpointer progress_data,
                               GError **error)
{
  g_return_val_if_fail (G_IS_INPUT_STREAM (stream), NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  return content_to_lists (gtorch_safetensors_read_stream (stream, device, cancellable, progress,
                                                           progress_data, error),
                           names, metadata);
}

/**
 * gtorch_safetensors_load_file_lists:
 * @file: a safetensors file
 * @map: whether to map the file into memory if it is local
 * @device: (nullable): the device of the tensors, %NULL for the default device
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names of the tensors
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the metadata of the file:
 *   alternating keys and values
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called from time to time with the number of
 *   bytes read and the total
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Does the same as [func@safetensors_load_file], and keeps the order of the file.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors, or %NULL with its errors
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_safetensors_load_file_lists (GFile *file, gboolean map, GTorchDevice *device, gchar ***names,
                                    gchar ***metadata, GCancellable *cancellable,
                                    GFileProgressCallback progress, gpointer progress_data,
                                    GError **error)
{
  g_return_val_if_fail (G_IS_FILE (file), NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  return content_to_lists (gtorch_safetensors_read_file (file, map, device, cancellable, progress,
                                                         progress_data, error),
                           names, metadata);
}

/**
 * gtorch_safetensors_load_finish_lists:
 * @result: the result that the callback got
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names of the tensors
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the metadata of the file:
 *   alternating keys and values
 * @error: return location for an error
 *
 * Gets the result of [func@safetensors_load_async] or [func@safetensors_load_file_async] in the order of
 * the file.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors, or %NULL on error
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_safetensors_load_finish_lists (GAsyncResult *result, gchar ***names, gchar ***metadata,
                                      GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!(g_async_result_is_tagged (result, gtorch_safetensors_load_file_async)
            ? gtorch_task_take (result, NULL, gtorch_safetensors_load_file_async, error)
            : gtorch_task_take (result, NULL, gtorch_safetensors_load_async, error)))
    return NULL;
  return content_to_lists (gtorch_safetensors_read_finish (result, error), names, metadata);
}

/* --- writing --- */

/* Creates tables that borrow their contents. */
static gboolean
tables_from_lists (const gchar *const *names, GTorchTensor **tensors, gsize n_tensors,
                   const gchar *const *metadata, GHashTable **by_name, GHashTable **texts,
                   GError **error)
{
  gsize n_names = names != NULL ? g_strv_length ((gchar **) names) : 0;
  gsize n_texts = metadata != NULL ? g_strv_length ((gchar **) metadata) : 0;
  gsize i;

  if (n_names != n_tensors)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("safetensors: %zu names and %zu tensors: there must be one name for each "
                      "tensor"),
                   n_names, n_tensors);
      return FALSE;
    }
  if (n_texts % 2 != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("safetensors: %zu texts of metadata: there must be a value "
                      "after each key"),
                   n_texts);
      return FALSE;
    }
  *by_name = g_hash_table_new (g_str_hash, g_str_equal);
  for (i = 0; i < n_tensors; i++)
    if (!gtorch_name_insert ("safetensors", *by_name, names[i], tensors[i], error))
      return FALSE;
  *texts = g_hash_table_new (g_str_hash, g_str_equal);
  for (i = 0; i < n_texts; i += 2)
    if (!gtorch_name_insert ("safetensors: metadata", *texts, metadata[i],
                             (gpointer) metadata[i + 1], error))
      return FALSE;
  return TRUE;
}

/**
 * gtorch_safetensors_save_lists:
 * @names: (array zero-terminated=1): the name of each tensor
 * @tensors: (array length=n_tensors): tensors
 * @n_tensors: the length of @tensors, which is that of @names
 * @metadata: (nullable) (array zero-terminated=1): alternating keys and values
 * @stream: the stream to write to
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called from time to time with the number of
 *   bytes written and the total
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Does the same as [func@safetensors_save].
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if the lengths differ, a name or a key appears
 *   twice, or a key has no value, and on the errors of [func@safetensors_save]
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save_lists (const gchar *const *names, GTorchTensor **tensors, gsize n_tensors,
                               const gchar *const *metadata, GOutputStream *stream,
                               GCancellable *cancellable, GFileProgressCallback progress,
                               gpointer progress_data, GError **error)
{
  g_autoptr (GHashTable) by_name = NULL;
  g_autoptr (GHashTable) texts = NULL;

  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  return tables_from_lists (names, tensors, n_tensors, metadata, &by_name, &texts, error)
         && gtorch_safetensors_save (by_name, texts, stream, cancellable, progress, progress_data,
                                     error);
}

/**
 * gtorch_safetensors_save_file_lists:
 * @names: (array zero-terminated=1): the name of each tensor
 * @tensors: (array length=n_tensors): tensors
 * @n_tensors: the length of @tensors, which is that of @names
 * @metadata: (nullable) (array zero-terminated=1): alternating keys and values
 * @file: the file to write or replace
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called from time to time with the number of
 *   bytes written and the total
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Does the same as [func@safetensors_save_file].
 *
 * Returns: the same as [func@safetensors_save_lists]
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save_file_lists (const gchar *const *names, GTorchTensor **tensors,
                                    gsize n_tensors, const gchar *const *metadata, GFile *file,
                                    GCancellable *cancellable, GFileProgressCallback progress,
                                    gpointer progress_data, GError **error)
{
  g_autoptr (GHashTable) by_name = NULL;
  g_autoptr (GHashTable) texts = NULL;

  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  return tables_from_lists (names, tensors, n_tensors, metadata, &by_name, &texts, error)
         && gtorch_safetensors_save_file (by_name, texts, file, cancellable, progress,
                                          progress_data, error);
}

/* Ends an asynchronous call that could not start. */
static void
refuse_async (GTask *task, GError *error, gpointer progress_data, GDestroyNotify progress_data_free)
{
  g_task_return_error (task, error);
  if (progress_data_free != NULL)
    progress_data_free (progress_data);
}

/**
 * gtorch_safetensors_save_lists_async:
 * @names: (array zero-terminated=1): the name of each tensor
 * @tensors: (array length=n_tensors): tensors
 * @n_tensors: the length of @tensors, which is that of @names
 * @metadata: (nullable) (array zero-terminated=1): alternating keys and values
 * @stream: the stream to write to
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope notified) (closure progress_data) (destroy progress_data_free): called in
 *   the main context of the caller with the number of bytes written and the total
 * @progress_data: data for @progress
 * @progress_data_free: (nullable): frees @progress_data
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@safetensors_save_async]. The lists may be changed immediately.
 *
 * Since: 0.1
 */
void
gtorch_safetensors_save_lists_async (const gchar *const *names, GTorchTensor **tensors,
                                     gsize n_tensors, const gchar *const *metadata,
                                     GOutputStream *stream, int io_priority,
                                     GCancellable *cancellable, GFileProgressCallback progress,
                                     gpointer progress_data, GDestroyNotify progress_data_free,
                                     GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GHashTable) by_name = NULL;
  g_autoptr (GHashTable) texts = NULL;
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;

  g_return_if_fail (tensors != NULL || n_tensors == 0);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  if (tables_from_lists (names, tensors, n_tensors, metadata, &by_name, &texts, &error))
    gtorch_safetensors_save_async (by_name, texts, stream, io_priority, cancellable, progress,
                                   progress_data, progress_data_free, callback, user_data);
  else
    {
      task =
          gtorch_task_new (NULL, gtorch_safetensors_save_async, cancellable, callback, user_data);
      refuse_async (task, error, progress_data, progress_data_free);
    }
}

/**
 * gtorch_safetensors_save_lists_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@safetensors_save_lists_async], as [func@safetensors_save_finish] does.
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save_lists_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_safetensors_save_finish (result, error);
}

/**
 * gtorch_safetensors_save_file_lists_async:
 * @names: (array zero-terminated=1): the name of each tensor
 * @tensors: (array length=n_tensors): tensors
 * @n_tensors: the length of @tensors, which is that of @names
 * @metadata: (nullable) (array zero-terminated=1): alternating keys and values
 * @file: the file to write or replace
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope notified) (closure progress_data) (destroy progress_data_free): called in
 *   the main context of the caller with the number of bytes written and the total
 * @progress_data: data for @progress
 * @progress_data_free: (nullable): frees @progress_data
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@safetensors_save_file_async]. The lists may be changed immediately.
 *
 * Since: 0.1
 */
void
gtorch_safetensors_save_file_lists_async (const gchar *const *names, GTorchTensor **tensors,
                                          gsize n_tensors, const gchar *const *metadata,
                                          GFile *file, int io_priority, GCancellable *cancellable,
                                          GFileProgressCallback progress, gpointer progress_data,
                                          GDestroyNotify progress_data_free,
                                          GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GHashTable) by_name = NULL;
  g_autoptr (GHashTable) texts = NULL;
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;

  g_return_if_fail (tensors != NULL || n_tensors == 0);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  if (tables_from_lists (names, tensors, n_tensors, metadata, &by_name, &texts, &error))
    gtorch_safetensors_save_file_async (by_name, texts, file, io_priority, cancellable, progress,
                                        progress_data, progress_data_free, callback, user_data);
  else
    {
      task = gtorch_task_new (NULL, gtorch_safetensors_save_file_async, cancellable, callback,
                              user_data);
      refuse_async (task, error, progress_data, progress_data_free);
    }
}

/**
 * gtorch_safetensors_save_file_lists_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@safetensors_save_file_lists_async], as [func@safetensors_save_file_finish] does.
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save_file_lists_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_safetensors_save_file_finish (result, error);
}
