/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The least and the greatest element, by two reductions. */

#include "config.h"

#include "cpu/ops/gtorch-cpu-reduce.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_cpu_extremes (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  static const guint ops[] = { GTORCH_OP_AMIN, GTORCH_OP_AMAX };
  const GTorchAttr attrs[] = { { .list = { NULL, 0 } }, { .i = FALSE } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (ops); i++)
    {
      GTorchOpCall one = {
        .op = &gtorch_ops[ops[i]],
        .inputs = call->inputs,
        .n_inputs = 1,
        .attrs = attrs,
        .outputs = { call->outputs[i] },
        .n_outputs = 1,
        .device = call->device,
        .compute = call->compute,
      };

      if (!gtorch_cpu_reduce (&one, queue, error))
        return FALSE;
    }
  return TRUE;
}
