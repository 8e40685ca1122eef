/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-param-group.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_OPTIMIZER (gtorch_optimizer_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchOptimizer, gtorch_optimizer, GTORCH, OPTIMIZER, GObject)

/**
 * GTorchOptimizerClosure:
 * @user_data: the user data of the function
 * @error: return location for an error, with which the step fails
 *
 * A function that computes the loss anew, and the gradients of the parameters by it.
 *
 * Returns: (transfer full): the loss, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchOptimizerClosure) (gpointer user_data, GError **error);

/**
 * GTorchOptimizerClass:
 * @parent_class: the parent class
 * @step_param: updates one parameter that has a gradient
 *
 * The virtual functions of an optimizer.
 *
 * Since: 0.1
 */
struct _GTorchOptimizerClass
{
  GObjectClass parent_class;

  /**
   * GTorchOptimizerClass::step_param:
   * @self: an optimizer
   * @group: the group of @param
   * @param: a parameter
   * @grad: its gradient
   * @error: return location for an error
   *
   * Updates @param in place. The grad mode is off meanwhile.
   *
   * Returns: %TRUE, or %FALSE with @error set
   */
  gboolean (*step_param) (GTorchOptimizer *self, GTorchParamGroup *group, GTorchTensor *param,
                          GTorchTensor *grad, GError **error);

  /*< private >*/
  gpointer step_params, check; /* the first for a fused optimizer */
  gconstpointer row;           /* for an optimizer that is generated from a row */
  gpointer has_own_shapes;     /* not NULL: states may have any shape */
  gpointer step_closure;       /* not NULL: makes steps that call a closure several times */
  gconstpointer settings;      /* the table of the settings of groups; NULL: they may have any */
  gpointer padding[2];
};

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_optimizer_check (GTorchOptimizer *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_optimizer_step (GTorchOptimizer *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_optimizer_step_closure (GTorchOptimizer *self, GTorchOptimizerClosure closure,
                                             gpointer user_data,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_optimizer_zero_grad (GTorchOptimizer *self, gboolean set_to_none, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_optimizer_add_param_group (GTorchOptimizer *self, GTorchParamGroup *group,
                                           GError **error);
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_optimizer_get_param_groups (GTorchOptimizer *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_optimizer_set_setting (GTorchOptimizer *self, const gchar *name,
                                       const gdouble *values, gsize n_values, GError **error);
GTORCH_AVAILABLE_IN_0_1
gdouble *gtorch_optimizer_get_default (GTorchOptimizer *self, const gchar *name, gsize *n_values,
                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_optimizer_get_setting_names (GTorchOptimizer *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_optimizer_get_setting_type (GTorchOptimizer *self, const gchar *name);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_optimizer_get_learning_rate (GTorchOptimizer *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_optimizer_set_learning_rate (GTorchOptimizer *self, gdouble learning_rate);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_optimizer_get_capturable (GTorchOptimizer *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_optimizer_set_capturable (GTorchOptimizer *self, gboolean capturable);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_optimizer_get_state (GTorchOptimizer *self, GTorchTensor *param,
                                          const gchar *name);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_optimizer_get_state_names (GTorchOptimizer *self,
                                          GTorchTensor *param) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_optimizer_set_state (GTorchOptimizer *self, GTorchTensor *param, const gchar *name,
                                 GTorchTensor *value);
GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_optimizer_state_dict (GTorchOptimizer *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_optimizer_load_state_dict (GTorchOptimizer *self, GHashTable *state,
                                           GError **error);
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_optimizer_state_lists (GTorchOptimizer *self,
                                         gchar ***names) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_optimizer_load_state_lists (GTorchOptimizer *self, const gchar *const *names,
                                            GTorchTensor **tensors, gsize n_tensors,
                                            GError **error);

G_END_DECLS
