/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The memory of a GPU. Each lane (the queue behind a stream) has two arenas, for small and for large
 * storages. The next storage of the same lane reuses freed memory at once, since the work of a lane is
 * executed in order. Memory that other lanes have used too waits in limbo until their work is done. */

#include "config.h"

#include "cuda/memory/gtorch-cuda-adopt-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/memory/gtorch-cuda-magazine-private.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"
#include "memory/gtorch-allocator-history.h"
#include "cuda/ops/gtorch-cuda-matmul-private.h"

#define SMALL_MAX   (G_GUINT64_CONSTANT (1) << 20)
#define MAX_RETRIES 100 /* for handlers that claim each time that there is memory now */

/* --- statistics --- */

static inline guint
pool_of (GTorchCudaBlock *block)
{
  return gtorch_cuda_arena_get_pool (block->arena);
}

static inline GTorchAllocator *
allocator_of (GTorchCudaDevice *device)
{
  return device->parent_instance.allocator;
}

/* Returns the private pool that owns the block; NULL: the device. */
static inline GTorchPool *
owner_of (GTorchCudaBlock *block)
{
  return gtorch_cuda_arena_get_owner (block->arena);
}

/* --- history --- */

static void
note (GTorchCudaDevice *device, GTorchMemoryAction action, GTorchCudaBlock *block,
      GTorchMemorySite *site)
{
  GTorchCudaLane *lane = gtorch_cuda_arena_get_lane (block->arena);

  gtorch_allocator_note (allocator_of (device), action, (guintptr) block->storage.data, block->size,
                         lane->index == 0 ? 0 : (guintptr) lane->handle,
                         owner_of (block) != NULL ? owner_of (block)->id : 0, site, 0);
}

static G_GNUC_NO_INLINE void
note_free (GTorchCudaDevice *device, GTorchCudaBlock *block, gboolean freed, gboolean inactive)
{
  GTorchMemorySite *site = NULL;

  if (freed && gtorch_allocator_has_history (allocator_of (device), GTORCH_HISTORY_ALL))
    site = gtorch_memory_site_new (FALSE);
  if (freed)
    note (device, GTORCH_MEMORY_FREE_REQUESTED, block, site);
  if (inactive)
    note (device, GTORCH_MEMORY_FREE_COMPLETED, block, site);
  gtorch_memory_site_unref (site);
}

/* Adds n to the oversize allocations. A block is counted by the limit that is in force when it is
 * allocated. */
static void
count_oversize (GTorchMemoryStats *stats, GTorchCudaBlock *block, gint n)
{
  gtorch_counter_add (&stats->oversize_allocations, n);
  block->is_oversize = n > 0;
}

static inline void
count_alloc (GTorchCudaDevice *device, GTorchCudaBlock *block)
{
  GTorchAllocator *allocator = allocator_of (device);
  GTorchMemoryStats *stats = &allocator->stats;
  GTorchMemorySite *site = NULL;

  if (gtorch_allocator_has_history (allocator, GTORCH_HISTORY_STATE))
    site = gtorch_memory_site_new (TRUE);
  gtorch_allocator_lock_stats (allocator);
  block->use = GTORCH_BLOCK_ALLOCATED;
  block->requested = block->storage.n_bytes;
  block->site = site;
  gtorch_cuda_count_block (device, pool_of (block), block->size, block->requested);
  if (G_UNLIKELY (owner_of (block) != NULL))
    gtorch_counter_add (&owner_of (block)->allocated, block->size);
  if (G_UNLIKELY (stats->max_split_size >= 0 && block->size >= (gsize) stats->max_split_size))
    count_oversize (stats, block, 1);
  gtorch_allocator_unlock_stats (allocator);
  if (gtorch_allocator_has_history (allocator, GTORCH_HISTORY_ALLOC))
    note (device, GTORCH_MEMORY_ALLOC, block, site);
}

