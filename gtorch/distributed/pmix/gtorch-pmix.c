/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The module that calls PMIx: see gtorch-pmix-table-private.h. gtorch-run is to MPI what a resource
 * manager such as Slurm is: it tells each process its rank, and hands on the addresses at which the processes
 * reach each other. MPI does the rest. It uses nothing of the library and of GLib. */

#include "config.h"

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "distributed/pmix/gtorch-pmix-table-private.h"

static const GTorchPmixHost *host;
static void *host_data;

static int
fail (pmix_status_t status, const char *what, char *message, size_t size)
{
  snprintf (message, size, "%s: %s", what, PMIx_Error_string (status));
  return 1;
}

/* --- calls that end later --- */

typedef struct
{
  pthread_mutex_t lock;
  pthread_cond_t cond;
  int is_done;
  pmix_status_t status;
} Wait;

static void
wait_init (Wait *wait)
{
  pthread_mutex_init (&wait->lock, NULL);
  pthread_cond_init (&wait->cond, NULL);
  wait->is_done = 0;
  wait->status = PMIX_SUCCESS;
}

static void
on_done (pmix_status_t status, void *data)
{
  Wait *wait = data;

  pthread_mutex_lock (&wait->lock);
  wait->status = status;
  wait->is_done = 1;
  pthread_cond_signal (&wait->cond);
  pthread_mutex_unlock (&wait->lock);
}

/* status: what the call returned; PMIX_OPERATION_SUCCEEDED calls nothing back. */
static pmix_status_t
wait_end (Wait *wait, pmix_status_t status)
{
  if (status == PMIX_SUCCESS)
    {
      pthread_mutex_lock (&wait->lock);
      while (!wait->is_done)
        pthread_cond_wait (&wait->cond, &wait->lock);
      status = wait->status;
      pthread_mutex_unlock (&wait->lock);
    }
  pthread_mutex_destroy (&wait->lock);
  pthread_cond_destroy (&wait->cond);
  return status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status;
}

/* --- what PMIx asks --- */

static pmix_status_t
client_finalized (const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *data)
{
  (void) proc;
  (void) object;
  (void) done;
  (void) data;
  return PMIX_OPERATION_SUCCEEDED;
}

/* The process ends itself, with the status; gtorch-run sees that, and ends the others. */
static pmix_status_t
aborted (const pmix_proc_t *proc, void *object, int status, const char message[],
         pmix_proc_t procs[], size_t n_procs, pmix_op_cbfunc_t done, void *data)
{
  (void) proc;
  (void) object;
  (void) status;
  (void) message;
  (void) procs;
  (void) n_procs;
  (void) done;
  (void) data;
  return PMIX_OPERATION_SUCCEEDED;
}

typedef struct
{
  pmix_modex_cbfunc_t done;
  void *data;
} Fence;

static void
on_gathered (const char *data, size_t size, void *fence_data)
{
  Fence *fence = fence_data;
  char *copy = data == NULL ? NULL : malloc (size > 0 ? size : 1);

  if (copy != NULL)
    memcpy (copy, data, size);
  fence->done (copy == NULL ? PMIX_ERR_LOST_CONNECTION : PMIX_SUCCESS, copy,
               copy == NULL ? 0 : size, fence->data, free, copy);
  free (fence);
}

/* Of all processes, or of some of this node, whose data PMIx has. */
static pmix_status_t
fence (const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[], size_t n_info,
       char *data, size_t size, pmix_modex_cbfunc_t done, void *done_data)
{
  Fence *self = malloc (sizeof *self);

  (void) info;
  (void) n_info;
  if (self == NULL)
    return PMIX_ERR_NOMEM;
  *self = (Fence){ done, done_data };
  if (n_procs == 1 && procs[0].rank == PMIX_RANK_WILDCARD)
    host->gather (host_data, data, size, on_gathered, self);
  else
    on_gathered (data, size, self);
  free (data);
  return PMIX_SUCCESS;
}

static pmix_server_module_t callbacks = { .client_finalized = client_finalized,
                                          .abort = aborted,
                                          .fence_nb = fence };

/* --- starting --- */

static int
start (const char *folder, const GTorchPmixHost *with, void *user_data, char *message, size_t size)
{
  pmix_info_t info[2];
  pmix_status_t status;

  host = with;
  host_data = user_data;
  PMIX_INFO_LOAD (&info[0], PMIX_SERVER_TMPDIR, folder, PMIX_STRING);
  PMIX_INFO_LOAD (&info[1], PMIX_SYSTEM_TMPDIR, folder, PMIX_STRING);
  status = PMIx_server_init (&callbacks, info, 2);
  PMIX_INFO_DESTRUCT (&info[0]);
  PMIX_INFO_DESTRUCT (&info[1]);
  if (status != PMIX_SUCCESS)
    return fail (status, "PMIx_server_init", message, size);
  return 0;
}

/* --- a job --- */

typedef struct
{
  pmix_info_t *info;
  size_t n;
} Infos;

static void
add (Infos *infos, const char *key, const void *value, pmix_data_type_t type)
{
  PMIX_INFO_LOAD (&infos->info[infos->n], key, value, type);
  infos->n++;
}

static void
add_number (Infos *infos, const char *key, uint32_t value)
{
  add (infos, key, &value, PMIX_UINT32);
}

