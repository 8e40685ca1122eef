/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/nn/gtorch-parameter.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MODULE (gtorch_module_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchModule, gtorch_module, GTORCH, MODULE, GObject)

/**
 * GTorchModuleClass:
 * @parent_class: the parent class
 * @forward: computes the output for one input
 * @forward_many: computes the output for several inputs
 * @extra_repr: returns the text between the brackets in [method@Module.to_string], or %NULL
 * @right_inverse: for parametrizations: returns what forward computes a tensor from; by default there is none
 *
 * The virtual functions of a module.
 *
 * Since: 0.1
 */
struct _GTorchModuleClass
{
  GObjectClass parent_class;

  GTorchTensor *(*forward) (GTorchModule *self, GTorchTensor *input, GError **error);
  GTorchTensor *(*forward_many) (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                                 GError **error);
  gchar *(*extra_repr) (GTorchModule *self);
  GTorchTensor *(*get_extra_state) (GTorchModule *self);
  gboolean (*set_extra_state) (GTorchModule *self, GTorchTensor *state, GError **error);
  /**
   * GTorchModuleClass::right_inverse:
   * @self: a parametrization
   * @value: a tensor
   * @error: return location for an error
   *
   * Returns what forward computes @value from, or a value close to it, for
   * [method@Module.register_parametrization]. A parametrization that takes several tensors returns as many.
   *
   * Returns: (transfer full) (element-type GTorchTensor): the tensors, or %NULL with @error set
   *
   * Since: 0.1
   */
  GPtrArray *(*right_inverse) (GTorchModule *self, GTorchTensor *value, GError **error);

  /*< private >*/
  gpointer check;
  gconstpointer lazy;
  gpointer reset;
  gpointer padding[4];
};

/**
 * GTorchModuleFunc:
 * @module: a module
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * A function that is called for a module.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchModuleFunc) (GTorchModule *module, gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
gpointer gtorch_module_new (GType type, GError **error, const gchar *first_property,
                            ...) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_module_forward (GTorchModule *self, GTorchTensor *input,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_module_forward_many (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_module_forward_async (GTorchModule *self, GTorchTensor *input,
                                  GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_module_forward_finish (GTorchModule *self, GAsyncResult *result,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_check (GTorchModule *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_has_uninitialized_params (GTorchModule *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_get_training (GTorchModule *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_module_set_training (GTorchModule *self, gboolean training);
GTORCH_AVAILABLE_IN_0_1
void gtorch_module_train (GTorchModule *self, gboolean mode);
GTORCH_AVAILABLE_IN_0_1
void gtorch_module_eval (GTorchModule *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_to (GTorchModule *self, GTorchDevice *device, GTorchDType dtype,
                           GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_zero_grad (GTorchModule *self, gboolean set_to_none, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_set_requires_grad (GTorchModule *self, gboolean requires_grad,
                                          GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_apply (GTorchModule *self, GTorchModuleFunc func, gpointer user_data,
                              GError **error);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_module_count_parameters (GTorchModule *self, gboolean trainable_only);
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_module_to_string (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
