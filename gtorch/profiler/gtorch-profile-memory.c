/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Files of a profile other than traces: the memory over time, and stacks for flame graphs. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-text-private.h"
#include "device/gtorch-device-manager.h"
#include "device/gtorch-device-private.h"
#include "profiler/gtorch-profile-list-private.h"
#include "profiler/gtorch-profile-memory-private.h"

/* The numbers that PyTorch's timelines have for what happens. */
enum
{
  ACTION_CREATE = 2,
  ACTION_DESTROY = 4,
};

/* What memory is used for, as far as the place tells where it was taken: a backward pass, an operation that
 * was recorded for one, another operation, or none. */
static guint
category_of (const GTorchRecord *records, const GTorchRecord *record)
{
  gint at = record->parent;
  gboolean is_recorded = at >= 0 && records[at].sequence != 0;
  guint found = at >= 0 ? GTORCH_CATEGORY_TEMPORARY : GTORCH_CATEGORY_NONE;

  if (at >= 0 && records[at].kind != GTORCH_RECORD_OP)
    found = GTORCH_CATEGORY_NONE;
  for (; at >= 0; at = records[at].parent)
    {
      if (records[at].kind == GTORCH_RECORD_BACKWARD)
        return records[at].sequence == 0 ? GTORCH_CATEGORY_GRADIENT
                                         : GTORCH_CATEGORY_AUTOGRAD_DETAIL;
      if (g_str_has_prefix (records[at].name, "Optimizer.step#"))
        return GTORCH_CATEGORY_OPTIMIZER_STATE;
    }
  return is_recorded ? GTORCH_CATEGORY_ACTIVATION : found;
}

static void
write_raw (GString *text, const GTorchRecord *record, guint category, gboolean is_first)
{
  const gboolean is_new = record->kind == GTORCH_RECORD_ALLOC;

  g_string_append_printf (text, "%s[%" PRId64 ", %d, %s%" PRIu64 ", %u]", is_first ? "" : ", ",
                          record->start, is_new ? ACTION_CREATE : ACTION_DESTROY, is_new ? "" : "-",
                          record->memory.n_bytes, category);
}

void
gtorch_timeline_walk_begin (GTorchTimelineWalk *self, const GTorchProfileTimeline *timeline)
{
  guint n;

  *self = (GTorchTimelineWalk){ .timeline = timeline };
  self->records = gtorch_trace_get_records (timeline->trace, &n);
  self->categories = g_hash_table_new (NULL, NULL);
  if (timeline->order->len > 0) /* what was there before has no category */
    {
      const GTorchRecord *first = &self->records[g_array_index (timeline->order, guint, 0)];

      self->totals[GTORCH_CATEGORY_NONE] = first->memory.total;
      if (first->kind == GTORCH_RECORD_ALLOC)
        self->totals[GTORCH_CATEGORY_NONE] -= first->memory.n_bytes;
      else
        self->totals[GTORCH_CATEGORY_NONE] += first->memory.n_bytes;
    }
}

void
gtorch_timeline_walk_end (GTorchTimelineWalk *self)
{
  g_clear_pointer (&self->categories, g_hash_table_unref);
}

const GTorchRecord *
gtorch_timeline_walk_next (GTorchTimelineWalk *self, guint *category)
{
  const GArray *order = self->timeline->order;
  const GTorchRecord *record;
  gpointer address;

  if (self->next == order->len)
    return NULL;
  record = &self->records[g_array_index (order, guint, self->next++)];
  address = GSIZE_TO_POINTER ((gsize) record->memory.address);
  if (record->kind == GTORCH_RECORD_ALLOC)
    {
      *category = category_of (self->records, record);
      g_hash_table_insert (self->categories, address, GUINT_TO_POINTER (*category + 1));
      self->totals[*category] += record->memory.n_bytes;
    }
  else
    {
      const guint known = GPOINTER_TO_UINT (g_hash_table_lookup (self->categories, address));

      *category = known > 0 ? known - 1 : GTORCH_CATEGORY_NONE;
      g_hash_table_remove (self->categories, address);
      self->totals[*category] -= record->memory.n_bytes;
    }
  return record;
}

