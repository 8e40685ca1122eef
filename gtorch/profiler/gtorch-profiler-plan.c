/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "profiler/gtorch-profiler-plan-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"

GTorchProfilerSchedule *
gtorch_profiler_schedule_new (GTorchProfilerScheduleFunc func, gpointer data,
                              GDestroyNotify destroy)
{
  GTorchProfilerSchedule *schedule = g_atomic_rc_box_new (GTorchProfilerSchedule);

  *schedule = (GTorchProfilerSchedule){ func, data, destroy };
  return schedule;
}

static void
clear_schedule (gpointer data)
{
  GTorchProfilerSchedule *schedule = data;

  if (schedule->destroy != NULL)
    schedule->destroy (schedule->data);
}

void
gtorch_profiler_schedule_unref (GTorchProfilerSchedule *schedule)
{
  g_atomic_rc_box_release_full (schedule, clear_schedule);
}

gboolean
gtorch_profiler_plan_check (const GTorchProfilerPlan *plan, const gchar *what, GError **error)
{
  const struct
  {
    const gchar *name;
    gint64 value;
  } counts[] = { { "wait", plan->wait },
                 { "warmup", plan->warmup },
                 { "active", plan->active },
                 { "repeat", plan->repeat },
                 { "skip_first", plan->skip_first } };
  gint64 total;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (counts); i++)
    if (counts[i].value < 0)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: %s is %" PRId64 ", it must be at least 0"), what, counts[i].name,
                     counts[i].value);
        return FALSE;
      }
  if (__builtin_add_overflow (plan->wait, plan->warmup, &total)
      || __builtin_add_overflow (total, plan->active, &total))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: wait %" PRId64 ", warmup %" PRId64 " and active %" PRId64
                      " are too many steps for a cycle"),
                   what, plan->wait, plan->warmup, plan->active);
      return FALSE;
    }
  if ((plan->activities & (GTORCH_PROFILER_CPU | GTORCH_PROFILER_CUDA)) != 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: activities is %u, it must have CPU or CUDA"), what, plan->activities);
  return FALSE;
}

static GTorchProfilerAction
action_of (const GTorchProfilerPlan *plan, GTorchProfilerSchedule *schedule, guint64 step,
           GError **error)
{
  guint64 n_steps, at;

  if (schedule != NULL)
    {
      g_autoptr (GTorchProfilerSchedule) held = g_atomic_rc_box_acquire (schedule);

      return held->func (step, held->data, error);
    }
  if (plan->active == 0)
    return GTORCH_PROFILER_ACTION_RECORD;
  if (step < (guint64) plan->skip_first)
    return GTORCH_PROFILER_ACTION_NONE;
  step -= plan->skip_first;
  if (plan->skip_first_wait)
    step += plan->wait;
  n_steps = plan->wait + plan->warmup + plan->active;
  if (plan->repeat > 0 && step / n_steps >= (guint64) plan->repeat)
    return GTORCH_PROFILER_ACTION_NONE;
  at = step % n_steps;
  if (at < (guint64) plan->wait)
    return GTORCH_PROFILER_ACTION_NONE;
  if (at < (guint64) (plan->wait + plan->warmup))
    return GTORCH_PROFILER_ACTION_WARMUP;
  return at < n_steps - 1 ? GTORCH_PROFILER_ACTION_RECORD : GTORCH_PROFILER_ACTION_RECORD_AND_SAVE;
}

gboolean
gtorch_profiler_plan_find_action (const GTorchProfilerPlan *plan, GTorchProfilerSchedule *schedule,
                                  guint64 step, GTorchProfilerAction *action, const gchar *what,
                                  GError **error)
{
  GError *local = NULL;
  const GTorchProfilerAction found = action_of (plan, schedule, step, &local);

  if (local != NULL)
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  if ((guint) found > GTORCH_PROFILER_ACTION_RECORD_AND_SAVE)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the schedule says %d for step %" PRIu64
                      ", which is not an action, they are 0 to %d"),
                   what, (gint) found, step, GTORCH_PROFILER_ACTION_RECORD_AND_SAVE);
      return FALSE;
    }
  *action = found;
  return TRUE;
}
