/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/memory/gtorch-memory-pool-private.h>

G_BEGIN_DECLS

/* Definitions that gtorch-cuda-arena.c and gtorch-cuda-arena-list.c share. */

#define GRAIN     512
#define SUB_BITS  4
#define N_SUB     (1 << SUB_BITS)
#define N_CLASSES 36 /* GRAIN << 36: 32 TiB */

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

/* The range of a mapped page in units of GTORCH_CUDA_PAGE; end is 0 where nothing is mapped. */
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
  GTorchCudaLane *lane; /* must be first: see gtorch_cuda_arena_get_lane () */
  GTorchCudaDevice *device;
  guint pool;
  GTorchPool *owner;    /* the private pool that owns the arena, or NULL for the device */
  gboolean is_captured; /* the memory belongs to captured graphs */
  gboolean is_async;    /* segments come from the driver's memory pool */
  GTorchMemorySource *source;
  /* is_direct: each block is a segment of its own, released when the block is freed */
  gboolean is_segments, is_direct;
  GPtrArray *segments; /* the first block of each segment */
  GMutex lock;
  CUdeviceptr base;
  gsize reserved, page, mapped;
  GTorchCudaBlock *first;
  GTorchCudaBlock *holes; /* list of unmapped blocks, linked by list_next */
  GArray *pages;          /* Page, sorted by offset */
  Extent *extents;        /* for each GTORCH_CUDA_PAGE of addresses, the page mapped there */
  /* free blocks that share pages: now, and as last added to the statistics */
  Counts inactive, told;
  guint64 class_map;
  guint32 sub_maps[N_CLASSES];
  GTorchCudaBlock *lists[N_CLASSES][N_SUB];
  GTorchCudaBlock *spare; /* block descriptors to reuse */
};

static inline GTorchAllocator *
gtorch_cuda_arena_allocator (GTorchCudaArena *self)
{
  return self->device->parent_instance.allocator;
}

/* Returns the stream's ID, numbered as in PyTorch: 0 is the default stream. */
static inline guint64
gtorch_cuda_arena_stream_id (GTorchCudaArena *self)
{
  return self->lane->index == 0 ? 0 : (guintptr) self->lane->handle;
}

static inline guint64
gtorch_cuda_arena_pool_id (GTorchCudaArena *self)
{
  return self->owner != NULL ? self->owner->id : 0;
}

/* Finds the list that a block of this size belongs to. */
static inline void
gtorch_cuda_arena_class (gsize size, guint *level, guint *sub)
{
  gsize units = size / GRAIN;
  guint bits = g_bit_storage (units) - 1;

  *level = bits;
  *sub = bits >= SUB_BITS ? (units >> (bits - SUB_BITS)) & (N_SUB - 1)
                          : (units << (SUB_BITS - bits)) & (N_SUB - 1);
}

/* Returns how many bytes of a free block are in pages shared with other blocks, which cannot be released. */
gsize gtorch_cuda_arena_shared_bytes (GTorchCudaArena *self, GTorchCudaBlock *block);

G_END_DECLS
