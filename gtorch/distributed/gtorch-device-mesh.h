/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DEVICE_MESH (gtorch_device_mesh_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDeviceMesh, gtorch_device_mesh, GTORCH, DEVICE_MESH, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchDeviceMesh *gtorch_device_mesh_new (GTorchProcessGroup *world, const gint64 *shape,
                                          gsize n_dims, const gchar *const *dim_names,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_device_mesh_get_world (GTorchDeviceMesh *self);
GTORCH_AVAILABLE_IN_0_1
gint64 *gtorch_device_mesh_get_shape (GTorchDeviceMesh *self,
                                      gsize *n_dims) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gint64 *gtorch_device_mesh_get_coordinate (GTorchDeviceMesh *self,
                                           gsize *n_dims) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_device_mesh_get_dim_names (GTorchDeviceMesh *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gint gtorch_device_mesh_find_dim (GTorchDeviceMesh *self, const gchar *name, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_device_mesh_get_group (GTorchDeviceMesh *self, gint dim, GError **error);

G_END_DECLS
