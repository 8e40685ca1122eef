/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Makes workers processes of one MPI. Where MPI's processes are, a server of PMIx tells them; each node
 * has one for each round, in a process of its own (gtorch-run-pmix.c), and what they have to tell each other
 * goes through the store. */

#include "config.h"

#include "gtorch-run-private.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_TIME 20 /* seconds; it takes less than one */

/* The socket to the process, and what the thread that serves it needs; the last one that uses it ends it. */
typedef struct
{
  gint fd;
  gint n_users;
  GTorchStore *store;
  GCancellable *cancellable;
  gchar *job;
  guint node, n_nodes;
} Link;

struct _GTorchRunMpi
{
  const GTorchRunFolders *folders;
  GPid pid; /* 0: none runs */
  Link *link;
  GVariant *variables; /* of the workers of the round; NULL between rounds, and without PMIx */
  guint first;         /* the rank of the first one */
  gboolean is_absent;  /* there is no PMIx */
};

static void
link_unref (Link *link)
{
  if (!g_atomic_int_dec_and_test (&link->n_users))
    return;
  close (link->fd);
  g_clear_object (&link->store);
  g_object_unref (link->cancellable);
  g_free (link->job);
  g_free (link);
}

/* --- data of all nodes --- */

static gboolean
exchange (const Link *link, guint place, GBytes *data, GByteArray *all, GError **error)
{
  g_autofree gchar *prefix = g_strdup_printf ("pmix/%s/%u", link->job, place);
  g_autofree gchar *own = g_strdup_printf ("%s/%u", prefix, link->node);
  guint i;

  if (!gtorch_store_set (link->store, own, data, link->cancellable, error))
    return FALSE;
  for (i = 0; i < link->n_nodes; i++)
    {
      g_autofree gchar *key = g_strdup_printf ("%s/%u", prefix, i);
      const gchar *const keys[] = { key, NULL };
      g_autoptr (GBytes) part = NULL;

      /* processes of other nodes take their time; the end of the round ends the wait */
      if (!gtorch_store_wait (link->store, keys, INFINITY, link->cancellable, error)
          || (part = gtorch_store_get (link->store, key, link->cancellable, error)) == NULL)
        return FALSE;
      g_byte_array_append (all, g_bytes_get_data (part, NULL), (guint) g_bytes_get_size (part));
    }
  return TRUE;
}

