/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-fork-private.h"
#include "memory/gtorch-memory-pool-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-text-private.h"

/* The size of the segments that smaller requests share, as in PyTorch. */
#define MAX_UNSPLIT (G_GUINT64_CONSTANT (20) << 20)

/**
 * GTorchAllocator:
 *
 * The allocator of a device's tensors.
 *
 * When a tensor is freed, its memory goes to the next tensor of its stream without a call of the driver,
 * which would have to wait for the GPU. Programs that show a GPU's free memory therefore show cached memory
 * as used ([property@Allocator:cached]); [method@Allocator.trim] returns that to the device.
 *
 * There is one object for each device, [method@Device.get_allocator], and it lives as long as the process.
 * Its statistics have the names of PyTorch's `memory_stats()`:
 *
 * ```c
 * GTorchAllocator *allocator = gtorch_device_get_allocator (device);
 * guint64 peak = gtorch_allocator_get_stat (allocator, "allocated_bytes.all.peak", NULL);
 * g_autofree gchar *table = gtorch_allocator_to_summary (allocator, FALSE);
 *
 * g_print ("at most %" G_GUINT64_FORMAT " bytes\n%s", peak, table);
 * ```
 *
 * The environment variables `GTORCH_ALLOC_CONF`, `PYTORCH_ALLOC_CONF` and `PYTORCH_CUDA_ALLOC_CONF`, the
 * first of them taking precedence, accept the syntax of PyTorch's `PYTORCH_CUDA_ALLOC_CONF`.
 * `GTORCH_ALLOC=segments` and `backend:segments` choose segments of the sizes that PyTorch uses instead of
 * pages mapped into one range of addresses; a GPU that cannot map pages uses segments as well.
 * `GTORCH_NO_MEMORY_CACHING=1` and `PYTORCH_NO_CUDA_MEMORY_CACHING=1` turn [property@Allocator:caching]
 * off.
 *
 * The statistics of a GPU are exact, and those returned by one call are from one moment. On the CPU each
 * thread counts for itself: there current values are exact, and peaks are exact to 64 KiB per thread.
 *
 * Since: 0.1
 */

G_DEFINE_TYPE (GTorchAllocator, gtorch_allocator, G_TYPE_OBJECT)

static gint64
get_counter (GTorchAllocator *self, GTorchStat stat, gboolean peak)
{
  GTorchMemoryStats stats;

  gtorch_allocator_get_stats (self, &stats);
  return peak ? stats.counters[GTORCH_POOL_ALL][stat].peak
              : stats.counters[GTORCH_POOL_ALL][stat].current;
}

static void
gtorch_allocator_constructed (GObject *object)
{
  GTorchAllocator *self = GTORCH_ALLOCATOR (object);

  G_OBJECT_CLASS (gtorch_allocator_parent_class)->constructed (object);
  self->context = g_main_context_ref_thread_default ();
  gtorch_allocator_config_read (self);
}

/* Returns the device's only allocator; without a device, the CPU's. */
static GObject *
gtorch_allocator_constructor (GType type, guint n_properties, GObjectConstructParam *properties)
{
  GTorchDevice *device = NULL;
  guint i;

  for (i = 0; i < n_properties; i++)
    if (g_str_equal (properties[i].pspec->name, "device"))
      device = g_value_get_object (properties[i].value);
  if (device == NULL)
    device = gtorch_device_cpu ();
  if (device->allocator != NULL)
    return g_object_ref (G_OBJECT (device->allocator));
  return G_OBJECT_CLASS (gtorch_allocator_parent_class)
      ->constructor (type, n_properties, properties);
}

static void
gtorch_allocator_finalize (GObject *object)
{
  GTorchAllocator *self = GTORCH_ALLOCATOR (object);

  gtorch_fork_remove_lock (&self->config_lock);
  g_mutex_clear (&self->config_lock);
  G_OBJECT_CLASS (gtorch_allocator_parent_class)->finalize (object);
}

static void
gtorch_allocator_set_device (GTorchAllocator *self, GTorchDevice *device)
{
  self->device = device; /* outlives the allocator */
}

