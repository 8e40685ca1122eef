/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-one-cycle-lr.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "optim/gtorch-lr-scheduler-private.h"

/**
 * GTorchOneCycleLR:
 *
 * Lets the learning rate rise to a maximum and fall far below its initial value, and the momentum fall and
 * rise, in a given number of steps.
 *
 * It begins with the maximum over [property@OneCycleLR:div-factor], and ends with that over
 * [property@OneCycleLR:final-div-factor]. It is meant to make a step for every batch; a step after the last
 * one fails. All groups have the same momentum.
 *
 * ```c
 * const gdouble high = 0.1;
 *
 * scheduler = gtorch_one_cycle_lr_new (optimizer, &high, 1, n_epochs * n_batches, TRUE, &error);
 * ```
 *
 * Source: Smith, Topin, Super-convergence: very fast training of neural networks using large learning rates,
 * arXiv:1708.07120
 *
 * Since: 0.1
 */
struct _GTorchOneCycleLR
{
  GTorchLRScheduler parent_instance;
  gint64 total_steps;
  gdouble pct_start;
  gint anneal_strategy;
  gboolean cycle_momentum;
  gdouble base_momentum, max_momentum;
  gdouble div_factor, final_div_factor;
  gboolean three_phase;
  GArray *max_lrs;
  gdouble momentum; /* of the step whose rates are computed */
};

G_DEFINE_TYPE (GTorchOneCycleLR, gtorch_one_cycle_lr, GTORCH_TYPE_LR_SCHEDULER)

#define FIELD(member) GTORCH_FIELD (GTorchOneCycleLR, member)

static gdouble
gtorch_one_cycle_lr_get_max_lr (GTorchOneCycleLR *self)
{
  return gtorch_schedule_get_first (self->max_lrs);
}

static void
gtorch_one_cycle_lr_set_max_lr (GTorchOneCycleLR *self, gdouble max_lr)
{
  gtorch_schedule_set_all (self, &self->max_lrs, max_lr, "max-lr");
}

typedef GTorchOneCycleLR Self;

