/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a profiler is to record, and in which steps. */

#pragma once

#include <gtorch/profiler/gtorch-profiler-choices.h>

G_BEGIN_DECLS

typedef struct
{
  guint activities;
  gboolean record_shapes, profile_memory, with_stack, with_flops, with_modules, acc_events;
  gint64 wait, warmup, active, repeat, skip_first;
  gboolean skip_first_wait;
} GTorchProfilerPlan;

/* A function of the program's, which decides in place of the numbers. It has a reference count, since it may
 * be replaced while it runs. */
typedef struct
{
  GTorchProfilerScheduleFunc func;
  gpointer data;
  GDestroyNotify destroy;
} GTorchProfilerSchedule;

GTorchProfilerSchedule *gtorch_profiler_schedule_new (GTorchProfilerScheduleFunc func,
                                                      gpointer data, GDestroyNotify destroy);
void gtorch_profiler_schedule_unref (GTorchProfilerSchedule *schedule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchProfilerSchedule, gtorch_profiler_schedule_unref)

/* Messages begin with `what`. */
gboolean gtorch_profiler_plan_check (const GTorchProfilerPlan *plan, const gchar *what,
                                     GError **error);
/* What is done in the step; the schedule may be NULL. */
gboolean gtorch_profiler_plan_find_action (const GTorchProfilerPlan *plan,
                                           GTorchProfilerSchedule *schedule, guint64 step,
                                           GTorchProfilerAction *action, const gchar *what,
                                           GError **error);

G_END_DECLS
