/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-grad-bucket.h>
#include <gtorch/nn/gtorch-layers.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_DISTRIBUTED_MODULE (gtorch_distributed_module_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchDistributedModule, gtorch_distributed_module, GTORCH,
                      DISTRIBUTED_MODULE, GTorchModule)

/**
 * GTorchCommHook:
 * @bucket: gradients of this rank
 * @user_data: the user data of the function
 * @error: return location for an error, with which the backward pass fails
 *
 * A function that exchanges gradients. The operations that it has begun may still go on when it returns:
 * what it gives back is read at the end of the backward pass.
 *
 * Returns: (transfer full): a tensor with as many elements as the bucket has, of any floating-point dtype,
 *   with the mean of all ranks, such as the bucket's buffer itself; or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchCommHook) (GTorchGradBucket *bucket, gpointer user_data,
                                         GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchDistributedModule *gtorch_distributed_module_new (GTorchModule *module,
                                                        GTorchProcessGroup *group,
                                                        gdouble bucket_cap_mb,
                                                        gboolean broadcast_buffers,
                                                        gboolean find_unused_parameters,
                                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchDistributedModule *gtorch_distributed_module_new_full (
    GTorchModule *module, GTorchProcessGroup *group, gdouble bucket_cap_mb,
    gboolean broadcast_buffers, gboolean find_unused_parameters, gboolean init_sync,
    gboolean static_graph, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_distributed_module_register_comm_hook (GTorchDistributedModule *self,
                                                       GTorchCommHook hook, gpointer user_data,
                                                       GDestroyNotify destroy, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_distributed_module_begin_join (GTorchDistributedModule *self,
                                               gboolean divide_by_initial_world_size,
                                               gboolean throw_on_early_termination, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_distributed_module_end_join (GTorchDistributedModule *self, gboolean wait,
                                             GError **error);
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

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_synchronize_batch_norm (GTorchModule *module, GTorchProcessGroup *group,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_sync_batch_norm_get_process_group (GTorchSyncBatchNorm *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_sync_batch_norm_set_process_group (GTorchSyncBatchNorm *self,
                                                   GTorchProcessGroup *group, GError **error);

G_END_DECLS
