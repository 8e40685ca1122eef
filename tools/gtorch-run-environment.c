/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The variables of workers: those that torchrun sets, and where the store is. PyTorch's programs make a
 * store of their own at the address and the port; what gtorch-run serves is not PyTorch's. */

#include "config.h"

#include "gtorch-run-private.h"

static gchar **
set_number (gchar **environment, const gchar *name, guint number)
{
  g_autofree gchar *text = g_strdup_printf ("%u", number);

  return g_environ_setenv (environment, name, text, TRUE);
}

static gchar **
set_threads (gchar **environment, const GTorchRunOptions *options)
{
  if (options->n_workers == 1 || g_environ_getenv (environment, "OMP_NUM_THREADS") != NULL)
    return environment;
  environment = g_environ_setenv (environment, "OMP_NUM_THREADS", "1", TRUE);
  return g_environ_setenv (environment, "GTORCH_NUM_THREADS", "1", FALSE);
}

/* Processes that wait in MPI give way to each other where there are more of them than processors. */
static gchar **
set_yielding (gchar **environment, guint n_workers)
{
  return n_workers <= g_get_num_processors ()
             ? environment
             : g_environ_setenv (environment, "OMPI_MCA_mpi_yield_when_idle", "1", FALSE);
}

gchar **
gtorch_run_environment (const GTorchRunOptions *options, const GTorchRunState *state, guint node,
                        guint local_rank, GTorchRunRendezvous *rendezvous)
{
  const GTorchRunNode *first = state->nodes->pdata[0], *own = state->nodes->pdata[node];
  const gchar *token = gtorch_run_rendezvous_get_token (rendezvous);
  g_autofree gchar *prefix =
      g_strdup_printf ("gtorch-run/%s/workers/%u", options->run_id, state->round);
  const guint rank = gtorch_run_state_count (state, node) + local_rank;
  const guint world_size = gtorch_run_state_count (state, state->nodes->len);
  gchar **result = g_get_environ ();

  result = set_number (result, "RANK", rank);
  result = set_number (result, "LOCAL_RANK", local_rank);
  result = set_number (result, "WORLD_SIZE", world_size);
  result = set_number (result, "LOCAL_WORLD_SIZE", own->n_workers);
  result = set_number (result, "GROUP_RANK", node);
  result = set_number (result, "GROUP_WORLD_SIZE", state->nodes->len);
  result = set_number (result, "ROLE_RANK", rank);
  result = set_number (result, "ROLE_WORLD_SIZE", world_size);
  result = g_environ_setenv (result, "ROLE_NAME", options->role, TRUE);
  result = g_environ_setenv (result, "MASTER_ADDR", first->address, TRUE);
  result = set_number (result, "MASTER_PORT", first->port);
  result = set_number (result, "TORCHELASTIC_RESTART_COUNT", state->restarts);
  result = set_number (result, "TORCHELASTIC_MAX_RESTARTS", options->max_restarts);
  result = g_environ_setenv (result, "TORCHELASTIC_RUN_ID", options->run_id, TRUE);
  result = g_environ_setenv (result, "TORCHELASTIC_USE_AGENT_STORE", "False", TRUE);
  result = g_environ_setenv (result, "GTORCH_STORE_ADDRESS",
                             gtorch_run_rendezvous_get_address (rendezvous), TRUE);
  result = g_environ_setenv (result, "GTORCH_STORE_PREFIX", prefix, TRUE);
  if (token != NULL)
    result = g_environ_setenv (result, "GTORCH_STORE_TOKEN", token, TRUE);
  if (options->hides_gpus)
    result = g_environ_setenv (result, "CUDA_VISIBLE_DEVICES", "", TRUE);
  result = set_yielding (result, own->n_workers);
  return set_threads (result, options);
}
