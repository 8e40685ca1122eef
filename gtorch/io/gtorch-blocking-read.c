/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reading from sources that may block for a long time: pipes, terminals. GIO opens and reads local files
 * without polling the cancellable, which is fine for regular files only. */

#include "config.h"

#include <fcntl.h>
#include <gio/gfiledescriptorbased.h>
#include <gio/gunixinputstream.h>
#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <sys/stat.h>

#include "io/gtorch-safetensors-private.h"

/* Opens a pipe without waiting for a writer; the stream waits instead, and can be cancelled. poll () does
 * not report end of file for a pipe that was never written to. */
GInputStream *
gtorch_file_open (GFile *file, GCancellable *cancellable, GError **error)
{
  const gchar *path = g_file_peek_path (file);
  struct stat info;
  int fd;

  if (path == NULL || stat (path, &info) != 0 || !S_ISFIFO (info.st_mode))
    return (GInputStream *) g_file_read (file, cancellable, error);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  fd = g_open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
  if (fd < 0)
    {
      int code = errno;
      g_autofree gchar *name = g_filename_display_name (path);

      g_set_error (error, G_IO_ERROR, g_io_error_from_errno (code),
                   _ ("safetensors: “%s” cannot be opened: %s"), name, g_strerror (code));
      return NULL;
    }
  return g_unix_input_stream_new (fd, TRUE);
}

/* Returns TRUE if a read would block without polling the cancellable. */
static gboolean
is_deaf (GInputStream *stream, int *fd)
{
  struct stat info;

  if (!G_IS_FILE_DESCRIPTOR_BASED (stream) || G_IS_POLLABLE_INPUT_STREAM (stream))
    return FALSE;
  *fd = g_file_descriptor_based_get_fd (G_FILE_DESCRIPTOR_BASED (stream));
  return fstat (*fd, &info) == 0 && !S_ISREG (info.st_mode) && !S_ISDIR (info.st_mode);
}

static gboolean
wait_for_input (int fd, GCancellable *cancellable, GError **error)
{
  GPollFD fds[2] = { { .fd = fd, .events = G_IO_IN } };
  gboolean result;

  if (!g_cancellable_make_pollfd (cancellable, &fds[1]))
    return TRUE;
  while (!g_cancellable_is_cancelled (cancellable) && fds[0].revents == 0)
    if (g_poll (fds, 2, -1) < 0 && errno != EINTR)
      break; /* the read reports the error */
  result = !g_cancellable_set_error_if_cancelled (cancellable, error);
  g_cancellable_release_fd (cancellable);
  return result;
}

gboolean
gtorch_stream_read_all (GInputStream *stream, gpointer buffer, gsize count, gsize *n_read,
                        GCancellable *cancellable, GError **error)
{
  gssize n = 1;
  int fd;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (cancellable == NULL || !is_deaf (stream, &fd))
    return g_input_stream_read_all (stream, buffer, count, n_read, cancellable, error);
  for (*n_read = 0; *n_read < count && n > 0; *n_read += MAX (n, 0))
    {
      if (!wait_for_input (fd, cancellable, error))
        return FALSE;
      n = g_input_stream_read (stream, (char *) buffer + *n_read, count - *n_read, cancellable,
                               error);
    }
  return n >= 0;
}
