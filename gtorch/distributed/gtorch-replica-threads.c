/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-replica-threads-private.h"

#include <signal.h>

#include "base/gtorch-fork-private.h"

typedef struct
{
  GThread *thread;
  GMutex lock; /* protects what follows */
  GCond changed;
  void (*func) (gpointer);
  gpointer element; /* what func is called with; NULL while there is nothing to do */
  gboolean is_over;
} Worker;

struct _GTorchReplicaThreads
{
  gint is_busy;       /* a call uses them; atomic */
  GPtrArray *workers; /* of Worker; NULL before the first one */
};

/* All that programs have, for the child of a fork. */
static GMutex every_lock;
static GPtrArray *every;
GTORCH_FORK_LOCK (every_lock);

/* The threads are not in the child, nor can it use what they wait on. */
static void
forget_workers (void)
{
  guint i;

  for (i = 0; every != NULL && i < every->len; i++)
    {
      GTorchReplicaThreads *self = every->pdata[i];

      self->is_busy = FALSE;
      self->workers = NULL;
    }
}
GTORCH_FORK_CHILD (forget_workers);

/* --- a thread --- */

static gpointer
work (gpointer data)
{
  Worker *self = data;

  g_mutex_lock (&self->lock);
  for (;;)
    {
      while (self->element == NULL && !self->is_over)
        g_cond_wait (&self->changed, &self->lock);
      if (self->element == NULL)
        break;
      g_mutex_unlock (&self->lock);
      self->func (self->element);
      g_mutex_lock (&self->lock);
      self->element = NULL;
      g_cond_broadcast (&self->changed);
    }
  g_mutex_unlock (&self->lock);
  return NULL;
}

/* Returns NULL if the system allows no further thread. Signals go to the program's threads. */
static Worker *
worker_new (void)
{
  Worker *self = g_new0 (Worker, 1);
  sigset_t all, before;

  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  self->thread = g_thread_try_new ("gtorch-replica", work, self, NULL);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (self->thread != NULL)
    return self;
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
  return NULL;
}

static void
worker_free (gpointer data)
{
  Worker *self = data;

  g_mutex_lock (&self->lock);
  self->is_over = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_thread_join (self->thread);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

static void
worker_begin (Worker *self, void (*func) (gpointer), gpointer element)
{
  g_mutex_lock (&self->lock);
  self->func = func;
  self->element = element;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static void
worker_wait (Worker *self)
{
  g_mutex_lock (&self->lock);
  while (self->element != NULL)
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
}

/* --- several --- */

/* Tries to have n threads. */
static guint
make_workers (GTorchReplicaThreads *self, gsize n)
{
  if (self->workers == NULL)
    self->workers = g_ptr_array_new_with_free_func (worker_free);
  while (self->workers->len < n)
    {
      Worker *worker = worker_new ();

      if (worker == NULL)
        break;
      g_ptr_array_add (self->workers, worker);
    }
  return (guint) MIN (self->workers->len, n);
}

static void
run (GTorchReplicaThreads *self, void (*func) (gpointer), gchar *elements, gsize size, gsize n)
{
  guint n_workers = make_workers (self, n - 1);
  gsize i;

  for (i = 0; i < n_workers; i++)
    worker_begin (self->workers->pdata[i], func, elements + (i + 1) * size);
  func (elements);
  if (self->workers == NULL)
    n_workers = 0; /* func has forked, and this is the child */
  for (i = n_workers + 1; i < n; i++)
    func (elements + i * size);
  for (i = 0; i < n_workers; i++)
    worker_wait (self->workers->pdata[i]);
}

void
gtorch_replica_threads_run (GTorchReplicaThreads *self, void (*func) (gpointer element),
                            gpointer elements, gsize size, gsize n)
{
  GTorchReplicaThreads own = { TRUE, NULL };

  if (self != NULL && g_atomic_int_compare_and_exchange (&self->is_busy, FALSE, TRUE))
    {
      run (self, func, elements, size, n);
      g_atomic_int_set (&self->is_busy, FALSE);
      return;
    }
  run (&own, func, elements, size, n);
  g_ptr_array_unref (own.workers);
}

GTorchReplicaThreads *
gtorch_replica_threads_new (void)
{
  GTorchReplicaThreads *self = g_new0 (GTorchReplicaThreads, 1);

  g_mutex_lock (&every_lock);
  if (every == NULL)
    every = g_ptr_array_new ();
  g_ptr_array_add (every, self);
  g_mutex_unlock (&every_lock);
  return self;
}

void
gtorch_replica_threads_free (GTorchReplicaThreads *self)
{
  g_mutex_lock (&every_lock);
  g_ptr_array_remove_fast (every, self);
  if (every->len == 0)
    g_clear_pointer (&every, g_ptr_array_unref);
  g_mutex_unlock (&every_lock);
  g_clear_pointer (&self->workers, g_ptr_array_unref);
  g_free (self);
}
