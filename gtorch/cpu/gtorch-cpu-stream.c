/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A CPU stream: one thread that runs the work of a queue in order. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dispatch/gtorch-run-private.h"
#include "cpu/gtorch-cpu-threads.h"
#include "base/gtorch-fork-private.h"
#include "stream/gtorch-stream-private.h"
#include "dispatch/gtorch-saved-call-private.h"
#include "cpu/gtorch-cpu-device.h"

#define LEAST_PRIORITY 19

typedef struct _Work Work;
struct _Work
{
  Work *next;
  guint64 seq;
  GTorchWorkFunc func;
  gpointer data;
  GDestroyNotify free_func;
  GTorchFence *fence; /* used instead of func: the fence to complete or to wait for */
  gboolean wait;      /* TRUE: waits for the fence; FALSE: completes it */
};

/* State shared by the stream and its thread; protected by timeline->lock. */
typedef struct
{
  gint ref_count;
  GTorchTimeline *timeline;
  GCond more;
  Work *head, *tail;
  gboolean quit;
  gint priority;
} Queue;

typedef struct
{
  GTorchStream parent_instance;
  Queue *queue;
} GTorchCpuStream;

typedef GTorchStreamClass GTorchCpuStreamClass;

GType gtorch_cpu_stream_get_type (void);
G_DEFINE_TYPE (GTorchCpuStream, gtorch_cpu_stream, GTORCH_TYPE_STREAM)

static void
queue_unref (Queue *queue)
{
  if (!g_atomic_int_dec_and_test (&queue->ref_count))
    return;
  gtorch_timeline_release (queue->timeline);
  g_cond_clear (&queue->more);
  g_free (queue);
}

static void
work_run (Queue *queue, Work *work)
{
  GTorchTimeline *timeline = queue->timeline;
  GError *error = NULL;
  GError *pending = NULL;

  gtorch_timeline_check_work (timeline, work->seq, &pending);
  if (work->fence != NULL && work->wait)
    gtorch_fence_wait (work->fence, NULL, &error); /* an error of the fence is an error here, too */
  else if (work->func != NULL && pending == NULL && !work->func (work->data, &error)
           && error == NULL)
    error = g_error_new (GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("work failed without an error"));

  /* Frees the work's data before the work counts as done, so that a waiter sees the memory returned. */
  if (work->free_func != NULL)
    work->free_func (work->data);
  if (work->fence != NULL && !work->wait)
    gtorch_fence_complete_work (work->fence, timeline, work->seq, g_steal_pointer (&pending));
  else
    gtorch_timeline_complete (timeline, work->seq, error);
  g_clear_error (&pending);
  g_clear_pointer (&work->fence, gtorch_fence_unref);
  g_free (work);
}

static gpointer
queue_thread (gpointer data)
{
  Queue *queue = data;
  GTorchTimeline *timeline = queue->timeline;

  gtorch_thread.worker = timeline;
#ifdef SYS_gettid
  if (queue->priority > 0) /* below normal; a higher one would need a privilege */
    setpriority (PRIO_PROCESS, syscall (SYS_gettid), MIN (queue->priority, LEAST_PRIORITY));
  gtorch_cpu_threads_set_niceness (MAX (queue->priority, 0));
#endif
  g_mutex_lock (&timeline->lock);
  while (TRUE)
    {
      Work *work = queue->head;

      if (work == NULL && queue->quit)
        break;
      if (work == NULL)
        {
          g_cond_wait (&queue->more, &timeline->lock);
          continue;
        }
      queue->head = work->next;
      if (queue->head == NULL)
        queue->tail = NULL;
      g_mutex_unlock (&timeline->lock);
      gtorch_fork_begin_work ();
      work_run (queue, work);
      gtorch_fork_end_work ();
      g_mutex_lock (&timeline->lock);
    }
  g_mutex_unlock (&timeline->lock);
  queue_unref (queue);
  return NULL;
}

static guint64
queue_push (Queue *queue, Work *work)
{
  GTorchTimeline *timeline = queue->timeline;
  guint64 seq;

  /* callers that can return an error have returned it before */
  if (G_UNLIKELY (timeline->is_orphan))
    {
      if (work->free_func != NULL)
        work->free_func (work->data);
      g_free (work);
      return gtorch_timeline_submitted (timeline);
    }
  g_mutex_lock (&timeline->lock);
  seq = work->seq = timeline->submitted + 1;
  __atomic_store_n (&timeline->submitted, seq, __ATOMIC_RELEASE);
  if (queue->tail != NULL)
    queue->tail->next = work;
  else
    queue->head = work;
  queue->tail = work;
  g_cond_signal (&queue->more);
  g_mutex_unlock (&timeline->lock);
  return seq;
}

static guint64
gtorch_cpu_stream_enqueue (GTorchStream *stream, GTorchWorkFunc func, gpointer data,
                           GDestroyNotify free_func)
{
  Work *work = g_new0 (Work, 1);

  work->func = func;
  work->data = data;
  work->free_func = free_func;
  return queue_push (((GTorchCpuStream *) stream)->queue, work);
}

static gboolean
gtorch_cpu_stream_record_fence (GTorchStream *stream, GTorchFence *fence, GError **error)
{
  Work *work;

  if (G_UNLIKELY (stream->timeline->is_orphan))
    return gtorch_fork_refuse_stream (error);
  work = g_new0 (Work, 1);
  fence->timeline = stream->timeline;
  work->fence = gtorch_fence_ref (fence);
  fence->number = queue_push (((GTorchCpuStream *) stream)->queue, work);
  return TRUE;
}

