/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A worker: a process with a process group of its own, which the kernel ends if gtorch-run ends. Its
 * status is taken only when all processes of its group are gone: until then nobody else gets its
 * number. */

#include "config.h"

#include "gtorch-run-private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct
{
  GTorchRunWorker *worker;
  gint fd;
  GTorchRunWorkerFunc ended;
  gpointer user_data;
} Watch;

static void
watch_free (gpointer data)
{
  Watch *watch = data;

  close (watch->fd);
  g_free (watch);
}

static gboolean
on_ended (gint fd, GIOCondition condition, gpointer data)
{
  const Watch *watch = data;
  GTorchRunWorker *worker = watch->worker;
  siginfo_t info = { 0 };

  if (waitid (P_PID, (id_t) worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0
      || info.si_pid == 0)
    return G_SOURCE_CONTINUE;
  worker->end = g_get_real_time ();
  worker->status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
  worker->source = 0;
  /* those that it has left may hold its streams */
  if (worker->out != NULL)
    gtorch_run_output_stop (worker->out);
  if (worker->err != NULL)
    gtorch_run_output_stop (worker->err);
  watch->ended (worker, watch->user_data);
  return G_SOURCE_REMOVE;
}

/* In the new process, where only what may be called in a handler of signals may be called. */
static void
prepare (gpointer data)
{
  const pid_t parent = *(const pid_t *) data;
  sigset_t none;
  int i;

  setpgid (0, 0);
  for (i = 1; i < NSIG; i++)
    signal (i, SIG_DFL);
  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  if (getppid () != parent)
    _exit (1);
}

/* --- its streams --- */

static gchar *
replace (const gchar *template, const gchar *name, const gchar *value)
{
  g_autofree gchar *macro = g_strdup_printf ("${%s}", name);
  g_auto (GStrv) parts = g_strsplit (template, macro, -1);

  return g_strjoinv (value, parts);
}

static gchar *
make_prefix (const GTorchRunOptions *options, guint local_rank, guint rank)
{
  g_autofree gchar *local = g_strdup_printf ("%u", local_rank);
  g_autofree gchar *global = g_strdup_printf ("%u", rank);
  g_autofree gchar *a = replace (options->prefix, "role_name", options->role);
  g_autofree gchar *b = replace (a, "local_rank", local);
  g_autofree gchar *c = replace (b, "rank", global);

  return replace (c, "hostname", g_get_host_name ());
}

typedef struct
{
  gint ends[2]; /* -1: none */
  gint file, console;
  gchar *prefix, *path;
} Stream;

static void
stream_close (Stream *stream)
{
  if (stream->ends[0] >= 0)
    close (stream->ends[0]);
  if (stream->ends[1] >= 0)
    close (stream->ends[1]);
  if (stream->file >= 0)
    close (stream->file);
  stream->ends[0] = stream->ends[1] = stream->file = -1;
}

static void
stream_clear (Stream *stream)
{
  stream_close (stream);
  g_free (stream->prefix);
  g_free (stream->path);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Stream, stream_clear)

static gboolean
stream_open (Stream *stream, const GTorchRunStart *start, guint bit, guint local_rank, guint rank,
             GError **error)
{
  const GTorchRunOptions *options = start->options;
  const gboolean is_teed = gtorch_run_streams_of (&options->tees, local_rank) & bit;
  const gboolean is_redirected = gtorch_run_streams_of (&options->redirects, local_rank) & bit;
  const gboolean is_shown =
      options->shown == NULL
      || g_hash_table_contains (options->shown, GUINT_TO_POINTER (local_rank));
  const gboolean is_console = is_shown && (is_teed || !is_redirected);

  stream->console = !is_console ? -1 : bit == GTORCH_RUN_OUT ? STDOUT_FILENO : STDERR_FILENO;
  if (is_teed)
    stream->prefix = make_prefix (options, local_rank, rank);
  else if (bit == GTORCH_RUN_ERR && (options->max_nodes > 1 || options->n_workers > 1))
    stream->prefix = g_strdup_printf ("[rank%u]: ", rank);
  else
    stream->prefix = g_strdup ("");
  if (is_teed || is_redirected)
    {
      g_autofree gchar *folder = g_strdup_printf ("%s/%u", start->log_folder, local_rank);

      stream->path =
          g_build_filename (folder, bit == GTORCH_RUN_OUT ? "stdout.log" : "stderr.log", NULL);
      if (g_mkdir_with_parents (folder, 0777) == 0)
        stream->file = open (stream->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
      if (stream->file < 0)
        {
          const gint code = errno;

          g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code),
                       _ ("%s cannot be written: %s"), stream->path, g_strerror (code));
          return FALSE;
        }
    }
  return g_unix_open_pipe (stream->ends, FD_CLOEXEC, error);
}