typedef GTorchAllocator Self;

static const GTorchField fields[] = {
  /**
   * GTorchAllocator:device:
   *
   * The device whose memory it allocates.
   *
   * Since: 0.1
   */
  { "device",
    GTORCH_PROPERTY_OBJECT (GTorchDevice, gtorch_device_get_type, gtorch_allocator_get_device,
                            gtorch_allocator_set_device),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchAllocator:allocated:
   *
   * The bytes that tensors hold, rounded up as the allocator rounds.
   *
   * Since: 0.1
   */
  { "allocated", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_allocated, NULL) },
  /**
   * GTorchAllocator:peak-allocated:
   *
   * The maximum of bytes that tensors held since [method@Allocator.reset_peak].
   *
   * Since: 0.1
   */
  { "peak-allocated", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_peak_allocated, NULL) },
  /**
   * GTorchAllocator:reserved:
   *
   * The bytes that the allocator has reserved on the device: what tensors hold and what is cached.
   *
   * Since: 0.1
   */
  { "reserved", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_reserved, NULL) },
  /**
   * GTorchAllocator:peak-reserved:
   *
   * The maximum of bytes that the allocator had reserved since [method@Allocator.reset_peak].
   *
   * Since: 0.1
   */
  { "peak-reserved", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_peak_reserved, NULL) },
  /**
   * GTorchAllocator:cached:
   *
   * The bytes that are reserved but that no tensor holds.
   *
   * Since: 0.1
   */
  { "cached", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_cached, NULL) },
  /**
   * GTorchAllocator:fragmentation:
   *
   * The fraction, 0 to 1, of the reserved memory that is free but cannot be returned to the device, since
   * tensors hold memory in the same segment.
   *
   * Since: 0.1
   */
  { "fragmentation", GTORCH_PROPERTY_DOUBLE (gtorch_allocator_get_fragmentation, NULL), .high = 1 },
  /**
   * GTorchAllocator:memory-fraction:
   *
   * The fraction of the device's memory that may be reserved, above 0 and up to 1.
   *
   * On the CPU the environment does not set it, and memory of other libraries, of pinned tensors and of
   * tensors that processes share does not count.
   *
   * Since: 0.1
   */
  { "memory-fraction",
    GTORCH_PROPERTY_DOUBLE (gtorch_allocator_get_memory_fraction,
                            gtorch_allocator_set_memory_fraction),
    .high = 1, .value = 1 },
  /**
   * GTorchAllocator:max-split-size:
   *
   * The size in bytes from which on blocks are not split, which can reduce fragmentation; above 20 MiB.
   * %G_MAXUINT64: all blocks are split. This applies to segments only; arenas can return single pages.
   *
   * Since: 0.1
   */
  { "max-split-size",
    GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_max_split_size,
                            gtorch_allocator_set_max_split_size),
    .low = MAX_UNSPLIT + 1, .high = INFINITY, .value = INFINITY },
  /**
   * GTorchAllocator:gc-threshold:
   *
   * The fraction of the reservable memory from which on cached memory is returned before more is reserved;
   * 0 for never. On the CPU it has no effect: what is cached there has a limit of its own.
   *
   * Since: 0.1
   */
  { "gc-threshold",
    GTORCH_PROPERTY_DOUBLE (gtorch_allocator_get_gc_threshold, gtorch_allocator_set_gc_threshold),
    .high = 1 },
  /**
   * GTorchAllocator:caching:
   *
   * Whether freed memory is kept for later tensors. Without caching every allocation calls the driver: that
   * is slow, but memory checkers see each tensor. It can be changed on a GPU; on the CPU it is what the
   * environment has chosen.
   *
   * Since: 0.1
   */
  { "caching", GTORCH_PROPERTY_BOOL (gtorch_allocator_get_caching, gtorch_allocator_set_caching),
    .value = TRUE },
};

