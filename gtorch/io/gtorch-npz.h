/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/io/gtorch-table.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_npz_load (GInputStream *stream, guint64 max_bytes, GCancellable *cancellable,
                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_npz_load_async (GInputStream *stream, guint64 max_bytes, int io_priority,
                            GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_npz_load_finish (GAsyncResult *result,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_npz_load_bytes (GBytes *bytes, guint64 max_bytes,
                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_npz_load_file (GFile *file, gboolean map, guint64 max_bytes,
                                   GCancellable *cancellable,
                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_npz_load_file_async (GFile *file, gboolean map, guint64 max_bytes, int io_priority,
                                 GCancellable *cancellable, GAsyncReadyCallback callback,
                                 gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_npz_load_file_finish (GAsyncResult *result,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_npz_save (GTorchTable *table, gboolean compress, GOutputStream *stream,
                          GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_npz_save_async (GTorchTable *table, gboolean compress, GOutputStream *stream,
                            int io_priority, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_npz_save_finish (GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_npz_save_file (GTorchTable *table, gboolean compress, GFile *file,
                               GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_npz_save_file_async (GTorchTable *table, gboolean compress, GFile *file,
                                 int io_priority, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_npz_save_file_finish (GAsyncResult *result, GError **error);

G_END_DECLS
