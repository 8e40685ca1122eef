/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-fork-private.h"
#include "memory/gtorch-memory-pool-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-text-private.h"

/* PyTorch's bound: smaller requests share segments of this size. */
#define MAX_UNSPLIT (G_GUINT64_CONSTANT (20) << 20)

/**
 * GTorchAllocator:
 *
 * Where the tensors of a device have their memory from.
 *
 * A tensor that goes leaves its memory to the next one of its stream without a word to the driver,
 * which would have to wait for the GPU. Programs that show what a GPU has free therefore show memory
 * as used that is merely kept ([property@Allocator:cached]); [method@Allocator.trim] gives that
 * back.
 *
 * There is one object for each device, [method@Device.get_allocator], and it lives as long as the
 * process. It counts everything under the names that PyTorch's `memory_stats()` has:
 *
 * ```c
 * GTorchAllocator *allocator = gtorch_device_get_allocator (device);
 * guint64 peak = gtorch_allocator_get_stat (allocator, "allocated_bytes.all.peak", NULL);
 * g_autofree gchar *table = gtorch_allocator_to_summary (allocator, FALSE);
 *
 * g_print ("at most %" G_GUINT64_FORMAT " bytes\n%s", peak, table);
 * ```
 *
 * What PyTorch understands in `PYTORCH_CUDA_ALLOC_CONF` is understood here, there and in
 * `PYTORCH_ALLOC_CONF` and `GTORCH_ALLOC_CONF`, the last of which comes first. `GTORCH_ALLOC=segments`
 * and `backend:segments` choose pieces of memory of the sizes that PyTorch takes instead of pages
 * under one range of addresses; so does a GPU that cannot do the latter. `GTORCH_NO_MEMORY_CACHING=1` and
 * `PYTORCH_NO_CUDA_MEMORY_CACHING=1` turn [property@Allocator:caching] off.
 *
 * The numbers of a GPU are exact, those of one call from one moment. On the CPU a thread counts for
 * itself: there the current numbers are exact, and peaks are to 64 KiB a thread.
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

/* There is one for each device; without a device it is the CPU's that is meant. */
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
  self->device = device; /* it lives longer */
}

typedef GTorchAllocator Self;

static const GTorchField fields[] = {
  /**
   * GTorchAllocator:device:
   *
   * The device whose memory it is.
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
   * How many bytes tensors hold, rounded as the allocator rounds.
   *
   * Since: 0.1
   */
  { "allocated", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_allocated, NULL) },
  /**
   * GTorchAllocator:peak-allocated:
   *
   * The most bytes that tensors held since [method@Allocator.reset_peak].
   *
   * Since: 0.1
   */
  { "peak-allocated", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_peak_allocated, NULL) },
  /**
   * GTorchAllocator:reserved:
   *
   * How many bytes the allocator has taken from the device: what tensors hold and what it keeps.
   *
   * Since: 0.1
   */
  { "reserved", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_reserved, NULL) },
  /**
   * GTorchAllocator:peak-reserved:
   *
   * The most bytes that the allocator had since [method@Allocator.reset_peak].
   *
   * Since: 0.1
   */
  { "peak-reserved", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_peak_reserved, NULL) },
  /**
   * GTorchAllocator:cached:
   *
   * How many bytes the allocator keeps that no tensor holds.
   *
   * Since: 0.1
   */
  { "cached", GTORCH_PROPERTY_UINT64 (gtorch_allocator_get_cached, NULL) },
  /**
   * GTorchAllocator:fragmentation:
   *
   * The part, 0 to 1, of what the allocator has that is free but cannot be given back, since
   * tensors hold memory in the same piece.
   *
   * Since: 0.1
   */
  { "fragmentation", GTORCH_PROPERTY_DOUBLE (gtorch_allocator_get_fragmentation, NULL), .high = 1 },
  /**
   * GTorchAllocator:memory-fraction:
   *
   * How much of the device's memory may be reserved, above 0 and up to 1.
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
   * From how many bytes on blocks are not split, which is said to help against fragmentation;
   * above 20 MiB. %G_MAXUINT64: all are. Of the segments only; arenas give back single pages.
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
   * From which part on, of what may be reserved, free memory is given back before more is taken;
   * 0 for never.
   *
   * Since: 0.1
   */
  { "gc-threshold",
    GTORCH_PROPERTY_DOUBLE (gtorch_allocator_get_gc_threshold, gtorch_allocator_set_gc_threshold),
    .high = 1 },
  /**
   * GTorchAllocator:caching:
   *
   * Whether freed memory is kept for the next tensor. Without, every allocation goes to the driver:
   * slow, but tools that look for wrong addresses see each tensor. Of a GPU; on the CPU it says what
   * the environment has chosen.
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

/* For numbers of free memory in pieces: such as are merely at hand belong to what is around them. */
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
 * Gets the device whose memory it is.
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
 * Gets the names of all that is counted.
 *
 * `allocation` counts what tensors hold, `active` adds what other streams still work on, `segment`
 * counts the pieces that came from the driver, `inactive_split` the free blocks that share such a
 * piece with others; `allocated_bytes`, `active_bytes`, `reserved_bytes` and `inactive_split_bytes`
 * are their sizes, and `requested_bytes` those of `active` before they were rounded. Each is followed by
 * `.all`, `.small_pool` (tensors of up to 1 MiB) or `.large_pool`, and then `.current`, `.peak`,
 * `.allocated` or `.freed`, the latter being all that was ever added and taken away. Others are
 * `oversize_allocations` and `oversize_segments`, with the same four, and single numbers:
 * `num_alloc_retries`, `num_ooms`, `num_sync_all_streams`, `num_device_alloc`, `num_device_free`
 * and `max_split_size`.
 *
 * Each [class@MemoryPool] of the device, those of graphs too, has `reserved_bytes_by_private_pools.0_`
 * with its [property@MemoryPool:id], `.all`, `.small_pool` or `.large_pool` and the same four, until its
 * memory has gone back.
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
 * @key: what is wanted, as in [method@Allocator.dup_stat_keys]
 * @error: return location for an error
 *
 * Gets a number by its name.
 *
 * ```c
 * guint64 n = gtorch_allocator_get_stat (allocator, "allocation.small_pool.current", &error);
 * ```
 *
 * Returns: the number; 0 with %GTORCH_ERROR_NOT_FOUND if there is none of that name. `max_split_size`
 *   is the largest number that there is when it has no limit
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
               _ ("allocator: “%s” is not a statistic; they are as “allocated_bytes.all.peak” and "
                  "“num_ooms”"),
               gtorch_name_str (key));
  return 0;
}