/* Counts a block that its tensors have freed (`freed`), that no stream uses any more (`inactive`), or
 * both. */
static inline void
count_free (GTorchCudaDevice *device, GTorchCudaBlock *block, gboolean freed, gboolean inactive)
{
  GTorchAllocator *allocator = allocator_of (device);
  GTorchMemoryStats *stats = &allocator->stats;
  guint pool = pool_of (block);
  GTorchMemorySite *site = NULL;

  if (gtorch_allocator_has_history (allocator, GTORCH_HISTORY_ALLOC))
    note_free (device, block, freed, inactive);
  gtorch_allocator_lock_stats (allocator);
  if (freed)
    {
      block->use = GTORCH_BLOCK_AWAITING_FREE;
      gtorch_stats_add (stats, pool, GTORCH_STAT_ALLOCATION, -1);
      gtorch_stats_add (stats, pool, GTORCH_STAT_ALLOCATED_BYTES, -(gint64) block->size);
      if (G_UNLIKELY (owner_of (block) != NULL))
        gtorch_counter_add (&owner_of (block)->allocated, -(gint64) block->size);
      if (G_UNLIKELY (block->is_oversize))
        count_oversize (stats, block, -1);
    }
  if (inactive)
    {
      block->use = GTORCH_BLOCK_INACTIVE;
      site = g_steal_pointer (&block->site);
      gtorch_stats_add (stats, pool, GTORCH_STAT_ACTIVE, -1);
      gtorch_stats_add (stats, pool, GTORCH_STAT_ACTIVE_BYTES, -(gint64) block->size);
      gtorch_stats_add (stats, pool, GTORCH_STAT_REQUESTED_BYTES, -(gint64) block->requested);
    }
  gtorch_allocator_unlock_stats (allocator);
  gtorch_memory_site_unref (site);
}

#define COUNT(device, name)                                \
  G_STMT_START                                             \
  {                                                        \
    gtorch_allocator_lock_stats (allocator_of (device));   \
    allocator_of (device)->stats.name++;                   \
    gtorch_allocator_unlock_stats (allocator_of (device)); \
  }                                                        \
  G_STMT_END

/* --- limbo --- */

static void
give_back (GTorchCudaDevice *device, GTorchCudaBlock *block)
{
  GTorchMemorySource *source = gtorch_cuda_arena_get_source (block->arena);
  GMutex *lock = gtorch_cuda_arena_get_lock (block->arena);
  GTorchPool *owner = owner_of (block);

  g_mutex_lock (lock);
  gtorch_cuda_arena_give (block->arena, block);
  g_mutex_unlock (lock);
  if (G_UNLIKELY (source != NULL))
    gtorch_cuda_send_back (device);
  if (G_UNLIKELY (owner != NULL))
    gtorch_pool_unref (owner);
}

/* Frees the blocks in limbo whose lanes are done; with `wait`, waits for the other blocks' lanes and frees
 * them too. Returns TRUE if any blocks were freed. */
static gboolean
drain_limbo (GTorchCudaDevice *device, gboolean wait)
{
  GTorchCudaBlock *block, *next, *kept = NULL, *ready = NULL;
  gboolean result = FALSE;
  guint i;
  GTORCH_CUDA_APART;

  if (__atomic_load_n (&device->limbo, __ATOMIC_RELAXED) == NULL)
    return FALSE;
  g_mutex_lock (&device->lock);
  for (block = device->limbo; block != NULL; block = next)
    {
      next = block->list_next;
      for (i = 0; block->events[i] != NULL; i++)
        if (wait ? gtorch_cuda_event_wait (device, block->events[i], FALSE) == CUDA_ERROR_NOT_READY
                 : gtorch_cuda.cuEventQuery (block->events[i]) == CUDA_ERROR_NOT_READY)
          break;
      if (block->events[i] != NULL)
        {
          block->list_next = kept;
          kept = block;
          continue;
        }
      for (i = 0; block->events[i] != NULL; i++)
        gtorch_cuda_event_put (device, block->events[i], FALSE);
      g_clear_pointer (&block->events, g_free);
      block->list_next = ready;
      ready = block;
    }
  __atomic_store_n (&device->limbo, kept, __ATOMIC_RELAXED);
  g_mutex_unlock (&device->lock);

  for (block = ready; block != NULL; block = next)
    {
      next = block->list_next;
      block->list_next = NULL;
      count_free (device, block, FALSE, TRUE);
      give_back (device, block);
      result = TRUE;
    }
  return result;
}

