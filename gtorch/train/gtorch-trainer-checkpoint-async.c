/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checkpoints without blocking. What is asked of the parts, and what is set, happens in the main context of
 * the caller, so that nobody hears of a change in another thread; files are written and read in threads. */

#include "config.h"

#include "train/gtorch-trainer-checkpoint-private.h"

#include "base/gtorch-task-private.h"
#include "io/gtorch-safetensors.h"
#include "io/gtorch-source-private.h"

static void
set_busy (GTorchTrainer *self, const gchar *name)
{
  GTorchTrainerPrivate *priv = gtorch_trainer_get_private (self);

  g_mutex_lock (&priv->lock);
  priv->busy = name;
  g_mutex_unlock (&priv->lock);
}

static void
on_saved (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  GError *error = NULL;

  set_busy (g_task_get_source_object (task), NULL);
  if (gtorch_safetensors_save_file_lists_finish (result, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_trainer_save_checkpoint_async:
 * @self: a trainer
 * @file: the file to write or replace
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable) (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Writes a checkpoint without blocking; see [method@Trainer.save_checkpoint]. The states are asked for in
 * this thread, and written in another one. Until it is done, the program must not change them, and the
 * trainer refuses runs, and to write or read another checkpoint.
 *
 * Since: 0.1
 */
void
gtorch_trainer_save_checkpoint_async (GTorchTrainer *self, GFile *file, int io_priority,
                                      GCancellable *cancellable, GAsyncReadyCallback callback,
                                      gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  g_autoptr (GVariant) loader = NULL;
  g_auto (GTorchTrainerLists) lists = { NULL };
  GTorchTrainerPrivate *priv;
  GError *error = NULL;

  g_return_if_fail (GTORCH_IS_TRAINER (self));
  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_trainer_save_checkpoint_async, cancellable, callback,
                          user_data);
  g_task_set_check_cancellable (task, FALSE); /* what is written is there */
  priv = gtorch_trainer_get_private (self);
  if (g_cancellable_set_error_if_cancelled (cancellable, &error)
      || !gtorch_trainer_check_checkpoint (self, "save_checkpoint_async", &error)
      || (loader = gtorch_trainer_get_loader_state (priv, &error)) == NULL
      || !gtorch_trainer_collect (self, priv->settings.scaler, loader, &lists, &error))
    {
      g_task_return_error (task, error);
      return;
    }
  set_busy (self, "save_checkpoint_async");
  gtorch_safetensors_save_file_lists_async ((const gchar *const *) lists.names->pdata,
                                            (GTorchTensor **) lists.tensors->pdata,
                                            lists.tensors->len, gtorch_trainer_metadata, file,
                                            io_priority, cancellable, NULL, NULL, NULL, on_saved,
                                            g_object_ref (task));
}

/**
 * gtorch_trainer_save_checkpoint_finish:
 * @self: a trainer
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [method@Trainer.save_checkpoint_async].
 *
 * Returns: the same as [method@Trainer.save_checkpoint]
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_save_checkpoint_finish (GTorchTrainer *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_trainer_save_checkpoint_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}

typedef struct
{
  GFile *place; /* a file, or a folder whose last checkpoint is read */
  gboolean is_folder;
} Wish;

typedef struct
{
  GFile *file; /* NULL: there is none in the folder */
  GTorchTrainerLists lists;
} Reading;

static void
wish_free (gpointer data)
{
  g_object_unref (((Wish *) data)->place);
  g_free (data);
}

static void
reading_free (gpointer data)
{
  Reading *reading = data;

  g_clear_object (&reading->file);
  gtorch_trainer_lists_clear (&reading->lists);
  g_free (reading);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Reading, reading_free)

static gpointer
read_run (gpointer data, GCancellable *cancellable, GError **error)
{
  const Wish *wish = data;
  g_autoptr (Reading) reading = g_new0 (Reading, 1);

  if (wish->is_folder)
    {
      g_autoptr (GPtrArray) names =
          gtorch_trainer_list_checkpoints (wish->place, cancellable, error);

      if (names == NULL)
        return NULL;
      if (names->len > 0)
        reading->file = g_file_get_child (wish->place, names->pdata[names->len - 1]);
    }
  else
    reading->file = g_object_ref (wish->place);
  return reading->file == NULL
                 || gtorch_trainer_read_checkpoint (reading->file, cancellable, &reading->lists,
                                                    error)
             ? g_steal_pointer (&reading)
             : NULL;
}

static void
on_read (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  GTorchTrainer *self = GTORCH_TRAINER (source);
  GError *error = NULL;
  g_autoptr (Reading) reading = g_task_propagate_pointer (G_TASK (result), &error);

  set_busy (self, NULL);
  if (reading != NULL && reading->file != NULL)
    gtorch_trainer_apply (self, reading->file, &reading->lists, &error);
  if (error != NULL)
    g_task_return_error (task, error);
  else
    g_task_return_boolean (task, reading->file != NULL);
}

/* Takes the task. */
static void
begin_reading (GTask *task, const gchar *name, GFile *place, gboolean is_folder, int io_priority)
{
  GTorchTrainer *self = g_task_get_source_object (task);
  GCancellable *cancellable = g_task_get_cancellable (task);
  g_autoptr (GTask) reading = g_task_new (self, cancellable, on_read, task);
  Wish *wish = g_new (Wish, 1);

  *wish = (Wish){ g_object_ref (place), is_folder };
  set_busy (self, name);
  g_task_set_name (reading, name);
  gtorch_source_run (reading, io_priority, read_run, wish, wish_free, reading_free);
}

/**
 * gtorch_trainer_load_checkpoint_async:
 * @self: a trainer
 * @file: a checkpoint
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable) (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Takes everything from a checkpoint without blocking; see [method@Trainer.load_checkpoint]. The file is read
 * in another thread; the states are set in the main context of the caller. Until it is done, the trainer
 * refuses runs, and to write or read another checkpoint.
 *
 * Since: 0.1
 */
void
gtorch_trainer_load_checkpoint_async (GTorchTrainer *self, GFile *file, int io_priority,
                                      GCancellable *cancellable, GAsyncReadyCallback callback,
                                      gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;

  g_return_if_fail (GTORCH_IS_TRAINER (self));
  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_trainer_load_checkpoint_async, cancellable, callback,
                          user_data);
  g_task_set_check_cancellable (task, FALSE); /* what is loaded is there */
  if (!g_cancellable_set_error_if_cancelled (cancellable, &error)
      && gtorch_trainer_check_checkpoint (self, "load_checkpoint_async", &error))
    begin_reading (g_steal_pointer (&task), "load_checkpoint_async", file, FALSE, io_priority);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_trainer_load_checkpoint_finish:
 * @self: a trainer
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [method@Trainer.load_checkpoint_async].
 *
 * Returns: the same as [method@Trainer.load_checkpoint]
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_load_checkpoint_finish (GTorchTrainer *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_trainer_load_checkpoint_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_trainer_resume_async:
 * @self: a trainer with a [property@Trainer:checkpoint-folder]
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable) (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Loads the checkpoint of the last step in the folder, if there is one, without blocking; see
 * [method@Trainer.load_checkpoint_async].
 *
 * Since: 0.1
 */
void
gtorch_trainer_resume_async (GTorchTrainer *self, int io_priority, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;
  GFile *folder;

  g_return_if_fail (GTORCH_IS_TRAINER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_trainer_resume_async, cancellable, callback, user_data);
  g_task_set_check_cancellable (task, FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, &error))
    {
      g_task_return_error (task, error);
      return;
    }
  folder = gtorch_trainer_find_folder (self, &error);
  if (folder != NULL && gtorch_trainer_check_checkpoint (self, "resume_async", &error))
    begin_reading (g_steal_pointer (&task), "resume_async", folder, TRUE, io_priority);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_trainer_resume_finish:
 * @self: a trainer
 * @result: the result that the callback got
 * @found: (out) (optional): whether there was a checkpoint
 * @error: return location for an error
 *
 * Gets the result of [method@Trainer.resume_async].
 *
 * Returns: the same as [method@Trainer.resume]
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_resume_finish (GTorchTrainer *self, GAsyncResult *result, gboolean *found,
                              GError **error)
{
  GError *local = NULL;
  gboolean is_there;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_trainer_resume_async, error))
    return FALSE;
  is_there = g_task_propagate_boolean (G_TASK (result), &local);
  if (local != NULL)
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  if (found != NULL)
    *found = is_there;
  return TRUE;
}
