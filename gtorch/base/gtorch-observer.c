/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Subscriptions of observers, and how they are told of events.
 *
 * Whoever reports an event reads the list of observers without a lock, and may still go through it when
 * another list has taken its place. So lists never change, and none is freed: a list that was there before
 * is used again, and there are no more of them than sets of observers that were subscribed together. */

#include "config.h"

#include "base/gtorch-observer-named-private.h"

#include <string.h>

#include "base/gtorch-fork-private.h"

struct _GTorchObserverList
{
  GTorchObserverList *next;
  guint n;
  const GTorchObserver *all[];
};

const GTorchObserverList *gtorch_observers;

static GMutex lock; /* protects everything below */
GTORCH_FORK_LOCK (lock);
static GSList *subscribed;        /* GTorchObserver, in the order of their ranks */
static GTorchObserverList *lists; /* that were made so far */
static guint n_captures;          /* captures that are under way */

/* --- subscriptions --- */

/* Takes ownership of the list. Returns one like it that is kept. */
static const GTorchObserverList *
keep (GTorchObserverList *list)
{
  GTorchObserverList *former;

  for (former = lists; former != NULL; former = former->next)
    if (former->n == list->n
        && memcmp (former->all, list->all, list->n * sizeof (list->all[0])) == 0)
      {
        g_free (list);
        return former;
      }
  list->next = lists;
  lists = list;
  return list;
}

/* Publishes the list of the observers that are to be told of events now. */
static void
publish (void)
{
  GTorchObserverList *list =
      g_malloc (sizeof *list + g_slist_length (subscribed) * sizeof (list->all[0]));
  const GTorchObserverList *kept = NULL;
  GSList *l;

  list->n = 0;
  for (l = subscribed; l != NULL; l = l->next)
    {
      const GTorchObserver *observer = l->data;

      if (!observer->in_captures || n_captures > 0)
        list->all[list->n++] = observer;
    }
  if (list->n > 0)
    kept = keep (list);
  else
    g_free (list);
  __atomic_store_n (&gtorch_observers, kept, __ATOMIC_RELEASE);
}

static gint
by_rank (gconstpointer a, gconstpointer b)
{
  const GTorchObserver *x = a, *y = b;

  return x->rank < y->rank ? -1 : x->rank > y->rank;
}

void
gtorch_observer_add (const GTorchObserver *observer)
{
  g_mutex_lock (&lock);
  if (g_slist_find (subscribed, observer) == NULL)
    {
      subscribed = g_slist_insert_sorted (subscribed, (gpointer) observer, by_rank);
      publish ();
    }
  g_mutex_unlock (&lock);
}

void
gtorch_observer_remove (const GTorchObserver *observer)
{
  g_mutex_lock (&lock);
  subscribed = g_slist_remove (subscribed, observer);
  publish ();
  g_mutex_unlock (&lock);
}

static void
count_capture (gint n)
{
  g_mutex_lock (&lock);
  n_captures += n;
  publish ();
  g_mutex_unlock (&lock);
}

/* --- notes --- */

