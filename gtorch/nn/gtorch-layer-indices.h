/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_module_forward_with_indices (GTorchModule *self, GTorchTensor *input,
                                               GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