/**
 * gtorch_allocator_to_summary:
 * @self: an allocator
 * @abbreviated: whether to leave out the rows of the small and the large pool
 *
 * Makes a table of all that is counted, 77 columns wide.
 *
 * Returns: (transfer full): the text, its lines ended by line feeds
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
 * Gets how much memory tensors hold, rounded as the allocator rounds.
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
 * Gets the most memory that tensors held since [method@Allocator.reset_peak].
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
 * Gets how much memory the allocator has taken: what tensors hold, and what it keeps for the next
 * ones.
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
 * Gets the most memory that the allocator had since [method@Allocator.reset_peak].
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
 * Gets how much memory the allocator keeps that no tensor holds.
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
 * Gets the part of what the allocator has that is free but cannot be given back; see
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
 * Changes how the allocator works, in the words of PyTorch's `PYTORCH_CUDA_ALLOC_CONF`.
 *
 * What is not named stays as it is. `max_split_size_mb`, `max_non_split_rounding_mb`,
 * `roundup_power2_divisions`, `garbage_collection_threshold`, `per_process_memory_fraction`,
 * `backend` (`native`, which is `arenas`, `segments`, or `cudaMallocAsync`), `expandable_segments`
 * (%FALSE: segments), `pinned_use_cuda_host_register` and `pinned_num_register_threads` have an effect.
 * `release_lock_on_cudamalloc`, `pinned_use_background_threads` and `graph_capture_record_stream_reuse`
 * are about things that need no choice here, and are only checked. The backend can be changed until the
 * device allocates for the first time.
 *
 * With `cudaMallocAsync` the driver keeps what is free: it is not counted as reserved, and nothing is
 * cached here. Private pools do not use it.
 *
 * Returns: %TRUE on success; %FALSE, with nothing changed, with %GTORCH_ERROR_INVALID if a key or a
 *   value is wrong or comes too late
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
 * Gets what is configured, as [method@Allocator.configure] takes it: the backend, and what is not as
 * it was at first.
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
 * Gets how much of the device's memory may be reserved.
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
 * Sets how much of the device's memory may be reserved. What is reserved already stays so.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID for another number
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
 * Gets from how many bytes on blocks are not split.
 *
 * Returns: the number of bytes, or %G_MAXUINT64 if all are
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
 * Sets from how many bytes on blocks are not split; see [property@Allocator:max-split-size].
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID for 20 MiB and less
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
                       ? _ ("allocator: a max-split-size of %" G_GUINT64_FORMAT
                            " bytes is not above 20 MiB")
                       : _ ("allocator: a max-split-size of %" G_GUINT64_FORMAT
                            " bytes is no size; the largest 64-bit number stands for no limit"),
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
 * Gets from which part on free memory is given back before more is taken.
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
 * Sets from which part on, of what may be reserved, free memory is given back before more is taken.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID for another number
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
 * Tells whether freed memory is kept for the next tensor.
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
 * @caching: whether to keep memory
 * @error: return location for an error
 *
 * Sets whether freed memory is kept for the next tensor; see [property@Allocator:caching]. On the CPU this
 * cannot be changed.
 *
 * Returns: %TRUE if it is so now; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED on the CPU
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
                           _ ("allocator: the environment decides about caching on the cpu"));
      return FALSE;
    }
  g_atomic_int_set (&self->caching, caching != FALSE);
  if (!caching)
    gtorch_allocator_trim (self);
  g_object_notify (G_OBJECT (self), "caching");
  return TRUE;
}

/* --- beginning again --- */

/* With the lock held. */
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
 * Lets all peaks begin again at the current values, those of private pools too.
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
 * Lets everything that only ever grows begin again at 0: `.allocated` and `.freed`, and what begins with
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
 * Gives memory back to the device that no tensor holds. Waits for the device. Tensors keep theirs.
 *
 * Other programs can then use it; this one has to ask for it again. Other threads' small blocks on
 * the CPU follow when those threads next allocate.
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
