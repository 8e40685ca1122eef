/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io/gtorch-checkpoint-file.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-task-private.h"
#include "io/gtorch-checkpoint-file-private.h"

#define OP        "checkpoint_load"
#define MAX_DEPTH 64
#define MAX_STEPS 1000000

/**
 * GTorchCheckpointFile:
 *
 * What PyTorch's `torch.save()` has written: tensors, numbers and texts, in dictionaries, lists and tuples.
 *
 * No code of the file is run, and it need not be trusted: a name of anything but tensors and containers is
 * an error. Tensors that shared memory when they were saved share it again.
 *
 * [method@CheckpointFile.get_root] is the value that was saved, and [method@CheckpointFile.get_tensors]
 * finds all tensors in it, with names such as `model.0.weight`.
 *
 * ```c
 * g_autoptr (GTorchCheckpointFile) checkpoint = gtorch_checkpoint_file_load_file (file, FALSE, 0, NULL,
 * &error); g_autoptr (GTorchTable) tensors = gtorch_checkpoint_file_get_tensors (checkpoint, &error);
 * g_autoptr (GHashTable) state = gtorch_table_to_hash_table (tensors);
 *
 * gtorch_module_load_state_dict (network, state, TRUE, &error);
 * ```
 *
 * Since: 0.1
 */
G_DEFINE_TYPE (GTorchCheckpointFile, gtorch_checkpoint_file, G_TYPE_OBJECT)

static void
gtorch_checkpoint_file_finalize (GObject *object)
{
  g_clear_pointer (&GTORCH_CHECKPOINT_FILE (object)->pickle, gtorch_pickle_free);
  G_OBJECT_CLASS (gtorch_checkpoint_file_parent_class)->finalize (object);
}

static void
gtorch_checkpoint_file_class_init (GTorchCheckpointFileClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_checkpoint_file_finalize;
}

static void
gtorch_checkpoint_file_init (GTorchCheckpointFile *self)
{
}

/* --- loading --- */

/* Takes the source, which may be NULL with an error. */
static GTorchCheckpointFile *
read_source (GTorchSource *source, GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchSource) own = source;
  g_autoptr (GTorchPickle) pickle =
      source != NULL ? gtorch_pickle_read (source, cancellable, error) : NULL;
  GTorchCheckpointFile *self;

  if (pickle == NULL)
    return NULL;
  self = g_object_new (GTORCH_TYPE_CHECKPOINT_FILE, NULL);
  self->pickle = g_steal_pointer (&pickle);
  return self;
}

/**
 * gtorch_checkpoint_file_load_bytes:
 * @bytes: the content of a file of `torch.save()`
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB
 * @error: return location for an error
 *
 * Reads a checkpoint that is in memory. Tensors alias the memory of @bytes and are read-only, like those of
 * [ctor@Tensor.new_from_bytes].
 *
 * Returns: (transfer full): the checkpoint, or %NULL on error as for [func@CheckpointFile.load]
 *
 * Since: 0.1
 */
GTorchCheckpointFile *
gtorch_checkpoint_file_load_bytes (GBytes *bytes, guint64 max_bytes, GError **error)
{
  g_return_val_if_fail (bytes != NULL, NULL);
  return read_source (gtorch_source_new_from_bytes (OP, bytes, max_bytes), NULL, error);
}

/**
 * gtorch_checkpoint_file_load:
 * @stream: a stream of the content of a file of `torch.save()`
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads a checkpoint from a stream. The tensors are on the CPU, wherever they were when they were saved.
 *
 * Such a file is a zip archive, whose directory is at its end: a stream that can seek is read where it has
 * to be, any other to its end. Files of the form before zip archives, of PyTorch before 1.6, are refused.
 *
 * Returns: (transfer full): the checkpoint, or %NULL with %GTORCH_ERROR_FORMAT if the content is malformed,
 *   cut short or inconsistent, %GTORCH_ERROR_NOT_SUPPORTED if it has anything but tensors, numbers, texts
 *   and containers, or tensors of a dtype that is missing here, %GTORCH_ERROR_OUT_OF_MEMORY beyond
 *   @max_bytes, or an error of the stream
 *
 * Since: 0.1
 */
