/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/gtorch-cuda-private.h>

G_BEGIN_DECLS

/* Small blocks that threads keep at hand: gtorch-cuda-magazine.c. */

/* A block of just this size that the calling thread has freed, counted as allocated; NULL. */
GTorchCudaBlock *gtorch_cuda_magazine_take (GTorchCudaLane *lane, gsize size, gsize requested);
/* Counts a block of an arena of small ones as allocated. FALSE if the thread is ending: it counts for
 * itself no more. */
gboolean gtorch_cuda_magazine_count (GTorchCudaDevice *device, GTorchCudaBlock *block,
                                     gsize requested);
/* Counts the block of the lane's arena of small ones as free, and keeps it. FALSE as above. */
gboolean gtorch_cuda_magazine_give (GTorchCudaLane *lane, GTorchCudaBlock *block);
/* Gives what all threads keep, of the lane (NULL: of all), to its arenas; TRUE if there was something. */
gboolean gtorch_cuda_magazines_drain (GTorchCudaDevice *device, GTorchCudaLane *lane);
/* How much they keep. */
gsize gtorch_cuda_magazines_size (GTorchCudaDevice *device);
/* For numbers and blocks of one moment. */
void gtorch_cuda_lock_counts (GTorchCudaDevice *device);
void gtorch_cuda_unlock_counts (GTorchCudaDevice *device);
/* With the statistics locked: of one more block; as GTorchDeviceClass.sync_stats and reset_peak. */
void gtorch_cuda_count_block (GTorchCudaDevice *device, guint pool, gsize size, gsize requested);
void gtorch_cuda_magazines_sync (GTorchDevice *device, GTorchMemoryStats *stats);
void gtorch_cuda_magazines_recall (GTorchDevice *device);

G_END_DECLS
