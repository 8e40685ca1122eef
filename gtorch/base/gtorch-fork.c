/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* fork () copies the memory, and of the threads only the one that calls it. What the others held, waited
 * for or were to do stays as it was in that moment. In the child, therefore:
 *
 * - The library's locks are free, and what they guard is whole, because the thread that forks takes them
 *   first. The order in which other threads take several of them is not known here, so it waits for none
 * while it holds another. Should it not get them all, because one is held for long or by itself, the
 * child makes the missing ones anew: perhaps it finds something half done then, but it does not hang.
 * - The helpers of operations on the CPU have not come along: the child makes new ones.
 * - Streams of before have no thread: their timelines are orphans, and whoever needs one gets an error
 *   (gtorch-timeline.c). Work that they had not done stays undone; what it was to write cannot be read.
 * - Devices say what they need with gtorch_fork_add_child ().
 *
 * Locks of tensors, modules, lists, fences and events are not in the list, as there are too many, and neither
 * are GLib's, which nobody can take: a child hangs if another thread held one in that moment, as while it
 * made or dropped an object, and the child needs it. So the fork waits until the threads of streams of the
 * CPU and of data loaders rest, which drop objects when the program already has their results, but not for
 * long, as they may wait for the thread that forks. For threads of its own and of GLib's, a program that
 * forks sees to it that they rest.
 */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <pthread.h>

#include "base/gtorch-fork-private.h"

#include "base/gtorch-error.h"

#define PATIENCE      (G_USEC_PER_SEC / 2)
#define WORK_PATIENCE (G_USEC_PER_SEC / 50)

static GMutex list_lock; /* of what follows; the first to be taken, and held across the fork */
static GPtrArray *locks;
static GPtrArray *children;
static GByteArray *taken; /* of each lock, while a process forks */

static gint n_working; /* threads; below zero in the child of one of them */
static gint is_forking;

static void
release_taken (void)
{
  guint i;

  for (i = 0; i < locks->len; i++)
    if (taken->data[i])
      g_mutex_unlock (locks->pdata[i]);
}

/* All or, if patience is at an end, those that are free. */
static void
take_locks (void)
{
  gint64 end = g_get_monotonic_time () + PATIENCE;
  gboolean is_late, all;
  guint i;

  g_byte_array_set_size (taken, locks->len);
  do
    {
      is_late = g_get_monotonic_time () >= end;
      all = TRUE;
      for (i = 0; i < locks->len; i++)
        {
          taken->data[i] = (all || is_late) && g_mutex_trylock (locks->pdata[i]);
          all = all && taken->data[i];
        }
      if (!all && !is_late)
        {
          release_taken ();
          g_usleep (50);
        }
    }
  while (!all && !is_late);
}

void
gtorch_fork_begin_work (void)
{
  g_atomic_int_inc (&n_working);
  while (G_UNLIKELY (g_atomic_int_get (&is_forking)))
    {
      g_atomic_int_add (&n_working, -1);
      g_mutex_lock (&list_lock); /* until the fork is over */
      g_mutex_unlock (&list_lock);
      g_atomic_int_inc (&n_working);
    }
}

void
gtorch_fork_end_work (void)
{
  g_atomic_int_add (&n_working, -1);
}

static void
wait_for_workers (void)
{
  gint64 end = g_get_monotonic_time () + WORK_PATIENCE;

  g_atomic_int_set (&is_forking, TRUE);
  while (g_atomic_int_get (&n_working) > 0 && g_get_monotonic_time () < end)
    g_usleep (50);
}

static void
prepare (void)
{
  g_mutex_lock (&list_lock);
  wait_for_workers ();
  take_locks ();
}

static void
go_on_in_parent (void)
{
  g_atomic_int_set (&is_forking, FALSE);
  release_taken ();
  g_mutex_unlock (&list_lock);
}

static void
go_on_in_child (void)
{
  guint i;

  n_working = 0;
  is_forking = FALSE;
  release_taken ();
  for (i = 0; i < locks->len; i++)
    if (!taken->data[i])
      g_mutex_init (locks->pdata[i]);
  g_mutex_unlock (&list_lock);
  for (i = 0; i < children->len; i++)
    ((void (*) (void)) children->pdata[i]) ();
}

/* With the lock held. */
static void
ensure_lists (void)
{
  if (locks != NULL)
    return;
  locks = g_ptr_array_new ();
  children = g_ptr_array_new ();
  taken = g_byte_array_new ();
  pthread_atfork (prepare, go_on_in_parent, go_on_in_child);
}

void
gtorch_fork_add_lock (GMutex *lock)
{
  g_mutex_lock (&list_lock);
  ensure_lists ();
  g_ptr_array_add (locks, lock);
  g_mutex_unlock (&list_lock);
}

void
gtorch_fork_remove_lock (GMutex *lock)
{
  g_mutex_lock (&list_lock);
  g_ptr_array_remove_fast (locks, lock);
  g_mutex_unlock (&list_lock);
}

void
gtorch_fork_add_child (void (*func) (void))
{
  g_mutex_lock (&list_lock);
  ensure_lists ();
  g_ptr_array_add (children, (gpointer) func);
  g_mutex_unlock (&list_lock);
}

gboolean
gtorch_fork_refuse_stream (GError **error)
{
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_FORKED,
                       _ ("stream: it was made before this process was forked, and its thread "
                          "does not exist in the child: make a new stream in the child"));
  return FALSE;
}
