/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Private pools of a GPU. A pool has arenas of its own: for each lane, for small and large storages, and
 * separate ones for allocations in captures, which graphs write to unknown to the allocator. Storages keep
 * the pool alive until they are freed and have left limbo. */

#include "config.h"

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"

static GTorchCudaArena *
find_arena (GTorchPool *pool, GTorchCudaLane *lane, guint kind, gboolean captured)
{
  GTorchCudaArena *result = NULL;
  guint i;

  g_mutex_lock (&pool->lock);
  for (i = 0; pool->arenas != NULL && i < pool->arenas->len && result == NULL; i++)
    {
      GTorchCudaArena *arena = pool->arenas->pdata[i];

      if (gtorch_cuda_arena_get_lane (arena) == lane && gtorch_cuda_arena_get_pool (arena) == kind
          && gtorch_cuda_arena_is_captured (arena) == captured)
        result = arena;
    }
  g_mutex_unlock (&pool->lock);
  return result;
}

static GTorchCudaArena *
get_arena (GTorchCudaDevice *device, GTorchPool *pool, GTorchCudaLane *lane, guint kind,
           gboolean captured, GError **error)
{
  GTorchCudaArena *arena = find_arena (pool, lane, kind, captured);

  if (arena != NULL)
    return arena;
  if (!gtorch_cuda_device_activate (device, error))
    return NULL;
  gtorch_cuda_collect_pools (device, FALSE);
  g_mutex_lock (&device->lock);
  arena = find_arena (pool, lane, kind, captured);
  if (arena == NULL)
    {
      arena = gtorch_cuda_make_arena (device, lane, kind, FALSE, pool, captured, error);
      if (arena != NULL)
        {
          g_mutex_lock (&pool->lock);
          if (pool->arenas == NULL)
            pool->arenas = g_ptr_array_new ();
          g_ptr_array_add (pool->arenas, arena);
          g_mutex_unlock (&pool->lock);
        }
    }
  g_mutex_unlock (&device->lock);
  return arena;
}

GTorchStorage *
gtorch_cuda_alloc_in (GTorchDevice *device, GTorchPool *pool, gsize n_bytes, gboolean captured,
                      GError **error)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);
  GTorchCudaLane *lane = gtorch_cuda_current_lane (device, error);
  g_autoptr (GTorchPool) own = NULL;
  GTorchCudaArena *arena;
  GTorchStorage *storage;
  gboolean is_small;
  gsize size;

  if (lane == NULL)
    return NULL;
  own = gtorch_cuda_lane_dup_pool (lane);
  if (own != NULL)
    {
      pool = own;
      captured = TRUE;
    }
  else if (pool == NULL) /* the capture has ended meanwhile */
    return gtorch_cuda_alloc (device, n_bytes, error);
  size = gtorch_cuda_round (self, n_bytes, &is_small);
  arena = get_arena (self, pool, lane, is_small ? GTORCH_POOL_SMALL : GTORCH_POOL_LARGE, captured,
                     error);
  storage = arena != NULL ? gtorch_cuda_alloc_from (self, lane, arena, n_bytes, size, error) : NULL;
  if (storage != NULL)
    gtorch_pool_ref (pool);
  return storage;
}

GTorchPool *
gtorch_cuda_get_pool (GTorchStorage *storage)
{
  GTorchCudaArena *arena = ((GTorchCudaBlock *) storage)->arena;

  return gtorch_cuda_arena_is_captured (arena) ? gtorch_cuda_arena_get_owner (arena) : NULL;
}

static void
trim_arena (GTorchCudaArena *arena)
{
  g_mutex_lock (gtorch_cuda_arena_get_lock (arena));
  gtorch_cuda_arena_trim (arena);
  g_mutex_unlock (gtorch_cuda_arena_get_lock (arena));
}

static void
gtorch_cuda_trim_pool (GTorchDevice *device, GTorchPool *pool)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);
  guint i;
  GTORCH_CUDA_APART;

  if (self->context == NULL || !gtorch_cuda_device_activate (self, NULL))
    return;
  gtorch_cuda_wait_all (self);
  g_mutex_lock (&self->lock);
  for (i = 0; pool->arenas != NULL && i < pool->arenas->len; i++)
    trim_arena (pool->arenas->pdata[i]);
  g_mutex_unlock (&self->lock);
  gtorch_cuda_send_back (self);
}

/* --- memory from the program's own source --- */

