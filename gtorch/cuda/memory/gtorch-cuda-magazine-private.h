/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-private.h>

G_BEGIN_DECLS

/* Per-thread caches of small blocks: gtorch-cuda-magazine.c. */

/* Takes a block of exactly this size that the calling thread has freed, and counts it as allocated; returns
 * NULL if there is none. */
GTorchCudaBlock *gtorch_cuda_magazine_take (GTorchCudaLane *lane, gsize size, gsize requested);
/* Counts a block of an arena of small blocks as allocated. Returns FALSE if the thread is ending and has no
 * counters any more. */
gboolean gtorch_cuda_magazine_count (GTorchCudaDevice *device, GTorchCudaBlock *block,
                                     gsize requested);
/* Counts a block of the lane's arena of small blocks as free, and caches it. Returns FALSE if the thread is
 * ending. */
gboolean gtorch_cuda_magazine_give (GTorchCudaLane *lane, GTorchCudaBlock *block);
/* Gives the blocks that all threads cache for the lane (NULL: for all lanes) back to their arenas; returns
 * TRUE if there were any. */
gboolean gtorch_cuda_magazines_drain (GTorchCudaDevice *device, GTorchCudaLane *lane);
/* Returns how many bytes the magazines hold. */
gsize gtorch_cuda_magazines_size (GTorchCudaDevice *device);
/* These functions lock and unlock all counters, so that numbers and blocks that are read are consistent. */
void gtorch_cuda_lock_counts (GTorchCudaDevice *device);
void gtorch_cuda_unlock_counts (GTorchCudaDevice *device);
/* Counts one more block. The statistics must be locked, as for the next two functions:
 * gtorch_cuda_magazines_sync() implements GTorchDeviceClass.sync_stats; gtorch_cuda_magazines_recall() adds
 * up all sums and withdraws all rooms. */
void gtorch_cuda_count_block (GTorchCudaDevice *device, guint pool, gsize size, gsize requested);
void gtorch_cuda_magazines_sync (GTorchDevice *device, GTorchMemoryStats *stats,
                                 gboolean restart_peaks);
void gtorch_cuda_magazines_recall (GTorchDevice *device);

G_END_DECLS
