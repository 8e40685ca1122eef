/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/gtorch-cuda-private.h>
#include <gtorch/gtorch-memory-pool-private.h>
#include <gtorch/gtorch-memory-source.h>

G_BEGIN_DECLS

/* --- arenas that are not simply the device's (gtorch-cuda-arena.c) --- */

/* Its segments are of the driver's pool and in the order of the lane. */
void gtorch_cuda_arena_set_async (GTorchCudaArena *arena);
/* What it asks the driver for memory with, for messages. */
const gchar *gtorch_cuda_arena_get_function (GTorchCudaArena *arena);
/* Its segments come from the program: it is asked by the caller, with no lock held. Borrowed. */
void gtorch_cuda_arena_set_source (GTorchCudaArena *arena, GTorchMemorySource *source);
GTorchMemorySource *gtorch_cuda_arena_get_source (GTorchCudaArena *arena);
gsize gtorch_cuda_arena_segment_size (GTorchCudaArena *arena, gsize n_bytes);
void gtorch_cuda_arena_add_segment (GTorchCudaArena *arena, guint64 address, gsize size);
/* Nothing may be mapped any more. */
void gtorch_cuda_arena_free (GTorchCudaArena *arena);
/* For a private pool, before anything is taken; captured: by graphs. NULL: there is no owner. */
void gtorch_cuda_arena_set_owner (GTorchCudaArena *arena, GTorchPool *owner, gboolean captured);
GTorchPool *gtorch_cuda_arena_get_owner (GTorchCudaArena *arena);
gboolean gtorch_cuda_arena_is_captured (GTorchCudaArena *arena);

/* --- private pools (gtorch-cuda-pool.c) --- */
/* On a stream that captures, from the graph's pool in any case. */
GTorchStorage *gtorch_cuda_alloc_in (GTorchDevice *device, GTorchPool *pool, gsize n_bytes,
                                     gboolean captured, GError **error);
GTorchPool *gtorch_cuda_get_pool (GTorchStorage *storage);
void gtorch_cuda_trim_pool (GTorchDevice *device, GTorchPool *pool);
void gtorch_cuda_drop_pool (GTorchDevice *device, GTorchPool *pool);
/* Gives back the memory of pools that are gone. settled: the device has been waited for; else only where
 * nothing has to be waited for. */
void gtorch_cuda_collect_pools (GTorchCudaDevice *device, gboolean settled);

/* --- memory of a program's own --- */

/* What goes back to where it came from. */
typedef struct
{
  GTorchMemorySource *source;
  guint64 address, n_bytes;
  CUstream stream;
} GTorchCudaReleased;

/* Has the arena's source give a segment for n_bytes. The result is CUDA_ERROR_OUT_OF_MEMORY, or
 * CUDA_ERROR_NOT_PERMITTED with the error, if it did not. */
gboolean gtorch_cuda_ask_source (GTorchCudaArena *arena, gsize n_bytes, CUresult *result,
                                 GError **error);
/* For the next call of gtorch_cuda_send_back(), which is made with no lock held. */
void gtorch_cuda_note_released (GTorchCudaDevice *device, GTorchMemorySource *source,
                                guint64 address, gsize n_bytes, CUstream stream);
void gtorch_cuda_send_back (GTorchCudaDevice *device);

/* What is at an address: nothing of the arena's; memory that is free, or not there; a block in use. */
typedef enum
{
  GTORCH_CUDA_AT_NOTHING,
  GTORCH_CUDA_AT_FREE,
  GTORCH_CUDA_AT_BLOCK,
  GTORCH_CUDA_AT_OWN, /* of the graph that is looked at */
} GTorchCudaAt;

GTorchCudaAt gtorch_cuda_arena_look (GTorchCudaArena *arena, guint64 address);

G_END_DECLS
