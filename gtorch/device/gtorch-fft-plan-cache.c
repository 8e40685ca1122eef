/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "device/gtorch-device-private.h"
#include "device/gtorch-fft-plan-cache-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-hash-private.h"

/**
 * GTorchFFTPlanCache:
 *
 * The cache of a device for plans of Fourier transforms.
 *
 * A transform needs a plan: tables on the CPU, a cuFFT plan with its own memory on a GPU. Creating one
 * takes longer than a small transform, so each device keeps the most recently used ones, up to
 * [property@FFTPlanCache:max-size]. A plan is specific to a dtype, the shape that is transformed and the
 * batch size (on the CPU only to a length).
 *
 * Each device has one cache, which lives as long as the process.
 *
 * ```c
 * GTorchFFTPlanCache *cache = gtorch_device_get_fft_plan_cache (device);
 *
 * gtorch_fft_plan_cache_set_max_size (cache, 16);
 * ```
 *
 * Since: 0.1
 */

#define MAX_SIZE  4096
#define MAX_BYTES ((gsize) 256 << 20)

typedef struct
{
  GTorchFFTKey key;
  GTorchFFTCached *plan;
  GList link; /* data: the plan */
} Entry;

struct _GTorchFFTPlanCache
{
  GObject parent_instance;
  GMutex lock; /* protects the fields below */
  guint max_size;
  gsize n_bytes;
  GHashTable *entries;
  GQueue order; /* the most recently used one first */
};

G_DEFINE_TYPE (GTorchFFTPlanCache, gtorch_fft_plan_cache, G_TYPE_OBJECT)

static guint
key_hash (gconstpointer data)
{
  return gtorch_hash_words (data, sizeof (GTorchFFTKey));
}

static gboolean
key_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (GTorchFFTKey)) == 0;
}

gpointer
gtorch_fft_cached_ref (gpointer plan)
{
  g_atomic_int_inc (&((GTorchFFTCached *) plan)->ref_count);
  return plan;
}

void
gtorch_fft_cached_unref (gpointer plan)
{
  GTorchFFTCached *cached = plan;

  if (g_atomic_int_dec_and_test (&cached->ref_count))
    cached->free (plan);
}

/* Removes the plans that exceed max_size, least recently used first. Called with the lock held; the caller
 * frees them after releasing it, since freeing a plan may take long. */
static GSList *
take_surplus (GTorchFFTPlanCache *self, guint max_size)
{
  GSList *plans = NULL;

  while (self->order.length > max_size || (self->n_bytes > MAX_BYTES && self->order.length > 0))
    {
      Entry *entry = self->order.tail->data;

      g_queue_unlink (&self->order, &entry->link);
      g_hash_table_remove (self->entries, &entry->key);
      self->n_bytes -= entry->plan->n_bytes;
      plans = g_slist_prepend (plans, entry->plan);
      g_free (entry);
    }
  return plans;
}

gpointer
gtorch_fft_plan_cache_find (GTorchFFTPlanCache *self, const GTorchFFTKey *key)
{
  gpointer plan = NULL;
  Entry *entry;

  g_mutex_lock (&self->lock);
  entry = g_hash_table_lookup (self->entries, key);
  if (entry != NULL)
    {
      g_queue_unlink (&self->order, &entry->link);
      g_queue_push_head_link (&self->order, &entry->link);
      plan = gtorch_fft_cached_ref (entry->plan);
    }
  g_mutex_unlock (&self->lock);
  return plan;
}

gpointer
gtorch_fft_plan_cache_add (GTorchFFTPlanCache *self, const GTorchFFTKey *key, gpointer plan)
{
  GSList *surplus;
  Entry *entry;

  g_mutex_lock (&self->lock);
  entry = g_hash_table_lookup (self->entries, key);
  if (entry != NULL)
    {
      surplus = g_slist_prepend (NULL, plan);
      plan = gtorch_fft_cached_ref (entry->plan);
    }
  else
    {
      entry = g_new0 (Entry, 1);
      entry->key = *key;
      entry->plan = gtorch_fft_cached_ref (plan);
      entry->link.data = entry;
      self->n_bytes += entry->plan->n_bytes;
      g_hash_table_insert (self->entries, &entry->key, entry);
      g_queue_push_head_link (&self->order, &entry->link);
      surplus = take_surplus (self, self->max_size);
    }
  g_mutex_unlock (&self->lock);
  g_slist_free_full (surplus, gtorch_fft_cached_unref);
  return plan;
}

/* --- the object --- */

static void
gtorch_fft_plan_cache_finalize (GObject *object)
{
  GTorchFFTPlanCache *self = GTORCH_FFT_PLAN_CACHE (object);

  gtorch_fft_plan_cache_clear (self);
  g_hash_table_unref (self->entries);
  gtorch_fork_remove_lock (&self->lock);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gtorch_fft_plan_cache_parent_class)->finalize (object);
}

