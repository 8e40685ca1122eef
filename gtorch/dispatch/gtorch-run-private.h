/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* Returns the function that computes the operation on the device, or NULL if the device does not support
 * it. */
static inline GTorchRun
gtorch_device_get_run (GTorchDevice *device, const GTorchOpClass *op)
{
  return device->runs[op->id];
}

/* Tells whether devices of the tensor's type compute an operation that composites can do without. */
static inline gboolean
gtorch_impl_has_op (GTorchImpl *impl, guint op)
{
  return gtorch_device_get_run (gtorch_impl_device (impl), &gtorch_ops[op]) != NULL;
}

/* Computes a call whose outputs are allocated, without checking its operands: on the CPU immediately,
 * elsewhere on the queue. An operation that consists of others calls their device functions through
 * this. */
static inline gboolean
gtorch_call_run (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return gtorch_device_get_run (call->device, call->op) (call, queue, error);
}

/* Asks the device of the call; see the queries of GTorchBackend. Only for operations whose rows have the
 * key `query`. */
static inline gboolean
gtorch_call_query (GTorchOpCall *call, gint64 *answers, GError **error)
{
  const GTorchQuery *queries = call->device->backend->queries;
  GTorchQuery query = queries != NULL ? queries[call->op->id] : NULL;

  if (query == NULL)
    query = gtorch_backends[GTORCH_DEVICE_TYPE_CPU]->queries[call->op->id];
  return query (call, answers, error);
}

G_END_DECLS
