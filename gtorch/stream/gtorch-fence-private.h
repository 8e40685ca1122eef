/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-observer-private.h>
#include <gtorch/stream/gtorch-timeline-private.h>
#include <gtorch/base/gtorch-error.h>
#include <gtorch/stream/gtorch-event.h>

G_BEGIN_DECLS

/* A point in the order of a queue: what an event holds after it was recorded. */
typedef void (*GTorchFenceFunc) (gpointer data);

/* A device that completes its fences by itself has none of these; others are asked. */
typedef struct
{
  /* Completes the fence if its work is done. */
  void (*poll) (GTorchFence *fence);
  /* Sleeps until the work is done, and completes the fence. */
  void (*wait) (GTorchFence *fence);
  /* Has the fence completed, from any thread, as soon as its work is done; called once. */
  void (*arm) (GTorchFence *fence);
  /* Both are done, and of this backend. */
  gboolean (*elapsed) (GTorchFence *fence, GTorchFence *other, gdouble *milliseconds,
                       GError **error);
  void (*free) (GTorchFence *fence);
} GTorchFenceBackend;

struct _GTorchFence
{
  gint ref_count;
  gint done; /* atomically */
  gboolean is_armed;
  gboolean is_orphan;
  guint8 flags; /* GTorchEventFlags */
  const GTorchFenceBackend *backend;
  GTorchDevice *device; /* the backend's */
  gpointer handle;      /* the backend's */
  gpointer queue;  /* the backend's: where it was recorded; NULL: in another process, perhaps */
  guint64 number;  /* … after this piece of work; of one on a timeline: its own */
  gpointer shared; /* the backend's: what other processes have, too */
  GMutex lock;
  GCond cond;
  gint64 time_ns;
  GError *error; /* the queue had failed by then */
  GSList *callbacks;
  GTorchTimeline *timeline; /* NULL: it was done from the start */
  GTorchCapture *capture;   /* recorded in a capture: not a point in time but in the graph */
  guint *clock;             /* … after so many nodes of each of its streams */
  guint branch;             /* … in the branch of this number; 0: in none */
  GTorchMark *mark;         /* what observers know it by; NULL: nobody observed */
};

/* Events that several processes have. They can be recorded again and again, by any of them, and who waits
 * for one waits for its last recording. */
struct _GTorchSharedEvents
{
  /* Another process's, or, without a handle, a new one. */
  gpointer (*open) (GTorchDevice *device, GBytes *handle, GError **error);
  GBytes *(*get_handle) (gpointer event, GError **error);
  gboolean (*record) (gpointer event, GTorchStream *stream, GError **error);
  GTorchFence *(*new_fence) (gpointer event);
  void (*unref) (gpointer event);
};

GTorchFence *gtorch_fence_new (void);
GTorchFence *gtorch_fence_ref (GTorchFence *fence);
void gtorch_fence_unref (GTorchFence *fence);
/* From any thread; takes the error. */
void gtorch_fence_complete (GTorchFence *fence, GError *error);
/* … as the work of this number: who sees one of the two done sees the other. */
void gtorch_fence_complete_work (GTorchFence *fence, GTorchTimeline *timeline, guint64 seq,
                                 GError *error);
gboolean gtorch_fence_is_done (GTorchFence *fence);
/* Has a fork left the work before it undone? It is done then, with an error. */
gboolean gtorch_fence_is_orphan (GTorchFence *fence);
/* Sleeps; FALSE when cancelled or when the fence carries an error. */
gboolean gtorch_fence_wait (GTorchFence *fence, GCancellable *cancellable, GError **error);
/* Calls func once: at once if the fence is done, else in the thread that completes it. */
void gtorch_fence_add_callback (GTorchFence *fence, GTorchFenceFunc func, gpointer data);
/* Becomes ready when the fence is done or the cancellable cancelled. */
GSource *gtorch_fence_source_new (GTorchFence *fence, GCancellable *cancellable);
/* Completes the task with the fence in the task's context; timeline's error, if given, is reported. */
void gtorch_fence_return_task (GTorchFence *fence, GTask *task, GTorchTimeline *timeline);

G_END_DECLS