typedef GTorchFFTPlanCache Self;

static const GTorchField fields[] = {
  /**
   * GTorchFFTPlanCache:size: (getter get_size)
   *
   * The number of plans that are kept. Changes caused by work on the device are not notified.
   *
   * Since: 0.1
   */
  { "size", GTORCH_PROPERTY_UINT (gtorch_fft_plan_cache_get_size, NULL) },
  /**
   * GTorchFFTPlanCache:max-size: (getter get_max_size) (setter set_max_size)
   *
   * The maximum number of plans that are kept.
   *
   * Since: 0.1
   */
  { "max-size",
    GTORCH_PROPERTY_UINT (gtorch_fft_plan_cache_get_max_size, gtorch_fft_plan_cache_set_max_size),
    .value = MAX_SIZE },
};

static void
gtorch_fft_plan_cache_class_init (GTorchFFTPlanCacheClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_fft_plan_cache_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_fft_plan_cache_init (GTorchFFTPlanCache *self)
{
  g_mutex_init (&self->lock);
  gtorch_fork_add_lock (&self->lock);
  self->max_size = MAX_SIZE;
  self->entries = g_hash_table_new (key_hash, key_equal);
}

/**
 * gtorch_device_get_fft_plan_cache:
 * @self: a device
 *
 * Gets the cache of the device for plans of Fourier transforms.
 *
 * Returns: (transfer none): the cache
 *
 * Since: 0.1
 */
GTorchFFTPlanCache *
gtorch_device_get_fft_plan_cache (GTorchDevice *self)
{
  static GTorchFFTPlanCache *caches[GTORCH_MAX_DEVICES];
  GTorchFFTPlanCache *cache, *made;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);

  cache = g_atomic_pointer_get (&caches[self->slot]);
  if (cache != NULL)
    return cache;
  made = g_object_new (GTORCH_TYPE_FFT_PLAN_CACHE, NULL);
  if (!g_atomic_pointer_compare_and_exchange (&caches[self->slot], NULL, made))
    g_object_unref (made);
  return g_atomic_pointer_get (&caches[self->slot]);
}

/**
 * gtorch_fft_plan_cache_get_size:
 * @self: a cache
 *
 * Gets the number of plans that are kept.
 *
 * Returns: the number of plans
 *
 * Since: 0.1
 */
guint
gtorch_fft_plan_cache_get_size (GTorchFFTPlanCache *self)
{
  guint size;

  g_return_val_if_fail (GTORCH_IS_FFT_PLAN_CACHE (self), 0);

  g_mutex_lock (&self->lock);
  size = self->order.length;
  g_mutex_unlock (&self->lock);
  return size;
}

/**
 * gtorch_fft_plan_cache_get_max_size:
 * @self: a cache
 *
 * Gets the maximum number of plans that are kept.
 *
 * Returns: the number of plans; 4096 unless it was changed
 *
 * Since: 0.1
 */
guint
gtorch_fft_plan_cache_get_max_size (GTorchFFTPlanCache *self)
{
  guint max_size;

  g_return_val_if_fail (GTORCH_IS_FFT_PLAN_CACHE (self), 0);

  g_mutex_lock (&self->lock);
  max_size = self->max_size;
  g_mutex_unlock (&self->lock);
  return max_size;
}

/**
 * gtorch_fft_plan_cache_set_max_size:
 * @self: a cache
 * @max_size: the maximum number of plans; 0 disables the cache
 *
 * Sets the maximum number of plans that are kept. Plans in excess of it are dropped at once, the least
 * recently used first.
 *
 * Since: 0.1
 */
void
gtorch_fft_plan_cache_set_max_size (GTorchFFTPlanCache *self, guint max_size)
{
  GSList *surplus;
  gboolean changed;

  g_return_if_fail (GTORCH_IS_FFT_PLAN_CACHE (self));

  g_mutex_lock (&self->lock);
  changed = self->max_size != max_size;
  self->max_size = max_size;
  surplus = take_surplus (self, max_size);
  g_mutex_unlock (&self->lock);
  g_slist_free_full (surplus, gtorch_fft_cached_unref);
  if (changed)
    g_object_notify (G_OBJECT (self), "max-size");
}

/**
 * gtorch_fft_plan_cache_clear:
 * @self: a cache
 *
 * Drops all plans. Plans that are in use, or that a graph replays, are freed when they are no longer
 * needed.
 *
 * Since: 0.1
 */
void
gtorch_fft_plan_cache_clear (GTorchFFTPlanCache *self)
{
  GSList *surplus;

  g_return_if_fail (GTORCH_IS_FFT_PLAN_CACHE (self));

  g_mutex_lock (&self->lock);
  surplus = take_surplus (self, 0);
  g_mutex_unlock (&self->lock);
  g_slist_free_full (surplus, gtorch_fft_cached_unref);
}
