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
 * A private pool of a device's memory.
 *
 * While a [struct@MemoryPoolGuard] lasts, or in [method@MemoryPool.run], the thread's allocations on the
 * pool's device come from the pool, and are returned to it when freed. Other allocations neither use nor
 * fragment that memory:
 *
 * ```c
 * g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (device);
 * g_autoptr (GTorchMemoryPoolGuard) guard = gtorch_memory_pool_guard_new (pool);
 * g_autoptr (GTorchTensor) buffer =
 *     gtorch_zeros (GTORCH_SHAPE (1 << 20), GTORCH_DTYPE_FLOAT32, device, &error);
 * ```
 *
 * Memory in a pool is also counted by the device's [class@Allocator]. [method@Allocator.trim] and
 * [property@Allocator:caching] do not affect pools; use [method@MemoryPool.trim]. A pool's memory is
 * returned to the device when neither the pool nor any tensor in it is left: at once or, if the device
 * still uses it, when memory is next requested from the driver or [method@Allocator.trim] is called.
 *
 * Graphs use pools: memory that operations allocate during a capture keeps its address as long as the graph
 * may be replayed. Graphs that are never replayed at the same time, and are replayed in the order in which
 * they were captured, can share a pool and need less memory. [method@CUDAGraph.get_pool] returns the pool
 * that a graph created for itself. A graph in whose capture streams of other devices took part has memory
 * there as well: graphs that share the pool share that, too, but the pool's sizes do not include it.
 *
 * Since: 0.1
 */

#define MOST_SMALL (1 << 20)

gint gtorch_n_promised;

/* A block of a pool on the CPU. */
typedef struct
{
  GTorchPool *pool; /* owned reference while a tensor holds the block */
  GTorchStorage *backing;
  guint capture; /* number of the capture that allocated it, whose graph uses it; 0: none */
} Block;

/* What a storage knows that is only memory of a pool, for the calls of graphs. */
typedef struct
{
  GTorchPool *pool; /* owned */
  guint capture;    /* as that of a block */
} Memory;

struct _GTorchMemoryPool
{
  GObject parent_instance;
  GTorchPool *pool;
};

G_DEFINE_TYPE (GTorchMemoryPool, gtorch_memory_pool, G_TYPE_OBJECT)

/* --- GTorchPool, which tensors and graphs hold --- */

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
      /* Observers are told of what is taken from the pool, not of this. */
      gtorch_device_free (self->device, block->backing);
      g_free (block);
    }
}

void
gtorch_pool_unref (GTorchPool *self)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (self->device);
  GPtrArray *others;

  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  others = g_steal_pointer (&self->others);
  if (klass->pools != NULL)
    klass->pools->drop (self->device, self);
  else
    gtorch_pool_free (self);
  /* not by gtorch_pool_free (), which backends call with the lock of a device held */
  g_clear_pointer (&others, g_ptr_array_unref);
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
  if (self->promised != NULL)
    g_atomic_int_add (&gtorch_n_promised, -(gint) self->promised->len);
  g_clear_pointer (&self->promised, g_array_unref);
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

/* Returns the index of the smallest free block of at least that size. */
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
      if (any || other->capture == 0)
        block = g_ptr_array_remove_index (self->ready, i);
    }
  g_mutex_unlock (&self->lock);
  return block;
}

GTorchStorage *
gtorch_pool_alloc (GTorchPool *self, gsize n_bytes, guint capture, GError **error)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (self->device);
  Block *block;

  if (klass->pools != NULL)
    {
      GTorchStorage *storage =
          klass->pools->alloc (self->device, self, n_bytes, capture != 0, error);

      if (storage != NULL && storage->free_func == NULL)
        storage->free_data = GUINT_TO_POINTER (capture);
      return storage;
    }
  block = take_ready (self, n_bytes, capture != 0);
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
  block->capture = capture;
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
    return block->capture != 0 ? block->pool : NULL;
  return storage->free_func == NULL && klass->pools != NULL ? klass->pools->get_pool (storage)
                                                            : NULL;
}

static void
free_memory_storage (GTorchStorage *storage)
{
  Memory *memory = storage->free_data;

  gtorch_pool_unref (memory->pool);
  g_free (memory);
}

