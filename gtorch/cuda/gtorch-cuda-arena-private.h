/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/gtorch-cuda-private.h>
#include <gtorch/gtorch-memory-pool-private.h>

G_BEGIN_DECLS

/* Between gtorch-cuda-arena.c and gtorch-cuda-arena-list.c. */

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

/* In units of GTORCH_CUDA_PAGE; end is 0 where nothing is mapped. */
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
  GTorchCudaLane *lane; /* first: see gtorch_cuda_arena_get_lane () */
  GTorchCudaDevice *device;
  guint pool;
  GTorchPool *owner;    /* a private pool; NULL: the device */
  gboolean is_captured; /* what is here belongs to graphs */
  gboolean is_async;    /* segments are of the driver's own pool */
  GTorchMemorySource *source;
  gboolean is_segments, is_direct; /* direct: a segment for each block, and gone with it */
  GPtrArray *segments;             /* their first blocks */
  GMutex lock;
  CUdeviceptr base;
  gsize reserved, page, mapped;
  GTorchCudaBlock *first;
  GTorchCudaBlock *holes; /* by list_next */
  GArray *pages;          /* Page, by offset */
  Extent *extents;        /* for each GTORCH_CUDA_PAGE of addresses: the page there */
  Counts inactive,
      told; /* free blocks that share pages with others: now, and as in the statistics */
  guint64 class_map;
  guint32 sub_maps[N_CLASSES];
  GTorchCudaBlock *lists[N_CLASSES][N_SUB];
  GTorchCudaBlock *spare; /* descriptions to be used again */
};

static inline GTorchAllocator *
gtorch_cuda_arena_allocator (GTorchCudaArena *self)
{
  return self->device->parent_instance.allocator;
}

/* As PyTorch has it: 0 is the default one. */
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

/* The list that a block of this size belongs into. */
static inline void
gtorch_cuda_arena_class (gsize size, guint *level, guint *sub)
{
  gsize units = size / GRAIN;
  guint bits = g_bit_storage (units) - 1;

  *level = bits;
  *sub = bits >= SUB_BITS ? (units >> (bits - SUB_BITS)) & (N_SUB - 1)
                          : (units << (SUB_BITS - bits)) & (N_SUB - 1);
}

/* How much of a free block is in pages that it shares, and which therefore cannot be given back. */
gsize gtorch_cuda_arena_shared_bytes (GTorchCudaArena *self, GTorchCudaBlock *block);

G_END_DECLS
