/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What groups of GPUs have beside collectives: binding to a device, batches, and an end at once. */

#include "config.h"

#include "distributed/gtorch-process-group-device.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "device/gtorch-device-private.h"
#include "distributed/gtorch-group-calls-private.h"

/**
 * gtorch_process_group_bind_device:
 * @self: a group
 * @device: the GPU that this process uses; for a group of the CPU, the CPU
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Connects the ranks now, for tensors on @device, and not when the first operation needs it. All ranks call
 * this, and wait for each other no longer than [property@ProcessGroup:timeout]. A barrier uses the device.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_DEVICE if the backend has no tensors on @device,
 *   %G_IO_ERROR_TIMED_OUT if a rank has not come in time
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_bind_device (GTorchProcessGroup *self, GTorchDevice *device,
                                  GCancellable *cancellable, GError **error)
{
  GTorchEngine *engine;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_DEVICE (device), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  engine = gtorch_process_group_get_engine (self, "process_group_bind_device", error);
  if (engine == NULL
      || !gtorch_group_calls_check (self, GTORCH_GROUP_LANE_COLLECTIVES,
                                    "process_group_bind_device", error))
    return FALSE;
  device = gtorch_device_resolved (device);
  if (gtorch_device_get_device_type (device) != engine->klass->device_type)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                   _ ("process_group_bind_device: the backend %s has no tensors on %s"),
                   engine->klass->name, gtorch_device_get_name (device));
      return FALSE;
    }
  return engine->klass->bind == NULL
         || engine->klass->bind (engine, self, device, cancellable, error);
}

/**
 * gtorch_process_group_begin_batch:
 * @self: a group
 * @error: return location for an error
 *
 * Begins a batch: operations up to [method@ProcessGroup.end_batch] are carried out together, so that none
 * waits for another one. Two ranks that send to each other do it in a batch.
 *
 * ```c
 * g_autoptr (GTorchWork) out = NULL, in = NULL;
 *
 * if (gtorch_process_group_begin_batch (group, &error))
 *   {
 *     out = gtorch_process_group_send (group, mine, other, 0, &error);
 *     in = gtorch_process_group_recv (group, theirs, other, 0, NULL);
 *     gtorch_process_group_end_batch (group, &error);
 *   }
 * ```
 *
 * With mpi a batch makes no difference: messages do not wait for each other.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if a batch has begun already
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_begin_batch (GTorchProcessGroup *self, GError **error)
{
  GTorchEngine *engine;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), FALSE);
  engine = gtorch_process_group_get_engine (self, "process_group_begin_batch", error);
  if (engine == NULL)
    return FALSE;
  if (engine->klass->begin_batch != NULL)
    return engine->klass->begin_batch (engine, error);
  if (engine->in_batch)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("process_group_begin_batch: a batch has begun already; they cannot be within "
                      "each other"));
      return FALSE;
    }
  engine->in_batch = TRUE;
  return TRUE;
}

/**
 * gtorch_process_group_end_batch:
 * @self: a group
 * @error: return location for an error
 *
 * Ends a batch, whose operations then begin. Does nothing if none has begun.
 *
 * Returns: %TRUE, or %FALSE with @error set, which the operations of the batch have, too
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_end_batch (GTorchProcessGroup *self, GError **error)
{
  GTorchEngine *engine;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), FALSE);
  engine = gtorch_process_group_peek_engine (self);
  if (engine == NULL)
    engine = gtorch_process_group_get_engine (self, "process_group_end_batch", error);
  if (engine == NULL)
    return FALSE;
  if (engine->klass->end_batch != NULL)
    return engine->klass->end_batch (engine, error);
  engine->in_batch = FALSE;
  return TRUE;
}

/**
 * gtorch_process_group_abort:
 * @self: a group of nccl
 * @error: return location for an error
 *
 * Ends all operations of the group that are under way, on this rank, with an error; the group has then
 * failed. Other ranks that wait for this one find out after their timeout.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_NOT_SUPPORTED for mpi, where an operation cannot
 *   be taken back
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_abort (GTorchProcessGroup *self, GError **error)
{
  g_autoptr (GError) reason = NULL;
  GTorchEngine *engine;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), FALSE);
  engine = gtorch_process_group_peek_engine (self);
  if (engine == NULL)
    return gtorch_process_group_get_engine (self, "process_group_abort", error) != NULL;
  if (engine->klass->abort == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("process_group_abort: the backend %s cannot take back operations"),
                   engine->klass->name);
      return FALSE;
    }
  reason = g_error_new (GTORCH_ERROR, GTORCH_ERROR_FAILED,
                        _ ("process_group_abort: the operations of the group were ended"));
  engine->klass->abort (engine, reason);
  return TRUE;
}
