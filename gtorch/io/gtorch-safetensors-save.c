/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "device/gtorch-device-private.h"
#include "io/gtorch-safetensors-private.h"
#include "io/gtorch-safetensors.h"
#include "device/gtorch-scratch-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "base/gtorch-file-save-private.h"
#include "base/gtorch-task-private.h"
#include "tensor/gtorch-uninitialized-private.h"

#define CHUNK (4 * 1024 * 1024)

typedef struct
{
  GTorchSafetensorsHeader *header;
  GHashTable *impls; /* by the names in the header */
  GString *text;
  GObject *target; /* a stream or a file */
  GTorchProgress *progress;
} Save;

static void
save_free (gpointer data)
{
  Save *save = data;

  g_clear_pointer (&save->header, gtorch_safetensors_header_free);
  g_clear_pointer (&save->impls, g_hash_table_unref);
  g_string_free (save->text, TRUE);
  g_clear_object (&save->target);
  g_clear_pointer (&save->progress, gtorch_progress_unref);
  g_free (save);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Save, save_free)

static gboolean
add_tensor (Save *save, const gchar *name, GTorchTensor *tensor, guint64 *n_bytes, GError **error)
{
  GTorchSafetensorsEntry entry = { .name = NULL };
  GTorchImpl *impl;

  if (name != NULL && !gtorch_name_check ("safetensors", name, error))
    return FALSE;
  if (name == NULL || strcmp (name, "__metadata__") == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("safetensors: a tensor cannot be called “%s”"),
                   gtorch_name_str (name != NULL ? name : "?"));
      return FALSE;
    }
  if (!GTORCH_IS_TENSOR (tensor))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("safetensors: “%s” is not a tensor"), gtorch_name_str (name));
      return FALSE;
    }
  impl = gtorch_tensor_unwrap (tensor);
  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("safetensors: “%s”, of shape %s, %s"), gtorch_name_str (name),
                   gtorch_impl_shape_str (impl), gtorch_impl_loss (impl));
      return FALSE;
    }
  if (gtorch_dtype_infos[impl->dtype].safetensors == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("safetensors: the format has no type for the %s of “%s”"),
                   gtorch_dtype_get_name (impl->dtype), gtorch_name_str (name));
      return FALSE;
    }
  if (__builtin_add_overflow (*n_bytes, gtorch_impl_n_bytes (impl), n_bytes)
      || *n_bytes > (guint64) G_MAXOFFSET / 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("safetensors: with “%s”, of shape %s, the file would be too long"),
                   gtorch_name_str (name), gtorch_impl_shape_str (impl));
      return FALSE;
    }
  entry.name = g_strdup (name);
  entry.dtype = impl->dtype;
  entry.n_dims = impl->n_dims;
  memcpy (entry.shape, impl->shape, impl->n_dims * sizeof (gint64));
  g_array_append_val (save->header->entries, entry);
  g_hash_table_insert (save->impls, entry.name, gtorch_impl_ref (impl));
  return TRUE;
}

static gboolean
add_metadata (Save *save, const gchar *key, const gchar *value, GError **error)
{
  if (key != NULL && value != NULL && g_utf8_validate (key, -1, NULL)
      && g_utf8_validate (value, -1, NULL))
    {
      g_hash_table_insert (save->header->metadata, g_strdup (key), g_strdup (value));
      return TRUE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("safetensors: metadata must be texts in UTF-8"));
  return FALSE;
}

static Save *
save_new (GHashTable *tensors, GHashTable *metadata, gpointer target, GError **error)
{
  g_autoptr (Save) save = g_new0 (Save, 1);
  GHashTableIter iter;
  gpointer key, value;
  guint64 n_bytes = 0;

  save->header = gtorch_safetensors_header_new ();
  save->impls =
      g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify) gtorch_impl_unref);
  save->text = g_string_new (NULL);
  save->target = g_object_ref (target);
  g_hash_table_iter_init (&iter, tensors);
  while (g_hash_table_iter_next (&iter, &key, &value))
    if (!add_tensor (save, key, value, &n_bytes, error))
      return NULL;
  if (metadata != NULL)
    {
      g_hash_table_iter_init (&iter, metadata);
      while (g_hash_table_iter_next (&iter, &key, &value))
        if (!add_metadata (save, key, value, error))
          return NULL;
    }
  gtorch_safetensors_header_write (save->header, save->text);
  if (save->text->len - 8 > GTORCH_SAFETENSORS_MAX_HEADER)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("safetensors: names and metadata take %zu bytes: there can be %d"),
                   save->text->len - 8, GTORCH_SAFETENSORS_MAX_HEADER);
      return NULL;
    }
  return g_steal_pointer (&save);
}

