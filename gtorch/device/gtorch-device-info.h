/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
void gtorch_device_get_capability (GTorchDevice *self, gint *major, gint *minor);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_get_compute_major (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_get_compute_minor (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_device_get_n_multiprocessors (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_device_get_threads_per_multiprocessor (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_device_get_warp_size (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_device_get_max_shared_memory (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_device_get_l2_size (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_device_get_pci_id (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_device_get_uuid (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_get_integrated (GTorchDevice *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_device_get_driver_version (GTorchDevice *self);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_can_access_peer (GTorchDevice *self, GTorchDevice *peer);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_device_enable_peer (GTorchDevice *self, GTorchDevice *peer, GError **error);

G_END_DECLS
