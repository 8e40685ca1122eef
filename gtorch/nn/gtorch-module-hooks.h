/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/autograd/gtorch-function.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/**
 * GTorchForwardPreHook:
 * @module: the module
 * @inputs: (array length=n_inputs): the inputs
 * @n_inputs: the length of @inputs
 * @user_data: the data that was passed with the hook
 * @error: return location for an error, with which the call of the module fails
 *
 * Inspects the inputs of a module, and may replace them.
 *
 * Returns: (transfer full) (nullable) (element-type GTorchTensor): inputs to use instead, or %NULL to
 *   keep @inputs, or with @error set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*GTorchForwardPreHook) (GTorchModule *module, GTorchTensor **inputs,
                                            gsize n_inputs, gpointer user_data, GError **error);
/**
 * GTorchForwardHook:
 * @module: the module
 * @inputs: (array length=n_inputs): the inputs
 * @n_inputs: the length of @inputs
 * @output: (nullable): the output; %NULL after an error, of which only a hook that is always called is told
 * @user_data: the data that was passed with the hook
 * @error: return location for an error, with which the call of the module fails
 *
 * Inspects the output of a module, and may replace it.
 *
 * Returns: (transfer full) (nullable): an output to use instead, or %NULL to keep @output, or with @error
 *   set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchForwardHook) (GTorchModule *module, GTorchTensor **inputs,
                                            gsize n_inputs, GTorchTensor *output,
                                            gpointer user_data, GError **error);

/**
 * GTorchBackwardPreHook:
 * @module: the module
 * @grad_outputs: (array length=n_grad_outputs) (element-type GTorchTensor): the gradients of the outputs
 * @n_grad_outputs: the length of @grad_outputs
 * @user_data: the data that was passed with the hook
 * @error: return location for an error, with which the backward pass fails
 *
 * Inspects the gradients of the outputs of a module before its backward pass, and may replace them.
 *
 * Returns: (transfer full) (nullable) (element-type GTorchTensor): gradients to use instead, or %NULL to keep
 *   @grad_outputs, or with @error set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*GTorchBackwardPreHook) (GTorchModule *module, GTorchTensor **grad_outputs,
                                             gsize n_grad_outputs, gpointer user_data,
                                             GError **error);
/**
 * GTorchBackwardHook:
 * @module: the module
 * @grad_inputs: (array length=n_grad_inputs) (element-type GTorchTensor): the gradients of the inputs, with
 *   %NULL for one that does not require grad
 * @n_grad_inputs: the length of @grad_inputs
 * @grad_outputs: (array length=n_grad_outputs) (element-type GTorchTensor): the gradients of the outputs
 * @n_grad_outputs: the length of @grad_outputs
 * @user_data: the data that was passed with the hook
 * @error: return location for an error, with which the backward pass fails
 *
 * Inspects the gradients of a module after its backward pass, and may replace those of the inputs.
 *
 * Returns: (transfer full) (nullable) (element-type GTorchTensor): gradients of the inputs to use instead,
 *   all of them or only those of inputs that have one, in their order; or %NULL to keep @grad_inputs, or with
 *   @error set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*GTorchBackwardHook) (GTorchModule *module, GTorchTensor **grad_inputs,
                                          gsize n_grad_inputs, GTorchTensor **grad_outputs,
                                          gsize n_grad_outputs, gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_forward_pre_hook (GTorchModule *self, GTorchForwardPreHook hook,
                                                 gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_forward_hook (GTorchModule *self, GTorchForwardHook hook,
                                             gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_forward_pre_hook_full (GTorchModule *self, gboolean prepend,
                                                      GTorchForwardPreHook hook, gpointer user_data,
                                                      GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_forward_hook_full (GTorchModule *self, gboolean prepend,
                                                  gboolean always_call, GTorchForwardHook hook,
                                                  gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_full_backward_pre_hook (GTorchModule *self, gboolean prepend,
                                                       GTorchBackwardPreHook hook,
                                                       gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_full_backward_hook (GTorchModule *self, gboolean prepend,
                                                   GTorchBackwardHook hook, gpointer user_data,
                                                   GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
GTorchFunction *gtorch_module_new_backward_hooks (GTorchModule *self, GTorchFunction **of_outputs)
    G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_remove_hook (GTorchModule *self, guint64 id);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_has_hooks (GTorchModule *self);

G_END_DECLS
