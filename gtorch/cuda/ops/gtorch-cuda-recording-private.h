/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Recordings of the kernels that a call of one of NVIDIA's libraries launches. They can be launched again
 * with other memory and without the library. */

#include <gtorch/cuda/driver/gtorch-cuda-private.h>

G_BEGIN_DECLS

typedef struct _GTorchCudaRecording GTorchCudaRecording;

/* The alignment that the addresses of a recording must have. */
#define GTORCH_CUDA_RECORDING_ALIGNMENT 256
#define GTORCH_CUDA_RECORDING_MAX       8 /* the maximum number of addresses */

/* Makes the library enqueue its work on the stream, with memory at these addresses, of which 0 means none.
 * The stream is capturing: nothing is executed, and the addresses need not be valid. */
typedef gboolean (*GTorchCudaEnqueue) (CUstream stream, const guint64 *addresses, gpointer data);

/* Records a call. The call must have been made before, so that everything is loaded, and the device's
 * context must be current. Returns NULL if the call does more than launch kernels whose parameters depend
 * on the memory only through these addresses; also returns NULL, with *is_busy set, if it cannot be
 * recorded now because a thread waits for the context. */
GTorchCudaRecording *gtorch_cuda_recording_new (const guint64 *addresses, guint n,
                                                GTorchCudaEnqueue enqueue, gpointer data,
                                                gboolean *is_busy);
void gtorch_cuda_recording_free (GTorchCudaRecording *self);

/* Launches the recording with new addresses, 0 where it was made with 0, on a lane of the same device that
 * is not capturing. If it fails after 0 launches, the recorded call can be made instead. */
gboolean gtorch_cuda_recording_launch (const GTorchCudaRecording *self, GTorchCudaLane *lane,
                                       const guint64 *addresses, guint *n_launched, GError **error);

/* Waits like cuCtxSynchronize(), but first for recordings in progress, which the wait would invalidate.
 * Other locks may be held. */
CUresult gtorch_cuda_context_wait (void);

G_END_DECLS
