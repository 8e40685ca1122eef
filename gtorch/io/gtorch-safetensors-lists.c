/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reading without tables, for whom the order of the file matters and for languages whose tables leak. */

#include "config.h"

#include "gtorch-safetensors.h"

#include "gtorch-device.h"
#include "gtorch-safetensors-private.h"

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

/* Takes content, which may be NULL. */
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
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the texts that the file carries:
 *   each key, and its text behind it
 * @error: return location for an error
 *
 * Does what [func@safetensors_load_bytes] does, and keeps the order of the file.
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
 * @device: (nullable): where the tensors are to be, %NULL for the default device
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names of the tensors
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the texts that the file carries:
 *   each key, and its text behind it
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called now and then with the bytes read
 *   and their total number
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Does what [func@safetensors_load] does, and keeps the order of the file.
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
 * @map: whether the tensors may show the file itself, if it is a local one
 * @device: (nullable): where the tensors are to be, %NULL for the default device
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names of the tensors
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the texts that the file carries:
 *   each key, and its text behind it
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called now and then with the bytes read
 *   and their total number
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Does what [func@safetensors_load_file] does, and keeps the order of the file.
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
 * @result: what the callback was given
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names of the tensors
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the texts that the file carries:
 *   each key, and its text behind it
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
  g_return_val_if_fail (g_async_result_is_tagged (result, gtorch_safetensors_load_async)
                            || g_async_result_is_tagged (result,
                                                         gtorch_safetensors_load_file_async),
                        NULL);
  return content_to_lists (gtorch_safetensors_read_finish (result, error), names, metadata);
}
