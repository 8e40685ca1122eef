/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a trainer has several of: schedules, metrics and logs; functions of the program; results. */

#include "config.h"

#include "train/gtorch-trainer-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-text-private.h"
#include "optim/gtorch-reduce-lr-on-plateau.h"

/**
 * gtorch_trainer_add_scheduler:
 * @self: a trainer
 * @scheduler: a schedule of the learning rate
 * @interval: when its steps are made
 * @error: return location for an error
 *
 * Adds a schedule. A [class@ReduceLROnPlateau] gets the monitored result of evaluations, so its interval must
 * be %GTORCH_TRAINER_INTERVAL_EVALUATION.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if the interval does not fit the schedule or a run
 *   goes on
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_add_scheduler (GTorchTrainer *self, GTorchLRScheduler *scheduler,
                              GTorchTrainerInterval interval, GError **error)
{
  GTorchTrainerSchedule *schedule;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (scheduler), FALSE);
  if (!gtorch_trainer_check_idle (self, "add_scheduler", error))
    return FALSE;
  if (interval < GTORCH_TRAINER_INTERVAL_EPOCH || interval > GTORCH_TRAINER_INTERVAL_EVALUATION)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("add_scheduler: there is no interval %d"), interval);
      return FALSE;
    }
  if (GTORCH_IS_REDUCE_LR_ON_PLATEAU (scheduler) && interval != GTORCH_TRAINER_INTERVAL_EVALUATION)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("add_scheduler: a ReduceLROnPlateau takes a result of evaluations: its "
                      "interval "
                      "must be evaluation"));
      return FALSE;
    }
  schedule = g_new (GTorchTrainerSchedule, 1);
  *schedule = (GTorchTrainerSchedule){ g_object_ref (scheduler), interval };
  g_ptr_array_add (gtorch_trainer_get_private (self)->schedules, schedule);
  return TRUE;
}

/**
 * gtorch_trainer_add_metric:
 * @self: a trainer
 * @name: the name of its result
 * @metric: a metric
 * @error: return location for an error
 *
 * Adds a metric to the evaluations.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if the name is empty, taken, or `loss`, or a run goes
 *   on
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_add_metric (GTorchTrainer *self, const gchar *name, GTorchMetric *metric,
                           GError **error)
{
  GPtrArray *metrics;
  GTorchTrainerMetric *added;
  gboolean is_taken;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_METRIC (metric), FALSE);
  if (!gtorch_trainer_check_idle (self, "add_metric", error))
    return FALSE;
  metrics = gtorch_trainer_get_private (self)->metrics;
  is_taken = *name == '\0' || g_str_equal (name, "loss");
  for (guint i = 0; i < metrics->len && !is_taken; i++)
    is_taken = g_str_equal (((GTorchTrainerMetric *) metrics->pdata[i])->name, name);
  if (is_taken)
    {
      if (*name == '\0')
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("add_metric: the name is empty"));
      else if (g_str_equal (name, "loss"))
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("add_metric: the name “loss” is that of the loss itself"));
      else
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("add_metric: the trainer has a metric “%s” already"),
                     gtorch_name_str (name));
      return FALSE;
    }
  added = g_new (GTorchTrainerMetric, 1);
  *added = (GTorchTrainerMetric){ g_strdup (name), g_object_ref (metric) };
  g_ptr_array_add (metrics, added);
  return TRUE;
}

/**
 * gtorch_trainer_add_log:
 * @self: a trainer
 * @log: a log
 * @error: return location for an error
 *
 * Adds a log. Every [property@Trainer:log-every] steps it gets `train/loss`, `train/learning_rate`,
 * `train/samples_per_second` and `epoch`; at the end of an epoch `train/epoch_loss`; and after an evaluation
 * its results, such as `validation/loss`.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if a run goes on
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_add_log (GTorchTrainer *self, GTorchLog *log, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_LOG (log), FALSE);
  if (!gtorch_trainer_check_idle (self, "add_log", error))
    return FALSE;
  g_ptr_array_add (gtorch_trainer_get_private (self)->logs, g_object_ref (log));
  return TRUE;
}

static void
set_func (GTorchTrainerFunc *place, GCallback func, gpointer data, GDestroyNotify destroy)
{
  const GTorchTrainerFunc former = *place;

  *place = (GTorchTrainerFunc){ func, data, destroy };
  if (former.destroy != NULL)
    former.destroy (former.data);
}

/**
 * gtorch_trainer_set_training_step:
 * @self: a trainer
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): computes the loss of a batch, or
 *   %NULL for what the trainer does by default
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 *
 * Sets the function that computes the loss of a batch. It is called in the thread of the run. During a run
 * nothing may be set.
 *
 * Since: 0.1
 */
void
gtorch_trainer_set_training_step (GTorchTrainer *self, GTorchTrainerStepFunc func,
                                  gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_TRAINER (self));
  g_return_if_fail (!gtorch_trainer_is_running (self));
  set_func (&gtorch_trainer_get_private (self)->training, G_CALLBACK (func), user_data, destroy);
}

