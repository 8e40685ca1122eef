/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Streams of a GPU, the fences recorded in them, and waiting for them. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/memory/gtorch-cuda-magazine-private.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"
#include "cuda/ops/gtorch-cuda-recording-private.h"
#include "stream/gtorch-event.h"
#include "base/gtorch-fork-private.h"

typedef GTorchStreamClass GTorchCudaStreamClass;

G_DEFINE_TYPE (GTorchCudaStream, gtorch_cuda_stream, GTORCH_TYPE_STREAM)

/* The maximum number of queues that a block's uses can distinguish; further streams share them. */
#define MAX_LANES 63

/* --- fences --- */

static GTorchCudaDevice *
fence_device (GTorchFence *fence)
{
  return GTORCH_CUDA_DEVICE (fence->device);
}

static void
finish (GTorchFence *fence, CUresult result, gboolean waited)
{
  GError *error = NULL;

  if (gtorch_cuda_check (result, gtorch_device_name (fence->device), &error))
    {
      if (fence->queue != NULL)
        gtorch_cuda_note_done (fence->queue, fence->number);
      if (waited)
        gtorch_cuda_check_report (fence_device (fence), &error);
    }
  gtorch_fence_complete (fence, error);
}

static void
fence_poll (GTorchFence *fence)
{
  GTORCH_CUDA_APART;
  CUresult result = gtorch_cuda.cuEventQuery (fence->handle);

  if (result != CUDA_ERROR_NOT_READY)
    finish (fence, result, FALSE);
}

static void
fence_wait (GTorchFence *fence)
{
  const gboolean is_blocking = (fence->flags & GTORCH_EVENT_BLOCKING) != 0;

  finish (fence, gtorch_cuda_event_wait (fence_device (fence), fence->handle, is_blocking), TRUE);
}

/* The interval at which a thread checks devices with pending fences, as the driver sends no signal for a
 * device that has failed. The set `armed` holds a reference to each pending fence; whoever removes a fence
 * from it completes the fence. */
#define WATCH_INTERVAL (G_USEC_PER_SEC / 4)

static GMutex armed_lock;
GTORCH_FORK_LOCK (armed_lock);
static GCond armed_cond;
static GHashTable *armed; /* set of GTorchFence */

/* Exempts the calling thread, one of the library's own, from the restrictions of captures. */
static void
stay_apart (void)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
}

static gpointer
watch (gpointer data)
{
  stay_apart ();
  g_mutex_lock (&armed_lock);
  while (TRUE)
    {
      CUresult results[GTORCH_CUDA_MAX_DEVICES] = { 0 };
      gboolean asked[GTORCH_CUDA_MAX_DEVICES] = { FALSE };
      GPtrArray *failed;
      GTorchFence *fence;
      GHashTableIter iter;
      guint i;

      if (g_hash_table_size (armed) == 0)
        {
          g_cond_wait (&armed_cond, &armed_lock);
          continue;
        }
      g_mutex_unlock (&armed_lock);
      g_usleep (WATCH_INTERVAL);
      g_mutex_lock (&armed_lock);

      failed = g_ptr_array_new ();
      g_hash_table_iter_init (&iter, armed);
      while (g_hash_table_iter_next (&iter, (gpointer *) &fence, NULL))
        {
          i = fence->device->index;
          if (!asked[i])
            results[i] = gtorch_cuda.cuEventQuery (fence->handle);
          asked[i] = TRUE;
          if (results[i] == CUDA_SUCCESS || results[i] == CUDA_ERROR_NOT_READY)
            continue;
          g_ptr_array_add (failed, fence);
          g_hash_table_iter_remove (&iter);
        }
      g_mutex_unlock (&armed_lock);
      for (i = 0; i < failed->len; i++)
        {
          fence = failed->pdata[i];
          finish (fence, results[fence->device->index], FALSE);
          gtorch_fence_unref (fence);
        }
      g_ptr_array_unref (failed);
      g_mutex_lock (&armed_lock);
    }
  return NULL;
}

