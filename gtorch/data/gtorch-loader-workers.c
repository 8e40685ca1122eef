/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The threads of a loader. They share a queue of jobs, each of which is one batch of one pass; a job may
 * be meant for one worker. Whoever reads the pass puts jobs there, so that samplers are called in its
 * thread alone, and takes the results. One lock protects all of it. Threads own a reference to the
 * workers, and jobs one to their pass: a data set that blocks for ever keeps its thread and what that
 * needs, and nobody who waits. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-wake-private.h"
#include "data/gtorch-loader-private.h"
#include "data/gtorch-sample-private.h"
#include "memory/gtorch-guard.h"
#include "stream/gtorch-event.h"
#include "stream/gtorch-stream.h"

/* How long the end of a loader waits for workers that are busy. */
#define CLOSE_LIMIT (10 * G_USEC_PER_SEC)

/* --- what batches are made by --- */

GTorchLoaderFunc *
gtorch_loader_func_new (GTorchWorkerInitFunc init, GTorchCollateFunc collate, gpointer user_data,
                        GDestroyNotify destroy)
{
  GTorchLoaderFunc *self = g_atomic_rc_box_new (GTorchLoaderFunc);

  *self = (GTorchLoaderFunc){ init, collate, user_data, destroy };
  return self;
}

static void
func_clear (gpointer func)
{
  GTorchLoaderFunc *self = func;

  if (self->destroy != NULL)
    self->destroy (self->user_data);
}

void
gtorch_loader_func_unref (gpointer self)
{
  g_atomic_rc_box_release_full (self, func_clear);
}

void
gtorch_batch_plan_clear (GTorchBatchPlan *self)
{
  g_clear_object (&self->fetcher);
  g_clear_pointer (&self->init, gtorch_loader_func_unref);
  g_clear_object (&self->device);
  g_clear_object (&self->stream);
}

/* --- batches --- */

void
gtorch_batch_free (GTorchBatch *self)
{
  g_clear_pointer (&self->sample, gtorch_sample_unref);
  g_clear_object (&self->copied);
  g_clear_error (&self->error);
  g_free (self);
}

static void
replace (GTorchBatch *self, GTorchSample *sample)
{
  g_clear_pointer (&self->sample, gtorch_sample_unref);
  self->sample = sample;
}

static void
copy_to_device (GTorchBatch *self, const GTorchBatchPlan *plan)
{
  g_autoptr (GTorchStreamGuard) guard =
      plan->stream != NULL ? gtorch_stream_guard_new (plan->stream) : NULL;

  replace (self, gtorch_sample_to_device (self->sample, plan->device, TRUE, &self->error));
  if (self->sample == NULL || plan->stream == NULL)
    return;
  self->device = plan->device;
  self->copied = gtorch_stream_record_event (plan->stream, &self->error);
  if (self->copied == NULL)
    replace (self, NULL);
}

GTorchBatch *
gtorch_batch_make (const GTorchBatchPlan *plan, guint worker, GTorchSize *indices,
                   GCancellable *cancellable)
{
  GTorchBatch *self = g_new0 (GTorchBatch, 1);
  const gboolean pinned = gtorch_sample_pin_batches (plan->pin);

  self->worker = worker;
  if (indices != NULL)
    self->sample = gtorch_fetcher_fetch (plan->fetcher, worker, indices, cancellable, &self->error);
  else
    self->sample = gtorch_fetcher_fetch_next (plan->fetcher, worker, plan->n_samples,
                                              plan->drop_last, cancellable, &self->error);
  self->is_end = self->sample == NULL && self->error == NULL;
  gtorch_sample_pin_batches (pinned);
  if (self->sample != NULL && plan->pin)
    replace (self, gtorch_sample_pin (self->sample, &self->error));
  if (self->sample != NULL && plan->device != NULL)
    copy_to_device (self, plan);
  return self;
}

GTorchSample *
gtorch_batch_take (GTorchBatch *self, GError **error)
{
  GTorchSample *sample = g_steal_pointer (&self->sample);

  if (self->error != NULL)
    g_propagate_error (error, g_steal_pointer (&self->error));
  else if (sample != NULL && self->copied != NULL)
    {
      g_autoptr (GPtrArray) tensors = gtorch_sample_get_tensors (sample);
      GTorchStream *stream = gtorch_stream_get_current (self->device);
      gboolean done = gtorch_stream_wait_event (stream, self->copied, error);
      guint i;

      for (i = 0; done && i < tensors->len; i++)
        done = gtorch_tensor_record_stream (tensors->pdata[i], stream, error);
      if (!done)
        g_clear_pointer (&sample, gtorch_sample_unref);
    }
  gtorch_batch_free (self);
  return sample;
}

