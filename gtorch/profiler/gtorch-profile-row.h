/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device.h>
#include <gtorch/profiler/gtorch-profile-kind.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PROFILE_ROW (gtorch_profile_row_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchProfileRow, gtorch_profile_row, GTORCH, PROFILE_ROW, GObject)

GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_profile_row_get_key (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_profile_row_get_count (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_profile_row_get_cpu_time (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_profile_row_get_cpu_time_total (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_profile_row_get_self_cpu_time_total (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_profile_row_get_device_time (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_profile_row_get_device_time_total (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_profile_row_get_self_device_time_total (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_profile_row_get_cpu_memory_usage (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_profile_row_get_self_cpu_memory_usage (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_profile_row_get_device_memory_usage (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_profile_row_get_self_device_memory_usage (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_profile_row_get_flops (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_profile_row_get_input_shapes (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_profile_row_get_stack (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
GTorchDeviceType gtorch_profile_row_get_device_type (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profile_row_get_is_user_annotation (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_profile_row_get_start (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_profile_row_get_end (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_profile_row_get_thread (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_profile_row_get_sequence_nr (GTorchProfileRow *self);

GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_profile_row_get_trace_name (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
GTorchProfileKind gtorch_profile_row_get_kind (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_profile_row_get_id (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_profile_row_get_position (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_profile_row_get_parent_position (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_profile_row_get_forward_thread (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_profile_row_get_device_index (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
guint64 gtorch_profile_row_get_stream (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_profile_row_get_is_asynchronous (GTorchProfileRow *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_profile_row_get_module_path (GTorchProfileRow *self);

GTORCH_AVAILABLE_IN_0_1
GTorchProfileRow *gtorch_profile_row_dup_parent (GTorchProfileRow *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProfileList *
gtorch_profile_row_dup_children (GTorchProfileRow *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProfileList *
gtorch_profile_row_dup_kernels (GTorchProfileRow *self) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