static void
add_armed (GTorchFence *fence)
{
  g_mutex_lock (&armed_lock);
  if (armed == NULL)
    {
      armed = g_hash_table_new (NULL, NULL);
      g_thread_unref (g_thread_new ("gtorch-watch", watch, NULL));
    }
  g_hash_table_add (armed, fence);
  g_cond_signal (&armed_cond);
  g_mutex_unlock (&armed_lock);
}

static gboolean
remove_armed (GTorchFence *fence)
{
  gboolean result;

  g_mutex_lock (&armed_lock);
  result = g_hash_table_remove (armed, fence);
  g_mutex_unlock (&armed_lock);
  return result;
}

/* Completes a fence. Runs in a thread of the driver, which must not call CUDA. */
static void
on_signal (void *data)
{
  GTorchFence *fence = data;
  GError *error = NULL;

  if (!remove_armed (fence))
    return;
  if (fence->queue != NULL)
    gtorch_cuda_note_done (fence->queue, fence->number);
  gtorch_cuda_check_report (fence_device (fence), &error);
  gtorch_fence_complete (fence, error);
  gtorch_fence_unref (fence);
}

/* Waits for a fence in a thread of its own, for when the driver cannot send a signal. */
static gpointer
wait_in_thread (gpointer data)
{
  GTorchFence *fence = data;

  stay_apart ();
  fence_wait (fence);
  gtorch_fence_unref (fence);
  return NULL;
}

static void
fence_arm (GTorchFence *fence)
{
  GTorchCudaDevice *device = fence_device (fence);
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  GTORCH_CUDA_APART;

  gtorch_fence_ref (fence);
  add_armed (fence);
  if (gtorch_cuda_device_activate (device, NULL))
    {
      g_mutex_lock (&device->lock);
      result = CUDA_SUCCESS;
      if (device->signal == NULL)
        result =
            gtorch_cuda.cuStreamCreateWithPriority (&device->signal, CU_STREAM_NON_BLOCKING, 0);
      if (result == CUDA_SUCCESS)
        result = gtorch_cuda.cuStreamWaitEvent (device->signal, fence->handle, 0);
      if (result == CUDA_SUCCESS)
        result = gtorch_cuda.cuLaunchHostFunc (device->signal, on_signal, fence);
      g_mutex_unlock (&device->lock);
    }
  if (result != CUDA_SUCCESS && remove_armed (fence))
    g_thread_unref (g_thread_new ("gtorch-fence", wait_in_thread, fence));
}

static gboolean
fence_elapsed (GTorchFence *fence, GTorchFence *other, gdouble *milliseconds, GError **error)
{
  float value = 0;

  if (!gtorch_cuda_check (gtorch_cuda.cuEventElapsedTime (&value, fence->handle, other->handle),
                          "elapsed time", error))
    return FALSE;
  *milliseconds = value;
  return TRUE;
}

/* Frees a fence. May run in a thread of the driver. */
static void
fence_free (GTorchFence *fence)
{
  if (fence->shared != NULL)
    gtorch_cuda_shared_event_unref (fence->shared);
  else if (fence->handle != NULL)
    gtorch_cuda_event_put (fence_device (fence), fence->handle,
                           (fence->flags & GTORCH_EVENT_TIMING) != 0);
}

static const GTorchFenceBackend fence_backend = {
  .poll = fence_poll,
  .wait = fence_wait,
  .arm = fence_arm,
  .elapsed = fence_elapsed,
  .free = fence_free,
};

GTorchFence *
gtorch_cuda_fence_new (GTorchCudaDevice *device, CUevent event)
{
  GTorchFence *fence = gtorch_fence_new ();

  fence->device = (GTorchDevice *) device;
  fence->handle = event;
  fence->backend = &fence_backend;
  return fence;
}

/* --- the class --- */

gboolean
gtorch_cuda_stream_prepare (GTorchStream *stream, GError **error)
{
  if (G_LIKELY (GTORCH_CUDA_STREAM (stream)->lane != NULL))
    return gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (stream->device), error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA, _ ("stream: it could not be created on %s"),
               gtorch_device_name (stream->device));
  return FALSE;
}

