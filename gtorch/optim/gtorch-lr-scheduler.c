/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-field-private.h"
#include "optim/gtorch-lr-scheduler-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "optim/gtorch-optimizer-private.h"
#include "base/gtorch-references-private.h"

/**
 * GTorchLRScheduler:
 *
 * Changes the learning rates of an optimizer from epoch to epoch.
 *
 * The learning rate of each group is computed from its initial one and from the number of the epoch, so
 * that a schedule can continue from any epoch. If something else has changed the rate since the epoch
 * before, such as another schedule of the same optimizer, most schedules go on from the present rate, as
 * PyTorch's do. A subclass, in any language, overrides `compute`. Captured
 * graphs of a [property@Optimizer:capturable] optimizer read the new learning rates, as after any change.
 *
 * ```c
 * scheduler = GTORCH_LR_SCHEDULER (gtorch_step_lr_new (optimizer, 30, 0.1, &error));
 * for (epoch = 0; epoch < 100; epoch++)
 *   {
 *     train (model, optimizer);
 *     gtorch_lr_scheduler_step (scheduler, &error);
 *   }
 * ```
 *
 * Since: 0.1
 */
typedef struct
{
  GTorchOptimizer *optimizer;
  GTorchScheduleState state;
  gboolean is_stepping;
} GTorchLRSchedulerPrivate;

enum
{
  STEPPED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GTorchLRScheduler, gtorch_lr_scheduler, G_TYPE_OBJECT)

#define MAX_EPOCH (G_GINT64_CONSTANT (1) << 53) /* a double represents all integers up to it */

#define PRIVATE(self) ((GTorchLRSchedulerPrivate *) gtorch_lr_scheduler_get_instance_private (self))

static void
clear_lists (GTorchLRScheduler *self)
{
  const GTorchScheduleClass *row = GTORCH_LR_SCHEDULER_GET_CLASS (self)->row;
  guint i;

  for (i = 0; row != NULL && i < row->n_lists; i++)
    {
      gpointer *place = G_STRUCT_MEMBER_P (self, row->lists[i].offset);

      if (row->lists[i].kind == GTORCH_FIELD_SIZE)
        g_clear_pointer ((GTorchSize **) place, gtorch_size_unref);
      else
        g_clear_pointer ((GArray **) place, g_array_unref);
    }
}

static void
gtorch_lr_scheduler_finalize (GObject *object)
{
  GTorchLRSchedulerPrivate *priv = PRIVATE (GTORCH_LR_SCHEDULER (object));

  clear_lists (GTORCH_LR_SCHEDULER (object));
  g_clear_object (&priv->optimizer);
  g_array_unref (priv->state.base_lrs);
  g_array_unref (priv->state.last_lrs);
  G_OBJECT_CLASS (gtorch_lr_scheduler_parent_class)->finalize (object);
}

static void
gtorch_lr_scheduler_set_last_epoch (GTorchLRScheduler *self, gint64 last_epoch)
{
  PRIVATE (self)->state.last_epoch = last_epoch;
}

static void
gtorch_lr_scheduler_set_optimizer (GTorchLRScheduler *self, GTorchOptimizer *optimizer)
{
  g_set_object (&PRIVATE (self)->optimizer, optimizer);
}

typedef GTorchLRScheduler Self;

