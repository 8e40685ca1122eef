/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-module.h>
#include <gtorch/train/gtorch-log.h>
#include <gtorch/train/gtorch-trainer.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_EXPORTER (gtorch_exporter_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchExporter, gtorch_exporter, GTORCH, EXPORTER, GTorchLog)

GTORCH_AVAILABLE_IN_0_1
GTorchExporter *gtorch_exporter_new (const gchar *name) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchExporter *gtorch_exporter_get_default (void);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_exporter_start (GTorchExporter *self, GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_exporter_start_async (GTorchExporter *self, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_exporter_start_finish (GTorchExporter *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_exporter_stop (GTorchExporter *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_exporter_is_active (GTorchExporter *self);
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_exporter_dup_bus_name (GTorchExporter *self) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_exporter_add_module (GTorchExporter *self, const gchar *name, GTorchModule *module,
                                     GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_exporter_remove_module (GTorchExporter *self, const gchar *name);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_exporter_add_scalar (GTorchExporter *self, const gchar *name, gdouble value,
                                     gint64 step, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_exporter_add_trainer (GTorchExporter *self, const gchar *name,
                                      GTorchTrainer *trainer, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_exporter_set_profile (GTorchExporter *self, const gchar *json, GError **error);

G_END_DECLS
