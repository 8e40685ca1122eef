/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What any thread may ask of a trainer: how far it is. */

#include "config.h"

#include "train/gtorch-trainer-private.h"

#define READ(Type, what)                              \
  GTorchTrainerPrivate *priv;                         \
  Type value;                                         \
                                                      \
  g_return_val_if_fail (GTORCH_IS_TRAINER (self), 0); \
  priv = gtorch_trainer_get_private (self);           \
  g_mutex_lock (&priv->lock);                         \
  value = priv->what;                                 \
  g_mutex_unlock (&priv->lock);                       \
  return value

/**
 * gtorch_trainer_get_epoch: (get-property epoch)
 * @self: a trainer
 *
 * Gets how often the data have been gone through.
 *
 * Returns: the number of epochs that are done
 *
 * Since: 0.1
 */
gint64
gtorch_trainer_get_epoch (GTorchTrainer *self)
{
  READ (gint64, counters.epoch);
}

/**
 * gtorch_trainer_get_step: (get-property step)
 * @self: a trainer
 *
 * Gets the number of steps of the optimizer that are done.
 *
 * Returns: the number of steps
 *
 * Since: 0.1
 */
gint64
gtorch_trainer_get_step (GTorchTrainer *self)
{
  READ (gint64, counters.step);
}

/**
 * gtorch_trainer_get_loss: (get-property loss)
 * @self: a trainer
 *
 * Gets the loss of the last step that is done. Does not wait for the device.
 *
 * Returns: the loss, NaN before the first step
 *
 * Since: 0.1
 */
gdouble
gtorch_trainer_get_loss (GTorchTrainer *self)
{
  READ (gdouble, counters.loss);
}

/**
 * gtorch_trainer_get_progress: (get-property progress)
 * @self: a trainer
 *
 * Gets how much of all steps is done.
 *
 * Returns: a number from 0 to 1; 0 if the length of an epoch is not known
 *
 * Since: 0.1
 */
gdouble
gtorch_trainer_get_progress (GTorchTrainer *self)
{
  READ (gdouble, progress);
}

/**
 * gtorch_trainer_get_throughput: (get-property throughput)
 * @self: a trainer
 *
 * Gets the number of samples in a second, lately.
 *
 * Returns: the number; 0 before it is known
 *
 * Since: 0.1
 */
gdouble
gtorch_trainer_get_throughput (GTorchTrainer *self)
{
  READ (gdouble, throughput);
}

/**
 * gtorch_trainer_get_best: (get-property best)
 * @self: a trainer
 *
 * Gets the best result of the evaluations.
 *
 * Returns: the result, NaN before the first evaluation
 *
 * Since: 0.1
 */
gdouble
gtorch_trainer_get_best (GTorchTrainer *self)
{
  READ (gdouble, counters.best);
}
