/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-data-loader-iter.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-task-private.h"
#include "data/gtorch-loader-private.h"

/**
 * GTorchDataLoaderIter:
 *
 * The batches of one epoch of a [class@DataLoader], one after another.
 *
 * [method@DataLoaderIter.next] waits for a batch, and [method@DataLoaderIter.next_async] does not block
 * the main loop meanwhile. Cancelling either ends the wait: the batch is given by the next call.
 * [method@DataLoaderIter.close], or dropping the last reference, ends the epoch: the work of the workers
 * is cancelled, and they are waited for until each of them is done with the sample that it is at.
 *
 * One thread at a time uses an iterator. Several can read the same loader.
 *
 * Since: 0.1
 */
struct _GTorchDataLoaderIter
{
  GObject parent_instance;
  GTorchDataLoader *loader;
  GTorchPassStart start;
  GTorchWorkers *workers; /* own ones; NULL: those of the loader, or none */
  GTorchPass *pass;       /* NULL: without workers, or closed */
  gint64 position;
  guint64 n_pushed,
      next;          /* numbers of batches: that is given to workers next, that is expected next */
  guint n_waiting;   /* batches that workers were asked for, and that were not taken */
  guint n_discarded; /* of an iterable data set: batches that were handed out before */
  gboolean *is_over; /* of an iterable data set: which workers have no more */
  GTorchSize *kept;  /* the indices of a batch whose making was cancelled; may be NULL */
  GError *order_error; /* the sampler failed: reported after the batches before it */
  gboolean is_drained; /* the sampler has no more indices */
  gboolean is_local_begun, is_closed, is_pending;
  GSource *wake; /* wakes who waits for workers; not owned */
};

G_DEFINE_TYPE (GTorchDataLoaderIter, gtorch_data_loader_iter, G_TYPE_OBJECT)

static guint
n_workers (GTorchDataLoaderIter *self)
{
  return self->loader->num_workers;
}

static void
gtorch_data_loader_iter_dispose (GObject *object)
{
  gtorch_data_loader_iter_close (GTORCH_DATA_LOADER_ITER (object));
  G_OBJECT_CLASS (gtorch_data_loader_iter_parent_class)->dispose (object);
}

static void
gtorch_data_loader_iter_finalize (GObject *object)
{
  GTorchDataLoaderIter *self = GTORCH_DATA_LOADER_ITER (object);

  g_clear_object (&self->loader);
  gtorch_pass_start_clear (&self->start);
  g_clear_pointer (&self->kept, gtorch_size_unref);
  g_clear_error (&self->order_error);
  g_free (self->is_over);
  G_OBJECT_CLASS (gtorch_data_loader_iter_parent_class)->finalize (object);
}

typedef GTorchDataLoaderIter Self;

static const GTorchField fields[] = {
  /**
   * GTorchDataLoaderIter:loader: (getter get_loader)
   *
   * The loader.
   *
   * Since: 0.1
   */
  { "loader", GTORCH_PROPERTY_OBJECT (GTorchDataLoader, gtorch_data_loader_get_type,
                                      gtorch_data_loader_iter_get_loader, NULL) },
  /**
   * GTorchDataLoaderIter:epoch:
   *
   * Which epoch it is, from 0.
   *
   * Since: 0.1
   */
  { "epoch", GTORCH_PROPERTY_UINT64 (gtorch_data_loader_iter_get_epoch, NULL) },
  /**
   * GTorchDataLoaderIter:position:
   *
   * How many batches of it were given; those that were given before it was resumed count.
   *
   * Since: 0.1
   */
  { "position", GTORCH_PROPERTY_INT64 (gtorch_data_loader_iter_get_position, NULL) },
  /**
   * GTorchDataLoaderIter:length:
   *
   * How many batches it has; -1 if that is not known.
   *
   * Since: 0.1
   */
  { "length", GTORCH_PROPERTY_INT64 (gtorch_data_loader_iter_get_length, NULL), .value = -1 },
  /**
   * GTorchDataLoaderIter:progress:
   *
   * The part of its batches that was given, from 0 to 1; 0 if the length is not known.
   *
   * Since: 0.1
   */
  { "progress", GTORCH_PROPERTY_DOUBLE (gtorch_data_loader_iter_get_progress, NULL) },
};

