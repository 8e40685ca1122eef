/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Which way is the quickest. */

#include <gtorch/cuda/gtorch-cuda-private.h>

G_BEGIN_DECLS

/* Enqueues the work in one of the ways; FALSE if that cannot be. */
typedef gboolean (*GTorchCudaAttempt) (guint which, gpointer data);

/* Tries n ways, each several times; not in a capture. -1 if none can be; of those that are about as quick it
 * is the first. The device is done with all of them then. */
gint gtorch_cuda_benchmark (GTorchCudaLane *lane, guint n, GTorchCudaAttempt attempt,
                            gpointer data);

G_END_DECLS
