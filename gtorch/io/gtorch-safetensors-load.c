/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io/gtorch-safetensors.h"

#include <gio/gfiledescriptorbased.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "device/gtorch-device-private.h"
#include "io/gtorch-safetensors-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "base/gtorch-task-private.h"

#define CHUNK (4 * 1024 * 1024)

void
gtorch_safetensors_content_free (GTorchSafetensorsContent *content)
{
  g_ptr_array_unref (content->names);
  g_ptr_array_unref (content->tensors);
  g_clear_pointer (&content->metadata, g_hash_table_unref);
  g_free (content);
}

static GTorchSafetensorsContent *
content_new (void)
{
  GTorchSafetensorsContent *content = g_new0 (GTorchSafetensorsContent, 1);

  content->names = g_ptr_array_new_with_free_func (g_free);
  content->tensors = g_ptr_array_new_with_free_func (g_object_unref);
  return content;
}

static void
content_add (GTorchSafetensorsContent *content, GTorchSafetensorsEntry *entry, GTorchImpl *impl)
{
  g_ptr_array_add (content->names, g_steal_pointer (&entry->name));
  g_ptr_array_add (content->tensors, gtorch_tensor_wrap (impl));
}

/* Takes ownership of content, which may be NULL. */
static GHashTable *
content_to_table (GTorchSafetensorsContent *content, GHashTable **metadata)
{
  GHashTable *tensors;
  guint i;

  if (content == NULL)
    return NULL;
  tensors = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  for (i = 0; i < content->names->len; i++)
    g_hash_table_insert (tensors, g_steal_pointer (&content->names->pdata[i]),
                         g_object_ref (content->tensors->pdata[i]));
  if (metadata != NULL)
    *metadata = g_steal_pointer (&content->metadata);
  gtorch_safetensors_content_free (content);
  return tensors;
}

static gboolean
truncated (guint64 n_bytes, guint64 expected, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("safetensors: the file is cut short: %" PRIu64 " bytes instead of %" PRIu64),
               n_bytes, expected);
  return FALSE;
}

static gboolean
check_length (guint64 length, GError **error)
{
  if (length >= 2 && length <= GTORCH_SAFETENSORS_MAX_HEADER)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("safetensors: a header of %" PRIu64 " bytes: there can be 2 to %d"), length,
               GTORCH_SAFETENSORS_MAX_HEADER);
  return FALSE;
}

static gboolean
check_total (guint64 n_bytes, const GTorchSafetensorsHeader *header, guint64 start, GError **error)
{
  if (n_bytes < header->n_bytes)
    return truncated (start + n_bytes, start + header->n_bytes, error);
  if (n_bytes > header->n_bytes)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("safetensors: %" PRIu64
                      " bytes follow the last tensor, which ends at %" PRIu64),
                   n_bytes - header->n_bytes, start + header->n_bytes);
      return FALSE;
    }
  return TRUE;
}

/* --- from memory --- */

static GTorchSafetensorsContent *
load_bytes (GBytes *bytes, gboolean is_read_only, GTorchDevice *device, GError **error)
{
  g_autoptr (GTorchSafetensorsHeader) header = NULL;
  g_autoptr (GTorchSafetensorsContent) content = NULL;
  gsize n_bytes;
  const gchar *data = g_bytes_get_data (bytes, &n_bytes);
  guint64 length;
  guint i;

  if (n_bytes < 8)
    {
      truncated (n_bytes, 8, error);
      return NULL;
    }
  memcpy (&length, data, 8);
  length = GUINT64_FROM_LE (length);
  if (!check_length (length, error))
    return NULL;
  if (length > n_bytes - 8)
    {
      truncated (n_bytes, length + 8, error);
      return NULL;
    }
  header = gtorch_safetensors_header_parse (data + 8, length, error);
  if (header == NULL || !check_total (n_bytes - 8 - length, header, 8 + length, error))
    return NULL;

  content = content_new ();
  for (i = 0; i < header->entries->len; i++)
    {
      GTorchSafetensorsEntry *entry = &g_array_index (header->entries, GTorchSafetensorsEntry, i);
      GTorchImpl *impl =
          gtorch_impl_new_from_bytes ("safetensors", bytes, 8 + length + entry->begin,
                                      entry->end - entry->begin, is_read_only, entry->dtype,
                                      entry->shape, entry->n_dims, error);

      impl = gtorch_impl_move (impl, device, error);
      if (impl == NULL)
        return NULL;
      content_add (content, entry, impl);
    }
  content->metadata = g_hash_table_ref (header->metadata);
  return g_steal_pointer (&content);
}

