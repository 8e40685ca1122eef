/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-wake-private.h"

/* Takes the lock, so that the thread is about to wait, or waits, when it is told. */
static void
on_cancelled (GCancellable *cancellable, gpointer data)
{
  GTorchWake *self = data;

  g_mutex_lock (self->lock);
  g_cond_broadcast (self->cond);
  g_mutex_unlock (self->lock);
}

void
gtorch_wake_begin (GTorchWake *self, GCancellable *cancellable, GMutex *lock, GCond *cond)
{
  *self = (GTorchWake){ cancellable, lock, cond, 0 };
  if (cancellable != NULL)
    self->id = g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), self, NULL);
}

/* Waits for the function above if it is running. */
void
gtorch_wake_end (GTorchWake *self)
{
  g_cancellable_disconnect (self->cancellable, self->id);
}
