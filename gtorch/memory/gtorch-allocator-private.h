/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/memory/gtorch-allocator.h>
#include <gtorch/device/gtorch-device-private.h>
#include <gtorch/base/gtorch-internal-private.h>

G_BEGIN_DECLS

/* The counters, each kept for all storages and separately for small (up to 1 MiB) and large ones; in the
 * order of the keys. */
typedef enum
{
  GTORCH_STAT_ALLOCATION,           /* storages that tensors hold */
  GTORCH_STAT_SEGMENT,              /* segments allocated from the driver */
  GTORCH_STAT_ACTIVE,               /* storages that tensors hold or streams still use */
  GTORCH_STAT_INACTIVE_SPLIT,       /* free blocks in segments with active ones */
  GTORCH_STAT_ALLOCATED_BYTES,      /* size of GTORCH_STAT_ALLOCATION, rounded */
  GTORCH_STAT_RESERVED_BYTES,       /* size of GTORCH_STAT_SEGMENT */
  GTORCH_STAT_ACTIVE_BYTES,         /* size of GTORCH_STAT_ACTIVE */
  GTORCH_STAT_INACTIVE_SPLIT_BYTES, /* size of GTORCH_STAT_INACTIVE_SPLIT */
  GTORCH_STAT_REQUESTED_BYTES,      /* GTORCH_STAT_ACTIVE_BYTES before rounding */
  GTORCH_N_STATS,
} GTorchStat;

enum
{
  GTORCH_POOL_ALL,
  GTORCH_POOL_SMALL,
  GTORCH_POOL_LARGE,
  GTORCH_N_POOLS,
};

/* A counter: its current value, its peak since the peaks were reset, the total added since the totals were
 * reset, and the value at that time, from which the total removed follows. */
typedef struct
{
  gint64 current, peak, added, base;
} GTorchCounter;

typedef struct _GTorchMemoryStats
{
  GTorchCounter counters[GTORCH_N_POOLS][GTORCH_N_STATS];
  GTorchCounter oversize_allocations, oversize_segments;
  gint64 num_alloc_retries;
  gint64 num_ooms;
  gint64 num_sync_all_streams;
  gint64 num_device_alloc;
  gint64 num_device_free;
  gint64 max_split_size; /* -1: no limit */
} GTorchMemoryStats;

typedef enum
{
  GTORCH_BACKEND_ARENAS,
  GTORCH_BACKEND_SEGMENTS,
  GTORCH_BACKEND_ASYNC, /* the driver's stream-ordered memory pool */
} GTorchAllocatorBackend;

#define GTORCH_N_DIVISIONS 16

/* The configuration; sizes in bytes. The last three fields have no effect here and are only stored. */
typedef struct
{
  gint backend;
  gint64 max_split_size;         /* -1: no limit */
  gint64 max_non_split_rounding; /* allowed excess over the request of a block that is not split */
  gint64 divisions[GTORCH_N_DIVISIONS];   /* of a power of two, from 1 MiB on; 0: none */
  gdouble gc_threshold;                   /* 0: no garbage collection */
  gdouble fraction;                       /* of the device's memory that may be reserved */
  gint64 host_register, register_threads; /* for pinned memory */
  gint64 release_lock, background_threads, reuse_in_capture;
} GTorchAllocatorConfig;

typedef struct _GTorchHistory GTorchHistory;
typedef struct _GTorchMemorySite GTorchMemorySite;

struct _GTorchAllocator
{
  GObject parent_instance;
  GTorchDevice *device;         /* lives as long as the process */
  GMainContext *context;        /* where signals are emitted: that of the creating thread */
  GMutex config_lock;           /* held while the configuration changes */
  GTorchAllocatorConfig config; /* its numbers are read one by one without the lock */
  gint caching;                 /* atomic */
  gint started;                 /* atomic: the backend can no longer be changed */
  GTorchMemorySource
      *source;             /* of the program; NULL: the driver. Under config_lock until started */
  gint64 promised;         /* bytes being requested from the driver; under stats_lock */
  gint64 private_reserved; /* bytes reserved by private pools; under stats_lock */
  gint history_level;      /* GTorchHistoryLevel; atomic */
  GTorchHistory *history;  /* created lazily; atomic */
  /* Appends a GTorchBlockInfo for each block, in order of addresses within a segment. NULL: history and
   * snapshots are not supported. */
  void (*list_blocks) (GTorchDevice *device, GArray *blocks);
  /* Returns the blocks that threads cache to the shared free memory; NULL: threads cache none. */
  void (*settle) (GTorchDevice *device);
  /* A spin lock under which related counters change together, so that readers and peaks never see an
   * inconsistent state. */
  gint stats_lock;
  GTorchMemoryStats stats;
};

