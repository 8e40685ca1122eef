/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "autograd/gtorch-grad-node.h"

#include "autograd/gtorch-autograd-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

G_DEFINE_BOXED_TYPE (GTorchGradNode, gtorch_grad_node, gtorch_grad_node_ref, gtorch_grad_node_unref)

/**
 * gtorch_tensor_dup_grad_node:
 * @self: a tensor
 *
 * Gets the recorded operation that computed @self.
 *
 * Returns: (transfer full) (nullable): the node, or %NULL for a leaf
 *
 * Since: 0.1
 */
GTorchGradNode *
gtorch_tensor_dup_grad_node (GTorchTensor *self)
{
  GTORCH_HOLD_TENSOR (self);

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  if (gtorch_impl_is_leaf (gtorch_tensor_unwrap (self)))
    return NULL;
  return gtorch_node_ref (self->impl->autograd->grad_fn);
}

/**
 * gtorch_grad_node_ref: (skip)
 * @self: a node
 *
 * Adds a reference.
 *
 * Returns: (transfer full): the node
 *
 * Since: 0.1
 */
GTorchGradNode *
gtorch_grad_node_ref (GTorchGradNode *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return gtorch_node_ref (self);
}

/**
 * gtorch_grad_node_unref: (skip)
 * @self: (transfer full): a node
 *
 * Drops a reference.
 *
 * Since: 0.1
 */
void
gtorch_grad_node_unref (GTorchGradNode *self)
{
  g_return_if_fail (self != NULL);
  gtorch_node_unref (self);
}

/**
 * gtorch_grad_node_get_name:
 * @self: a node
 *
 * Gets the name of the operation.
 *
 * Returns: the name
 *
 * Since: 0.1
 */
const gchar *
gtorch_grad_node_get_name (GTorchGradNode *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->name;
}

/**
 * gtorch_grad_node_get_n_inputs:
 * @self: a node
 *
 * Gets the number of tensors that the operation was computed from.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_grad_node_get_n_inputs (GTorchGradNode *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->n_edges;
}

/**
 * gtorch_grad_node_dup_input:
 * @self: a node
 * @i: the number of an input
 *
 * Gets the operation that computed an input.
 *
 * Returns: (transfer full) (nullable): the node, or %NULL for a leaf, for an input to which no gradient
 * flows, and
 *   if there is no such input
 *
 * Since: 0.1
 */
GTorchGradNode *
gtorch_grad_node_dup_input (GTorchGradNode *self, guint i)
{
  g_return_val_if_fail (self != NULL, NULL);
  if (i >= self->n_edges || self->edges[i].node == NULL)
    return NULL;
  return gtorch_node_ref (self->edges[i].node);
}

/**
 * gtorch_grad_node_get_output_of_input:
 * @self: a node
 * @i: the number of an input
 *
 * Tells which of the results of [method@GradNode.dup_input] the input is.
 *
 * Returns: the number of the result, 0 if there is no such node
 *
 * Since: 0.1
 */
guint
gtorch_grad_node_get_output_of_input (GTorchGradNode *self, guint i)
{
  g_return_val_if_fail (self != NULL, 0);
  return i < self->n_edges && self->edges[i].node != NULL ? self->edges[i].index : 0;
}

/**
 * gtorch_grad_node_dup_leaf:
 * @self: a node
 * @i: the number of an input
 *
 * Gets an input that is a leaf which requires a gradient.
 *
 * Returns: (transfer full) (nullable): the tensor, or %NULL if the input is none, and if there is no such
 * input
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_grad_node_dup_leaf (GTorchGradNode *self, guint i)
{
  g_return_val_if_fail (self != NULL, NULL);
  if (i >= self->n_edges || self->edges[i].node != NULL || self->edges[i].leaf == NULL)
    return NULL;
  return gtorch_tensor_wrap (gtorch_impl_ref (self->edges[i].leaf));
}

/**
 * gtorch_grad_node_equal:
 * @self: a node
 * @other: a node
 *
 * Tells whether both are the same operation.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_node_equal (GTorchGradNode *self, GTorchGradNode *other)
{
  g_return_val_if_fail (self != NULL, FALSE);
  g_return_val_if_fail (other != NULL, FALSE);
  return self == other;
}
