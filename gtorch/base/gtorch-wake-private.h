/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* While it is there, cancelling wakes those that wait on a condition. It is on the stack of the thread that
 * waits, and begins and ends without the lock. */
typedef struct
{
  GCancellable *cancellable;
  GMutex *lock;
  GCond *cond;
  gulong id;
} GTorchWake;

void gtorch_wake_begin (GTorchWake *self, GCancellable *cancellable, GMutex *lock, GCond *cond);
void gtorch_wake_end (GTorchWake *self);

G_END_DECLS
