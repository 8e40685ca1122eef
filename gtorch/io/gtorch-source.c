/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What readers of files read from: bytes, mapped files and streams, within a limit of memory. Nothing that
 * a file says of its size is believed before it is compared with the size of the source, so that a file
 * that lies makes no large allocation. */

#include "config.h"

#include "io/gtorch-source-private.h"

#include <gio/gfiledescriptorbased.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/gtorch-error-private.h"
#include "base/gtorch-task-private.h"
#include "device/gtorch-scratch-private.h"
#include "io/gtorch-read-private.h"
#include "io/gtorch-safetensors-private.h"

#define CHUNK      (4 * 1024 * 1024)
#define FIRST_STEP 65536

static GTorchSource *
source_new (const gchar *op, guint64 max_bytes)
{
  GTorchSource *source = g_new0 (GTorchSource, 1);

  source->op = op;
  source->max_bytes = source->left = max_bytes > 0 ? max_bytes : GTORCH_SOURCE_MAX_BYTES;
  return source;
}

void
gtorch_source_free (GTorchSource *source)
{
  g_clear_pointer (&source->bytes, g_bytes_unref);
  g_clear_object (&source->stream);
  g_free (source);
}

GTorchSource *
gtorch_source_new_from_bytes (const gchar *op, GBytes *bytes, guint64 max_bytes)
{
  GTorchSource *source = source_new (op, max_bytes);

  source->bytes = g_bytes_ref (bytes);
  source->size = g_bytes_get_size (bytes);
  source->is_read_only = TRUE;
  return source;
}

static gboolean
refuse_size (const GTorchSource *source, guint64 n, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
               _ ("%s: the content takes %" PRIu64 " bytes and more: the limit is %" PRIu64),
               source->op, n, source->max_bytes);
  return FALSE;
}

gpointer
gtorch_source_allocate (GTorchSource *source, guint64 n, GError **error)
{
  gpointer memory;

  if (n > source->left)
    {
      guint64 taken = source->max_bytes - source->left;

      refuse_size (source, n < G_MAXUINT64 - taken ? taken + n : G_MAXUINT64, error);
      return NULL;
    }
  memory = gtorch_scratch_new (MAX (MIN (n, G_MAXINT64), 1), 1, error);
  if (memory == NULL)
    gtorch_error_set_op (error, source->op);
  else
    source->left -= n;
  return memory;
}

/* --- streams --- */

/* Tells the size of what a stream still has, if it knows it. */
static gboolean
measure (GInputStream *stream, goffset *here, guint64 *size, GCancellable *cancellable)
{
  GSeekable *seekable = G_IS_SEEKABLE (stream) ? G_SEEKABLE (stream) : NULL;
  goffset end;

  if (seekable == NULL || !g_seekable_can_seek (seekable))
    return FALSE;
  *here = g_seekable_tell (seekable);
  if (!g_seekable_seek (seekable, 0, G_SEEK_END, cancellable, NULL))
    return FALSE;
  end = g_seekable_tell (seekable);
  if (!g_seekable_seek (seekable, *here, G_SEEK_SET, cancellable, NULL))
    return FALSE;
  *size = MAX (end - *here, 0);
  return TRUE;
}

static gboolean
read_to_end (GTorchSource *source, GInputStream *stream, GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) local = NULL;
  gsize n;

  source->bytes = gtorch_read_to_end (stream, FIRST_STEP, source->left, &n, cancellable, &local);
  if (local != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  if (source->bytes == NULL)
    return refuse_size (source, n, error);
  source->size = n;
  source->left -= n;
  return TRUE;
}

GTorchSource *
gtorch_source_new_from_stream (const gchar *op, GInputStream *stream, guint64 max_bytes,
                               GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchSource) source = source_new (op, max_bytes);

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  if (measure (stream, &source->base, &source->size, cancellable))
    source->stream = g_object_ref (stream);
  else if (!read_to_end (source, stream, cancellable, error))
    return NULL;
  return g_steal_pointer (&source);
}

/* --- files --- */

static GBytes *
map_stream (GInputStream *stream)
{
  g_autoptr (GMappedFile) mapped = NULL;
  struct stat info;
  int fd;

  if (!G_IS_FILE_DESCRIPTOR_BASED (stream))
    return NULL;
  fd = g_file_descriptor_based_get_fd (G_FILE_DESCRIPTOR_BASED (stream));
  if (fstat (fd, &info) != 0 || !S_ISREG (info.st_mode))
    return NULL;
  /* writable, but private: in-place operations change the memory and not the file */
  mapped = g_mapped_file_new_from_fd (fd, TRUE, NULL);
  return mapped != NULL ? g_mapped_file_get_bytes (mapped) : NULL;
}

