/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "device/gtorch-device-monitor.h"

#include "device/gtorch-device-private.h"
#include "device/gtorch-device-sample-private.h"
#include "device/gtorch-object-list-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-task-private.h"

/**
 * GTorchDeviceMonitor:
 *
 * Monitors the load, temperature and memory use of a device, and the processes that use a GPU.
 *
 * An active monitor samples its device every [property@DeviceMonitor:interval] milliseconds in a background
 * thread. Its properties change and notify in the [struct@GLib.MainContext] that was the thread-default one
 * when the monitor was created. Drop the monitor or make it inactive to stop sampling. Several monitors of
 * one device share the samples.
 *
 * ```c
 * monitor = gtorch_device_monitor_new (device, &error);
 * if (monitor == NULL)
 *   return FALSE;
 * g_object_bind_property (monitor, "temperature", gauge, "value", G_BINDING_SYNC_CREATE);
 * ```
 *
 * GPUs need NVIDIA's management library (NVML), which comes with the driver and is loaded for the first
 * monitor of one. Of the CPU, the load of all processors, the memory that is not available to programs and
 * the clock frequency are known, where the system tells them; the list of its processes is empty.
 *
 * Since: 0.1
 */

struct _GTorchDeviceMonitor
{
  GObject parent_instance;
  GTorchDevice *device;
  GMainContext *context;
  guint interval;
  gboolean active;
  GTorchWatch *watch; /* NULL while inactive */
  GError *error;
  GTorchDeviceSample sample;
  GTorchObjectList *processes; /* GTorchDeviceProcess */
};

static void gtorch_device_monitor_initable_init (GInitableIface *iface);

G_DEFINE_TYPE_WITH_CODE (GTorchDeviceMonitor, gtorch_device_monitor, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (G_TYPE_INITABLE,
                                                gtorch_device_monitor_initable_init))

/* --- applying a sample --- */

static gboolean
same_processes (const GArray *a, const GArray *b)
{
  guint i;

  if ((a != NULL ? a->len : 0) != (b != NULL ? b->len : 0))
    return FALSE;
  for (i = 0; a != NULL && i < a->len; i++)
    {
      const GTorchProcessSample *x = &g_array_index (a, GTorchProcessSample, i);
      const GTorchProcessSample *y = &g_array_index (b, GTorchProcessSample, i);

      if (x->pid != y->pid || x->memory_used != y->memory_used || strcmp (x->name, y->name) != 0)
        return FALSE;
    }
  return TRUE;
}

static void
fill_processes (GTorchDeviceMonitor *self, const GArray *processes)
{
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; processes != NULL && i < processes->len; i++)
    {
      const GTorchProcessSample *p = &g_array_index (processes, GTorchProcessSample, i);

      g_ptr_array_add (items, g_object_new (GTORCH_TYPE_DEVICE_PROCESS, "pid", p->pid,
                                            "memory-used", p->memory_used, "name",
                                            p->name[0] != '\0' ? p->name : NULL, NULL));
    }
  gtorch_object_list_splice (self->processes, 0,
                             g_list_model_get_n_items (G_LIST_MODEL (self->processes)),
                             items->pdata, items->len);
}

static void
take (GTorchDeviceMonitor *self, GTorchDeviceSample *sample)
{
  GTorchDeviceSample former = self->sample;
  GObject *object = G_OBJECT (self);
  gboolean same = same_processes (former.processes, sample->processes);

  self->sample = *sample;
  sample->processes = NULL;
  g_object_freeze_notify (object);
  if (former.utilization != self->sample.utilization)
    g_object_notify (object, "utilization");
  if (former.memory_utilization != self->sample.memory_utilization)
    g_object_notify (object, "memory-utilization");
  if (former.temperature != self->sample.temperature)
    g_object_notify (object, "temperature");
  if (former.power != self->sample.power)
    g_object_notify (object, "power");
  if (former.power_limit != self->sample.power_limit)
    g_object_notify (object, "power-limit");
  if (former.fan_speed != self->sample.fan_speed)
    g_object_notify (object, "fan-speed");
  if (former.sm_clock != self->sample.sm_clock)
    g_object_notify (object, "sm-clock");
  if (former.memory_clock != self->sample.memory_clock)
    g_object_notify (object, "memory-clock");
  if (former.memory_used != self->sample.memory_used)
    g_object_notify (object, "memory-used");
  if (!same)
    {
      fill_processes (self, self->sample.processes);
      g_object_notify (object, "processes");
    }
  gtorch_device_sample_clear (&former);
  g_object_thaw_notify (object);
}

