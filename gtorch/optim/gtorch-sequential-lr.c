/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-sequential-lr.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-references-private.h"
#include "optim/gtorch-lr-scheduler-private.h"

/**
 * GTorchSequentialLR:
 *
 * Lets several schedules of one optimizer follow one another: at each milestone, an epoch, the next one
 * begins with its own epoch 0.
 *
 * Since: 0.1
 */
struct _GTorchSequentialLR
{
  GTorchLRScheduler parent_instance;
  GTorchSchedules schedules;
  GTorchSize *milestones;
};

G_DEFINE_TYPE (GTorchSequentialLR, gtorch_sequential_lr, GTORCH_TYPE_LR_SCHEDULER)

static void
gtorch_sequential_lr_set_schedulers (GTorchSequentialLR *self, GListModel *schedulers)
{
  gtorch_schedules_set (&self->schedules, schedulers);
}

typedef GTorchSequentialLR Self;

static const GTorchField fields[] = {
  /**
   * GTorchSequentialLR:schedulers:
   *
   * The schedules, #GTorchLRScheduler.
   *
   * Since: 0.1
   */
  { "schedulers",
    GTORCH_PROPERTY_OBJECT (GListModel, g_list_model_get_type, gtorch_sequential_lr_get_schedulers,
                            gtorch_sequential_lr_set_schedulers),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchSequentialLR:milestones:
   *
   * The epochs in which the second schedule and those after it begin, in ascending order.
   *
   * Since: 0.1
   */
  { "milestones", GTORCH_FIELD_SIZE, GTORCH_FIELD (GTorchSequentialLR, milestones), 0, NULL,
    GTORCH_FIELD_SETTING },
};

static const GTorchScheduleList lists[] = {
  { "milestones", "milestones", GTORCH_FIELD_SIZE,
    G_STRUCT_OFFSET (GTorchSequentialLR, milestones) },
};

static const GTorchScheduleClass row = {
  .who = "sequentiallr",
  .lists = lists,
  .n_lists = G_N_ELEMENTS (lists),
};

static gboolean
gtorch_sequential_lr_check (GTorchLRScheduler *scheduler, GError **error)
{
  GTorchSequentialLR *self = GTORCH_SEQUENTIAL_LR (scheduler);
  const gint64 *milestones;
  gsize n, i;

  if (!gtorch_schedule_check (scheduler, error)
      || !gtorch_schedules_check (&self->schedules, scheduler, error))
    return FALSE;
  milestones = gtorch_size_get_values (self->milestones, &n);
  if (n != self->schedules.parts->len - 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are %u schedules and %zu milestones, there must be one schedule "
                      "more"),
                   row.who, self->schedules.parts->len, n);
      return FALSE;
    }
  for (i = 1; i < n; i++)
    if (milestones[i] < milestones[i - 1])
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: milestone %" PRId64 " comes after %" PRId64
                        ", milestones must ascend"),
                     row.who, milestones[i], milestones[i - 1]);
        return FALSE;
      }
  for (i = 1; i < self->schedules.parts->len; i++)
    {
      GTorchLRSchedulerClass *klass =
          GTORCH_LR_SCHEDULER_GET_CLASS (self->schedules.parts->pdata[i]);

      if (klass->parts == NULL)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: schedule %zu is a %s, only the first one may consist of others"),
                   row.who, i, G_OBJECT_CLASS_NAME (klass));
      return FALSE;
    }
  return TRUE;
}

/* The schedules have set the rates of their first epochs when they were made. */
static void
undo (GTorchLRScheduler *scheduler)
{
  GTorchScheduleParts parts_of = GTORCH_LR_SCHEDULER_GET_CLASS (scheduler)->parts;
  GPtrArray *parts = parts_of != NULL ? parts_of (scheduler) : NULL;
  guint i;

  if (parts == NULL && gtorch_lr_scheduler_get_last_epoch (scheduler) >= 0)
    gtorch_lr_scheduler_get_state (scheduler)->last_epoch--;
  for (i = 0; parts != NULL && i < parts->len; i++)
    undo (parts->pdata[i]);
}

static void
reset_rates (GTorchLRScheduler *scheduler)
{
  GListModel *groups =
      gtorch_optimizer_get_param_groups (gtorch_lr_scheduler_get_optimizer (scheduler));
  guint n = g_list_model_get_n_items (groups), i;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      const gdouble initial = gtorch_param_group_get_initial_learning_rate (group);

      if (initial >= 0)
        gtorch_param_group_set_learning_rate (group, initial);
    }
}

