/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-allocator-private.h"

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
 * The numbers of a GPU are exact, those of one call from one moment. On the CPU a thread counts for
 * itself: there the current numbers are exact, and peaks are to 64 KiB a thread.
 *
 * Since: 0.1
 */

enum
{
  PROP_0,
  PROP_DEVICE,
  PROP_ALLOCATED,
  PROP_PEAK_ALLOCATED,
  PROP_RESERVED,
  PROP_PEAK_RESERVED,
  PROP_CACHED,
  PROP_FRAGMENTATION,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

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
gtorch_allocator_get_property (GObject *object, guint prop_id, GValue *value, GParamSpec *pspec)
{
  GTorchAllocator *self = GTORCH_ALLOCATOR (object);

  switch (prop_id)
    {
    case PROP_DEVICE:
      g_value_set_object (value, self->device);
      break;
    case PROP_ALLOCATED:
      g_value_set_uint64 (value, gtorch_allocator_get_allocated (self));
      break;
    case PROP_PEAK_ALLOCATED:
      g_value_set_uint64 (value, gtorch_allocator_get_peak_allocated (self));
      break;
    case PROP_RESERVED:
      g_value_set_uint64 (value, gtorch_allocator_get_reserved (self));
      break;
    case PROP_PEAK_RESERVED:
      g_value_set_uint64 (value, gtorch_allocator_get_peak_reserved (self));
      break;
    case PROP_CACHED:
      g_value_set_uint64 (value, gtorch_allocator_get_cached (self));
      break;
    case PROP_FRAGMENTATION:
      g_value_set_double (value, gtorch_allocator_get_fragmentation (self));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
    }
}

static void
gtorch_allocator_set_property (GObject *object, guint prop_id, const GValue *value,
                               GParamSpec *pspec)
{
  if (prop_id == PROP_DEVICE)
    GTORCH_ALLOCATOR (object)->device = g_value_get_object (value); /* it lives longer */
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
}

/* There is one for each device; without a device it is the CPU's that is meant. */
static GObject *
gtorch_allocator_constructor (GType type, guint n_properties, GObjectConstructParam *properties)
{
  GTorchDevice *device = NULL;
  guint i;

  for (i = 0; i < n_properties; i++)
    if (properties[i].pspec == props[PROP_DEVICE])
      device = g_value_get_object (properties[i].value);
  if (device == NULL)
    device = gtorch_device_cpu ();
  if (device->allocator != NULL)
    return g_object_ref (G_OBJECT (device->allocator));
  return G_OBJECT_CLASS (gtorch_allocator_parent_class)
      ->constructor (type, n_properties, properties);
}

static void
gtorch_allocator_class_init (GTorchAllocatorClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructor = gtorch_allocator_constructor;
  object_class->get_property = gtorch_allocator_get_property;
  object_class->set_property = gtorch_allocator_set_property;

  /**
   * GTorchAllocator:device:
   *
   * The device whose memory it is.
   *
   * Since: 0.1
   */
  props[PROP_DEVICE] =
      g_param_spec_object ("device", NULL, NULL, GTORCH_TYPE_DEVICE,
                           G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchAllocator:allocated:
   *
   * How many bytes tensors hold, rounded as the allocator rounds.
   *
   * Since: 0.1
   */
  props[PROP_ALLOCATED] = g_param_spec_uint64 ("allocated", NULL, NULL, 0, G_MAXUINT64, 0,
                                               G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchAllocator:peak-allocated:
   *
   * The most bytes that tensors held since [method@Allocator.reset_peak].
   *
   * Since: 0.1
   */
  props[PROP_PEAK_ALLOCATED] = g_param_spec_uint64 ("peak-allocated", NULL, NULL, 0, G_MAXUINT64, 0,
                                                    G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchAllocator:reserved:
   *
   * How many bytes the allocator has taken from the device: what tensors hold and what it keeps.
   *
   * Since: 0.1
   */
  props[PROP_RESERVED] = g_param_spec_uint64 ("reserved", NULL, NULL, 0, G_MAXUINT64, 0,
                                              G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchAllocator:peak-reserved:
   *
   * The most bytes that the allocator had since [method@Allocator.reset_peak].
   *
   * Since: 0.1
   */
  props[PROP_PEAK_RESERVED] = g_param_spec_uint64 ("peak-reserved", NULL, NULL, 0, G_MAXUINT64, 0,
                                                   G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchAllocator:cached:
   *
   * How many bytes the allocator keeps that no tensor holds.
   *
   * Since: 0.1
   */
  props[PROP_CACHED] = g_param_spec_uint64 ("cached", NULL, NULL, 0, G_MAXUINT64, 0,
                                            G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  /**
   * GTorchAllocator:fragmentation:
   *
   * The part, 0 to 1, of what the allocator has that is free but cannot be given back, since
   * tensors hold memory in the same piece.
   *
   * Since: 0.1
   */
  props[PROP_FRAGMENTATION] = g_param_spec_double ("fragmentation", NULL, NULL, 0, 1, 0,
                                                   G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_allocator_init (GTorchAllocator *self)
{
  self->stats.max_split_size = -1;
}

void
gtorch_allocator_get_stats (GTorchAllocator *self, GTorchMemoryStats *stats)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (self->device);

  gtorch_allocator_lock_stats (self);
  if (klass->sync_stats != NULL)
    klass->sync_stats (self->device, &self->stats);
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
 * gtorch_allocator_get_stat_keys:
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
 * Returns: (transfer none) (array zero-terminated=1): the keys
 *
 * Since: 0.1
 */
const gchar *const *
gtorch_allocator_get_stat_keys (GTorchAllocator *self)
{
  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), NULL);
  return gtorch_memory_stats_keys ();
}

/**
 * gtorch_allocator_get_stat:
 * @self: an allocator
 * @key: what is wanted, as in [method@Allocator.get_stat_keys]
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
  gtorch_allocator_get_stats (self, &stats);
  if (gtorch_memory_stats_find (&stats, key, &value))
    return value;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
               _ ("allocator: “%s” is not a statistic; they are as “allocated_bytes.all.peak” and "
                  "“num_ooms”"),
               key);
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
  gtorch_allocator_get_stats (self, &stats);
  if (all[GTORCH_STAT_RESERVED_BYTES].current <= 0)
    return 0;
  return CLAMP (all[GTORCH_STAT_INACTIVE_SPLIT_BYTES].current
                    / (gdouble) all[GTORCH_STAT_RESERVED_BYTES].current,
                0, 1);
}

static void
for_each_counter (GTorchAllocator *self, void (*func) (GTorchCounter *counter))
{
  guint pool, stat;

  for (pool = 0; pool < GTORCH_N_POOLS; pool++)
    for (stat = 0; stat < GTORCH_N_STATS; stat++)
      func (&self->stats.counters[pool][stat]);
  func (&self->stats.oversize_allocations);
  func (&self->stats.oversize_segments);
}

static void
reset_peak (GTorchCounter *counter)
{
  counter->peak = counter->current;
}

/**
 * gtorch_allocator_reset_peak:
 * @self: an allocator
 *
 * Lets all peaks begin again at the current values.
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
  if (klass->reset_peak != NULL)
    klass->reset_peak (self->device);
  if (klass->sync_stats != NULL)
    klass->sync_stats (self->device, &self->stats);
  for_each_counter (self, reset_peak);
  gtorch_allocator_unlock_stats (self);
}

static void
reset_accumulated (GTorchCounter *counter)
{
  counter->added = 0;
  counter->base = counter->current;
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
    klass->sync_stats (self->device, &self->stats);
  for_each_counter (self, reset_accumulated);
  self->stats.num_alloc_retries = self->stats.num_ooms = self->stats.num_sync_all_streams = 0;
  self->stats.num_device_alloc = self->stats.num_device_free = 0;
  gtorch_allocator_unlock_stats (self);
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
  GTORCH_DEVICE_GET_CLASS (self->device)->empty_cache (self->device);
}
