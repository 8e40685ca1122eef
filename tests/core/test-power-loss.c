/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The file system calls of a save are recorded. Then power is lost at any point: anything that was not
 * flushed may exist or not, in any combination. Then each of the calls fails, in turn. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <gtorch/gtorch.h>
#include <gtorch/base/gtorch-file-save-private.h>
#include <string.h>
#include <unistd.h>

#define N_BYTES 5000
#define STEP    1700 /* the size of the writer's steps: it makes several calls */

/* --- the record --- */

typedef enum
{
  CREATE,
  WRITE,
  FLUSH_FILE,
  FLUSH_FOLDER,
  EXCHANGE,
  RENAME,
  REMOVE,
} What;

typedef struct
{
  What what;
  gchar *name, *other;
  gsize n_bytes;
} Entry;

typedef enum
{
  OTHER_CALL,
  FOLDER_FLUSH_CALL,
  EXCHANGE_CALL,
  REMOVE_CALL,
} Call;

static struct
{
  GArray *log;
  int folder, file;
  guint n_calls, fails_at; /* 1 is the first call */
  int code;
  Call failed;
  gboolean can_exchange, is_short;
  GCancellable *cancellable;
  guint cancelled_at;
} record;

static void
clear_entry (gpointer data)
{
  Entry *entry = data;

  g_free (entry->name);
  g_free (entry->other);
}

static void
record_begin (gboolean can_exchange)
{
  g_clear_pointer (&record.log, g_array_unref);
  memset (&record, 0, sizeof record);
  record.log = g_array_new (FALSE, FALSE, sizeof (Entry));
  g_array_set_clear_func (record.log, clear_entry);
  record.folder = record.file = -1;
  record.can_exchange = can_exchange;
}

static void
note (What what, const char *name, const char *other, gsize n_bytes)
{
  Entry entry = { what, g_strdup (name), g_strdup (other), n_bytes };

  g_array_append_val (record.log, entry);
}

/* Returns TRUE if this call has to fail. */
static gboolean
fails (Call call)
{
  record.n_calls++;
  if (record.n_calls == record.cancelled_at)
    g_cancellable_cancel (record.cancellable);
  if (record.n_calls != record.fails_at)
    return FALSE;
  record.failed = call;
  errno = record.code;
  return TRUE;
}

static int
do_status (int folder, const char *name, struct stat *status, int flags)
{
  return fails (OTHER_CALL) ? -1 : gtorch_file_system.status (folder, name, status, flags);
}

static int
do_access (int folder, const char *name, int mode, int flags)
{
  return fails (OTHER_CALL) ? -1 : gtorch_file_system.access (folder, name, mode, flags);
}

static int
do_open (int folder, const char *name, int flags, mode_t mode)
{
  int fd;

  if (fails (OTHER_CALL))
    return -1;
  fd = gtorch_file_system.open (folder, name, flags, mode);
  if (flags & O_CREAT)
    {
      record.file = fd;
      note (CREATE, name, NULL, 0);
    }
  else
    record.folder = fd;
  return fd;
}

static ssize_t
do_write (int fd, const void *data, size_t n_bytes)
{
  ssize_t n;

  if (fails (OTHER_CALL))
    return -1;
  n = gtorch_file_system.write (fd, data, record.is_short ? MIN (n_bytes, 7) : n_bytes);
  note (WRITE, NULL, NULL, n);
  return n;
}

static int
do_chown (int fd, uid_t owner, gid_t group)
{
  return fails (OTHER_CALL) ? -1 : gtorch_file_system.chown (fd, owner, group);
}

static int
do_chmod (int fd, mode_t mode)
{
  return fails (OTHER_CALL) ? -1 : gtorch_file_system.chmod (fd, mode);
}

static int
do_sync (int fd)
{
  if (fails (fd == record.folder ? FOLDER_FLUSH_CALL : OTHER_CALL))
    return -1;
  note (fd == record.folder ? FLUSH_FOLDER : FLUSH_FILE, NULL, NULL, 0);
  return gtorch_file_system.sync (fd);
}

static int
do_close (int fd)
{
  gboolean refused = fd == record.file && fails (OTHER_CALL);
  int result = gtorch_file_system.close (fd); /* the descriptor is closed in any case, as on
                                               * Linux */

  if (refused)
    errno = record.code;
  return refused ? -1 : result;
}

static int
do_exchange (int folder, const char *one, const char *other)
{
  int result;

  if (!record.can_exchange)
    {
      errno = EINVAL;
      return -1;
    }
  if (fails (EXCHANGE_CALL))
    return -1;
  result = gtorch_file_system.exchange (folder, one, other);
  if (result == 0)
    note (EXCHANGE, one, other, 0);
  return result;
}

