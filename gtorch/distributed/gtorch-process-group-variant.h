/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_broadcast_variant (GTorchProcessGroup *self, GVariant *value,
                                                  gint src,
                                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_all_gather_variant (GTorchProcessGroup *self, GVariant *value,
                                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_gather_variant (GTorchProcessGroup *self, GVariant *value, gint dst,
                                               GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_scatter_variant (GTorchProcessGroup *self, GVariant *values,
                                                gint src, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_send_variant (GTorchProcessGroup *self, GVariant *value, gint dst,
                                            gint tag, GError **error);
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_recv_variant (GTorchProcessGroup *self, gint src, gint tag,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_broadcast_variant_async (GTorchProcessGroup *self, GVariant *value,
                                                   gint src, GCancellable *cancellable,
                                                   GAsyncReadyCallback callback,
                                                   gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_broadcast_variant_finish (GTorchProcessGroup *self,
                                                         GAsyncResult *result,
                                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_all_gather_variant_async (GTorchProcessGroup *self, GVariant *value,
                                                    GCancellable *cancellable,
                                                    GAsyncReadyCallback callback,
                                                    gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_all_gather_variant_finish (GTorchProcessGroup *self,
                                                          GAsyncResult *result,
                                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_gather_variant_async (GTorchProcessGroup *self, GVariant *value, gint dst,
                                                GCancellable *cancellable,
                                                GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_gather_variant_finish (GTorchProcessGroup *self,
                                                      GAsyncResult *result,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_scatter_variant_async (GTorchProcessGroup *self, GVariant *values,
                                                 gint src, GCancellable *cancellable,
                                                 GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_scatter_variant_finish (GTorchProcessGroup *self,
                                                       GAsyncResult *result,
                                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_send_variant_async (GTorchProcessGroup *self, GVariant *value, gint dst,
                                              gint tag, GCancellable *cancellable,
                                              GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_send_variant_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                                   GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_recv_variant_async (GTorchProcessGroup *self, gint src, gint tag,
                                              GCancellable *cancellable,
                                              GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GVariant *gtorch_process_group_recv_variant_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
