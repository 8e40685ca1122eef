/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What gtorch-run calls of PMIx, by which workers that use MPI find each other. It is in a module of its own,
 * opened when there is one: jobs without MPI need no PMIx. The process that opens it serves one job, and is
 * killed when that is over: nothing has to be taken back, and calls may wait for PMIx without a limit. */

#pragma once

#include <stddef.h>

#define GTORCH_PMIX_ABI 2

/* Called once, in any thread, when the data of all nodes is there; NULL if it will not come. */
typedef void (*GTorchPmixDone) (const char *data, size_t size, void *done_data);

typedef struct
{
  /* All nodes call this in the same order, each with its data, which ends with the call; done gets the data
   * of all, one behind the other. In a thread of PMIx's, which must not wait. */
  void (*gather) (void *user_data, const char *data, size_t size, GTorchPmixDone done,
                  void *done_data);
} GTorchPmixHost;

/* All functions that can fail return 0, or write a message of at most size bytes. */
typedef struct
{
  int abi;
  /* folder: for sockets and files. */
  int (*start) (const char *folder, const GTorchPmixHost *host, void *user_data, char *message,
                size_t size);
  /* A group of processes, of which this node has n_workers[node]. */
  int (*add_job) (const char *job, const char *const *hosts, const int *n_workers, int n_nodes,
                  int node, char *message, size_t size);
  /* The variables, NAME=VALUE, that make a process this rank of the job; for free (), each and all. */
  char **(*environment) (const char *job, int rank);
} GTorchPmixTable;

#define GTORCH_PMIX_TABLE "gtorch_pmix_table"
