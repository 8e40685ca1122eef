/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

#include "distributed/mpi/gtorch-mpi-table-private.h"

G_BEGIN_DECLS

/* Opens the module that calls MPI, once; NULL with an error if that, or MPI itself, is not installed. */
const GTorchMpiTable *gtorch_mpi_load (GError **error);

/* No two threads may call MPI at a time, nor may one after it has ended: then this is FALSE, and there is
 * nothing to leave. */
gboolean gtorch_mpi_enter (void);
void gtorch_mpi_leave (void);
void gtorch_mpi_set_ended (GError **error);

/* What a thread does between two looks at what it waits for: nothing at first, and longer and longer pauses
 * later, so that ranks that share a processor get on. */
void gtorch_mpi_pause (guint n_looks);
gint64 gtorch_mpi_deadline (gdouble timeout);

/* Whether the process has been started by something that knows the others. */
gboolean gtorch_mpi_is_launched (void);

G_END_DECLS
