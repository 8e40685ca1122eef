/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What profilers record as marks and counters of Sysprof. */

#include "config.h"

#include "profiler/gtorch-sysprof-private.h"

#include <string.h>
#include <unistd.h>

#include "device/gtorch-device-private.h"

#define MAX_MESSAGE 4000 /* a frame of a capture has less than 64 KiB */

enum
{
  ALLOCATED,
  RESERVED,
  N_COUNTERS,
};

void
gtorch_capturer_init (GTorchCapturer *self, SysprofCaptureWriter *writer)
{
  self->writer = writer;
  self->counters = g_hash_table_new (NULL, NULL);
}

void
gtorch_capturer_clear (GTorchCapturer *self)
{
  g_clear_pointer (&self->writer, sysprof_capture_writer_unref);
  g_clear_pointer (&self->counters, g_hash_table_unref);
}

void
gtorch_capturer_mark (GTorchCapturer *self, gint64 start, gint64 end, const gchar *group,
                      const gchar *name, const gchar *message)
{
  const gboolean is_long = strlen (name) >= sizeof ((SysprofCaptureMark *) NULL)->name;
  g_autofree gchar *whole = NULL;
  g_autofree gchar *text = NULL;

  if (is_long)
    message = whole = g_strdup_printf ("%s%s%s", name, message[0] != '\0' ? "\n" : "", message);
  text = g_utf8_make_valid (message, MIN (strlen (message), MAX_MESSAGE));
  sysprof_capture_writer_add_mark (self->writer, start, -1, getpid (), MAX (end - start, 0), group,
                                   name, text);
}

/* --- memory --- */

static guint
find_counters (GTorchCapturer *self, gint64 time, GTorchDevice *device)
{
  static const gchar *const names[] = { "allocated", "reserved" };
  SysprofCaptureCounter counters[N_COUNTERS];
  guint first = GPOINTER_TO_UINT (g_hash_table_lookup (self->counters, device)), i;

  if (first != 0)
    return first;
  memset (counters, 0, sizeof counters);
  first = sysprof_capture_writer_request_counter (self->writer, N_COUNTERS);
  for (i = 0; i < N_COUNTERS; i++)
    {
      g_strlcpy (counters[i].category, "GTorch memory", sizeof counters[i].category);
      g_snprintf (counters[i].name, sizeof counters[i].name, "%s %s", gtorch_device_name (device),
                  names[i]);
      g_strlcpy (counters[i].description,
                 i == ALLOCATED ? "bytes that tensors hold" : "bytes taken from the driver",
                 sizeof counters[i].description);
      counters[i].id = first + i;
      counters[i].type = SYSPROF_CAPTURE_COUNTER_INT64;
    }
  sysprof_capture_writer_define_counters (self->writer, time, -1, getpid (), counters, N_COUNTERS);
  g_hash_table_insert (self->counters, device, GUINT_TO_POINTER (first));
  return first;
}

void
gtorch_capturer_count (GTorchCapturer *self, gint64 time, GTorchDevice *device, gint64 allocated,
                       gint64 reserved)
{
  const guint first = find_counters (self, time, device);
  const unsigned int ids[N_COUNTERS] = { first + ALLOCATED, first + RESERVED };
  const SysprofCaptureCounterValue values[N_COUNTERS] = { { .v64 = allocated },
                                                          { .v64 = reserved } };

  sysprof_capture_writer_set_counters (self->writer, time, -1, getpid (), ids, values,
                                       reserved >= 0 ? N_COUNTERS : 1);
}

/* --- records --- */

