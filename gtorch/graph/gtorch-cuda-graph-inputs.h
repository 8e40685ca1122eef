/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/graph/gtorch-cuda-graph.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_add_input (GTorchCUDAGraph *self, const gchar *name,
                                      GTorchTensor *placeholder, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_cuda_graph_get_input (GTorchCUDAGraph *self, const gchar *name);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_cuda_graph_get_input_names (GTorchCUDAGraph *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_set_input (GTorchCUDAGraph *self, const gchar *name, GTorchTensor *value,
                                      GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_rebind (GTorchCUDAGraph *self, GTorchTensor *from, GTorchTensor *to,
                                   GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_cuda_graph_rebind_input (GTorchCUDAGraph *self, const gchar *name, GTorchTensor *to,
                                         GError **error);

G_END_DECLS
