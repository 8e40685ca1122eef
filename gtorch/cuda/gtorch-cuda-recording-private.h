/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What a call of a library of NVIDIA's launches, to be launched again without the library, with other
 * memory. */

#include <gtorch/cuda/gtorch-cuda-private.h>

G_BEGIN_DECLS

typedef struct _GTorchCudaRecording GTorchCudaRecording;

/* The addresses of a recording are multiples of this. */
#define GTORCH_CUDA_RECORDING_ALIGNMENT 256
#define GTORCH_CUDA_RECORDING_MAX       8 /* addresses */

/* Has the library enqueue its work on the stream, with memory at these addresses, of which 0 is none. The
 * stream captures: nothing of this is done, and there need not be memory. */
typedef gboolean (*GTorchCudaEnqueue) (CUstream stream, const guint64 *addresses, gpointer data);

/* The call must have been made before, so that everything is loaded, and the device's context be current.
 * NULL if it does more than launch kernels of which only those addresses change with the memory, or if it
 * cannot be told at the moment, since somebody waits for the context. */
GTorchCudaRecording *gtorch_cuda_recording_new (const guint64 *addresses, guint n,
                                                GTorchCudaEnqueue enqueue, gpointer data,
                                                gboolean *is_busy);
void gtorch_cuda_recording_free (GTorchCudaRecording *self);

/* With addresses for all that it was made with, on a lane of the same device, which the library does not
 * capture. If it fails after 0 launches, the call that was recorded can be made instead. */
gboolean gtorch_cuda_recording_launch (const GTorchCudaRecording *self, GTorchCudaLane *lane,
                                       const guint64 *addresses, guint *n_launched, GError **error);

/* As cuCtxSynchronize(), but not while anything is recorded. Other locks may be held. */
CUresult gtorch_cuda_context_wait (void);

G_END_DECLS