static const GTorchField fields[] = {
  /**
   * GTorchLRScheduler:last-epoch:
   *
   * The epoch whose learning rates are set; -1 before the first step. A schedule that continues an
   * earlier run is constructed with the last epoch of that run.
   *
   * Since: 0.1
   */
  { "last-epoch",
    GTORCH_PROPERTY_INT64 (gtorch_lr_scheduler_get_last_epoch, gtorch_lr_scheduler_set_last_epoch),
    .value = -1, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchLRScheduler:optimizer:
   *
   * The optimizer whose learning rates are changed.
   *
   * Since: 0.1
   */
  { "optimizer",
    GTORCH_PROPERTY_OBJECT (GTorchOptimizer, gtorch_optimizer_get_type,
                            gtorch_lr_scheduler_get_optimizer, gtorch_lr_scheduler_set_optimizer),
    .flags = GTORCH_FIELD_FIXED },
};

static void
gtorch_lr_scheduler_add_references (gpointer scheduler, GTorchReferences *references)
{
  GTorchLRSchedulerPrivate *priv = PRIVATE (GTORCH_LR_SCHEDULER (scheduler));

  if (priv->optimizer != NULL)
    gtorch_references_add_object (references, priv->optimizer);
}

static GTorchReferencesType references_type = { .look = gtorch_lr_scheduler_add_references };

static void
gtorch_lr_scheduler_class_init (GTorchLRSchedulerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_lr_scheduler_finalize;
  GTORCH_FIELDS (klass, fields);

  /**
   * GTorchLRScheduler::stepped:
   * @self: the schedule
   * @epoch: the new epoch
   *
   * The learning rates of an epoch were set. Emitted inside [method@LRScheduler.step].
   *
   * Since: 0.1
   */
  signals[STEPPED] = g_signal_new ("stepped", GTORCH_TYPE_LR_SCHEDULER, G_SIGNAL_RUN_LAST, 0, NULL,
                                   NULL, NULL, G_TYPE_NONE, 1, G_TYPE_INT64);
  references_type.type = GTORCH_TYPE_LR_SCHEDULER;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_lr_scheduler_init (GTorchLRScheduler *self)
{
  GTorchScheduleState *state = &PRIVATE (self)->state;

  state->last_epoch = -1;
  state->base_lrs = g_array_new (FALSE, FALSE, sizeof (gdouble));
  state->last_lrs = g_array_new (FALSE, FALSE, sizeof (gdouble));
}

GTorchScheduleState *
gtorch_lr_scheduler_get_state (GTorchLRScheduler *self)
{
  return &PRIVATE (self)->state;
}

void
gtorch_lr_scheduler_notify_epoch (GTorchLRScheduler *self)
{
  g_object_notify (G_OBJECT (self), "last-epoch");
}

/**
 * gtorch_lr_scheduler_get_optimizer:
 * @self: a schedule
 *
 * Gets the optimizer whose learning rates are changed.
 *
 * Returns: (transfer none) (nullable): the optimizer; %NULL if none was given
 *
 * Since: 0.1
 */
GTorchOptimizer *
gtorch_lr_scheduler_get_optimizer (GTorchLRScheduler *self)
{
  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), NULL);
  return PRIVATE (self)->optimizer;
}

/**
 * gtorch_lr_scheduler_get_last_epoch:
 * @self: a schedule
 *
 * Gets the epoch whose learning rates are set.
 *
 * Returns: the epoch, from 0 on; -1 before the first step
 *
 * Since: 0.1
 */
gint64
gtorch_lr_scheduler_get_last_epoch (GTorchLRScheduler *self)
{
  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), -1);
  return PRIVATE (self)->state.last_epoch;
}

static gdouble *
dup_numbers (GArray *numbers, gsize *n)
{
  if (n != NULL)
    *n = numbers->len;
  return g_memdup2 (numbers->data, numbers->len * sizeof (gdouble));
}

/**
 * gtorch_lr_scheduler_get_base_lrs:
 * @self: a schedule
 * @n: (out) (optional): the length of the array
 *
 * Gets the initial learning rates of the groups.
 *
 * Returns: (transfer full) (nullable) (array length=n): one number for each group
 *
 * Since: 0.1
 */
gdouble *
gtorch_lr_scheduler_get_base_lrs (GTorchLRScheduler *self, gsize *n)
{
  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), NULL);
  return dup_numbers (PRIVATE (self)->state.base_lrs, n);
}

/**
 * gtorch_lr_scheduler_get_last_lr:
 * @self: a schedule
 * @n: (out) (optional): the length of the array
 *
 * Gets the learning rates that the schedule has set last.
 *
 * Returns: (transfer full) (nullable) (array length=n): one number for each group
 *
 * Since: 0.1
 */
gdouble *
gtorch_lr_scheduler_get_last_lr (GTorchLRScheduler *self, gsize *n)
{
  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), NULL);
  return dup_numbers (PRIVATE (self)->state.last_lrs, n);
}

