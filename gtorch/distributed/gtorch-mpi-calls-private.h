/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Whether the ranks of a group call the same: MPI writes behind the end of what it was given where sizes
 * differ. Before a collective the ranks add up some numbers, and where these tell that calls differ they
 * exchange descriptions of them. */

#pragma once

#include "distributed/gtorch-engine-private.h"

G_BEGIN_DECLS

typedef enum
{
  GTORCH_MPI_SUM_OF_CALLS,  /* size times that of each rank, if all call the same */
  GTORCH_MPI_SUM_OF_COUNTS, /* 0 if each rank expects what the others send it */
  GTORCH_MPI_SUM_OF_WISHES, /* of the ranks that want later calls compared as well */
  GTORCH_MPI_N_SUMS
} GTorchMpiSum;

/* The numbers of this rank. */
void gtorch_mpi_calls_begin (const GTorchCollective *collective, gint rank, gint size,
                             gboolean goes_on, gint64 sums[GTORCH_MPI_N_SUMS]);
gboolean gtorch_mpi_calls_are_alike (const gint64 own[GTORCH_MPI_N_SUMS],
                                     const gint64 all[GTORCH_MPI_N_SUMS], gint size);

/* A description, which has as many bytes on all ranks. */
gsize gtorch_mpi_calls_record_size (gint size);
void gtorch_mpi_calls_describe (const GTorchCollective *collective, gint size, gint64 sum,
                                gpointer record);
/* Sets an error that names the first difference between the records of all ranks. */
void gtorch_mpi_calls_tell (const GTorchCollective *collective, guint64 sequence, gint size,
                            gconstpointer records, GError **error);

G_END_DECLS
