/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-field-private.h"
#include "base/gtorch-fork-private.h"
#include "memory/gtorch-memory-pool.h"

#include <glib/gi18n-lib.h>

#include "memory/gtorch-allocator-history.h"
#include "base/gtorch-callback-private.h"
#include "device/gtorch-device.h"
#include "memory/gtorch-guard.h"
#include "memory/gtorch-memory-pool-private.h"
#include "memory/gtorch-memory-source.h"

/**
 * GTorchMemoryPool:
 *
 * Memory of a device apart from that of everybody else.
 *
 * While a [struct@MemoryPoolGuard] lives, or in [method@MemoryPool.run], what the thread allocates
 * on the pool's device comes from the pool, and goes back there. What others do then neither takes
 * nor cuts up that memory:
 *
 * ```c
 * g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (device);
 * g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (pool);
 * g_autoptr (GTorchTensor) buffer =
 *     gtorch_zeros (GTORCH_SHAPE (1 << 20), GTORCH_DTYPE_FLOAT32, device, &error);
 * ```
 *
 * What is allocated in a pool is counted by the device's [class@Allocator], too. [method@Allocator.trim]
 * and [property@Allocator:caching] leave pools alone; [method@MemoryPool.trim] is theirs. A pool's memory
 * goes back to the device when neither the pool itself nor any tensor in it is left: at once or, where
 * the device still works on it, when memory is next asked of the driver or [method@Allocator.trim] is
 * called.
 *
 * Graphs compute in pools. What operations allocate during a capture stays at its address as long
 * as the graph may be replayed. Graphs that are never replayed at the same time, and are replayed in
 * the order in which they were captured, can share one and need less memory.
 * [method@CUDAGraph.get_pool] gives the one that a graph made for itself.
 *
 * Since: 0.1
 */

#define MOST_SMALL (1 << 20)

/* Of the CPU's memory. */
typedef struct
{
  GTorchPool *pool; /* a reference while a tensor has it */
  GTorchStorage *backing;
  gboolean is_captured; /* graphs may use it */
} Block;

struct _GTorchMemoryPool
{
  GObject parent_instance;
  GTorchPool *pool;
};

G_DEFINE_TYPE (GTorchMemoryPool, gtorch_memory_pool, G_TYPE_OBJECT)

/* --- what tensors and graphs hold --- */

static GMutex all_lock;
GTORCH_FORK_LOCK (all_lock);
static GQueue all = G_QUEUE_INIT;

GTorchPool *
gtorch_pool_new (GTorchDevice *device)
{
  static guint64 last_id;
  GTorchPool *self = g_new0 (GTorchPool, 1);

  self->ref_count = 1;
  self->device = device;
  g_mutex_init (&self->lock);
  gtorch_fork_add_lock (&self->lock);
  g_mutex_init (&self->run_lock);
  self->ready = g_ptr_array_new ();
  self->link.data = self;
  g_mutex_lock (&all_lock);
  self->id = ++last_id;
  g_queue_push_tail_link (&all, &self->link);
  g_mutex_unlock (&all_lock);
  self->check_order = TRUE;
  return self;
}

void
gtorch_pool_foreach (GTorchDevice *device, void (*func) (GTorchPool *pool, gpointer data),
                     gpointer data)
{
  GList *link;

  g_mutex_lock (&all_lock);
  for (link = all.head; link != NULL; link = link->next)
    if (((GTorchPool *) link->data)->device == device)
      func (link->data, data);
  g_mutex_unlock (&all_lock);
}

