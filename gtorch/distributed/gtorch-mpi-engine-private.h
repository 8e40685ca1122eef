/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

#include "distributed/mpi/gtorch-mpi-table-private.h"

G_BEGIN_DECLS

/* Opens the module that calls MPI, once; NULL with an error if that, or MPI itself, is not installed. */
const GTorchMpiTable *gtorch_mpi_load (GError **error);

/* Whether the process has been started by something that knows the others. */
gboolean gtorch_mpi_is_launched (void);

G_END_DECLS
