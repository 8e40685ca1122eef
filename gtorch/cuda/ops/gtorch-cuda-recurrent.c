/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-ops-private.h"

/* Answers that there is no loop over the steps: they are composed of other operations. */
gboolean
gtorch_cuda_query_recurrent_scan (GTorchOpCall *call, gint64 *answers, GError **error)
{
  answers[0] = FALSE;
  return TRUE;
}