GTorchPool *
gtorch_pool_ref (GTorchPool *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

static void
count_allocated (GTorchPool *self, gint64 n_bytes)
{
  gtorch_allocator_lock_stats (self->device->allocator);
  gtorch_counter_add (&self->allocated, n_bytes);
  gtorch_allocator_unlock_stats (self->device->allocator);
}

static void
count_reserved (GTorchPool *self, const GTorchStorage *backing, gboolean added)
{
  const gint64 n_bytes = backing->n_bytes;

  gtorch_allocator_lock_stats (self->device->allocator);
  gtorch_pool_count_reserved (self, n_bytes <= MOST_SMALL ? GTORCH_POOL_SMALL : GTORCH_POOL_LARGE,
                              added ? n_bytes : -n_bytes);
  gtorch_allocator_unlock_stats (self->device->allocator);
}

static void
drop_ready (GTorchPool *self)
{
  g_autoptr (GPtrArray) blocks = g_ptr_array_new ();
  guint i;

  g_mutex_lock (&self->lock);
  if (g_atomic_int_get (&self->n_graphs) == 0)
    {
      GPtrArray *none = blocks;

      blocks = self->ready;
      self->ready = none;
    }
  g_mutex_unlock (&self->lock);
  for (i = 0; i < blocks->len; i++)
    {
      Block *block = blocks->pdata[i];

      count_reserved (self, block->backing, FALSE);
      gtorch_storage_unref (block->backing);
      g_free (block);
    }
}

void
gtorch_pool_unref (GTorchPool *self)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (self->device);

  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  if (klass->pools != NULL)
    klass->pools->drop (self->device, self);
  else
    gtorch_pool_free (self);
}

void
gtorch_pool_free (GTorchPool *self)
{
  g_mutex_lock (&all_lock);
  g_queue_unlink (&all, &self->link);
  g_mutex_unlock (&all_lock);
  drop_ready (self);
  g_ptr_array_unref (self->ready);
  g_clear_pointer (&self->graphs, g_array_unref);
  g_clear_object (&self->source);
  gtorch_notes_free (&self->notes);
  gtorch_fork_remove_lock (&self->lock);
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->run_lock);
  g_free (self);
}

void
gtorch_pool_reset_counters (GTorchPool *self, gpointer accumulated)
{
  guint i;

  gtorch_allocator_lock_stats (self->device->allocator);
  gtorch_counter_reset (&self->allocated, GPOINTER_TO_INT (accumulated));
  for (i = 0; i < GTORCH_N_POOLS; i++)
    gtorch_counter_reset (&self->reserved[i], GPOINTER_TO_INT (accumulated));
  gtorch_allocator_unlock_stats (self->device->allocator);
}

void
gtorch_pool_set_graph (GTorchPool *self, gboolean used)
{
  g_atomic_int_add (&self->n_graphs, used ? 1 : -1);
}

/* The first ready block of at least that size. */
static guint
find_ready (GTorchPool *self, gsize n_bytes)
{
  guint low = 0, high = self->ready->len;

  while (low < high)
    {
      guint middle = (low + high) / 2;

      if (((Block *) self->ready->pdata[middle])->backing->n_bytes < n_bytes)
        low = middle + 1;
      else
        high = middle;
    }
  return low;
}

static void
free_pool_storage (GTorchStorage *storage)
{
  Block *block = storage->free_data;
  GTorchPool *pool = block->pool;

  count_allocated (pool, -(gint64) block->backing->n_bytes);
  g_mutex_lock (&pool->lock);
  g_ptr_array_insert (pool->ready, find_ready (pool, block->backing->n_bytes), block);
  g_mutex_unlock (&pool->lock);
  gtorch_pool_unref (pool);
}

static Block *
take_ready (GTorchPool *self, gsize n_bytes, gboolean captured)
{
  const gboolean any = captured || g_atomic_int_get (&self->n_graphs) == 0;
  Block *block = NULL;
  guint i;

  g_mutex_lock (&self->lock);
  for (i = find_ready (self, n_bytes); i < self->ready->len && block == NULL; i++)
    {
      Block *other = self->ready->pdata[i];
      gsize size = other->backing->n_bytes;

      if (size - n_bytes > size / 4 + 64)
        break;
      if (any || !other->is_captured)
        block = g_ptr_array_remove_index (self->ready, i);
    }
  g_mutex_unlock (&self->lock);
  return block;
}

