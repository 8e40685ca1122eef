/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Ranks of a communicator that are threads of this process. The kernel of a collective occupies its GPU
 * until those of the other ranks have come, and calls of the driver in their threads may wait for that GPU:
 * to load a kernel, to free memory, to enqueue more than a queue holds. Therefore these ranks launch a
 * collective, or a graph that has some, when all of them have come to it, and go on when all have launched
 * it: what they call in between waits for kernels that end without them. */

#include "config.h"

#include <string.h>

#include "distributed/nccl/gtorch-nccl-local-private.h"

#define N_LOOKS 2000 /* at what another thread is about to change, before the thread sleeps */

/* A thread that waits for others. */
typedef struct
{
  GThread *thread;
  NcclLocal *local;
  gint rank;                                /* or which ranks */
  gboolean (*is_over) (gconstpointer data); /* then it has only to wake up */
  gconstpointer data;
  guint seen;
} Waiter;

GMutex gtorch_nccl_local_lock;
static GCond changed;
static GHashTable *locals; /* by id */
static GSList *waiters;
static guint n_searches;

NcclLocal *
gtorch_nccl_local_join (const ncclUniqueId *id, NcclComm *comm)
{
  g_autoptr (GBytes) key = g_bytes_new (id, sizeof *id);
  NcclLocal *self;

  g_mutex_lock (&gtorch_nccl_local_lock);
  if (locals == NULL)
    locals = g_hash_table_new (g_bytes_hash, g_bytes_equal);
  self = g_hash_table_lookup (locals, key);
  if (self == NULL)
    {
      self = g_new0 (NcclLocal, 1);
      self->id = g_bytes_ref (key);
      self->n = comm->n;
      self->members = g_new0 (NcclMember, comm->n);
      g_mutex_init (&self->launching);
      g_hash_table_insert (locals, self->id, self);
    }
  self->ref_count++;
  self->n_ranks++;
  self->members[comm->rank] = (NcclMember){ .comm = comm, .thread = g_thread_self () };
  g_mutex_unlock (&gtorch_nccl_local_lock);
  return self;
}

void
gtorch_nccl_local_leave (NcclComm *comm)
{
  NcclLocal *self = comm->local;

  gtorch_nccl_messages_drop (comm);
  g_mutex_lock (&gtorch_nccl_local_lock);
  self->members[comm->rank].comm = NULL;
  if (--self->ref_count > 0)
    {
      g_mutex_unlock (&gtorch_nccl_local_lock);
      return;
    }
  g_hash_table_remove (locals, self->id);
  g_mutex_unlock (&gtorch_nccl_local_lock);
  g_bytes_unref (self->id);
  g_mutex_clear (&self->launching);
  g_free (self->members);
  g_free (self);
}

gint
gtorch_nccl_local_compare (const NcclComm *comm, const NcclComm *other)
{
  return g_bytes_compare (comm->local->id, other->local->id);
}

gboolean
gtorch_nccl_local_has (NcclComm *comm, gint rank)
{
  gboolean result;

  g_mutex_lock (&gtorch_nccl_local_lock);
  result = rank < 0 ? comm->local->n_ranks > 1
                    : rank != comm->rank && comm->local->members[rank].comm != NULL;
  g_mutex_unlock (&gtorch_nccl_local_lock);
  return result;
}

/* --- waiting --- */

static gboolean leads_to (GThread *thread, GThread *end);

static gboolean
rank_leads_to (const NcclMember *member, GThread *end)
{
  return member->comm != NULL && (member->thread == end || leads_to (member->thread, end));
}

/* Whether a thread waits for another one, or for one that does. */
static gboolean
leads_to (GThread *thread, GThread *end)
{
  Waiter *waiter = NULL;
  GSList *link;
  guint i;

  for (link = waiters; link != NULL && waiter == NULL; link = link->next)
    if (((Waiter *) link->data)->thread == thread)
      waiter = link->data;
  if (waiter == NULL || waiter->seen == n_searches || waiter->is_over (waiter->data))
    return FALSE;
  waiter->seen = n_searches;
  if (waiter->rank == NCCL_BUSY_RANKS)
    return FALSE;
  if (waiter->rank >= 0)
    return rank_leads_to (&waiter->local->members[waiter->rank], end);
  for (i = 0; i < waiter->local->n; i++)
    if (!waiter->local->members[i].has_come && rank_leads_to (&waiter->local->members[i], end))
      return TRUE;
  return FALSE;
}

static gboolean
is_stuck (const Waiter *self)
{
  n_searches++;
  return rank_leads_to (&self->local->members[self->rank], self->thread);
}