static gboolean
gtorch_cuda_stream_record (GTorchStream *stream, GTorchFence *fence, GError **error)
{
  CUevent event;

  if (!gtorch_cuda_stream_prepare (stream, error))
    return FALSE;
  event = gtorch_cuda_event_get (GTORCH_CUDA_DEVICE (stream->device),
                                 (fence->flags & GTORCH_EVENT_TIMING) != 0, error);
  if (event == NULL)
    return FALSE;
  fence->device = stream->device;
  fence->handle = event;
  fence->backend = &fence_backend;
  fence->queue = GTORCH_CUDA_STREAM (stream)->lane;
  fence->number = gtorch_cuda_lane_enqueued (fence->queue);
  return gtorch_cuda_check (gtorch_cuda.cuEventRecord (event,
                                                       GTORCH_CUDA_STREAM (stream)->lane->handle),
                            "cuEventRecord", error);
}

static gboolean
gtorch_cuda_stream_wait (GTorchStream *stream, GTorchFence *fence, GError **error)
{
  if (!gtorch_cuda_stream_prepare (stream, error))
    return FALSE;
  if (fence->backend == &fence_backend)
    return gtorch_cuda_check (gtorch_cuda
                                  .cuStreamWaitEvent (GTORCH_CUDA_STREAM (stream)->lane->handle,
                                                      fence->handle, 0),
                              "cuStreamWaitEvent", error);
  /* The fence is for work of the CPU, which the GPU cannot wait for, so the thread waits. */
  return gtorch_fence_wait (fence, NULL, error);
}

/* Returns whether the driver reports that the queue is capturing. The program may have begun the capture
 * with the queue's handle, and work of other streams would become part of it. */
