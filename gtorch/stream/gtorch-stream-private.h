/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-private.h>
#include <gtorch/stream/gtorch-event.h>
#include <gtorch/stream/gtorch-stream.h>

G_BEGIN_DECLS

typedef struct _GTorchCapture GTorchCapture;
typedef struct _GTorchFence GTorchFence;
typedef struct _GTorchTimeline GTorchTimeline;

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
  struct _GTorchRaceOrder *copies_order; /* of these copies, only with GTORCH_CHECK=streams */
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
/* The same of an operand of what the stream gets now, TRUE where the stream itself will leave that out. */
gboolean gtorch_stream_check_operand (GTorchStream *stream, GTorchStorage *storage, GError **error);
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
  GTorchTimeline *timeline;       /* NULL: it was done from the start */
  GTorchCapture *capture;         /* recorded in a capture: not a point in time but in the graph */
  guint *clock;                   /* … after so many nodes of each of its streams */
  guint branch;                   /* … in the branch of this number; 0: in none */
  struct _GTorchRaceOrder *order; /* only with GTORCH_CHECK=streams */
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

typedef struct _GTorchChange GTorchChange;
typedef struct _GTorchHolds GTorchHolds;

/* Mixed precision: what to cast to on which type of device. */
typedef union
{
  guint8 dtypes[GTORCH_N_DEVICE_TYPES]; /* GTORCH_DTYPE_NONE: off */
  guint16 any;                          /* 0: off everywhere */
} GTorchAutocastDTypes;

G_STATIC_ASSERT (sizeof (GTorchAutocastDTypes) == sizeof (guint16));

/* What a thread has chosen; gtorch-choice-private.h has the means to choose for a while. */
typedef struct
{
  GTorchStream *streams[GTORCH_MAX_DEVICES]; /* owned; NULL: the default one of the device */
  struct _GTorchPool
      *pools[GTORCH_MAX_DEVICES]; /* owned; where storages come from; NULL: the allocator */
  GTorchDevice *current[GTORCH_N_DEVICE_TYPES]; /* of each type; NULL: the first */
  GTorchDevice *device;         /* that was made current last; NULL: the default one */
  GTorchDevice *default_device; /* of new tensors; NULL: that of the process */
  GTorchAutocastDTypes autocast;
  guint8 autocast_is_lean; /* casts of parameters are not kept */
  guint8 no_grad;
  guint n_regions;        /* of mixed precision that the program has begun */
  GTorchChange *changes;  /* the last one */
  GTorchHolds *holds;     /* tensors in use, NULL before the first (gtorch-hold-private.h) */
  GTorchTimeline *worker; /* the queue that this thread works for */
  gboolean must_finish;   /* what is called now is read as soon as it returns */
  gboolean is_apart;      /* what is called now is the library's own affair, captured or not */
  gboolean keeps_errors;  /* it only looks: errors that it meets stay for whoever can report them */
  const GTorchOpClass *calling; /* a composite that the program called, NULL if none */
} GTorchThread;

extern __thread GTorchThread gtorch_thread G_GNUC_INTERNAL;

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
gboolean gtorch_stream_wait_fence (GTorchStream *stream, GTorchFence *fence, GError **error);

/* The CPU's own: cpu/gtorch-cpu-stream.c. */
GTorchStream *gtorch_cpu_stream_new (GTorchDevice *device, gint priority, GError **error);
void gtorch_cpu_stream_get_priorities (GTorchDevice *device, gint *least, gint *greatest);
gboolean gtorch_cpu_stream_record (GTorchDevice *device, GTorchStorage *storage,
                                   GTorchStream *stream, GError **error);
gboolean gtorch_cpu_launch (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call,
                            GError **error);

/* --- calls that outlive their caller (gtorch-launch.c) --- */
typedef struct
{
  GTorchOpCall call;
  GTorchImpl *
      *inputs; /* aliases of the operands, so that release () and set_data () do not reach them */
  GTorchAttr *attrs;
} GTorchSavedCall;

/* Gives the alias for an operand; NULL: gtorch_impl_alias (). */
typedef GTorchImpl *(*GTorchAliasFunc) (GTorchImpl *impl, gpointer data);

GTorchSavedCall *gtorch_saved_call_new (const GTorchOpCall *call, GTorchAliasFunc alias,
                                        gpointer data);
void gtorch_saved_call_free (GTorchSavedCall *saved);
/* Runs the kernel in this thread, with the default stream current. */
gboolean gtorch_saved_call_run (GTorchSavedCall *saved, GError **error);
/* Notes that the work of this number writes to the storage. */
void gtorch_storage_set_writer (GTorchStorage *storage, GTorchTimeline *timeline, guint64 seq);
/* Waits for whoever wrote to the storage; FALSE with the error if that was not done. */
gboolean gtorch_storage_wait (GTorchStorage *storage, GError **error);
/* Does it write to every byte of input i, whatever is there? */
gboolean gtorch_call_overwrites (const GTorchOpCall *call, guint i);
/* Waits for copies that GPUs make from and to the storage. */
gboolean gtorch_storage_wait_copies (GTorchStorage *storage, GError **error);
/* The stream's further work comes after them. */
void gtorch_stream_enqueue_copies (GTorchStream *stream, GTorchStorage *storage);

/* --- pinned memory (cuda/gtorch-host-allocator.c) --- */
gboolean gtorch_storage_is_pinned (const GTorchStorage *storage);
/* Contiguous and uninitialised; fails beyond the limit. */
GTorchImpl *gtorch_impl_new_pinned (guint dtype, const gint64 *shape, guint n_dims, GError **error);

G_END_DECLS