GTorchSafetensorsContent *
gtorch_safetensors_read_bytes (GBytes *bytes, GError **error)
{
  return load_bytes (bytes, TRUE, gtorch_device_cpu (), error);
}

/**
 * gtorch_safetensors_load_bytes:
 * @bytes: the content of a safetensors file
 * @metadata: (out) (optional) (transfer container) (element-type utf8 utf8): the metadata of the file, by
 *   key
 * @error: return location for an error
 *
 * Reads a safetensors file that is in memory. The tensors alias the memory of @bytes and are read-only,
 * like those of [ctor@Tensor.new_from_bytes].
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): the tensors by name, or %NULL with
 *   %GTORCH_ERROR_FORMAT if the content is malformed or inconsistent and %GTORCH_ERROR_NOT_SUPPORTED if
 *   it has elements without a corresponding dtype
 *
 * Since: 0.1
 */
GHashTable *
gtorch_safetensors_load_bytes (GBytes *bytes, GHashTable **metadata, GError **error)
{
  g_return_val_if_fail (bytes != NULL, NULL);
  return content_to_table (gtorch_safetensors_read_bytes (bytes, error), metadata);
}

/* --- from a stream --- */

static GTorchSafetensorsHeader *
read_header (GInputStream *stream, guint64 *start, GCancellable *cancellable, GError **error)
{
  g_autoptr (GByteArray) text = g_byte_array_new ();
  guint64 length = 0;
  gsize n_read;

  if (!gtorch_stream_read_all (stream, &length, 8, &n_read, cancellable, error))
    return NULL;
  if (n_read < 8)
    {
      truncated (n_read, 8, error);
      return NULL;
    }
  length = GUINT64_FROM_LE (length);
  if (!check_length (length, error))
    return NULL;
  /* in growing steps, since the stated length may be wrong */
  while (text->len < length)
    {
      guint before = text->len;
      gsize step = MIN (length - before, MAX (before, 65536));

      g_byte_array_set_size (text, before + step);
      if (!gtorch_stream_read_all (stream, text->data + before, step, &n_read, cancellable, error))
        return NULL;
      if (n_read < step)
        {
          truncated (8 + before + n_read, 8 + length, error);
          return NULL;
        }
    }
  *start = 8 + length;
  return gtorch_safetensors_header_parse ((const gchar *) text->data, length, error);
}

/* Checks the length of a stream that knows it, before anything is allocated. */
static gboolean
check_rest (GInputStream *stream, const GTorchSafetensorsHeader *header, guint64 start,
            GCancellable *cancellable, GError **error)
{
  GSeekable *seekable = G_IS_SEEKABLE (stream) ? G_SEEKABLE (stream) : NULL;
  goffset here, end;

  if (seekable == NULL || !g_seekable_can_seek (seekable))
    return TRUE;
  here = g_seekable_tell (seekable);
  if (!g_seekable_seek (seekable, 0, G_SEEK_END, cancellable, error))
    return FALSE;
  end = g_seekable_tell (seekable);
  if (!g_seekable_seek (seekable, here, G_SEEK_SET, cancellable, error))
    return FALSE;
  return check_total (MAX (end - here, 0), header, start, error);
}

static gboolean
check_bools (const GTorchSafetensorsEntry *entry, const guint8 *data, gsize n_bytes, GError **error)
{
  gsize i;

  for (i = 0; entry->dtype == GTORCH_DTYPE_BOOL && i < n_bytes; i++)
    if (data[i] > 1)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                     _ ("safetensors: element %zu of “%s” is %u and not a bool, which is 0 or 1"),
                     i, gtorch_name_str (entry->name), data[i]);
        return FALSE;
      }
  return TRUE;
}

