/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The process that serves PMIx to the workers of one round: gtorch-run itself with another argument, started
 * by gtorch-run-mpi.c. PMIx may not be in the agent: when several processes that wait in a fence are killed
 * at once, PMIx 4.2 completes the fence more than once, and goes on with freed memory, so that it crashes
 * or never answers again. This process is killed when the round is over, whatever it does. What it and the
 * agent tell each other are messages on its stdin, a socket. */

#include "config.h"

#include "gtorch-run-private.h"

#include <dlfcn.h>
#include <errno.h>
#include <glib/gi18n-lib.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gtorch/distributed/pmix/gtorch-pmix-table-private.h"

#define MODULE  "libgtorch-pmix-1.so"
#define MESSAGE 512
#define SLICE   100 /* ms, after which it is looked whether a signal has come */

/* --- messages --- */

typedef struct
{
  guint32 kind;
  guint32 size;
} Head;

static gboolean
write_all (gint fd, const gchar *data, gsize size)
{
  while (size > 0)
    {
      const gssize n = send (fd, data, size, MSG_NOSIGNAL);

      if (n < 0 && errno != EINTR)
        return FALSE;
      if (n > 0)
        {
          data += n;
          size -= (gsize) n;
        }
    }
  return TRUE;
}

gboolean
gtorch_run_message_write (gint fd, GTorchRunMessageKind kind, gconstpointer data, gsize size)
{
  const Head head = { kind, (guint32) size };

  return size <= G_MAXUINT32 && write_all (fd, (const gchar *) &head, sizeof head)
         && write_all (fd, data, size);
}

/* Whether there is something to read before the deadline, or the end. */
static gboolean
wait_for (gint fd, gint64 deadline)
{
  struct pollfd one = { fd, POLLIN, 0 };

  for (;;)
    {
      const gint n = poll (&one, 1, deadline < 0 ? -1 : SLICE);

      if (n > 0)
        return TRUE;
      if ((n < 0 && errno != EINTR)
          || (deadline >= 0 && (gtorch_run_is_told () || g_get_monotonic_time () >= deadline)))
        return FALSE;
    }
}

static gboolean
read_all (gint fd, gchar *data, gsize size, gint64 deadline)
{
  while (size > 0)
    {
      gssize n;

      if (!wait_for (fd, deadline))
        return FALSE;
      n = recv (fd, data, size, 0);
      if (n == 0 || (n < 0 && errno != EINTR))
        return FALSE;
      if (n > 0)
        {
          data += n;
          size -= (gsize) n;
        }
    }
  return TRUE;
}

GBytes *
gtorch_run_message_read (gint fd, gint64 deadline, GTorchRunMessageKind *kind)
{
  g_autofree gchar *data = NULL;
  Head head;

  if (!read_all (fd, (gchar *) &head, sizeof head, deadline))
    return NULL;
  data = g_malloc (MAX (head.size, 1));
  if (!read_all (fd, data, head.size, deadline))
    return NULL;
  *kind = head.kind;
  return g_bytes_new_take (g_steal_pointer (&data), head.size);
}

static gboolean
write_text (GTorchRunMessageKind kind, const gchar *text)
{
  return gtorch_run_message_write (STDIN_FILENO, kind, text, strlen (text));
}

/* --- data of all nodes --- */

typedef struct
{
  GTorchPmixDone done;
  void *data;
} Answer;

static GMutex lock;
static GQueue answers = G_QUEUE_INIT; /* Answer *: that are waited for, in their order */
static gboolean is_alone;             /* there is no other node */

static void
gather (void *user_data, const char *data, size_t size, GTorchPmixDone done, void *done_data)
{
  Answer *answer;

  if (is_alone)
    {
      done (size > 0 ? data : "", size, done_data);
      return;
    }
  answer = g_new (Answer, 1);
  *answer = (Answer){ done, done_data };
  g_mutex_lock (&lock);
  g_queue_push_tail (&answers, answer);
  if (!gtorch_run_message_write (STDIN_FILENO, GTORCH_RUN_GATHER, data, size))
    _exit (1);
  g_mutex_unlock (&lock);
}

static void
take_answer (GTorchRunMessageKind kind, GBytes *bytes)
{
  Answer *answer;
  gsize size;
  const gchar *data = g_bytes_get_data (bytes, &size);

  g_mutex_lock (&lock);
  answer = g_queue_pop_head (&answers);
  g_mutex_unlock (&lock);
  if (answer != NULL && kind == GTORCH_RUN_GATHERED)
    answer->done (size > 0 ? data : "", size, answer->data);
  else if (answer != NULL)
    answer->done (NULL, 0, answer->data);
  g_free (answer);
}

