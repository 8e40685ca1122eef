/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/profiler/gtorch-profiler-private.h>

#include <gtorch/gtorch.h>

static inline GTorchTensor *
filled (gint64 rows, gint64 columns, gdouble value)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor =
      gtorch_full (GTORCH_SHAPE (rows, columns), value, GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

/* A profiler that records. Properties follow, as for g_object_new (). */
#define started(...) profiler_start_made (g_object_new (GTORCH_TYPE_PROFILER, __VA_ARGS__, NULL))

static inline GTorchProfiler *
profiler_start_made (GTorchProfiler *profiler)
{
  g_autoptr (GError) error = NULL;

  gtorch_profiler_start (profiler, &error);
  g_assert_no_error (error);
  return profiler;
}

static inline void
stop (GTorchProfiler *profiler)
{
  g_autoptr (GError) error = NULL;

  gtorch_profiler_stop (profiler, &error);
  g_assert_no_error (error);
  g_assert_nonnull (gtorch_profiler_get_trace (profiler));
}

/* The i-th record of this kind and name; NULL: there are not so many. A NULL name stands for any. */
static inline const GTorchRecord *
find_record (GTorchProfiler *profiler, GTorchRecordKind kind, const gchar *name, guint i)
{
  const GTorchRecord *records;
  guint n, j;

  records = gtorch_trace_get_records (gtorch_profiler_get_trace (profiler), &n);
  for (j = 0; j < n; j++)
    if (records[j].kind == kind && (name == NULL || g_str_equal (records[j].name, name))
        && i-- == 0)
      return &records[j];
  return NULL;
}

static inline guint
count_records (GTorchProfiler *profiler, GTorchRecordKind kind, const gchar *name)
{
  guint n = 0;

  while (find_record (profiler, kind, name, n) != NULL)
    n++;
  return n;
}

static inline const GTorchRecord *
parent_of (GTorchProfiler *profiler, const GTorchRecord *record)
{
  guint n;

  return record->parent >= 0
             ? &gtorch_trace_get_records (gtorch_profiler_get_trace (profiler), &n)[record->parent]
             : NULL;
}

/* The i-th record of this kind, of memory of the device. */
static inline const GTorchRecord *
find_memory (GTorchProfiler *profiler, GTorchRecordKind kind, GTorchDevice *device, guint i)
{
  const GTorchRecord *record;
  guint j;

  for (j = 0; (record = find_record (profiler, kind, NULL, j)) != NULL; j++)
    if (record->device == device && i-- == 0)
      return record;
  return NULL;
}

/* The row of the name; NULL: there is none. */
static inline GTorchProfileRow *
find_row (GTorchProfileList *list, const gchar *key)
{
  guint i, n = g_list_model_get_n_items (G_LIST_MODEL (list));

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchProfileRow) row = g_list_model_get_item (G_LIST_MODEL (list), i);

      if (g_str_equal (gtorch_profile_row_get_key (row), key))
        return g_steal_pointer (&row);
    }
  return NULL;
}

static inline void
assert_refused (gboolean success, GError **error, const gchar *message)
{
  g_assert_false (success);
  g_assert_error (*error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}
