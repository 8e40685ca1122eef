/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Threads in which replicas are called, kept from one call of their module to the next. What a thread has
 * set is no matter of theirs: the function that they call sets it, and sets it back. */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _GTorchReplicaThreads GTorchReplicaThreads;

/* Starts none: that is done by the first call that needs some. */
GTorchReplicaThreads *gtorch_replica_threads_new (void);
/* Ends them, and waits until they have ended. Not during a call. */
void gtorch_replica_threads_free (GTorchReplicaThreads *self);
/* Calls the function with the address of each of n elements of a size: with the first one in this thread,
 * with each other one in a thread of its own, or in this one where none can be started. Threads are for this
 * call alone if self is NULL, or is used by another call meanwhile. */
void gtorch_replica_threads_run (GTorchReplicaThreads *self, void (*func) (gpointer element),
                                 gpointer elements, gsize size, gsize n);

G_END_DECLS