/* --- the module --- */

static const GTorchPmixTable *
open_module (void)
{
  const gchar *folder = g_getenv ("GTORCH_MODULE_PATH");
  const GTorchPmixTable *table = NULL;
  g_autofree gchar *path = NULL;
  gpointer module;
  Dl_info info;

  if (folder != NULL && *folder != '\0')
    path = g_build_filename (folder, MODULE, NULL);
  else if (dladdr ((gpointer) gtorch_store_get_type, &info) != 0)
    {
      g_autofree gchar *library = g_path_get_dirname (info.dli_fname);

      path = g_build_filename (library, "gtorch-1", MODULE, NULL);
    }
  module = path == NULL ? NULL : dlopen (path, RTLD_NOW | RTLD_GLOBAL);
  if (module != NULL)
    table = dlsym (module, GTORCH_PMIX_TABLE);
  if (table != NULL && table->abi == GTORCH_PMIX_ABI)
    return table;
  write_text (GTORCH_RUN_ABSENT,
              module == NULL ? dlerror () : _ ("the module is of another version"));
  return NULL;
}

/* --- the job --- */

/* The variables of all workers of this node, each of whom has a list of NAME=VALUE. */
static gboolean
write_variables (const GTorchPmixTable *table, const gchar *job, gint first, gint n)
{
  g_autoptr (GVariant) all = NULL;
  GVariantBuilder builder;
  gint i;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("aaay"));
  for (i = 0; i < n; i++)
    {
      char **variables = table->environment (job, first + i);
      const gchar *const none[] = { NULL };
      const gchar *const *list = variables == NULL ? none : (const gchar *const *) variables;
      guint k;

      g_variant_builder_add_value (&builder, g_variant_new_bytestring_array (list, -1));
      for (k = 0; variables != NULL && variables[k] != NULL; k++)
        free (variables[k]);
      free (variables);
    }
  all = g_variant_ref_sink (g_variant_builder_end (&builder));
  return gtorch_run_message_write (STDIN_FILENO, GTORCH_RUN_READY, g_variant_get_data (all),
                                   g_variant_get_size (all));
}

static gboolean
begin (const GTorchPmixTable *table, GBytes *bytes)
{
  g_autoptr (GVariant) variant =
      g_variant_ref_sink (g_variant_new_from_bytes (GTORCH_RUN_JOB_TYPE, bytes, FALSE));
  g_autoptr (GVariant) counts = NULL;
  g_autofree const gchar **hosts = NULL;
  const gchar *job;
  const gint32 *n_workers;
  gsize n_nodes;
  gint node, first = 0, i;
  gchar message[MESSAGE] = "";

  g_variant_get (variant, "(&s^a&s@aii)", &job, &hosts, &counts, &node);
  n_workers = g_variant_get_fixed_array (counts, &n_nodes, sizeof *n_workers);
  is_alone = n_nodes == 1;
  for (i = 0; i < node; i++)
    first += n_workers[i];
  if (table->add_job (job, hosts, n_workers, (gint) n_nodes, node, message, sizeof message) != 0)
    {
      write_text (GTORCH_RUN_FAILED, message);
      return FALSE;
    }
  return write_variables (table, job, first, n_workers[node]);
}

gint
gtorch_run_pmix (const gchar *folder)
{
  static const GTorchPmixHost host = { gather };
  const GTorchPmixTable *table;
  gchar message[MESSAGE] = "";
  GTorchRunMessageKind kind;
  GBytes *bytes;
  gboolean is_well = TRUE;

  prctl (PR_SET_PDEATHSIG, SIGKILL);
  table = open_module ();
  if (table == NULL)
    return 0;
  if (table->start (folder, &host, NULL, message, sizeof message) != 0)
    {
      write_text (GTORCH_RUN_ABSENT, message);
      return 0;
    }
  /* the end of the socket is that of the agent */
  while (is_well && (bytes = gtorch_run_message_read (STDIN_FILENO, -1, &kind)) != NULL)
    {
      if (kind == GTORCH_RUN_JOB)
        is_well = begin (table, bytes);
      else
        take_answer (kind, bytes);
      g_bytes_unref (bytes);
    }
  _exit (0); /* threads of PMIx's are at work */
}
