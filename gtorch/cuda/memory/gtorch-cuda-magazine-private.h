/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-private.h>

G_BEGIN_DECLS

/* Per-thread caches of small blocks: gtorch-cuda-magazine.c. */

/* Takes a block of exactly this size that the calling thread has freed, and counts it as allocated; NULL if
 * there is none. */
GTorchCudaBlock *gtorch_cuda_magazine_take (GTorchCudaLane *lane, gsize size, gsize requested);
/* Counts a block of an arena of small blocks as allocated. FALSE if the thread is ending and has no
 * counters any more. */
gboolean gtorch_cuda_magazine_count (GTorchCudaDevice *device, GTorchCudaBlock *block,
                                     gsize requested);
/* Counts a block of the lane's arena of small blocks as free, and caches it. FALSE if the thread is
 * ending. */
gboolean gtorch_cuda_magazine_give (GTorchCudaLane *lane, GTorchCudaBlock *block);
/* Returns the blocks that all threads cache, for the lane (NULL: for all lanes), to their arenas; TRUE if
 * there were any. */
gboolean gtorch_cuda_magazines_drain (GTorchCudaDevice *device, GTorchCudaLane *lane);
/* Returns how many bytes the magazines hold. */
gsize gtorch_cuda_magazines_size (GTorchCudaDevice *device);
/* Lock all counters, to read numbers and blocks that are consistent with each other. */
void gtorch_cuda_lock_counts (GTorchCudaDevice *device);
void gtorch_cuda_unlock_counts (GTorchCudaDevice *device);
/* Counts one more block; the statistics must be locked. Magazines_sync implements GTorchDeviceClass.sync_stats,
 * and magazines_recall starts the peaks again. */
void gtorch_cuda_count_block (GTorchCudaDevice *device, guint pool, gsize size, gsize requested);
void gtorch_cuda_magazines_sync (GTorchDevice *device, GTorchMemoryStats *stats,
                                 gboolean restart_peaks);
void gtorch_cuda_magazines_recall (GTorchDevice *device);

G_END_DECLS
