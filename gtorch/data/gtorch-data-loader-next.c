/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batches that are waited for without blocking the main loop. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "base/gtorch-task-private.h"
#include "data/gtorch-data-loader-iter-private.h"
#include "profiler/gtorch-profiler-private.h"

/* The sources are in the context of the caller: a worker, the cancellable and the time wake it there. */
typedef struct
{
  GSource *wake, *cancel, *time;
  GTorchSize *indices; /* without workers */
  guint64 range;       /* in profiles; 0: none */
} Wait;

static void
drop_source (GSource **source)
{
  if (*source == NULL)
    return;
  g_source_destroy (*source);
  g_clear_pointer (source, g_source_unref);
}

static void
wait_free (gpointer data)
{
  Wait *wait = data;

  drop_source (&wait->wake);
  drop_source (&wait->cancel);
  drop_source (&wait->time);
  g_clear_pointer (&wait->indices, gtorch_size_unref);
  g_free (wait);
}

static void
free_batch (gpointer batch)
{
  if (batch != NULL)
    gtorch_batch_free (batch);
}

/* Takes the task and the batch or the error; both NULL at the end. */
static void
end_wait (GTask *task, GTorchBatch *batch, GError *error)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  Wait *wait = g_task_get_task_data (task);

  if (self->pass != NULL)
    gtorch_pass_forget (self->pass);
  drop_source (&wait->wake);
  drop_source (&wait->cancel);
  drop_source (&wait->time);
  gtorch_trace_wait_end (wait->range);
  g_atomic_int_set (&self->is_pending, FALSE);
  self->wake = NULL;
  self->waiter = NULL;
  if (error != NULL)
    g_task_return_error (task, error);
  else
    g_task_return_pointer (task, batch, free_batch);
  g_object_unref (task);
}

static void
step (GTask *task)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  Wait *wait = g_task_get_task_data (task);
  GTorchBatch *batch;
  GError *error = NULL;

  for (;;)
    {
      if (gtorch_data_loader_iter_is_over (self))
        {
          end_wait (task, NULL, NULL);
          return;
        }
      gtorch_data_loader_iter_refill (self);
      if (self->n_waiting == 0)
        {
          gtorch_data_loader_iter_finish (self, &error);
          end_wait (task, NULL, error);
          return;
        }
      batch = gtorch_pass_poll (self->pass, gtorch_data_loader_iter_find_number (self), wait->wake);
      if (batch == NULL)
        return;
      if (gtorch_data_loader_iter_note_batch (self, batch))
        break;
      gtorch_batch_free (batch);
    }
  gtorch_data_loader_iter_refill (self);
  gtorch_data_loader_iter_count (self, batch->number);
  end_wait (task, batch, NULL);
}

static gboolean
on_wake (gpointer task)
{
  g_source_set_ready_time (((Wait *) g_task_get_task_data (task))->wake, -1);
  step (task);
  return G_SOURCE_CONTINUE;
}

static gboolean
on_wait_cancelled (GCancellable *cancellable, gpointer task)
{
  GError *error = NULL;

  g_cancellable_set_error_if_cancelled (cancellable, &error);
  end_wait (task, NULL, error);
  return G_SOURCE_REMOVE;
}

static gboolean
on_time_out (gpointer task)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);

  end_wait (task, NULL,
            g_error_new (G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                         _ ("data_loader: no batch came within the timeout of %g s"),
                         self->loader->timeout));
  return G_SOURCE_REMOVE;
}

static gboolean
dispatch_ready (GSource *source, GSourceFunc func, gpointer data)
{
  return func (data);
}

static GSource *
attach (GTask *task, GSource *source, GSourceFunc func)
{
  g_source_set_callback (source, func, task, NULL);
  g_source_set_priority (source, g_task_get_priority (task));
  g_source_attach (source, g_task_get_context (task));
  return source;
}

static void
wait_for_workers (GTask *task)
{
  static GSourceFuncs ready_funcs = { NULL, NULL, dispatch_ready, NULL, NULL, NULL };
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  GCancellable *cancellable = g_task_get_cancellable (task);
  Wait *wait = g_task_get_task_data (task);

  wait->wake = attach (task, g_source_new (&ready_funcs, sizeof (GSource)), on_wake);
  g_source_set_static_name (wait->wake, "[gtorch] batch");
  self->wake = wait->wake;
  if (cancellable != NULL)
    wait->cancel =
        attach (task, g_cancellable_source_new (cancellable), G_SOURCE_FUNC (on_wait_cancelled));
  if (self->loader->timeout > 0)
    wait->time =
        attach (task, g_timeout_source_new ((guint) MIN (self->loader->timeout * 1000, G_MAXINT32)),
                on_time_out);
  step (task);
}