static gpointer
serve (gpointer data)
{
  Link *link = data;
  GTorchRunMessageKind kind;
  gboolean is_well = TRUE;
  GBytes *bytes;
  guint n;

  for (n = 0; is_well && (bytes = gtorch_run_message_read (link->fd, -1, &kind)) != NULL; n++)
    {
      g_autoptr (GByteArray) all = g_byte_array_new ();
      g_autoptr (GError) error = NULL;
      const gboolean is_there = exchange (link, n, bytes, all, &error);

      if (!is_there && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        gtorch_run_say (_ ("the processes of MPI cannot find each other: %s"), error->message);
      is_well =
          gtorch_run_message_write (link->fd, is_there ? GTORCH_RUN_GATHERED : GTORCH_RUN_LOST,
                                    all->data, is_there ? all->len : 0);
      g_bytes_unref (bytes);
    }
  link_unref (link);
  return NULL;
}

/* --- the process --- */

static gboolean
spawn (GTorchRunMpi *self, GError **error)
{
  const gchar *const command[] = { "/proc/self/exe", "gtorch-run", GTORCH_RUN_PMIX,
                                   self->folders->plain, NULL };
  const struct timeval limit = { ANSWER_TIME, 0 };
  gint ends[2];
  gboolean is_well;

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    {
      g_set_error (error, G_SPAWN_ERROR, G_SPAWN_ERROR_FAILED, "socketpair: %s",
                   g_strerror (errno));
      return FALSE;
    }
  setsockopt (ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  is_well =
      g_spawn_async_with_pipes_and_fds (NULL, command, NULL,
                                        G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_FILE_AND_ARGV_ZERO,
                                        NULL, NULL, ends[1], -1, -1, NULL, NULL, 0, &self->pid,
                                        NULL, NULL, NULL, error);
  close (ends[1]);
  if (!is_well)
    {
      close (ends[0]);
      return FALSE;
    }
  self->link = g_new0 (Link, 1);
  self->link->fd = ends[0];
  self->link->n_users = 1;
  self->link->cancellable = g_cancellable_new ();
  return TRUE;
}

GTorchRunMpi *
gtorch_run_mpi_new (const GTorchRunFolders *folders)
{
  GTorchRunMpi *self = g_new0 (GTorchRunMpi, 1);
  g_autoptr (GError) error = NULL;

  /* not by files that are mapped, which a process that is killed leaves */
  g_setenv ("PMIX_MCA_gds", "hash", FALSE);
  self->folders = folders;
  /* it gets ready while the nodes find each other */
  if (!spawn (self, &error))
    g_debug ("no MPI: %s", error->message);
  return self;
}

void
gtorch_run_mpi_free (GTorchRunMpi *self)
{
  gtorch_run_mpi_end (self);
  g_free (self);
}

static GVariant *
describe (const gchar *job, const GTorchRunState *state, guint node)
{
  GVariantBuilder hosts, n_workers;
  guint i;

  g_variant_builder_init (&hosts, G_VARIANT_TYPE ("as"));
  g_variant_builder_init (&n_workers, G_VARIANT_TYPE ("ai"));
  for (i = 0; i < state->nodes->len; i++)
    {
      const GTorchRunNode *one = state->nodes->pdata[i];
      g_autofree gchar *name = g_strdup_printf ("node%u", i); /* two nodes may be on one host */

      g_variant_builder_add (&hosts, "s", name);
      g_variant_builder_add (&n_workers, "i", (gint) one->n_workers);
    }
  return g_variant_ref_sink (g_variant_new ("(sasaii)", job, &hosts, &n_workers, (gint) node));
}

/* Takes what the process answers to the job. */
static gboolean
take_answer (GTorchRunMpi *self, GError **error)
{
  const gint64 deadline = g_get_monotonic_time () + ANSWER_TIME * G_USEC_PER_SEC;
  g_autoptr (GBytes) bytes = NULL;
  GTorchRunMessageKind kind;

  bytes = gtorch_run_message_read (self->link->fd, deadline, &kind);
  if (bytes != NULL && kind == GTORCH_RUN_READY)
    self->variables =
        g_variant_ref_sink (g_variant_new_from_bytes (G_VARIANT_TYPE ("aaay"), bytes, FALSE));
  else if (bytes != NULL && kind == GTORCH_RUN_ABSENT)
    {
      self->is_absent = TRUE;
      g_debug ("no MPI: %.*s", (int) g_bytes_get_size (bytes),
               (const gchar *) g_bytes_get_data (bytes, NULL));
    }
  else if (bytes != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "%.*s", (int) g_bytes_get_size (bytes),
                 (const gchar *) g_bytes_get_data (bytes, NULL));
  else if (g_get_monotonic_time () < deadline)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("the process that serves PMIx to the workers has ended"));
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("the process that serves PMIx to the workers has not answered in %d seconds"),
                 ANSWER_TIME);
  return bytes != NULL && kind != GTORCH_RUN_FAILED;
}

