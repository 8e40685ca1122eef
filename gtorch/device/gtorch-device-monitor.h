/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DEVICE_MONITOR (gtorch_device_monitor_get_type ())
#define GTORCH_TYPE_DEVICE_PROCESS (gtorch_device_process_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDeviceMonitor, gtorch_device_monitor, GTORCH, DEVICE_MONITOR, GObject)
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDeviceProcess, gtorch_device_process, GTORCH, DEVICE_PROCESS, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchDeviceMonitor *gtorch_device_monitor_new (GTorchDevice *device,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_open_monitor_async (GTorchDevice *self, GCancellable *cancellable,
                                       GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchDeviceMonitor *gtorch_device_open_monitor_finish (GTorchDevice *self, GAsyncResult *result,
                                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_device_monitor_get_device (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_device_monitor_get_interval (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_monitor_set_interval (GTorchDeviceMonitor *self, guint interval,
                                             GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_monitor_get_active (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_device_monitor_set_active (GTorchDeviceMonitor *self, gboolean active);
GTORCH_AVAILABLE_IN_0_1
const GError *gtorch_device_monitor_get_error (GTorchDeviceMonitor *self);

GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_monitor_get_utilization (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_monitor_get_memory_utilization (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_monitor_get_temperature (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_device_monitor_get_power (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_device_monitor_get_power_limit (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_monitor_get_fan_speed (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_monitor_get_sm_clock (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_monitor_get_memory_clock (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_device_monitor_get_memory_used (GTorchDeviceMonitor *self);
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_device_monitor_get_processes (GTorchDeviceMonitor *self);

GTORCH_AVAILABLE_IN_0_1
guint gtorch_device_process_get_pid (GTorchDeviceProcess *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_device_process_get_name (GTorchDeviceProcess *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_device_process_get_memory_used (GTorchDeviceProcess *self);

G_END_DECLS
