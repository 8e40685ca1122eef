/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

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
                         _ ("the last dimension of the input %s must be the %" PRId64
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

/* --- both parameter gradients --- */

gboolean
gtorch_shape_linear_grads (GTorchOpCall *call, GError **error)
{
  return gtorch_shape_linear_grad_weight (call, error)
         && gtorch_call_set_output (call, 1, call->compute, call->outputs[0]->shape, 1, error);
}

gboolean
gtorch_linear_sum_rows (GTorchOpCall *call, GTorchQueue *queue, GError **error)
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
      sum.op = &gtorch_ops[GTORCH_OP_CLONE];
      sum.attrs = NULL;
    }
  return gtorch_call_run (&sum, queue, error);
}

/* Asks the device whether it computes both gradients faster at once. */
static gboolean
is_fused (GTorchImpl *upper, GTorchImpl *input)
{
  GTorchImpl *inputs[] = { upper, input };
  GTorchOpCall call = {
    .op = &gtorch_ops[GTORCH_OP_LINEAR_GRADS],
    .inputs = inputs,
    .n_inputs = G_N_ELEMENTS (inputs),
    .n_outputs = 2,
    .device = gtorch_impl_device (upper),
  };
  gint64 answer = FALSE;

  return gtorch_call_query (&call, &answer, NULL) && answer;
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
  if (context->needs[1] && context->needs[2] && is_fused (context->grads[0], context->inputs[0])
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
