/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/io/gtorch-table.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CSV_READER (gtorch_csv_reader_get_type ())
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchCSVReader, gtorch_csv_reader, GTORCH, CSV_READER, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchCSVReader *gtorch_csv_reader_new (GInputStream *stream) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchCSVReader *gtorch_csv_reader_new_for_file (GFile *file, GCancellable *cancellable,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_csv_reader_get_delimiter (GTorchCSVReader *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_set_delimiter (GTorchCSVReader *self, const gchar *delimiter,
                                          GError **error);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_csv_reader_get_quote (GTorchCSVReader *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_set_quote (GTorchCSVReader *self, const gchar *quote, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_get_has_header (GTorchCSVReader *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_set_has_header (GTorchCSVReader *self, gboolean has_header,
                                           GError **error);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_csv_reader_get_skip_rows (GTorchCSVReader *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_set_skip_rows (GTorchCSVReader *self, guint skip_rows, GError **error);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_csv_reader_get_missing (GTorchCSVReader *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_set_missing (GTorchCSVReader *self, gdouble missing, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchDType gtorch_csv_reader_get_dtype (GTorchCSVReader *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_set_dtype (GTorchCSVReader *self, GTorchDType dtype, GError **error);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_csv_reader_get_max_bytes (GTorchCSVReader *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_set_max_bytes (GTorchCSVReader *self, guint64 max_bytes, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_set_columns (GTorchCSVReader *self, const gchar *const *names,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_csv_reader_set_column_dtype (GTorchCSVReader *self, const gchar *name,
                                             GTorchDType dtype, GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_csv_reader_read_table (GTorchCSVReader *self, guint64 max_rows,
                                           GCancellable *cancellable,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_csv_reader_read_table_async (GTorchCSVReader *self, guint64 max_rows, int io_priority,
                                         GCancellable *cancellable, GAsyncReadyCallback callback,
                                         gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTable *gtorch_csv_reader_read_table_finish (GTorchCSVReader *self, GAsyncResult *result,
                                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_csv_reader_read_tensor (GTorchCSVReader *self, guint64 max_rows,
                                             GCancellable *cancellable,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_csv_reader_read_tensor_async (GTorchCSVReader *self, guint64 max_rows, int io_priority,
                                          GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_csv_reader_read_tensor_finish (GTorchCSVReader *self, GAsyncResult *result,
                                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
