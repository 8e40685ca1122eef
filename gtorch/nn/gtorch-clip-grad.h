/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_get_total_norm (GTorchTensor **tensors, gsize n_tensors, gdouble norm_type,
                                     gboolean error_if_nonfinite,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_clip_grads_with_norm (GTorchTensor **parameters, gsize n_parameters,
                                      gdouble max_norm, GTorchTensor *total_norm, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_clip_grad_norm (GTorchTensor **parameters, gsize n_parameters,
                                     gdouble max_norm, gdouble norm_type,
                                     gboolean error_if_nonfinite,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_clip_grad_value (GTorchTensor **parameters, gsize n_parameters, gdouble clip_value,
                                 GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_parameters_to_vector (GTorchTensor **parameters, gsize n_parameters,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_vector_to_parameters (GTorchTensor *vec, GTorchTensor **parameters,
                                      gsize n_parameters, GError **error);

G_END_DECLS
