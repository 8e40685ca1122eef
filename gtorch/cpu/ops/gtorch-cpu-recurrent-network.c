/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The CPU computes networks layer by layer (gtorch-cpu-recurrent.c), so it answers that it has none of this,
 * and refuses what is called in spite of that. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_cpu_query_recurrent_network (GTorchOpCall *call, gint64 *answers, GError **error)
{
  answers[GTORCH_NETWORK_VARIANT] = -1;
  return TRUE;
}

gboolean
gtorch_cpu_recurrent_network (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                     _ ("the device does not compute such a network at once"));
  return FALSE;
}

gboolean
gtorch_cpu_recurrent_network_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return gtorch_cpu_recurrent_network (call, queue, error);
}
