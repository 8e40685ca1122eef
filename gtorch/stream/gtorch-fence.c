/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Points in the order of a queue, and the ways to wait for them: in a thread, in a queue, in a main
 * loop. */

#include "config.h"

#include <time.h>

#include "stream/gtorch-capturing-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-wake-private.h"
#include "stream/gtorch-fence-private.h"

typedef struct
{
  GTorchFenceFunc func;
  gpointer data;
} Callback;

GTorchFence *
gtorch_fence_new (void)
{
  GTorchFence *fence = g_new0 (GTorchFence, 1);

  fence->ref_count = 1;
  g_mutex_init (&fence->lock);
  g_cond_init (&fence->cond);
  return fence;
}

GTorchFence *
gtorch_fence_ref (GTorchFence *fence)
{
  g_atomic_int_inc (&fence->ref_count);
  return fence;
}

void
gtorch_fence_unref (GTorchFence *fence)
{
  if (!g_atomic_int_dec_and_test (&fence->ref_count))
    return;
  g_clear_error (&fence->error);
  g_slist_free_full (fence->callbacks, g_free);
  g_clear_pointer (&fence->capture, gtorch_capture_unref);
  if (fence->backend != NULL)
    fence->backend->free (fence);
  g_free (fence->clock);
  gtorch_mark_unref (fence->mark);
  g_mutex_clear (&fence->lock);
  g_cond_clear (&fence->cond);
  g_free (fence);
}

void
gtorch_fence_complete (GTorchFence *fence, GError *error)
{
  gtorch_fence_complete_work (fence, NULL, 0, error);
}

void
gtorch_fence_complete_work (GTorchFence *fence, GTorchTimeline *timeline, guint64 seq,
                            GError *error)
{
  struct timespec now;
  GSList *callbacks, *l;

  clock_gettime (CLOCK_MONOTONIC, &now);
  g_mutex_lock (&fence->lock);
  if (timeline != NULL)
    gtorch_timeline_complete (timeline, seq, NULL);
  if (fence->done) /* another thread has completed it */
    {
      g_mutex_unlock (&fence->lock);
      g_clear_error (&error);
      return;
    }
  fence->time_ns = (gint64) now.tv_sec * 1000000000 + now.tv_nsec;
  fence->error = error;
  g_atomic_int_set (&fence->done, TRUE);
  callbacks = g_slist_reverse (g_steal_pointer (&fence->callbacks));
  g_cond_broadcast (&fence->cond);
  g_mutex_unlock (&fence->lock);

  for (l = callbacks; l != NULL; l = l->next)
    {
      Callback *callback = l->data;

      callback->func (callback->data);
    }
  g_slist_free_full (callbacks, g_free);
}

/* Completes a fence whose work was lost in a fork. Initialises the lock again, since another thread may
 * have held it when the process was forked. */
static void
complete_orphan (GTorchFence *fence)
{
  static GMutex orphan_lock;
  GError *error = NULL;

  g_mutex_lock (&orphan_lock);
  if (!g_atomic_int_get (&fence->done))
    {
      g_mutex_init (&fence->lock);
      g_cond_init (&fence->cond);
      fence->is_orphan = TRUE;
      gtorch_fork_refuse_stream (&error);
      gtorch_fence_complete (fence, error);
    }
  g_mutex_unlock (&orphan_lock);
}

/* Calls gtorch_fence_is_done () only after a fork, since observers treat that call as a wait by the
 * host. */
gboolean
gtorch_fence_is_orphan (GTorchFence *fence)
{
  if (fence->timeline != NULL && G_UNLIKELY (fence->timeline->is_orphan))
    gtorch_fence_is_done (fence);
  return G_UNLIKELY (fence->is_orphan);
}

gboolean
gtorch_fence_is_done (GTorchFence *fence)
{
  if (!g_atomic_int_get (&fence->done))
    {
      if (fence->timeline != NULL && G_UNLIKELY (fence->timeline->is_orphan))
        complete_orphan (fence);
      else if (fence->backend != NULL)
        fence->backend->poll (fence);
      else if (fence->timeline != NULL
               && gtorch_timeline_completed (fence->timeline) >= fence->number)
        { /* another thread is about to complete it */
          g_mutex_lock (&fence->lock);
          g_mutex_unlock (&fence->lock);
        }
    }
  if (!g_atomic_int_get (&fence->done))
    return FALSE;
  gtorch_observe_host_waited (fence->mark);
  return TRUE;
}

/* Makes the backend complete the fence, for waiters that cannot poll. */
static void
arm (GTorchFence *fence)
{
  gboolean is_first;

  if (fence->backend == NULL)
    return;
  g_mutex_lock (&fence->lock);
  is_first = !fence->is_armed && !fence->done;
  fence->is_armed = TRUE;
  g_mutex_unlock (&fence->lock);
  if (is_first)
    fence->backend->arm (fence);
}

