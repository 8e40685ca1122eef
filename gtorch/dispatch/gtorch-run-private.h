/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* Returns what computes the operation on the device; NULL if the device does not have it. */
static inline GTorchRun
gtorch_device_get_run (GTorchDevice *device, const GTorchOpClass *op)
{
  return device->runs[op->id];
}

/* Computes a call whose outputs are there, without looking at its operands: on the CPU at once, elsewhere on the
 * queue. An operation that consists of others calls their forms with this. */
static inline gboolean
gtorch_call_run (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return gtorch_device_get_run (call->device, call->op) (call, queue, error);
}

G_END_DECLS
