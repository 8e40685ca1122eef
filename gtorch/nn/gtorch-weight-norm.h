/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_WEIGHT_NORM (gtorch_weight_norm_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchWeightNorm, gtorch_weight_norm, GTORCH, WEIGHT_NORM, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchWeightNorm *gtorch_weight_norm_new (gint64 dim) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_parametrize_weight_norm (GTorchModule *self, const gchar *name, gint64 dim,
                                                GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_apply_weight_norm (GTorchModule *self, const gchar *name, gint64 dim,
                                          GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_remove_weight_norm (GTorchModule *self, const gchar *name, GError **error);

G_END_DECLS
