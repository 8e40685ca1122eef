/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "distributed/nccl/gtorch-nccl-private.h"

G_BEGIN_DECLS

typedef struct
{
  NcclComm *comm;    /* NULL: of another process, or gone */
  GThread *thread;   /* that used it last; only compared */
  gboolean has_come; /* to the next collective */
  guint given_up;    /* the number of the collective, from 1, for which it does not wait any more */
} NcclMember;

/* The ranks of a communicator that are threads of this process. What is not said otherwise is protected by
 * gtorch_nccl_local_lock. */
struct _NcclLocal
{
  gint ref_count;
  GBytes *id; /* NCCL's number of the communicator */
  guint n;    /* ranks, also of other processes */
  NcclMember *members;
  guint n_ranks;       /* of this process; final when the ranks are connected */
  guint n_come;        /* ranks that are at the next collective */
  guint n_to_launch;   /* ranks that have not launched the last one */
  guint n_met, n_left; /* collectives that all ranks have come to, and have launched */
  GMutex
      launching; /* held while messages find each other and are launched; taken before the lock */
  GQueue posted; /* NcclOp: messages whose other half has not come, in order */
  GQueue alone;  /* NcclOp: those that were launched without it */
};

extern GMutex gtorch_nccl_local_lock;

typedef enum
{
  NCCL_WAIT_OVER,
  NCCL_WAIT_LATE,  /* the deadline is over */
  NCCL_WAIT_STUCK, /* the thread of the rank waits for this one, directly or through others */
} NcclWait;

#define NCCL_LATE_RANKS -1 /* all that have not come to a collective */
#define NCCL_BUSY_RANKS -2 /* those that are launching */

/* Waits, with the lock, for the thread of a rank, or for several, until the function returns TRUE. */
NcclWait gtorch_nccl_local_wait (NcclComm *comm, gint rank,
                                 gboolean (*is_over) (gconstpointer data), gconstpointer data,
                                 gint64 deadline);

G_END_DECLS