static void
gtorch_data_loader_iter_class_init (GTorchDataLoaderIterClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = gtorch_data_loader_iter_dispose;
  G_OBJECT_CLASS (klass)->finalize = gtorch_data_loader_iter_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_data_loader_iter_init (GTorchDataLoaderIter *self)
{
  self->start.length = -1;
  self->is_closed = TRUE;
}

/* --- asking for batches --- */

/* Which worker makes a batch; FALSE if none has more. */
static gboolean
choose_worker (GTorchDataLoaderIter *self, const GTorchBatchPlan *plan, guint *worker)
{
  const guint n = n_workers (self);
  guint i;

  *worker = GTORCH_ANY_WORKER;
  if (self->is_over == NULL)
    {
      if (self->loader->in_order && gtorch_fetcher_get_fixed_workers (plan->fetcher))
        *worker = self->n_pushed % n;
      return TRUE;
    }
  for (i = 0; i < n; i++)
    if (!self->is_over[(self->n_pushed + i) % n])
      {
        *worker = (self->n_pushed + i) % n;
        return TRUE;
      }
  return FALSE;
}

static gboolean
was_handed_out (GTorchDataLoaderIter *self, guint64 number)
{
  const GArray *skipped = self->start.skipped;
  guint i;

  for (i = 0; skipped != NULL && i < skipped->len; i++)
    if ((guint64) g_array_index (skipped, gint64, i) == number)
      return TRUE;
  return FALSE;
}

/* Returns the indices of the next batch; NULL at the end, which may be an error of the sampler. */
static GTorchSize *
next_indices (GTorchDataLoaderIter *self)
{
  GTorchSize *indices;

  if (self->is_drained)
    return NULL;
  while ((indices = gtorch_index_source_next (self->start.source, 1, &self->order_error)) != NULL
         && was_handed_out (self, self->n_pushed))
    {
      gtorch_size_unref (indices);
      self->n_pushed++;
    }
  self->is_drained = indices == NULL;
  return indices;
}

/* Gives the workers as much work as they may have. */
static void
refill (GTorchDataLoaderIter *self)
{
  const GTorchBatchPlan *plan =
      gtorch_workers_get_plan (self->workers != NULL ? self->workers : self->start.workers);
  const gint factor = self->loader->prefetch_factor;
  const guint limit = n_workers (self) * (factor > 0 ? (guint) factor : 2);
  guint worker;

  while (self->n_waiting < limit && choose_worker (self, plan, &worker))
    {
      g_autoptr (GTorchSize) indices = NULL;

      if (self->start.source != NULL && (indices = next_indices (self)) == NULL)
        return;
      gtorch_pass_push (self->pass, self->n_pushed++, worker, indices);
      self->n_waiting++;
    }
}

/* The number of the batch that is expected next. */
static guint64
find_number (GTorchDataLoaderIter *self)
{
  while (was_handed_out (self, self->next))
    self->next++;
  return self->next;
}

/* Notes that a batch has come. FALSE if it is not one to hand out. */
static gboolean
note_batch (GTorchDataLoaderIter *self, GTorchBatch *batch)
{
  self->n_waiting--;
  self->next++;
  if (batch->is_end)
    {
      self->is_over[batch->worker] = TRUE;
      return FALSE;
    }
  if (self->n_discarded > 0)
    {
      self->n_discarded--;
      return batch->error != NULL;
    }
  return TRUE;
}

static void
count (GTorchDataLoaderIter *self, guint64 number)
{
  if (self->is_over != NULL || self->start.source == NULL)
    number = self->position;
  self->position++;
  gtorch_data_loader_count (self->loader, self->start.serial, number);
  g_object_notify (G_OBJECT (self), "position");
  g_object_notify (G_OBJECT (self), "progress");
}

/* The end: returns the error of the sampler, if there is one. */
static void
finish (GTorchDataLoaderIter *self, GError **error)
{
  if (self->order_error != NULL)
    g_propagate_error (error, g_steal_pointer (&self->order_error));
  else
    gtorch_data_loader_finish_pass (self->loader, self->start.serial);
  gtorch_data_loader_iter_close (self);
}

/* --- without workers --- */

static gboolean
begin_local (GTorchDataLoaderIter *self, GCancellable *cancellable, GError **error)
{
  if (!self->is_local_begun
      && !gtorch_fetcher_begin (self->start.plan.fetcher, 0, 1, self->start.seed, cancellable,
                                error))
    return FALSE;
  self->is_local_begun = TRUE;
  return TRUE;
}

/* Makes the next batch; NULL at the end. indices are those of next_indices (), or NULL for an iterable
 * data set. */
static GTorchBatch *
make_local (GTorchDataLoaderIter *self, GTorchSize *indices, GCancellable *cancellable)
{
  GTorchBatch *batch;
  GError *local = NULL;

  if (!begin_local (self, cancellable, &local))
    {
      batch = g_new0 (GTorchBatch, 1);
      batch->error = local;
      return batch;
    }
  for (;;)
    {
      batch = gtorch_batch_make (&self->start.plan, 0, indices, cancellable);
      if (batch->is_end)
        {
          gtorch_batch_free (batch);
          return NULL;
        }
      if (self->n_discarded == 0 || batch->error != NULL)
        return batch;
      self->n_discarded--;
      gtorch_batch_free (batch);
    }
}

/* The indices for make_local (). FALSE at the end. */
static gboolean
prepare_local (GTorchDataLoaderIter *self, GTorchSize **indices)
{
  *indices = g_steal_pointer (&self->kept);
  if (*indices != NULL || self->start.source == NULL)
    return TRUE;
  *indices = next_indices (self);
  return *indices != NULL;
}

/* Takes the indices, and the batch, which is NULL at the end. A batch that is not made because its caller
 * does not want it any longer is made by the next call. */
static GTorchSample *
take_local (GTorchDataLoaderIter *self, GTorchSize *indices, GTorchBatch *batch,
            GCancellable *cancellable, GError **error)
{
  if (batch == NULL)
    finish (self, error);
  else if (g_cancellable_is_cancelled (cancellable)
           && g_error_matches (batch->error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    self->kept = g_steal_pointer (&indices);
  else
    count (self, self->n_pushed++);
  g_clear_pointer (&indices, gtorch_size_unref);
  return batch != NULL ? gtorch_batch_take (batch, error) : NULL;
}

/* --- the next batch --- */

static gboolean
begin_next (GTorchDataLoaderIter *self, GError **error)
{
  if (!self->is_pending)
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_PENDING,
               _ ("data_loader: a batch of this iterator is being waited for already"));
  return FALSE;
}

/**
 * gtorch_data_loader_iter_next:
 * @self: an iterator
 * @cancellable: (nullable): cancels the wait
 * @error: return location for an error
 *
 * Waits for the next batch.
 *
 * Returns: (transfer full) (nullable): the batch; %NULL without an error at the end, or after
 *   [method@DataLoaderIter.close]; %NULL with @error set: %G_IO_ERROR_CANCELLED, %G_IO_ERROR_TIMED_OUT,
 *   %G_IO_ERROR_PENDING during [method@DataLoaderIter.next_async], or an error of the data set, the
 *   sampler or the collate function
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_data_loader_iter_next (GTorchDataLoaderIter *self, GCancellable *cancellable, GError **error)
{
  GTorchBatch *batch = NULL;

  g_return_val_if_fail (GTORCH_IS_DATA_LOADER_ITER (self), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!begin_next (self, error) || g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  if (self->is_closed)
    return NULL;
  if (self->pass == NULL)
    {
      GTorchSize *indices = NULL;

      if (prepare_local (self, &indices))
        batch = make_local (self, indices, cancellable);
      return take_local (self, indices, batch, cancellable, error);
    }
  do
    {
      g_clear_pointer (&batch, gtorch_batch_free);
      refill (self);
      if (self->n_waiting == 0)
        {
          finish (self, error);
          return NULL;
        }
      batch = gtorch_pass_wait (self->pass, find_number (self), self->loader->timeout, cancellable,
                                error);
      if (batch == NULL)
        return NULL;
    }
  while (!note_batch (self, batch));
  refill (self);
  count (self, batch->number);
  return gtorch_batch_take (batch, error);
}

/**
 * gtorch_data_loader_iter_next_value:
 * @self: an iterator
 * @error: return location for an error
 *
 * Does the same as [method@DataLoaderIter.next] without a cancellable. Vala calls it for `foreach`.
 *
 * Returns: (transfer full) (nullable): the batch, %NULL without an error at the end, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_data_loader_iter_next_value (GTorchDataLoaderIter *self, GError **error)
{
  return gtorch_data_loader_iter_next (self, NULL, error);
}

/* --- without blocking the main loop --- */

/* The sources are in the context of the caller: a worker, the cancellable and the time wake it there. */
typedef struct
{
  GSource *wake, *cancel, *time;
  GTorchSize *indices; /* without workers */
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
  self->is_pending = FALSE;
  self->wake = NULL;
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
      if (self->is_closed)
        {
          end_wait (task, NULL, NULL);
          return;
        }
      refill (self);
      if (self->n_waiting == 0)
        {
          finish (self, &error);
          end_wait (task, NULL, error);
          return;
        }
      batch = gtorch_pass_poll (self->pass, find_number (self), wait->wake);
      if (batch == NULL)
        return;
      if (note_batch (self, batch))
        break;
      gtorch_batch_free (batch);
    }
  refill (self);
  count (self, batch->number);
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

static void
end_fetcher (GTorchDataLoaderIter *self)
{
  if (self->is_local_begun)
    gtorch_fetcher_end (self->start.plan.fetcher, 0);
  self->is_local_begun = FALSE;
}

static void
end_local (GTask *task, GTorchBatch *batch)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  Wait *wait = g_task_get_task_data (task);
  GError *error = NULL;

  if (self->is_closed)
    g_clear_pointer (&batch, gtorch_batch_free);
  else if (batch == NULL)
    finish (self, &error);
  else if (g_cancellable_is_cancelled (g_task_get_cancellable (task))
           && g_error_matches (batch->error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    self->kept = g_steal_pointer (&wait->indices);
  else
    count (self, self->n_pushed++);
  if (self->is_closed)
    end_fetcher (self);
  end_wait (task, batch, error);
}

/* The thread drops its reference to the inner task late, so that has none to the iterator: the outer one
 * has it. */
static void
make_in_thread (GTask *inner, gpointer source, gpointer data, GCancellable *cancellable)
{
  GTask *task = data;
  Wait *wait = g_task_get_task_data (task);

  g_task_return_pointer (inner,
                         make_local (g_task_get_source_object (task), wait->indices, cancellable),
                         free_batch);
}

static void
on_made (GObject *source, GAsyncResult *result, gpointer task)
{
  end_local (task, g_task_propagate_pointer (G_TASK (result), NULL));
}

static gboolean
make_in_context (gpointer task)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  Wait *wait = g_task_get_task_data (task);

  end_local (task, make_local (self, wait->indices, g_task_get_cancellable (task)));
  return G_SOURCE_REMOVE;
}

static void
make_alone (GTask *task)
{
  GTorchDataLoaderIter *self = g_task_get_source_object (task);
  Wait *wait = g_task_get_task_data (task);
  g_autoptr (GTask) inner = NULL;

  if (!prepare_local (self, &wait->indices))
    {
      end_local (task, NULL);
      return;
    }
  if (!gtorch_dataset_get_thread_safe (self->loader->dataset))
    {
      wait->wake = attach (task, g_idle_source_new (), make_in_context);
      return;
    }
  inner = g_task_new (NULL, g_task_get_cancellable (task), on_made, task);
  g_task_set_source_tag (inner, make_alone);
  g_task_set_check_cancellable (inner, FALSE);
  g_task_set_task_data (inner, task, NULL);
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
 * itself does.
 *
 * Since: 0.1
 */
void
gtorch_data_loader_iter_next_async (GTorchDataLoaderIter *self, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task;
  GError *error = NULL;

  g_return_if_fail (GTORCH_IS_DATA_LOADER_ITER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task =
      gtorch_task_new (self, gtorch_data_loader_iter_next_async, cancellable, callback, user_data);
  /* A batch that has come is given even if the call is cancelled after that. */
  g_task_set_check_cancellable (task, FALSE);
  g_task_set_task_data (task, g_new0 (Wait, 1), wait_free);
  if (!begin_next (self, &error) || g_cancellable_set_error_if_cancelled (cancellable, &error))
    {
      g_task_return_error (task, error);
      g_object_unref (task);
      return;
    }
  self->is_pending = TRUE;
  if (self->is_closed)
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

/* --- the iterator --- */

GTorchDataLoaderIter *
gtorch_data_loader_iter_new (GTorchDataLoader *loader, GTorchPassStart *start, GError **error)
{
  g_autoptr (GTorchDataLoaderIter) self = g_object_new (GTORCH_TYPE_DATA_LOADER_ITER, NULL);
  const gboolean is_iterable = start->source == NULL;

  self->loader = g_object_ref (loader);
  self->start = *start;
  *start = (GTorchPassStart){ 0 };
  self->position =
      (gint64) self->start.n_skipped + (self->start.skipped != NULL ? self->start.skipped->len : 0);
  if (is_iterable)
    self->n_discarded = self->position;
  else
    self->n_pushed = self->next = self->start.n_skipped;
  if (loader->num_workers > 0)
    {
      GTorchWorkers *workers = self->start.workers;

      if (workers == NULL)
        {
          workers = self->workers =
              gtorch_workers_new (loader->num_workers, &self->start.plan, error);
          if (workers == NULL)
            return NULL;
        }
      if (is_iterable)
        self->is_over = g_new0 (gboolean, loader->num_workers);
      self->pass = gtorch_pass_new (workers, self->start.seed, loader->in_order);
    }
  self->is_closed = FALSE;
  if (self->pass != NULL)
    refill (self);
  return g_steal_pointer (&self);
}

/**
 * gtorch_data_loader_iterate:
 * @self: a loader
 * @error: return location for an error
 *
 * Begins an epoch, and starts the workers.
 *
 * Returns: (transfer full): an iterator of its batches; %NULL with the errors of
 *   [method@DataLoader.check], of the sampler, of pinned memory or of the device, or with the system's if
 *   a worker cannot be started
 *
 * Since: 0.1
 */
GTorchDataLoaderIter *
gtorch_data_loader_iterate (GTorchDataLoader *self, GError **error)
{
  GTorchDataLoaderIter *iter = NULL;
  GTorchPassStart start;

  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (self), NULL);
  if (gtorch_data_loader_begin (self, &start, error))
    iter = gtorch_data_loader_iter_new (self, &start, error);
  gtorch_pass_start_clear (&start);
  return iter;
}

/**
 * gtorch_data_loader_iter_get_loader: (get-property loader)
 * @self: an iterator
 *
 * Gets the loader.
 *
 * Returns: (transfer none): the loader
 *
 * Since: 0.1
 */
GTorchDataLoader *
gtorch_data_loader_iter_get_loader (GTorchDataLoaderIter *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER_ITER (self), NULL);
  return self->loader;
}

/**
 * gtorch_data_loader_iter_get_epoch: (get-property epoch)
 * @self: an iterator
 *
 * Tells which epoch it is.
 *
 * Returns: the number of the epoch, from 0
 *
 * Since: 0.1
 */
guint64
gtorch_data_loader_iter_get_epoch (GTorchDataLoaderIter *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER_ITER (self), 0);
  return self->start.epoch;
}

/**
 * gtorch_data_loader_iter_get_position: (get-property position)
 * @self: an iterator
 *
 * Counts the batches of the epoch that were given, those before it was resumed included.
 *
 * Returns: the number of batches
 *
 * Since: 0.1
 */
gint64
gtorch_data_loader_iter_get_position (GTorchDataLoaderIter *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER_ITER (self), 0);
  return self->position;
}

/**
 * gtorch_data_loader_iter_get_length: (get-property length)
 * @self: an iterator
 *
 * Counts the batches of the epoch.
 *
 * Returns: the number of batches, or -1 if it is not known
 *
 * Since: 0.1
 */
gint64
gtorch_data_loader_iter_get_length (GTorchDataLoaderIter *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER_ITER (self), -1);
  return self->start.length;
}

