/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-data-loader-iter.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "data/gtorch-data-loader-iter-private.h"
#include "profiler/gtorch-profiler-private.h"

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
 * One thread at a time uses an iterator: what another one asks for meanwhile fails with
 * %G_IO_ERROR_PENDING. Several threads can read the same loader, each with an iterator of its own.
 *
 * Since: 0.1
 */

G_DEFINE_TYPE (GTorchDataLoaderIter, gtorch_data_loader_iter, G_TYPE_OBJECT)

static guint
n_workers (GTorchDataLoaderIter *self)
{
  return self->loader->num_workers;
}

static void
gtorch_data_loader_iter_dispose (GObject *object)
{
  GTorchDataLoaderIter *self = GTORCH_DATA_LOADER_ITER (object);

  if (self->is_local_begun && !self->is_pending && self->making == NULL)
    {
      gtorch_fetcher_drop (self->start.plan.fetcher, 0);
      self->is_local_begun = FALSE;
    }
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
  g_clear_pointer (&self->context, g_main_context_unref);
  g_mutex_clear (&self->lock);
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
  g_mutex_init (&self->lock);
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
void
gtorch_data_loader_iter_refill (GTorchDataLoaderIter *self)
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
guint64
gtorch_data_loader_iter_find_number (GTorchDataLoaderIter *self)
{
  while (was_handed_out (self, self->next))
    self->next++;
  return self->next;
}

/* Notes that a batch has come. FALSE if it is not one to hand out. */
gboolean
gtorch_data_loader_iter_note_batch (GTorchDataLoaderIter *self, GTorchBatch *batch)
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

void
gtorch_data_loader_iter_count (GTorchDataLoaderIter *self, guint64 number)
{
  if (self->is_over != NULL || self->start.source == NULL)
    number = self->position;
  self->position++;
  gtorch_data_loader_count (self->loader, self->start.serial, number);
  g_object_notify (G_OBJECT (self), "position");
  g_object_notify (G_OBJECT (self), "progress");
}

/* Drops a batch that is made. */
static void
drop_made (GTorchDataLoaderIter *self)
{
  gboolean is_done;

  g_mutex_lock (&self->making->lock);
  is_done = self->making->is_done;
  g_mutex_unlock (&self->making->lock);
  if (is_done && self->waiter == NULL)
    {
      g_mutex_lock (&self->lock);
      g_clear_pointer (&self->making, gtorch_making_unref);
      g_mutex_unlock (&self->lock);
      self->loader->n_making--;
    }
}

static void
close_now (GTorchDataLoaderIter *self)
{
  GTorchPass *pass;

  g_mutex_lock (&self->lock);
  pass = g_steal_pointer (&self->pass);
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&pass, gtorch_pass_close);
  g_clear_pointer (&self->workers, gtorch_workers_close);
  if (self->making != NULL) /* a thread is at it, or has a batch that nobody has taken */
    {
      g_cancellable_cancel (self->making->cancellable);
      drop_made (self);
    }
  g_atomic_int_set (&self->is_closed,
                    TRUE); /* what is above comes before it for other threads, too */
  if (self->wake != NULL)
    g_source_set_ready_time (self->wake, 0);
  else if (!g_atomic_int_get (&self->is_pending) && self->making == NULL)
    gtorch_data_loader_iter_end_fetcher (self);
}