static gboolean
gtorch_sequential_lr_step (GTorchLRScheduler *scheduler, GError **error)
{
  GTorchSequentialLR *self = GTORCH_SEQUENTIAL_LR (scheduler);
  const gint64 epoch = gtorch_lr_scheduler_get_last_epoch (scheduler) + 1;
  const guint i = (guint) gtorch_schedule_passed (self->milestones, (gdouble) epoch);
  GTorchLRScheduler *part = self->schedules.parts->pdata[i];
  gboolean ok;
  guint k;

  if (!gtorch_lr_scheduler_is_started (scheduler))
    {
      GTorchLRScheduler *first =
          self->schedules.parts->pdata[(guint) gtorch_schedule_passed (self->milestones, 0)];

      reset_rates (scheduler);
      for (k = 0; k < self->schedules.parts->len; k++)
        undo (self->schedules.parts->pdata[k]);
      if (GTORCH_LR_SCHEDULER_GET_CLASS (first)->parts != NULL)
        ok = gtorch_lr_scheduler_advance (first, error);
      else
        ok = gtorch_lr_scheduler_go_to (first, gtorch_lr_scheduler_get_last_epoch (first) + 1,
                                        GTORCH_SCHEDULE_FIRST, error);
    }
  else if (gtorch_schedule_passed (self->milestones, (gdouble) epoch - 1) < i)
    ok = gtorch_lr_scheduler_go_to (part, 0, GTORCH_SCHEDULE_RESTART, error);
  else
    ok = gtorch_lr_scheduler_advance (part, error);
  if (ok)
    gtorch_lr_scheduler_note_rates (scheduler, epoch);
  return ok;
}

static GPtrArray *
gtorch_sequential_lr_parts (GTorchLRScheduler *scheduler)
{
  return GTORCH_SEQUENTIAL_LR (scheduler)->schedules.parts;
}

static void
gtorch_sequential_lr_finalize (GObject *object)
{
  gtorch_schedules_clear (&GTORCH_SEQUENTIAL_LR (object)->schedules);
  G_OBJECT_CLASS (gtorch_sequential_lr_parent_class)->finalize (object);
}

static void
gtorch_sequential_lr_add_references (gpointer self, GTorchReferences *references)
{
  gtorch_references_add_object (references, GTORCH_SEQUENTIAL_LR (self)->schedules.list);
}

static GTorchReferencesType references_type = { .look = gtorch_sequential_lr_add_references };

static void
gtorch_sequential_lr_class_init (GTorchSequentialLRClass *klass)
{
  GTorchLRSchedulerClass *scheduler_class = GTORCH_LR_SCHEDULER_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_sequential_lr_finalize;
  GTORCH_FIELDS (klass, fields);
  gtorch_schedule_class_init (scheduler_class, &row);
  scheduler_class->check = gtorch_sequential_lr_check;
  scheduler_class->step = gtorch_sequential_lr_step;
  scheduler_class->parts = gtorch_sequential_lr_parts;
  references_type.type = GTORCH_TYPE_SEQUENTIAL_LR;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_sequential_lr_init (GTorchSequentialLR *self)
{
}

/**
 * gtorch_sequential_lr_new:
 * @optimizer: the optimizer
 * @schedulers: a list of #GTorchLRScheduler, all of @optimizer
 * @milestones: the epochs in which the second schedule and those after it begin, in ascending order
 * @error: return location for an error
 *
 * Creates a schedule, and sets the learning rates of the first epoch of the first schedule, from the initial
 * ones of the groups.
 *
 * Returns: (transfer full): the schedule, or %NULL with %GTORCH_ERROR_INVALID if the numbers of schedules
 *   and milestones do not match, milestones do not ascend, or a schedule is of another optimizer, or
 *   %GTORCH_ERROR_NOT_SUPPORTED for a #GTorchReduceLROnPlateau, or one that consists of others and is not
 *   the first
 *
 * Since: 0.1
 */
GTorchSequentialLR *
gtorch_sequential_lr_new (GTorchOptimizer *optimizer, GListModel *schedulers,
                          GTorchSize *milestones, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), NULL);
  g_return_val_if_fail (G_IS_LIST_MODEL (schedulers), NULL);
  g_return_val_if_fail (milestones != NULL, NULL);
  return gtorch_schedule_start (g_object_new (GTORCH_TYPE_SEQUENTIAL_LR, "optimizer", optimizer,
                                              "schedulers", schedulers, "milestones", milestones,
                                              NULL),
                                error);
}

/**
 * gtorch_sequential_lr_get_schedulers:
 * @self: a schedule
 *
 * Gets the schedules that it consists of.
 *
 * Returns: (transfer none) (nullable): a list of #GTorchLRScheduler
 *
 * Since: 0.1
 */
GListModel *
gtorch_sequential_lr_get_schedulers (GTorchSequentialLR *self)
{
  g_return_val_if_fail (GTORCH_IS_SEQUENTIAL_LR (self), NULL);
  return (GListModel *) self->schedules.list;
}
