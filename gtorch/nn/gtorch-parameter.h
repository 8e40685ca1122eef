/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PARAMETER (gtorch_parameter_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchParameter, gtorch_parameter, GTORCH, PARAMETER, GTorchTensor)

GTORCH_AVAILABLE_IN_0_1
GTorchParameter *gtorch_parameter_new (GTorchTensor *data, gboolean requires_grad,
                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_parameter_get_name (GTorchParameter *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_parameter_set_name (GTorchParameter *self, const gchar *name);
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_parameter_dup_full_name (GTorchParameter *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_is_lazy (GTorchTensor *tensor);

G_END_DECLS
