/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/profiler/gtorch-profile-list.h>
#include <gtorch/profiler/gtorch-profile-row.h>
#include <gtorch/profiler/gtorch-profiler-private.h>

G_BEGIN_DECLS

typedef struct
{
  gboolean record_shapes, profile_memory, with_stack, with_flops;
} GTorchProfileSettings;

void gtorch_profiler_get_settings (GTorchProfiler *self, GTorchProfileSettings *settings);

/* Keys and values in JSON by turns; (transfer full). */
gchar **gtorch_profiler_dup_metadata (GTorchProfiler *self);
/* The last finished trace, or NULL with an error that begins with `what`. */
GTorchTrace *gtorch_profiler_need_trace (GTorchProfiler *self, const gchar *what, GError **error);

/* The last finished profile in Chrome's format; NULL with an error if there is none, or if it has
 * more bytes. */
gchar *gtorch_profiler_dup_chrome_trace (GTorchProfiler *self, gsize most, gsize *length,
                                         GError **error);

/* A row of a list: one event, or the sum of several. Times are nanoseconds. */
typedef struct
{
  const gchar *key;
  guint64 count;
  gint64 cpu_total, self_cpu, device_total, self_device;
  gint64 cpu_memory, self_cpu_memory, device_memory, self_device_memory;
  guint64 flops;
  const gchar *shapes; /* in words; "": not recorded, or not asked for */
  const gchar *stack;  /* lines; "": none */
  gboolean is_of_device, is_annotation;
  gint record; /* index of the event, or of the first; -1: none */
  gint parent; /* index of the record that the event is inside of; -1: none */
} GTorchProfileData;

/* Which columns a table has. */
typedef struct
{
  GTorchProfileSettings settings;
  const gchar *device_name; /* "CUDA"; NULL: there is none */
  guint64 n_missing;        /* records of devices that were lost, or have no times */
} GTorchProfileColumns;

GTorchProfileList *gtorch_profile_list_new_events (GTorchProfiler *profiler, GTorchTrace *trace);
GTorchProfileRow *gtorch_profile_row_new (GTorchTrace *trace, const GTorchProfileData *data,
                                          gpointer owner);
/* The shapes of operands: "[[2, 3], []]". */
void gtorch_profile_write_shapes (GString *text, const GTorchRecord *record);
/* gtorch-profile-table.c: rows are pointers to GTorchProfileData. */
typedef struct
{
  const gchar *sort_by;
  gint row_limit, max_src, max_name, max_shapes;
  const gchar *header;
  gboolean top_level_only;
  const gchar *time_unit;
} GTorchProfileTableStyle;

gchar *gtorch_profile_write_table (const GTorchProfileColumns *columns, GPtrArray *rows,
                                   const GTorchProfileTableStyle *style, GError **error);

G_END_DECLS
