/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchProfilerActivities:
 * @GTORCH_PROFILER_CPU: what the host does: operations, ranges, backward passes
 * @GTORCH_PROFILER_CUDA: what GPUs do: kernels and copies, and the driver's calls that launch them
 *
 * What a profiler records.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PROFILER_CPU = 1 << 0,
  GTORCH_PROFILER_CUDA = 1 << 1,
} GTorchProfilerActivities;

/**
 * GTorchProfilerAction:
 * @GTORCH_PROFILER_ACTION_NONE: nothing is recorded
 * @GTORCH_PROFILER_ACTION_WARMUP: recording is on, and what it gives is dropped
 * @GTORCH_PROFILER_ACTION_RECORD: what happens is recorded
 * @GTORCH_PROFILER_ACTION_RECORD_AND_SAVE: the same, and after this step the profile is ready
 *
 * What a profiler does in a step.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PROFILER_ACTION_NONE,
  GTORCH_PROFILER_ACTION_WARMUP,
  GTORCH_PROFILER_ACTION_RECORD,
  GTORCH_PROFILER_ACTION_RECORD_AND_SAVE,
} GTorchProfilerAction;

/**
 * GTorchProfilerGpuSource:
 * @GTORCH_PROFILER_GPU_NONE: they are not recorded
 * @GTORCH_PROFILER_GPU_ACTIVITIES: the driver's library of traces (CUPTI) reports each kernel and copy
 * @GTORCH_PROFILER_GPU_EVENTS: timing events around each operation, because that library is missing: there
 *   are no kernels and copies in the profile, and operations take the host longer
 *
 * Where the GPU's times of a profile come from.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_PROFILER_GPU_NONE,
  GTORCH_PROFILER_GPU_ACTIVITIES,
  GTORCH_PROFILER_GPU_EVENTS,
} GTorchProfilerGpuSource;

/**
 * GTorchProfilerScheduleFunc:
 * @step: the number of a step, from 0
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Decides what a profiler does in a step. An error ends [method@Profiler.start] or [method@Profiler.step],
 * which then changes nothing.
 *
 * Returns: the action; with an error it has no meaning
 *
 * Since: 0.1
 */
typedef GTorchProfilerAction (*GTorchProfilerScheduleFunc) (guint64 step, gpointer user_data,
                                                            GError **error);

/**
 * GTorchProfilerStackFunc:
 * @user_data: the data that was passed with the function
 * @error: return location for an error
 *
 * Tells where the program is, in the words of its language. The message of an error stands in the profile in
 * place of the frames.
 *
 * Returns: (transfer full) (nullable): the frames, the innermost first, one a line; or %NULL if they are not
 *   known in this thread
 *
 * Since: 0.1
 */
typedef gchar *(*GTorchProfilerStackFunc) (gpointer user_data, GError **error);

#define GTORCH_TYPE_PROFILER_ACTIVITIES (gtorch_profiler_activities_get_type ())
#define GTORCH_TYPE_PROFILER_ACTION     (gtorch_profiler_action_get_type ())
#define GTORCH_TYPE_PROFILER_GPU_SOURCE (gtorch_profiler_gpu_source_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_profiler_activities_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_profiler_action_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GType gtorch_profiler_gpu_source_get_type (void) G_GNUC_CONST;

G_END_DECLS