gboolean
gtorch_cuda_lane_is_capturing (GTorchCudaLane *lane)
{
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

  if (!gtorch_cuda_lane_is_closed (lane)) /* otherwise its queue may not exist */
    gtorch_cuda.cuStreamIsCapturing (lane->handle, &status);
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Orders further work of the lane after the current work of the other lane. The device's lock must be
 * held. */
gboolean
gtorch_cuda_lane_join (GTorchCudaLane *lane, GTorchCudaLane *other, GError **error)
{
  CUevent event = gtorch_cuda_lane_mark (other, error);
  gboolean result;

  if (event == NULL)
    return FALSE;
  result = gtorch_cuda_check (gtorch_cuda.cuStreamWaitEvent (lane->handle, event, 0),
                              "cuStreamWaitEvent", error);
  gtorch_cuda_event_put (lane->device, event, FALSE);
  return result;
}

/* Orders further work of the lane after the other lane's, unless the other lane is in a capture of which
 * the library does not know. A queue that may have been destroyed cannot be queried, so the whole context
 * is waited for instead. The device's lock must be held. */
static gboolean
join_if_possible (GTorchCudaLane *lane, GTorchCudaLane *other, gboolean *has_joined, GError **error)
{
  const gboolean is_closed = gtorch_cuda_lane_is_closed (other);
  GTORCH_CUDA_APART;

  if (is_closed)
    *has_joined = !gtorch_cuda_device_is_capturing (lane->device);
  else
    *has_joined = other->before != NULL || !gtorch_cuda_lane_is_capturing (other);
  if (!*has_joined)
    return TRUE;
  if (is_closed)
    return gtorch_cuda_check (gtorch_cuda_context_wait (), "cuCtxSynchronize", error);
  return gtorch_cuda_lane_join (lane, other, error);
}

/* Orders further work of the stream after the current work of the lane if possible. If is_needed is FALSE,
 * that order exists already. The device's lock must be held. */
static gboolean
come_after (GTorchStream *stream, GTorchCudaLane *other, gboolean is_needed, gboolean *has_joined,
            GTorchJoinedFunc joined, GError **error)
{
  *has_joined = TRUE;
  if (is_needed && !join_if_possible (GTORCH_CUDA_STREAM (stream)->lane, other, has_joined, error))
    return FALSE;
  if (*has_joined)
    joined (stream, other);
  return TRUE;
}

static gboolean
gtorch_cuda_stream_join_all (GTorchStream *stream, GTorchJoinedFunc joined, GError **error)
{
  GTorchCudaStream *self = GTORCH_CUDA_STREAM (stream);
  GTorchCudaDevice *device = GTORCH_CUDA_DEVICE (stream->device);
  gboolean result = TRUE;
  GTorchCudaLane *other;

  if (!gtorch_cuda_stream_prepare (stream, error))
    return FALSE;
  if (gtorch_cuda_lane_is_capturing (self->lane))
    return TRUE;
  g_mutex_lock (&device->lock);
  if (self->joined == NULL)
    self->joined = g_array_new (FALSE, TRUE, sizeof (guint64));
  for (other = g_atomic_pointer_get (&device->newest); result && other != NULL; other = other->next)
    {
      guint64 enqueued = gtorch_cuda_lane_enqueued (other);
      gboolean has_joined, is_needed;

      if (self->joined->len <= other->index)
        g_array_set_size (self->joined, other->index + 1);
      if (other == self->lane)
        continue;
      is_needed = enqueued > __atomic_load_n (&other->done, __ATOMIC_RELAXED)
                  && enqueued > g_array_index (self->joined, guint64, other->index);
      result = come_after (stream, other, is_needed, &has_joined, joined, error);
      if (result && has_joined)
        g_array_index (self->joined, guint64, other->index) = enqueued;
    }
  g_mutex_unlock (&device->lock);
  return result;
}

/* Makes the context current if the lane is the driver's default queue, which is that of the current
 * context. */
static gboolean
find_default_queue (GTorchCudaLane *lane, GError **error)
{
  return G_LIKELY (lane->handle != NULL) || gtorch_cuda_device_activate (lane->device, error);
}

static CUresult
query (GTorchCudaLane *lane)
{
  guint64 number = gtorch_cuda_lane_enqueued (lane);
  CUresult result;
  GTORCH_CUDA_APART;

  if (gtorch_cuda_lane_capture (lane) != NULL) /* captured work is never executed, so never done */
    return CUDA_ERROR_NOT_READY;
  if (!find_default_queue (lane, NULL))
    return CUDA_ERROR_INVALID_CONTEXT;
  result = gtorch_cuda.cuStreamQuery (lane->handle);
  if (result == CUDA_SUCCESS)
    gtorch_cuda_note_done (lane, number);
  return result;
}

typedef struct
{
  GTorchCudaLane *lane;
  const gchar *what;
} Wait;

static gboolean
wait_for_lane (gpointer data, GCancellable *cancellable, gboolean *is_over, GError **error)
{
  const Wait *wait = data;
  guint64 number = gtorch_cuda_lane_enqueued (wait->lane);

  if (!gtorch_cuda_allow_wait (wait->lane, wait->what, error)
      || !find_default_queue (wait->lane, error)
      || !gtorch_cuda_check (gtorch_cuda_lane_wait (wait->lane), wait->what, error))
    return FALSE;
  gtorch_cuda_note_done (wait->lane, number);
  *is_over = TRUE;
  return gtorch_cuda_check_report (wait->lane->device, error);
}

gboolean
gtorch_cuda_lane_synchronize (GTorchCudaLane *lane, const gchar *what, GError **error)
{
  Wait wait = { lane, what };

  return gtorch_host_wait (&lane->device->parent_instance, lane, wait_for_lane, &wait, NULL, error);
}

static gboolean
gtorch_cuda_stream_is_idle (GTorchStream *stream)
{
  return GTORCH_CUDA_STREAM (stream)->lane == NULL
         || query (GTORCH_CUDA_STREAM (stream)->lane) != CUDA_ERROR_NOT_READY;
}

static gboolean
gtorch_cuda_stream_check (GTorchStream *stream, GError **error)
{
  CUresult result;

  if (!gtorch_cuda_stream_prepare (stream, error))
    return FALSE;
  result = query (GTORCH_CUDA_STREAM (stream)->lane);
  return result == CUDA_ERROR_NOT_READY || gtorch_cuda_check (result, "stream", error);
}

static gboolean
gtorch_cuda_stream_synchronize (GTorchStream *stream, GCancellable *cancellable, gboolean *is_over,
                                GError **error)
{
  Wait wait = { GTORCH_CUDA_STREAM (stream)->lane, "stream" };
  GTorchFence *fence;
  gboolean result;

  if (g_cancellable_set_error_if_cancelled (cancellable, error)
      || !gtorch_cuda_stream_prepare (stream, error))
    return FALSE;
  if (cancellable == NULL)
    return wait_for_lane (&wait, NULL, is_over, error);
  fence = gtorch_stream_record_fence (stream, GTORCH_EVENT_NONE, error);
  if (fence == NULL)
    return FALSE;
  *is_over = gtorch_fence_wait (fence, cancellable, error);
  result = *is_over && gtorch_cuda_check_report (GTORCH_CUDA_DEVICE (stream->device), error);
  gtorch_fence_unref (fence);
  return result;
}

static gpointer
gtorch_cuda_stream_get_queue (GTorchStream *stream)
{
  return GTORCH_CUDA_STREAM (stream)->lane;
}

static gpointer
gtorch_cuda_stream_get_handle (GTorchStream *stream)
{
  return GTORCH_CUDA_STREAM (stream)->lane != NULL ? GTORCH_CUDA_STREAM (stream)->lane->handle
                                                   : NULL;
}

static void
gtorch_cuda_stream_finalize (GObject *object)
{
  GTorchCudaStream *self = GTORCH_CUDA_STREAM (object);

  if (self->lane != NULL && __atomic_sub_fetch (&self->lane->n_users, 1, __ATOMIC_ACQ_REL) == 0)
    gtorch_cuda_magazines_drain (self->lane->device, self->lane);
  g_clear_pointer (&self->joined, g_array_unref);
  G_OBJECT_CLASS (gtorch_cuda_stream_parent_class)->finalize (object);
}

static void
gtorch_cuda_stream_class_init (GTorchCudaStreamClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_cuda_stream_finalize;
  klass->record = gtorch_cuda_stream_record;
  klass->wait = gtorch_cuda_stream_wait;
  klass->join_all = gtorch_cuda_stream_join_all;
  klass->get_queue = gtorch_cuda_stream_get_queue;
  klass->get_handle = gtorch_cuda_stream_get_handle;
  klass->is_idle = gtorch_cuda_stream_is_idle;
  klass->check = gtorch_cuda_stream_check;
  klass->synchronize = gtorch_cuda_stream_synchronize;
}

static void
gtorch_cuda_stream_init (GTorchCudaStream *self)
{
}

static void
add_lane (GTorchCudaDevice *device, GTorchCudaLane *lane)
{
  lane->index = device->lanes->len;
  lane->next = device->newest;
  g_ptr_array_add (device->lanes, lane);
  g_atomic_pointer_set (&device->newest, lane);
}

/* Finds a queue that no stream uses, makes a new one, or, if there are many, chooses the one with the
 * fewest users. */
static GTorchCudaLane *
find_lane (GTorchCudaDevice *device, gint priority, GError **error)
{
  GTorchCudaLane *lane, *best = NULL;
  gint n_users, fewest = 0;
  guint i;

  for (i = 0; i < device->lanes->len; i++)
    {
      lane = device->lanes->pdata[i];
      n_users = __atomic_load_n (&lane->n_users, __ATOMIC_ACQUIRE);
      if (lane->priority == priority && !lane->is_foreign && i > 0
          && (best == NULL || n_users < fewest) && !gtorch_cuda_lane_is_capturing (lane))
        {
          best = lane;
          fewest = n_users;
        }
    }
  if (best != NULL && (fewest == 0 || device->lanes->len >= MAX_LANES))
    return best;
  lane = g_new0 (GTorchCudaLane, 1);
  lane->device = device;
  lane->priority = priority;
  if (!gtorch_cuda_check (gtorch_cuda.cuStreamCreateWithPriority (&lane->handle,
                                                                  CU_STREAM_NON_BLOCKING, priority),
                          "cuStreamCreate", error))
    {
      g_free (lane);
      return NULL;
    }
  add_lane (device, lane);
  return lane;
}

static GTorchStream *
stream_of_lane (GTorchDevice *device, GTorchCudaLane *lane)
{
  GTorchStream *self = g_object_new (gtorch_cuda_stream_get_type (), NULL);

  self->device = device;
  self->priority = lane->priority;
  GTORCH_CUDA_STREAM (self)->lane = lane;
  return self;
}

void
gtorch_cuda_stream_get_priorities (GTorchDevice *device, gint *least, gint *greatest)
{
  if (gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), NULL))
    gtorch_cuda.cuCtxGetStreamPriorityRange (least, greatest);
}

