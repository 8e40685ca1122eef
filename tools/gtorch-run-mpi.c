/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Makes workers processes of one MPI. Where MPI's processes are, a server of PMIx tells them; each node
 * has one in gtorch-run, and what they have to tell each other goes through the store. */

#include "config.h"

#include "gtorch-run-private.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODULE  "libgtorch-pmix-1.so"
#define MESSAGE 512

struct _GTorchRunMpi
{
  const GTorchPmixTable *table;
  GMutex lock;
  gchar *job; /* of the round; NULL between rounds */
  GTorchStore *store;
  GCancellable *cancellable;
  guint node, n_nodes;
  guint n_gathers;
  const gchar *memory_folder;
};

/* --- data of all nodes --- */

typedef struct
{
  GTorchStore *store;
  GCancellable *cancellable;
  gchar *key;
  guint node, n_nodes;
  GBytes *data;
  GTorchPmixDone done;
  void *done_data;
} Gather;

static void
gather_free (Gather *gather)
{
  g_object_unref (gather->store);
  g_object_unref (gather->cancellable);
  g_bytes_unref (gather->data);
  g_free (gather->key);
  g_free (gather);
}

static gboolean
exchange (const Gather *gather, GByteArray *all, GError **error)
{
  g_autofree gchar *own = g_strdup_printf ("%s/%u", gather->key, gather->node);
  guint i;

  if (!gtorch_store_set (gather->store, own, gather->data, gather->cancellable, error))
    return FALSE;
  for (i = 0; i < gather->n_nodes; i++)
    {
      g_autofree gchar *key = g_strdup_printf ("%s/%u", gather->key, i);
      const gchar *const keys[] = { key, NULL };
      g_autoptr (GBytes) part = NULL;

      /* processes of other nodes take their time; the end of the round ends the wait */
      if (!gtorch_store_wait (gather->store, keys, INFINITY, gather->cancellable, error)
          || (part = gtorch_store_get (gather->store, key, gather->cancellable, error)) == NULL)
        return FALSE;
      g_byte_array_append (all, g_bytes_get_data (part, NULL), (guint) g_bytes_get_size (part));
    }
  return TRUE;
}

static gpointer
gather_in_thread (gpointer data)
{
  Gather *gather = data;
  g_autoptr (GByteArray) all = g_byte_array_new ();
  g_autoptr (GError) error = NULL;
  const gboolean is_there = exchange (gather, all, &error);

  if (!is_there && !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    gtorch_run_say (_ ("the processes of MPI cannot find each other: %s"), error->message);
  g_byte_array_append (all, (const guint8 *) "", 1); /* data is never NULL */
  gather->done (is_there ? (const char *) all->data : NULL, all->len - 1, gather->done_data);
  gather_free (gather);
  return NULL;
}

static void
gather (void *user_data, const char *data, size_t size, GTorchPmixDone done, void *done_data)
{
  GTorchRunMpi *self = user_data;
  Gather *gather = NULL;

  g_mutex_lock (&self->lock);
  if (self->job != NULL && self->n_nodes > 1)
    {
      gather = g_new (Gather, 1);
      *gather = (Gather){
        g_object_ref (self->store),
        g_object_ref (self->cancellable),
        g_strdup_printf ("pmix/%s/%u", self->job, self->n_gathers++),
        self->node,
        self->n_nodes,
        g_bytes_new (data, size),
        done,
        done_data,
      };
    }
  g_mutex_unlock (&self->lock);
  if (gather != NULL)
    g_thread_unref (g_thread_new ("pmix", gather_in_thread, gather));
  else
    done (size > 0 ? data : "", size, done_data);
}

/* --- the module --- */

static const GTorchPmixTable *
open_module (GError **error)
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
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, "%s",
               module == NULL ? dlerror () : _ ("the module is of another version"));
  return NULL;
}

GTorchRunMpi *
gtorch_run_mpi_new (const GTorchRunFolders *folders, GError **error)
{
  static const GTorchPmixHost host = { gather };
  const GTorchPmixTable *table = open_module (error);
  gchar message[MESSAGE] = "";
  GTorchRunMpi *self;

  if (table == NULL)
    return NULL;
  /* not by files that are mapped, which a process that is killed leaves */
  g_setenv ("PMIX_MCA_gds", "hash", FALSE);
  self = g_new0 (GTorchRunMpi, 1);
  self->table = table;
  self->memory_folder = folders->memory;
  g_mutex_init (&self->lock);
  if (table->start (folders->plain, &host, self, message, sizeof message) == 0)
    return self;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "%s", message);
  g_mutex_clear (&self->lock);
  g_free (self);
  return NULL;
}

