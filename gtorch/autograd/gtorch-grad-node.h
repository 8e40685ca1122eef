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

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchGradNode, gtorch_grad_node_unref)

G_END_DECLS
