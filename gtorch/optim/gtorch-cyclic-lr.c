/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-cyclic-lr.h"

#include <math.h>

#include "optim/gtorch-lr-func-private.h"
#include "optim/gtorch-lr-scheduler-private.h"

/**
 * GTorchCyclicLR:
 *
 * Lets the learning rate rise and fall in cycles, and the momentum fall and rise.
 *
 * A cycle has [property@CyclicLR:step-size-up] epochs up and [property@CyclicLR:step-size-down] down. It is
 * meant to make a step for every batch. All groups have the same momentum.
 *
 * ```c
 * const gdouble low = 0.01, high = 0.1;
 *
 * scheduler = gtorch_cyclic_lr_new (optimizer, &low, 1, &high, 1, 2000,
 *                                   GTORCH_CYCLIC_MODE_TRIANGULAR2, FALSE, &error);
 * ```
 *
 * Source: Smith, Cyclical learning rates for training neural networks, arXiv:1506.01186
 *
 * Since: 0.1
 */
struct _GTorchCyclicLR
{
  GTorchLRScheduler parent_instance;
  gdouble step_size_up, step_size_down;
  gint mode;
  gdouble gamma;
  gint scale_mode;
  gboolean cycle_momentum;
  gdouble base_momentum, max_momentum;
  GArray *base_lrs, *max_lrs;
  GTorchLRFunction scale_fn;
  gdouble momentum; /* of the epoch whose rates are computed */
};

G_DEFINE_TYPE (GTorchCyclicLR, gtorch_cyclic_lr, GTORCH_TYPE_LR_SCHEDULER)

#define FIELD(member) GTORCH_FIELD (GTorchCyclicLR, member)

static gdouble
gtorch_cyclic_lr_get_base_lr (GTorchCyclicLR *self)
{
  return gtorch_schedule_get_first (self->base_lrs);
}

static void
gtorch_cyclic_lr_set_base_lr (GTorchCyclicLR *self, gdouble base_lr)
{
  gtorch_schedule_set_all (self, &self->base_lrs, base_lr, "base-lr");
}

static gdouble
gtorch_cyclic_lr_get_max_lr (GTorchCyclicLR *self)
{
  return gtorch_schedule_get_first (self->max_lrs);
}

static void
gtorch_cyclic_lr_set_max_lr (GTorchCyclicLR *self, gdouble max_lr)
{
  gtorch_schedule_set_all (self, &self->max_lrs, max_lr, "max-lr");
}

typedef GTorchCyclicLR Self;