void
gtorch_cuda_send_to_limbo (GTorchCudaDevice *device, GTorchCudaBlock *block)
{
  g_autoptr (GArray) events = g_array_new (TRUE, FALSE, sizeof (CUevent));
  guint i;
  GTORCH_CUDA_APART;

  gtorch_cuda_device_activate (device, NULL);
  g_mutex_lock (&device->lock);
  for (i = 0; i < device->lanes->len; i++)
    {
      GTorchCudaLane *lane = device->lanes->pdata[i];
      CUevent event;

      if ((block->uses & gtorch_cuda_lane_bit (lane)) == 0)
        continue;
      event = gtorch_cuda_lane_mark (lane, NULL);
      if (event != NULL)
        g_array_append_val (events, event);
      else
        gtorch_cuda_lane_settle (lane); /* without an event, wait here */
    }
  block->uses = 0;
  if (events->len > 0)
    {
      block->events = (CUevent *) g_array_steal (events, NULL);
      block->list_next = device->limbo;
      __atomic_store_n (&device->limbo, block, __ATOMIC_RELAXED);
      block = NULL;
    }
  g_mutex_unlock (&device->lock);
  if (block == NULL)
    return;
  count_free (device, block, FALSE, TRUE);
  give_back (device, block);
}

/* Frees memory that threads cache or that waits in limbo. Returns TRUE if there was any. */
static gboolean
gather (GTorchCudaDevice *device)
{
  gboolean drained = gtorch_cuda_magazines_drain (device, NULL);

  return drain_limbo (device, TRUE) || drained;
}

/* --- the driver's memory --- */

/* Waits for all streams, since work on free pages may still be running. */
static void
sync_all (GTorchCudaDevice *device)
{
  COUNT (device, num_sync_all_streams);
  gtorch_cuda_device_settle (device);
}

void
gtorch_cuda_foreach_arena (GTorchCudaDevice *device,
                           void (*func) (GTorchCudaArena *arena, gpointer data), gpointer data)
{
  guint i;

  g_mutex_lock (&device->lock);
  for (i = 0; i < device->arenas->len; i++)
    {
      GTorchCudaArena *arena = device->arenas->pdata[i];

      g_mutex_lock (gtorch_cuda_arena_get_lock (arena));
      func (arena, data);
      g_mutex_unlock (gtorch_cuda_arena_get_lock (arena));
    }
  g_mutex_unlock (&device->lock);
}

void
gtorch_cuda_wait_all (GTorchCudaDevice *device)
{
  gtorch_cuda_drop_workspaces (GTORCH_DEVICE (device));
  sync_all (device);
  gtorch_cuda_collect_graphs (device);
  gather (device);
}

static void
trim (GTorchCudaArena *arena, gpointer data)
{
  const gboolean *needed = data;
  GTorchPool *owner = gtorch_cuda_arena_get_owner (arena);

  if (owner == NULL
      || (*needed && g_atomic_int_get (&owner->use_on_oom)
          && g_atomic_int_get (&owner->n_graphs) == 0))
    gtorch_cuda_arena_trim (arena);
}

/* Releases free memory to the driver. With `needed`, memory has run out, so pools that allow it release
 * theirs too. */
