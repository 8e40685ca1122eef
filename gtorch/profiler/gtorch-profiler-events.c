/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a profiler has recorded, as lists. */

#include "config.h"

#include "profiler/gtorch-profile-list-private.h"

/**
 * gtorch_profiler_events:
 * @self: a profiler
 * @error: return location for an error
 *
 * Lists what was recorded last, by the time at which it began; with [property@Profiler:acc-events] also what
 * was recorded before.
 *
 * Returns: (transfer full): a list of [class@ProfileRow] with one event each; %NULL with
 *   %GTORCH_ERROR_INVALID if no profile is finished
 *
 * Since: 0.1
 */
GTorchProfileList *
gtorch_profiler_events (GTorchProfiler *self, GError **error)
{
  g_autoptr (GPtrArray) traces = NULL;

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), NULL);
  traces = gtorch_profiler_need_traces (self, "profiler_events", error);
  return traces != NULL ? gtorch_profile_list_new_events (self, traces) : NULL;
}

/**
 * gtorch_profiler_key_averages:
 * @self: a profiler
 * @group_by_input_shape: whether events with operands of other shapes have rows of their own; needs
 *   [property@Profiler:record-shapes]
 * @group_by_stack_n: how many of the innermost frames must be the same for one row, 0: none; needs
 *   [property@Profiler:with-stack]
 * @error: return location for an error
 *
 * Adds up the events of each name.
 *
 * ```c
 * g_autofree gchar *table = gtorch_profile_list_table (averages, "self_cpu_time_total", 10, 75, 55, 80, NULL,
 *                                                      FALSE, NULL, &error);
 * ```
 *
 * Returns: (transfer full): a list of [class@ProfileRow]; %NULL with %GTORCH_ERROR_INVALID if no profile is
 *   finished
 *
 * Since: 0.1
 */
GTorchProfileList *
gtorch_profiler_key_averages (GTorchProfiler *self, gboolean group_by_input_shape,
                              guint group_by_stack_n, GError **error)
{
  g_autoptr (GTorchProfileList) events = NULL;
  g_autoptr (GPtrArray) traces = NULL;

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), NULL);
  traces = gtorch_profiler_need_traces (self, "profiler_key_averages", error);
  if (traces == NULL)
    return NULL;
  events = gtorch_profile_list_new_events (self, traces);
  return gtorch_profile_list_key_averages (events, group_by_input_shape, group_by_stack_n);
}
