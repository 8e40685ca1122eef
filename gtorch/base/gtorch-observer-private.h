/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-inner-types-private.h>

G_BEGIN_DECLS

/* Observers: who is told what the library does. The checks of check/ are observers.
 *
 * The library reports an event by calling gtorch_observe_…() (), which tests one pointer and does nothing
 * else while nobody observes. tests/style/test-rooms.py lists the places. Observers are called in the thread
 * in which the event happens, and not always without locks: a function that does not fail must not call
 * operations, and none may begin or end a capture. */

/* --- notes --- */

typedef struct _GTorchNote GTorchNote;

/* The beginning of what an observer keeps with an object that has notes. A note stays until the object is
 * freed; its owner may change the rest of it under a lock of its own. */
struct _GTorchNote
{
  GTorchNote *next;
  gconstpointer owner; /* tells the notes of an object apart */
  void (*free) (GTorchNote *note);
};

/* Adds a note to an object, in any thread. The owner must not have a note there yet. */
void gtorch_note_add (GTorchNote **notes, GTorchNote *note);
/* Returns NULL if there is none. */
GTorchNote *gtorch_note_find (GTorchNote *const *notes, gconstpointer owner);
/* Must be called before what the notes refer to is released. */
void gtorch_notes_free (GTorchNote **notes);

/* In place of a queue: all queues of the device. */
#define GTORCH_ALL_QUEUES GSIZE_TO_POINTER (G_MAXSIZE)

/* A point in a queue: all work that was submitted to it when the mark was made. It has a reference count. */
typedef struct
{
  gint ref_count;
  GTorchDevice *device;
  gpointer queue; /* see gtorch_stream_get_queue (); GTORCH_ALL_QUEUES; NULL: one without work */
  GTorchNote *notes;
} GTorchMark;

GTorchMark *gtorch_mark_ref (GTorchMark *mark); /* may be NULL */
void gtorch_mark_unref (GTorchMark *mark);      /* may be NULL */

/* A replay of a graph, from its beginning to its end. */
typedef struct
{
  GTorchGraphExec *exec;
  GTorchStream *stream;
  GTorchNote *notes;
} GTorchReplay;

/* See gtorch-observer-named-private.h. */
typedef struct _GTorchNamed GTorchNamed;

/* --- observers --- */

typedef struct _GTorchObserver GTorchObserver;

/* All members are optional. A function that returns gboolean may refuse what is about to happen: it returns
 * FALSE with an error, and the operation fails with it. Observers with higher ranks are then not asked. */
struct _GTorchObserver
{
  guint rank;           /* a lower one is told first of a beginning and last of an end */
  gboolean in_captures; /* the observer is told of nothing unless a capture is under way */

  /* --- work --- */
  /* A call is about to get its first result, or the shape of a view. It may fail before it begins. */
  void (*prepare) (GTorchOpCall *call);
  /* A call is about to be launched on the stream (NULL: the default one), or to be captured. Its end comes
   * once it was queued, for each observer to which its beginning came and that did not refuse it. */
  gboolean (*call_begin) (GTorchStream *stream, GTorchOpCall *call, GError **error);
  void (*call_end) (GTorchStream *stream, GTorchOpCall *call, gboolean result);
  /* A call was put into a queue whose thread computes it later. An observer that sets the number, to anything
   * but 0, is told of that by it: in pairs, in the thread of the queue. */
  void (*saved) (const GTorchOpCall *call, guint64 *number);
  void (*run_begin) (guint64 number, const GTorchOpCall *call);
  void (*run_end) (guint64 number, const GTorchOpCall *call);
  /* A view was made, for which nothing is launched. */
  void (*view) (GTorchOpCall *call);
  /* The program calls an operation that consists of others. The inputs are those of its row, some of them
   * NULL, and then the items of its list. The end comes to all that observe then. */
  void (*composite_begin) (const GTorchOpClass *op, GTorchImpl *const *inputs, gsize n_inputs);
  void (*composite_end) (const GTorchOpClass *op);
  /* In pairs with the same struct; the end comes to all that observe then. */
  void (*named_begin) (const GTorchNamed *named);
  void (*named_end) (const GTorchNamed *named);
  /* A copy between devices is about to be put into the current streams of both. */
  gboolean (*copy) (GTorchImpl *dst, GTorchImpl *src, GError **error);
  /* The same as for calls; the end may fail a replay whose result is TRUE. */
  gboolean (*replay_begin) (GTorchReplay *replay, GError **error);
  gboolean (*replay_end) (GTorchReplay *replay, gboolean result, GError **error);