static gboolean
gtorch_cpu_stream_wait (GTorchStream *stream, GTorchFence *fence, GError **error)
{
  Work *work;

  if (G_UNLIKELY (stream->timeline->is_orphan))
    return gtorch_fork_refuse_stream (error);
  if (fence->timeline == stream->timeline
      || (g_atomic_int_get (&fence->done) && fence->error == NULL))
    return TRUE;
  work = g_new0 (Work, 1);
  work->fence = gtorch_fence_ref (fence);
  work->wait = TRUE;
  queue_push (((GTorchCpuStream *) stream)->queue, work);
  return TRUE;
}

static void
gtorch_cpu_stream_finalize (GObject *object)
{
  GTorchCpuStream *self = (GTorchCpuStream *) object;
  Queue *queue = self->queue;

  /* The thread still does the enqueued work. It is not joined, since this may be the queue's own thread. */
  g_mutex_lock (&queue->timeline->lock);
  queue->quit = TRUE;
  g_cond_signal (&queue->more);
  g_mutex_unlock (&queue->timeline->lock);
  queue_unref (queue);
  G_OBJECT_CLASS (gtorch_cpu_stream_parent_class)->finalize (object);
}

static void
gtorch_cpu_stream_class_init (GTorchCpuStreamClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_cpu_stream_finalize;
  klass->enqueue = gtorch_cpu_stream_enqueue;
  klass->record = gtorch_cpu_stream_record_fence;
  klass->wait = gtorch_cpu_stream_wait;
}

static void
gtorch_cpu_stream_init (GTorchCpuStream *self)
{
  self->queue = g_new0 (Queue, 1);
  self->queue->ref_count = 1;
  g_cond_init (&self->queue->more);
}

GTorchStream *
gtorch_cpu_stream_new (GTorchDevice *device, gint priority, const gpointer *handle, GError **error)
{
  g_autoptr (GError) local = NULL;
  GTorchCpuStream *self;
  GThread *thread;

  if (handle != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("stream: %s has no queues that other libraries could create"),
                   gtorch_device_name (device));
      return NULL;
    }
  self = g_object_new (gtorch_cpu_stream_get_type (), NULL);
  self->queue->timeline = gtorch_timeline_new (device);
  self->parent_instance.timeline = self->queue->timeline;
  self->parent_instance.device = device;
  self->parent_instance.priority = self->queue->priority = priority;
  g_atomic_int_inc (&self->queue->ref_count);
  thread = g_thread_try_new ("gtorch-stream", queue_thread, self->queue, &local);
  if (thread == NULL)
    {
      queue_unref (self->queue);
      g_object_unref (self);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("stream: a thread could not be started: %s"), local->message);
      return NULL;
    }
  g_thread_unref (thread);
  return (GTorchStream *) self;
}

void
gtorch_cpu_stream_get_priorities (GTorchDevice *device, gint *least, gint *greatest)
{
  *least = LEAST_PRIORITY;
  *greatest = 0; /* a higher priority would need a privilege */
}

static gboolean
do_nothing (gpointer data, GError **error)
{
  return TRUE;
}

static void
drop_storage (gpointer data)
{
  gtorch_storage_unref (data);
}

gboolean
gtorch_cpu_stream_record (GTorchDevice *device, GTorchStorage *storage, GTorchStream *stream,
                          GError **error)
{
  if (stream->timeline != NULL && G_UNLIKELY (stream->timeline->is_orphan))
    return gtorch_fork_refuse_stream (error);
  if (stream->timeline != NULL)
    GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, do_nothing, gtorch_storage_ref (storage),
                                               drop_storage);
  return TRUE;
}

/* --- operation calls --- */

typedef struct
{
  GTorchSavedCall *call;
  GCancellable *cancellable; /* of the stream, when the call was enqueued; or NULL */
  gpointer stream;           /* its address for the message */
} Call;

static gboolean
run_call (gpointer data, GError **error)
{
  Call *self = data;
  const GTorchOpCall *call = &self->call->call;

  if (G_UNLIKELY (g_cancellable_is_cancelled (self->cancellable)))
    {
      gtorch_stream_set_cancelled (call->device, self->stream, gtorch_call_named_op (call)->name,
                                   error);
      return FALSE;
    }
  return gtorch_saved_call_run (self->call, error);
}

static void
free_call (gpointer data)
{
  Call *self = data;

  gtorch_saved_call_free (self->call);
  g_clear_object (&self->cancellable);
  g_free (self);
}

gboolean
gtorch_cpu_launch (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  Call *enqueued;
  guint64 seq;
  guint i;

  if (stream == NULL || stream->timeline == NULL)
    return gtorch_call_run (call, NULL, error);
  if (G_UNLIKELY (stream->timeline->is_orphan))
    return gtorch_fork_refuse_stream (error);

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && !gtorch_call_overwrites (call, i)
        && !gtorch_stream_check_operand (stream, call->inputs[i]->storage, error))
      {
        g_prefix_error (error, "%s: ", gtorch_call_named_op (call)->name);
        return FALSE;
      }
  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL)
      gtorch_stream_enqueue_copies (stream, call->inputs[i]->storage);
  enqueued = g_new (Call, 1);
  *enqueued = (Call){ gtorch_saved_call_new (call, NULL, NULL),
                      gtorch_stream_dup_cancellable (stream), stream };
  seq = GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, run_call, enqueued, free_call);
  for (i = 0; i < call->n_outputs; i++)
    if (call->outputs[i] != NULL)
      gtorch_storage_set_writer (call->outputs[i]->storage, stream->timeline, seq);
  for (i = 0; i < call->n_inputs; i++)
    if (gtorch_call_writes (call, i))
      gtorch_storage_set_writer (call->inputs[i]->storage, stream->timeline, seq);
  return TRUE;
}