static void
trim_all (GTorchCudaDevice *device, gboolean needed)
{
  gtorch_cuda_foreach_arena (device, trim, &needed);
  if (device->async_pool != NULL)
    { /* the driver's pool may keep memory that is freed after work that still runs */
      gtorch_cuda_device_settle (device);
      gtorch_cuda.cuMemPoolTrimTo (device->async_pool, 0);
    }
  gtorch_cuda_collect_pools (device, TRUE);
  gtorch_cuda_send_back (device);
}

static GTorchCudaBlock *
take (GTorchCudaArena *arena, gsize n_bytes)
{
  GTorchCudaBlock *block;

  g_mutex_lock (gtorch_cuda_arena_get_lock (arena));
  block = gtorch_cuda_arena_take (arena, n_bytes);
  g_mutex_unlock (gtorch_cuda_arena_get_lock (arena));
  return block;
}

/* Takes a block, growing the arena if necessary. Sets the error only if *result is
 * CUDA_ERROR_NOT_PERMITTED. */
static GTorchCudaBlock *
take_or_grow (GTorchCudaArena *arena, gsize n_bytes, CUresult *result, GError **error)
{
  GTorchCudaBlock *block;
  guint tries;

  if (G_UNLIKELY (gtorch_cuda_arena_get_source (arena) != NULL))
    {
      for (tries = 0; tries < MAX_RETRIES; tries++) /* other threads may take it first: retry */
        {
          block = take (arena, n_bytes);
          if (block != NULL || !gtorch_cuda_ask_source (arena, n_bytes, result, error))
            return block;
        }
      *result = CUDA_ERROR_OUT_OF_MEMORY;
      return NULL;
    }
  g_mutex_lock (gtorch_cuda_arena_get_lock (arena));
  block = gtorch_cuda_arena_take (arena, n_bytes);
  if (block == NULL)
    {
      *result = gtorch_cuda_arena_grow (arena, n_bytes);
      if (*result == CUDA_SUCCESS)
        block = gtorch_cuda_arena_take (arena, n_bytes);
    }
  g_mutex_unlock (gtorch_cuda_arena_get_lock (arena));
  return block;
}

static void
find_largest (GTorchCudaArena *arena, gpointer data)
{
  gsize *largest = data;

  if (gtorch_cuda_arena_get_owner (arena) == NULL)
    *largest = MAX (*largest, gtorch_cuda_arena_largest (arena));
}

static void
set_oom (GTorchCudaDevice *device, gsize n_bytes, GError **error)
{
  gsize available = 0, all = 0, largest = 0;

  gtorch_cuda_foreach_arena (device, find_largest, &largest);
  gtorch_cuda.cuMemGetInfo (&available, &all);
  COUNT (device, num_ooms);
  if (gtorch_allocator_has_history (allocator_of (device), GTORCH_HISTORY_ALLOC))
    {
      GTorchMemorySite *site = gtorch_memory_site_new (TRUE);

      gtorch_allocator_note (allocator_of (device), GTORCH_MEMORY_OOM, 0, n_bytes, 0, 0, site,
                             available);
      gtorch_memory_site_unref (site);
    }
  gtorch_allocator_set_oom (allocator_of (device), n_bytes, available, largest, error);
}

/* Releases free memory if an allocation of n_bytes would exceed the garbage collection threshold. */
static void
collect (GTorchCudaDevice *device, gsize n_bytes)
{
  GTorchAllocator *allocator = allocator_of (device);
  const GTorchAllocatorConfig *config = &allocator->config;
  gdouble limit = config->gc_threshold * config->fraction * device->total_memory;

  if (config->gc_threshold <= 0
      || gtorch_allocator_get_reserved (allocator) + (gdouble) n_bytes <= limit)
    return;
  gtorch_cuda_wait_all (device);
  trim_all (device, FALSE);
}

static void
give_all_back (GTorchCudaDevice *device)
{
  gtorch_cuda_wait_all (device);
  trim_all (device, TRUE);
  COUNT (device, num_alloc_retries);
}

