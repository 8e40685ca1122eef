/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What is said of workers that have failed: in the form of torchrun, which programs look for. */

#include "config.h"

#include "gtorch-run-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <sys/wait.h>

#include <base/gtorch-json-private.h>

#define THICK "============================================================"
#define THIN  "------------------------------------------------------------"

gchar *
gtorch_run_worker_describe (const GTorchRunWorker *worker)
{
  if (WIFSIGNALED (worker->status))
    return g_strdup_printf (_ ("rank %u (local rank %u, pid %d) was ended by signal %d (%s)"),
                            worker->rank, worker->local_rank, worker->pid,
                            WTERMSIG (worker->status),
                            gtorch_run_signal_name (WTERMSIG (worker->status)));
  return g_strdup_printf (_ ("rank %u (local rank %u, pid %d) has ended with exit code %d"),
                          worker->rank, worker->local_rank, worker->pid,
                          WEXITSTATUS (worker->status));
}

/* What record () of Python, and PyTorch's, have written: the traceback, or at least the message. NULL for
 * another text. */
static gchar *
read_record (const gchar *text)
{
  g_autoptr (GTorchJson) json = gtorch_json_parse ("gtorch-run", text, strlen (text), NULL);
  const GTorchJsonNode *message, *part;

  if (json == NULL)
    return NULL;
  message = gtorch_json_lookup (gtorch_json_get_root (json), "message");
  part = message == NULL
             ? NULL
             : gtorch_json_lookup (gtorch_json_lookup (message, "extraInfo"), "py_callstack");
  if (part == NULL && message != NULL)
    part = message->kind == GTORCH_JSON_STRING ? message : gtorch_json_lookup (message, "message");
  return part == NULL || part->kind != GTORCH_JSON_STRING ? NULL : g_strdup (part->string);
}

/* What the worker has said about its end: in the file that TORCHELASTIC_ERROR_FILE names, or at the end
 * of its stderr. */
static gchar *
find_text (const GTorchRunWorker *worker)
{
  g_autofree gchar *text = NULL;

  if (g_file_get_contents (worker->error_file, &text, NULL, NULL) && *text != '\0')
    {
      gchar *valid = g_utf8_make_valid (g_strchomp (text), -1);
      gchar *record = read_record (valid);

      if (record == NULL)
        return valid;
      g_free (valid);
      return g_strchomp (record);
    }
  return gtorch_run_output_get_tail (worker->err);
}

static void
print_worker (const GTorchRunWorker *worker, guint place)
{
  g_autoptr (GDateTime) time = g_date_time_new_from_unix_local (worker->end / G_USEC_PER_SEC);
  g_autofree gchar *when = g_date_time_format (time, "%Y-%m-%d_%H:%M:%S");
  g_autofree gchar *text = find_text (worker);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  guint i;

  g_printerr ("[%u]:\n  time      : %s\n  host      : %s\n  rank      : %u (local_rank: %u)\n",
              place, when, g_get_host_name (), worker->rank, worker->local_rank);
  if (WIFSIGNALED (worker->status))
    g_printerr ("  exitcode  : -%d (pid: %d)\n", WTERMSIG (worker->status), worker->pid);
  else
    g_printerr ("  exitcode  : %d (pid: %d)\n", WEXITSTATUS (worker->status), worker->pid);
  g_printerr ("  log_file  : %s\n", worker->log_file != NULL ? worker->log_file : "<N/A>");
  if (WIFSIGNALED (worker->status))
    g_printerr ("  traceback : Signal %d (%s) received by PID %d\n", WTERMSIG (worker->status),
                gtorch_run_signal_name (WTERMSIG (worker->status)), worker->pid);
  else if (*text == '\0')
    g_printerr ("  traceback : <N/A>\n");
  if (*text == '\0')
    return;
  g_printerr (WIFSIGNALED (worker->status) ? "  %s\n" : "  traceback : %s\n", lines[0]);
  for (i = 1; lines[i] != NULL; i++)
    g_printerr ("  %s\n", lines[i]);
}

static gint
compare_ends (gconstpointer a, gconstpointer b)
{
  const GTorchRunWorker *first = *(GTorchRunWorker *const *) a;
  const GTorchRunWorker *second = *(GTorchRunWorker *const *) b;

  return first->end < second->end ? -1 : first->end > second->end;
}

void
gtorch_run_report (const GTorchRunOptions *options, GPtrArray *failed)
{
  guint i;

  g_ptr_array_sort (failed, compare_ends);
  g_printerr ("%s\n%s FAILED\n%s\nFailures:\n", THICK, options->name, THIN);
  if (failed->len == 1)
    g_printerr ("  <NO_OTHER_FAILURES>\n");
  for (i = 1; i < failed->len; i++)
    print_worker (failed->pdata[i], i);
  g_printerr ("%s\nRoot Cause (first observed failure):\n", THIN);
  print_worker (failed->pdata[0], 0);
  g_printerr ("%s\n", THICK);
}