static void
found (GObject *object, GTorchDeviceSample *sample, const GError *error)
{
  GTorchDeviceMonitor *self = GTORCH_DEVICE_MONITOR (object);

  if (error == NULL)
    {
      take (self, sample);
      return;
    }
  g_object_freeze_notify (object);
  g_clear_error (&self->error);
  self->error = g_error_copy (error);
  g_object_notify (object, "error");
  gtorch_device_monitor_set_active (self, FALSE);
  g_object_thaw_notify (object);
}

static void
update_watch (GTorchDeviceMonitor *self, gboolean now)
{
  if (!self->active)
    g_clear_pointer (&self->watch, gtorch_watch_stop);
  else if (self->watch == NULL && self->device != NULL)
    self->watch =
        gtorch_watch_new (self->device, self->interval, now, self->context, G_OBJECT (self), found);
}

/* --- construction --- */

static gboolean
gtorch_device_monitor_initable_real_init (GInitable *initable, GCancellable *cancellable,
                                          GError **error)
{
  GTorchDeviceMonitor *self = GTORCH_DEVICE_MONITOR (initable);
  GTorchDeviceSample sample;

  if (self->device == NULL)
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                           _ ("device_monitor: no device"));
      return FALSE;
    }
  if (!gtorch_device_take_sample (self->device, &sample, error))
    return FALSE;
  self->sample = sample;
  fill_processes (self, sample.processes);
  update_watch (self, FALSE);
  return TRUE;
}

static void
gtorch_device_monitor_initable_init (GInitableIface *iface)
{
  iface->init = gtorch_device_monitor_initable_real_init;
}

static void
gtorch_device_monitor_constructed (GObject *object)
{
  GTorchDeviceMonitor *self = GTORCH_DEVICE_MONITOR (object);

  G_OBJECT_CLASS (gtorch_device_monitor_parent_class)->constructed (object);
  self->context = g_main_context_ref_thread_default ();
}

static void
gtorch_device_monitor_dispose (GObject *object)
{
  GTorchDeviceMonitor *self = GTORCH_DEVICE_MONITOR (object);

  g_clear_pointer (&self->watch, gtorch_watch_stop);
  G_OBJECT_CLASS (gtorch_device_monitor_parent_class)->dispose (object);
}

static void
gtorch_device_monitor_finalize (GObject *object)
{
  GTorchDeviceMonitor *self = GTORCH_DEVICE_MONITOR (object);

  g_clear_object (&self->device);
  g_clear_object (&self->processes);
  g_clear_error (&self->error);
  g_main_context_unref (self->context);
  gtorch_device_sample_clear (&self->sample);
  G_OBJECT_CLASS (gtorch_device_monitor_parent_class)->finalize (object);
}

static void
gtorch_device_monitor_set_device (GTorchDeviceMonitor *self, GTorchDevice *device)
{
  g_set_object (&self->device, gtorch_device_resolved (device));
}

typedef GTorchDeviceMonitor Self;