gboolean
gtorch_cuda_ask_source (GTorchCudaArena *arena, gsize n_bytes, CUresult *result, GError **error)
{
  GTorchCudaLane *lane = gtorch_cuda_arena_get_lane (arena);
  GTorchDevice *device = &lane->device->parent_instance;
  const gsize size = gtorch_cuda_arena_segment_size (arena, n_bytes);
  g_autoptr (GError) reason = NULL;
  guint64 address;

  *result = CUDA_ERROR_OUT_OF_MEMORY;
  if (!gtorch_allocator_promise (device->allocator, size, TRUE))
    return FALSE;
  address = gtorch_memory_source_allocate (gtorch_cuda_arena_get_source (arena), device, size,
                                           (guintptr) lane->handle, &reason);
  if (address != 0)
    {
      g_mutex_lock (gtorch_cuda_arena_get_lock (arena));
      gtorch_cuda_arena_add_segment (arena, address, size);
      g_mutex_unlock (gtorch_cuda_arena_get_lock (arena));
    }
  gtorch_allocator_promise (device->allocator, size, FALSE);
  if (reason != NULL && !g_error_matches (reason, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY))
    {
      *result = CUDA_ERROR_NOT_PERMITTED;
      g_propagate_error (error, g_steal_pointer (&reason));
    }
  return address != 0;
}

void
gtorch_cuda_note_released (GTorchCudaDevice *device, GTorchMemorySource *source, guint64 address,
                           gsize n_bytes, CUstream stream)
{
  const GTorchCudaReleased released = { g_object_ref (source), address, n_bytes, stream };

  g_mutex_lock (&device->release_lock);
  g_array_append_val (device->released, released);
  g_mutex_unlock (&device->release_lock);
}

void
gtorch_cuda_send_back (GTorchCudaDevice *device)
{
  while (__atomic_load_n (&device->released->len, __ATOMIC_RELAXED) > 0)
    {
      GTorchCudaReleased released = { NULL };

      g_mutex_lock (&device->release_lock);
      if (device->released->len > 0)
        {
          released =
              g_array_index (device->released, GTorchCudaReleased, device->released->len - 1);
          g_array_set_size (device->released, device->released->len - 1);
        }
      g_mutex_unlock (&device->release_lock);
      if (released.source == NULL)
        return;
      gtorch_cuda_device_activate (device, NULL);
      gtorch_memory_source_release (released.source, &device->parent_instance, released.address,
                                    released.n_bytes, (guintptr) released.stream);
      g_object_unref (released.source);
    }
}

/* --- freeing pools --- */

/* Frees a pool's memory; the device's lock must be held. */
static gboolean
release (GTorchCudaDevice *device, GTorchPool *pool, gboolean settled)
{
  guint i;

  for (i = 0; i < pool->arenas->len && !settled; i++)
    {
      GTorchCudaLane *lane = gtorch_cuda_arena_get_lane (pool->arenas->pdata[i]);

      if (gtorch_cuda_lane_capture (lane) != NULL /* a lane that is capturing cannot be queried */
          || (gtorch_cuda_lane_is_closed (lane) ? gtorch_cuda_lane_settle (lane)
                                                : gtorch_cuda.cuStreamQuery (lane->handle))
                 != CUDA_SUCCESS)
        return FALSE;
    }
  for (i = 0; i < pool->arenas->len;)
    {
      GTorchCudaArena *arena = pool->arenas->pdata[i];

      trim_arena (arena);
      if (gtorch_cuda_arena_get_mapped (arena) > 0)
        {
          i++;
          continue;
        }
      g_ptr_array_remove_fast (device->arenas, arena);
      g_ptr_array_remove_index_fast (pool->arenas, i);
      gtorch_cuda_arena_free (arena);
    }
  return pool->arenas->len == 0;
}

void
gtorch_cuda_collect_pools (GTorchCudaDevice *device, gboolean settled)
{
  guint i = 0;
  GTORCH_CUDA_APART;

  gtorch_cuda_collect_graphs (device);
  /* A stream that is capturing must not be queried. */
  if (__atomic_load_n (&device->dead_pools->len, __ATOMIC_RELAXED) == 0
      || (!settled && gtorch_captures_exist ()) || !gtorch_cuda_device_activate (device, NULL))
    return;
  g_mutex_lock (&device->lock);
  while (i < device->dead_pools->len)
    {
      GTorchPool *pool = device->dead_pools->pdata[i];

      if (!release (device, pool, settled))
        {
          i++;
          continue;
        }
      g_ptr_array_remove_index_fast (device->dead_pools, i);
      g_ptr_array_unref (pool->arenas);
      gtorch_pool_free (pool);
    }
  g_mutex_unlock (&device->lock);
  gtorch_cuda_send_back (device);
}

static void
gtorch_cuda_drop_pool (GTorchDevice *device, GTorchPool *pool)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);

  if (pool->arenas == NULL)
    {
      gtorch_pool_free (pool);
      return;
    }
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->dead_pools, pool);
  g_mutex_unlock (&self->lock);
  gtorch_cuda_collect_pools (self, FALSE);
}

const GTorchPoolBackend gtorch_cuda_pools = {
  .alloc = gtorch_cuda_alloc_in,
  .get_pool = gtorch_cuda_get_pool,
  .trim = gtorch_cuda_trim_pool,
  .drop = gtorch_cuda_drop_pool,
};
