/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/elements/gtorch-memory-format.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_to_memory_format (GTorchModule *self, GTorchMemoryFormat memory_format,
                                         GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_convert_conv2d_weight_memory_format (GTorchModule *self,
                                                            GTorchMemoryFormat memory_format,
                                                            GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_module_convert_conv3d_weight_memory_format (GTorchModule *self,
                                                            GTorchMemoryFormat memory_format,
                                                            GError **error);

G_END_DECLS