typedef struct
{
  /* the borrowing lane; if is_own its arenas lend pages, else those of other lanes */
  GTorchCudaLane *lane;
  gboolean is_own;
  GTorchPool *owner; /* the pool whose arenas lend pages; NULL: the device */
  gsize wanted, least, found;
  GArray *pages; /* the lent pages; if NULL they are only counted */
} Loan;

static void
borrow (GTorchCudaArena *arena, gpointer data)
{
  Loan *loan = data;
  guint i;

  if ((gtorch_cuda_arena_get_lane (arena) == loan->lane) != loan->is_own
      || gtorch_cuda_arena_get_owner (arena) != loan->owner || gtorch_cuda_arena_is_captured (arena)
      || loan->found >= loan->wanted)
    return;
  if (loan->pages == NULL)
    {
      loan->found += gtorch_cuda_arena_get_spare (arena, loan->least);
      return;
    }
  gtorch_cuda_arena_lend (arena, loan->wanted - loan->found, loan->least, loan->pages);
  for (loan->found = 0, i = 0; i < loan->pages->len; i++)
    loan->found += g_array_index (loan->pages, GTorchCudaPage, i).size;
}

static gsize
borrow_all (GTorchCudaDevice *device, Loan *loan)
{
  loan->found = 0;
  loan->is_own = TRUE;
  gtorch_cuda_foreach_arena (device, borrow, loan);
  loan->is_own = FALSE;
  gtorch_cuda_foreach_arena (device, borrow, loan);
  return loan->found;
}

/* Moves free pages that are scattered over this arena, its sibling, and those of other lanes into one
 * piece, so that the driver need not allocate memory. Returns NULL if there are too few of them. */
static GTorchCudaBlock *
move_pages (GTorchCudaDevice *device, GTorchCudaArena *arena, gsize n_bytes)
{
  g_autoptr (GArray) pages = NULL;
  GTorchCudaBlock *block;
  Loan loan = { .lane = gtorch_cuda_arena_get_lane (arena),
                .owner = gtorch_cuda_arena_get_owner (arena) };

  loan.wanted = (n_bytes + GTORCH_CUDA_PAGE - 1) / GTORCH_CUDA_PAGE * GTORCH_CUDA_PAGE;
  loan.least = loan.wanted >= GTORCH_CUDA_ONE_PIECE ? loan.wanted : 0;
  if (!gtorch_cuda_arena_has_pages (arena) || borrow_all (device, &loan) < loan.wanted)
    return NULL;
  loan.pages = pages = g_array_new (FALSE, FALSE, sizeof (GTorchCudaPage));
  borrow_all (device, &loan);
  g_mutex_lock (gtorch_cuda_arena_get_lock (arena));
  gtorch_cuda_arena_adopt (arena, pages);
  block = gtorch_cuda_arena_take (arena, n_bytes);
  g_mutex_unlock (gtorch_cuda_arena_get_lock (arena));
  return block;
}

/* Allocates when the arena has no room: tries everything that may free memory, the cheapest first. */
static GTorchCudaBlock *
alloc_slowly (GTorchCudaDevice *device, GTorchCudaArena *arena, gsize n_bytes, GError **error)
{
  CUresult result = CUDA_SUCCESS;
  GTorchCudaBlock *block = NULL;
  guint step;
  GTORCH_CUDA_APART;

  if (!gtorch_cuda_device_activate (device, error))
    return NULL;
  if (n_bytes > device->total_memory)
    {
      set_oom (device, n_bytes, error);
      return NULL;
    }
  for (step = 0;; step++)
    {
      if (step == 0)
        {
          drain_limbo (device, FALSE);
          gtorch_cuda_collect_pools (device, FALSE);
          block = take (arena, n_bytes);
          if (block != NULL)
            return block;
          collect (device, n_bytes);
        }
      else if (step == 1 && !gather (device))
        continue;
      else if (step == 2)
        {
          block = move_pages (device, arena, n_bytes);
          if (block != NULL)
            return block;
          give_all_back (device);
        }
      else if (step == 3)
        {
          if (!gtorch_allocator_memory_pressure (allocator_of (device), n_bytes))
            continue;
          give_all_back (device);
        }
      else if (step >= 4)
        {
          if (step > MAX_RETRIES
              || !gtorch_allocator_out_of_memory (allocator_of (device), n_bytes))
            break;
          give_all_back (device);
        }
      block = take_or_grow (arena, n_bytes, &result, error);
      if (block != NULL)
        return block;
      if (result != CUDA_ERROR_OUT_OF_MEMORY)
        {
          if (gtorch_cuda_arena_get_source (arena) == NULL)
            gtorch_cuda_check (result, gtorch_cuda_arena_get_function (arena), error);
          return NULL;
        }
    }
  set_oom (device, n_bytes, error);
  return NULL;
}

