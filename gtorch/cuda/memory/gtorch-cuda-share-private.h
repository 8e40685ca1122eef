/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/memory/gtorch-share-private.h>

G_BEGIN_DECLS

extern const struct _GTorchShareBackend gtorch_cuda_shares;

/* Lets the reader access the owner's memory of other processes that is open here. */
CUresult gtorch_cuda_shares_allow (GTorchCudaDevice *owner, GTorchCudaDevice *reader);

/* --- gtorch-cuda-arena-list.c; the arena is locked --- */

/* Appends the pages (GTorchCudaPage) that hold n_bytes at the offset, which are in use, and returns where the
 * first one begins. */
gsize gtorch_cuda_arena_find_pages (GTorchCudaArena *arena, gsize offset, gsize n_bytes,
                                    GArray *pages);
/* Returns the address of the segment of the block. */
CUdeviceptr gtorch_cuda_arena_find_segment (GTorchCudaBlock *block);

G_END_DECLS
