/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_register_parametrization (GTorchModule *self, const gchar *tensor_name,
                                                 GTorchModule *parametrization, gboolean unsafe,
                                                 GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_remove_parametrizations (GTorchModule *self, const gchar *tensor_name,
                                                gboolean leave_parametrized, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_is_parametrized (GTorchModule *self, const gchar *tensor_name);
GTORCH_AVAILABLE_IN_0_1
void gtorch_parametrize_begin_cache (void);
GTORCH_AVAILABLE_IN_0_1
void gtorch_parametrize_end_cache (void);

G_END_DECLS