/* Returns a stream for a queue that the program has made. */
static GTorchStream *
new_external (GTorchDevice *device, gpointer handle, GError **error)
{
  GTorchCudaDevice *cuda = GTORCH_CUDA_DEVICE (device);
  GTorchCudaLane *lane = NULL;
  CUcontext context = NULL;
  guint i;

  if (!gtorch_cuda_device_activate (cuda, error)
      || !gtorch_cuda_check (gtorch_cuda.cuStreamGetCtx (handle, &context), "cuStreamGetCtx",
                             error))
    return NULL;
  if (context != cuda->context)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("stream: the queue %p does not belong to %s"), handle,
                   gtorch_device_name (device));
      return NULL;
    }
  g_mutex_lock (&cuda->lock);
  for (i = 0; lane == NULL && i < cuda->lanes->len; i++)
    if (((GTorchCudaLane *) cuda->lanes->pdata[i])->handle == handle)
      lane = cuda->lanes->pdata[i];
  if (lane == NULL)
    {
      lane = g_new0 (GTorchCudaLane, 1);
      lane->device = cuda;
      lane->handle = handle;
      lane->is_foreign = TRUE;
      add_lane (cuda, lane);
    }
  __atomic_add_fetch (&lane->n_users, 1, __ATOMIC_RELAXED);
  g_mutex_unlock (&cuda->lock);
  return stream_of_lane (device, lane);
}

