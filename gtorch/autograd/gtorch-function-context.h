/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_FUNCTION_CONTEXT (gtorch_function_context_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchFunctionContext, gtorch_function_context, GTORCH, FUNCTION_CONTEXT,
                      GObject)

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_function_context_save_for_backward (GTorchFunctionContext *self,
                                                    GTorchTensor **tensors, gsize n_tensors,
                                                    GError **error);
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_function_context_get_saved_tensors (GTorchFunctionContext *self,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_function_context_get_needs_input_grad (GTorchFunctionContext *self, guint index);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_function_context_get_n_inputs (GTorchFunctionContext *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_function_context_mark_dirty (GTorchFunctionContext *self, GTorchTensor **tensors,
                                             gsize n_tensors, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_function_context_mark_non_differentiable (GTorchFunctionContext *self,
                                                          GTorchTensor **tensors, gsize n_tensors,
                                                          GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_function_context_set_materialize_grads (GTorchFunctionContext *self,
                                                    gboolean materialize);

G_END_DECLS
