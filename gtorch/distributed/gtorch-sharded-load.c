/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reading tensors from several safetensors files, with an index that tells which one has what. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-text-private.h"
#include "device/gtorch-device-private.h"
#include "distributed/gtorch-sharded-file-private.h"
#include "io/gtorch-safetensors-private.h"

#define MAX_INDEX (256 * 1024 * 1024) /* bytes */

void
gtorch_sharded_index_free (GTorchShardedIndex *index)
{
  g_ptr_array_unref (index->names);
  g_ptr_array_unref (index->files);
  g_ptr_array_unref (index->metadata);
  g_free (index);
}

GTorchShardedIndex *
gtorch_sharded_index_new (void)
{
  GTorchShardedIndex *index = g_new (GTorchShardedIndex, 1);

  index->names = g_ptr_array_new_with_free_func (g_free);
  index->files = g_ptr_array_new_with_free_func (g_free);
  index->metadata = g_ptr_array_new_with_free_func (g_free);
  return index;
}

/* Files beside the index, and no others. */
static gboolean
is_plain_name (const gchar *name)
{
  return name[0] != '\0' && name[0] != '.' && strchr (name, '/') == NULL
         && strchr (name, '\\') == NULL;
}

static void
add_metadata (GTorchShardedIndex *index, const gchar *text, const GTorchJsonNode *metadata)
{
  const GTorchJsonNode *node;

  for (node = metadata == NULL ? NULL : metadata->first; node != NULL; node = node->next)
    {
      g_ptr_array_add (index->metadata, g_strdup (node->key));
      g_ptr_array_add (index->metadata,
                       node->kind == GTORCH_JSON_STRING
                           ? g_strdup (node->string)
                           : g_strndup (text + node->begin, node->end - node->begin));
    }
}

GTorchShardedIndex *
gtorch_sharded_index_parse (const gchar *text, gsize length, GError **error)
{
  g_autoptr (GTorchJson) json = gtorch_json_parse ("safetensors_index", text, length, error);
  g_autoptr (GTorchShardedIndex) index = gtorch_sharded_index_new ();
  const GTorchJsonNode *map, *metadata, *node;

  if (json == NULL)
    return NULL;
  map = gtorch_json_lookup (gtorch_json_get_root (json), "weight_map");
  metadata = gtorch_json_lookup (gtorch_json_get_root (json), "metadata");
  if (map == NULL || map->kind != GTORCH_JSON_OBJECT
      || (metadata != NULL && metadata->kind != GTORCH_JSON_OBJECT))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("safetensors_index: an index has an object “weight_map” with the file of "
                      "each tensor, and may have one with metadata"));
      return NULL;
    }
  for (node = map->first; node != NULL; node = node->next)
    {
      if (node->kind != GTORCH_JSON_STRING || !is_plain_name (node->string))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("safetensors_index: “%s” is not in a file beside the index, which has a "
                          "name without a path"),
                       gtorch_name_str (node->key));
          return NULL;
        }
      g_ptr_array_add (index->names, g_strdup (node->key));
      g_ptr_array_add (index->files, g_strdup (node->string));
    }
  add_metadata (index, text, metadata);
  return g_steal_pointer (&index);
}

GTorchShardedIndex *
gtorch_sharded_index_read (GFile *file, GCancellable *cancellable, GError **error)
{
  g_autoptr (GInputStream) stream = gtorch_file_open (file, cancellable, error);
  g_autofree gchar *text = NULL;
  g_autoptr (GByteArray) bytes = NULL;
  gsize n_read = 0, n_all = 0;

  if (stream == NULL)
    return NULL;
  bytes = g_byte_array_new ();
  do
    {
      g_byte_array_set_size (bytes, n_all + 65536);
      if (!gtorch_stream_read_all (stream, bytes->data + n_all, 65536, &n_read, cancellable, error))
        return NULL;
      n_all += n_read;
    }
  while (n_read > 0 && n_all <= MAX_INDEX);
  if (n_all > MAX_INDEX)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("safetensors_index: the index has more than %d bytes"), MAX_INDEX);
      return NULL;
    }
  return gtorch_sharded_index_parse ((const gchar *) bytes->data, n_all, error);
}

