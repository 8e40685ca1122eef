/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Atomic replacement of files: at any time, also after a loss of power, the name refers to all of the old
 * content or all of the new one.
 *
 * The content is written to a temporary file in the folder of the target, since a file can be renamed
 * only within its file system. It is flushed to the disk before it gets the name, because a file system
 * may keep the new name and lose the content. Then the two files exchange their names, the folder is
 * flushed, and the old file is removed. If flushing the folder fails, the names are exchanged back, so
 * that a failed save has changed nothing. File systems that cannot exchange names get a plain rename.
 *
 * If the target is a symbolic link, the file that it leads to is replaced. The kernel follows the link
 * once before it is resolved here, so that its rules for links in world-writable folders apply. Other
 * hard links of the same file keep the old content, as do processes that have it open or mapped.
 *
 * The new file gets the mode of the old one, its access control list and, if the process may do that, its
 * owner and group. If the group cannot be kept, members of another group get no more rights than all
 * others. A file that the process may not write to is not replaced, even if the rights of the folder
 * would allow it.
 *
 * Directories, devices, pipes and sockets are refused: a stream can be written to them. */

#include "config.h"

#include "base/gtorch-file-save-private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif

#define N_NAMES 100 /* attempts to find a free name */

/* --- system calls --- */

static int
system_open (int folder, const char *name, int flags, mode_t mode)
{
  return openat (folder, name, flags, mode);
}

static int
system_exchange (int folder, const char *one, const char *other)
{
#ifdef HAVE_RENAMEAT2
  return renameat2 (folder, one, folder, other, RENAME_EXCHANGE);
#else
  errno = ENOSYS;
  return -1;
#endif
}

static int
system_rename (int folder, const char *from, const char *to)
{
  return renameat (folder, from, folder, to);
}

static int
system_remove (int folder, const char *name)
{
  return unlinkat (folder, name, 0);
}

const GTorchFileCalls gtorch_file_system = {
  .status = fstatat,
  .access = faccessat,
  .open = system_open,
  .write = write,
  .chown = fchown,
  .chmod = fchmod,
  .sync = fsync,
  .close = close,
  .exchange = system_exchange,
  .rename = system_rename,
  .remove = system_remove,
};

const GTorchFileCalls *gtorch_file_calls = &gtorch_file_system;

/* Signals may interrupt any of the calls. */
#define RETRY(call)                          \
  ({                                         \
    gssize _result;                          \
    do                                       \
      _result = (call);                      \
    while (_result == -1 && errno == EINTR); \
    _result;                                 \
  })

static gboolean
fail (GError **error, const gchar *path, int code)
{
  g_autofree gchar *name = g_filename_display_name (path);

  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (code), _ ("save: “%s”: %s"), name,
               g_strerror (code));
  return FALSE;
}

/* File systems that cannot flush report that in errno. */
static gboolean
flush (int fd)
{
  return RETRY (gtorch_file_calls->sync (fd)) == 0 || errno == EINVAL || errno == ENOSYS
         || errno == ENOTSUP;
}

/* --- the target --- */

typedef struct
{
  gchar *path; /* with links resolved */
  gchar *name; /* relative to the folder */
  int folder;
  gboolean exists;
  struct stat former;
} Target;

static void
target_clear (Target *target)
{
  if (target->folder >= 0)
    gtorch_file_calls->close (target->folder);
  g_free (target->path);
  g_free (target->name);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Target, target_clear)

static gboolean
resolve_link (Target *target, const gchar *path, GError **error)
{
  gchar *resolved;

  if (RETRY (gtorch_file_calls->status (AT_FDCWD, path, &target->former, 0)) != 0)
    {
      g_autofree gchar *name = g_filename_display_name (path);
      int code = errno;

      if (code != ENOENT)
        return fail (error, path, code);
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                   _ ("save: “%s” is a link to a file that does not exist"), name);
      return FALSE;
    }
  resolved = realpath (path, NULL);
  if (resolved == NULL)
    return fail (error, path, errno);
  target->path = g_strdup (resolved);
  free (resolved);
  return TRUE;
}

