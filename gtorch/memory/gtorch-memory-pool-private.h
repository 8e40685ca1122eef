/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/memory/gtorch-allocator-private.h>
#include <gtorch/memory/gtorch-memory-pool.h>
#include <gtorch/memory/gtorch-storage-private.h>
#include <gtorch/stream/gtorch-stream-private.h>

G_BEGIN_DECLS

/* The implementation of GTorchMemoryPool. Graphs, and tensors in any thread, hold references to this and
 * not to the GObject. */
struct _GTorchPool
{
  gint ref_count;
  GTorchDevice *device;
  guint64 id;
  GList link;      /* in the list of all pools; data: this */
  gint use_on_oom; /* atomic */
  gint n_graphs;   /* graphs that use its memory, even where no tensor holds it; atomic */
  /* In bytes; protected by the stats_lock of the device's allocator. */
  GTorchCounter allocated, reserved[GTORCH_N_POOLS];

  GPtrArray *arenas; /* on a GPU; under the pool's lock */
  GPtrArray *others; /* owned pools of the same graphs on other devices; likewise; NULL: none */
  GTorchMemorySource *source; /* of the program; NULL: the device's allocator */

  /* On the CPU, memory is allocated once and reused when the tensor that held it is freed. A replay runs in
   * the order of the capture, and other users of the memory hold a reference. */
  GMutex lock;
  GPtrArray *ready; /* free blocks, the smallest first */

  gint check_order;    /* whether replays out of order are errors; atomic */
  guint first;         /* number of the first graph in `graphs`; atomic */
  GArray *graphs;      /* numbers of the existing graphs, in the order of capture */
  guint last_number;   /* the number most recently given to a graph */
  guint last_replayed; /* number of the graph replayed last; 0: none; atomic */
  guint n_captures;
  guint last_capture;     /* the number of the capture that began last */
  GArray *promised;       /* numbers of captures whose graph has not been replayed; may be NULL */
  GTorchTimeline *writer; /* queue of the last replay */
  guint64 write_seq;
  GTorchNote *notes; /* notes of observers */
  gpointer queue;    /* as writer, for graphs of a backend; atomic, written under run_lock */
  GMutex run_lock;   /* held during replays; several pools are locked in order of their ids */
};

/* The functions of a backend that implements pools itself; the memory may come from a source of the
 * program. */
typedef struct _GTorchPoolBackend
{
  GTorchStorage *(*alloc) (GTorchDevice *device, GTorchPool *pool, gsize n_bytes, gboolean captured,
                           GError **error);
  /* Returns the pool of memory that was allocated in a capture, or NULL for other memory. */
  GTorchPool *(*get_pool) (GTorchStorage *storage);
  /* Returns cached memory to the device, once the device no longer uses it. */
  void (*trim) (GTorchDevice *device, GTorchPool *pool);
  /* Called when the last reference is dropped; must end with gtorch_pool_free (). */
  void (*drop) (GTorchDevice *device, GTorchPool *pool);
} GTorchPoolBackend;

GTorchPool *gtorch_pool_new (GTorchDevice *device);
GTorchPool *gtorch_pool_ref (GTorchPool *self);
void gtorch_pool_unref (GTorchPool *self);
/* Frees the pool; for the drop () function of backends. */
void gtorch_pool_free (GTorchPool *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchPool, gtorch_pool_unref)
/* Returns the pool that implements the object; borrowed. */
GTorchPool *gtorch_memory_pool_get_pool (GTorchMemoryPool *self);

/* Allocates memory in the pool. capture: the number of the capture that allocates, or 0. Memory that
 * captures have used is not given to other users as long as their graphs exist. */
GTorchStorage *gtorch_pool_alloc (GTorchPool *self, gsize n_bytes, guint capture, GError **error);
/* Counts memory that the device provided for small or large tensors; called with stats_lock held. */
static inline void
gtorch_pool_count_reserved (GTorchPool *self, guint pool, gint64 n_bytes)
{
  gtorch_counter_add (&self->reserved[GTORCH_POOL_ALL], n_bytes);
  gtorch_counter_add (&self->reserved[pool], n_bytes);
}

/* Calls func for each existing pool of a device, in the order of their ids; no pool is freed meanwhile. */
void gtorch_pool_foreach (GTorchDevice *device, void (*func) (GTorchPool *pool, gpointer data),
                          gpointer data);
/* Resets the peaks, or the accumulated totals if accumulated is set. */
void gtorch_pool_reset_counters (GTorchPool *self, gpointer accumulated);

/* Returns the pool that the same graphs have on another device, or the pool itself for its own device; if
 * there is none, one is made. It lives as long as this pool at least, has its source, and is used, trimmed
 * and lent when memory runs out together with it. Borrowed. */
GTorchPool *gtorch_pool_get_on (GTorchPool *self, GTorchDevice *device);
/* The same, but returns NULL if there is none. */
GTorchPool *gtorch_pool_find_on (GTorchPool *self, const GTorchDevice *device);
/* Returns the pools on all other devices. */
GPtrArray *gtorch_pool_dup_others (GTorchPool *self);

/* Tells the pool that a graph uses its memory, which is then kept until the call with used FALSE. */
void gtorch_pool_set_graph (GTorchPool *self, gboolean used);

/* Returns the pool of a storage that was allocated from one in a capture, else NULL. Borrowed. */
GTorchPool *gtorch_pool_of (GTorchStorage *storage);
/* Tells whether the memory is of a pool of a device whose allocator has no pools itself. */
gboolean gtorch_pool_has_given (const GTorchStorage *storage);
/* Returns a storage of the same memory that does not keep it from being reused in the capture. */
GTorchStorage *gtorch_pool_get_memory (GTorchStorage *storage);
gboolean gtorch_pool_is_memory (GTorchStorage *storage);
/* Returns the number of a new capture. Its results are promised: they have no values until a replay keeps
 * the promise. */
guint gtorch_pool_promise (GTorchPool *self);
void gtorch_pool_keep_promise (GTorchPool *self, guint capture);
/* Returns whether the storage was allocated in a capture that has not been replayed yet. */
gboolean gtorch_pool_is_promised (GTorchStorage *storage);
/* Returns the pool of a storage that was allocated from one in a capture, or is only memory of one, and the
 * number of that capture; else NULL. Borrowed. */
GTorchPool *gtorch_pool_get_capture (GTorchStorage *storage, guint *capture);
void gtorch_pool_set_capturing (GTorchPool *self, gboolean capturing);
gboolean gtorch_pool_is_capturing (GTorchPool *self);
GTorchTimeline *gtorch_pool_get_writer (GTorchPool *self, guint64 *seq);
void gtorch_pool_set_writer (GTorchPool *self, GTorchTimeline *timeline, guint64 seq);
/* Waits for the last replay if the storage belongs to a pool. */
gboolean gtorch_pool_sync (GTorchStorage *storage, GError **error);

/* Makes this thread allocate from the pool on the pool's device. */
void gtorch_change_pool (GTorchChange *self, GTorchPool *pool);

/* The number of captures in this process that have not been replayed; see gtorch_pool_promise (). */
extern gint gtorch_n_promised;

static inline gboolean
gtorch_promises_exist (void)
{
  return G_UNLIKELY (__atomic_load_n (&gtorch_n_promised, __ATOMIC_RELAXED) != 0);
}

G_END_DECLS
