/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batch norm. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

#define BLOCKS_WANTED  1024 /* for all channels together: enough to occupy any GPU */
#define LEAST_ELEMENTS 4096 /* of a block, so that few of its threads have none */
#define MOST_SPLITS    64   /* one thread merges the parts of a channel */

/* Returns into how many parts, each with a block of threads, the elements of a channel are divided. */
static gint64
splits_of (const GTorchRows *rows)
{
  const gint64 n = rows->outer * rows->inner,
               blocks = rows->inner == 1 ? (rows->n + 31) / 32 : rows->n;
  const gint64 least = rows->inner == 1 ? LEAST_ELEMENTS / 32 : LEAST_ELEMENTS;

  return CLAMP (MIN (BLOCKS_WANTED / blocks, n / least), 1, MOST_SPLITS);
}

static gboolean
cuda_run (GTorchOpCall *call, GTorchCudaLane *lane, gboolean backward, GError **error)
{
  guint dtype = call->compute, n_big = backward ? 2 : 1, i;
  GTorchImpl *packed[5] = { NULL }, *out[3] = { NULL };
  g_autoptr (GTorchImpl) scratch = NULL;
  const gdouble eps = call->attrs[0].d;
  GTorchRows rows;
  gboolean ok = FALSE;
  gdouble *parts, *per_channel;
  gint64 splits, n_blocks, n_threads;
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
  splits = splits_of (&rows);
  scratch = gtorch_impl_new (x->storage->device, GTORCH_DTYPE_FLOAT64,
                             (gint64[]){ 3 * rows.n * (splits + 1) }, 1, error);
  if (scratch == NULL)
    goto done;
  parts = gtorch_impl_data (scratch);
  per_channel = parts + 3 * rows.n * splits;
  n_blocks = (rows.inner == 1 ? (rows.n + 31) / 32 : rows.n) * splits;
  /* a thread has the elements of 16 bytes */
  n_threads = MAX (x->numel * (gint64) gtorch_dtype_size (dtype) / 16, 1);
  if (!backward)
    {
      const GtChannelMoments m = {
        .x = gtorch_impl_data (x),
        .parts = parts,
        .batch = rows.outer,
        .channels = rows.n,
        .inner = rows.inner,
        .splits = splits,
      };
      const GtChannelStatistics t = {
        .parts = parts,
        .weight = packed[1] != NULL ? gtorch_impl_data (packed[1]) : NULL,
        .mean = gtorch_impl_data (out[1]),
        .var = gtorch_impl_data (out[2]),
        .scale = per_channel,
        .channels = rows.n,
        .splits = splits,
        .eps = eps,
      };
      const GtChannelScale s = {
        .x = m.x,
        .mean = t.mean,
        .scale = per_channel,
        .bias = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL,
        .y = gtorch_impl_data (out[0]),
        .batch = rows.outer,
        .channels = rows.n,
        .inner = rows.inner,
      };

      ok =
          gtorch_cuda_run_blocks (&gtorch_kernels_channel_moments, dtype, lane, n_blocks, &m, error)
          && gtorch_cuda_run (&gtorch_kernels_channel_statistics, GTORCH_DTYPE_FLOAT64, lane,
                              rows.n, &t, error)
          && gtorch_cuda_run (&gtorch_kernels_channel_scale, dtype, lane, n_threads, &s, error);
    }
  else
    {
      const GtChannelDots d = {
        .g = gtorch_impl_data (packed[0]),
        .x = gtorch_impl_data (x),
        .mean = gtorch_impl_data (packed[3]),
        .parts = parts,
        .batch = rows.outer,
        .channels = rows.n,
        .inner = rows.inner,
        .splits = splits,
      };
      const GtChannelFactors f = {
        .parts = parts,
        .var = gtorch_impl_data (packed[4]),
        .weight = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL,
        .grad_weight = gtorch_impl_data (out[1]),
        .grad_bias = gtorch_impl_data (out[2]),
        .factors = per_channel,
        .channels = rows.n,
        .splits = splits,
        .n = (gdouble) (rows.outer * rows.inner),
        .eps = eps,
      };
      const GtChannelGrad g = {
        .g = d.g,
        .x = d.x,
        .mean = d.mean,
        .factors = per_channel,
        .grad = gtorch_impl_data (out[0]),
        .batch = rows.outer,
        .channels = rows.n,
        .inner = rows.inner,
      };

      ok = gtorch_cuda_run_blocks (&gtorch_kernels_channel_dots, dtype, lane, n_blocks, &d, error)
           && gtorch_cuda_run (&gtorch_kernels_channel_factors, GTORCH_DTYPE_FLOAT64, lane, rows.n,
                               &f, error)
           && gtorch_cuda_run (&gtorch_kernels_channel_grad, dtype, lane, n_threads, &g, error);
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
