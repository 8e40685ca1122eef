/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/**
 * GTorchGraphedFunc:
 * @inputs: (array length=n_inputs): the inputs
 * @n_inputs: the length of @inputs
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Computes outputs from inputs with operations that can be captured.
 *
 * Returns: (transfer full) (element-type GTorchTensor): the outputs, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GPtrArray *(*GTorchGraphedFunc) (GTorchTensor **inputs, gsize n_inputs, gpointer user_data,
                                         GError **error);

#define GTORCH_TYPE_GRAPHED_MODULE (gtorch_graphed_module_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGraphedModule, gtorch_graphed_module, GTORCH, GRAPHED_MODULE,
                      GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchGraphedModule *gtorch_graphed_module_new (GTorchModule *module, GTorchTensor **samples,
                                                gsize n_samples,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchGraphedModule *gtorch_graphed_module_new_for_func (GTorchGraphedFunc func, gpointer user_data,
                                                         GDestroyNotify destroy,
                                                         GTorchTensor **samples, gsize n_samples,
                                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_make_graphed_callables (GTorchGraphedModule **callables, gsize n_callables,
                                        GTorchMemoryPool *pool, GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_graphed_module_get_wrapped (GTorchGraphedModule *self);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_graphed_module_get_warmup_iterations (GTorchGraphedModule *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_graphed_module_set_warmup_iterations (GTorchGraphedModule *self, guint n);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_graphed_module_get_allow_unused (GTorchGraphedModule *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_graphed_module_set_allow_unused (GTorchGraphedModule *self, gboolean allow_unused);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_graphed_module_get_both_modes (GTorchGraphedModule *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_graphed_module_set_both_modes (GTorchGraphedModule *self, gboolean both_modes);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_graphed_module_is_captured (GTorchGraphedModule *self);

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_graphed_module_run (GTorchGraphedModule *self, GTorchTensor **inputs,
                                      gsize n_inputs, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_graphed_module_get_inputs (GTorchGraphedModule *self,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