/* Gets the driver's memory pool and configures it to keep freed memory, as far as possible, rather than
 * release it to other programs. */
static gboolean
open_async_pool (GTorchCudaDevice *device, GError **error)
{
  CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                             CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  guint readers = __atomic_load_n (&device->readers, __ATOMIC_SEQ_CST);
  guint64 most = G_MAXUINT64;
  CUmemoryPool pool;

  if (device->async_pool != NULL)
    return TRUE;
  if (!gtorch_cuda_check (gtorch_cuda.cuDeviceGetDefaultMemPool (&pool, device->handle),
                          "cuDeviceGetDefaultMemPool", error)
      || !gtorch_cuda_check (gtorch_cuda.cuMemPoolSetAttribute (pool,
                                                                CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                                                &most),
                             "cuMemPoolSetAttribute", error))
    return FALSE;
  for (; readers != 0; readers &= readers - 1)
    {
      access.location.id = __builtin_ctz (readers);
      if (!gtorch_cuda_check (gtorch_cuda.cuMemPoolSetAccess (pool, &access, 1),
                              "cuMemPoolSetAccess", error))
        return FALSE;
    }
  device->async_pool = pool;
  return TRUE;
}

GTorchCudaArena *
gtorch_cuda_make_arena (GTorchCudaDevice *device, GTorchCudaLane *lane, guint pool, gboolean direct,
                        GTorchPool *owner, gboolean captured, GError **error)
{
  GTorchAllocator *allocator = allocator_of (device);
  GTorchMemorySource *source;
  GTorchAllocatorBackend backend;
  GTorchCudaArena *arena;

  g_mutex_lock (&allocator->config_lock);
  if (!device->has_vmm && allocator->config.backend == GTORCH_BACKEND_ARENAS)
    allocator->config.backend = GTORCH_BACKEND_SEGMENTS;
  backend = allocator->config.backend;
  source = owner != NULL && owner->source != NULL ? owner->source : allocator->source;
  g_atomic_int_set (&allocator->started, TRUE);
  g_mutex_unlock (&allocator->config_lock);

  /* Private pools cache memory. The device's own arenas do not if a source or the driver's pool provides
   * memory. */
  if (source != NULL || backend == GTORCH_BACKEND_ASYNC)
    direct = owner == NULL;
  if (source == NULL && backend == GTORCH_BACKEND_ASYNC && owner == NULL
      && !open_async_pool (device, error))
    return NULL;
  if (source != NULL || direct || backend != GTORCH_BACKEND_ARENAS)
    arena = gtorch_cuda_arena_new_segments (device, lane, pool, direct);
  else
    arena = gtorch_cuda_arena_new (device, lane, pool, error);
  if (arena == NULL)
    return NULL;
  gtorch_cuda_arena_set_owner (arena, owner, captured);
  gtorch_cuda_arena_set_source (arena, source);
  if (source == NULL && backend == GTORCH_BACKEND_ASYNC && owner == NULL)
    gtorch_cuda_arena_set_async (arena);
  g_ptr_array_add (device->arenas, arena);
  return arena;
}