void
gtorch_run_mpi_free (GTorchRunMpi *self)
{
  gtorch_run_mpi_end (self);
  self->table->stop ();
  g_mutex_clear (&self->lock);
  g_free (self);
}

gboolean
gtorch_run_mpi_begin (GTorchRunMpi *self, const gchar *run_id, const GTorchRunState *state,
                      guint node, GTorchStore *store, GError **error)
{
  g_autofree gint *n_workers = g_new (gint, state->nodes->len);
  g_autoptr (GPtrArray) hosts = g_ptr_array_new_with_free_func (g_free);
  gchar message[MESSAGE] = "";
  guint i;

  g_mutex_lock (&self->lock);
  self->job = g_strdup_printf ("gtorch-run-%s-%u", run_id, state->round);
  self->store = g_object_ref (store);
  self->cancellable = g_cancellable_new ();
  self->node = node;
  self->n_nodes = state->nodes->len;
  self->n_gathers = 0;
  g_mutex_unlock (&self->lock);
  for (i = 0; i < state->nodes->len; i++)
    {
      const GTorchRunNode *one = state->nodes->pdata[i];

      n_workers[i] = (gint) one->n_workers;
      /* two nodes may be on one host */
      g_ptr_array_add (hosts, g_strdup_printf ("node%u", i));
    }
  if (self->table->add_job (self->job, (const char *const *) hosts->pdata, n_workers,
                            (gint) state->nodes->len, (gint) node, message, sizeof message)
      == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "%s", message);
  return FALSE;
}

void
gtorch_run_mpi_end (GTorchRunMpi *self)
{
  if (self->job == NULL)
    return;
  g_cancellable_cancel (self->cancellable);
  self->table->remove_job (self->job);
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->job, g_free);
  g_clear_object (&self->store);
  g_clear_object (&self->cancellable);
  g_mutex_unlock (&self->lock);
}

/* Of another MPI that has started gtorch-run. */
static gboolean
is_foreign (const gchar *variable)
{
  return g_str_has_prefix (variable, "PMIX_") || g_str_has_prefix (variable, "PMI_")
         || g_str_has_prefix (variable, "OMPI_COMM_WORLD_")
         || g_str_has_prefix (variable, "OMPI_MCA_orte_")
         || g_str_has_prefix (variable, "OMPI_MCA_ess=");
}

gchar **
gtorch_run_mpi_environment (GTorchRunMpi *self, gchar **environment, guint rank)
{
  gchar **result = g_new0 (gchar *, 1), **variables;
  guint i;

  for (i = 0; environment[i] != NULL; i++)
    if (!is_foreign (environment[i]) || g_str_has_prefix (environment[i], "PMIX_MCA_"))
      {
        gchar *end = strchr (environment[i], '=');
        g_autofree gchar *name =
            end == NULL ? NULL : g_strndup (environment[i], end - environment[i]);

        if (name != NULL)
          result = g_environ_setenv (result, name, end + 1, TRUE);
      }
  g_strfreev (environment);
  variables = self->table->environment (self->job, (int) rank);
  for (i = 0; variables != NULL && variables[i] != NULL; i++)
    {
      gchar *end = strchr (variables[i], '=');

      if (end != NULL)
        {
          *end = '\0';
          result = g_environ_setenv (result, variables[i], end + 1, TRUE);
        }
      free (variables[i]);
    }
  free (variables);
  /* Open MPI 4 takes a process that neither its own mpirun nor a manager that it knows by name has
   * started for one that is alone. These say that PMIx is to be asked. */
  result = g_environ_setenv (result, "OMPI_MCA_schizo", "^orte,slurm,jsm,flux", TRUE);
  result = g_environ_setenv (result, "OMPI_MCA_ess", "pmi", TRUE);
  /* where processes that are killed leave nothing, and nodes of one host have other files */
  return g_environ_setenv (result, "OMPI_MCA_btl_vader_backing_directory", self->memory_folder,
                           FALSE);
}
