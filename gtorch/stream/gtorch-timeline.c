/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The numbers by which work on queues is known. */

#include "config.h"

#include "base/gtorch-fork-private.h"
#include "stream/gtorch-stream-private.h"

static GMutex list_lock;
GTORCH_FORK_LOCK (list_lock);
static GTorchTimeline *timelines;

/* How many streams may be gone with errors that nobody has asked for; synchronizing with the device does. */
#define MAX_UNHEARD 8
/* Of one queue. Beyond that the two oldest become one, and what was done between them counts as left out, if
 * nobody has looked at it since: rather an error too much than elements that nobody computed. */
#define MAX_FAILURES 1024

GTorchTimeline *
gtorch_timeline_new (GTorchDevice *device)
{
  GTorchTimeline *timeline, *unheard = NULL;
  g_autoptr (GError) error = NULL;
  guint n_unheard = 0;

  g_mutex_lock (&list_lock);
  for (timeline = timelines; timeline != NULL; timeline = timeline->next)
    if (!timeline->in_use && timeline->device == device)
      {
        if (!g_atomic_int_get (&timeline->is_failed))
          break;
        unheard = timeline;
        n_unheard++;
      }
  if (timeline == NULL && n_unheard >= MAX_UNHEARD)
    timeline = unheard;
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
  if (!gtorch_timeline_report (timeline, &error))
    g_warning ("a stream is gone whose work has failed, and nobody has asked for the error: %s",
               error->message);
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

static void
add_failure (GTorchTimeline *timeline, guint64 seq, GError *error)
{
  const GTorchFailure failure = { seq, G_MAXUINT64, error };

  if (timeline->failures == NULL)
    timeline->failures = g_array_new (FALSE, FALSE, sizeof (GTorchFailure));
  if (timeline->failures->len == MAX_FAILURES)
    {
      GTorchFailure *oldest = (GTorchFailure *) timeline->failures->data;

      oldest[1].first = oldest[0].first;
      g_error_free (oldest[0].error);
      g_array_remove_index (timeline->failures, 0);
    }
  g_array_append_val (timeline->failures, failure);
  g_atomic_int_set (&timeline->is_failed, TRUE);
  __atomic_store_n (&timeline->n_failures, timeline->failures->len, __ATOMIC_RELEASE);
}

static GTorchFailure *
last_failure (GTorchTimeline *timeline)
{
  return &g_array_index (timeline->failures, GTorchFailure, timeline->failures->len - 1);
}

/* Somebody is told; what has been queued until now stays left out. */
static void
tell (GTorchTimeline *timeline)
{
  if (G_UNLIKELY (gtorch_thread.keeps_errors))
    return;
  last_failure (timeline)->last = timeline->submitted;
  g_atomic_int_set (&timeline->is_failed, FALSE);
}

void
gtorch_timeline_complete (GTorchTimeline *timeline, guint64 seq, GError *error)
{
  g_mutex_lock (&timeline->lock);
  if (error != NULL && !timeline->is_failed)
    add_failure (timeline, seq, g_steal_pointer (&error));
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
  if (seq == G_MAXUINT64 || gtorch_timeline_is_of_copies (timeline))
    {
      g_auto (GTorchHostWait) wait = gtorch_observe_host_wait (timeline->device, timeline);

      wait.is_over = timeline_wait (timeline, seq, cancellable, error);
      return wait.is_over;
    }
  return timeline_wait (timeline, seq, cancellable, error);
}

gboolean
gtorch_timeline_report (GTorchTimeline *timeline, GError **error)
{
  GError *pending = NULL;

  g_mutex_lock (&timeline->lock);
  if (timeline->is_failed)
    {
      pending = g_error_copy (last_failure (timeline)->error);
      tell (timeline);
    }
  g_mutex_unlock (&timeline->lock);
  if (pending == NULL)
    return TRUE;
  g_propagate_error (error, pending);
  return FALSE;
}

/* Under the lock: the failure that the work has part in, or NULL. */
static GTorchFailure *
find_failure (GTorchTimeline *timeline, guint64 seq)
{
  guint low = 0, high = timeline->failures != NULL ? timeline->failures->len : 0;

  while (low < high)
    {
      const guint middle = (low + high) / 2;
      GTorchFailure *failure = &g_array_index (timeline->failures, GTorchFailure, middle);

      if (seq < failure->first)
        high = middle;
      else if (seq > failure->last)
        low = middle + 1;
      else
        return failure;
    }
  return NULL;
}

static gboolean
check_work (GTorchTimeline *timeline, guint64 seq, gboolean is_told, GError **error)
{
  GTorchFailure *failure;
  GError *found = NULL;

  if (G_LIKELY (__atomic_load_n (&timeline->n_failures, __ATOMIC_ACQUIRE) == 0))
    return TRUE;
  g_mutex_lock (&timeline->lock);
  failure = find_failure (timeline, seq);
  if (failure != NULL)
    {
      found = g_error_copy (failure->error);
      if (is_told && failure->last == G_MAXUINT64)
        tell (timeline);
    }
  g_mutex_unlock (&timeline->lock);
  if (found == NULL)
    return TRUE;
  g_propagate_error (error, found);
  return FALSE;
}

gboolean
gtorch_timeline_check_work (GTorchTimeline *timeline, guint64 seq, GError **error)
{
  return check_work (timeline, seq, FALSE, error);
}

gboolean
gtorch_timeline_report_work (GTorchTimeline *timeline, guint64 seq, GError **error)
{
  return check_work (timeline, seq, TRUE, error);
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