/* --- workers --- */

struct _GTorchWorkers
{
  gint ref_count;
  GTorchBatchPlan plan;
  GMutex lock;
  GCond work;     /* there is a job, or is_closed */
  GCond progress; /* a job is done, or a worker has ended */
  GQueue jobs;
  GPtrArray *threads;
  guint n, n_alive;
  gboolean is_closed;
  GTorchPass *pass; /* the one that is being read; not owned */
};

struct _GTorchPass
{
  gint ref_count;
  GTorchWorkers *workers;
  GCancellable *cancellable;
  guint64 seed;
  gboolean in_order;
  /* under the lock of the workers */
  GQueue results; /* of GTorchBatch */
  GSource *wake;  /* who waits; may be NULL */
  guint n_running;
  gboolean is_closed, is_interrupted;
};

typedef struct
{
  GTorchPass *pass;
  guint64 number;
  guint worker;
  GTorchSize *indices; /* NULL: those of the worker's source */
} Job;

typedef struct
{
  GTorchWorkers *workers;
  guint id;
} Thread;

static void
workers_unref (GTorchWorkers *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  gtorch_batch_plan_clear (&self->plan);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->work);
  g_cond_clear (&self->progress);
  g_ptr_array_unref (self->threads);
  g_free (self);
}

static void
pass_unref (GTorchPass *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_queue_clear_full (&self->results, (GDestroyNotify) gtorch_batch_free);
  g_object_unref (self->cancellable);
  workers_unref (self->workers);
  g_free (self);
}

static void
job_free (Job *job)
{
  g_clear_pointer (&job->indices, gtorch_size_unref);
  pass_unref (job->pass);
  g_free (job);
}

/* What a worker knows between two jobs. */
typedef struct
{
  GTorchPass *pass; /* that it has begun */
  GTorchWorkerInfo *info;
  GError *error; /* of the beginning: every job of the pass fails with it */
  gboolean is_initialised;
  gboolean has_begun;
} Standing;

static void
begin_pass (Standing *self, Thread *thread, GTorchPass *pass)
{
  GTorchWorkers *workers = thread->workers;
  const GTorchLoaderFunc *init = workers->plan.init;
  GError *local = NULL;

  g_clear_pointer (&self->pass, pass_unref);
  g_clear_error (&self->error);
  gtorch_worker_info_set_current (NULL);
  g_clear_object (&self->info);
  g_atomic_int_inc (&pass->ref_count);
  self->pass = pass;
  self->info = gtorch_worker_info_new (thread->id, workers->n, pass->seed,
                                       gtorch_fetcher_get_dataset (workers->plan.fetcher));
  gtorch_worker_info_set_current (self->info);
  if (!self->is_initialised && init != NULL && !init->init (thread->id, init->user_data, &local))
    {
      if (local == NULL)
        g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("data_loader: the function that prepares workers failed without an error"));
      self->error = local;
      return;
    }
  g_clear_error (&local);
  self->is_initialised = TRUE;
  self->has_begun = TRUE;
  gtorch_fetcher_begin (workers->plan.fetcher, thread->id, workers->n, pass->seed,
                        pass->cancellable, &self->error);
}

static GTorchBatch *
run_job (Standing *self, Thread *thread, Job *job)
{
  GTorchBatch *batch;

  if (self->pass != job->pass)
    begin_pass (self, thread, job->pass);
  if (self->error != NULL)
    {
      batch = g_new0 (GTorchBatch, 1);
      batch->worker = thread->id;
      batch->error = g_error_copy (self->error);
    }
  else
    {
      gtorch_generator_set_seed (gtorch_worker_info_get_generator (self->info),
                                 gtorch_derive_seed (job->pass->seed, job->number));
      batch = gtorch_batch_make (&thread->workers->plan, thread->id, job->indices,
                                 job->pass->cancellable);
    }
  batch->number = job->number;
  if (batch->error != NULL)
    g_prefix_error (&batch->error, _ ("DataLoader worker %u, "), thread->id);
  return batch;
}

static Job *
pop_job (GTorchWorkers *self, guint worker)
{
  GList *link;

  for (link = self->jobs.head; link != NULL; link = link->next)
    {
      Job *job = link->data;

      if (job->worker == GTORCH_ANY_WORKER || job->worker == worker)
        {
          g_queue_delete_link (&self->jobs, link);
          return job;
        }
    }
  return NULL;
}