static const GTorchField fields[] = {
  /**
   * GTorchCyclicLR:base-lr:
   *
   * The least learning rate of the first group; setting it sets that of all groups. It is used for the first
   * epoch only. 0 if none was set, with which no step can be made.
   *
   * Since: 0.1
   */
  { "base-lr",
    GTORCH_PROPERTY_DOUBLE (gtorch_cyclic_lr_get_base_lr, gtorch_cyclic_lr_set_base_lr) },
  /**
   * GTorchCyclicLR:max-lr:
   *
   * The greatest learning rate of the first group; setting it sets that of all groups. 0 if none was set,
   * with which no step can be made.
   *
   * Since: 0.1
   */
  { "max-lr", GTORCH_PROPERTY_DOUBLE (gtorch_cyclic_lr_get_max_lr, gtorch_cyclic_lr_set_max_lr) },
  /**
   * GTorchCyclicLR:step-size-up:
   *
   * The number of epochs in which the learning rate rises.
   *
   * Since: 0.1
   */
  { "step-size-up", GTORCH_FIELD_DOUBLE, FIELD (step_size_up), 2000, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchCyclicLR:step-size-down:
   *
   * The number of epochs in which it falls.
   *
   * Since: 0.1
   */
  { "step-size-down", GTORCH_FIELD_DOUBLE, FIELD (step_size_down), 2000, NULL,
    GTORCH_FIELD_SETTING },
  /**
   * GTorchCyclicLR:mode:
   *
   * How the height of the cycles changes, if there is no scale function.
   *
   * Since: 0.1
   */
  { "mode", GTORCH_FIELD_ENUM, FIELD (mode), 0, gtorch_cyclic_mode_get_type, GTORCH_FIELD_SETTING },
  /**
   * GTorchCyclicLR:gamma:
   *
   * The decay of the height with every epoch, for %GTORCH_CYCLIC_MODE_EXP_RANGE.
   *
   * Since: 0.1
   */
  { "gamma", GTORCH_FIELD_DOUBLE, FIELD (gamma), 1, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchCyclicLR:scale-mode:
   *
   * What the scale function is called with.
   *
   * Since: 0.1
   */
  { "scale-mode", GTORCH_FIELD_ENUM, FIELD (scale_mode), 0, gtorch_scale_mode_get_type,
    GTORCH_FIELD_SETTING },
  /**
   * GTorchCyclicLR:cycle-momentum:
   *
   * Whether the momentum changes, too: the “momentum” of the optimizer, or its “beta1”.
   *
   * Since: 0.1
   */
  { "cycle-momentum", GTORCH_FIELD_BOOL, FIELD (cycle_momentum), 1, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchCyclicLR:base-momentum:
   *
   * The least momentum, where the learning rate is greatest.
   *
   * Since: 0.1
   */
  { "base-momentum", GTORCH_FIELD_DOUBLE, FIELD (base_momentum), 0.8, NULL, GTORCH_FIELD_SETTING },
  /**
   * GTorchCyclicLR:max-momentum:
   *
   * The greatest momentum.
   *
   * Since: 0.1
   */
  { "max-momentum", GTORCH_FIELD_DOUBLE, FIELD (max_momentum), 0.9, NULL, GTORCH_FIELD_SETTING },
};

#define NUMBER(kind, name, property, ...)                                                    \
  {                                                                                          \
#name, property, GTORCH_FIELD_##kind, G_STRUCT_OFFSET(GTorchCyclicLR, name), __VA_ARGS__ \
  }

static const GTorchScheduleNumber numbers[] = {
  NUMBER (DOUBLE, step_size_up, "step-size-up", 0, INFINITY, TRUE),
  NUMBER (DOUBLE, step_size_down, "step-size-down", 0, INFINITY),
  NUMBER (ENUM, mode, "mode", 0, GTORCH_CYCLIC_MODE_EXP_RANGE),
  NUMBER (DOUBLE, gamma, "gamma", -INFINITY, INFINITY),
  NUMBER (ENUM, scale_mode, "scale-mode", 0, GTORCH_SCALE_MODE_ITERATIONS),
  NUMBER (BOOL, cycle_momentum, "cycle-momentum", 0, 1),
  NUMBER (DOUBLE, base_momentum, "base-momentum", -INFINITY, INFINITY),
  NUMBER (DOUBLE, max_momentum, "max-momentum", -INFINITY, INFINITY),
};

static const GTorchScheduleList lists[] = {
  { "base_lr", NULL, GTORCH_FIELD_DOUBLE, G_STRUCT_OFFSET (GTorchCyclicLR, base_lrs),
    .is_setup = TRUE },
  { "max_lrs", NULL, GTORCH_FIELD_DOUBLE, G_STRUCT_OFFSET (GTorchCyclicLR, max_lrs) },
};

static const GTorchScheduleClass row = {
  .who = "cycliclr",
  .numbers = numbers,
  .n_numbers = G_N_ELEMENTS (numbers),
  .lists = lists,
  .n_lists = G_N_ELEMENTS (lists),
};

static gboolean
gtorch_cyclic_lr_check (GTorchLRScheduler *scheduler, GError **error)
{
  return gtorch_schedule_check (scheduler, error)
         && gtorch_schedule_check_momentum (scheduler, GTORCH_CYCLIC_LR (scheduler)->cycle_momentum,
                                            error);
}

static gboolean
gtorch_cyclic_lr_ready (GTorchLRScheduler *scheduler, GError **error)
{
  gtorch_schedule_set_bases (scheduler, GTORCH_CYCLIC_LR (scheduler)->base_lrs, 1, FALSE);
  return TRUE;
}

/* Computes how high the cycle is in this epoch. */
static gboolean
find_height (GTorchCyclicLR *self, gint64 epoch, gint64 cycle, gdouble *height, GError **error)
{
  if (self->scale_fn.func != NULL)
    return gtorch_lr_function_call (&self->scale_fn, GTORCH_LR_SCHEDULER (self),
                                    self->scale_mode == GTORCH_SCALE_MODE_CYCLE ? cycle : epoch,
                                    height, error);
  if (self->mode == GTORCH_CYCLIC_MODE_TRIANGULAR)
    *height = 1;
  else if (self->mode == GTORCH_CYCLIC_MODE_TRIANGULAR2)
    *height = 1 / pow (2, (gdouble) (cycle - 1));
  else
    *height = pow (self->gamma, (gdouble) epoch);
  return TRUE;
}

static gboolean
gtorch_cyclic_lr_compute (GTorchLRScheduler *scheduler, GTorchParamGroup *group, gdouble base_lr,
                          gdouble *lr, GError **error)
{
  GTorchCyclicLR *self = GTORCH_CYCLIC_LR (scheduler);
  const gint64 epoch = gtorch_lr_scheduler_get_last_epoch (scheduler);
  const guint i = gtorch_lr_scheduler_get_state (scheduler)->group;
  const gdouble total = self->step_size_up + self->step_size_down,
                cycle = floor (1 + epoch / total), x = 1 + epoch / total - cycle,
                up = self->step_size_up / total;
  const gdouble slope = x <= up ? x / up : (x - 1) / (up - 1);
  gdouble height;

  if (!find_height (self, epoch, (gint64) cycle, &height, error))
    return FALSE;
  *lr = base_lr + (gtorch_schedule_double_of (self->max_lrs, i) - base_lr) * slope * height;
  if (i == 0)
    self->momentum =
        self->max_momentum - (self->max_momentum - self->base_momentum) * slope * height;
  return TRUE;
}

static void
gtorch_cyclic_lr_done (GTorchLRScheduler *scheduler)
{
  GTorchCyclicLR *self = GTORCH_CYCLIC_LR (scheduler);

  if (self->cycle_momentum)
    gtorch_schedule_set_momentum (scheduler, self->momentum);
}

static void
gtorch_cyclic_lr_finalize (GObject *object)
{
  gtorch_lr_function_set (&GTORCH_CYCLIC_LR (object)->scale_fn, NULL, NULL, NULL);
  G_OBJECT_CLASS (gtorch_cyclic_lr_parent_class)->finalize (object);
}

static void
gtorch_cyclic_lr_add_references (gpointer self, GTorchReferences *references)
{
  gtorch_lr_function_add_references (&GTORCH_CYCLIC_LR (self)->scale_fn, references);
}

static GTorchReferencesType references_type = { .look = gtorch_cyclic_lr_add_references };

static void
gtorch_cyclic_lr_class_init (GTorchCyclicLRClass *klass)
{
  GTorchLRSchedulerClass *scheduler_class = GTORCH_LR_SCHEDULER_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_cyclic_lr_finalize;
  GTORCH_FIELDS (klass, fields);
  gtorch_schedule_class_init (scheduler_class, &row);
  scheduler_class->check = gtorch_cyclic_lr_check;
  scheduler_class->ready = gtorch_cyclic_lr_ready;
  scheduler_class->compute = gtorch_cyclic_lr_compute;
  scheduler_class->done = gtorch_cyclic_lr_done;
  references_type.type = GTORCH_TYPE_CYCLIC_LR;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_cyclic_lr_init (GTorchCyclicLR *self)
{
}

/**
 * gtorch_cyclic_lr_new:
 * @optimizer: the optimizer
 * @base_lrs: (array length=n_base_lrs): the least learning rate of each group, or one for all
 * @n_base_lrs: the length of @base_lrs
 * @max_lrs: (array length=n_max_lrs): the greatest learning rate of each group, or one for all
 * @n_max_lrs: the length of @max_lrs
 * @step_size_up: the number of epochs in which the learning rate rises, and of those in which it falls
 * @mode: how the height of the cycles changes
 * @cycle_momentum: whether the momentum of the optimizer changes, too
 * @error: return location for an error
 *
 * Creates a schedule, and sets the learning rates of the first epoch. The other settings are properties.
 *
 * Returns: (transfer full): the schedule, or %NULL with %GTORCH_ERROR_INVALID if a setting is out of
 *   bounds, or the optimizer has no momentum to change
 *
 * Since: 0.1
 */
GTorchCyclicLR *
gtorch_cyclic_lr_new (GTorchOptimizer *optimizer, const gdouble *base_lrs, gsize n_base_lrs,
                      const gdouble *max_lrs, gsize n_max_lrs, gdouble step_size_up,
                      GTorchCyclicMode mode, gboolean cycle_momentum, GError **error)
{
  GTorchCyclicLR *self;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), NULL);
  g_return_val_if_fail (base_lrs != NULL || n_base_lrs == 0, NULL);
  g_return_val_if_fail (max_lrs != NULL || n_max_lrs == 0, NULL);
  if (!gtorch_schedule_check_choice (row.who, "mode", mode, GTORCH_TYPE_CYCLIC_MODE, error))
    return NULL;
  self = g_object_new (GTORCH_TYPE_CYCLIC_LR, "optimizer", optimizer, "step-size-up", step_size_up,
                       "step-size-down", step_size_up, "mode", mode, "cycle-momentum",
                       cycle_momentum, NULL);
  gtorch_cyclic_lr_set_rates (self, base_lrs, n_base_lrs, max_lrs, n_max_lrs);
  return gtorch_schedule_start (self, error);
}

/**
 * gtorch_cyclic_lr_set_rates:
 * @self: a schedule
 * @base_lrs: (array length=n_base_lrs): the least learning rate of each group, or one for all
 * @n_base_lrs: the length of @base_lrs
 * @max_lrs: (array length=n_max_lrs): the greatest learning rate of each group, or one for all
 * @n_max_lrs: the length of @max_lrs
 *
 * Sets the bounds of the learning rates. Steps check them.
 *
 * Since: 0.1
 */
void
gtorch_cyclic_lr_set_rates (GTorchCyclicLR *self, const gdouble *base_lrs, gsize n_base_lrs,
                            const gdouble *max_lrs, gsize n_max_lrs)
{
  g_return_if_fail (GTORCH_IS_CYCLIC_LR (self));
  g_return_if_fail (base_lrs != NULL || n_base_lrs == 0);
  g_return_if_fail (max_lrs != NULL || n_max_lrs == 0);
  gtorch_schedule_take_doubles (&self->base_lrs, base_lrs, n_base_lrs);
  gtorch_schedule_take_doubles (&self->max_lrs, max_lrs, n_max_lrs);
  g_object_notify (G_OBJECT (self), "base-lr");
  g_object_notify (G_OBJECT (self), "max-lr");
}

/**
 * gtorch_cyclic_lr_set_scale_fn:
 * @self: a schedule
 * @scale_fn: (scope notified) (closure user_data) (destroy destroy): computes the height of the cycle
 * @user_data: data for @scale_fn
 * @destroy: (nullable): frees @user_data
 *
 * Lets a function compute the height of the cycles, in place of [property@CyclicLR:mode]. It is no part of
 * the state dict.
 *
 * Since: 0.1
 */
void
gtorch_cyclic_lr_set_scale_fn (GTorchCyclicLR *self, GTorchLRFunc scale_fn, gpointer user_data,
                               GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_CYCLIC_LR (self));
  g_return_if_fail (scale_fn != NULL);
  gtorch_lr_function_set (&self->scale_fn, scale_fn, user_data, destroy);
}