static void
gtorch_allocator_class_init (GTorchAllocatorClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructor = gtorch_allocator_constructor;
  object_class->constructed = gtorch_allocator_constructed;
  object_class->finalize = gtorch_allocator_finalize;
  GTORCH_FIELDS (klass, fields);
  gtorch_allocator_add_signals (klass);
}

static void
gtorch_allocator_init (GTorchAllocator *self)
{
  g_mutex_init (&self->config_lock);
  gtorch_fork_add_lock (&self->config_lock);
  gtorch_allocator_config_init (&self->config);
  self->caching = TRUE;
  self->stats.max_split_size = -1;
}

/* Returns cached blocks of threads to the shared free memory, for statistics about fragmentation: such a
 * block may belong to the free blocks around it. */
static void
settle (GTorchAllocator *self)
{
  if (self->settle != NULL)
    self->settle (self->device);
}

void
gtorch_allocator_get_stats (GTorchAllocator *self, GTorchMemoryStats *stats)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (self->device);

  gtorch_allocator_lock_stats (self);
  if (klass->sync_stats != NULL)
    klass->sync_stats (self->device, &self->stats, FALSE);
  *stats = self->stats;
  gtorch_allocator_unlock_stats (self);
}

/**
 * gtorch_allocator_get_device:
 * @self: an allocator
 *
 * Gets the device whose memory it allocates.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_allocator_get_device (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), NULL);
  return self->device;
}

/**
 * gtorch_allocator_dup_stat_keys:
 * @self: an allocator
 *
 * Gets the names of all statistics.
 *
 * `allocation` counts the storages that tensors hold, `active` also those that streams still use, `segment`
 * the segments allocated from the driver, `inactive_split` the free blocks in segments with active blocks;
 * `allocated_bytes`, `active_bytes`, `reserved_bytes` and `inactive_split_bytes` are their sizes, and
 * `requested_bytes` is the size of `active` before rounding. Each is followed by `.all`, `.small_pool`
 * (tensors of up to 1 MiB) or `.large_pool`, and then by `.current`, `.peak`, `.allocated` or `.freed`, the
 * last two being the totals that were added and removed. Others are `oversize_allocations` and
 * `oversize_segments`, with the same four, and single numbers: `num_alloc_retries`, `num_ooms`,
 * `num_sync_all_streams`, `num_device_alloc`, `num_device_free` and `max_split_size`.
 *
 * Each [class@MemoryPool] of the device, including those of graphs, has
 * `reserved_bytes_by_private_pools.0_` followed by its [property@MemoryPool:id], `.all`, `.small_pool` or
 * `.large_pool` and the same four, until its memory has been returned.
 *
 * Returns: (transfer full) (array zero-terminated=1): the keys
 *
 * Since: 0.1
 */
gchar **
gtorch_allocator_dup_stat_keys (GTorchAllocator *self)
{
  GTorchMemoryStats stats;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), NULL);
  gtorch_allocator_get_stats (self, &stats);
  return gtorch_memory_stats_keys (&stats, self->device);
}

/**
 * gtorch_allocator_get_stat:
 * @self: an allocator
 * @key: the name of a statistic, from [method@Allocator.dup_stat_keys]
 * @error: return location for an error
 *
 * Gets a statistic by its name.
 *
 * ```c
 * guint64 n = gtorch_allocator_get_stat (allocator, "allocation.small_pool.current", &error);
 * ```
 *
 * Returns: the value; 0 with %GTORCH_ERROR_NOT_FOUND if there is no statistic of that name. Without a limit
 *   `max_split_size` is %G_MAXUINT64
 *
 * Since: 0.1
 */
guint64
gtorch_allocator_get_stat (GTorchAllocator *self, const gchar *key, GError **error)
{
  GTorchMemoryStats stats;
  gint64 value;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 0);
  g_return_val_if_fail (key != NULL, 0);
  if (g_str_has_prefix (key, "inactive"))
    settle (self);
  gtorch_allocator_get_stats (self, &stats);
  if (gtorch_memory_stats_find (&stats, self->device, key, &value))
    return value;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
               _ ("allocator: “%s” is not a statistic; “allocated_bytes.all.peak” and "
                  "“num_ooms” are, for example"),
               gtorch_name_str (key));
  return 0;
}

