/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtk/gtk.h>

#include <gtorch-plot/gtorch-plot.h>

G_BEGIN_DECLS

#define GTORCH_GTK_TYPE_DEVICE_PANEL (gtorch_gtk_device_panel_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGtkDevicePanel, gtorch_gtk_device_panel, GTORCH_GTK, DEVICE_PANEL,
                      GtkWidget)

GTORCH_AVAILABLE_IN_0_1
GtkWidget *gtorch_gtk_device_panel_new (GTorchDevice *device) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchDevice *gtorch_gtk_device_panel_get_device (GTorchGtkDevicePanel *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_device_panel_set_device (GTorchGtkDevicePanel *self, GTorchDevice *device);
GTORCH_AVAILABLE_IN_0_1
GTorchDeviceMonitor *gtorch_gtk_device_panel_get_monitor (GTorchGtkDevicePanel *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_gtk_device_panel_get_interval (GTorchGtkDevicePanel *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gtk_device_panel_set_interval (GTorchGtkDevicePanel *self, guint interval,
                                               GError **error);

G_END_DECLS
