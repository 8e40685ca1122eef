/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-rows.h"
#include "gtorch-ops-private.h"

typedef struct
{
  guint dtype;
  gsize size;
  gint64 batch, channels, inner;
  gdouble eps;
  const char *x, *g;
  const gdouble *weight, *bias; /* float64, or NULL */
  char *y;
  gdouble *mean, *var, *grad_weight, *grad_bias; /* float64 */
} BatchNorm;

static void
norm_channels (gint64 begin, gint64 end, gpointer user_data)
{
  const BatchNorm *b = user_data;
  gint64 stride = b->channels * b->inner;

  for (; begin < end; begin++)
    {
      gint64 at = begin * b->inner * (gint64) b->size;
      gdouble scale, shift;

      GTORCH_ROWS_CALL (b->dtype, channel_moments, (gconstpointer) (b->x + at), b->batch, b->inner,
                        stride, &b->mean[begin], &b->var[begin]);
      scale = (b->weight != NULL ? b->weight[begin] : 1) / sqrt (b->var[begin] + b->eps);
      shift = b->bias != NULL ? b->bias[begin] : 0;
      GTORCH_ROWS_CALL (b->dtype, channel_scale, (gconstpointer) (b->x + at),
                        (gpointer) (b->y + at), b->batch, b->inner, stride, b->mean[begin], scale,
                        shift);
    }
}

static void
grad_channels (gint64 begin, gint64 end, gpointer user_data)
{
  const BatchNorm *b = user_data;
  gint64 stride = b->channels * b->inner;
  gdouble n = (gdouble) (b->batch * b->inner);

  for (; begin < end; begin++)
    {
      gint64 at = begin * b->inner * (gint64) b->size;
      gdouble rstd = 1 / sqrt (b->var[begin] + b->eps), mean = b->mean[begin], sum, dot, scale;

      GTORCH_ROWS_CALL (b->dtype, channel_dots, (gconstpointer) (b->g + at),
                        (gconstpointer) (b->x + at), b->batch, b->inner, stride, mean, &sum, &dot);
      b->grad_weight[begin] = dot * rstd;
      b->grad_bias[begin] = sum;
      scale = rstd * (b->weight != NULL ? b->weight[begin] : 1);
      GTORCH_ROWS_CALL (b->dtype, channel_grad, (gconstpointer) (b->g + at),
                        (gconstpointer) (b->x + at), (gpointer) (b->y + at), b->batch, b->inner,
                        stride, mean, scale, -scale * rstd * rstd * dot / n, -scale * sum / n);
    }
}

/* Packs the operands, runs the loop and unpacks: x (and g, if backward) and output 0 have the compute
 * dtype, values per channel are float64. */
static gboolean
run (GTorchOpCall *call, gboolean backward, GError **error)
{
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  GTorchImpl *packed[5] = { NULL }, *out[3] = { NULL };
  BatchNorm b = { .dtype = dtype,
                  .size = gtorch_dtype_size (dtype),
                  .batch = 1,
                  .inner = 1,
                  .eps = call->attrs[0].d };
  gboolean ok = FALSE;
  guint n_big = backward ? 2 : 1, i;
  GTorchImpl *x;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL
        && (packed[i] =
                gtorch_cpu_pack (call->inputs[i], i < n_big ? dtype : GTORCH_DTYPE_FLOAT64, error))
               == NULL)
      goto done;
  for (i = 0; i < 3; i++)
    {
      out[i] =
          gtorch_cpu_pack_output (call->outputs[i], i == 0 ? dtype : GTORCH_DTYPE_FLOAT64, error);
      if (out[i] == NULL)
        goto done;
      memset (gtorch_impl_data (out[i]), 0, gtorch_impl_n_bytes (out[i]));
    }
  x = packed[backward ? 1 : 0];
  b.batch = x->shape[0];
  b.channels = x->shape[1];
  for (i = 2; i < x->n_dims; i++)
    b.inner *= x->shape[i];
  b.x = gtorch_impl_data (x);
  b.y = gtorch_impl_data (out[0]);
  b.weight = packed[n_big] != NULL ? gtorch_impl_data (packed[n_big]) : NULL;
  if (backward)
    {
      b.g = gtorch_impl_data (packed[0]);
      b.mean = gtorch_impl_data (packed[3]);
      b.var = gtorch_impl_data (packed[4]);
      b.grad_weight = gtorch_impl_data (out[1]);
      b.grad_bias = gtorch_impl_data (out[2]);
    }
  else
    {
      b.bias = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL;
      b.mean = gtorch_impl_data (out[1]);
      b.var = gtorch_impl_data (out[2]);
    }
  if (x->numel > 0)
    gtorch_parallel_for (b.channels, 1 + GTORCH_CPU_GRAIN / (b.batch * b.inner),
                         backward ? grad_channels : norm_channels, &b);
  for (i = 0; i < 3; i++)
    gtorch_cpu_unpack (out[i], call->outputs[i]);
  ok = TRUE;
done:
  gtorch_impl_clear (packed, 5);
  gtorch_impl_clear (out, 3);
  return ok;
}

gboolean
gtorch_cpu_native_batch_norm (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, FALSE, error);
}

gboolean
gtorch_cpu_batch_norm_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, TRUE, error);
}