static const GTorchField fields[] = {
  /**
   * GTorchDeviceMonitor:device:
   *
   * The device that is monitored.
   *
   * Since: 0.1
   */
  { "device",
    GTORCH_PROPERTY_OBJECT (GTorchDevice, gtorch_device_get_type, gtorch_device_monitor_get_device,
                            gtorch_device_monitor_set_device),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchDeviceMonitor:interval:
   *
   * The time between two samples in milliseconds, from 100 to an hour.
   *
   * Since: 0.1
   */
  { "interval",
    GTORCH_PROPERTY_UINT (gtorch_device_monitor_get_interval, gtorch_device_monitor_set_interval),
    .low = GTORCH_SAMPLE_INTERVAL_MIN, .high = GTORCH_SAMPLE_INTERVAL_MAX, .value = 1000 },
  /**
   * GTorchDeviceMonitor:active:
   *
   * Whether the device is being sampled. Becomes %FALSE when sampling fails for good; see
   * [property@DeviceMonitor:error].
   *
   * Since: 0.1
   */
  { "active",
    GTORCH_PROPERTY_BOOL (gtorch_device_monitor_get_active, gtorch_device_monitor_set_active),
    .value = TRUE },
  /**
   * GTorchDeviceMonitor:error:
   *
   * Why the device can no longer be sampled, for example because it was lost.
   *
   * Since: 0.1
   */
  { "error",
    GTORCH_PROPERTY_BOXED (const GError, g_error_get_type, gtorch_device_monitor_get_error, NULL) },
  /**
   * GTorchDeviceMonitor:utilization:
   *
   * The percentage of the time since the last sample in which kernels ran; -1 if it is not known.
   *
   * Since: 0.1
   */
  { "utilization", GTORCH_PROPERTY_INT (gtorch_device_monitor_get_utilization, NULL), .low = -1,
    .high = INFINITY, .value = -1 },
  /**
   * GTorchDeviceMonitor:memory-utilization:
   *
   * The percentage of the time since the last sample in which memory was read or written; -1 if it is not
   * known.
   *
   * Since: 0.1
   */
  { "memory-utilization", GTORCH_PROPERTY_INT (gtorch_device_monitor_get_memory_utilization, NULL),
    .low = -1, .high = INFINITY, .value = -1 },
  /**
   * GTorchDeviceMonitor:temperature:
   *
   * The temperature of the device in degrees Celsius; -1 if it is not known.
   *
   * Since: 0.1
   */
  { "temperature", GTORCH_PROPERTY_INT (gtorch_device_monitor_get_temperature, NULL), .low = -1,
    .high = INFINITY, .value = -1 },
  /**
   * GTorchDeviceMonitor:power:
   *
   * The power that the device draws, in watts; -1 if it is not known.
   *
   * Since: 0.1
   */
  { "power", GTORCH_PROPERTY_DOUBLE (gtorch_device_monitor_get_power, NULL), .low = -1,
    .high = G_MAXDOUBLE, .value = -1 },
  /**
   * GTorchDeviceMonitor:power-limit:
   *
   * The power that the device may draw, in watts; -1 if it is not known.
   *
   * Since: 0.1
   */
  { "power-limit", GTORCH_PROPERTY_DOUBLE (gtorch_device_monitor_get_power_limit, NULL), .low = -1,
    .high = G_MAXDOUBLE, .value = -1 },
  /**
   * GTorchDeviceMonitor:fan-speed:
   *
   * The speed of the fan as a percentage of its highest; -1 if it is not known, or if there is no fan.
   *
   * Since: 0.1
   */
  { "fan-speed", GTORCH_PROPERTY_INT (gtorch_device_monitor_get_fan_speed, NULL), .low = -1,
    .high = INFINITY, .value = -1 },
  /**
   * GTorchDeviceMonitor:sm-clock:
   *
   * The clock frequency of the multiprocessors, or of the processors, in MHz; -1 if it is not known.
   *
   * Since: 0.1
   */
  { "sm-clock", GTORCH_PROPERTY_INT (gtorch_device_monitor_get_sm_clock, NULL), .low = -1,
    .high = INFINITY, .value = -1 },
  /**
   * GTorchDeviceMonitor:memory-clock:
   *
   * The clock frequency of the memory in MHz; -1 if it is not known.
   *
   * Since: 0.1
   */
  { "memory-clock", GTORCH_PROPERTY_INT (gtorch_device_monitor_get_memory_clock, NULL), .low = -1,
    .high = INFINITY, .value = -1 },
  /**
   * GTorchDeviceMonitor:memory-used:
   *
   * The memory of the device that all processes use together, in bytes.
   *
   * Since: 0.1
   */
  { "memory-used", GTORCH_PROPERTY_UINT64 (gtorch_device_monitor_get_memory_used, NULL) },
  /**
   * GTorchDeviceMonitor:processes:
   *
   * The processes that use the device, sorted by process ID, as [class@DeviceProcess]. The property always
   * holds the same list, whose items change.
   *
   * Since: 0.1
   */
  { "processes", GTORCH_PROPERTY_OBJECT (GListModel, g_list_model_get_type,
                                         gtorch_device_monitor_get_processes, NULL) },
};

static void
gtorch_device_monitor_class_init (GTorchDeviceMonitorClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = gtorch_device_monitor_constructed;
  object_class->dispose = gtorch_device_monitor_dispose;
  object_class->finalize = gtorch_device_monitor_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_device_monitor_init (GTorchDeviceMonitor *self)
{
  self->interval = 1000;
  self->active = TRUE;
  self->processes = gtorch_object_list_new (GTORCH_TYPE_DEVICE_PROCESS);
}

/**
 * gtorch_device_monitor_new:
 * @device: a device
 * @error: return location for an error
 *
 * Creates a monitor of a device, which samples it every second until [property@DeviceMonitor:interval] is
 * set.
 *
 * This takes the first sample before it returns, which takes some milliseconds, and much longer for the
 * first monitor of a program; [method@Device.open_monitor_async] does not block.
 *
 * Returns: (transfer full): the monitor; %NULL with %GTORCH_ERROR_CUDA if NVIDIA's management library is
 *   missing (the message names it) or reports an error, with %GTORCH_ERROR_DEVICE_LOST if the GPU no longer
 *   responds, with %GTORCH_ERROR_NOT_SUPPORTED for the CPU of a system without `/proc`
 *
 * Since: 0.1
 */
GTorchDeviceMonitor *
gtorch_device_monitor_new (GTorchDevice *device, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (device), NULL);
  return g_initable_new (GTORCH_TYPE_DEVICE_MONITOR, NULL, error, "device", device, NULL);
}

static void
open_in_thread (GTask *task, gpointer source, gpointer monitor, GCancellable *cancellable)
{
  GError *error = NULL;

  if (g_initable_init (monitor, cancellable, &error))
    g_task_return_pointer (task, g_object_ref (monitor), g_object_unref);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_device_open_monitor_async:
 * @self: a device
 * @cancellable: (nullable): stops the waiting
 * @callback: (nullable) (scope async) (closure user_data): called after the first sample
 * @user_data: passed to @callback
 *
 * Creates a monitor of a device, as [ctor@DeviceMonitor.new] does, without blocking the main loop.
 *
 * Since: 0.1
 */
void
gtorch_device_open_monitor_async (GTorchDevice *self, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_DEVICE (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_device_open_monitor_async, cancellable, callback, user_data);
  if (g_task_return_error_if_cancelled (task))
    return;
  /* Created here, since the monitor belongs to the main context of this thread. */
  g_task_set_task_data (task, g_object_new (GTORCH_TYPE_DEVICE_MONITOR, "device", self, NULL),
                        g_object_unref);
  g_task_run_in_thread (task, open_in_thread);
}

/**
 * gtorch_device_open_monitor_finish:
 * @self: the device
 * @result: the result that the callback was given
 * @error: return location for an error
 *
 * Finishes [method@Device.open_monitor_async].
 *
 * Returns: (transfer full): the monitor; %NULL with the errors of [ctor@DeviceMonitor.new]
 *
 * Since: 0.1
 */
GTorchDeviceMonitor *
gtorch_device_open_monitor_finish (GTorchDevice *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_device_open_monitor_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_device_monitor_get_device:
 * @self: a monitor
 *
 * Gets the device that is monitored.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_device_monitor_get_device (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), NULL);
  return self->device;
}

/**
 * gtorch_device_monitor_get_interval:
 * @self: a monitor
 *
 * Gets the time between two samples.
 *
 * Returns: milliseconds
 *
 * Since: 0.1
 */
guint
gtorch_device_monitor_get_interval (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), 0);
  return self->interval;
}

