/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-observer-private.h>
#include <gtorch/stream/gtorch-timeline-private.h>
#include <gtorch/base/gtorch-error.h>
#include <gtorch/stream/gtorch-event.h>

G_BEGIN_DECLS

/* Called when a fence is done. */
typedef void (*GTorchFenceFunc) (gpointer data);

/* The functions of a backend whose fences must be polled; a backend that completes its fences itself has
 * none. */
typedef struct
{
  /* Completes the fence if its work is done. */
  void (*poll) (GTorchFence *fence);
  /* Sleeps until the work is done, and completes the fence. */
  void (*wait) (GTorchFence *fence);
  /* Arranges that the fence is completed, in any thread, as soon as its work is done; called once. */
  void (*arm) (GTorchFence *fence);
  /* Gets the time between two fences of this backend that are done. */
  gboolean (*elapsed) (GTorchFence *fence, GTorchFence *other, gdouble *milliseconds,
                       GError **error);
  void (*free) (GTorchFence *fence);
} GTorchFenceBackend;

/* A point in the order of a queue; recording an event creates one. */
struct _GTorchFence
{
  gint ref_count;
  gint done; /* atomic */
  gboolean is_armed;
  gboolean is_orphan;
  guint8 flags; /* GTorchEventFlags */
  const GTorchFenceBackend *backend;
  GTorchDevice *device; /* device of the backend */
  gpointer handle;      /* handle of the backend */
  gpointer queue;       /* backend's queue of the recording; NULL: possibly in another process */
  guint64 number;  /* last work before the fence on that queue; with a timeline: its own number */
  gpointer shared; /* backend's event that other processes share */
  GMutex lock;
  GCond cond;
  gint64 time_ns;
  GError *error; /* error of the queue at that point */
  GSList *callbacks;
  GTorchTimeline *timeline; /* NULL: the fence was done from the start */
  GTorchCapture *capture;   /* set if recorded in a capture: a point in the graph, not in time */
  guint *clock;             /* in a capture: number of nodes on each of its streams before it */
  guint branch;             /* in a capture: number of the conditional branch; 0: none */
  GTorchMark *mark;         /* identifies the fence for observers; NULL: not observed */
};

/* Events that several processes share. Any of them may record an event again, and a wait is for its last
 * recording. */
struct _GTorchSharedEvents
{
  /* Opens an event of another process or, with handle NULL, creates a new one. */
  gpointer (*open) (GTorchDevice *device, GBytes *handle, GError **error);
  GBytes *(*get_handle) (gpointer event, GError **error);
  gboolean (*record) (gpointer event, GTorchStream *stream, GError **error);
  GTorchFence *(*new_fence) (gpointer event);
  void (*unref) (gpointer event);
};

GTorchFence *gtorch_fence_new (void);
GTorchFence *gtorch_fence_ref (GTorchFence *fence);
void gtorch_fence_unref (GTorchFence *fence);
/* Completes the fence and takes the error; callable in any thread. */
void gtorch_fence_complete (GTorchFence *fence, GError *error);
/* Completes the fence and the work of this number on the timeline, so that a thread that sees one of them
 * done sees the other done as well. */
void gtorch_fence_complete_work (GTorchFence *fence, GTorchTimeline *timeline, guint64 seq,
                                 GError *error);
gboolean gtorch_fence_is_done (GTorchFence *fence);
/* Returns whether a fork left the work before the fence undone; such a fence counts as done, with an
 * error. */
gboolean gtorch_fence_is_orphan (GTorchFence *fence);
/* Sleeps until the fence is done; returns FALSE if cancelled or if the fence has an error. */
gboolean gtorch_fence_wait (GTorchFence *fence, GCancellable *cancellable, GError **error);
/* Calls func once: immediately if the fence is done, else in the thread that completes it. */
void gtorch_fence_add_callback (GTorchFence *fence, GTorchFenceFunc func, gpointer data);
/* Creates a source that becomes ready when the fence is done or the cancellable is cancelled. */
GSource *gtorch_fence_source_new (GTorchFence *fence, GCancellable *cancellable);
/* Completes the task in its context when the fence is done; reports the error of the timeline unless that
 * is NULL. */
void gtorch_fence_return_task (GTorchFence *fence, GTask *task, GTorchTimeline *timeline);

G_END_DECLS
