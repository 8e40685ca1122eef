/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_register_parameter (GTorchModule *self, const gchar *name,
                                           GTorchParameter *parameter, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_register_buffer (GTorchModule *self, const gchar *name, GTorchTensor *buffer,
                                        gboolean persistent, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_register_module (GTorchModule *self, const gchar *name, GTorchModule *module,
                                        GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchParameter *gtorch_module_get_parameter (GTorchModule *self, const gchar *path,
                                              GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_module_get_buffer (GTorchModule *self, const gchar *path, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_module_get_module (GTorchModule *self, const gchar *path, GError **error);

GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_module_get_parameters (GTorchModule *self,
                                          gboolean recurse) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_module_get_parameter_names (GTorchModule *self,
                                           gboolean recurse) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_module_get_buffers (GTorchModule *self,
                                       gboolean recurse) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_module_get_buffer_names (GTorchModule *self,
                                        gboolean recurse) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_module_get_children (GTorchModule *self);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_module_get_child_names (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_module_get_modules (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_module_get_module_names (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_module_count_parameters (GTorchModule *self, gboolean trainable_only);

GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_module_state_dict (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;
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

/**
 * GTorchForwardPreHook:
 * @module: the module
 * @input: what goes in
 * @user_data: what was given with the hook
 *
 * Sees, and may replace, the input of a module.
 *
 * Returns: (transfer full) (nullable): an input to go on with, or %NULL to keep @input
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchForwardPreHook) (GTorchModule *module, GTorchTensor *input,
                                               gpointer user_data);
/**
 * GTorchForwardHook:
 * @module: the module
 * @input: what went in
 * @output: what came out
 * @user_data: what was given with the hook
 *
 * Sees, and may replace, the output of a module.
 *
 * Returns: (transfer full) (nullable): an output to go on with, or %NULL to keep @output
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchForwardHook) (GTorchModule *module, GTorchTensor *input,
                                            GTorchTensor *output, gpointer user_data);

GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_forward_pre_hook (GTorchModule *self, GTorchForwardPreHook hook,
                                                 gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_module_register_forward_hook (GTorchModule *self, GTorchForwardHook hook,
                                             gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_remove_hook (GTorchModule *self, guint64 id);

G_END_DECLS