/**
 * gtorch_lr_scheduler_check:
 * @self: a schedule
 * @error: return location for an error
 *
 * Tells whether a step can be made with the present settings. Properties accept any number; this function
 * and [method@LRScheduler.step] report an invalid one.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
gboolean
gtorch_lr_scheduler_check (GTorchLRScheduler *self, GError **error)
{
  gboolean (*check) (GTorchLRScheduler *, GError **);

  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), FALSE);
  if (PRIVATE (self)->optimizer == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("lr_scheduler: %s has no optimizer"), G_OBJECT_TYPE_NAME (self));
      return FALSE;
    }
  if (PRIVATE (self)->state.last_epoch < -1 || PRIVATE (self)->state.last_epoch > MAX_EPOCH)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("lr_scheduler: last_epoch is %" PRId64 ", it must be from -1 to 2^53"),
                   PRIVATE (self)->state.last_epoch);
      return FALSE;
    }
  check = GTORCH_LR_SCHEDULER_GET_CLASS (self)->check;
  return check == NULL || check (self, error);
}

/* --- steps --- */

/* The base of a group that was added later is its present learning rate. */
static gboolean
find_bases (GTorchLRScheduler *self, GListModel *groups, GError **error)
{
  GTorchScheduleState *state = &PRIVATE (self)->state;
  guint n = g_list_model_get_n_items (groups), i;

  for (i = 0; i < n && state->base_lrs->len == 0 && state->last_epoch >= 0; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      if (gtorch_param_group_get_initial_learning_rate (group) < 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("lr_scheduler: last_epoch is %" PRId64
                          ", but group %u has no initial learning rate to go on from"),
                       state->last_epoch, i);
          return FALSE;
        }
    }
  for (i = state->base_lrs->len; i < n; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      gdouble base = gtorch_param_group_get_initial_learning_rate (group);

      if (base < 0)
        {
          base = gtorch_param_group_get_learning_rate (group);
          gtorch_param_group_set_initial_learning_rate (group, base);
        }
      g_array_append_val (state->base_lrs, base);
    }
  return TRUE;
}

static gboolean
compute (GTorchLRScheduler *self, GTorchParamGroup *group, gdouble base, gdouble *lr,
         GError **error)
{
  GTorchLRSchedulerClass *klass = GTORCH_LR_SCHEDULER_GET_CLASS (self);
  GError *failure = NULL;

  *lr = NAN;
  if (klass->compute == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("lr_scheduler: %s does not override compute"), G_OBJECT_TYPE_NAME (self));
      return FALSE;
    }
  if (!klass->compute (self, group, base, lr, &failure) || failure != NULL)
    {
      if (failure == NULL) /* an exception of another language has no GError */
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("lr_scheduler: compute of %s failed without saying why"),
                     G_OBJECT_TYPE_NAME (self));
      else
        g_propagate_error (error, failure);
      return FALSE;
    }
  if (isfinite (*lr))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("lr_scheduler: %s gives %g for epoch %" PRId64
                  ", a learning rate must be finite"),
               G_OBJECT_TYPE_NAME (self), *lr, PRIVATE (self)->state.last_epoch);
  return FALSE;
}

static gboolean
compute_all (GTorchLRScheduler *self, GListModel *groups, GArray *lrs, GError **error)
{
  GTorchLRSchedulerPrivate *priv = PRIVATE (self);
  guint i;

  for (i = 0; i < lrs->len; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      priv->state.group = i;
      if (!compute (self, group, g_array_index (priv->state.base_lrs, gdouble, i),
                    &g_array_index (lrs, gdouble, i), error))
        return FALSE;
    }
  return TRUE;
}

static void
set_rates (GTorchLRScheduler *self, GListModel *groups, GArray *lrs)
{
  GTorchLRSchedulerClass *klass = GTORCH_LR_SCHEDULER_GET_CLASS (self);
  GTorchLRSchedulerPrivate *priv = PRIVATE (self);
  guint i;

  for (i = 0; i < lrs->len; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      gtorch_param_group_set_learning_rate (group, g_array_index (lrs, gdouble, i));
    }
  g_array_unref (priv->state.last_lrs);
  priv->state.last_lrs = g_array_ref (lrs);
  priv->state.is_started = TRUE;
  if (klass->done != NULL)
    ((GTorchScheduleDone) klass->done) (self);
  gtorch_lr_scheduler_notify_epoch (self);
  g_signal_emit (self, signals[STEPPED], 0, priv->state.last_epoch);
}

