/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-reduce-lr-on-plateau.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "optim/gtorch-lr-scheduler-private.h"

/**
 * GTorchReduceLROnPlateau:
 *
 * Multiplies the learning rate by a factor when a metric has stopped improving.
 *
 * [method@ReduceLROnPlateau.step_metric] makes a step; [method@LRScheduler.step], which has no metric,
 * fails. More than [property@ReduceLROnPlateau:patience] epochs without an improvement reduce the rate;
 * those of the [property@ReduceLROnPlateau:cooldown] after that do not count.
 *
 * ```c
 * scheduler = gtorch_reduce_lr_on_plateau_new (optimizer, GTORCH_PLATEAU_MODE_MIN, 0.1, 10, &error);
 * gtorch_reduce_lr_on_plateau_step_metric (scheduler, loss, &error);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchReduceLROnPlateau
{
  GTorchLRScheduler parent_instance;
  gint mode;
  gdouble factor;
  gint64 patience;
  gdouble threshold;
  gint threshold_mode;
  gint64 cooldown;
  gdouble eps;
  gdouble best;
  gint64 num_bad_epochs, cooldown_counter;
  GArray *min_lrs;
};

G_DEFINE_TYPE (GTorchReduceLROnPlateau, gtorch_reduce_lr_on_plateau, GTORCH_TYPE_LR_SCHEDULER)

#define FIELD(member) GTORCH_FIELD (GTorchReduceLROnPlateau, member)

static const GTorchField fields[] = {
  /**
   * GTorchReduceLROnPlateau:mode:
   *
   * Which metric is better.
   *
   * Since: 0.1
   */
  { "mode", GTORCH_FIELD_ENUM, FIELD (mode), 0, gtorch_plateau_mode_get_type, GTORCH_FIELD_FIXED },
  /**
   * GTorchReduceLROnPlateau:factor:
   *
   * The factor of the learning rate, below 1.
   *
   * Since: 0.1
   */
  { "factor", GTORCH_FIELD_DOUBLE, FIELD (factor), 0.1, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchReduceLROnPlateau:patience:
   *
   * The number of epochs without an improvement that are allowed.
   *
   * Since: 0.1
   */
  { "patience", GTORCH_FIELD_INT64, FIELD (patience), 10, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchReduceLROnPlateau:threshold:
   *
   * By how much a metric must be better than the best one to be an improvement.
   *
   * Since: 0.1
   */
  { "threshold", GTORCH_FIELD_DOUBLE, FIELD (threshold), 1e-4, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchReduceLROnPlateau:threshold-mode:
   *
   * What the threshold is compared with.
   *
   * Since: 0.1
   */
  { "threshold-mode", GTORCH_FIELD_ENUM, FIELD (threshold_mode), 0, gtorch_threshold_mode_get_type,
    GTORCH_FIELD_SETTING },
  /**
   * GTorchReduceLROnPlateau:cooldown:
   *
   * The number of epochs after a reduction that do not count.
   *
   * Since: 0.1
   */
  { "cooldown", GTORCH_FIELD_INT64, FIELD (cooldown), 0, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchReduceLROnPlateau:eps:
   *
   * A reduction that is not greater than this is not made.
   *
   * Since: 0.1
   */
  { "eps", GTORCH_FIELD_DOUBLE, FIELD (eps), 1e-8, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchReduceLROnPlateau:best:
   *
   * The best metric so far; infinite before the first one.
   *
   * Since: 0.1
   */
  { "best", GTORCH_FIELD_DOUBLE, FIELD (best) },
  /**
   * GTorchReduceLROnPlateau:num-bad-epochs:
   *
   * The number of epochs since the last improvement.
   *
   * Since: 0.1
   */
  { "num-bad-epochs", GTORCH_FIELD_INT64, FIELD (num_bad_epochs) },
  /**
   * GTorchReduceLROnPlateau:cooldown-counter:
   *
   * The number of epochs of the cooldown that are left.
   *
   * Since: 0.1
   */
  { "cooldown-counter", GTORCH_FIELD_INT64, FIELD (cooldown_counter) },
};

#define NUMBER(kind, name, property, ...)                                                 \
  {                                                                                       \
#name, property, GTORCH_FIELD_##kind, G_STRUCT_OFFSET(GTorchReduceLROnPlateau, name), \
        __VA_ARGS__                                                                       \
  }

static const GTorchScheduleNumber numbers[] = {
  NUMBER (ENUM, mode, "mode", 0, GTORCH_PLATEAU_MODE_MAX),
  NUMBER (DOUBLE, factor, "factor", -INFINITY, INFINITY),
  NUMBER (INT64, patience, "patience", -0x1p53, 0x1p53),
  NUMBER (DOUBLE, threshold, "threshold", -INFINITY, INFINITY),
  NUMBER (ENUM, threshold_mode, "threshold-mode", 0, GTORCH_THRESHOLD_MODE_ABS),
  NUMBER (INT64, cooldown, "cooldown", -0x1p53, 0x1p53),
  NUMBER (DOUBLE, eps, "eps", -INFINITY, INFINITY),
  NUMBER (DOUBLE, best, "best", -INFINITY, INFINITY, .is_any = TRUE),
  NUMBER (INT64, num_bad_epochs, "num-bad-epochs", 0, 0x1p53),
  NUMBER (INT64, cooldown_counter, "cooldown-counter", -0x1p53, 0x1p53),
};

static const GTorchScheduleList lists[] = {
  { "min_lrs", NULL, GTORCH_FIELD_DOUBLE, G_STRUCT_OFFSET (GTorchReduceLROnPlateau, min_lrs) },
};

static const GTorchScheduleClass row = {
  .who = "reducelronplateau",
  .numbers = numbers,
  .n_numbers = G_N_ELEMENTS (numbers),
  .lists = lists,
  .n_lists = G_N_ELEMENTS (lists),
};

static gboolean
gtorch_reduce_lr_on_plateau_check (GTorchLRScheduler *scheduler, GError **error)
{
  const gdouble factor = GTORCH_REDUCE_LR_ON_PLATEAU (scheduler)->factor;

  if (!gtorch_schedule_check (scheduler, error))
    return FALSE;
  if (factor < 1)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: factor is %g, it must be below 1"), row.who, factor);
  return FALSE;
}

static gboolean
gtorch_reduce_lr_on_plateau_step (GTorchLRScheduler *scheduler, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: a step needs a metric: use step_metric"), row.who);
  return FALSE;
}

static void
gtorch_reduce_lr_on_plateau_constructed (GObject *object)
{
  GTorchReduceLROnPlateau *self = GTORCH_REDUCE_LR_ON_PLATEAU (object);
  const gdouble none = 0;

  G_OBJECT_CLASS (gtorch_reduce_lr_on_plateau_parent_class)->constructed (object);
  self->best = self->mode == GTORCH_PLATEAU_MODE_MIN ? INFINITY : -INFINITY;
  gtorch_schedule_take_doubles (&self->min_lrs, &none, 1);
  if (gtorch_lr_scheduler_get_optimizer (GTORCH_LR_SCHEDULER (self)) != NULL)
    gtorch_lr_scheduler_note_rates (GTORCH_LR_SCHEDULER (self), 0);
}

static void
gtorch_reduce_lr_on_plateau_class_init (GTorchReduceLROnPlateauClass *klass)
{
  GTorchLRSchedulerClass *scheduler_class = GTORCH_LR_SCHEDULER_CLASS (klass);

  G_OBJECT_CLASS (klass)->constructed = gtorch_reduce_lr_on_plateau_constructed;
  GTORCH_FIELDS (klass, fields);
  gtorch_schedule_class_init (scheduler_class, &row);
  scheduler_class->check = gtorch_reduce_lr_on_plateau_check;
  scheduler_class->step = gtorch_reduce_lr_on_plateau_step;
}

static void
gtorch_reduce_lr_on_plateau_init (GTorchReduceLROnPlateau *self)
{
}

/**
 * gtorch_reduce_lr_on_plateau_new:
 * @optimizer: the optimizer
 * @mode: which metric is better
 * @factor: the factor of the learning rate, below 1
 * @patience: the number of epochs without an improvement that are allowed
 * @error: return location for an error
 *
 * Creates a schedule. The other settings are properties.
 *
 * Returns: (transfer full): the schedule, or %NULL with %GTORCH_ERROR_INVALID if a setting is out of
 *   bounds
 *
 * Since: 0.1
 */
GTorchReduceLROnPlateau *
gtorch_reduce_lr_on_plateau_new (GTorchOptimizer *optimizer, GTorchPlateauMode mode, gdouble factor,
                                 gint64 patience, GError **error)
{
  g_autoptr (GTorchReduceLROnPlateau) self = NULL;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), NULL);
  if (!gtorch_schedule_check_choice (row.who, "mode", mode, GTORCH_TYPE_PLATEAU_MODE, error))
    return NULL;
  self = g_object_new (GTORCH_TYPE_REDUCE_LR_ON_PLATEAU, "optimizer", optimizer, "mode", mode,
                       "factor", factor, "patience", patience, NULL);
  if (!gtorch_lr_scheduler_check (GTORCH_LR_SCHEDULER (self), error))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_reduce_lr_on_plateau_set_min_lrs:
 * @self: a schedule
 * @min_lrs: (array length=n_min_lrs): the least learning rate of each group, or one for all
 * @n_min_lrs: the length of @min_lrs
 *
 * Sets the least learning rates, 0 by default. Steps check them.
 *
 * Since: 0.1
 */
void
gtorch_reduce_lr_on_plateau_set_min_lrs (GTorchReduceLROnPlateau *self, const gdouble *min_lrs,
                                         gsize n_min_lrs)
{
  g_return_if_fail (GTORCH_IS_REDUCE_LR_ON_PLATEAU (self));
  g_return_if_fail (min_lrs != NULL || n_min_lrs == 0);
  gtorch_schedule_take_doubles (&self->min_lrs, min_lrs, n_min_lrs);
}

static gboolean
is_better (const GTorchReduceLROnPlateau *self, gdouble metric)
{
  const gboolean is_relative = self->threshold_mode == GTORCH_THRESHOLD_MODE_REL;

  if (self->mode == GTORCH_PLATEAU_MODE_MIN)
    return metric
           < (is_relative ? self->best * (1 - self->threshold) : self->best - self->threshold);
  return metric > (is_relative ? self->best * (1 + self->threshold) : self->best + self->threshold);
}

static void
reduce (GTorchReduceLROnPlateau *self)
{
  GTorchOptimizer *optimizer = gtorch_lr_scheduler_get_optimizer (GTORCH_LR_SCHEDULER (self));
  GListModel *groups = gtorch_optimizer_get_param_groups (optimizer);
  guint n = g_list_model_get_n_items (groups), i;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      const gdouble former = gtorch_param_group_get_learning_rate (group),
                    rate =
                        MAX (former * self->factor, gtorch_schedule_double_of (self->min_lrs, i));

      if (former - rate > self->eps)
        gtorch_param_group_set_learning_rate (group, rate);
    }
}

/**
 * gtorch_reduce_lr_on_plateau_step_metric:
 * @self: a schedule
 * @metric: the metric of the epoch, such as the loss of the validation
 * @error: return location for an error
 *
 * Ends an epoch: reduces the learning rates if the metric has stopped improving. One that is NaN is no
 * improvement.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID for settings that [method@LRScheduler.check] refuses;
 *   then nothing has changed
 *
 * Since: 0.1
 */
gboolean
gtorch_reduce_lr_on_plateau_step_metric (GTorchReduceLROnPlateau *self, gdouble metric,
                                         GError **error)
{
  GTorchLRScheduler *scheduler;

  g_return_val_if_fail (GTORCH_IS_REDUCE_LR_ON_PLATEAU (self), FALSE);
  scheduler = GTORCH_LR_SCHEDULER (self);
  if (!gtorch_lr_scheduler_check (scheduler, error))
    return FALSE;
  g_object_freeze_notify (G_OBJECT (self));
  if (is_better (self, metric))
    {
      self->best = metric;
      self->num_bad_epochs = 0;
      g_object_notify (G_OBJECT (self), "best");
    }
  else
    self->num_bad_epochs++;
  if (self->cooldown_counter > 0)
    {
      self->cooldown_counter--;
      self->num_bad_epochs = 0;
      g_object_notify (G_OBJECT (self), "cooldown-counter");
    }
  if (self->num_bad_epochs > self->patience)
    {
      reduce (self);
      self->cooldown_counter = self->cooldown;
      self->num_bad_epochs = 0;
      g_object_notify (G_OBJECT (self), "cooldown-counter");
    }
  g_object_notify (G_OBJECT (self), "num-bad-epochs");
  gtorch_lr_scheduler_note_rates (scheduler, gtorch_lr_scheduler_get_last_epoch (scheduler) + 1);
  g_object_thaw_notify (G_OBJECT (self));
  return TRUE;
}