/* “ops: python 1234”: the kind first, since groups are cut off. */
static void
set_group (gchar *group, gsize size, const GTorchTrace *trace, const GTorchRecord *record)
{
  static const gchar *const kinds[GTORCH_N_RECORD_KINDS] = {
    [GTORCH_RECORD_OP] = "ops",          [GTORCH_RECORD_RANGE] = "ranges",
    [GTORCH_RECORD_STEP] = "steps",      [GTORCH_RECORD_BACKWARD] = "backward",
    [GTORCH_RECORD_MODULE] = "modules",  [GTORCH_RECORD_TRANSFER] = "transfers",
    [GTORCH_RECORD_WAIT] = "waits",      [GTORCH_RECORD_RUN] = "ops",
    [GTORCH_RECORD_REPLAY] = "replays",  [GTORCH_RECORD_DRIVER] = "driver",
    [GTORCH_RECORD_SPAN] = "operations",
  };
  const gchar *device = record->device != NULL ? gtorch_device_name (record->device) : "device";
  const GTorchTraceThread *threads;
  guint n;

  if (record->kind == GTORCH_RECORD_SPAN)
    g_snprintf (group, size, "%s %s", device, kinds[record->kind]);
  else if (gtorch_record_is_of_device (record))
    g_snprintf (group, size, "%s stream %" G_GUINT64_FORMAT, device, record->stream);
  else
    {
      threads = gtorch_trace_get_threads (trace, &n);
      if (record->thread >= 0 && (guint) record->thread < n)
        g_snprintf (group, size, "%s: %.5s %" G_GUINT64_FORMAT, kinds[record->kind],
                    threads[record->thread].name, threads[record->thread].id);
      else
        g_strlcpy (group, kinds[record->kind], size);
    }
}

static void
append_inputs (GString *text, const GTorchRecord *record)
{
  guint i, k;

  for (i = 0; i < record->op.n_inputs; i++)
    {
      const GTorchRecordInput *input = &record->op.inputs[i];

      g_string_append (text, i > 0 ? " [" : "[");
      for (k = 0; k < input->n_dims; k++)
        g_string_append_printf (text, "%s%" G_GINT64_FORMAT, k > 0 ? ", " : "", input->shape[k]);
      g_string_append_c (text, ']');
    }
}

static void
append_size (GString *text, guint64 n_bytes)
{
  g_autofree gchar *size = g_format_size_full (n_bytes, G_FORMAT_SIZE_IEC_UNITS);

  g_string_append (text, size);
}

static gchar *
describe (const GTorchRecord *record)
{
  GString *text = g_string_new (NULL);

  switch (record->kind)
    {
    case GTORCH_RECORD_RANGE:
      if (record->range.args != NULL)
        g_string_append (text, record->range.args);
      break;
    case GTORCH_RECORD_OP:
    case GTORCH_RECORD_RUN:
    case GTORCH_RECORD_BACKWARD:
    case GTORCH_RECORD_TRANSFER:
      append_inputs (text, record);
      if (record->op.flops > 0)
        g_string_append_printf (text, "%s%" G_GUINT64_FORMAT " operations",
                                text->len > 0 ? ", " : "", record->op.flops);
      break;
    case GTORCH_RECORD_KERNEL:
      g_string_append_printf (text,
                              "grid %u × %u × %u, block %u × %u × %u, %u registers, %zu bytes "
                              "shared",
                              record->kernel.grid[0], record->kernel.grid[1],
                              record->kernel.grid[2], record->kernel.block[0],
                              record->kernel.block[1], record->kernel.block[2],
                              record->kernel.n_registers,
                              record->kernel.static_shared + record->kernel.dynamic_shared);
      break;
    case GTORCH_RECORD_COPY:
    case GTORCH_RECORD_FILL:
      append_size (text, record->copy.n_bytes);
      if (record->copy.direction != NULL)
        g_string_append_printf (text, " %s", record->copy.direction);
      break;
    default:
      break;
    }
  if (record->place != NULL)
    g_string_append_printf (text, "%s%s", text->len > 0 ? "\n" : "", record->place);
  return g_string_free (text, FALSE);
}

void
gtorch_capturer_add (GTorchCapturer *self, const GTorchTrace *trace, const GTorchRecord *record)
{
  gchar group[sizeof ((SysprofCaptureMark *) NULL)->group];
  g_autofree gchar *message = NULL;

  if (record->kind == GTORCH_RECORD_ALLOC || record->kind == GTORCH_RECORD_FREE)
    {
      gtorch_capturer_count (self, record->start, record->device, record->memory.total, -1);
      return;
    }
  set_group (group, sizeof group, trace, record);
  message = describe (record);
  gtorch_capturer_mark (self, record->start, record->end, group, record->name, message);
}