static int
do_rename (int folder, const char *from, const char *to)
{
  if (fails (OTHER_CALL))
    return -1;
  note (RENAME, from, to, 0);
  return gtorch_file_system.rename (folder, from, to);
}

static int
do_remove (int folder, const char *name)
{
  if (fails (REMOVE_CALL))
    return -1;
  note (REMOVE, name, NULL, 0);
  return gtorch_file_system.remove (folder, name);
}

static const GTorchFileCalls recording = {
  .status = do_status,
  .access = do_access,
  .open = do_open,
  .write = do_write,
  .chown = do_chown,
  .chmod = do_chmod,
  .sync = do_sync,
  .close = do_close,
  .exchange = do_exchange,
  .rename = do_rename,
  .remove = do_remove,
};

/* --- a disk without flushed data --- */

typedef enum
{
  ABSENT,
  FORMER,
  WHOLE,
  TORN,
} Content;

/* The content under a name: 0 is the old file, 1 the new one; -1: the name does not exist. */
typedef struct
{
  gint target, temporary;
} Names;

static gint *
name_slot (Names *names, const gchar *name)
{
  return strcmp (name, "target") == 0 ? &names->target : &names->temporary;
}

static void
apply (Names *names, const Entry *entry)
{
  gint *slot = name_slot (names, entry->name), *other, before;

  if (entry->what == CREATE)
    *slot = 1;
  else if (entry->what == REMOVE)
    *slot = -1;
  else
    {
      other = name_slot (names, entry->other);
      before = *other;
      if (*slot == -1 || (entry->what == EXCHANGE && before == -1))
        return; /* an entry is lost if one that it depends on is lost */
      *other = *slot;
      *slot = entry->what == EXCHANGE ? before : -1;
    }
}

static gboolean
is_of_names (const Entry *entry)
{
  return entry->what == CREATE || entry->what >= EXCHANGE;
}

/* Returns the possible contents of the target after a loss of power before the entry `end`: bits of
 * Content. */
static guint
after_loss (const GArray *log, guint end, gboolean existed)
{
  Names durable = { existed ? 0 : -1, -1 };
  const Entry *pending[16];
  guint n_pending = 0, result = 0, mask, i;
  gsize written = 0, flushed = 0;

  for (i = 0; i < end; i++)
    {
      const Entry *entry = &g_array_index (log, Entry, i);

      if (entry->what == WRITE)
        written += entry->n_bytes;
      else if (entry->what == FLUSH_FILE)
        flushed = written;
      else if (entry->what == FLUSH_FOLDER)
        {
          for (mask = 0; mask < n_pending; mask++)
            apply (&durable, pending[mask]);
          n_pending = 0;
        }
      else if (is_of_names (entry))
        {
          g_assert_cmpuint (n_pending, <, G_N_ELEMENTS (pending));
          pending[n_pending++] = entry;
        }
    }
  for (mask = 0; mask < 1u << n_pending; mask++)
    {
      Names names = durable;

      for (i = 0; i < n_pending; i++)
        if (mask & 1u << i)
          apply (&names, pending[i]);
      if (names.target == -1)
        result |= 1 << ABSENT;
      else if (names.target == 0)
        result |= 1 << FORMER;
      else
        {
          /* flushed bytes are there; of the rest all, none, or zeros */
          if (written == N_BYTES)
            result |= 1 << WHOLE;
          if (flushed != N_BYTES)
            result |= 1 << TORN;
        }
    }
  return result;
}

/* --- files --- */

typedef struct
{
  gchar *folder, *path;
  GFile *file;
} Place;

static void
place_init (Place *place)
{
  place->folder = g_dir_make_tmp ("gtorch-save-XXXXXX", NULL);
  place->path = g_build_filename (place->folder, "target", NULL);
  place->file = g_file_new_for_path (place->path);
  gtorch_file_calls = &recording;
}

static void
place_clear (Place *place)
{
  gtorch_file_calls = &gtorch_file_system;
  g_clear_pointer (&record.log, g_array_unref);
  g_unlink (place->path);
  g_assert_cmpint (g_rmdir (place->folder), ==, 0); /* it contains nothing else */
  g_free (place->folder);
  g_free (place->path);
  g_object_unref (place->file);
}

static void
place_prepare (Place *place, gboolean existed)
{
  if (existed)
    g_assert_true (g_file_set_contents (place->path, "former", -1, NULL));
  else
    g_unlink (place->path);
}

/* Counts the names in the folder other than the target. */
static guint
place_count_others (Place *place)
{
  g_autoptr (GDir) dir = g_dir_open (place->folder, 0, NULL);
  const gchar *name;
  guint n = 0;

  while ((name = g_dir_read_name (dir)) != NULL)
    n += strcmp (name, "target") != 0;
  return n;
}