GTorchStorage *
gtorch_pool_alloc (GTorchPool *self, gsize n_bytes, gboolean captured, GError **error)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (self->device);
  Block *block;

  if (klass->pools != NULL)
    return klass->pools->alloc (self->device, self, n_bytes, captured, error);
  block = take_ready (self, n_bytes, captured);
  if (block == NULL)
    {
      GTorchStorage *backing = klass->alloc (self->device, n_bytes, error);

      if (backing == NULL)
        return NULL;
      block = g_new0 (Block, 1);
      block->pool = self;
      block->backing = backing;
      count_reserved (self, backing, TRUE);
    }
  block->is_captured = captured;
  count_allocated (self, block->backing->n_bytes);
  gtorch_pool_ref (self);
  return gtorch_storage_new_foreign (self->device, block->backing->data, n_bytes, free_pool_storage,
                                     block);
}

GTorchPool *
gtorch_pool_of (GTorchStorage *storage)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (storage->device);
  Block *block = storage->free_data;

  if (storage->free_func == free_pool_storage)
    return block->is_captured ? block->pool : NULL;
  return storage->free_func == NULL && klass->pools != NULL ? klass->pools->get_pool (storage)
                                                            : NULL;
}

static void
free_memory_storage (GTorchStorage *storage)
{
  gtorch_pool_unref (storage->free_data);
}

GTorchStorage *
gtorch_pool_get_memory (GTorchStorage *storage)
{
  GTorchPool *pool = gtorch_pool_ref (gtorch_pool_of (storage));

  return gtorch_storage_new_foreign (storage->device, storage->data, storage->n_bytes,
                                     free_memory_storage, pool);
}

gboolean
gtorch_pool_is_memory (GTorchStorage *storage)
{
  return storage->free_func == free_memory_storage;
}

void
gtorch_pool_set_capturing (GTorchPool *self, gboolean capturing)
{
  g_mutex_lock (&self->lock);
  self->n_captures += capturing ? 1 : -1;
  g_mutex_unlock (&self->lock);
}

gboolean
gtorch_pool_is_capturing (GTorchPool *self)
{
  gboolean result;

  g_mutex_lock (&self->lock);
  result = self->n_captures > 0;
  g_mutex_unlock (&self->lock);
  return result;
}

GTorchTimeline *
gtorch_pool_get_writer (GTorchPool *self, guint64 *seq)
{
  GTorchTimeline *writer;

  g_mutex_lock (&self->lock);
  writer = self->writer;
  *seq = self->write_seq;
  g_mutex_unlock (&self->lock);
  return writer;
}

void
gtorch_pool_set_writer (GTorchPool *self, GTorchTimeline *timeline, guint64 seq)
{
  g_mutex_lock (&self->lock);
  self->writer = timeline;
  self->write_seq = seq;
  g_mutex_unlock (&self->lock);
}

gboolean
gtorch_pool_sync (GTorchStorage *storage, GError **error)
{
  GTorchPool *pool = gtorch_pool_of (storage);
  GTorchTimeline *writer;
  guint64 seq;

  return pool == NULL || (writer = gtorch_pool_get_writer (pool, &seq)) == NULL
         || gtorch_storage_wait_for (storage, writer, seq, error);
}

/* --- the object --- */

static void
gtorch_memory_pool_finalize (GObject *object)
{
  gtorch_pool_unref (GTORCH_MEMORY_POOL (object)->pool);
  G_OBJECT_CLASS (gtorch_memory_pool_parent_class)->finalize (object);
}

static void
gtorch_memory_pool_set_device (GTorchMemoryPool *self, GTorchDevice *device)
{
  self->pool = gtorch_pool_new (gtorch_device_or_current (device));
}

typedef GTorchMemoryPool Self;