/* --- tensors --- */

/* Which names of which files are to be read: file -> (name -> name). */
static GHashTable *
find_wanted (const GTorchShardedIndex *index, const gchar *const *wanted, GError **error)
{
  g_autoptr (GHashTable) places = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) files =
      g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify) g_hash_table_unref);
  const guint n = wanted == NULL ? index->names->len : g_strv_length ((gchar **) wanted);
  guint i;

  for (i = 0; i < index->names->len; i++)
    g_hash_table_insert (places, index->names->pdata[i], index->files->pdata[i]);
  for (i = 0; i < n; i++)
    {
      const gchar *name = wanted == NULL ? index->names->pdata[i] : wanted[i];
      gpointer file = g_hash_table_lookup (places, name);
      GHashTable *names;

      if (file == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("safetensors_index: there is no tensor “%s” in the index"),
                       gtorch_name_str (name));
          return NULL;
        }
      names = g_hash_table_lookup (files, file);
      if (names == NULL)
        {
          names = g_hash_table_new (g_str_hash, g_str_equal);
          g_hash_table_insert (files, file, names);
        }
      g_hash_table_add (names, (gpointer) name);
    }
  return g_steal_pointer (&files);
}

static gboolean
take_part (GTorchSafetensorsContent *to, GTorchSafetensorsContent *part, GHashTable *names,
           const gchar *file, GError **error)
{
  GHashTableIter iter;
  gpointer missing;
  guint i;

  for (i = 0; i < part->names->len; i++)
    if (g_hash_table_remove (names, part->names->pdata[i]))
      {
        g_ptr_array_add (to->names, g_strdup (part->names->pdata[i]));
        g_ptr_array_add (to->tensors, g_object_ref (part->tensors->pdata[i]));
      }
  g_hash_table_iter_init (&iter, names);
  if (!g_hash_table_iter_next (&iter, &missing, NULL))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("safetensors_index: the file “%s” has no tensor “%s”, which the index puts "
                  "there"),
               gtorch_name_str (file), gtorch_name_str (missing));
  return FALSE;
}

static GTorchSafetensorsContent *
load (GFile *file, const gchar *const *wanted, gboolean map, GTorchDevice *device,
      GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchShardedIndex) index = gtorch_sharded_index_read (file, cancellable, error);
  g_autoptr (GTorchSafetensorsContent) content = NULL;
  g_autoptr (GHashTable) files = NULL;
  g_autoptr (GFile) folder = g_file_get_parent (file);
  guint i;

  files = index == NULL ? NULL : find_wanted (index, wanted, error);
  if (files == NULL)
    return NULL;
  content = g_new0 (GTorchSafetensorsContent, 1);
  content->names = g_ptr_array_new_with_free_func (g_free);
  content->tensors = g_ptr_array_new_with_free_func (g_object_unref);
  content->metadata = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  for (i = 0; i < index->files->len; i++)
    {
      GHashTable *names = g_hash_table_lookup (files, index->files->pdata[i]);
      g_autoptr (GTorchSafetensorsContent) part = NULL;
      g_autoptr (GFile) place = NULL;

      if (names == NULL || g_hash_table_size (names) == 0)
        continue; /* not wanted, or read already */
      place = g_file_get_child (folder, index->files->pdata[i]);
      part = gtorch_safetensors_read_file (place, map, device, cancellable, NULL, NULL, error);
      if (part == NULL)
        {
          g_prefix_error (error, "safetensors_index: %s: ", (gchar *) index->files->pdata[i]);
          return NULL;
        }
      if (!take_part (content, part, names, index->files->pdata[i], error))
        return NULL;
    }
  for (i = 0; i + 1 < index->metadata->len; i += 2)
    g_hash_table_insert (content->metadata, g_strdup (index->metadata->pdata[i]),
                         g_strdup (index->metadata->pdata[i + 1]));
  return g_steal_pointer (&content);
}

