/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A profile in the form that chrome://tracing and Perfetto read, with the categories, names and arguments of
 * PyTorch's, so that programs for those read it, too. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-json-private.h"
#include "base/gtorch-program-private.h"
#include "device/gtorch-device-private.h"
#include "profiler/gtorch-profile-file-private.h"
#include "profiler/gtorch-profile-list-private.h"
#include "profiler/gtorch-profile-tracks-private.h"

typedef struct
{
  GTorchTrace *trace;
  GTorchProfileSettings settings;
  gchar **metadata; /* keys and values by turns */
  const GTorchRecord *records;
  guint n;
  const GTorchTraceThread *threads;
  guint n_threads;
  guint64 pid;
  GTorchTrack *tracks; /* of the records, in which none overlap */
  GArray *spares;      /* GTorchSpareTrack */
  gboolean is_first;   /* nothing was written to the list */
} Chrome;

/* The thread or stream of the event. Devices are processes whose number is that of the device, as PyTorch has
 * it. */
static GTorchTrack
own_track (const Chrome *chrome, const GTorchRecord *record)
{
  if (gtorch_record_is_of_device (record))
    return (GTorchTrack){ record->device != NULL ? MAX (record->device->index, 0) : 0,
                          record->stream };
  return (GTorchTrack){ chrome->pid, record->thread >= 0 ? chrome->threads[record->thread].id : 0 };
}

/* Where the event is drawn. */
static GTorchTrack
track_of (const Chrome *chrome, const GTorchRecord *record)
{
  return chrome->tracks[record - chrome->records];
}

static void
write_us (GString *text, const gchar *key, gint64 ns)
{
  g_string_append_printf (text, ", \"%s\": %" PRId64 ".%03d", key, ns / 1000, (gint) (ns % 1000));
}

static void
begin (Chrome *chrome, GString *text, const gchar *phase, const gchar *category, const gchar *name,
       GTorchTrack track, gint64 time)
{
  g_string_append (text, chrome->is_first ? "\n  {" : ",\n  {");
  chrome->is_first = FALSE;
  g_string_append_printf (text, "\"ph\": \"%s\"", phase);
  if (category != NULL)
    g_string_append_printf (text, ", \"cat\": \"%s\"", category);
  g_string_append (text, ", \"name\": ");
  gtorch_json_write_string (text, name, -1);
  g_string_append_printf (text, ", \"pid\": %" PRIu64 ", \"tid\": %" PRIu64, track.pid, track.tid);
  write_us (text, "ts", time);
}

/* --- arguments --- */

static void
write_numbers (GString *text, const gint64 *numbers, guint n)
{
  guint i;

  g_string_append_c (text, '[');
  for (i = 0; i < n; i++)
    g_string_append_printf (text, "%s%" PRId64, i > 0 ? ", " : "", numbers[i]);
  g_string_append_c (text, ']');
}

static void
write_inputs (GString *text, const GTorchRecord *record)
{
  guint i;

  g_string_append (text, ", \"Input Dims\": ");
  gtorch_profile_write_shapes (text, record);
  g_string_append (text, ", \"Input Strides\": [");
  for (i = 0; i < record->op.n_inputs; i++)
    {
      g_string_append (text, i > 0 ? ", " : "");
      write_numbers (text, record->op.inputs[i].strides, record->op.inputs[i].n_dims);
    }
  g_string_append (text, "], \"Input type\": [");
  for (i = 0; i < record->op.n_inputs; i++)
    {
      const guint dtype = record->op.inputs[i].dtype;

      g_string_append_printf (text, "%s\"%s\"", i > 0 ? ", " : "",
                              record->op.inputs[i].is_number ? "Scalar"
                              : dtype == GTORCH_DTYPE_NONE   ? ""
                                                             : gtorch_dtype_get_name (dtype));
    }
  g_string_append_c (text, ']');
}

/* The numbers by which programs for PyTorch's traces find modules, which are calls of Python there. */
static void
write_module (const Chrome *chrome, GString *text, const GTorchRecord *record)
{
  gint parent = record->parent;

  while (parent >= 0 && chrome->records[parent].kind != GTORCH_RECORD_MODULE)
    parent = chrome->records[parent].parent;
  g_string_append_printf (text, ", \"Python id\": %" G_GSSIZE_FORMAT,
                          (gssize) (record - chrome->records) + 1);
  if (parent >= 0)
    g_string_append_printf (text, ", \"Python parent id\": %d", parent + 1);
  g_string_append_printf (text, ", \"Python module id\": %" PRIu64 ", \"Module path\": ",
                          record->module.number);
  gtorch_json_write_string (text, record->module.path, -1);
}

