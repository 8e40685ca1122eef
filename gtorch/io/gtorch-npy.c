/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Files of NumPy's form .npy: one array each. */

#include "config.h"

#include "io/gtorch-npy.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-file-save-private.h"
#include "base/gtorch-task-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "io/gtorch-npy-private.h"
#include "io/gtorch-safetensors-private.h"
#include "tensor/gtorch-tensor-private.h"

#define MAX_HEADER (1 << 20) /* bytes: NumPy's have some hundred */
#define PREFIX     12        /* the longest start of a file, before the dictionary */
#define CHUNK      (4 * 1024 * 1024)

/* --- reading --- */

/* Tells where the dictionary begins, and how long it is, from the first twelve bytes. */
static gboolean
parse_prefix (const gchar *op, const guint8 *data, gsize n, gsize *start, gsize *length,
              GError **error)
{
  if (n < 10 || memcmp (data, "\223NUMPY", 6) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("%s: this is no .npy file: it begins otherwise"), op);
      return FALSE;
    }
  if (data[6] < 1 || data[6] > 3 || data[7] != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: version %u.%u of the format: 1.0, 2.0 and 3.0 are known"), op, data[6],
                   data[7]);
      return FALSE;
    }
  *start = data[6] == 1 ? 10 : 12;
  *length = data[8] | data[9] << 8;
  if (data[6] > 1)
    *length = n < 12 ? 0 : *length | (gsize) data[10] << 16 | (gsize) data[11] << 24;
  if (*length <= MAX_HEADER && n >= *start)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("%s: a header of %zu bytes in %zu: there can be %d"), op, *length, n, MAX_HEADER);
  return FALSE;
}

static void
swap_bytes (guint8 *data, gsize n_bytes, guint dtype)
{
  /* the parts of a complex number are swapped by themselves */
  const gsize size = gtorch_dtype_size (gtorch_dtype_infos[dtype].real);

  for (gsize i = 0; i + size <= n_bytes; i += size)
    for (gsize k = 0; k < size / 2; k++)
      {
        guint8 byte = data[i + k];

        data[i + k] = data[i + size - 1 - k];
        data[i + size - 1 - k] = byte;
      }
}

/* A tensor of the elements that begin at `start`. */
static GTorchImpl *
make (const gchar *op, GTorchSource *source, GBytes *bytes, gsize start, gboolean is_read_only,
      const GTorchNpyHeader *header, GError **error)
{
  g_autoptr (GBytes) swapped = NULL;
  g_autoptr (GTorchImpl) flat = NULL;
  gint64 strides[GTORCH_MAX_DIMS], step = 1;

  if (header->swap && header->n_bytes > 0)
    {
      guint8 *memory = gtorch_source_allocate (source, header->n_bytes, error);

      if (memory == NULL)
        return NULL;
      memcpy (memory, (const guint8 *) g_bytes_get_data (bytes, NULL) + start, header->n_bytes);
      swap_bytes (memory, header->n_bytes, header->dtype);
      bytes = swapped = g_bytes_new_take (memory, header->n_bytes);
      start = 0;
      is_read_only = FALSE;
    }
  flat = gtorch_impl_new_from_bytes (op, bytes, start, header->n_bytes, is_read_only, header->dtype,
                                     header->shape, header->n_dims, error);
  if (flat == NULL || !header->fortran || header->n_dims < 2 || header->n_bytes == 0)
    return g_steal_pointer (&flat);
  for (guint i = 0; i < header->n_dims; i++)
    {
      strides[i] = step;
      step *= header->shape[i];
    }
  return gtorch_impl_new_view (flat, flat->offset, header->shape, strides, header->n_dims);
}

GTorchImpl *
gtorch_npy_read (const gchar *op, GTorchSource *source, GBytes *bytes, gboolean is_read_only,
                 GError **error)
{
  GTorchNpyHeader header;
  gsize n, start, length;
  const guint8 *data = g_bytes_get_data (bytes, &n);

  if (!parse_prefix (op, data, n, &start, &length, error))
    return NULL;
  if (length > n - start)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("%s: the header of %zu bytes is cut short at %zu"), op, length, n);
      return NULL;
    }
  if (!gtorch_npy_header_parse (op, (const gchar *) data + start, length, &header, error))
    return NULL;
  start += length;
  if (header.n_bytes != n - start)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   header.n_bytes > n - start
                       ? _ ("%s: the file is cut short: shape %s of %s takes %" PRIu64
                            " bytes, and there are %zu")
                       : _ ("%s: shape %s of %s takes %" PRIu64
                            " bytes, and there are %zu: arrays one behind the other are read from "
                            "a stream"),
                   op, gtorch_shape_str (header.shape, header.n_dims),
                   gtorch_dtype_get_name (header.dtype), header.n_bytes, n - start);
      return NULL;
    }
  return make (op, source, bytes, start, is_read_only, &header, error);
}