/* Returns NULL for a fence of no device, which another thread completes. */
static GTorchDevice *
device_of (const GTorchFence *fence)
{
  if (fence->device != NULL || fence->timeline == NULL)
    return fence->device;
  return fence->timeline->device;
}

static void
sleep_until_done (GTorchFence *fence, GCancellable *cancellable)
{
  GTorchDevice *device = device_of (fence);
  g_auto (GTorchHostBlock) block = { NULL };

  if (device != NULL)
    block = gtorch_observe_host_block (device);
  if (fence->backend != NULL && cancellable == NULL)
    fence->backend->wait (fence);
  if (!gtorch_fence_is_done (fence))
    {
      GTorchWake wake;

      arm (fence);
      gtorch_wake_begin (&wake, cancellable, &fence->lock, &fence->cond);
      g_mutex_lock (&fence->lock);
      while (!fence->done && !g_cancellable_is_cancelled (cancellable))
        g_cond_wait (&fence->cond, &fence->lock);
      g_mutex_unlock (&fence->lock);
      gtorch_wake_end (&wake);
    }
}

gboolean
gtorch_fence_wait (GTorchFence *fence, GCancellable *cancellable, GError **error)
{
  if (!gtorch_fence_is_done (fence))
    sleep_until_done (fence, cancellable);
  if (!gtorch_fence_is_done (fence))
    return !g_cancellable_set_error_if_cancelled (cancellable, error);
  if (fence->error != NULL)
    {
      g_propagate_error (error, g_error_copy (fence->error));
      return FALSE;
    }
  return TRUE;
}

void
gtorch_fence_add_callback (GTorchFence *fence, GTorchFenceFunc func, gpointer data)
{
  gboolean done;

  if (gtorch_fence_is_orphan (fence))
    {
      func (data);
      return;
    }
  g_mutex_lock (&fence->lock);
  done = fence->done;
  if (!done)
    {
      Callback *callback = g_new (Callback, 1);

      *callback = (Callback){ func, data };
      fence->callbacks = g_slist_prepend (fence->callbacks, callback);
    }
  g_mutex_unlock (&fence->lock);
  if (done)
    func (data);
  else
    arm (fence);
}

/* --- waiting in a main loop --- */

/* A link to a source, held by other threads: the one that completes the fence and the one that cancels.
 *
 * These threads may touch a GSource only while somebody else holds a reference. They cannot hold one
 * themselves, since dropping it accesses the source's context, which its owner may free as soon as it has
 * been woken. The link therefore points to a child of the source until the child is destroyed or about to
 * be. GLib reports the former by dropping the child's callback, the latter by finalising the parent, and
 * holds its own reference to the child at both times. (GCancellable's own source does not help: it is woken
 * when references to it have already been dropped, which makes GLib's functions warn.) */
typedef struct
{
  gint ref_count;
  GMutex lock;
  GSource *child; /* NULL: destroyed */
} Waker;

typedef struct
{
  GSource source;
  Waker *waker;
  GCancellable *cancellable;
  gulong cancelled_id;
  GTorchFence *fence; /* NULL unless the fence has a mark */
} FenceSource;

static Waker *
waker_ref (Waker *waker)
{
  g_atomic_int_inc (&waker->ref_count);
  return waker;
}

static void
waker_unref (Waker *waker)
{
  if (!g_atomic_int_dec_and_test (&waker->ref_count))
    return;
  g_mutex_clear (&waker->lock);
  g_free (waker);
}

static void
waker_wake (Waker *waker)
{
  g_mutex_lock (&waker->lock);
  if (waker->child != NULL)
    g_source_set_ready_time (waker->child, 0); /* wakes the context that it is attached to */
  waker->child = NULL;                         /* waking once is enough */
  g_mutex_unlock (&waker->lock);
}

static void
waker_sever (Waker *waker)
{
  g_mutex_lock (&waker->lock);
  waker->child = NULL;
  g_mutex_unlock (&waker->lock);
}

static void
fence_passed (gpointer data)
{
  waker_wake (data);
  waker_unref (data);
}

static void
wait_cancelled (GCancellable *cancellable, gpointer data)
{
  waker_wake (data);
}

static void
drop_cancelled (gpointer data, GClosure *closure)
{
  waker_unref (data);
}

static gboolean
source_dispatch (GSource *source, GSourceFunc callback, gpointer data)
{
  FenceSource *self = (FenceSource *) source;

  if (self->fence != NULL)
    gtorch_fence_is_done (self->fence);
  return callback != NULL ? callback (data) : G_SOURCE_REMOVE;
}