static const GTorchField fields[] = {
  /**
   * GTorchMemoryPool:device: (getter get_device)
   *
   * The device whose memory it is; when it is made, %NULL stands for the one that the thread has chosen last.
   *
   * Since: 0.1
   */
  { "device",
    GTORCH_PROPERTY_OBJECT (GTorchDevice, gtorch_device_get_type, gtorch_memory_pool_get_device,
                            gtorch_memory_pool_set_device),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchMemoryPool:id: (getter get_id)
   *
   * The number of the pool, from 1 on.
   *
   * Since: 0.1
   */
  { "id", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_id, NULL) },
  /**
   * GTorchMemoryPool:allocated: (getter get_allocated)
   *
   * How many bytes tensors hold in the pool. Not notified.
   *
   * Since: 0.1
   */
  { "allocated", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_allocated, NULL) },
  /**
   * GTorchMemoryPool:peak-allocated: (getter get_peak_allocated)
   *
   * The most bytes that tensors held since [method@MemoryPool.reset_peak] or
   * [method@Allocator.reset_peak]. Not notified.
   *
   * Since: 0.1
   */
  { "peak-allocated", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_peak_allocated, NULL) },
  /**
   * GTorchMemoryPool:reserved: (getter get_reserved)
   *
   * How many bytes the pool has taken from the device. Not notified.
   *
   * Since: 0.1
   */
  { "reserved", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_reserved, NULL) },
  /**
   * GTorchMemoryPool:peak-reserved: (getter get_peak_reserved)
   *
   * The most bytes that the pool had since [method@MemoryPool.reset_peak] or
   * [method@Allocator.reset_peak]. Not notified.
   *
   * Since: 0.1
   */
  { "peak-reserved", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_peak_reserved, NULL) },
  /**
   * GTorchMemoryPool:source: (getter get_source)
   *
   * Where the pool has its memory from; %NULL: from the device.
   *
   * Since: 0.1
   */
  { "source", GTORCH_PROPERTY_OBJECT (GTorchMemorySource, gtorch_memory_source_get_type,
                                      gtorch_memory_pool_get_source, NULL) },
  /**
   * GTorchMemoryPool:use-on-oom: (getter get_use_on_oom) (setter set_use_on_oom)
   *
   * Whether the pool gives back what no tensor holds when the device has no more memory. What graphs use
   * stays.
   *
   * Since: 0.1
   */
  { "use-on-oom",
    GTORCH_PROPERTY_BOOL (gtorch_memory_pool_get_use_on_oom, gtorch_memory_pool_set_use_on_oom) },
  /**
   * GTorchMemoryPool:check-order: (getter get_check_order) (setter set_check_order)
   *
   * Whether graphs that share the pool must be replayed in the order in which they were captured. Some may
   * be left out; after any of them the first one may begin again. A graph overwrites what those behind it
   * have computed, so that another order is right only where nobody reads that any more.
   *
   * Since: 0.1
   */
  { "check-order",
    GTORCH_PROPERTY_BOOL (gtorch_memory_pool_get_check_order, gtorch_memory_pool_set_check_order),
    .value = TRUE },
};

static void
gtorch_memory_pool_class_init (GTorchMemoryPoolClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_memory_pool_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_memory_pool_init (GTorchMemoryPool *self)
{
}

GTorchPool *
gtorch_memory_pool_get_pool (GTorchMemoryPool *self)
{
  return self->pool;
}

/**
 * gtorch_memory_pool_new:
 * @device: (nullable): a device, or %NULL for the one that this thread has chosen last
 *
 * Makes an empty pool. Nothing is asked of the device before something is allocated in it.
 *
 * Returns: (transfer full): a new pool
 *
 * Since: 0.1
 */
GTorchMemoryPool *
gtorch_memory_pool_new (GTorchDevice *device)
{
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  return g_object_new (GTORCH_TYPE_MEMORY_POOL, "device", device, NULL);
}

/**
 * gtorch_memory_pool_new_with_source:
 * @device: (nullable): a GPU, or %NULL for the device that this thread has chosen last
 * @source: where memory comes from
 * @error: return location for an error
 *
 * Makes an empty pool whose memory comes from the program: @source is asked for pieces of 2 MiB, of 20 MiB,
 * or as large as what is allocated, which the pool keeps and cuts up. They go back with the pool or with
 * [method@MemoryPool.trim].
 *
 * Returns: (transfer full): a new pool; %NULL with %GTORCH_ERROR_NOT_SUPPORTED on the CPU
 *
 * Since: 0.1
 */
GTorchMemoryPool *
gtorch_memory_pool_new_with_source (GTorchDevice *device, GTorchMemorySource *source,
                                    GError **error)
{
  GTorchMemoryPool *self;

  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  g_return_val_if_fail (GTORCH_IS_MEMORY_SOURCE (source), NULL);
  device = gtorch_device_or_current (device);
  if (GTORCH_DEVICE_GET_CLASS (device)->pools == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("allocator: the memory of %s always comes from the system"),
                   gtorch_device_name (device));
      return NULL;
    }
  self = gtorch_memory_pool_new (device);
  self->pool->source = g_object_ref (source);
  return self;
}

