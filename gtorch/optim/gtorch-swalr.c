/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-swalr.h"

#include <math.h>

#include "optim/gtorch-lr-scheduler-private.h"

/**
 * GTorchSWALR:
 *
 * Takes the learning rate to a fixed one, with which the weights are averaged then.
 *
 * Source: Izmailov et al., Averaging weights leads to wider optima and better generalization,
 * arXiv:1803.05407
 *
 * Since: 0.1
 */
struct _GTorchSWALR
{
  GTorchLRScheduler parent_instance;
  gint64 anneal_epochs;
  gint anneal_strategy;
  GArray *swa_lrs;
};

G_DEFINE_TYPE (GTorchSWALR, gtorch_swalr, GTORCH_TYPE_LR_SCHEDULER)

static const GTorchField fields[] = {
  /**
   * GTorchSWALR:anneal-epochs:
   *
   * The number of epochs until the fixed learning rate.
   *
   * Since: 0.1
   */
  { "anneal-epochs", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchSWALR, anneal_epochs), 10, NULL,
    GTORCH_FIELD_SETTING },
  /**
   * GTorchSWALR:anneal-strategy:
   *
   * Along what the learning rate goes there.
   *
   * Since: 0.1
   */
  { "anneal-strategy", GTORCH_FIELD_ENUM, GTORCH_FIELD (GTorchSWALR, anneal_strategy), 0,
    gtorch_anneal_strategy_get_type, GTORCH_FIELD_SETTING },
};

static const GTorchScheduleNumber numbers[] = {
  { "anneal_epochs", "anneal-epochs", GTORCH_FIELD_INT64,
    G_STRUCT_OFFSET (GTorchSWALR, anneal_epochs), 0, INFINITY },
  { "anneal_strategy", "anneal-strategy", GTORCH_FIELD_ENUM,
    G_STRUCT_OFFSET (GTorchSWALR, anneal_strategy), 0, GTORCH_ANNEAL_STRATEGY_LINEAR },
};

static const GTorchScheduleList lists[] = {
  { "swa_lr", NULL, GTORCH_FIELD_DOUBLE, G_STRUCT_OFFSET (GTorchSWALR, swa_lrs) },
};

static const GTorchScheduleClass row = {
  .who = "swalr",
  .numbers = numbers,
  .n_numbers = G_N_ELEMENTS (numbers),
  .lists = lists,
  .n_lists = G_N_ELEMENTS (lists),
};

/* Returns how far the rate is, from 0 to 1, in an epoch. */
static gdouble
progress (const GTorchSWALR *self, gdouble epoch)
{
  const gdouble t = CLAMP (epoch / (gdouble) MAX (1, self->anneal_epochs), 0, 1);

  return self->anneal_strategy == GTORCH_ANNEAL_STRATEGY_COS ? (1 - cos (G_PI * t)) / 2 : t;
}

/* Goes on from the present rate, which another schedule may set at the same time. */
static gboolean
gtorch_swalr_compute (GTorchLRScheduler *scheduler, GTorchParamGroup *group, gdouble base_lr,
                      gdouble *lr, GError **error)
{
  GTorchSWALR *self = GTORCH_SWALR (scheduler);
  gdouble epoch = (gdouble) gtorch_lr_scheduler_get_last_epoch (scheduler),
          present = gtorch_param_group_get_learning_rate (group),
          swa_lr = gtorch_schedule_double_of (self->swa_lrs,
                                              gtorch_lr_scheduler_get_state (scheduler)->group),
          before, now, begin;

  if (self->anneal_epochs == 0)
    epoch = MAX (1, epoch);
  before = progress (self, epoch - 1);
  now = progress (self, epoch);
  begin = before == 1 ? swa_lr : (present - before * swa_lr) / (1 - before);
  *lr = swa_lr * now + begin * (1 - now);
  return TRUE;
}

static void
gtorch_swalr_class_init (GTorchSWALRClass *klass)
{
  GTORCH_FIELDS (klass, fields);
  gtorch_schedule_class_init (GTORCH_LR_SCHEDULER_CLASS (klass), &row);
  GTORCH_LR_SCHEDULER_CLASS (klass)->compute = gtorch_swalr_compute;
}

static void
gtorch_swalr_init (GTorchSWALR *self)
{
}

/**
 * gtorch_swalr_new:
 * @optimizer: the optimizer
 * @swa_lrs: (array length=n_swa_lrs): the fixed learning rate of each group, or one for all
 * @n_swa_lrs: the length of @swa_lrs
 * @anneal_epochs: the number of epochs until the fixed learning rate
 * @anneal_strategy: along what the learning rate goes there
 * @error: return location for an error
 *
 * Creates a schedule, and sets the learning rates of the first epoch.
 *
 * Returns: (transfer full): the schedule, or %NULL with %GTORCH_ERROR_INVALID if a setting is out of
 *   bounds
 *
 * Since: 0.1
 */
GTorchSWALR *
gtorch_swalr_new (GTorchOptimizer *optimizer, const gdouble *swa_lrs, gsize n_swa_lrs,
                  gint64 anneal_epochs, GTorchAnnealStrategy anneal_strategy, GError **error)
{
  GTorchSWALR *self;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), NULL);
  g_return_val_if_fail (swa_lrs != NULL || n_swa_lrs == 0, NULL);
  if (!gtorch_schedule_check_choice (row.who, "anneal_strategy", anneal_strategy,
                                     GTORCH_TYPE_ANNEAL_STRATEGY, error))
    return NULL;
  self = g_object_new (GTORCH_TYPE_SWALR, "optimizer", optimizer, "anneal-epochs", anneal_epochs,
                       "anneal-strategy", anneal_strategy, NULL);
  gtorch_swalr_set_swa_lrs (self, swa_lrs, n_swa_lrs);
  return gtorch_schedule_start (self, error);
}

/**
 * gtorch_swalr_set_swa_lrs:
 * @self: a schedule
 * @swa_lrs: (array length=n_swa_lrs): the fixed learning rate of each group, or one for all
 * @n_swa_lrs: the length of @swa_lrs
 *
 * Sets the fixed learning rates. Steps check them.
 *
 * Since: 0.1
 */
void
gtorch_swalr_set_swa_lrs (GTorchSWALR *self, const gdouble *swa_lrs, gsize n_swa_lrs)
{
  g_return_if_fail (GTORCH_IS_SWALR (self));
  g_return_if_fail (swa_lrs != NULL || n_swa_lrs == 0);
  gtorch_schedule_take_doubles (&self->swa_lrs, swa_lrs, n_swa_lrs);
}
