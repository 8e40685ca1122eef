/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Schedules that consist of others, and the one that lets all of them make a step. */

#include "config.h"

#include "optim/gtorch-chained-scheduler.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-references-private.h"
#include "optim/gtorch-lr-scheduler-private.h"
#include "optim/gtorch-reduce-lr-on-plateau.h"

/* --- the schedules of a list --- */

void
gtorch_schedules_set (GTorchSchedules *self, GListModel *list)
{
  guint n = list != NULL ? g_list_model_get_n_items (list) : 0, i;

  gtorch_schedules_clear (self);
  self->list = gtorch_object_list_new (GTORCH_TYPE_LR_SCHEDULER);
  self->parts = g_ptr_array_new ();
  for (i = 0; i < n; i++)
    {
      g_autoptr (GObject) item = g_list_model_get_item (list, i);

      if (!GTORCH_IS_LR_SCHEDULER (item))
        {
          self->wrong = G_OBJECT_TYPE_NAME (item);
          continue;
        }
      gtorch_object_list_append (self->list, item);
      g_ptr_array_add (self->parts, item);
    }
}

void
gtorch_schedules_clear (GTorchSchedules *self)
{
  self->wrong = NULL;
  g_clear_object (&self->list);
  g_clear_pointer (&self->parts, g_ptr_array_unref);
}

gboolean
gtorch_schedules_check (GTorchSchedules *self, GTorchLRScheduler *owner, GError **error)
{
  const gchar *who =
      ((const GTorchScheduleClass *) GTORCH_LR_SCHEDULER_GET_CLASS (owner)->row)->who;
  guint i;

  if (self->wrong != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: an item of the list is a %s, not a schedule"), who, self->wrong);
      return FALSE;
    }
  if (self->parts == NULL || self->parts->len == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there are no schedules"),
                   who);
      return FALSE;
    }
  for (i = 0; i < self->parts->len; i++)
    {
      GTorchLRScheduler *part = self->parts->pdata[i];

      if (GTORCH_IS_REDUCE_LR_ON_PLATEAU (part))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("%s: schedule %u is a %s, whose steps need a metric"), who, i,
                       G_OBJECT_TYPE_NAME (part));
          return FALSE;
        }
      if (gtorch_lr_scheduler_get_optimizer (part) != gtorch_lr_scheduler_get_optimizer (owner))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: schedule %u, a %s, is of another optimizer"), who, i,
                       G_OBJECT_TYPE_NAME (part));
          return FALSE;
        }
    }
  return TRUE;
}

/* --- ChainedScheduler --- */

/**
 * GTorchChainedScheduler:
 *
 * Lets several schedules of one optimizer make each step one after another, so that their factors multiply.
 *
 * If a schedule fails, those before it have made their step.
 *
 * Since: 0.1
 */
struct _GTorchChainedScheduler
{
  GTorchLRScheduler parent_instance;
  GTorchSchedules schedules;
};

G_DEFINE_TYPE (GTorchChainedScheduler, gtorch_chained_scheduler, GTORCH_TYPE_LR_SCHEDULER)

static void
gtorch_chained_scheduler_set_schedulers (GTorchChainedScheduler *self, GListModel *schedulers)
{
  gtorch_schedules_set (&self->schedules, schedulers);
}

typedef GTorchChainedScheduler Self;

static const GTorchField fields[] = {
  /**
   * GTorchChainedScheduler:schedulers:
   *
   * The schedules, #GTorchLRScheduler.
   *
   * Since: 0.1
   */
  { "schedulers",
    GTORCH_PROPERTY_OBJECT (GListModel, g_list_model_get_type,
                            gtorch_chained_scheduler_get_schedulers,
                            gtorch_chained_scheduler_set_schedulers),
    .flags = GTORCH_FIELD_FIXED },
};

static const GTorchScheduleClass row = { .who = "chainedscheduler" };

static gboolean
gtorch_chained_scheduler_check (GTorchLRScheduler *scheduler, GError **error)
{
  return gtorch_schedules_check (&GTORCH_CHAINED_SCHEDULER (scheduler)->schedules, scheduler,
                                 error);
}

