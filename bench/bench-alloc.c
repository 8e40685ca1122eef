/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Times the allocator of a device alone, without tensors, through private functions: prints “name, median
 * seconds” of an allocation with its release.
 *
 *     bench-alloc [DEVICE]         "cuda" by default */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <gtorch/gtorch.h>

#include <gtorch/device/gtorch-device-private.h>
#include <gtorch/tensor/gtorch-impl-private.h>

#define N_TIMES   41
#define N_CALLS   5000
#define N_LIVE    12
#define N_THREADS 2

static GTorchDevice *device;
static gint begun; /* accessed atomically */

static GTorchStorage *
alloc (gsize n_bytes)
{
  GError *error = NULL;
  GTorchStorage *storage = gtorch_storage_new (device, n_bytes, &error);

  if (storage == NULL)
    g_error ("%s", error->message);
  return storage;
}

static void
one_after_the_other (gsize n_bytes)
{
  guint i;

  for (i = 0; i < N_CALLS; i++)
    gtorch_storage_unref (alloc (n_bytes));
}

/* Allocates several sizes, like the results of a training step. */
static void
several_at_once (gsize n_bytes)
{
  GTorchStorage *live[N_LIVE];
  guint i, j;

  for (i = 0; i < N_CALLS; i += N_LIVE)
    {
      for (j = 0; j < N_LIVE; j++)
        live[j] = alloc (n_bytes + j * 700);
      for (j = 0; j < N_LIVE; j++)
        gtorch_storage_unref (live[j]);
    }
}

static gint
compare (gconstpointer a, gconstpointer b)
{
  const gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return (x > y) - (x < y);
}

static gdouble
measure (void (*func) (gsize n_bytes), gsize n_bytes)
{
  gdouble times[N_TIMES];
  guint i;

  func (n_bytes);
  for (i = 0; i < N_TIMES; i++)
    {
      gint64 start = g_get_monotonic_time ();

      func (n_bytes);
      times[i] = (g_get_monotonic_time () - start) * 1e-6 / N_CALLS;
    }
  qsort (times, N_TIMES, sizeof *times, compare);
  return times[N_TIMES / 2];
}

static gpointer
measure_together (gpointer data)
{
  g_atomic_int_inc (&begun);
  while (g_atomic_int_get (&begun) < N_THREADS)
    g_thread_yield ();
  *(gdouble *) data = measure (one_after_the_other, 64);
  return NULL;
}

gint
main (gint argc, gchar **argv)
{
  g_autoptr (GError) error = NULL;
  GTorchStorage *neighbour;
  GThread *threads[N_THREADS];
  gdouble times[N_THREADS], slowest = 0;
  guint i;

  device = gtorch_device_new_from_string (argc > 1 ? argv[1] : "cuda", &error);
  if (device == NULL)
    {
      fprintf (stderr, "bench-alloc: %s\n", error->message);
      return 1;
    }
  device = gtorch_device_resolve (device);
  neighbour = alloc (64); /* so that pages are never entirely free */
  printf ("host.alloc_64B, %.3g\n", measure (one_after_the_other, 64));
  printf ("host.alloc_1MiB, %.3g\n", measure (one_after_the_other, 1 << 20));
  printf ("host.alloc_3MiB, %.3g\n", measure (one_after_the_other, 3 << 20));
  printf ("host.alloc_several, %.3g\n", measure (several_at_once, 64));
  for (i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("bench", measure_together, &times[i]);
  for (i = 0; i < N_THREADS; i++)
    {
      g_thread_join (threads[i]);
      slowest = MAX (slowest, times[i]);
    }
  printf ("host.alloc_2_threads, %.3g\n", slowest);
  gtorch_storage_unref (neighbour);
  return 0;
}
