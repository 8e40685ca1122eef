/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>
#include <gtorch/nn/gtorch-module-members.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MEMBER_MODEL (gtorch_member_model_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchMemberModel, gtorch_member_model, GTORCH, MEMBER_MODEL, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchMemberModel *gtorch_member_model_new (GTorchModule *module, GTorchMemberKind kind,
                                            gboolean recurse) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_member_model_get_module (GTorchMemberModel *self);
GTORCH_AVAILABLE_IN_0_1
GTorchMemberKind gtorch_member_model_get_kind (GTorchMemberModel *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_member_model_get_recurse (GTorchMemberModel *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_member_model_update (GTorchMemberModel *self);

G_END_DECLS