/* The first step starts the schedules that are not, and takes the rates as they are then. */
static gboolean
gtorch_chained_scheduler_step (GTorchLRScheduler *scheduler, GError **error)
{
  GPtrArray *parts = GTORCH_CHAINED_SCHEDULER (scheduler)->schedules.parts;
  const gboolean is_started = gtorch_lr_scheduler_is_started (scheduler);
  guint i;

  for (i = 0; i < parts->len; i++)
    if (!(is_started ? gtorch_lr_scheduler_advance (parts->pdata[i], error)
                     : gtorch_lr_scheduler_initial_step (parts->pdata[i], error)))
      return FALSE;
  gtorch_lr_scheduler_note_rates (scheduler, gtorch_lr_scheduler_get_last_epoch (scheduler) + 1);
  return TRUE;
}

static GPtrArray *
gtorch_chained_scheduler_parts (GTorchLRScheduler *scheduler)
{
  return GTORCH_CHAINED_SCHEDULER (scheduler)->schedules.parts;
}

static void
gtorch_chained_scheduler_finalize (GObject *object)
{
  gtorch_schedules_clear (&GTORCH_CHAINED_SCHEDULER (object)->schedules);
  G_OBJECT_CLASS (gtorch_chained_scheduler_parent_class)->finalize (object);
}

static void
gtorch_chained_scheduler_add_references (gpointer self, GTorchReferences *references)
{
  gtorch_references_add_object (references, GTORCH_CHAINED_SCHEDULER (self)->schedules.list);
}

static GTorchReferencesType references_type = { .look = gtorch_chained_scheduler_add_references };

static void
gtorch_chained_scheduler_class_init (GTorchChainedSchedulerClass *klass)
{
  GTorchLRSchedulerClass *scheduler_class = GTORCH_LR_SCHEDULER_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_chained_scheduler_finalize;
  GTORCH_FIELDS (klass, fields);
  gtorch_schedule_class_init (scheduler_class, &row);
  scheduler_class->check = gtorch_chained_scheduler_check;
  scheduler_class->step = gtorch_chained_scheduler_step;
  scheduler_class->parts = gtorch_chained_scheduler_parts;
  references_type.type = GTORCH_TYPE_CHAINED_SCHEDULER;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_chained_scheduler_init (GTorchChainedScheduler *self)
{
}

/**
 * gtorch_chained_scheduler_new:
 * @schedulers: a list of #GTorchLRScheduler
 * @optimizer: the optimizer of all of them
 * @error: return location for an error
 *
 * Creates a schedule. The learning rates remain as the others have set them.
 *
 * Returns: (transfer full): the schedule, or %NULL with %GTORCH_ERROR_INVALID if the list is empty or one is
 *   of another optimizer, or %GTORCH_ERROR_NOT_SUPPORTED for a #GTorchReduceLROnPlateau
 *
 * Since: 0.1
 */
GTorchChainedScheduler *
gtorch_chained_scheduler_new (GListModel *schedulers, GTorchOptimizer *optimizer, GError **error)
{
  g_return_val_if_fail (G_IS_LIST_MODEL (schedulers), NULL);
  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), NULL);
  return gtorch_schedule_start (g_object_new (GTORCH_TYPE_CHAINED_SCHEDULER, "optimizer", optimizer,
                                              "schedulers", schedulers, NULL),
                                error);
}

/**
 * gtorch_chained_scheduler_get_schedulers:
 * @self: a schedule
 *
 * Gets the schedules that it consists of.
 *
 * Returns: (transfer none) (nullable): a list of #GTorchLRScheduler
 *
 * Since: 0.1
 */
GListModel *
gtorch_chained_scheduler_get_schedulers (GTorchChainedScheduler *self)
{
  g_return_val_if_fail (GTORCH_IS_CHAINED_SCHEDULER (self), NULL);
  return (GListModel *) self->schedules.list;
}
