/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A range of addresses for the tensors of one lane. Its blocks, used, free or without memory behind them,
 * follow each other without gaps; free ones are found by size class in constant time (two levels
 * of lists with bit maps over them: M. Masmano, I. Ripoll, A. Crespo, J. Real, "TLSF: a new dynamic
 * memory allocator for real-time systems", ECRTS 2004). What describes a block is on the host, since
 * the host cannot read the device's memory. */

#include "config.h"

#include <string.h>

#include "cuda/gtorch-cuda-private.h"
#include "gtorch-allocator-history.h"

/* Where pages cannot be mapped, or are not wanted, the blocks are of separate segments instead: pieces of
 * memory that the driver gave as such. Then there is no range, a block's offset is its address, the
 * first block of each segment has no previous one and the last no next one. */

#define GRAIN       512
#define SUB_BITS    4
#define N_SUB       (1 << SUB_BITS)
#define N_CLASSES   36 /* GRAIN << 36: 32 TiB */
#define HUGE_HANDLE (G_GUINT64_CONSTANT (64) << 20)
#define SMALL_PAGE  (G_GUINT64_CONSTANT (2) << 20)
#define LARGE_PAGE  (G_GUINT64_CONSTANT (32) << 20)

/* Sizes of segments: of small blocks; of blocks up to SEGMENT_EXACT; larger ones are rounded up. */
#define SEGMENT_SMALL_MAX (G_GUINT64_CONSTANT (1) << 20)
#define SEGMENT_SMALL     (G_GUINT64_CONSTANT (2) << 20)
#define SEGMENT_LARGE     (G_GUINT64_CONSTANT (20) << 20)
#define SEGMENT_EXACT     (G_GUINT64_CONSTANT (10) << 20)
#define SEGMENT_ROUND     (G_GUINT64_CONSTANT (2) << 20)

enum
{
  HOLE,
  FREE,
  USED,
};

typedef struct
{
  CUmemGenericAllocationHandle handle;
  gsize offset, size;
  gboolean is_oversize;
} Page;

/* In units of SMALL_PAGE; end is 0 where nothing is mapped. */
typedef struct
{
  guint32 start, end;
} Extent;

typedef struct
{
  gint64 n, n_bytes;
} Counts;

struct _GTorchCudaArena
{
  GTorchCudaDevice *device;
  GTorchCudaLane *lane;
  guint pool;
  gboolean is_segments, is_direct; /* direct: a segment for each block, and gone with it */
  GPtrArray *segments;             /* their first blocks */
  GMutex lock;
  CUdeviceptr base;
  gsize reserved, page, mapped;
  GTorchCudaBlock *first;
  GTorchCudaBlock *holes; /* by list_next */
  GArray *pages;          /* Page, by offset */
  Extent *extents;        /* for each SMALL_PAGE of addresses: the page there */
  Counts inactive,
      told; /* free blocks that share pages with others: now, and as in the statistics */
  guint64 class_map;
  guint32 sub_maps[N_CLASSES];
  GTorchCudaBlock *lists[N_CLASSES][N_SUB];
  GTorchCudaBlock *spare; /* descriptions to be used again */
};

/* --- statistics --- */

/* How much of a free block is in pages that it shares, and which therefore cannot be given back. */
static gsize
shared_bytes (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  gsize start = block->offset, end = start + block->size;
  gsize whole = start, whole_end = end; /* pages */
  const Extent *first, *last;

  if (self->is_segments)
    return block->prev != NULL || block->next != NULL ? block->size : 0;
  first = &self->extents[start / SMALL_PAGE];
  last = &self->extents[(end - 1) / SMALL_PAGE];
  if (start > first->start * SMALL_PAGE)
    whole = first->end * SMALL_PAGE;
  if (end < last->end * SMALL_PAGE)
    whole_end = last->start * SMALL_PAGE;
  return block->size - (whole_end > whole ? whole_end - whole : 0);
}

static void
count_inactive (GTorchCudaArena *self, GTorchCudaBlock *block, gint sign)
{
  gsize shared = shared_bytes (self, block);

  self->inactive.n += shared > 0 ? sign : 0;
  self->inactive.n_bytes += sign * (gint64) shared;
}

/* Between changes the numbers go up and down; only what is left at the end is told. */
static void
tell (GTorchCudaArena *self)
{
  GTorchAllocator *allocator = self->device->parent_instance.allocator;
  const gint64 n = self->inactive.n - self->told.n;
  const gint64 n_bytes = self->inactive.n_bytes - self->told.n_bytes;

  if (n == 0 && n_bytes == 0)
    return;
  self->told = self->inactive;
  gtorch_allocator_lock_stats (allocator);
  gtorch_stats_add (&allocator->stats, self->pool, GTORCH_STAT_INACTIVE_SPLIT, n);
  gtorch_stats_add (&allocator->stats, self->pool, GTORCH_STAT_INACTIVE_SPLIT_BYTES, n_bytes);
  gtorch_allocator_unlock_stats (allocator);
}

static GTorchAllocator *
allocator_of (GTorchCudaArena *self)
{
  return self->device->parent_instance.allocator;
}

/* As PyTorch has it: 0 is the default one. */
static guint64
stream_id (GTorchCudaArena *self)
{
  return self->lane->index == 0 ? 0 : (guintptr) self->lane->handle;
}

/* Of a page or a segment, which is in no use. Oversize is what it was by the limit when it came. */
static void
count_page (GTorchCudaArena *self, CUdeviceptr address, gint64 n_bytes, gboolean *oversize)
{
  GTorchAllocator *allocator = allocator_of (self);
  GTorchMemoryStats *stats = &allocator->stats;

  gtorch_allocator_lock_stats (allocator);
  gtorch_stats_add (stats, self->pool, GTORCH_STAT_SEGMENT, n_bytes > 0 ? 1 : -1);
  gtorch_stats_add (stats, self->pool, GTORCH_STAT_RESERVED_BYTES, n_bytes);
  if (n_bytes > 0)
    *oversize = stats->max_split_size >= 0 && n_bytes >= stats->max_split_size;
  if (*oversize)
    gtorch_counter_add (&stats->oversize_segments, n_bytes > 0 ? 1 : -1);
  stats->num_device_alloc += n_bytes > 0;
  stats->num_device_free += n_bytes < 0;
  gtorch_allocator_unlock_stats (allocator);
  if (gtorch_allocator_has_history (allocator, GTORCH_HISTORY_ALLOC))
    {
      GTorchMemorySite *site = n_bytes > 0 ? gtorch_memory_site_new () : NULL;
      GTorchMemoryAction action =
          self->is_segments ? GTORCH_MEMORY_SEGMENT_ALLOC : GTORCH_MEMORY_SEGMENT_MAP;

      gtorch_allocator_note (allocator, n_bytes > 0 ? action : action + 1, address, ABS (n_bytes),
                             stream_id (self), site, 0);
      gtorch_memory_site_unref (site);
    }
}

static void
set_extent (GTorchCudaArena *self, const Page *page, gboolean mapped)
{
  guint32 start = page->offset / SMALL_PAGE, end = start + page->size / SMALL_PAGE, i;

  for (i = start; i < end; i++)
    self->extents[i] = mapped ? (Extent){ start, end } : (Extent){ 0, 0 };
}

/* --- lists --- */

/* The list that a block of this size belongs into. */
static void
class_of (gsize size, guint *level, guint *sub)
{
  gsize units = size / GRAIN;
  guint bits = g_bit_storage (units) - 1;

  *level = bits;
  *sub = bits >= SUB_BITS ? (units >> (bits - SUB_BITS)) & (N_SUB - 1)
                          : (units << (SUB_BITS - bits)) & (N_SUB - 1);
}

static void
list_insert (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  GTorchCudaBlock **head = &self->holes;

  if (block->state == FREE)
    {
      guint level, sub;

      class_of (block->size, &level, &sub);
      head = &self->lists[level][sub];
      self->class_map |= G_GUINT64_CONSTANT (1) << level;
      self->sub_maps[level] |= 1u << sub;
      count_inactive (self, block, 1);
    }
  block->list_prev = NULL;
  block->list_next = *head;
  if (*head != NULL)
    (*head)->list_prev = block;
  *head = block;
}

static void
list_remove (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  if (block->state == FREE)
    count_inactive (self, block, -1);
  if (block->list_next != NULL)
    block->list_next->list_prev = block->list_prev;
  if (block->list_prev != NULL)
    block->list_prev->list_next = block->list_next;
  else if (block->state == HOLE)
    self->holes = block->list_next;
  else
    {
      guint level, sub;

      class_of (block->size, &level, &sub);
      self->lists[level][sub] = block->list_next;
      if (block->list_next == NULL)
        {
          self->sub_maps[level] &= ~(1u << sub);
          if (self->sub_maps[level] == 0)
            self->class_map &= ~(G_GUINT64_CONSTANT (1) << level);
        }
    }
  block->list_prev = block->list_next = NULL;
}

/* A free block of at least this size: the first of the next larger class, and, before memory is asked of the
 * driver, one of the same class that happens to be large enough. */
static GTorchCudaBlock *
find_free (GTorchCudaArena *self, gsize size)
{
  gsize step = size / GRAIN;
  guint level, sub, bits;
  guint64 classes;
  guint32 subs;
  GTorchCudaBlock *block;

  bits = g_bit_storage (step) - 1;
  step = bits > SUB_BITS ? (((gsize) 1 << (bits - SUB_BITS)) - 1) * GRAIN : 0;
  class_of (size + step, &level, &sub);
  subs = self->sub_maps[level] & (~0u << sub);
  if (subs == 0)
    {
      classes = level < 63 ? self->class_map & (~G_GUINT64_CONSTANT (0) << (level + 1)) : 0;
      if (classes != 0)
        {
          level = __builtin_ctzll (classes);
          subs = self->sub_maps[level];
        }
    }
  if (subs != 0)
    return self->lists[level][__builtin_ctz (subs)];

  class_of (size, &level, &sub);
  for (block = self->lists[level][sub]; block != NULL; block = block->list_next)
    if (block->size >= size)
      return block;
  return NULL;
}

/* Of a segment: the smallest that is large enough. Large blocks that shall not be split are left to large
 * requests, and not to much smaller ones. */
static GTorchCudaBlock *
find_best (GTorchCudaArena *self, gsize size)
{
  const GTorchAllocatorConfig *config = &allocator_of (self)->config;
  const gsize max_split = config->max_split_size, rounding = config->max_non_split_rounding;
  GTorchCudaBlock *block, *best = NULL;
  guint level, sub, first_sub;

  class_of (size, &level, &first_sub);
  for (; level < N_CLASSES && best == NULL; level++, first_sub = 0)
    for (sub = first_sub; sub < N_SUB && best == NULL; sub++)
      for (block = self->lists[level][sub]; block != NULL; block = block->list_next)
        if (block->size >= size && (best == NULL || block->size < best->size)
            && !(size < max_split && block->size >= max_split)
            && !(size >= max_split && block->size >= size + rounding))
          best = block;
  return best;
}

static gboolean
shall_split (GTorchCudaArena *self, GTorchCudaBlock *block, gsize size)
{
  const gsize max_split = allocator_of (self)->config.max_split_size, rest = block->size - size;

  if (!self->is_segments || self->pool == GTORCH_POOL_SMALL)
    return rest >= GRAIN;
  return size < max_split && rest > SEGMENT_SMALL_MAX;
}

/* --- blocks --- */

static GTorchCudaBlock *
block_new (GTorchCudaArena *self, gsize offset, gsize size, guint state)
{
  GTorchCudaBlock *block = self->spare;

  if (block != NULL)
    self->spare = block->next;
  else
    block = g_new (GTorchCudaBlock, 1);
  memset (block, 0, sizeof *block);
  block->arena = self;
  block->offset = offset;
  block->size = size;
  block->state = state;
  return block;
}

static void
block_drop (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  block->next = self->spare;
  self->spare = block;
}

/* Cuts the block after `size` bytes; gives what is behind, of the same state and in no list. */
static GTorchCudaBlock *
block_split (GTorchCudaArena *self, GTorchCudaBlock *block, gsize size)
{
  GTorchCudaBlock *rest = block_new (self, block->offset + size, block->size - size, block->state);

  rest->prev = block;
  rest->next = block->next;
  if (rest->next != NULL)
    rest->next->prev = rest;
  block->next = rest;
  block->size = size;
  return rest;
}

/* Joins the block, which is in no list, with neighbours of its state, and puts it into its list. */
static GTorchCudaBlock *
block_settle (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  GTorchCudaBlock *other = block->next;

  if (other != NULL && other->state == block->state)
    {
      list_remove (self, other);
      block->size += other->size;
      block->next = other->next;
      if (block->next != NULL)
        block->next->prev = block;
      block_drop (self, other);
    }
  other = block->prev;
  if (other != NULL && other->state == block->state)
    {
      list_remove (self, other);
      other->size += block->size;
      other->next = block->next;
      if (other->next != NULL)
        other->next->prev = other;
      block_drop (self, block);
      block = other;
    }
  list_insert (self, block);
  return block;
}

/* --- the arena --- */

GTorchCudaArena *
gtorch_cuda_arena_new (GTorchCudaDevice *device, GTorchCudaLane *lane, guint pool, GError **error)
{
  GTorchCudaArena *self = g_new0 (GTorchCudaArena, 1);
  gsize n_bytes = device->total_memory / 8 * 9; /* some for gaps */

  self->device = device;
  self->lane = lane;
  self->pool = pool;
  self->page = pool == GTORCH_POOL_SMALL ? SMALL_PAGE : LARGE_PAGE;
  self->reserved = (n_bytes + self->page - 1) / self->page * self->page;
  if (!gtorch_cuda_check (gtorch_cuda.cuMemAddressReserve (&self->base, self->reserved, SMALL_PAGE,
                                                           0, 0),
                          "cuMemAddressReserve", error))
    {
      g_free (self);
      return NULL;
    }
  g_mutex_init (&self->lock);
  self->pages = g_array_new (FALSE, FALSE, sizeof (Page));
  self->extents = g_new0 (Extent, self->reserved / SMALL_PAGE);
  self->first = block_new (self, 0, self->reserved, HOLE);
  list_insert (self, self->first);
  return self;
}

GTorchCudaArena *
gtorch_cuda_arena_new_segments (GTorchCudaDevice *device, GTorchCudaLane *lane, guint pool,
                                gboolean direct)
{
  GTorchCudaArena *self = g_new0 (GTorchCudaArena, 1);

  self->device = device;
  self->lane = lane;
  self->pool = pool;
  self->is_segments = TRUE;
  self->is_direct = direct;
  self->reserved = (gsize) 1 << 45; /* no request is as large */
  g_mutex_init (&self->lock);
  self->pages = g_array_new (FALSE, FALSE, sizeof (Page));
  self->segments = g_ptr_array_new ();
  return self;
}

GTorchCudaLane *
gtorch_cuda_arena_get_lane (GTorchCudaArena *self)
{
  return self->lane;
}

guint
gtorch_cuda_arena_get_pool (GTorchCudaArena *self)
{
  return self->pool;
}

GMutex *
gtorch_cuda_arena_get_lock (GTorchCudaArena *self)
{
  return &self->lock;
}

gsize
gtorch_cuda_arena_get_mapped (GTorchCudaArena *self)
{
  return self->mapped;
}

GTorchCudaBlock *
gtorch_cuda_arena_take (GTorchCudaArena *self, gsize n_bytes)
{
  gsize size = (MAX (n_bytes, 1) + GRAIN - 1) & ~(gsize) (GRAIN - 1);
  GTorchCudaBlock *block;

  if (n_bytes > self->reserved) /* there are no lists for such sizes */
    return NULL;
  block = self->is_segments ? find_best (self, size) : find_free (self, size);
  if (block == NULL)
    return NULL;
  list_remove (self, block);
  if (block->size > size && shall_split (self, block, size))
    list_insert (self, block_split (self, block, size)); /* what follows is not free */
  block->state = USED;
  tell (self);
  block->storage.data = (gpointer) (guintptr) (self->base + block->offset);
  return block;
}

/* --- segments --- */

static CUresult
segment_new (GTorchCudaArena *self, gsize n_bytes)
{
  gsize size = n_bytes;
  gboolean oversize = FALSE;
  CUdeviceptr address = 0;
  GTorchCudaBlock *block;
  CUresult result;

  if (!self->is_direct && self->pool == GTORCH_POOL_SMALL)
    size = SEGMENT_SMALL;
  else if (!self->is_direct && n_bytes < SEGMENT_EXACT)
    size = SEGMENT_LARGE;
  else if (!self->is_direct)
    size = (n_bytes + SEGMENT_ROUND - 1) / SEGMENT_ROUND * SEGMENT_ROUND;
  if (!gtorch_allocator_promise (allocator_of (self), size, TRUE))
    return CUDA_ERROR_OUT_OF_MEMORY;
  result = gtorch_cuda.cuMemAlloc (&address, size);
  if (result == CUDA_SUCCESS)
    count_page (self, address, size, &oversize);
  gtorch_allocator_promise (allocator_of (self), size, FALSE);
  if (result != CUDA_SUCCESS)
    return result;
  self->mapped += size;
  block = block_new (self, address, size, FREE);
  block->in_oversize = oversize;
  g_ptr_array_add (self->segments, block);
  list_insert (self, block);
  return CUDA_SUCCESS;
}

/* Gives a segment back that is one free block; FALSE if the driver does not take it. */
static gboolean
segment_drop (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  if (block->prev != NULL || block->next != NULL
      || gtorch_cuda.cuMemFree (block->offset) != CUDA_SUCCESS)
    return FALSE;
  list_remove (self, block);
  g_ptr_array_remove_fast (self->segments, block);
  self->mapped -= block->size;
  count_page (self, block->offset, -(gint64) block->size, &block->in_oversize);
  block_drop (self, block);
  return TRUE;
}

static void
segments_trim (GTorchCudaArena *self)
{
  guint i = 0;

  while (i < self->segments->len)
    {
      GTorchCudaBlock *block = self->segments->pdata[i];

      if (block->state != FREE || !segment_drop (self, block))
        i++;
    }
}

void
gtorch_cuda_arena_give (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  block->state = FREE;
  block = block_settle (self, block);
  if (G_UNLIKELY (self->is_direct) && gtorch_cuda_device_activate (self->device, NULL))
    segment_drop (self, block);
  tell (self);
}

/* stuck: the page cannot be used, nor taken away again. */
static CUresult
map_page (GTorchCudaArena *self, gsize offset, gsize size, gboolean *stuck)
{
  CUmemAllocationProp properties = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = { CU_MEM_LOCATION_TYPE_DEVICE, self->device->handle },
  };
  CUmemAccessDesc access[1 + GTORCH_CUDA_MAX_DEVICES] = {
    { properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
  };
  guint readers = __atomic_load_n (&self->device->readers, __ATOMIC_SEQ_CST);
  Page page = { 0, offset, size, FALSE };
  CUresult result;
  guint i, n = 1;

  for (; readers != 0; readers &= readers - 1, n++)
    {
      access[n] = access[0];
      access[n].location.id = __builtin_ctz (readers);
    }
  *stuck = FALSE;
  if (!gtorch_allocator_promise (allocator_of (self), size, TRUE))
    return CUDA_ERROR_OUT_OF_MEMORY;
  properties.allocFlags.gpuDirectRDMACapable = 1;
  result = gtorch_cuda.cuMemCreate (&page.handle, size, &properties, 0);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
    { /* not every system can share memory with other processes or cards */
      properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
      properties.allocFlags.gpuDirectRDMACapable = 0;
      result = gtorch_cuda.cuMemCreate (&page.handle, size, &properties, 0);
    }
  if (result != CUDA_SUCCESS)
    {
      gtorch_allocator_promise (allocator_of (self), size, FALSE);
      return result;
    }
  result = gtorch_cuda.cuMemMap (self->base + offset, size, 0, page.handle, 0);
  if (result == CUDA_SUCCESS)
    {
      result = gtorch_cuda.cuMemSetAccess (self->base + offset, size, access, n);
      if (result != CUDA_SUCCESS)
        *stuck = gtorch_cuda.cuMemUnmap (self->base + offset, size) != CUDA_SUCCESS;
    }
  if (result != CUDA_SUCCESS && !*stuck)
    {
      gtorch_cuda.cuMemRelease (page.handle);
      gtorch_allocator_promise (allocator_of (self), size, FALSE);
      return result;
    }
  for (i = self->pages->len; i > 0 && g_array_index (self->pages, Page, i - 1).offset > offset;)
    i--;
  count_page (self, self->base + offset, size, &page.is_oversize);
  g_array_insert_val (self->pages, i, page);
  set_extent (self, &page, TRUE);
  self->mapped += size;
  gtorch_allocator_promise (allocator_of (self), size, FALSE);
  return result;
}

CUresult
gtorch_cuda_arena_allow (GTorchCudaArena *self, GTorchCudaDevice *reader)
{
  const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, reader->handle },
                                   CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  CUresult result = CUDA_SUCCESS;
  guint i;

  for (i = 0; i < self->pages->len && result == CUDA_SUCCESS; i++)
    {
      const Page *page = &g_array_index (self->pages, Page, i);

      result = gtorch_cuda.cuMemSetAccess (self->base + page->offset, page->size, &access, 1);
    }
  return result;
}

