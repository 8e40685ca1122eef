/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-choice-private.h>
#include <gtorch/stream/gtorch-fence-private.h>
#include <gtorch/stream/gtorch-stream.h>

G_BEGIN_DECLS

/* Work on a queue. */
typedef gboolean (*GTorchWorkFunc) (gpointer data, GError **error);

struct _GTorchStream
{
  GObject parent_instance;
  GTorchDevice *device;
  gint priority;
  gboolean is_default;
  gboolean auto_sync;       /* atomically */
  GTorchTimeline *timeline; /* NULL: work is done where it is called (the CPU's default stream) */
  GTorchCapture *capture;   /* atomically; not owned: the capture clears it */
};

struct _GTorchStreamClass
{
  GObjectClass parent_class;

  /* Takes data. Work is left out after other work failed, or what it waited for did, until the error was
   * reported. Returns its number. */
  guint64 (*enqueue) (GTorchStream *stream, GTorchWorkFunc func, gpointer data,
                      GDestroyNotify free_func);
  /* Puts the fence behind all work until now. */
  gboolean (*record) (GTorchStream *stream, GTorchFence *fence, GError **error);
  /* Further work waits for the fence. */
  gboolean (*wait) (GTorchStream *stream, GTorchFence *fence, GError **error);

  /* Further work comes after all that the device's other queues have now (optional). */
  gboolean (*join_all) (GTorchStream *stream, GError **error);

  /* What tells queues apart, where that is not the timeline (optional). */
  gpointer (*get_queue) (GTorchStream *stream);
  /* The backend's own name of it (optional: NULL). */
  gpointer (*get_handle) (GTorchStream *stream);

  /* Of queues that have no timeline of their own; NULL for the others. */
  gboolean (*is_idle) (GTorchStream *stream);
  gboolean (*synchronize) (GTorchStream *stream, GCancellable *cancellable, GError **error);
  gboolean (*check) (GTorchStream *stream, GError **error);
};

#define GTORCH_STREAM_GET_CLASS(object) \
  (G_TYPE_INSTANCE_GET_CLASS ((object), GTORCH_TYPE_STREAM, GTorchStreamClass))

/* Work under one of these is done in order. */
gpointer gtorch_stream_get_queue (GTorchStream *stream);

/* The current stream of the device in this thread, NULL for the default one. Borrowed. */
static inline GTorchStream *
gtorch_current_stream (GTorchDevice *device)
{
  return gtorch_thread.streams[device->slot];
}

/* The same, or the default one if it was made; NULL. */
static inline GTorchStream *
gtorch_stream_peek_current (GTorchDevice *device)
{
  GTorchStream *stream = gtorch_current_stream (device);

  return stream != NULL ? stream : g_atomic_pointer_get (&device->default_stream);
}

/* How many streams have auto-sync; atomically. */
extern gint gtorch_n_auto_syncs;
gboolean gtorch_stream_join_others (GTorchDevice *device, GError **error);

/* Before work goes to the thread's current stream of the device. */
static inline gboolean
gtorch_auto_sync (GTorchDevice *device, GError **error)
{
  return G_LIKELY (__atomic_load_n (&gtorch_n_auto_syncs, __ATOMIC_RELAXED) == 0)
         || gtorch_stream_join_others (device, error);
}

/* Between gtorch-event.c, gtorch-stream.c and captures. */
GTorchFence *gtorch_stream_record_fence (GTorchStream *stream, guint flags, GError **error);
/* Tells observers that the fence was put behind the stream's work. */
void gtorch_stream_mark_fence (GTorchStream *stream, GTorchFence *fence);
gboolean gtorch_stream_wait_fence (GTorchStream *stream, GTorchFence *fence, GError **error);

/* Writes to the thread's places of streams: NULL is the default one. */
void gtorch_change_stream (GTorchChange *self, GTorchDevice *device, GTorchStream *stream);
void gtorch_change_slot (GTorchChange *self, guint slot, GTorchStream *stream); /* of a device */

/* A change of the stream, NULL for the default one, that lasts until gtorch_change_end (). */
static inline void
gtorch_change_to_stream (GTorchChange *self, GTorchDevice *device, GTorchStream *stream)
{
  gtorch_change_begin (self);
  gtorch_change_stream (self, device, stream);
}

G_END_DECLS
