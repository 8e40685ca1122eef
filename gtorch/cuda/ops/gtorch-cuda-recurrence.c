/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Recurrences along a dimension. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

/* Computes recurrences with one thread per line, as they only serve gradients of gradients of products. */
gboolean
gtorch_cuda_recurrence (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  const guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) f = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GTorchRows rows;
  guint dim;
  GtRecurrence p = { .reverse = call->attrs[2].i, .start = call->attrs[1].d };

  if (call->outputs[0]->numel == 0)
    return TRUE;
  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  x = gtorch_cuda_pack (call->inputs[0], dtype, lane, error);
  f = x != NULL ? gtorch_cuda_pack (call->inputs[1], dtype, lane, error) : NULL;
  y = f != NULL ? gtorch_cuda_pack_output (call->outputs[0], dtype, error) : NULL;
  if (y == NULL)
    return FALSE;
  rows = gtorch_rows_along (self->shape, self->n_dims, dim);
  p.lines = rows.outer * rows.inner;
  p.n = rows.n;
  p.inner = rows.inner;
  p.x = gtorch_impl_data (x);
  p.f = gtorch_impl_data (f);
  p.y = gtorch_impl_data (y);
  return gtorch_cuda_run (&gtorch_kernels_recurrence, dtype, lane, p.lines, &p, error)
         && gtorch_cuda_unpack (y, call->outputs[0], lane, error);
}
