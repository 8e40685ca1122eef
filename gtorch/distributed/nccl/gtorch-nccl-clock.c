/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Looking at the clock. A call of the driver may wait for a GPU that a collective occupies, because another
 * rank has died, and may hold a lock meanwhile for which the thread that looks after the operations waits.
 * One thread of the process, which calls neither the driver nor NCCL, gives up what that thread has not. */

#include "config.h"

#include "distributed/nccl/gtorch-nccl-private.h"

#define INTERVAL (250 * G_TIME_SPAN_MILLISECOND)
#define GRACE    G_USEC_PER_SEC /* what the other thread has more */

static GMutex lock;
static GCond changed;
static GPtrArray *engines; /* whose operations are under way */
static gboolean is_running;

typedef struct
{
  NcclEngine *engine;
  NcclOp *op;
} Late;

static gpointer
run_give_up (gpointer data)
{
  Late *late = data;

  gtorch_nccl_give_up (late->engine, late->op, ncclSuccess);
  gtorch_nccl_op_unref (late->op);
  gtorch_nccl_engine_unref (late->engine);
  g_free (late);
  return NULL;
}

/* The first operation of which nobody knows that it is over; the lock of the engine must be held. */
static NcclOp *
find_first (NcclComm *comm)
{
  GList *link = comm->pending.head;

  while (link != NULL && ((NcclOp *) link->data)->work == NULL)
    link = link->next;
  return link != NULL ? link->data : NULL;
}

/* The lock of the engine must be held. */
static NcclOp *
find_late (NcclEngine *engine)
{
  const gint64 now = g_get_monotonic_time ();
  guint i;

  for (i = 0; i < engine->all->len && !engine->is_reporting; i++)
    {
      NcclOp *op = find_first (engine->all->pdata[i]);

      if (op != NULL && op->timeout < 1e9 && now > engine->looked + GRACE
          && now > op->started + (gint64) (op->timeout * G_USEC_PER_SEC) + GRACE)
        return op;
    }
  return NULL;
}

static void
look (NcclEngine *engine)
{
  NcclOp *op;

  if (!g_mutex_trylock (
          &engine->lock)) /* the other order is that of those that hold it: next time */
    return;
  op = find_late (engine);
  if (op != NULL)
    {
      Late *late = g_new (Late, 1);

      *late = (Late){ gtorch_nccl_engine_ref (engine), gtorch_nccl_op_ref (op) };
      g_thread_unref (g_thread_new ("gtorch-nccl-late", run_give_up, late));
    }
  g_mutex_unlock (&engine->lock);
}

/* Engines are not referenced: to drop the last reference would free what is on the GPU. */
static gpointer
run (gpointer data)
{
  guint i;

  g_mutex_lock (&lock);
  while (TRUE)
    {
      while (engines->len == 0)
        g_cond_wait (&changed, &lock);
      for (i = 0; i < engines->len; i++)
        look (engines->pdata[i]);
      g_mutex_unlock (&lock);
      g_usleep (INTERVAL);
      g_mutex_lock (&lock);
    }
  return NULL;
}

void
gtorch_nccl_clock_add (NcclEngine *self)
{
  g_mutex_lock (&lock);
  if (engines == NULL)
    engines = g_ptr_array_new ();
  g_ptr_array_add (engines, self);
  if (!is_running)
    g_thread_unref (g_thread_new ("gtorch-nccl-clock", run, NULL));
  is_running = TRUE;
  g_cond_signal (&changed);
  g_mutex_unlock (&lock);
}

void
gtorch_nccl_clock_remove (NcclEngine *self)
{
  g_mutex_lock (&lock);
  g_ptr_array_remove_fast (engines, self);
  g_mutex_unlock (&lock);
}