/**
 * gtorch_memory_pool_get_source:
 * @self: a pool
 *
 * Gets where the pool has its memory from.
 *
 * Returns: (transfer none) (nullable): the source, or %NULL for the device
 *
 * Since: 0.1
 */
GTorchMemorySource *
gtorch_memory_pool_get_source (GTorchMemoryPool *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), NULL);
  return self->pool->source;
}

/**
 * gtorch_memory_pool_get_device:
 * @self: a pool
 *
 * Gets the device whose memory it is.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_memory_pool_get_device (GTorchMemoryPool *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), NULL);
  return self->pool->device;
}

/**
 * gtorch_memory_pool_get_id:
 * @self: a pool
 *
 * Gets the number of the pool, as `segment_pool_id` in [method@Allocator.snapshot] has it in the second
 * place. It is never used again.
 *
 * Returns: a number from 1 on
 *
 * Since: 0.1
 */
guint64
gtorch_memory_pool_get_id (GTorchMemoryPool *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), 0);
  return self->pool->id;
}

static guint64
read_counter (GTorchPool *self, const GTorchCounter *counter, gboolean peak)
{
  gint64 result;

  gtorch_allocator_lock_stats (self->device->allocator);
  result = peak ? counter->peak : counter->current;
  gtorch_allocator_unlock_stats (self->device->allocator);
  return result;
}