static gboolean
write_timeline (GTorchProfileFile *file, gpointer data, GError **error)
{
  const GTorchProfileTimeline *timeline = data;
  g_autoptr (GString) sizes = g_string_new (NULL);
  g_auto (GTorchTimelineWalk) walk = { NULL };
  const GTorchRecord *record;
  guint category, i, j;

  g_string_append (file->text, timeline->is_raw ? "[" : "[[");
  gtorch_timeline_walk_begin (&walk, timeline);
  for (i = 0; (record = gtorch_timeline_walk_next (&walk, &category)) != NULL; i++)
    {
      if (timeline->is_raw)
        write_raw (file->text, record, category, i == 0);
      else
        {
          g_string_append_printf (file->text, "%s%" PRId64, i > 0 ? ", " : "",
                                  record->start / 1000);
          g_string_append (sizes, i > 0 ? ", [0" : "[0");
          for (j = 0; j < GTORCH_N_CATEGORIES; j++)
            g_string_append_printf (sizes, ", %" PRId64, MAX (walk.totals[j], 0));
          g_string_append_c (sizes, ']');
        }
      if (!gtorch_profile_file_flush (file, FALSE, error))
        return FALSE;
    }
  if (timeline->is_raw)
    g_string_append (file->text, "]\n");
  else
    g_string_append_printf (file->text, "], [%s]]\n", sizes->str);
  return TRUE;
}

/**
 * gtorch_profiler_export_memory_timeline:
 * @self: a profiler
 * @file: the file to write or replace
 * @device: (nullable): whose memory; %NULL: that of the current GPU, if there is one, else that of the CPU
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes how much memory there was at which time, in PyTorch's form.
 *
 * The end of the name tells what the file has: with “.json” two lists, of the times in microseconds, and of
 * lists of bytes, of which the first is 0 and the others are one for each category; with “.raw.json” one
 * list of events of four numbers, which are the time in nanoseconds, 2 for memory that was taken or 4 for
 * memory that was given back, the bytes, negative for the latter, and the category. With “.gz” behind it,
 * it is compressed. With “.html” it is a page with a picture, which needs no other file and no network. In
 * all of them categories tell where memory was taken: 1 in an optimizer's step, 3 in other
 * operations, 4 in operations that were recorded for a backward pass, 5 as the gradient of a leaf, 6
 * elsewhere in a backward pass, and 7 outside of operations or before the profile.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if no profile is finished, if
 *   [property@Profiler:profile-memory] was not set or if the name ends otherwise, or with an error of the
 *   file
 *
 * Since: 0.1
 */
gboolean
gtorch_profiler_export_memory_timeline (GTorchProfiler *self, GFile *file, GTorchDevice *device,
                                        GCancellable *cancellable, GError **error)
{
  static const gchar who[] = "profiler_export_memory_timeline";
  GTorchProfileTimeline timeline = { NULL };
  g_autoptr (GTorchTrace) trace = NULL;
  g_autoptr (GArray) order = NULL;
  g_autofree gchar *name = NULL;
  GTorchProfileSettings settings;
  const GTorchRecord *records;
  gboolean is_page;
  guint n, i;

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  timeline.trace = trace = gtorch_profiler_need_trace (self, who, error);
  if (trace == NULL)
    return FALSE;
  gtorch_profiler_get_settings (self, &settings);
  if (!settings.profile_memory)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there is no memory in the profile: set profile_memory"), who);
      return FALSE;
    }
  name = g_file_get_basename (file);
  is_page = g_str_has_suffix (name, ".html");
  if (!is_page && !g_str_has_suffix (name, ".json") && !g_str_has_suffix (name, ".json.gz"))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the name “%s” must end with .json, .raw.json, .json.gz, .raw.json.gz or "
                      ".html"),
                   who, gtorch_name_str (name));
      return FALSE;
    }
  if (device == NULL)
    device =
        gtorch_trace_has_gpu (timeline.trace) && gtorch_gpu_tracer != NULL
            ? gtorch_backend_find (gtorch_backends[gtorch_gpu_tracer->device_type], 0, NULL, NULL)
            : gtorch_device_cpu ();
  timeline.device = device = gtorch_device_resolved (device);
  timeline.is_raw = g_str_has_suffix (name, ".raw.json") || g_str_has_suffix (name, ".raw.json.gz");
  timeline.order = order = g_array_new (FALSE, FALSE, sizeof (guint));
  records = gtorch_trace_get_records (timeline.trace, &n);
  for (i = 0; i < n; i++)
    if ((records[i].kind == GTORCH_RECORD_ALLOC || records[i].kind == GTORCH_RECORD_FREE)
        && records[i].device == device)
      g_array_append_val (order, i);
  gtorch_trace_sort_by_start (timeline.trace, order);
  return gtorch_profile_file_save (file,
                                   is_page ? gtorch_profile_write_memory_page : write_timeline,
                                   &timeline, cancellable, error);
}

