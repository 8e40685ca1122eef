/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Further operations of a group. */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_broadcast_coalesced (GTorchProcessGroup *self,
                                                      GTorchTensor **tensors, gsize n_tensors,
                                                      gint src,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_all_reduce_coalesced (GTorchProcessGroup *self,
                                                       GTorchTensor **tensors, gsize n_tensors,
                                                       GTorchReduceOp op,
                                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_all_gather_coalesced (GTorchProcessGroup *self,
                                                       GTorchTensor **outputs, gsize n_outputs,
                                                       GTorchTensor **inputs, gsize n_inputs,
                                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_reduce_scatter_coalesced (
    GTorchProcessGroup *self, GTorchTensor **outputs, gsize n_outputs, GTorchTensor **inputs,
    gsize n_inputs, GTorchReduceOp op, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_recv_any (GTorchProcessGroup *self, GTorchTensor *tensor, gint tag,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_all_reduce_premul (GTorchProcessGroup *self, GTorchTensor *tensor,
                                                    gdouble factor,
                                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *
gtorch_process_group_reduce_scatter_tensor_premul (GTorchProcessGroup *self, GTorchTensor *output,
                                                   GTorchTensor *input, gdouble factor,
                                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
