/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/memory/gtorch-allocator-private.h>
#include <gtorch/memory/gtorch-memory-pool.h>
#include <gtorch/memory/gtorch-storage-private.h>
#include <gtorch/stream/gtorch-stream-private.h>

G_BEGIN_DECLS

/* What is behind a GTorchMemoryPool: graphs, and tensors from any thread, hold this and not the object. */
struct _GTorchPool
{
  gint ref_count;
  GTorchDevice *device;
  guint64 id;
  GList link;      /* among all pools; data: this */
  gint use_on_oom; /* atomically */
  gint n_graphs;   /* atomically: of those that use its memory, also where no tensor holds it */
  /* in bytes; under the statistics' lock of the device */
  GTorchCounter allocated, reserved[GTORCH_N_POOLS];

  GPtrArray *arenas;          /* a GPU's, under its lock */
  GTorchMemorySource *source; /* of the program; NULL: the device's */

  /* A CPU's: memory comes from the allocator once and is handed out again when the tensor that had it is
   * gone. In a replay everything happens in the order of the capture, and else whoever works on memory
   * keeps it. */
  GMutex lock;
  GPtrArray *ready; /* blocks that nobody has, the smallest first */

  gint check_order;    /* atomically: replays out of order are errors */
  guint first;         /* atomically: the number of the first of … */
  GArray *graphs;      /* the numbers of those that there are, in the order of their captures */
  guint last_number;   /* that was given to one */
  guint last_replayed; /* atomically: the number of the last one that was; 0: none */
  guint n_captures;
  GTorchTimeline *writer; /* of the last replay */
  guint64 write_seq;
  GTorchNote *notes; /* of observers */
  gpointer queue; /* the same of a backend's graphs; atomically, written with the lock of replays */
  GMutex run_lock; /* of replays; of several pools the one with the smaller number is taken first */
};

/* The pools of a backend that makes them itself, from memory that may come from a source of the program. */
typedef struct _GTorchPoolBackend
{
  GTorchStorage *(*alloc) (GTorchDevice *device, GTorchPool *pool, gsize n_bytes, gboolean captured,
                           GError **error);
  /* Returns the pool of memory that was allocated in a capture; NULL for other memory. */
  GTorchPool *(*get_pool) (GTorchStorage *storage);
  /* Gives unused memory back, once the device is done with it. */
  void (*trim) (GTorchDevice *device, GTorchPool *pool);
  /* Called when the last reference is gone; ends with gtorch_pool_free (). */
  void (*drop) (GTorchDevice *device, GTorchPool *pool);
} GTorchPoolBackend;

GTorchPool *gtorch_pool_new (GTorchDevice *device);
GTorchPool *gtorch_pool_ref (GTorchPool *self);
void gtorch_pool_unref (GTorchPool *self);
/* For the drop () of backends. */
void gtorch_pool_free (GTorchPool *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchPool, gtorch_pool_unref)
/* The one behind the object, borrowed. */
GTorchPool *gtorch_memory_pool_get_pool (GTorchMemoryPool *self);

/* captured: in a capture. What graphs had is never given to others while there are graphs. */
GTorchStorage *gtorch_pool_alloc (GTorchPool *self, gsize n_bytes, gboolean captured,
                                  GError **error);
/* Counts what the device gave for small or large tensors; with the statistics' lock held. */
static inline void
gtorch_pool_count_reserved (GTorchPool *self, guint pool, gint64 n_bytes)
{
  gtorch_counter_add (&self->reserved[GTORCH_POOL_ALL], n_bytes);
  gtorch_counter_add (&self->reserved[pool], n_bytes);
}

/* Calls func for each pool of a device that has not gone yet, in the order of their numbers; none goes
 * meanwhile. */
void gtorch_pool_foreach (GTorchDevice *device, void (*func) (GTorchPool *pool, gpointer data),
                          gpointer data);
/* The peaks, or what only ever grows, begin again. */
void gtorch_pool_reset_counters (GTorchPool *self, gpointer accumulated);

/* A graph uses the memory: it stays until the call with FALSE. */
void gtorch_pool_set_graph (GTorchPool *self, gboolean used);

/* The pool of a storage that came from one in a capture, else NULL. Borrowed. */
GTorchPool *gtorch_pool_of (GTorchStorage *storage);
/* The same memory, without keeping it from being handed out again in the capture. */
GTorchStorage *gtorch_pool_get_memory (GTorchStorage *storage);
gboolean gtorch_pool_is_memory (GTorchStorage *storage);
void gtorch_pool_set_capturing (GTorchPool *self, gboolean capturing);
gboolean gtorch_pool_is_capturing (GTorchPool *self);
GTorchTimeline *gtorch_pool_get_writer (GTorchPool *self, guint64 *seq);
void gtorch_pool_set_writer (GTorchPool *self, GTorchTimeline *timeline, guint64 seq);
/* Waits for the last replay if the storage came from a pool. */
gboolean gtorch_pool_sync (GTorchStorage *storage, GError **error);

/* The thread's storages of the pool's device come from the pool. */
void gtorch_change_pool (GTorchChange *self, GTorchPool *pool);

G_END_DECLS
