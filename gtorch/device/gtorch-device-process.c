/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "device/gtorch-device-monitor.h"

/**
 * GTorchDeviceProcess:
 *
 * A program that uses a GPU, as a [class@DeviceMonitor] found it.
 *
 * Since: 0.1
 */

struct _GTorchDeviceProcess
{
  GObject parent_instance;
  guint pid;
  guint64 memory_used;
};

enum
{
  PROP_0,
  PROP_PID,
  PROP_MEMORY_USED,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchDeviceProcess, gtorch_device_process, G_TYPE_OBJECT)

static void
gtorch_device_process_get_property (GObject *object, guint prop_id, GValue *value,
                                    GParamSpec *pspec)
{
  GTorchDeviceProcess *self = GTORCH_DEVICE_PROCESS (object);

  switch (prop_id)
    {
    case PROP_PID:
      g_value_set_uint (value, self->pid);
      break;
    case PROP_MEMORY_USED:
      g_value_set_uint64 (value, self->memory_used);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
    }
}

static void
gtorch_device_process_set_property (GObject *object, guint prop_id, const GValue *value,
                                    GParamSpec *pspec)
{
  GTorchDeviceProcess *self = GTORCH_DEVICE_PROCESS (object);

  switch (prop_id)
    {
    case PROP_PID:
      self->pid = g_value_get_uint (value);
      break;
    case PROP_MEMORY_USED:
      self->memory_used = g_value_get_uint64 (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, prop_id, pspec);
    }
}

static void
gtorch_device_process_class_init (GTorchDeviceProcessClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY | G_PARAM_STATIC_STRINGS;

  object_class->get_property = gtorch_device_process_get_property;
  object_class->set_property = gtorch_device_process_set_property;

  /**
   * GTorchDeviceProcess:pid:
   *
   * The number of the process, as the driver knows it.
   *
   * Since: 0.1
   */
  props[PROP_PID] = g_param_spec_uint ("pid", NULL, NULL, 0, G_MAXUINT, 0, flags);
  /**
   * GTorchDeviceProcess:memory-used:
   *
   * How much memory of the device it uses, in bytes; 0 if that is not known.
   *
   * Since: 0.1
   */
  props[PROP_MEMORY_USED] =
      g_param_spec_uint64 ("memory-used", NULL, NULL, 0, G_MAXUINT64, 0, flags);
  g_object_class_install_properties (object_class, N_PROPS, props);
}

static void
gtorch_device_process_init (GTorchDeviceProcess *self)
{
}

/**
 * gtorch_device_process_get_pid:
 * @self: a process
 *
 * Gets the number of the process, as the driver knows it: in a container that may be another one
 * than the process itself sees.
 *
 * Returns: the number
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
 * Gets how much memory of the device the process uses.
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
