/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Starts several processes that compute together.
 *
 * There are two processes of gtorch-run. The one that the user starts hands signals on and waits; the
 * other one, the agent, is its child and runs the workers, with a further one that serves PMIx to them
 * (gtorch-run-pmix.c). No process is left behind by any of them:
 * workers end with the agent (PR_SET_PDEATHSIG), the agent ends them and what they have started when
 * the first process is gone (a pipe), and what they have started becomes a child of the first process
 * when the agent is killed (PR_SET_CHILD_SUBREAPER), which ends it. */

#include "config.h"

#include "gtorch-run-private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <glib/gi18n-lib.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void
gtorch_run_say (const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list arguments;

  va_start (arguments, format);
  text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_printerr ("gtorch-run: %s\n", text);
}

static void
fill_set (sigset_t *set, const gint *signals)
{
  sigemptyset (set);
  sigaddset (set, SIGCHLD);
  for (; *signals != 0; signals++)
    sigaddset (set, *signals);
}

/* The status of the agent. */
static gint
wait_for (pid_t agent, const sigset_t *set)
{
  int number, status;

  for (;;)
    {
      const pid_t pid = waitpid (agent, &status, WNOHANG);

      if (pid == agent)
        break;
      if (sigwait (set, &number) == 0 && number != SIGCHLD)
        kill (agent, number);
    }
  gtorch_run_sweep (NULL, 0);
  if (WIFEXITED (status))
    return WEXITSTATUS (status);
  gtorch_run_say (_ ("the process that runs the workers was ended by signal %d (%s)"),
                  WTERMSIG (status), gtorch_run_signal_name (WTERMSIG (status)));
  return 128 + WTERMSIG (status);
}

/* In a process group of its own, so that a signal of the terminal comes once, from the first process. */
static gint
run_agent (const GTorchRunOptions *options, const GTorchRunFolders *folders, const sigset_t *former,
           gint parent)
{
  setpgid (0, 0);
  return gtorch_run_agent (options, folders, former, parent);
}

int
main (int argc, char *argv[])
{
  g_autoptr (GTorchRunOptions) options = NULL;
  g_autoptr (GError) error = NULL;
  sigset_t set, former;
  GTorchRunFolders folders;
  gint ends[2], status;
  pid_t agent;

  setlocale (LC_ALL, "");
  g_set_prgname ("gtorch-run");
  if (getauxval (AT_SECURE) != 0)
    {
      gtorch_run_say (_ ("this process has rights that its user lacks, which the program that it "
                         "starts would get"));
      return 2;
    }
  if (argc == 3 && strcmp (argv[1], GTORCH_RUN_PMIX) == 0)
    return gtorch_run_pmix (argv[2]);
  options = gtorch_run_options_parse (argv, &error);
  if (options == NULL)
    {
      if (error != NULL)
        gtorch_run_say ("%s", error->message);
      return error != NULL ? 2 : 0;
    }
  if (!g_unix_open_pipe (ends, FD_CLOEXEC, &error) || !gtorch_run_folders_make (&folders, &error))
    {
      gtorch_run_say ("%s", error->message);
      return 1;
    }
  prctl (PR_SET_CHILD_SUBREAPER, 1);
  fill_set (&set, options->signals);
  sigprocmask (SIG_BLOCK, &set, &former);
  agent = fork ();
  if (agent == 0)
    {
      close (ends[1]);
      status = run_agent (options, &folders, &former, ends[0]);
    }
  else
    {
      close (ends[0]);
      status = agent > 0 ? wait_for (agent, &set) : 1;
    }
  if (agent < 0)
    gtorch_run_say ("fork: %s", g_strerror (errno));
  gtorch_run_folders_remove (&folders);
  return status;
}
