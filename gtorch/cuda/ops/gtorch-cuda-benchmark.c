/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Measures which of several implementations is the fastest, with the device's own timer. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-benchmark-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"

#define N_ROUNDS 3
#define MIN_MS   0.2 /* the minimum length of a round, well above the timer's resolution */
#define MAX_RUNS 20  /* the maximum number of runs in a round */
/* Implementations within this factor of the fastest are measured again, for longer. */
#define NEAR        1.15
#define MIN_MS_NEAR 1.0
/* A later implementation must be faster than the first by more than run times vary. */
#define GAIN 0.98

/* Returns the mean time of n runs in milliseconds; negative if the implementation cannot be used. */
static gfloat
time_runs (GTorchCudaLane *lane, const CUevent *events, guint n, GTorchCudaAttempt attempt,
           guint which, gpointer data)
{
  gfloat time = -1;
  guint i;

  if (gtorch_cuda.cuEventRecord (events[0], lane->handle) != CUDA_SUCCESS)
    return -1;
  for (i = 0; i < n; i++)
    if (!attempt (which, data))
      return -1;
  if (gtorch_cuda.cuEventRecord (events[1], lane->handle) != CUDA_SUCCESS
      || gtorch_cuda_event_wait (lane->device, events[1], FALSE) != CUDA_SUCCESS
      || gtorch_cuda.cuEventElapsedTime (&time, events[0], events[1]) != CUDA_SUCCESS)
    return -1;
  return time / n;
}

static guint
runs_of (gfloat time, gdouble least)
{
  return time * MAX_RUNS < least ? MAX_RUNS : (guint) (least / time) + 1;
}

/* Measures all implementations in turns, as the clock rate changes with the temperature. Keeps the shortest
 * time of the rounds or, with `add`, their sum. */
static void
take_turns (GTorchCudaLane *lane, const CUevent *events, guint n, GTorchCudaAttempt attempt,
            gpointer data, gboolean add, guint *n_runs, gfloat *times)
{
  guint round, i;

  for (round = 0; round < N_ROUNDS; round++)
    for (i = 0; i < n; i++)
      if (n_runs[i] > 0)
        {
          gfloat time = time_runs (lane, events, n_runs[i], attempt, i, data);

          times[i] = round == 0 ? time : add ? times[i] + time : MIN (time, times[i]);
          if (time < 0)
            n_runs[i] = 0;
        }
}

static gint
quickest (guint n, const guint *n_runs, const gfloat *times, gfloat gain)
{
  gint result = -1;
  guint i;

  for (i = 0; i < n; i++)
    if (n_runs[i] > 0 && (result < 0 || times[i] < times[result] * gain))
      result = i;
  return result;
}

gint
gtorch_cuda_benchmark (GTorchCudaLane *lane, guint n, GTorchCudaAttempt attempt, gpointer data)
{
  g_autofree gfloat *times = g_new (gfloat, n);
  g_autofree guint *n_runs = g_new0 (guint, n); /* 0 if it cannot be used */
  CUevent events[2] = { gtorch_cuda_event_get (lane->device, TRUE, NULL),
                        gtorch_cuda_event_get (lane->device, TRUE, NULL) };
  gint result, first;
  guint i;

  if (events[0] == NULL || events[1] == NULL)
    n = 0;
  for (i = 0; i < n; i++)
    {
      /* The first run loads kernels, the second one measures roughly how long a run takes. */
      times[i] = time_runs (lane, events, 1, attempt, i, data);
      if (times[i] >= 0)
        times[i] = time_runs (lane, events, 1, attempt, i, data);
      if (times[i] >= 0)
        n_runs[i] = runs_of (times[i], MIN_MS);
    }
  take_turns (lane, events, n, attempt, data, FALSE, n_runs, times);
  first = quickest (n, n_runs, times, 1);
  for (i = 0; first >= 0 && i < n; i++)
    if (n_runs[i] > 0)
      n_runs[i] = times[i] <= times[first] * NEAR ? runs_of (times[i], MIN_MS_NEAR) : 0;
  take_turns (lane, events, n, attempt, data, TRUE, n_runs, times);
  result = quickest (n, n_runs, times, GAIN);
  if (n > 0)
    gtorch_cuda.cuStreamSynchronize (lane->handle);
  for (i = 0; i < 2; i++)
    if (events[i] != NULL)
      gtorch_cuda_event_put (lane->device, events[i], TRUE);
  return result;
}