/**
 * gtorch_safetensors_load_index:
 * @index: the index of several safetensors files in its folder, such as `model.safetensors.index.json`
 * @wanted: (nullable) (array zero-terminated=1): names of tensors; %NULL for all
 * @map: whether to map the files into memory if they are local: what is not wanted is then not read
 * @device: (nullable): the device of the tensors, %NULL for the default device
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names of the tensors
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the metadata of the index:
 *   alternating keys and values, which are texts of JSON where they are not strings
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads tensors from several files, as large models are distributed. Only those files are opened that have
 * tensors which are wanted. Any process may read what any number of processes has written.
 *
 * ```c
 * g_auto (GStrv) names = NULL;
 * g_autoptr (GPtrArray) tensors
 *     = gtorch_safetensors_load_index (index, NULL, TRUE, NULL, &names, NULL, NULL, &error);
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors, or %NULL with @error set:
 *   %GTORCH_ERROR_FORMAT if a file is damaged, or lacks what the index says, %GTORCH_ERROR_INVALID if a
 * name is
 *   not in the index, or the error of a file
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_safetensors_load_index (GFile *index, const gchar *const *wanted, gboolean map,
                               GTorchDevice *device, gchar ***names, gchar ***metadata,
                               GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (G_IS_FILE (index), NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  return gtorch_safetensors_content_to_lists (load (index, wanted, map,
                                                    gtorch_device_or_default (device), cancellable,
                                                    error),
                                              names, metadata);
}

typedef struct
{
  GFile *index;
  gchar **wanted;
  gboolean map;
  GTorchDevice *device;
} Load;

static void
load_free (gpointer data)
{
  Load *wish = data;

  g_object_unref (wish->index);
  g_strfreev (wish->wanted);
  g_free (wish);
}

static void
load_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  const Load *wish = data;
  GError *error = NULL;
  GTorchSafetensorsContent *content = load (wish->index, (const gchar *const *) wish->wanted,
                                            wish->map, wish->device, cancellable, &error);

  if (content != NULL)
    g_task_return_pointer (task, content, (GDestroyNotify) gtorch_safetensors_content_free);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_safetensors_load_index_async:
 * @index: the index of several safetensors files in its folder
 * @wanted: (nullable) (array zero-terminated=1): names of tensors; %NULL for all
 * @map: whether to map the files into memory if they are local
 * @device: (nullable): the device of the tensors, %NULL for the default device
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Reads tensors from several files in another thread; see [func@safetensors_load_index].
 *
 * Since: 0.1
 */
void
gtorch_safetensors_load_index_async (GFile *index, const gchar *const *wanted, gboolean map,
                                     GTorchDevice *device, int io_priority,
                                     GCancellable *cancellable, GAsyncReadyCallback callback,
                                     gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  Load *wish;

  g_return_if_fail (G_IS_FILE (index));
  g_return_if_fail (device == NULL || GTORCH_IS_DEVICE (device));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (NULL, gtorch_safetensors_load_index_async, cancellable, callback, user_data);
  wish = g_new (Load, 1);
  *wish = (Load){ g_object_ref (index), g_strdupv ((gchar **) wanted), map,
                  gtorch_device_or_default (device) };
  g_task_set_priority (task, io_priority);
  g_task_set_task_data (task, wish, load_free);
  g_task_run_in_thread (task, load_in_thread);
}

/**
 * gtorch_safetensors_load_index_finish:
 * @result: the result that the callback got
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names of the tensors
 * @metadata: (out) (optional) (transfer full) (array zero-terminated=1): the metadata of the index
 * @error: return location for an error
 *
 * Gets the result of [func@safetensors_load_index_async].
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_safetensors_load_index_finish (GAsyncResult *result, gchar ***names, gchar ***metadata,
                                      GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_safetensors_load_index_async, error))
    return NULL;
  return gtorch_safetensors_content_to_lists (g_task_propagate_pointer (G_TASK (result), error),
                                              names, metadata);
}
