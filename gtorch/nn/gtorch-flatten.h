/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_FLATTEN (gtorch_flatten_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchFlatten, gtorch_flatten, GTORCH, FLATTEN, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchFlatten *gtorch_flatten_new (gint64 start_dim, gint64 end_dim) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