/**
 * gtorch_allocator_to_summary:
 * @self: an allocator
 * @abbreviated: whether to leave out the rows of the small and the large pool
 *
 * Formats all statistics as a table, 77 columns wide.
 *
 * Returns: (transfer full): the text, each line terminated by a line feed
 *
 * Since: 0.1
 */
gchar *
gtorch_allocator_to_summary (GTorchAllocator *self, gboolean abbreviated)
{
  GTorchMemoryStats stats;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), NULL);
  settle (self);
  gtorch_allocator_get_stats (self, &stats);
  return gtorch_memory_stats_summary (&stats, self->device, abbreviated);
}

/**
 * gtorch_allocator_get_allocated:
 * @self: an allocator
 *
 * Gets the memory that tensors hold, rounded up as the allocator rounds.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_allocator_get_allocated (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 0);
  return get_counter (self, GTORCH_STAT_ALLOCATED_BYTES, FALSE);
}

/**
 * gtorch_allocator_get_peak_allocated:
 * @self: an allocator
 *
 * Gets the maximum of memory that tensors held since [method@Allocator.reset_peak].
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_allocator_get_peak_allocated (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 0);
  return get_counter (self, GTORCH_STAT_ALLOCATED_BYTES, TRUE);
}

/**
 * gtorch_allocator_get_reserved:
 * @self: an allocator
 *
 * Gets the memory that the allocator has reserved: what tensors hold, and what it caches for later tensors.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_allocator_get_reserved (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 0);
  return get_counter (self, GTORCH_STAT_RESERVED_BYTES, FALSE);
}

/**
 * gtorch_allocator_get_peak_reserved:
 * @self: an allocator
 *
 * Gets the maximum of memory that the allocator had reserved since [method@Allocator.reset_peak].
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_allocator_get_peak_reserved (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 0);
  return get_counter (self, GTORCH_STAT_RESERVED_BYTES, TRUE);
}

/**
 * gtorch_allocator_get_cached:
 * @self: an allocator
 *
 * Gets the memory that is reserved but that no tensor holds.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_allocator_get_cached (GTorchAllocator *self)
{
  GTorchMemoryStats stats;
  const GTorchCounter *all = stats.counters[GTORCH_POOL_ALL];

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 0);
  gtorch_allocator_get_stats (self, &stats);
  return MAX (all[GTORCH_STAT_RESERVED_BYTES].current - all[GTORCH_STAT_ALLOCATED_BYTES].current,
              0);
}

/**
 * gtorch_allocator_get_fragmentation:
 * @self: an allocator
 *
 * Gets the fraction of the reserved memory that is free but cannot be returned; see
 * [property@Allocator:fragmentation].
 *
 * Returns: a number from 0 to 1
 *
 * Since: 0.1
 */
gdouble
gtorch_allocator_get_fragmentation (GTorchAllocator *self)
{
  GTorchMemoryStats stats;
  const GTorchCounter *all = stats.counters[GTORCH_POOL_ALL];

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 0);
  settle (self);
  gtorch_allocator_get_stats (self, &stats);
  if (all[GTORCH_STAT_RESERVED_BYTES].current <= 0)
    return 0;
  return CLAMP (all[GTORCH_STAT_INACTIVE_SPLIT_BYTES].current
                    / (gdouble) all[GTORCH_STAT_RESERVED_BYTES].current,
                0, 1);
}

/* --- configuration --- */

static void
notify_changes (GTorchAllocator *self, const GTorchAllocatorConfig *former)
{
  if (former->fraction != self->config.fraction)
    g_object_notify (G_OBJECT (self), "memory-fraction");
  if (former->max_split_size != self->config.max_split_size)
    g_object_notify (G_OBJECT (self), "max-split-size");
  if (former->gc_threshold != self->config.gc_threshold)
    g_object_notify (G_OBJECT (self), "gc-threshold");
}