/**
 * gtorch_device_monitor_set_interval:
 * @self: a monitor
 * @interval: milliseconds
 * @error: return location for an error
 *
 * Sets the time between two samples, from a tenth of a second to an hour.
 *
 * Returns: %TRUE if it is set; %FALSE with %GTORCH_ERROR_INVALID if the interval is not from 100 to 3600000
 *
 * Since: 0.1
 */
gboolean
gtorch_device_monitor_set_interval (GTorchDeviceMonitor *self, guint interval, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), FALSE);
  if (interval < GTORCH_SAMPLE_INTERVAL_MIN || interval > GTORCH_SAMPLE_INTERVAL_MAX)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("device_monitor: the interval is %u, it must be from %d to %d milliseconds"),
                   interval, GTORCH_SAMPLE_INTERVAL_MIN, GTORCH_SAMPLE_INTERVAL_MAX);
      return FALSE;
    }
  if (interval == self->interval)
    return TRUE;
  self->interval = interval;
  if (self->watch != NULL)
    gtorch_watch_set_interval (self->watch, interval);
  g_object_notify (G_OBJECT (self), "interval");
  return TRUE;
}

/**
 * gtorch_device_monitor_get_active:
 * @self: a monitor
 *
 * Tells whether the device is being sampled.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_device_monitor_get_active (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), FALSE);
  return self->active;
}

/**
 * gtorch_device_monitor_set_active:
 * @self: a monitor
 * @active: whether to sample the device
 *
 * Stops or restarts sampling. The properties keep the last values. Must be called in the thread of the
 * monitor's main context.
 *
 * Since: 0.1
 */
