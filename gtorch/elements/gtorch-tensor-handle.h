/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TENSOR_HANDLE (gtorch_tensor_handle_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTensorHandle, gtorch_tensor_handle, GTORCH, TENSOR_HANDLE, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchTensorHandle *gtorch_tensor_handle_new (GTorchTensor *tensor,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensorHandle *gtorch_tensor_handle_new_from_bytes (GBytes *bytes, const gint *fds,
                                                         gsize n_fds,
                                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_tensor_handle_get_bytes (GTorchTensorHandle *self);
GTORCH_AVAILABLE_IN_0_1
const gint *gtorch_tensor_handle_get_fds (GTorchTensorHandle *self, gsize *n_fds);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_handle_open (GTorchTensorHandle *self,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_share_memory (GTorchTensor *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_is_shared (GTorchTensor *self);

G_END_DECLS