/* Called with the lock. Returns what is to be freed without it. */
static GTorchBatch *
deliver (GTorchPass *pass, GTorchBatch *batch)
{
  GList *link;

  pass->n_running--;
  if (pass->is_closed)
    return batch;
  for (link = pass->results.tail; pass->in_order && link != NULL; link = link->prev)
    if (((GTorchBatch *) link->data)->number < batch->number)
      break;
  if (!pass->in_order)
    g_queue_push_tail (&pass->results, batch);
  else
    g_queue_insert_after (&pass->results, link, batch);
  if (pass->wake != NULL)
    g_source_set_ready_time (pass->wake, 0);
  return NULL;
}

static gpointer
worker_main (gpointer data)
{
  Thread *thread = data;
  GTorchWorkers *self = thread->workers;
  Standing standing = { 0 };

  g_mutex_lock (&self->lock);
  for (;;)
    {
      Job *job = pop_job (self, thread->id);
      GTorchBatch *batch;

      if (job == NULL)
        {
          if (self->is_closed)
            break;
          g_cond_wait (&self->work, &self->lock);
          continue;
        }
      job->pass->n_running++;
      g_mutex_unlock (&self->lock);
      gtorch_fork_begin_work ();
      batch = run_job (&standing, thread, job);
      g_mutex_lock (&self->lock);
      batch = deliver (job->pass, batch);
      g_cond_broadcast (&self->progress);
      g_mutex_unlock (&self->lock);
      g_clear_pointer (&batch, gtorch_batch_free);
      job_free (job);
      gtorch_fork_end_work ();
      g_mutex_lock (&self->lock);
    }
  g_mutex_unlock (&self->lock);
  if (standing.has_begun)
    gtorch_fetcher_end (self->plan.fetcher, thread->id);
  gtorch_worker_info_set_current (NULL);
  g_clear_object (&standing.info);
  g_clear_error (&standing.error);
  g_clear_pointer (&standing.pass, pass_unref);
  g_mutex_lock (&self->lock);
  self->n_alive--;
  g_cond_broadcast (&self->progress);
  g_mutex_unlock (&self->lock);
  workers_unref (self);
  g_free (thread);
  return NULL;
}

GTorchWorkers *
gtorch_workers_new (guint n, GTorchBatchPlan *plan, GError **error)
{
  GTorchWorkers *self = g_new0 (GTorchWorkers, 1);
  guint i;

  self->ref_count = 1;
  self->plan = *plan;
  *plan = (GTorchBatchPlan){ 0 };
  self->n = n;
  self->threads = g_ptr_array_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->work);
  g_cond_init (&self->progress);
  for (i = 0; i < n; i++)
    {
      g_autofree gchar *name = g_strdup_printf ("gtorch-data-%u", i);
      Thread *thread = g_new (Thread, 1);
      GThread *started;

      *thread = (Thread){ self, i };
      g_atomic_int_inc (&self->ref_count);
      g_mutex_lock (&self->lock);
      self->n_alive++;
      g_mutex_unlock (&self->lock);
      started = g_thread_try_new (name, worker_main, thread, error);
      if (started == NULL)
        {
          g_prefix_error (error, _ ("data_loader: worker %u of %u cannot be started: "), i, n);
          self->n_alive--;
          g_atomic_int_add (&self->ref_count, -1);
          g_free (thread);
          gtorch_workers_close (self);
          return NULL;
        }
      g_ptr_array_add (self->threads, started);
    }
  return self;
}

const GTorchBatchPlan *
gtorch_workers_get_plan (GTorchWorkers *self)
{
  return &self->plan;
}

gboolean
gtorch_workers_are_busy (GTorchWorkers *self)
{
  gboolean is_busy;

  g_mutex_lock (&self->lock);
  is_busy = self->pass != NULL;
  g_mutex_unlock (&self->lock);
  return is_busy;
}

void
gtorch_workers_close (GTorchWorkers *self)
{
  const gint64 end = g_get_monotonic_time () + CLOSE_LIMIT;
  gboolean in_time = TRUE;
  guint i;

  g_mutex_lock (&self->lock);
  self->is_closed = TRUE;
  g_cond_broadcast (&self->work);
  while (self->n_alive > 0 && in_time)
    in_time = g_cond_wait_until (&self->progress, &self->lock, end);
  i = self->n_alive;
  g_mutex_unlock (&self->lock);
  if (i > 0)
    g_warning ("data_loader: %u of %u workers did not end within %d s: the data set blocks, and "
               "does not look at its cancellable",
               i, self->n, (gint) (CLOSE_LIMIT / G_USEC_PER_SEC));
  for (i = 0; i < self->threads->len; i++)
    if (in_time)
      g_thread_join (self->threads->pdata[i]);
    else
      g_thread_unref (self->threads->pdata[i]);
  workers_unref (self);
}

/* --- passes --- */

