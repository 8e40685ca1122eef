/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sums, means and maxima of rows of a table. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_cuda_native_embedding_bag (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *table = call->inputs[0];
  g_autoptr (GTorchImpl) weight = gtorch_cuda_pack (table, call->compute, lane, error);
  g_autoptr (GTorchImpl) indices =
      weight != NULL ? gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error) : NULL;
  g_autoptr (GTorchImpl) offsets =
      indices != NULL ? gtorch_cuda_pack (call->inputs[2], GTORCH_DTYPE_INT64, lane, error) : NULL;
  g_autoptr (GTorchImpl) factors = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  gint64 width, n_threads;
  GtBags p = { .n = call->inputs[1]->numel,
               .n_offsets = call->inputs[2]->numel,
               .bags = call->attrs[1].i,
               .rows = table->shape[0],
               .columns = table->shape[1],
               .padding = call->attrs[2].i,
               .mode = call->attrs[0].i,
               .op = gtorch_cuda_report_op (call, -1),
               .report = gtorch_cuda_report (lane, error) };

  if (offsets == NULL || p.report == NULL)
    return FALSE;
  if (call->inputs[3] != NULL)
    {
      factors = gtorch_cuda_pack (call->inputs[3], call->compute, lane, error);
      if (factors == NULL)
        return FALSE;
      p.factors = gtorch_impl_data (factors);
    }
  output = gtorch_cuda_pack_output (call->outputs[0], call->compute, error);
  if (output == NULL)
    return FALSE;
  p.weight = gtorch_impl_data (weight);
  p.indices = gtorch_impl_data (indices);
  p.offsets = gtorch_impl_data (offsets);
  p.output = gtorch_impl_data (output);
  p.numbers = gtorch_impl_data (call->outputs[1]);
  p.sizes = gtorch_impl_data (call->outputs[2]);
  p.places = gtorch_impl_data (call->outputs[3]);
  width = 16 / gtorch_dtype_size (call->compute);
  p.is_wide = p.columns > 0 && p.columns % width == 0 && (guintptr) p.weight % 16 == 0;
  n_threads = p.bags * MAX (p.is_wide ? p.columns / width : p.columns, 1);
  p.is_long = p.n / 64 > n_threads && n_threads > 0;
  return (!p.is_long
          || gtorch_cuda_run (&gtorch_kernels_bag_numbers, GTORCH_DTYPE_INT64, lane, p.n, &p,
                              error))
         && gtorch_cuda_run (&gtorch_kernels_bags, call->compute, lane, n_threads, &p, error)
         && gtorch_cuda_unpack (output, call->outputs[0], lane, error);
}