static gboolean
check_kind (const Target *target, GError **error)
{
  const gchar *what = NULL;
  g_autofree gchar *name = NULL;

  switch (target->former.st_mode & S_IFMT)
    {
    case S_IFREG:
      return TRUE;
    case S_IFDIR:
      what = _ ("a folder");
      break;
    case S_IFIFO:
      what = _ ("a pipe");
      break;
    case S_IFSOCK:
      what = _ ("a socket");
      break;
    default:
      what = _ ("a device");
    }
  name = g_filename_display_name (target->path);
  g_set_error (error, G_IO_ERROR,
               S_ISDIR (target->former.st_mode) ? G_IO_ERROR_IS_DIRECTORY
                                                : G_IO_ERROR_NOT_REGULAR_FILE,
               _ ("save: “%s” is %s: only regular files are replaced"), name, what);
  return FALSE;
}

/* Refuses targets that cannot be replaced before anything is changed. */
static gboolean
target_find (Target *target, const gchar *path, GError **error)
{
  g_autofree gchar *folder = NULL;
  struct stat status;
  int flags;

  target->exists =
      RETRY (gtorch_file_calls->status (AT_FDCWD, path, &target->former, AT_SYMLINK_NOFOLLOW)) == 0;
  if (!target->exists && errno != ENOENT)
    return fail (error, path, errno);
  if (target->exists && S_ISLNK (target->former.st_mode))
    {
      if (!resolve_link (target, path, error))
        return FALSE;
    }
  else
    target->path = g_strdup (path);
  if (target->exists && !check_kind (target, error))
    return FALSE;

  folder = g_path_get_dirname (target->path);
  target->name = g_path_get_basename (target->path);
  target->folder =
      RETRY (gtorch_file_calls->open (AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (target->folder < 0)
    return fail (error, folder, errno);
  if (!target->exists)
    return TRUE;
  if (RETRY (gtorch_file_calls->status (target->folder, target->name, &status, AT_SYMLINK_NOFOLLOW))
      != 0)
    return fail (error, target->path, errno);
  if (status.st_dev != target->former.st_dev || status.st_ino != target->former.st_ino)
    return fail (error, target->path, EBUSY); /* another process has just created a file there */
  /* without the flag the call is an old one, which no sandbox refuses */
  flags = getuid () != geteuid () || getgid () != getegid () ? AT_EACCESS : 0;
  if (RETRY (gtorch_file_calls->access (target->folder, target->name, W_OK, flags)) != 0)
    return fail (error, target->path, errno);
  return TRUE;
}

/* --- the temporary file --- */

typedef struct
{
  gchar name[32]; /* short, whatever the length of the target's name */
  int fd;
} Temporary;

static gboolean
temporary_create (Temporary *temporary, const Target *target, GError **error)
{
  /* the rights of the old file are set when the content is complete */
  mode_t mode = target->exists ? S_IRUSR | S_IWUSR : 0666;
  guint i;

  for (i = 0; i < N_NAMES; i++)
    {
      g_snprintf (temporary->name, sizeof temporary->name, ".gtorch-%08x%08x", g_random_int (),
                  g_random_int ());
      temporary->fd = RETRY (
          gtorch_file_calls->open (target->folder, temporary->name,
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
      if (temporary->fd >= 0)
        return TRUE;
      if (errno != EEXIST)
        break;
    }
  return fail (error, target->path, errno);
}

/* Copies the access control list and the user attributes. Returns FALSE if there is a list that the new
 * file lacks. */
static gboolean
copy_attributes (const Target *target, int fd, gboolean with_list)
{
  gboolean complete = TRUE;
#ifdef __linux__
  gssize n_bytes = llistxattr (target->path, NULL, 0), size;
  g_autofree gchar *names = n_bytes > 0 ? g_malloc (n_bytes) : NULL;
  const gchar *name;

  if (names == NULL || (n_bytes = llistxattr (target->path, names, n_bytes)) <= 0)
    return TRUE;
  for (name = names; name < names + n_bytes; name += strlen (name) + 1)
    {
      gboolean is_list = strcmp (name, "system.posix_acl_access") == 0;
      g_autofree gchar *value = NULL;

      if (!is_list && !g_str_has_prefix (name, "user."))
        continue;
      size = is_list && !with_list ? -1 : lgetxattr (target->path, name, NULL, 0);
      value = g_malloc (MAX (size, 0) + 1);
      if (size >= 0)
        size = lgetxattr (target->path, name, value, size);
      if ((size < 0 || fsetxattr (fd, name, value, size, 0) != 0) && is_list)
        complete = FALSE;
    }
#endif
  return complete;
}

static gboolean
keep_rights (const Target *target, const Temporary *temporary, GError **error)
{
  const struct stat *former = &target->former;
  mode_t mode = former->st_mode & 07777, narrow;
  gboolean same_group = TRUE;
  struct stat status;

  if (!target->exists)
    return TRUE;
  if (RETRY (
          gtorch_file_calls->status (target->folder, temporary->name, &status, AT_SYMLINK_NOFOLLOW))
      != 0)
    return fail (error, target->path, errno);
  if (status.st_gid != former->st_gid)
    same_group = RETRY (gtorch_file_calls->chown (temporary->fd, (uid_t) -1, former->st_gid)) == 0;
  if (status.st_uid != former->st_uid
      && RETRY (gtorch_file_calls->chown (temporary->fd, former->st_uid, (gid_t) -1)) != 0)
    mode &= ~S_ISUID;
  narrow = (mode & ~(S_IRWXG | S_ISGID)) | (mode & S_IRWXO) << 3;
  if (!same_group)
    mode = narrow;
  if (!copy_attributes (target, temporary->fd, same_group))
    mode = narrow;
  /* file systems that do not store modes refuse it */
  if (RETRY (gtorch_file_calls->chmod (temporary->fd, mode)) != 0 && errno != EPERM
      && errno != ENOTSUP)
    return fail (error, target->path, errno);
  return TRUE;
}

/* --- its stream --- */

#define GTORCH_TYPE_FILE_SAVE_STREAM (gtorch_file_save_stream_get_type ())
G_DECLARE_FINAL_TYPE (GTorchFileSaveStream, gtorch_file_save_stream, GTORCH, FILE_SAVE_STREAM,
                      GOutputStream)

struct _GTorchFileSaveStream
{
  GOutputStream parent_instance;
  const gchar *path; /* for messages */
  int fd;
};

G_DEFINE_TYPE (GTorchFileSaveStream, gtorch_file_save_stream, G_TYPE_OUTPUT_STREAM)

static gssize
gtorch_file_save_stream_write (GOutputStream *stream, const void *data, gsize n_bytes,
                               GCancellable *cancellable, GError **error)
{
  GTorchFileSaveStream *self = GTORCH_FILE_SAVE_STREAM (stream);
  gssize n;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return -1;
  n = RETRY (gtorch_file_calls->write (self->fd, data, n_bytes));
  if (n > 0 || n_bytes == 0)
    return n;
  fail (error, self->path, n == 0 ? ENOSPC : errno);
  return -1;
}

static void
gtorch_file_save_stream_class_init (GTorchFileSaveStreamClass *klass)
{
  G_OUTPUT_STREAM_CLASS (klass)->write_fn = gtorch_file_save_stream_write;
}

static void
gtorch_file_save_stream_init (GTorchFileSaveStream *self)
{
  self->fd = -1;
}

/* --- saving --- */

/* Closes the temporary file at the end in any case. */
static gboolean
fill (const Target *target, Temporary *temporary, GTorchFileSaveFunc func, gpointer data,
      GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchFileSaveStream) stream = g_object_new (GTORCH_TYPE_FILE_SAVE_STREAM, NULL);
  gboolean result;

  stream->path = target->path;
  stream->fd = temporary->fd;
  result = func (G_OUTPUT_STREAM (stream), cancellable, data, error)
           && keep_rights (target, temporary, error);
  if (result && !flush (temporary->fd))
    result = fail (error, target->path, errno);
  /* Network file systems report some failures only here. The file is closed even if the call was
   * interrupted. */
  if (gtorch_file_calls->close (temporary->fd) != 0 && errno != EINTR && result)
    result = fail (error, target->path, errno);
  return result && !g_cancellable_set_error_if_cancelled (cancellable, error);
}

/* Exchanges the names back, so that the temporary name refers to the new file again. */
static gboolean
take_back (const Target *target, const Temporary *temporary, const struct stat *saved,
           gboolean exchanged)
{
  struct stat status;
  gboolean result;

  /* another save may have finished in between; its file stays */
  if (RETRY (gtorch_file_calls->status (target->folder, target->name, &status, AT_SYMLINK_NOFOLLOW))
          != 0
      || status.st_dev != saved->st_dev || status.st_ino != saved->st_ino)
    return FALSE;
  if (exchanged)
    result =
        RETRY (gtorch_file_calls->exchange (target->folder, temporary->name, target->name)) == 0;
  else
    result =
        !target->exists
        && RETRY (gtorch_file_calls->rename (target->folder, target->name, temporary->name)) == 0;
  if (result)
    flush (target->folder);
  return result;
}

/* Gives the name of the target to the temporary file. */
static gboolean
commit (const Target *target, const Temporary *temporary, GError **error)
{
  gboolean exchanged = FALSE;
  struct stat saved;
  int code;

  if (RETRY (
          gtorch_file_calls->status (target->folder, temporary->name, &saved, AT_SYMLINK_NOFOLLOW))
      != 0)
    return fail (error, target->path, errno);
  if (target->exists)
    exchanged =
        RETRY (gtorch_file_calls->exchange (target->folder, temporary->name, target->name)) == 0;
  if (!exchanged
      && RETRY (gtorch_file_calls->rename (target->folder, temporary->name, target->name)) != 0)
    return fail (error, target->path, errno);
  if (!flush (target->folder))
    {
      code = errno;
      fail (error, target->path, code);
      if (!take_back (target, temporary, &saved, exchanged))
        g_prefix_error (error, _ ("the file was replaced, but a loss of power may undo that: "));
      return FALSE;
    }
  if (exchanged && RETRY (gtorch_file_calls->remove (target->folder, temporary->name)) != 0)
    g_warning ("save: the former content of %s stays in its folder as %s: %s", target->path,
               temporary->name, g_strerror (errno));
  return TRUE;
}

static gboolean
save_local (const gchar *path, GTorchFileSaveFunc func, gpointer data, GCancellable *cancellable,
            GError **error)
{
  g_auto (Target) target = { .folder = -1 };
  Temporary temporary = { .fd = -1 };

  if (g_cancellable_set_error_if_cancelled (cancellable, error)
      || !target_find (&target, path, error) || !temporary_create (&temporary, &target, error))
    return FALSE;
  if (fill (&target, &temporary, func, data, cancellable, error)
      && commit (&target, &temporary, error))
    return TRUE;
  RETRY (gtorch_file_calls->remove (target.folder, temporary.name));
  return FALSE;
}

/* Saves a file without a local path; the GVfs backend decides whether that is atomic. */
static gboolean
save_remote (GFile *file, GTorchFileSaveFunc func, gpointer data, GCancellable *cancellable,
             GError **error)
{
  g_autoptr (GFileOutputStream) stream =
      g_file_replace (file, NULL, FALSE, G_FILE_CREATE_NONE, cancellable, error);

  if (stream == NULL)
    return FALSE;
  if (!func (G_OUTPUT_STREAM (stream), cancellable, data, error))
    {
      /* closing the stream in a cancelled state keeps the old file */
      g_autoptr (GCancellable) cancelled = g_cancellable_new ();

      g_cancellable_cancel (cancelled);
      g_output_stream_close (G_OUTPUT_STREAM (stream), cancelled, NULL);
      return FALSE;
    }
  return g_output_stream_close (G_OUTPUT_STREAM (stream), cancellable, error);
}

gboolean
gtorch_file_save (GFile *file, GTorchFileSaveFunc func, gpointer data, GCancellable *cancellable,
                  GError **error)
{
  g_autofree gchar *path = g_file_get_path (file);

  return path != NULL ? save_local (path, func, data, cancellable, error)
                      : save_remote (file, func, data, cancellable, error);
}

static gboolean
write_bytes (GOutputStream *stream, GCancellable *cancellable, gpointer data, GError **error)
{
  gsize n_bytes;
  gconstpointer content = g_bytes_get_data (data, &n_bytes);

  return g_output_stream_write_all (stream, content, n_bytes, NULL, cancellable, error);
}

gboolean
gtorch_file_save_bytes (GFile *file, GBytes *bytes, GCancellable *cancellable, GError **error)
{
  return gtorch_file_save (file, write_bytes, bytes, cancellable, error);
}

GOutputStream *
gtorch_file_append (GFile *file, GError **error)
{
  return (GOutputStream *) g_file_append_to (file, G_FILE_CREATE_NONE, NULL, error);
}
