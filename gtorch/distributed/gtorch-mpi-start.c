/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Opens the module that calls MPI, and starts MPI. */

#include "config.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-error.h"
#include "distributed/gtorch-mpi-engine-private.h"
#include "distributed/gtorch-mpi-meeting-private.h"
#include "gtorch-ops-private.h"

#define MODULE  "libgtorch-mpi-1.so"
#define MESSAGE 512

static const GTorchMpiTable *
open_module (GError **error)
{
  const gchar *folder = gtorch_getenv ("GTORCH_MODULE_PATH");
  g_autofree gchar *path = NULL;
  const GTorchMpiTable *table = NULL;
  gpointer module;
  Dl_info info;

  if (folder != NULL)
    path = g_build_filename (folder, MODULE, NULL);
  else if (dladdr ((gpointer) gtorch_mpi_load, &info) != 0)
    {
      g_autofree gchar *own = g_path_get_dirname (info.dli_fname);

      path = g_build_filename (own, "gtorch-1", MODULE, NULL);
    }
  module = path == NULL ? NULL : gtorch_library_open (path, RTLD_NOW | RTLD_GLOBAL);
  if (module != NULL)
    table = dlsym (module, GTORCH_MPI_TABLE);
  if (table != NULL && table->abi == GTORCH_MPI_ABI)
    return table;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("mpi: the module %s cannot be used (%s); it is built where MPI is installed, "
                  "with its headers (Debian: libopenmpi-dev)"),
               path != NULL ? path : MODULE,
               module == NULL ? gtorch_library_error () : _ ("it is of another version"));
  return NULL;
}

const GTorchMpiTable *
gtorch_mpi_load (GError **error)
{
  static GMutex lock;
  static const GTorchMpiTable *table;

  g_mutex_lock (&lock);
  if (table == NULL)
    table = open_module (error);
  g_mutex_unlock (&lock);
  return table;
}

static gboolean
has_variables (void)
{
  static const gchar *const names[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK",
                                        "MPI_LOCALNRANKS" };
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (names); i++)
    if (gtorch_getenv (names[i]) != NULL)
      return TRUE;
  return FALSE;
}

/* --- starting --- */

/* MPI waits for all processes when it starts, without end, so that it does so in a thread. One that has
 * waited in vain stays; the next attempt waits for it. */
typedef struct
{
  GMutex lock;
  GCond changed;
  gboolean is_under_way, is_ready;
  gboolean was_launched; /* before MPI started */
  GStrv variables;       /* of MPI's, at that time */
  GTorchMpiEnd before_end;
  gint rank, size;
  gchar message[MESSAGE];
} Start;

static Start start;

gboolean
gtorch_mpi_is_launched (void)
{
  gboolean result;

  g_mutex_lock (&start.lock);
  result = start.variables != NULL ? start.was_launched : has_variables ();
  g_mutex_unlock (&start.lock);
  return result;
}

/* MPI sets variables in a process that nobody has launched, by which its children would take themselves for
 * ranks. */
static const gchar *const prefixes[] = { "OMPI_", "PMIX_", "PMI_", "PRTE_", "ORTE_", NULL };

static gpointer
run_start (gpointer data)
{
  const GTorchMpiTable *mpi = data;
  gchar message[MESSAGE] = "";
  gint rank = 0, size = 0;
  const gboolean is_ready =
      mpi->init (&rank, &size, start.before_end, message, sizeof message) == 0;

  g_mutex_lock (&start.lock);
  if (!start.was_launched)
    gtorch_env_keep_only (prefixes, start.variables);
  start.rank = rank;
  start.size = size;
  g_strlcpy (start.message, message, sizeof start.message);
  start.is_ready = is_ready;
  start.is_under_way = FALSE;
  g_cond_broadcast (&start.changed);
  g_mutex_unlock (&start.lock);
  return NULL;
}

static void
on_cancelled (GCancellable *cancellable, gpointer data)
{
  g_mutex_lock (&start.lock);
  g_cond_broadcast (&start.changed);
  g_mutex_unlock (&start.lock);
}

/* The lock must be held. */
static gboolean
wait_for_start (const GTorchMpiMeeting *meeting, GError **error)
{
  while (start.is_under_way)
    {
      const gint64 now = g_get_monotonic_time ();

      if (g_cancellable_set_error_if_cancelled (meeting->cancellable, error))
        return FALSE;
      if (now > meeting->deadline)
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                       _ ("%s: MPI has waited %g seconds for all processes to start it: one has "
                          "not "
                          "come, or is gone"),
                       meeting->name, meeting->timeout);
          return FALSE;
        }
      g_cond_wait_until (&start.changed, &start.lock,
                         MIN (meeting->deadline, now + G_TIME_SPAN_HOUR));
    }
  if (!start.is_ready)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("mpi: %s"), start.message);
  return start.is_ready;
}

gboolean
gtorch_mpi_start (const GTorchMpiMeeting *meeting, GTorchMpiEnd before_end, gint *rank, gint *size,
                  GError **error)
{
  const GTorchMpiTable *mpi = gtorch_mpi_load (error);
  gulong handler = 0;
  gboolean result = mpi != NULL;

  if (mpi == NULL)
    return FALSE;
  if (meeting->cancellable != NULL)
    handler = g_cancellable_connect (meeting->cancellable, G_CALLBACK (on_cancelled), NULL, NULL);
  g_mutex_lock (&start.lock);
  if (!start.is_ready && !start.is_under_way)
    {
      GThread *thread;

      start.before_end = before_end;
      if (start.variables == NULL)
        {
          start.was_launched = has_variables ();
          start.variables = gtorch_env_list (prefixes);
        }
      thread = g_thread_try_new ("gtorch-mpi-start", run_start, (gpointer) mpi, error);
      start.is_under_way = result = thread != NULL;
      g_clear_pointer (&thread, g_thread_unref);
    }
  result = result && wait_for_start (meeting, error);
  *rank = start.rank;
  *size = start.size;
  g_mutex_unlock (&start.lock);
  g_cancellable_disconnect (meeting->cancellable, handler);
  return result;
}
