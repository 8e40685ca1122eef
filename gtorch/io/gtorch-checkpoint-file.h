/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/io/gtorch-checkpoint-node.h>
#include <gtorch/io/gtorch-table.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CHECKPOINT_FILE (gtorch_checkpoint_file_get_type ())
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchCheckpointFile, gtorch_checkpoint_file, GTORCH, CHECKPOINT_FILE,
                      GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointFile *gtorch_checkpoint_file_load (GInputStream *stream, guint64 max_bytes,
                                                   GCancellable *cancellable,
                                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_checkpoint_file_load_async (GInputStream *stream, guint64 max_bytes, int io_priority,
                                        GCancellable *cancellable, GAsyncReadyCallback callback,
                                        gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointFile *gtorch_checkpoint_file_load_finish (GAsyncResult *result,
                                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointFile *gtorch_checkpoint_file_load_bytes (GBytes *bytes, guint64 max_bytes,
                                                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointFile *gtorch_checkpoint_file_load_file (GFile *file, gboolean map,
                                                        guint64 max_bytes,
                                                        GCancellable *cancellable,
                                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_checkpoint_file_load_file_async (GFile *file, gboolean map, guint64 max_bytes,
                                             int io_priority, GCancellable *cancellable,
                                             GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointFile *gtorch_checkpoint_file_load_file_finish (GAsyncResult *result, GError **error)
    G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointNode *
gtorch_checkpoint_file_get_root (GTorchCheckpointFile *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
guint gtorch_checkpoint_file_get_n_nodes (GTorchCheckpointFile *self);
GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointNode *gtorch_checkpoint_file_get_node (GTorchCheckpointFile *self,
                                                       guint index) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_checkpoint_file_get_tensors (GTorchCheckpointFile *self,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
guint gtorch_checkpoint_file_get_n_storages (GTorchCheckpointFile *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_checkpoint_file_get_storage (GTorchCheckpointFile *self, guint index);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_checkpoint_file_get_location (GTorchCheckpointFile *self, guint index);

G_END_DECLS
