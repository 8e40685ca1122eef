/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PARAM_GROUP (gtorch_param_group_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchParamGroup, gtorch_param_group, GTORCH, PARAM_GROUP, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchParamGroup *gtorch_param_group_new (GListModel *params, gdouble learning_rate,
                                          gdouble weight_decay,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_param_group_check (GTorchParamGroup *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_param_group_get_params (GTorchParamGroup *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_param_group_get_learning_rate (GTorchParamGroup *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_param_group_set_learning_rate (GTorchParamGroup *self, gdouble learning_rate);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_param_group_get_initial_learning_rate (GTorchParamGroup *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_param_group_set_initial_learning_rate (GTorchParamGroup *self, gdouble learning_rate);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_param_group_get_weight_decay (GTorchParamGroup *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_param_group_set_weight_decay (GTorchParamGroup *self, gdouble weight_decay);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_param_group_set_setting (GTorchParamGroup *self, const gchar *name,
                                         const gdouble *values, gsize n_values, GError **error);
GTORCH_AVAILABLE_IN_0_1
gdouble *gtorch_param_group_get_setting (GTorchParamGroup *self, const gchar *name, gsize *n_values,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_param_group_get_setting_names (GTorchParamGroup *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_param_group_get_setting_type (GTorchParamGroup *self, const gchar *name);

G_END_DECLS
