/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_GRAD_NODE (gtorch_grad_node_get_type ())

/**
 * GTorchGradNode:
 *
 * A recorded operation, through which gradients flow back: [method@Tensor.dup_grad_node] gives the one that
 * computed
 * a tensor.
 *
 * Its inputs that want gradients were computed by nodes themselves, or are leaves. A node keeps those before
 * it, and
 * what they have saved, as the tensors do that were computed by them.
 *
 * Since: 0.1
 */
typedef struct _GTorchNode GTorchGradNode;

/**
 * GTorchGradNodePreHook:
 * @node: the node
 * @grad_outputs: (array length=n_grad_outputs) (element-type GTorchTensor): the gradients of the results of
 *   the operation, with %NULL for a result to which none came
 * @n_grad_outputs: the length of @grad_outputs
 * @user_data: the data that was passed with the hook
 * @error: return location for an error, with which the backward pass fails
 *
 * Inspects the gradients that come to a node before its backward runs, and may replace them.
 *
 * Returns: (transfer full) (nullable) (element-type GTorchTensor): gradients to use instead, all of them or
 *   only those that there are, in their order; or %NULL to keep @grad_outputs, or with @error set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*GTorchGradNodePreHook) (GTorchGradNode *node, GTorchTensor **grad_outputs,
                                             gsize n_grad_outputs, gpointer user_data,
                                             GError **error);
/**
 * GTorchGradNodeHook:
 * @node: the node
 * @grad_inputs: (array length=n_grad_inputs) (element-type GTorchTensor): the gradients of the inputs, with
 *   %NULL for one that needs none
 * @n_grad_inputs: the length of @grad_inputs
 * @grad_outputs: (array length=n_grad_outputs) (element-type GTorchTensor): the gradients of the results from
 *   which they were computed, with %NULL for a result to which none came
 * @n_grad_outputs: the length of @grad_outputs
 * @user_data: the data that was passed with the hook
 * @error: return location for an error, with which the backward pass fails
 *
 * Inspects the gradients that a node has computed, and may replace them.
 *
 * Returns: (transfer full) (nullable) (element-type GTorchTensor): gradients of the inputs to use instead,
 *   all of them or only those that there are, in their order; or %NULL to keep @grad_inputs, or with @error
 *   set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*GTorchGradNodeHook) (GTorchGradNode *node, GTorchTensor **grad_inputs,
                                          gsize n_grad_inputs, GTorchTensor **grad_outputs,
                                          gsize n_grad_outputs, gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
GType gtorch_grad_node_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchGradNode *gtorch_tensor_dup_grad_node (GTorchTensor *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchGradNode *gtorch_grad_node_ref (GTorchGradNode *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_grad_node_unref (GTorchGradNode *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_grad_node_get_name (GTorchGradNode *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_grad_node_get_n_inputs (GTorchGradNode *self);
GTORCH_AVAILABLE_IN_0_1
GTorchGradNode *gtorch_grad_node_dup_input (GTorchGradNode *self,
                                            guint i) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
guint gtorch_grad_node_get_output_of_input (GTorchGradNode *self, guint i);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_grad_node_dup_leaf (GTorchGradNode *self, guint i) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_node_equal (GTorchGradNode *self, GTorchGradNode *other);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_grad_node_register_prehook (GTorchGradNode *self, GTorchGradNodePreHook hook,
                                           gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_grad_node_register_hook (GTorchGradNode *self, GTorchGradNodeHook hook,
                                        gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_grad_node_remove_hook (GTorchGradNode *self, guint64 id);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchGradNode, gtorch_grad_node_unref)

G_END_DECLS