static gboolean
begin (GTorchLRScheduler *self, GError **error)
{
  if (!gtorch_lr_scheduler_check (self, error))
    return FALSE;
  if (!PRIVATE (self)->is_stepping)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("lr_scheduler: compute of %s makes a step itself"), G_OBJECT_TYPE_NAME (self));
  return FALSE;
}

static gboolean
move_to (GTorchLRScheduler *self, gint64 epoch, gdouble fraction, GTorchScheduleHow how,
         GError **error)
{
  GTorchScheduleStep ready = GTORCH_LR_SCHEDULER_GET_CLASS (self)->ready;
  GTorchLRSchedulerPrivate *priv = PRIVATE (self);
  const gdouble former_fraction = priv->state.fraction;
  const gint64 former = priv->state.last_epoch;
  g_autoptr (GTorchLRScheduler) holder = NULL;
  g_autoptr (GArray) lrs = NULL;
  GListModel *groups;
  gboolean ok;

  if (!begin (self, error))
    return FALSE;
  groups = gtorch_optimizer_get_param_groups (priv->optimizer);
  if ((how == GTORCH_SCHEDULE_FIRST && ready != NULL && !ready (self, error))
      || !find_bases (self, groups, error))
    return FALSE;
  holder = g_object_ref (self); /* handlers may drop the last other reference */
  lrs = g_array_new (FALSE, TRUE, sizeof (gdouble));
  g_array_set_size (lrs, priv->state.base_lrs->len);
  priv->is_stepping = TRUE;
  priv->state.last_epoch = epoch;
  priv->state.fraction = fraction;
  priv->state.how = how;
  ok = compute_all (self, groups, lrs, error);
  priv->is_stepping = FALSE;
  if (ok)
    set_rates (self, groups, lrs);
  else
    {
      priv->state.last_epoch = former;
      priv->state.fraction = former_fraction;
    }
  return ok;
}

gboolean
gtorch_lr_scheduler_go_to (GTorchLRScheduler *self, gint64 epoch, GTorchScheduleHow how,
                           GError **error)
{
  const gdouble fraction = how == GTORCH_SCHEDULE_NEXT ? PRIVATE (self)->state.fraction : 0;

  return move_to (self, epoch, fraction, how, error);
}

void
gtorch_lr_scheduler_note_rates (GTorchLRScheduler *self, gint64 epoch)
{
  GTorchLRSchedulerPrivate *priv = PRIVATE (self);
  GListModel *groups = gtorch_optimizer_get_param_groups (priv->optimizer);
  guint n = g_list_model_get_n_items (groups), i;

  g_array_set_size (priv->state.last_lrs, n);
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      g_array_index (priv->state.last_lrs, gdouble, i) =
          gtorch_param_group_get_learning_rate (group);
    }
  priv->state.last_epoch = epoch;
  priv->state.is_started = TRUE;
  gtorch_lr_scheduler_notify_epoch (self);
  g_signal_emit (self, signals[STEPPED], 0, epoch);
}

gboolean
gtorch_lr_scheduler_is_started (GTorchLRScheduler *self)
{
  return PRIVATE (self)->state.is_started;
}

gboolean
gtorch_lr_scheduler_advance (GTorchLRScheduler *self, GError **error)
{
  GTorchScheduleStep step = GTORCH_LR_SCHEDULER_GET_CLASS (self)->step;

  if (step == NULL)
    return gtorch_lr_scheduler_go_to (self, PRIVATE (self)->state.last_epoch + 1,
                                      gtorch_lr_scheduler_is_started (self) ? GTORCH_SCHEDULE_NEXT
                                                                            : GTORCH_SCHEDULE_FIRST,
                                      error);
  return begin (self, error) && step (self, error);
}

