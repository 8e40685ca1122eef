/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

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
 * @output: the output
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

GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_forward_pre_hook (GTorchModule *self, GTorchForwardPreHook hook,
                                                 gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_forward_hook (GTorchModule *self, GTorchForwardHook hook,
                                             gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_remove_hook (GTorchModule *self, guint64 id);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_has_hooks (GTorchModule *self);

G_END_DECLS