static gboolean
read_exactly (const gchar *op, GInputStream *stream, gpointer buffer, gsize n,
              GCancellable *cancellable, GError **error)
{
  for (gsize done = 0, n_read = 0; done < n; done += n_read)
    {
      gsize step = MIN (n - done, CHUNK);

      if (!gtorch_stream_read_all (stream, (gchar *) buffer + done, step, &n_read, cancellable,
                                   error))
        return FALSE;
      if (n_read == step)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("%s: the file is cut short: it ends %zu bytes early"), op, n - done - n_read);
      return FALSE;
    }
  return TRUE;
}

/* Reads one array, and leaves the stream behind it. */
static GTorchImpl *
read_stream (const gchar *op, GInputStream *stream, guint64 max_bytes, GCancellable *cancellable,
             GError **error)
{
  g_autoptr (GBytes) nothing = g_bytes_new_static ("", 0);
  g_autoptr (GTorchSource) source = gtorch_source_new_from_bytes (op, nothing, max_bytes);
  g_autoptr (GBytes) bytes = NULL;
  g_autofree gchar *text = NULL;
  g_autofree gpointer memory = NULL;
  GTorchNpyHeader header;
  guint8 prefix[PREFIX];
  gsize start, length, n = 10;

  if (!read_exactly (op, stream, prefix, n, cancellable, error))
    return NULL;
  if (memcmp (prefix, "\223NUMPY", 6) == 0 && prefix[6] > 1)
    {
      if (!read_exactly (op, stream, prefix + n, 2, cancellable, error))
        return NULL;
      n = 12;
    }
  if (!parse_prefix (op, prefix, n, &start, &length, error))
    return NULL;
  text = g_malloc (length + 1);
  if (!read_exactly (op, stream, text, length, cancellable, error)
      || !gtorch_npy_header_parse (op, text, length, &header, error))
    return NULL;
  memory = gtorch_source_allocate (source, header.n_bytes, error);
  if (memory == NULL || !read_exactly (op, stream, memory, header.n_bytes, cancellable, error))
    return NULL;
  if (header.swap)
    {
      swap_bytes (memory, header.n_bytes, header.dtype);
      header.swap = FALSE;
    }
  bytes = g_bytes_new_take (g_steal_pointer (&memory), header.n_bytes);
  return make (op, source, bytes, 0, FALSE, &header, error);
}

