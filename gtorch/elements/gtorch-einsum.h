/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_einsum (const gchar *equation, GTorchTensor **operands, gsize n_operands,
                             GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