/**
 * gtorch_allocator_configure:
 * @self: an allocator
 * @text: keys and values, as in `max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4]`
 * @error: return location for an error
 *
 * Configures the allocator in the syntax of PyTorch's `PYTORCH_CUDA_ALLOC_CONF`.
 *
 * Settings that are not named keep their values. `max_split_size_mb`, `max_non_split_rounding_mb`,
 * `roundup_power2_divisions`, `garbage_collection_threshold`, `per_process_memory_fraction`, `backend`
 * (`native`, which is `arenas`, `segments`, or `cudaMallocAsync`), `expandable_segments` (%FALSE:
 * segments), `pinned_use_cuda_host_register` and `pinned_num_register_threads` have an effect.
 * `release_lock_on_cudamalloc`, `pinned_use_background_threads` and `graph_capture_record_stream_reuse` are
 * validated but have no effect, since GTorch has no such alternative. The backend can be changed until the
 * device allocates for the first time.
 *
 * With `cudaMallocAsync` the driver keeps the free memory: it is not counted as reserved, and nothing is
 * cached here. Private pools do not use it.
 *
 * Returns: %TRUE on success; %FALSE, with nothing changed, with %GTORCH_ERROR_INVALID if a key or a value
 *   is wrong, or if the backend can no longer be changed
 *
 * Since: 0.1
 */
gboolean
gtorch_allocator_configure (GTorchAllocator *self, const gchar *text, GError **error)
{
  GTorchAllocatorConfig former, changed;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), FALSE);
  g_return_val_if_fail (text != NULL, FALSE);
  g_mutex_lock (&self->config_lock);
  former = changed = self->config;
  if (!gtorch_allocator_config_parse (&changed, text, error))
    {
      g_mutex_unlock (&self->config_lock);
      return FALSE;
    }
  if (changed.backend != former.backend && g_atomic_int_get (&self->started))
    {
      g_mutex_unlock (&self->config_lock);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("allocator: the backend of %s cannot be changed after it has allocated"),
                   gtorch_device_name (self->device));
      return FALSE;
    }
  gtorch_allocator_lock_stats (self);
  self->config = changed;
  self->stats.max_split_size = changed.max_split_size;
  gtorch_allocator_unlock_stats (self);
  g_mutex_unlock (&self->config_lock);
  notify_changes (self, &former);
  return TRUE;
}

/**
 * gtorch_allocator_get_configuration:
 * @self: an allocator
 *
 * Gets the configuration in the syntax of [method@Allocator.configure]: the backend, and all settings that
 * differ from their defaults.
 *
 * Returns: (transfer full): keys and values
 *
 * Since: 0.1
 */
gchar *
gtorch_allocator_get_configuration (GTorchAllocator *self)
{
  gchar *text;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), NULL);
  g_mutex_lock (&self->config_lock);
  text = gtorch_allocator_config_print (&self->config);
  g_mutex_unlock (&self->config_lock);
  return text;
}

static GTorchAllocatorConfig
dup_config (GTorchAllocator *self)
{
  GTorchAllocatorConfig config;

  g_mutex_lock (&self->config_lock);
  config = self->config;
  g_mutex_unlock (&self->config_lock);
  return config;
}

/**
 * gtorch_allocator_get_memory_fraction:
 * @self: an allocator
 *
 * Gets the fraction of the device's memory that may be reserved.
 *
 * Returns: a number above 0 and up to 1
 *
 * Since: 0.1
 */
gdouble
gtorch_allocator_get_memory_fraction (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 1);
  return dup_config (self).fraction;
}

/**
 * gtorch_allocator_set_memory_fraction:
 * @self: an allocator
 * @fraction: a number above 0 and up to 1
 * @error: return location for an error
 *
 * Sets the fraction of the device's memory that may be reserved. Memory that is already reserved is kept.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if @fraction is out of range
 *
 * Since: 0.1
 */
