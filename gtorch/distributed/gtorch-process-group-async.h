/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_new_part_async (GTorchProcessGroup *self, const gint64 *ranks,
                                          gsize n_ranks, gdouble timeout, GCancellable *cancellable,
                                          GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_process_group_new_part_finish (GTorchProcessGroup *self,
                                                          GAsyncResult *result,
                                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_shrink_async (GTorchProcessGroup *self, const gint64 *excluded,
                                        gsize n_excluded, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchProcessGroup *gtorch_process_group_shrink_finish (GTorchProcessGroup *self,
                                                        GAsyncResult *result,
                                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_monitored_barrier_async (GTorchProcessGroup *self, gdouble timeout,
                                                   GCancellable *cancellable,
                                                   GAsyncReadyCallback callback,
                                                   gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_monitored_barrier_finish (GTorchProcessGroup *self,
                                                        GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_process_group_bind_device_async (GTorchProcessGroup *self, GTorchDevice *device,
                                             GCancellable *cancellable,
                                             GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_process_group_bind_device_finish (GTorchProcessGroup *self, GAsyncResult *result,
                                                  GError **error);

G_END_DECLS