  /* --- the order of queues --- */
  /* A fence was recorded; the mark stands for it. */
  void (*record) (GTorchMark *mark);
  /* Further work on the stream comes after the mark. */
  void (*wait) (GTorchStream *stream, GTorchMark *mark);
  /* Further work on the stream comes after all that the queue has now. */
  void (*join) (GTorchStream *stream, gpointer queue);
  /* The host begins to wait, or asks, for all that the mark's queue has now. */
  void (*host_wait) (GTorchMark *mark);
  /* The host knows that what is before the mark is done. */
  void (*host_waited) (GTorchMark *mark);
  /* This thread is about to wait for the device, or to look at it, and goes on: in pairs, which may be within
   * one another. An end may come without its beginning if the observer was not subscribed then. */
  void (*host_block_begin) (GTorchDevice *device);
  void (*host_block_end) (GTorchDevice *device);
  /* The host has waited for the writer's work up to number `seq`, which wrote to the storage, or to its pool
   * as a replay, or copies from or to it. */
  void (*storage_waited) (GTorchStorage *storage, GTorchTimeline *writer, guint64 seq);
  /* A copy from or to pinned memory, whose copies have this timeline, was put into the stream. is_only: no
   * other one is pending. */
  void (*host_copy) (GTorchTimeline *copies, GTorchStream *stream, gboolean is_only);

  /* --- backward passes --- */
  /* A call was recorded for backward passes, after its end. */
  void (*recorded) (guint64 sequence);
  /* A backward pass computes the gradients of the operation that was recorded with the number; 0: it adds a
   * gradient to that of a leaf. The gradients are those of its outputs, some of them NULL. */
  void (*backward_begin) (const gchar *name, guint64 sequence, GTorchImpl *const *grads,
                          gsize n_grads);
  void (*backward_end) (const gchar *name, guint64 sequence);

  /* --- memory --- */
  /* Memory was given to a storage. */
  void (*storage_new) (GTorchStorage *storage);
  /* The last reference to the storage is gone; its memory is still there. */
  void (*storage_free) (GTorchStorage *storage);

  /* --- captures --- */
  /* A capture has begun in this thread; its stream does not capture yet. */
  void (*capture_begin) (GTorchCapture *capture);
  /* A capture has ended, for any reason. exec: the graph that it gives, which may be refused; or NULL.
   * warning: what the program is told once no lock is held, if it is set. */
  gboolean (*capture_end) (GTorchCapture *capture, GTorchGraphExec *exec, gchar **warning,
                           GError **error);
  /* The host does this now. */
  void (*host_work) (const gchar *what);
  /* Something is about to be added to a gradient that is there already. */
  void (*grad) (GTorchImpl *grad);
};

/* Subscribe and unsubscribe an observer, which must be static: threads may still be calling it. */
void gtorch_observer_add (const GTorchObserver *observer);
void gtorch_observer_remove (const GTorchObserver *observer);

/* --- events --- */

typedef struct _GTorchObserverList GTorchObserverList;

/* NULL: nobody observes. Atomically; lists never change and are never freed. */
extern const GTorchObserverList *gtorch_observers;

static inline gboolean
gtorch_is_observed (void)
{
  return G_UNLIKELY (__atomic_load_n (&gtorch_observers, __ATOMIC_RELAXED) != NULL);
}

typedef gboolean (*GTorchLaunchFunc) (GTorchStream *stream, GTorchOpCall *call, GError **error);
typedef gboolean (*GTorchReplayFunc) (GTorchGraphExec *exec, GTorchStream *stream, GError **error);

