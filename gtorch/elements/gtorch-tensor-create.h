/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_new_from_doubles (const gdouble *values, gsize n_values,
                                              const gint64 *shape, gsize n_dims, GTorchDType dtype,
                                              GTorchDevice *device,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_new_from_floats (const gfloat *values, gsize n_values,
                                             const gint64 *shape, gsize n_dims, GTorchDType dtype,
                                             GTorchDevice *device,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_new_from_ints (const gint64 *values, gsize n_values,
                                           const gint64 *shape, gsize n_dims, GTorchDType dtype,
                                           GTorchDevice *device,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_new_from_bools (const gboolean *values, gsize n_values,
                                            const gint64 *shape, gsize n_dims, GTorchDevice *device,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_new_from_bytes (GBytes *bytes, GTorchDType dtype, const gint64 *shape,
                                            gsize n_dims, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
