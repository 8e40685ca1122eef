/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-reduce-op.h>
#include <gtorch/distributed/gtorch-store.h>
#include <gtorch/distributed/gtorch-work.h>
#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PROCESS_GROUP (gtorch_process_group_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchProcessGroup, gtorch_process_group, GTORCH, PROCESS_GROUP, GObject)

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_is_available (const gchar *backend, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_is_launched (void);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_process_group_new (const gchar *backend, GTorchStore *store, gint rank,
                                              gint world_size, gdouble timeout,
                                              GCancellable *cancellable,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_create_async (const gchar *backend, GTorchStore *store, gint rank,
                                        gint world_size, gdouble timeout, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_process_group_create_finish (GAsyncResult *result,
                                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_process_group_new_part (GTorchProcessGroup *self, const gint64 *ranks,
                                                   gsize n_ranks, gdouble timeout,
                                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_process_group_get_backend (GTorchProcessGroup *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_process_group_get_rank (GTorchProcessGroup *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_process_group_get_size (GTorchProcessGroup *self);
GTORCH_AVAILABLE_IN_0_1
GTorchStore *gtorch_process_group_get_store (GTorchProcessGroup *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_process_group_get_timeout (GTorchProcessGroup *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_set_timeout (GTorchProcessGroup *self, gdouble timeout,
                                           GError **error);
GTORCH_AVAILABLE_IN_0_1
gint64 *gtorch_process_group_get_ranks (GTorchProcessGroup *self,
                                        gsize *n_ranks) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_broadcast (GTorchProcessGroup *self, GTorchTensor *tensor,
                                            gint src, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_all_reduce (GTorchProcessGroup *self, GTorchTensor *tensor,
                                             GTorchReduceOp op,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_reduce (GTorchProcessGroup *self, GTorchTensor *tensor, gint dst,
                                         GTorchReduceOp op,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_all_gather (GTorchProcessGroup *self, GTorchTensor **outputs,
                                             gsize n_outputs, GTorchTensor *input,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_all_gather_into_tensor (GTorchProcessGroup *self,
                                                         GTorchTensor *output, GTorchTensor *input,
                                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_gather (GTorchProcessGroup *self, GTorchTensor **outputs,
                                         gsize n_outputs, GTorchTensor *input, gint dst,
                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_scatter (GTorchProcessGroup *self, GTorchTensor *output,
                                          GTorchTensor **inputs, gsize n_inputs, gint src,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_reduce_scatter (GTorchProcessGroup *self, GTorchTensor *output,
                                                 GTorchTensor **inputs, gsize n_inputs,
                                                 GTorchReduceOp op,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_reduce_scatter_tensor (GTorchProcessGroup *self,
                                                        GTorchTensor *output, GTorchTensor *input,
                                                        GTorchReduceOp op,
                                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_all_to_all (GTorchProcessGroup *self, GTorchTensor **outputs,
                                             gsize n_outputs, GTorchTensor **inputs, gsize n_inputs,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_all_to_all_single (
    GTorchProcessGroup *self, GTorchTensor *output, GTorchTensor *input,
    const gint64 *output_splits, gsize n_output_splits, const gint64 *input_splits,
    gsize n_input_splits, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_send (GTorchProcessGroup *self, GTorchTensor *tensor, gint dst,
                                       gint tag, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_recv (GTorchProcessGroup *self, GTorchTensor *tensor, gint src,
                                       gint tag, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchWork *gtorch_process_group_barrier (GTorchProcessGroup *self,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_monitored_barrier (GTorchProcessGroup *self, gdouble timeout,
                                                 GCancellable *cancellable, GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_process_group_shrink (GTorchProcessGroup *self, const gint64 *excluded,
                                                 gsize n_excluded,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