gboolean
gtorch_allocator_set_memory_fraction (GTorchAllocator *self, gdouble fraction, GError **error)
{
  GTorchAllocatorConfig former;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), FALSE);
  if (!(fraction > 0 && fraction <= 1))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("allocator: the memory fraction %g is not above 0 and up to 1"), fraction);
      return FALSE;
    }
  g_mutex_lock (&self->config_lock);
  former = self->config;
  gtorch_allocator_lock_stats (self);
  self->config.fraction = fraction;
  gtorch_allocator_unlock_stats (self);
  g_mutex_unlock (&self->config_lock);
  notify_changes (self, &former);
  return TRUE;
}

/**
 * gtorch_allocator_get_max_split_size:
 * @self: an allocator
 *
 * Gets the size from which on blocks are not split.
 *
 * Returns: the number of bytes, or %G_MAXUINT64 if all blocks are split
 *
 * Since: 0.1
 */
guint64
gtorch_allocator_get_max_split_size (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 0);
  return dup_config (self).max_split_size;
}

/**
 * gtorch_allocator_set_max_split_size:
 * @self: an allocator
 * @n_bytes: a number of bytes, or %G_MAXUINT64 for no limit
 * @error: return location for an error
 *
 * Sets the size from which on blocks are not split; see [property@Allocator:max-split-size].
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID for 20 MiB or less
 *
 * Since: 0.1
 */
gboolean
gtorch_allocator_set_max_split_size (GTorchAllocator *self, guint64 n_bytes, GError **error)
{
  GTorchAllocatorConfig former;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), FALSE);
  if (n_bytes <= MAX_UNSPLIT || (n_bytes > G_MAXINT64 && n_bytes != G_MAXUINT64))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   n_bytes <= MAX_UNSPLIT
                       ? _ ("allocator: a max-split-size of %" PRIu64 " bytes is not above 20 MiB")
                       : _ ("allocator: a max-split-size of %" PRIu64
                            " bytes is too large; the largest 64-bit number stands for no limit"),
                   n_bytes);
      return FALSE;
    }
  g_mutex_lock (&self->config_lock);
  former = self->config;
  gtorch_allocator_lock_stats (self);
  self->config.max_split_size = n_bytes > G_MAXINT64 ? -1 : (gint64) n_bytes;
  self->stats.max_split_size = self->config.max_split_size;
  gtorch_allocator_unlock_stats (self);
  g_mutex_unlock (&self->config_lock);
  notify_changes (self, &former);
  return TRUE;
}

/**
 * gtorch_allocator_get_gc_threshold:
 * @self: an allocator
 *
 * Gets the fraction of the reservable memory from which on cached memory is returned before more is
 * reserved.
 *
 * Returns: a number from 0, for never, to 1
 *
 * Since: 0.1
 */
gdouble
gtorch_allocator_get_gc_threshold (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), 0);
  return dup_config (self).gc_threshold;
}

/**
 * gtorch_allocator_set_gc_threshold:
 * @self: an allocator
 * @threshold: a number from 0, for never, to 1
 * @error: return location for an error
 *
 * Sets the fraction of the reservable memory from which on cached memory is returned before more is
 * reserved.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if @threshold is out of range
 *
 * Since: 0.1
 */
gboolean
gtorch_allocator_set_gc_threshold (GTorchAllocator *self, gdouble threshold, GError **error)
{
  GTorchAllocatorConfig former;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), FALSE);
  if (!(threshold >= 0 && threshold <= 1))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("allocator: the threshold %g is not from 0 to 1"), threshold);
      return FALSE;
    }
  g_mutex_lock (&self->config_lock);
  former = self->config;
  self->config.gc_threshold = threshold;
  g_mutex_unlock (&self->config_lock);
  notify_changes (self, &former);
  return TRUE;
}

/**
 * gtorch_allocator_get_caching:
 * @self: an allocator
 *
 * Tells whether freed memory is kept for later tensors.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_allocator_get_caching (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), FALSE);
  return g_atomic_int_get (&self->caching);
}

/**
 * gtorch_allocator_set_caching:
 * @self: an allocator
 * @caching: whether to keep freed memory
 * @error: return location for an error
 *
 * Sets whether freed memory is kept for later tensors; see [property@Allocator:caching]. On the CPU this
 * cannot be changed.
 *
 * Returns: %TRUE if it has this value now; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED on the CPU
 *
 * Since: 0.1
 */
