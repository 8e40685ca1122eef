/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Timelines: numbers that identify the work on queues. */

#include "config.h"

#include "base/gtorch-fork-private.h"
#include "base/gtorch-wake-private.h"
#include "stream/gtorch-stream-private.h"

static GMutex list_lock;
GTORCH_FORK_LOCK (list_lock);
static GTorchTimeline *timelines;

/* The maximum number of released timelines that are kept because nobody has read their error. Synchronising
 * the device reports them. */
#define MAX_UNHEARD 8
/* The number of failures kept per queue. Beyond it the two oldest are merged, and work between them counts
 * as skipped if it is checked later: an undue error is better than elements that were not computed. */
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
    g_warning ("the work of a stream that no longer exists has failed, and nobody has "
               "asked for the error: %s",
               error->message);
  return timeline;
}

/* Runs in the child of a fork, where the threads of the timelines in use do not exist. */
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
  timeline->in_use = timeline->is_orphan; /* not reused: the numbers of an orphan do not advance */
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

/* Marks the last failure as reported; what was submitted until now remains skipped. */
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

guint64
gtorch_timeline_add_copy (GTorchTimeline *timeline, GTorchStream *stream, gboolean is_only)
{
  guint64 seq;

  g_mutex_lock (&timeline->lock);
  seq = timeline->submitted + 1;
  __atomic_store_n (&timeline->submitted, seq, __ATOMIC_RELEASE);
  g_mutex_unlock (&timeline->lock);
  gtorch_observe_host_copy (timeline, stream, is_only);
  return seq;
}

gboolean
gtorch_host_wait (GTorchDevice *device, gpointer queue, GTorchWaitFunc func, gpointer data,
                  GCancellable *cancellable, GError **error)
{
  g_auto (GTorchHostBlock) block = gtorch_observe_host_block (device);
  g_auto (GTorchHostWait) wait = gtorch_observe_host_wait (device, queue);

  return func (data, cancellable, &wait.is_over, error);
}

static gboolean
sleep_until (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable, GError **error)
{
  g_auto (GTorchHostBlock) block = gtorch_observe_host_block (timeline->device);
  GTorchWake wake;

  gtorch_wake_begin (&wake, cancellable, &timeline->lock, &timeline->progress);
  g_mutex_lock (&timeline->lock);
  while (timeline->completed < seq && !g_cancellable_is_cancelled (cancellable))
    g_cond_wait (&timeline->progress, &timeline->lock);
  g_mutex_unlock (&timeline->lock);
  gtorch_wake_end (&wake);
  return gtorch_timeline_completed (timeline) >= seq
         || !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static gboolean
wait_for_seq (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable, GError **error)
{
  gboolean (*wait) (GTorchTimeline *, guint64, GCancellable *, GError **);

  seq = MIN (seq, gtorch_timeline_submitted (timeline));
  if (gtorch_timeline_completed (timeline) >= seq)
    return TRUE;
  if (G_UNLIKELY (timeline->is_orphan))
    return gtorch_fork_refuse_stream (error);
  wait = __atomic_load_n (&timeline->wait, __ATOMIC_RELAXED);
  return wait != NULL ? wait (timeline, seq, cancellable, error)
                      : sleep_until (timeline, seq, cancellable, error);
}

typedef struct
{
  GTorchTimeline *timeline;
  guint64 seq;
} Place;

static gboolean
wait_for_place (gpointer data, GCancellable *cancellable, gboolean *is_over, GError **error)
{
  const Place *place = data;

  *is_over = wait_for_seq (place->timeline, place->seq, cancellable, error);
  return *is_over;
}

gboolean
gtorch_timeline_wait (GTorchTimeline *timeline, guint64 seq, GCancellable *cancellable,
                      GError **error)
{
  Place place = { timeline, seq };

  if (seq == G_MAXUINT64 || gtorch_timeline_is_of_copies (timeline))
    return gtorch_host_wait (timeline->device, timeline, wait_for_place, &place, cancellable,
                             error);
  return wait_for_seq (timeline, seq, cancellable, error);
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

/* Returns the failure whose range contains the work, or NULL; called with the lock held. */
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
gtorch_timelines_foreach (GTorchDevice *device, GTorchTimeline *except,
                          void (*func) (GTorchTimeline *timeline, guint64 seq, gpointer data),
                          gpointer data)
{
  GTorchTimeline *timeline;

  g_mutex_lock (&list_lock);
  timeline = timelines;
  g_mutex_unlock (&list_lock);
  for (; timeline != NULL; timeline = timeline->next) /* the list only grows at the head */
    if (timeline->device == device && timeline != except && !timeline->is_orphan)
      func (timeline, gtorch_timeline_submitted (timeline), data);
}

gboolean
gtorch_timelines_synchronize (GTorchDevice *device, GCancellable *cancellable, GError **error)
{
  GTorchTimeline *timeline;
  gboolean result = TRUE;

  g_mutex_lock (&list_lock);
  timeline = timelines;
  g_mutex_unlock (&list_lock);
  for (; timeline != NULL; timeline = timeline->next) /* the list only grows at the head */
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