/* Spin locks, which are held for a few instructions only. */
static inline void
gtorch_spin_lock (gint *lock)
{
  guint spins = 0;

  while (G_UNLIKELY (__atomic_exchange_n (lock, 1, __ATOMIC_ACQUIRE) != 0))
    while (__atomic_load_n (lock, __ATOMIC_RELAXED) != 0)
      if (++spins % 64 == 0)
        g_thread_yield ();
}

static inline void
gtorch_spin_unlock (gint *lock)
{
  __atomic_store_n (lock, 0, __ATOMIC_RELEASE);
}

static inline void
gtorch_allocator_lock_stats (GTorchAllocator *self)
{
  gtorch_spin_lock (&self->stats_lock);
}

static inline void
gtorch_allocator_unlock_stats (GTorchAllocator *self)
{
  gtorch_spin_unlock (&self->stats_lock);
}

/* The following functions are called with stats_lock held. */

static inline void
gtorch_counter_add (GTorchCounter *counter, gint64 n)
{
  counter->current += n;
  if (n > 0)
    {
      counter->added += n;
      counter->peak = MAX (counter->peak, counter->current);
    }
}

static inline void
gtorch_stats_add (GTorchMemoryStats *stats, guint pool, GTorchStat stat, gint64 n)
{
  gtorch_counter_add (&stats->counters[GTORCH_POOL_ALL][stat], n);
  gtorch_counter_add (&stats->counters[pool][stat], n);
}

/* Resets the peak to the current value, or the accumulated totals to 0. */
static inline void
gtorch_counter_reset (GTorchCounter *counter, gboolean accumulated)
{
  if (accumulated)
    {
      counter->added = 0;
      counter->base = counter->current;
    }
  else
    counter->peak = counter->current;
}

static inline gint64
gtorch_counter_freed (const GTorchCounter *counter)
{
  return counter->added - (counter->current - counter->base);
}

/* Copies all counters at one moment. */
void gtorch_allocator_get_stats (GTorchAllocator *self, GTorchMemoryStats *stats);
/* Gets the counter that the key names; returns FALSE if there is none (gtorch-allocator-stats.c). */
gboolean gtorch_memory_stats_find (const GTorchMemoryStats *stats, GTorchDevice *device,
                                   const gchar *key, gint64 *value);
gchar **gtorch_memory_stats_keys (const GTorchMemoryStats *stats, GTorchDevice *device);
gchar *gtorch_memory_stats_summary (const GTorchMemoryStats *stats, GTorchDevice *device,
                                    gboolean abbreviated);

/* --- history (gtorch-allocator-history.c) --- */
typedef enum
{
  GTORCH_MEMORY_ALLOC,
  GTORCH_MEMORY_FREE_REQUESTED,
  GTORCH_MEMORY_FREE_COMPLETED,
  GTORCH_MEMORY_SEGMENT_ALLOC,
  GTORCH_MEMORY_SEGMENT_FREE,
  GTORCH_MEMORY_SEGMENT_MAP,
  GTORCH_MEMORY_SEGMENT_UNMAP,
  GTORCH_MEMORY_OOM,
  GTORCH_MEMORY_SNAPSHOT,
} GTorchMemoryAction;

enum
{
  GTORCH_BLOCK_INACTIVE,
  GTORCH_BLOCK_AWAITING_FREE,
  GTORCH_BLOCK_ALLOCATED,
};

/* Addresses from start up to end. */
typedef struct
{
  guint64 start, end;
} GTorchAddresses;

/* A block in a snapshot. */
typedef struct
{
  guint64 address, size, requested, stream, pool_id;
  guint8 state, pool;
  gboolean begins_segment, is_expandable;
  GTorchAddresses head, tail; /* the pages in which it begins and ends, if is_expandable */
  GTorchMemorySite *site; /* owned reference or NULL */
} GTorchBlockInfo;