/* Without workers a data set that several threads can use is read by a thread of GTask's, another one by
 * the main loop. */

/* Takes the indices and the batch. */
static void
end_local (GTask *task, GTorchSize *indices, GTorchBatch *batch)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  GError *error = NULL;

  if (gtorch_data_loader_iter_is_over (self))
    g_clear_pointer (&batch, gtorch_batch_free);
  else if (batch == NULL)
    gtorch_data_loader_iter_finish (self, &error);
  else if (g_cancellable_is_cancelled (g_task_get_cancellable (task))
           && gtorch_batch_was_given_up (batch))
    self->kept = g_steal_pointer (&indices);
  else
    gtorch_data_loader_iter_count (self, self->n_pushed++);
  g_clear_pointer (&indices, gtorch_size_unref);
  if (g_atomic_int_get (&self->is_closed))
    gtorch_data_loader_iter_end_fetcher (self);
  end_wait (task, batch, error);
}

static void
make_in_thread (GTask *inner, gpointer source, gpointer data, GCancellable *cancellable)
{
  GTorchMaking *making = data;
  GTorchBatch *batch =
      gtorch_data_loader_iter_make_local (making->iter, making->indices, making->cancellable);

  g_mutex_lock (&making->lock);
  making->batch = batch;
  making->is_done = TRUE;
  g_cond_broadcast (&making->cond);
  g_mutex_unlock (&making->lock);
  g_task_return_boolean (inner, TRUE);
}

static void make_alone (GTask *task);

/* Gives what the thread has made to the call that waits. */
static void
end_making (GTorchDataLoaderIter *self)
{
  GTask *task = self->waiter;
  Wait *wait = g_task_get_task_data (task);
  GTorchSize *indices;
  GTorchBatch *batch = gtorch_data_loader_iter_take_made (self, &indices);

  if (!gtorch_batch_was_given_up (batch) || gtorch_data_loader_iter_is_over (self)
      || g_cancellable_is_cancelled (g_task_get_cancellable (task)))
    {
      end_local (task, indices, batch);
      return;
    }
  /* It was another call that did not want it. */
  gtorch_batch_free (batch);
  self->kept = indices;
  drop_source (&wait->cancel);
  drop_source (&wait->time);
  make_alone (task);
}

/* In the context of the call that had the batch made, which may have ended. */
static void
on_made (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTorchDataLoaderIter) self = data;

  if (self->making != NULL && self->making == g_task_get_task_data (G_TASK (result)))
    {
      if (self->waiter != NULL)
        end_making (self);
      else if (g_atomic_int_get (&self->is_closed))
        {
          g_clear_pointer (&self->making, gtorch_making_unref);
          self->loader->n_making--;
          gtorch_data_loader_iter_end_fetcher (self);
        }
    }
}

static gboolean
on_local_cancelled (GCancellable *cancellable, gpointer task)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  GError *error = NULL;

  /* The data set may look at it. */
  g_cancellable_cancel (self->making->cancellable);
  g_cancellable_set_error_if_cancelled (cancellable, &error);
  end_wait (task, NULL, error);
  return G_SOURCE_REMOVE;
}

static gboolean
on_local_wake (gpointer task)
{
  end_making (g_task_get_source_object (task));
  return G_SOURCE_REMOVE;
}

/* Lets the call wait for the thread that is at the batch. */
static void
wait_for_making (GTask *task)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  GCancellable *cancellable = g_task_get_cancellable (task);
  Wait *wait = g_task_get_task_data (task);
  gboolean is_done;

  self->waiter = task;
  g_mutex_lock (&self->making->lock);
  is_done = self->making->is_done;
  g_mutex_unlock (&self->making->lock);
  if (is_done)
    wait->time = attach (task, g_idle_source_new (), on_local_wake);
  else if (cancellable != NULL)
    wait->cancel =
        attach (task, g_cancellable_source_new (cancellable), G_SOURCE_FUNC (on_local_cancelled));
}

