/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "cpu/ops/gtorch-cpu-gemm.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-multiply-private.h"
#include "gtorch-ops-private.h"

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
gtorch_shape_linear (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *input = call->inputs[0], *weight = call->inputs[1], *bias = call->inputs[2];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n = input->n_dims;

  if (!gtorch_matmul_check_dims (call, 1, 2, error) || !gtorch_matmul_check_dtypes (call, error))
    return FALSE;
  if (n == 0 || input->shape[n - 1] != weight->shape[1])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the last dimension of the input %s must be the %" G_GINT64_FORMAT
                            " columns of the weight %s"),
                         gtorch_impl_shape_str (input), weight->shape[1],
                         gtorch_impl_shape_str (weight));
      return FALSE;
    }
  if (bias != NULL
      && (bias->n_dims > 1 || (bias->n_dims == 1 && bias->shape[0] != weight->shape[0])))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the bias %s must have one element for each row of the weight %s"),
                         gtorch_impl_shape_str (bias), gtorch_impl_shape_str (weight));
      return FALSE;
    }
  memcpy (shape, input->shape, n * sizeof (gint64));
  shape[n - 1] = weight->shape[0];
  return gtorch_shape_check (call->op->name, shape, n, call->compute, error)
         && gtorch_call_set_output (call, 0, call->compute, shape, n, error);
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

/* Flattens the leading dimensions of a tensor on the device into one. */
static GTorchImpl *
as_rows (GTorchImpl *impl, GTorchCudaLane *lane, GError **error)
{
  guint n = impl->n_dims, i;
  gint64 shape[2] = { 1, impl->shape[n - 1] };
  gint64 strides[2] = { MAX (impl->shape[n - 1], 1), 1 };
  g_autoptr (GTorchImpl) copy = NULL;

  if (n == 2)
    return gtorch_impl_ref (impl);
  for (i = 0; i + 1 < n; i++)
    shape[0] *= impl->shape[i];
  if (impl->is_contiguous)
    return gtorch_impl_new_view (impl, impl->offset, shape, strides, 2);
  copy = gtorch_impl_new (impl->storage->device, impl->dtype, impl->shape, n, error);
  if (copy == NULL || !gtorch_cuda_copy_here (copy, impl, lane, error))
    return NULL;
  return gtorch_impl_new_view (copy, copy->offset, shape, strides, 2);
}

static GTorchImpl *
transpose (GTorchImpl *impl)
{
  return gtorch_impl_new_view (impl, impl->offset, (gint64[]){ impl->shape[1], impl->shape[0] },
                               (gint64[]){ impl->strides[1], impl->strides[0] }, 2);
}

gboolean
gtorch_cuda_linear (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0], *weight = call->inputs[1], *bias = call->inputs[2];
  g_autoptr (GTorchImpl) input = as_rows (call->inputs[0], lane, error);
  g_autoptr (GTorchImpl) transposed = transpose (weight);
  g_autoptr (GTorchImpl) result = NULL;
  gboolean fused = bias != NULL && bias->is_contiguous && bias->n_dims == 1
                   && gtorch_dtype_kind (call->compute) == GTORCH_KIND_FLOAT
                   && weight->shape[1] > 0;

  if (input == NULL)
    return FALSE;
  if (bias != NULL && !fused && !gtorch_cuda_copy_here (output, bias, lane, error))
    return FALSE;
  result =
      gtorch_impl_new_view (output, output->offset, (gint64[]){ input->shape[0], weight->shape[0] },
                            (gint64[]){ MAX (weight->shape[0], 1), 1 }, 2);
  return gtorch_cuda_multiply (call, lane, input, transposed, result, fused ? bias : NULL, 1,
                               bias != NULL && !fused ? 1 : 0, error);
}

gboolean
gtorch_cuda_linear_grad_weight (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) upper = as_rows (call->inputs[0], lane, error);
  g_autoptr (GTorchImpl) input = upper != NULL ? as_rows (call->inputs[1], lane, error) : NULL;
  g_autoptr (GTorchImpl) transposed = input != NULL ? transpose (upper) : NULL;

  return transposed != NULL
         && gtorch_cuda_multiply (call, lane, transposed, input, call->outputs[0], NULL, 1, 0,
                                  error);
}