/**
 * gtorch_npy_load_bytes:
 * @bytes: the content of an .npy file
 * @error: return location for an error
 *
 * Reads an array that is in memory. The tensor aliases the memory of @bytes and is read-only, like that of
 * [ctor@Tensor.new_from_bytes], unless its elements are in the other order of bytes.
 *
 * Returns: (transfer full): the tensor on the CPU, or %NULL on error as for [func@npy_load]
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_npy_load_bytes (GBytes *bytes, GError **error)
{
  g_autoptr (GTorchSource) source = NULL;

  g_return_val_if_fail (bytes != NULL, NULL);
  source = gtorch_source_new_from_bytes ("npy_load", bytes, G_MAXUINT64);
  return gtorch_tensor_wrap (gtorch_npy_read ("npy_load", source, bytes, TRUE, error));
}

/**
 * gtorch_npy_load:
 * @stream: a stream of the content of an .npy file
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads one array of NumPy's from a stream, and leaves the stream behind it: `numpy.save()` may have
 * written several.
 *
 * All versions of the format are read, in both orders of bytes. An array in Fortran's order gives a tensor
 * whose first dimension has the stride 1. Objects, texts, times, records and unsigned integers of more than
 * 8 bits are refused.
 *
 * ```c
 * g_autoptr (GInputStream) stream = G_INPUT_STREAM (g_file_read (file, NULL, &error));
 * g_autoptr (GTorchTensor) images = gtorch_npy_load (stream, 0, NULL, &error);
 * ```
 *
 * Returns: (transfer full): the tensor on the CPU, or %NULL with %GTORCH_ERROR_FORMAT if the content is
 *   malformed or cut short, %GTORCH_ERROR_NOT_SUPPORTED for elements without a dtype,
 *   %GTORCH_ERROR_OUT_OF_MEMORY beyond @max_bytes, or an error of the stream
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_npy_load (GInputStream *stream, guint64 max_bytes, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (G_IS_INPUT_STREAM (stream), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  return gtorch_tensor_wrap (read_stream ("npy_load", stream, max_bytes, cancellable, error));
}

/**
 * gtorch_npy_load_file:
 * @file: an .npy file
 * @map: whether to map the file into memory if it is local
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB; what is mapped takes none
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads an array of NumPy's from a file. With @map, parts of the file are read when they are used, and
 * processes share the memory; writing to the tensor changes the memory, not the file. The file must not be
 * changed in place as long as the tensor is alive; it may be replaced, as [func@npy_save_file] does.
 *
 * Returns: (transfer full): the tensor on the CPU, or %NULL on error as for [func@npy_load], or if the file
 *   has more than one array
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_npy_load_file (GFile *file, gboolean map, guint64 max_bytes, GCancellable *cancellable,
                      GError **error)
{
  const gchar *op = "npy_load";
  g_autoptr (GTorchImpl) impl = NULL;

  g_return_val_if_fail (G_IS_FILE (file), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (map)
    {
      g_autoptr (GTorchSource) source =
          gtorch_source_new_from_file (op, file, TRUE, max_bytes, cancellable, error);
      g_autoptr (GBytes) bytes =
          source != NULL ? gtorch_source_read_bytes (source, 0, source->size, cancellable, error)
                         : NULL;

      if (bytes != NULL)
        impl = gtorch_npy_read (op, source, bytes, FALSE, error);
    }
  else
    {
      g_autoptr (GInputStream) stream = gtorch_file_open (file, cancellable, error);
      gsize n_read = 0;
      gchar after;

      if (stream == NULL)
        return NULL;
      impl = read_stream (op, stream, max_bytes, cancellable, error);
      if (impl == NULL || !gtorch_stream_read_all (stream, &after, 1, &n_read, cancellable, error))
        return NULL;
      if (n_read > 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("%s: bytes follow the array of shape %s: arrays one behind the other are "
                          "read from a stream"),
                       op, gtorch_impl_shape_str (impl));
          return NULL;
        }
    }
  return gtorch_tensor_wrap (g_steal_pointer (&impl));
}

/* --- in another thread --- */

static gpointer
load_run (gpointer data, GCancellable *cancellable, GError **error)
{
  const GTorchSourceLoad *load = data;

  return G_IS_FILE (load->from)
             ? (gpointer) gtorch_npy_load_file (G_FILE (load->from), load->map, load->max_bytes,
                                                cancellable, error)
             : gtorch_npy_load (G_INPUT_STREAM (load->from), load->max_bytes, cancellable, error);
}

/**
 * gtorch_npy_load_async:
 * @stream: a stream of the content of the file
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@npy_load] in another thread. Cancelling ends the operation immediately, even if
 * @stream blocks and ignores its cancellable; then the thread uses @stream until that call returns.
 *
 * Since: 0.1
 */
void
gtorch_npy_load_async (GInputStream *stream, guint64 max_bytes, int io_priority,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (G_IS_INPUT_STREAM (stream));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_npy_load_async, cancellable, callback, user_data);
  gtorch_source_load (task, io_priority, load_run, stream, FALSE, max_bytes);
}

/**
 * gtorch_npy_load_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@npy_load_async].
 *
 * Returns: (transfer full): the tensor, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_npy_load_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_npy_load_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_npy_load_file_async:
 * @file: the file
 * @map: whether to map the file into memory if it is local
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB; what is mapped takes none
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@npy_load_file] in another thread.
 *
 * Since: 0.1
 */
void
gtorch_npy_load_file_async (GFile *file, gboolean map, guint64 max_bytes, int io_priority,
                            GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_npy_load_file_async, cancellable, callback, user_data);
  gtorch_source_load (task, io_priority, load_run, file, map, max_bytes);
}

/**
 * gtorch_npy_load_file_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@npy_load_file_async].
 *
 * Returns: (transfer full): the tensor, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_npy_load_file_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_npy_load_file_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* --- writing --- */

typedef struct
{
  GTorchTensor *tensor;
  GObject *to; /* a stream or a file */
} Save;

static void
save_free (gpointer data)
{
  Save *save = data;

  g_object_unref (save->tensor);
  g_object_unref (save->to);
  g_free (save);
}

