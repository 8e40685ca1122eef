/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "device/gtorch-device-monitor.h"
#include "base/gtorch-field-private.h"

/**
 * GTorchDeviceProcess:
 *
 * A process that uses a GPU, as reported by a [class@DeviceMonitor].
 *
 * Since: 0.1
 */

struct _GTorchDeviceProcess
{
  GObject parent_instance;
  guint pid;
  guint64 memory_used;
};

G_DEFINE_TYPE (GTorchDeviceProcess, gtorch_device_process, G_TYPE_OBJECT)

static const GTorchField fields[] = {
  /**
   * GTorchDeviceProcess:pid:
   *
   * The process ID, as the driver knows it.
   *
   * Since: 0.1
   */
  { "pid", GTORCH_FIELD_UINT, GTORCH_FIELD (GTorchDeviceProcess, pid),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDeviceProcess:memory-used:
   *
   * The memory of the device that the process uses, in bytes; 0 if that is not known.
   *
   * Since: 0.1
   */
  { "memory-used", GTORCH_FIELD_UINT64, GTORCH_FIELD (GTorchDeviceProcess, memory_used),
    .flags = GTORCH_FIELD_FIXED },
};

static void
gtorch_device_process_class_init (GTorchDeviceProcessClass *klass)
{
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_device_process_init (GTorchDeviceProcess *self)
{
}

/**
 * gtorch_device_process_get_pid:
 * @self: a process
 *
 * Gets the process ID, as the driver knows it: in a container it may differ from the one that the process
 * itself sees.
 *
 * Returns: the process ID
 *
 * Since: 0.1
 */
guint
gtorch_device_process_get_pid (GTorchDeviceProcess *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_PROCESS (self), 0);
  return self->pid;
}

/**
 * gtorch_device_process_get_memory_used:
 * @self: a process
 *
 * Gets the memory of the device that the process uses.
 *
 * Returns: the number of bytes; 0 if that is not known
 *
 * Since: 0.1
 */
guint64
gtorch_device_process_get_memory_used (GTorchDeviceProcess *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_PROCESS (self), 0);
  return self->memory_used;
}
