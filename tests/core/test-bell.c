/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Threads that tell a main context of something to do. */

#include "config.h"

#include <gtorch/base/gtorch-bell-private.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT (30 * G_TIME_SPAN_SECOND)

typedef struct
{
  gint n_calls, n_done; /* n_done: atomic; what the threads have done */
  gint seen;            /* of n_done, by the function */
  gboolean is_over;     /* the next call is the last */
} Count;

static gboolean
count (gpointer data)
{
  Count *self = data;

  self->n_calls++;
  self->seen = g_atomic_int_get (&self->n_done);
  return !self->is_over;
}

static GSource *
attached (Count *self, GMainContext *context)
{
  GSource *bell = gtorch_bell_new ();

  g_source_set_callback (bell, count, self, NULL);
  g_source_attach (bell, context);
  return bell;
}

static void
until_seen (GMainContext *context, const Count *self, gint n)
{
  const gint64 end = g_get_monotonic_time () + LIMIT;

  while (self->seen < n)
    {
      g_assert_cmpint (g_get_monotonic_time (), <, end);
      g_main_context_iteration (context, TRUE);
    }
}

typedef struct
{
  GSource *bell;
  Count *count;
  gint n;
} Ringing;

static gpointer
ring (gpointer data)
{
  Ringing *self = data;

  for (gint i = 0; i < self->n; i++)
    {
      g_atomic_int_inc (&self->count->n_done);
      gtorch_bell_ring (self->bell);
    }
  return NULL;
}

/* Whatever was done before a ring is seen by a call after it, however many threads ring. */
static void
no_ring_is_lost (void)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  Count counts = { 0 };
  g_autoptr (GSource) bell = attached (&counts, context);
  Ringing ringing = { bell, &counts, 5000 };
  GThread *threads[4];

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("ring", ring, &ringing);
  until_seen (context, &counts, 4 * 5000);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  while (g_main_context_iteration (context, FALSE))
    ;
  g_assert_cmpint (counts.n_calls, >, 0);
  g_assert_cmpint (counts.n_calls, <=, 4 * 5000);
  g_source_destroy (bell);
}

static void
many_rings_are_one_call (void)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  Count counts = { 0 };
  g_autoptr (GSource) bell = attached (&counts, context);

  g_assert_false (g_main_context_iteration (context, FALSE));
  for (guint i = 0; i < 100; i++)
    gtorch_bell_ring (bell);
  g_assert_true (g_main_context_iteration (context, FALSE));
  g_assert_false (g_main_context_iteration (context, FALSE));
  g_assert_cmpint (counts.n_calls, ==, 1);
  gtorch_bell_ring (bell);
  g_assert_true (g_main_context_iteration (context, FALSE));
  g_assert_cmpint (counts.n_calls, ==, 2);
  counts.is_over = TRUE;
  gtorch_bell_ring (bell);
  g_assert_true (g_main_context_iteration (context, FALSE));
  g_assert_true (g_source_is_destroyed (bell));
  gtorch_bell_ring (bell); /* nobody hears it */
  g_assert_false (g_main_context_iteration (context, FALSE));
  g_assert_cmpint (counts.n_calls, ==, 3);
}

/* Without file descriptors it rings by the lock of the context. */
static void
it_works_without_file_descriptors (void)
{
  g_autoptr (GMainContext) context = g_main_context_new ();
  Count counts = { 0 };
  g_autoptr (GSource) bell = NULL;
  Ringing ringing = { NULL, &counts, 100 };
  struct rlimit before, none;
  GThread *thread;
  int fd;

  g_assert_cmpint (getrlimit (RLIMIT_NOFILE, &before), ==, 0);
  none = before;
  fd = dup (0);
  none.rlim_cur = fd;
  close (fd);
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &none), ==, 0);
  bell = attached (&counts, context);
  fd = dup (0);
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &before), ==, 0);
  g_assert_cmpint (fd, <, 0); /* there was none left */
  ringing.bell = bell;
  thread = g_thread_new ("ring", ring, &ringing);
  until_seen (context, &counts, 100);
  g_thread_join (thread);
  while (g_main_context_iteration (context, FALSE))
    ;
  g_assert_cmpint (counts.n_calls, >=, 1);
  g_assert_cmpint (counts.n_calls, <=, 100);
  g_source_destroy (bell);
}

#define TEST(name) g_test_add_func ("/GTorch/bell/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (no_ring_is_lost);
  TEST (many_rings_are_one_call);
  TEST (it_works_without_file_descriptors);
  return g_test_run ();
}