/* What gtorch_observe_…() calls while somebody observes. */
gboolean gtorch_tell_call (GTorchStream *stream, GTorchOpCall *call, GTorchLaunchFunc launch,
                           GError **error);
void gtorch_tell_prepare (GTorchOpCall *call);
void gtorch_tell_view (GTorchOpCall *call);
void gtorch_tell_composite_begin (const GTorchOpClass *op, GTorchImpl *const *inputs,
                                  gsize n_inputs);
void gtorch_tell_composite_end (const GTorchOpClass *op);
gboolean gtorch_tell_copy (GTorchImpl *dst, GTorchImpl *src, GError **error);
gboolean gtorch_tell_replay (GTorchGraphExec *exec, GTorchStream *stream, GTorchReplayFunc replay,
                             GError **error);
GTorchMark *gtorch_tell_record (GTorchDevice *device, gpointer queue);
GTorchMark *gtorch_tell_host_wait (GTorchDevice *device, gpointer queue);
void gtorch_tell_host_waited (GTorchMark *mark);
void gtorch_tell_wait (GTorchStream *stream, GTorchMark *mark);
void gtorch_tell_join (GTorchStream *stream, gpointer queue);
GTorchDevice *gtorch_tell_host_block_begin (GTorchDevice *device);
void gtorch_tell_host_block_end (GTorchDevice *device);
void gtorch_tell_storage_waited (GTorchStorage *storage, GTorchTimeline *writer, guint64 seq);
void gtorch_tell_host_copy (GTorchTimeline *copies, GTorchStream *stream, gboolean is_only);
void gtorch_tell_recorded (guint64 sequence);
void gtorch_tell_backward_begin (const gchar *name, guint64 sequence, GTorchImpl *const *grads,
                                 gsize n_grads);
void gtorch_tell_backward_end (const gchar *name, guint64 sequence);
void gtorch_tell_storage_new (GTorchStorage *storage);
void gtorch_tell_storage_free (GTorchStorage *storage);
void gtorch_tell_host_work (const gchar *what);
void gtorch_tell_grad (GTorchImpl *grad);

/* Launches the call. */
static inline gboolean
gtorch_observe_call (GTorchStream *stream, GTorchOpCall *call, GTorchLaunchFunc launch,
                     GError **error)
{
  return gtorch_is_observed () ? gtorch_tell_call (stream, call, launch, error)
                               : launch (stream, call, error);
}

static inline void
gtorch_observe_prepare (GTorchOpCall *call)
{
  if (gtorch_is_observed ())
    gtorch_tell_prepare (call);
}

static inline void
gtorch_observe_view (GTorchOpCall *call)
{
  if (gtorch_is_observed ())
    gtorch_tell_view (call);
}

static inline void
gtorch_observe_composite_begin (const GTorchOpClass *op, GTorchImpl *const *inputs, gsize n_inputs)
{
  if (gtorch_is_observed ())
    gtorch_tell_composite_begin (op, inputs, n_inputs);
}

static inline void
gtorch_observe_composite_end (const GTorchOpClass *op)
{
  if (gtorch_is_observed ())
    gtorch_tell_composite_end (op);
}

static inline gboolean
gtorch_observe_copy (GTorchImpl *dst, GTorchImpl *src, GError **error)
{
  return !gtorch_is_observed () || gtorch_tell_copy (dst, src, error);
}

/* Replays the graph. */
static inline gboolean
gtorch_observe_replay (GTorchGraphExec *exec, GTorchStream *stream, GTorchReplayFunc replay,
                       GError **error)
{
  return gtorch_is_observed () ? gtorch_tell_replay (exec, stream, replay, error)
                               : replay (exec, stream, error);
}

/* Gives a mark to keep with the fence, or NULL. A macro, so that nobody asks for the queue in vain. */
#define gtorch_observe_record(device, queue) \
  (gtorch_is_observed () ? gtorch_tell_record ((device), (queue)) : NULL)