/* The name of the operation that is allocating in this thread, or NULL. */
extern __thread const gchar *gtorch_memory_site_op GTORCH_INTERNAL;

/* Who wants gtorch_launch_new_output () to create outputs: a set of flags, accessed atomically. A history
 * does from the time on when the first one is recorded. */
enum
{
  GTORCH_WANTS_OPS_HISTORY = 1 << 0,
  GTORCH_WANTS_OPS_PROFILE = 1 << 1,
};

extern guint gtorch_memory_wants_ops;

/* Returns a record of where this thread is: operation, backtrace and, with_place, the place in the program's
 * language, which must not be asked for with a lock or while memory is freed. */
GTorchMemorySite *gtorch_memory_site_new (gboolean with_place);
GTorchMemorySite *gtorch_memory_site_ref (GTorchMemorySite *self);
void gtorch_memory_site_unref (GTorchMemorySite *self);

/* Returns whether at least this level of history is recorded. */
static inline gboolean
gtorch_allocator_has_history (GTorchAllocator *self, gint level)
{
  return G_UNLIKELY (__atomic_load_n (&self->history_level, __ATOMIC_RELAXED) >= level);
}

/* Adds an event to the history. available: the device's free memory, for OOM events. */
void gtorch_allocator_note (GTorchAllocator *self, GTorchMemoryAction action, guint64 address,
                            gsize size, guint64 stream, guint64 pool_id, GTorchMemorySite *site,
                            gsize available);
/* Takes a snapshot of one pool, or of all memory if pool_id is 0. */
GBytes *gtorch_allocator_snapshot_of (GTorchAllocator *self, guint64 pool_id,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* Returns the text for an OOM message about the sites whose tensors hold the most memory, or about how to
 * find them; may return NULL. n_bytes: what is missing, available: what the device has. */
gchar *gtorch_allocator_describe_places (GTorchAllocator *self, gsize n_bytes, gsize available);

/* Lets history and snapshots be supported; a history begins if the environment asks for it. */
void gtorch_allocator_set_list_blocks (GTorchAllocator *self,
                                       void (*list_blocks) (GTorchDevice *device, GArray *blocks));

/* --- configuration (gtorch-allocator-config.c) --- */
void gtorch_allocator_config_init (GTorchAllocatorConfig *config);
/* Changes the settings that the text names; on failure nothing changes. */
gboolean gtorch_allocator_config_parse (GTorchAllocatorConfig *config, const gchar *text,
                                        GError **error);
gchar *gtorch_allocator_config_print (const GTorchAllocatorConfig *config);
/* Reads the configuration from the environment; wrong items are ignored, with one warning each. */
void gtorch_allocator_config_read (GTorchAllocator *self);
/* Returns the size of the memory for a request: a multiple of 512 bytes. */
gsize gtorch_allocator_config_round (const GTorchAllocatorConfig *config, gsize n_bytes);

/* Returns whether n_bytes more may be requested from the driver. They then count as promised until the call
 * with promise FALSE. */
gboolean gtorch_allocator_promise (GTorchAllocator *self, gsize n_bytes, gboolean promise);
/* --- out of memory (gtorch-allocator-pressure.c); called without a lock held --- */
/* How long to wait for an owner whose main loop does not run, in microseconds; tests set more. */
extern gint64 gtorch_allocator_patience;
/* Asks the application to drop tensors; returns TRUE if a handler was called. */
gboolean gtorch_allocator_memory_pressure (GTorchAllocator *self, guint64 n_bytes);
/* Emits out-of-memory; returns TRUE if a handler has freed memory. */
gboolean gtorch_allocator_out_of_memory (GTorchAllocator *self, guint64 n_bytes);
void gtorch_allocator_add_signals (GTorchAllocatorClass *klass);
/* Sets the error. available: free memory of the device as reported by the driver; largest: the largest free
 * block of the allocator. */
void gtorch_allocator_set_oom (GTorchAllocator *self, gsize n_bytes, gsize available, gsize largest,
                               GError **error);

G_END_DECLS
