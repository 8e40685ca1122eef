/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The numbers by which work on queues is known. */

#include "config.h"

#include "base/gtorch-fork-private.h"
#include "check/gtorch-race-private.h"
#include "stream/gtorch-stream-private.h"

static GMutex list_lock;
GTORCH_FORK_LOCK (list_lock);
static GTorchTimeline *timelines;

GTorchTimeline *
gtorch_timeline_new (GTorchDevice *device)
{
  GTorchTimeline *timeline;

  g_mutex_lock (&list_lock);
  for (timeline = timelines; timeline != NULL; timeline = timeline->next)
    if (!timeline->in_use && timeline->device == device)
      break;
  if (timeline == NULL)
    {
      timeline = g_new0 (GTorchTimeline, 1);
      g_mutex_init (&timeline->lock);
      gtorch_fork_add_lock (&timeline->lock);
      g_cond_init (&timeline->progress);
      timeline->device = device;
      timeline->next = timelines;
      timelines = timeline;
    }
  timeline->in_use = TRUE;
  g_mutex_unlock (&list_lock);
  gtorch_timeline_report (timeline, NULL); /* what nobody asked for in its former life */
  return timeline;
}

/* In the child of a fork: the threads of those that are in use are not there. */
static void
make_orphans (void)
{
  GTorchTimeline *timeline;

  for (timeline = timelines; timeline != NULL; timeline = timeline->next)
    timeline->is_orphan = timeline->is_orphan || timeline->in_use;
}
GTORCH_FORK_CHILD (make_orphans);

void
gtorch_timeline_release (GTorchTimeline *timeline)
{
  g_mutex_lock (&list_lock);
  timeline->in_use = timeline->is_orphan; /* its numbers have come to a halt */
  g_mutex_unlock (&list_lock);
}

void
gtorch_timeline_complete (GTorchTimeline *timeline, guint64 seq, GError *error)
{
  g_mutex_lock (&timeline->lock);
  if (error != NULL && timeline->error == NULL)
    timeline->error = g_steal_pointer (&error);
  __atomic_store_n (&timeline->completed, seq, __ATOMIC_RELEASE);
  g_cond_broadcast (&timeline->progress);
  g_mutex_unlock (&timeline->lock);
  g_clear_error (&error);
}

static void
on_cancelled (GCancellable *cancellable, gpointer data)
{
  GTorchTimeline *timeline = data;

  g_mutex_lock (&timeline->lock);
  g_cond_broadcast (&timeline->progress);
  g_mutex_unlock (&timeline->lock);
}

static gboolean
timeline_wait (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable, GError **error)
{
  gboolean (*wait) (GTorchTimeline *, guint64, GCancellable *, GError **);
  gulong id = 0;

  seq = MIN (seq, gtorch_timeline_submitted (timeline));
  if (gtorch_timeline_completed (timeline) >= seq)
    return TRUE;
  if (G_UNLIKELY (timeline->is_orphan))
    return gtorch_fork_refuse_stream (error);
  wait = __atomic_load_n (&timeline->wait, __ATOMIC_RELAXED);
  if (wait != NULL)
    return wait (timeline, seq, cancellable, error);
  if (cancellable != NULL)
    id = g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), timeline, NULL);
  g_mutex_lock (&timeline->lock);
  while (timeline->completed < seq && !g_cancellable_is_cancelled (cancellable))
    g_cond_wait (&timeline->progress, &timeline->lock);
  g_mutex_unlock (&timeline->lock);
  g_cancellable_disconnect (cancellable, id);
  return gtorch_timeline_completed (timeline) >= seq
         || !g_cancellable_set_error_if_cancelled (cancellable, error);
}

gboolean
gtorch_timeline_wait (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable,
                      GError **error)
{
  GTorchRaceOrder *order = NULL;
  gboolean result;

  if (gtorch_is_checking (GTORCH_CHECK_STREAMS) && seq == G_MAXUINT64
      && !gtorch_timeline_is_of_copies (timeline))
    order = gtorch_race_order_new (timeline);
  result = timeline_wait (timeline, seq, cancellable, error);
  if (result)
    gtorch_race_reached (order);
  gtorch_race_order_free (order);
  return result;
}

gboolean
gtorch_timeline_report (GTorchTimeline *timeline, GError **error)
{
  GError *pending;

  g_mutex_lock (&timeline->lock);
  if (G_UNLIKELY (gtorch_thread.keeps_errors) && timeline->error != NULL)
    pending = g_error_copy (timeline->error);
  else
    pending = g_steal_pointer (&timeline->error);
  g_mutex_unlock (&timeline->lock);
  if (pending == NULL)
    return TRUE;
  g_propagate_error (error, pending);
  return FALSE;
}

void
gtorch_timelines_foreach_busy (GTorchDevice *device, GTorchTimeline *except,
                               void (*func) (GTorchTimeline *timeline, guint64 seq, gpointer data),
                               gpointer data)
{
  GTorchTimeline *timeline;

  g_mutex_lock (&list_lock);
  timeline = timelines;
  g_mutex_unlock (&list_lock);
  for (; timeline != NULL; timeline = timeline->next) /* only ever grows at the head */
    {
      guint64 seq = gtorch_timeline_submitted (timeline);

      if (timeline->device == device && timeline != except && !timeline->is_orphan
          && gtorch_timeline_completed (timeline) < seq)
        func (timeline, seq, data);
    }
}

gboolean
gtorch_timelines_synchronize (GTorchDevice *device, GCancellable *cancellable, GError **error)
{
  GTorchTimeline *timeline;
  gboolean result = TRUE;

  g_mutex_lock (&list_lock);
  timeline = timelines;
  g_mutex_unlock (&list_lock);
  for (; timeline != NULL; timeline = timeline->next) /* only ever grows at the head */
    {
      if (timeline->device != device || timeline->is_orphan)
        continue;
      if (!gtorch_timeline_wait (timeline, G_MAXUINT64, cancellable, result ? error : NULL))
        return FALSE;
      if (!gtorch_timeline_report (timeline, result ? error : NULL))
        result = FALSE;
    }
  return result;
}
