/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PARAMETRIZATION_LIST (gtorch_parametrization_list_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchParametrizationList, gtorch_parametrization_list, GTORCH,
                      PARAMETRIZATION_LIST, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_parametrization_list_compute (GTorchParametrizationList *self,
                                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_parametrization_list_right_inverse (GTorchParametrizationList *self,
                                                    GTorchTensor *value, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_parametrization_list_has_one (GTorchParametrizationList *self);

G_END_DECLS
