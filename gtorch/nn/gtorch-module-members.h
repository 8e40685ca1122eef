/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

/**
 * GTorchMemberKind:
 * @GTORCH_MEMBER_KIND_NONE: nothing
 * @GTORCH_MEMBER_KIND_PARAMETER: a parameter, possibly %NULL
 * @GTORCH_MEMBER_KIND_BUFFER: a buffer, possibly %NULL
 * @GTORCH_MEMBER_KIND_MODULE: a module
 *
 * The kind of member that has a name in a module.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_MEMBER_KIND_NONE,
  GTORCH_MEMBER_KIND_PARAMETER,
  GTORCH_MEMBER_KIND_BUFFER,
  GTORCH_MEMBER_KIND_MODULE,
} GTorchMemberKind;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_member_kind_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_MEMBER_KIND (gtorch_member_kind_get_type ())

GTORCH_AVAILABLE_IN_0_1
GTorchMemberKind gtorch_module_get_member_kind (GTorchModule *self, const gchar *name);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_module_get_member_names (GTorchModule *self,
                                        GTorchMemberKind kind) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_register_parameter (GTorchModule *self, const gchar *name,
                                           GTorchParameter *parameter, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_register_buffer (GTorchModule *self, const gchar *name, GTorchTensor *buffer,
                                        gboolean persistent, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_set_buffer (GTorchModule *self, const gchar *name, GTorchTensor *buffer,
                                   GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_register_module (GTorchModule *self, const gchar *name, GTorchModule *module,
                                        GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_unregister (GTorchModule *self, const gchar *name, GError **error);

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
GTorchTensor *gtorch_module_get_tensor (GTorchModule *self, const gchar *name,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_set_tensor (GTorchModule *self, const gchar *name, GTorchTensor *value,
                                   GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_is_computed (GTorchModule *self, const gchar *name);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_module_get_computed_names (GTorchModule *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_module_describe_computed (GTorchModule *self,
                                        const gchar *name) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_restore_computed (GTorchModule *self, const gchar *name,
                                         const gchar *description, GError **error);

G_END_DECLS