GTorchSafetensorsContent *
gtorch_safetensors_read_stream (GInputStream *stream, GTorchDevice *device,
                                GCancellable *cancellable, GFileProgressCallback progress,
                                gpointer progress_data, GError **error)
{
  g_autoptr (GTorchSafetensorsHeader) header = NULL;
  g_autoptr (GTorchSafetensorsContent) content = content_new ();
  guint64 start, done = 0;
  gchar after;
  gsize n_read;
  guint i;

  device = gtorch_device_or_default (device);
  header = read_header (stream, &start, cancellable, error);
  if (header == NULL || !check_rest (stream, header, start, cancellable, error))
    return NULL;
  for (i = 0; i < header->entries->len; i++)
    {
      GTorchSafetensorsEntry *entry = &g_array_index (header->entries, GTorchSafetensorsEntry, i);
      g_autoptr (GTorchImpl) impl =
          gtorch_impl_new (gtorch_device_cpu (), entry->dtype, entry->shape, entry->n_dims, error);
      gsize n_bytes = entry->end - entry->begin, filled = 0;
      GTorchImpl *moved;

      if (impl == NULL)
        {
          g_prefix_error (error, _ ("safetensors: “%s”: "), gtorch_name_str (entry->name));
          return NULL;
        }
      while (filled < n_bytes)
        {
          gsize step = MIN (n_bytes - filled, CHUNK);

          if (!gtorch_stream_read_all (stream, (char *) gtorch_impl_data (impl) + filled, step,
                                       &n_read, cancellable, error))
            return NULL;
          if (n_read < step)
            {
              truncated (start + done + n_read, start + header->n_bytes, error);
              return NULL;
            }
          filled += step;
          done += step;
          if (progress != NULL)
            progress (start + done, start + header->n_bytes, progress_data);
        }
      if (n_bytes > 0 && !check_bools (entry, gtorch_impl_data (impl), n_bytes, error))
        return NULL;
      moved = gtorch_impl_move (g_steal_pointer (&impl), device, error);
      if (moved == NULL)
        return NULL;
      content_add (content, entry, moved);
    }
  if (!gtorch_stream_read_all (stream, &after, 1, &n_read, cancellable, error)
      || !check_total (header->n_bytes + n_read, header, start, error))
    return NULL;
  content->metadata = g_hash_table_ref (header->metadata);
  return g_steal_pointer (&content);
}

/**
 * gtorch_safetensors_load:
 * @stream: a stream of the content of a safetensors file, which is read to its end
 * @device: (nullable): the device of the tensors, %NULL for the default device
 * @metadata: (out) (optional) (transfer container) (element-type utf8 utf8): the metadata of the file, by
 *   key
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called from time to time with the number of
 *   bytes read and the total
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Reads tensors from a stream. The content is checked: a file with wrong sizes or positions gives an
 * error, and the length of a stream that knows it is checked before memory is allocated.
 *
 * ```c
 * g_autoptr (GInputStream) stream = G_INPUT_STREAM (g_file_read (file, NULL, &error));
 * g_autoptr (GHashTable) tensors = gtorch_safetensors_load (stream, NULL, NULL, NULL, NULL, NULL, &error);
 * GTorchTensor *weight = g_hash_table_lookup (tensors, "layer.weight");
 * ```
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): the tensors by name, or %NULL with
 *   %GTORCH_ERROR_FORMAT if the content is malformed, truncated or inconsistent,
 *   %GTORCH_ERROR_NOT_SUPPORTED if it has elements without a corresponding dtype, or an error of the
 *   stream
 *
 * Since: 0.1
 */
