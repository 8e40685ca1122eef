/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-observer-private.h>
#include <gtorch/device/gtorch-thread-private.h>

G_BEGIN_DECLS

/* The order of work on one queue, apart from the stream that feeds it: storages remember (timeline, number)
 * of who wrote to them, streams may be gone by then. Timelines are never freed but used again, and
 * their
 * numbers only grow, so that an old number always counts as done. */
struct _GTorchTimeline
{
  GTorchDevice *device;
  GMutex lock;
  GCond progress;
  guint64 submitted; /* written under the lock, atomically */
  guint64 completed;
  GArray *failures;   /* of GTorchFailure, ascending; NULL: there was none */
  guint n_failures;   /* … their number, atomically */
  gboolean is_failed; /* nobody was told of the last one yet: further work is left out */
  gboolean in_use;
  gboolean is_orphan; /* of before a fork: nobody does what is left of the work */
  GTorchTimeline *next;
  /* Of copies that a GPU makes: who waits asks for them. Atomically; NULL: work completes by itself.
   * FALSE when cancelled or with what went wrong. */
  gboolean (*wait) (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable,
                    GError **error);
  gpointer wait_data;
  GTorchNote *notes; /* of observers */
};

/* Work that was not done: the first failed, what came behind it until somebody was told was left out. What
 * that work would have written has the error until something else writes to it. */
typedef struct
{
  guint64 first, last; /* G_MAXUINT64: nobody was told yet */
  GError *error;
} GTorchFailure;

static inline gboolean
gtorch_timeline_is_of_copies (GTorchTimeline *timeline)
{
  return __atomic_load_n (&timeline->wait, __ATOMIC_RELAXED) != NULL;
}

GTorchTimeline *gtorch_timeline_new (GTorchDevice *device);
void gtorch_timeline_release (GTorchTimeline *timeline);
/* Waits until work `seq` is done. FALSE only when cancelled, or if a fork has left the work undone. */
gboolean gtorch_timeline_wait (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable,
                               GError **error);
/* Hands out the error that nobody was told of, if there is one; the queue goes on after that. */
gboolean gtorch_timeline_report (GTorchTimeline *timeline, GError **error);
/* Of work that is done: FALSE with the error if it failed or was left out, as often as one asks. */
gboolean gtorch_timeline_check_work (GTorchTimeline *timeline, guint64 seq, GError **error);
/* The same for who tells the program: the queue goes on. */
gboolean gtorch_timeline_report_work (GTorchTimeline *timeline, guint64 seq, GError **error);
void gtorch_timeline_complete (GTorchTimeline *timeline, guint64 seq, GError *error);
/* Calls func for each other timeline of the device that has unfinished work. */
void gtorch_timelines_foreach_busy (GTorchDevice *device, GTorchTimeline *except,
                                    void (*func) (GTorchTimeline *timeline, guint64 seq,
                                                  gpointer data),
                                    gpointer data);
/* All timelines of the device: waits for what was submitted until now, reports the first error. */
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
