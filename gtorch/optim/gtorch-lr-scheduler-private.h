/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <math.h>

#include <gtorch/base/gtorch-field-private.h>
#include <gtorch/base/gtorch-size.h>
#include <gtorch/device/gtorch-object-list-private.h>
#include <gtorch/optim/gtorch-lr-scheduler.h>

G_BEGIN_DECLS

/* The settings of a schedule, from which its checks and its state dict are made. For the rows of
 * schedules.toml the tables are generated, with the formulas; the other classes write them down. */

typedef struct
{
  const gchar *name;
  const gchar *property;
  GTorchFieldKind kind; /* BOOL, ENUM, INT64 or DOUBLE */
  gsize offset;         /* offset in the instance */
  gdouble least, most;
  gboolean is_open; /* least itself is refused */
  gboolean is_any;  /* infinite numbers are taken, too */
} GTorchScheduleNumber;

/* SIZE: a GTorchSize * that is a property. DOUBLE: a GArray * of gdouble, one number for each group or one
 * for all. */
typedef struct
{
  const gchar *name;
  const gchar *property;
  GTorchFieldKind kind;
  gsize offset;
  gboolean is_setup; /* used for the first epoch only, and no part of the state */
} GTorchScheduleList;

typedef struct
{
  const gchar *who; /* the name in messages */
  const GTorchScheduleNumber *numbers;
  guint n_numbers;
  const GTorchScheduleList *lists;
  guint n_lists;
  gdouble (*lr) (const gdouble *numbers, GTorchSize *const *lists, gdouble base, gdouble t);
  /* From the present rate, which something else may have changed; NULL: by lr (). */
  gdouble (*next) (const gdouble *numbers, GTorchSize *const *lists, gdouble base, gdouble t,
                   gdouble lr);
} GTorchScheduleClass;

#define GTORCH_SCHEDULE_MAX_NUMBERS 16
#define GTORCH_SCHEDULE_MAX_LISTS   4

void gtorch_schedule_class_init (GTorchLRSchedulerClass *klass, const GTorchScheduleClass *row);
/* Takes a schedule, and returns it after the step to its first epoch; NULL if that fails. */
gpointer gtorch_schedule_start (gpointer self, GError **error);
/* The operator % of rows, whose result has the sign of the divisor. */
static inline gdouble
gtorch_step_modulo (gdouble a, gdouble b)
{
  return a - b * floor (a / b);
}
/* Returns how many of the milestones are not after t. */
gdouble gtorch_schedule_passed (GTorchSize *milestones, gdouble t);
/* Checks that the settings are within the bounds of the row, and lists as long as they should be. */
gboolean gtorch_schedule_check (GTorchLRScheduler *self, GError **error);
/* Checks that a number is a member of an enumeration. */
gboolean gtorch_schedule_check_choice (const gchar *who, const gchar *name, gint value, GType type,
                                       GError **error);
/* Gets the numbers of a row; returns how many there are. */
guint gtorch_schedule_get_numbers (GTorchLRScheduler *self, gdouble *numbers);
void gtorch_schedule_set_numbers (GTorchLRScheduler *self, const gdouble *numbers);
/* Replaces the list of a schedule by a copy. */
void gtorch_schedule_take_doubles (GArray **list, const gdouble *values, gsize n);
/* Properties of a list: reads its first number, 0 if there is none, and makes it one for all groups. */
gdouble gtorch_schedule_get_first (GArray *list);
void gtorch_schedule_set_all (gpointer self, GArray **list, gdouble value, const gchar *property);
/* Returns the number of a group. */
gdouble gtorch_schedule_double_of (GArray *list, guint group);

/* Which learning rate is computed for an epoch. */
typedef enum
{
  GTORCH_SCHEDULE_NEXT,    /* that after the epoch before */
  GTORCH_SCHEDULE_FIRST,   /* the first one that the schedule sets */
  GTORCH_SCHEDULE_RESTART, /* by the formula, whatever the present rate is */
} GTorchScheduleHow;

/* The values of a schedule's state. */
typedef struct
{
  gint64 last_epoch;
  GArray *base_lrs, *last_lrs; /* of gdouble, one for each group */
  gboolean is_started;         /* rates were set or loaded */
  GTorchScheduleHow how;       /* of the step that is being made */
  gdouble fraction;            /* of an epoch, beyond last_epoch */
  guint group;                 /* whose rate is being computed */
} GTorchScheduleState;

GTorchScheduleState *gtorch_lr_scheduler_get_state (GTorchLRScheduler *self);
void gtorch_lr_scheduler_notify_epoch (GTorchLRScheduler *self);
/* Sets the learning rates of an epoch. */
gboolean gtorch_lr_scheduler_go_to (GTorchLRScheduler *self, gint64 epoch, GTorchScheduleHow how,
                                    GError **error);
/* Tells whether the schedule has set learning rates, or has loaded the state of one that has. */
gboolean gtorch_lr_scheduler_is_started (GTorchLRScheduler *self);
/* Sets the learning rates of the first epoch if the schedule is not started, otherwise of the next one. */
gboolean gtorch_lr_scheduler_advance (GTorchLRScheduler *self, GError **error);
/* For schedules that do not compute rates themselves: the rates of the groups are now the last ones. */
void gtorch_lr_scheduler_note_rates (GTorchLRScheduler *self, gint64 epoch);

/* The virtual functions that are private. `step` replaces that of the class; `done` is called when the rates
 * of an epoch are set, `ready` before the first ones are computed; `parts` returns the schedules that a
 * schedule consists of, which belong to its state. */
typedef gboolean (*GTorchScheduleCheck) (GTorchLRScheduler *self, GError **error);
typedef gboolean (*GTorchScheduleStep) (GTorchLRScheduler *self, GError **error);
typedef void (*GTorchScheduleDone) (GTorchLRScheduler *self);
typedef GPtrArray *(*GTorchScheduleParts) (GTorchLRScheduler *self);

/* --- schedules of other schedules --- */

/* The schedules of a list, which a schedule consists of. */
typedef struct
{
  GTorchObjectList *list; /* owns them; NULL if there is none */
  GPtrArray *parts;
  const gchar *wrong; /* the class of an item that is no schedule; or NULL */
} GTorchSchedules;

void gtorch_schedules_set (GTorchSchedules *self, GListModel *list);
void gtorch_schedules_clear (GTorchSchedules *self);
/* Checks that there are schedules, and that all are of the optimizer. */
gboolean gtorch_schedules_check (GTorchSchedules *self, GTorchLRScheduler *owner, GError **error);

/* --- the momentum of groups --- */

/* Checks that the groups have a momentum, if one is needed: “momentum”, or the first of “betas”; or that the
 * optimizer has it as a property. */
gboolean gtorch_schedule_check_momentum (GTorchLRScheduler *self, gboolean is_needed,
                                         GError **error);
/* Sets that of all groups. */
void gtorch_schedule_set_momentum (GTorchLRScheduler *self, gdouble momentum);

/* Makes rates over a divisor the initial ones of the schedule, and of groups without one or, with
 * `is_always`, of all. */
void gtorch_schedule_set_bases (GTorchLRScheduler *self, GArray *rates, gdouble divisor,
                                gboolean is_always);

G_END_DECLS
