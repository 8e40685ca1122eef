/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Measures which of several implementations is the fastest. */

#include <gtorch/cuda/driver/gtorch-cuda-private.h>

G_BEGIN_DECLS

/* Enqueues the work with one of the implementations; returns FALSE if that cannot be used. */
typedef gboolean (*GTorchCudaAttempt) (guint which, gpointer data);

/* Runs each of n implementations several times. Returns the index of the fastest one, of the first one if
 * that is about as fast, or -1 if none can be used. The device has completed all of the work on return.
 * Must not be called during a capture. */
gint gtorch_cuda_benchmark (GTorchCudaLane *lane, guint n, GTorchCudaAttempt attempt,
                            gpointer data);

G_END_DECLS