/**
 * gtorch_memory_pool_get_allocated:
 * @self: a pool
 *
 * Gets how much memory tensors hold in the pool, rounded as the allocator rounds.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_memory_pool_get_allocated (GTorchMemoryPool *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), 0);
  return read_counter (self->pool, &self->pool->allocated, FALSE);
}

/**
 * gtorch_memory_pool_get_peak_allocated:
 * @self: a pool
 *
 * Gets the most memory that tensors held in the pool since [method@MemoryPool.reset_peak].
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_memory_pool_get_peak_allocated (GTorchMemoryPool *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), 0);
  return read_counter (self->pool, &self->pool->allocated, TRUE);
}

/**
 * gtorch_memory_pool_get_reserved:
 * @self: a pool
 *
 * Gets how much memory the pool has taken from the device.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_memory_pool_get_reserved (GTorchMemoryPool *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), 0);
  return read_counter (self->pool, &self->pool->reserved[GTORCH_POOL_ALL], FALSE);
}

/**
 * gtorch_memory_pool_get_peak_reserved:
 * @self: a pool
 *
 * Gets the most memory that the pool had since [method@MemoryPool.reset_peak].
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_memory_pool_get_peak_reserved (GTorchMemoryPool *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), 0);
  return read_counter (self->pool, &self->pool->reserved[GTORCH_POOL_ALL], TRUE);
}

/**
 * gtorch_memory_pool_reset_peak:
 * @self: a pool
 *
 * Lets the peaks begin again at the current values.
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_reset_peak (GTorchMemoryPool *self)
{
  g_return_if_fail (GTORCH_IS_MEMORY_POOL (self));
  gtorch_pool_reset_counters (self->pool, GINT_TO_POINTER (FALSE));
}

/**
 * gtorch_memory_pool_get_use_on_oom:
 * @self: a pool
 *
 * Tells whether the pool helps out when the device has no more memory.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_memory_pool_get_use_on_oom (GTorchMemoryPool *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), FALSE);
  return g_atomic_int_get (&self->pool->use_on_oom);
}

/**
 * gtorch_memory_pool_set_use_on_oom:
 * @self: a pool
 * @use_on_oom: whether to help out
 *
 * Sets whether the pool gives back what no tensor holds when the device has no more memory; see
 * [property@MemoryPool:use-on-oom].
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_set_use_on_oom (GTorchMemoryPool *self, gboolean use_on_oom)
{
  g_return_if_fail (GTORCH_IS_MEMORY_POOL (self));
  if (g_atomic_int_get (&self->pool->use_on_oom) == (use_on_oom != FALSE))
    return;
  g_atomic_int_set (&self->pool->use_on_oom, use_on_oom != FALSE);
  g_object_notify (G_OBJECT (self), "use-on-oom");
}

/**
 * gtorch_memory_pool_get_check_order: (get-property check-order)
 * @self: a pool
 *
 * Tells whether graphs that share the pool must be replayed in the order of their captures.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_memory_pool_get_check_order (GTorchMemoryPool *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), FALSE);
  return g_atomic_int_get (&self->pool->check_order);
}

/**
 * gtorch_memory_pool_set_check_order: (set-property check-order)
 * @self: a pool
 * @check_order: whether another order is an error
 *
 * Sets whether graphs that share the pool must be replayed in the order of their captures; see
 * [property@MemoryPool:check-order].
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_set_check_order (GTorchMemoryPool *self, gboolean check_order)
{
  g_return_if_fail (GTORCH_IS_MEMORY_POOL (self));
  if (g_atomic_int_get (&self->pool->check_order) == (check_order != FALSE))
    return;
  g_atomic_int_set (&self->pool->check_order, check_order != FALSE);
  g_object_notify (G_OBJECT (self), "check-order");
}

/**
 * gtorch_memory_pool_trim:
 * @self: a pool
 *
 * Gives memory of the pool back to the device that no tensor holds. Waits for the device. While there is a
 * graph that uses the pool, nothing happens.
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_trim (GTorchMemoryPool *self)
{
  GTorchDeviceClass *klass;

  g_return_if_fail (GTORCH_IS_MEMORY_POOL (self));
  klass = GTORCH_DEVICE_GET_CLASS (self->pool->device);
  if (klass->pools == NULL)
    drop_ready (self->pool);
  else if (g_atomic_int_get (&self->pool->n_graphs) == 0)
    klass->pools->trim (self->pool->device, self->pool);
}

/**
 * gtorch_memory_pool_snapshot:
 * @self: a pool
 * @error: return location for an error
 *
 * Makes a picture of the memory of this pool alone; see [method@Allocator.snapshot].
 *
 * Returns: (transfer full): the pickle; %NULL with %GTORCH_ERROR_NOT_SUPPORTED on the CPU
 *
 * Since: 0.1
 */
GBytes *
gtorch_memory_pool_snapshot (GTorchMemoryPool *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), NULL);
  return gtorch_allocator_snapshot_of (self->pool->device->allocator, self->pool->id, error);
}

/**
 * gtorch_memory_pool_run:
 * @self: a pool
 * @func: (scope call) (closure user_data): what to do
 * @user_data: given to @func
 * @error: return location for an error
 *
 * Calls @func in this thread, whose memory of the pool's device comes from the pool meanwhile.
 *
 * Returns: what @func returned
 *
 * Since: 0.1
 */
gboolean
gtorch_memory_pool_run (GTorchMemoryPool *self, GTorchMemoryPoolFunc func, gpointer user_data,
                        GError **error)
{
  g_autoptr (GTorchMemoryPoolGuard) guard = NULL;
  GError *local = NULL;
  gboolean success;

  g_return_val_if_fail (GTORCH_IS_MEMORY_POOL (self), FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  guard = gtorch_memory_pool_guard_new (self);
  success = func (self, user_data, &local);
  return gtorch_callback_ended ("memory_pool_run", success, local, error);
}

void
gtorch_change_pool (GTorchChange *self, GTorchPool *pool)
{
  gtorch_change_pointer (self, &gtorch_thread.pools[pool->device->slot], gtorch_pool_ref (pool),
                         (GDestroyNotify) gtorch_pool_unref);
}
