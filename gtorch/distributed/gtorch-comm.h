/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_comm_broadcast (GTorchTensor *tensor, GTorchDevice **devices, gsize n_devices,
                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_comm_broadcast_out (GTorchTensor *tensor, GTorchTensor **out, gsize n_out,
                                    GError **error);
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_comm_broadcast_coalesced (GTorchTensor **tensors, gsize n_tensors,
                                            GTorchDevice **devices, gsize n_devices,
                                            gsize buffer_size,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_comm_reduce_add (GTorchTensor **inputs, gsize n_inputs,
                                      GTorchDevice *destination,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_comm_reduce_add_coalesced (GTorchTensor **inputs, gsize n_inputs, gsize n_lists,
                                             GTorchDevice *destination, gsize buffer_size,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_comm_scatter (GTorchTensor *tensor, GTorchDevice **devices, gsize n_devices,
                                const gint64 *chunk_sizes, gsize n_chunk_sizes, gint dim,
                                GTorchStream **streams, gsize n_streams,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_comm_scatter_out (GTorchTensor *tensor, GTorchTensor **out, gsize n_out, gint dim,
                                  GTorchStream **streams, gsize n_streams, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_comm_gather (GTorchTensor **tensors, gsize n_tensors, gint dim,
                                  GTorchDevice *destination,
                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_comm_gather_out (GTorchTensor **tensors, gsize n_tensors, gint dim,
                                 GTorchTensor *out, GError **error);

G_END_DECLS
