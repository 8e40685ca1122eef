/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Results that the host waits for. A small one is mostly a few microseconds away, less than a thread needs
 * to fall asleep and to wake up: so ask for a moment, then sleep. */

#include "config.h"

#include <string.h>

#include "cuda/gtorch-cuda-capture-private.h"

#define PATIENCE 50   /* microseconds */
#define BOUNCE   4096 /* bytes; the driver is slow with memory that is not pinned */

static gboolean
is_worth_asking (gint64 *end)
{
  const gint64 now = g_get_monotonic_time ();

  if (*end == 0)
    *end = now + PATIENCE;
  return now < *end;
}

CUresult
gtorch_cuda_lane_wait (GTorchCudaLane *lane)
{
  gint64 end = 0;
  CUresult result;
  GTORCH_CUDA_APART;

  while ((result = gtorch_cuda.cuStreamQuery (lane->handle)) == CUDA_ERROR_NOT_READY)
    if (!is_worth_asking (&end))
      return gtorch_cuda.cuStreamSynchronize (lane->handle);
  return result;
}

typedef struct
{
  CUstream stream;
  CUevent event; /* wakes the thread up */
} Sleeper;

static gboolean
take_sleeper (GTorchCudaDevice *device, Sleeper *sleeper)
{
  gboolean found;

  g_mutex_lock (&device->event_lock);
  if (device->sleepers == NULL)
    device->sleepers = g_array_new (FALSE, FALSE, sizeof (Sleeper));
  found = device->sleepers->len > 0;
  if (found)
    {
      *sleeper = g_array_index (device->sleepers, Sleeper, device->sleepers->len - 1);
      g_array_set_size (device->sleepers, device->sleepers->len - 1);
    }
  g_mutex_unlock (&device->event_lock);
  if (found)
    return TRUE;
  if (gtorch_cuda.cuEventCreate (&sleeper->event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)
      != CUDA_SUCCESS)
    return FALSE;
  if (gtorch_cuda.cuStreamCreateWithPriority (&sleeper->stream, CU_STREAM_NON_BLOCKING, 0)
      == CUDA_SUCCESS)
    return TRUE;
  gtorch_cuda.cuEventDestroy (sleeper->event);
  return FALSE;
}

/* An event that wakes threads up is an interrupt each time it is passed, which takes 35 us from whoever is
 * on the processor that gets it. So events do not, but for one that is recorded behind them when a thread
 * falls asleep. */
static CUresult
sleep_until (GTorchCudaDevice *device, CUevent event)
{
  Sleeper sleeper;
  CUresult result;

  if (!gtorch_cuda_device_activate (device, NULL) || !take_sleeper (device, &sleeper))
    return gtorch_cuda.cuEventSynchronize (event);
  result = gtorch_cuda.cuStreamWaitEvent (sleeper.stream, event, 0);
  if (result == CUDA_SUCCESS)
    result = gtorch_cuda.cuEventRecord (sleeper.event, sleeper.stream);
  if (result == CUDA_SUCCESS)
    result = gtorch_cuda.cuEventSynchronize (sleeper.event);
  g_mutex_lock (&device->event_lock);
  g_array_append_val (device->sleepers, sleeper);
  g_mutex_unlock (&device->event_lock);
  return result;
}

CUresult
gtorch_cuda_event_wait (GTorchCudaDevice *device, CUevent event)
{
  gint64 end = 0;
  CUresult result;
  GTORCH_CUDA_APART;

  while ((result = gtorch_cuda.cuEventQuery (event)) == CUDA_ERROR_NOT_READY)
    if (!is_worth_asking (&end))
      return sleep_until (device, event);
  return result;
}

/* NULL while another thread has it, or where there is none: it is only quicker. */
static gpointer
take_bounce (GTorchCudaLane *lane)
{
  if (__atomic_exchange_n (&lane->bounce_is_taken, TRUE, __ATOMIC_ACQUIRE))
    return NULL;
  if (G_UNLIKELY (lane->bounce == NULL)
      && gtorch_cuda.cuMemHostAlloc (&lane->bounce, BOUNCE, CU_MEMHOSTALLOC_PORTABLE)
             != CUDA_SUCCESS)
    {
      lane->bounce = NULL;
      __atomic_store_n (&lane->bounce_is_taken, FALSE, __ATOMIC_RELEASE);
      return NULL;
    }
  return lane->bounce;
}

gboolean
gtorch_cuda_read (GTorchCudaLane *lane, gpointer to, gconstpointer from, gsize n_bytes,
                  GError **error)
{
  gpointer bounce;
  gboolean result;
  GTORCH_CUDA_APART;

  if (!gtorch_cuda_allow_wait (lane, "read", error)
      || !gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  bounce = n_bytes <= BOUNCE ? take_bounce (lane) : NULL;
  gtorch_cuda_note_begin (lane, "copy");
  result = gtorch_cuda_check (gtorch_cuda.cuMemcpyDtoHAsync (bounce != NULL ? bounce : to,
                                                             (CUdeviceptr) (guintptr) from, n_bytes,
                                                             lane->handle),
                              "cuMemcpyDtoHAsync", error);
  result =
      gtorch_cuda_note_end (lane, result) && gtorch_cuda_lane_synchronize (lane, "read", error);
  if (bounce != NULL)
    {
      if (result)
        memcpy (to, bounce, n_bytes);
      __atomic_store_n (&lane->bounce_is_taken, FALSE, __ATOMIC_RELEASE);
    }
  return result;
}