/**
 * gtorch_trainer_set_validation_step:
 * @self: a trainer
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): computes the loss of a batch of
 *   an evaluation and calls [method@Trainer.update_metrics], or %NULL for what the trainer does by default
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 *
 * Sets the function that computes the loss of a batch of an evaluation. It is called in the thread of the
 * run. During a run nothing may be set.
 *
 * Since: 0.1
 */
void
gtorch_trainer_set_validation_step (GTorchTrainer *self, GTorchTrainerStepFunc func,
                                    gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_TRAINER (self));
  g_return_if_fail (!gtorch_trainer_is_running (self));
  set_func (&gtorch_trainer_get_private (self)->validation, G_CALLBACK (func), user_data, destroy);
}

/**
 * gtorch_trainer_set_save_function:
 * @self: a trainer
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): gives the bytes, or %NULL for
 *   none
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 *
 * Sets a function that gives what checkpoints have of the program's own, such as the state of a generator
 * that the trainer does not know. It is called in the thread of the run, or of the function that writes a
 * checkpoint. During a run nothing may be set.
 *
 * Since: 0.1
 */
void
gtorch_trainer_set_save_function (GTorchTrainer *self, GTorchTrainerSaveFunc func,
                                  gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_TRAINER (self));
  g_return_if_fail (!gtorch_trainer_is_running (self));
  set_func (&gtorch_trainer_get_private (self)->save, G_CALLBACK (func), user_data, destroy);
}

/**
 * gtorch_trainer_set_load_function:
 * @self: a trainer
 * @func: (nullable) (scope notified) (closure user_data) (destroy destroy): takes the bytes, or %NULL for
 *   none
 * @user_data: data for @func
 * @destroy: (nullable): frees @user_data
 *
 * Sets a function that takes what the function of [method@Trainer.set_save_function] gave, when a checkpoint
 * is loaded. It is not called for a checkpoint without. When the rest of a checkpoint does not fit, it is
 * called once more, with what the other function gives, so that nothing has changed.
 *
 * Since: 0.1
 */
void
gtorch_trainer_set_load_function (GTorchTrainer *self, GTorchTrainerLoadFunc func,
                                  gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_TRAINER (self));
  g_return_if_fail (!gtorch_trainer_is_running (self));
  set_func (&gtorch_trainer_get_private (self)->load, G_CALLBACK (func), user_data, destroy);
}

/**
 * gtorch_trainer_update_metrics:
 * @self: a trainer
 * @output: an output of the module
 * @target: what it should have been
 * @error: return location for an error
 *
 * Updates all metrics, for a `validation_step` of the program's own.
 *
 * Returns: %TRUE, or %FALSE with the error of a metric
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_update_metrics (GTorchTrainer *self, GTorchTensor *output, GTorchTensor *target,
                               GError **error)
{
  GPtrArray *metrics;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (output), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (target), FALSE);
  metrics = gtorch_trainer_get_private (self)->metrics;
  for (guint i = 0; i < metrics->len; i++)
    if (!gtorch_metric_update (((GTorchTrainerMetric *) metrics->pdata[i])->metric, output, target,
                               error))
      return FALSE;
  return TRUE;
}

static GVariant *
dup_results (GTorchTrainer *self)
{
  GTorchTrainerPrivate *priv = gtorch_trainer_get_private (self);
  GVariant *results;

  g_mutex_lock (&priv->lock);
  results = priv->results != NULL ? g_variant_ref (priv->results) : NULL;
  g_mutex_unlock (&priv->lock);
  return results;
}

/**
 * gtorch_trainer_get_result_names:
 * @self: a trainer
 *
 * Gets the names of the results of the last evaluation: `loss`, and those of the metrics that are one number.
 *
 * Returns: (transfer full) (array zero-terminated=1): the names; none before the first evaluation
 *
 * Since: 0.1
 */
gchar **
gtorch_trainer_get_result_names (GTorchTrainer *self)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_autoptr (GVariant) results = NULL;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), NULL);
  results = dup_results (self);
  for (gsize i = 0; results != NULL && i < g_variant_n_children (results); i++)
    {
      const gchar *name;

      g_variant_get_child (results, i, "(&sd)", &name, NULL);
      g_strv_builder_add (builder, name);
    }
  return g_strv_builder_end (builder);
}

/**
 * gtorch_trainer_get_result:
 * @self: a trainer
 * @name: the name of a result, `loss` or that of a metric
 * @error: return location for an error
 *
 * Gets a result of the last evaluation.
 *
 * Returns: the result; 0 with @error set, %GTORCH_ERROR_NOT_FOUND, if there is none
 *
 * Since: 0.1
 */
gdouble
gtorch_trainer_get_result (GTorchTrainer *self, const gchar *name, GError **error)
{
  g_autoptr (GVariant) results = NULL;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), 0);
  g_return_val_if_fail (name != NULL, 0);
  results = dup_results (self);
  for (gsize i = 0; results != NULL && i < g_variant_n_children (results); i++)
    {
      const gchar *found;
      gdouble value;

      g_variant_get_child (results, i, "(&sd)", &found, &value);
      if (g_str_equal (found, name))
        return value;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
               _ ("get_result: the last evaluation has no result “%s”"), gtorch_name_str (name));
  return 0;
}
