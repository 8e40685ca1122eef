/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Conjugates. */

#include "config.h"

#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-ops-private.h"

static void
conjugate_32 (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  gint64 i;

  for (i = 0; i < n; i++)
    {
      float *o = (float *) (data[0] + i * strides[0]);
      const float *x = (const float *) (data[1] + i * strides[1]);

      o[0] = x[0];
      o[1] = -x[1];
    }
}

static void
conjugate_64 (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  gint64 i;

  for (i = 0; i < n; i++)
    {
      double *o = (double *) (data[0] + i * strides[0]);
      const double *x = (const double *) (data[1] + i * strides[1]);

      o[0] = x[0];
      o[1] = -x[1];
    }
}

gboolean
gtorch_cpu_conj (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  GTorchImpl *operands[] = { output, call->inputs[0] };
  GTorchIter iter;

  if (output->numel == 0)
    return TRUE;
  gtorch_iter_init (&iter, operands, 2, output->shape, output->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN,
                   output->dtype == GTORCH_DTYPE_COMPLEX64 ? conjugate_32 : conjugate_64, NULL);
  return TRUE;
}
