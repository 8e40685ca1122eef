/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib-object.h>

#include "gtorch-capture-private.h"

/**
 * GTorchMemoryPool:
 *
 * The private memory of one or several graphs.
 *
 * What operations allocate during a capture comes from a pool and stays at its address as long as
 * the graph may be replayed: a pool lives until its graphs and all tensors in it are gone. Graphs
 * that are never replayed at the same time, and are replayed in the order in which they were
 * captured, can share one and need less memory. [method@CUDAGraph.get_pool] gives the one that a
 * graph made for itself.
 *
 * Since: 0.1
 */

/* Memory comes from the device once and is handed out again, during captures, when the tensor that had it
 * is gone: in a replay everything happens in the order of the capture. */
typedef struct
{
  GTorchMemoryPool *pool;
  GTorchStorage *backing;
  gboolean is_free;
} Block;

struct _GTorchMemoryPool
{
  gint ref_count;
  GMutex lock;
  GPtrArray *blocks;
  guint64 reserved;
  guint n_captures;
  GTorchTimeline *writer; /* of the last replay */
  guint64 write_seq;
  GRecMutex run_lock;
};

G_DEFINE_BOXED_TYPE (GTorchMemoryPool, gtorch_memory_pool, gtorch_memory_pool_ref,
                     gtorch_memory_pool_unref)

static void
block_free (gpointer data)
{
  Block *block = data;

  gtorch_storage_unref (block->backing);
  g_free (block);
}

/**
 * gtorch_memory_pool_new:
 *
 * Makes an empty pool, to be given to several captures.
 *
 * Returns: (transfer full): a new pool
 *
 * Since: 0.1
 */
GTorchMemoryPool *
gtorch_memory_pool_new (void)
{
  GTorchMemoryPool *self = g_new0 (GTorchMemoryPool, 1);

  self->ref_count = 1;
  g_mutex_init (&self->lock);
  g_rec_mutex_init (&self->run_lock);
  self->blocks = g_ptr_array_new_with_free_func (block_free);
  return self;
}

/**
 * gtorch_memory_pool_ref:
 * @self: a pool
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 *
 * Since: 0.1
 */
GTorchMemoryPool *
gtorch_memory_pool_ref (GTorchMemoryPool *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_int_inc (&self->ref_count);
  return self;
}

/**
 * gtorch_memory_pool_unref:
 * @self: (transfer full): a pool
 *
 * Drops a reference; with the last one the memory goes back to the device.
 *
 * Since: 0.1
 */
void
gtorch_memory_pool_unref (GTorchMemoryPool *self)
{
  g_return_if_fail (self != NULL);
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_ptr_array_unref (self->blocks);
  g_mutex_clear (&self->lock);
  g_rec_mutex_clear (&self->run_lock);
  g_free (self);
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
  guint64 reserved;

  g_return_val_if_fail (self != NULL, 0);
  g_mutex_lock (&self->lock);
  reserved = self->reserved;
  g_mutex_unlock (&self->lock);
  return reserved;
}

static void
free_pool_storage (GTorchStorage *storage)
{
  Block *block = storage->free_data;
  GTorchMemoryPool *pool = block->pool;

  g_mutex_lock (&pool->lock);
  block->is_free = TRUE;
  g_mutex_unlock (&pool->lock);
  gtorch_memory_pool_unref (pool);
}

GTorchStorage *
gtorch_memory_pool_alloc (GTorchMemoryPool *self, GTorchDevice *device, gsize n_bytes,
                          GError **error)
{
  Block *best = NULL;
  guint i;

  g_mutex_lock (&self->lock);
  for (i = 0; i < self->blocks->len; i++)
    {
      Block *block = self->blocks->pdata[i];
      gsize size = block->backing->n_bytes;

      if (block->is_free && block->backing->device == device && size >= n_bytes
          && size - n_bytes <= size / 4 + 64 && (best == NULL || size < best->backing->n_bytes))
        best = block;
    }
  if (best != NULL)
    best->is_free = FALSE;
  g_mutex_unlock (&self->lock);

  if (best == NULL)
    {
      GTorchStorage *backing = gtorch_device_alloc (device, n_bytes, error);

      if (backing == NULL)
        return NULL;
      best = g_new0 (Block, 1);
      best->pool = self;
      best->backing = backing;
      g_mutex_lock (&self->lock);
      g_ptr_array_add (self->blocks, best);
      self->reserved += n_bytes;
      g_mutex_unlock (&self->lock);
    }
  gtorch_memory_pool_ref (self);
  return gtorch_storage_new_foreign (device, best->backing->data, n_bytes, free_pool_storage, best);
}

GTorchMemoryPool *
gtorch_memory_pool_of (GTorchStorage *storage)
{
  return storage->free_func == free_pool_storage ? ((Block *) storage->free_data)->pool : NULL;
}

static void
free_memory_storage (GTorchStorage *storage)
{
  gtorch_memory_pool_unref (storage->free_data);
}

GTorchStorage *
gtorch_memory_pool_get_memory (GTorchStorage *storage)
{
  Block *block = storage->free_data;

  gtorch_memory_pool_ref (block->pool);
  return gtorch_storage_new_foreign (storage->device, storage->data, block->backing->n_bytes,
                                     free_memory_storage, block->pool);
}

gboolean
gtorch_memory_pool_is_memory (GTorchStorage *storage)
{
  return storage->free_func == free_memory_storage;
}

void
gtorch_memory_pool_set_capturing (GTorchMemoryPool *self, gboolean capturing)
{
  g_mutex_lock (&self->lock);
  self->n_captures += capturing ? 1 : -1;
  g_mutex_unlock (&self->lock);
}

gboolean
gtorch_memory_pool_is_capturing (GTorchMemoryPool *self)
{
  gboolean result;

  g_mutex_lock (&self->lock);
  result = self->n_captures > 0;
  g_mutex_unlock (&self->lock);
  return result;
}

void
gtorch_memory_pool_lock (GTorchMemoryPool *self)
{
  g_rec_mutex_lock (&self->run_lock);
}

void
gtorch_memory_pool_unlock (GTorchMemoryPool *self)
{
  g_rec_mutex_unlock (&self->run_lock);
}

GTorchTimeline *
gtorch_memory_pool_get_writer (GTorchMemoryPool *self, guint64 *seq)
{
  GTorchTimeline *writer;

  g_mutex_lock (&self->lock);
  writer = self->writer;
  *seq = self->write_seq;
  g_mutex_unlock (&self->lock);
  return writer;
}

void
gtorch_memory_pool_set_writer (GTorchMemoryPool *self, GTorchTimeline *timeline, guint64 seq)
{
  g_mutex_lock (&self->lock);
  self->writer = timeline;
  self->write_seq = seq;
  g_mutex_unlock (&self->lock);
}

gboolean
gtorch_memory_pool_sync (GTorchStorage *storage, GError **error)
{
  GTorchMemoryPool *pool = gtorch_memory_pool_of (storage);
  GTorchTimeline *writer;
  guint64 seq;

  if (pool == NULL || (writer = gtorch_memory_pool_get_writer (pool, &seq)) == NULL)
    return TRUE;
  gtorch_timeline_wait (writer, seq, NULL, NULL);
  return gtorch_timeline_report (writer, error);
}
