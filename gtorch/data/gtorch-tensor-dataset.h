/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-iterable-dataset.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TENSOR_DATASET (gtorch_tensor_dataset_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTensorDataset, gtorch_tensor_dataset, GTORCH, TENSOR_DATASET,
                      GTorchDataset)

GTORCH_AVAILABLE_IN_0_1
GTorchTensorDataset *gtorch_tensor_dataset_new (GTorchTensor **tensors, gsize n_tensors,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_tensor_dataset_get_tensors (GTorchTensorDataset *self) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