GTorchPass *
gtorch_pass_new (GTorchWorkers *workers, guint64 seed, gboolean in_order)
{
  GTorchPass *self = g_new0 (GTorchPass, 1);

  self->ref_count = 1;
  g_atomic_int_inc (&workers->ref_count);
  self->workers = workers;
  self->cancellable = g_cancellable_new ();
  self->seed = seed;
  self->in_order = in_order;
  g_mutex_lock (&workers->lock);
  workers->pass = self;
  g_mutex_unlock (&workers->lock);
  return self;
}

void
gtorch_pass_push (GTorchPass *self, guint64 number, guint worker, GTorchSize *indices)
{
  Job *job = g_new (Job, 1);

  g_atomic_int_inc (&self->ref_count);
  *job = (Job){ self, number, worker, indices != NULL ? gtorch_size_ref (indices) : NULL };
  g_mutex_lock (&self->workers->lock);
  g_queue_push_tail (&self->workers->jobs, job);
  if (worker == GTORCH_ANY_WORKER)
    g_cond_signal (&self->workers->work);
  else
    g_cond_broadcast (&self->workers->work);
  g_mutex_unlock (&self->workers->lock);
}

/* Called with the lock. */
static GTorchBatch *
find (GTorchPass *self, guint64 number)
{
  const GTorchBatch *first = g_queue_peek_head (&self->results);

  if (first == NULL || (self->in_order && first->number != number))
    return NULL;
  return g_queue_pop_head (&self->results);
}

GTorchBatch *
gtorch_pass_poll (GTorchPass *self, guint64 number, GSource *wake)
{
  GTorchBatch *batch;

  g_mutex_lock (&self->workers->lock);
  batch = find (self, number);
  self->wake = batch == NULL ? wake : NULL;
  g_mutex_unlock (&self->workers->lock);
  return batch;
}

void
gtorch_pass_forget (GTorchPass *self)
{
  g_mutex_lock (&self->workers->lock);
  self->wake = NULL;
  g_mutex_unlock (&self->workers->lock);
}

GTorchBatch *
gtorch_pass_wait (GTorchPass *self, guint64 number, gdouble seconds, GCancellable *cancellable,
                  GError **error)
{
  GTorchWorkers *workers = self->workers;
  const gint64 end = g_get_monotonic_time () + (gint64) (seconds * G_USEC_PER_SEC);
  GTorchBatch *batch = NULL;
  gboolean in_time = TRUE, is_interrupted;
  GTorchWake wake;

  gtorch_wake_begin (&wake, cancellable, &workers->lock, &workers->progress);
  g_mutex_lock (&workers->lock);
  while (!self->is_interrupted && (batch = find (self, number)) == NULL && in_time
         && !g_cancellable_is_cancelled (cancellable))
    if (seconds > 0)
      in_time = g_cond_wait_until (&workers->progress, &workers->lock, end);
    else
      g_cond_wait (&workers->progress, &workers->lock);
  is_interrupted = self->is_interrupted;
  g_mutex_unlock (&workers->lock);
  gtorch_wake_end (&wake);
  if (batch == NULL && !is_interrupted
      && !g_cancellable_set_error_if_cancelled (cancellable, error))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                 _ ("data_loader: no batch came within the timeout of %g s"), seconds);
  return batch;
}

void
gtorch_pass_interrupt (GTorchPass *self)
{
  g_mutex_lock (&self->workers->lock);
  self->is_interrupted = TRUE;
  g_cond_broadcast (&self->workers->progress);
  g_mutex_unlock (&self->workers->lock);
}

void
gtorch_pass_close (GTorchPass *self)
{
  GTorchWorkers *workers = self->workers;
  const gint64 end = g_get_monotonic_time () + CLOSE_LIMIT;
  GQueue jobs = G_QUEUE_INIT, results;
  gboolean in_time = TRUE;
  GList *link, *next;

  g_cancellable_cancel (self->cancellable);
  g_mutex_lock (&workers->lock);
  self->is_closed = TRUE;
  self->wake = NULL;
  for (link = workers->jobs.head; link != NULL; link = next)
    {
      next = link->next;
      if (((Job *) link->data)->pass == self)
        {
          g_queue_unlink (&workers->jobs, link);
          g_queue_push_tail_link (&jobs, link);
        }
    }
  results = self->results;
  g_queue_init (&self->results);
  while (self->n_running > 0 && in_time)
    in_time = g_cond_wait_until (&workers->progress, &workers->lock, end);
  if (workers->pass == self)
    workers->pass = NULL;
  g_mutex_unlock (&workers->lock);
  g_queue_clear_full (&jobs, (GDestroyNotify) job_free);
  g_queue_clear_full (&results, (GDestroyNotify) gtorch_batch_free);
  pass_unref (self);
}
