/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/optim/gtorch-lr-scheduler.h>
#include <gtorch/train/gtorch-log.h>
#include <gtorch/train/gtorch-metric.h>
#include <gtorch/train/gtorch-trainer.h>

G_BEGIN_DECLS

/**
 * GTorchTrainerSaveFunc:
 * @trainer: a trainer
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Gives what a checkpoint has of the program's own.
 *
 * Returns: (transfer full): the bytes, which may be none, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GBytes *(*GTorchTrainerSaveFunc) (GTorchTrainer *trainer, gpointer user_data,
                                          GError **error);

/**
 * GTorchTrainerLoadFunc:
 * @trainer: a trainer
 * @state: the bytes of a checkpoint
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Takes what a checkpoint has of the program's own.
 *
 * Returns: %TRUE, or %FALSE with @error set; then nothing has changed
 *
 * Since: 0.1
 */
typedef gboolean (*GTorchTrainerLoadFunc) (GTorchTrainer *trainer, GBytes *state,
                                           gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_add_scheduler (GTorchTrainer *self, GTorchLRScheduler *scheduler,
                                       GTorchTrainerInterval interval, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_add_metric (GTorchTrainer *self, const gchar *name, GTorchMetric *metric,
                                    GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_add_log (GTorchTrainer *self, GTorchLog *log, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_trainer_set_training_step (GTorchTrainer *self, GTorchTrainerStepFunc func,
                                       gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
void gtorch_trainer_set_validation_step (GTorchTrainer *self, GTorchTrainerStepFunc func,
                                         gpointer user_data, GDestroyNotify destroy);

GTORCH_AVAILABLE_IN_0_1
void gtorch_trainer_set_save_function (GTorchTrainer *self, GTorchTrainerSaveFunc func,
                                       gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
void gtorch_trainer_set_load_function (GTorchTrainer *self, GTorchTrainerLoadFunc func,
                                       gpointer user_data, GDestroyNotify destroy);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_fail (GTorchTrainer *self, const GError *reason);

GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_trainer_get_best (GTorchTrainer *self);
GTORCH_AVAILABLE_IN_0_1
gchar **gtorch_trainer_get_result_names (GTorchTrainer *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_trainer_get_result (GTorchTrainer *self, const gchar *name, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_update_metrics (GTorchTrainer *self, GTorchTensor *output,
                                        GTorchTensor *target, GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_save_checkpoint (GTorchTrainer *self, GFile *file,
                                         GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_load_checkpoint (GTorchTrainer *self, GFile *file,
                                         GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_resume (GTorchTrainer *self, gboolean *found, GCancellable *cancellable,
                                GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_trainer_save_checkpoint_async (GTorchTrainer *self, GFile *file, int io_priority,
                                           GCancellable *cancellable, GAsyncReadyCallback callback,
                                           gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_save_checkpoint_finish (GTorchTrainer *self, GAsyncResult *result,
                                                GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_trainer_load_checkpoint_async (GTorchTrainer *self, GFile *file, int io_priority,
                                           GCancellable *cancellable, GAsyncReadyCallback callback,
                                           gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_load_checkpoint_finish (GTorchTrainer *self, GAsyncResult *result,
                                                GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_trainer_resume_async (GTorchTrainer *self, int io_priority, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_resume_finish (GTorchTrainer *self, GAsyncResult *result, gboolean *found,
                                       GError **error);

G_END_DECLS