void
gtorch_device_monitor_set_active (GTorchDeviceMonitor *self, gboolean active)
{
  g_return_if_fail (GTORCH_IS_DEVICE_MONITOR (self));
  active = active != FALSE;
  if (active == self->active)
    return;
  self->active = active;
  g_object_freeze_notify (G_OBJECT (self));
  if (active && self->error != NULL)
    {
      g_clear_error (&self->error);
      g_object_notify (G_OBJECT (self), "error");
    }
  update_watch (self, TRUE);
  g_object_notify (G_OBJECT (self), "active");
  g_object_thaw_notify (G_OBJECT (self));
}

/**
 * gtorch_device_monitor_get_error:
 * @self: a monitor
 *
 * Gets the reason why the device can no longer be sampled.
 *
 * Returns: (transfer none) (nullable): the error, %NULL as long as there is none
 *
 * Since: 0.1
 */
const GError *
gtorch_device_monitor_get_error (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), NULL);
  return self->error;
}

/**
 * gtorch_device_monitor_get_utilization:
 * @self: a monitor
 *
 * Gets the percentage of the time since the last sample in which kernels ran.
 *
 * Returns: the percentage, -1 if it is not known
 *
 * Since: 0.1
 */
gint
gtorch_device_monitor_get_utilization (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), -1);
  return self->sample.utilization;
}

/**
 * gtorch_device_monitor_get_memory_utilization:
 * @self: a monitor
 *
 * Gets the percentage of the time since the last sample in which memory was read or written.
 *
 * Returns: the percentage, -1 if it is not known
 *
 * Since: 0.1
 */
gint
gtorch_device_monitor_get_memory_utilization (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), -1);
  return self->sample.memory_utilization;
}

/**
 * gtorch_device_monitor_get_temperature:
 * @self: a monitor
 *
 * Gets the temperature of the device.
 *
 * Returns: degrees Celsius, -1 if it is not known
 *
 * Since: 0.1
 */
gint
gtorch_device_monitor_get_temperature (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), -1);
  return self->sample.temperature;
}

/**
 * gtorch_device_monitor_get_power:
 * @self: a monitor
 *
 * Gets the power that the device draws.
 *
 * Returns: watts, -1 if it is not known
 *
 * Since: 0.1
 */
gdouble
gtorch_device_monitor_get_power (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), -1);
  return self->sample.power;
}

/**
 * gtorch_device_monitor_get_power_limit:
 * @self: a monitor
 *
 * Gets the power that the device may draw.
 *
 * Returns: watts, -1 if it is not known
 *
 * Since: 0.1
 */
gdouble
gtorch_device_monitor_get_power_limit (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), -1);
  return self->sample.power_limit;
}

/**
 * gtorch_device_monitor_get_fan_speed:
 * @self: a monitor
 *
 * Gets the speed of the fan as a percentage of its highest.
 *
 * Returns: the percentage, -1 if it is not known, or if there is no fan
 *
 * Since: 0.1
 */
gint
gtorch_device_monitor_get_fan_speed (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), -1);
  return self->sample.fan_speed;
}

/**
 * gtorch_device_monitor_get_sm_clock:
 * @self: a monitor
 *
 * Gets the clock frequency of the multiprocessors, or of the processors.
 *
 * Returns: MHz, -1 if it is not known
 *
 * Since: 0.1
 */
gint
gtorch_device_monitor_get_sm_clock (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), -1);
  return self->sample.sm_clock;
}

/**
 * gtorch_device_monitor_get_memory_clock:
 * @self: a monitor
 *
 * Gets the clock frequency of the memory.
 *
 * Returns: MHz, -1 if it is not known
 *
 * Since: 0.1
 */
gint
gtorch_device_monitor_get_memory_clock (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), -1);
  return self->sample.memory_clock;
}

/**
 * gtorch_device_monitor_get_memory_used:
 * @self: a monitor
 *
 * Gets the memory of the device that all processes use together; [method@Device.get_memory_allocated] is
 * the part that tensors of this process use.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_monitor_get_memory_used (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), 0);
  return self->sample.memory_used;
}

/**
 * gtorch_device_monitor_get_processes:
 * @self: a monitor
 *
 * Gets the processes that use the device, sorted by process ID, as [class@DeviceProcess]. The list changes
 * in the monitor's main context.
 *
 * Returns: (transfer none): the list
 *
 * Since: 0.1
 */
GListModel *
gtorch_device_monitor_get_processes (GTorchDeviceMonitor *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MONITOR (self), NULL);
  return G_LIST_MODEL (self->processes);
}