GTorchStream *
gtorch_cuda_stream_new (GTorchDevice *device, gint priority, const gpointer *handle, GError **error)
{
  GTorchCudaDevice *cuda = GTORCH_CUDA_DEVICE (device);
  GTorchCudaLane *lane;
  int least = 0, greatest = 0;
  GTORCH_CUDA_APART;

  if (handle != NULL)
    return new_external (device, *handle, error);
  if (!gtorch_cuda_device_activate (cuda, error))
    return NULL;
  gtorch_cuda.cuCtxGetStreamPriorityRange (&least, &greatest);
  priority = CLAMP (priority, greatest, least);
  g_mutex_lock (&cuda->lock);
  lane = find_lane (cuda, priority, error);
  if (lane != NULL)
    __atomic_add_fetch (&lane->n_users, 1, __ATOMIC_RELAXED);
  g_mutex_unlock (&cuda->lock);
  return lane != NULL ? stream_of_lane (device, lane) : NULL;
}

gboolean
gtorch_cuda_record_stream (GTorchDevice *device, GTorchStorage *storage, GTorchStream *stream,
                           GError **error)
{
  if (!gtorch_cuda_stream_prepare (stream, error))
    return FALSE;
  gtorch_cuda_use_storage (storage, GTORCH_CUDA_STREAM (stream)->lane);
  return TRUE;
}

