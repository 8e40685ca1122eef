/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchTensorHook:
 * @grad: the gradient
 * @user_data: the user data of the hook
 * @error: return location for an error, with which the backward pass fails
 *
 * A function that receives, and may replace, the gradient of a tensor during the backward pass.
 *
 * Returns: (transfer full) (nullable): a gradient of the same shape that replaces @grad, or %NULL to
 *   keep @grad, or with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchTensorHook) (GTorchTensor *grad, gpointer user_data, GError **error);

/**
 * GTorchAccumulatedHook:
 * @tensor: the leaf
 * @user_data: the user data of the hook
 * @error: return location for an error, with which the backward pass fails
 *
 * A function that is called when the grad of a leaf is complete.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchAccumulatedHook) (GTorchTensor *tensor, gpointer user_data,
                                           GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_get_requires_grad (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_set_requires_grad (GTorchTensor *self, gboolean requires_grad,
                                          GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_requires_grad_inplace (GTorchTensor *self, gboolean requires_grad,
                                                   GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_is_leaf (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_tensor_get_grad_fn_name (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_get_grad (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_set_grad (GTorchTensor *self, GTorchTensor *grad, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_retain_grad (GTorchTensor *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_get_retains_grad (GTorchTensor *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_set_data (GTorchTensor *self, GTorchTensor *data, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_detach_inplace (GTorchTensor *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tensor_detach (GTorchTensor *self, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_tensor_register_hook (GTorchTensor *self, GTorchTensorHook hook, gpointer user_data,
                                     GDestroyNotify destroy, GError **error);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_tensor_register_post_accumulate_grad_hook (GTorchTensor *self,
                                                          GTorchAccumulatedHook hook,
                                                          gpointer user_data,
                                                          GDestroyNotify destroy, GError **error);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_register_tensor_hook (GTorchTensor *tensor, GTorchTensorHook hook,
                                     gpointer user_data, GDestroyNotify destroy, GError **error);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_register_tensor_post_accumulate_grad_hook (GTorchTensor *tensor,
                                                          GTorchAccumulatedHook hook,
                                                          gpointer user_data,
                                                          GDestroyNotify destroy, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_remove_hook (GTorchTensor *self, guint64 id);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_backward (GTorchTensor *self, GTorchTensor *gradient, gboolean retain_graph,
                                 gboolean create_graph, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_tensor_backward_async (GTorchTensor *self, GTorchTensor *gradient,
                                   gboolean retain_graph, gboolean create_graph,
                                   GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tensor_backward_finish (GTorchTensor *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_autograd_backward (GTorchTensor **tensors, gsize n_tensors,
                                   GTorchTensor **grad_tensors, gsize n_grad_tensors,
                                   gboolean retain_graph, gboolean create_graph, GError **error);
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_autograd_grad (GTorchTensor **outputs, gsize n_outputs, GTorchTensor **inputs,
                                 gsize n_inputs, GTorchTensor **grad_outputs, gsize n_grad_outputs,
                                 gboolean retain_graph, gboolean create_graph,
                                 gboolean allow_unused, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