/* --- writing --- */

static gboolean
write_stream (Save *save, GOutputStream *stream, GCancellable *cancellable,
              GFileProgressCallback progress, gpointer progress_data, GError **error)
{
  goffset total = save->text->len + save->header->n_bytes, done = save->text->len;
  guint i;

  /* not every stream polls the cancellable */
  if (g_cancellable_set_error_if_cancelled (cancellable, error)
      || !g_output_stream_write_all (stream, save->text->str, save->text->len, NULL, cancellable,
                                     error))
    return FALSE;
  for (i = 0; i < save->header->entries->len; i++)
    {
      const gchar *name = g_array_index (save->header->entries, GTorchSafetensorsEntry, i).name;
      g_autoptr (GTorchImpl) host =
          gtorch_impl_to_host ("safetensors", g_hash_table_lookup (save->impls, name), error);
      gsize n_bytes, written = 0;

      if (host == NULL)
        return FALSE;
      if (!host->is_contiguous)
        {
          GTorchImpl *flat =
              gtorch_impl_new (gtorch_device_cpu (), host->dtype, host->shape, host->n_dims, error);

          if (flat == NULL)
            {
              gtorch_error_name_op (error, "safetensors");
              return FALSE;
            }
          gtorch_host_copy (flat, host);
          gtorch_impl_unref (host);
          host = flat;
        }
      n_bytes = gtorch_impl_n_bytes (host);
      while (written < n_bytes)
        {
          gsize step = MIN (n_bytes - written, CHUNK);

          if (g_cancellable_set_error_if_cancelled (cancellable, error)
              || !g_output_stream_write_all (stream, (char *) gtorch_impl_data (host) + written,
                                             step, NULL, cancellable, error))
            return FALSE;
          written += step;
          done += step;
          if (progress != NULL)
            progress (done, total, progress_data);
        }
    }
  return !g_cancellable_set_error_if_cancelled (cancellable, error)
         && g_output_stream_flush (stream, cancellable, error);
}

typedef struct
{
  Save *save;
  GFileProgressCallback progress;
  gpointer progress_data;
} Content;

static gboolean
write_content (GOutputStream *stream, GCancellable *cancellable, gpointer data, GError **error)
{
  const Content *content = data;

  return write_stream (content->save, stream, cancellable, content->progress,
                       content->progress_data, error);
}

static gboolean
write_file (Save *save, GFile *file, GCancellable *cancellable, GFileProgressCallback progress,
            gpointer progress_data, GError **error)
{
  Content content = { save, progress, progress_data };

  return gtorch_file_save (file, write_content, &content, cancellable, error);
}

/**
 * gtorch_safetensors_save:
 * @tensors: (element-type utf8 GTorchTensor): tensors by name
 * @metadata: (nullable) (element-type utf8 utf8): metadata of the file
 * @stream: the stream to write to
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called from time to time with the number of
 *   bytes written and the total
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Writes tensors as a safetensors file, which other libraries can read. The stream is flushed, not
 * closed. Equal tensors give equal bytes, whatever the order of the table.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_SUPPORTED for complex128, which the format lacks,
 *   %GTORCH_ERROR_INVALID for an invalid name, %GTORCH_ERROR_RELEASED, or an error of the stream
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save (GHashTable *tensors, GHashTable *metadata, GOutputStream *stream,
                         GCancellable *cancellable, GFileProgressCallback progress,
                         gpointer progress_data, GError **error)
{
  g_autoptr (Save) save = NULL;

  g_return_val_if_fail (tensors != NULL, FALSE);
  g_return_val_if_fail (G_IS_OUTPUT_STREAM (stream), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);

  save = save_new (tensors, metadata, stream, error);
  return save != NULL && write_stream (save, stream, cancellable, progress, progress_data, error);
}

/**
 * gtorch_safetensors_save_file:
 * @tensors: (element-type utf8 GTorchTensor): tensors by name
 * @metadata: (nullable) (element-type utf8 utf8): metadata of the file
 * @file: the file to write or replace
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called from time to time with the number of
 *   bytes written and the total
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Writes tensors to a safetensors file. If anything fails, an existing file is unchanged, and no other
 * file is left in its folder.
 *
 * A file with a local path is written under another name in its folder and flushed to the disk before it
 * replaces the old one: at any time, also after a loss of power, there is all of the old content or all
 * of the new one. The mode of the old file is kept, and its owner and group as far as the process may set
 * them. If the target is a link, the file that it leads to is replaced; other hard links of the old file
 * keep its content, as do tensors that are mapped from it. A dangling link, a file that may not be
 * written, a folder in which no file can be created, and anything but a regular file (a folder, pipe,
 * socket or device) give an error before anything is changed; to write to a pipe, use
 * [func@safetensors_save] and its stream. A file without a local path is replaced by its GVfs.
 *
 * Returns: %TRUE, or %FALSE with an error of [func@safetensors_save], or of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save_file (GHashTable *tensors, GHashTable *metadata, GFile *file,
                              GCancellable *cancellable, GFileProgressCallback progress,
                              gpointer progress_data, GError **error)
{
  g_autoptr (Save) save = NULL;

  g_return_val_if_fail (tensors != NULL, FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);

  save = save_new (tensors, metadata, file, error);
  return save != NULL && write_file (save, file, cancellable, progress, progress_data, error);
}

/* --- in another thread --- */

