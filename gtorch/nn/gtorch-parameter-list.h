/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PARAMETER_LIST (gtorch_parameter_list_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchParameterList, gtorch_parameter_list, GTORCH, PARAMETER_LIST,
                      GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchParameterList *gtorch_parameter_list_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchParameterList *
gtorch_parameter_list_new_from_parameters (GTorchParameter **parameters, gsize n_parameters,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_parameter_list_append (GTorchParameterList *self, GTorchParameter *parameter);

G_END_DECLS