GTorchCheckpointFile *
gtorch_checkpoint_file_load (GInputStream *stream, guint64 max_bytes, GCancellable *cancellable,
                             GError **error)
{
  g_return_val_if_fail (G_IS_INPUT_STREAM (stream), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  return read_source (gtorch_source_new_from_stream (OP, stream, max_bytes, cancellable, error),
                      cancellable, error);
}

/**
 * gtorch_checkpoint_file_load_file:
 * @file: a file of `torch.save()`
 * @map: whether to map the file into memory if it is local
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB; what is mapped takes none
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads a checkpoint from a file. With @map, tensors are read when they are used, and processes share the
 * memory; writing to a tensor changes the memory, not the file, and check sums are not checked. The file
 * must not be changed in place as long as tensors are alive; it may be replaced.
 *
 * Returns: (transfer full): the checkpoint, or %NULL on error as for [func@CheckpointFile.load]
 *
 * Since: 0.1
 */
GTorchCheckpointFile *
gtorch_checkpoint_file_load_file (GFile *file, gboolean map, guint64 max_bytes,
                                  GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (G_IS_FILE (file), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  return read_source (gtorch_source_new_from_file (OP, file, map, max_bytes, cancellable, error),
                      cancellable, error);
}

/* --- in another thread --- */

static gpointer
load_run (gpointer data, GCancellable *cancellable, GError **error)
{
  const GTorchSourceLoad *load = data;

  return G_IS_FILE (load->from)
             ? (gpointer) gtorch_checkpoint_file_load_file (G_FILE (load->from), load->map,
                                                            load->max_bytes, cancellable, error)
             : gtorch_checkpoint_file_load (G_INPUT_STREAM (load->from), load->max_bytes,
                                            cancellable, error);
}

/**
 * gtorch_checkpoint_file_load_async:
 * @stream: a stream of the content of the file
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@CheckpointFile.load] in another thread. Cancelling ends the operation immediately,
 * even if @stream blocks and ignores its cancellable; then the thread uses @stream until that call returns.
 *
 * Since: 0.1
 */
void
gtorch_checkpoint_file_load_async (GInputStream *stream, guint64 max_bytes, int io_priority,
                                   GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (G_IS_INPUT_STREAM (stream));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (NULL, gtorch_checkpoint_file_load_async, cancellable, callback, user_data);
  gtorch_source_load (task, io_priority, load_run, stream, FALSE, max_bytes);
}

/**
 * gtorch_checkpoint_file_load_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@CheckpointFile.load_async].
 *
 * Returns: (transfer full): the checkpoint, or %NULL on error
 *
 * Since: 0.1
 */
GTorchCheckpointFile *
gtorch_checkpoint_file_load_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_checkpoint_file_load_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_checkpoint_file_load_file_async:
 * @file: the file
 * @map: whether to map the file into memory if it is local
 * @max_bytes: the most memory that the content may take, 0 for 16 GiB; what is mapped takes none
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@CheckpointFile.load_file] in another thread.
 *
 * Since: 0.1
 */
void
gtorch_checkpoint_file_load_file_async (GFile *file, gboolean map, guint64 max_bytes,
                                        int io_priority, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_checkpoint_file_load_file_async, cancellable, callback,
                          user_data);
  gtorch_source_load (task, io_priority, load_run, file, map, max_bytes);
}

/**
 * gtorch_checkpoint_file_load_file_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@CheckpointFile.load_file_async].
 *
 * Returns: (transfer full): the checkpoint, or %NULL on error
 *
 * Since: 0.1
 */
GTorchCheckpointFile *
gtorch_checkpoint_file_load_file_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_checkpoint_file_load_file_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* --- what there is --- */

/**
 * gtorch_checkpoint_file_get_root:
 * @self: a checkpoint
 *
 * Gets the value that was saved.
 *
 * Returns: (transfer full): the value
 *
 * Since: 0.1
 */
GTorchCheckpointNode *
gtorch_checkpoint_file_get_root (GTorchCheckpointFile *self)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_FILE (self), NULL);
  return gtorch_checkpoint_node_new (self, self->pickle != NULL ? self->pickle->root : 0);
}

/**
 * gtorch_checkpoint_file_get_n_nodes:
 * @self: a checkpoint
 *
 * Gets the number of different values. Those that a tuple or a frozen set consists of have lower numbers
 * than itself.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_checkpoint_file_get_n_nodes (GTorchCheckpointFile *self)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_FILE (self), 0);
  return self->pickle != NULL ? self->pickle->nodes->len : 0;
}

/**
 * gtorch_checkpoint_file_get_node:
 * @self: a checkpoint
 * @index: a number below [method@CheckpointFile.get_n_nodes]
 *
 * Gets a value by its number.
 *
 * Returns: (transfer full) (nullable): the value, or %NULL if there is no such number
 *
 * Since: 0.1
 */
GTorchCheckpointNode *
gtorch_checkpoint_file_get_node (GTorchCheckpointFile *self, guint index)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_FILE (self), NULL);
  return index < gtorch_checkpoint_file_get_n_nodes (self)
             ? gtorch_checkpoint_node_new (self, index)
             : NULL;
}