/* The time in which the host waits: g_auto (GTorchHostWait) wait = gtorch_observe_host_wait (…). */
typedef struct
{
  GTorchMark *mark;
  gboolean is_over; /* to be set to TRUE if everything is done */
} GTorchHostWait;

#define gtorch_observe_host_wait(device, queue)                                                \
  ((GTorchHostWait){ gtorch_is_observed () ? gtorch_tell_host_wait ((device), (queue)) : NULL, \
                     FALSE })

static inline void
gtorch_host_wait_end (GTorchHostWait *wait)
{
  if (G_LIKELY (wait->mark == NULL))
    return;
  if (wait->is_over)
    gtorch_tell_host_waited (wait->mark);
  gtorch_mark_unref (wait->mark);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchHostWait, gtorch_host_wait_end)

/* The time in which the thread does nothing else:
 * g_auto (GTorchHostBlock) block = gtorch_observe_host_block (…). */
typedef struct
{
  GTorchDevice *device; /* NULL: nobody observes */
} GTorchHostBlock;

static inline GTorchHostBlock
gtorch_observe_host_block (GTorchDevice *device)
{
  return (GTorchHostBlock){ gtorch_is_observed () ? gtorch_tell_host_block_begin (device) : NULL };
}

static inline void
gtorch_host_block_end (GTorchHostBlock *block)
{
  if (G_UNLIKELY (block->device != NULL))
    gtorch_tell_host_block_end (block->device);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchHostBlock, gtorch_host_block_end)

static inline void
gtorch_observe_host_waited (GTorchMark *mark)
{
  if (G_UNLIKELY (mark != NULL))
    gtorch_tell_host_waited (mark);
}

static inline void
gtorch_observe_wait (GTorchStream *stream, GTorchMark *mark)
{
  if (G_UNLIKELY (mark != NULL))
    gtorch_tell_wait (stream, mark);
}

static inline void
gtorch_observe_join (GTorchStream *stream, gpointer queue)
{
  if (gtorch_is_observed ())
    gtorch_tell_join (stream, queue);
}

static inline void
gtorch_observe_storage_waited (GTorchStorage *storage, GTorchTimeline *writer, guint64 seq)
{
  if (gtorch_is_observed ())
    gtorch_tell_storage_waited (storage, writer, seq);
}

static inline void
gtorch_observe_host_copy (GTorchTimeline *copies, GTorchStream *stream, gboolean is_only)
{
  if (gtorch_is_observed ())
    gtorch_tell_host_copy (copies, stream, is_only);
}

static inline void
gtorch_observe_recorded (guint64 sequence)
{
  if (gtorch_is_observed ())
    gtorch_tell_recorded (sequence);
}

static inline void
gtorch_observe_backward_begin (const gchar *name, guint64 sequence, GTorchImpl *const *grads,
                               gsize n_grads)
{
  if (gtorch_is_observed ())
    gtorch_tell_backward_begin (name, sequence, grads, n_grads);
}

static inline void
gtorch_observe_backward_end (const gchar *name, guint64 sequence)
{
  if (gtorch_is_observed ())
    gtorch_tell_backward_end (name, sequence);
}

static inline void
gtorch_observe_storage_new (GTorchStorage *storage)
{
  if (gtorch_is_observed ())
    gtorch_tell_storage_new (storage);
}

static inline void
gtorch_observe_storage_free (GTorchStorage *storage)
{
  if (gtorch_is_observed ())
    gtorch_tell_storage_free (storage);
}

static inline void
gtorch_observe_host_work (const gchar *what)
{
  if (gtorch_is_observed ())
    gtorch_tell_host_work (what);
}

static inline void
gtorch_observe_grad (GTorchImpl *grad)
{
  if (gtorch_is_observed ())
    gtorch_tell_grad (grad);
}

void gtorch_observe_capture_begin (GTorchCapture *capture);
/* warning: is set if the program is to be told something once no lock is held. Returns FALSE if the graph is
 * refused. */
gboolean gtorch_observe_capture_end (GTorchCapture *capture, GTorchGraphExec *exec, gchar **warning,
                                     GError **error);

G_END_DECLS