/* What is known of one process. */
static void
add_process (Infos *infos, const char *name, uint32_t node, pmix_rank_t rank, uint16_t local_rank)
{
  Infos process = { NULL, 0 };
  pmix_data_array_t *array = malloc (sizeof *array);

  PMIX_DATA_ARRAY_CONSTRUCT (array, 7, PMIX_INFO);
  process.info = array->array;
  add (&process, PMIX_RANK, &rank, PMIX_PROC_RANK);
  add (&process, PMIX_GLOBAL_RANK, &rank, PMIX_PROC_RANK);
  add (&process, PMIX_APP_RANK, &rank, PMIX_PROC_RANK);
  add_number (&process, PMIX_APPNUM, 0);
  add (&process, PMIX_LOCAL_RANK, &local_rank, PMIX_UINT16);
  add (&process, PMIX_NODE_RANK, &local_rank, PMIX_UINT16);
  add_number (&process, PMIX_NODEID, node);
  (void) name;
  snprintf (infos->info[infos->n].key, sizeof infos->info[infos->n].key, "%s", PMIX_PROC_DATA);
  infos->info[infos->n].value.type = PMIX_DATA_ARRAY;
  infos->info[infos->n].value.data.darray = array;
  infos->n++;
}

/* "0,1,2;3,4": the ranks of each node; "a,b": the names of the nodes. */
static void
write_maps (const char *const *hosts, const int *n_workers, int n_nodes, int node, char **names,
            char **ranks, char **local)
{
  size_t size, n_ranks = 0;
  FILE *to_names = open_memstream (names, &size), *to_ranks = open_memstream (ranks, &size);
  FILE *to_local = open_memstream (local, &size);
  int i, k;

  for (i = 0; i < n_nodes; i++)
    {
      fprintf (to_names, "%s%s", i > 0 ? "," : "", hosts[i]);
      if (i > 0)
        fputc (';', to_ranks);
      for (k = 0; k < n_workers[i]; k++)
        {
          fprintf (to_ranks, "%s%zu", k > 0 ? "," : "", n_ranks);
          if (i == node)
            fprintf (to_local, "%s%zu", k > 0 ? "," : "", n_ranks);
          n_ranks++;
        }
    }
  fclose (to_names);
  fclose (to_ranks);
  fclose (to_local);
}

static pmix_status_t
register_job (const char *job, const char *const *hosts, const int *n_workers, int n_nodes,
              int node, int n_ranks)
{
  Infos infos = { NULL, 0 };
  char *names = NULL, *ranks = NULL, *local = NULL, *node_map = NULL, *proc_map = NULL;
  const size_t n_infos = 14 + (size_t) n_ranks;
  pmix_status_t status;
  pmix_rank_t rank = 0;
  Wait wait;
  int i, k;

  write_maps (hosts, n_workers, n_nodes, node, &names, &ranks, &local);
  status = PMIx_generate_regex (names, &node_map);
  if (status == PMIX_SUCCESS)
    status = PMIx_generate_ppn (ranks, &proc_map);
  PMIX_INFO_CREATE (infos.info, n_infos);
  if (status == PMIX_SUCCESS)
    {
      add_number (&infos, PMIX_UNIV_SIZE, n_ranks);
      add_number (&infos, PMIX_JOB_SIZE, n_ranks);
      add_number (&infos, PMIX_MAX_PROCS, n_ranks);
      add_number (&infos, PMIX_LOCAL_SIZE, n_workers[node]);
      add_number (&infos, PMIX_NODE_SIZE, n_workers[node]);
      add_number (&infos, PMIX_NUM_NODES, n_nodes);
      add_number (&infos, PMIX_JOB_NUM_APPS, 1);
      add (&infos, PMIX_JOBID, job, PMIX_STRING);
      add (&infos, PMIX_LOCAL_PEERS, local, PMIX_STRING);
      add (&infos, PMIX_HOSTNAME, hosts[node], PMIX_STRING);
      add_number (&infos, PMIX_NODEID, node);
      add (&infos, PMIX_NODE_MAP, node_map, PMIX_REGEX);
      add (&infos, PMIX_PROC_MAP, proc_map, PMIX_REGEX);
      for (i = 0; i < n_nodes; i++)
        for (k = 0; k < n_workers[i]; k++)
          add_process (&infos, hosts[i], i, rank++, k);
      wait_init (&wait);
      status = wait_end (&wait, PMIx_server_register_nspace (job, n_workers[node], infos.info,
                                                             infos.n, on_done, &wait));
    }
  PMIX_INFO_FREE (infos.info, n_infos);
  free (names);
  free (ranks);
  free (local);
  free (node_map);
  free (proc_map);
  return status;
}

static int
add_job (const char *job, const char *const *hosts, const int *n_workers, int n_nodes, int node,
         char *message, size_t size)
{
  int first = 0, n_ranks = 0, i;
  pmix_status_t status;

  for (i = 0; i < n_nodes; i++)
    {
      first += i < node ? n_workers[i] : 0;
      n_ranks += n_workers[i];
    }
  status = register_job (job, hosts, n_workers, n_nodes, node, n_ranks);
  for (i = 0; status == PMIX_SUCCESS && i < n_workers[node]; i++)
    {
      pmix_proc_t proc;
      Wait wait;

      PMIX_LOAD_PROCID (&proc, job, (pmix_rank_t) (first + i));
      wait_init (&wait);
      status = wait_end (&wait, PMIx_server_register_client (&proc, geteuid (), getegid (), NULL,
                                                             on_done, &wait));
    }
  return status == PMIX_SUCCESS ? 0 : fail (status, "PMIx_server_register", message, size);
}

static char **
environment (const char *job, int rank)
{
  pmix_proc_t proc;
  char **variables = NULL;

  PMIX_LOAD_PROCID (&proc, job, (pmix_rank_t) rank);
  return PMIx_server_setup_fork (&proc, &variables) == PMIX_SUCCESS ? variables : NULL;
}

__attribute__ ((visibility ("default")))
const GTorchPmixTable gtorch_pmix_table = { GTORCH_PMIX_ABI, start, add_job, environment };
