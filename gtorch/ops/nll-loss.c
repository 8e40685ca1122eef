/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The negative log likelihood of class indices, with label smoothing, and its gradient:
 *
 *   loss = - (1 - s) w[t] x[t] - s / C * sum over c of w[c] x[c]
 *
 * The cross entropy is that of log_softmax (x), in one pass over x, which may have a narrower dtype than the
 * loss. Its gradient, in one pass as well, needs only the logarithm of each sum of exponentials. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"

static gboolean
check (GTorchOpCall *call, const GTorchImpl *target, const GTorchImpl *weight, const gint64 *shape,
       guint n_dims, guint dtype, GError **error)
{
  guint class_dim = n_dims > 1 ? 1 : 0, i;
  gboolean fits = n_dims > 0 && target->n_dims == n_dims - 1;

  call->compute = dtype;
  if (!gtorch_call_check_dtype (call, dtype, error))
    return FALSE;
  for (i = 0; fits && i < target->n_dims; i++)
    fits = target->shape[i] == shape[i < class_dim ? i : i + 1];
  if (!fits)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the target's shape %s must be the input's, %s, without its dimension "
                            "of "
                            "classes, dim %u"),
                         gtorch_impl_shape_str (target), gtorch_shape_str (shape, n_dims),
                         class_dim);
      return FALSE;
    }
  if (gtorch_dtype_kind (target->dtype) != GTORCH_KIND_INT)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("the target holds class indices: its dtype must be an integer, it is "
                            "%s"),
                         gtorch_dtype_get_name (target->dtype));
      return FALSE;
    }
  if (weight != NULL && (weight->n_dims != 1 || weight->shape[0] != shape[class_dim]))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the weight %s must have one element for each class of %s"),
                         gtorch_impl_shape_str (weight), gtorch_shape_str (shape, n_dims));
      return FALSE;
    }
  return TRUE;
}

static gboolean
check_reduction (GTorchOpCall *call, GError **error)
{
  if ((guint64) call->attrs[0].i <= GTORCH_REDUCTION_SUM)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%d is no reduction"),
                     (gint) call->attrs[0].i);
  return FALSE;
}

gboolean
gtorch_shape_nll_loss_smooth (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0], *target = call->inputs[1];
  gboolean none = call->attrs[0].i == GTORCH_REDUCTION_NONE;

  return check_reduction (call, error)
         && check (call, target, call->inputs[2], self->shape, self->n_dims, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, target->shape, none ? target->n_dims : 0,
                                    error);
}

gboolean
gtorch_shape_nll_loss_backward (GTorchOpCall *call, GError **error)
{
  const gint64 *shape = call->attrs[0].list.data;
  guint n_dims = call->attrs[0].list.n;

  return gtorch_shape_check (call->op->name, shape, n_dims, call->inputs[0]->dtype, error)
         && check (call, call->inputs[1], call->inputs[2], shape, n_dims, call->inputs[0]->dtype,
                   error)
         && gtorch_call_set_output (call, 0, call->inputs[0]->dtype, shape, n_dims, error);
}

gboolean
gtorch_shape_cross_entropy (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0], *target = call->inputs[1];
  const gboolean none = call->attrs[0].i == GTORCH_REDUCTION_NONE;
  const guint wanted = call->attrs[3].i;
  const gint64 two = 2;

  return check_reduction (call, error)
         && check (call, target, call->inputs[2], self->shape, self->n_dims, self->dtype, error)
         && gtorch_call_set_output (call, 0, wanted != GTORCH_DTYPE_NONE ? wanted : self->dtype,
                                    target->shape, none ? target->n_dims : 0, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_FLOAT64, target->shape, target->n_dims,
                                    error)
         && gtorch_call_set_output (call, 2, GTORCH_DTYPE_FLOAT64, &two, 1, error);
}

gboolean
gtorch_shape_cross_entropy_backward (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[1];

  return check (call, call->inputs[2], call->inputs[3], self->shape, self->n_dims, self->dtype,
                error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

gboolean
gtorch_grad_native_cross_entropy (GTorchGradContext *context, GError **error)
{
  GTorchImpl *grad = context->grads[0], *self = context->inputs[0];
  GTorchImpl *target = context->inputs[1], *weight = context->inputs[2];
  GTorchImpl *sources[] = { grad, self };
  const GTorchReduction reduction = context->attrs[0].i;
  const gint64 ignored = context->attrs[1].i;
  const gdouble smoothing = context->attrs[2].d;
  g_autoptr (GTorchImpl) wide = NULL;
  g_autoptr (GTorchImpl) scores = NULL;
  g_autoptr (GTorchImpl) upper = NULL;
  gint64 dim;

  if (context->needs[2])
    return gtorch_grad_undefined_for (context, "weight", error);
  if (context->grads[1] != NULL || context->grads[2] != NULL)
    return gtorch_grad_undefined (context, error);
  if (grad == NULL || !context->needs[0])
    return TRUE;
  if (!gtorch_autograd_wanted (sources, G_N_ELEMENTS (sources)))
    {
      context->result[0] =
          gtorch_op_cross_entropy_backward (grad, self, target, weight, context->outputs[1],
                                            context->outputs[2], reduction, ignored, smoothing,
                                            error);
      return context->result[0] != NULL;
    }
  /* the same by operations that have gradients themselves */
  dim = self->n_dims > 1 ? 1 : 0;
  wide = gtorch_op_to_dtype (self, grad->dtype, error);
  scores = wide != NULL ? gtorch_op_log_softmax (wide, dim, GTORCH_DTYPE_NONE, error) : NULL;
  upper = scores != NULL
              ? gtorch_op_nll_loss_backward (grad, target, weight, scores->shape, scores->n_dims,
                                             reduction, ignored, smoothing, error)
              : NULL;
  context->result[0] =
      upper != NULL ? gtorch_op_log_softmax_backward (upper, scores, dim, error) : NULL;
  return context->result[0] != NULL;
}
