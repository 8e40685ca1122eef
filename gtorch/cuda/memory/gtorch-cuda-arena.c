/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* An arena: a range of addresses for the tensors of one lane. Its blocks, used, free or unmapped (holes),
 * cover it without gaps; free ones are found by size class in constant time (two levels of lists with bit
 * maps over them: M. Masmano, I. Ripoll, A. Crespo, J. Real, "TLSF: a new dynamic memory allocator for
 * real-time systems", ECRTS 2004). Block descriptors are in host memory, since the host cannot read the
 * device's memory. */

#include "config.h"

#include <string.h>

#include "cuda/memory/gtorch-cuda-arena-private.h"
#include "cuda/driver/gtorch-cuda-joint-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"
#include "cuda/ops/gtorch-cuda-recording-private.h"
#include "memory/gtorch-allocator-history.h"

/* Where pages cannot be mapped, or are not wanted, an arena consists of separate segments instead:
 * allocations of the driver. Such an arena has no address range: a block's offset is its address, the first
 * block of each segment has no previous one, and the last has no next one. */

#define LARGE_PAGE (G_GUINT64_CONSTANT (32) << 20)

/* The sizes of segments: SEGMENT_SMALL for small blocks, SEGMENT_LARGE for blocks below SEGMENT_EXACT; for
 * larger blocks the size is rounded up to a multiple of SEGMENT_ROUND. */
#define SEGMENT_SMALL_MAX (G_GUINT64_CONSTANT (1) << 20)
#define SEGMENT_SMALL     (G_GUINT64_CONSTANT (2) << 20)
#define SEGMENT_LARGE     (G_GUINT64_CONSTANT (20) << 20)
#define SEGMENT_EXACT     (G_GUINT64_CONSTANT (10) << 20)
#define SEGMENT_ROUND     (G_GUINT64_CONSTANT (2) << 20)

/* --- statistics --- */

gsize
gtorch_cuda_arena_shared_bytes (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  gsize start = block->offset, end = start + block->size;
  gsize whole = start, whole_end = end; /* the range of pages that lie entirely in the block */
  const Extent *first, *last;

  if (self->is_segments)
    return block->prev != NULL || block->next != NULL ? block->size : 0;
  first = &self->extents[start / GTORCH_CUDA_PAGE];
  last = &self->extents[(end - 1) / GTORCH_CUDA_PAGE];
  if (start > first->start * GTORCH_CUDA_PAGE)
    whole = first->end * GTORCH_CUDA_PAGE;
  if (end < last->end * GTORCH_CUDA_PAGE)
    whole_end = last->start * GTORCH_CUDA_PAGE;
  return block->size - (whole_end > whole ? whole_end - whole : 0);
}

static void
count_inactive (GTorchCudaArena *self, GTorchCudaBlock *block, gint sign)
{
  gsize shared = gtorch_cuda_arena_shared_bytes (self, block);

  self->inactive.n += shared > 0 ? sign : 0;
  self->inactive.n_bytes += sign * (gint64) shared;
}

/* Adds the changes of `inactive` to the statistics. The counts go up and down during an operation; only the
 * difference at its end is added. */
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

static void
note_page (GTorchCudaArena *self, CUdeviceptr address, gint64 n_bytes)
{
  GTorchAllocator *allocator = gtorch_cuda_arena_allocator (self);

  if (self->owner != NULL)
    {
      gtorch_allocator_lock_stats (allocator);
      gtorch_pool_count_reserved (self->owner, self->pool, n_bytes);
      allocator->private_reserved += n_bytes;
      gtorch_allocator_unlock_stats (allocator);
    }
  if (gtorch_allocator_has_history (allocator, GTORCH_HISTORY_ALLOC))
    {
      GTorchMemorySite *site = n_bytes > 0 ? gtorch_memory_site_new (FALSE) : NULL;
      GTorchMemoryAction action =
          self->is_segments ? GTORCH_MEMORY_SEGMENT_ALLOC : GTORCH_MEMORY_SEGMENT_MAP;

      gtorch_allocator_note (allocator, n_bytes > 0 ? action : action + 1, address, ABS (n_bytes),
                             gtorch_cuda_arena_stream_id (self), gtorch_cuda_arena_pool_id (self),
                             site, 0);
      gtorch_memory_site_unref (site);
    }
}

/* Counts a page or segment that is entirely free, or with a negative n_bytes its release. A page is
 * oversize by the limit that is in force when it is added. */
static void
count_page (GTorchAllocator *allocator, guint pool, gint64 n_bytes, gboolean *oversize)
{
  GTorchMemoryStats *stats = &allocator->stats;

  gtorch_allocator_lock_stats (allocator);
  gtorch_stats_add (stats, pool, GTORCH_STAT_SEGMENT, n_bytes > 0 ? 1 : -1);
  gtorch_stats_add (stats, pool, GTORCH_STAT_RESERVED_BYTES, n_bytes);
  if (n_bytes > 0)
    *oversize = stats->max_split_size >= 0 && n_bytes >= stats->max_split_size;
  if (*oversize)
    gtorch_counter_add (&stats->oversize_segments, n_bytes > 0 ? 1 : -1);
  stats->num_device_alloc += n_bytes > 0;
  stats->num_device_free += n_bytes < 0;
  gtorch_allocator_unlock_stats (allocator);
}

static void
set_extent (GTorchCudaArena *self, const Page *page, gboolean mapped)
{
  guint32 start = page->offset / GTORCH_CUDA_PAGE, end = start + page->size / GTORCH_CUDA_PAGE, i;

  for (i = start; i < end; i++)
    self->extents[i] = mapped ? (Extent){ start, end } : (Extent){ 0, 0 };
}

/* --- lists --- */

static void
list_insert (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  GTorchCudaBlock **head = &self->holes;

  if (block->state == FREE)
    {
      guint level, sub;

      gtorch_cuda_arena_class (block->size, &level, &sub);
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

      gtorch_cuda_arena_class (block->size, &level, &sub);
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

/* Finds a free block of at least this size: the first of the next larger class, or else one of the same
 * class that happens to be large enough, before the driver is asked for memory. */
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
  gtorch_cuda_arena_class (size + step, &level, &sub);
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

  gtorch_cuda_arena_class (size, &level, &sub);
  for (block = self->lists[level][sub]; block != NULL; block = block->list_next)
    if (block->size >= size)
      return block;
  return NULL;
}

/* Finds the smallest free block of a segment that is large enough. Large blocks that must not be split are
 * reserved for requests of nearly their size. */
static GTorchCudaBlock *
find_best (GTorchCudaArena *self, gsize size)
{
  const GTorchAllocatorConfig *config = &gtorch_cuda_arena_allocator (self)->config;
  const gsize max_split = config->max_split_size, rounding = config->max_non_split_rounding;
  GTorchCudaBlock *block, *best = NULL;
  guint level, sub, first_sub;

  gtorch_cuda_arena_class (size, &level, &first_sub);
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
  const gsize max_split = gtorch_cuda_arena_allocator (self)->config.max_split_size,
              rest = block->size - size;

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

/* Cuts the block after `size` bytes; returns the rest, which has the same state and is in no list. */
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

/* Merges the block, which is in no list, with neighbours of its state, and inserts the result into its
 * list. */
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
  gsize n_bytes = device->total_memory * 2; /* addresses cost nothing; allow for fragmentation */

  self->device = device;
  self->lane = lane;
  self->pool = pool;
  self->page = pool == GTORCH_POOL_SMALL ? GTORCH_CUDA_PAGE : LARGE_PAGE;
  self->reserved = (n_bytes + self->page - 1) / self->page * self->page;
  if (!gtorch_cuda_check (gtorch_cuda.cuMemAddressReserve (&self->base, self->reserved,
                                                           GTORCH_CUDA_PAGE, 0, 0),
                          "cuMemAddressReserve", error))
    {
      g_free (self);
      return NULL;
    }
  g_mutex_init (&self->lock);
  self->pages = g_array_new (FALSE, FALSE, sizeof (Page));
  self->extents = g_new0 (Extent, self->reserved / GTORCH_CUDA_PAGE);
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
  self->reserved = (gsize) 1 << 45; /* larger than any request */
  g_mutex_init (&self->lock);
  self->pages = g_array_new (FALSE, FALSE, sizeof (Page));
  self->segments = g_ptr_array_new ();
  return self;
}

void
gtorch_cuda_arena_free (GTorchCudaArena *self)
{
  GTorchCudaBlock *block;

  g_assert (self->mapped == 0);
  if (!self->is_segments)
    {
      gtorch_cuda.cuMemAddressFree (self->base, self->reserved);
      block_drop (self, self->first); /* a single hole */
    }
  while ((block = self->spare) != NULL)
    {
      self->spare = block->next;
      g_free (block);
    }
  if (self->segments != NULL)
    g_ptr_array_unref (self->segments);
  g_array_unref (self->pages);
  g_free (self->extents);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
gtorch_cuda_arena_set_owner (GTorchCudaArena *self, GTorchPool *owner, gboolean captured)
{
  self->owner = owner;
  self->is_captured = captured;
}

void
gtorch_cuda_arena_set_async (GTorchCudaArena *self)
{
  self->is_async = TRUE;
}

void
gtorch_cuda_arena_set_source (GTorchCudaArena *self, GTorchMemorySource *source)
{
  self->source = source;
}

GTorchMemorySource *
gtorch_cuda_arena_get_source (GTorchCudaArena *self)
{
  return self->source;
}

GTorchPool *
gtorch_cuda_arena_get_owner (GTorchCudaArena *self)
{
  return self->owner;
}

gboolean
gtorch_cuda_arena_is_captured (GTorchCudaArena *self)
{
  return self->is_captured;
}

G_STATIC_ASSERT (G_STRUCT_OFFSET (GTorchCudaArena, lane) == 0);

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

  if (n_bytes > self->reserved) /* no size class is that large */
    return NULL;
  block = self->is_segments ? find_best (self, size) : find_free (self, size);
  if (block == NULL)
    return NULL;
  list_remove (self, block);
  if (block->size > size && shall_split (self, block, size))
    /* block_split() has put the rest into no list */
    list_insert (self, block_split (self, block, size));
  block->state = USED;
  tell (self);
  block->storage.data = (gpointer) (guintptr) (self->base + block->offset);
  return block;
}

/* --- segments --- */

gsize
gtorch_cuda_arena_segment_size (GTorchCudaArena *self, gsize n_bytes)
{
  const gsize size = (MAX (n_bytes, 1) + GRAIN - 1) & ~(gsize) (GRAIN - 1);
  const gsize max_split = gtorch_cuda_arena_allocator (self)->config.max_split_size;
  const gsize rounded = (size + SEGMENT_ROUND - 1) / SEGMENT_ROUND * SEGMENT_ROUND;

  if (self->is_direct)
    return size;
  if (self->pool == GTORCH_POOL_SMALL)
    return SEGMENT_SMALL;
  if (size < SEGMENT_EXACT)
    return SEGMENT_LARGE;
  /* An oversize segment can only serve oversize requests, so do not round up beyond the limit. */
  return size < max_split && rounded >= max_split ? size : rounded;
}

void
gtorch_cuda_arena_add_segment (GTorchCudaArena *self, guint64 address, gsize size)
{
  GTorchCudaBlock *block = block_new (self, address, size, FREE);

  count_page (gtorch_cuda_arena_allocator (self), self->pool, size, &block->in_oversize);
  note_page (self, address, size);
  self->mapped += size;
  block->segment = self->segments->len;
  g_ptr_array_add (self->segments, block);
  list_insert (self, block);
}

const gchar *
gtorch_cuda_arena_get_function (GTorchCudaArena *self)
{
  if (!self->is_segments)
    return "cuMemCreate";
  return self->is_async ? "cuMemAllocAsync" : "cuMemAlloc";
}

static CUresult
segment_new (GTorchCudaArena *self, gsize n_bytes)
{
  const gsize size = gtorch_cuda_arena_segment_size (self, n_bytes);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUdeviceptr address = 0;
  CUresult result;

  if (!gtorch_allocator_promise (gtorch_cuda_arena_allocator (self), size, TRUE))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (self->is_async)
    result = gtorch_cuda.cuMemAllocAsync (&address, size, self->lane->handle);
  else
    { /* the program may have begun a capture by itself, and captures forbid cuMemAlloc() */
      gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
      result = gtorch_cuda.cuMemAlloc (&address, size);
      gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
    }
  if (result == CUDA_SUCCESS)
    gtorch_cuda_arena_add_segment (self, address, size);
  gtorch_allocator_promise (gtorch_cuda_arena_allocator (self), size, FALSE);
  return result;
}

static CUresult
segment_free (GTorchCudaArena *self, CUdeviceptr address)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result;

  if (self->is_async)
    return gtorch_cuda.cuMemFreeAsync (address, self->lane->handle);
  gtorch_cuda_stall_begin ();
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  result = gtorch_cuda.cuMemFree (address);
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  gtorch_cuda_stall_end ();
  return result;
}

/* Releases the block's segment; returns FALSE if other blocks share the segment or the driver cannot free
 * it. */
static gboolean
segment_drop (GTorchCudaArena *self, GTorchCudaBlock *block)
{
  if (block->prev != NULL || block->next != NULL)
    return FALSE;
  if (self->source != NULL)
    gtorch_cuda_note_released (self->device, self->source, block->offset, block->size,
                               self->lane->handle);
  else if (segment_free (self, block->offset) != CUDA_SUCCESS)
    return FALSE;
  list_remove (self, block);
  g_ptr_array_remove_index_fast (self->segments, block->segment);
  if (block->segment < self->segments->len)
    ((GTorchCudaBlock *) self->segments->pdata[block->segment])->segment = block->segment;
  self->mapped -= block->size;
  count_page (gtorch_cuda_arena_allocator (self), self->pool, -(gint64) block->size,
              &block->in_oversize);
  note_page (self, block->offset, -(gint64) block->size);
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

/* Maps the page at its offset. *stuck becomes TRUE if the page is inaccessible there and cannot be unmapped
 * either. */
static CUresult
place_page (GTorchCudaArena *self, const Page *page, gboolean *stuck)
{
  CUmemAccessDesc access[1 + GTORCH_CUDA_MAX_DEVICES] = {
    { { CU_MEM_LOCATION_TYPE_DEVICE, self->device->handle }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
  };
  guint readers = __atomic_load_n (&self->device->readers, __ATOMIC_SEQ_CST);
  const CUdeviceptr address = self->base + page->offset;
  CUresult result;
  guint n = 1;

  for (; readers != 0; readers &= readers - 1, n++)
    {
      access[n] = access[0];
      access[n].location.id = __builtin_ctz (readers);
    }
  *stuck = FALSE;
  result = gtorch_cuda.cuMemMap (address, page->size, 0, page->handle, 0);
  if (result == CUDA_SUCCESS)
    {
      result = gtorch_cuda.cuMemSetAccess (address, page->size, access, n);
      if (result != CUDA_SUCCESS)
        *stuck = gtorch_cuda.cuMemUnmap (address, page->size) != CUDA_SUCCESS;
    }
  return result;
}

static void
insert_page (GTorchCudaArena *self, const Page *page)
{
  guint i;

  for (i = self->pages->len;
       i > 0 && g_array_index (self->pages, Page, i - 1).offset > page->offset;)
    i--;
  g_array_insert_val (self->pages, i, *page);
  set_extent (self, page, TRUE);
  self->mapped += page->size;
  note_page (self, self->base + page->offset, page->size);
}

static CUresult
new_page (GTorchCudaArena *self, gsize offset, gsize size, gboolean *stuck)
{
  CUmemAllocationProp properties = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = { CU_MEM_LOCATION_TYPE_DEVICE, self->device->handle },
  };
  GTorchAllocator *allocator = gtorch_cuda_arena_allocator (self);
  Page page = { 0, offset, size, FALSE };
  CUresult result;

  *stuck = FALSE;
  if (!gtorch_allocator_promise (allocator, size, TRUE))
    return CUDA_ERROR_OUT_OF_MEMORY;
  properties.allocFlags.gpuDirectRDMACapable = 1;
  result = gtorch_cuda.cuMemCreate (&page.handle, size, &properties, 0);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
    { /* not every system can share memory with other processes or devices */
      properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
      properties.allocFlags.gpuDirectRDMACapable = 0;
      result = gtorch_cuda.cuMemCreate (&page.handle, size, &properties, 0);
    }
  if (result == CUDA_SUCCESS)
    {
      result = place_page (self, &page, stuck);
      if (result == CUDA_SUCCESS || *stuck)
        {
          count_page (allocator, self->pool, size, &page.is_oversize);
          insert_page (self, &page);
        }
      else
        gtorch_cuda.cuMemRelease (page.handle);
    }
  gtorch_allocator_promise (allocator, size, FALSE);
  return result;
}

/* Moves a lent page to the offset. Afterwards lent->size is 0, also if the page is stuck, unless the page
 * could not be mapped. */
static CUresult
move_page (GTorchCudaArena *self, gsize offset, GTorchCudaPage *lent, gboolean *stuck)
{
  GTorchMemoryStats *stats = &gtorch_cuda_arena_allocator (self)->stats;
  Page page = { lent->handle, offset, lent->size, lent->is_oversize };
  CUresult result = place_page (self, &page, stuck);

  if (result != CUDA_SUCCESS && !*stuck)
    return result;
  gtorch_allocator_lock_stats (gtorch_cuda_arena_allocator (self));
  gtorch_counter_add (&stats->counters[lent->pool][GTORCH_STAT_SEGMENT], -1);
  gtorch_counter_add (&stats->counters[self->pool][GTORCH_STAT_SEGMENT], 1);
  gtorch_counter_add (&stats->counters[lent->pool][GTORCH_STAT_RESERVED_BYTES],
                      -(gint64) page.size);
  gtorch_counter_add (&stats->counters[self->pool][GTORCH_STAT_RESERVED_BYTES], page.size);
  gtorch_allocator_unlock_stats (gtorch_cuda_arena_allocator (self));
  insert_page (self, &page);
  lent->size = 0;
  return result;
}

CUresult
gtorch_cuda_arena_allow (GTorchCudaArena *self, GTorchCudaDevice *reader)
{
  const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, reader->handle },
                                   CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  CUresult result = CUDA_SUCCESS;
  guint i;

  if (self->is_async)
    return gtorch_cuda.cuMemPoolSetAccess (self->device->async_pool, &access, 1);
  for (i = 0; i < self->pages->len && result == CUDA_SUCCESS; i++)
    {
      const Page *page = &g_array_index (self->pages, Page, i);

      result = gtorch_cuda.cuMemSetAccess (self->base + page->offset, page->size, &access, 1);
    }
  return result;
}

/* Fills the hole, which is in no list, with new pages of `size` bytes or with lent pages whose sizes add up
 * to that of the hole. The pages that could be mapped are free afterwards, even if some could not. */
static CUresult
fill_hole (GTorchCudaArena *self, GTorchCudaBlock *hole, gsize size, GArray *lent)
{
  gsize done, part;
  guint i;

  for (done = 0, i = 0; done < hole->size; done += part, i++)
    {
      GTorchCudaPage *page = lent != NULL ? &g_array_index (lent, GTorchCudaPage, i) : NULL;
      gboolean stuck;
      CUresult result;

      part = page != NULL ? page->size : MIN (size, hole->size - done);
      result = page != NULL ? move_page (self, hole->offset + done, page, &stuck)
                            : new_page (self, hole->offset + done, part, &stuck);
      if (result == CUDA_SUCCESS)
        continue;
      if (done > 0)
        {
          GTorchCudaBlock *rest = block_split (self, hole, done);

          hole->state = FREE;
          block_settle (self, hole);
          hole = rest;
        }
      if (stuck)
        { /* mark the stuck page as used for ever */
          hole->state = USED;
          if (part == hole->size)
            return result;
          hole = block_split (self, hole, part);
          hole->state = HOLE;
        }
      block_settle (self, hole);
      return result;
    }
  hole->state = FREE;
  block_settle (self, hole);
  return CUDA_SUCCESS;
}

/* Takes the hole out of its list and cuts it to at most this size. */
static GTorchCudaBlock *
cut_hole (GTorchCudaArena *self, GTorchCudaBlock *hole, gsize size)
{
  list_remove (self, hole);
  if (hole->size > size)
    list_insert (self, block_split (self, hole, size));
  return hole;
}

static CUresult
grow (GTorchCudaArena *self, gsize n_bytes, gsize page)
{
  gsize size = (MAX (n_bytes, 1) + GRAIN - 1) & ~(gsize) (GRAIN - 1);
  GTorchCudaBlock *hole, *best = NULL;
  gsize best_need = G_MAXSIZE, need, step;

  /* Find the hole that needs the fewest new pages. Free memory just before a hole counts, unless the
   * request is so large that it must be one mapping, for libraries that register memory. */
  for (hole = self->holes; hole != NULL; hole = hole->list_next)
    {
      gsize before = hole->prev != NULL && hole->prev->state == FREE && size < GTORCH_CUDA_ONE_PIECE
                         ? MIN (hole->prev->size, size - GRAIN)
                         : 0;

      step = size >= GTORCH_CUDA_ONE_PIECE ? GTORCH_CUDA_PAGE : page;
      need = (size - before + step - 1) / step * step;
      if (need <= hole->size && need < best_need)
        {
          best = hole;
          best_need = need;
        }
    }
  if (best == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  return fill_hole (self, cut_hole (self, best, best_need),
                    size >= GTORCH_CUDA_ONE_PIECE ? best_need : page, NULL);
}

CUresult
gtorch_cuda_arena_grow (GTorchCudaArena *self, gsize n_bytes)
{
  CUresult result;

  if (self->is_segments)
    result = segment_new (self, n_bytes);
  else
    {
      result = grow (self, n_bytes, self->page);
      if (result == CUDA_ERROR_OUT_OF_MEMORY && self->page > GTORCH_CUDA_PAGE
          && n_bytes < GTORCH_CUDA_ONE_PIECE)
        result = grow (self, n_bytes, GTORCH_CUDA_PAGE); /* there may be room for smaller pages */
    }
  tell (self);
  return result;
}

/* --- taking pages away --- */

/* Finds the next free page, starting with this block and page. */
static gboolean
find_free_page (GTorchCudaArena *self, GTorchCudaBlock **block, guint *i)
{
  while (*block != NULL && *i < self->pages->len)
    {
      const Page *page = &g_array_index (self->pages, Page, *i);
      const gsize end = (*block)->offset + (*block)->size;

      if (page->offset >= end)
        *block = (*block)->next;
      else if ((*block)->state == FREE && page->offset >= (*block)->offset
               && page->offset + page->size <= end)
        return TRUE;
      else
        (*i)++;
    }
  return FALSE;
}

/* Waits for the lane, as its work on free memory may still be running. Returns FALSE if the lane is
 * capturing. The device's lock must be held, so that no capture begins. */
static gboolean
wait_for_lane (GTorchCudaArena *self)
{
  CUstreamCaptureStatus status;

  if (gtorch_cuda_lane_is_closed (self->lane)) /* its queue may not exist */
    return !gtorch_cuda_device_is_capturing (self->device)
           && gtorch_cuda_context_wait () == CUDA_SUCCESS;
  /* A lane that is about to capture has its `capture` set before the driver reports the capture. */
  return gtorch_cuda_lane_capture (self->lane) == NULL
         && gtorch_cuda.cuStreamIsCapturing (self->lane->handle, &status) == CUDA_SUCCESS
         && status == CU_STREAM_CAPTURE_STATUS_NONE
         && gtorch_cuda.cuStreamSynchronize (self->lane->handle) == CUDA_SUCCESS;
}

static gboolean
unmap_page (CUdeviceptr address, gsize size)
{
  gboolean result;

  gtorch_cuda_stall_begin ();
  result = gtorch_cuda.cuMemUnmap (address, size) == CUDA_SUCCESS;
  gtorch_cuda_stall_end ();
  return result;
}

/* Removes free pages of at least `least` bytes until n_bytes are reached; puts them into `lent` or, if that
 * is NULL, releases them to the driver. */
static void
take_pages (GTorchCudaArena *self, gsize n_bytes, gsize least, GArray *lent)
{
  GTorchCudaBlock *block = self->first;
  gboolean has_waited = FALSE;
  gsize taken = 0;
  guint i = 0;

  while (taken < n_bytes && find_free_page (self, &block, &i))
    {
      Page page = g_array_index (self->pages, Page, i);
      const CUdeviceptr address = self->base + page.offset;

      if (page.size >= least && !has_waited)
        {
          if (!wait_for_lane (self))
            return;
          has_waited = TRUE;
        }
      if (page.size < least || !unmap_page (address, page.size))
        {
          i++;
          continue;
        }
      /* before set_extent(), as it was counted with the page */
      list_remove (self, block);
      self->mapped -= page.size;
      g_array_remove_index (self->pages, i);
      set_extent (self, &page, FALSE);
      note_page (self, address, -(gint64) page.size);
      if (lent == NULL)
        {
          gtorch_cuda.cuMemRelease (page.handle);
          count_page (gtorch_cuda_arena_allocator (self), self->pool, -(gint64) page.size,
                      &page.is_oversize);
        }
      else
        {
          GTorchCudaPage away = { page.handle, page.size, self->pool, page.is_oversize };

          g_array_append_val (lent, away);
        }
      taken += page.size;

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
    }
}

gsize
gtorch_cuda_arena_trim (GTorchCudaArena *self)
{
  gsize before = self->mapped;

  if (self->is_segments)
    segments_trim (self);
  else
    take_pages (self, G_MAXSIZE, 0, NULL);
  tell (self);
  return before - self->mapped;
}

gboolean
gtorch_cuda_arena_has_pages (GTorchCudaArena *self)
{
  return !self->is_segments;
}

gsize
gtorch_cuda_arena_get_spare (GTorchCudaArena *self, gsize least)
{
  GTorchCudaBlock *block = self->first;
  gsize n_bytes = 0;
  guint i;

  for (i = 0; find_free_page (self, &block, &i); i++)
    {
      gsize size = g_array_index (self->pages, Page, i).size;

      n_bytes += size >= least ? size : 0;
    }
  return n_bytes;
}

void
gtorch_cuda_arena_lend (GTorchCudaArena *self, gsize n_bytes, gsize least, GArray *lent)
{
  take_pages (self, n_bytes, least, lent);
  tell (self);
}

void
gtorch_cuda_arena_adopt (GTorchCudaArena *self, GArray *lent)
{
  GTorchCudaBlock *hole, *best = NULL;
  gsize total = 0;
  guint i;

  for (i = 0; i < lent->len; i++)
    total += g_array_index (lent, GTorchCudaPage, i).size;
  for (hole = self->holes; hole != NULL; hole = hole->list_next)
    if (hole->size >= total && (best == NULL || hole->size < best->size))
      best = hole;
  if (best != NULL && total > 0)
    fill_hole (self, cut_hole (self, best, total), 0, lent);
  for (i = 0; i < lent->len; i++)
    {
      GTorchCudaPage *page = &g_array_index (lent, GTorchCudaPage, i);

      if (page->size == 0)
        continue;
      gtorch_cuda.cuMemRelease (page->handle);
      count_page (gtorch_cuda_arena_allocator (self), page->pool, -(gint64) page->size,
                  &page->is_oversize);
    }
  tell (self);
}
