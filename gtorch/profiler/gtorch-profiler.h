/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/profiler/gtorch-profiler-choices.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PROFILER (gtorch_profiler_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchProfiler, gtorch_profiler, GTORCH, PROFILER, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchProfiler *gtorch_profiler_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_profiler_set_schedule_func (GTorchProfiler *self, GTorchProfilerScheduleFunc func,
                                        gpointer user_data, GDestroyNotify destroy);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profiler_start (GTorchProfiler *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profiler_step (GTorchProfiler *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profiler_stop (GTorchProfiler *self, GError **error);

GTORCH_AVAILABLE_IN_0_1
GTorchProfilerAction gtorch_profiler_get_action (GTorchProfiler *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_profiler_get_step_number (GTorchProfiler *self);
GTORCH_AVAILABLE_IN_0_1
GTorchProfilerGpuSource gtorch_profiler_get_gpu_source (GTorchProfiler *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_profiler_get_gpu_message (GTorchProfiler *self);

GTORCH_AVAILABLE_IN_0_1
GTorchProfileList *gtorch_profiler_events (GTorchProfiler *self,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProfileList *gtorch_profiler_key_averages (GTorchProfiler *self,
                                                 gboolean group_by_input_shape,
                                                 guint group_by_stack_n,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profiler_add_metadata_json (GTorchProfiler *self, const gchar *key,
                                            const gchar *value, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profiler_export_chrome_trace (GTorchProfiler *self, GFile *file,
                                              GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profiler_export_stacks (GTorchProfiler *self, GFile *file, const gchar *metric,
                                        GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profiler_export_memory_timeline (GTorchProfiler *self, GFile *file,
                                                 GTorchDevice *device, GCancellable *cancellable,
                                                 GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_profiler_set_stack_func (GTorchProfilerStackFunc func, gpointer user_data,
                                     GDestroyNotify destroy);

G_END_DECLS