static void
write_host_args (const Chrome *chrome, GString *text, const GTorchRecord *record)
{
  g_string_append_printf (text, "\"External id\": %" PRIu64, record->id);
  if (record->correlation != 0)
    g_string_append_printf (text, ", \"correlation\": %" PRIu64, record->correlation);
  if (record->sequence != 0)
    g_string_append_printf (text, ", \"Sequence number\": %" PRIu64, record->sequence);
  if (record->kind == GTORCH_RECORD_BACKWARD && record->forward >= 0)
    g_string_append_printf (text, ", \"Fwd thread id\": %" PRIu64,
                            chrome->threads[chrome->records[record->forward].thread].id);
  if (record->kind == GTORCH_RECORD_MODULE)
    write_module (chrome, text, record);
  if (gtorch_record_is_call (record) && record->op.inputs != NULL)
    write_inputs (text, record);
  if (record->kind == GTORCH_RECORD_RANGE && record->range.args != NULL)
    {
      g_string_append (text, ", \"Concrete Inputs\": [");
      gtorch_json_write_string (text, record->range.args, -1);
      g_string_append_c (text, ']');
    }
  if (record->kind == GTORCH_RECORD_OP && record->op.flops > 0)
    g_string_append_printf (text, ", \"flops\": %" PRIu64, record->op.flops);
  if (record->place != NULL)
    {
      g_autoptr (GString) frames = g_string_new (record->place);

      g_string_replace (frames, "\n", ";", 0);
      g_string_append (text, ", \"Call stack\": ");
      gtorch_json_write_string (text, frames->str, -1);
    }
}

static guint64
external_id (const Chrome *chrome, const GTorchRecord *record)
{
  return record->parent >= 0 ? chrome->records[record->parent].id : 0;
}

static void
write_device_args (const Chrome *chrome, GString *text, const GTorchRecord *record)
{
  const GTorchTrack own = own_track (chrome, record);

  g_string_append_printf (text,
                          "\"External id\": %" PRIu64 ", \"device\": %" PRIu64
                          ", \"stream\": %" PRIu64 ", \"correlation\": %" PRIu64,
                          external_id (chrome, record), own.pid, own.tid, record->correlation);
  if (record->kind == GTORCH_RECORD_KERNEL)
    {
      g_string_append_printf (text,
                              ", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"registers per "
                              "thread\": %u, "
                              "\"shared memory\": %" G_GSIZE_FORMAT,
                              record->kernel.grid[0], record->kernel.grid[1],
                              record->kernel.grid[2], record->kernel.block[0],
                              record->kernel.block[1], record->kernel.block[2],
                              record->kernel.n_registers,
                              record->kernel.static_shared + record->kernel.dynamic_shared);
      if (record->kernel.graph != 0)
        g_string_append_printf (text, ", \"graph id\": %u, \"graph node id\": %" PRIu64,
                                record->kernel.graph, record->kernel.graph_node);
    }
  else if (record->kind != GTORCH_RECORD_SPAN)
    {
      const gint64 took = record->end - record->start;
      gchar number[G_ASCII_DTOSTR_BUF_SIZE];

      g_string_append_printf (text, ", \"bytes\": %" PRIu64, record->copy.n_bytes);
      if (took > 0)
        g_string_append_printf (text, ", \"memory bandwidth (GB/s)\": %s",
                                g_ascii_formatd (number, sizeof number, "%.3f",
                                                 (gdouble) record->copy.n_bytes / took));
    }
}

/* --- events --- */

static const gchar *const categories[GTORCH_N_RECORD_KINDS] = {
  [GTORCH_RECORD_OP] = "cpu_op",
  [GTORCH_RECORD_RANGE] = "user_annotation",
  [GTORCH_RECORD_STEP] = "user_annotation",
  [GTORCH_RECORD_BACKWARD] = "cpu_op",
  [GTORCH_RECORD_MODULE] = "python_function",
  [GTORCH_RECORD_TRANSFER] = "user_annotation",
  [GTORCH_RECORD_WAIT] = "user_annotation",
  [GTORCH_RECORD_RUN] = "cpu_op",
  [GTORCH_RECORD_REPLAY] = "cpu_op",
  [GTORCH_RECORD_ALLOC] = "cpu_instant_event",
  [GTORCH_RECORD_FREE] = "cpu_instant_event",
  [GTORCH_RECORD_DRIVER] = "cuda_driver",
  [GTORCH_RECORD_KERNEL] = "kernel",
  [GTORCH_RECORD_COPY] = "gpu_memcpy",
  [GTORCH_RECORD_FILL] = "gpu_memset",
  [GTORCH_RECORD_SPAN] = "gpu_op",
};

