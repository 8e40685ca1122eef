/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/memory/gtorch-allocator.h>
#include <gtorch/device/gtorch-device-private.h>

G_BEGIN_DECLS

/* What is counted, of all storages and apart for small ones (up to 1 MiB) and large ones. In the order of
 * the keys. */
typedef enum
{
  GTORCH_STAT_ALLOCATION,           /* storages that tensors hold */
  GTORCH_STAT_SEGMENT,              /* pieces of memory from the driver */
  GTORCH_STAT_ACTIVE,               /* … or that streams still use */
  GTORCH_STAT_INACTIVE_SPLIT,       /* free blocks that share a piece with active ones */
  GTORCH_STAT_ALLOCATED_BYTES,      /* as GTORCH_STAT_ALLOCATION, rounded */
  GTORCH_STAT_RESERVED_BYTES,       /* of the pieces */
  GTORCH_STAT_ACTIVE_BYTES,         /* … */
  GTORCH_STAT_INACTIVE_SPLIT_BYTES, /* that cannot be given back */
  GTORCH_STAT_REQUESTED_BYTES,      /* as GTORCH_STAT_ACTIVE_BYTES, before rounding */
  GTORCH_N_STATS,
} GTorchStat;

enum
{
  GTORCH_POOL_ALL,
  GTORCH_POOL_SMALL,
  GTORCH_POOL_LARGE,
  GTORCH_N_POOLS,
};

/* Of one number: how it is, how high it was since the peaks were reset, how much was ever added since
 * the totals were. What was taken away follows from what it was then. */
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
  GTORCH_BACKEND_ASYNC, /* the driver's own pool, in the order of a stream */
} GTorchAllocatorBackend;

#define GTORCH_N_DIVISIONS 16

/* What can be configured; sizes in bytes. The last three mean nothing here, and are kept. */
typedef struct
{
  gint backend;
  gint64 max_split_size; /* -1: no limit */
  gint64
      max_non_split_rounding; /* how much more than asked for a block may have that is not split */
  gint64 divisions[GTORCH_N_DIVISIONS];   /* of a power of two from 1 MiB on; 0: none */
  gdouble gc_threshold;                   /* 0: none */
  gdouble fraction;                       /* of the device's memory that may be reserved */
  gint64 host_register, register_threads; /* of pinned memory */
  gint64 release_lock, background_threads, reuse_in_capture;
} GTorchAllocatorConfig;

typedef struct _GTorchHistory GTorchHistory;
typedef struct _GTorchMemorySite GTorchMemorySite;

struct _GTorchAllocator
{
  GObject parent_instance;
  GTorchDevice *device;         /* lives as long as the process */
  GMainContext *context;        /* of the thread that made it: where signals are emitted */
  GMutex config_lock;           /* of changes */
  GTorchAllocatorConfig config; /* numbers are read without the lock: one after the other */
  gint caching;                 /* atomically */
  gint started;                 /* atomically: the backend has been chosen for good */
  GTorchMemorySource
      *source;             /* of the program; NULL: the driver. Under config_lock until started */
  gint64 promised;         /* bytes being asked of the driver; under stats_lock */
  gint64 private_reserved; /* of private pools; likewise */
  gint history_level;      /* GTorchHistoryLevel; atomically */
  GTorchHistory *history;  /* made late; atomically */
  /* Appends a GTorchBlockInfo for each block, in the order of addresses within a segment. NULL: there is
   * no history and no snapshot. */
  void (*list_blocks) (GTorchDevice *device, GArray *blocks);
  /* Puts what threads keep at hand to the other free memory; NULL: they keep nothing. */
  void (*settle) (GTorchDevice *device);
  /* Numbers change together under a lock that is held for a few instructions, so that no reader sees, and
   * no peak keeps, a state that never was. */
  gint stats_lock;
  GTorchMemoryStats stats;
};

/* Of what is held for a few instructions. */
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

/* The rest: with the lock held. */

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

/* Its peak begins again, or what it only ever adds. */
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

/* All of them at one moment. */
void gtorch_allocator_get_stats (GTorchAllocator *self, GTorchMemoryStats *stats);
/* What the keys name; FALSE if there is none of that name (gtorch-allocator-stats.c). */
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

/* What a snapshot says of a block. */
typedef struct
{
  guint64 address, size, requested, stream, pool_id;
  guint8 state, pool;
  gboolean begins_segment, is_expandable;
  GTorchMemorySite *site; /* a reference; NULL */
} GTorchBlockInfo;

/* The name of the operation that allocates in this thread; NULL. */
extern __thread const gchar *gtorch_memory_site_op G_GNUC_INTERNAL;

/* TRUE once there was a history: then gtorch_launch_new_output() makes outputs. */
extern gboolean gtorch_memory_wants_ops;

/* Where the thread is. */
GTorchMemorySite *gtorch_memory_site_new (void);
GTorchMemorySite *gtorch_memory_site_ref (GTorchMemorySite *self);
void gtorch_memory_site_unref (GTorchMemorySite *self);

/* TRUE if the history is at least of the level. */
static inline gboolean
gtorch_allocator_has_history (GTorchAllocator *self, gint level)
{
  return G_UNLIKELY (__atomic_load_n (&self->history_level, __ATOMIC_RELAXED) >= level);
}

/* available: what the device has free, of an OOM. */
void gtorch_allocator_note (GTorchAllocator *self, GTorchMemoryAction action, guint64 address,
                            gsize size, guint64 stream, guint64 pool_id, GTorchMemorySite *site,
                            gsize available);
/* Of the pool alone; 0: of everything. */
GBytes *gtorch_allocator_snapshot_of (GTorchAllocator *self, guint64 pool_id,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* For the message of an OOM: where the tensors were made that take most, or how to know; NULL. */
gchar *gtorch_allocator_describe_places (GTorchAllocator *self);

/* --- configuration (gtorch-allocator-config.c) --- */
void gtorch_allocator_config_init (GTorchAllocatorConfig *config);
/* Changes what the text names; on failure nothing is changed. */
gboolean gtorch_allocator_config_parse (GTorchAllocatorConfig *config, const gchar *text,
                                        GError **error);
gchar *gtorch_allocator_config_print (const GTorchAllocatorConfig *config);
/* From the environment; what is wrong is warned of once and left out. */
void gtorch_allocator_config_read (GTorchAllocator *self);
/* As the memory of a request is: a multiple of 512 bytes. */
gsize gtorch_allocator_config_round (const GTorchAllocatorConfig *config, gsize n_bytes);

/* May n more bytes be asked of the driver? They are promised until the call with FALSE. */
gboolean gtorch_allocator_promise (GTorchAllocator *self, gsize n_bytes, gboolean promise);
/* --- when there is no more (gtorch-allocator-pressure.c); without a lock held --- */
/* With an owner whose main loop does not turn, in microseconds; tests have more. */
extern gint64 gtorch_allocator_patience;
/* Asks the application to drop what it can; TRUE if anybody was asked. */
gboolean gtorch_allocator_memory_pressure (GTorchAllocator *self, guint64 n_bytes);
gboolean gtorch_device_manager_memory_pressure (GTorchDevice *device, guint64 n_bytes);
/* TRUE if somebody has made room. */
gboolean gtorch_allocator_out_of_memory (GTorchAllocator *self, guint64 n_bytes);
void gtorch_allocator_add_signals (GTorchAllocatorClass *klass);
/* available: of the device, by the driver; largest: free block of the allocator. */
void gtorch_allocator_set_oom (GTorchAllocator *self, gsize n_bytes, gsize available, gsize largest,
                               GError **error);

G_END_DECLS
