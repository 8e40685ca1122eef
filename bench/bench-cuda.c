/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Times operations on a GPU: reads their names from standard input and prints “name, median seconds of
 * one call” for each, so that bench/run can alternate between this program and its peer. The rows host.*
 * measure the host's time for a small operation, train.* and infer.* the wall time of a step, the others
 * the device's time, peak.* bytes of memory: the peak of tensors in a new process, and, with .reserved,
 * that of the allocator. A third column is the time of the driver's own launch of a kernel, which
 * alternates with the calls.
 *
 *     bench-cuda --list            prints names, amounts and units of one call
 *     bench-cuda --first           creates one tensor and ends
 *     bench-cuda --unasked         uses the algorithms that NVIDIA's libraries propose, not the fastest */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench-cuda.h"
#include "bench-launch.h"

#define CALLS    20 /* consecutive calls */
#define PEAK     "peak."
#define RESERVED ".reserved"

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

/* A thread that has slept starts with a low clock and cold caches; PyTorch and the driver spin. */
static gboolean
wait_awake (GError **error)
{
  g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);
  GTorchStream *stream =
      bench_stream != NULL ? bench_stream : gtorch_stream_get_current (bench_device);

  if (!gtorch_event_record (event, stream, error))
    return FALSE;
  while (!gtorch_event_query (event))
    ;
  return synchronize (error);
}

static gboolean
call (const BenchCase *row, guint n, GError **error)
{
  if (row->repeat != NULL)
    return row->repeat (row->data, n, error);
  for (; n > 0; n--)
    {
      GTorchTensor *result = row->run (row->data, error);

      if (result == NULL)
        return FALSE;
      gtorch_tensor_unref (result);
    }
  return TRUE;
}

/* Calls the row until the processor's and the GPU's clocks have risen. Arithmetic exceeds the GPU's power
 * limit, which takes a while to have effect: the clock falls again, and stays there. Initialisation in
 * the first calls comes before. */
static gboolean
warm_up (const BenchCase *row, guint n, GError **error)
{
  const gboolean is_heavy = g_str_has_prefix (row->name, "mm.")
                            || g_str_has_prefix (row->name, "conv.")
                            || g_str_has_prefix (row->name, "attn.");
  gint64 end = 0;

  do
    {
      if (!call (row, n, error) || !wait_awake (error))
        return FALSE;
      if (end == 0)
        end = g_get_monotonic_time () + (is_heavy ? SETTLE : WARM_UP);
    }
  while (g_get_monotonic_time () < end);
  return TRUE;
}

/* Times what the driver alone needs, on the stream of the calls. */
static gdouble
time_floor (const BenchCase *row, guint n)
{
  CUstream stream = gtorch_stream_get_handle (gtorch_stream_get_current (bench_device));
  gint64 start;
  guint i;

  if (bench_driver == NULL)
    {
      bench_driver_open ();
      bench_driver_load ();
    }
  start = g_get_monotonic_time ();
  for (i = 0; i < n; i++)
    row->floor (stream);
  return (g_get_monotonic_time () - start) * 1e-6 / n;
}

/* The queue is emptied between the repetitions, so it is never full. The floor is returned such that its
 * difference from the call's time is the median of the differences in each pair of repetitions: the clock
 * of a shared host changes more in between than a call takes. */
static gboolean
time_host (const BenchCase *row, gdouble *seconds, gdouble *floor, GError **error)
{
  gdouble times[101], above[G_N_ELEMENTS (times)];
  guint i, n = 500, n_times = 21;

  if (row->floor != NULL)
    {
      n = 200;
      n_times = G_N_ELEMENTS (times);
    }
  else if (g_str_has_prefix (row->name, "graph."))
    n = 100;
  else if (g_str_has_prefix (row->name, "audit."))
    n = CALLS;

  if (!warm_up (row, n, error))
    return FALSE;
  for (i = 0; i < n_times; i++)
    {
      gint64 start = g_get_monotonic_time ();

      if (!call (row, n, error))
        return FALSE;
      times[i] = (g_get_monotonic_time () - start) * 1e-6 / n;
      if (!wait_awake (error))
        return FALSE;
      if (row->floor == NULL)
        continue;
      above[i] = times[i] - time_floor (row, n);
      if (!wait_awake (error))
        return FALSE;
    }
  *seconds = median (times, n_times);
  if (row->floor != NULL)
    *floor = *seconds - median (above, n_times);
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

  if (!warm_up (row, 5, error))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (times); i++)
    {
      g_autoptr (GError) elapsed_error = NULL;

      if (!gtorch_event_record (start, stream, error) || !call (row, 1, error)
          || !gtorch_event_record (end, stream, error))
        return FALSE;
      while (!gtorch_event_query (end))
        ;
      if (!gtorch_event_synchronize (end, NULL, error))
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

/* Measures the time between the record of an event before the call and the return of the wait for it,
 * minus the device's time: the latency of the launch, and the delay until the thread notices the end. The
 * row's name says how it waits. */
static gboolean
time_wait (const BenchCase *row, gdouble *seconds, GError **error)
{
  g_autoptr (GTorchEvent) start = gtorch_event_new (GTORCH_EVENT_TIMING);
  g_autoptr (GTorchEvent) end = gtorch_event_new (GTORCH_EVENT_TIMING);
  GTorchStream *stream = gtorch_stream_get_current (bench_device);
  gdouble times[101];
  guint i;

  if (!warm_up (row, 5, error))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (times); i++)
    {
      gint64 begin = g_get_monotonic_time ();
      gboolean is_done;

      if (!gtorch_event_record (start, stream, error) || !call (row, 1, error)
          || !gtorch_event_record (end, stream, error))
        return FALSE;
      if (g_str_has_prefix (row->name, "wait.device"))
        is_done = synchronize (error);
      else if (g_str_has_prefix (row->name, "wait.stream"))
        is_done = gtorch_stream_synchronize (stream, NULL, error);
      else
        is_done = gtorch_event_synchronize (end, NULL, error);
      if (!is_done)
        return FALSE;
      times[i] = (g_get_monotonic_time () - begin) * 1e-6
                 - gtorch_event_get_elapsed_ms (start, end, NULL) * 1e-3;
    }
  *seconds = median (times, G_N_ELEMENTS (times));
  return TRUE;
}