gboolean
gtorch_run_mpi_begin (GTorchRunMpi *self, const gchar *run_id, const GTorchRunState *state,
                      guint node, GTorchStore *store, GError **error)
{
  g_autoptr (GVariant) job = NULL;
  Link *link;

  if (self->is_absent)
    return TRUE;
  if (self->pid == 0 && !spawn (self, error))
    return FALSE;
  link = self->link;
  link->job = g_strdup_printf ("gtorch-run-%s-%u", run_id, state->round);
  link->store = g_object_ref (store);
  link->node = node;
  link->n_nodes = state->nodes->len;
  self->first = gtorch_run_state_count (state, node);
  job = describe (link->job, state, node);
  /* a process that has ended has said why */
  gtorch_run_message_write (link->fd, GTORCH_RUN_JOB, g_variant_get_data (job),
                            g_variant_get_size (job));
  if (!take_answer (self, error))
    {
      gtorch_run_mpi_end (self);
      return FALSE;
    }
  if (self->variables != NULL && link->n_nodes > 1)
    {
      g_atomic_int_inc (&link->n_users);
      g_thread_unref (g_thread_new ("pmix", serve, link));
    }
  return TRUE;
}

void
gtorch_run_mpi_end (GTorchRunMpi *self)
{
  gint status;

  g_clear_pointer (&self->variables, g_variant_unref);
  if (self->pid == 0)
    return;
  if (waitpid (self->pid, &status, WNOHANG) == self->pid)
    {
      if (WIFSIGNALED (status))
        gtorch_run_say (_ ("the process that serves PMIx to the workers was ended by signal %d "
                           "(%s)"),
                        WTERMSIG (status), gtorch_run_signal_name (WTERMSIG (status)));
    }
  else
    {
      kill (self->pid, SIGKILL);
      waitpid (self->pid, NULL, 0);
    }
  self->pid = 0;
  g_cancellable_cancel (self->link->cancellable);
  shutdown (self->link->fd, SHUT_RDWR);
  g_clear_pointer (&self->link, link_unref);
}

/* --- variables --- */

/* Of another MPI that has started gtorch-run. */
static gboolean
is_foreign (const gchar *variable)
{
  return g_str_has_prefix (variable, "PMIX_") || g_str_has_prefix (variable, "PMI_")
         || g_str_has_prefix (variable, "OMPI_COMM_WORLD_")
         || g_str_has_prefix (variable, "OMPI_MCA_orte_")
         || g_str_has_prefix (variable, "OMPI_MCA_ess=");
}

/* Variables is a list of NAME=VALUE. */
static gchar **
set_all (gchar **environment, const gchar *const *variables,
         gboolean (*is_left_out) (const gchar *))
{
  for (; *variables != NULL; variables++)
    {
      const gchar *end = strchr (*variables, '=');
      g_autofree gchar *name = end == NULL ? NULL : g_strndup (*variables, end - *variables);

      if (name != NULL && (is_left_out == NULL || !is_left_out (*variables)))
        environment = g_environ_setenv (environment, name, end + 1, TRUE);
    }
  return environment;
}

static gboolean
is_left_out (const gchar *variable)
{
  return is_foreign (variable) && !g_str_has_prefix (variable, "PMIX_MCA_");
}

gchar **
gtorch_run_mpi_environment (GTorchRunMpi *self, gchar **environment, guint rank)
{
  gchar **result = g_new0 (gchar *, 1);
  g_autoptr (GVariant) own = NULL;
  g_autofree const gchar **variables = NULL;

  if (self->variables == NULL)
    {
      g_free (result);
      return environment;
    }
  result = set_all (result, (const gchar *const *) environment, is_left_out);
  g_strfreev (environment);
  own = g_variant_get_child_value (self->variables, rank - self->first);
  variables = g_variant_get_bytestring_array (own, NULL);
  result = set_all (result, variables, NULL);
  /* Open MPI 4 takes a process that neither its own mpirun nor a manager that it knows by name has
   * started for one that is alone. These say that PMIx is to be asked. */
  result = g_environ_setenv (result, "OMPI_MCA_schizo", "^orte,slurm,jsm,flux", TRUE);
  result = g_environ_setenv (result, "OMPI_MCA_ess", "pmi", TRUE);
  /* where processes that are killed leave nothing, and nodes of one host have other files */
  return g_environ_setenv (result, "OMPI_MCA_btl_vader_backing_directory", self->folders->memory,
                           FALSE);
}