static void
source_finalize (GSource *source)
{
  FenceSource *self = (FenceSource *) source;

  waker_sever (self->waker);
  if (self->cancellable != NULL)
    {
      /* Does not call g_cancellable_disconnect (), which waits for running handlers: this may be one of
       * them. */
      g_signal_handler_disconnect (self->cancellable, self->cancelled_id);
      g_object_unref (self->cancellable);
    }
  waker_unref (self->waker);
  g_clear_pointer (&self->fence, gtorch_fence_unref);
}

static gboolean
call_closure (gpointer closure)
{
  g_auto (GValue) result = G_VALUE_INIT;

  g_value_init (&result, G_TYPE_BOOLEAN);
  g_closure_invoke (closure, &result, 0, NULL, NULL);
  return g_value_get_boolean (&result);
}

/* For a closure of C, which gets its data alone; the marshaller of GObject wants an instance as well. */
static void
marshal_data (GClosure *closure, GValue *result, guint n_params, const GValue *params,
              gpointer hint, gpointer function)
{
  gpointer callback = function != NULL ? function : ((GCClosure *) closure)->callback;

  g_value_set_boolean (result, ((GSourceFunc) callback) (closure->data));
}

static GSourceFuncs source_funcs = {
  .dispatch = source_dispatch,
  .finalize = source_finalize,
  .closure_callback = call_closure,
  .closure_marshal = (GSourceDummyMarshal) marshal_data,
};

static gboolean
child_dispatch (GSource *child, GSourceFunc callback, gpointer data)
{
  g_source_set_ready_time (child, -1);
  return G_SOURCE_CONTINUE;
}

static GSourceFuncs child_funcs = {
  .dispatch = child_dispatch,
};

static gboolean
do_nothing (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

static void
child_destroyed (gpointer data)
{
  waker_sever (data);
  waker_unref (data);
}

GSource *
gtorch_fence_source_new (GTorchFence *fence, GCancellable *cancellable)
{
  GSource *source = g_source_new (&source_funcs, sizeof (FenceSource));
  GSource *child = g_source_new (&child_funcs, sizeof (GSource));
  FenceSource *self = (FenceSource *) source;
  Waker *waker = g_new (Waker, 1);

  *waker = (Waker){ .ref_count = 1, .child = child };
  g_mutex_init (&waker->lock);
  self->waker = waker;
  g_source_set_static_name (source, "[GTorch] fence");
  g_source_set_callback (child, do_nothing, waker_ref (waker), child_destroyed);
  g_source_add_child_source (source, child);
  g_source_unref (child);
  if (fence->mark != NULL)
    self->fence = gtorch_fence_ref (fence);
  if (cancellable != NULL)
    {
      self->cancellable = g_object_ref (cancellable);
      self->cancelled_id =
          g_signal_connect_data (cancellable, "cancelled", G_CALLBACK (wait_cancelled),
                                 waker_ref (waker), drop_cancelled, 0);
      if (g_cancellable_is_cancelled (cancellable))
        waker_wake (waker);
    }
  gtorch_fence_add_callback (fence, fence_passed, waker_ref (waker));
  return source;
}

typedef struct
{
  GTorchFence *fence;
  GTorchTimeline *timeline;
} TaskData;

static void
task_data_free (gpointer data)
{
  TaskData *task_data = data;

  gtorch_fence_unref (task_data->fence);
  g_free (task_data);
}

static gboolean
return_task (gpointer data)
{
  GTask *task = data;
  TaskData *task_data = g_task_get_task_data (task);
  GError *error = NULL;

  if (!gtorch_fence_is_done (task_data->fence))
    g_task_return_error_if_cancelled (task);
  else if ((task_data->timeline != NULL && !gtorch_timeline_report (task_data->timeline, &error))
           || !gtorch_fence_wait (task_data->fence, NULL, &error))
    g_task_return_error (task, error);
  else
    g_task_return_boolean (task, TRUE);
  return G_SOURCE_REMOVE;
}

void
gtorch_fence_return_task (GTorchFence *fence, GTask *task, GTorchTimeline *timeline)
{
  GSource *source = gtorch_fence_source_new (fence, g_task_get_cancellable (task));
  TaskData *data = g_new (TaskData, 1);

  *data = (TaskData){ gtorch_fence_ref (fence), timeline };
  g_task_set_task_data (task, data, task_data_free);
  g_source_set_callback (source, return_task, g_object_ref (task), g_object_unref);
  g_source_set_priority (source, g_task_get_priority (task));
  g_source_attach (source, g_task_get_context (task));
  g_source_unref (source);
}