/* Times one of many consecutive calls. */
static gboolean
time_wall (const BenchCase *row, gdouble *seconds, GError **error)
{
  gdouble times[9];
  guint i;

  if (!warm_up (row, 3, error))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (times); i++)
    {
      const gint64 start = g_get_monotonic_time ();

      if (!call (row, CALLS, error) || !wait_awake (error))
        return FALSE;
      times[i] = (g_get_monotonic_time () - start) * 1e-6 / CALLS;
    }
  *seconds = median (times, G_N_ELEMENTS (times));
  return TRUE;
}

/* The row must not have been called before. */
static gboolean
measure_peak (const BenchCase *row, gboolean reserved, gdouble *bytes, GError **error)
{
  static const BenchCase *measured;
  static gdouble allocated_bytes, reserved_bytes;

  if (measured != row)
    {
      GTorchAllocator *allocator = gtorch_device_get_allocator (bench_device);

      gtorch_allocator_reset_peak (allocator);
      if (!call (row, CALLS, error) || !synchronize (error))
        return FALSE;
      allocated_bytes = gtorch_allocator_get_peak_allocated (allocator);
      reserved_bytes = gtorch_allocator_get_peak_reserved (allocator);
      measured = row;
    }
  *bytes = reserved ? reserved_bytes : allocated_bytes;
  return TRUE;
}

static gboolean
measure (const BenchCase *row, gdouble *seconds, gdouble *floor, GError **error)
{
  if (row->unit == NULL || strcmp (row->unit, "audit") == 0)
    return time_host (row, seconds, floor, error);
  if (strcmp (row->unit, "wait") == 0)
    return time_wait (row, seconds, error);
  return strcmp (row->unit, "wall") == 0 ? time_wall (row, seconds, error)
                                         : time_device (row, seconds, error);
}

static const BenchCase *
find (const gchar *name)
{
  const BenchCase *row;

  for (row = bench_cases; row->name != NULL; row++)
    if (strcmp (row->name, name) == 0)
      return row;
  for (row = bench_programs; row->name != NULL; row++)
    if (strcmp (row->name, name) == 0)
      return row;
  return NULL;
}

static void
answer (const gchar *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *program = g_strdup (name + (g_str_has_prefix (name, PEAK) ? strlen (PEAK) : 0));
  gboolean is_peak = g_str_has_prefix (name, PEAK), success = FALSE;
  gboolean is_reserved = is_peak && g_str_has_suffix (name, RESERVED);
  const BenchCase *row;
  gdouble value = 0, floor = 0;

  if (is_reserved)
    program[strlen (program) - strlen (RESERVED)] = '\0';
  row = find (program);
  if (row != NULL)
    success = is_peak ? measure_peak (row, is_reserved, &value, &error)
                      : measure (row, &value, &floor, &error);
  if (success && floor > 0)
    printf ("%s\t%.6g\t%.6g\n", name, value, floor);
  else if (success)
    printf ("%s\t%.6g\n", name, value);
  else
    printf ("%s\tnone\n", name);
  if (error != NULL)
    fprintf (stderr, "%s: %s\n", name, error->message);
  fflush (stdout);
}

static void
list (void)
{
  const BenchCase *row;

  for (row = bench_cases; row->name != NULL; row++)
    printf ("%s\t%g\t%s\n", row->name, row->amount, row->unit != NULL ? row->unit : "");
  for (row = bench_programs; row->name != NULL; row++)
    printf ("%s\t%g\t%s\n", row->name, row->amount, row->unit != NULL ? row->unit : "");
  for (row = bench_programs; row->name != NULL; row++)
    if (g_str_has_prefix (row->name, "train.") || g_str_has_prefix (row->name, "infer."))
      printf (PEAK "%s\t1\tbytes\n" PEAK "%s" RESERVED "\t1\tbytes\n", row->name, row->name);
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
  char line[96];

  if (argc > 1 && strcmp (argv[1], "--list") == 0)
    {
      list ();
      return 0;
    }
  bench_device = gtorch_device_new_from_string ("cuda", &error);
  if (bench_device == NULL)
    {
      fprintf (stderr, "%s\n", error->message);
      return 1;
    }
  bench_device = gtorch_device_resolve (bench_device);
  if (argc > 1 && strcmp (argv[1], "--first") == 0)
    return make_first ();
  /* as in the peer */
  gtorch_device_set_benchmark (bench_device, argc < 2 || strcmp (argv[1], "--unasked") != 0);
  guard = gtorch_no_grad ();
  while (fgets (line, sizeof line, stdin) != NULL)
    {
      g_strchomp (line);
      answer (line);
    }
  return 0;
}