GTorchSource *
gtorch_source_new_from_file (const gchar *op, GFile *file, gboolean map, guint64 max_bytes,
                             GCancellable *cancellable, GError **error)
{
  g_autoptr (GInputStream) stream = gtorch_file_open (file, cancellable, error);
  g_autoptr (GTorchSource) source = NULL;

  if (stream == NULL)
    return NULL;
  if (!map)
    return gtorch_source_new_from_stream (op, stream, max_bytes, cancellable, error);
  source = source_new (op, max_bytes);
  source->bytes = map_stream (stream);
  if (source->bytes == NULL)
    return gtorch_source_new_from_stream (op, stream, max_bytes, cancellable, error);
  source->size = g_bytes_get_size (source->bytes);
  source->is_mapped = TRUE;
  return g_steal_pointer (&source);
}

/* --- reading --- */

gboolean
gtorch_source_read (GTorchSource *source, guint64 offset, gpointer buffer, gsize n,
                    GCancellable *cancellable, GError **error)
{
  gsize done = 0, n_read = 0;

  if (offset > source->size || n > source->size - offset)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("%s: the file is cut short: it has %" PRIu64 " bytes, and %zu at %" PRIu64
                      " are wanted"),
                   source->op, source->size, n, offset);
      return FALSE;
    }
  if (source->bytes != NULL)
    {
      if (n > 0)
        memcpy (buffer, (const gchar *) g_bytes_get_data (source->bytes, NULL) + offset, n);
      return TRUE;
    }
  if (!g_seekable_seek (G_SEEKABLE (source->stream), source->base + (goffset) offset, G_SEEK_SET,
                        cancellable, error))
    return FALSE;
  for (done = 0; done < n; done += n_read)
    {
      gsize step = MIN (n - done, CHUNK);

      if (!gtorch_stream_read_all (source->stream, (gchar *) buffer + done, step, &n_read,
                                   cancellable, error))
        return FALSE;
      if (n_read == step)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("%s: the file ended at %" PRIu64 " while it was read"), source->op,
                   offset + done + n_read);
      return FALSE;
    }
  return TRUE;
}

GBytes *
gtorch_source_read_bytes (GTorchSource *source, guint64 offset, guint64 n,
                          GCancellable *cancellable, GError **error)
{
  g_autofree gpointer memory = NULL;

  if (source->bytes != NULL && offset <= source->size && n <= source->size - offset)
    return g_bytes_new_from_bytes (source->bytes, offset, n);
  if (offset > source->size || n > source->size - offset) /* before it is allocated */
    {
      gtorch_source_read (source, offset, NULL, n, cancellable, error);
      return NULL;
    }
  memory = gtorch_source_allocate (source, n, error);
  if (memory == NULL || !gtorch_source_read (source, offset, memory, n, cancellable, error))
    return NULL;
  return g_bytes_new_take (g_steal_pointer (&memory), n);
}

gboolean
gtorch_source_is_read_only (const GTorchSource *source)
{
  return source->bytes != NULL && source->is_read_only;
}

/* --- in another thread --- */

typedef struct
{
  GTorchSourceFunc func;
  gpointer data;
  GDestroyNotify free_data, free_result;
} Work;

static void
work_free (gpointer data)
{
  Work *work = data;

  work->free_data (work->data);
  g_free (work);
}

static void
work_in_thread (GTask *task, gpointer source_object, gpointer task_data, GCancellable *cancellable)
{
  Work *work = task_data;
  GError *error = NULL;
  gpointer result;

  result = work->func (work->data, cancellable, &error);
  if (result != NULL)
    g_task_return_pointer (task, result, work->free_result);
  else
    g_task_return_error (task, error);
}

void
gtorch_source_run (GTask *task, int io_priority, GTorchSourceFunc func, gpointer data,
                   GDestroyNotify free_data, GDestroyNotify free_result)
{
  Work *work = g_new (Work, 1);

  *work = (Work){ func, data, free_data, free_result };
  g_task_set_priority (task, io_priority);
  g_task_set_task_data (task, work, work_free);
  gtorch_task_run_in_thread (task, work_in_thread);
}

static void
load_free (gpointer data)
{
  GTorchSourceLoad *load = data;

  g_object_unref (load->from);
  g_free (load);
}

void
gtorch_source_load (GTask *task, int io_priority, GTorchSourceFunc func, gpointer from,
                    gboolean map, guint64 max_bytes)
{
  GTorchSourceLoad *load = g_new (GTorchSourceLoad, 1);

  *load = (GTorchSourceLoad){ g_object_ref (from), map, max_bytes };
  gtorch_source_run (task, io_priority, func, load, load_free, g_object_unref);
}