static void
place_remove_others (Place *place)
{
  g_autoptr (GDir) dir = g_dir_open (place->folder, 0, NULL);
  const gchar *name;

  while ((name = g_dir_read_name (dir)) != NULL)
    if (strcmp (name, "target") != 0)
      {
        g_autofree gchar *path = g_build_filename (place->folder, name, NULL);

        g_unlink (path);
      }
}

static Content
place_read (Place *place)
{
  g_autofree gchar *text = NULL;
  gsize n, i;

  if (!g_file_get_contents (place->path, &text, &n, NULL))
    return ABSENT;
  if (strcmp (text, "former") == 0)
    return FORMER;
  for (i = 0; i < n; i++)
    if (text[i] != 'n')
      return TORN;
  return n == N_BYTES ? WHOLE : TORN;
}

static gboolean
write_steps (GOutputStream *stream, GCancellable *cancellable, gpointer data, GError **error)
{
  g_autofree gchar *content = g_malloc (N_BYTES);
  gsize done, step;

  memset (content, 'n', N_BYTES);
  for (done = 0; done < N_BYTES; done += step)
    {
      step = MIN (STEP, N_BYTES - done);
      if (!g_output_stream_write_all (stream, content + done, step, NULL, cancellable, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
save (Place *place, GCancellable *cancellable, GError **error)
{
  return gtorch_file_save (place->file, write_steps, NULL, cancellable, error);
}

static void
count_warning (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data)
{
  ++*(guint *) data;
}

static gboolean
save_quietly (Place *place, guint *n_warnings, GError **error)
{
  guint handler = g_log_set_handler ("GTorch", G_LOG_LEVEL_WARNING, count_warning, n_warnings);
  GLogLevelFlags fatal = g_log_set_always_fatal (G_LOG_FATAL_MASK);
  gboolean saved = save (place, NULL, error);

  g_log_set_always_fatal (fatal);
  g_log_remove_handler ("GTorch", handler);
  return saved;
}

/* --- loss of power --- */

static void
a_loss_of_power_leaves_a_whole_file (void)
{
  gboolean existed, can_exchange;
  Place place;
  guint end;

  place_init (&place);
  for (existed = FALSE; existed <= TRUE; existed++)
    for (can_exchange = FALSE; can_exchange <= TRUE; can_exchange++)
      {
        g_autoptr (GError) error = NULL;

        place_prepare (&place, existed);
        record_begin (can_exchange);
        g_assert_true (save (&place, NULL, &error));
        g_assert_no_error (error);
        g_assert_cmpint (place_read (&place), ==, WHOLE);
        g_assert_cmpuint (record.log->len, >, 6);
        for (end = 0; end <= record.log->len; end++)
          {
            guint states = after_loss (record.log, end, existed);

            g_assert_cmpuint (states & 1 << TORN, ==, 0);
            g_assert_cmpuint (states & 1 << (existed ? ABSENT : FORMER), ==, 0);
          }
        g_assert_cmpuint (after_loss (record.log, record.log->len, existed), ==, 1 << WHOLE);
      }
  place_clear (&place);
}

/* Power is lost after the failure of any call; then the old file is as durable as it was. */
static void
a_loss_of_power_after_a_failure_leaves_a_whole_file (void)
{
  gboolean existed;
  guint k, end, n_warnings = 0;
  Place place;

  place_init (&place);
  for (existed = FALSE; existed <= TRUE; existed++)
    for (k = 1;; k++)
      {
        g_autoptr (GError) error = NULL;

        place_prepare (&place, existed);
        record_begin (TRUE);
        record.fails_at = k;
        record.code = EIO;
        save_quietly (&place, &n_warnings, &error);
        place_remove_others (&place);
        if (record.n_calls < k)
          break;
        for (end = 0; end <= record.log->len; end++)
          g_assert_cmpuint (after_loss (record.log, end, existed)
                                & (1 << TORN | 1 << (existed ? ABSENT : FORMER)),
                            ==, 0);
      }
  g_assert_cmpuint (k, >, 10);
  place_clear (&place);
}

static void
remove_entries (What what)
{
  guint i;

  for (i = record.log->len; i > 0; i--)
    if (g_array_index (record.log, Entry, i - 1).what == what)
      g_array_remove_index (record.log, i - 1);
}

static guint
all_states (gboolean existed)
{
  guint end, states = 0;

  for (end = 0; end <= record.log->len; end++)
    states |= after_loss (record.log, end, existed);
  return states;
}

static void
a_missing_flush_would_be_detected (void)
{
  Place place;

  place_init (&place);
  place_prepare (&place, TRUE);
  record_begin (TRUE);
  g_assert_true (save (&place, NULL, NULL));
  remove_entries (FLUSH_FILE);
  g_assert_cmpuint (all_states (TRUE) & 1 << TORN, !=, 0);

  place_prepare (&place, TRUE);
  record_begin (TRUE);
  g_assert_true (save (&place, NULL, NULL));
  remove_entries (FLUSH_FOLDER);
  g_assert_cmpuint (after_loss (record.log, record.log->len, TRUE) & 1 << FORMER, !=, 0);
  place_clear (&place);
}

/* --- failing calls --- */

/* Lets the k-th call fail. Returns FALSE if there is no k-th call. */
static gboolean
let_fail (Place *place, guint k, int code, gboolean existed, gboolean can_exchange)
{
  g_autoptr (GError) error = NULL;
  guint n_warnings = 0;
  gboolean saved;

  place_prepare (place, existed);
  record_begin (can_exchange);
  record.fails_at = k;
  record.code = code;
  saved = save_quietly (place, &n_warnings, &error);
  if (record.n_calls < k)
    return FALSE;
  g_assert_true (saved == (error == NULL));
  if (code == EINTR)
    g_assert_no_error (error);
  if (saved)
    g_assert_cmpint (place_read (place), ==, WHOLE);
  else if (record.failed == FOLDER_FLUSH_CALL && existed && !can_exchange)
    {
      /* the error of the only case that cannot be undone says so */
      g_assert_cmpint (place_read (place), ==, WHOLE);
      g_assert_nonnull (strstr (error->message, "the file was replaced"));
    }
  else
    g_assert_cmpint (place_read (place), ==, existed ? FORMER : ABSENT);
  if (record.failed == REMOVE_CALL && code != EINTR)
    {
      g_assert_true (saved);
      g_assert_cmpuint (n_warnings, ==, 1);
      place_remove_others (place);
    }
  else
    {
      g_assert_cmpuint (n_warnings, ==, 0);
      g_assert_cmpuint (place_count_others (place), ==, 0);
    }
  return TRUE;
}

static void
a_failing_call_keeps_the_old_file (void)
{
  const int codes[] = { ENOSPC, EIO, EINTR, EDQUOT, EROFS, EACCES, ENOMEM };
  gboolean existed, can_exchange;
  Place place;
  guint k, i;

  place_init (&place);
  for (existed = FALSE; existed <= TRUE; existed++)
    for (can_exchange = FALSE; can_exchange <= TRUE; can_exchange++)
      for (i = 0; i < G_N_ELEMENTS (codes); i++)
        {
          for (k = 1; let_fail (&place, k, codes[i], existed, can_exchange); k++)
            ;
          g_assert_cmpuint (k, >, 10);
        }
  place_clear (&place);
}

static void
writes_may_be_partial (void)
{
  Place place;

  place_init (&place);
  place_prepare (&place, TRUE);
  record_begin (TRUE);
  record.is_short = TRUE;
  g_assert_true (save (&place, NULL, NULL));
  g_assert_cmpint (place_read (&place), ==, WHOLE);
  g_assert_cmpuint (record.n_calls, >, N_BYTES / 7);
  place_clear (&place);
}

static void
cancelling_at_any_time_leaves_a_whole_file (void)
{
  gboolean existed;
  Place place;
  guint k;

  place_init (&place);
  for (existed = FALSE; existed <= TRUE; existed++)
    for (k = 0;; k++)
      {
        g_autoptr (GCancellable) cancellable = g_cancellable_new ();
        g_autoptr (GError) error = NULL;
        gboolean saved;

        place_prepare (&place, existed);
        record_begin (TRUE);
        record.cancellable = cancellable;
        record.cancelled_at = k;
        if (k == 0)
          g_cancellable_cancel (cancellable);
        saved = save (&place, cancellable, &error);
        if (record.n_calls < k)
          break;
        if (!saved)
          g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
        g_assert_cmpint (place_read (&place), ==, saved ? WHOLE : existed ? FORMER : ABSENT);
        g_assert_cmpuint (place_count_others (&place), ==, 0);
        if (k == 0)
          g_assert_false (saved);
      }
  place_clear (&place);
}

#define ADD(fact) g_test_add_func ("/GTorch/power-loss/" #fact, fact)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_loss_of_power_leaves_a_whole_file);
  ADD (a_loss_of_power_after_a_failure_leaves_a_whole_file);
  ADD (a_missing_flush_would_be_detected);
  ADD (a_failing_call_keeps_the_old_file);
  ADD (writes_may_be_partial);
  ADD (cancelling_at_any_time_leaves_a_whole_file);
  return g_test_run ();
}