GHashTable *
gtorch_safetensors_load (GInputStream *stream, GTorchDevice *device, GHashTable **metadata,
                         GCancellable *cancellable, GFileProgressCallback progress,
                         gpointer progress_data, GError **error)
{
  g_return_val_if_fail (G_IS_INPUT_STREAM (stream), NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  return content_to_table (gtorch_safetensors_read_stream (stream, device, cancellable, progress,
                                                           progress_data, error),
                           metadata);
}

/* --- from a file --- */

static GBytes *
map_stream (GInputStream *stream)
{
  g_autoptr (GMappedFile) mapped = NULL;
  struct stat info;
  int fd;

  if (!G_IS_FILE_DESCRIPTOR_BASED (stream))
    return NULL;
  fd = g_file_descriptor_based_get_fd (G_FILE_DESCRIPTOR_BASED (stream));
  if (fstat (fd, &info) != 0 || !S_ISREG (info.st_mode))
    return NULL;
  /* writable, but private: in-place operations change the memory and not the file */
  mapped = g_mapped_file_new_from_fd (fd, TRUE, NULL);
  return mapped != NULL ? g_mapped_file_get_bytes (mapped) : NULL;
}

GTorchSafetensorsContent *
gtorch_safetensors_read_file (GFile *file, gboolean map, GTorchDevice *device,
                              GCancellable *cancellable, GFileProgressCallback progress,
                              gpointer progress_data, GError **error)
{
  g_autoptr (GInputStream) stream = gtorch_file_open (file, cancellable, error);
  g_autoptr (GBytes) bytes = NULL;
  GTorchSafetensorsContent *content;

  if (stream == NULL)
    return NULL;
  if (map)
    bytes = map_stream (stream);
  if (bytes == NULL)
    return gtorch_safetensors_read_stream (stream, device, cancellable, progress, progress_data,
                                           error);
  content = load_bytes (bytes, FALSE, gtorch_device_or_default (device), error);
  if (content != NULL && progress != NULL)
    progress (g_bytes_get_size (bytes), g_bytes_get_size (bytes), progress_data);
  return content;
}

/**
 * gtorch_safetensors_load_file:
 * @file: a safetensors file
 * @map: whether to map the file into memory if it is local
 * @device: (nullable): the device of the tensors, %NULL for the default device
 * @metadata: (out) (optional) (transfer container) (element-type utf8 utf8): the metadata of the file, by
 *   key
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope call) (closure progress_data): called from time to time with the number of
 *   bytes read and the total
 * @progress_data: data for @progress
 * @error: return location for an error
 *
 * Reads tensors from a file. With @map, parts of the file are read when they are used, and processes
 * share the memory; writing to a tensor changes the memory, not the file. The file must not be changed in
 * place as long as tensors are alive; it may be replaced, as [func@safetensors_save_file] does.
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): the tensors by name, or %NULL
 *   on error as for [func@safetensors_load]
 *
 * Since: 0.1
 */
GHashTable *
gtorch_safetensors_load_file (GFile *file, gboolean map, GTorchDevice *device,
                              GHashTable **metadata, GCancellable *cancellable,
                              GFileProgressCallback progress, gpointer progress_data,
                              GError **error)
{
  g_return_val_if_fail (G_IS_FILE (file), NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  return content_to_table (gtorch_safetensors_read_file (file, map, device, cancellable, progress,
                                                         progress_data, error),
                           metadata);
}

/* --- in another thread --- */

typedef struct
{
  GObject *source; /* a stream or a file */
  gboolean map;
  GTorchDevice *device;
  GTorchProgress *progress;
  gboolean is_done; /* accessed atomically: the thread does not use this any more */
} Load;

static void
load_free (gpointer data)
{
  Load *load = data;

  g_object_unref (load->source);
  g_clear_pointer (&load->progress, gtorch_progress_unref);
  g_free (load);
}

static void
load_in_thread (GTask *task, gpointer source_object, gpointer task_data, GCancellable *cancellable)
{
  Load *load = task_data;
  GError *error = NULL;
  GTorchSafetensorsContent *content;

  /* A task that is cancelled before it starts has its error; a second error would replace it. */
  if (g_task_had_error (task))
    {
      g_atomic_int_set (&load->is_done, TRUE);
      return;
    }
  if (G_IS_FILE (load->source))
    content =
        gtorch_safetensors_read_file (G_FILE (load->source), load->map, load->device, cancellable,
                                      gtorch_progress_report, load->progress, &error);
  else
    content =
        gtorch_safetensors_read_stream (G_INPUT_STREAM (load->source), load->device, cancellable,
                                        gtorch_progress_report, load->progress, &error);
  g_atomic_int_set (&load->is_done, TRUE);
  if (content != NULL)
    g_task_return_pointer (task, content, (GDestroyNotify) gtorch_safetensors_content_free);
  else
    g_task_return_error (task, error);
}

static void
load_begin (GTask *task, gpointer source, gboolean map, GTorchDevice *device, int io_priority,
            GFileProgressCallback progress, gpointer progress_data,
            GDestroyNotify progress_data_free)
{
  Load *load = g_new0 (Load, 1);

  load->source = g_object_ref (source);
  load->map = map;
  load->device = gtorch_device_or_default (device);
  load->progress = gtorch_progress_new (progress, progress_data, progress_data_free);
  g_task_set_priority (task, io_priority);
  g_task_set_task_data (task, load, load_free);
  /* A stream may block and ignore the cancellable; then only the thread waits for it. */
  g_task_set_return_on_cancel (task, TRUE);
  g_task_run_in_thread (task, load_in_thread);
}

GTorchSafetensorsContent *
gtorch_safetensors_read_finish (GAsyncResult *result, GError **error)
{
  Load *load = g_task_get_task_data (G_TASK (result));

  if (load->progress != NULL)
    gtorch_progress_stop (load->progress);
  if (g_atomic_int_get (&load->is_done))
    g_clear_pointer (&load->progress, gtorch_progress_unref);
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_safetensors_load_async:
 * @stream: a stream of the content of a safetensors file, which is read to its end
 * @device: (nullable): the device of the tensors, %NULL for the default device
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope notified) (closure progress_data) (destroy progress_data_free): called in
 *   the main context of the caller with the number of bytes read and the total
 * @progress_data: data for @progress
 * @progress_data_free: (nullable): frees @progress_data
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Reads tensors from a stream in another thread; see [func@safetensors_load].
 *
 * Cancelling ends the operation immediately, even if @stream blocks and ignores its cancellable; then the
 * thread uses @stream until that call returns.
 *
 * Since: 0.1
 */
void
gtorch_safetensors_load_async (GInputStream *stream, GTorchDevice *device, int io_priority,
                               GCancellable *cancellable, GFileProgressCallback progress,
                               gpointer progress_data, GDestroyNotify progress_data_free,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (G_IS_INPUT_STREAM (stream));
  g_return_if_fail (device == NULL || GTORCH_IS_DEVICE (device));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_safetensors_load_async, cancellable, callback, user_data);
  load_begin (task, stream, FALSE, device, io_priority, progress, progress_data,
              progress_data_free);
}

/**
 * gtorch_safetensors_load_finish:
 * @result: the result that the callback got
 * @metadata: (out) (optional) (transfer container) (element-type utf8 utf8): the metadata of the file, by
 *   key
 * @error: return location for an error
 *
 * Gets the result of [func@safetensors_load_async].
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): the tensors by name, or %NULL
 *   on error
 *
 * Since: 0.1
 */
GHashTable *
gtorch_safetensors_load_finish (GAsyncResult *result, GHashTable **metadata, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_safetensors_load_async, error))
    return NULL;
  return content_to_table (gtorch_safetensors_read_finish (result, error), metadata);
}

