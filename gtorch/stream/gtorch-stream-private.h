/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-choice-private.h>
#include <gtorch/stream/gtorch-fence-private.h>
#include <gtorch/stream/gtorch-stream.h>

G_BEGIN_DECLS

/* A piece of work on a queue. */
typedef gboolean (*GTorchWorkFunc) (gpointer data, GError **error);

struct _GTorchStream
{
  GObject parent_instance;
  GTorchDevice *device;
  gint priority;
  gboolean is_default;
  gboolean auto_sync;       /* atomic */
  GTorchTimeline *timeline; /* NULL: the calling thread does the work (default stream of the CPU) */
  GTorchCapture *capture;   /* atomic; not owned: the capture clears it */
  GCancellable *cancellable;   /* atomic; owned, under a lock of gtorch-stream.c */
  guint64 id;                  /* no other stream of the process has or had it */
  GTorchStream *next, *former; /* the list of all streams, under another lock of gtorch-stream.c */
};

struct _GTorchStreamClass
{
  GObjectClass parent_class;

  /* Enqueues work and takes data; returns the number of the work. Work is skipped if earlier work, or work
   * that it waited for, has failed, until the error is reported. */
  guint64 (*enqueue) (GTorchStream *stream, GTorchWorkFunc func, gpointer data,
                      GDestroyNotify free_func);
  /* Places the fence after all work enqueued so far. */
  gboolean (*record) (GTorchStream *stream, GTorchFence *fence, GError **error);
  /* Makes further work wait for the fence. */
  gboolean (*wait) (GTorchStream *stream, GTorchFence *fence, GError **error);

  /* Makes further work wait for all work now on the device's other queues, without those that a capture
   * uses, and calls joined for each (optional: NULL where all of them have timelines). */
  gboolean (*join_all) (GTorchStream *stream, GTorchJoinedFunc joined, GError **error);

  /* Returns the identity of the queue, if that is not the timeline (optional). */
  gpointer (*get_queue) (GTorchStream *stream);
  /* Returns the backend's native handle of the queue (optional: NULL). */
  gpointer (*get_handle) (GTorchStream *stream);

  /* For queues that have no timeline; NULL for others. */
  gboolean (*is_idle) (GTorchStream *stream);
  /* Sets is_over once all work until now is done, even if it failed. */
  gboolean (*synchronize) (GTorchStream *stream, GCancellable *cancellable, gboolean *is_over,
                           GError **error);
  gboolean (*check) (GTorchStream *stream, GError **error);
};

#define GTORCH_STREAM_GET_CLASS(object) \
  (G_TYPE_INSTANCE_GET_CLASS ((object), GTORCH_TYPE_STREAM, GTorchStreamClass))

/* Returns a new reference to what cancels the work of the stream, or NULL. */
GCancellable *gtorch_stream_dup_cancellable (GTorchStream *stream);
/* Sets the error for work of this name that is not done because of it. */
void gtorch_stream_set_cancelled (GTorchDevice *device, gpointer stream, const gchar *op,
                                  GError **error);
gboolean gtorch_stream_look_for_cancellation (GTorchStream *stream, const gchar *op,
                                              GError **error);

/* Fails if the stream takes no more work, because its cancellable was cancelled. */
static inline gboolean
gtorch_stream_check_cancellable (GTorchStream *stream, const gchar *op, GError **error)
{
  return G_LIKELY (__atomic_load_n (&stream->cancellable, __ATOMIC_RELAXED) == NULL)
         || gtorch_stream_look_for_cancellation (stream, op, error);
}

/* Adds a stream that was just made to those of the process, and returns it; NULL for NULL. */
GTorchStream *gtorch_stream_register (GTorchStream *stream);
/* Calls func for each stream of the process, under a lock: it must not drop or make any. Of the stream it may
 * read the fields alone. */
void gtorch_streams_foreach (void (*func) (GTorchStream *stream, gpointer data), gpointer data);

/* Returns the identity of the stream's queue: work on streams with the same identity is done in order. */
gpointer gtorch_stream_get_queue (GTorchStream *stream);

/* Returns the current stream of the device in this thread, NULL for the default one. Borrowed. */
static inline GTorchStream *
gtorch_current_stream (GTorchDevice *device)
{
  return gtorch_thread.streams[device->slot];
}

/* Returns the current stream of the device in this thread, the default one included; NULL if that has not
 * been created. */
static inline GTorchStream *
gtorch_stream_peek_current (GTorchDevice *device)
{
  GTorchStream *stream = gtorch_current_stream (device);

  return stream != NULL ? stream : g_atomic_pointer_get (&device->default_stream);
}

/* The number of streams with auto-sync; atomic. */
extern gint gtorch_n_auto_syncs;
gboolean gtorch_stream_join_others (GTorchDevice *device, GError **error);

/* Applies auto-sync; called before work goes to the thread's current stream of the device. */
static inline gboolean
gtorch_auto_sync (GTorchDevice *device, GError **error)
{
  return G_LIKELY (__atomic_load_n (&gtorch_n_auto_syncs, __ATOMIC_RELAXED) == 0)
         || gtorch_stream_join_others (device, error);
}

/* Lets the further work of the stream, or for NULL the host, wait for the work of other streams that may
 * write to the device's storage and of which timelines do not know. */
gboolean gtorch_stream_order_storage (GTorchStream *stream, GTorchDevice *device,
                                      GTorchStorage *storage, GError **error);

/* Records a fence on the stream; used by gtorch-event.c, gtorch-stream.c and captures. */
GTorchFence *gtorch_stream_record_fence (GTorchStream *stream, guint flags, GError **error);
/* Tells observers that the fence was recorded on the stream. */
void gtorch_stream_mark_fence (GTorchStream *stream, GTorchFence *fence);
gboolean gtorch_stream_wait_fence (GTorchStream *stream, GTorchFence *fence, GError **error);

/* Changes the thread's current stream; NULL is the default one. */
void gtorch_change_stream (GTorchChange *self, GTorchDevice *device, GTorchStream *stream);
/* Changes the stream in the slot of a device. */
void gtorch_change_slot (GTorchChange *self, guint slot, GTorchStream *stream);

/* Begins a change of the current stream (NULL: the default one), which lasts until gtorch_change_end (). */
static inline void
gtorch_change_to_stream (GTorchChange *self, GTorchDevice *device, GTorchStream *stream)
{
  gtorch_change_begin (self);
  gtorch_change_stream (self, device, stream);
}

G_END_DECLS