gboolean
gtorch_allocator_set_caching (GTorchAllocator *self, gboolean caching, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), FALSE);
  if (g_atomic_int_get (&self->caching) == (caching != FALSE))
    return TRUE;
  if (gtorch_device_is_host (self->device))
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                           _ ("allocator: on the cpu only the environment can turn caching on or "
                              "off"));
      return FALSE;
    }
  g_atomic_int_set (&self->caching, caching != FALSE);
  if (!caching)
    gtorch_allocator_trim (self);
  g_object_notify (G_OBJECT (self), "caching");
  return TRUE;
}

/* --- resetting --- */

/* Resets the peaks or the totals; called with stats_lock held. */
static void
reset_counters (GTorchAllocator *self, gboolean accumulated)
{
  guint pool, stat;

  for (pool = 0; pool < GTORCH_N_POOLS; pool++)
    for (stat = 0; stat < GTORCH_N_STATS; stat++)
      gtorch_counter_reset (&self->stats.counters[pool][stat], accumulated);
  gtorch_counter_reset (&self->stats.oversize_allocations, accumulated);
  gtorch_counter_reset (&self->stats.oversize_segments, accumulated);
}

/**
 * gtorch_allocator_reset_peak:
 * @self: an allocator
 *
 * Resets all peaks to the current values, including those of private pools.
 *
 * Since: 0.1
 */
void
gtorch_allocator_reset_peak (GTorchAllocator *self)
{
  GTorchDeviceClass *klass;

  g_return_if_fail (GTORCH_IS_ALLOCATOR (self));
  klass = GTORCH_DEVICE_GET_CLASS (self->device);
  gtorch_allocator_lock_stats (self);
  if (klass->sync_stats != NULL)
    klass->sync_stats (self->device, &self->stats, TRUE);
  reset_counters (self, FALSE);
  gtorch_allocator_unlock_stats (self);
  gtorch_pool_foreach (self->device, gtorch_pool_reset_counters, GINT_TO_POINTER (FALSE));
}

/**
 * gtorch_allocator_reset_accumulated:
 * @self: an allocator
 *
 * Resets all accumulated totals to 0: `.allocated` and `.freed`, and the statistics whose names begin with
 * `num_`.
 *
 * Since: 0.1
 */
void
gtorch_allocator_reset_accumulated (GTorchAllocator *self)
{
  GTorchDeviceClass *klass;

  g_return_if_fail (GTORCH_IS_ALLOCATOR (self));
  klass = GTORCH_DEVICE_GET_CLASS (self->device);
  gtorch_allocator_lock_stats (self);
  if (klass->sync_stats != NULL)
    klass->sync_stats (self->device, &self->stats, FALSE);
  reset_counters (self, TRUE);
  self->stats.num_alloc_retries = self->stats.num_ooms = self->stats.num_sync_all_streams = 0;
  self->stats.num_device_alloc = self->stats.num_device_free = 0;
  gtorch_allocator_unlock_stats (self);
  gtorch_pool_foreach (self->device, gtorch_pool_reset_counters, GINT_TO_POINTER (TRUE));
}

/**
 * gtorch_allocator_trim:
 * @self: an allocator
 *
 * Returns cached memory to the device. Waits for the device. Tensors keep their memory.
 *
 * Other programs can then use the memory; this one has to reserve it again when it needs it. Small blocks
 * that other threads cache on the CPU follow when those threads next allocate.
 *
 * Since: 0.1
 */
void
gtorch_allocator_trim (GTorchAllocator *self)
{
  g_return_if_fail (GTORCH_IS_ALLOCATOR (self));
  if (GTORCH_DEVICE_GET_CLASS (self->device)->empty_cache != NULL)
    GTORCH_DEVICE_GET_CLASS (self->device)->empty_cache (self->device);
}