GTorchStorage *
gtorch_pool_get_memory (GTorchStorage *storage)
{
  Memory *memory = g_new (Memory, 1);

  memory->pool = gtorch_pool_ref (gtorch_pool_get_capture (storage, &memory->capture));
  return gtorch_storage_new_foreign (storage->device, storage->data, storage->n_bytes,
                                     free_memory_storage, memory);
}

gboolean
gtorch_pool_has_given (const GTorchStorage *storage)
{
  return storage->free_func == free_pool_storage;
}

gboolean
gtorch_pool_is_memory (GTorchStorage *storage)
{
  return storage->free_func == free_memory_storage;
}

/* Finds the promise of a capture; called with the lock held. */
static gboolean
find_promise (GTorchPool *self, guint capture, guint *index)
{
  for (*index = 0; self->promised != NULL && *index < self->promised->len; (*index)++)
    if (g_array_index (self->promised, guint, *index) == capture)
      return TRUE;
  return FALSE;
}

guint
gtorch_pool_promise (GTorchPool *self)
{
  guint capture;

  g_mutex_lock (&self->lock);
  capture = ++self->last_capture;
  if (self->promised == NULL)
    self->promised = g_array_new (FALSE, FALSE, sizeof (guint));
  g_array_append_val (self->promised, capture);
  g_mutex_unlock (&self->lock);
  g_atomic_int_inc (&gtorch_n_promised);
  return capture;
}

void
gtorch_pool_keep_promise (GTorchPool *self, guint capture)
{
  guint index;

  g_mutex_lock (&self->lock);
  if (find_promise (self, capture, &index))
    {
      g_array_remove_index_fast (self->promised, index);
      g_atomic_int_add (&gtorch_n_promised, -1);
    }
  g_mutex_unlock (&self->lock);
}

GTorchPool *
gtorch_pool_get_capture (GTorchStorage *storage, guint *capture)
{
  GTorchPool *pool;

  if (gtorch_pool_is_memory (storage))
    {
      const Memory *memory = storage->free_data;

      *capture = memory->capture;
      return memory->pool;
    }
  pool = gtorch_pool_of (storage);
  if (pool != NULL)
    *capture = storage->free_func == free_pool_storage ? ((Block *) storage->free_data)->capture
                                                       : GPOINTER_TO_UINT (storage->free_data);
  return pool;
}

