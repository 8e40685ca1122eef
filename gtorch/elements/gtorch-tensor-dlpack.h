/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gpointer gtorch_tensor_to_dlpack (GTorchTensor *self, gboolean versioned, gboolean copy,
                                  GTorchStream *stream, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_new_from_dlpack (gpointer managed, gboolean versioned,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_tensor_export_dlpack (GTorchTensor *self, gboolean versioned, gboolean copy,
                                   GTorchStream *stream, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_import_dlpack (gsize address, gboolean versioned,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_get_dlpack_device (GTorchTensor *self, gint *device_type, gint *device_id);
GTORCH_AVAILABLE_IN_0_1
void gtorch_dlpack_delete (gsize address, gboolean versioned);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_dlpack_get_capsule_name (gboolean versioned, gboolean consumed);

G_END_DECLS
