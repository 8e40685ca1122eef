/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_LINEAR (gtorch_linear_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchLinear, gtorch_linear, GTORCH, LINEAR, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchLinear *gtorch_linear_new (gint64 in_features, gint64 out_features, gboolean bias,
                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
