/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_tensor_get_bytes (GTorchTensor *self, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_view_dtype (GTorchTensor *self, GTorchDType dtype,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gdouble *gtorch_tensor_to_doubles (GTorchTensor *self, gsize *n_values,
                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gint64 *gtorch_tensor_to_ints (GTorchTensor *self, gsize *n_values,
                               GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_tensor_item_double (GTorchTensor *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_tensor_item_int (GTorchTensor *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_item_bool (GTorchTensor *self, gboolean *value, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_item_complex (GTorchTensor *self, gdouble *real, gdouble *imaginary,
                                     GError **error);
GTORCH_AVAILABLE_IN_0_1
gsize gtorch_tensor_get_data_ptr (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_is_read_only (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_release (GTorchTensor *self);

G_END_DECLS