static const GTorchField fields[] = {
  /**
   * GTorchOneCycleLR:max-lr:
   *
   * The greatest learning rate of the first group; setting it sets that of all groups. 0 if none was set,
   * with which no step can be made.
   *
   * Since: 0.1
   */
  { "max-lr",
    GTORCH_PROPERTY_DOUBLE (gtorch_one_cycle_lr_get_max_lr, gtorch_one_cycle_lr_set_max_lr) },
  /**
   * GTorchOneCycleLR:total-steps:
   *
   * The number of steps of the cycle.
   *
   * Since: 0.1
   */
  { "total-steps", GTORCH_FIELD_INT64, FIELD (total_steps), 1, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchOneCycleLR:pct-start:
   *
   * The fraction of the cycle in which the learning rate rises.
   *
   * Since: 0.1
   */
  { "pct-start", GTORCH_FIELD_DOUBLE, FIELD (pct_start), 0.3, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchOneCycleLR:anneal-strategy:
   *
   * Along what the learning rate goes from one value to the next.
   *
   * Since: 0.1
   */
  { "anneal-strategy", GTORCH_FIELD_ENUM, FIELD (anneal_strategy), 0,
    gtorch_anneal_strategy_get_type, GTORCH_FIELD_SETTING },
  /**
   * GTorchOneCycleLR:cycle-momentum:
   *
   * Whether the momentum changes, too: the “momentum” of the optimizer, or its “beta1”.
   *
   * Since: 0.1
   */
  { "cycle-momentum", GTORCH_FIELD_BOOL, FIELD (cycle_momentum), 1, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchOneCycleLR:base-momentum:
   *
   * The least momentum, where the learning rate is greatest.
   *
   * Since: 0.1
   */
  { "base-momentum", GTORCH_FIELD_DOUBLE, FIELD (base_momentum), 0.85, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchOneCycleLR:max-momentum:
   *
   * The greatest momentum.
   *
   * Since: 0.1
   */
  { "max-momentum", GTORCH_FIELD_DOUBLE, FIELD (max_momentum), 0.95, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchOneCycleLR:div-factor:
   *
   * The ratio of the maximum to the initial learning rate.
   *
   * Since: 0.1
   */
  { "div-factor", GTORCH_FIELD_DOUBLE, FIELD (div_factor), 25, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchOneCycleLR:final-div-factor:
   *
   * The ratio of the initial to the last learning rate.
   *
   * Since: 0.1
   */
  { "final-div-factor", GTORCH_FIELD_DOUBLE, FIELD (final_div_factor), 1e4, NULL,
    GTORCH_FIELD_SETTING },
  /**
   * GTorchOneCycleLR:three-phase:
   *
   * Whether the learning rate falls to its initial value as fast as it has risen, and from there to the last
   * one in a third phase.
   *
   * Since: 0.1
   */
  { "three-phase", GTORCH_FIELD_BOOL, FIELD (three_phase), 0, NULL, GTORCH_FIELD_SETTING },
};

#define NUMBER(kind, name, property, ...)                                                      \
  {                                                                                            \
#name, property, GTORCH_FIELD_##kind, G_STRUCT_OFFSET(GTorchOneCycleLR, name), __VA_ARGS__ \
  }

static const GTorchScheduleNumber numbers[] = {
  NUMBER (INT64, total_steps, "total-steps", 1, INFINITY),
  NUMBER (DOUBLE, pct_start, "pct-start", 0, 1),
  NUMBER (ENUM, anneal_strategy, "anneal-strategy", 0, GTORCH_ANNEAL_STRATEGY_LINEAR),
  NUMBER (BOOL, cycle_momentum, "cycle-momentum", 0, 1),
  NUMBER (DOUBLE, base_momentum, "base-momentum", -INFINITY, INFINITY),
  NUMBER (DOUBLE, max_momentum, "max-momentum", -INFINITY, INFINITY),
  NUMBER (DOUBLE, div_factor, "div-factor", 0, INFINITY, TRUE),
  NUMBER (DOUBLE, final_div_factor, "final-div-factor", 0, INFINITY, TRUE),
  NUMBER (BOOL, three_phase, "three-phase", 0, 1),
};

static const GTorchScheduleList lists[] = {
  { "max_lrs", NULL, GTORCH_FIELD_DOUBLE, G_STRUCT_OFFSET (GTorchOneCycleLR, max_lrs) },
};

static const GTorchScheduleClass row = {
  .who = "onecyclelr",
  .numbers = numbers,
  .n_numbers = G_N_ELEMENTS (numbers),
  .lists = lists,
  .n_lists = G_N_ELEMENTS (lists),
};

static gboolean
gtorch_one_cycle_lr_check (GTorchLRScheduler *scheduler, GError **error)
{
  return gtorch_schedule_check (scheduler, error)
         && gtorch_schedule_check_momentum (scheduler,
                                            GTORCH_ONE_CYCLE_LR (scheduler)->cycle_momentum, error);
}

static gboolean
gtorch_one_cycle_lr_ready (GTorchLRScheduler *scheduler, GError **error)
{
  GTorchOneCycleLR *self = GTORCH_ONE_CYCLE_LR (scheduler);

  if (gtorch_lr_scheduler_get_last_epoch (scheduler) < 0)
    gtorch_schedule_set_bases (scheduler, self->max_lrs, self->div_factor, TRUE);
  return TRUE;
}

typedef enum
{
  INITIAL,
  GREATEST,
  LAST
} Point;

typedef struct
{
  gdouble end; /* the step */
  Point from, to;
} Phase;

static gdouble
anneal (const GTorchOneCycleLR *self, gdouble from, gdouble to, gdouble share)
{
  return self->anneal_strategy == GTORCH_ANNEAL_STRATEGY_COS
             ? to + (from - to) / 2 * (cos (G_PI * share) + 1)
             : (to - from) * share + from;
}

/* The momentum is least where the rate is greatest. */
static gdouble
momentum_at (const GTorchOneCycleLR *self, Point point)
{
  return point == GREATEST ? self->base_momentum : self->max_momentum;
}

static gboolean
gtorch_one_cycle_lr_compute (GTorchLRScheduler *scheduler, GTorchParamGroup *group, gdouble base_lr,
                             gdouble *lr, GError **error)
{
  GTorchOneCycleLR *self = GTORCH_ONE_CYCLE_LR (scheduler);
  const gint64 step = gtorch_lr_scheduler_get_last_epoch (scheduler);
  const guint i = gtorch_lr_scheduler_get_state (scheduler)->group;
  const gdouble rise = self->pct_start * (gdouble) self->total_steps,
                end = (gdouble) self->total_steps - 1,
                rates[] = { base_lr, gtorch_schedule_double_of (self->max_lrs, i),
                            base_lr / self->final_div_factor };
  const Phase two[] = { { rise - 1, INITIAL, GREATEST }, { end, GREATEST, LAST } }, three[] = {
    { rise - 1, INITIAL, GREATEST }, { 2 * rise - 2, GREATEST, INITIAL }, { end, INITIAL, LAST }
  };
  const Phase *phase = self->three_phase ? three : two;
  gdouble begin = 0, share;

  if (step > self->total_steps)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: this is step %" PRId64 ", there are only %" PRId64), row.who, step,
                   self->total_steps);
      return FALSE;
    }
  for (; phase->to != LAST && (gdouble) step > phase->end; phase++)
    begin = phase->end;
  share = ((gdouble) step - begin) / (phase->end - begin);
  *lr = anneal (self, rates[phase->from], rates[phase->to], share);
  self->momentum =
      anneal (self, momentum_at (self, phase->from), momentum_at (self, phase->to), share);
  return TRUE;
}

static void
gtorch_one_cycle_lr_done (GTorchLRScheduler *scheduler)
{
  GTorchOneCycleLR *self = GTORCH_ONE_CYCLE_LR (scheduler);

  if (self->cycle_momentum)
    gtorch_schedule_set_momentum (scheduler, self->momentum);
}

static void
gtorch_one_cycle_lr_class_init (GTorchOneCycleLRClass *klass)
{
  GTorchLRSchedulerClass *scheduler_class = GTORCH_LR_SCHEDULER_CLASS (klass);

  GTORCH_FIELDS (klass, fields);
  gtorch_schedule_class_init (scheduler_class, &row);
  scheduler_class->check = gtorch_one_cycle_lr_check;
  scheduler_class->ready = gtorch_one_cycle_lr_ready;
  scheduler_class->compute = gtorch_one_cycle_lr_compute;
  scheduler_class->done = gtorch_one_cycle_lr_done;
}

static void
gtorch_one_cycle_lr_init (GTorchOneCycleLR *self)
{
}

/**
 * gtorch_one_cycle_lr_new:
 * @optimizer: the optimizer
 * @max_lrs: (array length=n_max_lrs): the greatest learning rate of each group, or one for all
 * @n_max_lrs: the length of @max_lrs
 * @total_steps: the number of steps of the cycle, at least 1
 * @cycle_momentum: whether the momentum of the optimizer changes, too
 * @error: return location for an error
 *
 * Creates a schedule, and sets the learning rates of the first step. The other settings are properties.
 *
 * Returns: (transfer full): the schedule, or %NULL with %GTORCH_ERROR_INVALID if a setting is out of
 *   bounds, or the optimizer has no momentum to change
 *
 * Since: 0.1
 */
GTorchOneCycleLR *
gtorch_one_cycle_lr_new (GTorchOptimizer *optimizer, const gdouble *max_lrs, gsize n_max_lrs,
                         gint64 total_steps, gboolean cycle_momentum, GError **error)
{
  GTorchOneCycleLR *self;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), NULL);
  g_return_val_if_fail (max_lrs != NULL || n_max_lrs == 0, NULL);
  self = g_object_new (GTORCH_TYPE_ONE_CYCLE_LR, "optimizer", optimizer, "total-steps", total_steps,
                       "cycle-momentum", cycle_momentum, NULL);
  gtorch_one_cycle_lr_set_max_lrs (self, max_lrs, n_max_lrs);
  return gtorch_schedule_start (self, error);
}

/**
 * gtorch_one_cycle_lr_set_max_lrs:
 * @self: a schedule
 * @max_lrs: (array length=n_max_lrs): the greatest learning rate of each group, or one for all
 * @n_max_lrs: the length of @max_lrs
 *
 * Sets the greatest learning rates. Steps check them.
 *
 * Since: 0.1
 */
void
gtorch_one_cycle_lr_set_max_lrs (GTorchOneCycleLR *self, const gdouble *max_lrs, gsize n_max_lrs)
{
  g_return_if_fail (GTORCH_IS_ONE_CYCLE_LR (self));
  g_return_if_fail (max_lrs != NULL || n_max_lrs == 0);
  gtorch_schedule_take_doubles (&self->max_lrs, max_lrs, n_max_lrs);
  g_object_notify (G_OBJECT (self), "max-lr");
}