/* Lets the host wait for all lanes that use the storage, except the current one. */
static gboolean
wait_storage (GTorchDevice *device, GTorchStorage *storage, GError **error)
{
  GTorchCudaDevice *cuda = GTORCH_CUDA_DEVICE (device);
  GTorchCudaLane *current = gtorch_cuda_current_lane (device, error), *lane;
  GTorchPool *pool;

  if (current == NULL)
    return FALSE;
  pool = storage->free_func == NULL ? gtorch_cuda_get_pool (storage) : NULL;
  if (G_UNLIKELY (pool != NULL))
    {
      lane = g_atomic_pointer_get (&pool->queue);
      if (lane != NULL && lane != current && !gtorch_cuda_lane_is_capturing (lane)
          && !gtorch_cuda_lane_synchronize (lane, "graph", error))
        return FALSE;
    }
  if (G_LIKELY (!gtorch_cuda_is_used (storage, NULL, current)))
    return TRUE;
  for (lane = g_atomic_pointer_get (&cuda->newest); lane != NULL; lane = lane->next)
    if (lane != current && gtorch_cuda_is_used (storage, lane, NULL)
        && !gtorch_cuda_lane_is_capturing (lane)
        && !gtorch_cuda_lane_synchronize (lane, "stream", error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_cuda_order_storage (GTorchDevice *device, GTorchStorage *storage, GTorchStream *stream,
                           GTorchJoinedFunc joined, GError **error)
{
  GTorchCudaDevice *cuda = GTORCH_CUDA_DEVICE (device);
  GTorchCudaLane *lane, *other;
  gboolean result = TRUE, has_joined;

  if (stream == NULL)
    return wait_storage (device, storage, error);
  if (!gtorch_cuda_stream_prepare (stream, error))
    return FALSE;
  lane = GTORCH_CUDA_STREAM (stream)->lane;
  g_mutex_lock (&cuda->lock);
  for (other = g_atomic_pointer_get (&cuda->newest); result && other != NULL; other = other->next)
    {
      if (other == lane || !gtorch_cuda_is_used (storage, other, NULL))
        continue;
      result = come_after (stream, other, TRUE, &has_joined, joined, error);
    }
  g_mutex_unlock (&cuda->lock);
  if (result)
    gtorch_cuda_use_storage (storage, lane);
  return result;
}

gboolean
gtorch_cuda_lane_may_capture (GTorchCudaLane *lane)
{
  return gtorch_captures_exist () || gtorch_cuda_lane_is_capturing (lane);
}

GTorchCudaLane *
gtorch_cuda_current_lane (GTorchDevice *device, GError **error)
{
  GTorchStream *stream = gtorch_stream_peek_current (device);
  GTorchCudaLane *lane;

  if (!gtorch_device_works (device, error))
    return NULL;
  if (G_UNLIKELY (stream == NULL))
    {
      stream = gtorch_device_make_default_stream (device, error);
      if (stream == NULL)
        return NULL;
    }
  lane = GTORCH_CUDA_STREAM (stream)->lane;
  return find_default_queue (lane, error) ? lane : NULL;
}

gboolean
gtorch_cuda_synchronize (GTorchDevice *device, GCancellable *cancellable, gboolean *is_over,
                         GError **error)
{
  GTorchCudaDevice *cuda = GTORCH_CUDA_DEVICE (device);
  GTorchCudaLane *newest = g_atomic_pointer_get (&cuda->newest), *lane;
  g_autofree guint64 *numbers = NULL;
  GTORCH_CUDA_APART;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (g_atomic_pointer_get (&cuda->context) == NULL)
    return TRUE;
  numbers = g_new (guint64, newest != NULL ? newest->index + 1 : 1);
  for (lane = newest; lane != NULL; lane = lane->next)
    numbers[lane->index] = gtorch_cuda_lane_enqueued (lane);
  if (!gtorch_cuda_device_activate (cuda, error)
      || !gtorch_cuda_check (gtorch_cuda_device_settle (cuda), gtorch_device_name (device), error))
    return FALSE;
  for (lane = newest; lane != NULL; lane = lane->next)
    gtorch_cuda_note_done (lane, numbers[lane->index]);
  *is_over = TRUE;
  return gtorch_cuda_check_report (cuda, error);
}