/* The end: returns the error of the sampler, if there is one. */
void
gtorch_data_loader_iter_finish (GTorchDataLoaderIter *self, GError **error)
{
  if (self->order_error != NULL)
    g_propagate_error (error, g_steal_pointer (&self->order_error));
  else
    gtorch_data_loader_finish_pass (self->loader, self->start.serial);
  close_now (self);
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

void
gtorch_data_loader_iter_end_fetcher (GTorchDataLoaderIter *self)
{
  if (self->is_local_begun)
    gtorch_fetcher_end (self->start.plan.fetcher, 0);
  self->is_local_begun = FALSE;
}

/* Makes the next batch; NULL at the end. indices are those of next_indices (), or NULL for an iterable
 * data set. */
GTorchBatch *
gtorch_data_loader_iter_make_local (GTorchDataLoaderIter *self, GTorchSize *indices,
                                    GCancellable *cancellable)
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

/* The indices for gtorch_data_loader_iter_make_local (). FALSE at the end. */
gboolean
gtorch_data_loader_iter_prepare_local (GTorchDataLoaderIter *self, GTorchSize **indices)
{
  *indices = g_steal_pointer (&self->kept);
  if (*indices != NULL || self->start.source == NULL)
    return TRUE;
  *indices = next_indices (self);
  return *indices != NULL;
}

/* Whether its caller did not want the batch any longer before it was made. */
gboolean
gtorch_batch_was_given_up (const GTorchBatch *batch)
{
  return batch != NULL && g_error_matches (batch->error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* Takes the indices, and the batch, which is NULL at the end. A batch that is not made because its caller
 * does not want it any longer is made by the next call. */
static GTorchSample *
take_local (GTorchDataLoaderIter *self, GTorchSize *indices, GTorchBatch *batch,
            GCancellable *cancellable, GError **error)
{
  if (batch == NULL)
    gtorch_data_loader_iter_finish (self, error);
  else if (g_cancellable_is_cancelled (cancellable) && gtorch_batch_was_given_up (batch))
    self->kept = g_steal_pointer (&indices);
  else
    gtorch_data_loader_iter_count (self, self->n_pushed++);
  g_clear_pointer (&indices, gtorch_size_unref);
  return batch != NULL ? gtorch_batch_take (batch, error) : NULL;
}

void
gtorch_making_unref (GTorchMaking *making)
{
  if (!g_atomic_int_dec_and_test (&making->ref_count))
    return;
  g_clear_pointer (&making->indices, gtorch_size_unref);
  g_clear_pointer (&making->batch, gtorch_batch_free);
  g_object_unref (making->cancellable);
  g_mutex_clear (&making->lock);
  g_cond_clear (&making->cond);
  g_free (making);
}

/* Takes what the thread has made, which is done. */
GTorchBatch *
gtorch_data_loader_iter_take_made (GTorchDataLoaderIter *self, GTorchSize **indices)
{
  GTorchMaking *making;
  GTorchBatch *batch;

  g_mutex_lock (&self->lock);
  making = g_steal_pointer (&self->making);
  g_mutex_unlock (&self->lock);
  g_mutex_lock (&making->lock);
  batch = g_steal_pointer (&making->batch);
  *indices = g_steal_pointer (&making->indices);
  g_mutex_unlock (&making->lock);
  gtorch_making_unref (making);
  self->loader->n_making--;
  return batch;
}

static void
on_making_cancelled (GCancellable *cancellable, gpointer data)
{
  GTorchMaking *making = data;

  g_mutex_lock (&making->lock);
  g_cond_broadcast (&making->cond);
  g_mutex_unlock (&making->lock);
}

/* Waits for the thread that makes the batch of a call that was cancelled. */
static gboolean
wait_for_made (GTorchDataLoaderIter *self, GCancellable *cancellable, GError **error)
{
  GTorchMaking *making = self->making;
  gulong id = 0;
  gboolean is_done;

  if (cancellable != NULL)
    id = g_cancellable_connect (cancellable, G_CALLBACK (on_making_cancelled), making, NULL);
  g_mutex_lock (&making->lock);
  while (!making->is_done && !g_cancellable_is_cancelled (cancellable)
         && !g_atomic_int_get (&self->must_close))
    g_cond_wait (&making->cond, &making->lock);
  is_done = making->is_done;
  g_mutex_unlock (&making->lock);
  g_cancellable_disconnect (cancellable, id);
  if (!is_done)
    g_cancellable_set_error_if_cancelled (cancellable, error);
  return is_done;
}

/* --- the next batch --- */

/* One call at a time: of two threads, the second gets an error here, as during an asynchronous call. */
gboolean
gtorch_data_loader_iter_begin_next (GTorchDataLoaderIter *self, GError **error)
{
  gboolean is_free;

  g_mutex_lock (&self->lock);
  is_free = self->owner == NULL && !g_atomic_int_get (&self->is_pending);
  if (is_free)
    self->owner = g_thread_self ();
  g_mutex_unlock (&self->lock);
  if (!is_free)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_PENDING,
                 _ ("data_loader: a batch of this iterator is being waited for already"));
  return is_free;
}

gboolean
gtorch_data_loader_iter_is_over (GTorchDataLoaderIter *self)
{
  return g_atomic_int_get (&self->is_closed) || g_atomic_int_get (&self->is_closing);
}

void
gtorch_data_loader_iter_end_next (GTorchDataLoaderIter *self)
{
  gboolean must_close;

  do
    {
      g_mutex_lock (&self->lock);
      must_close = g_atomic_int_compare_and_exchange (&self->must_close, TRUE, FALSE);
      if (!must_close)
        self->owner = NULL;
      g_mutex_unlock (&self->lock);
      if (must_close)
        close_now (self);
    }
  while (must_close);
}

static GTorchSample *
wait_for_next (GTorchDataLoaderIter *self, GCancellable *cancellable, GError **error)
{
  GTorchBatch *batch = NULL;

  if (g_cancellable_set_error_if_cancelled (cancellable, error)
      || gtorch_data_loader_iter_is_over (self))
    return NULL;
  if (self->pass == NULL)
    {
      GTorchSize *indices = NULL;

      if (self->making != NULL)
        {
          if (!wait_for_made (self, cancellable, error))
            return NULL;
          batch = gtorch_data_loader_iter_take_made (self, &indices);
          if (!gtorch_batch_was_given_up (batch))
            return take_local (self, indices, batch, NULL, error);
          g_clear_pointer (&batch, gtorch_batch_free);
          self->kept = indices;
        }
      if (gtorch_data_loader_iter_prepare_local (self, &indices))
        batch = gtorch_data_loader_iter_make_local (self, indices, cancellable);
      return take_local (self, indices, batch, cancellable, error);
    }
  do
    {
      g_clear_pointer (&batch, gtorch_batch_free);
      gtorch_data_loader_iter_refill (self);
      if (self->n_waiting == 0)
        {
          gtorch_data_loader_iter_finish (self, error);
          return NULL;
        }
      batch = gtorch_pass_wait (self->pass, gtorch_data_loader_iter_find_number (self),
                                self->loader->timeout, cancellable, error);
      if (batch == NULL)
        return NULL;
    }
  while (!gtorch_data_loader_iter_note_batch (self, batch));
  gtorch_data_loader_iter_refill (self);
  gtorch_data_loader_iter_count (self, batch->number);
  return gtorch_batch_take (batch, error);
}

#define WAIT_RANGE(kind) "enumerate(DataLoader)#_" kind "DataLoaderIter.__next__"

const gchar *
gtorch_data_loader_iter_wait_name (GTorchDataLoaderIter *self)
{
  const gboolean has_workers = self->loader != NULL && self->loader->num_workers > 0;

  return has_workers ? WAIT_RANGE ("MultiProcessing") : WAIT_RANGE ("SingleProcess");
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
 *   %G_IO_ERROR_PENDING during another call, also of another thread, or an error of the data set, the
 *   sampler or the collate function
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_data_loader_iter_next (GTorchDataLoaderIter *self, GCancellable *cancellable, GError **error)
{
  g_auto (GTorchProfileScope) scope = { 0 };
  GTorchSample *batch;

  g_return_val_if_fail (GTORCH_IS_DATA_LOADER_ITER (self), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!gtorch_data_loader_iter_begin_next (self, error))
    return NULL;
  scope = gtorch_profile_scope_begin (gtorch_data_loader_iter_wait_name (self), self);
  batch = wait_for_next (self, cancellable, error);
  gtorch_data_loader_iter_end_next (self);
  return batch;
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
    self->n_discarded = self->start.is_dataset_set ? 0 : self->position;
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
    gtorch_data_loader_iter_refill (self);
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

/* With the lock held: wakes the thread that waits for a batch, which closes the iterator. */
static void
interrupt (GTorchDataLoaderIter *self)
{
  g_atomic_int_set (&self->must_close, TRUE);
  if (self->pass != NULL)
    gtorch_pass_interrupt (self->pass);
  if (self->making != NULL)
    on_making_cancelled (NULL, self->making);
}

static gboolean
on_close (gpointer iter)
{
  gtorch_data_loader_iter_close (iter);
  return G_SOURCE_REMOVE;
}

/* An asynchronous call waits in the main loop of another thread. */
static void
close_later (GTorchDataLoaderIter *self)
{
  g_autoptr (GSource) source = g_idle_source_new ();

  g_atomic_int_set (&self->is_closing, TRUE);
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, on_close, g_object_ref (self), g_object_unref);
  g_source_attach (source, self->context);
}

/**
 * gtorch_data_loader_iter_close:
 * @self: an iterator
 *
 * Ends the epoch. Batches that were made in advance are dropped, the work of the workers is cancelled,
 * and they are waited for; a data set that blocks and does not look at its cancellable is left to its
 * thread after 10 seconds.
 *
 * Another thread may call this while one waits for its batch: the wait ends without a batch, unless the
 * thread makes it itself, without workers, and then that thread closes the iterator.
 *
 * [method@DataLoaderIter.next] gives %NULL afterwards. At the end of an epoch, and with the last
 * reference, this is done, too.
 *
 * Since: 0.1
 */
void
gtorch_data_loader_iter_close (GTorchDataLoaderIter *self)
{
  gboolean is_mine, is_free;

  g_return_if_fail (GTORCH_IS_DATA_LOADER_ITER (self));
  g_mutex_lock (&self->lock);
  is_free = self->owner == NULL;
  is_mine = self->owner == g_thread_self (); /* a handler of a signal of the call */
  if (is_free)
    self->owner = g_thread_self ();
  else if (!is_mine)
    interrupt (self);
  g_mutex_unlock (&self->lock);
  if (!is_free && !is_mine)
    return;
  if (!g_atomic_int_get (&self->is_pending))
    close_now (self);
  else if (g_main_context_acquire (self->context))
    {
      close_now (self);
      g_main_context_release (self->context);
    }
  else
    close_later (self);
  if (is_free)
    gtorch_data_loader_iter_end_next (self);
}
