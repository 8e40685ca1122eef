/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TENSOR_ITER (gtorch_tensor_iter_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_tensor_iter_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchTensorIter *gtorch_tensor_iter_new (GTorchTensor *tensor) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_iter_next_value (GTorchTensorIter *self,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensorIter *gtorch_tensor_iter_ref (GTorchTensorIter *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_iter_unref (GTorchTensorIter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchTensorIter, gtorch_tensor_iter_unref)

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_get_at (GTorchTensor *self, GError **error,
                                    ...) G_GNUC_NULL_TERMINATED G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_set_at (GTorchTensor *self, GError **error, ...) G_GNUC_NULL_TERMINATED;

G_END_DECLS