/* What all storages of the device have, as a curve over time. */
static void
write_counter (Chrome *chrome, GString *text, const GTorchRecord *record)
{
  g_autofree gchar *name = g_strconcat ("Memory of ", gtorch_device_name (record->device), NULL);

  begin (chrome, text, "C", NULL, name, (GTorchTrack){ chrome->pid, 0 }, record->start);
  g_string_append_printf (text, ", \"args\": {\"bytes\": %" PRId64 "}}", record->memory.total);
}

static void
write_memory (Chrome *chrome, GString *text, const GTorchRecord *record)
{
  const gboolean is_host = gtorch_device_is_host (record->device);

  begin (chrome, text, "i", categories[record->kind], record->name, track_of (chrome, record),
         record->start);
  g_string_append_printf (text,
                          ", \"s\": \"t\", \"args\": {\"Addr\": %" PRIu64 ", \"Bytes\": %s%" PRIu64
                          ", \"Total Allocated\": %" PRId64
                          ", \"Device Type\": %d, \"Device Id\": %d}}",
                          record->memory.address, record->kind == GTORCH_RECORD_FREE ? "-" : "",
                          record->memory.n_bytes, record->memory.total, is_host ? 0 : 1,
                          is_host ? -1 : record->device->index);
  write_counter (chrome, text, record);
}

/* An arrow between two events. */
static void
write_flow (Chrome *chrome, GString *text, const gchar *name, guint64 id, const GTorchRecord *from,
            const GTorchRecord *to)
{
  begin (chrome, text, "s", name, name, track_of (chrome, from), from->start);
  g_string_append_printf (text, ", \"id\": %" PRIu64 "}", id);
  begin (chrome, text, "f", name, name, track_of (chrome, to), to->start);
  g_string_append_printf (text, ", \"id\": %" PRIu64 ", \"bp\": \"e\"}", id);
}

static void
write_event (Chrome *chrome, GString *text, const GTorchRecord *record)
{
  if (record->kind == GTORCH_RECORD_ALLOC || record->kind == GTORCH_RECORD_FREE)
    {
      write_memory (chrome, text, record);
      return;
    }
  begin (chrome, text, "X", categories[record->kind], record->name, track_of (chrome, record),
         record->start);
  write_us (text, "dur", record->end - record->start);
  g_string_append (text, ", \"args\": {");
  if (gtorch_record_is_of_host (record))
    write_host_args (chrome, text, record);
  else if (record->kind == GTORCH_RECORD_DRIVER)
    {
      g_string_append_printf (text, "\"External id\": %" PRIu64 ", \"correlation\": %" PRIu64,
                              external_id (chrome, record), record->correlation);
      if (record->call.result != 0)
        g_string_append_printf (text, ", \"result\": %d", record->call.result);
    }
  else
    write_device_args (chrome, text, record);
  g_string_append (text, "}}");
}

static void
write_name (Chrome *chrome, GString *text, const gchar *kind, GTorchTrack track, const gchar *key,
            const gchar *value)
{
  begin (chrome, text, "M", NULL, kind, track, gtorch_trace_get_start (chrome->trace));
  g_string_append_printf (text, ", \"args\": {\"%s\": ", key);
  gtorch_json_write_string (text, value, -1);
  g_string_append (text, "}}");
}

static void
write_thread_name (Chrome *chrome, GString *text, GTorchTrack track, GTorchTrack of, guint number)
{
  g_autoptr (GString) name = g_string_new (NULL);
  guint i;

  for (i = 0; of.pid == chrome->pid && i < chrome->n_threads; i++)
    if (chrome->threads[i].id == of.tid)
      break;
  if (of.pid == chrome->pid && i < chrome->n_threads)
    g_string_printf (name, "thread %" PRIu64 " (%s)", of.tid, chrome->threads[i].name);
  else
    g_string_printf (name, of.pid == chrome->pid ? "thread %" PRIu64 : "stream %" PRIu64, of.tid);
  if (number > 1)
    g_string_append_printf (name, " (%u)", number);
  write_name (chrome, text, "thread_name", track, "name", name->str);
}

