/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-field-private.h>
#include <gtorch/optim/gtorch-lr-scheduler.h>

G_BEGIN_DECLS

/* Schedules that are rows of schedules.toml; the tables are generated. */

typedef struct
{
  const gchar *name;
  const gchar *property;
  GTorchFieldKind kind;
  gsize offset; /* offset in the instance */
  gdouble least, most;
  gboolean is_open; /* least itself is refused */
} GTorchScheduleNumber;

typedef struct
{
  const gchar *who; /* the name in messages */
  const GTorchScheduleNumber *numbers;
  guint n_numbers;
  gdouble (*lr) (const gdouble *numbers, gdouble base, gdouble t);
} GTorchScheduleClass;

#define GTORCH_SCHEDULE_MAX_NUMBERS 8

void gtorch_schedule_class_init (GTorchLRSchedulerClass *klass, const GTorchScheduleClass *row);
/* Takes a schedule, and returns it after the step to its first epoch; NULL if that fails. */
gpointer gtorch_schedule_start (gpointer self, GError **error);
/* Gets the numbers of a row; returns how many there are. */
guint gtorch_schedule_get_numbers (GTorchLRScheduler *self, gdouble *numbers);
void gtorch_schedule_set_numbers (GTorchLRScheduler *self, const gdouble *numbers);

/* The values of a schedule's state. */
typedef struct
{
  gint64 last_epoch;
  GArray *base_lrs, *last_lrs; /* of gdouble, one for each group */
} GTorchScheduleState;

GTorchScheduleState *gtorch_lr_scheduler_get_state (GTorchLRScheduler *self);
void gtorch_lr_scheduler_notify_epoch (GTorchLRScheduler *self);

G_END_DECLS