gboolean
gtorch_shape_linear_grad_weight (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *upper = call->inputs[0], *input = call->inputs[1];
  gint64 shape[2];

  if (!gtorch_matmul_check_dtypes (call, error))
    return FALSE;
  if (upper->n_dims != input->n_dims || upper->n_dims == 0
      || memcmp (upper->shape, input->shape, (upper->n_dims - 1) * sizeof (gint64)) != 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("shapes %s and %s differ in more than the last dimension"),
                         gtorch_impl_shape_str (upper), gtorch_impl_shape_str (input));
      return FALSE;
    }
  shape[0] = upper->shape[upper->n_dims - 1];
  shape[1] = input->shape[input->n_dims - 1];
  return gtorch_shape_check (call->op->name, shape, 2, call->compute, error)
         && gtorch_call_set_output (call, 0, call->compute, shape, 2, error);
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

/* --- both parameter gradients --- */

gboolean
gtorch_shape_linear_grads (GTorchOpCall *call, GError **error)
{
  return gtorch_shape_linear_grad_weight (call, error)
         && gtorch_call_set_output (call, 1, call->compute, call->outputs[0]->shape, 1, error);
}

static gboolean
sum_rows (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *upper = call->inputs[0];
  gint64 dims[GTORCH_MAX_DIMS];
  GTorchAttr attrs[3] = { { .list = { dims, upper->n_dims - 1 } } };
  GTorchOpCall sum = {
    .op = &gtorch_ops[GTORCH_OP_SUM],
    .inputs = &upper,
    .n_inputs = 1,
    .attrs = attrs,
    .outputs = { call->outputs[1] },
    .n_outputs = 1,
    .device = call->device,
    .compute = call->compute,
  };
  guint i;

  for (i = 0; i + 1 < upper->n_dims; i++)
    dims[i] = i;
  attrs[1].i = FALSE;
  attrs[2].i = GTORCH_DTYPE_NONE;
  if (upper->n_dims == 1) /* there are no leading dimensions to sum over */
    {
      if (lane != NULL)
        return gtorch_cuda_copy_here (call->outputs[1], upper, lane, error);
      gtorch_cpu_assign (call->outputs[1], upper);
      return TRUE;
    }
  return gtorch_call_run (&sum, lane, error);
}

gboolean
gtorch_cpu_linear_grads (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return gtorch_cpu_linear_grad_weight (call, queue, error) && sum_rows (call, queue, error);
}

gboolean
gtorch_cuda_linear_grads (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) upper = as_rows (call->inputs[0], lane, error);
  g_autoptr (GTorchImpl) input = upper != NULL ? as_rows (call->inputs[1], lane, error) : NULL;
  g_autoptr (GTorchImpl) transposed = input != NULL ? transpose (upper) : NULL;
  gboolean done = FALSE;

  if (transposed == NULL)
    return FALSE;
  if (gtorch_dtype_kind (call->compute) == GTORCH_KIND_FLOAT && upper->numel > 0 && input->numel > 0
      && !gtorch_cuda_multiply_and_sum (call, lane, transposed, input, call->outputs[0],
                                        call->outputs[1], &done, error))
    return FALSE;
  return done
         || (gtorch_cuda_multiply (call, lane, transposed, input, call->outputs[0], NULL, 1, 0,
                                   error)
             && sum_rows (call, lane, error));
}

gboolean
gtorch_grad_linear (GTorchGradContext *context, GError **error)
{
  GTorchImpl *sources[] = { context->grads[0], context->inputs[0] };
  g_autoptr (GTorchImpl) weight = NULL;
  g_autoptr (GTorchImpl) input = NULL;

  if (context->grads[0] == NULL)
    return TRUE;
  if (context->needs[0])
    {
      weight = gtorch_op_conj (context->inputs[1], error);
      context->result[0] =
          weight != NULL ? gtorch_op_matmul (context->grads[0], weight, error) : NULL;
      if (context->result[0] == NULL)
        return FALSE;
    }
  /* The fused gradients are not recorded, so they are only used if no gradient of them is wanted. */
  if (context->needs[1] && context->needs[2]
      && gtorch_impl_device (context->grads[0])->type == GTORCH_DEVICE_TYPE_CUDA
      && gtorch_dtype_kind (context->grads[0]->dtype) == GTORCH_KIND_FLOAT
      && !gtorch_autograd_wanted (sources, G_N_ELEMENTS (sources)))
    return gtorch_op_linear_grads (context->grads[0], context->inputs[0], &context->result[1],
                                   &context->result[2], error);
  if (context->needs[1])
    {
      input = gtorch_op_conj (context->inputs[0], error);
      context->result[1] =
          input != NULL ? gtorch_op_linear_grad_weight (context->grads[0], input, error) : NULL;
      if (context->result[1] == NULL)
        return FALSE;
    }
  if (context->needs[2])
    context->result[2] = gtorch_impl_ref (context->grads[0]);
  return TRUE;
}
