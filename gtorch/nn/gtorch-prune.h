/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_prune_identity (GTorchModule *self, const gchar *name, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_prune_random_unstructured (GTorchModule *self, const gchar *name,
                                                  gdouble amount, gboolean is_count,
                                                  GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_prune_l1_unstructured (GTorchModule *self, const gchar *name, gdouble amount,
                                              gboolean is_count, GTorchTensor *importance_scores,
                                              GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_prune_random_structured (GTorchModule *self, const gchar *name,
                                                gdouble amount, gboolean is_count, gint64 dim,
                                                GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_prune_ln_structured (GTorchModule *self, const gchar *name, gdouble amount,
                                            gboolean is_count, gdouble n, gint64 dim,
                                            GTorchTensor *importance_scores, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_prune_custom_from_mask (GTorchModule *self, const gchar *name,
                                               GTorchTensor *mask, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_prune_global_unstructured (GTorchModule **modules, gsize n_modules,
                                           const gchar *const *names, gboolean at_random,
                                           gdouble amount, gboolean is_count,
                                           GTorchTensor **importance_scores,
                                           gsize n_importance_scores, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_is_pruned (GTorchModule *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_remove_pruning (GTorchModule *self, const gchar *name, GError **error);

G_END_DECLS
