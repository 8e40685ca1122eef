/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/io/gtorch-checkpoint-node.h>
#include <gtorch/io/gtorch-table.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CHECKPOINT (gtorch_checkpoint_get_type ())
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchCheckpoint, gtorch_checkpoint, GTORCH, CHECKPOINT, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchCheckpoint *gtorch_checkpoint_load (GInputStream *stream, guint64 max_bytes,
                                          GCancellable *cancellable,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_checkpoint_load_async (GInputStream *stream, guint64 max_bytes, int io_priority,
                                   GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpoint *gtorch_checkpoint_load_finish (GAsyncResult *result,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpoint *gtorch_checkpoint_load_bytes (GBytes *bytes, guint64 max_bytes,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpoint *gtorch_checkpoint_load_file (GFile *file, gboolean map, guint64 max_bytes,
                                               GCancellable *cancellable,
                                               GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_checkpoint_load_file_async (GFile *file, gboolean map, guint64 max_bytes,
                                        int io_priority, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpoint *gtorch_checkpoint_load_file_finish (GAsyncResult *result,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointNode *gtorch_checkpoint_get_root (GTorchCheckpoint *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
guint gtorch_checkpoint_get_n_nodes (GTorchCheckpoint *self);
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointNode *gtorch_checkpoint_get_node (GTorchCheckpoint *self,
                                                  guint index) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_checkpoint_get_tensors (GTorchCheckpoint *self,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
guint gtorch_checkpoint_get_n_storages (GTorchCheckpoint *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_checkpoint_get_storage (GTorchCheckpoint *self, guint index);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_checkpoint_get_location (GTorchCheckpoint *self, guint index);

G_END_DECLS
