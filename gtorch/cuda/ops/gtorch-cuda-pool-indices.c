/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Placing and taking elements of images by index, for the gradients of max pooling. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"

/* Views a contiguous tensor as a matrix with one row per image. */
static GTorchImpl *
as_rows (GTorchImpl *contiguous)
{
  guint n = contiguous->n_dims;
  gint64 plane = contiguous->shape[n - 1] * contiguous->shape[n - 2];
  const gint64 shape[] = { contiguous->numel / plane, plane }, strides[] = { plane, 1 };

  return gtorch_impl_new_view (contiguous, contiguous->offset, shape, strides, 2);
}

gboolean
gtorch_cuda_max_pool2d_place (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const GTorchAttr dim = { .i = 1 };
  GTorchImpl *output = call->outputs[0], *rows[3] = { NULL };
  g_autoptr (GTorchImpl) indices =
      gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error);
  g_autoptr (GTorchImpl) x =
      indices != NULL ? gtorch_cuda_pack (call->inputs[0], output->dtype, lane, error) : NULL;
  g_autoptr (GTorchImpl) y =
      x != NULL ? gtorch_cuda_pack_output (output, output->dtype, error) : NULL;
  GTorchOpCall add = {
    .op = &gtorch_ops[GTORCH_OP_SCATTER_ADD],
    .inputs = rows,
    .n_inputs = 3,
    .attrs = &dim,
    .n_outputs = 1,
    .in_place = TRUE,
    .device = call->device,
    .compute = output->dtype,
  };
  gboolean result = TRUE;

  if (y == NULL || !gtorch_cuda_clear (y, lane, error))
    return FALSE;
  if (indices->numel > 0 && y->numel > 0)
    {
      rows[0] = add.outputs[0] = as_rows (y);
      rows[1] = as_rows (indices);
      rows[2] = as_rows (x);
      result = gtorch_call_run (&add, lane, error);
      gtorch_impl_clear (rows, G_N_ELEMENTS (rows));
    }
  return result && gtorch_cuda_unpack (y, output, lane, error);
}

gboolean
gtorch_cuda_max_pool2d_take (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0], *big = call->inputs[0];
  g_autoptr (GTorchImpl) indices =
      gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error);
  g_autoptr (GTorchImpl) x =
      indices != NULL ? gtorch_cuda_pack (big, call->compute, lane, error) : NULL;
  g_autoptr (GTorchImpl) y =
      x != NULL ? gtorch_cuda_pack_output (output, call->compute, error) : NULL;
  GtPoolTake p = { NULL };

  if (y == NULL)
    return FALSE;
  if (indices->numel == 0)
    return gtorch_cuda_unpack (y, output, lane, error);
  p.x = gtorch_impl_data (x);
  p.indices = gtorch_impl_data (indices);
  p.y = gtorch_impl_data (y);
  p.n = indices->numel;
  p.big = big->shape[big->n_dims - 1] * big->shape[big->n_dims - 2];
  p.small = indices->shape[indices->n_dims - 1] * indices->shape[indices->n_dims - 2];
  p.op = gtorch_cuda_report_op (call, -1);
  p.report = gtorch_cuda_report (lane, error);
  return p.report != NULL
         && gtorch_cuda_run (&gtorch_kernels_pool_take, call->compute, lane, indices->numel, &p,
                             error)
         && gtorch_cuda_unpack (y, output, lane, error);
}