/* Containers may be within several others: the walk has an end. */
static gboolean
collect (GTorchCheckpointFile *self, guint index, GString *name, guint depth, guint *n_steps,
         GTorchTable *table, GError **error)
{
  const GTorchPickleNode *node = gtorch_checkpoint_file_peek (self, index);
  gboolean is_dict = node->kind == GTORCH_CHECKPOINT_KIND_DICT
                     || node->kind == GTORCH_CHECKPOINT_KIND_ORDERED_DICT;
  gsize length = name->len;

  if (node->tensor != NULL)
    return gtorch_table_add (table, name->str, node->tensor, error);
  if (!is_dict && node->kind != GTORCH_CHECKPOINT_KIND_LIST
      && node->kind != GTORCH_CHECKPOINT_KIND_TUPLE)
    return TRUE;
  if (depth == MAX_DEPTH || ++*n_steps == MAX_STEPS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("checkpoint_tensors: “%s” has more than %d containers within one another, or "
                      "there are more "
                      "than %d"),
                   gtorch_name_str (name->str), MAX_DEPTH, MAX_STEPS);
      return FALSE;
    }
  for (guint i = 0; node->children != NULL && i < node->children->len; i += 1 + is_dict)
    {
      const GTorchPickleNode *key =
          is_dict ? gtorch_checkpoint_file_peek (self, g_array_index (node->children, guint32, i))
                  : NULL;

      if (length > 0)
        g_string_append_c (name, '.');
      if (key == NULL)
        g_string_append_printf (name, "%u", i);
      else if (key->kind == GTORCH_CHECKPOINT_KIND_INT)
        g_string_append_printf (name, "%" G_GINT64_FORMAT, key->whole);
      else if (key->kind == GTORCH_CHECKPOINT_KIND_STRING && strlen (key->text) == key->length)
        g_string_append (name, key->text);
      else
        {
          g_string_truncate (name, length);
          continue;
        }
      if (!collect (self, g_array_index (node->children, guint32, i + is_dict), name, depth + 1,
                    n_steps, table, error))
        return FALSE;
      g_string_truncate (name, length);
    }
  return TRUE;
}

/**
 * gtorch_checkpoint_file_get_tensors:
 * @self: a checkpoint
 * @error: return location for an error
 *
 * Finds the tensors in dictionaries, lists and tuples. A name is made of the keys and the places on the
 * way, with dots between them: that is a state dict if one was saved, and `model.0.weight` if it was saved
 * under the key `model`. A tensor that was saved by itself has no name, `""`. Other values are left out,
 * and so are sets and what has a key that is neither a text nor an integer.
 *
 * Returns: (transfer full): the tensors by name, or %NULL with %GTORCH_ERROR_INVALID if two names are
 *   equal, and %GTORCH_ERROR_NOT_SUPPORTED for more than 64 containers within one another, or one that
 *   contains itself
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_checkpoint_file_get_tensors (GTorchCheckpointFile *self, GError **error)
{
  g_autoptr (GTorchTable) table = gtorch_table_new ();
  g_autoptr (GString) name = g_string_new (NULL);
  guint n_steps = 0;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_FILE (self), NULL);
  if (self->pickle != NULL && !collect (self, self->pickle->root, name, 0, &n_steps, table, error))
    return NULL;
  return g_steal_pointer (&table);
}

/**
 * gtorch_checkpoint_file_get_n_storages:
 * @self: a checkpoint
 *
 * Gets the number of pieces of memory that the tensors are views of.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_checkpoint_file_get_n_storages (GTorchCheckpointFile *self)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_FILE (self), 0);
  return self->pickle != NULL ? self->pickle->storages->len : 0;
}

/**
 * gtorch_checkpoint_file_get_storage:
 * @self: a checkpoint
 * @index: a number below [method@CheckpointFile.get_n_storages]
 *
 * Gets a piece of memory as a tensor of one dimension.
 *
 * Returns: (transfer none) (nullable): the tensor, or %NULL if there is no such number
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_checkpoint_file_get_storage (GTorchCheckpointFile *self, guint index)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_FILE (self), NULL);
  if (index >= gtorch_checkpoint_file_get_n_storages (self))
    return NULL;
  return ((const GTorchPickleStorage *) self->pickle->storages->pdata[index])->tensor;
}

/**
 * gtorch_checkpoint_file_get_location:
 * @self: a checkpoint
 * @index: a number below [method@CheckpointFile.get_n_storages]
 *
 * Gets the name of the device on which a piece of memory was when it was saved, such as `cpu` or `cuda:0`.
 *
 * Returns: (nullable): the name, or %NULL if there is no such number
 *
 * Since: 0.1
 */
const gchar *
gtorch_checkpoint_file_get_location (GTorchCheckpointFile *self, guint index)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_FILE (self), NULL);
  if (index >= gtorch_checkpoint_file_get_n_storages (self))
    return NULL;
  return ((const GTorchPickleStorage *) self->pickle->storages->pdata[index])->location;
}