/* The names of processes and threads, which are shown beside the events. */
static void
write_names (Chrome *chrome, GString *text)
{
  g_autoptr (GHashTable) known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree gchar *program = gtorch_program_dup_name ();
  guint i;

  write_name (chrome, text, "process_name", (GTorchTrack){ chrome->pid, 0 }, "name", program);
  write_name (chrome, text, "process_labels", (GTorchTrack){ chrome->pid, 0 }, "labels", "CPU");
  for (i = 0; i < chrome->n_threads; i++)
    {
      const GTorchTrack track = { chrome->pid, chrome->threads[i].id };

      write_thread_name (chrome, text, track, track, 1);
    }
  for (i = 0; i < chrome->n; i++)
    {
      const GTorchRecord *record = &chrome->records[i];
      const GTorchTrack own = own_track (chrome, record);
      g_autofree gchar *device = NULL;
      g_autofree gchar *stream = NULL;

      if (!gtorch_record_is_of_device (record))
        continue;
      device = g_strdup_printf ("GPU %" PRIu64, own.pid);
      stream = g_strdup_printf ("stream %" PRIu64 " of %" PRIu64, own.tid, own.pid);
      if (!g_hash_table_contains (known, device))
        {
          write_name (chrome, text, "process_name", (GTorchTrack){ own.pid, 0 }, "name", program);
          write_name (chrome, text, "process_labels", (GTorchTrack){ own.pid, 0 }, "labels",
                      device);
          g_hash_table_add (known, g_steal_pointer (&device));
        }
      if (g_hash_table_add (known, g_steal_pointer (&stream)))
        write_thread_name (chrome, text, own, own, 1);
    }
  for (i = 0; i < chrome->spares->len; i++)
    {
      const GTorchSpareTrack *spare = &g_array_index (chrome->spares, GTorchSpareTrack, i);

      write_thread_name (chrome, text, spare->track, spare->of, spare->number);
    }
}

static void
write_head (Chrome *chrome, GString *text)
{
  gchar **entry;
  const GTorchProfileSettings *settings = &chrome->settings;

  g_string_append_printf (text,
                          "{\n  \"schemaVersion\": 1,\n  \"displayTimeUnit\": \"ms\",\n  "
                          "\"baseTimeNanoseconds\": %" PRId64
                          ",\n  \"record_shapes\": %d,\n  \"profile_memory\": %d,\n  "
                          "\"with_stack\": %d,\n  "
                          "\"with_flops\": %d,\n  \"with_modules\": %d,\n  "
                          "\"host_name\": ",
                          gtorch_trace_get_realtime_offset (chrome->trace), settings->record_shapes,
                          settings->profile_memory, settings->with_stack, settings->with_flops,
                          settings->with_modules);
  gtorch_json_write_string (text, g_get_host_name (), -1);
  if (gtorch_trace_get_n_lost (chrome->trace) > 0)
    g_string_append_printf (text, ",\n  \"gpu_records_lost\": %" PRIu64,
                            gtorch_trace_get_n_lost (chrome->trace));
  if (gtorch_trace_get_n_untimed (chrome->trace) > 0)
    g_string_append_printf (text, ",\n  \"gpu_records_without_times\": %" PRIu64,
                            gtorch_trace_get_n_untimed (chrome->trace));
  for (entry = chrome->metadata; *entry != NULL; entry += 2)
    {
      g_string_append (text, ",\n  ");
      gtorch_json_write_string (text, entry[0], -1);
      g_string_append_printf (text, ": %s", entry[1]);
    }
  g_string_append (text, ",\n  \"traceEvents\": [");
}