static gboolean
make_in_context (gpointer task)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  Wait *wait = g_task_get_task_data (task);
  GTorchBatch *batch =
      gtorch_data_loader_iter_make_local (self, wait->indices, g_task_get_cancellable (task));

  end_local (task, g_steal_pointer (&wait->indices), batch);
  return G_SOURCE_REMOVE;
}

static void
make_alone (GTask *task)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  Wait *wait = g_task_get_task_data (task);
  g_autoptr (GTask) inner = NULL;
  GTorchMaking *making;

  if (self->making != NULL)
    {
      wait_for_making (task);
      return;
    }
  if (!gtorch_data_loader_iter_prepare_local (self, &wait->indices))
    {
      end_local (task, NULL, NULL);
      return;
    }
  if (!gtorch_dataset_get_thread_safe (self->loader->dataset))
    {
      wait->wake = attach (task, g_idle_source_new (), make_in_context);
      return;
    }
  making = self->making = g_new0 (GTorchMaking, 1);
  making->ref_count = 2;
  making->iter = self;
  making->indices = g_steal_pointer (&wait->indices);
  making->cancellable = g_cancellable_new ();
  g_mutex_init (&making->lock);
  g_cond_init (&making->cond);
  self->loader->n_making++;
  /* The thread drops its reference to the task late, so that has none to the iterator: the callback has. */
  inner = g_task_new (NULL, NULL, on_made, g_object_ref (self));
  g_task_set_source_tag (inner, make_alone);
  g_task_set_task_data (inner, making, (GDestroyNotify) gtorch_making_unref);
  wait_for_making (task);
  g_task_run_in_thread (inner, make_in_thread);
}

/**
 * gtorch_data_loader_iter_next_async:
 * @self: an iterator
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the batch is there
 * @user_data: data for @callback
 *
 * Gets the next batch without blocking the main loop. One call at a time: another one meanwhile fails with
 * %G_IO_ERROR_PENDING.
 *
 * Without workers a thread makes the batch, or, if several threads cannot use the data set, the main loop
 * itself does. Cancelling ends the call at once; a data set that does not look at
 * its cancellable goes on to the end of its sample meanwhile. The next call gives the batch.
 *
 * Since: 0.1
 */
void
gtorch_data_loader_iter_next_async (GTorchDataLoaderIter *self, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task;
  Wait *wait;
  GError *error = NULL;

  g_return_if_fail (GTORCH_IS_DATA_LOADER_ITER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (self, gtorch_data_loader_iter_next_async, cancellable, callback, user_data);
  /* A batch that has come is given even if the call is cancelled after that. */
  g_task_set_check_cancellable (task, FALSE);
  wait = g_new0 (Wait, 1);
  g_task_set_task_data (task, wait, wait_free);
  if (gtorch_data_loader_iter_begin_next (self, &error))
    {
      if (!g_cancellable_set_error_if_cancelled (cancellable, &error))
        {
          g_clear_pointer (&self->context, g_main_context_unref);
          self->context = g_main_context_ref (g_task_get_context (task));
          g_atomic_int_set (&self->is_pending, TRUE);
        }
      gtorch_data_loader_iter_end_next (self);
    }
  if (error != NULL)
    {
      g_task_return_error (task, error);
      g_object_unref (task);
      return;
    }
  wait->range = gtorch_trace_wait_begin (gtorch_data_loader_iter_wait_name (self));
  if (gtorch_data_loader_iter_is_over (self))
    end_wait (task, NULL, NULL);
  else if (self->pass != NULL)
    wait_for_workers (task);
  else
    make_alone (task);
}

/**
 * gtorch_data_loader_iter_next_finish:
 * @self: an iterator
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@DataLoaderIter.next_async].
 *
 * Returns: (transfer full) (nullable): the same as [method@DataLoaderIter.next]
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_data_loader_iter_next_finish (GTorchDataLoaderIter *self, GAsyncResult *result,
                                     GError **error)
{
  GTorchBatch *batch;

  g_return_val_if_fail (GTORCH_IS_DATA_LOADER_ITER (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_data_loader_iter_next_async, error))
    return NULL;
  batch = g_task_propagate_pointer (G_TASK (result), error);
  return batch != NULL ? gtorch_batch_take (batch, error) : NULL;
}
