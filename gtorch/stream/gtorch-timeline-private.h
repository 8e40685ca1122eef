/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-observer-private.h>
#include <gtorch/device/gtorch-thread-private.h>

G_BEGIN_DECLS

/* The order of work on one queue. It is separate from the stream, since storages remember their last writer
 * as (timeline, number) and may outlive the stream. Timelines are never freed but reused, and their numbers
 * only grow, so that an old number always counts as done. */
struct _GTorchTimeline
{
  GTorchDevice *device;
  GMutex lock;
  GCond progress;
  guint64 submitted; /* written under the lock, read atomically */
  guint64 completed;
  GArray *failures;   /* of GTorchFailure, ascending; NULL: none */
  guint n_failures;   /* length of failures; atomic */
  gboolean is_failed; /* the last failure was not reported yet: further work is skipped */
  gboolean in_use;
  gboolean is_orphan; /* created before a fork: its unfinished work is never done */
  GTorchTimeline *next;
  /* Waits for copies by a GPU, which complete only when a waiter asks for them; returns FALSE if cancelled
   * or on an error. Atomic; NULL: work completes by itself. */
  gboolean (*wait) (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable,
                    GError **error);
  gpointer wait_data;
  GTorchNote *notes; /* notes of observers */
};

/* A range of work that was not done: the first work failed, and the rest was skipped until the failure was
 * reported. Tensors that the work would have written keep the error until something else writes to them. */
typedef struct
{
  guint64 first, last; /* last: G_MAXUINT64 until the failure is reported */
  GError *error;
} GTorchFailure;

static inline gboolean
gtorch_timeline_is_of_copies (GTorchTimeline *timeline)
{
  return __atomic_load_n (&timeline->wait, __ATOMIC_RELAXED) != NULL;
}

/* Waits for a queue, or only looks whether it is idle. Sets is_over once all is done that the queue had when
 * this was called, even if it failed. */
typedef gboolean (*GTorchWaitFunc) (gpointer data, GCancellable *cancellable, gboolean *is_over,
                                    GError **error);

/* Calls func: wherever the host waits for all that a queue has (gtorch_stream_get_queue (), or
 * GTORCH_ALL_QUEUES of the device), it does so here, whatever the backend. Returns what func does. */
gboolean gtorch_host_wait (GTorchDevice *device, gpointer queue, GTorchWaitFunc func, gpointer data,
                           GCancellable *cancellable, GError **error);

GTorchTimeline *gtorch_timeline_new (GTorchDevice *device);
void gtorch_timeline_release (GTorchTimeline *timeline);
/* Waits until work `seq` is done. Returns FALSE only if cancelled, or if a fork left the work undone. */
gboolean gtorch_timeline_wait (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable,
                               GError **error);
/* Reports the pending error, if there is one; the queue then continues. */
gboolean gtorch_timeline_report (GTorchTimeline *timeline, GError **error);
/* Returns FALSE with the error if work that is done failed or was skipped. Does not count as a report. */
gboolean gtorch_timeline_check_work (GTorchTimeline *timeline, guint64 seq, GError **error);
/* Checks the work like gtorch_timeline_check_work (), and counts as a report: the queue continues. */
gboolean gtorch_timeline_report_work (GTorchTimeline *timeline, guint64 seq, GError **error);
void gtorch_timeline_complete (GTorchTimeline *timeline, guint64 seq, GError *error);
/* Counts a copy that was put into the stream, for timelines of copies. is_only: no other one is pending.
 * Returns its number. */
guint64 gtorch_timeline_add_copy (GTorchTimeline *timeline, GTorchStream *stream, gboolean is_only);
/* Calls func for each other timeline of the device; seq: the number of its last work. */
void gtorch_timelines_foreach (GTorchDevice *device, GTorchTimeline *except,
                               void (*func) (GTorchTimeline *timeline, guint64 seq, gpointer data),
                               gpointer data);
/* Waits for the work submitted so far to all timelines of the device, and reports the first error. */
gboolean gtorch_timelines_synchronize (GTorchDevice *device, GCancellable *cancellable,
                                       GError **error);

static inline guint64
gtorch_timeline_completed (GTorchTimeline *timeline)
{
  return __atomic_load_n (&timeline->completed, __ATOMIC_ACQUIRE);
}

static inline guint64
gtorch_timeline_submitted (GTorchTimeline *timeline)
{
  return __atomic_load_n (&timeline->submitted, __ATOMIC_ACQUIRE);
}

G_END_DECLS
