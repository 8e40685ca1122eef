/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Ranks of a communicator that are threads of this process. The kernel of a collective occupies its GPU
 * until those of the other ranks have come, and calls of the driver in their threads may wait for that GPU:
 * to load a kernel, to free memory, to enqueue more than a queue holds. Therefore these ranks launch a
 * collective when all of them have come to it, and go on when all have launched it: what they call in between
 * waits for kernels that end without them.
 *
 * Messages are launched at once, since a rank may send before it receives. */

#include "config.h"

#include <string.h>

#include "base/gtorch-error.h"
#include "cuda/driver/gtorch-cuda-joint-private.h"
#include "distributed/nccl/gtorch-nccl-private.h"

#define N_LOOKS 2000 /* at what another thread is about to change, before the thread sleeps */

struct _NcclLocal
{
  gint ref_count;
  GBytes *id;          /* NCCL's number of the communicator */
  guint n_ranks;       /* final when the ranks are connected */
  guint n_come;        /* ranks that are at the next collective */
  guint n_to_launch;   /* ranks that have not launched the last one */
  guint n_met, n_left; /* collectives that all ranks have come to, and have launched */
};

static GMutex lock;
static GCond changed;
static GHashTable *locals; /* by id */

NcclLocal *
gtorch_nccl_local_join (const ncclUniqueId *id)
{
  g_autoptr (GBytes) key = g_bytes_new (id, sizeof *id);
  NcclLocal *self;

  g_mutex_lock (&lock);
  if (locals == NULL)
    locals = g_hash_table_new (g_bytes_hash, g_bytes_equal);
  self = g_hash_table_lookup (locals, key);
  if (self == NULL)
    {
      self = g_new0 (NcclLocal, 1);
      self->id = g_bytes_ref (key);
      g_hash_table_insert (locals, self->id, self);
    }
  self->ref_count++;
  self->n_ranks++;
  g_mutex_unlock (&lock);
  return self;
}

void
gtorch_nccl_local_leave (NcclLocal *self)
{
  g_mutex_lock (&lock);
  if (--self->ref_count > 0)
    {
      g_mutex_unlock (&lock);
      return;
    }
  g_hash_table_remove (locals, self->id);
  g_mutex_unlock (&lock);
  g_bytes_unref (self->id);
  g_free (self);
}

/* Waits until the counter has another value, or the group has failed. */
static gboolean
wait_for_change (NcclEngine *engine, const guint *counter, guint former)
{
  guint i;

  for (i = 0; i < N_LOOKS; i++)
    if (__atomic_load_n (counter, __ATOMIC_ACQUIRE) != former)
      return TRUE;
  g_mutex_lock (&lock);
  while (*counter == former && !g_atomic_int_get (&engine->has_failed))
    g_cond_wait (&changed, &lock);
  g_mutex_unlock (&lock);
  return __atomic_load_n (counter, __ATOMIC_ACQUIRE) != former;
}

static void
advance (guint *counter)
{
  __atomic_store_n (counter, *counter + 1, __ATOMIC_RELEASE);
  g_cond_broadcast (&changed);
}

gboolean
gtorch_nccl_local_meet (NcclLocal *self, NcclEngine *engine)
{
  guint former;
  gboolean is_last;

  if (self->n_ranks < 2)
    return TRUE;
  g_mutex_lock (&lock);
  former = self->n_met;
  is_last = ++self->n_come == self->n_ranks;
  g_mutex_unlock (&lock);
  if (is_last)
    {
      gtorch_cuda_joint_begin ();
      g_mutex_lock (&lock);
      self->n_come = 0;
      self->n_to_launch = self->n_ranks;
      advance (&self->n_met);
      g_mutex_unlock (&lock);
    }
  else if (!wait_for_change (engine, &self->n_met, former))
    {
      gboolean have_met;

      g_mutex_lock (&lock);
      while (self->n_met == former && self->n_come == self->n_ranks) /* the last one is about to */
        g_cond_wait (&changed, &lock);
      have_met = self->n_met != former;
      if (!have_met)
        self->n_come--;
      g_mutex_unlock (&lock);
      if (!have_met)
        return FALSE;
    }
  gtorch_cuda_joint_enter ();
  return TRUE;
}

void
gtorch_nccl_local_launched (NcclLocal *self, NcclEngine *engine)
{
  guint former;
  gboolean is_last;

  if (self->n_ranks < 2)
    return;
  gtorch_cuda_joint_leave ();
  g_mutex_lock (&lock);
  former = self->n_left;
  is_last = --self->n_to_launch == 0;
  if (is_last)
    advance (&self->n_left);
  g_mutex_unlock (&lock);
  if (is_last)
    gtorch_cuda_joint_end ();
  else
    wait_for_change (engine, &self->n_left, former);
}

void
gtorch_nccl_local_wake (void)
{
  g_mutex_lock (&lock);
  g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
}
