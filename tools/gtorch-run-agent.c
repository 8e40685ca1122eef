/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Runs the workers of this node: starts them when a round begins, ends them when it is over, and ends
 * itself when the job does. All of this is in the main loop; who takes part is found by the
 * rendezvous's thread. */

#include "config.h"

#include "gtorch-run-private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_TIME 5 /* seconds for what is still on its way to the console */

typedef enum
{
  WAITING, /* for a round */
  RUNNING,
  STOPPING, /* the workers are told to end */
  DRAINING, /* the workers have ended, and their output is written */
} Phase;

typedef struct _Agent Agent;

/* The streams of the workers of a round, some of which may last longer than the round. */
typedef struct
{
  Agent *agent; /* NULL if nobody waits for them */
  guint n;
} Streams;

struct _Agent
{
  const GTorchRunOptions *options;
  GMainLoop *loop;
  GTorchRunRendezvous *rendezvous;
  GTorchRunMpi *mpi;
  const GTorchRunFolders *folders;
  gchar *log_folder;
  gint parent;
  Phase phase;
  GPtrArray *workers;
  guint n_running;
  Streams *streams;
  GTorchRunWorker *first; /* the first of the round that has failed */
  guint timer;            /* until SIGKILL, or until output is no longer waited for */
  gboolean joins_again, is_over, was_told;
  gint status;
};

static void settle (Agent *self);

static void
worker_clear (gpointer data)
{
  gtorch_run_worker_free (data);
}

/* --- ending workers --- */

static void
kill_all (Agent *self, gint number)
{
  guint i;

  for (i = 0; i < self->workers->len; i++)
    gtorch_run_worker_kill (self->workers->pdata[i], number);
}

static void
clear_timer (Agent *self)
{
  if (self->timer != 0)
    g_source_remove (self->timer);
  self->timer = 0;
}

static void
leave_streams (Agent *self)
{
  Streams *streams = g_steal_pointer (&self->streams);

  if (streams == NULL)
    return;
  streams->agent = NULL;
  if (streams->n == 0)
    g_free (streams);
}

static gboolean
on_late (gpointer data)
{
  Agent *self = data;

  self->timer = 0;
  if (self->phase == STOPPING)
    kill_all (self, SIGKILL);
  else
    {
      leave_streams (self);
      settle (self);
    }
  return G_SOURCE_REMOVE;
}

static void
stop_workers (Agent *self, gint number)
{
  if (self->phase != RUNNING)
    return;
  self->phase = STOPPING;
  kill_all (self, number);
  clear_timer (self);
  self->timer = g_timeout_add ((guint) (self->options->shutdown_timeout * 1000), on_late, self);
}

/* --- reports --- */

static gboolean
has_failed (const GTorchRunWorker *worker)
{
  return worker->end != 0 && gtorch_run_worker_get_status (worker) != 0;
}

/* Not those that were ended because another one had failed. */
static void
report_failures (Agent *self)
{
  g_autoptr (GPtrArray) failed = g_ptr_array_new ();
  guint i;

  for (i = 0; i < self->workers->len; i++)
    {
      GTorchRunWorker *worker = self->workers->pdata[i];
      const gint status = worker->status;

      if (has_failed (worker)
          && (worker == self->first
              || !(WIFSIGNALED (status)
                   && (WTERMSIG (status) == SIGTERM || WTERMSIG (status) == SIGKILL))))
        g_ptr_array_add (failed, worker);
    }
  gtorch_run_report (self->options, failed);
}

/* --- the state of this node --- */

/* Goes on when workers have ended, their output is written, and it is known what follows. */
static void
settle (Agent *self)
{
  const gboolean was_failure = self->first != NULL;

  if (self->n_running > 0)
    return;
  if (self->phase == RUNNING || self->phase == STOPPING)
    {
      clear_timer (self);
      self->phase = DRAINING;
      self->timer = g_timeout_add_seconds (OUTPUT_TIME, on_late, self);
      if (!was_failure && !self->joins_again && !self->is_over)
        gtorch_run_rendezvous_done (self->rendezvous);
    }
  if (self->phase == DRAINING && self->streams != NULL && self->streams->n > 0)
    return;
  leave_streams (self);
  clear_timer (self);
  if (!self->joins_again && !self->is_over)
    return;
  gtorch_run_mpi_end (self->mpi);
  if (self->phase == DRAINING)
    {
      gtorch_run_sweep (self->workers, was_failure || self->was_told ? 0 : 1);
      if (self->is_over && was_failure && !self->was_told)
        report_failures (self);
    }
  self->phase = WAITING;
  self->first = NULL;
  g_ptr_array_set_size (self->workers, 0);
  if (self->is_over)
    g_main_loop_quit (self->loop);
  else
    gtorch_run_rendezvous_join (self->rendezvous);
  self->joins_again = FALSE;
}

