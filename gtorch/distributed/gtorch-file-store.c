/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-file-store.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "distributed/gtorch-store-private.h"

/**
 * GTorchFileStore:
 *
 * A store in a file that all processes can read and write.
 *
 * The file has the changes one after the other, under a lock (flock), which also file systems of networks
 * usually have. It is created if it is not there, and stays when the processes end: the keys of a former
 * job would be those of the next one, so give each job a file of its own, and remove it afterwards.
 * Waiting looks at the file again and again, at first after a millisecond, then up to every 20
 * milliseconds.
 *
 * ```c
 * g_autoptr (GTorchFileStore) store = gtorch_file_store_new ("/tmp/job-17", &error);
 *
 * gtorch_store_add (GTORCH_STORE (store), "arrived", 1, &n_arrived, NULL, &error);
 * ```
 *
 * Since: 0.1
 */

#define FIRST_PAUSE 1000 /* microseconds */
#define LAST_PAUSE  20000

struct _GTorchFileStore
{
  GTorchStore parent_instance;
  gchar *path;
  int fd;
  GMutex
      lock; /* the other threads have the same file descriptor, and flock () takes them for one */
  GTorchStoreTable *table;
  goffset position; /* up to where the table has the file's changes */
};

G_DEFINE_TYPE (GTorchFileStore, gtorch_file_store, GTORCH_TYPE_STORE)

typedef GTorchFileStore Self;

static const GTorchField fields[] = {
  /**
   * GTorchFileStore:path:
   *
   * The path of the file.
   *
   * Since: 0.1
   */
  { "path", GTORCH_PROPERTY_STRING (gtorch_file_store_get_path, NULL) },
};

static gboolean
fail (GTorchFileStore *self, const gchar *what, GError **error)
{
  const int code = errno;
  g_autofree gchar *name = g_filename_display_name (self->path);

  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (code),
               _ ("file_store: “%s” cannot be %s: %s"), name, what, g_strerror (code));
  return FALSE;
}

/* Returns how many bytes there were, or -1. */
static gssize
read_at (GTorchFileStore *self, gpointer data, gsize size, goffset position)
{
  gsize done = 0;

  while (done < size)
    {
      const gssize n = pread (self->fd, (guint8 *) data + done, size - done, position + done);

      if (n == 0)
        break;
      if (n > 0)
        done += n;
      else if (errno != EINTR)
        return -1;
    }
  return done;
}

/* The reason is what could not be read as a change. */
static gboolean
refuse (GTorchFileStore *self, GError *reason, GError **error)
{
  g_autofree gchar *name = g_filename_display_name (self->path);

  g_set_error (error, reason->domain, reason->code,
               _ ("file_store: “%s” is not the file of a store, or is damaged: %s"), name,
               reason->message);
  g_error_free (reason);
  return FALSE;
}

/* Reads what others have written since; what a process that ended in the middle of it has left is cut off.
 * */
static gboolean
catch_up (GTorchFileStore *self, GError **error)
{
  for (;;)
    {
      guint8 header[GTORCH_STORE_HEADER];
      gssize n = read_at (self, header, sizeof header, self->position), length;
      g_autofree guint8 *body = NULL;
      g_autoptr (GBytes) bytes = NULL;
      g_auto (GTorchStoreParsed) parsed = { 0 };
      g_auto (GTorchStoreReply) reply = { 0 };
      GError *local = NULL;

      if (n < 0)
        return fail (self, _ ("read"), error);
      if (n == 0)
        return TRUE;
      length = n < (gssize) sizeof header ? 0 : gtorch_store_frame_length (header, &local);
      if (length < 0)
        return refuse (self, local, error);
      if (n == sizeof header && length > 0)
        {
          body = g_try_malloc (length);
          if (body == NULL)
            {
              g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                           _ ("file_store: %zd bytes could not be allocated"), length);
              return FALSE;
            }
          n = read_at (self, body, length, self->position + sizeof header);
          if (n < 0)
            return fail (self, _ ("read"), error);
        }
      if (body == NULL || n < length)
        return ftruncate (self->fd, self->position) == 0 || fail (self, _ ("written"), error);
      bytes = g_bytes_new_take (g_steal_pointer (&body), length);
      if (!gtorch_store_parse_request (bytes, &parsed, &local))
        return refuse (self, local, error);
      /* what failed for the process that asked fails here as well, and changes nothing */
      if (gtorch_store_command_changes (parsed.request.command))
        gtorch_store_table_apply (self->table, &parsed.request, &reply, NULL);
      self->position += sizeof header + length;
    }
}

