/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The end of communicators. NCCL's copy of the CUDA runtime is gone when the functions that a process has
 * registered for its end have run, and a thread that is still within NCCL then reads memory at 0. So
 * communicators are destroyed before their group is, by the thread that drops it, and a process that ends
 * waits for threads that do so later, because operations are under way. */

#include "config.h"

#include <stdlib.h>

#include "distributed/nccl/gtorch-nccl-private.h"

#define PATIENCE (2 * G_USEC_PER_SEC) /* of a process that ends */
#define MOMENT   (G_USEC_PER_SEC / 2) /* for a thread of NCCL's to free a communicator */
#define STEP     500                  /* microseconds between two looks */

/* --- threads of groups that were dropped --- */

static GMutex lock;
static GCond changed;
static gint n_ending;

static void
wait_at_exit (void)
{
  const gint64 until = g_get_monotonic_time () + PATIENCE;

  g_mutex_lock (&lock);
  while (n_ending > 0 && g_cond_wait_until (&changed, &lock, until))
    ;
  g_mutex_unlock (&lock);
}

/* Functions are called in the reverse of the order in which they were registered: this one comes before those
 * of NCCL's, which it has registered when it made its first communicator. */
void
gtorch_nccl_end_prepare (void)
{
  static gsize is_ready;

  if (!g_once_init_enter (&is_ready))
    return;
  atexit (wait_at_exit);
  g_once_init_leave (&is_ready, 1);
}

void
gtorch_nccl_end_add (gint n)
{
  g_mutex_lock (&lock);
  n_ending += n;
  g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
}

/* --- threads of NCCL's --- */

GHashTable *
gtorch_nccl_end_list (void)
{
  GHashTable *threads = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GDir) folder = g_dir_open ("/proc/self/task", 0, NULL);
  const gchar *name;

  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL)
    g_hash_table_add (threads, g_strdup (name));
  return threads;
}

static gboolean
exists (const gchar *thread)
{
  g_autofree gchar *path = g_build_filename ("/proc/self/task", thread, NULL);

  return g_file_test (path, G_FILE_TEST_EXISTS);
}

/* A thread that another part of the program has just created is waited for in vain. */
void
gtorch_nccl_end_wait (GHashTable *before)
{
  const gint64 until = g_get_monotonic_time () + MOMENT;
  g_autoptr (GHashTable) now = gtorch_nccl_end_list ();
  GHashTableIter iter;
  const gchar *thread;

  g_hash_table_iter_init (&iter, now);
  while (g_hash_table_iter_next (&iter, (gpointer *) &thread, NULL))
    while (!g_hash_table_contains (before, thread) && exists (thread)
           && g_get_monotonic_time () < until)
      g_usleep (STEP);
}
