/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PROFILE_LIST (gtorch_profile_list_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchProfileList, gtorch_profile_list, GTORCH, PROFILE_LIST, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchProfileList *gtorch_profile_list_new_from_rows (GTorchProfileRow **rows,
                                                      gsize n_rows) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProfileList *
gtorch_profile_list_dup_events (GTorchProfileList *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_profile_list_get_self_cpu_time_total (GTorchProfileList *self);
GTORCH_AVAILABLE_IN_0_1
GTorchProfileRow *
gtorch_profile_list_total_average (GTorchProfileList *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchProfileList *
gtorch_profile_list_key_averages (GTorchProfileList *self, gboolean group_by_input_shapes,
                                  guint group_by_stack_n) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_profile_list_table (GTorchProfileList *self, const gchar *sort_by, gint row_limit,
                                  gint max_src_column_width, gint max_name_column_width,
                                  gint max_shapes_column_width, const gchar *header,
                                  gboolean top_level_events_only, const gchar *time_unit,
                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
