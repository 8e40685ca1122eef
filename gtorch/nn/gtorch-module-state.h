/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_module_state_dict (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_module_get_extra_state (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_set_extra_state (GTorchModule *self, GTorchTensor *state, GError **error);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_module_get_state_names (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_load_state_dict (GTorchModule *self, GHashTable *state, gboolean strict,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_module_state_lists (GTorchModule *self, gchar ***names) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_load_state_lists (GTorchModule *self, const gchar *const *names,
                                         GTorchTensor **tensors, gsize n_tensors, gboolean strict,
                                         GError **error);

G_END_DECLS
