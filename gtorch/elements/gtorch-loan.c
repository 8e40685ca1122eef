/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory of a device that this process lends to others, and how it learns that they do not use it any more.
 *
 * Each loan has a pipe, through which nothing is ever written. Whoever uses the memory has its writing end
 * open: other processes, messages that are on their way to them, and handles in this process. When the
 * last one is closed, also because a process has ended in whatever way, the system hangs up the reading
 * end. A thread waits for that and drops the storage. A handle that is made later opens the pipe again by
 * the reading end's name in /proc.
 *
 * A forked child closes its copies of all ends: it cannot use the memory. */

#include "config.h"

#include "elements/gtorch-loan-private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gtorch-fork-private.h"
#include "stream/gtorch-stream-private.h"

struct _GTorchLoan
{
  guint64 number;
  GTorchStorage *storage;
  gint reading, writing; /* writing is -1 while there are no handles of it in this process */
  guint n_handles;
  GMutex event_lock; /* of what follows */
  GTorchEvent *event;
  gboolean has_no_events;
};

typedef struct
{
  gint fd;
} Taken;

static GMutex lock; /* protects the tables, the numbers, and the pipes of loans */
GTORCH_FORK_LOCK (lock);
static GHashTable *by_number;  /* guint64 * → GTorchLoan */
static GHashTable *by_storage; /* GTorchStorage → GTorchLoan */
static GHashTable *all_taken;  /* set of Taken */
static guint64 last_number;
static guint n_lent; /* storages, until they are dropped: those that the tables have lost, too */
static gint watching = -1; /* epoll */

static void
set_error (const gchar *call, GError **error)
{
  const int reason = errno;

  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("share: %s: %s"), call,
               g_strerror (reason));
}

/* --- the thread --- */

/* Has every writing end been closed? */
static gboolean
is_over (const GTorchLoan *loan)
{
  struct pollfd end = { .fd = loan->reading, .events = 0 };

  return loan->writing < 0 && loan->n_handles == 0 && poll (&end, 1, 0) == 1
         && (end.revents & POLLHUP) != 0;
}

static void
loan_free (GTorchLoan *loan)
{
  close (loan->reading);
  g_clear_object (&loan->event);
  gtorch_storage_unref (loan->storage);
  g_mutex_clear (&loan->event_lock);
  g_free (loan);
}

static gpointer
watch (gpointer data)
{
  const gint fd = GPOINTER_TO_INT (data);
  struct epoll_event found;

  while (TRUE)
    {
      GTorchLoan *loan;

      if (epoll_wait (fd, &found, 1, -1) != 1)
        continue;
      g_mutex_lock (&lock);
      loan = g_hash_table_lookup (by_number, &found.data.u64);
      if (loan != NULL && is_over (loan))
        {
          g_hash_table_remove (by_storage, loan->storage);
          g_hash_table_remove (by_number, &loan->number);
          epoll_ctl (fd, EPOLL_CTL_DEL, loan->reading, NULL);
        }
      else
        loan = NULL;
      g_mutex_unlock (&lock);
      if (loan == NULL)
        continue;
      loan_free (loan);
      g_mutex_lock (&lock);
      n_lent--;
      g_mutex_unlock (&lock);
    }
  return NULL;
}

static gboolean
start_watching (GError **error)
{
  if (watching >= 0)
    return TRUE;
  watching = epoll_create1 (EPOLL_CLOEXEC);
  if (watching < 0)
    {
      set_error ("epoll_create1", error);
      return FALSE;
    }
  by_number = g_hash_table_new (g_int64_hash, g_int64_equal);
  by_storage = g_hash_table_new (NULL, NULL);
  g_thread_unref (g_thread_new ("gtorch-loans", watch, GINT_TO_POINTER (watching)));
  return TRUE;
}

static void
close_ends (void)
{
  GHashTableIter iter;
  gpointer value;

  if (by_number != NULL)
    {
      g_hash_table_iter_init (&iter, by_number);
      while (g_hash_table_iter_next (&iter, NULL, &value))
        {
          GTorchLoan *loan = value;

          close (loan->reading);
          if (loan->writing >= 0)
            close (loan->writing);
          loan->reading = loan->writing = -1;
        }
      g_hash_table_remove_all (
          by_number); /* their storages are of a device that the child cannot use */
      g_hash_table_remove_all (by_storage);
    }
  n_lent = 0;
  if (all_taken != NULL)
    {
      g_hash_table_iter_init (&iter, all_taken);
      while (g_hash_table_iter_next (&iter, &value, NULL))
        {
          close (((Taken *) value)->fd);
          ((Taken *) value)->fd = -1;
        }
    }
  if (watching >= 0)
    close (watching);
  watching = -1;
}
GTORCH_FORK_CHILD (close_ends);

/* --- loans --- */

static GTorchLoan *
loan_new (GTorchStorage *storage, GError **error)
{
  GTorchLoan *loan;
  int ends[2];

  if (!start_watching (error))
    return NULL;
  if (pipe2 (ends, O_CLOEXEC | O_NONBLOCK) != 0)
    {
      set_error ("pipe2", error);
      return NULL;
    }
  loan = g_new0 (GTorchLoan, 1);
  loan->number = ++last_number;
  loan->reading = ends[0];
  loan->writing = ends[1];
  if (epoll_ctl (watching, EPOLL_CTL_ADD, loan->reading,
                 &(struct epoll_event){ .events = 0, .data.u64 = loan->number })
      != 0)
    {
      set_error ("epoll_ctl", error);
      close (ends[0]);
      close (ends[1]);
      g_free (loan);
      return NULL;
    }
  g_mutex_init (&loan->event_lock);
  loan->storage = gtorch_storage_ref (storage);
  g_hash_table_insert (by_number, &loan->number, loan);
  g_hash_table_insert (by_storage, storage, loan);
  n_lent++;
  return loan;
}

