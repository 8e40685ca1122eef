/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gio/gio.h>

#include "base/gtorch-file-save-private.h"
#include "base/gtorch-task-private.h"
#include "io/gtorch-read-private.h"
#include "io/gtorch-source-private.h"
#include "text/gtorch-tokenizer-private.h"

/* Vocabularies of 250,000 tokens take 17 MB. */
#define MAX_BYTES ((gsize) 256 << 20)

static GTorchTokenizer *
parse (GBytes *bytes, GError **error)
{
  gsize length;
  const gchar *text = g_bytes_get_data (bytes, &length);

  return gtorch_tokenizer_parse (text != NULL ? text : "", length, error);
}

/**
 * gtorch_tokenizer_load:
 * @stream: a stream of the content of a `tokenizer.json`, which is read to its end
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads a tokenizer from a stream of at most 256 MiB.
 *
 * Fails with %GTORCH_ERROR_FORMAT if the file breaks the rules of its format, and with
 * %GTORCH_ERROR_NOT_SUPPORTED if it asks for what this version lacks, such as the model Unigram.
 *
 * Returns: (transfer full): a new tokenizer, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTokenizer *
gtorch_tokenizer_load (GInputStream *stream, GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;

  g_return_val_if_fail (G_IS_INPUT_STREAM (stream), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  bytes = gtorch_read_stream ("tokenizer", stream, MAX_BYTES, cancellable, error);
  return bytes != NULL ? parse (bytes, error) : NULL;
}

/**
 * gtorch_tokenizer_load_bytes:
 * @bytes: the content of a `tokenizer.json`
 * @error: return location for an error
 *
 * Reads a tokenizer from memory; see [func@Tokenizer.load].
 *
 * Returns: (transfer full): a new tokenizer, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTokenizer *
gtorch_tokenizer_load_bytes (GBytes *bytes, GError **error)
{
  g_return_val_if_fail (bytes != NULL, NULL);
  return parse (bytes, error);
}

/**
 * gtorch_tokenizer_load_file:
 * @file: a `tokenizer.json`
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads a tokenizer from a file; see [func@Tokenizer.load].
 *
 * Returns: (transfer full): a new tokenizer, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTokenizer *
gtorch_tokenizer_load_file (GFile *file, GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;

  g_return_val_if_fail (G_IS_FILE (file), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  bytes = gtorch_read_file ("tokenizer", file, MAX_BYTES, cancellable, error);
  return bytes != NULL ? parse (bytes, error) : NULL;
}

static gpointer
load_run (gpointer data, GCancellable *cancellable, GError **error)
{
  const GTorchSourceLoad *load = data;

  return gtorch_tokenizer_load_file (G_FILE (load->from), cancellable, error);
}

/**
 * gtorch_tokenizer_load_file_async:
 * @file: a `tokenizer.json`
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Reads a tokenizer from a file in another thread; see [func@Tokenizer.load].
 *
 * Since: 0.1
 */
void
gtorch_tokenizer_load_file_async (GFile *file, int io_priority, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_tokenizer_load_file_async, cancellable, callback, user_data);
  gtorch_source_load (task, io_priority, load_run, file, FALSE, 0);
}

/**
 * gtorch_tokenizer_load_file_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@Tokenizer.load_file_async].
 *
 * Returns: (transfer full): a new tokenizer, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTokenizer *
gtorch_tokenizer_load_file_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_tokenizer_load_file_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_tokenizer_save:
 * @self: a tokenizer
 * @file: where to
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes the tokenizer as a `tokenizer.json`, which the Python package `tokenizers` reads, too.
 *
 * A file that exists is replaced when the new one is complete, and stays as it is on failure.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_tokenizer_save (GTorchTokenizer *self, GFile *file, GCancellable *cancellable,
                       GError **error)
{
  g_autoptr (GBytes) bytes = NULL;

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  bytes = gtorch_tokenizer_to_bytes (self);
  return gtorch_file_save_bytes (file, bytes, cancellable, error);
}

static gpointer
save_run (gpointer data, GCancellable *cancellable, GError **error)
{
  GObject *const *objects = data;

  return GINT_TO_POINTER (gtorch_tokenizer_save (GTORCH_TOKENIZER (objects[0]), G_FILE (objects[1]),
                                                 cancellable, error));
}

static void
objects_free (gpointer data)
{
  GObject **objects = data;

  g_object_unref (objects[0]);
  g_object_unref (objects[1]);
  g_free (objects);
}

/**
 * gtorch_tokenizer_save_async:
 * @self: a tokenizer
 * @file: where to
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Writes the tokenizer in another thread; see [method@Tokenizer.save]. The tokenizer must not be changed
 * until it is done.
 *
 * Since: 0.1
 */
void
gtorch_tokenizer_save_async (GTorchTokenizer *self, GFile *file, int io_priority,
                             GCancellable *cancellable, GAsyncReadyCallback callback,
                             gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  gpointer *objects;

  g_return_if_fail (GTORCH_IS_TOKENIZER (self));
  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_tokenizer_save_async, cancellable, callback, user_data);
  objects = g_new (gpointer, 2);
  objects[0] = g_object_ref (self);
  objects[1] = g_object_ref (file);
  gtorch_source_run (task, io_priority, save_run, objects, objects_free, NULL);
}

/**
 * gtorch_tokenizer_save_finish:
 * @self: a tokenizer
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [method@Tokenizer.save_async].
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_tokenizer_save_finish (GTorchTokenizer *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_tokenizer_save_async, error)
         && g_task_propagate_pointer (G_TASK (result), error) != NULL;
}
