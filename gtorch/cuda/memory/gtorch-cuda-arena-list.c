/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lists an arena's contents for snapshots, and checks the lists of arenas for tests. */

#include "config.h"

#include "cuda/memory/gtorch-cuda-arena-private.h"
#include "cuda/memory/gtorch-cuda-magazine-private.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"
#include "cuda/memory/gtorch-cuda-share-private.h"

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

static GTorchAddresses
addresses_of (GTorchCudaArena *self, gsize offset)
{
  const Extent *extent = &self->extents[offset / GTORCH_CUDA_PAGE];

  return (GTorchAddresses){ self->base + extent->start * GTORCH_CUDA_PAGE,
                            self->base + extent->end * GTORCH_CUDA_PAGE };
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
        .stream = gtorch_cuda_arena_stream_id (self),
        .pool_id = gtorch_cuda_arena_pool_id (self),
        .pool = self->pool,
        .begins_segment = begins,
        .is_expandable = !self->is_segments,
      };

      begins = block->state == HOLE;
      if (block->state == HOLE)
        continue;
      if (info.is_expandable)
        {
          info.head = addresses_of (self, block->offset);
          info.tail = addresses_of (self, block->offset + block->size - 1);
        }
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

static GTorchCudaBlock *
find_in_chain (GTorchCudaArena *self, GTorchCudaBlock *block, guint64 address)
{
  while (block != NULL && address - self->base - block->offset >= block->size)
    block = block->next;
  return block;
}

GTorchCudaAt
gtorch_cuda_arena_look (GTorchCudaArena *self, guint64 address)
{
  GTorchCudaBlock *block = NULL;
  GTorchCudaAt result;
  guint i;

  if (!self->is_segments && address - self->base >= self->reserved)
    return GTORCH_CUDA_AT_NOTHING;
  gtorch_cuda_lock_counts (self->device);
  if (!self->is_segments)
    block = find_in_chain (self, self->first, address);
  for (i = 0; self->is_segments && block == NULL && i < self->segments->len; i++)
    block = find_in_chain (self, self->segments->pdata[i], address);
  if (block == NULL)
    result = GTORCH_CUDA_AT_NOTHING;
  else if (block->state == USED && block->use == GTORCH_BLOCK_ALLOCATED)
    result = GTORCH_CUDA_AT_BLOCK;
  else
    result = GTORCH_CUDA_AT_FREE;
  gtorch_cuda_unlock_counts (self->device);
  return result;
}

gsize
gtorch_cuda_arena_find_pages (GTorchCudaArena *self, gsize offset, gsize n_bytes, GArray *pages)
{
  gsize start = offset;
  guint i;

  for (i = 0; i < self->pages->len; i++)
    {
      const Page *page = &g_array_index (self->pages, Page, i);
      const GTorchCudaPage found = { page->handle, page->size, self->pool, page->is_oversize };

      if (page->offset + page->size <= offset || page->offset >= offset + n_bytes)
        continue;
      if (pages->len == 0)
        start = page->offset;
      g_array_append_val (pages, found);
    }
  return start;
}

CUdeviceptr
gtorch_cuda_arena_find_segment (GTorchCudaBlock *block)
{
  while (block->prev != NULL)
    block = block->prev;
  return block->arena->base + block->offset;
}

/* Checks a chain of blocks that starts at the address; returns its end, or 0 if it violates an invariant. */
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
        return 0; /* adjacent free blocks were not merged */
      offset += block->size;
      *n_free += block->state == FREE;
      *mapped += block->state == HOLE ? 0 : block->size;
      if (block->state == FREE)
        {
          gsize shared = gtorch_cuda_arena_shared_bytes (self, block);

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

            gtorch_cuda_arena_class (block->size, &l, &s);
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
