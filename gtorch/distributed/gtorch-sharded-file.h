/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/distributed/gtorch-process-group.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save_index (GFile *index, const gchar *const *names,
                                        GTorchTensor **tensors, gsize n_tensors,
                                        const gchar *const *metadata, guint64 max_part_size,
                                        GTorchProcessGroup *group, GCancellable *cancellable,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_safetensors_save_index_async (GFile *index, const gchar *const *names,
                                          GTorchTensor **tensors, gsize n_tensors,
                                          const gchar *const *metadata, guint64 max_part_size,
                                          GTorchProcessGroup *group, int io_priority,
                                          GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save_index_finish (GAsyncResult *result, GError **error);

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_safetensors_load_index (GFile *index, const gchar *const *wanted, gboolean map,
                                          GTorchDevice *device, gchar ***names, gchar ***metadata,
                                          GCancellable *cancellable,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_safetensors_load_index_async (GFile *index, const gchar *const *wanted, gboolean map,
                                          GTorchDevice *device, int io_priority,
                                          GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_safetensors_load_index_finish (GAsyncResult *result, gchar ***names,
                                                 gchar ***metadata,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