/* --- stacks --- */

typedef struct
{
  GListModel *events;
  gboolean of_device;
} Stacks;

/* A frame without what separates frames and numbers. */
static void
write_frame (GString *text, const gchar *frame)
{
  for (; *frame != '\0'; frame++)
    g_string_append_c (text, strchr (" ;\t\n", *frame) != NULL ? '_' : *frame);
}

static gboolean
write_stacks (GTorchProfileFile *file, gpointer data, GError **error)
{
  const Stacks *stacks = data;
  guint n = g_list_model_get_n_items (stacks->events), i, j;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchProfileRow) row = g_list_model_get_item (stacks->events, i);
      const gint64 value =
          (gint64) (stacks->of_device ? gtorch_profile_row_get_self_device_time_total (row)
                                      : gtorch_profile_row_get_self_cpu_time_total (row));
      g_auto (GStrv) frames = g_strsplit (gtorch_profile_row_get_stack (row), "\n", -1);

      if (value <= 0 || frames[0] == NULL)
        continue;
      for (j = g_strv_length (frames); j-- > 0;)
        {
          write_frame (file->text, frames[j]);
          g_string_append_c (file->text, j > 0 ? ';' : ' ');
        }
      g_string_append_printf (file->text, "%" PRId64 "\n", value);
      if (!gtorch_profile_file_flush (file, FALSE, error))
        return FALSE;
    }
  return TRUE;
}

/**
 * gtorch_profiler_export_stacks:
 * @self: a profiler
 * @file: the file to write or replace
 * @metric: “self_cpu_time_total” or “self_cuda_time_total”
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes the frames of each event and its time in microseconds, a line each, as programs for flame graphs
 * read them.
 *
 * Events without frames, or that took less than a microsecond, are left out.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if no profile is finished, if
 *   [property@Profiler:with-stack] was not set or if @metric is something else, or with an error of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_profiler_export_stacks (GTorchProfiler *self, GFile *file, const gchar *metric,
                               GCancellable *cancellable, GError **error)
{
  static const gchar who[] = "profiler_export_stacks";
  g_autoptr (GTorchProfileList) events = NULL;
  g_autoptr (GPtrArray) traces = NULL;
  GTorchProfileSettings settings;
  Stacks stacks;

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (metric != NULL, FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  traces = gtorch_profiler_need_traces (self, who, error);
  if (traces == NULL)
    return FALSE;
  gtorch_profiler_get_settings (self, &settings);
  if (!settings.with_stack)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are no frames in the profile: set with_stack"), who);
      return FALSE;
    }
  stacks.of_device = g_str_equal (metric, "self_cuda_time_total");
  if (!stacks.of_device && !g_str_equal (metric, "self_cpu_time_total"))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: metric is “%s”, it must be “self_cpu_time_total” or "
                      "“self_cuda_time_total”"),
                   who, gtorch_name_str (metric));
      return FALSE;
    }
  events = gtorch_profile_list_new_events (self, traces);
  stacks.events = G_LIST_MODEL (events);
  return gtorch_profile_file_save (file, write_stacks, &stacks, cancellable, error);
}