gboolean
gtorch_pool_is_promised (GTorchStorage *storage)
{
  guint capture, index;
  GTorchPool *pool = gtorch_promises_exist () ? gtorch_pool_get_capture (storage, &capture) : NULL;
  gboolean result;

  if (pool == NULL)
    return FALSE;
  g_mutex_lock (&pool->lock);
  result = find_promise (pool, capture, &index);
  g_mutex_unlock (&pool->lock);
  return result;
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

/* --- GTorchMemoryPool --- */

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
   * The device of the memory; on construction %NULL stands for this thread's current device.
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
   * The ID of the pool, from 1.
   *
   * Since: 0.1
   */
  { "id", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_id, NULL) },
  /**
   * GTorchMemoryPool:allocated: (getter get_allocated)
   *
   * The bytes that tensors hold in the pool. Changes are not notified.
   *
   * Since: 0.1
   */
  { "allocated", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_allocated, NULL) },
  /**
   * GTorchMemoryPool:peak-allocated: (getter get_peak_allocated)
   *
   * The maximum of bytes that tensors held since [method@MemoryPool.reset_peak] or
   * [method@Allocator.reset_peak]. Changes are not notified.
   *
   * Since: 0.1
   */
  { "peak-allocated", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_peak_allocated, NULL) },
  /**
   * GTorchMemoryPool:reserved: (getter get_reserved)
   *
   * The bytes that the pool has reserved on the device. Changes are not notified.
   *
   * Since: 0.1
   */
  { "reserved", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_reserved, NULL) },
  /**
   * GTorchMemoryPool:peak-reserved: (getter get_peak_reserved)
   *
   * The maximum of bytes that the pool had reserved since [method@MemoryPool.reset_peak] or
   * [method@Allocator.reset_peak]. Changes are not notified.
   *
   * Since: 0.1
   */
  { "peak-reserved", GTORCH_PROPERTY_UINT64 (gtorch_memory_pool_get_peak_reserved, NULL) },
  /**
   * GTorchMemoryPool:source: (getter get_source)
   *
   * The source of the pool's memory; %NULL: the device.
   *
   * Since: 0.1
   */
  { "source", GTORCH_PROPERTY_OBJECT (GTorchMemorySource, gtorch_memory_source_get_type,
                                      gtorch_memory_pool_get_source, NULL) },
  /**
   * GTorchMemoryPool:use-on-oom: (getter get_use_on_oom) (setter set_use_on_oom)
   *
   * Whether the pool returns memory that no tensor holds when the device is out of memory. Memory that
   * graphs use is kept.
   *
   * Since: 0.1
   */
  { "use-on-oom",
    GTORCH_PROPERTY_BOOL (gtorch_memory_pool_get_use_on_oom, gtorch_memory_pool_set_use_on_oom) },
  /**
   * GTorchMemoryPool:check-order: (getter get_check_order) (setter set_check_order)
   *
   * Whether graphs that share the pool must be replayed in the order in which they were captured. Graphs
   * may be skipped, and after any graph the sequence may restart with the first one. A graph may overwrite
   * the results of those that were captured after it, so that another order is correct only if nobody reads
   * those results any more.
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
 * @device: (nullable): a device, or %NULL for this thread's current device
 *
 * Creates an empty pool. No memory is reserved before the first allocation.
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
 * @device: (nullable): a GPU, or %NULL for this thread's current device
 * @source: the source of the memory
 * @error: return location for an error
 *
 * Creates an empty pool whose memory comes from the program: the pool allocates segments of 2 MiB, of 20
 * MiB, or of the requested size from @source, keeps them and splits them. They are returned when the pool
 * is freed or by [method@MemoryPool.trim].
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
 * Gets the source of the pool's memory.
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
 * Gets the device of the memory.
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
 * Gets the ID of the pool, which is the second number of `segment_pool_id` in [method@Allocator.snapshot].
 * IDs are never reused.
 *
 * Returns: a number from 1
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
 * Gets the memory that tensors hold in the pool, rounded up as the allocator rounds.
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
 * Gets the maximum of memory that tensors held in the pool since [method@MemoryPool.reset_peak].
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
 * Gets the memory that the pool has reserved on the device.
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
 * Gets the maximum of memory that the pool had reserved since [method@MemoryPool.reset_peak].
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
 * Resets the peaks to the current values.
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
 * Tells whether the pool returns memory when the device is out of memory.
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
 * @use_on_oom: whether to return memory
 *
 * Sets whether the pool returns memory that no tensor holds when the device is out of memory; see
 * [property@MemoryPool:use-on-oom].
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_set_use_on_oom (GTorchMemoryPool *self, gboolean use_on_oom)
{
  g_autoptr (GPtrArray) others = NULL;
  guint i;

  g_return_if_fail (GTORCH_IS_MEMORY_POOL (self));
  if (g_atomic_int_get (&self->pool->use_on_oom) == (use_on_oom != FALSE))
    return;
  g_atomic_int_set (&self->pool->use_on_oom, use_on_oom != FALSE);
  others = gtorch_pool_dup_others (self->pool);
  for (i = 0; i < others->len; i++)
    g_atomic_int_set (&((GTorchPool *) others->pdata[i])->use_on_oom, use_on_oom != FALSE);
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
 * @check_order: whether replays in another order are errors
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

static void
trim (GTorchPool *pool)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (pool->device);

  if (klass->pools == NULL)
    drop_ready (pool);
  else if (g_atomic_int_get (&pool->n_graphs) == 0)
    klass->pools->trim (pool->device, pool);
}

/**
 * gtorch_memory_pool_trim:
 * @self: a pool
 *
 * Returns memory of the pool that no tensor holds to the device. Waits for the device. Does nothing while a
 * graph uses the pool. Memory that graphs of several devices have on the other ones is returned likewise.
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_trim (GTorchMemoryPool *self)
{
  g_autoptr (GPtrArray) others = NULL;
  guint i;

  g_return_if_fail (GTORCH_IS_MEMORY_POOL (self));
  trim (self->pool);
  others = gtorch_pool_dup_others (self->pool);
  for (i = 0; i < others->len; i++)
    trim (others->pdata[i]);
}

/**
 * gtorch_memory_pool_snapshot:
 * @self: a pool
 * @error: return location for an error
 *
 * Creates a snapshot of the memory of this pool alone; see [method@Allocator.snapshot].
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
 * @func: (scope call) (closure user_data): the function to call
 * @user_data: passed to @func
 * @error: return location for an error
 *
 * Calls @func in this thread, which meanwhile allocates from the pool on the pool's device.
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
