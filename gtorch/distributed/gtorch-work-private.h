/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "distributed/gtorch-work.h"

G_BEGIN_DECLS

/* operation: a static string, "all_reduce". */
GTorchWork *gtorch_work_new (const gchar *operation, guint64 sequence);
/* Ends the work, once; further calls do nothing. Takes the error, NULL for success. In any thread. */
void gtorch_work_complete (GTorchWork *self, GError *error);

G_END_DECLS
