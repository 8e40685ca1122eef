/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Times the CUDA driver itself for those rows of bench-cuda that it can run alone: their lower bound.
 * Reads names and prints “name, median seconds of one call”; --first creates the context and ends. */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench-launch.h"

#define SIZE ((size_t) 1 << 30)

static CUstream stream;
static void *hundred; /* a graph */
static CUdeviceptr from, to;

static void
synchronize (void)
{
  CALL ("cuStreamSynchronize", (CUstream), stream);
}

static void
launch (void)
{
  bench_launch (stream);
}

static void
replay (void)
{
  CALL ("cuGraphLaunch", (void *, CUstream), hundred, stream);
}

static void
replay_on_default (void)
{
  CALL ("cuGraphLaunch", (void *, CUstream), hundred, NULL);
}

static void
copy (void)
{
  CALL ("cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, size_t, CUstream), to, from, SIZE,
        stream);
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

/* Calls `run` until the processor's and the GPU's clocks have risen. */
static void
warm_up (void (*run) (void))
{
  const gint64 end = g_get_monotonic_time () + WARM_UP;

  do
    {
      run ();
      CALL ("cuCtxSynchronize", (void) );
    }
  while (g_get_monotonic_time () < end);
}

static double
time_host (void (*run) (void))
{
  double times[21];
  guint i, j,
      n = run == replay || run == replay_on_default ? 100 : 500; /* the queue must not be full */

  warm_up (run);
  for (i = 0; i < G_N_ELEMENTS (times); i++)
    {
      gint64 start = g_get_monotonic_time ();

      for (j = 0; j < n; j++)
        run ();
      times[i] = (g_get_monotonic_time () - start) * 1e-6 / n;
      CALL ("cuCtxSynchronize", (void) );
    }
  qsort (times, G_N_ELEMENTS (times), sizeof *times, compare);
  return times[G_N_ELEMENTS (times) / 2];
}

static double
time_device (void (*run) (void))
{
  CUevent start, end;
  double times[30];
  float ms;
  guint i;

  CALL ("cuEventCreate", (CUevent *, unsigned), &start, CU_EVENT_DEFAULT);
  CALL ("cuEventCreate", (CUevent *, unsigned), &end, CU_EVENT_DEFAULT);
  warm_up (run);
  for (i = 0; i < G_N_ELEMENTS (times); i++)
    {
      CALL ("cuEventRecord", (CUevent, CUstream), start, stream);
      run ();
      CALL ("cuEventRecord", (CUevent, CUstream), end, stream);
      synchronize ();
      CALL ("cuEventElapsedTime", (float *, CUevent, CUevent), &ms, start, end);
      times[i] = ms * 1e-3;
    }
  qsort (times, G_N_ELEMENTS (times), sizeof *times, compare);
  return times[G_N_ELEMENTS (times) / 2];
}

/* Creates a graph of a hundred small kernels in sequence. */
static void
prepare_graph (void)
{
  void *graph;
  guint i;

  CALL ("cuStreamBeginCapture_v2", (CUstream, int), stream, 2);
  for (i = 0; i < 100; i++)
    launch ();
  CALL ("cuStreamEndCapture", (CUstream, void **), stream, &graph);
  CALL ("cuGraphInstantiateWithFlags", (void **, void *, unsigned long long), &hundred, graph, 0);
  replay ();
  synchronize ();
}

static void
prepare_rest (void)
{
  bench_driver_load ();
  CALL ("cuMemAlloc_v2", (CUdeviceptr *, size_t), &from, SIZE);
  CALL ("cuMemAlloc_v2", (CUdeviceptr *, size_t), &to, SIZE);
  prepare_graph ();
}

int
main (int argc, char *argv[])
{
  char line[64];

  bench_driver_open ();
  CALL ("cuStreamCreate", (CUstream *, unsigned), &stream, CU_STREAM_NON_BLOCKING);
  if (argc > 1 && strcmp (argv[1], "--first") == 0)
    return 0;
  prepare_rest ();
  while (fgets (line, sizeof line, stdin) != NULL)
    {
      g_strchomp (line);
      if (strcmp (line, "graph.replay_100_tiny.host") == 0)
        printf ("%s\t%.4g\n", line, time_host (replay_on_default));
      else if (strcmp (line, "graph.replay_100_tiny.own_stream.host") == 0)
        printf ("%s\t%.4g\n", line, time_host (replay));
      else if (strcmp (line, "graph.replay_100_tiny") == 0)
        printf ("%s\t%.4g\n", line, time_device (replay));
      else if (strcmp (line, "bw.copy_f32") == 0)
        printf ("%s\t%.4g\n", line, time_device (copy));
      else
        printf ("%s\tnone\n", line);
      fflush (stdout);
    }
  return 0;
}
