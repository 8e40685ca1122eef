/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/profiler/gtorch-profile-list.h>
#include <gtorch/profiler/gtorch-profile-row.h>
#include <gtorch/profiler/gtorch-profiler-private.h>

G_BEGIN_DECLS

typedef struct
{
  gboolean record_shapes, profile_memory, with_stack, with_flops, with_modules;
} GTorchProfileSettings;

void gtorch_profiler_get_settings (GTorchProfiler *self, GTorchProfileSettings *settings);

/* Keys and values in JSON by turns; (transfer full). */
gchar **gtorch_profiler_dup_metadata (GTorchProfiler *self);
/* The last finished trace, or NULL with an error that begins with `what`. */
GTorchTrace *gtorch_profiler_need_trace (GTorchProfiler *self, const gchar *what, GError **error);
/* The same with those before it that are kept, the oldest first. */
GPtrArray *gtorch_profiler_need_traces (GTorchProfiler *self, const gchar *what, GError **error);
GPtrArray *gtorch_traces_new (void);

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
  GTorchTrace *trace; /* of the event, or of the first; borrowed; NULL: none */
  gint record;        /* its index there; -1: none */
  gint64 origin;      /* the beginning of the profile */
  /* Where the event, or the first, is among all events; -1: nowhere. */
  GTorchProfileList *events; /* borrowed */
  gint position;
  gint parent; /* the event that it is inside of */
  gint first,
      next; /* the first one inside of it, and the next one inside of its parent, by their start */
} GTorchProfileData;

/* A row of no event. */
#define GTORCH_PROFILE_DATA_NONE(name)                                                    \
  (GTorchProfileData)                                                                     \
  {                                                                                       \
    .key = (name), .shapes = "", .stack = "", .record = -1, .position = -1, .parent = -1, \
    .first = -1, .next = -1,                                                              \
  }

/* Which columns a table has. */
typedef struct
{
  GTorchProfileSettings settings;
  const gchar *device_name; /* "CUDA"; NULL: there is none */
  guint64 n_missing;        /* records of devices that were lost, or have no times */
} GTorchProfileColumns;

/* All events of the traces, of which each begins after the end of the one before. */
GTorchProfileList *gtorch_profile_list_new_events (GTorchProfiler *profiler, GPtrArray *traces);
/* What is inside of an event: what belongs to devices, or all else. */
GTorchProfileList *gtorch_profile_list_new_inside (const GTorchProfileData *data,
                                                   gboolean is_of_device);
/* The event at the position; (transfer full). */
GTorchProfileRow *gtorch_profile_list_get_event (GTorchProfileList *events, guint position);

/* The owner keeps what the data refers to. */
GTorchProfileRow *gtorch_profile_row_new (const GTorchProfileData *data, gpointer owner);
const GTorchProfileData *gtorch_profile_row_get_data (GTorchProfileRow *self);
/* The list; NULL: a row that the program has made by itself. */
GObject *gtorch_profile_row_get_owner (GTorchProfileRow *self);
/* The event, or the first of several; NULL: none. */
const GTorchRecord *gtorch_profile_row_get_record (GTorchProfileRow *self);
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
