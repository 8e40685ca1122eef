/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/autograd/gtorch-function-context.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_FUNCTION (gtorch_function_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchFunction, gtorch_function, GTORCH, FUNCTION, GObject)

/**
 * GTorchFunctionClass:
 * @parent_class: the parent class
 * @forward: computes the outputs
 * @backward: computes the gradients of the inputs
 *
 * The class of [class@Function].
 *
 * Since: 0.1
 */
struct _GTorchFunctionClass
{
  GObjectClass parent_class;

  /**
   * GTorchFunctionClass::forward:
   * @self: a function
   * @context: the context of this call, for saving values for backward
   * @inputs: (array length=n_inputs): the inputs
   * @n_inputs: the length of @inputs
   * @error: return location for an error
   *
   * Computes the outputs. Operations are not recorded meanwhile. Tensors that backward needs must be passed
   * to [method@FunctionContext.save_for_backward].
   *
   * Returns: (transfer full) (element-type GTorchTensor): the outputs, or %NULL with @error set
   *
   * Since: 0.1
   */
  GPtrArray *(*forward) (GTorchFunction *self, GTorchFunctionContext *context,
                         GTorchTensor **inputs, gsize n_inputs, GError **error);
  /**
   * GTorchFunctionClass::backward:
   * @self: a function
   * @context: the context of the call of forward
   * @grad_outputs: (array length=n_grad_outputs): a gradient for each output: zeros if none arrived, or
   *   %NULL after [method@FunctionContext.set_materialize_grads] with %FALSE
   * @n_grad_outputs: the length of @grad_outputs
   * @error: return location for an error
   *
   * Computes the gradients of the inputs. If it only uses operations on its arguments and saved tensors,
   * its result can be differentiated again.
   *
   * Returns: (transfer full) (element-type GTorchTensor): a gradient for each input (ignored where
   *   [method@FunctionContext.get_needs_input_grad] is %FALSE; in C, %NULL there), or only those for the
   *   inputs that need one, in their order; %NULL with @error set
   *
   * Since: 0.1
   */
  GPtrArray *(*backward) (GTorchFunction *self, GTorchFunctionContext *context,
                          GTorchTensor **grad_outputs, gsize n_grad_outputs, GError **error);

  /*< private >*/
  gpointer padding[6];
};

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_function_apply (GTorchFunction *self, GTorchTensor **inputs, gsize n_inputs,
                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_function_set_cast_inputs (GTorchFunction *self, GTorchDType dtype);
GTORCH_AVAILABLE_IN_0_1
GTorchDType gtorch_function_get_cast_inputs (GTorchFunction *self);

G_END_DECLS
