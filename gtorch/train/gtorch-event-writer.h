/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>
#include <gtorch/train/gtorch-log.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_EVENT_WRITER (gtorch_event_writer_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchEventWriter, gtorch_event_writer, GTORCH, EVENT_WRITER, GTorchLog)

GTORCH_AVAILABLE_IN_0_1
GTorchEventWriter *gtorch_event_writer_new (GFile *folder,
                                            const gchar *suffix) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_writer_add_scalar (GTorchEventWriter *self, const gchar *tag, gdouble value,
                                         gint64 step, gdouble wall_time, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_writer_add_histogram (GTorchEventWriter *self, const gchar *tag,
                                            GTorchTensor *values, const gdouble *bounds,
                                            gsize n_bounds, gint64 step, gdouble wall_time,
                                            GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_writer_add_image (GTorchEventWriter *self, const gchar *tag,
                                        GTorchTensor *image, const gchar *dataformats, gint64 step,
                                        gdouble wall_time, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_event_writer_add_text (GTorchEventWriter *self, const gchar *tag, const gchar *text,
                                       gint64 step, gdouble wall_time, GError **error);
GTORCH_AVAILABLE_IN_0_1
GFile *gtorch_event_writer_get_file (GTorchEventWriter *self);

G_END_DECLS
