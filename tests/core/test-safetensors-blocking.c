/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Loading from a source that blocks ends when it is cancelled. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gunixoutputstream.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test-device.h"

#define LIMIT (30 * G_USEC_PER_SEC)

/* How much of a file a writer writes before it blocks: nothing, a part of the length, of the header and
 * of the elements, or everything without closing. */
static const gsize parts[] = { 0, 5, 20, 130, G_MAXSIZE };

static GBytes *
content (void)
{
  g_autoptr (GHashTable) tensors =
      g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_object_unref);
  g_autoptr (GOutputStream) out = g_memory_output_stream_new_resizable ();
  GError *error = NULL;

  g_hash_table_insert (tensors, (gpointer) "x",
                       gtorch_full (GTORCH_SHAPE (100), 3, GTORCH_DTYPE_FLOAT32,
                                    gtorch_device_cpu (), &error));
  gtorch_safetensors_save (tensors, NULL, out, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_output_stream_close (out, NULL, NULL);
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (out));
}

/* --- a named pipe and its writer --- */

typedef struct
{
  gchar *folder, *path;
  int fd; /* the writer's descriptor; -1 if there is none */
} Pipe;

static void
pipe_init (Pipe *self)
{
  self->folder = g_dir_make_tmp ("gtorch-XXXXXX", NULL);
  self->path = g_build_filename (self->folder, "pipe", NULL);
  self->fd = -1;
  g_assert_cmpint (mkfifo (self->path, 0600), ==, 0);
}

/* Opens both ends, so that the open does not wait for a reader. */
static void
pipe_open (Pipe *self)
{
  self->fd = g_open (self->path, O_RDWR | O_NONBLOCK | O_CLOEXEC, 0);
  g_assert_cmpint (self->fd, >=, 0);
}

static void
pipe_write (Pipe *self, gsize n)
{
  g_autoptr (GBytes) bytes = content ();
  gsize size;
  const char *data = g_bytes_get_data (bytes, &size);

  n = MIN (n, size);
  g_assert_cmpint (write (self->fd, data, n), ==, (gssize) n);
}

static void
pipe_clear (Pipe *self)
{
  if (self->fd >= 0)
    close (self->fd);
  g_unlink (self->path);
  g_rmdir (self->folder);
  g_free (self->path);
  g_free (self->folder);
}

static gpointer
cancel_soon (gpointer data)
{
  g_usleep (G_USEC_PER_SEC / 50);
  g_cancellable_cancel (data);
  return NULL;
}

