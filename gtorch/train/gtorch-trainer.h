/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/data/gtorch-data-loader.h>
#include <gtorch/nn/gtorch-module.h>
#include <gtorch/optim/gtorch-optimizer.h>
#include <gtorch/train/gtorch-trainer-choices.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_TRAINER (gtorch_trainer_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchTrainer, gtorch_trainer, GTORCH, TRAINER, GObject)

/**
 * GTorchTrainerClass:
 * @parent_class: the parent class
 *
 * The virtual functions of a trainer. They are called in the thread of the run, with its stream as the
 * current one.
 *
 * Since: 0.1
 */
struct _GTorchTrainerClass
{
  GObjectClass parent_class;

  /**
   * GTorchTrainerClass::training_step:
   * @self: a trainer
   * @batch: a batch, on the device of the module
   * @error: return location for an error, with which the run ends
   *
   * Computes the loss of a batch. The trainer goes back through it.
   *
   * Returns: (transfer full): the loss, one number, or %NULL with @error set
   *
   * Since: 0.1
   */
  GTorchTensor *(*training_step) (GTorchTrainer *self, GTorchSample *batch, GError **error);
  /**
   * GTorchTrainerClass::validation_step:
   * @self: a trainer
   * @batch: a batch of the validation loader, on the device of the module
   * @error: return location for an error, with which the run ends
   *
   * Computes the loss of a batch, and updates metrics. Gradients are not recorded.
   *
   * Returns: (transfer full): the loss, one number, or %NULL with @error set
   *
   * Since: 0.1
   */
  GTorchTensor *(*validation_step) (GTorchTrainer *self, GTorchSample *batch, GError **error);

  /*< private >*/
  gpointer padding[6];
};

/**
 * GTorchTrainerStepFunc:
 * @trainer: a trainer
 * @batch: a batch, on the device of the module
 * @user_data: the data that was passed with the function
 * @error: return location for an error, with which the run ends
 *
 * Computes the loss of a batch.
 *
 * Returns: (transfer full): the loss, one number, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchTrainerStepFunc) (GTorchTrainer *trainer, GTorchSample *batch,
                                                gpointer user_data, GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchTrainer *gtorch_trainer_new (GTorchModule *module, GTorchDataLoader *loader,
                                   GTorchModule *loss,
                                   GTorchOptimizer *optimizer) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_trainer_get_module (GTorchTrainer *self);
GTORCH_AVAILABLE_IN_0_1
GTorchOptimizer *gtorch_trainer_get_optimizer (GTorchTrainer *self);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_check (GTorchTrainer *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_run (GTorchTrainer *self, GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_trainer_run_async (GTorchTrainer *self, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_run_finish (GTorchTrainer *self, GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_trainer_stop (GTorchTrainer *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_trainer_is_running (GTorchTrainer *self);

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_trainer_training_step (GTorchTrainer *self, GTorchSample *batch,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_trainer_validation_step (GTorchTrainer *self, GTorchSample *batch,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_trainer_get_epoch (GTorchTrainer *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_trainer_get_step (GTorchTrainer *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_trainer_get_loss (GTorchTrainer *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_trainer_get_progress (GTorchTrainer *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_trainer_get_throughput (GTorchTrainer *self);

G_END_DECLS