static void
on_worker_ended (GTorchRunWorker *worker, gpointer data)
{
  Agent *self = data;

  self->n_running--;
  if (has_failed (worker) && self->phase == RUNNING)
    {
      g_autofree gchar *text = gtorch_run_worker_describe (worker);

      self->first = worker;
      gtorch_run_say ("%s", text);
      gtorch_run_rendezvous_fail (self->rendezvous, gtorch_run_worker_get_status (worker), text);
      stop_workers (self, SIGTERM);
    }
  settle (self);
}

static gboolean
on_output_ended (gpointer data)
{
  Streams *streams = data;

  streams->n--;
  if (streams->agent != NULL)
    settle (streams->agent);
  else if (streams->n == 0)
    g_free (streams);
  return G_SOURCE_REMOVE;
}

/* --- starting workers --- */

static gboolean
start_workers (Agent *self, const GTorchRunState *state, guint node, GError **error)
{
  g_autofree gchar *log_folder =
      self->log_folder == NULL ? NULL
                               : g_strdup_printf ("%s/attempt_%u", self->log_folder, state->round);
  GTorchRunStart start = { .options = self->options,
                           .folder = self->folders->plain,
                           .log_folder = log_folder,
                           .ended = on_worker_ended,
                           .user_data = self,
                           .output_ended = on_output_ended };
  const guint first = gtorch_run_state_count (state, node);
  guint i;

  if (!gtorch_run_mpi_begin (self->mpi, self->options->run_id, state, node,
                             gtorch_run_rendezvous_get_store (self->rendezvous), error))
    return FALSE;
  self->phase = RUNNING;
  self->streams = g_new (Streams, 1);
  *self->streams = (Streams){ self, 0 };
  start.output_data = self->streams;
  for (i = 0; i < self->options->n_workers; i++)
    {
      GTorchRunWorker *worker;

      start.environment = gtorch_run_environment (self->options, state, node, i, self->rendezvous);
      start.environment = gtorch_run_mpi_environment (self->mpi, start.environment, first + i);
      worker = gtorch_run_worker_new (i, first + i, &start, error);
      g_strfreev (start.environment);
      if (worker == NULL)
        return FALSE;
      g_ptr_array_add (self->workers, worker);
      self->n_running++;
      self->streams->n += 2;
    }
  return TRUE;
}

/* --- events --- */

static void
end (Agent *self, gint status)
{
  self->is_over = TRUE;
  self->status = status;
  stop_workers (self, SIGTERM);
  settle (self);
}

static void
on_event (const GTorchRunEvent *event, gpointer data)
{
  Agent *self = data;
  g_autoptr (GError) error = NULL;

  if (self->is_over)
    return;
  switch (event->kind)
    {
    case GTORCH_RUN_JOINED:
      /* a signal that has ended the start says itself why */
      if (!start_workers (self, event->state, event->node, &error) && !gtorch_run_is_told ())
        {
          gtorch_run_say ("%s", error->message);
          gtorch_run_rendezvous_leave (self->rendezvous, 1, error->message);
          stop_workers (self, SIGKILL);
        }
      break;
    case GTORCH_RUN_CHANGED:
      gtorch_run_say (_ ("%s; the workers are started again (round %u, restart %u of %u)"),
                      event->state->reason, event->state->round, event->state->restarts,
                      self->options->max_restarts);
      self->joins_again = TRUE;
      stop_workers (self, SIGTERM);
      settle (self);
      break;
    case GTORCH_RUN_ENDED:
      if (event->status != 0 && self->first == NULL && !self->was_told)
        gtorch_run_say ("%s", event->text);
      end (self, event->status);
      break;
    default:
      g_assert_not_reached ();
    }
}

/* The first one is handed on; at a second one nobody waits any longer. */
static void
take_signal (Agent *self, gint number)
{
  g_autofree gchar *text = NULL;

  if (self->was_told)
    {
      kill_all (self, SIGKILL);
      return;
    }
  self->was_told = TRUE;
  text = g_strdup_printf (_ ("node %s was ended by %s"), g_get_host_name (),
                          gtorch_run_signal_name (number));
  gtorch_run_rendezvous_leave (self->rendezvous, 128 + number, text);
  stop_workers (self, number);
}

static gint signal_pipe[2], hurry = -1;
static volatile sig_atomic_t n_signals;

gboolean
gtorch_run_is_told (void)
{
  return n_signals > 0;
}

