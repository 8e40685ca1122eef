/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "profiler/gtorch-profiler-choices.h"

GType
gtorch_profiler_activities_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GFlagsValue values[] = {
        { GTORCH_PROFILER_CPU, "GTORCH_PROFILER_CPU", "cpu" },
        { GTORCH_PROFILER_CUDA, "GTORCH_PROFILER_CUDA", "cuda" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_flags_register_static ("GTorchProfilerActivities", values));
    }
  return type;
}

GType
gtorch_profiler_action_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_PROFILER_ACTION_NONE, "GTORCH_PROFILER_ACTION_NONE", "none" },
        { GTORCH_PROFILER_ACTION_WARMUP, "GTORCH_PROFILER_ACTION_WARMUP", "warmup" },
        { GTORCH_PROFILER_ACTION_RECORD, "GTORCH_PROFILER_ACTION_RECORD", "record" },
        { GTORCH_PROFILER_ACTION_RECORD_AND_SAVE, "GTORCH_PROFILER_ACTION_RECORD_AND_SAVE",
          "record-and-save" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchProfilerAction", values));
    }
  return type;
}

GType
gtorch_profiler_gpu_source_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_PROFILER_GPU_NONE, "GTORCH_PROFILER_GPU_NONE", "none" },
        { GTORCH_PROFILER_GPU_ACTIVITIES, "GTORCH_PROFILER_GPU_ACTIVITIES", "activities" },
        { GTORCH_PROFILER_GPU_EVENTS, "GTORCH_PROFILER_GPU_EVENTS", "events" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchProfilerGpuSource", values));
    }
  return type;
}
