/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MODULE_LIST (gtorch_module_list_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchModuleList, gtorch_module_list, GTORCH, MODULE_LIST, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchModuleList *gtorch_module_list_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchModuleList *gtorch_module_list_new_from_modules (GTorchModule **modules, gsize n_modules,
                                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_list_append (GTorchModuleList *self, GTorchModule *module, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_list_insert (GTorchModuleList *self, gint position, GTorchModule *module,
                                    GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_list_remove (GTorchModuleList *self, gint position, GError **error);

G_END_DECLS