static gboolean
write_change (GTorchFileStore *self, const GTorchStoreRequest *request, GError **error)
{
  g_autoptr (GBytes) frame = gtorch_store_frame_request (request);
  gsize size, done = 0;
  const guint8 *data = g_bytes_get_data (frame, &size);

  while (done < size)
    {
      const gssize n = pwrite (self->fd, data + done, size - done, self->position + done);

      if (n >= 0)
        done += n;
      else if (errno != EINTR)
        {
          const int code = errno;

          if (ftruncate (self->fd, self->position) != 0)
            g_debug ("the end of a change stays in the file");
          errno = code;
          return fail (self, _ ("written"), error);
        }
    }
  self->position += size;
  return TRUE;
}

/* A change is written before it is applied: one that fails, such as an addition that overflows, fails for
 * all who read it. */
static GTorchStoreAnswer
run_locked (GTorchFileStore *self, const GTorchStoreRequest *request, GTorchStoreReply *reply,
            GError **error)
{
  GTorchStoreAnswer answer = GTORCH_STORE_FAILED;

  while (flock (self->fd, LOCK_EX) != 0)
    if (errno != EINTR)
      {
        fail (self, _ ("locked"), error);
        return answer;
      }
  if (catch_up (self, error)
      && (!gtorch_store_command_changes (request->command) || write_change (self, request, error)))
    answer = gtorch_store_table_apply (self->table, request, reply, error);
  flock (self->fd, LOCK_UN);
  return answer;
}

static gboolean
pause_for (gint64 time, GCancellable *cancellable)
{
  GPollFD fd;

  if (!g_cancellable_make_pollfd (cancellable, &fd))
    {
      g_usleep (time);
      return TRUE;
    }
  g_poll (&fd, 1, (gint) ((time + 999) / 1000));
  g_cancellable_release_fd (cancellable);
  return !g_cancellable_is_cancelled (cancellable);
}

static gboolean
gtorch_file_store_run (GTorchStore *store, const GTorchStoreRequest *request, gint64 deadline,
                       GTorchStoreReply *reply, GCancellable *cancellable, GError **error)
{
  GTorchFileStore *self = GTORCH_FILE_STORE (store);
  gint64 pause = FIRST_PAUSE;

  if (self->fd < 0)
    return gtorch_store_refuse_incomplete (store, request, error);
  for (;;)
    {
      GTorchStoreAnswer answer;
      gint64 rest;

      g_mutex_lock (&self->lock);
      answer = run_locked (self, request, reply, error);
      g_mutex_unlock (&self->lock);
      if (answer != GTORCH_STORE_PENDING)
        return answer == GTORCH_STORE_ANSWERED;
      rest = deadline == G_MAXINT64 ? G_MAXINT64 : deadline - g_get_monotonic_time ();
      if (rest <= 0)
        {
          gtorch_store_timed_out (request, error);
          return FALSE;
        }
      if (!pause_for (MIN (pause, rest), cancellable))
        return !g_cancellable_set_error_if_cancelled (cancellable, error);
      pause = MIN (2 * pause, LAST_PAUSE);
    }
}

static void
gtorch_file_store_finalize (GObject *object)
{
  GTorchFileStore *self = GTORCH_FILE_STORE (object);

  if (self->fd >= 0)
    close (self->fd);
  gtorch_store_table_free (self->table);
  g_mutex_clear (&self->lock);
  g_free (self->path);
  G_OBJECT_CLASS (gtorch_file_store_parent_class)->finalize (object);
}

static void
gtorch_file_store_class_init (GTorchFileStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_file_store_finalize;
  GTORCH_STORE_CLASS (klass)->run = gtorch_file_store_run;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_file_store_init (GTorchFileStore *self)
{
  self->fd = -1;
  g_mutex_init (&self->lock);
  self->table = gtorch_store_table_new ();
}

/**
 * gtorch_file_store_new:
 * @path: (type filename): the path of a file
 * @error: return location for an error
 *
 * Opens a store in a file, which is created, for its owner alone, if it is not there.
 *
 * Returns: (transfer full): a new store, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchFileStore *
gtorch_file_store_new (const gchar *path, GError **error)
{
  g_autoptr (GTorchFileStore) self = NULL;

  g_return_val_if_fail (path != NULL, NULL);
  self = g_object_new (GTORCH_TYPE_FILE_STORE, NULL);
  self->path = g_strdup (path);
  self->fd = g_open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (self->fd < 0)
    {
      fail (self, _ ("opened"), error);
      return NULL;
    }
  return g_steal_pointer (&self);
}

/**
 * gtorch_file_store_get_path:
 * @self: a store
 *
 * Gets the path of the file.
 *
 * Returns: (type filename) (nullable): the path
 *
 * Since: 0.1
 */
const gchar *
gtorch_file_store_get_path (GTorchFileStore *self)
{
  g_return_val_if_fail (GTORCH_IS_FILE_STORE (self), NULL);
  return self->path;
}
