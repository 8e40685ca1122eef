/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cpu/ops/gtorch-cpu-gemm.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* Flattens all leading dimensions into one: a view, or a copy. */
static GTorchImpl *
flatten_rows (GTorchImpl *impl, guint dtype, GError **error)
{
  guint n = impl->n_dims;
  gint64 columns = n > 0 ? impl->shape[n - 1] : 1;
  gint64 shape[2] = { 1, columns }, strides[2] = { columns, 1 };
  g_autoptr (GTorchImpl) packed = NULL;
  guint i;

  for (i = 0; i + 1 < n; i++)
    shape[0] *= impl->shape[i];
  if (n == 2 && impl->dtype == dtype)
    return gtorch_impl_ref (impl);
  packed = gtorch_cpu_pack (impl, dtype, error);
  return packed != NULL ? gtorch_impl_new_view (packed, packed->offset, shape, strides, 2) : NULL;
}

gboolean
gtorch_cpu_linear (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0], *weight = call->inputs[1], *bias = call->inputs[2];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  gint64 t_shape[2] = { weight->shape[1], weight->shape[0] };
  gint64 t_strides[2] = { weight->strides[1], weight->strides[0] };
  g_autoptr (GTorchImpl) input = flatten_rows (call->inputs[0], dtype, error);
  g_autoptr (GTorchImpl) transposed =
      gtorch_impl_new_view (weight, weight->offset, t_shape, t_strides, 2);
  g_autoptr (GTorchImpl) result = NULL;
  gint64 shape[2];

  if (input == NULL)
    return FALSE;
  if (bias != NULL)
    gtorch_cpu_assign (output, bias);
  shape[0] = input->shape[0];
  shape[1] = t_shape[1];
  result = gtorch_impl_new_view (output, output->offset, shape, (gint64[]){ shape[1], 1 }, 2);
  return gtorch_cpu_multiply (call, input, transposed, result, 1, bias != NULL ? 1 : 0, error);
}

gboolean
gtorch_cpu_linear_grad_weight (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) upper = flatten_rows (call->inputs[0], dtype, error);
  g_autoptr (GTorchImpl) input =
      upper != NULL ? flatten_rows (call->inputs[1], dtype, error) : NULL;
  g_autoptr (GTorchImpl) transposed = NULL;

  if (input == NULL)
    return FALSE;
  transposed =
      gtorch_impl_new_view (upper, upper->offset, (gint64[]){ upper->shape[1], upper->shape[0] },
                            (gint64[]){ upper->strides[1], upper->strides[0] }, 2);
  return gtorch_cpu_multiply (call, transposed, input, call->outputs[0], 1, 0, error);
}

gboolean
gtorch_cpu_linear_grads (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return gtorch_cpu_linear_grad_weight (call, queue, error)
         && gtorch_linear_sum_rows (call, queue, error);
}

/* Answers whether the gradients are computed faster at once. */
gboolean
gtorch_cpu_query_linear_grads (GTorchOpCall *call, gint64 *answers, GError **error)
{
  answers[0] = FALSE;
  return TRUE;
}