static void
save_in_thread (GTask *task, gpointer source_object, gpointer task_data, GCancellable *cancellable)
{
  Save *save = task_data;
  GError *error = NULL;
  gboolean result;

  if (G_IS_FILE (save->target))
    result = write_file (save, G_FILE (save->target), cancellable, gtorch_progress_report,
                         save->progress, &error);
  else
    result = write_stream (save, G_OUTPUT_STREAM (save->target), cancellable,
                           gtorch_progress_report, save->progress, &error);
  if (result)
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

static void
save_begin (GTask *task, GHashTable *tensors, GHashTable *metadata, gpointer target,
            int io_priority, GFileProgressCallback progress, gpointer progress_data,
            GDestroyNotify progress_data_free)
{
  GTorchProgress *reports = gtorch_progress_new (progress, progress_data, progress_data_free);
  GError *error = NULL;
  Save *save = save_new (tensors, metadata, target, &error);

  g_task_set_priority (task, io_priority);
  if (save == NULL)
    {
      gtorch_progress_unref (reports);
      g_task_return_error (task, error);
      return;
    }
  save->progress = reports;
  g_task_set_task_data (task, save, save_free);
  g_task_run_in_thread (task, save_in_thread);
}

static gboolean
save_end (GAsyncResult *result, GError **error)
{
  Save *save = g_task_get_task_data (G_TASK (result));

  if (save != NULL)
    g_clear_pointer (&save->progress, gtorch_progress_unref);
  return g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_safetensors_save_async:
 * @tensors: (element-type utf8 GTorchTensor): tensors by name
 * @metadata: (nullable) (element-type utf8 utf8): metadata of the file
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
 * Writes tensors in another thread; see [func@safetensors_save]. The table may be changed immediately;
 * the elements of the tensors must not be changed until it is done.
 *
 * Since: 0.1
 */
void
gtorch_safetensors_save_async (GHashTable *tensors, GHashTable *metadata, GOutputStream *stream,
                               int io_priority, GCancellable *cancellable,
                               GFileProgressCallback progress, gpointer progress_data,
                               GDestroyNotify progress_data_free, GAsyncReadyCallback callback,
                               gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (tensors != NULL);
  g_return_if_fail (G_IS_OUTPUT_STREAM (stream));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_safetensors_save_async, cancellable, callback, user_data);
  save_begin (task, tensors, metadata, stream, io_priority, progress, progress_data,
              progress_data_free);
}

/**
 * gtorch_safetensors_save_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@safetensors_save_async].
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, NULL, gtorch_safetensors_save_async, error)
         && save_end (result, error);
}

/**
 * gtorch_safetensors_save_file_async:
 * @tensors: (element-type utf8 GTorchTensor): tensors by name
 * @metadata: (nullable) (element-type utf8 utf8): metadata of the file
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
 * Writes a safetensors file in another thread; see [func@safetensors_save_file]. The table may be changed
 * immediately; the elements of the tensors must not be changed until it is done.
 *
 * Since: 0.1
 */
void
gtorch_safetensors_save_file_async (GHashTable *tensors, GHashTable *metadata, GFile *file,
                                    int io_priority, GCancellable *cancellable,
                                    GFileProgressCallback progress, gpointer progress_data,
                                    GDestroyNotify progress_data_free, GAsyncReadyCallback callback,
                                    gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (tensors != NULL);
  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (NULL, gtorch_safetensors_save_file_async, cancellable, callback, user_data);
  save_begin (task, tensors, metadata, file, io_priority, progress, progress_data,
              progress_data_free);
}

/**
 * gtorch_safetensors_save_file_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@safetensors_save_file_async].
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_safetensors_save_file_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, NULL, gtorch_safetensors_save_file_async, error)
         && save_end (result, error);
}