static void
assert_cancelled (GHashTable *table, GError **error)
{
  g_assert_null (table);
  g_assert_error (*error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (error);
}

/* --- synchronous --- */

/* Tries it without a writer (i == 0) and with one that has written a part, with the file and with a
 * stream of it. */
static void
a_pipe_is_cancelled (void)
{
  guint i, as_stream;

  for (i = 0; i <= G_N_ELEMENTS (parts); i++)
    for (as_stream = 0; as_stream < 2; as_stream++)
      {
        Pipe pipe;
        g_autoptr (GFile) file = NULL;
        g_autoptr (GFileInputStream) stream = NULL;
        g_autoptr (GCancellable) cancellable = g_cancellable_new ();
        g_autoptr (GThread) thread = NULL;
        g_autoptr (GError) error = NULL;

        pipe_init (&pipe);
        file = g_file_new_for_path (pipe.path);
        if (i > 0 || as_stream)
          pipe_open (&pipe);
        if (i > 0)
          pipe_write (&pipe, parts[i - 1]);
        if (as_stream)
          stream = g_file_read (file, NULL, &error);
        g_assert_no_error (error);
        thread = g_thread_new ("cancel", cancel_soon, cancellable);
        assert_cancelled (as_stream
                              ? gtorch_safetensors_load (G_INPUT_STREAM (stream), NULL, NULL,
                                                         cancellable, NULL, NULL, &error)
                              : gtorch_safetensors_load_file (file, i & 1, NULL, NULL, cancellable,
                                                              NULL, NULL, &error),
                          &error);
        g_thread_join (g_steal_pointer (&thread));
        pipe_clear (&pipe);
      }
}

static gpointer
write_slowly (gpointer data)
{
  g_autoptr (GBytes) bytes = content ();
  g_autoptr (GError) error = NULL;
  gsize size, i, n;
  const char *from = g_bytes_get_data (bytes, &size);
  int fd = g_open (data, O_WRONLY | O_CLOEXEC, 0); /* waits for the reader */

  g_assert_cmpint (fd, >=, 0);
  for (i = 0; i < size; i += n)
    {
      n = MIN (37, size - i);
      g_assert_cmpint (write (fd, from + i, n), ==, (gssize) n);
      if (i % 5 == 0)
        g_usleep (1000);
    }
  close (fd);
  return NULL;
}

static void
a_pipe_is_read_to_its_end (void)
{
  guint i;

  for (i = 0; i < 4; i++)
    {
      Pipe pipe;
      g_autoptr (GFile) file = NULL;
      g_autoptr (GFileInputStream) stream = NULL;
      g_autoptr (GCancellable) cancellable = i & 1 ? g_cancellable_new () : NULL;
      g_autoptr (GHashTable) table = NULL;
      g_autoptr (GThread) thread = NULL;
      g_autoptr (GError) error = NULL;

      pipe_init (&pipe);
      file = g_file_new_for_path (pipe.path);
      thread = g_thread_new ("write", write_slowly, pipe.path);
      if (i & 2)
        stream = g_file_read (file, NULL, &error);
      g_assert_no_error (error);
      table = stream != NULL ? gtorch_safetensors_load (G_INPUT_STREAM (stream), NULL, NULL,
                                                        cancellable, NULL, NULL, &error)
                             : gtorch_safetensors_load_file (file, TRUE, NULL, NULL, cancellable,
                                                             NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpint (gtorch_tensor_get_numel (g_hash_table_lookup (table, "x")), ==, 100);
      g_thread_join (g_steal_pointer (&thread));
      pipe_clear (&pipe);
    }
}

static void
open_errors_are_reported (void)
{
  Pipe pipe;
  g_autoptr (GFile) file = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  pipe_init (&pipe);
  file = g_file_new_for_path (pipe.path);
  g_cancellable_cancel (cancellable);
  assert_cancelled (gtorch_safetensors_load_file (file, FALSE, NULL, NULL, cancellable, NULL, NULL,
                                                  &error),
                    &error);
  g_chmod (pipe.path, 0);
  if (geteuid () != 0)
    {
      g_assert_null (
          gtorch_safetensors_load_file (file, FALSE, NULL, NULL, NULL, NULL, NULL, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED);
    }
  pipe_clear (&pipe);
}

/* --- asynchronous --- */

/* A stream that blocks and ignores the cancellable. */
typedef struct
{
  GInputStream parent_instance;
  GMutex lock;
  GCond cond;
  gboolean goes_on;
  GInputStream *source;
} TestStream;

typedef GInputStreamClass TestStreamClass;

static GType test_stream_get_type (void);
G_DEFINE_TYPE (TestStream, test_stream, G_TYPE_INPUT_STREAM)

static gssize
test_stream_read (GInputStream *stream, void *buffer, gsize count, GCancellable *cancellable,
                  GError **error)
{
  TestStream *self = (TestStream *) stream;

  g_mutex_lock (&self->lock);
  while (!self->goes_on)
    g_cond_wait (&self->cond, &self->lock);
  g_mutex_unlock (&self->lock);
  return g_input_stream_read (self->source, buffer, count, NULL, error);
}

static void
test_stream_finalize (GObject *object)
{
  TestStream *self = (TestStream *) object;

  g_object_unref (self->source);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->cond);
  G_OBJECT_CLASS (test_stream_parent_class)->finalize (object);
}

static void
test_stream_class_init (TestStreamClass *klass)
{
  klass->read_fn = test_stream_read;
  G_OBJECT_CLASS (klass)->finalize = test_stream_finalize;
}

static void
test_stream_init (TestStream *self)
{
  g_autoptr (GBytes) bytes = content ();

  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  self->source = g_memory_input_stream_new_from_bytes (bytes);
}

typedef struct
{
  GAsyncResult *result;
  guint n_reports;
  gboolean is_ended, is_freed;
} Wait;

static void
on_done (GObject *source, GAsyncResult *result, gpointer data)
{
  ((Wait *) data)->result = g_object_ref (result);
}

static void
on_progress (goffset current, goffset total, gpointer data)
{
  Wait *wait = data;

  g_assert_false (wait->is_ended);
  wait->n_reports++;
}

static void
on_freed (gpointer data)
{
  ((Wait *) data)->is_freed = TRUE;
}

static gboolean
on_time (gpointer data)
{
  g_error ("it does not end");
  return G_SOURCE_REMOVE;
}

static void
iterate_until (const gboolean *flag, GAsyncResult **result)
{
  guint id = g_timeout_add (LIMIT / 1000, on_time, NULL);

  while (flag != NULL ? !*flag : *result == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_source_remove (id);
}

static void
any_stream_is_cancelled (void)
{
  guint i;

  for (i = 0; i < 3; i++)
    {
      TestStream *stream = g_object_new (test_stream_get_type (), NULL);
      g_autoptr (GInputStream) wrapper =
          i == 0 ? g_object_ref (G_INPUT_STREAM (stream))
                 : g_buffered_input_stream_new (G_INPUT_STREAM (stream));
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autoptr (GThread) thread = NULL;
      g_autoptr (GError) error = NULL;
      Wait wait = { 0 };

      if (i == 2)
        g_cancellable_cancel (cancellable);
      gtorch_safetensors_load_async (wrapper, NULL, G_PRIORITY_DEFAULT, cancellable, on_progress,
                                     &wait, on_freed, on_done, &wait);
      thread = g_thread_new ("cancel", cancel_soon, cancellable);
      iterate_until (NULL, &wait.result);
      g_thread_join (g_steal_pointer (&thread));
      assert_cancelled (gtorch_safetensors_load_finish (wait.result, NULL, &error), &error);
      wait.is_ended = TRUE;
      g_clear_object (&wait.result);

      g_mutex_lock (&stream->lock);
      stream->goes_on = TRUE;
      g_cond_signal (&stream->cond);
      g_mutex_unlock (&stream->lock);
      iterate_until (&wait.is_freed, NULL); /* freed by the thread, which does not report
                                             * anything any more */
      g_object_unref (stream);
    }
}

static void
a_pipe_is_cancelled_from_a_main_loop (void)
{
  guint i;

  for (i = 0; i <= G_N_ELEMENTS (parts); i++)
    {
      Pipe pipe;
      g_autoptr (GFile) file = NULL;
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autoptr (GThread) thread = NULL;
      g_autoptr (GError) error = NULL;
      Wait wait = { 0 };

      pipe_init (&pipe);
      file = g_file_new_for_path (pipe.path);
      if (i > 0)
        {
          pipe_open (&pipe);
          pipe_write (&pipe, parts[i - 1]);
        }
      gtorch_safetensors_load_file_async (file, TRUE, NULL, G_PRIORITY_DEFAULT, cancellable,
                                          on_progress, &wait, on_freed, on_done, &wait);
      thread = g_thread_new ("cancel", cancel_soon, cancellable);
      iterate_until (NULL, &wait.result);
      assert_cancelled (gtorch_safetensors_load_file_finish (wait.result, NULL, &error), &error);
      wait.is_ended = TRUE;
      g_clear_object (&wait.result);
      g_thread_join (g_steal_pointer (&thread));
      iterate_until (&wait.is_freed, NULL); /* the thread has ended */
      pipe_clear (&pipe);
    }
}

static void
uncancelled_loads_complete (void)
{
  TestStream *stream = g_object_new (test_stream_get_type (), NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GHashTable) table = NULL;
  g_autoptr (GError) error = NULL;
  Wait wait = { 0 };

  stream->goes_on = TRUE;
  gtorch_safetensors_load_async (G_INPUT_STREAM (stream), NULL, G_PRIORITY_DEFAULT, cancellable,
                                 on_progress, &wait, on_freed, on_done, &wait);
  iterate_until (NULL, &wait.result);
  table = gtorch_safetensors_load_finish (wait.result, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_hash_table_size (table), ==, 1);
  g_assert_cmpuint (wait.n_reports, ==, 1);
  g_clear_object (&wait.result);
  iterate_until (&wait.is_freed, NULL);
  g_object_unref (stream);
}

#define ADD(name) g_test_add_func ("/GTorch/safetensors-blocking/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_pipe_is_cancelled);
  ADD (a_pipe_is_read_to_its_end);
  ADD (open_errors_are_reported);
  ADD (any_stream_is_cancelled);
  ADD (a_pipe_is_cancelled_from_a_main_loop);
  ADD (uncancelled_loads_complete);
  return g_test_run ();
}
