/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Processes that workers have left. gtorch-run is a subreaper, so that a process whose parent ends
 * becomes a child of it: they are ended generation by generation until none is left. */

#include "config.h"

#include "gtorch-run-private.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE    10000 /* microseconds */
#define KILL_AGE 2.0   /* seconds from SIGTERM to SIGKILL */

static gboolean
is_worker (GPtrArray *workers, pid_t pid)
{
  guint i;

  for (i = 0; workers != NULL && i < workers->len; i++)
    {
      const GTorchRunWorker *worker = workers->pdata[i];

      if (worker->pid == pid && !worker->is_reaped)
        return TRUE;
    }
  return FALSE;
}

/* Whether the process is a child of this one; state: of /proc/PID/stat, Z for one that has ended. */
static gboolean
is_child (const gchar *name, gchar *state)
{
  g_autofree gchar *path = g_build_filename ("/proc", name, "stat", NULL);
  g_autofree gchar *text = NULL;
  const gchar *behind;
  int parent;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return FALSE;
  behind = strrchr (text, ')');
  return behind != NULL && sscanf (behind + 1, " %c %d", state, &parent) == 2
         && parent == getpid ();
}

/* Sends a signal, if it is one, to the processes that are left, and returns how many there are. */
static guint
signal_children (GPtrArray *workers, gint number)
{
  g_autoptr (GDir) folder = g_dir_open ("/proc", 0, NULL);
  const gchar *name;
  guint n = 0;

  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL)
    {
      const pid_t pid = (pid_t) g_ascii_strtoll (name, NULL, 10);
      gchar state;

      if (pid <= 0 || !is_child (name, &state) || is_worker (workers, pid))
        continue;
      if (state == 'Z')
        waitpid (pid, NULL, WNOHANG);
      else
        {
          n++;
          if (number != 0)
            kill (pid, number);
        }
    }
  return n;
}

void
gtorch_run_sweep (GPtrArray *workers, gdouble patience)
{
  const gint64 begin = g_get_monotonic_time ();
  gboolean was_told = FALSE;
  guint i;

  for (;;)
    {
      const gdouble age = (gdouble) (g_get_monotonic_time () - begin) / G_USEC_PER_SEC;
      const gboolean is_late = patience <= 0 || age > patience + KILL_AGE;
      const gint number = is_late ? SIGKILL : age > patience && !was_told ? SIGTERM : 0;

      was_told = was_told || number == SIGTERM;
      if (signal_children (workers, number) == 0)
        break;
      g_usleep (PAUSE);
    }
  for (i = 0; workers != NULL && i < workers->len; i++)
    {
      GTorchRunWorker *worker = workers->pdata[i];

      if (worker->end != 0 && !worker->is_reaped)
        {
          waitpid (worker->pid, NULL, 0);
          worker->is_reaped = TRUE;
        }
    }
}
