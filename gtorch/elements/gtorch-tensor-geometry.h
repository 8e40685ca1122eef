/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_unsqueeze_inplace (GTorchTensor *self, gint64 dim, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_squeeze_inplace (GTorchTensor *self, const gint64 *dim, gsize n_dim,
                                             GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_transpose_inplace (GTorchTensor *self, gint64 dim0, gint64 dim1,
                                               GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_resize_inplace (GTorchTensor *self, const gint64 *shape, gsize n_dims,
                                            GError **error);

G_END_DECLS
