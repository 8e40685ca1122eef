/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batch norm. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

static gboolean
cuda_run (GTorchOpCall *call, GTorchCudaLane *lane, gboolean backward, GError **error)
{
  guint dtype = call->compute, n_big = backward ? 2 : 1, i;
  GTorchImpl *packed[5] = { NULL }, *out[3] = { NULL };
  g_autoptr (GTorchImpl) sums = NULL;
  const gdouble eps = call->attrs[0].d;
  GTorchRows rows;
  gboolean ok = FALSE;
  GTorchImpl *x;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL
        && (packed[i] = gtorch_cuda_pack (call->inputs[i], i < n_big ? dtype : GTORCH_DTYPE_FLOAT64,
                                          lane, error))
               == NULL)
      goto done;
  for (i = 0; i < 3; i++)
    if ((out[i] = gtorch_cuda_pack_output (call->outputs[i], i == 0 ? dtype : GTORCH_DTYPE_FLOAT64,
                                           error))
        == NULL)
      goto done;
  x = packed[backward ? 1 : 0];
  if (x->numel == 0)
    {
      ok = gtorch_cuda_clear (call->outputs[1], lane, error)
           && gtorch_cuda_clear (call->outputs[2], lane, error);
      goto done;
    }
  rows = gtorch_rows_along (x->shape, x->n_dims, 1);
  if (!backward)
    {
      const GtChannelMoments m = {
        .x = gtorch_impl_data (x),
        .mean = gtorch_impl_data (out[1]),
        .var = gtorch_impl_data (out[2]),
        .batch = rows.outer,
        .channels = rows.n,
        .inner = rows.inner,
      };
      const GtChannelScale s = {
        .x = m.x,
        .mean = m.mean,
        .var = m.var,
        .weight = packed[1] != NULL ? gtorch_impl_data (packed[1]) : NULL,
        .bias = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL,
        .y = gtorch_impl_data (out[0]),
        .batch = rows.outer,
        .channels = rows.n,
        .inner = rows.inner,
        .eps = eps,
      };

      ok = gtorch_cuda_run_blocks (&gtorch_kernels_channel_moments, dtype, lane, rows.n, &m, error)
           && gtorch_cuda_run (&gtorch_kernels_channel_scale, dtype, lane, x->numel, &s, error);
    }
  else if ((sums = gtorch_impl_new (x->storage->device, GTORCH_DTYPE_FLOAT64,
                                    (gint64[]){ 2 * rows.n }, 1, error))
           != NULL)
    {
      gdouble *sum = gtorch_impl_data (sums);
      const GtChannelDots d = {
        .g = gtorch_impl_data (packed[0]),
        .x = gtorch_impl_data (x),
        .mean = gtorch_impl_data (packed[3]),
        .sum = sum,
        .dot = sum + rows.n,
        .batch = rows.outer,
        .channels = rows.n,
        .inner = rows.inner,
      };
      const GtChannelGrad g = {
        .g = d.g,
        .x = d.x,
        .mean = d.mean,
        .var = gtorch_impl_data (packed[4]),
        .weight = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL,
        .sums = sum,
        .grad = gtorch_impl_data (out[0]),
        .batch = rows.outer,
        .channels = rows.n,
        .inner = rows.inner,
        .eps = eps,
      };
      const GtChannelWeight w = {
        .dot = d.dot,
        .var = g.var,
        .grad = gtorch_impl_data (out[1]),
        .channels = rows.n,
        .eps = eps,
      };

      ok = gtorch_cuda_run_blocks (&gtorch_kernels_channel_dots, dtype, lane, rows.n, &d, error)
           && gtorch_cuda_run (&gtorch_kernels_channel_grad, dtype, lane, x->numel, &g, error)
           && gtorch_cuda_run (&gtorch_kernels_channel_weight, GTORCH_DTYPE_FLOAT64, lane, rows.n,
                               &w, error);
      if (ok)
        {
          const gint64 strides[] = { 1 };
          g_autoptr (GTorchImpl) bytes = gtorch_impl_new_view (sums, 0, &rows.n, strides, 1);

          ok = gtorch_cuda_copy_here (out[2], bytes, lane, error);
        }
    }
  for (i = 0; ok && i < 3; i++)
    ok = gtorch_cuda_unpack (out[i], call->outputs[i], lane, error);
done:
  gtorch_impl_clear (packed, 5);
  gtorch_impl_clear (out, 3);
  return ok;
}

gboolean
gtorch_cuda_native_batch_norm (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_run (call, lane, FALSE, error);
}

gboolean
gtorch_cuda_batch_norm_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_run (call, lane, TRUE, error);
}
