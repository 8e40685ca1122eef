/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>
#include <gtorch/nn/gtorch-module.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DISTRIBUTED_MODULE (gtorch_distributed_module_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDistributedModule, gtorch_distributed_module, GTORCH,
                      DISTRIBUTED_MODULE, GTorchModule)

GTORCH_AVAILABLE_IN_0_1
GTorchDistributedModule *gtorch_distributed_module_new (GTorchModule *module,
                                                        GTorchProcessGroup *group,
                                                        gdouble bucket_cap_mb,
                                                        gboolean broadcast_buffers,
                                                        gboolean find_unused_parameters,
                                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_distributed_module_begin_forward (GTorchDistributedModule *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_distributed_module_end_forward (GTorchDistributedModule *self,
                                                GTorchTensor **outputs, gsize n_outputs,
                                                GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_distributed_module_get_wrapped (GTorchDistributedModule *self);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_distributed_module_get_group (GTorchDistributedModule *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_distributed_module_get_require_backward_grad_sync (GTorchDistributedModule *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_distributed_module_set_require_backward_grad_sync (GTorchDistributedModule *self,
                                                               gboolean require);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_distributed_module_get_n_buckets (GTorchDistributedModule *self);

G_END_DECLS