static gboolean
write_chrome (GTorchProfileFile *file, gpointer data, GError **error)
{
  g_autoptr (GHashTable) calls = g_hash_table_new (g_int64_hash, g_int64_equal);
  Chrome *chrome = data;
  guint i;

  write_head (chrome, file->text);
  write_names (chrome, file->text);
  for (i = 0; i < chrome->n; i++)
    if (chrome->records[i].kind == GTORCH_RECORD_DRIVER)
      g_hash_table_insert (calls, (gpointer) &chrome->records[i].correlation,
                           (gpointer) &chrome->records[i]);
  for (i = 0; i < chrome->n; i++)
    {
      const GTorchRecord *record = &chrome->records[i];

      write_event (chrome, file->text, record);
      if (record->forward >= 0)
        write_flow (chrome, file->text, record->kind == GTORCH_RECORD_RUN ? "enqueued" : "fwdbwd",
                    i, &chrome->records[record->forward], record);
      if (gtorch_record_is_of_device (record) && record->correlation != 0)
        {
          const GTorchRecord *call = g_hash_table_lookup (calls, &record->correlation);

          if (call != NULL)
            write_flow (chrome, file->text, "ac2g", i, call, record);
        }
      if (!gtorch_profile_file_flush (file, FALSE, error))
        return FALSE;
    }
  g_string_append (file->text, "\n  ]\n}\n");
  return TRUE;
}

/* Gives func what there is to write. */
static gboolean
with_chrome (GTorchProfiler *self, const gchar *who,
             gboolean (*func) (Chrome *chrome, gpointer data, GError **error), gpointer data,
             GError **error)
{
  Chrome chrome = { .is_first = TRUE, .pid = getpid () };
  g_autoptr (GTorchTrace) trace = NULL;
  g_auto (GStrv) metadata = NULL;
  g_autofree GTorchTrack *tracks = NULL;
  g_autoptr (GArray) spares = NULL;
  guint i;

  chrome.trace = trace = gtorch_profiler_need_trace (self, who, error);
  if (trace == NULL)
    return FALSE;
  gtorch_profiler_get_settings (self, &chrome.settings);
  chrome.metadata = metadata = gtorch_profiler_dup_metadata (self);
  chrome.records = gtorch_trace_get_records (chrome.trace, &chrome.n);
  chrome.threads = gtorch_trace_get_threads (chrome.trace, &chrome.n_threads);
  chrome.tracks = tracks = g_new (GTorchTrack, MAX (chrome.n, 1));
  for (i = 0; i < chrome.n; i++)
    tracks[i] = own_track (&chrome, &chrome.records[i]);
  chrome.spares = spares = gtorch_profile_tracks_spread (tracks, chrome.records, chrome.n);
  return func (&chrome, data, error);
}

static gboolean
write_to_stream (Chrome *chrome, gpointer stream, GError **error)
{
  return gtorch_profile_file_write (stream, write_chrome, chrome, NULL, error);
}

gchar *
gtorch_profiler_dup_chrome_trace (GTorchProfiler *self, gsize most, gsize *length, GError **error)
{
  g_autofree gchar *text = g_malloc (most + 1);
  g_autoptr (GOutputStream) stream = g_memory_output_stream_new (text, most, NULL, NULL);
  GError *local = NULL;

  if (!with_chrome (self, "profiler_dup_chrome_trace", write_to_stream, stream, &local))
    {
      if (g_error_matches (local, G_IO_ERROR, G_IO_ERROR_NO_SPACE))
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("the profile has more than %zu bytes: record a shorter time"), most);
      else
        g_propagate_error (error, g_steal_pointer (&local));
      g_clear_error (&local);
      return NULL;
    }
  *length = g_memory_output_stream_get_data_size (G_MEMORY_OUTPUT_STREAM (stream));
  text[*length] = '\0';
  return g_realloc (g_steal_pointer (&text), *length + 1);
}

typedef struct
{
  GFile *file;
  GCancellable *cancellable;
} Saving;

static gboolean
save_to_file (Chrome *chrome, gpointer data, GError **error)
{
  const Saving *saving = data;

  return gtorch_profile_file_save (saving->file, write_chrome, chrome, saving->cancellable, error);
}

/**
 * gtorch_profiler_export_chrome_trace:
 * @self: a profiler
 * @file: the file to write or replace, compressed if its name ends with “.gz”
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes what was recorded last as a trace that Perfetto (https://ui.perfetto.dev) and chrome://tracing show.
 *
 * Arrows lead from operations to their nodes in the backward pass, and from the driver's calls to the
 * kernels and copies that they have launched.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if no profile is finished, or with an error
 *   of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_profiler_export_chrome_trace (GTorchProfiler *self, GFile *file, GCancellable *cancellable,
                                     GError **error)
{
  Saving saving = { file, cancellable };

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return !g_cancellable_set_error_if_cancelled (cancellable, error)
         && with_chrome (self, "profiler_export_chrome_trace", save_to_file, &saving, error);
}