static GTorchCudaArena *
get_arena (GTorchCudaDevice *device, GTorchCudaLane *lane, gboolean is_small, GError **error)
{
  const GTorchAllocator *allocator = allocator_of (device);
  gboolean direct = !g_atomic_int_get (&allocator->caching) || allocator->source != NULL
                    || allocator->config.backend == GTORCH_BACKEND_ASYNC;
  GTorchCudaArena **slot = is_small ? &lane->small : &lane->large;
  GTorchCudaArena *arena;

  if (G_UNLIKELY (direct))
    slot = &lane->direct[!is_small];
  arena = g_atomic_pointer_get (slot);
  if (G_LIKELY (arena != NULL))
    return arena;
  if (!gtorch_cuda_device_activate (device, error))
    return NULL;
  g_mutex_lock (&device->lock);
  if (*slot == NULL)
    {
      arena =
          gtorch_cuda_make_arena (device, lane, is_small ? GTORCH_POOL_SMALL : GTORCH_POOL_LARGE,
                                  direct, NULL, FALSE, error);
      g_atomic_pointer_set (slot, arena);
    }
  arena = *slot;
  g_mutex_unlock (&device->lock);
  return arena;
}

/* --- GTorchDeviceClass functions --- */

/* Returns whether threads cache blocks of this arena: they do for small blocks, unless each state change is
 * recorded. */
static inline gboolean
is_kept_at_hand (GTorchAllocator *allocator, GTorchCudaLane *lane, GTorchCudaArena *arena)
{
  return G_LIKELY (arena == g_atomic_pointer_get (&lane->small)
                   && g_atomic_int_get (&allocator->caching))
         && !gtorch_allocator_has_history (allocator, GTORCH_HISTORY_STATE);
}

GTorchStorage *
gtorch_cuda_alloc_from (GTorchCudaDevice *device, GTorchCudaLane *lane, GTorchCudaArena *arena,
                        gsize n_bytes, gsize size, GError **error)
{
  GTorchCudaBlock *block = NULL;
  gboolean at_hand = is_kept_at_hand (allocator_of (device), lane, arena), counted = TRUE;

  if (at_hand)
    block = gtorch_cuda_magazine_take (lane, size, n_bytes);
  if (block == NULL)
    {
      block = take (arena, size);
      if (G_UNLIKELY (block == NULL))
        block = alloc_slowly (device, arena, size, error);
      if (G_UNLIKELY (block == NULL))
        return NULL;
      counted = at_hand && gtorch_cuda_magazine_count (device, block, n_bytes);
    }
  block->storage = (GTorchStorage){
    .ref_count = 1,
    .data = block->storage.data,
    .n_bytes = n_bytes,
    .device = &device->parent_instance,
  };
  if (!counted)
    count_alloc (device, block);
  return &block->storage;
}

gsize
gtorch_cuda_round (GTorchCudaDevice *device, gsize n_bytes, gboolean *is_small)
{
  gsize size = G_LIKELY (n_bytes <= device->total_memory)
                   ? gtorch_allocator_config_round (&allocator_of (device)->config, n_bytes)
                   : n_bytes;

  *is_small = size <= SMALL_MAX;
  return size;
}

GTorchStorage *
gtorch_cuda_alloc (GTorchDevice *device, gsize n_bytes, GError **error)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);
  GTorchCudaLane *lane = gtorch_cuda_current_lane (device, error);
  GTorchCudaArena *arena;
  gboolean is_small;
  gsize size;

  if (G_UNLIKELY (lane == NULL))
    return NULL;
  if (G_UNLIKELY (gtorch_cuda_lane_capture (lane) != NULL))
    return gtorch_cuda_alloc_in (device, NULL, n_bytes, TRUE, error);
  size = gtorch_cuda_round (self, n_bytes, &is_small);
  arena = get_arena (self, lane, is_small, error);
  if (G_UNLIKELY (arena == NULL))
    return NULL;
  return gtorch_cuda_alloc_from (self, lane, arena, n_bytes, size, error);
}