void
gtorch_note_add (GTorchNote **notes, GTorchNote *note)
{
  GTorchNote *first = __atomic_load_n (notes, __ATOMIC_RELAXED);

  do
    note->next = first;
  while (
      !__atomic_compare_exchange_n (notes, &first, note, TRUE, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

GTorchNote *
gtorch_note_find (GTorchNote *const *notes, gconstpointer owner)
{
  GTorchNote *note = __atomic_load_n (notes, __ATOMIC_ACQUIRE);

  while (note != NULL && note->owner != owner)
    note = note->next;
  return note;
}

void
gtorch_notes_free (GTorchNote **notes)
{
  GTorchNote *note = *notes;

  *notes = NULL;
  while (note != NULL)
    {
      GTorchNote *next = note->next;

      note->free (note);
      note = next;
    }
}

static GTorchMark *
mark_new (GTorchDevice *device, gpointer queue)
{
  GTorchMark *mark = g_new (GTorchMark, 1);

  *mark = (GTorchMark){ .ref_count = 1, .device = device, .queue = queue };
  return mark;
}

GTorchMark *
gtorch_mark_ref (GTorchMark *mark)
{
  if (mark != NULL)
    g_atomic_int_inc (&mark->ref_count);
  return mark;
}

void
gtorch_mark_unref (GTorchMark *mark)
{
  if (mark == NULL || !g_atomic_int_dec_and_test (&mark->ref_count))
    return;
  gtorch_notes_free (&mark->notes);
  g_free (mark);
}

/* --- events --- */

/* Returns a list even if nobody observes any more. */
static const GTorchObserverList *
current_list (void)
{
  static const GTorchObserverList nobody = { .n = 0 };
  const GTorchObserverList *list = __atomic_load_n (&gtorch_observers, __ATOMIC_ACQUIRE);

  return list != NULL ? list : &nobody;
}

#define TELL(member, ...)                             \
  G_STMT_START                                        \
  {                                                   \
    const GTorchObserverList *list = current_list (); \
    guint i;                                          \
                                                      \
    for (i = 0; i < list->n; i++)                     \
      if (list->all[i]->member != NULL)               \
        list->all[i]->member (__VA_ARGS__);           \
  }                                                   \
  G_STMT_END

gboolean
gtorch_tell_call (GTorchStream *stream, GTorchOpCall *call, GTorchLaunchFunc launch, GError **error)
{
  const GTorchObserverList *list = current_list ();
  gboolean result = TRUE;
  guint i;

  for (i = 0; i < list->n; i++)
    if (list->all[i]->call_begin != NULL && !list->all[i]->call_begin (stream, call, error))
      {
        result = FALSE;
        break;
      }
  result = result && launch (stream, call, error);
  while (i-- > 0)
    if (list->all[i]->call_end != NULL)
      list->all[i]->call_end (stream, call, result);
  return result;
}

gboolean
gtorch_tell_copy (GTorchImpl *dst, GTorchImpl *src, GError **error)
{
  const GTorchObserverList *list = current_list ();
  guint i;

  for (i = 0; i < list->n; i++)
    if (list->all[i]->copy != NULL && !list->all[i]->copy (dst, src, error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_tell_replay (GTorchGraphExec *exec, GTorchStream *stream, GTorchReplayFunc replay,
                    GError **error)
{
  const GTorchObserverList *list = current_list ();
  GTorchReplay event = { .exec = exec, .stream = stream };
  gboolean result = TRUE;
  guint i;

  for (i = 0; i < list->n; i++)
    if (list->all[i]->replay_begin != NULL && !list->all[i]->replay_begin (&event, error))
      {
        result = FALSE;
        break;
      }
  result = result && replay (exec, stream, error);
  while (i-- > 0)
    if (list->all[i]->replay_end != NULL
        && !list->all[i]->replay_end (&event, result, result ? error : NULL))
      result = FALSE;
  gtorch_notes_free (&event.notes);
  return result;
}

GTorchMark *
gtorch_tell_record (GTorchDevice *device, gpointer queue)
{
  GTorchMark *mark = mark_new (device, queue);

  TELL (record, mark);
  return mark;
}

GTorchMark *
gtorch_tell_host_wait (GTorchDevice *device, gpointer queue)
{
  GTorchMark *mark = mark_new (device, queue);

  TELL (host_wait, mark);
  return mark;
}

void
gtorch_tell_host_waited (GTorchMark *mark)
{
  TELL (host_waited, mark);
}

void
gtorch_tell_wait (GTorchStream *stream, GTorchMark *mark)
{
  TELL (wait, stream, mark);
}

void
gtorch_tell_join (GTorchStream *stream, gpointer queue)
{
  TELL (join, stream, queue);
}

GTorchDevice *
gtorch_tell_host_block_begin (GTorchDevice *device)
{
  TELL (host_block_begin, device);
  return device;
}

void
gtorch_tell_host_block_end (GTorchDevice *device)
{
  TELL (host_block_end, device);
}

void
gtorch_tell_storage_waited (GTorchStorage *storage, GTorchTimeline *writer, guint64 seq)
{
  TELL (storage_waited, storage, writer, seq);
}

void
gtorch_tell_host_copy (GTorchTimeline *copies, GTorchStream *stream, gboolean is_only)
{
  TELL (host_copy, copies, stream, is_only);
}

void
gtorch_tell_prepare (GTorchOpCall *call)
{
  TELL (prepare, call);
}

void
gtorch_tell_view (GTorchOpCall *call)
{
  TELL (view, call);
}

guint64
gtorch_tell_saved (const GTorchOpCall *call)
{
  guint64 number = 0;

  TELL (saved, call, &number);
  return number;
}

void
gtorch_tell_run_begin (guint64 number, const GTorchOpCall *call)
{
  TELL (run_begin, number, call);
}

void
gtorch_tell_run_end (guint64 number, const GTorchOpCall *call)
{
  TELL (run_end, number, call);
}

void
gtorch_tell_composite_begin (const GTorchOpClass *op, GTorchImpl *const *inputs, gsize n_inputs)
{
  TELL (composite_begin, op, inputs, n_inputs);
}

void
gtorch_tell_composite_end (const GTorchOpClass *op)
{
  TELL (composite_end, op);
}

void
gtorch_tell_named_begin (const GTorchNamed *named)
{
  TELL (named_begin, named);
}

void
gtorch_tell_named_end (const GTorchNamed *named)
{
  TELL (named_end, named);
}

void
gtorch_tell_recorded (guint64 sequence)
{
  TELL (recorded, sequence);
}

void
gtorch_tell_backward_begin (const gchar *name, guint64 sequence, GTorchImpl *const *grads,
                            gsize n_grads)
{
  TELL (backward_begin, name, sequence, grads, n_grads);
}

void
gtorch_tell_backward_end (const gchar *name, guint64 sequence)
{
  TELL (backward_end, name, sequence);
}

void
gtorch_tell_storage_new (GTorchStorage *storage)
{
  TELL (storage_new, storage);
}

void
gtorch_tell_storage_free (GTorchStorage *storage)
{
  TELL (storage_free, storage);
}

void
gtorch_tell_host_work (const gchar *what)
{
  TELL (host_work, what);
}

void
gtorch_tell_grad (GTorchImpl *grad)
{
  TELL (grad, grad);
}

void
gtorch_observe_capture_begin (GTorchCapture *capture)
{
  count_capture (1);
  TELL (capture_begin, capture);
}

gboolean
gtorch_observe_capture_end (GTorchCapture *capture, GTorchGraphExec *exec, gchar **warning,
                            GError **error)
{
  const GTorchObserverList *list = current_list ();
  gboolean result = TRUE;
  guint i;

  for (i = 0; i < list->n; i++)
    if (list->all[i]->capture_end != NULL
        && !list->all[i]->capture_end (capture, result ? exec : NULL, warning,
                                       result ? error : NULL))
      result = FALSE;
  count_capture (-1);
  return result;
}
