/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Results that the host waits for. A small one is mostly a few microseconds away, less than a thread needs
 * to fall asleep and to wake up: so ask for a moment, then sleep. */

#include "config.h"

#include <string.h>

#include "cuda/gtorch-cuda-capture-private.h"

#define PATIENCE  50   /* microseconds */
#define QUESTIONS 8    /* between two looks at the clock */
#define BOUNCE    4096 /* bytes; the driver is slow with memory that is not pinned */

/* Asks until it is done, or for so long that the thread had better sleep. Meanwhile anybody may begin a
 * capture that forbids to ask. */
static CUresult
ask (CUresult (*query) (gpointer what), gpointer what)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result;
  gint64 end;
  guint n;
  GTORCH_CUDA_APART;

  result = query (what);
  if (result != CUDA_ERROR_NOT_READY)
    return result;
  end = g_get_monotonic_time () + PATIENCE;
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  do /* the clock is as slow as the question */
    for (n = 0; n < QUESTIONS && result == CUDA_ERROR_NOT_READY; n++)
      result = query (what);
  while (result == CUDA_ERROR_NOT_READY && g_get_monotonic_time () < end);
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  return result;
}

static CUresult
query_lane (gpointer lane)
{
  return gtorch_cuda.cuStreamQuery (((GTorchCudaLane *) lane)->handle);
}

static CUresult
query_event (gpointer event)
{
  return gtorch_cuda.cuEventQuery (event);
}

CUresult
gtorch_cuda_lane_wait (GTorchCudaLane *lane)
{
  CUresult result = ask (query_lane, lane);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

  if (result != CUDA_ERROR_NOT_READY)
    return result;
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  result = gtorch_cuda.cuStreamSynchronize (lane->handle);
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
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

/* One that could not be used comes last. */
static void
put_sleeper (GTorchCudaDevice *device, const Sleeper *sleeper, gboolean is_good)
{
  g_mutex_lock (&device->event_lock);
  g_array_insert_vals (device->sleepers, is_good ? device->sleepers->len : 0, sleeper, 1);
  g_mutex_unlock (&device->event_lock);
}

/* An event that wakes threads up is an interrupt each time it is passed, which takes 35 us from whoever is
 * on the processor that gets it. So events do not, but for one that is recorded behind them when a thread
 * falls asleep. It takes a queue of the device's meanwhile, as every stream that waits does. */
static CUresult
sleep_until (GTorchCudaDevice *device, CUevent event)
{
  CUcontext former = NULL;
  gboolean is_asleep = FALSE;
  Sleeper sleeper;
  CUresult result;

  gtorch_cuda.cuCtxGetCurrent (&former);
  if (gtorch_cuda_device_activate (device, NULL) && take_sleeper (device, &sleeper))
    {
      is_asleep = gtorch_cuda.cuStreamWaitEvent (sleeper.stream, event, 0) == CUDA_SUCCESS
                  && gtorch_cuda.cuEventRecord (sleeper.event, sleeper.stream) == CUDA_SUCCESS;
      if (!is_asleep)
        put_sleeper (device, &sleeper, FALSE);
    }
  /* only this tells of the event: the memory of who gives up waiting goes to others */
  result = gtorch_cuda.cuEventSynchronize (is_asleep ? sleeper.event : event);
  if (is_asleep)
    put_sleeper (device, &sleeper, TRUE);
  if (former != NULL && former != device->context)
    gtorch_cuda.cuCtxSetCurrent (former);
  return result;
}

CUresult
gtorch_cuda_event_wait (GTorchCudaDevice *device, CUevent event)
{
  CUresult result = ask (query_event, event);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

  if (result != CUDA_ERROR_NOT_READY)
    return result;
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  result = sleep_until (device, event);
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
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
