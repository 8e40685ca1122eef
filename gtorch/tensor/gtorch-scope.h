/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_SCOPE (gtorch_scope_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_scope_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchScope *gtorch_scope_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_scope_keep (GTorchScope *self, GTorchTensor *tensor);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_scope_get_n_tensors (GTorchScope *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_scope_end (GTorchScope *self);
GTORCH_AVAILABLE_IN_0_1
GTorchScope *gtorch_scope_ref (GTorchScope *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_scope_unref (GTorchScope *self);
_GTORCH_DEFINE_GUARD_AUTOPTR (GTorchScope, gtorch_scope_unref)

G_END_DECLS
