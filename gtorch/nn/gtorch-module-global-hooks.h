/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module-hooks.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_global_forward_pre_hook (GTorchForwardPreHook hook,
                                                        gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_global_forward_hook (gboolean always_call, GTorchForwardHook hook,
                                                    gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_global_full_backward_pre_hook (GTorchBackwardPreHook hook,
                                                              gpointer user_data,
                                                              GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_global_full_backward_hook (GTorchBackwardHook hook,
                                                          gpointer user_data,
                                                          GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_remove_global_hook (guint64 id);

G_END_DECLS