static GTorchRunOutput *
stream_read (Stream *stream, const GTorchRunStart *start)
{
  GTorchRunOutput *output =
      gtorch_run_output_new (stream->ends[0], stream->console, stream->prefix, stream->file,
                             start->output_ended, start->output_data);

  stream->ends[0] = stream->file = -1;
  return output;
}

/* --- the process --- */

static gboolean
spawn (GTorchRunWorker *self, const GTorchRunStart *start, const Stream *out, const Stream *err,
       GError **error)
{
  g_auto (GStrv) environment = g_strdupv (start->environment);
  pid_t parent = getpid ();

  environment = g_environ_setenv (environment, "TORCHELASTIC_ERROR_FILE", self->error_file, TRUE);
  /* the program is looked for in this process's PATH, as g_spawn_* () does without a flag */
  return g_spawn_async_with_pipes_and_fds (NULL, (const gchar *const *) start->options->command,
                                           (const gchar *const *) environment,
                                           G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, prepare,
                                           &parent, -1, out->ends[1], err->ends[1], NULL, NULL, 0,
                                           &self->pid, NULL, NULL, NULL, error);
}

static gboolean
watch (GTorchRunWorker *self, const GTorchRunStart *start, GError **error)
{
  const gint fd = (gint) syscall (SYS_pidfd_open, self->pid, 0);
  Watch *data;

  if (fd < 0)
    {
      const gint code = errno;

      g_set_error (error, G_SPAWN_ERROR, G_SPAWN_ERROR_FAILED, "pidfd_open: %s", g_strerror (code));
      return FALSE;
    }
  data = g_new (Watch, 1);
  *data = (Watch){ self, fd, start->ended, start->user_data };
  fcntl (fd, F_SETFD, FD_CLOEXEC);
  self->source = g_unix_fd_add_full (G_PRIORITY_DEFAULT, fd, G_IO_IN, on_ended, data, watch_free);
  return TRUE;
}

GTorchRunWorker *
gtorch_run_worker_new (guint local_rank, guint rank, const GTorchRunStart *start, GError **error)
{
  g_auto (Stream) out = { { -1, -1 }, -1, -1, NULL, NULL },
                  err = { { -1, -1 }, -1, -1, NULL, NULL };
  GTorchRunWorker *self;

  if (!stream_open (&out, start, GTORCH_RUN_OUT, local_rank, rank, error)
      || !stream_open (&err, start, GTORCH_RUN_ERR, local_rank, rank, error))
    return NULL;
  self = g_new0 (GTorchRunWorker, 1);
  self->local_rank = local_rank;
  self->rank = rank;
  self->error_file = g_strdup_printf ("%s/%u.json", start->folder, local_rank);
  self->log_file = g_strdup (err.path);
  g_unlink (self->error_file);
  if (!spawn (self, start, &out, &err, error))
    {
      self->is_reaped = TRUE;
      gtorch_run_worker_free (self);
      return NULL;
    }
  if (!watch (self, start, error))
    {
      kill (self->pid, SIGKILL);
      waitpid (self->pid, NULL, 0);
      gtorch_run_worker_free (self);
      return NULL;
    }
  self->out = stream_read (&out, start);
  self->err = stream_read (&err, start);
  return self;
}

void
gtorch_run_worker_free (GTorchRunWorker *self)
{
  if (self->source != 0)
    g_source_remove (self->source);
  g_clear_pointer (&self->out, gtorch_run_output_unref);
  g_clear_pointer (&self->err, gtorch_run_output_unref);
  g_free (self->error_file);
  g_free (self->log_file);
  g_free (self);
}

void
gtorch_run_worker_kill (GTorchRunWorker *self, gint number)
{
  if (!self->is_reaped && self->pid > 0)
    kill (-self->pid, number);
}

gint
gtorch_run_worker_get_status (const GTorchRunWorker *self)
{
  return WIFEXITED (self->status) ? WEXITSTATUS (self->status) : 128 + WTERMSIG (self->status);
}
