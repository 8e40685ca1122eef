/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Loaders that are given up at any moment. Whatever was being done, it ends, and nothing is left: under
 * AddressSanitizer leaks fail the program. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "data-test.h"

#define ROUNDS 1000

typedef struct
{
  GCancellable *cancellable;
  gulong usecs;
  GTorchDataLoaderIter *iter; /* to close */
} Canceller;

static gpointer
cancel_later (gpointer data)
{
  Canceller *self = data;

  g_usleep (self->usecs);
  g_cancellable_cancel (self->cancellable);
  return NULL;
}

static gpointer
close_later (gpointer data)
{
  Canceller *self = data;

  g_usleep (self->usecs);
  gtorch_data_loader_iter_close (self->iter);
  return NULL;
}

static void
on_freed (gpointer is_alive, GObject *object)
{
  g_atomic_int_set ((gint *) is_alive, FALSE);
}

static void
on_run (GObject *loader, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;

  if (!gtorch_data_loader_run_finish (GTORCH_DATA_LOADER (loader), result, &error))
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_main_loop_quit (data);
}

/* One of five ways to give up: a cancelled wait, a dropped iterator, a closed one, a cancelled run, and one
 * that another thread closes. */
static void
give_up (GRand *rand, guint way)
{
  g_autoptr (Counted) dataset = counted_new (1000000);
  g_autoptr (GTorchDataLoader) loader = NULL;
  g_autoptr (GTorchDataLoaderIter) iter = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  Canceller canceller = { cancellable, g_rand_int_range (rand, 0, 400) };
  const gint workers = g_rand_int_range (rand, 0, 4);
  gint is_alive = TRUE;
  GTorchSample *batch;

  dataset->usecs = g_rand_int_range (rand, 0, 3) * 20;
  g_object_weak_ref (G_OBJECT (dataset), on_freed, &is_alive);
  loader = g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset, "batch-size",
                         (gint64) g_rand_int_range (rand, 1, 4), "num-workers", workers,
                         "persistent-workers", workers > 0 && g_rand_boolean (rand), "in-order",
                         g_rand_boolean (rand), NULL);
  g_clear_object (&dataset);
  if (way == 3)
    {
      g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
      GThread *thread;

      gtorch_data_loader_run_async (loader, cancellable, on_run, loop);
      thread = g_thread_new ("cancel", cancel_later, &canceller);
      g_main_loop_run (loop);
      g_thread_join (thread);
    }
  else
    {
      GThread *thread = NULL;
      guint n = g_rand_int_range (rand, 0, 5);

      iter = gtorch_data_loader_iterate (loader, &error);
      g_assert_no_error (error);
      if (way == 0)
        thread = g_thread_new ("cancel", cancel_later, &canceller);
      canceller.iter = iter;
      if (way == 4)
        thread = g_thread_new ("close", close_later, &canceller);
      while ((way == 0 || way == 4 || n-- > 0)
             && (batch = gtorch_data_loader_iter_next (iter, way == 0 ? cancellable : NULL, &error))
                    != NULL)
        gtorch_sample_unref (batch);
      if (way == 0)
        {
          g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
          g_thread_join (thread);
        }
      else if (way == 4 && error != NULL) /* asked for while the other thread closed it */
        g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PENDING);
      else
        g_assert_no_error (error);
      if (way == 4)
        g_thread_join (thread);
      if (way == 2)
        gtorch_data_loader_iter_close (iter);
      g_clear_object (&iter);
    }
  g_clear_object (&loader);
  /* Nobody holds the data set any longer, once a thread that was at a sample is done with it. */
  for (gint64 end = g_get_monotonic_time () + 10 * G_TIME_SPAN_SECOND;
       g_atomic_int_get (&is_alive) && g_get_monotonic_time () < end;)
    if (!g_main_context_iteration (NULL, FALSE))
      g_thread_yield ();
  g_assert_false (g_atomic_int_get (&is_alive));
}

static void
test_nothing_is_left (gconstpointer way)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (GPOINTER_TO_UINT (way));
  guint i;

  for (i = 0; i < ROUNDS / 4; i++)
    give_up (rand, GPOINTER_TO_UINT (way));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, way) \
  g_test_add_data_func ("/GTorch/DataLoader/" #name, GUINT_TO_POINTER (way), test_nothing_is_left)
  ADD (cancelled_wait_leaves_nothing, 0);
  ADD (dropped_iterator_leaves_nothing, 1);
  ADD (closed_iterator_leaves_nothing, 2);
  ADD (cancelled_run_leaves_nothing, 3);
  ADD (iterator_closed_by_a_thread_leaves_nothing, 4);
  return g_test_run ();
}
