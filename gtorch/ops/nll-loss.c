/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The negative log likelihood of class indices, with label smoothing, and its gradient:
 *
 *   loss = - (1 - s) w[t] x[t] - s / C * sum over c of w[c] x[c]
 */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"

static gboolean
check (GTorchOpCall *call, const gint64 *shape, guint n_dims, GError **error)
{
  const GTorchImpl *target = call->inputs[1], *weight = call->inputs[2];
  guint class_dim = n_dims > 1 ? 1 : 0, i;
  gboolean fits = n_dims > 0 && target->n_dims == n_dims - 1;

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
  call->compute = call->inputs[0]->dtype;
  return gtorch_call_check_dtype (call, call->compute, error);
}

gboolean
gtorch_shape_nll_loss_smooth (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0], *target = call->inputs[1];
  gboolean none = call->attrs[0].i == GTORCH_REDUCTION_NONE;

  if ((guint64) call->attrs[0].i > GTORCH_REDUCTION_SUM)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%d is no reduction"),
                         (gint) call->attrs[0].i);
      return FALSE;
    }
  return check (call, self->shape, self->n_dims, error)
         && gtorch_call_set_output (call, 0, self->dtype, target->shape, none ? target->n_dims : 0,
                                    error);
}

gboolean
gtorch_shape_nll_loss_backward (GTorchOpCall *call, GError **error)
{
  const gint64 *shape = call->attrs[0].list.data;
  guint n_dims = call->attrs[0].list.n;

  return gtorch_shape_check (call->op->name, shape, n_dims, call->inputs[0]->dtype, error)
         && check (call, shape, n_dims, error)
         && gtorch_call_set_output (call, 0, call->inputs[0]->dtype, shape, n_dims, error);
}