static CUresult
grow (GTorchCudaArena *self, gsize n_bytes, gsize page)
{
  gsize size = (MAX (n_bytes, 1) + GRAIN - 1) & ~(gsize) (GRAIN - 1);
  GTorchCudaBlock *hole, *best = NULL;
  gsize best_need = G_MAXSIZE, need, step, done;

  /* The hole that needs the fewest new pages: free memory just before one counts, unless the request is so
   * large that it shall be one piece for whoever registers memory. */
  for (hole = self->holes; hole != NULL; hole = hole->list_next)
    {
      gsize before = hole->prev != NULL && hole->prev->state == FREE && size < HUGE_HANDLE
                         ? MIN (hole->prev->size, size - GRAIN)
                         : 0;

      step = size >= HUGE_HANDLE ? SMALL_PAGE : page;
      need = (size - before + step - 1) / step * step;
      if (need <= hole->size && need < best_need)
        {
          best = hole;
          best_need = need;
        }
    }
  if (best == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;

  list_remove (self, best);
  hole = best->size > best_need ? block_split (self, best, best_need) : NULL;
  if (hole != NULL)
    list_insert (self, hole);
  step = size >= HUGE_HANDLE ? best_need : page;
  for (done = 0; done < best_need; done += step)
    {
      gsize part = MIN (step, best_need - done);
      gboolean stuck;
      CUresult result = map_page (self, best->offset + done, part, &stuck);

      if (result == CUDA_SUCCESS)
        continue;
      if (done > 0)
        {
          hole = block_split (self, best, done);
          best->state = FREE;
          block_settle (self, best);
          best = hole;
        }
      if (stuck)
        { /* nobody's for ever */
          best->state = USED;
          if (part == best->size)
            return result;
          best = block_split (self, best, part);
          best->state = HOLE;
        }
      block_settle (self, best); /* still a hole */
      return result;
    }
  best->state = FREE;
  block_settle (self, best);
  return CUDA_SUCCESS;
}

CUresult
gtorch_cuda_arena_grow (GTorchCudaArena *self, gsize n_bytes)
{
  CUresult result;

  if (self->is_segments)
    result = segment_new (self, (MAX (n_bytes, 1) + GRAIN - 1) & ~(gsize) (GRAIN - 1));
  else
    {
      result = grow (self, n_bytes, self->page);
      if (result == CUDA_ERROR_OUT_OF_MEMORY && self->page > SMALL_PAGE && n_bytes < HUGE_HANDLE)
        result = grow (self, n_bytes, SMALL_PAGE); /* there may be room for less */
    }
  tell (self);
  return result;
}

gsize
gtorch_cuda_arena_trim (GTorchCudaArena *self)
{
  GTorchCudaBlock *block = self->first;
  gsize before = self->mapped;
  guint i = 0;

  if (self->is_segments)
    segments_trim (self);
  while (block != NULL && i < self->pages->len)
    {
      Page page = g_array_index (self->pages, Page, i);

      if (page.offset < block->offset || block->state != FREE)
        {
          if (page.offset < block->offset + block->size)
            i++; /* begins in a used block, or before the free one */
          else
            block = block->next;
          continue;
        }
      if (page.offset >= block->offset + block->size)
        {
          block = block->next;
          continue;
        }
      if (page.offset + page.size > block->offset + block->size)
        {
          i++;
          continue;
        }

      if (gtorch_cuda.cuMemUnmap (self->base + page.offset, page.size) != CUDA_SUCCESS)
        {
          i++;
          continue;
        }
      gtorch_cuda.cuMemRelease (page.handle);
      list_remove (self, block); /* counted with the page */
      self->mapped -= page.size;
      g_array_remove_index (self->pages, i);
      set_extent (self, &page, FALSE);
      count_page (self, self->base + page.offset, -(gint64) page.size, &page.is_oversize);

      if (page.offset > block->offset)
        {
          GTorchCudaBlock *front = block;

          block = block_split (self, front, page.offset - front->offset);
          list_insert (self, front);
        }
      if (page.size < block->size)
        list_insert (self, block_split (self, block, page.size));
      block->state = HOLE;
      block = block_settle (self, block);
      if (block->next != NULL)
        block = block->next;
    }
  tell (self);
  return before - self->mapped;
}

gsize
gtorch_cuda_arena_largest (GTorchCudaArena *self)
{
  GTorchCudaBlock *block;
  gsize largest = 0;
  guint level, sub;

  if (self->class_map == 0)
    return 0;
  level = g_bit_storage (self->class_map) - 1;
  sub = g_bit_storage (self->sub_maps[level]) - 1;
  for (block = self->lists[level][sub]; block != NULL; block = block->list_next)
    largest = MAX (largest, block->size);
  return largest;
}

static void
list_chain (GTorchCudaArena *self, GTorchCudaBlock *block, GArray *blocks)
{
  gboolean begins = TRUE;

  for (; block != NULL; block = block->next)
    {
      GTorchBlockInfo info = {
        .address = self->base + block->offset,
        .size = block->size,
        .stream = stream_id (self),
        .pool = self->pool,
        .begins_segment = begins,
        .is_expandable = !self->is_segments,
      };

      begins = block->state == HOLE;
      if (block->state == HOLE)
        continue;
      if (block->state == USED)
        {
          info.state = block->use;
          info.requested = block->requested;
          info.site = gtorch_memory_site_ref (block->site);
        }
      g_array_append_val (blocks, info);
    }
}

void
gtorch_cuda_arena_list (GTorchCudaArena *self, GArray *blocks)
{
  guint i;

  gtorch_cuda_lock_counts (self->device);
  list_chain (self, self->first, blocks);
  for (i = 0; self->is_segments && i < self->segments->len; i++)
    list_chain (self, self->segments->pdata[i], blocks);
  gtorch_cuda_unlock_counts (self->device);
}

/* What a chain of blocks, from the address on, breaks of the rules; its end, or 0. */
static gsize
check_chain (GTorchCudaArena *self, GTorchCudaBlock *block, gsize offset, gsize *n_free,
             gsize *mapped, Counts *inactive)
{
  GTorchCudaBlock *prev = NULL;

  for (; block != NULL; prev = block, block = block->next)
    {
      if (block->prev != prev || block->offset != offset || block->size == 0
          || block->size % GRAIN != 0 || block->arena != self)
        return 0;
      if (prev != NULL && prev->state == block->state && block->state != USED)
        return 0; /* not joined */
      offset += block->size;
      *n_free += block->state == FREE;
      *mapped += block->state == HOLE ? 0 : block->size;
      if (block->state == FREE)
        {
          gsize shared = shared_bytes (self, block);

          inactive->n += shared > 0;
          inactive->n_bytes += shared;
        }
    }
  return offset;
}

gboolean
gtorch_cuda_arena_is_sound (GTorchCudaArena *self)
{
  GTorchCudaBlock *block;
  gsize mapped = 0, in_lists = 0, listed = 0;
  Counts inactive = { 0, 0 };
  guint level, sub, i;

  if (self->is_segments)
    {
      for (i = 0; i < self->segments->len; i++)
        {
          block = self->segments->pdata[i];
          if (check_chain (self, block, block->offset, &in_lists, &mapped, &inactive) == 0)
            return FALSE;
        }
    }
  else if (check_chain (self, self->first, 0, &in_lists, &mapped, &inactive) != self->reserved)
    return FALSE;
  if (inactive.n != self->told.n || inactive.n_bytes != self->told.n_bytes
      || mapped != self->mapped)
    return FALSE;
  for (level = 0; level < N_CLASSES; level++)
    for (sub = 0; sub < N_SUB; sub++)
      {
        gboolean bit = (self->sub_maps[level] >> sub) & 1;

        if (bit != (self->lists[level][sub] != NULL) || (bit && !((self->class_map >> level) & 1)))
          return FALSE;
        for (block = self->lists[level][sub]; block != NULL; block = block->list_next, listed++)
          {
            guint l, s;

            class_of (block->size, &l, &s);
            if (l != level || s != sub || block->state != FREE)
              return FALSE;
          }
      }
  for (i = 0, mapped = 0; i < self->pages->len; i++)
    {
      Page *page = &g_array_index (self->pages, Page, i);

      if (i > 0 && page[-1].offset + page[-1].size > page->offset)
        return FALSE;
      mapped += page->size;
    }
  return listed == in_lists && (self->is_segments || mapped == self->mapped);
}
