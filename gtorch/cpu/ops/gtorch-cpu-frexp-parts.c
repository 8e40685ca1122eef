/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Mantissas and exponents, by two element-wise operations. */

#include "config.h"

#include "gtorch-ops-private.h"

gboolean
gtorch_cpu_frexp_parts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  static const guint ops[] = { GTORCH_OP_FREXP_MANTISSA, GTORCH_OP_FREXP_EXPONENT };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (ops); i++)
    {
      GTorchOpCall one = {
        .op = &gtorch_ops[ops[i]],
        .inputs = call->inputs,
        .n_inputs = 1,
        .outputs = { call->outputs[i] },
        .n_outputs = 1,
        .device = call->device,
        .compute = call->compute,
      };

      if (!gtorch_cpu_pointwise (&one, queue, error))
        return FALSE;
    }
  return TRUE;
}
