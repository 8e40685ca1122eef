/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtk/gtk.h>

#include <gtorch-plot/gtorch-plot.h>

G_BEGIN_DECLS

#define GTORCH_GTK_TYPE_TRAINER_PROGRESS (gtorch_gtk_trainer_progress_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGtkTrainerProgress, gtorch_gtk_trainer_progress, GTORCH_GTK,
                      TRAINER_PROGRESS, GtkWidget)

GTORCH_AVAILABLE_IN_0_1
GtkWidget *gtorch_gtk_trainer_progress_new (GTorchTrainer *trainer) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTrainer *gtorch_gtk_trainer_progress_get_trainer (GTorchGtkTrainerProgress *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_trainer_progress_set_trainer (GTorchGtkTrainerProgress *self,
                                              GTorchTrainer *trainer);
GTORCH_AVAILABLE_IN_0_1
GCancellable *gtorch_gtk_trainer_progress_get_cancellable (GTorchGtkTrainerProgress *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_trainer_progress_set_cancellable (GTorchGtkTrainerProgress *self,
                                                  GCancellable *cancellable);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gtk_trainer_progress_is_running (GTorchGtkTrainerProgress *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_trainer_progress_run_async (GTorchGtkTrainerProgress *self,
                                            GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gtk_trainer_progress_run_finish (GTorchGtkTrainerProgress *self,
                                                 GAsyncResult *result, GError **error);

G_END_DECLS
