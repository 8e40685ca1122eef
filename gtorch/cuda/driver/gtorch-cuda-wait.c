/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Waiting for a GPU. A thread that sleeps notices the end of the work some 30 microseconds later than one
 * that spins, which is long compared with most kernels; one that spins takes a processor away from others.
 * So an adaptive wait spins first, for a time that is small compared with a wait that exceeds it. If the
 * last few waits of the thread were long, it spins for about as long as a wake-up takes, which is never
 * much worse than the better of both.
 *
 * A thread spins by querying the driver, which takes locks of the driver that other threads need for their
 * launches. After the first queries it therefore pauses for about a microsecond between two of them. */

#include "config.h"

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-recording-private.h"
#include "device/gtorch-device-private.h"

#define SPIN_US       1000 /* for how long an adaptive wait spins */
#define SHORT_SPIN_US 50   /* for how long it spins after N_LONG long waits */
#define N_LONG        4
#define N_EAGER       16 /* number of first queries without a pause between them */
#define N_PAUSES      32 /* pause instructions between two later queries */
#define SLEEP_AT_ONCE -1
#define NEVER_SLEEP   G_MAXINT64

/* The number of consecutive waits of this thread that took longer than SPIN_US, up to N_LONG. */
static __thread guint n_long;

typedef CUresult (*Query) (gpointer what);

static inline void
pause_a_little (void)
{
  guint i;

  for (i = 0; i < N_PAUSES; i++)
    {
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause ();
#elif defined(__aarch64__)
      __asm__ volatile("yield");
#else
      __atomic_signal_fence (__ATOMIC_SEQ_CST);
#endif
    }
}

/* Returns how long to spin, in microseconds. */
static gint64
get_patience (GTorchCudaDevice *device, gboolean is_blocking)
{
  const gint policy = is_blocking ? GTORCH_WAIT_POLICY_SLEEP
                                  : g_atomic_int_get (&((GTorchDevice *) device)->wait_policy);

  switch (policy)
    {
    case GTORCH_WAIT_POLICY_SLEEP:
      return SLEEP_AT_ONCE;
    case GTORCH_WAIT_POLICY_SPIN:
      return g_main_depth () > 0 ? GTORCH_MAIN_LOOP_SPIN_US : NEVER_SLEEP;
    default:
      return n_long < N_LONG ? SPIN_US : SHORT_SPIN_US;
    }
}

/* Queries until the result is not CUDA_ERROR_NOT_READY or the time is over. */
static CUresult
spin (Query query, gpointer what, gint64 begin, gint64 patience)
{
  CUresult result;
  guint n = 0;

  do
    {
      if (n++ >= N_EAGER)
        pause_a_little ();
      result = query (what);
    }
  while (result == CUDA_ERROR_NOT_READY && g_get_monotonic_time () - begin < patience);
  return result;
}

/* Spins according to the device's policy, then calls sleep. The thread is exempt from captures'
 * restrictions meanwhile, as other threads may begin captures, which forbid queries. */
static CUresult
wait_for (GTorchCudaDevice *device, gboolean is_blocking, Query query, gpointer what,
          CUresult (*sleep) (GTorchCudaDevice *device, gpointer what))
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  gint64 begin, patience;
  CUresult result;
  GTORCH_CUDA_APART;

  result = query (what);
  if (result != CUDA_ERROR_NOT_READY)
    return result;
  begin = g_get_monotonic_time ();
  patience = get_patience (device, is_blocking);
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  if (patience > 0)
    result = spin (query, what, begin, patience);
  if (result == CUDA_ERROR_NOT_READY)
    result = sleep (device, what);
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  n_long = g_get_monotonic_time () - begin <= SPIN_US ? 0 : MIN (n_long + 1, N_LONG);
  return result;
}

/* --- lanes --- */

static CUresult
query_lane (gpointer lane)
{
  return gtorch_cuda.cuStreamQuery (((GTorchCudaLane *) lane)->handle);
}

static CUresult
sleep_for_lane (GTorchCudaDevice *device, gpointer lane)
{
  return gtorch_cuda.cuStreamSynchronize (((GTorchCudaLane *) lane)->handle);
}

CUresult
gtorch_cuda_lane_wait (GTorchCudaLane *lane)
{
  if (gtorch_cuda_lane_is_closed (lane)) /* its queue may not exist */
    return gtorch_cuda_context_wait ();
  return wait_for (lane->device, FALSE, query_lane, lane, sleep_for_lane);
}

/* --- events --- */

typedef struct
{
  CUstream stream;
  CUevent event; /* recorded in the stream to wake the thread up */
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

/* Puts a sleeper back; one that could not be used is taken last. */
static void
put_sleeper (GTorchCudaDevice *device, const Sleeper *sleeper, gboolean is_good)
{
  g_mutex_lock (&device->event_lock);
  g_array_insert_vals (device->sleepers, is_good ? device->sleepers->len : 0, sleeper, 1);
  g_mutex_unlock (&device->event_lock);
}

/* Sleeps until an event is done. An event that wakes threads up causes an interrupt each time it is passed,
 * which takes 35 us from whatever runs on that processor. Ordinary events therefore do not wake threads up;
 * instead, an event that does is recorded behind them, on another stream, when a thread falls asleep. That
 * stream, like every stream that waits, occupies one of the device's hardware queues meanwhile. */
static CUresult
sleep_for_event (GTorchCudaDevice *device, gpointer event)
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
  /* only this call's result says that the event is done: if it returned too early, memory would be reused */
  result = gtorch_cuda.cuEventSynchronize (is_asleep ? sleeper.event : event);
  if (is_asleep)
    put_sleeper (device, &sleeper, TRUE);
  if (former != NULL && former != device->context)
    gtorch_cuda.cuCtxSetCurrent (former);
  return result;
}

static CUresult
query_event (gpointer event)
{
  return gtorch_cuda.cuEventQuery (event);
}

CUresult
gtorch_cuda_event_wait (GTorchCudaDevice *device, CUevent event, gboolean is_blocking)
{
  return wait_for (device, is_blocking, query_event, event, sleep_for_event);
}

/* --- whole devices --- */

/* Returns CUDA_SUCCESS if all lanes that can be queried are done. */
static CUresult
query_device (gpointer device)
{
  GTorchCudaLane *lane = g_atomic_pointer_get (&((GTorchCudaDevice *) device)->newest);

  for (; lane != NULL; lane = lane->next)
    {
      const guint64 number = gtorch_cuda_lane_enqueued (lane);
      CUresult result;

      if (number <= __atomic_load_n (&lane->done, __ATOMIC_RELAXED)
          || gtorch_cuda_lane_is_closed (lane) || gtorch_cuda_lane_is_capturing (lane))
        continue;
      result = gtorch_cuda.cuStreamQuery (lane->handle);
      if (result != CUDA_SUCCESS)
        return result;
      gtorch_cuda_note_done (lane, number);
    }
  return CUDA_SUCCESS;
}

static CUresult
sleep_for_context (GTorchCudaDevice *device, gpointer what)
{
  return gtorch_cuda_context_wait ();
}

/* Waits for the device. The context is synchronised in any case, as it may have work that is not the
 * library's. */
CUresult
gtorch_cuda_device_wait (GTorchCudaDevice *device)
{
  wait_for (device, FALSE, query_device, device, sleep_for_context);
  return gtorch_cuda_context_wait ();
}
