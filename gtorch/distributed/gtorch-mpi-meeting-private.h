/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The ranks of a new group of MPI come together before MPI connects them, which waits without end. */

#pragma once

#include <gio/gio.h>

#include "distributed/mpi/gtorch-mpi-table-private.h"

G_BEGIN_DECLS

#define GTORCH_MPI_ID 33

typedef struct
{
  const gchar *name;  /* of the operation, for errors */
  const gchar *whole; /* the group of which a part is made, by its id; "" for a group of all */
  gint number;        /* of the part; the same on all ranks */
  const gint *ranks;  /* in the group of all; NULL for all of them */
  guint n;
  gint own; /* this rank */
  gdouble timeout;
  gint64 deadline;
  GCancellable *cancellable;
  gchar id[GTORCH_MPI_ID]; /* set: the new group, the same on all ranks */
} GTorchMpiMeeting;

/* Starts MPI, unless it is there; of the meeting it looks at how long to wait. */
gboolean gtorch_mpi_start (const GTorchMpiMeeting *meeting, GTorchMpiEnd before_end, gint *rank,
                           gint *size, GError **error);

/* Connects all ranks for their meetings, before the first one: they may come in any order. A call that has
 * failed may be repeated. */
gboolean gtorch_mpi_join (const GTorchMpiMeeting *meeting, GError **error);

/* Waits until all ranks are here with the same list, and makes a communicator of them. They all get an error
 * otherwise, which says what differs, or who is missing. */
gpointer gtorch_mpi_meet (GTorchMpiMeeting *meeting, GError **error);

G_END_DECLS