void
gtorch_cuda_free (GTorchDevice *device, GTorchStorage *storage)
{
  GTorchCudaBlock *block = (GTorchCudaBlock *) storage;
  GTorchCudaLane *lane = gtorch_cuda_arena_get_lane (block->arena);
  gboolean in_use = __atomic_load_n (&block->uses, __ATOMIC_RELAXED) != 0;

  if (!in_use && block->site == NULL
      && is_kept_at_hand (allocator_of (GTORCH_CUDA_DEVICE (device)), lane, block->arena)
      && gtorch_cuda_magazine_give (lane, block))
    return;
  count_free (GTORCH_CUDA_DEVICE (device), block, TRUE, !in_use);
  if (G_UNLIKELY (in_use && gtorch_cuda_arena_is_captured (block->arena)
                  && gtorch_pool_is_capturing (owner_of (block))))
    gtorch_cuda_hold_block (GTORCH_CUDA_DEVICE (device), block);
  else if (G_UNLIKELY (in_use))
    gtorch_cuda_send_to_limbo (GTORCH_CUDA_DEVICE (device), block);
  else
    give_back (GTORCH_CUDA_DEVICE (device), block);
}

void
gtorch_cuda_note_use (GTorchStorage *storage, GTorchCudaLane *lane)
{
  const guint64 bit = gtorch_cuda_lane_bit (lane);
  guint64 *uses = storage->free_func == NULL ? &((GTorchCudaBlock *) storage)->uses
                                             : gtorch_cuda_adopted_uses (storage);

  if (uses != NULL && (__atomic_load_n (uses, __ATOMIC_RELAXED) & bit) == 0)
    __atomic_or_fetch (uses, bit, __ATOMIC_RELAXED);
}

static void
list_blocks (GTorchCudaArena *arena, gpointer data)
{
  gtorch_cuda_arena_list (arena, data);
}

gboolean
gtorch_cuda_is_used (GTorchStorage *storage, GTorchCudaLane *lane, GTorchCudaLane *but)
{
  GTorchCudaBlock *block = (GTorchCudaBlock *) storage;
  GTorchCudaLane *own;
  guint64 uses, *adopted;

  if (storage->free_func != NULL)
    {
      adopted = gtorch_cuda_adopted_uses (storage);
      uses = adopted != NULL ? __atomic_load_n (adopted, __ATOMIC_RELAXED) : 0;
      return (uses & (lane != NULL ? gtorch_cuda_lane_bit (lane) : ~gtorch_cuda_lane_bit (but)))
             != 0;
    }
  own = gtorch_cuda_arena_get_lane (block->arena);
  uses = __atomic_load_n (&block->uses, __ATOMIC_RELAXED);
  if (lane != NULL)
    return lane == own || (uses & gtorch_cuda_lane_bit (lane)) != 0;
  return own != but || (uses & ~gtorch_cuda_lane_bit (but)) != 0;
}

void
gtorch_cuda_list_blocks (GTorchDevice *device, GArray *blocks)
{
  gtorch_cuda_foreach_arena (GTORCH_CUDA_DEVICE (device), list_blocks, blocks);
}

void
gtorch_cuda_empty_cache (GTorchDevice *device)
{
  GTorchCudaDevice *self = GTORCH_CUDA_DEVICE (device);
  GTORCH_CUDA_APART;

  if (self->context == NULL || !gtorch_cuda_device_activate (self, NULL))
    return;
  gtorch_cuda_wait_all (self);
  trim_all (self, FALSE);
}

void
gtorch_cuda_settle (GTorchDevice *device)
{
  gtorch_cuda_magazines_drain (GTORCH_CUDA_DEVICE (device), NULL);
}
