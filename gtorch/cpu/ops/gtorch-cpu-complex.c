/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Complex numbers from their parts. */

#include "config.h"

#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_cpu_complex (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) part = gtorch_complex_part (call->outputs[0], i);

      if (part->numel > 0)
        gtorch_cpu_copy (part, call->inputs[i]);
    }
  return TRUE;
}