NcclWait
gtorch_nccl_local_wait (NcclComm *comm, gint rank, gboolean (*is_over) (gconstpointer data),
                        gconstpointer data, gint64 deadline)
{
  Waiter waiter = { g_thread_self (), comm->local, rank, is_over, data, 0 };
  NcclWait result = NCCL_WAIT_OVER;

  waiters = g_slist_prepend (waiters, &waiter);
  g_cond_broadcast (&changed); /* others look whether they wait for each other now */
  while (result == NCCL_WAIT_OVER && !is_over (data))
    if (rank >= 0 && is_stuck (&waiter))
      result = NCCL_WAIT_STUCK;
    else if (deadline == G_MAXINT64)
      g_cond_wait (&changed, &gtorch_nccl_local_lock);
    else if (!g_cond_wait_until (&changed, &gtorch_nccl_local_lock, deadline) && !is_over (data))
      result = NCCL_WAIT_LATE;
  waiters = g_slist_remove (waiters, &waiter);
  return result;
}

void
gtorch_nccl_local_wake (void)
{
  g_mutex_lock (&gtorch_nccl_local_lock);
  g_cond_broadcast (&changed);
  g_mutex_unlock (&gtorch_nccl_local_lock);
}

/* --- collectives --- */

/* Until the counter has another value, or the group has failed. */
typedef struct
{
  NcclEngine *engine;
  const guint *counter;
  guint former;
} Change;

static gboolean
has_changed (gconstpointer data)
{
  const Change *change = data;

  return __atomic_load_n (change->counter, __ATOMIC_ACQUIRE) != change->former
         || g_atomic_int_get (&change->engine->has_failed);
}

static void
wait_for_change (NcclComm *comm, gint ranks, const Change *change, gint64 deadline)
{
  guint i;

  for (i = 0; i < N_LOOKS; i++)
    if (__atomic_load_n (change->counter, __ATOMIC_ACQUIRE) != change->former)
      return;
  g_mutex_lock (&gtorch_nccl_local_lock);
  gtorch_nccl_local_wait (comm, ranks, has_changed, change, deadline);
  g_mutex_unlock (&gtorch_nccl_local_lock);
}

static void
advance (guint *counter)
{
  __atomic_store_n (counter, *counter + 1, __ATOMIC_RELEASE);
  g_cond_broadcast (&changed);
}

static gchar *
list_missing (const NcclLocal *self)
{
  g_autoptr (GString) text = g_string_new (NULL);
  guint i, n = 0;

  for (i = 0; i < self->n; i++)
    if (self->members[i].comm != NULL && !self->members[i].has_come
        && self->members[i].given_up != self->n_met + 1)
      g_string_append_printf (text, "%s%u", n++ > 0 ? ", " : "", i);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/* Returns whether all have met after all; otherwise this one has not come. */
static gboolean
give_up (NcclComm *comm, guint former, gchar **missing)
{
  NcclLocal *self = comm->local;
  gboolean have_met;

  g_mutex_lock (&gtorch_nccl_local_lock);
  have_met = self->n_met != former;
  if (!have_met && missing != NULL)
    *missing = list_missing (self);
  if (!have_met)
    {
      self->n_come--;
      self->members[comm->rank].has_come = FALSE;
      self->members[comm->rank].given_up = former + 1;
    }
  g_mutex_unlock (&gtorch_nccl_local_lock);
  return have_met;
}

gboolean
gtorch_nccl_local_meet (NcclComm *comm, NcclEngine *engine, gint64 deadline, gchar **missing)
{
  NcclLocal *self = comm->local;
  Change change = { engine, &self->n_met, 0 };
  guint i;

  if (self->n_ranks < 2)
    return TRUE;
  g_mutex_lock (&gtorch_nccl_local_lock);
  change.former = self->n_met;
  self->members[comm->rank].thread = g_thread_self ();
  self->members[comm->rank].has_come = TRUE;
  if (++self->n_come == self->n_ranks)
    {
      for (i = 0; i < self->n; i++)
        self->members[i].has_come = FALSE;
      self->n_come = 0;
      self->n_to_launch = self->n_ranks;
      advance (&self->n_met);
      g_mutex_unlock (&gtorch_nccl_local_lock);
      return TRUE;
    }
  g_mutex_unlock (&gtorch_nccl_local_lock);
  wait_for_change (comm, NCCL_LATE_RANKS, &change, deadline);
  return __atomic_load_n (&self->n_met, __ATOMIC_ACQUIRE) != change.former
         || give_up (comm, change.former, missing);
}

void
gtorch_nccl_local_launched (NcclComm *comm, NcclEngine *engine)
{
  NcclLocal *self = comm->local;
  Change change = { engine, &self->n_left, 0 };
  gboolean is_last;

  if (self->n_ranks < 2)
    return;
  g_mutex_lock (&gtorch_nccl_local_lock);
  change.former = self->n_left;
  is_last = --self->n_to_launch == 0;
  if (is_last)
    advance (&self->n_left);
  g_mutex_unlock (&gtorch_nccl_local_lock);
  if (!is_last)
    wait_for_change (comm, NCCL_BUSY_RANKS, &change, G_MAXINT64);
}