/**
 * gtorch_lr_scheduler_initial_step:
 * @self: a schedule
 * @error: return location for an error
 *
 * Sets the learning rates of the first epoch. The constructors of all schedules do this; it is for schedules
 * that are constructed from properties, as by g_object_new(). Without it the first
 * [method@LRScheduler.step] does it. If the schedule has set learning rates before, nothing is done.
 *
 * ```c
 * scheduler = g_object_new (GTORCH_TYPE_STEP_LR, "optimizer", optimizer, "step-size", 30, NULL);
 * gtorch_lr_scheduler_initial_step (scheduler, &error);
 * ```
 *
 * Returns: %TRUE, or %FALSE with @error set as by [method@LRScheduler.step]
 *
 * Since: 0.1
 */
gboolean
gtorch_lr_scheduler_initial_step (GTorchLRScheduler *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), FALSE);
  return gtorch_lr_scheduler_is_started (self) || gtorch_lr_scheduler_advance (self, error);
}

/**
 * gtorch_lr_scheduler_step:
 * @self: a schedule
 * @error: return location for an error
 *
 * Advances to the next epoch: sets the learning rates of all groups. If that fails they remain those of
 * the epoch before. The first step of a schedule that was constructed from properties makes the
 * [method@LRScheduler.initial_step] before.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID for settings that
 *   [method@LRScheduler.check] refuses, or a learning rate that is not finite
 *
 * Since: 0.1
 */
gboolean
gtorch_lr_scheduler_step (GTorchLRScheduler *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), FALSE);
  return gtorch_lr_scheduler_initial_step (self, error)
         && gtorch_lr_scheduler_advance (self, error);
}

/**
 * gtorch_lr_scheduler_step_to:
 * @self: a schedule
 * @epoch: the epoch, from 0 to 2^53
 * @error: return location for an error
 *
 * Goes to an epoch: sets the learning rates of all groups to those that the schedule has for it, whatever
 * they were before.
 *
 * Schedules that are a formula of the epoch take fractions, such as 2.5, which is between the epochs 2 and
 * 3: [class@CosineAnnealingWarmRestarts] is often called after each batch. [method@LRScheduler.step] then
 * goes on by whole epochs from there. [class@MultiplicativeLR] multiplies the rate once, by the factor of
 * the epoch. The fraction is no part of the state.
 *
 * ```c
 * gtorch_lr_scheduler_step_to (scheduler, epoch + (gdouble) batch / n_batches, &error);
 * ```
 *
 * Returns: %TRUE, or %FALSE with @error set: as by [method@LRScheduler.step], %GTORCH_ERROR_INVALID for an
 *   epoch out of range or with a fraction that the schedule does not take, and %GTORCH_ERROR_NOT_SUPPORTED
 *   for a schedule whose rates do not follow from the epoch, such as [class@SequentialLR] and
 *   [class@ReduceLROnPlateau]
 *
 * Since: 0.1
 */
gboolean
gtorch_lr_scheduler_step_to (GTorchLRScheduler *self, gdouble epoch, GError **error)
{
  const GTorchScheduleClass *row;

  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), FALSE);
  row = GTORCH_LR_SCHEDULER_GET_CLASS (self)->row;
  if (GTORCH_LR_SCHEDULER_GET_CLASS (self)->step != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("lr_scheduler: %s takes no epoch: its rates do not follow from it"),
                   G_OBJECT_TYPE_NAME (self));
      return FALSE;
    }
  if (!(epoch >= 0 && epoch <= (gdouble) MAX_EPOCH))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("lr_scheduler: the epoch is %g, it must be from 0 to 2^53"), epoch);
      return FALSE;
    }
  if (epoch != floor (epoch) && (row == NULL || row->lr == NULL))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("lr_scheduler: the epoch is %g, and %s takes whole ones"), epoch,
                   G_OBJECT_TYPE_NAME (self));
      return FALSE;
    }
  return gtorch_lr_scheduler_initial_step (self, error)
         && move_to (self, (gint64) epoch, epoch - floor (epoch), GTORCH_SCHEDULE_RESTART, error);
}
