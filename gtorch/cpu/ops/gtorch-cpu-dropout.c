/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"

typedef struct
{
  gpointer result;
  gconstpointer grad;
  const guint32 *mask;
  gint64 n;
  gdouble scale;
  gboolean wide;
} Backward;

static void
choose (gint64 first, gint64 last, gpointer data)
{
  const Backward *self = data;
  gint64 i;

  for (i = first * 128; i < MIN (last * 128, self->n); i++)
    {
      const gboolean keep = self->mask[i / 128 * 4 + i % 4] >> i / 4 % 32 & 1;

      if (self->wide)
        ((gdouble *) self->result)[i] = keep ? ((const gdouble *) self->grad)[i] * self->scale : 0;
      else
        ((gfloat *) self->result)[i] =
            keep ? ((const gfloat *) self->grad)[i] * (gfloat) self->scale : 0;
    }
}

gboolean
gtorch_cpu_dropout_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const gboolean wide = output->dtype == GTORCH_DTYPE_FLOAT64;
  const guint dtype = wide ? GTORCH_DTYPE_FLOAT64 : GTORCH_DTYPE_FLOAT32;
  g_autoptr (GTorchImpl) grad = gtorch_cpu_pack (call->inputs[0], dtype, error);
  g_autoptr (GTorchImpl) mask =
      grad != NULL ? gtorch_cpu_pack (call->inputs[1], GTORCH_DTYPE_INT32, error) : NULL;
  g_autoptr (GTorchImpl) result =
      mask != NULL ? gtorch_cpu_pack_output (output, dtype, error) : NULL;
  Backward self = { .n = output->numel, .scale = call->attrs[0].d, .wide = wide };

  if (result == NULL)
    return FALSE;
  self.result = gtorch_impl_data (result);
  self.grad = gtorch_impl_data (grad);
  self.mask = gtorch_impl_data (mask);
  gtorch_parallel_for ((self.n + 127) / 128, 64, choose, &self);
  gtorch_cpu_unpack (result, output);
  return TRUE;
}
