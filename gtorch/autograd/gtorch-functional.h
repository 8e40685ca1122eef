/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchFunctionalFunc:
 * @inputs: (array length=n_inputs): the inputs
 * @n_inputs: the length of @inputs
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * A function whose derivatives are computed.
 *
 * Returns: (transfer full) (element-type GTorchTensor): the outputs, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*GTorchFunctionalFunc) (GTorchTensor **inputs, gsize n_inputs,
                                            gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_autograd_jacobian (GTorchFunctionalFunc func, gpointer user_data,
                                     GTorchTensor **inputs, gsize n_inputs, gboolean create_graph,
                                     gboolean strict, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_autograd_hessian (GTorchFunctionalFunc func, gpointer user_data,
                                    GTorchTensor **inputs, gsize n_inputs, gboolean create_graph,
                                    gboolean strict, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_autograd_jacobian_forward (GTorchFunctionalFunc func, gpointer user_data,
                                             GTorchTensor **inputs, gsize n_inputs,
                                             gboolean create_graph, gboolean strict,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_autograd_hessian_forward (GTorchFunctionalFunc func, gpointer user_data,
                                            GTorchTensor **inputs, gsize n_inputs,
                                            gboolean create_graph, gboolean strict,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_autograd_vjp (GTorchFunctionalFunc func, gpointer user_data,
                                GTorchTensor **inputs, gsize n_inputs, GTorchTensor **v, gsize n_v,
                                gboolean create_graph, gboolean strict, GPtrArray **products,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_autograd_jvp (GTorchFunctionalFunc func, gpointer user_data,
                                GTorchTensor **inputs, gsize n_inputs, GTorchTensor **v, gsize n_v,
                                gboolean create_graph, gboolean strict, GPtrArray **products,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_autograd_vhp (GTorchFunctionalFunc func, gpointer user_data,
                                GTorchTensor **inputs, gsize n_inputs, GTorchTensor **v, gsize n_v,
                                gboolean create_graph, gboolean strict, GPtrArray **products,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_autograd_hvp (GTorchFunctionalFunc func, gpointer user_data,
                                GTorchTensor **inputs, gsize n_inputs, GTorchTensor **v, gsize n_v,
                                gboolean create_graph, gboolean strict, GPtrArray **products,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