static gboolean
write_array (GOutputStream *stream, GCancellable *cancellable, gpointer tensor, GError **error)
{
  g_autoptr (GBytes) data = gtorch_tensor_get_bytes (tensor, error);
  g_autoptr (GBytes) header = NULL;
  const gchar *at;
  gsize n;

  if (data == NULL)
    return FALSE;
  header = gtorch_npy_header_write ("npy_save", gtorch_tensor_unwrap (tensor), error);
  if (header == NULL || g_cancellable_set_error_if_cancelled (cancellable, error)
      || !g_output_stream_write_all (stream, g_bytes_get_data (header, NULL),
                                     g_bytes_get_size (header), NULL, cancellable, error))
    return FALSE;
  at = g_bytes_get_data (data, &n);
  for (gsize done = 0; done < n; done += CHUNK)
    if (g_cancellable_set_error_if_cancelled (cancellable, error)
        || !g_output_stream_write_all (stream, at + done, MIN (n - done, CHUNK), NULL, cancellable,
                                       error))
      return FALSE;
  return g_output_stream_flush (stream, cancellable, error);
}

/**
 * gtorch_npy_save:
 * @tensor: a tensor
 * @stream: the stream to write to
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes a tensor as an array of NumPy's. The stream is flushed, not closed: further arrays may follow.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_SUPPORTED for bfloat16, which NumPy lacks,
 *   %GTORCH_ERROR_RELEASED, or an error of the stream
 *
 * Since: 0.1
 */
gboolean
gtorch_npy_save (GTorchTensor *tensor, GOutputStream *stream, GCancellable *cancellable,
                 GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (G_IS_OUTPUT_STREAM (stream), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return write_array (stream, cancellable, tensor, error);
}

/**
 * gtorch_npy_save_file:
 * @tensor: a tensor
 * @file: the file to write or replace
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes a tensor to an .npy file. If anything fails, an existing file is unchanged, as with
 * [func@safetensors_save_file].
 *
 * Returns: %TRUE, or %FALSE with an error of [func@npy_save], or of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_npy_save_file (GTorchTensor *tensor, GFile *file, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return gtorch_file_save (file, write_array, tensor, cancellable, error);
}

static gpointer
save_run (gpointer data, GCancellable *cancellable, GError **error)
{
  Save *save = data;
  gboolean result =
      G_IS_FILE (save->to)
          ? gtorch_npy_save_file (save->tensor, G_FILE (save->to), cancellable, error)
          : gtorch_npy_save (save->tensor, G_OUTPUT_STREAM (save->to), cancellable, error);

  return result ? GINT_TO_POINTER (TRUE) : NULL;
}

static void
save_begin (GTask *task, GTorchTensor *tensor, gpointer to, int io_priority)
{
  Save *save = g_new (Save, 1);

  *save = (Save){ g_object_ref (tensor), g_object_ref (to) };
  gtorch_source_run (task, io_priority, save_run, save, save_free, NULL);
}

/**
 * gtorch_npy_save_async:
 * @tensor: a tensor
 * @stream: the stream to write to
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@npy_save] in another thread. The elements must not be changed until it is done.
 *
 * Since: 0.1
 */
void
gtorch_npy_save_async (GTorchTensor *tensor, GOutputStream *stream, int io_priority,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_TENSOR (tensor));
  g_return_if_fail (G_IS_OUTPUT_STREAM (stream));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_npy_save_async, cancellable, callback, user_data);
  save_begin (task, tensor, stream, io_priority);
}

/**
 * gtorch_npy_save_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@npy_save_async].
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_npy_save_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, NULL, gtorch_npy_save_async, error)
         && g_task_propagate_pointer (G_TASK (result), error) != NULL;
}

/**
 * gtorch_npy_save_file_async:
 * @tensor: a tensor
 * @file: the file to write or replace
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@npy_save_file] in another thread. The elements must not be changed until it is
 * done.
 *
 * Since: 0.1
 */
void
gtorch_npy_save_file_async (GTorchTensor *tensor, GFile *file, int io_priority,
                            GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_TENSOR (tensor));
  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_npy_save_file_async, cancellable, callback, user_data);
  save_begin (task, tensor, file, io_priority);
}

/**
 * gtorch_npy_save_file_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@npy_save_file_async].
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_npy_save_file_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, NULL, gtorch_npy_save_file_async, error)
         && g_task_propagate_pointer (G_TASK (result), error) != NULL;
}