/**
 * gtorch_data_loader_iter_get_progress: (get-property progress)
 * @self: an iterator
 *
 * Tells which part of the batches was given.
 *
 * Returns: a number from 0 to 1; 0 if the length is not known
 *
 * Since: 0.1
 */
gdouble
gtorch_data_loader_iter_get_progress (GTorchDataLoaderIter *self)
{
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER_ITER (self), 0);
  if (self->start.length <= 0)
    return 0;
  return MIN (1, (gdouble) self->position / (gdouble) self->start.length);
}

/**
 * gtorch_data_loader_iter_close:
 * @self: an iterator
 *
 * Ends the epoch. Batches that were made in advance are dropped, the work of the workers is cancelled,
 * and they are waited for; a data set that blocks and does not look at its cancellable is left to its
 * thread after 10 seconds.
 *
 * [method@DataLoaderIter.next] gives %NULL afterwards. At the end of an epoch, and with the last
 * reference, this is done, too.
 *
 * Since: 0.1
 */
void
gtorch_data_loader_iter_close (GTorchDataLoaderIter *self)
{
  g_return_if_fail (GTORCH_IS_DATA_LOADER_ITER (self));
  self->is_closed = TRUE;
  g_clear_pointer (&self->pass, gtorch_pass_close);
  g_clear_pointer (&self->workers, gtorch_workers_close);
  if (self->wake != NULL)
    g_source_set_ready_time (self->wake, 0);
  else if (!self->is_pending) /* or the thread that makes a batch is at it */
    end_fetcher (self);
}
