/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/io/gtorch-table.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_arrow_import_tensor (gsize schema, gsize array,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_arrow_import_table (gsize schema, gsize array,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_arrow_export_tensor (GTorchTensor *tensor, gsize schema, gsize array,
                                     GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_arrow_export_table (GTorchTable *table, gsize schema, gsize array, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_arrow_export_stream (GTorchTable *table, gsize stream, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_arrow_release (gsize schema, gsize array, gsize stream);

#define GTORCH_TYPE_ARROW_READER (gtorch_arrow_reader_get_type ())
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchArrowReader, gtorch_arrow_reader, GTORCH, ARROW_READER, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchArrowReader *gtorch_arrow_reader_new (gsize stream, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_arrow_reader_read_table (GTorchArrowReader *self, GCancellable *cancellable,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_arrow_reader_read_table_async (GTorchArrowReader *self, int io_priority,
                                           GCancellable *cancellable, GAsyncReadyCallback callback,
                                           gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_arrow_reader_read_table_finish (GTorchArrowReader *self, GAsyncResult *result,
                                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
