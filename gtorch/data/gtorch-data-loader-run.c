/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* An epoch whose batches come as a signal. */

#include "config.h"

#include "base/gtorch-task-private.h"
#include "data/gtorch-loader-private.h"

static void
end_run (GTask *task, GError *error)
{
  gtorch_data_loader_iter_close (g_task_get_task_data (task));
  if (error != NULL)
    g_task_return_error (task, error);
  else
    g_task_return_boolean (task, TRUE);
  g_object_unref (task);
}

static void
on_batch (GObject *source, GAsyncResult *result, gpointer data)
{
  GTask *task = data;
  GTorchDataLoaderIter *iter = GTORCH_DATA_LOADER_ITER (source);
  GError *error = NULL;
  GTorchSample *batch = gtorch_data_loader_iter_next_finish (iter, result, &error);

  if (batch != NULL
      && !g_cancellable_set_error_if_cancelled (g_task_get_cancellable (task), &error))
    g_signal_emit_by_name (g_task_get_source_object (task), "batch", batch);
  if (batch == NULL || error != NULL)
    end_run (task, error);
  else
    gtorch_data_loader_iter_next_async (iter, g_task_get_cancellable (task), on_batch, task);
  g_clear_pointer (&batch, gtorch_sample_unref);
}

/**
 * gtorch_data_loader_run_async:
 * @self: a loader
 * @cancellable: (nullable): ends the epoch
 * @callback: (nullable) (scope async) (closure user_data): called after the last batch
 * @user_data: data for @callback
 *
 * Begins an epoch and emits [signal@DataLoader::batch] for each batch, without blocking the main loop
 * while it waits.
 *
 * A handler that takes long lets the workers go on with the next batches. Cancelling ends the workers,
 * and no further batch is emitted.
 *
 * Since: 0.1
 */
void
gtorch_data_loader_run_async (GTorchDataLoader *self, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
  GTorchDataLoaderIter *iter;
  GError *error = NULL;
  GTask *task;

  g_return_if_fail (GTORCH_IS_DATA_LOADER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_data_loader_run_async, cancellable, callback, user_data);
  iter = gtorch_data_loader_iterate (self, &error);
  if (iter == NULL)
    {
      g_task_return_error (task, error);
      g_object_unref (task);
      return;
    }
  g_task_set_task_data (task, iter, g_object_unref);
  gtorch_data_loader_iter_next_async (iter, cancellable, on_batch, task);
}

/**
 * gtorch_data_loader_run_finish:
 * @self: a loader
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@DataLoader.run_async].
 *
 * Returns: %TRUE after the last batch; %FALSE with the errors of [method@DataLoader.iterate] and of
 *   [method@DataLoaderIter.next]
 *
 * Since: 0.1
 */
gboolean
gtorch_data_loader_run_finish (GTorchDataLoader *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_data_loader_run_async, error))
    return FALSE;
  return g_task_propagate_boolean (G_TASK (result), error);
}