gboolean
gtorch_run_is_hurried (void)
{
  return n_signals > 1;
}

static void
note_signal (int number)
{
  const guchar byte = (guchar) number;
  const int code = errno;
  const guint64 one = 1;
  gssize n G_GNUC_UNUSED;

  n_signals++;
  n = write (signal_pipe[1], &byte, 1);
  if (n_signals > 1)
    n = write (hurry, &one, sizeof one);
  errno = code;
}

static gboolean
on_signal_pipe (gint fd, GIOCondition condition, gpointer data)
{
  guchar number;

  if (read (fd, &number, 1) == 1)
    take_signal (data, number);
  return G_SOURCE_CONTINUE;
}

/* The process that the user has started is gone: workers end at once, and the other nodes are told. */
static gboolean
on_parent_gone (gint fd, GIOCondition condition, gpointer data)
{
  Agent *self = data;
  g_autofree gchar *text = NULL;

  kill_all (self, SIGKILL);
  if (!self->was_told)
    {
      self->was_told = TRUE;
      text =
          g_strdup_printf (_ ("node %s was ended: its gtorch-run was killed"), g_get_host_name ());
      gtorch_run_rendezvous_leave (self->rendezvous, 128 + SIGKILL, text);
    }
  stop_workers (self, SIGKILL);
  return G_SOURCE_REMOVE;
}

/* --- beginning and end --- */

static gboolean
make_log_folder (Agent *self, GError **error)
{
  const GTorchRunOptions *options = self->options;

  if (options->redirects.all == 0 && options->redirects.ranks == NULL && options->tees.all == 0
      && options->tees.ranks == NULL)
    return TRUE;
  if (options->log_dir == NULL)
    self->log_folder = g_dir_make_tmp ("gtorch-run-logs-XXXXXX", error);
  else
    {
      g_autofree gchar *name = g_strdup_printf ("%s_XXXXXX", options->run_id);
      g_autofree gchar *path = g_build_filename (options->log_dir, name, NULL);

      if (g_mkdir_with_parents (options->log_dir, 0777) == 0 && g_mkdtemp_full (path, 0777) != NULL)
        self->log_folder = g_steal_pointer (&path);
      else
        g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (errno),
                     _ ("%s cannot be written: %s"), path, g_strerror (errno));
    }
  if (self->log_folder != NULL)
    gtorch_run_say (_ ("output is written to %s"), self->log_folder);
  return self->log_folder != NULL;
}

static void
handle_signals (Agent *self)
{
  const gint *number;
  struct sigaction action = { .sa_handler = note_signal, .sa_flags = SA_RESTART };

  signal (SIGPIPE, SIG_IGN);
  signal (SIGTTOU, SIG_IGN);
  if (!g_unix_open_pipe (signal_pipe, FD_CLOEXEC, NULL))
    return;
  g_unix_set_fd_nonblocking (signal_pipe[1], TRUE, NULL);
  hurry = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (number = self->options->signals; *number != 0; number++)
    sigaction (*number, &action, NULL);
  g_unix_fd_add (signal_pipe[0], G_IO_IN, on_signal_pipe, self);
}

gint
gtorch_run_agent (const GTorchRunOptions *options, const GTorchRunFolders *folders,
                  const sigset_t *mask, gint parent)
{
  Agent agent = { .options = options, .folders = folders, .parent = parent, .status = 1 };
  Agent *self = &agent;
  g_autoptr (GError) error = NULL;

  prctl (PR_SET_CHILD_SUBREAPER, 1);
  if (!make_log_folder (self, &error))
    {
      gtorch_run_say ("%s", error->message);
      return 1;
    }
  self->loop = g_main_loop_new (NULL, FALSE);
  self->workers = g_ptr_array_new_with_free_func (worker_clear);
  handle_signals (self);
  sigprocmask (SIG_SETMASK, mask, NULL);
  self->mpi = gtorch_run_mpi_new (self->folders);
  gtorch_run_guard (options, self->folders, self->parent, hurry);
  self->rendezvous = gtorch_run_rendezvous_new (options, on_event, self);
  g_unix_fd_add (self->parent, G_IO_HUP, on_parent_gone, self);
  gtorch_run_rendezvous_join (self->rendezvous);
  g_main_loop_run (self->loop);
  kill_all (self, SIGKILL);
  gtorch_run_mpi_free (self->mpi);
  gtorch_run_sweep (NULL, 0);
  gtorch_run_rendezvous_free (self->rendezvous);
  g_ptr_array_unref (self->workers);
  g_main_loop_unref (self->loop);
  g_free (self->log_folder);
  return self->status;
}
