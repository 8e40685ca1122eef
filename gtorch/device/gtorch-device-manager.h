/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DEVICE_MANAGER (gtorch_device_manager_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDeviceManager, gtorch_device_manager, GTORCH, DEVICE_MANAGER, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchDeviceManager *gtorch_device_manager_get_default (void);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_manager_is_available (GTorchDeviceManager *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_device_manager_get_device_count (GTorchDeviceManager *self);
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_device_manager_dup_reason (GTorchDeviceManager *self) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_init (GError **error);

GTORCH_AVAILABLE_IN_0_1
guint gtorch_get_num_threads (void);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_set_num_threads (gint n_threads, GError **error);

G_END_DECLS
