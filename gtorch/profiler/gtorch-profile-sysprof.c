/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Profiles as captures for Sysprof. The library that writes these is linked in, if the build has it. */

#include "config.h"

#include "profiler/gtorch-profile-sysprof.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "base/gtorch-file-save-private.h"
#include "profiler/gtorch-profile-list-private.h"
#include "profiler/gtorch-profiler-private.h"

#ifdef HAVE_SYSPROF

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/gtorch-memory-report-private.h"
#include "profiler/gtorch-sysprof-private.h"

/* What a device has reserved during the trace, if the history of its memory was recorded; and at its end. */
static void
add_reserved (GTorchCapturer *capturer, const GTorchTrace *trace, GTorchDevice *device)
{
  GTorchAllocator *allocator = gtorch_device_get_allocator (device);
  const gint64 offset = gtorch_trace_get_realtime_offset (trace);
  const gint64 begin = gtorch_trace_get_start (trace), end = gtorch_trace_get_end (trace);
  g_autoptr (GArray) blocks = NULL;
  g_autoptr (GArray) entries = NULL;
  g_autoptr (GArray) moments = NULL;
  gint64 former = -1;
  guint i;

  if (allocator->list_blocks != NULL)
    {
      blocks = gtorch_allocator_dup_blocks (allocator);
      entries = gtorch_allocator_dup_entries (allocator, 0);
      moments = gtorch_memory_report_moments (blocks, entries);
      for (i = 0; i < moments->len; i++)
        {
          const GTorchMemoryMoment *moment = &g_array_index (moments, GTorchMemoryMoment, i);
          const gint64 time = g_array_index (entries, GTorchMemoryEntry, i).time_us * 1000 - offset;

          if (time < begin || time > end || moment->reserved == former)
            continue;
          gtorch_capturer_count (capturer, time, device, moment->allocated, moment->reserved);
          former = moment->reserved;
        }
    }
  if (former < 0)
    gtorch_capturer_count (capturer, end, device, gtorch_allocator_get_allocated (allocator),
                           gtorch_allocator_get_reserved (allocator));
}

static void
add_trace (GTorchCapturer *capturer, const GTorchTrace *trace)
{
  g_autoptr (GHashTable) devices = g_hash_table_new (NULL, NULL);
  g_autoptr (GArray) order = g_array_new (FALSE, FALSE, sizeof (guint));
  const GTorchRecord *records;
  GHashTableIter iter;
  gpointer device;
  guint i, n;

  records = gtorch_trace_get_records (trace, &n);
  for (i = 0; i < n; i++)
    g_array_append_val (order, i);
  gtorch_trace_sort_by_start (trace, order);
  for (i = 0; i < n; i++)
    {
      const GTorchRecord *record = &records[g_array_index (order, guint, i)];

      gtorch_capturer_add (capturer, trace, record);
      if (record->kind == GTORCH_RECORD_ALLOC || record->kind == GTORCH_RECORD_FREE)
        g_hash_table_add (devices, record->device);
    }
  g_hash_table_iter_init (&iter, devices);
  while (g_hash_table_iter_next (&iter, &device, NULL))
    add_reserved (capturer, trace, device);
}

static gboolean
set_errno (GError **error)
{
  const gint number = errno;

  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (number),
               _ ("%s: the capture cannot be written: %s"), "profiler_export_sysprof",
               g_strerror (number));
  return FALSE;
}

/* Reads the whole capture from its beginning. */
static GBytes *
read_all (gint fd, GError **error)
{
  const off_t size = lseek (fd, 0, SEEK_END);
  g_autofree gchar *data = NULL;
  gsize at = 0;

  if (size < (off_t) sizeof (SysprofCaptureFileHeader))
    {
      set_errno (error);
      return NULL;
    }
  data = g_malloc (size);
  while (at < (gsize) size)
    {
      const gssize n = pread (fd, data + at, size - at, at);

      if (n <= 0 && errno != EINTR)
        {
          set_errno (error);
          return NULL;
        }
      at += MAX (n, 0);
    }
  return g_bytes_new_take (g_steal_pointer (&data), size);
}

/* The writer notes the time at which it was made; what it has to note is that of the trace. */
static gboolean
set_times (gint fd, const GTorchTrace *trace)
{
  const gint64 times[] = { gtorch_trace_get_start (trace), gtorch_trace_get_end (trace) };

  G_STATIC_ASSERT (G_STRUCT_OFFSET (SysprofCaptureFileHeader, end_time)
                   == G_STRUCT_OFFSET (SysprofCaptureFileHeader, time) + sizeof (gint64));
  return pwrite (fd, times, sizeof times, G_STRUCT_OFFSET (SysprofCaptureFileHeader, time))
         == sizeof times;
}

static GBytes *
make_capture (const GTorchTrace *trace, GError **error)
{
  GTorchCapturer capturer = { NULL };
  const gint fd = memfd_create ("gtorch-capture", MFD_CLOEXEC);
  const gint copy = fd >= 0 ? dup (fd) : -1; /* the writer closes its own */
  SysprofCaptureWriter *writer = copy >= 0 ? sysprof_capture_writer_new_from_fd (copy, 0) : NULL;
  GBytes *bytes = NULL;
  gboolean ok;

  if (writer == NULL)
    set_errno (error);
  else
    {
      gtorch_capturer_init (&capturer, writer);
      add_trace (&capturer, trace);
      ok = sysprof_capture_writer_flush (writer);
      gtorch_capturer_clear (&capturer);
      if ((ok && set_times (fd, trace)) || set_errno (error))
        bytes = read_all (fd, error);
    }
  if (fd >= 0)
    close (fd);
  return bytes;
}

#endif

/**
 * gtorch_profiler_export_sysprof:
 * @self: a profiler
 * @file: the file to write or replace, by custom with the ending `.syscap`
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes the last finished profile as a capture that Sysprof opens.
 *
 * Operations, ranges, steps and backward passes are marks, in a group for each thread; kernels, copies and
 * fills are marks in a group for each stream of a device. The bytes that tensors of a device hold, and those
 * that are reserved, are counters, if the profiler recorded memory. Times are those of the system's monotonic
 * clock, so that a capture of the same time can be merged with it by `sysprof-cli --merge`.
 *
 * ```c
 * g_autoptr (GFile) file = g_file_new_for_path ("profile.syscap");
 *
 * gtorch_profiler_export_sysprof (profiler, file, NULL, &error);
 * ```
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if no profile is finished, with
 *   %GTORCH_ERROR_NOT_SUPPORTED if the library was built without libsysprof-capture, or with an error of the
 *   file, which is then unchanged
 *
 * Since: 0.1
 */
gboolean
gtorch_profiler_export_sysprof (GTorchProfiler *self, GFile *file, GCancellable *cancellable,
                                GError **error)
{
  g_autoptr (GTorchTrace) trace = NULL;

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  trace = gtorch_profiler_need_trace (self, "profiler_export_sysprof", error);
  if (trace == NULL)
    return FALSE;
#ifdef HAVE_SYSPROF
  {
    g_autoptr (GBytes) bytes = make_capture (trace, error);

    return bytes != NULL && gtorch_file_save_bytes (file, bytes, cancellable, error);
  }
#else
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: this library was built without libsysprof-capture (-Dsysprof=enabled)"),
               "profiler_export_sysprof");
  return FALSE;
#endif
}