/**
 * gtorch_safetensors_load_file_async:
 * @file: a safetensors file
 * @map: whether to map the file into memory if it is local
 * @device: (nullable): the device of the tensors, %NULL for the default device
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @progress: (nullable) (scope notified) (closure progress_data) (destroy progress_data_free): called in
 *   the main context of the caller with the number of bytes read and the total
 * @progress_data: data for @progress
 * @progress_data_free: (nullable): frees @progress_data
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Reads tensors from a file in another thread; see [func@safetensors_load_file].
 *
 * Since: 0.1
 */
void
gtorch_safetensors_load_file_async (GFile *file, gboolean map, GTorchDevice *device,
                                    int io_priority, GCancellable *cancellable,
                                    GFileProgressCallback progress, gpointer progress_data,
                                    GDestroyNotify progress_data_free, GAsyncReadyCallback callback,
                                    gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (device == NULL || GTORCH_IS_DEVICE (device));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (NULL, gtorch_safetensors_load_file_async, cancellable, callback, user_data);
  load_begin (task, file, map, device, io_priority, progress, progress_data, progress_data_free);
}

/**
 * gtorch_safetensors_load_file_finish:
 * @result: the result that the callback got
 * @metadata: (out) (optional) (transfer container) (element-type utf8 utf8): the metadata of the file, by
 *   key
 * @error: return location for an error
 *
 * Gets the result of [func@safetensors_load_file_async].
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): the tensors by name, or %NULL
 *   on error
 *
 * Since: 0.1
 */
GHashTable *
gtorch_safetensors_load_file_finish (GAsyncResult *result, GHashTable **metadata, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_safetensors_load_file_async, error))
    return NULL;
  return content_to_table (gtorch_safetensors_read_finish (result, error), metadata);
}