static gboolean
reopen (GTorchLoan *loan, GError **error)
{
  gchar path[64];

  if (loan->writing >= 0)
    return TRUE;
  g_snprintf (path, sizeof path, "/proc/self/fd/%d", loan->reading);
  loan->writing = g_open (path, O_WRONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (loan->writing < 0)
    set_error (path, error);
  return loan->writing >= 0;
}

GTorchLoan *
gtorch_loan_new (GTorchStorage *storage, GError **error)
{
  GTorchLoan *loan;

  g_mutex_lock (&lock);
  loan = by_storage != NULL ? g_hash_table_lookup (by_storage, storage) : NULL;
  if (loan == NULL)
    loan = loan_new (storage, error);
  else if (!reopen (loan, error))
    loan = NULL;
  if (loan != NULL)
    loan->n_handles++;
  g_mutex_unlock (&lock);
  return loan;
}

void
gtorch_loan_unref (GTorchLoan *loan)
{
  g_mutex_lock (&lock);
  if (--loan->n_handles == 0 && loan->writing >= 0)
    {
      close (loan->writing);
      loan->writing = -1;
    }
  g_mutex_unlock (&lock);
}

guint64
gtorch_loan_get_number (const GTorchLoan *loan)
{
  return loan->number;
}

gint
gtorch_loan_get_fd (const GTorchLoan *loan)
{
  return loan->writing;
}

GBytes *
gtorch_loan_record (GTorchLoan *loan, GTorchStream *stream, GError **error)
{
  GBytes *handle = NULL;

  g_mutex_lock (&loan->event_lock);
  if (loan->event == NULL && !loan->has_no_events)
    {
      loan->event = gtorch_event_new (GTORCH_EVENT_INTERPROCESS);
      handle = gtorch_event_get_ipc_handle (loan->event, stream->device, NULL);
      if (handle == NULL) /* the driver has a limited number of them */
        {
          g_clear_object (&loan->event);
          loan->has_no_events = TRUE;
        }
      g_clear_pointer (&handle, g_bytes_unref);
    }
  if (loan->has_no_events)
    {
      if (gtorch_stream_synchronize (stream, NULL, error))
        handle = g_bytes_new (NULL, 0);
    }
  else if (gtorch_stream_wait_event (stream, loan->event, error)
           && gtorch_event_record (loan->event, stream, error))
    handle = gtorch_event_get_ipc_handle (loan->event, stream->device, error);
  g_mutex_unlock (&loan->event_lock);
  return handle;
}

GTorchStorage *
gtorch_loan_find (guint64 number, GTorchStream *stream, GError **error)
{
  GTorchStorage *storage = NULL;
  GTorchEvent *event = NULL;
  GTorchLoan *loan;

  g_mutex_lock (&lock);
  loan = by_number != NULL ? g_hash_table_lookup (by_number, &number) : NULL;
  if (loan != NULL && loan->storage->device == stream->device)
    {
      storage = gtorch_storage_ref (loan->storage);
      event = loan->event != NULL ? g_object_ref (loan->event) : NULL;
    }
  g_mutex_unlock (&lock);
  if (storage == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("share: the handle is of this process, in which the memory is not shared any "
                    "more"));
  if (event != NULL && !gtorch_stream_wait_event (stream, event, error))
    g_clear_pointer (&storage, gtorch_storage_unref);
  g_clear_object (&event);
  return storage;
}

guint
gtorch_loans_count (void)
{
  guint n;

  g_mutex_lock (&lock);
  n = n_lent;
  g_mutex_unlock (&lock);
  return n;
}

/* --- in the other process --- */

gpointer
gtorch_loan_take (gint fd, GError **error)
{
  struct pollfd end = { .fd = fd, .events = 0 };
  const int flags = fcntl (fd, F_GETFL);
  struct stat info;
  Taken *taken;

  if (flags < 0 || (flags & O_ACCMODE) != O_WRONLY || fstat (fd, &info) != 0
      || !S_ISFIFO (info.st_mode))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("share: file descriptor %d is not that of a shared tensor"), fd);
      return NULL;
    }
  if (poll (&end, 1, 0) == 1 && (end.revents & POLLERR) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("share: the process that has shared the tensor has ended"));
      return NULL;
    }
  fd = fcntl (fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0)
    {
      set_error ("F_DUPFD_CLOEXEC", error);
      return NULL;
    }
  taken = g_new (Taken, 1);
  taken->fd = fd;
  g_mutex_lock (&lock);
  if (all_taken == NULL)
    all_taken = g_hash_table_new (NULL, NULL);
  g_hash_table_add (all_taken, taken);
  g_mutex_unlock (&lock);
  return taken;
}

void
gtorch_loan_return (gpointer data)
{
  Taken *taken = data;

  g_mutex_lock (&lock);
  g_hash_table_remove (all_taken, taken);
  g_mutex_unlock (&lock);
  if (taken->fd >= 0)
    close (taken->fd);
  g_free (taken);
}
