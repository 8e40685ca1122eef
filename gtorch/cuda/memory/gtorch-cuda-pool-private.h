/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/memory/gtorch-memory-pool-private.h>
#include <gtorch/memory/gtorch-memory-source.h>

G_BEGIN_DECLS

/* --- arenas of pools, sources and the driver's pool (gtorch-cuda-arena.c) --- */

/* Makes the arena allocate its segments from the driver's memory pool, in the order of the lane. */
void gtorch_cuda_arena_set_async (GTorchCudaArena *arena);
/* Returns the name of the driver function that the arena allocates with, for messages. */
const gchar *gtorch_cuda_arena_get_function (GTorchCudaArena *arena);
/* Makes the arena get its segments from the program's source, which the caller asks with no lock held. The
 * source is borrowed. */
void gtorch_cuda_arena_set_source (GTorchCudaArena *arena, GTorchMemorySource *source);
GTorchMemorySource *gtorch_cuda_arena_get_source (GTorchCudaArena *arena);
gsize gtorch_cuda_arena_segment_size (GTorchCudaArena *arena, gsize n_bytes);
void gtorch_cuda_arena_add_segment (GTorchCudaArena *arena, guint64 address, gsize size);
/* Frees the arena. Nothing may be mapped any more. */
void gtorch_cuda_arena_free (GTorchCudaArena *arena);
/* Makes a private pool the owner, or the device if it is NULL; called before anything is allocated.
 * `captured` tells whether the arena serves captures. */
void gtorch_cuda_arena_set_owner (GTorchCudaArena *arena, GTorchPool *owner, gboolean captured);
GTorchPool *gtorch_cuda_arena_get_owner (GTorchCudaArena *arena);
gboolean gtorch_cuda_arena_is_captured (GTorchCudaArena *arena);

/* --- private pools (gtorch-cuda-pool.c) --- */
/* Allocates from the pool, or on a stream that is capturing from the graph's pool. */
GTorchStorage *gtorch_cuda_alloc_in (GTorchDevice *device, GTorchPool *pool, gsize n_bytes,
                                     gboolean captured, GError **error);
GTorchPool *gtorch_cuda_get_pool (GTorchStorage *storage);
extern const GTorchPoolBackend gtorch_cuda_pools;
/* Frees the memory of dead pools. `settled` tells that the device has been waited for; otherwise only
 * memory that needs no waiting is freed. */
void gtorch_cuda_collect_pools (GTorchCudaDevice *device, gboolean settled);

/* --- memory from the program's own source --- */

/* A released segment that is to be given back to its source. */
typedef struct
{
  GTorchMemorySource *source;
  guint64 address, n_bytes;
  CUstream stream;
} GTorchCudaReleased;

/* Asks the arena's source for a segment of n_bytes. If there is none, the result is
 * CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_NOT_PERMITTED with the error set. */
gboolean gtorch_cuda_ask_source (GTorchCudaArena *arena, gsize n_bytes, CUresult *result,
                                 GError **error);
/* Queues a segment for the next call of gtorch_cuda_send_back(), which must be made with no lock held. */
void gtorch_cuda_note_released (GTorchCudaDevice *device, GTorchMemorySource *source,
                                guint64 address, gsize n_bytes, CUstream stream);
void gtorch_cuda_send_back (GTorchCudaDevice *device);

/* The kind of memory at an address: not the arena's, free or not mapped, or a block in use. */
typedef enum
{
  GTORCH_CUDA_AT_NOTHING,
  GTORCH_CUDA_AT_FREE,
  GTORCH_CUDA_AT_BLOCK,
  GTORCH_CUDA_AT_OWN, /* a block of the graph that is audited */
} GTorchCudaAt;

GTorchCudaAt gtorch_cuda_arena_look (GTorchCudaArena *arena, guint64 address);

G_END_DECLS
