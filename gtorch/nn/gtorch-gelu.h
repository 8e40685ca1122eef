/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_GELU (gtorch_gelu_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGELU, gtorch_gelu, GTORCH, GELU, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchGELU *gtorch_gelu_new (gboolean tanh_approximation) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
