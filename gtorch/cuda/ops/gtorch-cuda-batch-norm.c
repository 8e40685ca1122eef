/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batch norm. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

#define BLOCKS_WANTED  1024 /* for all channels together: enough to occupy any GPU */
#define LEAST_ELEMENTS 4096 /* of a block, so that few of its threads have none */
#define LEAST_ROWS     256  /* likewise, where the channels are columns */
#define MOST_SPLITS    512  /* a warp merges the parts of a channel */
#define THREADS_WANTED (1 << 17)
#define MOST_ROWS      32 /* of a thread, where the channels are columns */
#define FEW_ROWS       8  /* likewise, where that gives fewer threads than are wanted */

/* Returns how many columns a block has: 128 bytes of a row, or 32 elements of one that is not a multiple of
 * 16 bytes long. Those of the kernels may be fewer, if an address is odd, and then some splits do more. */
static gint64
columns_of (const GTorchRows *rows, guint dtype)
{
  const gint64 size = gtorch_dtype_size (dtype);

  return rows->n * size % 16 == 0 ? 128 / size : 32;
}

/* Returns into how many parts, each with a block of threads, the elements of a channel are divided. */
static gint64
splits_of (const GTorchRows *rows, gint64 n_blocks)
{
  const gint64 n = rows->outer * rows->inner;
  const gint64 most = n / (rows->inner == 1 ? LEAST_ROWS : LEAST_ELEMENTS);

  return CLAMP (MIN (BLOCKS_WANTED / n_blocks, most), 1, MOST_SPLITS);
}

/* Launches one of the kernels that have `splits` blocks for each channel or for some columns. Those for
 * columns have shared memory for 256 threads. */
static gboolean
run_parts (const GTorchCudaKernelSet *kernels, guint dtype, GTorchCudaLane *lane,
           gboolean by_columns, gint64 n_blocks, gconstpointer p, GError **error)
{
  return by_columns ? gtorch_cuda_launch_blocks (kernels, gtorch_cuda_dtype_suffixes[dtype], lane,
                                                 n_blocks, p, error)
                    : gtorch_cuda_launch_each (kernels, gtorch_cuda_dtype_suffixes[dtype], lane,
                                               n_blocks, p, error);
}

static gboolean
cuda_run (GTorchOpCall *call, GTorchCudaLane *lane, gboolean backward, GError **error)
{
  guint dtype = call->compute, n_big = backward ? 2 : 1, i;
  GTorchImpl *packed[5] = { NULL }, *out[3] = { NULL };
  const gboolean is_last = gtorch_impl_is_channels_last (call->outputs[0]);
  g_autoptr (GTorchImpl) y = gtorch_cuda_turn (call->outputs[0], is_last), scratch = NULL;
  const gdouble eps = call->attrs[0].d;
  /* what belongs to the channels: the kernels read and write float32, too */
  const gboolean is_single = call->outputs[1]->dtype == GTORCH_DTYPE_FLOAT32;
  const guint channel_dtype = is_single ? GTORCH_DTYPE_FLOAT32 : GTORCH_DTYPE_FLOAT64;
  GTorchRows rows;
  gboolean ok = FALSE;
  gdouble *parts, *per_channel;
  gint64 splits, n_blocks, n_threads;
  gboolean by_columns;
  GTorchImpl *x;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL)
      {
        g_autoptr (GTorchImpl) input = gtorch_cuda_turn (call->inputs[i], i < n_big && is_last);

        packed[i] = gtorch_cuda_pack (input, i < n_big ? dtype : channel_dtype, lane, error);
        if (packed[i] == NULL)
          goto done;
      }
  for (i = 0; i < 3; i++)
    if ((out[i] = gtorch_cuda_pack_output (i == 0 ? y : call->outputs[i],
                                           i == 0 ? dtype : channel_dtype, error))
        == NULL)
      goto done;
  x = packed[backward ? 1 : 0];
  if (x->numel == 0)
    {
      ok = gtorch_cuda_clear (call->outputs[1], lane, error)
           && gtorch_cuda_clear (call->outputs[2], lane, error);
      goto done;
    }
  rows = gtorch_rows_along (x->shape, x->n_dims, is_last ? x->n_dims - 1 : 1);
  by_columns = rows.inner == 1;
  n_blocks =
      by_columns ? (rows.n + columns_of (&rows, dtype) - 1) / columns_of (&rows, dtype) : rows.n;
  splits = splits_of (&rows, n_blocks);
  n_blocks *= splits;
  scratch = gtorch_impl_new (x->storage->device, GTORCH_DTYPE_FLOAT64,
                             (gint64[]){ 3 * rows.n * (splits + 1) }, 1, error);
  if (scratch == NULL)
    goto done;
  parts = gtorch_impl_data (scratch);
  per_channel = parts + 3 * rows.n * splits;
  /* A thread has the elements of 16 bytes; by columns of up to 32 rows, for which it keeps the factors, as
   * long as there are enough threads. */
  n_threads = MAX (x->numel * (gint64) gtorch_dtype_size (dtype) / 16, 1);
  if (by_columns)
    n_threads = MAX (n_threads / MOST_ROWS, MIN (n_threads / FEW_ROWS + 1, THREADS_WANTED));
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
        .center = per_channel + rows.n,
        .scale = per_channel,
        .channels = rows.n,
        .splits = splits,
        .eps = eps,
        .is_single = is_single,
      };
      const GtChannelScale s = {
        .x = m.x,
        .center = t.center,
        .scale = per_channel,
        .bias = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL,
        .y = gtorch_impl_data (out[0]),
        .batch = rows.outer,
        .channels = rows.n,
        .inner = rows.inner,
        .is_single = is_single,
      };

      ok = run_parts (GTORCH_CUDA_SET (&gtorch_kernels_channel_moments, &m), dtype, lane,
                      by_columns, n_blocks, &m, error)
           && gtorch_cuda_run (&gtorch_kernels_channel_statistics, GTORCH_DTYPE_FLOAT64, lane,
                               32 * rows.n, &t, error)
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
        .is_single = is_single,
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
        .is_single = is_single,
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
        .is_single = is_single,
      };

      ok = run_parts (GTORCH_CUDA_SET (&gtorch_kernels_channel_dots, &d), dtype, lane, by_columns,
                      n_blocks, &d, error)
           && gtorch_cuda_run (&gtorch_kernels_channel_factors, GTORCH_DTYPE_FLOAT64, lane,
                               32 * rows.n, &f, error)
           && gtorch_cuda_run (&gtorch_kernels_channel_grad, dtype, lane, n_threads, &g, error);
    }
  for (i = 0; ok && i < 3; i++)
    ok = gtorch_cuda_unpack (out[i], i == 0 ? y : call->outputs[i], lane, error);
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
