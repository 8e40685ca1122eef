/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/io/gtorch-checkpoint-node.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_CHECKPOINT_WRITER (gtorch_checkpoint_writer_get_type ())
GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchCheckpointWriter, gtorch_checkpoint_writer, GTORCH, CHECKPOINT_WRITER,
                      GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchCheckpointWriter *gtorch_checkpoint_writer_new (void) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_none (GTorchCheckpointWriter *self);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_bool (GTorchCheckpointWriter *self, gboolean value);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_int (GTorchCheckpointWriter *self, gint64 value);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_double (GTorchCheckpointWriter *self, gdouble value);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_complex (GTorchCheckpointWriter *self, gdouble real,
                                           gdouble imaginary);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_string (GTorchCheckpointWriter *self, const gchar *text);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_bytes (GTorchCheckpointWriter *self, GTorchCheckpointKind kind,
                                         GBytes *bytes, GError **error);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_tensor (GTorchCheckpointWriter *self, GTorchTensor *tensor,
                                          GError **error);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_dtype (GTorchCheckpointWriter *self, GTorchDType dtype,
                                         GError **error);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_device (GTorchCheckpointWriter *self, GTorchDevice *device);
GTORCH_AVAILABLE_IN_0_1
gint gtorch_checkpoint_writer_add_container (GTorchCheckpointWriter *self,
                                             GTorchCheckpointKind kind, const gint *items,
                                             gsize n_items, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_checkpoint_writer_append (GTorchCheckpointWriter *self, gint container,
                                          const gint *items, gsize n_items, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_checkpoint_writer_set_attributes (GTorchCheckpointWriter *self, gint container,
                                                  gint attributes, GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_checkpoint_writer_save (GTorchCheckpointWriter *self, gint root,
                                        GOutputStream *stream, GCancellable *cancellable,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_checkpoint_writer_save_file (GTorchCheckpointWriter *self, gint root, GFile *file,
                                             GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_checkpoint_writer_save_file_async (GTorchCheckpointWriter *self, gint root, GFile *file,
                                               int io_priority, GCancellable *cancellable,
                                               GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_checkpoint_writer_save_file_finish (GTorchCheckpointWriter *self,
                                                    GAsyncResult *result, GError **error);

G_END_DECLS
