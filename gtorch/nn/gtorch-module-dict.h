/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_MODULE_DICT (gtorch_module_dict_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchModuleDict, gtorch_module_dict, GTORCH, MODULE_DICT, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchModuleDict *gtorch_module_dict_new (void) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
