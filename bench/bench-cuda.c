/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Times operations on a GPU: reads their names from standard input and writes “name, median seconds of one
 * call” for each, so that bench/run can ask it and the peer in turns. The rows host.* are what the host is
 * busy with a small operation, train.* and infer.* what a step takes by the clock, the others what the device
 * is busy. Without input, all of them.
 *
 *     bench-cuda --list            names, amounts and units of one call
 *     bench-cuda --first           makes one tensor and ends
 *     bench-cuda --unasked         takes the algorithms that NVIDIA's libraries propose, not the quickest */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench-cuda.h"

static gint
compare (gconstpointer a, gconstpointer b)
{
  gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return (x > y) - (x < y);
}

static gdouble
median (gdouble *values, guint n)
{
  qsort (values, n, sizeof *values, compare);
  return values[n / 2];
}

static gboolean
synchronize (GError **error)
{
  return gtorch_device_synchronize (bench_device, NULL, error);
}

static gboolean
call (const BenchCase *row, guint n, GError **error)
{
  for (; n > 0; n--)
    {
      GTorchTensor *result = row->run (error);

      if (result == NULL)
        return FALSE;
      g_object_unref (result);
    }
  return TRUE;
}

/* The queue is emptied between the repetitions, so it is never full. */
static gboolean
time_host (const BenchCase *row, gdouble *seconds, GError **error)
{
  gdouble times[21];
  guint i, n = g_str_has_prefix (row->name, "graph.") ? 100 : 500; /* the queue must not be full */

  if (!call (row, n, error) || !synchronize (error))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (times); i++)
    {
      gint64 start = g_get_monotonic_time ();

      if (!call (row, n, error))
        return FALSE;
      times[i] = (g_get_monotonic_time () - start) * 1e-6 / n;
      if (!synchronize (error))
        return FALSE;
    }
  *seconds = median (times, G_N_ELEMENTS (times));
  return TRUE;
}

static gboolean
time_device (const BenchCase *row, gdouble *seconds, GError **error)
{
  g_autoptr (GTorchEvent) start = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GTorchEvent) end = gtorch_event_new (GTORCH_EVENT_TIMING);
  GTorchStream *stream = gtorch_stream_get_current (bench_device);
  gdouble times[30];
  guint i;

  if (!call (row, 5, error) || !synchronize (error))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (times); i++)
    {
      g_autoptr (GError) elapsed_error = NULL;

      if (!gtorch_event_record (start, stream, error) || !call (row, 1, error)
          || !gtorch_event_record (end, stream, error)
          || !gtorch_event_synchronize (end, NULL, error))
        return FALSE;
      times[i] = gtorch_event_get_elapsed_ms (start, end, &elapsed_error) * 1e-3;
      if (elapsed_error != NULL)
        {
          g_propagate_error (error, g_steal_pointer (&elapsed_error));
          return FALSE;
        }
    }
  *seconds = median (times, G_N_ELEMENTS (times));
  return TRUE;
}

/* Of one of many calls that follow each other. */
static gboolean
time_wall (const BenchCase *row, gdouble *seconds, GError **error)
{
  const guint n = 20;
  gdouble times[9];
  guint i;

  if (!call (row, 3, error) || !synchronize (error))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (times); i++)
    {
      gint64 start = g_get_monotonic_time ();

      if (!call (row, n, error) || !synchronize (error))
        return FALSE;
      times[i] = (g_get_monotonic_time () - start) * 1e-6 / n;
    }
  *seconds = median (times, G_N_ELEMENTS (times));
  return TRUE;
}

static gboolean
measure (const BenchCase *row, gdouble *seconds, GError **error)
{
  if (row->unit == NULL)
    return time_host (row, seconds, error);
  return strcmp (row->unit, "wall") == 0 ? time_wall (row, seconds, error)
                                         : time_device (row, seconds, error);
}

static void
answer (const BenchCase *row)
{
  g_autoptr (GError) error = NULL;
  gdouble seconds = 0;

  if (measure (row, &seconds, &error))
    printf ("%s\t%.4g\n", row->name, seconds);
  else
    {
      printf ("%s\tnone\n", row->name);
      fprintf (stderr, "%s: %s\n", row->name, error->message);
    }
  fflush (stdout);
}

static int
make_first (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor =
      gtorch_ones (GTORCH_SHAPE (16), GTORCH_DTYPE_FLOAT32, bench_device, &error);

  if (tensor != NULL && synchronize (&error))
    return 0;
  fprintf (stderr, "%s\n", error->message);
  return 1;
}

int
main (int argc, char *argv[])
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGradGuard) guard = NULL;
  const BenchCase *row;
  char line[64];

  if (argc > 1 && strcmp (argv[1], "--list") == 0)
    {
      for (row = bench_cases; row->name != NULL; row++)
        printf ("%s\t%g\t%s\n", row->name, row->amount, row->unit != NULL ? row->unit : "");
      return 0;
    }
  bench_device = gtorch_device_new_from_string ("cuda", &error);
  if (bench_device == NULL)
    {
      fprintf (stderr, "%s\n", error->message);
      return 1;
    }
  if (argc > 1 && strcmp (argv[1], "--first") == 0)
    return make_first ();
  /* As the peer has it. */
  gtorch_device_set_benchmark (bench_device, argc < 2 || strcmp (argv[1], "--unasked") != 0);
  guard = gtorch_no_grad ();
  while (fgets (line, sizeof line, stdin) != NULL)
    {
      g_strchomp (line);
      for (row = bench_cases; row->name != NULL && strcmp (row->name, line) != 0; row++)
        ;
      if (row->name != NULL)
        answer (row);
      else
        {
          printf ("%s\tnone\n", line);
          fflush (stdout);
        }
    }
  return 0;
}
